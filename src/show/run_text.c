// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A run on the terminal: the verdict first, then its evidence.

#include "show/run_text.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/words.h"
#include "show/run_tables.h"
#include "run/allocation.h"
#include "run/energy.h"
#include "run/growth.h"
#include "study/prices.h"
#include "verdict/causes.h"
#include "verdict/evidence.h"
#include "verdict/tried.h"
#include "verdict/verdict.h"

#define WIDTH 100 // of sentences, if the terminal's width is not known
#define INDENT 10 // of text next to a word such as "Verdict"
#define PROCESSES_SHOWN 12
#define RANKS_SHOWN 16
#define SPANS_SHOWN 12
#define EVENTS_SHOWN 8
#define MISSING_SHOWN 12
#define SLOWEST_SHOWN 3
#define OUTPUT_SHOWN 10
#define MORE "strain show --all: waits, threads, CPU time by code and function, lines of the script"
#define SLOW_RATIO 2.0 // an iteration that is less slow, relative to the median, is not reported

#define _cleanup_table_ __attribute__((cleanup(table_cleanup)))
static void table_cleanup(struct table **t)
{
	table_free(*t);
}

struct page {
	const struct analysis *a;
	const struct show_text_options *options;
	FILE *stream;
	struct table_style style;
	bool all;
	bool iterations;
};

static void bold(const struct page *p, const char *text)
{
	fprintf(p->stream, p->style.colour ? "\033[1m%s\033[0m" : "%s", text);
}

// Prints "Verdict   TEXT", wrapped at blanks; lines after the first are indented.
static void print_field(const struct page *p, const char *word, const char *text)
{
	_cleanup_text_ struct text folded = {0};
	bold(p, word);
	words_append_folded(
		&folded, text, strlen(word), INDENT, p->style.width ? p->style.width : WIDTH);
	fprintf(p->stream, "%s\n", folded.data ? folded.data : "");
}

// The style of a table next to a word: as wide as the sentences, unless --all asks for every
// column.
static struct table_style style_beside(const struct page *p, const char *word)
{
	struct table_style style = p->style;
	style.width = style.width || p->all ? style.width : WIDTH;
	style.indent = INDENT;
	style.no_titles = true;
	style.lead = word;
	return style;
}

static void append_labels(struct text *t, const struct overview *o)
{
	for (size_t i = 0; i < o->n_labels; i++) {
		const struct run_label *label = &o->labels[i];
		text_append_string(t, i ? " " : "");
		text_append_printable(t, label->name, strlen(label->name));
		text_append_string(t, "=");
		text_append_printable(t, label->value, strlen(label->value));
	}
}

static void print_head(const struct page *p)
{
	const struct overview *o = &p->a->overview;
	_cleanup_text_ struct text name = {0}, line = {0}, labels = {0}, command = {0},
				   limits = {0};
	size_t width = p->style.width ? p->style.width : SIZE_MAX;
	text_append_printable(&name, o->name, strlen(o->name));
	text_append_string(&line, "   ");
	if (o->partial) {
		overview_append_recorded(&line, o);
	} else {
		words_append_seconds(&line, o->duration_s);
	}
	text_append_string(&line, "   ");
	overview_append_outcome(&line, o);
	append_labels(&labels, o);
	words_append_elided(&command, o->command, width);
	if (!name.data || !line.data || !command.data) {
		return;
	}
	bold(p, name.data);
	fputs(line.data, p->stream);
	bool beside = labels.data && words_columns(name.data) + words_columns(line.data) + 3 +
	                                             words_columns(labels.data) <=
	                                     width;
	fprintf(p->stream, "%s%s\n", beside ? "   " : "", beside ? labels.data : "");
	fprintf(p->stream, "%s\n", command.data);
	if (labels.data && !beside) {
		print_field(p, "Labels", labels.data);
	}
	overview_append_limits(&limits, p->a->tables.reader);
	if (limits.length > 0 && limits.data) {
		print_field(p, "Limits", limits.data);
	}
	fputc('\n', p->stream);
}

// The other causes that hold.
static void print_parts(const struct page *p)
{
	_cleanup_text_ struct text line = {0};
	causes_append_parts(&line, p->a->verdict);
	if (line.length > 0 && line.data) {
		print_field(p, "Also", line.data);
	}
}

