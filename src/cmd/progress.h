// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Shows the progress of a long read as a line on standard error: on terminals only, after two
// seconds.

#pragma once

#include <stdbool.h>
#include <stdint.h>

struct reader;

struct progress {
	struct reader *reader; // NULL: nothing is shown
	uint64_t done; // blocks, and parts of spans (span_pass_parts)
	uint64_t total;
	int64_t start_ns;
	int64_t shown_ns; // 0: not shown yet
};

enum progress_of {
	// Reads most blocks for the verdict, or all if the run has no summary yet; and the spans.
	PROGRESS_ANALYSIS = 1,
	PROGRESS_BLOCKS = 2, // reads all blocks
	PROGRESS_PAGE = 4, // replays the spans for pictures
};

// Shows the progress of `reader`, which must live until progress_end. `of`: the operations that
// will be performed.
void progress_start(struct progress *p, struct reader *reader, unsigned of);
// Removes the line.
void progress_end(struct progress *p);

// Progress over many runs.
struct progress_of_runs {
	int64_t start_ns;
	int64_t shown_ns; // 0: not shown yet
};
void progress_of_runs_start(struct progress_of_runs *p);
// Callback for catalogue_options; `context` is a struct progress_of_runs.
void progress_of_runs(void *context, uint64_t done, uint64_t total);
void progress_of_runs_end(struct progress_of_runs *p);
