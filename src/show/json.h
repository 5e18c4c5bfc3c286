// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// JSON values of a run's contents: always valid, whatever bytes a job used as names.

#pragma once

#include <jansson.h>
#include <stdio.h>

// New references; NULL is out of memory, and json_object_set_new and the like accept it.
json_t *json_from_text(const char *text); // NULL: null. Invalid UTF-8 becomes U+FFFD.
json_t *json_from_number(double value); // not finite: null. Whole numbers stay whole.

// Writes a document and a newline. 0, -ENOMEM where json is NULL, or -errno of the stream. Takes
// the reference.
int json_write(json_t *json, FILE *stream);
