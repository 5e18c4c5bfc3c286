// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// strain compare: runs, directories and sweeps as tables by label, with tests of significance.

#include <argp.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "base/whole_file.h"
#include "cmd/command.h"
#include "cmd/reading.h"
#include "show/figure.h"
#include "show/figure_pivot.h"
#include "show/layout_show.h"
#include "show/pivot_write.h"
#include "study/catalogue.h"
#include "study/comparison.h"
#include "study/pivot.h"
#include "study/prices.h"
#include "study/selection.h"
#include "sweep/plan_of_runs.h"

struct compare_layout {
	const char *name; // "list": all of them; NULL: no layout was asked for
	const char *beside; // "published"; NULL
	const char *keep_directory; // for a figure's script; NULL
	const char *output; // NULL or "-": standard output
};

struct compare_figure {
	const char *kind; // "scaling", ...; NULL: no figure was asked for
	const char *output; // NULL: none was given
	const char *keep_directory; // for the script; NULL
};

// --- layouts: the tables and figures of documents (layout.h)

// Whether the output is a figure.
static bool compare_layout_draws(const struct compare_layout *l)
{
	enum figure_format format;
	return l->output && figure_format_of(l->output, &format);
}

// Checks the options before any run is read. An exit status.
static int compare_layout_check(const struct compare_layout *l)
{
	struct error e = {0};
	if (!l->name) {
		return !l->beside ? STATUS_OK
		                  : command_usage("compare", "--beside needs --layout NAME");
	}
	if (l->beside && strcmp(l->beside, "published") != 0) {
		return command_usage(
			"compare", "--beside: expected published, found '%s'", l->beside);
	}
	if (l->keep_directory && !compare_layout_draws(l)) {
		return command_usage(
			"compare", "--keep-script needs a figure: -o FILE.pdf, .svg or .png");
	}
	return layout_show_check(l->name, compare_layout_draws(l), &e) < 0
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

static void note_line(const char *line)
{
	command_note("%s", line);
}

static int compare_layout_show(const struct compare_layout *l, const struct digest *const *runs,
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
		.note = note_line,
		.style = &style,
		.figure = compare_layout_draws(l) ? l->output : NULL,
		.keep_directory = l->keep_directory};
	bool to_file = !q.figure && l->output && strcmp(l->output, "-") != 0;
	int r = to_file ? show_into_file(&q, l->output, &e) : layout_show(&q, &e);
	return r < 0 ? command_fail("%s", e.text) : command_flush();
}

// --- figures: a pivot, or runs over time, in a file

// Checks the options before any run is read. An exit status.
static int compare_figure_check(const struct compare_figure *f)
{
	enum figure_format format;
	enum figure_pivot_kind kind;
	if (!f->kind) {
		return STATUS_OK;
	}
	if (!figure_pivot_parse(f->kind, &kind)) {
		struct suggestion_of_word nearest = SUGGEST_NONE;
		for (size_t i = 0; i < N_FIGURE_PIVOT_KINDS; i++) {
			suggest_consider(&nearest, f->kind, figure_pivot_name(i));
		}
		return command_usage("compare",
			"--figure: expected scaling, bars, heatmap, timeline or memory, found "
			"'%s'%s%s%s",
			f->kind, nearest.word ? "; did you mean '" : "",
			nearest.word ? nearest.word : "", nearest.word ? "'?" : "");
	}
	if (!f->output || !figure_format_of(f->output, &format)) {
		return command_usage("compare",
			"--figure: expected -o FILE.pdf, FILE.svg or FILE.png, found %s",
			f->output ? f->output : "none");
	}
	return STATUS_OK;
}

static enum figure_pivot_kind kind_of(const struct compare_figure *f)
{
	enum figure_pivot_kind kind = FIGURE_PIVOT_SCALING;
	figure_pivot_parse(f->kind, &kind);
	return kind;
}

static int draw_pivot(const struct compare_figure *f, const struct pivot *p)
{
	struct error e = {0};
	int r = figure_pivot_draw(kind_of(f), p, f->output, f->keep_directory, &e);
	return r < 0 ? command_fail("--figure %s: %s", f->kind, e.text) : STATUS_OK;
}

static int draw_runs(const struct compare_figure *f, const struct digest *const *runs, size_t n)
{
	struct error e = {0};
	int r = figure_pivot_draw_runs(kind_of(f), runs, n, f->output, f->keep_directory, &e);
	return r < 0 ? command_fail("--figure %s: %s", f->kind, e.text) : STATUS_OK;
}

