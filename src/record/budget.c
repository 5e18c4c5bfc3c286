// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Keeps the recorder's cost under its budget by slowing down. Cost is nearly proportional to the
// rate of ticks, so the step is the ratio of cost to budget itself. Single expensive seconds are
// paid from what was saved before; only a cost that lasts uses that up.

#include "record/budget.h"

#define SMOOTHING_SECONDS 5.0
// Savings, in seconds of the whole budget: at 1 %, 50 ms of CPU time to begin with, 0.3 s at most.
#define SAVED_FIRST_SECONDS 5.0
#define SAVED_MAX_SECONDS 30.0
#define RELAX_BELOW 0.7 // of the budget: then it becomes faster again
#define RELAX_STEP 0.95 // at least: with much saved it becomes faster at any cost under the budget
#define STEP_MAX 2.0 // per update, either way
#define SLOW_MAX 1000.0
#define WORTH_SAYING 1.25 // times faster or slower than was last said

void budget_init(struct budget *b, double share)
{
	*b = (struct budget){
		.share = share, .slow = 1, .said = 1, .saved_seconds = share * SAVED_FIRST_SECONDS};
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
	// The first seconds have nothing before them to be smoothed with.
	b->seconds = clamp(b->seconds + wall_seconds, 0, SMOOTHING_SECONDS);
	double weight = clamp(wall_seconds / b->seconds, 0, 1);
	b->recent += weight * (used - b->recent);
	double over = b->share > 0 ? b->recent / b->share : 0;
	double before = b->slow, saved_max = b->share * SAVED_MAX_SECONDS;
	b->saved_seconds = clamp(
		b->saved_seconds + b->share * wall_seconds - cpu_seconds, -saved_max, saved_max);
	if (over > 1 && b->saved_seconds < 0) {
		b->slow = clamp(b->slow * clamp(over, 1, STEP_MAX), 1, SLOW_MAX);
		// The cost to come is what this rate will cost, not what the last one did.
		b->recent *= before / b->slow;
	} else if (b->slow > 1 && (over < RELAX_BELOW || b->saved_seconds > saved_max / 2)) {
		double step = clamp(over / RELAX_BELOW, 1 / STEP_MAX, RELAX_STEP);
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
