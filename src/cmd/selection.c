// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Selects runs by their labels and measures.

#include "cmd/selection.h"

#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/suggest.h"
#include "base/text.h"
#include "cmd/command.h"
#include "cmd/progress.h"
#include "cmd/reading.h"
#include "study/pivot.h"

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

// Ends the program if the value cannot be compared with the measure: the result would be empty and
// look valid.
static void check_condition(const struct condition *c, const struct argp_state *state)
{
	enum measure_id measure = measure_by_name(c->name);
	char *end;
	if (measure == MEASURE_OUTCOME) {
		_cleanup_text_ struct text word = {0};
		enum outcome outcome;
		text_append_string(&word, c->value);
		underscore(&word);
		if (word.data && !outcome_parse(word.data, &outcome)) {
			reading_option_error(state,
				"--where: outcome: expected success, stopped, out_of_memory, "
				"time_limit, crash, interrupted, skipped or refused, found "
				"'%s'",
				c->value);
		}
	} else if (measure < N_MEASURES && measure != MEASURE_VERDICT) {
		double bound = strtod(c->value, &end);
		if (end == c->value || *end || !isfinite(bound)) {
			reading_option_error(state,
				"--where: %s: expected a number (in seconds, bytes or as a ratio), "
				"found '%s'",
				c->name, c->value);
		}
	}
}

void selection_add(struct selection *s, const char *argument, const struct argp_state *state)
{
	if (s->n_where == WHERE_MAX) {
		reading_option_error(state, "--where: expected at most %d conditions", WHERE_MAX);
	}
	if (!parse_condition(argument, &s->where[s->n_where])) {
		reading_option_error(state, "--where: expected LABEL=VALUE, found '%s'", argument);
	}
	check_condition(&s->where[s->n_where], state);
	s->n_where++;
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

static void say_line(const char *line)
{
	command_note("%s", line);
}

// The text after the path in "PATH: TEXT".
static const char *said_of(const char *line)
{
	const char *colon = strstr(line, ": ");
	return colon ? colon + 2 : line;
}

static bool was_said(char *const *lines, size_t i)
{
	for (size_t k = 0; k < i; k++) {
		if (strcmp(said_of(lines[k]), said_of(lines[i])) == 0) {
			return true;
		}
	}
	return false;
}

// Prints lines "PATH: TEXT"; equal texts once: "3 runs: TEXT (a.strain, b.strain, ...)".
static void say_grouped(char *const *lines, size_t n)
{
	enum { NAMED = 3 };
	for (size_t i = 0; i < n; i++) {
		_cleanup_text_ struct text names = {0}, line = {0};
		size_t same = 0;
		if (was_said(lines, i)) {
			continue;
		}
		for (size_t k = i; k < n; k++) {
			const char *what = said_of(lines[k]);
			if (strcmp(what, said_of(lines[i])) == 0 && same++ < NAMED) {
				text_append_string(&names, same > 1 ? ", " : "");
				text_append(&names, lines[k],
					what > lines[k] ? (size_t)(what - lines[k]) - 2 : 0);
			}
		}
		text_format(&line, "%zu runs: %s (%s%s)", same, said_of(lines[i]),
			names.data ? names.data : "", same > NAMED ? ", ..." : "");
		say_line(same > 1 && line.data ? line.data : lines[i]);
	}
}

int selection_read(
	char *const *paths, size_t n, const struct catalogue_options *wanted, struct catalogue *ret)
{
	struct error e = {0};
	struct progress_of_runs progress;
	struct catalogue_options options = *wanted;
	options.progressed = progress_of_runs;
	options.context = &progress;
	progress_of_runs_start(&progress);
	int r = catalogue_read_with(paths, n, &options, ret, &e);
	progress_of_runs_end(&progress);
	if (r < 0) {
		say_line(e.text);
		return STATUS_FAILURE;
	}
	say_grouped(ret->unreadable, ret->n_unreadable);
	say_grouped(ret->notices, ret->n_notices);
	return STATUS_OK;
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

void selection_say_unknown(
	const struct catalogue *c, const char *option, const char *name, bool measures_too)
{
	struct names names = {0};
	size_t labels = list_names(&names, c, measures_too);
	struct suggestion_of_word suggestion = SUGGEST_NONE;
	for (size_t i = 0; i < names.n; i++) {
		suggest_consider(&suggestion, name, names.items[i]);
	}
	const char *nearest = suggestion.word;
	struct text line = {0};
	text_format(&line, "%s: no run has a label '%s'%s", option, name,
		measures_too ? ", and no measure has that name" : "");
	if (nearest) {
		text_format(&line, "; did you mean '%s'?", nearest);
	}
	text_append_string(&line, labels ? nearest ? " The labels are: " : "; the labels are: " : "");
	for (size_t i = 0; i < labels; i++) {
		text_format(&line, "%s%s", i ? ", " : "", names.items[i]);
	}
	text_append_string(
		&line, measures_too ? "; 'strain compare --value help' lists measures" : "");
	say_line(line.data ? line.data : "");
	text_done(&line);
	free(names.items);
}

bool selection_is_known(const struct selection *s, const struct catalogue *c)
{
	struct names names = {0};
	list_names(&names, c, true);
	bool known = true;
	for (size_t i = 0; i < s->n_where && known && c->n > 0; i++) {
		const char *name = s->where[i].name;
		known = strcmp(name, "machine") == 0 || names_have(&names, name);
		if (!known) {
			selection_say_unknown(c, "--where", name, true);
		}
	}
	free(names.items);
	return known;
}
