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
struct line_share {
	char *phase; // NULL: not known
	char *file;
	int64_t line;
	char *function;
	uint64_t samples;
};

struct line_shares {
	struct line_share items[LINE_SHARES_MOST];
	size_t n;
	uint64_t samples; // of all lines of the process; 0: nobody looked
};

// Of the process that trains; where it has none or none is known, of the one with the most looks. 0
// or -ENOMEM; then *ret is empty.
int line_shares_load(const struct analysis *a, struct line_shares *ret);
void line_shares_done(struct line_shares *shares);
// "train.py", or "model/train.py" where another one of these files is a train.py, too. Within file.
const char *line_shares_short(const struct line_shares *shares, const char *file);
