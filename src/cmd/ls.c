// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// strain ls: the runs of a directory, and its sweeps, a line each.

#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/command.h"
#include "cmd/ls_table.h"
#include "cmd/reading.h"
#include "cmd/selection.h"
#include "render/pivot.h"

struct ls_options {
	char *directory; // of argv; NULL: where runs usually are
	struct selection selection;
	const char *sort;
	enum measure_id measure; // that it sorts by; N_MEASURES: none
	bool reverse;
	bool json;
};

// --- order

typedef int run_order(const struct listed *a, const struct listed *b);

static int order_numbers(double a, double b) // the largest first, what is not known last
{
	if (isfinite(a) != isfinite(b)) {
		return isfinite(a) ? -1 : 1;
	}
	return isfinite(a) ? (a < b) - (a > b) : 0;
}

static double measure_of(const struct listed *l, enum measure_id measure)
{
	return l->trials ? NAN : l->run->measures[measure];
}

static const char *name_of(const struct listed *l)
{
	return l->trials ? l->run->sweep_directory : l->run->name;
}

static int by_start(const struct listed *a, const struct listed *b)
{
	return (a->start_utc_ns < b->start_utc_ns) - (a->start_utc_ns > b->start_utc_ns);
}

static int by_duration(const struct listed *a, const struct listed *b)
{
	return order_numbers(a->duration_s, b->duration_s);
}

static int by_name(const struct listed *a, const struct listed *b)
{
	return strcmp(name_of(a), name_of(b));
}

static int by_cpu(const struct listed *a, const struct listed *b)
{
	return order_numbers(measure_of(a, MEASURE_CPUS_USED), measure_of(b, MEASURE_CPUS_USED));
}

static int by_memory(const struct listed *a, const struct listed *b)
{
	return order_numbers(
		measure_of(a, MEASURE_HOST_MEMORY_PEAK), measure_of(b, MEASURE_HOST_MEMORY_PEAK));
}

static const struct {
	const char *name;
	run_order *compare;
} orders[] = {
	{"start", by_start},
	{"duration", by_duration},
	{"name", by_name},
	{"cpu", by_cpu},
	{"memory", by_memory},
};

static const char *label_of(const struct listed *l, const char *label)
{
	return l->trials ? NULL : catalogue_label(l->run, label);
}

static int by_measure(const struct listed *a, const struct listed *b, enum measure_id measure)
{
	if (a->trials || b->trials) {
		return !!a->trials - !!b->trials;
	}
	return measure == MEASURE_OUTCOME ? (int)a->run->outcome - (int)b->run->outcome
	       : measure == MEASURE_VERDICT
	               ? strcmp(a->run->verdict, b->run->verdict)
	               : order_numbers(a->run->measures[measure], b->run->measures[measure]);
}

static run_order *order_by(const char *key)
{
	for (size_t i = 0; i < ARRAY_LENGTH(orders); i++) {
		if (strcmp(orders[i].name, key) == 0) {
			return orders[i].compare;
		}
	}
	return NULL;
}

static bool any_has_label(const struct listing *l, const char *label)
{
	for (size_t i = 0; i < l->n; i++) {
		if (label_of(&l->items[i], label)) {
			return true;
		}
	}
	return false;
}

// Whether a key orders the runs at all: a mistyped one does not.
static bool is_key(const struct listing *l, const struct ls_options *options)
{
	return l->n == 0 || order_by(options->sort) || options->measure < N_MEASURES ||
	       any_has_label(l, options->sort);
}

static int compare_listed(const void *left, const void *right, void *context)
{
	const struct ls_options *options = context;
	const struct listed *a = left, *b = right;
	run_order *compare = order_by(options->sort);
	int order = compare ? compare(a, b)
	            : options->measure < N_MEASURES
	                    ? by_measure(a, b, options->measure)
	                    : pivot_compare_labels(
				      label_of(a, options->sort), label_of(b, options->sort));
	if (order == 0) {
		return (a->place > b->place) - (a->place < b->place);
	}
	return options->reverse ? -order : order;
}

// --- runs and sweeps

static const struct catalogue_run **trials_of(
	struct listing *l, const struct catalogue_run *run, struct listed **ret)
{
	for (size_t i = l->n; i-- > 0;) {
		struct listed *item = &l->items[i];
		if (item->trials && strcmp(item->run->sweep_directory, run->sweep_directory) == 0) {
			*ret = item;
			return item->trials;
		}
	}
	return NULL;
}

static int add_trial(struct listing *l, const struct catalogue_run *run, size_t room)
{
	struct listed *sweep = NULL;
	if (!trials_of(l, run, &sweep)) {
		const struct catalogue_run **trials = calloc(room, sizeof(void *));
		if (!trials) {
			return -ENOMEM;
		}
		sweep = &l->items[l->n];
		*sweep = (struct listed){.run = run, .trials = trials, .place = l->n++};
	}
	sweep->trials[sweep->n_trials++] = run;
	sweep->run = run; // the newest come first: at last the first
	sweep->start_utc_ns = run->start_utc_ns;
	double duration = run->measures[MEASURE_DURATION];
	sweep->duration_s += isfinite(duration) ? duration : 0;
	return 0;
}

