// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The budget: how much slower the recorder must read to cost no more than it was allowed. What it
// did not use it saves up for a while, and has some to begin with: starting, a compaction, a round
// of smaps_rollup are paid from that, and no reading is slowed for them.

#pragma once

#include <stdbool.h>

struct budget {
	double share; // of one core; 0: no budget
	double slow; // every interval is multiplied by it; at least 1
	double recent; // share of a core used lately, smoothed over a few seconds
	double seconds; // that `recent` is of
	double saved_seconds; // CPU time that was allowed and not used; negative: overdrawn
	double said; // `slow` as the run was last told
};

void budget_init(struct budget *b, double share);

// Takes in what the last stretch of time cost and changes `slow`. True where it has moved so far
// from what the run was last told that this is worth an event; the caller then tells.
bool budget_update(struct budget *b, double wall_seconds, double cpu_seconds);
