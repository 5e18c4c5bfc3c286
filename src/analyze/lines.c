// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The lines at the end of a run.

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis.h"
#include "analyze/gpu_facts.h"
#include "analyze/leak_facts.h"
#include "analyze/measures.h"
#include "analyze/words.h"
#include "base/cleanup.h"
#include "base/parse.h"

#define COLUMNS 120
#define INDENT 8 // "strain: "
#define OUTPUT_LINES 3

static void append_line(struct text *out, const char *prefix, const struct text *line)
{
	if (line->length > 0) {
		text_append_string(out, prefix);
		words_append_elided(out, line->data, COLUMNS - INDENT);
		text_append(out, "\n", 1);
	}
}

// Epochs and their rate: the part that the job's own words make known. Phases will stand here too.
// False where nothing was said.
static bool append_epochs(struct text *t, const struct analysis *a)
{
	size_t n = 0;
	for (size_t i = 0; i < a->epochs.n; i++) {
		n += !a->epochs.items[i].open;
	}
	if (n == 0 && a->overview.partial) {
		return false; // that is said above
	}
	if (n == 0) {
		text_append_string(t, "ran ");
		words_append_seconds(t, a->overview.duration_s);
		return true;
	}
	words_append_counted(t, (double)n, "epoch");
	text_append_string(t, " of ");
	words_append_seconds(t, epoch_typical_seconds(&a->epochs));
	// The one rate that compare and sweep know too: not what an epoch's whole time makes of it.
	const char *why = NULL;
	double rate = measures[MEASURE_SAMPLES_PER_SECOND].compute(a, &why);
	if (rate > 0) {
		char number[32];
		text_count(number, sizeof(number), (uint64_t)llround(rate));
		text_format(t, ", %s samples/s%s", number,
			a->phases.steady > 0 ? " in iterations" : "");
	}
	return true;
}

// What the job printed about its last epoch: "loss 0.218".
static void append_points(struct text *t, const struct analysis *a)
{
	enum { SHOWN = 2 };
	const struct epoch *last = a->epochs.n ? &a->epochs.items[a->epochs.n - 1] : NULL;
	for (size_t i = 0; last && i < last->n_points && i < SHOWN; i++) {
		text_append_string(t, ", ");
		words_append_elided(t, last->points[i].name, 16);
		text_format(t, " %.3g", last->points[i].value);
	}
}

// Of the job's GPUs.
static void append_gpus(struct text *t, const struct analysis *a)
{
	const struct overview *o = &a->overview;
	const struct gpu_figures *fullest = NULL;
	double lowest = INFINITY, highest = -INFINITY;
	for (size_t i = 0; i < o->n_gpus; i++) {
		const struct gpu_figures *gpu = &o->gpus[i];
		if (gpu_owner(a, i) != GPU_OF_JOB) {
			continue;
		}
		if (isfinite(gpu->memory_peak_bytes) &&
			(!fullest || gpu->memory_peak_bytes > fullest->memory_peak_bytes)) {
			fullest = gpu;
		}
		lowest = fmin(lowest, gpu->busy); // fmin and fmax pass NAN over
		highest = fmax(highest, gpu->busy);
	}
	if (fullest) {
		text_append_string(t, ", GPU memory ");
		words_append_bytes_of(t, fullest->memory_peak_bytes, fullest->memory_bytes);
	}
	if (isfinite(highest)) {
		text_append_string(t, ", GPU busy ");
		words_append_percent(t, lowest);
	}
	if (isfinite(highest) && highest > lowest) {
		text_append_string(t, " to ");
		words_append_percent(t, highest);
	}
}

static void append_figures(struct text *t, const struct analysis *a)
{
	const struct overview *o = &a->overview;
	if (append_epochs(t, a)) {
		append_points(t, a);
		if (a->stops.total_s > 0) {
			text_append_string(t, ", stopped for ");
			words_append_seconds(t, a->stops.total_s);
		}
		text_append_string(t, "; ");
	}
	if (isfinite(o->cpu_seconds) && (o->n_gpus == 0 || o->cpu_inexact)) {
		text_append_string(t, "CPU time ");
		words_append_seconds(t, o->cpu_seconds);
		text_append_string(t, o->cpu_inexact ? " (inexact), " : ", ");
	}
	if (isfinite(o->memory.peak_bytes)) {
		text_append_string(t, "host memory ");
		overview_append_memory(t, &o->memory, NAN);
		text_format(t, " (%s)", o->memory.kind);
	} else {
		text_append_string(t, "host memory not measured");
	}
	append_gpus(t, a);
}

