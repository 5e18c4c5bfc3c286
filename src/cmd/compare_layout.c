// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Options and output of layouts.

#include "cmd/compare_layout.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/whole_file.h"
#include "cmd/command.h"
#include "cmd/layout_show.h"
#include "cmd/reading.h"
#include "render/figure.h"

bool compare_layout_draws(const struct compare_layout *l)
{
	enum figure_format format;
	return l->output && figure_format_of(l->output, &format);
}

bool compare_layout_needs_runs(const struct compare_layout *l)
{
	return layout_needs_runs(l->name);
}

int compare_layout_check(const struct compare_layout *l)
{
	struct error e = {0};
	if (!l->name) {
		return !l->beside ? STATUS_OK
		                  : command_usage("compare", "--beside stands with --layout NAME");
	}
	if (l->beside && strcmp(l->beside, "published") != 0) {
		return command_usage(
			"compare", "--beside: expected published, found '%s'", l->beside);
	}
	if (l->keep_directory && !compare_layout_draws(l)) {
		return command_usage(
			"compare", "--keep-script is for figures: -o FILE.pdf, .svg or .png");
	}
	return layout_check(l->name, compare_layout_draws(l), &e) < 0
	               ? command_usage("compare", "--layout: %s", e.text)
	               : STATUS_OK;
}

static int show_into_file(struct layout_request *q, const char *output, struct error *e)
{
	_cleanup_free_ char *text = NULL;
	size_t length = 0;
	static const struct table_style plain = {0};
	q->stream = open_memstream(&text, &length);
	q->style = &plain;
	if (!q->stream) {
		return error_errno(e, errno, "cannot write %s", output);
	}
	int r = layout_show(q, e);
	bool whole = fclose(q->stream) == 0;
	if (r == 0) {
		r = whole ? whole_file_write(output, text, length, e)
		          : error_errno(e, ENOMEM, "cannot write %s", output);
	}
	return r;
}

int compare_layout_show(const struct compare_layout *l, const struct catalogue_run *const *runs,
	size_t n_runs, enum pivot_format format)
{
	struct error e = {0};
	struct table_style style = table_style_for(stdout);
	struct layout_request q = {.name = l->name,
		.runs = runs,
		.n_runs = n_runs,
		.beside_published = l->beside != NULL,
		.format = format,
		.stream = stdout,
		.style = &style,
		.figure = compare_layout_draws(l) ? l->output : NULL,
		.keep_directory = l->keep_directory};
	bool to_file = !q.figure && l->output && strcmp(l->output, "-") != 0;
	int r = to_file ? show_into_file(&q, l->output, &e) : layout_show(&q, &e);
	return r < 0 ? command_fail("%s", e.text) : reading_finish();
}
