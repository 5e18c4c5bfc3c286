// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// strain report RUN... -o FILE: a page that shows runs, in one file, without network; of
// directories that of a sweep (report_sweep.c); or their figure (report_figure.c).

#include "cmd/command.h"

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/analysis.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cmd/progress.h"
#include "cmd/reading.h"
#include "cmd/report_figure.h"
#include "cmd/report_sweep.h"
#include "render/figure.h"
#include "render/page.h"
#include "trace/reader.h"

struct report_options {
	const char *output;
	const char *keep_directory;
	bool force;
	char **runs; // of argv
	size_t n_runs;
};

enum { OPTION_KEEP = 256 };

static const struct argp_option option_table[] = {
	{"output", 'o', "FILE", 0,
		"write to FILE (report.html): a page (.html), or a figure (.pdf, .svg, .png); - is "
		"the page on standard output",
		0},
	{"force", 'f', NULL, 0, "replace FILE also where it is no report", 0},
	{"keep-script", OPTION_KEEP, "FOLDER", 0,
		"of a figure, leave gnuplot's script and its data in FOLDER", 0},
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
	.doc = "Write one page that shows runs: self-contained, it opens from a file in any "
	       "browser, without network. Of a sweep, or of any directory with runs: a table, "
	       "curves, a heat map, and each run to open. Or, by FILE's ending, a figure for a "
	       "paper: memory, traffic and utilisation over time. Without RUN: the newest in "
	       "$STRAIN_DIR, else in the current directory.",
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

// What cannot be written is said before any run is read. 0, or an exit status.
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
			"--keep-script is for figures, and %s is none (.pdf, .svg, .png)",
			options->output);
	}
	if (page_missing()) {
		return command_fail("this strain was built without pages: %s", page_missing());
	}
	return STATUS_OK;
}

// Whether the file is what is written here: a page, a figure, or nothing yet.
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

// A mistyped -o must not cost anybody a file.
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
			"cannot write %s: it exists and is no report (--force replaces it)", path);
	}
	return 0;
}

// The page begins with the first run that can be read.
static int add_run(FILE *out, struct reader *reader, const struct report_options *options,
	size_t index, struct error *e)
{
	struct analysis analysis;
	struct progress progress;
	progress_start(&progress, reader, PROGRESS_ANALYSIS | PROGRESS_BLOCKS | PROGRESS_PAGE);
	int r = analysis_load(reader, &analysis, e);
	if (r == 0) {
		r = index == 0 ? page_begin(out) : 0;
		r = r < 0 ? r : page_add_run(out, &analysis, index, options->n_runs, e);
		analysis_done(&analysis);
	}
	progress_end(&progress);
	return r;
}

struct written {
	size_t n; // runs that are on the page
	size_t of; // that should be
	double bytes;
};

// One that cannot be read is said, and the others make the page.
static int write_page(
	FILE *out, const struct report_options *options, struct written *ret, struct error *e)
{
	if (report_is_sweep(options->runs, options->n_runs)) {
		bool stays = strcmp(options->output, "-") != 0;
		return report_sweep_write(out, options->runs, options->n_runs,
			stays ? options->output : NULL, &ret->n, &ret->of, e);
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

// Beside the output, so that the rename at the end cannot fail for want of a file system. With
// mode 0600: what a job was started with is on the page.
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
			"%s: figures of several runs are drawn by strain compare --figure",
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
	_cleanup_free_ char **runs = calloc((size_t)argc + 1, sizeof(*runs));
	struct report_options options = {.output = "report.html", .runs = runs};
	if (!runs) {
		return command_fail("out of memory");
	}
	reading_options(&report_argp, argc, argv, &options);
	int status = check_output(&options);
	if (status != STATUS_OK) {
		return status;
	}
	char newest[] = "-1";
	if (options.n_runs == 0) {
		runs[options.n_runs++] = newest;
	}
	status = reading_find_all(runs, options.n_runs) ? report(&options, &e) : STATUS_FAILURE;
	for (size_t i = 0; i < options.n_runs; i++) {
		free(runs[i]);
	}
	return status;
}