static void append_range(struct text *t, const struct suggestion *suggestion)
{
	double low = suggestion->gain.low, high = suggestion->gain.high;
	if (high - low >= 0.05 && high < 20) {
		text_format(t, " (%.1f to %.1f", low, high);
		text_append_string(t, *suggestion->basis ? "; " : ")");
	} else {
		text_append_string(t, *suggestion->basis ? " (" : "");
	}
	text_append_string(t, suggestion->basis);
	text_append_string(t, *suggestion->basis ? ")" : "");
}

// Appends "1.5x OMP_NUM_THREADS=1, or OMP_WAIT_POLICY=passive; OMP_NUM_THREADS=1 measured: 1.48x
// (1.41 to 1.55), estimated 1.5x".
static void append_tried(struct text *t, const struct suggestion *suggestion)
{
	const struct tried *tried = suggestion->tried;
	struct setting_list second;
	text_format(t, "%.1fx ", tried->gain.value);
	text_append_string(t, suggestion->action);
	text_append_string(t, "; ");
	if (setting_choose(&suggestion->settings, 1, &second)) {
		setting_append(t, &tried->settings);
		text_append_string(t, " ");
	}
	tried_append(t, tried);
}

// Tried settings that no suggestion includes: without gain, or joined from several.
static void print_tried(const struct page *p)
{
	const struct verdict *v = p->a->verdict;
	bool first = true;
	for (size_t i = 0; i < v->tried.n; i++) {
		_cleanup_text_ struct text line = {0};
		if (!tried_is_told(v, &v->tried.items[i])) {
			setting_append(&line, &v->tried.items[i].settings);
			text_append_string(&line, ": ");
			tried_append_result(&line, &v->tried.items[i]);
			print_field(p, first ? "Tried" : "", line.data ? line.data : "");
			first = false;
		}
	}
}

// Prints "1.9x  train.py:42  num_workers 2 -> 4 (1.7 to 2.0; two idle CPUs)".
static void print_suggestions(const struct page *p)
{
	const struct verdict *v = p->a->verdict;
	for (size_t i = 0; i < v->n_suggestions; i++) {
		const struct suggestion *suggestion = &v->suggestions[i];
		_cleanup_text_ struct text line = {0};
		if (suggestion->tried) {
			append_tried(&line, suggestion);
		} else {
			if (suggestion->gain.value >= 1.05) {
				text_format(&line, "%s%.1fx ",
					suggestion->kind == GAIN_AT_MOST ? "at most " : "",
					suggestion->gain.value);
			}
			text_append_string(&line, suggestion->action);
			append_range(&line, suggestion);
		}
		print_field(p, i == 0 ? "Try" : "", line.data ? line.data : "");
	}
	if (v->n_suggestions == 0 && *v->next) {
		print_field(p, v->action ? "Try" : "Next", v->action ? v->action : v->next);
	}
	if (*v->marking) {
		print_field(p, "Hint", v->marking);
	}
}

// The contents of memory, as far as they are known.
static void print_held(const struct page *p)
{
	_cleanup_text_ struct text host = {0}, gpu = {0};
	memory_breakdown_append(&host, &p->a->verdict->memory, false);
	memory_breakdown_append(&gpu, &p->a->verdict->memory, true);
	if (host.length > 0) {
		print_field(p, "Memory", host.data ? host.data : "");
	}
	if (gpu.length > 0) {
		print_field(p, "On GPUs", gpu.data ? gpu.data : "");
	}
}

// The last output lines of a failed job, made safe for a terminal.
static void print_output(const struct page *p)
{
	const struct outcome_told *told = &p->a->overview.outcome;
	struct cursor lines[OUTPUT_SHOWN];
	bool failed = !outcome_is_success(told->outcome) && told->output;
	size_t n = failed ? outcome_last_lines(told->output, OUTPUT_SHOWN, lines) : 0;
	size_t width = p->style.width > INDENT ? p->style.width - INDENT : SIZE_MAX;
	for (size_t i = 0; i < n; i++) {
		_cleanup_text_ struct text raw = {0}, line = {0};
		text_append(&raw, lines[i].at, (size_t)(lines[i].end - lines[i].at));
		words_append_elided(&line, raw.data ? raw.data : "", width);
		bold(p, i == 0 ? "Output" : "");
		fprintf(p->stream, "%*s%s\n", i == 0 ? INDENT - (int)strlen("Output") : INDENT, "",
			line.data ? line.data : "");
	}
}

