// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Ways to run trials, one row for each: this machine now, others later.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

struct execution;

struct execution_request {
	// of `strain run`, terminated by NULL: options, "--", the job's command
	char *const *arguments;
	char *const *environment; // to be added: "NAME=VALUE", terminated by NULL
	const char *run; // path of the run file in the arguments
	const char *mark; // of the trial's processes (still_running.h)
	int output; // file for the job's output
	double grace_s; // time given to the job to end by itself
};

struct executor {
	const char *name; // as used in a plan
	// Starts a trial. Returns 0 or -errno; -EAGAIN and the like may be temporary.
	int (*start)(
		const struct execution_request *request, struct execution **ret, struct error *e);
	// Whether the job has ended. Waits up to timeout_ms, or until a signal arrives. *ret_status
	// is the status as waitpid returns it, or -errno if the job could not be started after all.
	bool (*wait)(struct execution *x, int timeout_ms, int *ret_status);
	// Ends the job: with grace_s to end by itself, or at once.
	void (*end)(struct execution *x, bool at_once);
	// After the job has ended: whether all processes that it left have ended, or cannot be
	// ended (see `left`). They are being ended meanwhile.
	bool (*wait_left)(struct execution *x, int timeout_ms);
	// Sets pids[most] to the first processes that could not be ended. Returns their number.
	size_t (*left)(const struct execution *x, pid_t *pids, size_t most);
	// Frees it, and ends at once whatever still runs.
	void (*close)(struct execution *x);
};

// NULL if there is none of this name.
const struct executor *executor_find(const char *name);
