// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Where trials run, one row for each way: this machine now, others later.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

struct execution;

struct execution_request {
	char *const *arguments; // of `strain run`, ended by NULL: options, "--", the job's command
	char *const *environment; // added: "NAME=VALUE", ended by NULL
	const char *run; // the run file that they name
	const char *mark; // of the trial's processes, see still_running.h
	int output; // a file for what the job prints
	double grace_s; // what it is given to end by itself
};

struct executor {
	const char *name; // as a plan has it
	// Starts one. 0, or -errno: -EAGAIN and the like may pass.
	int (*start)(
		const struct execution_request *request, struct execution **ret, struct error *e);
	// Whether its job has ended; waits up to timeout_ms, less where a signal comes. *ret_status
	// as waitpid gives it. -errno in its place: it could not be started after all.
	bool (*wait)(struct execution *x, int timeout_ms, int *ret_status);
	// The job is to end: in its own time, which is grace_s, or at once.
	void (*end)(struct execution *x, bool at_once);
	// When the job has ended: whether what it left running has, too, which is being ended; or
	// cannot be ended, see `left`.
	bool (*wait_left)(struct execution *x, int timeout_ms);
	// Processes that could not be ended, the first of them into pids[most]. Returns how many.
	size_t (*left)(const struct execution *x, pid_t *pids, size_t most);
	// Frees it, and ends at once what there still is of it.
	void (*close)(struct execution *x);
};

// NULL where there is none of this name.
const struct executor *executor_find(const char *name);