// Allocated against used, in hours, and in money with a price list.
static void print_allocated(const struct page *p)
{
	struct allocation allocation;
	struct energy energy;
	_cleanup_text_ struct text line = {0}, used = {0}, cost = {0};
	allocation_find(p->a, &allocation);
	allocation_append(&line, &allocation);
	if (line.length > 0 && line.data) {
		print_field(p, "Allocated", line.data);
	}
	energy_find(p->a, &energy);
	energy_append(&used, &energy);
	if (used.length > 0 && used.data) {
		print_field(p, "Energy", used.data);
	}
	if (p->options->priced) {
		prices_append(&cost, p->options->prices, p->options->priced);
		print_field(p, "Cost", cost.data ? cost.data : "");
	}
}

// Warnings of memory that grows, which costs no time yet, but will end the job, and of a training
// that has diverged.
static void print_warning(
	const struct page *p, const struct text *growth, const struct text *of_gpu)
{
	_cleanup_text_ struct text lost = {0};
	epoch_list_append_not_finite(&lost, &p->a->tables.epochs);
	if (growth->length > 0 && growth->data) {
		print_field(p, "Warning", growth->data);
	}
	if (of_gpu->length > 0 && of_gpu->data) {
		print_field(p, "Warning", of_gpu->data);
	}
	if (lost.length > 0 && lost.data) {
		print_field(p, "Warning", lost.data);
	}
}

static int print_verdict(const struct page *p)
{
	const struct verdict *v = p->a->verdict;
	_cleanup_text_ struct text line = {0}, growth = {0}, of_gpu = {0};
	text_append_string(&line, v->headline);
	if (v->confidence != CONFIDENCE_NONE) {
		text_format(&line, " (%s confidence)", confidence_name(v->confidence));
	}
	print_field(p, "Verdict", line.data ? line.data : "");
	print_output(p);
	if (*v->shares) {
		print_field(p, "", v->shares);
	}
	print_parts(p);
	growth_append_warning(&growth, &p->a->growth);
	growth_append_warning(&of_gpu, &p->a->gpu_growth);
	print_warning(p, &growth, &of_gpu);
	_cleanup_table_ struct table *t = NULL;
	const char *const said[] = {
		growth.data ? growth.data : "", of_gpu.data ? of_gpu.data : "", NULL};
	int r = run_table_evidence(p->a, said, &t);
	if (r == 0 && table_rows(t) > 0) {
		const struct table_style style = style_beside(p, "Evidence");
		r = table_print(t, p->stream, &style);
	}
	if (r == 0) {
		print_held(p);
		print_suggestions(p);
		print_tried(p);
	}
	if (*v->needed && v->confidence != CONFIDENCE_HIGH && v->n_causes > 0) {
		_cleanup_text_ struct text needed = {0};
		text_format(&needed, "%s, for higher confidence", v->needed);
		print_field(p, "Needed", needed.data ? needed.data : v->needed);
	}
	print_allocated(p);
	return r;
}

static int print_epochs(const struct page *p)
{
	struct epoch_table epochs = {0};
	int r = epoch_table_build(p->a, &epochs);
	if (r == 0 && table_rows(epochs.table) > 0) {
		fputc('\n', p->stream);
		r = table_print(epochs.table, p->stream, &p->style);
	}
	epoch_table_done(&epochs);
	return r;
}

// A table after an empty line, if it has rows.
static int print_table(const struct page *p, int built, struct table *t)
{
	if (built < 0 || table_rows(t) == 0) {
		return built;
	}
	fputc('\n', p->stream);
	return table_print(t, p->stream, &p->style);
}

