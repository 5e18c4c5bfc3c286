// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Advice tried: short runs of a job (probes) with settings and without, in turns, so that what
// changes on the machine meanwhile meets both. Each probe ends when its rate is known. Without any
// setting is the first, one behind each round of all candidates, and so the last. What gained alone
// is then tried together.

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
	TRIES_MOST = 8, // candidates; one more for those that gained, together
	TRIES_REPEATS_MOST = 20,
};

struct tries_config {
	char *const *command; // ends with NULL
	const char *directory; // where the job runs; NULL: here
	const char *const *options; // of strain run, ends with NULL; NULL: none
	const char *const *environment; // of all probes, as of struct probe_config; NULL: none
	const char *folder; // exists; runs and what the job printed go there. An absolute path
	double error; // at which the rate of a probe is known
	double first_seconds; // of iterations in the first probe; 0: as in the others
	uint64_t limit_ns; // of one probe
	uint64_t time_ns; // of all: none begins later
	unsigned repeats; // of each candidate, at least GAIN_REPEATS_MIN
	void (*say)(const char *text); // what happens now; a line
	const volatile sig_atomic_t *interrupted; // not 0: end it
};

struct candidate {
	struct tried result; // its settings, and what was promised
	double rates[TRIES_REPEATS_MOST];
	size_t n;
};

struct tries {
	const struct tries_config *config;
	char *strain; // the program
	uint64_t start_ns;
	struct candidate without; // any settings; one more than in each other
	double fetched[2]; // of what its first two probes read, the share that came from storage
	struct candidate items[TRIES_MOST + 1];
	size_t n;
	bool together; // the last is of all that gained
	bool of_samples; // that rates are of; else iterations
	bool interrupted;
	bool out_of_time; // not all was tried as often as asked
	char *loader_at; // where the job makes its training loader; NULL: not known
	char *first_run; // path of the first probe's run
	char *failed_output; // of the probe that failed, where one did
	unsigned probes; // made
	double seconds; // that all of them took
};

// The first probe, without settings: of a job that gives no rate there is nothing to try. 0;
// -errno, -EINTR. ret must be released in any case. The configuration has to outlive it.
int tries_begin(const struct tries_config *config, struct tries *ret, struct error *e);
// Adds a candidate, its settings and what was promised: the last are left out where time is short.
// False where there is no room, or it is one already.
bool tries_add(struct tries *t, const struct tried *wanted);
// The other probes. 0, also where it was interrupted or had no more time: what was found until then
// is in the results. -errno where the job failed without any settings.
int tries_make(struct tries *t, struct error *e);
// Whether the first probe is in no gain: it was cold, and those behind it were not.
bool tries_first_is_cold(const struct tries *t);
void tries_done(struct tries *t);

// Gain --------------------------------------------------------------------------------------------
//
// What settings gain, from probes of a job with and without them, and how many probes there is time
// for.

// Fewer have no interval.
#define GAIN_REPEATS_MIN 2

// Mean rate with settings over that without. The 95 % interval of the ratio is by the spread of
// repeats (statistics_ratio): it has in it what differs from run to run, which no run can know of
// itself. low and high NAN: too few repeats, or no distributions; all NAN: no rate of either.
struct estimate tries_gain(
	const double *without, size_t n_without, const double *with, size_t n_with);

// What is left to do after the first probe without settings.
struct design {
	unsigned candidates; // that are tried, each alone
	unsigned repeats; // of each
};

// Probes that a design needs after the first: each candidate in each round, one without any behind
// each round, and where more than one candidate may gain as much again for all together.
unsigned design_probes(struct design design);
// The most of what is wanted that there is time for: fewer repeats first, then fewer candidates. At
// least one candidate with GAIN_REPEATS_MIN repeats: else nothing would be known.
struct design design_fit(struct design wanted, double seconds_each, double seconds_left);
// Which candidate is the i-th of a round: each other round goes backwards, so that none is always
// next to the probe without settings.
unsigned design_turn(struct design design, unsigned round, unsigned i);
