// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Pivots for programs: a record for each cell that has runs, numbers in base units.

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "render/csv.h"
#include "render/json.h"
#include "render/pivot_write.h"

struct place {
	const struct pivot *p;
	size_t row;
	size_t column;
	size_t value;
	const struct pivot_cell *cell;
};

// Calls `each` for every cell that has runs.
static void each_cell(const struct pivot *p, void (*each)(void *context, const struct place *place),
	void *context)
{
	for (size_t row = 0; row < p->rows.n; row++) {
		for (size_t column = 0; column < p->columns.n; column++) {
			for (size_t v = 0; v < p->n_values; v++) {
				const struct pivot_cell *cell = pivot_at(p, row, column, v);
				if (cell->n_runs > 0) {
					each(context, &(struct place){p, row, column, v, cell});
				}
			}
		}
	}
}

static double low_of(const struct repeats *r)
{
	return r->mean - r->half;
}

static double high_of(const struct repeats *r)
{
	return r->mean + r->half;
}

static const char *note_of(const struct place *place)
{
	return place->cell->note ? place->p->notes[place->cell->note - 1] : NULL;
}

static bool is_speed(const struct place *place)
{
	return measure_is_speed(place->p->values[place->value].measure);
}

static double speed_up_of(const struct place *place)
{
	return is_speed(place) ? place->cell->against : NAN;
}

static double ratio_of(const struct place *place)
{
	return is_speed(place) ? NAN : place->cell->against;
}

// --- CSV

static void append_labels(struct text *t, const struct pivot_axis *axis, size_t key, bool names)
{
	for (size_t i = 0; i < axis->n_labels; i++) {
		csv_append_text(t, names ? axis->labels[i] : pivot_key(axis, key, i));
		text_append_string(t, ",");
	}
}

static void append_record(void *context, const struct place *place)
{
	struct text *t = context;
	const struct pivot_value *value = &place->p->values[place->value];
	const struct pivot_cell *cell = place->cell;
	struct text failures = {0};
	pivot_append_failures(&failures, cell);
	append_labels(t, &place->p->rows, place->row, false);
	append_labels(t, &place->p->columns, place->column, false);
	csv_append_text(t, value->name);
	text_append_string(t, ",");
	csv_append_text(t, value->unit);
	text_format(t, ",%zu,%zu,", cell->n_runs, cell->repeats.n);
	const double numbers[] = {cell->repeats.mean, low_of(&cell->repeats),
		high_of(&cell->repeats), cell->repeats.deviation, speed_up_of(place),
		ratio_of(place), cell->probability};
	for (size_t i = 0; i < ARRAY_LENGTH(numbers); i++) {
		csv_append_number(t, numbers[i]);
		text_append_string(t, ",");
	}
	text_append_string(t, isnan(cell->probability) ? "," : cell->beyond_noise ? "1," : "0,");
	text_append_string(t, !place->p->baseline ? "" : cell->is_baseline ? "1" : "0");
	const char *const words[] = {cell->words, failures.data, note_of(place)};
	for (size_t i = 0; i < ARRAY_LENGTH(words); i++) {
		text_append_string(t, ",");
		csv_append_text(t, words[i]);
	}
	text_append_string(t, "\n");
	text_done(&failures);
}

int pivot_write_csv(const struct pivot *p, FILE *stream)
{
	_cleanup_text_ struct text t = {0};
	append_labels(&t, &p->rows, 0, true);
	append_labels(&t, &p->columns, 0, true);
	text_append_string(&t, "measure,unit,runs,n,mean,low,high,deviation,speed_up,"
			       "ratio,probability,beyond_noise,is_baseline,words,failed,note\n");
	each_cell(p, append_record, &t);
	if (t.failed) {
		return -ENOMEM;
	}
	csv_print(t.data, t.length, stream);
	return fflush(stream) == 0 && !ferror(stream) ? 0 : -(errno ? errno : EIO);
}

// --- JSON

static void put_labels(json_t *labels, const struct pivot_axis *axis, size_t key)
{
	for (size_t i = 0; i < axis->n_labels; i++) {
		struct text name = {0};
		text_append_utf8(&name, axis->labels[i], strlen(axis->labels[i]));
		json_object_set_new(labels, name.data ? name.data : "",
			json_from_text(pivot_key(axis, key, i)));
		text_done(&name);
	}
}

static json_t *outcomes_json(const struct pivot_cell *cell)
{
	json_t *outcomes = json_object();
	for (size_t i = 0; i < N_OUTCOMES; i++) {
		if (cell->outcomes[i]) {
			json_object_set_new(outcomes, outcome_word((enum outcome)i),
				json_integer((json_int_t)cell->outcomes[i]));
		}
	}
	return outcomes;
}

