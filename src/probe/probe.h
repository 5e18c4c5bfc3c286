// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A short recording of a job, ended as soon as its rate is known.

#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "probe/stalls.h"

enum probe_end {
	PROBE_KNOWN, // its rate is as sure as was asked
	PROBE_TIME, // it had the time that it may take
	PROBE_JOB_ENDED, // by itself, with status 0
	PROBE_JOB_FAILED, // by itself, otherwise
	PROBE_INTERRUPTED,
};

struct probe_config {
	const char *strain; // the program
	char *const *command; // the job, ends with NULL
	const char *run; // path of the run file, which must not exist
	const char *output; // where the job's output and strain's words go
	const char *directory; // where the job runs; NULL: here
	const char *const *options; // further ones of strain run, ends with NULL; NULL: none
	const char *cpus; // "0-3,8": it may use these too, where this process may not; NULL: none
	const char *const *environment; // "NAME=VALUE", or "NAME" to have it unset; ends with NULL
	double error; // of the rate, at which it is known (0.03)
	double seconds; // of iterations that it rests on at least; 0: PROBE_SECONDS
	uint64_t limit_ns;
	// Called at each look, with the recorded job's processes: NULL for nothing to see.
	void (*look)(void *context, const pid_t *pids, size_t n);
	void *context;
	const volatile sig_atomic_t *interrupted; // not 0: end it
};

struct probe {
	struct probe_rate rate;
	enum probe_end end;
	int status; // of the job as wait(2) gives it; where it was not ended by us
	double seconds;
	uint64_t ahead; // batches that the loader's workers prepare ahead, as far as is known
	char *no_rate; // why the rate is missing, for people; NULL
	char *hooks_missing; // why no hook entered; NULL where one did, or nobody says
	bool hooked; // the run has a key `hooks`
	bool replayed; // and handed out prepared batches again
	bool edited; // which the job edits in place: it got copies
	double fetched; // share of the bytes that the job read which came from storage; NAN: not
	                // known
};

// Whether the batches that were prepared before are too many of those that a rate rests on: it is
// then the rate of handing them over.
bool probe_is_primed(const struct probe *probe);

// Records the command until its rate is known, its time is up or it ends by itself. It is
// interrupted then (SIGINT, after ten seconds SIGTERM, after ten more SIGKILL), and nothing of it
// is left running. 0, or -errno where nothing was recorded (the output says why).
int probe_run(const struct probe_config *config, struct probe *ret, struct error *e);
void probe_done(struct probe *p);