enum {
	OPTION_COLUMNS = 256,
	OPTION_BASELINE,
	OPTION_FORMAT,
	OPTION_LAYOUT,
	OPTION_BESIDE,
	OPTION_FIGURE,
	OPTION_JSON,
	OPTION_KEEP_SCRIPT,
	OPTION_PRICES
};

struct compare_options {
	char **paths; // [n_paths]; of argv
	size_t n_paths;
	struct selection selection;
	struct comparison_fields fields;
	bool baseline_given; // it may be empty: no baseline
	struct pivot_match baseline[COMPARISON_BASELINE_MAX]; // [n_baseline]
	size_t n_baseline;
	const char *prices; // path; NULL: as STRAIN_PRICES says
	const char *format; // NULL: by the output's name, else text
	const char *output; // NULL or "-": standard output
	struct compare_layout layout;
	struct compare_figure figure;
};

// --- options

static const struct argp_option options[] = {
	{"rows", 'r', "LABEL[,...]", 0, "use these labels as rows", 1},
	{"columns", OPTION_COLUMNS, "LABEL[,...]", 0,
		"use these labels as columns; also machine (host name), run (name), path (file), "
		"from (the argument that selected the run)",
		1},
	{"value", 'v', "MEASURE[,...]", 0,
		"show these measures: epoch_seconds, samples_per_second, ...; 'help' lists them",
		1},
	{"where", 'w', "LABEL=VALUE", 0,
		"use only runs with this label or measure (outcome=crash, epoch_seconds<60); if "
		"repeated, all must hold",
		1},
	{"all", 'a', NULL, 0, "include runs that failed or whose end was not recorded", 1},
	{"baseline", OPTION_BASELINE, "LABEL=VALUE[,...]", 0,
		"compare each cell with the one that has these labels (speed-up or ratio); "
		"default: the baseline of the sweep's plan; '' for none",
		1},
	{"prices", OPTION_PRICES, READING_PRICES_ARGUMENT, 0, READING_PRICES_HELP, 1},
	{"layout", OPTION_LAYOUT, "NAME", 0,
		"print the table or draw the figure NAME of a document; 'list' lists them", 1},
	{"beside", OPTION_BESIDE, "published", 0,
		"with --layout, also show the numbers of the publication", 1},
	{"figure", OPTION_FIGURE, "KIND", 0,
		"draw a figure into -o FILE.pdf, .svg or .png: scaling, bars, heatmap, or over "
		"time: timeline, memory",
		2},
	{"format", OPTION_FORMAT, "FORMAT", 0,
		"print text, markdown, latex, csv or json (default: by the ending of FILE)", 2},
	{"json", OPTION_JSON, NULL, 0, "same as --format json", 2},
	{"output", 'o', "FILE", 0, "write to FILE instead of standard output", 2},
	{"keep-script", OPTION_KEEP_SCRIPT, "FOLDER", 0,
		"with a figure, keep gnuplot's script and data in FOLDER", 2},
	{0},
};

// Cuts the next item off a list with commas; NULL at the end.
static char *next_item(char **list)
{
	char *item = *list ? strsep(list, ",") : NULL;
	return item;
}

static void add_labels(struct argp_state *state, const char *option, char *argument,
	const char **labels, size_t *n)
{
	for (char *item; (item = next_item(&argument));) {
		if (*n == COMPARISON_LABELS_MAX) {
			reading_option_error(
				state, "--%s: more than %d labels", option, COMPARISON_LABELS_MAX);
		}
		if (*item) {
			labels[(*n)++] = item;
		}
	}
}

static void print_measures(void)
{
	for (size_t i = 0; i < N_MEASURES; i++) {
		printf("%-26s %-4s %s\n", measures[i].name, measures[i].unit, measures[i].help);
	}
	exit(command_flush());
}

static void unknown_measure(struct argp_state *state, const char *name)
{
	struct suggestion_of_word suggestion = SUGGEST_NONE;
	if (strchr(name, '.')) { // looks like the name of a metric
		reading_option_error(state,
			"--value: expected METRIC:AGGREGATE for a metric, such as %s:max, found "
			"'%s'",
			name, name);
	}
	for (size_t i = 0; i < N_MEASURES; i++) {
		suggest_consider(&suggestion, name, measures[i].name);
	}
	const char *nearest = suggestion.word;
	reading_option_error(state, "--value: no measure '%s'%s%s%s", name,
		nearest ? "; did you mean '" : "; --value help lists them", nearest ? nearest : "",
		nearest ? "'? --value help lists them" : "");
}

