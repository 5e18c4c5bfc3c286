// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A run for each of its GPUs. The index knows a measure's mean over them, so that files of runs
// with GPUs are opened.

#include "cmd/layout_gpus.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "trace/reader.h"

enum { GPUS_MAX = 64 };

struct spread {
	double values[GPUS_MAX];
	size_t n; // 0: not known
};

static void read_gpus(const struct catalogue_run *run, enum measure_id measure, struct spread *ret)
{
	struct reader *reader = NULL;
	struct analysis a;
	ret->n = 0;
	if (!isfinite(run->measures[measure]) || reader_open(run->path, &reader, NULL) < 0) {
		return;
	}
	if (analysis_load_brief(reader, &a, NULL) == 0) {
		ret->n = measure_each_gpu(&a, measure, ret->values, GPUS_MAX);
		analysis_done(&a);
	}
	reader_free(reader);
}

static int copy_run(struct layout_gpus *gpus, const struct catalogue_run *run,
	enum measure_id measure, const struct spread *spread, size_t gpu)
{
	struct catalogue_run *copy = &gpus->copies[gpus->n];
	struct text value = {0};
	text_format(&value, "GPU %zu of %zu", gpu, spread->n);
	*copy = *run;
	copy->labels = calloc(run->n_labels + 1, sizeof(*copy->labels));
	copy->n_labels = 0;
	char *text = text_steal(&value);
	if (!copy->labels || !text) {
		free(copy->labels);
		free(text);
		return -ENOMEM;
	}
	gpus->n++;
	// the first, so that a label of the run's own that is called so is not taken for it
	copy->labels[copy->n_labels++] = (struct run_label){
		.name = (char *)(uintptr_t)LAYOUT_LABEL_GPU, .value = text};
	for (size_t i = 0; i < run->n_labels; i++) {
		copy->labels[copy->n_labels++] = run->labels[i];
	}
	copy->measures[measure] = spread->values[gpu];
	return 0;
}

static int copy_runs(struct layout_gpus *gpus, enum measure_id measure,
	const struct catalogue_run ***runs, size_t *n, const struct spread *spreads)
{
	size_t room = 0, filled = 0;
	for (size_t i = 0; i < *n; i++) {
		room += spreads[i].n > 0 ? spreads[i].n : 1;
	}
	const struct catalogue_run **all = calloc(room + 1, sizeof(void *));
	gpus->copies = calloc(room + 1, sizeof(*gpus->copies));
	int r = all && gpus->copies ? 0 : -ENOMEM;
	for (size_t i = 0; r == 0 && i < *n; i++) {
		if (spreads[i].n == 0) {
			all[filled++] = (*runs)[i];
		}
		gpus->n_runs += spreads[i].n > 0;
		for (size_t gpu = 0; r == 0 && gpu < spreads[i].n; gpu++) {
			r = copy_run(gpus, (*runs)[i], measure, &spreads[i], gpu);
			all[filled++] = r == 0 ? &gpus->copies[gpus->n - 1] : NULL;
		}
	}
	if (r < 0) {
		free(all);
		return r;
	}
	free(*runs);
	*runs = all;
	*n = filled;
	return 0;
}

int layout_gpus_spread(enum measure_id measure, const struct catalogue_run ***runs, size_t *n,
	struct layout_gpus *ret)
{
	*ret = (struct layout_gpus){0};
	_cleanup_free_ struct spread *spreads = calloc(*n + 1, sizeof(*spreads));
	bool several = false;
	for (size_t i = 0; spreads && i < *n; i++) {
		read_gpus((*runs)[i], measure, &spreads[i]);
		several = several || spreads[i].n > 1;
	}
	return !spreads ? -ENOMEM : several ? copy_runs(ret, measure, runs, n, spreads) : 0;
}

void layout_gpus_done(struct layout_gpus *gpus)
{
	for (size_t i = 0; i < gpus->n; i++) {
		free(gpus->copies[i].labels[0].value);
		free(gpus->copies[i].labels);
	}
	free(gpus->copies);
	*gpus = (struct layout_gpus){0};
}
