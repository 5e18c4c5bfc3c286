// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Readings of memory at the moments that spans mark.

#include "analyze/held.h"

#include <math.h>

#include "analyze/analysis.h"
#include "analyze/names.h"
#include "analyze/query.h"
#include "analyze/words.h"

#define NEAR_US 1000000 // a reading this much older still says what was held: the next is due
#define SHOWN_BYTES 1e6

static const struct {
	const char *name;
	bool of_gpu;
	const char *metric;
} holdings[N_HOLDINGS] = {
	[HOLDING_FRAMEWORK] = {"framework", false, NAME_RESIDENT},
	[HOLDING_DATASET] = {"dataset and weights", false, NAME_RESIDENT},
	[HOLDING_TRAINING] = {"gradients, optimizer and workspace", false, NAME_RESIDENT},
	[HOLDING_ACTIVATIONS] = {"within a step", false, NAME_RESIDENT},
	[HOLDING_GROWTH] = {"kept from step to step", false, NAME_RESIDENT},
	[HOLDING_WORKERS] = {"loader workers", false, NAME_PSS},
	[HOLDING_BATCHES] = {"shared memory", false, NAME_SHMEM},
	[HOLDING_FILES] = {"page cache", false, NAME_FILE},
	[HOLDING_GPU_MODEL] = {"context and weights", true, NAME_GPU_JOB_MEMORY},
	[HOLDING_GPU_TRAINING] = {"gradients, optimizer, activations and reserved", true,
		NAME_GPU_JOB_MEMORY},
};

const char *holding_name(enum holding holding)
{
	return holdings[holding].name;
}

bool holding_is_of_gpu(enum holding holding)
{
	return holdings[holding].of_gpu;
}

const char *holding_metric(enum holding holding)
{
	return holdings[holding].metric;
}

// The last reading before t_us; NAN where it is old.
static double gauge_at(const struct series *s, int64_t t_us)
{
	size_t i = s->n;
	while (i > 0 && s->t_us[i - 1] > t_us) {
		i--;
	}
	return i > 0 && t_us - s->t_us[i - 1] <= NEAR_US ? s->values[i - 1] : NAN;
}

static double gauge_most(const struct series *s, int64_t from_us)
{
	double most = NAN;
	for (size_t i = 0; i < s->n; i++) {
		if (s->t_us[i] >= from_us) {
			most = fmax(most, s->maximum[i]);
		}
	}
	return most;
}

static int note_time(void *context, sqlite3_stmt *row)
{
	if (sqlite3_column_type(row, 0) != SQLITE_NULL) {
		*(int64_t *)context = sqlite3_column_int64(row, 0) / 1000;
	}
	return 0;
}

// When the training process's imports were done; -1 where nobody marked them.
static int64_t imported_us(const struct analysis *a, int64_t before_us)
{
	int64_t t_us = -1;
	(void)query_each(a->reader,
		"SELECT max(end_ns) FROM span WHERE kind = 'phase' AND name = 'import'", note_time,
		&t_us, NULL);
	return t_us < before_us ? t_us : -1;
}

// Where the first two iterations began and ended.
static bool first_iterations(const struct phases *p, int64_t *ret_start_us, int64_t *ret_end_us)
{
	if (p->n_iterations < 3 || p->stride != 1) {
		return false;
	}
	*ret_start_us = p->iterations[0].start_ns / 1000;
	*ret_end_us = p->iterations[2].start_ns / 1000;
	return true;
}

static double more(double after, double before)
{
	return isfinite(after - before) ? fmax(0, after - before) : NAN;
}

static void find_training(const struct analysis *a, int64_t process, struct held *h)
{
	int64_t start_us, end_us;
	struct series s = {0};
	if (!first_iterations(&a->phases, &start_us, &end_us) ||
		reader_series(a->reader, process, NAME_RESIDENT, INT64_MIN, INT64_MAX, &s, NULL) <
			0) {
		return;
	}
	int64_t import_us = imported_us(a, start_us);
	double imported = import_us >= 0 ? gauge_at(&s, import_us) : NAN;
	double began = gauge_at(&s, start_us), trained = gauge_at(&s, end_us);
	h->bytes[HOLDING_FRAMEWORK] = imported;
	// Without a mark of the import it cannot be told from the dataset.
	h->bytes[HOLDING_DATASET] = isfinite(imported) ? more(began, imported) : began;
	h->bytes[HOLDING_TRAINING] = more(trained, began);
	h->bytes[HOLDING_ACTIVATIONS] = more(gauge_most(&s, end_us), fmax(trained, began));
	if (a->growth.leak && isfinite(h->bytes[HOLDING_ACTIVATIONS])) {
		h->bytes[HOLDING_GROWTH] = a->growth.gained_bytes;
		h->bytes[HOLDING_ACTIVATIONS] = fmax(
			0, h->bytes[HOLDING_ACTIVATIONS] - a->growth.gained_bytes);
	}
	series_done(&s);
}

