// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The summary as a list, and as a table in the run file.

#include "run/summary.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "run/entities.h"
#include "run/epochs.h"
#include "run/query.h"
#include "runfile/database.h"
#include "runfile/reader.h"
#include "runfile/writer.h"

static int summary_compute(struct reader *r, const struct entity_list *entities,
	const struct metric_list *metrics, const struct epoch_list *epochs, struct summary *ret,
	struct error *e);

// Summary -----------------------------------------------------------------------------------------

static const char *const figure_names[N_FIGURES] = {
	[FIGURE_TOTAL] = "total",
	[FIGURE_MEAN] = "mean",
	[FIGURE_P50] = "p50",
	[FIGURE_P95] = "p95",
	[FIGURE_MAX] = "max",
};

const char *figure_name(enum figure figure)
{
	return figure_names[figure];
}

void summary_done(struct summary *s)
{
	free(s->rows);
	*s = (struct summary){0};
}

static int row_compare(const void *left, const void *right)
{
	const struct summary_row *a = left, *b = right;
	if (a->entity != b->entity) {
		return a->entity < b->entity ? -1 : 1;
	}
	if (a->metric != b->metric) {
		return a->metric < b->metric ? -1 : 1;
	}
	return (a->epoch > b->epoch) - (a->epoch < b->epoch);
}

static void summary_sort(struct summary *s)
{
	if (s->n > 0) {
		qsort(s->rows, s->n, sizeof(*s->rows), row_compare);
	}
}

// Appends a row without figures. NULL: out of memory.
static struct summary_row *summary_append(
	struct summary *s, int64_t entity, uint32_t metric, int64_t epoch)
{
	void *rows = s->rows;
	int r = array_reserve(&rows, &s->capacity, s->n + 1, sizeof(*s->rows));
	s->rows = rows;
	if (r < 0) {
		return NULL;
	}
	struct summary_row *row = &s->rows[s->n++];
	*row = (struct summary_row){.entity = entity, .metric = metric, .epoch = epoch};
	for (unsigned i = 0; i < N_FIGURES; i++) {
		row->figures[i] = NAN;
	}
	return row;
}

static const struct summary_row *row_find(
	const struct summary *s, int64_t entity, uint32_t metric, int64_t epoch)
{
	struct summary_row wanted = {.entity = entity, .metric = metric, .epoch = epoch};
	return s->n ? bsearch(&wanted, s->rows, s->n, sizeof(*s->rows), row_compare) : NULL;
}

// Whether the metric did not change over the whole run.
static bool summary_is_steady(const struct summary_row *row)
{
	bool counter = isfinite(row->figures[FIGURE_TOTAL]);
	return counter ? row->figures[FIGURE_TOTAL] == 0
	               : row->figures[FIGURE_MEAN] == row->figures[FIGURE_MAX];
}

// Whether the row of a run is followed by rows of its epochs.
static bool has_epoch_rows(const struct summary *s, const struct summary_row *run)
{
	const struct summary_row *next = run + 1;
	return next < s->rows + s->n && next->entity == run->entity && next->metric == run->metric;
}

double summary_figure(
	const struct summary *s, int64_t entity, uint32_t metric, int64_t epoch, enum figure figure)
{
	const struct summary_row *row = row_find(s, entity, metric, epoch);
	if (!row) {
		row = row_find(s, entity, metric, SUMMARY_WHOLE_RUN);
		row = row && summary_is_steady(row) && !has_epoch_rows(s, row) ? row : NULL;
	}
	return row ? row->figures[figure] : NAN;
}

// --- the table in the file

#define STORED_MAX 9.2e18 // fits into 64 bits

bool summary_pack(double figure, double scale, int64_t *ret)
{
	double stored = round(figure / scale * 1000);
	if (!(fabs(stored) < STORED_MAX)) {
		return false;
	}
	*ret = (int64_t)stored;
	return true;
}

