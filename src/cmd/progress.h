// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A line on standard error that says how far a long reading is: on terminals, after two seconds.

#pragma once

#include <stdbool.h>
#include <stdint.h>

struct reader;

struct progress {
	struct reader *reader; // NULL where nobody would see it
	uint64_t done; // blocks, and as many spans as take as long
	uint64_t total;
	int64_t start_ns;
	int64_t shown_ns; // 0: not yet
};

enum progress_of {
	// Reads most blocks for the verdict, and all of them where the run has no summary yet; and
	// the spans.
	PROGRESS_ANALYSIS = 1,
	PROGRESS_BLOCKS = 2, // reads all blocks
	PROGRESS_PAGE = 4, // replays the spans for pictures
};

// Follows `reader`, which must live until progress_end, in what it will be asked for.
void progress_start(struct progress *p, struct reader *reader, unsigned of);
// Takes the line away.
void progress_end(struct progress *p);

// Of many runs.
struct progress_of_runs {
	int64_t start_ns;
	int64_t shown_ns; // 0: not yet
};
void progress_of_runs_start(struct progress_of_runs *p);
// `context` is a struct progress_of_runs: for catalogue_options.
void progress_of_runs(void *context, uint64_t done, uint64_t total);
void progress_of_runs_end(struct progress_of_runs *p);
