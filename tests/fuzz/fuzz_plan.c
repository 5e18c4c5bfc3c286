// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Fuzz target: plans of sweeps, from YAML to the commands of trials.

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "sweep/plan.h"
#include "sweep/template.h"
#include "sweep/trials.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct plan plan;
	struct trials trials;
	if (plan_read("plan.yaml", (const char *)data, size, &plan, NULL) < 0) {
		return 0;
	}
	if (trials_make(&plan, &trials, NULL) == 0) {
		template_free_words(trials_command(&trials, 1));
		template_free_words(trials_environment(&trials, trials.n_configurations));
		trials_baseline(&trials, trials.n_configurations);
		trials_done(&trials);
	}
	char *what = NULL;
	if (plan_differs(&plan, &plan, &what)) {
		abort();
	}
	plan_done(&plan);
	return 0;
}
