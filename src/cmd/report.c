// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// strain report RUN... -o FILE: writes a page about runs in one file that needs no network; for
// directories, the page of a sweep or of an answer of strain advise; or a figure of runs.

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"
#include "base/words.h"
#include "cmd/command.h"
#include "cmd/reading.h"
#include "run/analysis.h"
#include "runfile/reader.h"
#include "show/figure.h"
#include "show/figure_run.h"
#include "show/joint_show.h"
#include "show/page.h"
#include "show/page_joint.h"
#include "show/page_run.h"
#include "show/page_sweep.h"
#include "study/catalogue.h"
#include "study/joint.h"
#include "study/prices.h"
#include "study/comparison.h"
#include "verdict/verdict.h"

struct report_options {
	const char *output;
	const char *keep_directory;
	bool force;
	const char *job; // of the runs of directories; NULL: that of all of them, if they are one
	const char *prices_path; // NULL: as STRAIN_PRICES says
	const struct prices *prices; // NULL: none
	char **runs; // part of argv
	size_t n_runs;
};

// --- the figure of one run, or of a few for comparison

#define TITLE_COLUMNS 44

// Notes the labels of a run: "framework=pytorch, batch_size=32".
static void note_labels(struct figure_page *page, const struct overview *o)
{
	_cleanup_text_ struct text labels = {0};
	for (size_t i = 0; i < o->n_labels; i++) {
		if (!comparison_label_is_automatic(o->labels[i].name)) {
			text_format(&labels, "%s%s=%s", labels.length > 0 ? ", " : "",
				o->labels[i].name, o->labels[i].value);
		}
	}
	if (labels.length > 0) {
		figure_add_note(page, "%s", labels.data);
	}
}

static int figure_add_run(
	struct figure_page *page, size_t column, struct reader *reader, struct error *e)
{
	struct analysis analysis;
	struct progress progress;
	progress_start(&progress, reader, PROGRESS_ANALYSIS | PROGRESS_BLOCKS);
	int r = analysis_load(reader, &analysis, e);
	if (r == 0) {
		_cleanup_text_ struct text title = {0};
		words_append_elided(&title, analysis.overview.name, TITLE_COLUMNS);
		r = figure_run_add(page, column, &analysis, title.data, e);
		if (page->columns == 1) {
			note_labels(page, &analysis.overview);
		}
		analysis_done(&analysis);
	}
	progress_end(&progress);
	return r;
}

static void close_readers(struct reader **readers, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		reader_free(readers[i]);
	}
	free(readers);
}

static int draw_runs(struct reader *const *readers, size_t n, const char *output,
	const char *keep_directory, struct error *e)
{
	struct figure_page *page = figure_run_new(n);
	int r = page ? 0 : error_errno(e, ENOMEM, "cannot make the figure");
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = figure_add_run(page, i, readers[i], e);
		r = r < 0 ? error_prefix(e, "%s", reader_path(readers[i])) : r;
	}
	r = r < 0 ? r : figure_write(page, output, keep_directory, e);
	figure_free(page);
	return r;
}

static void say_written(const char *output, size_t n, size_t n_runs)
{
	struct stat status;
	char size[32], runs[64] = "";
	double bytes = stat(output, &status) == 0 ? (double)status.st_size : 0;
	if (n < n_runs) {
		snprintf(runs, sizeof(runs), ", %zu of %zu runs", n, n_runs);
	}
	command_note("%s, %s%s", output, text_bytes(size, sizeof(size), bytes), runs);
}

// Draws the runs that can be read, and reports the others. keep_directory: where to keep the
// script; NULL: not kept. Returns an exit status.
static int report_figure(
	const char *output, const char *keep_directory, char *const *runs, size_t n_runs)
{
	struct error e = {0};
	if (n_runs > FIGURE_RUNS_MAX) {
		return command_usage("report", "%s: a figure can show %d runs, not %zu", output,
			FIGURE_RUNS_MAX, n_runs);
	}
	struct reader **readers = calloc(n_runs + 1, sizeof(void *));
	size_t n = 0;
	for (size_t i = 0; readers && i < n_runs; i++) {
		if (reader_open(runs[i], &readers[n], &e) < 0) {
			command_fail("%s", e.text);
		} else {
			n++;
		}
	}
	int r = readers && n > 0 ? draw_runs(readers, n, output, keep_directory, &e) : 0;
	close_readers(readers, n);
	if (r < 0) {
		return command_fail("%s", e.text);
	}
	if (n > 0) {
		say_written(output, n, n_runs);
	}
	return n == n_runs && n > 0 ? STATUS_OK : STATUS_FAILURE;
}

