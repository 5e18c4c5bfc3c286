// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Selects runs by their labels and measures.

#include "study/selection.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/suggest.h"
#include "base/text.h"
#include "study/run_table.h"

// Longer ones first.
static const struct {
	const char *mark;
	enum condition_kind kind;
} marks[] = {
	{"!=", WHERE_IS_NOT},
	{"<=", WHERE_AT_MOST},
	{">=", WHERE_AT_LEAST},
	{"=", WHERE_IS},
	{"<", WHERE_LESS},
	{">", WHERE_MORE},
};

static bool parse_condition(const char *argument, struct condition *ret)
{
	size_t length = strcspn(argument, "=<>!");
	for (size_t i = 0; length > 0 && i < ARRAY_LENGTH(marks); i++) {
		size_t n = strlen(marks[i].mark);
		if (strncmp(argument + length, marks[i].mark, n) == 0) {
			*ret = (struct condition){.name = strndup(argument, length),
				.kind = marks[i].kind,
				.value = argument + length + n};
			return ret->name;
		}
	}
	return false;
}

static void underscore(struct text *t)
{
	for (size_t i = 0; t->data && i < t->length; i++) {
		t->data[i] = t->data[i] == ' ' ? '_' : t->data[i];
	}
}

// A value that cannot be compared with the measure is an error: the result would be empty and look
// valid.
static int check_condition(const struct condition *c, struct error *e)
{
	enum measure_id measure = measure_by_name(c->name);
	char *end;
	if (measure == MEASURE_OUTCOME) {
		_cleanup_text_ struct text word = {0};
		enum outcome outcome;
		text_append_string(&word, c->value);
		underscore(&word);
		if (word.data && !outcome_parse(word.data, &outcome)) {
			_cleanup_text_ struct text words = {0};
			outcome_append_words(&words);
			return error_set(e, EINVAL, "outcome: expected %s, found '%s'",
				words.data ? words.data : "a known word", c->value);
		}
	} else if (measure < N_MEASURES && measure != MEASURE_VERDICT) {
		double bound = strtod(c->value, &end);
		if (end == c->value || *end || !isfinite(bound)) {
			return error_set(e, EINVAL,
				"%s: expected a number (in seconds, bytes or as a ratio), found "
				"'%s'",
				c->name, c->value);
		}
	}
	return 0;
}

int selection_add(struct selection *s, const char *argument, struct error *e)
{
	if (s->n_where == WHERE_MAX) {
		return error_set(e, EINVAL, "expected at most %d conditions", WHERE_MAX);
	}
	struct condition *c = &s->where[s->n_where];
	if (!parse_condition(argument, c)) {
		return error_set(e, EINVAL, "expected LABEL=VALUE, found '%s'", argument);
	}
	s->n_where++;
	return check_condition(c, e);
}

void selection_done(struct selection *s)
{
	for (size_t i = 0; i < s->n_where; i++) {
		free(s->where[i].name);
	}
	s->n_where = 0;
}

static bool holds(enum condition_kind kind, int order)
{
	return kind == WHERE_IS        ? order == 0
	       : kind == WHERE_IS_NOT  ? order != 0
	       : kind == WHERE_LESS    ? order < 0
	       : kind == WHERE_AT_MOST ? order <= 0
	       : kind == WHERE_MORE    ? order > 0
	                               : order >= 0;
}

static bool measure_holds(const struct condition *c, double value)
{
	char *end;
	double bound = strtod(c->value, &end);
	return isfinite(value) && end != c->value && !*end &&
	       holds(c->kind, (value > bound) - (value < bound));
}

// Accepts "out of memory" for "out_of_memory".
static bool words_hold(const struct condition *c, const char *words)
{
	struct text value = {0};
	text_append_string(&value, c->value);
	underscore(&value);
	int order = strcmp(words, value.data ? value.data : "");
	text_done(&value);
	return holds(c->kind, order);
}

static bool condition_holds(const struct condition *c, const struct digest *run)
{
	const char *label = digest_label(run, c->name);
	enum measure_id measure = measure_by_name(c->name);
	if (label) {
		return holds(c->kind, run_table_compare(label, c->value));
	}
	if (measure == MEASURE_OUTCOME || measure == MEASURE_VERDICT) {
		return words_hold(
			c, measure == MEASURE_OUTCOME ? outcome_word(run->outcome) : run->verdict);
	}
	return measure < N_MEASURES ? measure_holds(c, run->measures[measure])
	                            : c->kind == WHERE_IS_NOT;
}

bool selection_has(const struct selection *s, const struct digest *run)
{
	for (size_t i = 0; i < s->n_where; i++) {
		if (!condition_holds(&s->where[i], run)) {
			return false;
		}
	}
	return true;
}

