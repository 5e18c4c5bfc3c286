// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What web/src/contract.ts calls Iterations, and the panels of kind "stack" and "lanes".

#include "render/page_phases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "render/lanes.h"
#include "render/page_facts.h"
#include "render/page_run.h"

#define HISTOGRAM_BINS_MAX 60
#define MOST_RANKS 256
#define OWN_AT_FIRST 12
#define FINE_BUCKETS 1000 // in a window: no exact pieces are needed
#define TAIL_FROM 3 // times the 95th percentile: what is beyond is one bar

// The same phase has the same colour everywhere on the page, and in its style.
static const unsigned known_hues[N_KNOWN_PHASES] = {
	[PHASE_OTHER] = 9,
	[PHASE_DATA] = 1,
	[PHASE_TRANSFER] = 3,
	[PHASE_FORWARD] = 0,
	[PHASE_BACKWARD] = 4,
	[PHASE_OPTIMIZER] = 2,
	[PHASE_COMMUNICATION] = 5,
	[PHASE_STEP] = 0,
	[PHASE_VALIDATION] = 6,
	[PHASE_CHECKPOINT] = 8,
	[PHASE_IMPORT] = 7,
};

static unsigned hue_of(size_t phase)
{
	return phase < N_KNOWN_PHASES ? known_hues[phase] : (unsigned)(phase % 9);
}

static void put(json_t *object, const char *name, double value)
{
	json_object_set_new(object, name, page_number(value));
}

// As text: a program with doubles loses digits of what a job may give as a number.
static void put_count(json_t *object, const char *name, int64_t value)
{
	char count[32];
	json_object_set_new(object, name,
		value >= 0 ? page_string(text_count(count, sizeof(count), (uint64_t)value))
			   : json_null());
}

// Phases ------------------------------------------------------------------------------------------

static bool is_shown(const struct phases *p, size_t phase)
{
	return phase == PHASE_OTHER ? !p->phases_missing && p->items[phase].total_s > 0
	                            : p->items[phase].spans > 0;
}

// In the order in which they are stacked: as an iteration goes through them, then what is in none,
// then what stands apart.
static size_t phases_in_order(const struct phases *p, size_t order[static PHASES_MAX])
{
	size_t n = 0;
	for (size_t i = 1; i < p->n; i++) {
		if (is_shown(p, i) && !p->items[i].apart) {
			order[n++] = i;
		}
	}
	if (is_shown(p, PHASE_OTHER)) {
		order[n++] = PHASE_OTHER;
	}
	for (size_t i = 1; i < p->n; i++) {
		if (is_shown(p, i) && p->items[i].apart) {
			order[n++] = i;
		}
	}
	return n;
}

static json_t *phase_json(const struct phase *phase, size_t index)
{
	json_t *json = json_object();
	json_object_set_new(json, "name", page_string(phase->name));
	json_object_set_new(json, "hue", json_integer(hue_of(index)));
	json_object_set_new(json, "apart", json_boolean(phase->apart));
	put(json, "share", phase->share.value);
	put(json, "low", phase->share.low);
	put(json, "high", phase->share.high);
	put(json, "mean", phase->mean_s);
	put(json, "p50", phase->p50_s);
	put(json, "p95", phase->p95_s);
	put(json, "total", phase->total_s);
	return json;
}

static json_t *phases_json(const struct phases *p)
{
	size_t order[PHASES_MAX], n = phases_in_order(p, order);
	json_t *json = json_array();
	for (size_t i = 0; i < n; i++) {
		json_array_append_new(json, phase_json(&p->items[order[i]], order[i]));
	}
	return json;
}

