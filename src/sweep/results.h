// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The results of a sweep by configuration, computed only from its runs.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "run/measures.h"
#include "run/outcome.h"
#include "run/statistics.h"
#include "study/catalogue.h"

struct prices;
struct sweep;

enum { N_RESULT_MEASURES = 11 };

// The measures of which means are taken, in this order.
struct result_measure {
	enum measure_id id;
	double factor; // to the unit of the means: shares are ratios
};
extern const struct result_measure result_measures[N_RESULT_MEASURES];

// The repeats of a configuration.
struct result {
	size_t outcomes[N_OUTCOMES];
	size_t n; // number of successful runs
	double sums[N_RESULT_MEASURES];
	size_t counts[N_RESULT_MEASURES];
	const char *verdict; // of the first run
	// [n_judged] values of the compared measure, with room for the plan's repeats
	double *judged;
	size_t n_judged;
	struct repeats repeats; // of these values
	size_t base; // configuration of its baseline; 0: none
	bool is_baseline;
	double speed_up; // NAN: not known
	double probability; // corrected p-value; NAN: not tested
};

struct results {
	const struct sweep *sweep;
	struct catalogue catalogue;
	struct result *items; // [n_configurations]
	size_t outcomes[N_OUTCOMES];
	double *judged; // memory of the items' `judged`
	enum measure_id measure; // the one by which configurations are compared
	size_t n_tests;
};

// Reads the runs; prices: of the measures with prices, outlives the results; NULL: none. Returns 0
// or -errno; results_done is needed after both.
int results_read(const struct sweep *sweep, const struct prices *prices, struct results *ret,
	struct error *e);
void results_done(struct results *r);

// The configuration of a run, from its file's name; 0: none.
size_t results_configuration_of(const struct sweep *sweep, const struct digest *run);
// The mean of a measure (index of result_measures); NAN: no run has it.
double result_mean(const struct result *result, size_t measure);
bool result_beyond_noise(const struct result *result);
// Why no speed-up is tested. Static.
const char *results_why_untested(const struct results *r);
