// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// strain advise --from: predicts a recorded job on another machine. It runs the job only with
// --verify.

#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probe/what_if.h"

struct what_if_options {
	char **runs; // paths, resolved
	size_t n_runs;
	struct what_if_values wanted; // none: each resource doubled
	bool json;
	bool verify;
	bool in_place; // runs of --verify
	char **command; // for --verify; NULL: that of the first run
	const char *folder; // for the runs of --verify; exists
	double error;
	uint64_t limit_ns; // of each of them; 0: none was set
	const volatile sig_atomic_t *interrupted;
};

// Returns an exit status.
int advise_what_if(const struct what_if_options *o);