// A figure as it will be read back from the file; NAN if it cannot be stored.
static double summary_round(double figure, double scale)
{
	int64_t stored;
	return summary_pack(figure, scale, &stored) ? (double)stored * scale / 1000 : NAN;
}

struct summary_loader {
	struct summary *summary;
	const struct entity_list *entities;
	const struct metric_list *metrics;
};

static int stored_row(void *context, sqlite3_stmt *row)
{
	const struct summary_loader *loader = context;
	int64_t entity = sqlite3_column_int64(row, 0), number = sqlite3_column_int64(row, 1);
	const struct metric_row *metric = number >= 0 && number <= UINT32_MAX
	                                          ? metric_list_find(
							    loader->metrics, (uint32_t)number)
	                                          : NULL;
	if (!metric || !entity_find(loader->entities, entity)) {
		return 0;
	}
	int64_t epoch = sqlite3_column_type(row, 2) == SQLITE_NULL ? SUMMARY_WHOLE_RUN
	                                                           : sqlite3_column_int64(row, 2);
	struct summary_row *target = summary_append(loader->summary, entity, metric->id, epoch);
	if (!target) {
		return -ENOMEM;
	}
	for (int i = 0; i < N_FIGURES; i++) {
		if (sqlite3_column_type(row, 3 + i) != SQLITE_NULL) {
			target->figures[i] = (double)sqlite3_column_int64(row, 3 + i) *
			                     metric->scale / 1000;
		}
	}
	return 0;
}

static int summary_read(struct reader *r, const struct entity_list *entities,
	const struct metric_list *metrics, struct summary *ret, struct error *e)
{
	struct summary_loader loader = {ret, entities, metrics};
	int result = query_each(r,
		"SELECT entity, metric, epoch, total, mean, p50, p95, max FROM summary", stored_row,
		&loader, e);
	summary_sort(ret);
	return result;
}

int summary_load(struct reader *r, const struct entity_list *entities,
	const struct metric_list *metrics, const struct epoch_list *epochs, struct summary *ret,
	struct error *e)
{
	bool complete = reader_state(r) == RUN_FINISHED && !reader_is_damaged(r);
	if (complete && summary_read(r, entities, metrics, ret, e) == 0 && ret->n > 0) {
		return 0;
	}
	summary_done(ret);
	return summary_compute(r, entities, metrics, epochs, ret, e);
}

// --- writing

static int insert_row(sqlite3_stmt *insert, const struct summary_row *row, double scale)
{
	sqlite3_clear_bindings(insert); // unbound columns are NULL
	sqlite3_bind_int64(insert, 1, row->entity);
	sqlite3_bind_int64(insert, 2, row->metric);
	if (row->epoch != SUMMARY_WHOLE_RUN) {
		sqlite3_bind_int64(insert, 3, row->epoch);
	}
	for (int i = 0; i < N_FIGURES; i++) {
		int64_t stored;
		if (summary_pack(row->figures[i], scale, &stored)) {
			sqlite3_bind_int64(insert, 4 + i, stored);
		}
	}
	int status = sqlite3_step(insert);
	sqlite3_reset(insert);
	return status == SQLITE_DONE ? SQLITE_OK : status;
}

int summary_put(struct writer *w, const struct summary *s, const struct metric_list *metrics)
{
	static const char sql[] =
		"INSERT INTO summary (entity, metric, epoch, total, mean, p50, p95, max)"
		" VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
	sqlite3 *database = writer_database(w);
	_cleanup_statement_ sqlite3_stmt *insert = NULL;
	int status = database_exec(database, "DELETE FROM summary");
	if (status == SQLITE_OK) {
		status = sqlite3_prepare_v2(database, sql, -1, &insert, NULL);
	}
	for (size_t i = 0; i < s->n && status == SQLITE_OK; i++) {
		const struct metric_row *metric = metric_list_find(metrics, s->rows[i].metric);
		status = metric ? insert_row(insert, &s->rows[i], metric->scale) : SQLITE_OK;
	}
	return database_errno(database, status);
}