// "GPU power (not supported by this driver)" ... as many as fit.
static void append_missing(struct text *t, const struct analysis *a, size_t columns)
{
	size_t shown = 0, rest = 0;
	for (size_t i = 0; i < a->missing.n; i++) {
		_cleanup_text_ struct text item = {0};
		text_append_string(&item, shown ? ", " : "; not measured: ");
		if (!missing_append_subjects(&item, &a->metrics, &a->missing, i)) {
			continue;
		}
		text_append_string(&item, " (");
		missing_append_reason(&item, &a->missing.items[i]);
		text_append_string(&item, ")");
		// Room for " and 12 more".
		bool fits = rest == 0 && item.data &&
		            words_columns(t->data) + words_columns(item.data) + 12 <= columns;
		if (fits) {
			text_append(t, item.data, item.length);
		}
		shown += fits;
		rest += !fits;
	}
	if (rest > 0) {
		text_format(
			t, shown ? " and %zu more" : "; not measured: %zu kinds of figures", rest);
	}
}

static void append_recording(struct text *t, const struct analysis *a)
{
	const struct recording_figures *recording = &a->overview.recording;
	if (isfinite(recording->cpu_share)) {
		text_append_string(t, "recording cost ");
		words_append_percent(t, recording->cpu_share);
		text_append_string(t, " of one CPU");
	} else {
		text_append_string(t, "what recording cost is not known");
	}
	append_missing(t, a, COLUMNS - INDENT);
}

// Whole commands, to be copied.
static void append_commands(struct text *out, const char *indent, const char *path)
{
	text_format(out, "%sstrain show ", indent);
	text_append_word(out, path);
	text_format(out, "\n%sstrain report ", indent);
	text_append_word(out, path);
	text_append_string(out, " -o report.html\n");
}

// The last that a job printed which failed, as far as it is known.
static void append_output(struct text *out, const char *prefix, const struct analysis *a)
{
	const char *output = a->overview.outcome.output;
	struct cursor lines[OUTPUT_LINES];
	bool fault = a->verdict.bottleneck == BOTTLENECK_GPU_FAULT &&
	             a->overview.outcome.outcome == OUTCOME_CRASH;
	bool failed = (a->verdict.bottleneck == BOTTLENECK_FAILED || fault) && output;
	size_t n = failed ? outcome_last_lines(output, OUTPUT_LINES, lines) : 0;
	for (size_t i = 0; i < n; i++) {
		_cleanup_text_ struct text line = {0};
		text_append_string(&line, "| ");
		text_append(&line, lines[i].at, (size_t)(lines[i].end - lines[i].at));
		append_line(out, prefix, &line);
	}
}

void verdict_lines(const struct analysis *a, struct text *out)
{
	static const char indent[] = "        ";
	struct text line = {0};
	// That it failed comes before that not all of it is known, and that before what is known.
	bool failed = a->verdict.bottleneck == BOTTLENECK_FAILED;
	if (a->overview.partial && !failed) {
		overview_append_recorded(&line, &a->overview);
		append_line(out, "strain: ", &line);
		text_clear(&line);
	}
	text_append_string(&line, a->verdict.headline);
	append_line(out, a->overview.partial && !failed ? indent : "strain: ", &line);
	append_output(out, indent, a);
	if (a->overview.partial && failed) {
		text_clear(&line);
		overview_append_recorded(&line, &a->overview);
		append_line(out, indent, &line);
	}
	text_clear(&line);
	leak_append_warning(&line, &a->growth);
	append_line(out, indent, &line);
	text_clear(&line);
	text_append_string(&line, a->verdict.next);
	append_line(out, indent, &line);
	text_clear(&line);
	text_append_string(&line, a->verdict.marking);
	append_line(out, indent, &line);
	text_clear(&line);
	append_figures(&line, a);
	append_line(out, indent, &line);
	text_clear(&line);
	append_recording(&line, a);
	append_line(out, indent, &line);
	append_commands(out, indent, reader_path(a->reader));
	text_done(&line);
}
