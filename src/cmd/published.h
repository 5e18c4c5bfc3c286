// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The numbers that documents published (data/published), which stand beside one's own.

#pragma once

#include <stddef.h>

#include "base/error.h"

struct published_file {
	const char *name; // "torres2021_training_time"
	const char *text; // comma-separated, with a line of names
};

extern const struct published_file published_files[];
extern const size_t n_published_files;

struct published {
	char *text; // cut into fields
	char **fields; // [n_rows + 1][n_columns]; the first row is the names
	size_t n_columns;
	size_t n_rows; // without the names
};

// 0, -ENOENT for a name that is none, -EBADMSG where a row has another number of fields, -ENOMEM.
int published_read(const char *name, struct published *ret, struct error *e);
void published_done(struct published *p);
// NULL where there is no such column.
const char *published_field(const struct published *p, size_t row, const char *column);
// NAN where it is empty.
double published_number(const struct published *p, size_t row, const char *column);