static json_t *epochs_json(const struct analysis *a)
{
	const struct phases *p = &a->phases;
	size_t order[PHASES_MAX], n = phases_in_order(p, order);
	json_t *json = json_array();
	for (size_t i = 0; i < p->n_epochs && i < MOST_EPOCHS; i++) {
		const struct epoch_phases *epoch = &p->epochs[i];
		json_t *row = json_object(), *seconds = json_array();
		for (size_t k = 0; k < n; k++) {
			json_array_append_new(seconds, page_number(epoch->phase_s[order[k]]));
		}
		json_object_set_new(row, "name",
			page_format("epoch %lld", (long long)a->epochs.items[i].number));
		put(row, "start", (double)a->epochs.items[i].start_ns / 1e9);
		put(row, "seconds", epoch->seconds);
		put(row, "iterations", (double)epoch->iterations);
		put(row, "rate", epoch->samples_per_s);
		put(row, "outside", epoch->outside_s + epoch->unrecorded_s);
		json_object_set_new(row, "phases", seconds);
		json_array_append_new(json, row);
	}
	return json;
}

// The distribution --------------------------------------------------------------------------------

static bool counts(const struct iteration *iteration)
{
	return !iteration->warm_up && !iteration->cut;
}

// Bars of equal width up to `end`, and one for what is beyond.
static json_t *histogram_json(const struct phases *p)
{
	double bars[HISTOGRAM_BINS_MAX] = {0}, beyond = 0;
	double end = p->max_s > TAIL_FROM * p->p95_s ? TAIL_FROM * p->p95_s : p->max_s;
	double wanted = sqrt((double)p->steady) + 1;
	size_t n = wanted < 8                    ? 8
	           : wanted > HISTOGRAM_BINS_MAX ? HISTOGRAM_BINS_MAX
	                                         : (size_t)wanted;
	// From 0 where the shortest are near it: else small differences look large.
	double start = p->min_s < end / 4 ? 0 : p->min_s;
	double width = (end - start) / (double)n;
	if (!(width > end * 1e-3)) { // all are alike
		width = end * 1e-3;
	}
	for (size_t i = 0; i < p->n_iterations; i++) {
		if (!counts(&p->iterations[i])) {
			continue;
		}
		double at = ((double)p->iterations[i].length_ns / 1e9 - start) / width;
		if (at <= (double)n) {
			size_t bar = at < 0 ? 0 : at < (double)n ? (size_t)at : n - 1;
			bars[bar] += (double)p->stride;
		} else {
			beyond += (double)p->stride;
		}
	}
	json_t *json = json_object(), *list = json_array();
	for (size_t i = 0; i < n; i++) {
		json_array_append_new(list, page_number(bars[i]));
	}
	put(json, "start", start);
	put(json, "width", width);
	json_object_set_new(json, "bars", list);
	put(json, "beyond", beyond);
	return json;
}

// Slow ones, workers ------------------------------------------------------------------------------

static json_t *slow_json(const struct analysis *a, const struct slow_iteration *slow)
{
	const struct iteration *iteration = &slow->iteration;
	json_t *json = json_object();
	_cleanup_text_ struct text why = {0};
	slow_iteration_append_why(&why, slow);
	put(json, "start", (double)iteration->start_ns / 1e9);
	put(json, "end", (double)iteration->end_ns / 1e9);
	put(json, "length", (double)iteration->length_ns / 1e9);
	put_count(json, "epoch",
		iteration->epoch >= 0 ? a->epochs.items[iteration->epoch].number : -1);
	put_count(json, "number", iteration->number);
	json_object_set_new(json, "why", page_string(why.data));
	return json;
}

static json_t *slowest_json(const struct analysis *a)
{
	json_t *json = json_array();
	for (size_t i = 0; i < a->phases.n_slowest; i++) {
		json_array_append_new(json, slow_json(a, &a->phases.slowest[i]));
	}
	return json;
}

