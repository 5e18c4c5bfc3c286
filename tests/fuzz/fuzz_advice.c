// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Fuzzes the answer of `strain advise` that is kept beside its runs.

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "study/kept_advice.h"

static void check(bool holds)
{
	if (!holds) {
		abort();
	}
}

// A digest has what the answer says of its run: finite or with a reason, and sorted labels.
static void check_digest(const struct kept_advice *a, const char *file)
{
	struct digest run = {0};
	check(kept_advice_tell(a, file, &run) == 0);
	for (size_t i = MEASURE_LARGEST_BATCH; i <= MEASURE_VALIDATION_SECONDS; i++) {
		check(!isinf(run.measures[i]) && !isnan(run.measures[i]) == !run.reasons[i]);
	}
	for (size_t i = 0; i < run.n_labels; i++) {
		check(i == 0 || strcmp(run.labels[i - 1].name, run.labels[i].name) < 0);
		check(run.labels[i].value != NULL);
	}
	digest_done(&run);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kept_advice a;
	struct error e = {0};
	if (kept_advice_parse((const char *)data, size, &a, &e) < 0) {
		check(*e.text && !strchr(e.text, '\n'));
		return 0;
	}
	check(a.n_runs <= KEPT_RUNS_MAX && a.n_page <= KEPT_LINES_MAX);
	for (size_t i = 0; i < a.n_runs; i++) {
		check(a.runs[i].batch_size >= -1 && a.runs[i].workers >= -1);
		if (a.runs[i].name) {
			check_digest(&a, a.runs[i].name);
		}
	}
	check_digest(&a, "none.strain");
	size_t length = 0;
	for (size_t i = 0; i < a.n_page; i++) {
		length += strlen(a.page[i]);
	}
	check(length <= size);
	kept_advice_done(&a);
	return 0;
}
