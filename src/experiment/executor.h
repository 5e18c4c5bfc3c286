// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Where trials run. One row for each way: this machine now, others later.

#pragma once

#include <stdbool.h>

#include "base/error.h"

struct execution;

struct execution_request {
	char *const *arguments; // of `strain run`, ended by NULL: options, "--", the job's command
	char *const *environment; // added: "NAME=VALUE", ended by NULL
	const char *run; // the run file that they name
	const char *output; // a file for what the job prints
};

struct executor {
	const char *name; // as a plan has it
	// Starts one. 0, or -errno.
	int (*start)(
		const struct execution_request *request, struct execution **ret, struct error *e);
	// Whether it has ended; waits up to timeout_ms, less where a signal comes. *ret_status as
	// waitpid gives it.
	bool (*wait)(struct execution *x, int timeout_ms, int *ret_status);
	// To the job; SIGKILL to every process of it.
	void (*signal)(struct execution *x, int signal_number);
	// Frees it, and ends what it left running.
	void (*close)(struct execution *x);
};

// NULL where there is none of this name.
const struct executor *executor_find(const char *name);
