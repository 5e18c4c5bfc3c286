// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Measures the cost of the input pipeline from the rates of three short runs of the same command,
// like DS-Analyzer (Mohan et al., "Analyzing and Mitigating Data Stalls in DNN Training", VLDB
// 2021): prepared batches handed out again; the dataset in the page cache; the dataset dropped from
// it.
//
//     prep stall  = 1 - rate(warm) / rate(compute)    share of the warm run's time
//     fetch stall = 1 - rate(cold) / rate(warm)       share of the cold run's time

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "run/phases.h"

enum probe_kind { PROBE_WARM, PROBE_COMPUTE, PROBE_COLD, N_TRIALS };

// One of the runs. `rate` is per second: samples, or iterations if samples are not known.
struct probe_rate {
	struct estimate rate; // value NAN: missing
	uint64_t iterations; // number of iterations in it
	bool of_samples;
};

struct stalls {
	// Shares of time; value NAN: missing. Negative: the run with the input was faster.
	struct estimate prep;
	struct estimate fetch;
	// one was negative by more than the noise within runs; the intervals allow for that
	bool contention;
};

// Computes the stalls with 95 % intervals; the runs are independent. A stall is missing if a rate
// is missing or their units differ.
void stalls_compute(const struct probe_rate rates[N_TRIALS], struct stalls *ret);

// "compute", "warm", "cold"
const char *stalls_probe_name(enum probe_kind kind);

// Whether a stall is significant: its interval is above 0.
bool stall_is_sure(const struct estimate *stall);
// The smallest significant stall; NAN: not known.
double stall_noise(const struct estimate *stall);

// The rate of a run, without its warm-up.
void probe_rate_of(const struct phases *p, struct probe_rate *ret);

// Machines and storage vary over longer times than a few iterations show.
#define PROBE_SECONDS 3

// Whether the rate is known to within `error` (half the interval over the mean), from at least
// `seconds` of iterations, and from so many iterations that the batches prefetched at the start are
// few.
bool stalls_rate_is_known(const struct phases *p, double error, double seconds);
