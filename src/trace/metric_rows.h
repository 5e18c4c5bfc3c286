// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The table of metrics in memory. It has no index, and a verdict asks for hundreds of series by
// their metrics' names: to look each up in it takes longer than a short run's blocks.

#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct metric_entry {
	char *name;
	char *kind; // of entities
	char *source;
	double scale;
	uint32_t id;
};

struct metric_rows {
	struct metric_entry *items; // [n], in order of name and id
	size_t n;
	size_t capacity;
};

// All of them as they are now. -errno, and nothing, where they cannot be read.
int metric_rows_load(sqlite3 *database, struct metric_rows *ret);
void metric_rows_done(struct metric_rows *rows);

// Those of one name, one for each kind of entity that has it: the first, and how many. NULL where
// there is none.
const struct metric_entry *metric_rows_find(
	const struct metric_rows *rows, const char *name, size_t *ret_n);
// Whether all of them are of one source.
bool metric_rows_have_one_source(const struct metric_entry *rows, size_t n);
