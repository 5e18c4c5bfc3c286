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

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "probe/dataset.h"
#include "probe/probe.h"

enum probe_kind { PROBE_WARM, PROBE_COMPUTE, PROBE_COLD, N_STALL_RUNS };

struct stalls {
	// Shares of time; value NAN: missing. Negative: the run with the input was faster.
	struct estimate prep;
	struct estimate fetch;
	// one was negative by more than the noise within runs; the intervals allow for that
	bool contention;
};

// Computes the stalls with 95 % intervals; the runs are independent. A stall is missing if a rate
// is missing or their units differ.
void stalls_compute(const struct probe_rate rates[N_STALL_RUNS], struct stalls *ret);

// "compute", "warm", "cold"
const char *stalls_probe_name(enum probe_kind kind);

// Whether a stall is significant: its interval is above 0.
bool stall_is_sure(const struct estimate *stall);
// The smallest significant stall; NAN: not known.
double stall_noise(const struct estimate *stall);

struct probe_overlay;

struct stall_config {
	char *const *command; // ends with NULL
	const char *folder; // must exist; for the runs, the job's output and lists of files
	const struct probe_overlay *overlay; // of the job's working directory
	double error; // relative error at which a rate is known
	uint64_t limit_ns; // for one run
	void (*say)(const char *text); // called with a line that describes the next step
	const volatile sig_atomic_t *interrupted;
};

// The runs: warm, compute, cold.
struct stall_runs {
	struct probe probes[N_STALL_RUNS];
	char *missing[N_STALL_RUNS]; // why a rate is missing, for people; NULL if it is known
	// Share of the dataset in the page cache at the start; NAN: not known.
	double cached[N_STALL_RUNS];
	struct dataset dataset;
	struct stalls stalls;
	char *failed_output; // of the run that failed; NULL: none
};

// Runs the command two to four times. Returns 0; -EINTR; another -errno if not even the warm run
// gave a rate. Release ret in any case.
int stall_runs_make(const struct stall_config *config, struct stall_runs *ret, struct error *e);
void stall_runs_done(struct stall_runs *runs);
