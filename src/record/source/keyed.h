// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Metrics from kernel files with a name and a number in each line, as tables: a new metric is a row
// in the table of its group, and a row here.

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/parse.h"
#include "runfile/metric.h"

// A metric is the sum of its rows, and missing if one of their keys is not in the file.
enum keyed_use {
	KEYED_ADD,
	KEYED_SUBTRACT, // a negative sum is 0
	KEYED_ADD_KNOWN, // only if the key is in the file
	KEYED_SUBTRACT_KNOWN,
	KEYED_ELSE, // only if the rows above give no value: an older name
};

struct keyed_row {
	const char *key; // NULL: the file contains one number and no name
	enum keyed_use use;
	size_t metric; // of the group
};

// What the file counts.
enum keyed_unit {
	KEYED_PLAIN, // the metric's unit: bytes, events
	KEYED_MICROSECONDS, // of metrics with a scale of 1e-6, like the next two
	KEYED_NANOSECONDS,
	KEYED_TICKS, // of sysconf(_SC_CLK_TCK)
};

#define KEYED_MAX_ROWS 24u
#define KEYED_MAX_METRICS 16u

struct keyed_file {
	const char *path;
	const struct keyed_row
		*rows; // [n_rows], fastest in the order of the file; equal keys together
	size_t n_rows; // at most KEYED_MAX_ROWS
	enum keyed_unit unit;
};

// Stores the values that the text of this file gives, in the scale of their metrics; leaves other
// values unchanged. Returns the number of keys found.
size_t keyed_values(const struct keyed_file *file, struct cursor text, const struct metric *metrics,
	int64_t *values);
