// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Walks the rows of a file.

#include "record/source/keyed.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "machine/file.h"

// Finds the number of each row. Returns the number of keys found.
static size_t find_numbers(const struct keyed_file *file, struct cursor text, int64_t *numbers)
{
	const char *keys[KEYED_MAX_ROWS];
	int64_t found[KEYED_MAX_ROWS];
	size_t key_of[KEYED_MAX_ROWS], n = 0;
	if (!file->rows[0].key) {
		numbers[0] = VALUE_MISSING;
		return cursor_i64(&text, &numbers[0]);
	}
	for (size_t i = 0; i < file->n_rows; i++) {
		if (n == 0 || strcmp(keys[n - 1], file->rows[i].key) != 0) {
			keys[n++] = file->rows[i].key;
		}
		key_of[i] = n - 1;
	}
	size_t n_found = file_keys_parse(text, keys, n, found);
	for (size_t i = 0; i < file->n_rows; i++) {
		numbers[i] = found[key_of[i]];
	}
	return n_found;
}

// Adds two numbers; missing if either is, or if they overflow.
static int64_t plus(int64_t a, int64_t b)
{
	int64_t sum;
	return a == VALUE_MISSING || b == VALUE_MISSING || __builtin_add_overflow(a, b, &sum)
	               ? VALUE_MISSING
	               : sum;
}

// Adds a row to the sum of its metric; NULL: the first one.
static int64_t add_row(enum keyed_use use, const int64_t *sum, int64_t number)
{
	bool subtract = use == KEYED_SUBTRACT || use == KEYED_SUBTRACT_KNOWN;
	if (use == KEYED_ELSE) {
		return sum && *sum != VALUE_MISSING ? *sum : number;
	}
	if (subtract && number != VALUE_MISSING) {
		number = -number;
	}
	return sum ? plus(*sum, number) : number;
}

static int64_t scaled(int64_t value, enum keyed_unit unit, double scale)
{
	switch (unit) {
	case KEYED_NANOSECONDS:
		return value / (int64_t)NS_PER_US;
	case KEYED_TICKS:
		return __builtin_mul_overflow(value, 1000000 / sysconf(_SC_CLK_TCK), &value)
		               ? VALUE_MISSING
		               : value;
	case KEYED_PLAIN:
		return scale > 1 ? value / (int64_t)scale : value;
	case KEYED_MICROSECONDS:
		break;
	}
	return value;
}

size_t keyed_values(const struct keyed_file *file, struct cursor text, const struct metric *metrics,
	int64_t *values)
{
	int64_t numbers[KEYED_MAX_ROWS], sums[KEYED_MAX_METRICS];
	bool begun[KEYED_MAX_METRICS] = {false};
	size_t found = find_numbers(file, text, numbers);
	for (size_t i = 0; i < file->n_rows; i++) {
		const struct keyed_row *row = &file->rows[i];
		bool known = row->use == KEYED_ADD_KNOWN || row->use == KEYED_SUBTRACT_KNOWN;
		if (!known || numbers[i] != VALUE_MISSING) {
			int64_t *sum = &sums[row->metric];
			*sum = add_row(row->use, begun[row->metric] ? sum : NULL, numbers[i]);
			begun[row->metric] = true;
		}
	}
	for (size_t i = 0; i < KEYED_MAX_METRICS; i++) {
		if (begun[i] && sums[i] != VALUE_MISSING) {
			values[i] = scaled(sums[i] > 0 ? sums[i] : 0, file->unit, metrics[i].scale);
		}
	}
	return found;
}
