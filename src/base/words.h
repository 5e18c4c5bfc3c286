// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Numbers as words of a sentence. Unknown values are "?".

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

void words_append_number(struct text *t, double value); // "1.9", "12", "0.04"
void words_append_counted(struct text *t, double n, const char *noun); // "1 CPU", "2 CPUs"
void words_append_bytes(struct text *t, double bytes);
void words_append_bytes_of(struct text *t, double bytes, double of); // "5.1 of 16 GB"
// The same for a limit that a user set: value and limit in the unit in which the limit was written.
void words_append_bytes_of_limit(struct text *t, double bytes, double limit); // "3.9 of 4.0 GiB"
void words_append_limit(struct text *t, double limit); // "4.0 GiB"
void words_append_seconds(struct text *t, double seconds);
void words_append_percent(struct text *t, double ratio);
// At most `columns` characters of text; longer text ends in an ellipsis. Characters unsafe on a
// terminal are replaced.
void words_append_elided(struct text *t, const char *text, size_t columns);
// A place in a script, "/home/me/net/train.py:42". A path longer than `columns` characters is
// shortened to an ellipsis and its last whole folders; file name and line are always kept.
void words_append_place(struct text *t, const char *place, size_t columns);
// Returns the number of bytes up to the next possible line break: a blank, but not one between a
// number and its unit ("3.1 %, other" is 5 and a comma). Returns the whole length if there is none.
size_t words_unbroken(const char *text);
// Printable text whose first line begins at a column (at or before `indent`, to which it is filled
// up), broken at blanks to lines of `width` columns; further lines are indented.
void words_append_folded(
	struct text *t, const char *text, size_t column, size_t indent, size_t width);
// Number of characters, as terminal columns.
size_t words_columns(const char *text);

#define WORDS_PROGRESS_AFTER_S 2.0 // shorter tasks need no progress report

// "43 %, 12 s left" for a task that has run for `seconds`. Returns false and appends nothing if
// that is too short.
bool words_append_progress(struct text *t, uint64_t done, uint64_t total, double seconds);

#define WORDS_WIDE 5 // the ends of an interval that says little are further apart than this factor

// Whether an interval of a quantity above 0 says little; false if an end is not known.
bool words_is_wide(double low, double high);
// "interval says little (factor of 7.3)"; nothing for other intervals.
void words_append_wide(struct text *t, double low, double high);

// The sum of the known values among the two.
double words_sum(double a, double b);