// Accumulator
// -------------------------------------------------------------------------------------------
//
// Computes figures from a stream of readings.

#define STEADY_ROWS 16 // rows in a row with the same value, for which add_steady pays

void accumulator_start(struct accumulator *t, enum metric_kind kind)
{
	histogram_clear(&t->histogram);
	struct histogram kept = t->histogram;
	*t = (struct accumulator){.kind = kind, .histogram = kept};
}

void accumulator_done(struct accumulator *t)
{
	histogram_done(&t->histogram);
}

static void window_close(struct accumulator *t, int64_t end_us)
{
	double length_us = (double)(end_us - t->window_us);
	if (length_us > 0) {
		histogram_add(&t->histogram, t->window_added / (length_us / 1e6), length_us);
	}
	t->window_us = end_us;
	t->window_added = 0;
}

static void counter_add(struct accumulator *t, int64_t t_us, double value)
{
	if (t->readings == 0) {
		t->window_us = t_us;
		return;
	}
	// A counter that steps back was reset, or its source was: the growth is not known.
	double step = value > t->last ? value - t->last : 0;
	t->added += step;
	t->window_added += step;
	if (t_us - t->window_us >= TALLY_WINDOW_US) {
		window_close(t, t_us);
	}
}

static void gauge_stand(struct accumulator *t, int64_t until_us)
{
	double length_us = (double)(until_us - t->last_us);
	if (t->standing && length_us > 0) {
		t->area += t->last * length_us;
		t->length_us += length_us;
		histogram_add(&t->histogram, t->last, length_us);
	}
}

static inline void add_reading(struct accumulator *t, int64_t t_us, double value, double largest)
{
	if (t->readings > 0 && t_us < t->last_us) {
		return;
	}
	if (t->readings > 0 && t->kind == METRIC_GAUGE) {
		gauge_stand(t, t_us);
	}
	t->standing = isfinite(value);
	if (!t->standing) {
		return;
	}
	if (t->kind == METRIC_COUNTER) {
		counter_add(t, t_us, value);
	}
	double top = isfinite(largest) && largest > value ? largest : value;
	t->peak = t->readings == 0 || top > t->peak ? top : t->peak;
	if (t->readings++ == 0) {
		t->first_us = t_us;
		t->first = value;
	}
	t->last_us = t_us;
	t->last = value;
}

// Adds n rows with the same value (an idle process). Once the open window has no growth left, the
// first and the last row stand for all. Returns how many rows were consumed; the caller adds the
// others.
static size_t add_steady(
	struct accumulator *t, const int64_t *t_us, double value, double largest, size_t n)
{
	size_t i = 0;
	do {
		add_reading(t, t_us[i++], value, largest);
	} while (i < n && t->kind == METRIC_COUNTER && t->window_added > 0);
	if (i + 1 < n && isfinite(value)) {
		t->readings += n - i - 1;
		i = n - 1;
	}
	return i;
}

void accumulator_add(struct accumulator *t, int64_t t_us, double value, double largest)
{
	add_reading(t, t_us, value, largest);
}

void accumulator_add_rows(struct accumulator *t, const int64_t *t_us, const double *values,
	const double *largest, size_t n)
{
	// A day at 10 ms has a hundred million readings: a local copy can stay in registers.
	struct accumulator local = *t;
	for (size_t i = 0, end; i < n; i = end) {
		end = i + 1;
		while (end < n && values[end] == values[i] && largest[end] == largest[i]) {
			end++;
		}
		size_t next = i;
		if (end - i >= STEADY_ROWS) {
			next = add_steady(&local, t_us + i, values[i], largest[i], end - i) + i;
		}
		for (; next < end; next++) {
			add_reading(&local, t_us[next], values[next], largest[next]);
		}
	}
	*t = local;
}

