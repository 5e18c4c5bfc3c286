// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// JSON values for the contents of a run: always valid, whatever bytes a job used as names.

#pragma once

#include <jansson.h>
#include <stdio.h>

// These return new references; NULL is out of memory, which json_object_set_new and the like
// accept.
json_t *json_from_text(const char *text); // NULL: null. Invalid UTF-8 becomes U+FFFD.
json_t *json_from_number(double value); // not finite: null. Whole numbers have no fraction.

// A document as json_write prints it, to be freed. NULL: out of memory, or json is NULL.
char *json_to_text(const json_t *json);
// Writes a document and a newline. Takes the reference. Returns 0, -ENOMEM if json is NULL, or
// -errno of the stream.
int json_write(json_t *json, FILE *stream);