static bool is_inside(const struct catalogue_run *run, const char *directory)
{
	size_t length = strlen(directory);
	while (length > 1 && directory[length - 1] == '/') {
		length--;
	}
	const char *sweep = run->sweep_directory;
	return strncmp(sweep, directory, length) == 0 &&
	       strspn(sweep + length, "/") == strlen(sweep + length);
}

static int listing_fill(struct listing *l, const struct catalogue *c,
	const struct ls_options *options, const char *directory)
{
	l->items = calloc(c->n + 1, sizeof(*l->items));
	int r = l->items ? 0 : -ENOMEM;
	for (size_t i = 0; i < c->n && r == 0; i++) {
		const struct catalogue_run *run = &c->runs[i];
		if (!selection_has(&options->selection, run)) {
			continue;
		}
		if (run->sweep_directory && !is_inside(run, directory)) {
			r = add_trial(l, run, c->n - i);
			continue;
		}
		l->items[l->n] = (struct listed){.run = run,
			.start_utc_ns = run->start_utc_ns,
			.duration_s = run->measures[MEASURE_DURATION],
			.place = l->n};
		l->n++;
	}
	return r;
}

static void listing_done(struct listing *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->items[i].trials);
	}
	free(l->items);
}

// --- the command

static const struct argp_option options[] = {
	{"where", 'w', "LABEL=VALUE", 0,
		"only runs with this label, or with such a measure (outcome=crash, "
		"samples_per_second>1000); several must all hold",
		0},
	{"sort", 's', "KEY", 0,
		"start (the default: the newest first), duration, name, cpu, memory, a label's "
		"name, or a measure (strain compare --value help lists them)",
		0},
	{"reverse", 'r', NULL, 0, "the other way round", 0},
	{"json", 256, NULL, 0, "print one JSON array", 0},
	{0},
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct ls_options *ls = state->input;
	switch (key) {
	case 'w':
		selection_add(&ls->selection, argument, state);
		return 0;
	case 's':
		ls->sort = argument;
		ls->measure = order_by(argument) ? N_MEASURES : measure_by_name(argument);
		return 0;
	case 'r':
		ls->reverse = true;
		return 0;
	case 256:
		ls->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (ls->directory) {
			reading_option_error(
				state, "expected one directory, found '%s' too", argument);
		}
		ls->directory = argument;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int show(struct listing *l, const struct ls_options *ls, const char *directory)
{
	if (!is_key(l, ls)) {
		return command_fail("--sort: none of these runs has a label '%s', and no measure "
				    "is called so",
			ls->sort);
	}
	if (l->n > 0) {
		qsort_r(l->items, l->n, sizeof(*l->items), compare_listed,
			(struct ls_options[]){*ls});
	}
	if (l->n == 0 && !ls->json) {
		command_note("no runs in %s%s", directory,
			ls->selection.n_where ? " with these labels" : "");
		return STATUS_OK;
	}
	return ls_print(l, ls->measure, ls->json);
}

static bool needs_all(const struct ls_options *ls)
{
	return selection_needs_all(&ls->selection) ||
	       (ls->measure < N_MEASURES && !measures[ls->measure].job_only);
}

int command_ls(int argc, char **argv)
{
	static const struct argp argp = {options, parse, "[DIR]",
		"List the runs in a directory ($STRAIN_DIR, else the current one). A sweep in it "
		"is "
		"one line; its trials are listed where DIR is the sweep.",
		NULL, NULL, NULL};
	struct ls_options ls = {.sort = "start", .measure = N_MEASURES};
	reading_options(&argp, argc, argv, &ls);
	char *paths[2] = {ls.directory};
	size_t n = 1;
	bool found = true;
	if (ls.directory) {
		found = reading_find_all(paths, n);
	} else {
		n = reading_find_places(paths);
		found = n > 0;
	}
	struct catalogue catalogue = {0};
	struct listing listing = {0};
	int status = found ? selection_read(paths, n, !needs_all(&ls), &catalogue) : STATUS_FAILURE;
	if (status == STATUS_OK) {
		selection_is_known(&ls.selection, &catalogue);
		status = listing_fill(&listing, &catalogue, &ls, paths[0]) < 0
		                 ? command_fail("cannot list: %s", strerrordesc_np(ENOMEM))
		                 : show(&listing, &ls, paths[0]);
	}
	for (size_t i = 0; i < n; i++) {
		free(paths[i]);
	}
	listing_done(&listing);
	catalogue_done(&catalogue);
	selection_done(&ls.selection);
	return status;
}
