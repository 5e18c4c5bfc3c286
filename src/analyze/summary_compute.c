// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// One pass over the blocks, an entity after the other, each reading seen once: a tally for the
// whole run and one for the epoch that it is in.

#include "analyze/summary_compute.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analyze/entities.h"
#include "analyze/epochs.h"
#include "analyze/tally.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "trace/reader.h"

// One metric of the entity at hand.
struct slot {
	const struct metric_row *metric;
	bool used;
	bool steady; // it did not change over the run
	bool from_zero; // the counter began with its entity
	struct tally run;
	struct tally epoch;
	size_t epoch_index; // of the epoch that `epoch` is about, or will be
};

struct computation {
	struct summary *summary;
	const struct epoch_list *epochs;
	size_t n_epochs; // that have rows, for the entity at hand
	const struct entity *entity;
	bool attached; // the job ran before the recording began
	struct slot *slots; // [n_slots], one for each metric
	size_t n_slots;
	size_t *slot_of; // [max id + 1] index into slots
	double *values; // of the column at hand
	double *largest;
	size_t values_capacity, largest_capacity;
	bool out_of_memory;
};

// The row, until the next one is stored; NULL where there are no figures.
static const struct summary_row *figures_store(struct computation *c, const struct slot *slot,
	int64_t epoch, struct tally *tally, int64_t end_us, bool from_zero)
{
	double figures[N_FIGURES];
	tally_figures(tally, end_us, from_zero, figures);
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

// Whether the epoch's tally holds the entity's very first reading of a counter that began at 0.
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

// Before a reading at t_us: ends the epochs that are over by then and begins the one that t_us is
// in, with the values that the metric had at the edges.
static void epochs_advance(struct computation *c, struct slot *slot, int64_t t_us, double value)
{
	while (slot->epoch_index < c->n_epochs) {
		const struct epoch *epoch = &c->epochs->items[slot->epoch_index];
		int64_t start_us = epoch->start_ns / 1000, end_us = epoch->end_ns / 1000;
		bool begun = slot->epoch.readings > 0;
		if (!begun && t_us > start_us && slot->run.readings > 0 &&
			slot->run.last_us <= start_us) {
			double edge = tally_between(&slot->run, start_us, t_us, value);
			tally_add(&slot->epoch, start_us, edge, edge);
		}
		if (t_us < end_us) {
			return;
		}
		if (slot->epoch.readings > 0) {
			double edge = tally_between(&slot->epoch, end_us, t_us, value);
			tally_add(&slot->epoch, end_us, edge, edge);
			epoch_store(c, slot, end_us);
		}
		slot->epoch_index++;
		tally_start(&slot->epoch, slot->metric->kind);
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
		tally_add(&slot->epoch, t_us, value, largest);
	}
	tally_add(&slot->run, t_us, value, largest);
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

// When the epoch at hand, or to come, changes what a reading is counted to.
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
		if (end == row) { // at the edge
			slot_add(c, slot, b->t[row], values[row], largest[row]);
			end++;
			continue;
		}
		if (slot->epoch.readings > 0) {
			tally_add_rows(
				&slot->epoch, b->t + row, values + row, largest + row, end - row);
		}
		tally_add_rows(&slot->run, b->t + row, values + row, largest + row, end - row);
	}
}

// Readings in the metric's unit. The arrays belong to the computation.
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
	tally_start(&slot->run, slot->metric->kind);
	tally_start(&slot->epoch, slot->metric->kind);
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

// What the row for the run says of a metric that did not change holds for each epoch.
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
		slot->steady = row && summary_is_steady(row);
	}
	drop_steady(c, first);
	return c->out_of_memory ? error_errno(e, ENOMEM, "cannot summarise") : result;
}

static void computation_done(struct computation *c)
{
	for (size_t i = 0; c->slots && i < c->n_slots; i++) {
		tally_done(&c->slots[i].run);
		tally_done(&c->slots[i].epoch);
	}
	free(c->slots);
	free(c->slot_of);
	free(c->values);
	free(c->largest);
}

// Metric ids are small numbers in every file that was not made up; others are left out.
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

int summary_compute(struct reader *r, const struct entity_list *entities,
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
