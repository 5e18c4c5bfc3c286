// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The list of executors.

#include "sweep/executor.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"

struct executor {
	const char *name; // as used in a plan
	int (*run)(struct sweep *sweep, const struct executor_watch *watch, struct error *e);
};

// Local -------------------------------------------------------------------------------------------
//
// One trial after the other, on this machine.

static int run_one(
	struct sweep *sweep, size_t index, const struct executor_watch *watch, struct error *e)
{
	const struct attempt_watch one = {
		.interrupts = watch->interrupts,
		.tick = watch->tick,
		.left = watch->left,
		.context = watch->context,
	};
	struct attempt attempt;
	watch->begin(watch->context, index);
	int result = attempt_run(sweep, index, &one, &attempt, e);
	if (result == -EINTR) {
		return result;
	}
	if (result < 0) {
		_cleanup_free_ char *name = sweep_trial_name(sweep->trials.order[index]);
		return error_prefix(e, "trial %s", name ? name : "");
	}
	sweep->done[index] = true;
	sweep->n_done++;
	watch->result(watch->context, index, &attempt);
	attempt_done(&attempt);
	return 0;
}

static int run_local(struct sweep *sweep, const struct executor_watch *watch, struct error *e)
{
	int result = 0;
	for (size_t i = 0; i < sweep->trials.n && result == 0; i++) {
		if (!sweep->done[i]) {
			result = *watch->interrupts > 0 ? -EINTR : run_one(sweep, i, watch, e);
		}
	}
	return result;
}

// Executor ----------------------------------------------------------------------------------------

static int run_slurm(struct sweep *sweep, const struct executor_watch *watch, struct error *e)
{
	return slurm_run(sweep, &watch->slurm, e);
}

static const struct executor executors[] = {
	{"local", run_local},
	{PLAN_SLURM, run_slurm},
};

int executor_run(struct sweep *sweep, const struct executor_watch *watch, struct error *e)
{
	for (size_t i = 0; i < ARRAY_LENGTH(executors); i++) {
		if (strcmp(executors[i].name, sweep->plan.executor) == 0) {
			return executors[i].run(sweep, watch, e);
		}
	}
	return error_set(e, EINVAL, "no executor '%s'", sweep->plan.executor);
}
