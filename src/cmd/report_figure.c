// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The figure of one run, or of a few side by side.

#include "cmd/report_figure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "analyze/analysis.h"
#include "analyze/words.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cmd/command.h"
#include "cmd/compare_choice.h"
#include "cmd/progress.h"
#include "cmd/reading.h"
#include "render/figure.h"
#include "render/figure_run.h"
#include "trace/reader.h"

#define TITLE_COLUMNS 44

// What somebody called the run: "framework=pytorch, batch_size=32".
static void note_labels(struct figure_page *page, const struct overview *o)
{
	_cleanup_text_ struct text labels = {0};
	for (size_t i = 0; i < o->n_labels; i++) {
		if (!choice_label_is_automatic(o->labels[i].name)) {
			text_format(&labels, "%s%s=%s", labels.length > 0 ? ", " : "",
				o->labels[i].name, o->labels[i].value);
		}
	}
	if (labels.length > 0) {
		figure_add_note(page, "%s", labels.data);
	}
}

static int add_run(struct figure_page *page, size_t column, struct reader *reader, struct error *e)
{
	struct analysis analysis;
	struct progress progress;
	progress_start(&progress, reader, PROGRESS_ANALYSIS | PROGRESS_BLOCKS);
	int r = analysis_load(reader, &analysis, e);
	if (r == 0) {
		_cleanup_text_ struct text title = {0};
		words_append_elided(&title, analysis.overview.name, TITLE_COLUMNS);
		r = figure_runs_add(page, column, &analysis, title.data, e);
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
	struct figure_page *page = figure_runs_new(n);
	int r = page ? 0 : error_errno(e, ENOMEM, "cannot make the figure");
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = add_run(page, i, readers[i], e);
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

int report_figure(const char *output, const char *keep_directory, char *const *runs, size_t n_runs)
{
	struct error e = {0};
	if (n_runs > FIGURE_RUNS_MAX) {
		return command_usage("report", "%s: a figure has room for %d runs, %zu were named",
			output, FIGURE_RUNS_MAX, n_runs);
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
