// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// strain show: prints a run, or an answer of `strain advise`, for people or (--json) for programs.

#include <argp.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cmd/command.h"
#include "cmd/reading.h"
#include "study/run_name.h"
#include "run/analysis.h"
#include "show/joint_show.h"
#include "show/json.h"
#include "show/run_json.h"
#include "show/run_text.h"
#include "study/catalogue.h"
#include "study/digest.h"
#include "study/joint.h"
#include "study/kept_advice.h"
#include "study/prices.h"
#include "verdict/verdict.h"

// --- the answer that `strain advise` kept, as it was printed

// The directory that a name refers to, if it holds an answer; owned by the caller. NULL: it is
// something else.
static char *find_advice(const char *name)
{
	_cleanup_free_ char *path = NULL;
	bool is = name && run_name_find(name, RUN_NAME_ANY, &path, NULL) == 0 &&
	          kept_advice_is_in(path);
	return is ? take_pointer(path) : NULL;
}

static int print_page(const struct kept_advice *a)
{
	_cleanup_text_ struct text page = {0};
	for (size_t i = 0; i < a->n_page; i++) {
		text_append_printable(&page, a->page[i], strlen(a->page[i]));
		text_append_string(&page, "\n");
	}
	if (page.failed) {
		return command_fail("out of memory");
	}
	fputs(page.data ? page.data : "", stdout);
	return command_flush();
}

// Returns an exit status.
static int show_advice(const char *directory, bool json)
{
	struct kept_advice answer;
	struct error e = {0};
	if (kept_advice_read(directory, &answer, &e) < 0) {
		return command_fail("%s", e.text);
	}
	int status;
	if (json) {
		int r = json_write(json_incref(answer.json), stdout);
		status = r < 0 ? command_fail("cannot show: %s", strerrordesc_np(-r))
		               : command_flush();
	} else if (answer.n_page == 0) {
		status = command_fail("%s/" KEPT_ADVICE_NAME
				      ": has no page (--json prints its values)",
			directory);
	} else {
		status = print_page(&answer);
	}
	kept_advice_done(&answer);
	return status;
}

// --- a job of several runs

// The directory of runs that a name refers to; owned by the caller. NULL: it is something else.
static char *find_directory(const char *name)
{
	_cleanup_free_ char *path = NULL;
	struct stat status;
	_cleanup_free_ char *run = NULL;
	bool is = name && run_name_find(name, RUN_NAME_ANY, &path, NULL) == 0 &&
	          stat(path, &status) == 0 && S_ISDIR(status.st_mode);
	// "train" is train.strain, if there is one beside the directory.
	size_t length = name ? strlen(name) : 0;
	bool slash = length > 0 && name[length - 1] == '/';
	is = is && (slash || run_name_find(name, RUN_NAME_FILE, &run, NULL) < 0 ||
			   stat(run, &status) < 0 || S_ISDIR(status.st_mode));
	return is ? take_pointer(path) : NULL;
}

// --- runs

struct show_options {
	const char *run; // NULL: the newest
	const char *job; // of the runs of a directory; NULL: that of the newest run
	struct show_text_options text;
	bool json;
	const char *prices; // path; NULL: as STRAIN_PRICES says
};

enum { OPTION_JSON = 256, OPTION_JOB, OPTION_PRICES };