// --- the page of a sweep

static bool is_directory(const char *path)
{
	struct stat status;
	return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

// Whether to write the page of a sweep: one of the paths is a directory.
static bool report_is_sweep(char *const *paths, size_t n_paths)
{
	for (size_t i = 0; i < n_paths; i++) {
		if (is_directory(paths[i])) {
			return true;
		}
	}
	return false;
}

static int read_catalogue(char *const *paths, size_t n_paths, const struct prices *prices,
	struct catalogue *ret, struct error *e)
{
	struct progress_of_runs progress;
	struct catalogue_options options = {
		.prices = prices, .progressed = progress_of_runs, .context = &progress};
	progress_of_runs_start(&progress, "reading runs");
	int r = catalogue_read_with(paths, n_paths, &options, ret, e);
	progress_of_runs_end(&progress);
	return r;
}

static void say_troubles(const struct catalogue *catalogue)
{
	for (size_t i = 0; i < catalogue->n_unreadable; i++) {
		command_fail("%s", catalogue->unreadable[i]);
	}
	for (size_t i = 0; i < catalogue->n_notices; i++) {
		command_note("%s", catalogue->notices[i]);
	}
}

static int write_catalogue(FILE *out, const struct catalogue *catalogue, char *const *paths,
	size_t n_paths, const char *output, struct error *e)
{
	struct progress_of_runs progress;
	const struct page_sweep sweep = {
		.paths = paths,
		.n_paths = n_paths,
		.output = output,
		.progressed = progress_of_runs,
		.context = &progress,
	};
	progress_of_runs_start(&progress, "laying out runs");
	int r = page_sweep_write(out, &sweep, catalogue, e);
	progress_of_runs_end(&progress);
	return r;
}

// --- the page of a job of several runs

enum { JOB_RUNS_MOST = 3 }; // with a page of their own beside that of the job

static int add_run(FILE *out, struct reader *reader, const struct report_options *options,
	size_t index, struct error *e);

// The runs that explain the job: the first that failed, that of the slowest rank, that of the
// first.
static size_t choose_runs(const struct joint *j, const struct digest *ret[static JOB_RUNS_MOST])
{
	const struct digest *wanted[JOB_RUNS_MOST] = {NULL};
	size_t n = 0;
	const struct joint_rank *failed = joint_show_first_failed(j);
	wanted[0] = failed ? failed->run : NULL;
	wanted[1] = j->slowest < j->n ? j->ranks[j->slowest].run : NULL;
	wanted[2] = j->ranks[0].run == wanted[1] && j->n > 1 ? j->ranks[1].run : j->ranks[0].run;
	for (size_t i = 0; i < JOB_RUNS_MOST; i++) {
		bool taken = !wanted[i];
		for (size_t k = 0; k < n; k++) {
			taken = taken || ret[k] == wanted[i];
		}
		if (!taken) {
			ret[n++] = wanted[i];
		}
	}
	return n;
}

// *ret_n of *ret_of runs are on the page, in tabs of their own or in that of the job.
static int write_job(FILE *out, const struct joint *j, const struct report_options *options,
	size_t *ret_n, size_t *ret_of, struct error *e)
{
	const struct digest *runs[JOB_RUNS_MOST];
	size_t n = choose_runs(j, runs), tabs = 1;
	struct report_options several = *options;
	several.n_runs = n + 1; // they share the size of the page
	int r = page_begin(out);
	r = r < 0 ? error_errno(e, -r, "cannot write the page") : page_joint_add(out, j, e);
	for (size_t i = 0; i < n && r == 0; i++) {
		_cleanup_reader_ struct reader *reader = NULL;
		struct error why = {0};
		if (reader_open(runs[i]->path, &reader, &why) < 0 ||
			add_run(out, reader, &several, tabs, &why) < 0) {
			command_fail("%s", why.text);
		} else {
			tabs++;
		}
	}
	*ret_of = j->n_runs;
	*ret_n = j->n_runs - (n + 1 - tabs);
	return r < 0 ? r : page_end(out, e);
}

// Whether all runs are those of one job. Of several jobs, or beside other runs, tells how to see
// one.
static bool is_one_job(const struct catalogue *c)
{
	struct joint_groups groups;
	if (joint_groups_find(c, &groups) < 0) {
		return false;
	}
	bool one = groups.n == 1 && groups.sizes[0] == c->n;
	if (groups.n > 0 && !one) {
		command_note("this page shows all runs; --job NAME shows the ranks of one job (%s)",
			groups.names[0]);
	}
	joint_groups_done(&groups);
	return one;
}

static int write_runs(FILE *out, const struct catalogue *c, const struct report_options *options,
	const char *output, size_t *ret_n, size_t *ret_of, struct error *e)
{
	*ret_n = c->n;
	*ret_of = c->n + c->n_unreadable;
	if (!options->job && !is_one_job(c)) {
		return write_catalogue(out, c, options->runs, options->n_runs, output, e);
	}
	struct joint joint;
	int r = joint_read(c, options->job, &joint, e);
	if (r == 0) {
		r = write_job(out, &joint, options, ret_n, ret_of, e);
		*ret_of += c->n_unreadable; // they may be of the job
		joint_done(&joint);
	}
	return r;
}

// Writes the page, and reports on standard error what could not be read. *ret_n of *ret_of runs are
// on it. `output` is the path of the page; NULL: not a file. Returns 0, or -errno with nothing
// written if no run can be read.
static int report_sweep_write(FILE *out, const struct report_options *options, const char *output,
	size_t *ret_n, size_t *ret_of, struct error *e)
{
	struct catalogue catalogue = {0};
	int r = read_catalogue(options->runs, options->n_runs, options->prices, &catalogue, e);
	if (r < 0) {
		return r;
	}
	say_troubles(&catalogue);
	*ret_n = 0;
	*ret_of = catalogue.n_unreadable;
	r = catalogue.n > 0 ? write_runs(out, &catalogue, options, output, ret_n, ret_of, e)
	                    : error_set(e, ENOENT, "%s: contains no run%s", options->runs[0],
				      catalogue.n_unreadable > 0 ? " that can be read" : "");
	catalogue_done(&catalogue);
	return r;
}

// --- options, and the page of runs

enum { OPTION_KEEP = 256, OPTION_JOB, OPTION_PRICES };

static const struct argp_option option_table[] = {
	{"output", 'o', "FILE", 0,
		"write to FILE (report.html): a page (.html) or a figure (.pdf, .svg, .png); - "
		"writes the page to standard output",
		0},
	{"force", 'f', NULL, 0, "overwrite FILE even if it is not a report", 0},
	{"keep-script", OPTION_KEEP, "FOLDER", 0,
		"with a figure, keep gnuplot's script and data in FOLDER", 0},
	{"job", OPTION_JOB, "NAME", 0,
		"show only the runs of this job, with all ranks on one time axis", 0},
	{"prices", OPTION_PRICES, READING_PRICES_ARGUMENT, 0, READING_PRICES_HELP, 0},
	{0},
};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	struct report_options *options = state->input;
	switch (key) {
	case 'o':
		options->output = argument;
		return 0;
	case 'f':
		options->force = true;
		return 0;
	case OPTION_KEEP:
		options->keep_directory = argument;
		return 0;
	case OPTION_JOB:
		options->job = argument;
		return 0;
	case OPTION_PRICES:
		options->prices_path = argument;
		return 0;
	case ARGP_KEY_ARG:
		options->runs[options->n_runs++] = argument;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp report_argp = {
	.options = option_table,
	.parser = parse_option,
	.args_doc = "[RUN...]\nDIRECTORY...",
	.doc = "Write an HTML page of runs, or a figure for a paper. The page is self-contained: "
	       "any browser opens it from the file, without a network. For a sweep, a folder of "
	       "strain advise or a directory of runs it has a table, curves, a heat map and the "
	       "details of each run; for the runs of one job, it has all ranks on one time axis. "
	       "With a FILE that ends with .pdf, .svg or .png, draw memory, traffic and "
	       "utilisation over time. Default RUN: the newest in $STRAIN_DIR, or in the current "
	       "directory.",
};

static bool is_page_name(const char *path)
{
	static const char *const endings[] = {".html", ".htm"};
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *dot = strrchr(name, '.');
	bool is = strcmp(path, "-") == 0;
	for (size_t i = 0; dot && dot > name && i < ARRAY_LENGTH(endings); i++) {
		is = is || strcasecmp(dot, endings[i]) == 0;
	}
	return is;
}

// Reports an unwritable output before any run is read. Returns 0 or an exit status.
static int check_output(const struct report_options *options)
{
	enum figure_format format;
	if (figure_format_of(options->output, &format)) {
		return STATUS_OK;
	}
	if (!is_page_name(options->output)) {
		return command_usage("report",
			"--output: expected .html, .htm (a page), .pdf, .svg or .png (a figure), "
			"found '%s'",
			options->output);
	}
	if (options->keep_directory) {
		return command_usage("report",
			"--keep-script needs a figure (.pdf, .svg, .png); %s is none",
			options->output);
	}
	if (page_missing()) {
		return command_fail("this strain was built without HTML pages: %s", page_missing());
	}
	return STATUS_OK;
}

// Whether the file may be replaced: a page, a figure, or an empty file.
static bool is_report(const char *path)
{
	static const char *const starts[] = {"<!doctype html>", "%PDF-", "\x89PNG\r\n",
		"<?xml version=\"1.0\" encoding=\"utf-8\""};
	char found[64];
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	size_t n = file ? fread(found, 1, sizeof(found), file) : 0;
	for (size_t i = 0; i < ARRAY_LENGTH(starts); i++) {
		size_t length = strlen(starts[i]);
		if (n >= length && memcmp(found, starts[i], length) == 0) {
			return true;
		}
	}
	return n == 0;
}

// A mistyped -o must not destroy another file.
static int check_replaced(const struct report_options *options, struct error *e)
{
	struct stat status;
	const char *path = options->output;
	if (stat(path, &status) < 0) {
		return errno == ENOENT ? 0 : error_errno(e, errno, "cannot write %s", path);
	}
	if (S_ISDIR(status.st_mode)) {
		return error_set(e, EISDIR, "cannot write %s: it is a directory", path);
	}
	if (!S_ISREG(status.st_mode)) {
		return error_set(e, EINVAL, "cannot write %s: it is not a regular file", path);
	}
	if (!options->force && !is_report(path)) {
		return error_set(e, EEXIST,
			"cannot write %s: it exists and is not a report (--force overwrites it)",
			path);
	}
	return 0;
}

// The page begins with the first run that can be read.
static int add_analysed(FILE *out, const struct analysis *a, const struct report_options *options,
	size_t index, struct error *e)
{
	struct digest run = {0};
	const struct page_priced priced = {options->prices, &run};
	int r = options->prices ? digest_make(a, &run) : 0;
	r = r < 0 || !options->prices ? r : prices_tell(options->prices, &run);
	r = r < 0 ? error_errno(e, -r, "cannot compute costs")
	          : page_add_run(
			    out, a, options->prices ? &priced : NULL, index, options->n_runs, e);
	digest_done(&run);
	return r;
}

static int add_run(FILE *out, struct reader *reader, const struct report_options *options,
	size_t index, struct error *e)
{
	struct analysis analysis;
	struct progress progress;
	progress_start(&progress, reader, PROGRESS_ANALYSIS | PROGRESS_BLOCKS | PROGRESS_PAGE);
	struct verdict verdict;
	int r = analysis_load(reader, &analysis, e);
	r = r < 0 ? r : verdict_judge(&analysis, &verdict, e);
	if (r == 0) {
		r = index == 0 ? page_begin(out) : 0;
		r = r < 0 ? r : add_analysed(out, &analysis, options, index, e);
		verdict_done(&verdict);
		analysis_done(&analysis);
	}
	progress_end(&progress);
	return r;
}

struct written {
	size_t n; // runs on the page
	size_t of; // runs requested
	double bytes;
};

// An unreadable run is reported; the page has the others.
static int write_page(
	FILE *out, const struct report_options *options, struct written *ret, struct error *e)
{
	if (report_is_sweep(options->runs, options->n_runs)) {
		bool stays = strcmp(options->output, "-") != 0;
		return report_sweep_write(
			out, options, stays ? options->output : NULL, &ret->n, &ret->of, e);
	}
	size_t n = 0;
	for (size_t i = 0; i < options->n_runs; i++) {
		_cleanup_reader_ struct reader *reader = NULL;
		int r = reader_open(options->runs[i], &reader, e);
		if (r == 0) {
			r = add_run(out, reader, options, n, e);
			r = r < 0 ? error_prefix(e, "%s", options->runs[i]) : r;
		}
		if (r < 0) {
			command_fail("%s", e->text);
		} else {
			n++;
		}
	}
	ret->n = n;
	ret->of = options->n_runs;
	return n > 0 ? page_end(out, e) : 0;
}

// Creates a temporary file next to the output, so that the final rename stays on one file system.
// Its mode is 0600, since the page contains the job's command line.
static FILE *open_temporary(const char *output, char **ret_path, struct error *e)
{
	struct text name = {0};
	text_format(&name, "%s.XXXXXX", output);
	char *path = text_steal(&name);
	int fd = path ? mkostemp(path, O_CLOEXEC) : -1;
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
	if (!file) {
		error_errno(e, path ? errno : ENOMEM, "cannot write %s", output);
		if (fd >= 0) {
			unlink(path);
			close(fd);
		}
		free(path);
		return NULL;
	}
	*ret_path = path;
	return file;
}

static int write_file(const struct report_options *options, struct written *ret, struct error *e)
{
	_cleanup_free_ char *temporary = NULL;
	int r = check_replaced(options, e);
	if (r < 0) {
		return r;
	}
	FILE *file = open_temporary(options->output, &temporary, e);
	if (!file) {
		return -e->code;
	}
	r = write_page(file, options, ret, e);
	ret->bytes = (double)ftell(file);
	if (fclose(file) != 0 && r == 0) {
		r = error_errno(e, errno, "cannot write %s", options->output);
	}
	if (r == 0 && ret->n > 0 && rename(temporary, options->output) < 0) {
		r = error_errno(e, errno, "cannot write %s", options->output);
	}
	if (r < 0 || ret->n == 0) {
		unlink(temporary);
	}
	return r;
}

static int figure(const struct report_options *options, struct error *e)
{
	if (report_is_sweep(options->runs, options->n_runs)) {
		return command_usage("report",
			"%s: strain compare --figure draws figures of several runs",
			options->output);
	}
	return check_replaced(options, e) < 0
	               ? command_fail("%s", e->text)
	               : report_figure(options->output, options->keep_directory, options->runs,
				 options->n_runs);
}

static int report(const struct report_options *options, struct error *e)
{
	enum figure_format format;
	if (options->job && !report_is_sweep(options->runs, options->n_runs)) {
		return command_usage("report", "--job: expected a directory of runs, found '%s'",
			options->runs[0]);
	}
	if (figure_format_of(options->output, &format)) {
		return figure(options, e);
	}
	bool to_stdout = strcmp(options->output, "-") == 0;
	struct written written = {0};
	int r = to_stdout ? write_page(stdout, options, &written, e)
	                  : write_file(options, &written, e);
	if (r < 0) {
		return command_fail("%s", e->text);
	}
	if (!to_stdout && written.n > 0) {
		char size[32];
		char runs[64] = "";
		if (written.n < written.of) {
			snprintf(runs, sizeof(runs), ", %zu of %zu runs", written.n, written.of);
		} else if (written.n > 1) {
			snprintf(runs, sizeof(runs), ", %zu runs", written.n);
		}
		command_note("%s, %s%s", options->output,
			text_bytes(size, sizeof(size), written.bytes), runs);
	}
	return written.n == written.of ? STATUS_OK : STATUS_FAILURE;
}

int command_report(int argc, char **argv)
{
	struct error e = {0};
	_cleanup_free_ char **runs = calloc((size_t)argc + 2, sizeof(*runs)); // --job: two places
	struct report_options options = {.output = "report.html", .runs = runs};
	if (!runs) {
		return command_fail("out of memory");
	}
	reading_options(&report_argp, argc, argv, &options);
	int status = check_output(&options);
	if (status != STATUS_OK) {
		return status;
	}
	_cleanup_(prices_done) struct prices room;
	if (!reading_prices(options.prices_path, &room, &options.prices)) {
		return STATUS_FAILURE;
	}
	char newest[] = "-1";
	bool found = true;
	if (options.n_runs == 0 && options.job) {
		options.n_runs = reading_find_places(runs);
		found = options.n_runs > 0;
	} else {
		if (options.n_runs == 0) {
			runs[options.n_runs++] = newest;
		}
		found = reading_find_all(runs, options.n_runs, RUN_NAME_ANY);
	}
	status = found ? report(&options, &e) : STATUS_FAILURE;
	for (size_t i = 0; i < options.n_runs; i++) {
		free(runs[i]);
	}
	return status;
}
