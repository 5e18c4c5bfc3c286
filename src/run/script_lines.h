// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Which lines of the script the process that trains was in, by the looks of `strain run --lines`:
// over the whole run, the most frequent first.

#pragma once

#include <stddef.h>
#include <stdint.h>

struct analysis;

#define LINE_SHARES_MOST 20

// Texts are from the job: escape them.
struct script_line {
	char *phase; // NULL: not known
	char *file;
	int64_t line;
	char *function;
	uint64_t samples;
};

struct script_lines {
	struct script_line items[LINE_SHARES_MOST];
	size_t n;
	uint64_t samples; // of all lines of the process; 0: nobody looked
};

// Of the process that trains; where it has none or none is known, of the one with the most looks. 0
// or -ENOMEM; then *ret is empty.
int script_lines_load(const struct analysis *a, struct script_lines *ret);
void script_lines_done(struct script_lines *shares);
// "train.py", or "model/train.py" where another one of these files is a train.py, too. Within file.
const char *script_lines_short(const struct script_lines *shares, const char *file);