// The time of the run outside iterations, if it is more than a moment.
static void print_outside(const struct page *p)
{
	const struct phases *phases = &p->a->phases;
	const struct {
		const char *what;
		double seconds;
	} parts[] = {{"before the first iteration", phases->startup_s},
		{"validation, checkpoints and similar", phases->apart_s},
		{"between iterations", phases->between_s},
		{"in iterations with lost marks", phases->unrecorded_s},
		{"after the last", phases->after_s}, {"stopped", phases->stopped_s}};
	_cleanup_text_ struct text line = {0};
	for (size_t i = 0; i < ARRAY_LENGTH(parts); i++) {
		if (parts[i].seconds > 0.005 * p->a->overview.duration_s) {
			text_append_string(&line, line.length ? "; " : "");
			words_append_seconds(&line, parts[i].seconds);
			text_format(&line, " %s", parts[i].what);
		}
	}
	if (line.length > 0) {
		print_field(p, "Outside", line.data);
	}
}

static void print_left_out(const struct page *p)
{
	const struct phases *phases = &p->a->phases;
	_cleanup_text_ struct text line = {0};
	char count[32];
	if (phases->warm_up == 1) {
		text_append_string(&line, "the first iteration: warm-up");
	} else if (phases->warm_up > 0) {
		text_format(&line, "the first %s iterations: warm-up",
			text_count(count, sizeof(count), phases->warm_up));
	}
	if (phases->incomplete) {
		text_format(&line, "%s%s", line.length ? "; " : "", phases->incomplete);
	}
	if (phases->stopped > 0) {
		text_format(&line, "%s%s during which the job was stopped", line.length ? "; " : "",
			text_count(count, sizeof(count), phases->stopped));
	}
	if (phases->compiled > 0) {
		text_format(&line, "%s%s in which the framework compiled code (",
			line.length ? "; " : "",
			text_count(count, sizeof(count), phases->compiled));
		words_append_seconds(&line, phases->compiled_s);
		text_append_string(&line, ")");
	}
	if (line.length > 0) {
		print_field(p, "Excluded", line.data);
	}
	if (phases->phases_missing) {
		print_field(p, "Phases", phases->phases_missing);
	}
}

// With several ranks, the tables above are about one of them.
static int print_ranks(const struct page *p)
{
	_cleanup_table_ struct table *t = NULL;
	_cleanup_text_ struct text whose = {0};
	size_t n = p->a->phases.n_ranks, limit = p->iterations ? SIZE_MAX : RANKS_SHOWN;
	run_table_append_rank(&whose, p->a);
	if (whose.length > 0 && whose.data) {
		print_field(p, "Of rank", whose.data);
	}
	int r = run_table_ranks(p->a, limit, &t);
	r = print_table(p, r, t);
	if (p->a->phases.waits_inferred && r == 0) {
		fputs("waits estimated from backward passes: they are not marked\n", p->stream);
	}
	if (n > 1 && n > limit) {
		fprintf(p->stream, "and %zu more with longer waits (--iterations)\n", n - limit);
	}
	return r;
}

static int print_spans(const struct page *p)
{
	const struct phases *phases = &p->a->phases;
	_cleanup_table_ struct table *t = NULL;
	char count[32];
	int r = run_table_spans(p->a, p->all ? SIZE_MAX : SPANS_SHOWN, &t);
	r = print_table(p, r, t);
	size_t rest = r < 0 ? 0 : phases->n_own - table_rows(t);
	if (rest > 0) {
		fprintf(p->stream, "and %s more with shorter times (--all)\n",
			text_count(count, sizeof(count), rest));
	}
	if (phases->own_left_out > 0) {
		fprintf(p->stream, "and %s spans with names beyond the limit\n",
			text_count(count, sizeof(count), phases->own_left_out));
	}
	return r;
}

static int print_slowest(const struct page *p)
{
	const struct phases *phases = &p->a->phases;
	_cleanup_table_ struct table *t = NULL;
	size_t limit = 0;
	while (limit < phases->n_slowest && (p->iterations || limit < SLOWEST_SHOWN) &&
		(p->iterations || (double)phases->slowest[limit].iteration.length_ns / 1e9 >=
					  SLOW_RATIO * phases->p50_s)) {
		limit++;
	}
	int r = run_table_slowest(p->a, limit, &t);
	return print_table(p, r, t);
}

static int print_details(const struct page *p)
{
	_cleanup_table_ struct table *workers = NULL;
	struct epoch_phase_table epochs = {0};
	int r = epoch_phase_table_build(p->a, &epochs);
	r = print_table(p, r, epochs.table);
	epoch_phase_table_done(&epochs);
	r = r < 0 ? r : run_table_workers(p->a, &workers);
	return r < 0 ? r : print_table(p, r, workers);
}