bool selection_needs_all(const struct selection *s)
{
	for (size_t i = 0; i < s->n_where; i++) {
		enum measure_id measure = measure_by_name(s->where[i].name);
		if (measure < N_MEASURES && !measures[measure].job_only) {
			return true;
		}
	}
	return false;
}

static bool any_has_label(const struct catalogue *c, const char *name)
{
	for (size_t i = 0; i < c->n; i++) {
		if (digest_label(&c->runs[i], name)) {
			return true;
		}
	}
	return false;
}

const char *selection_needs_prices(const struct selection *s, const struct catalogue *c)
{
	for (size_t i = 0; i < s->n_where; i++) {
		enum measure_id measure = measure_by_name(s->where[i].name);
		if (measure < N_MEASURES && measure_is_priced(measure) &&
			!any_has_label(c, s->where[i].name)) {
			return s->where[i].name;
		}
	}
	return NULL;
}

// --- the selected runs

// By the path that found them, then the oldest first; the catalogue has the newest first.
static int compare_found(const void *left, const void *right)
{
	const struct digest *a = *(const struct digest *const *)left;
	const struct digest *b = *(const struct digest *const *)right;
	int order = (a->found_by > b->found_by) - (a->found_by < b->found_by);
	return order ? order : (a < b) - (a > b);
}

int selected_find(const struct selection *s, const struct catalogue *c, char *const *paths,
	struct selected *ret)
{
	*ret = (struct selected){.runs = calloc(c->n + 1, sizeof(void *)),
		.sources = calloc(c->n + 1, sizeof(void *))};
	if (!ret->runs || !ret->sources) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < c->n; i++) {
		if (selection_has(s, &c->runs[i])) {
			ret->runs[ret->n++] = &c->runs[i];
		}
	}
	qsort(ret->runs, ret->n, sizeof(void *), compare_found);
	for (size_t i = 0; i < ret->n; i++) {
		ret->sources[i] = paths[ret->runs[i]->found_by];
	}
	return 0;
}

void selected_done(struct selected *selected)
{
	free(selected->runs);
	free(selected->sources);
}

// --- names

struct names {
	const char **items;
	size_t n;
};

static bool names_have(const struct names *names, const char *name)
{
	for (size_t i = 0; i < names->n; i++) {
		if (strcmp(names->items[i], name) == 0) {
			return true;
		}
	}
	return false;
}

static void names_add(struct names *names, const char *name)
{
	const char **grown = names_have(names, name)
	                             ? NULL
	                             : realloc(names->items, (names->n + 1) * sizeof(*grown));
	if (grown) {
		names->items = grown;
		grown[names->n++] = name;
	}
}

static int compare_names(const void *left, const void *right)
{
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

// Labels, sorted, then measures. Returns the number of labels.
static size_t list_names(struct names *names, const struct catalogue *c, bool measures_too)
{
	for (size_t i = 0; i < c->n; i++) {
		for (size_t k = 0; k < c->runs[i].n_labels; k++) {
			names_add(names, c->runs[i].labels[k].name);
		}
	}
	if (names->n > 0) {
		qsort(names->items, names->n, sizeof(*names->items), compare_names);
	}
	size_t labels = names->n;
	for (size_t i = 0; measures_too && i < N_MEASURES; i++) {
		names_add(names, measures[i].name);
	}
	return labels;
}

void selection_append_unknown(struct text *line, const struct catalogue *c, const char *option,
	const char *name, bool measures_too)
{
	struct names names = {0};
	size_t labels = list_names(&names, c, measures_too);
	struct suggestion_of_word suggestion = SUGGEST_NONE;
	for (size_t i = 0; i < names.n; i++) {
		suggest_consider(&suggestion, name, names.items[i]);
	}
	const char *nearest = suggestion.word;
	text_format(line,
		measures_too ? "%s: '%s' is neither a label of these runs nor a measure"
			     : "%s: no run has a label '%s'",
		option, name);
	if (nearest) {
		text_format(line, "; did you mean '%s'?", nearest);
	}
	text_append_string(
		line, labels ? nearest ? " The labels are: " : "; the labels are: " : "");
	for (size_t i = 0; i < labels; i++) {
		text_format(line, "%s%s", i ? ", " : "", names.items[i]);
	}
	text_append_string(
		line, measures_too ? "; 'strain compare --value help' lists measures" : "");
	free(names.items);
}

const char *selection_unknown_name(const struct selection *s, const struct catalogue *c)
{
	struct names names = {0};
	const char *unknown = NULL;
	list_names(&names, c, true);
	for (size_t i = 0; i < s->n_where && !unknown && c->n > 0; i++) {
		const char *name = s->where[i].name;
		bool known = strcmp(name, "machine") == 0 || names_have(&names, name);
		unknown = known ? NULL : name;
	}
	free(names.items);
	return unknown;
}