// What a rank's mean iteration was spent on: also what the main one never was in.
static json_t *rank_phases_json(const struct phases *p, const struct phase_rank *rank)
{
	json_t *json = json_array();
	for (size_t i = 0; i < p->n; i++) {
		size_t phase = i + 1 < p->n ? i + 1 : PHASE_OTHER; // what is in none last
		if (rank->phase_s[phase] > 0 && !p->items[phase].apart) {
			json_t *part = json_object();
			json_object_set_new(part, "name", page_string(p->items[phase].name));
			json_object_set_new(part, "hue", json_integer(hue_of(phase)));
			put(part, "seconds", rank->phase_s[phase] / (double)rank->iterations);
			json_array_append_new(json, part);
		}
	}
	return json;
}

// By number, at most as many as a person looks through.
static json_t *ranks_json(const struct phases *p)
{
	json_t *json = json_array();
	for (size_t number = 0; number < p->n_ranks && number < MOST_RANKS; number++) {
		const struct phase_rank *rank = p->ranks;
		while (rank->number != (int)number) {
			rank++;
		}
		json_t *row = json_object();
		json_object_set_new(row, "name", page_format("rank %d", rank->number));
		json_object_set_new(row, "leads", json_boolean(rank == p->ranks));
		json_object_set_new(row, "slowest", json_boolean(rank->slowest));
		put(row, "iterations", (double)rank->iterations);
		put(row, "p50", rank->p50_s);
		put(row, "rate", rank->samples_per_s);
		put(row, "waits", rank->waits);
		json_object_set_new(row, "phases", rank_phases_json(p, rank));
		json_array_append_new(json, row);
	}
	return json;
}

static json_t *own_json(const struct own_span *span, bool first)
{
	json_t *json = json_object();
	json_object_set_new(json, "name", page_string(span->name));
	json_object_set_new(json, "depth", json_integer((json_int_t)span->depth));
	json_object_set_new(json, "first", json_boolean(first));
	json_object_set_new(json, "inside", json_boolean(span->inside));
	json_object_set_new(json, "threads", json_integer((json_int_t)span->threads));
	put(json, "count", (double)span->count);
	put(json, "p50", span->p50_s);
	put(json, "max", span->max_s);
	put(json, "total", span->total_s);
	put(json, "share", span->share);
	return json;
}

json_t *page_own_spans(const struct phases *p)
{
	_cleanup_free_ bool *first = calloc(p->n_own + 1, sizeof(*first));
	json_t *json = json_array();
	if (!first || own_spans_longest(p, OWN_AT_FIRST, first) < 0) {
		return json;
	}
	for (size_t i = 0; i < p->n_own; i++) {
		json_array_append_new(json, own_json(&p->own[i], first[i]));
	}
	return json;
}

json_t *page_iterations(const struct analysis *a)
{
	const struct phases *p = &a->phases;
	if (p->total == 0 && p->phases_missing) {
		return json_null();
	}
	json_t *json = json_object();
	put(json, "count", (double)p->total);
	put(json, "steady", (double)p->steady);
	put(json, "warm_up", (double)p->warm_up);
	put(json, "mean", p->length_s.value);
	put(json, "low", p->length_s.low);
	put(json, "high", p->length_s.high);
	put(json, "p50", p->p50_s);
	put(json, "p95", p->p95_s);
	put(json, "p99", p->p99_s);
	put(json, "max", p->max_s);
	put(json, "rate", p->samples_per_s.value);
	put(json, "rate_low", p->samples_per_s.low);
	put(json, "rate_high", p->samples_per_s.high);
	json_object_set_new(json, "missing", page_string(p->missing));
	json_object_set_new(json, "phases_missing", page_string(p->phases_missing));
	json_object_set_new(json, "incomplete", page_string(p->incomplete));
	json_object_set_new(json, "phases", phases_json(p));
	json_object_set_new(json, "epochs", epochs_json(a));
	json_object_set_new(json, "ranks", p->n_ranks > 1 ? ranks_json(p) : json_array());
	json_object_set_new(json, "histogram", p->steady > 0 ? histogram_json(p) : json_null());
	json_object_set_new(json, "slowest", slowest_json(a));
	return json;
}