static int print_iterations(const struct page *p)
{
	_cleanup_table_ struct table *iterations = NULL, *phases = NULL;
	int r = run_table_iterations(p->a, &iterations);
	r = print_table(p, r, iterations);
	r = r < 0 ? r : run_table_phases(p->a, &phases);
	r = r < 0 ? r : print_table(p, r, phases);
	if (p->a->phases.total > 0) {
		print_outside(p);
		print_left_out(p);
	}
	r = r < 0 ? r : print_ranks(p);
	r = r < 0 || !p->iterations ? r : print_details(p);
	return r < 0 ? r : print_slowest(p);
}

static int print_processes(const struct page *p)
{
	_cleanup_table_ struct table *t = NULL;
	struct process_rest rest;
	int r = run_table_processes_short(p->a, p->all ? SIZE_MAX : PROCESSES_SHOWN, &t, &rest);
	if (r < 0 || table_rows(t) == 0) {
		return r;
	}
	fputc('\n', p->stream);
	r = table_print(t, p->stream, &p->style);
	if (rest.n > 0) {
		char count[32], seconds[32];
		fprintf(p->stream, "and %s more", text_count(count, sizeof(count), rest.n));
		if (isfinite(rest.cpu_seconds)) {
			fprintf(p->stream, " with %s of CPU time",
				text_seconds(seconds, sizeof(seconds), rest.cpu_seconds));
		}
		fputs(" (--all)\n", p->stream);
	}
	return r;
}

static int print_waits(const struct page *p)
{
	_cleanup_table_ struct table *t = NULL;
	int r = run_table_training_waits(p->a, &t);
	return print_table(p, r, t);
}

// CPU time by class of code, or why it is not known.
static int print_code_time(const struct page *p)
{
	_cleanup_table_ struct table *t = NULL;
	struct code_time time;
	int r = code_time_load(p->a, &time);
	if (r < 0) {
		return r;
	}
	if (time.missing) {
		_cleanup_text_ struct text line = {0};
		text_format(&line, "not sampled: %s", time.missing);
		fputc('\n', p->stream);
		print_field(p, "CPU time", line.data ? line.data : "");
	} else {
		r = code_time_table_build(&time, &t);
		r = print_table(p, r, t);
	}
	if (r == 0 && !time.missing && time.phases_missing) {
		print_field(p, "By phase", time.phases_missing);
	}
	code_time_done(&time);
	return r;
}

static int print_lines(const struct page *p)
{
	_cleanup_table_ struct table *t = NULL;
	int r = run_table_lines(p->a, &t);
	return r == 0 && table_rows(t) == 0 ? 0 : print_table(p, r, t);
}

static int print_threads(const struct page *p)
{
	_cleanup_table_ struct table *t = NULL;
	int r = run_table_threads(p->a, &t);
	return print_table(p, r, t);
}

static int print_code(const struct page *p)
{
	_cleanup_table_ struct table *t = NULL;
	int r = print_code_time(p);
	r = r < 0 ? r : run_table_code(p->a, &t);
	return print_table(p, r, t);
}

// What the processes did: what they waited for, and what their CPU time was spent on.
static int print_behaviour(const struct page *p)
{
	int r = print_waits(p);
	r = r < 0 ? r : print_threads(p);
	r = r < 0 ? r : print_code(p);
	return r < 0 ? r : print_lines(p);
}

static int print_devices(const struct page *p)
{
	static int (*const builds[])(const struct analysis *a, struct table **ret) = {
		run_table_gpus, run_table_devices};
	int r = 0;
	for (size_t i = 0; i < ARRAY_LENGTH(builds) && r == 0; i++) {
		_cleanup_table_ struct table *t = NULL;
		r = builds[i](p->a, &t);
		if (r == 0 && table_rows(t) > 0) {
			fputc('\n', p->stream);
			r = table_print(t, p->stream, &p->style);
		}
	}
	return r;
}

