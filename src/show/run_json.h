// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A run as a JSON document, for programs (docs/json.md).

#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

struct analysis;
struct digest;
struct run_label;

// Writes the document: seconds, bytes and ratios; null if not measured. The analysis has its
// verdict. priced: the run with the measures of a price list; NULL: without. Returns 0 or -errno.
int run_json_write(const struct analysis *a, const struct digest *priced, FILE *stream);
// Labels as an object; a new reference.
json_t *run_json_labels(const struct run_label *labels, size_t n);