// Panels ------------------------------------------------------------------------------------------

static json_t *panel_json(const char *kind, const char *title, const char *unit, const char *help)
{
	json_t *json = json_object();
	json_object_set_new(json, "kind", json_string(kind));
	json_object_set_new(json, "title", json_string(title));
	json_object_set_new(json, "unit", json_string(unit));
	json_object_set_new(json, "help", json_string(help));
	json_object_set_new(json, "floor", json_null());
	json_object_set_new(json, "ceiling", strcmp(unit, "1") == 0 ? json_real(1) : json_null());
	json_object_set_new(json, "limits", json_array());
	return json;
}

static size_t place_of(size_t index, const size_t *places, size_t n)
{
	size_t place = 0;
	while (place < n && places[place] != index) {
		place++;
	}
	return place;
}

static json_t *detail_json(const struct detail_window *window, const struct lane_detail *detail,
	const size_t *places, size_t n_places)
{
	json_t *json = json_object(), *pieces = json_array();
	for (size_t k = 0; k < detail->n; k++) {
		const struct lane_piece *piece = &detail->pieces[k];
		size_t place = place_of(piece->place, places, n_places);
		const int64_t numbers[] = {(int64_t)place, piece->from_ns / 1000 - window->from_us,
			piece->to_ns / 1000 - window->from_us};
		for (size_t i = 0; i < ARRAY_LENGTH(numbers) && place < n_places; i++) {
			json_array_append_new(pieces, json_integer(numbers[i]));
		}
	}
	put(json, "from", (double)window->from_us / 1e6);
	put(json, "to", (double)window->to_us / 1e6);
	json_object_set_new(json, "pieces", pieces);
	return json;
}

// The exact pieces of each window in which they are finer than the buckets: place in the panel's
// series, start and end in turn, in microseconds from the window's start.
static json_t *exact_json(const struct lane_list *lanes, const struct lane_detail *details,
	double bucket_s, const size_t *places, size_t n_places)
{
	json_t *json = json_array();
	for (size_t i = 0; i < lanes->n_windows; i++) {
		const struct detail_window *window = &lanes->windows[i];
		double length_s = (double)(window->to_us - window->from_us) / 1e6;
		if (details[i].n > 0 && details[i].n <= LANE_PIECES_MAX &&
			bucket_s > length_s / FINE_BUCKETS) {
			json_array_append_new(
				json, detail_json(window, &details[i], places, n_places));
		}
	}
	return json;
}

static json_t *lengths_panel(const struct analysis *a, const struct lane_list *lanes)
{
	json_t *json = panel_json("lines", "Iterations", "s",
		"How long each iteration took, where it ends. Dots: the slowest; press one to see "
		"it.");
	json_t *series = json_array(), *marks = json_array();
	json_t *lengths = page_series("one iteration", "from marks of the job", 0,
		&lanes->lengths.buckets, &lanes->lengths.packed);
	json_object_set_new(lengths, "details",
		page_details(lanes->lengths_details, lanes->windows, lanes->n_windows));
	json_array_append_new(series, lengths);
	for (size_t i = 0; i < a->phases.n_slowest; i++) {
		const struct iteration *iteration = &a->phases.slowest[i].iteration;
		json_t *mark = json_object();
		put(mark, "t", (double)iteration->end_ns / 1e9);
		put(mark, "start", (double)iteration->start_ns / 1e9);
		put(mark, "value", (double)iteration->length_ns / 1e9);
		json_array_append_new(marks, mark);
	}
	json_object_set_new(json, "series", series);
	json_object_set_new(json, "marks", marks);
	return json;
}