static void add_values(struct argp_state *state, struct comparison_fields *fields, char *argument)
{
	for (char *item; (item = next_item(&argument));) {
		enum measure_id measure = measure_by_name(item);
		if (strcmp(item, "help") == 0) {
			print_measures();
		}
		bool is_metric = strchr(item, ':') != NULL; // see read_metrics
		if (measure == N_MEASURES && !is_metric) {
			unknown_measure(state, item);
		}
		if (fields->n_values == N_MEASURES) {
			reading_option_error(
				state, "--value: expected at most %d measures", N_MEASURES);
		}
		fields->values[fields->n_values++] = is_metric ? (struct pivot_value){.name = item,
									 .measure = N_MEASURES}
		                                               : pivot_value_of(measure);
	}
	fields->values_given = true;
}

static void add_baseline(
	struct compare_options *compare, char *argument, const struct argp_state *state)
{
	compare->baseline_given = true;
	char *rest = *argument ? argument : NULL; // '': no baseline
	for (char *item; rest && (item = strsep(&rest, ","));) {
		char *equals = strchr(item, '=');
		if (!equals || equals == item) {
			reading_option_error(
				state, "--baseline: expected LABEL=VALUE, found '%s'", item);
		}
		if (compare->n_baseline == COMPARISON_BASELINE_MAX) {
			reading_option_error(
				state, "--baseline: more than %d labels", COMPARISON_BASELINE_MAX);
		}
		*equals = '\0';
		compare->baseline[compare->n_baseline++] = (struct pivot_match){item, equals + 1};
	}
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct compare_options *compare = state->input;
	struct comparison_fields *fields = &compare->fields;
	switch (key) {
	case 'r':
		fields->rows_given = true;
		add_labels(state, "rows", argument, fields->rows, &fields->n_rows);
		return 0;
	case OPTION_COLUMNS:
		fields->columns_given = true;
		add_labels(state, "columns", argument, fields->columns, &fields->n_columns);
		return 0;
	case 'v':
		add_values(state, fields, argument);
		return 0;
	case 'w':
		reading_condition(&compare->selection, argument, state);
		return 0;
	case 'a':
		fields->count_failed = true;
		return 0;
	case OPTION_BASELINE:
		add_baseline(compare, argument, state);
		return 0;
	case OPTION_PRICES:
		compare->prices = argument;
		return 0;
	case OPTION_FORMAT:
		compare->format = argument;
		return 0;
	case OPTION_JSON:
		compare->format = pivot_format_name(PIVOT_JSON);
		return 0;
	case 'o':
		compare->output = argument;
		compare->layout.output = argument;
		compare->figure.output = argument;
		return 0;
	case OPTION_LAYOUT:
		compare->layout.name = argument;
		return 0;
	case OPTION_BESIDE:
		compare->layout.beside = argument;
		return 0;
	case OPTION_FIGURE:
		compare->figure.kind = argument;
		return 0;
	case OPTION_KEEP_SCRIPT:
		compare->layout.keep_directory = argument;
		compare->figure.keep_directory = argument;
		return 0;
	case ARGP_KEY_ARG:
		compare->paths[compare->n_paths++] = argument;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp compare_argp = {options, parse, "[RUN|DIR|SWEEP...]",
	"Compare runs and sweeps as tables by label, with means of repeats, confidence intervals, "
	"and marks for significant differences from a baseline. Without options the labels that "
	"differ become rows and columns. Two runs are shown in adjacent columns. Default RUN: "
	"those of $STRAIN_DIR, or of the current directory.",
	NULL, NULL, NULL};

// --- runs

static bool are_files(const struct compare_options *compare)
{
	for (size_t i = 0; i < compare->n_paths; i++) {
		struct stat status;
		if (stat(compare->paths[i], &status) == 0 && S_ISDIR(status.st_mode)) {
			return false;
		}
	}
	return true;
}

// --- output

static int write_pivot(const struct pivot *p, enum pivot_format format, const char *output)
{
	struct table_style style = table_style_for(stdout);
	if (!output || strcmp(output, "-") == 0) {
		int r = pivot_write(p, format, stdout, &style);
		return r < 0 && r != -EPIPE ? command_fail("cannot write: %s", strerrordesc_np(-r))
		                            : command_flush();
	}
	_cleanup_free_ char *text = NULL;
	size_t length = 0;
	FILE *stream = open_memstream(&text, &length);
	struct error e = {0};
	int r = stream ? pivot_write(p, format, stream, &(struct table_style){0}) : -errno;
	if (stream && fclose(stream) != 0 && r == 0) {
		r = -errno;
	}
	r = r < 0 ? error_errno(&e, -r, "cannot write %s", output)
	          : whole_file_write(output, text, length, &e);
	return r < 0 ? command_fail("%s", e.text) : STATUS_OK;
}

// Checks options before any run is read.
static int find_format(const struct compare_options *compare, enum pivot_format *ret)
{
	const char *output = compare->output, *ending = output ? strrchr(output, '.') : NULL;
	*ret = PIVOT_TEXT;
	if (ending && strcmp(ending, ".strain") == 0) {
		return command_usage(
			"compare", "--output: '%s' is a run and would be overwritten", output);
	}
	const struct comparison_fields *fields = &compare->fields;
	if (compare->layout.name &&
		(compare->figure.kind || fields->rows_given || fields->columns_given ||
			fields->values_given || fields->count_failed || compare->baseline_given)) {
		return command_usage("compare",
			"--layout cannot be combined with --rows, --columns, --value, --all, "
			"--baseline or --figure");
	}
	if (compare->figure.kind) {
		return compare_figure_check(&compare->figure);
	}
	if (compare->format && !pivot_format_parse(compare->format, ret)) {
		return command_usage("compare",
			"--format: expected text, markdown, latex, csv or json, found '%s'",
			compare->format);
	}
	if (compare->layout.name && compare_layout_draws(&compare->layout)) {
		return STATUS_OK;
	}
	enum figure_format figure;
	if (!compare->format && output && figure_format_of(output, &figure)) {
		return command_usage("compare",
			"--output: '%s' is a figure: choose its kind with --figure scaling, bars, "
			"heatmap, timeline or memory",
			output);
	}
	if (!compare->format && output && strcmp(output, "-") != 0 &&
		!pivot_format_of(output, ret)) {
		return command_usage("compare",
			"--output: '%s' does not end in .txt, .md, .tex, .csv or .json: use "
			"--format",
			output);
	}
	return STATUS_OK;
}

// Runs side by side show all their differences.
static void say_determined(const struct comparison_fields *fields)
{
	_cleanup_text_ struct text names = {0};
	for (size_t i = 0; i < fields->n_determined && !fields->side_by_side; i++) {
		text_append_string(&names, i ? ", " : "");
		text_append_printable(&names, fields->determined[i], strlen(fields->determined[i]));
	}
	if (names.length > 0 && names.data) {
		command_note("excluded because other labels determine them: %s (--rows shows them)",
			names.data);
	}
}

static void say_merged(const struct comparison_fields *fields)
{
	if (fields->merged) {
		command_note("runs in one cell differ in %s: separate them with --rows or "
			     "--columns, or select with --where",
			fields->merged);
	}
	if (fields->merged_jobs) {
		command_note("runs in one cell have different commands but the same labels: "
			     "separate them with --columns path");
	}
}

static void say_warnings(const struct comparison *c)
{
	for (size_t i = 0; i < c->n_warnings; i++) {
		command_note("warning: %s", c->warnings[i]);
	}
}

// Without --baseline, the comparison takes the baseline of the plans of the sweeps; none if they
// differ.
static void take_plan(struct comparison *c, struct plan_baseline *planned)
{
	_cleanup_text_ struct text different = {0};
	if (comparison_takes_plan(c) &&
		plan_baseline_find(c->runs, c->n_runs, planned, &different)) {
		comparison_take_plan(c, planned->matches, planned->n);
	}
	if (different.data) {
		command_note("%s", different.data);
	}
}

static int write_comparison(
	const struct compare_options *compare, const struct comparison *c, enum pivot_format format)
{
	if (c->note) {
		command_note("%s", c->note);
	}
	say_determined(&c->fields);
	say_merged(&c->fields);
	if (format != PIVOT_JSON) {
		say_warnings(c);
	}
	return compare->figure.kind ? draw_pivot(&compare->figure, &c->pivot)
	                            : write_pivot(&c->pivot, format, compare->output);
}

static int compare_runs(const struct compare_options *compare, const struct selected *selected,
	const struct catalogue *catalogue, enum pivot_format format)
{
	_cleanup_free_ struct comparison *c = calloc(1, sizeof(*c));
	struct plan_baseline planned = {0};
	struct error e = {0};
	bool of_columns;
	if (!c) {
		return command_fail("cannot compare: %s", strerrordesc_np(ENOMEM));
	}
	c->runs = selected->runs;
	c->n_runs = selected->n;
	c->sources = selected->sources;
	c->several_sources = compare->n_paths > 1 && !are_files(compare);
	c->figure = compare->figure.kind != NULL;
	c->baseline_given = compare->baseline_given;
	c->baseline = compare->baseline;
	c->n_baseline = compare->n_baseline;
	c->fields = compare->fields;
	const char *unknown = comparison_unknown_label(c, &of_columns);
	if (unknown) {
		reading_unknown_label(
			catalogue, of_columns ? "--columns" : "--rows", unknown, false);
		return STATUS_FAILURE;
	}
	const char *option = "";
	int r = comparison_choose(c, &e);
	if (r == 0) {
		take_plan(c, &planned);
		r = comparison_build(c, &e);
		option = r == -EINVAL ? "--" : ""; // the text begins with "baseline"
	}
	int status = r < 0 ? command_fail("%s%s", option, e.text)
	                   : write_comparison(compare, c, format);
	comparison_done(c);
	plan_baseline_done(&planned);
	return status;
}

static int compare_all(
	struct compare_options *compare, const struct prices *prices, enum pivot_format format)
{
	struct catalogue c = {0};
	struct selected selected = {0};
	const struct catalogue_options wanted = {.prices = prices,
		.advice = compare->layout.name && layout_show_needs_advice(compare->layout.name)};
	int status = reading_catalogue(compare->paths, compare->n_paths, &wanted, &c);
	if (status != STATUS_OK) {
		return status;
	}
	if (!reading_has_prices(&compare->selection, &c, prices) ||
		!reading_knows_conditions(&compare->selection, &c)) {
		status = STATUS_FAILURE;
	} else if (selected_find(&compare->selection, &c, compare->paths, &selected) < 0) {
		status = command_fail("cannot compare: %s", strerrordesc_np(ENOMEM));
	} else if (selected.n == 0) {
		status = command_fail("no runs in %s%s", compare->paths[0],
			compare->selection.n_where ? " that match --where" : "");
	} else if (compare->layout.name) {
		status = compare_layout_show(&compare->layout, selected.runs, selected.n, format);
	} else if (compare->figure.kind && figure_pivot_is_of_runs(kind_of(&compare->figure))) {
		status = draw_runs(&compare->figure, selected.runs, selected.n);
	} else {
		status = compare_runs(compare, &selected, &c, format);
	}
	// The table has the others, as a page of strain report.
	status = status == STATUS_OK && c.n_unreadable > 0 ? STATUS_FAILURE : status;
	selected_done(&selected);
	catalogue_done(&c);
	return status;
}

int command_compare(int argc, char **argv)
{
	_cleanup_free_ char **paths = calloc((size_t)argc + 2, sizeof(*paths));
	_cleanup_free_ struct compare_options *compare = calloc(1, sizeof(*compare));
	if (!paths || !compare) {
		return command_fail("cannot compare: %s", strerrordesc_np(ENOMEM));
	}
	compare->paths = paths;
	reading_options(&compare_argp, argc, argv, compare);
	bool found = true;
	if (compare->n_paths == 0) {
		compare->n_paths = reading_find_places(paths);
		found = compare->n_paths > 0;
	} else {
		found = reading_find_all(paths, compare->n_paths, RUN_NAME_ANY);
	}
	enum pivot_format format;
	_cleanup_(prices_done) struct prices room = {0};
	const struct prices *prices = NULL;
	found = found && reading_prices(compare->prices, &room, &prices);
	int status = found ? compare_layout_check(&compare->layout) : STATUS_FAILURE;
	status = status == STATUS_OK ? find_format(compare, &format) : status;
	if (status == STATUS_OK && compare->layout.name &&
		!layout_show_needs_runs(compare->layout.name)) {
		status = compare_layout_show(&compare->layout, NULL, 0, format);
	} else if (status == STATUS_OK) {
		status = compare_all(compare, prices, format);
	}
	for (size_t i = 0; i < compare->n_paths; i++) {
		free(paths[i]);
	}
	selection_done(&compare->selection);
	return status;
}
