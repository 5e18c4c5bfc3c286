// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What the input pipeline costs, from the rates of three short runs of the same command, as
// DS-Analyzer does (Mohan et al., "Analyzing and Mitigating Data Stalls in DNN Training", VLDB
// 2021): prepared batches handed out again, the dataset in the page cache, the dataset dropped from
// it.
//
//     prep stall  = 1 - rate(warm) / rate(compute)    share of the warm run's time
//     fetch stall = 1 - rate(cold) / rate(warm)       share of the cold run's time

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "run/phases.h"

enum probe_kind { PROBE_WARM, PROBE_COMPUTE, PROBE_COLD, N_TRIALS };

// One of the runs. `rate`: per second, of samples or, where nobody counts these, of iterations.
struct probe_rate {
	struct estimate rate; // value NAN: missing
	uint64_t iterations; // that it rests on
	bool of_samples;
};

struct stalls {
	// Ratios of time; value NAN: missing. Below 0: the run with the input was the faster one.
	struct estimate prep;
	struct estimate fetch;
	bool contention; // one was below 0 by more than noise within runs: intervals allow for that
};

// 95 % intervals, the runs taken as independent. Where rates are of different things, or missing,
// so is the stall.
void stalls_compute(const struct probe_rate rates[N_TRIALS], struct stalls *ret);

// "compute", "warm", "cold"
const char *stalls_probe_name(enum probe_kind kind);

// Whether a stall is more than chance: its interval does not reach 0.
bool stall_is_sure(const struct estimate *stall);
// A stall that is smaller than this cannot be told from chance; NAN: not known.
double stall_noise(const struct estimate *stall);

// The rate that a run has reached, without its first iterations.
void probe_rate_of(const struct phases *p, struct probe_rate *ret);

// Machines and storage change their minds more slowly than a few iterations show.
#define PROBE_SECONDS 3

// Whether it is known to within `error` (a ratio, half the interval over the mean), from so many
// seconds of iterations, and from enough of these that what was prefetched at the start is few.
bool stalls_rate_is_known(const struct phases *p, double error, double seconds);
