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
#include "run/phases.h"

enum probe_end {
	PROBE_KNOWN, // its rate is known with the requested precision
	PROBE_TIME, // its time limit was reached
	PROBE_JOB_ENDED, // it ended by itself with status 0
	PROBE_JOB_FAILED, // it ended by itself with another status
	PROBE_INTERRUPTED,
};

struct probe_overlay;

struct probe_config {
	const char *strain; // path of the program strain
	char *const *command; // the job; ends with NULL
	const char *run; // path of the run file, which must not exist
	const char *output; // file for the job's output and strain's messages
	const char *directory; // working directory of the job; NULL: the current one
	const struct probe_overlay *overlay; // of that directory; the job may run in place
	const char *const *options; // further options of strain run, ends with NULL; NULL: none
	// "0-3,8": CPUs the job may also use, even if this process may not; NULL: none
	const char *cpus;
	const char *const *environment; // "NAME=VALUE", or "NAME" to unset it; ends with NULL
	// Relative error at which the rate counts as known (0.03); 1: the run is not made for it
	double error;
	double seconds; // least length of the iterations of a rate; 0: PROBE_SECONDS
	double enough; // seconds since the first iteration after which any rate is used; 0: none
	// Epochs that must have ended, too, if hooks shorten them (STRAIN_SHORT); 0: none
	unsigned epochs;
	// The rate is that of the epoch after so many, in full; if the run ends before, of an
	// earlier one, but not of the first. 0: that of steady iterations
	unsigned warm_epochs;
	uint64_t limit_ns;
	// Called with the processes of the job each time the run file is examined; NULL: not
	// called.
	void (*look)(void *context, const pid_t *pids, size_t n);
	void *context;
	const volatile sig_atomic_t *interrupted; // if not 0, end the probe
};

// The rate of a run, per second: samples, or iterations if samples are not known.
struct probe_rate {
	struct estimate rate; // value NAN: missing
	uint64_t iterations; // number of iterations in it
	bool of_samples;
};

struct probe {
	struct probe_rate rate;
	enum probe_end end;
	int status; // of the job, as wait(2) returns it, unless the probe ended it
	double seconds;
	uint64_t ahead; // batches that the loader's workers prepare in advance, as far as is known
	char *no_rate; // why the rate is missing, for people; NULL: it is not
	char *hooks_missing; // why no hook was loaded; NULL if one was, or if it is not known
	bool hooked; // the run has the key `hooks`
	bool replayed; // the hooks handed out prepared batches again
	bool edited; // the job edits these in place, so it received copies
	// share of the bytes read that came from storage, in the whole run or in the epoch of the
	// rate; NAN: not known
	double fetched;
	// Bytes per second while it iterates, without warm-up: from storage, and of all that it
	// read; NAN: not known.
	double stored_rate, asked_rate;
};

// Whether batches prepared in advance are too large a part of those in the rate: then it is the
// rate of handing them over.
bool probe_is_primed(const struct probe *probe);

// Records the command until its rate is known, its time is up or it ends by itself. In the first
// two cases it is ended with SIGINT, after ten seconds with SIGTERM, after ten more with SIGKILL;
// none of its processes remain. Returns 0, or -errno if nothing was recorded (the output has the
// reason).
int probe_run(const struct probe_config *config, struct probe *ret, struct error *e);
// A job that the probe ended may exit with a failure: marks its run, so that its verdict does not
// report that.
void probe_note_end(const struct probe *p, const char *run);
void probe_done(struct probe *p);

// The rate of a run, without its warm-up.
void probe_rate_of(const struct phases *p, struct probe_rate *ret);

// Machines and storage vary over longer times than a few iterations show.
#define PROBE_SECONDS 3

// Whether the rate is known to within `error` (half the interval over the mean), from at least
// `seconds` of iterations, and from so many iterations that the batches prefetched at the start are
// few.
bool probe_rate_is_known(const struct phases *p, double error, double seconds);

// Removes a folder of runs and its content.
void probe_remove_folder(const char *folder);