static int print_events(const struct page *p)
{
	_cleanup_table_ struct table *t = NULL;
	int r = run_table_events(p->a, p->all ? SIZE_MAX : EVENTS_SHOWN, false, &t);
	if (r < 0 || table_rows(t) == 0) {
		return r;
	}
	const struct table_style style = style_beside(p, "Events");
	r = table_print(t, p->stream, &style);
	size_t rest = run_table_events_shown(p->a) - table_rows(t);
	if (rest > 0) {
		fprintf(p->stream, "%*sand %zu more (--all)\n", INDENT, "", rest);
	}
	return r;
}

static void print_recording(const struct page *p)
{
	const struct recording_figures *recording = &p->a->overview.recording;
	_cleanup_text_ struct text line = {0};
	char count[32];
	if (isfinite(recording->cpu_share)) {
		words_append_percent(&line, recording->cpu_share);
		text_append_string(&line, " of one CPU, ");
	} else {
		text_append_string(&line, "CPU time was not measured; ");
	}
	if (isfinite(recording->memory_peak_bytes)) {
		words_append_bytes(&line, recording->memory_peak_bytes);
		text_append_string(&line, " of memory, ");
	}
	text_append_string(&line, "file ");
	words_append_bytes(&line, recording->file_bytes >= 0 ? (double)recording->file_bytes : NAN);
	if (isfinite(recording->ticks)) {
		text_format(&line, "; %s ticks",
			text_count(count, sizeof(count), (uint64_t)llround(recording->ticks)));
	}
	if (isfinite(recording->ticks_late)) {
		text_format(&line, ", %s late",
			text_count(count, sizeof(count), (uint64_t)llround(recording->ticks_late)));
	}
	if (isfinite(recording->ticks_missed)) {
		text_format(&line, ", %s missed",
			text_count(
				count, sizeof(count), (uint64_t)llround(recording->ticks_missed)));
	}
	fputc('\n', p->stream);
	print_field(p, "Recording", line.data ? line.data : "");
}

static void print_missing(const struct page *p)
{
	const struct missing_list *missing = &p->a->tables.missing;
	struct missing_marker parts[MISSING_MARKERS_MAX];
	size_t n_parts = tables_missing_markers(p->a->tables.reader, parts);
	size_t shown = 0, rest = 0;
	for (; shown < n_parts; shown++) {
		_cleanup_text_ struct text line = {0};
		text_format(&line, "%s: %s", parts[shown].what, parts[shown].reason);
		print_field(p, shown == 0 ? "Missing" : "", line.data ? line.data : "");
	}
	for (size_t i = 0; p->a->implausible && i < p->a->implausible->n; i++) {
		_cleanup_text_ struct text line = {0};
		text_format(&line, "implausible, discarded: %s", p->a->implausible->items[i]);
		print_field(p, shown++ == 0 ? "Missing" : "", line.data ? line.data : "");
	}
	for (size_t i = 0; i < missing->n; i++) {
		_cleanup_text_ struct text line = {0};
		if (!missing_list_append_subjects(&line, &p->a->tables.metrics, missing, i)) {
			continue;
		}
		if (!p->all && shown == MISSING_SHOWN) {
			rest++;
			continue;
		}
		text_append_string(
			&line, missing->items[i].to_the_end && !missing->items[i].broke_off
				       ? ": "
				       : " (part of the run): ");
		text_append_string(&line, missing->items[i].reason);
		print_field(p, shown++ == 0 ? "Missing" : "", line.data ? line.data : "");
	}
	if (rest > 0) {
		fprintf(p->stream, "%*sand %zu more (--all)\n", INDENT, "", rest);
	}
}

int run_text_print(const struct analysis *a, const struct show_text_options *options, FILE *stream)
{
	struct page page = {a, options, stream, table_style_for(stream), options->all,
		options->all || options->iterations};
	print_head(&page);
	int r = print_verdict(&page);
	r = r < 0 ? r : print_iterations(&page);
	r = r < 0 ? r : print_spans(&page);
	r = r < 0 ? r : print_epochs(&page);
	r = r < 0 ? r : print_processes(&page);
	r = r < 0 || !page.all ? r : print_behaviour(&page);
	r = r < 0 ? r : print_devices(&page);
	print_recording(&page);
	r = r < 0 ? r : print_events(&page);
	print_missing(&page);
	if (!page.all) {
		print_field(&page, "More", MORE);
	}
	return r;
}
