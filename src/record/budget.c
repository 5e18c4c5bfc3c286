// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Keeps the recorder's cost under its budget by slowing down. Cost is nearly proportional to the
// rate of ticks, so the step is the ratio of cost to budget itself; smoothing and a dead band keep
// single expensive seconds (a compaction, a burst of new processes) from moving it.

#include "record/budget.h"

#define SMOOTHING_SECONDS 5.0
#define RELAX_BELOW 0.7 // of the budget: only then does it become faster again
#define STEP_MAX 2.0 // per update, either way
#define SLOW_MAX 1000.0
#define WORTH_SAYING 1.25 // times faster or slower than was last said

void budget_init(struct budget *b, double share)
{
	*b = (struct budget){.share = share, .slow = 1, .said = 1};
}

static double clamp(double value, double low, double high)
{
	return value < low ? low : value > high ? high : value;
}

bool budget_update(struct budget *b, double wall_seconds, double cpu_seconds)
{
	if (wall_seconds <= 0) {
		return false;
	}
	double used = cpu_seconds / wall_seconds;
	double weight = clamp(wall_seconds / SMOOTHING_SECONDS, 0, 1);
	b->recent += weight * (used - b->recent);
	double over = b->share > 0 ? b->recent / b->share : 0;
	double before = b->slow;
	if (over > 1) {
		b->slow = clamp(b->slow * clamp(over, 1, STEP_MAX), 1, SLOW_MAX);
		// The cost to come is what this rate will cost, not what the last one did.
		b->recent *= before / b->slow;
	} else if (over < RELAX_BELOW && b->slow > 1) {
		double step = clamp(over / RELAX_BELOW, 1 / STEP_MAX, 1);
		b->slow = clamp(b->slow * step, 1, SLOW_MAX);
		b->recent *= before / b->slow;
	}
	bool far = b->slow > b->said * WORTH_SAYING || b->slow < b->said / WORTH_SAYING;
	bool first = b->said == 1 && b->slow > 1, back = b->said > 1 && b->slow == 1;
	if (far || first || back) {
		b->said = b->slow;
		return true;
	}
	return false;
}
