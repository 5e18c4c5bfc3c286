// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Figures as words of a sentence. Unknown values are "?".

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

void words_append_number(struct text *t, double value); // "1.9", "12", "0.04"
void words_append_counted(struct text *t, double n, const char *noun); // "1 CPU", "2 CPUs"
void words_append_bytes(struct text *t, double bytes);
void words_append_bytes_of(struct text *t, double bytes, double of); // "5.1 of 16 GB"
// The same of a limit that somebody set, and that limit, in the unit in which it was written.
void words_append_bytes_of_limit(struct text *t, double bytes, double limit); // "3.9 of 4.0 GiB"
void words_append_limit(struct text *t, double limit); // "4.0 GiB"
void words_append_seconds(struct text *t, double seconds);
void words_append_percent(struct text *t, double ratio);
// At most `columns` characters of text, the last an ellipsis where it was longer. What a terminal
// must not see is replaced.
void words_append_elided(struct text *t, const char *text, size_t columns);
// A place in a script, "/home/me/net/train.py:42": of a long path the last folders and the file,
// whole, within `columns` characters, behind an ellipsis; in any case the file and the line.
void words_append_place(struct text *t, const char *place, size_t columns);
// Bytes up to where a line may end: the next blank that does not stand between a number and its
// unit
// ("3.1 %, other" is 5 and a comma), or all of it.
size_t words_unbroken(const char *text);
// Characters, as columns of a terminal.
size_t words_columns(const char *text);

#define WORDS_PROGRESS_AFTER_S 2.0 // what takes less needs no words

// "43 %, 12 s left" of what has taken `seconds` so far; false, and nothing, where that is not long.
bool words_append_progress(struct text *t, uint64_t done, uint64_t total, double seconds);

// The sum of what is known of the two.
double words_sum(double a, double b);
