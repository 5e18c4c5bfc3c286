// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Fuzz target: price lists, from YAML to the cost of a run.

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "study/prices.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__lsan_default_suppressions(void);
const char *__lsan_default_options(void);

// The library loses its stack of brackets where they are nested deep and then wrong.
const char *__lsan_default_suppressions(void)
{
	return "leak:libfyaml";
}

// To say that it was used would count as a report.
const char *__lsan_default_options(void)
{
	return "print_suppressions=0";
}

// A cost is at least 0, or missing with a reason.
static void check(const struct digest *d)
{
	for (size_t i = 0; i < N_MEASURES; i++) {
		bool known = isfinite(d->measures[i]);
		if (measure_is_priced((enum measure_id)i) &&
			(known ? d->measures[i] < 0 || d->reasons[i] : !d->reasons[i])) {
			abort();
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct prices prices;
	if (prices_parse("prices.yaml", (const char *)data, size, &prices, NULL) < 0) {
		return 0;
	}
	struct digest d = {.host = "node1",
		.gpu = "NVIDIA A100-SXM4-40GB",
		.machine = {8, 64e9, 4},
		.ranks = 2,
		.recorded_s = 90};
	for (size_t i = 0; i < N_MEASURES; i++) {
		d.measures[i] = (double)i + 1;
	}
	if (prices_tell(&prices, &d) == 0) {
		check(&d);
	}
	d.measures[MEASURE_DURATION] = 0;
	d.measures[MEASURE_GPU_HOURS_ALLOCATED] = NAN;
	d.reasons[MEASURE_GPU_HOURS_ALLOCATED] = "no GPU was recorded";
	if (prices_tell(&prices, &d) == 0) {
		check(&d);
	}
	digest_done(&d);
	prices_done(&prices);
	return 0;
}
