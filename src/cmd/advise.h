// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Functions that several questions of strain advise use, and the question --from
// (advise_what_if.c): it predicts a recorded job on another machine, and runs the job only with
// --verify.

#pragma once

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probe/overlay.h"
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

// Finds out whether probes can run over an overlay (probe_overlay_find), and says what they may
// overwrite. Returns false after it has printed the reason.
bool advise_overlay_find(
	const char *directory, const char *folder, bool in_place, struct probe_overlay *ret);
// Adds whether probes ran in place, and why. NULL: none ran.
void advise_overlay_json(json_t *json, const struct probe_overlay *overlay);
