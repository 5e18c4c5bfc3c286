// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The lines of the script in which the training process, or the loader workers, were seen, the most
// frequent first: over the whole run with `strain run --lines`; otherwise mostly in a few seconds
// of the first epoch.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct analysis;

enum { SCRIPT_LINES_MAX = 256 };

// Texts are from the job: escape them.
struct script_line {
	char *phase; // NULL: not known
	char *file;
	int64_t line;
	char *function;
	uint64_t samples;
};

struct script_lines {
	struct script_line items[SCRIPT_LINES_MAX];
	size_t n;
	uint64_t samples; // of all lines of these processes; 0: no samples were taken
	bool of_trainer; // of the training process, not of another one in its place
};

enum script_lines_of {
	SCRIPT_LINES_TRAINER, // the thread that trains
	SCRIPT_LINES_THREADS, // other threads of that process
	SCRIPT_LINES_LOADERS,
	N_SCRIPT_LINES,
};

// "main", "thread", "loader".
const char *script_lines_name(enum script_lines_of of);
// Loads lines; if the training process has none or is not known, those of the process with most
// samples in its place. Returns 0 or -ENOMEM; then *ret is empty.
int script_lines_load(
	const struct analysis *a, enum script_lines_of which, struct script_lines *ret);
void script_lines_done(struct script_lines *shares);
// The file's name, with its folder if another file in the list has the same name: "train.py" or
// "model/train.py". Points into `file`.
const char *script_lines_short(const struct script_lines *shares, const char *file);
