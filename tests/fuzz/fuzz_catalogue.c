// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// An entry of the index of runs, which anyone may have written.

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "study/catalogue.h"
#include "base/cleanup.h"

static void check(bool holds)
{
	if (!holds) {
		abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct catalogue_run run = {0};
	const char *notice;
	// Exactly as long, so that a byte behind it is seen to be read.
	_cleanup_free_ void *exact = malloc(size ? size : 1);
	check(exact);
	memcpy(exact, data, size);
	if (catalogue_entry_decode(exact, size, &run, &notice) < 0) {
		return 0;
	}
	size_t length = strlen(run.host) + strlen(run.command) + strlen(run.outcome_text) +
	                strlen(run.memory_kind) + strlen(run.verdict) + strlen(run.headline) +
	                (notice ? strlen(notice) : 0);
	for (size_t i = 0; i < run.n_labels; i++) {
		length += strlen(run.labels[i].name) + strlen(run.labels[i].value);
	}
	check(length <= size && run.outcome < N_OUTCOMES);
	for (size_t i = 0; i < N_MEASURES; i++) {
		check(!isinf(run.measures[i]) &&
			(!run.reasons[i] || strlen(run.reasons[i]) <= size));
	}
	catalogue_label(&run, "machine");
	free(run.labels);
	return 0;
}