// The value at t_us, between the last reading and the next: interpolated for a counter, the last
// value for a gauge.
static double accumulator_between(
	const struct accumulator *t, int64_t t_us, int64_t next_us, double next)
{
	if (t->readings == 0 || !t->standing) {
		return NAN;
	}
	if (t->kind != METRIC_COUNTER || !isfinite(next) || next_us <= t->last_us ||
		next < t->last) {
		return t->last;
	}
	double share = (double)(t_us - t->last_us) / (double)(next_us - t->last_us);
	return t->last + (next - t->last) * share;
}

static void counter_figures(struct accumulator *t, bool from_zero, double figures[static N_FIGURES])
{
	if (t->readings < 2 && !from_zero) {
		return;
	}
	figures[FIGURE_TOTAL] = t->added + (from_zero ? t->first : 0);
	double seconds = (double)(t->last_us - t->first_us) / 1e6;
	if (seconds <= 0) {
		return;
	}
	// A short remainder at the end would give a rate over too little time.
	if (t->histogram.total <= 0 || t->last_us - t->window_us >= TALLY_WINDOW_US / 2) {
		window_close(t, t->last_us);
	}
	figures[FIGURE_MEAN] = t->added / seconds;
	figures[FIGURE_P50] = histogram_quantile(&t->histogram, 0.50);
	figures[FIGURE_P95] = histogram_quantile(&t->histogram, 0.95);
	figures[FIGURE_MAX] = t->histogram.largest;
}

static void gauge_figures(struct accumulator *t, int64_t end_us, double figures[static N_FIGURES])
{
	if (end_us == INT64_MIN) {
		double spacing = t->readings > 1 ? (double)(t->last_us - t->first_us) /
		                                           (double)(t->readings - 1)
		                                 : 0;
		end_us = t->last_us + (spacing >= 1 ? (int64_t)spacing : 1);
	}
	gauge_stand(t, end_us);
	if (t->length_us > 0) {
		figures[FIGURE_MEAN] = t->area / t->length_us;
	}
	if (t->readings > 1) {
		figures[FIGURE_P50] = histogram_quantile(&t->histogram, 0.50);
		figures[FIGURE_P95] = histogram_quantile(&t->histogram, 0.95);
	}
	figures[FIGURE_MAX] = t->peak;
}

void accumulator_figures(
	struct accumulator *t, int64_t end_us, bool from_zero, double ret_figures[static N_FIGURES])
{
	for (unsigned i = 0; i < N_FIGURES; i++) {
		ret_figures[i] = NAN;
	}
	if (t->readings == 0) {
		return;
	}
	if (t->kind == METRIC_COUNTER) {
		counter_figures(t, from_zero, ret_figures);
	} else if (t->kind == METRIC_GAUGE) {
		gauge_figures(t, end_us, ret_figures);
	}
}

// Compute -----------------------------------------------------------------------------------------
//
// One pass over the blocks, entity by entity; each reading is seen once. Each metric has an
// accumulator for the whole run and one for the current epoch.

// A metric of the current entity.
struct slot {
	const struct metric_row *metric;
	bool used;
	bool steady; // the metric did not change over the run
	bool from_zero; // the counter began with its entity
	struct accumulator run;
	struct accumulator epoch;
	size_t epoch_index; // of the epoch that `epoch` is about, or of the next one
};

struct computation {
	struct summary *summary;
	const struct epoch_list *epochs;
	size_t n_epochs; // that have rows for the current entity
	const struct entity *entity;
	bool attached; // to a job that ran before the recording began
	struct slot *slots; // [n_slots], one for each metric
	size_t n_slots;
	size_t *slot_of; // [max id + 1] index into slots
	double *values; // of the current column
	double *largest;
	size_t values_capacity, largest_capacity;
	bool out_of_memory;
};

