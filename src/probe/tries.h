// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Tries advice with short runs of a job (probes), with settings and without, in turns, so that
// changes on the machine affect both. Each probe ends when its rate is known. The first probe is
// without settings, and so is the last of each round of all candidates. Settings that gained alone
// are then tried together.

#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "probe/probe.h"
#include "run/phases.h"
#include "verdict/setting.h"
#include "verdict/tried.h"

enum {
	TRIES_MOST = 8, // candidates, besides all that gained together
	TRIES_REPEATS_MOST = 20,
};

struct probe_overlay;

struct tries_config {
	char *const *command; // ends with NULL
	const char *directory; // working directory of the job; NULL: the current one
	const struct probe_overlay *overlay; // of the job's working directory
	const char *const *options; // of strain run, ends with NULL; NULL: none
	const char *const *environment; // for all probes, as in struct probe_config; NULL: none
	const char *folder; // must exist; for runs and the job's output; an absolute path
	double error; // relative error at which the rate of a probe is known
	double first_seconds; // least length of iterations in the first probe; 0: as in the others
	uint64_t limit_ns; // of one probe
	uint64_t time_ns; // for all probes: none starts later
	unsigned repeats; // of each candidate, at least GAIN_REPEATS_MIN
	void (*say)(const char *text); // called with a line that describes the next step
	const volatile sig_atomic_t *interrupted; // if not 0, end the probe
};

struct candidate {
	struct tried result; // its settings and promised gain, then its result
	double rates[TRIES_REPEATS_MOST];
	size_t n;
};

struct tries {
	const struct tries_config *config;
	char *strain; // path of the program strain
	uint64_t start_ns;
	struct candidate without; // without any settings; one probe more than the others
	// Bytes per second that the first two of these fetched from storage, and of all that they
	// read, while they iterated; NAN: not known.
	double stored_rate[2], asked_rate[2];
	struct candidate items[TRIES_MOST + 1];
	size_t n;
	bool together; // the last item is all settings that gained, together
	bool of_samples; // unit of the rates: samples, else iterations
	bool interrupted;
	bool out_of_time; // not everything was tried as often as requested
	char *loader_at; // where the job creates its training loader; NULL: not known
	char *first_run; // path of the first probe's run
	char *failed_output; // of the probe that failed; NULL: none
	unsigned probes; // number of probes made
	double seconds; // total time of the probes
};

// Makes the first probe, without settings: without a rate there is nothing to try. Returns 0 or
// -errno (-EINTR). Release ret in any case. The configuration must outlive it.
int tries_begin(const struct tries_config *config, struct tries *ret, struct error *e);
// Adds a candidate with its settings and promised gain. If time is short, the last ones are not
// tried. False: no room, or it is already there.
bool tries_add(struct tries *t, const struct tried *wanted);
// Makes the other probes. Returns 0 also if it was interrupted or ran out of time; the results have
// what was found until then. Returns -errno if the job failed without settings.
int tries_make(struct tries *t, struct error *e);
// Whether the first probe is excluded from gains: it fetched from storage while it iterated, but
// the next one did not.
bool tries_first_is_cold(const struct tries *t);
void tries_done(struct tries *t);

// Gain --------------------------------------------------------------------------------------------
//
// The gain of settings, from probes of a job with and without them; and the number of probes for
// which there is time.

// With fewer repeats there is no interval.
#define GAIN_REPEATS_MIN 2

// The mean rate with settings over that without. The 95 % interval of the ratio comes from the
// spread of repeats (statistics_ratio), which includes differences from run to run that no single
// run shows. low and high are NAN with too few repeats; all are NAN if a rate is missing.
struct estimate tries_gain(
	const double *without, size_t n_without, const double *with, size_t n_with);

// The plan of probes after the first.
struct design {
	unsigned candidates; // tried one by one
	unsigned repeats; // of each candidate
};

// The number of probes in a design, without the first: each candidate in each round, one without
// settings after each round, and, if more than one candidate may gain, as many again as rounds for
// all together.
unsigned design_probes(struct design design);
// The largest part of `wanted` for which there is time: repeats are reduced first, then candidates,
// to at least one candidate with GAIN_REPEATS_MIN repeats, since less would give no result.
struct design design_fit(struct design wanted, double seconds_each, double seconds_left);
// The i-th candidate of a round. Every second round is reversed, so that no candidate is always
// next to the probe without settings.
unsigned design_turn(struct design design, unsigned round, unsigned i);