// How many loader workers there were at a time at most: they may be made anew each epoch.
static size_t workers_at_once(const struct process_list *list, int64_t process)
{
	size_t most = 0;
	for (size_t i = 0; i < list->n; i++) {
		const struct process_row *row = &list->items[i];
		size_t beside = 0;
		for (size_t k = 0; row->role == ROLE_LOADER && k < list->n; k++) {
			const struct process_row *other = &list->items[k];
			beside += other->role == ROLE_LOADER && other->entity != process &&
			          other->first_s <= row->first_s && other->last_s >= row->first_s;
		}
		most = beside > most ? beside : most;
	}
	return most;
}

static void find_others(const struct analysis *a, int64_t process, struct held *h)
{
	const struct entity *job = entity_first(&a->entities, ENTITY_JOB);
	double workers = NAN;
	size_t n = 0;
	for (size_t i = 0; i < a->processes.n; i++) {
		const struct process_row *row = &a->processes.items[i];
		if (row->role == ROLE_LOADER && row->entity != process) {
			double pss = analysis_figure(a, row->entity, NAME_PSS, FIGURE_MEAN);
			workers = words_sum(workers, pss);
			n += isfinite(pss);
		}
	}
	size_t at_once = workers_at_once(&a->processes, process);
	h->bytes[HOLDING_WORKERS] = n > at_once ? workers / (double)n * (double)at_once : workers;
	if (job) {
		h->bytes[HOLDING_BATCHES] = analysis_figure(a, job->id, NAME_SHMEM, FIGURE_MAX);
		h->bytes[HOLDING_FILES] = analysis_figure(a, job->id, NAME_FILE, FIGURE_MAX);
	}
}

static void find_gpu(const struct analysis *a, struct held *h)
{
	int64_t start_us, end_us;
	if (!first_iterations(&a->phases, &start_us, &end_us)) {
		return;
	}
	for (size_t i = 0; i < a->overview.n_gpus; i++) {
		struct series s = {0};
		if (reader_series(a->reader, a->overview.gpus[i].entity, NAME_GPU_JOB_MEMORY,
			    INT64_MIN, INT64_MAX, &s, NULL) < 0) {
			continue;
		}
		double began = gauge_at(&s, start_us);
		double grew = more(gauge_most(&s, start_us), began);
		h->bytes[HOLDING_GPU_MODEL] = words_sum(h->bytes[HOLDING_GPU_MODEL], began);
		h->bytes[HOLDING_GPU_TRAINING] = words_sum(h->bytes[HOLDING_GPU_TRAINING], grew);
		series_done(&s);
	}
}

void held_find(const struct analysis *a, struct held *ret)
{
	for (size_t i = 0; i < N_HOLDINGS; i++) {
		ret->bytes[i] = NAN;
	}
	int64_t process = a->phases.n_ranks > 0 ? a->phases.ranks[0].entity : 0;
	if (a->reader && process) {
		find_training(a, process, ret);
		find_others(a, process, ret);
		find_gpu(a, ret);
	}
}

void held_append(struct text *t, const struct held *held, bool of_gpu)
{
	const char *comma = "";
	for (size_t i = 0; i < N_HOLDINGS; i++) {
		if (held->bytes[i] >= SHOWN_BYTES && holdings[i].of_gpu == of_gpu) {
			bool whole = i == HOLDING_DATASET && isnan(held->bytes[HOLDING_FRAMEWORK]);
			text_format(t, "%s%s ", comma,
				whole ? "before the first iteration" : holdings[i].name);
			words_append_bytes(t, held->bytes[i]);
			comma = ", ";
		}
	}
}