static json_t *phases_panel(const struct phases *p, const struct lane_list *lanes)
{
	size_t order[PHASES_MAX], n = phases_in_order(p, order), places[PHASES_MAX], n_places = 0;
	double bucket_s = 0;
	json_t *json = panel_json("stack", "Training thread", "1",
		"What the thread that trains spends its time on. Empty: in no iteration and no "
		"phase.");
	json_t *series = json_array();
	for (size_t i = 0; i < n; i++) {
		const struct lane_series *lane = &lanes->phases[order[i]];
		if (lane->buckets.n > 0) {
			places[n_places++] = order[i];
			bucket_s = buckets_width_s(&lane->buckets);
			json_array_append_new(series,
				page_series(p->items[order[i]].name, "from marks of the job",
					hue_of(order[i]), &lane->buckets, &lane->packed));
		}
	}
	json_object_set_new(json, "series", series);
	json_object_set_new(
		json, "exact", exact_json(lanes, lanes->phase_details, bucket_s, places, n_places));
	return json;
}

// By their numbers, where they have any.
static void rows_in_order(const struct lane_row *rows, size_t n, size_t order[static LANE_ROWS_MAX])
{
	for (size_t i = 0; i < n; i++) {
		size_t place = i;
		while (place > 0 && rows[order[place - 1]].number > rows[i].number) {
			order[place] = order[place - 1];
			place--;
		}
		order[place] = i;
	}
}

static json_t *row_json(const struct lane_row *row, unsigned hue)
{
	_cleanup_text_ struct text label = {0};
	text_append_string(&label, row->label ? row->label : "");
	if (row->in_turn > 1) {
		text_format(&label, ", %zu in turn", row->in_turn);
	}
	return page_series(label.data, "from marks of the job", hue, &row->series.buckets,
		&row->series.packed);
}

// A row for each of those that did the same kind of work side by side.
static void add_rows(json_t *panel, const struct lane_list *lanes, const struct lane_row *rows,
	size_t n, const struct lane_detail *details, unsigned hue)
{
	json_t *series = json_array();
	size_t places[LANE_ROWS_MAX];
	rows_in_order(rows, n, places);
	for (size_t i = 0; i < n; i++) {
		json_array_append_new(series, row_json(&rows[places[i]], hue));
	}
	json_object_set_new(panel, "series", series);
	json_object_set_new(panel, "exact",
		exact_json(lanes, details, buckets_width_s(&rows[0].series.buckets), places, n));
}

static json_t *workers_panel(const struct lane_list *lanes)
{
	json_t *json = panel_json("lanes", "Loader workers", "1",
		"When each worker prepares a batch: the darker, the more of the time.");
	json_object_set_new(json, "verb", json_string("prepare"));
	add_rows(json, lanes, lanes->workers, lanes->n_workers, lanes->worker_details,
		known_hues[PHASE_DATA]);
	return json;
}

static json_t *ranks_panel(const struct phases *p, const struct lane_list *lanes)
{
	json_t *json = panel_json("lanes", "Ranks", "1",
		p->waits_inferred
			? "When each rank is in an iteration: the darker, the more of the time. "
			  "What it waits for the others is in its backward passes, unmarked."
			: "When each rank does its own work, and does not wait for the others: the "
			  "darker, the more of the time.");
	json_object_set_new(json, "verb", json_string("work"));
	add_rows(json, lanes, lanes->ranks, lanes->n_ranks, lanes->rank_details,
		known_hues[PHASE_FORWARD]);
	return json;
}

void page_add_lanes(json_t *panels, const struct analysis *a, const struct lane_list *lanes)
{
	size_t at = 0;
	if (lanes->lengths.buckets.n > 0) {
		json_array_insert_new(panels, at++, lengths_panel(a, lanes));
	}
	if (!a->phases.phases_missing) {
		json_array_insert_new(panels, at++, phases_panel(&a->phases, lanes));
	}
	if (lanes->n_ranks > 0) {
		json_array_insert_new(panels, at++, ranks_panel(&a->phases, lanes));
	}
	if (lanes->n_workers > 0) {
		json_array_insert_new(panels, at++, workers_panel(lanes));
	}
}