// The row is valid until the next one is stored. NULL: there are no figures.
static const struct summary_row *figures_store(struct computation *c, const struct slot *slot,
	int64_t epoch, struct accumulator *accumulator, int64_t end_us, bool from_zero)
{
	double figures[N_FIGURES];
	accumulator_figures(accumulator, end_us, from_zero, figures);
	bool any = false;
	for (unsigned i = 0; i < N_FIGURES; i++) {
		figures[i] = summary_round(figures[i], slot->metric->scale);
		any = any || isfinite(figures[i]);
	}
	struct summary_row *row = any ? summary_append(
						c->summary, c->entity->id, slot->metric->id, epoch)
	                              : NULL;
	c->out_of_memory = c->out_of_memory || (any && !row);
	for (unsigned i = 0; row && i < N_FIGURES; i++) {
		row->figures[i] = figures[i];
	}
	return row;
}

// Whether the epoch holds the entity's very first reading of a counter that began at 0.
static bool epoch_from_zero(const struct slot *slot)
{
	return slot->from_zero && slot->epoch.first_us == slot->run.first_us;
}

static void epoch_store(struct computation *c, struct slot *slot, int64_t end_us)
{
	if (slot->epoch.readings > 0) {
		figures_store(c, slot, c->epochs->items[slot->epoch_index].number, &slot->epoch,
			end_us, epoch_from_zero(slot));
	}
}

// Called before a reading at t_us. Ends the epochs that are over by then, begins the one that
// contains t_us, and adds the metric's values at their edges.
static void epochs_advance(struct computation *c, struct slot *slot, int64_t t_us, double value)
{
	while (slot->epoch_index < c->n_epochs) {
		const struct epoch *epoch = &c->epochs->items[slot->epoch_index];
		int64_t start_us = epoch->start_ns / 1000, end_us = epoch->end_ns / 1000;
		bool begun = slot->epoch.readings > 0;
		if (!begun && t_us > start_us && slot->run.readings > 0 &&
			slot->run.last_us <= start_us) {
			double edge = accumulator_between(&slot->run, start_us, t_us, value);
			accumulator_add(&slot->epoch, start_us, edge, edge);
		}
		if (t_us < end_us) {
			return;
		}
		if (slot->epoch.readings > 0) {
			double edge = accumulator_between(&slot->epoch, end_us, t_us, value);
			accumulator_add(&slot->epoch, end_us, edge, edge);
			epoch_store(c, slot, end_us);
		}
		slot->epoch_index++;
		accumulator_start(&slot->epoch, slot->metric->kind);
	}
}

static void slot_add(
	struct computation *c, struct slot *slot, int64_t t_us, double value, double largest)
{
	if (slot->epoch_index < c->n_epochs) {
		epochs_advance(c, slot, t_us, value);
	}
	if (slot->epoch_index < c->n_epochs &&
		t_us >= c->epochs->items[slot->epoch_index].start_ns / 1000) {
		accumulator_add(&slot->epoch, t_us, value, largest);
	}
	accumulator_add(&slot->run, t_us, value, largest);
}

static enum aggregate column_aggregate(const struct block *b, uint32_t column)
{
	return b->aggregates ? (enum aggregate)b->aggregates[column] : AGGREGATE_NONE;
}

static const int64_t *column_of_maximum(const struct block *b, uint32_t metric)
{
	for (uint32_t i = 0; i < b->n_columns; i++) {
		if (b->metric_ids[i] == metric && column_aggregate(b, i) == AGGREGATE_MAXIMUM) {
			return b->columns[i];
		}
	}
	return NULL;
}

static double value_of(int64_t stored, double scale)
{
	return stored == VALUE_MISSING ? NAN : (double)stored * scale;
}

// The next time at which readings start or stop counting towards an epoch.
static int64_t next_edge_us(const struct computation *c, const struct slot *slot)
{
	if (slot->epoch_index >= c->n_epochs) {
		return INT64_MAX;
	}
	const struct epoch *epoch = &c->epochs->items[slot->epoch_index];
	return (slot->epoch.readings > 0 ? epoch->end_ns : epoch->start_ns) / 1000;
}