static const struct argp_option options[] = {
	{"all", 'a', NULL, 0,
		"show every process and event, waits, threads, CPU time by code and lines of the "
		"script; for a job, every rank",
		0},
	{"iterations", 'i', NULL, 0,
		"show the phases of each epoch, every loader worker, and how the slowest "
		"iterations differ from the others",
		0},
	{"job", OPTION_JOB, "NAME", 0, "join the runs of this job in a directory", 0},
	{"json", OPTION_JSON, NULL, 0, "print one JSON document", 0},
	{"prices", OPTION_PRICES, READING_PRICES_ARGUMENT, 0, READING_PRICES_HELP, 0},
	{0},
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct show_options *show = state->input;
	switch (key) {
	case 'a':
		show->text.all = true;
		return 0;
	case 'i':
		show->text.iterations = true;
		return 0;
	case OPTION_JOB:
		show->job = argument;
		return 0;
	case OPTION_JSON:
		show->json = true;
		return 0;
	case OPTION_PRICES:
		show->prices = argument;
		return 0;
	case ARGP_KEY_ARG:
		if (show->run) {
			reading_option_error(state, "expected one run, also found '%s'", argument);
		}
		show->run = argument;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

// Prints an analysed, judged run; with a price list also its cost. 0 or -errno.
static int print_run(
	const struct show_options *show, const struct analysis *a, const struct prices *prices)
{
	struct digest priced = {0};
	int r = prices ? digest_make(a, &priced) : 0;
	r = r < 0 || !prices ? r : prices_tell(prices, &priced);
	if (r == 0) {
		struct show_text_options text = show->text;
		text.prices = prices;
		text.priced = prices ? &priced : NULL;
		r = show->json ? run_json_write(a, text.priced, stdout)
		               : run_text_print(a, &text, stdout);
	}
	digest_done(&priced);
	return r;
}

// Says why a directory has no job to join, and which commands read it.
static int fail_to_join(const char *directory, const struct show_options *show,
	const struct catalogue *c, const struct error *e)
{
	_cleanup_text_ struct text word = {0};
	text_append_path(&word, directory);
	const char *shown = word.data ? word.data : "";
	if (e->code != ENOENT || (show->job && c->n > 0)) {
		return command_fail("%s: %s", directory, e->text);
	}
	if (catalogue_is_sweep(directory)) {
		return command_fail("%s: expected the runs of one job, found a sweep; use strain "
				    "compare %s, strain ls %s or strain report %s",
			directory, shown, shown, shown);
	}
	return c->n == 0 ? command_fail("%s: no runs (*.strain)", directory)
	                 : command_fail("%s: %s (strain ls %s lists its runs)", directory, e->text,
				   shown);
}

// Returns an exit status.
static int show_job(
	char *const *places, size_t n, const struct show_options *show, const struct prices *prices)
{
	struct catalogue catalogue;
	struct joint joint;
	struct error e = {0};
	const struct catalogue_options wanted = {.prices = prices};
	if (reading_catalogue(places, n, &wanted, &catalogue) != STATUS_OK) {
		return STATUS_FAILURE;
	}
	int status;
	if (joint_read(&catalogue, show->job, &joint, &e) < 0) {
		status = fail_to_join(places[0], show, &catalogue, &e);
	} else {
		int r = show->json ? joint_show_json(&joint, stdout)
		                   : joint_show_text(&joint, show->text.all, stdout);
		joint_done(&joint);
		status = r < 0 ? command_fail("cannot show: %s", strerrordesc_np(-r))
		               : command_flush();
	}
	catalogue_done(&catalogue);
	return status;
}

int command_show(int argc, char **argv)
{
	static const struct argp argp = {options, parse, "[RUN|DIR]",
		"Show the verdict, evidence, iterations and phases, epochs, processes, devices, "
		"recording cost and missing data of a run; or the saved answer of strain "
		"advise; or the ranks of a job whose runs are in a directory. Default RUN: the "
		"newest in $STRAIN_DIR, or in the current directory.",
		NULL, NULL, NULL};
	struct show_options show = {0};
	reading_options(&argp, argc, argv, &show);
	_cleanup_free_ char *advice = find_advice(show.run);
	if (advice) {
		if (show.prices) {
			command_note(
				"--prices is not used for an answer of strain advise: strain "
				"compare --all --value cost --prices shows what its runs cost");
		}
		return show_advice(advice, show.json);
	}
	_cleanup_(prices_done) struct prices room;
	const struct prices *prices;
	if (!reading_prices(show.prices, &room, &prices)) {
		return STATUS_FAILURE;
	}
	_cleanup_free_ char *directory = find_directory(show.run);
	if (directory) {
		return show_job((char *const[]){directory}, 1, &show, prices);
	}
	if (show.job && show.run) {
		return command_usage(
			"show", "--job: expected a directory of runs, found '%s'", show.run);
	}
	if (show.job) {
		char *places[2] = {NULL, NULL};
		size_t n = reading_find_places(places);
		int status = n > 0 ? show_job(places, n, &show, prices)
		                   : command_fail("out of memory");
		free(places[0]);
		free(places[1]);
		return status;
	}
	_cleanup_reader_ struct reader *reader = reading_open(show.run);
	struct analysis analysis;
	struct error e = {0};
	if (!reader) {
		return STATUS_FAILURE;
	}
	struct progress progress;
	progress_start(&progress, reader, PROGRESS_ANALYSIS);
	struct verdict verdict;
	int loaded = analysis_load(reader, &analysis, &e);
	loaded = loaded < 0 ? loaded : verdict_judge(&analysis, &verdict, &e);
	progress_end(&progress);
	if (loaded < 0) {
		return command_fail("%s", e.text);
	}
	reading_damage(&analysis);
	int r = print_run(&show, &analysis, prices);
	verdict_done(&verdict);
	analysis_done(&analysis);
	return r < 0 ? command_fail("cannot show: %s", strerrordesc_np(-r)) : command_flush();
}
