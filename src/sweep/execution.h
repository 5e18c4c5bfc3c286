// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A trial's processes on this machine: strain-record under a keeper, from start to end.

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

// Starts a trial. Returns 0 or -errno; -EAGAIN and the like may be temporary.
int execution_start(
	const struct execution_request *request, struct execution **ret, struct error *e);
// Whether the job has ended. Waits up to timeout_ms, or until a signal arrives. *ret_status is the
// status as waitpid returns it, or -errno if the job could not be started after all.
bool execution_wait(struct execution *x, int timeout_ms, int *ret_status);
// Ends the job: with grace_s to end by itself, or at once.
void execution_end(struct execution *x, bool at_once);
// After the job has ended: whether all processes that it left have ended, or cannot be ended (see
// execution_left). They are being ended meanwhile.
bool execution_wait_left(struct execution *x, int timeout_ms);
// Sets pids[most] to the first processes that could not be ended. Returns their number.
size_t execution_left(const struct execution *x, pid_t *pids, size_t most);
// Frees it, and ends at once whatever still runs.
void execution_close(struct execution *x);
