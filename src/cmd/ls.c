// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// strain ls: the runs of a directory, its sweeps, and its folders of `strain advise`, a line each.

#include <argp.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "cmd/command.h"
#include "cmd/reading.h"
#include "show/run_list.h"
#include "study/catalogue.h"
#include "study/prices.h"
#include "study/selection.h"

struct ls_options {
	char *directory; // of argv; NULL: the default places
	struct selection selection;
	const char *sort;
	bool reverse;
	bool json;
	bool ranks;
	const char *prices; // path; NULL: as STRAIN_PRICES says
};

enum { OPTION_JSON = 256, OPTION_RANKS, OPTION_PRICES };

static const struct argp_option options[] = {
	{"where", 'w', "LABEL=VALUE", 0,
		"list only runs with this label or measure (outcome=crash, "
		"samples_per_second>1000); if repeated, all must hold",
		0},
	{"sort", 's', "KEY", 0,
		"sort by start (default, newest first), duration, name, cpu, memory, a label, or a "
		"measure (strain compare --value help lists them)",
		0},
	{"reverse", 'r', NULL, 0, "reverse the order", 0},
	{"json", OPTION_JSON, NULL, 0, "print one JSON array", 0},
	{"ranks", OPTION_RANKS, NULL, 0,
		"list every run of a job with several runs (implied by --json, --where, and --sort "
		"by a label or measure)",
		0},
	{"prices", OPTION_PRICES, READING_PRICES_ARGUMENT, 0, READING_PRICES_HELP, 0},
	{0},
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct ls_options *ls = state->input;
	switch (key) {
	case 'w':
		reading_condition(&ls->selection, argument, state);
		return 0;
	case 's':
		ls->sort = argument;
		return 0;
	case 'r':
		ls->reverse = true;
		return 0;
	case OPTION_JSON:
		ls->json = true;
		return 0;
	case OPTION_RANKS:
		ls->ranks = true;
		return 0;
	case OPTION_PRICES:
		ls->prices = argument;
		return 0;
	case ARGP_KEY_ARG:
		if (ls->directory) {
			reading_option_error(
				state, "expected one directory, also found '%s'", argument);
		}
		ls->directory = argument;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

// Prints the list; an exit status.
static int show(struct run_list *l, const struct ls_options *ls, const struct catalogue *c,
	const char *directory)
{
	struct stat status;
	if (c->n == 0 && c->n_unreadable > 0 && stat(directory, &status) == 0 &&
		!S_ISDIR(status.st_mode)) {
		return STATUS_FAILURE; // reading_catalogue printed why this file is no run
	}
	if (!run_list_is_key(l, ls->sort)) {
		return command_fail(
			"--sort: '%s' is neither a label of these runs nor a measure", ls->sort);
	}
	if (l->n == 0 && !ls->json) {
		command_note("no runs in %s%s", directory,
			ls->selection.n_where ? " with these labels" : "");
		return STATUS_OK;
	}
	run_list_sort(l, ls->sort, ls->reverse);
	int r = run_list_print(l, run_list_measure(ls->sort), ls->json, stdout);
	return r < 0 ? command_fail("cannot list: %s", strerrordesc_np(-r)) : command_flush();
}

static bool needs_all(const struct ls_options *ls, const struct prices *prices)
{
	enum measure_id measure = run_list_measure(ls->sort);
	return prices || selection_needs_all(&ls->selection) ||
	       (measure < N_MEASURES && !measures[measure].job_only);
}

int command_ls(int argc, char **argv)
{
	static const struct argp argp = {options, parse, "[DIR]",
		"List the runs in a directory (default: $STRAIN_DIR, or the current "
		"directory). A sweep, or an answer of strain advise, is one line; give its "
		"directory as DIR to list its runs. A job with a run for each rank is also one "
		"line.",
		NULL, NULL, NULL};
	struct ls_options ls = {.sort = "start"};
	reading_options(&argp, argc, argv, &ls);
	_cleanup_(prices_done) struct prices room;
	const struct prices *prices;
	enum measure_id sort = run_list_measure(ls.sort);
	if (!reading_prices(ls.prices, &room, &prices)) {
		return STATUS_FAILURE;
	}
	if (!prices && sort < N_MEASURES && measure_is_priced(sort)) {
		return command_usage("ls", "--sort %s needs a price list (--prices FILE)", ls.sort);
	}
	char *paths[2] = {ls.directory};
	size_t n = 1;
	bool found = true;
	if (ls.directory) {
		found = reading_find_all(paths, n, RUN_NAME_LISTED);
	} else {
		n = reading_find_places(paths);
		found = n > 0;
	}
	struct catalogue catalogue = {0};
	struct run_list list = {0};
	const struct catalogue_options wanted = {
		.job_only = !needs_all(&ls, prices), .advice = true, .prices = prices};
	bool jobs = !ls.ranks && !ls.json && ls.selection.n_where == 0 && run_list_folds(ls.sort);
	int status = found ? reading_catalogue(paths, n, &wanted, &catalogue) : STATUS_FAILURE;
	if (status == STATUS_OK && !reading_has_prices(&ls.selection, &catalogue, prices)) {
		status = STATUS_FAILURE;
	}
	if (status == STATUS_OK) {
		(void)reading_knows_conditions(&ls.selection, &catalogue);
		status = run_list_fill(&list, &catalogue, &ls.selection, paths[0], jobs) < 0
		                 ? command_fail("cannot list: %s", strerrordesc_np(ENOMEM))
		                 : show(&list, &ls, &catalogue, paths[0]);
	}
	for (size_t i = 0; i < n; i++) {
		free(paths[i]);
	}
	run_list_done(&list);
	catalogue_done(&catalogue);
	selection_done(&ls.selection);
	return status;
}