static void slot_add_rows(struct computation *c, struct slot *slot, const struct block *b,
	const double *values, const double *largest)
{
	for (uint32_t row = 0, end; row < b->n_rows; row = end) {
		int64_t edge_us = next_edge_us(c, slot);
		for (end = row; end < b->n_rows && b->t[end] < edge_us; end++) {
		}
		if (end == row) { // on the edge
			slot_add(c, slot, b->t[row], values[row], largest[row]);
			end++;
			continue;
		}
		if (slot->epoch.readings > 0) {
			accumulator_add_rows(
				&slot->epoch, b->t + row, values + row, largest + row, end - row);
		}
		accumulator_add_rows(
			&slot->run, b->t + row, values + row, largest + row, end - row);
	}
}

// Room for n readings in the metric's unit. The arrays belong to the computation.
static int scratch_reserve(struct computation *c, uint32_t n)
{
	void *values = c->values, *largest = c->largest;
	int r = array_reserve(&values, &c->values_capacity, n, sizeof(*c->values));
	r = r < 0 ? r : array_reserve(&largest, &c->largest_capacity, n, sizeof(*c->largest));
	c->values = values;
	c->largest = largest;
	return r;
}

static void column_add(struct computation *c, struct slot *slot, const struct block *b,
	const int64_t *stored, const int64_t *stored_largest)
{
	double scale = slot->metric->scale;
	for (uint32_t row = 0; row < b->n_rows; row++) {
		c->values[row] = value_of(stored[row], scale);
	}
	for (uint32_t row = 0; stored_largest && row < b->n_rows; row++) {
		c->largest[row] = value_of(stored_largest[row], scale);
	}
	slot_add_rows(c, slot, b, c->values, stored_largest ? c->largest : c->values);
}

static struct slot *slot_find(struct computation *c, uint32_t metric)
{
	if (c->n_slots == 0 || metric > c->slots[c->n_slots - 1].metric->id) {
		return NULL;
	}
	size_t index = c->slot_of[metric];
	return index < c->n_slots ? &c->slots[index] : NULL;
}

static void slot_begin(struct computation *c, struct slot *slot)
{
	enum entity_kind kind = c->entity->kind;
	slot->used = true;
	slot->epoch_index = 0;
	slot->from_zero = kind == ENTITY_RECORDER ||
	                  ((kind == ENTITY_JOB || kind == ENTITY_PROCESS) && !c->attached);
	accumulator_start(&slot->run, slot->metric->kind);
	accumulator_start(&slot->epoch, slot->metric->kind);
}

static int block_add(void *context, int64_t entity, const struct block *b)
{
	(void)entity;
	struct computation *c = context;
	if (scratch_reserve(c, b->n_rows) < 0) {
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < b->n_columns; i++) {
		enum aggregate aggregate = column_aggregate(b, i);
		struct slot *slot = slot_find(c, b->metric_ids[i]);
		if (!slot || slot->metric->kind == METRIC_STATE ||
			(aggregate != AGGREGATE_NONE && aggregate != AGGREGATE_MEAN)) {
			continue;
		}
		if (!slot->used) {
			slot_begin(c, slot);
		}
		column_add(c, slot, b, b->columns[i],
			aggregate == AGGREGATE_MEAN ? column_of_maximum(b, b->metric_ids[i])
						    : NULL);
	}
	return c->out_of_memory ? -ENOMEM : 0;
}

// Whether the readings reach from the first epoch into the last one, but for two of their
// intervals: a GPU may be lost before.
static bool covers_epochs(const struct computation *c, const struct slot *slot)
{
	const struct accumulator *run = &slot->run;
	if (c->n_epochs == 0 || run->readings < 2) {
		return true;
	}
	int64_t slack_us = 2 * (run->last_us - run->first_us) / (int64_t)(run->readings - 1);
	return run->first_us - slack_us <= c->epochs->items[0].end_ns / 1000 &&
	       run->last_us + slack_us >= c->epochs->items[c->n_epochs - 1].start_ns / 1000;
}