static void add_object(void *context, const struct place *place)
{
	const struct pivot_cell *cell = place->cell;
	const struct repeats *r = &cell->repeats;
	const struct pivot_value *value = &place->p->values[place->value];
	json_t *object = json_object(), *labels = json_object();
	put_labels(labels, &place->p->rows, place->row);
	put_labels(labels, &place->p->columns, place->column);
	json_object_set_new(object, "labels", labels);
	json_object_set_new(object, "measure", json_from_text(value->name));
	json_object_set_new(object, "runs", json_integer((json_int_t)cell->n_runs));
	json_object_set_new(object, "outcomes", outcomes_json(cell));
	if (value->kind == MEASURE_KIND_WORDS) {
		json_object_set_new(object, "words", json_from_text(cell->words));
	} else {
		const struct {
			const char *name;
			double number;
		} numbers[] = {{"mean", r->mean}, {"low", low_of(r)}, {"high", high_of(r)},
			{"deviation", r->deviation}, {"speed_up", speed_up_of(place)},
			{"ratio", ratio_of(place)}, {"probability", cell->probability}};
		json_object_set_new(object, "n", json_integer((json_int_t)r->n));
		for (size_t i = 0; i < ARRAY_LENGTH(numbers); i++) {
			json_object_set_new(
				object, numbers[i].name, json_from_number(numbers[i].number));
		}
		json_object_set_new(object, "beyond_noise",
			isnan(cell->probability) ? json_null() : json_boolean(cell->beyond_noise));
		json_object_set_new(object, "is_baseline", json_boolean(cell->is_baseline));
	}
	json_object_set_new(object, "note", json_from_text(note_of(place)));
	json_array_append_new(context, object);
}

static json_t *names_json(const struct pivot_axis *axis)
{
	json_t *names = json_array();
	for (size_t i = 0; i < axis->n_labels; i++) {
		json_array_append_new(names, json_from_text(axis->labels[i]));
	}
	return names;
}

static json_t *values_json(const struct pivot *p)
{
	static const char *const better[] = {
		[BETTER_NEITHER] = NULL, [BETTER_LESS] = "less", [BETTER_MORE] = "more"};
	json_t *values = json_array();
	for (size_t i = 0; i < p->n_values; i++) {
		const struct pivot_value *value = &p->values[i];
		json_t *object = json_object();
		json_object_set_new(object, "name", json_from_text(value->name));
		json_object_set_new(object, "title", json_from_text(value->title));
		json_object_set_new(object, "unit", json_from_text(value->unit));
		json_object_set_new(object, "better", json_from_text(better[value->better]));
		json_array_append_new(values, object);
	}
	return values;
}

// By the labels of the columns, numbers in full.
static json_t *ranking_json(const struct pivot *p)
{
	const struct pivot_ranking *ranking = &p->ranking;
	if (ranking->n == 0) {
		return json_null();
	}
	json_t *json = json_object(), *fastest = json_object(), *others = json_array();
	put_labels(fastest, &p->columns, ranking->fastest);
	json_object_set_new(json, "measure", json_from_text(p->values[ranking->value].name));
	json_object_set_new(json, "fastest", fastest);
	for (size_t i = 0; i < ranking->n; i++) {
		const struct pivot_ratio *ratio = &ranking->others[i];
		json_t *object = json_object(), *than = json_object();
		put_labels(than, &p->columns, ratio->column);
		json_object_set_new(object, "than", than);
		json_object_set_new(object, "times", json_from_number(ratio->times));
		json_object_set_new(
			object, "low", json_from_number(ratio->times / exp(ratio->half)));
		json_object_set_new(
			object, "high", json_from_number(ratio->times * exp(ratio->half)));
		json_array_append_new(others, object);
	}
	json_object_set_new(json, "times_as_fast", others);
	return json;
}

static json_t *warnings_json(const struct pivot *p)
{
	json_t *warnings = json_array();
	for (size_t i = 0; i < p->n_warnings; i++) {
		json_array_append_new(warnings, json_from_text(p->warnings[i]));
	}
	return warnings;
}

int pivot_write_json(const struct pivot *p, FILE *stream)
{
	json_t *json = json_object(), *cells = json_array();
	each_cell(p, add_object, cells);
	json_object_set_new(json, "rows", names_json(&p->rows));
	json_object_set_new(json, "columns", names_json(&p->columns));
	json_object_set_new(json, "measures", values_json(p));
	json_object_set_new(json, "baseline", json_from_text(p->baseline));
	json_object_set_new(json, "baseline_from", json_from_text(p->baseline_from));
	json_object_set_new(json, "test", json_from_text(p->n_tests ? STATISTICS_TEST : NULL));
	json_object_set_new(json, "tests", json_integer((json_int_t)p->n_tests));
	json_object_set_new(json, "level", json_from_number(STATISTICS_LEVEL));
	json_object_set_new(json, "unranked", json_from_text(p->unranked));
	json_object_set_new(json, "ranking", ranking_json(p));
	json_object_set_new(json, "warnings", warnings_json(p));
	json_object_set_new(json, "cells", cells);
	return json_write(json, stream);
}