// Drops the rows for epochs of metrics that did not change: the row for the run holds for each
// epoch.
static void drop_steady(struct computation *c, size_t first)
{
	struct summary *s = c->summary;
	size_t n = first;
	for (size_t i = first; i < s->n; i++) {
		const struct summary_row *row = &s->rows[i];
		if (row->epoch == SUMMARY_WHOLE_RUN || !slot_find(c, row->metric)->steady) {
			s->rows[n++] = *row;
		}
	}
	s->n = n;
}

static int entity_compute(struct computation *c, struct reader *r, struct error *e)
{
	size_t first = c->summary->n;
	int result = reader_blocks(r, c->entity->id, block_add, c, e);
	for (size_t i = 0; i < c->n_slots; i++) {
		struct slot *slot = &c->slots[i];
		if (!slot->used) {
			continue;
		}
		slot->used = false;
		if (slot->epoch_index < c->n_epochs) {
			epoch_store(c, slot, INT64_MIN);
		}
		const struct summary_row *row = figures_store(
			c, slot, SUMMARY_WHOLE_RUN, &slot->run, INT64_MIN, slot->from_zero);
		slot->steady = row && summary_is_steady(row) && covers_epochs(c, slot);
	}
	drop_steady(c, first);
	return c->out_of_memory ? error_errno(e, ENOMEM, "cannot summarise") : result;
}

static void computation_done(struct computation *c)
{
	for (size_t i = 0; c->slots && i < c->n_slots; i++) {
		accumulator_done(&c->slots[i].run);
		accumulator_done(&c->slots[i].epoch);
	}
	free(c->slots);
	free(c->slot_of);
	free(c->values);
	free(c->largest);
}

// Metric ids are small numbers, except in a forged file; larger ones are left out.
#define METRIC_ID_MAX 65535

static int computation_init(struct computation *c, const struct metric_list *metrics)
{
	size_t n = 0;
	while (n < metrics->n && metrics->items[n].id <= METRIC_ID_MAX) {
		n++;
	}
	size_t ids = n ? (size_t)metrics->items[n - 1].id + 1 : 1;
	c->slots = calloc(n + 1, sizeof(*c->slots));
	c->slot_of = malloc(ids * sizeof(*c->slot_of));
	if (!c->slots || !c->slot_of) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < ids; i++) {
		c->slot_of[i] = SIZE_MAX;
	}
	c->n_slots = n;
	for (size_t i = 0; i < n; i++) {
		c->slots[i].metric = &metrics->items[i];
		c->slot_of[metrics->items[i].id] = i;
	}
	return 0;
}

static bool has_epochs(const struct entity *entity)
{
	return entity->kind == ENTITY_JOB || entity->kind == ENTITY_GPU ||
	       entity->kind == ENTITY_DISK || entity->kind == ENTITY_NETWORK;
}

static int summary_compute(struct reader *r, const struct entity_list *entities,
	const struct metric_list *metrics, const struct epoch_list *epochs, struct summary *ret,
	struct error *e)
{
	_cleanup_(computation_done) struct computation c = {
		.summary = ret, .epochs = epochs, .attached = reader_run(r, "attached_pid")};
	if (computation_init(&c, metrics) < 0) {
		return error_errno(e, ENOMEM, "cannot summarise");
	}
	size_t n_epochs = epochs->n < SUMMARY_EPOCHS_MAX ? epochs->n : SUMMARY_EPOCHS_MAX;
	int result = 0;
	for (size_t i = 0; i < entities->n && result != -ENOMEM; i++) {
		c.entity = &entities->items[i];
		c.n_epochs = has_epochs(c.entity) ? n_epochs : 0;
		int entity_result = entity_compute(&c, r, e);
		result = entity_result < 0 ? entity_result : result;
	}
	summary_sort(ret);
	return result;
}
