// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Slow iterations against the usual one: phases against their medians, rates of the machine against
// theirs over the run.

#include "analyze/slowest.h"

#include <math.h>
#include <string.h>

#include "analyze/analysis.h"
#include "analyze/names.h"
#include "analyze/words.h"
#include "base/cleanup.h"
#include "base/text.h"

#define PHASE_CAUSES_MAX 3
#define LONGER_RATIO 1.2 // than its median: what is less is what phases do anyway
#define LONGER_SHARE 0.1 // and at least this part of what the iteration is longer by
#define AROUND_US 200000 // counters are read some ticks apart: the window is at least this long

// A rate of the machine that can make an iteration slow, worth telling where it was at least
// `ratio` times the usual and `least` a second. Of processes it is the one that iterates.
static const struct {
	const char *what;
	const char *metric;
	enum entity_kind kind;
	double ratio;
	double least;
} rates[] = {
	{"CPU of the job", NAME_CPU_TIME, ENTITY_JOB, 1.75, 0.5},
	{"waiting for a CPU", NAME_CPU_WAIT, ENTITY_PROCESS, 2, 0.1},
	{"CPU of the job's quota refused", NAME_THROTTLED_TIME, ENTITY_JOB, 1.5, 0.05},
	{"stalled for CPU", NAME_JOB_PRESSURE "cpu.some", ENTITY_JOB, 2, 0.1},
	{"stalled for memory", NAME_JOB_PRESSURE "memory.some", ENTITY_JOB, 2, 0.02},
	{"stalled for I/O", NAME_JOB_PRESSURE "io.some", ENTITY_JOB, 2, 0.1},
	{"host stalled for CPU", NAME_PRESSURE "cpu.some", ENTITY_HOST, 2, 0.1},
	{"host stalled for memory", NAME_PRESSURE "memory.some", ENTITY_HOST, 2, 0.02},
	{"host stalled for I/O", NAME_PRESSURE "io.some", ENTITY_HOST, 2, 0.1},
	{"read from storage", NAME_READ_STORAGE, ENTITY_JOB, 2, 1e6},
	{"written to storage", NAME_WRITE_STORAGE, ENTITY_JOB, 2, 1e6},
	{"major faults", NAME_MAJOR_FAULTS, ENTITY_PROCESS, 2, 10},
	{"pages read back after reclaim", NAME_REFAULTS, ENTITY_JOB, 2, 100},
	{"host's major faults", NAME_HOST_MAJOR_FAULTS, ENTITY_HOST, 2, 10},
};

static void add_cause(struct slow_iteration *slow, const struct slow_cause *cause)
{
	if (slow->n_causes < SLOW_CAUSES_MAX) {
		slow->causes[slow->n_causes++] = *cause;
	}
}

// Phases ----------------------------------------------------------------------------------------

// The phase that passed its median most among those not told yet; -1 where none did by much.
static int longest_beyond(const struct slow_iteration *slow, const struct steady *steady,
	const struct phases *p, const bool *told)
{
	double least = LONGER_SHARE * ((double)slow->iteration.length_ns / 1e9 -
					      steady_median(steady, PHASES_MAX));
	int longest = -1;
	for (size_t i = 0; i < p->n; i++) {
		double median = steady_median(steady, i);
		double seconds = (double)slow->iteration.phase_ns[i] / 1e9;
		if (!told[i] && !p->items[i].apart && seconds > LONGER_RATIO * median &&
			seconds - median >= least && seconds - median > 0) {
			least = seconds - median;
			longest = (int)i;
		}
	}
	return longest;
}

static void explain_by_phases(
	struct slow_iteration *slow, const struct steady *steady, const struct phases *p)
{
	bool told[PHASES_MAX] = {false};
	slow->longer = -1;
	for (int n = 0; n < PHASE_CAUSES_MAX && !p->phases_missing; n++) {
		int phase = longest_beyond(slow, steady, p, told);
		if (phase < 0) {
			return;
		}
		slow->longer = n == 0 ? phase : slow->longer;
		told[phase] = true;
		add_cause(slow, &(struct slow_cause){.what = p->items[phase].name,
					.unit = "s",
					.value = (double)slow->iteration.phase_ns[phase] / 1e9,
					.usual = steady_median(steady, (size_t)phase)});
	}
}

// The machine -----------------------------------------------------------------------------------

// A counter's growth per second over a window that begins and ends with a reading; NAN where less
// than two were there.
static double rate_within(const struct series *s)
{
	size_t first = 0, last = s->n;
	while (first < last && !isfinite(s->values[first])) {
		first++;
	}
	while (last > first && !isfinite(s->values[last - 1])) {
		last--;
	}
	if (last - first < 2 || s->t_us[last - 1] <= s->t_us[first]) {
		return NAN;
	}
	double grown = s->values[last - 1] - s->values[first];
	return grown < 0 ? NAN : grown / ((double)(s->t_us[last - 1] - s->t_us[first]) / 1e6);
}

static const struct entity *entity_of_rate(
	const struct analysis *a, const struct phases *p, size_t rate)
{
	if (rates[rate].kind == ENTITY_PROCESS) {
		return p->n_ranks > 0 ? entity_find(&a->entities, p->ranks[0].entity) : NULL;
	}
	return entity_first(&a->entities, rates[rate].kind);
}

static int explain_by_rate(const struct analysis *a, const struct entity *entity,
	struct slow_iteration *slow, size_t rate, struct error *e)
{
	const struct metric_row *metric = metric_by_name(
		&a->metrics, rates[rate].kind, rates[rate].metric);
	double usual = entity && metric
	                       ? analysis_figure(a, entity->id, rates[rate].metric, FIGURE_P50)
	                       : NAN;
	if (!isfinite(usual)) {
		return 0;
	}
	struct series series = {0};
	int64_t from_us = slow->iteration.start_ns / 1000, to_us = slow->iteration.end_ns / 1000;
	if (to_us - from_us < AROUND_US) {
		from_us -= (AROUND_US - (to_us - from_us)) / 2;
		to_us = from_us + AROUND_US;
	}
	int r = reader_series(
		a->reader, entity->id, rates[rate].metric, from_us, to_us, &series, e);
	double value = r == 0 ? rate_within(&series) : NAN;
	series_done(&series);
	if (value >= rates[rate].least && value >= rates[rate].ratio * usual) {
		add_cause(slow, &(struct slow_cause){.what = rates[rate].what,
					.metric = rates[rate].metric,
					.unit = metric->unit,
					.value = value,
					.usual = usual});
	}
	return r;
}

int slowest_explain(
	const struct analysis *a, const struct steady *steady, struct phases *p, struct error *e)
{
	int r = 0;
	for (size_t i = 0; i < p->n_slowest; i++) {
		struct slow_iteration *slow = &p->slowest[i];
		explain_by_phases(slow, steady, p);
		for (size_t k = 0; k < ARRAY_LENGTH(rates) && r == 0; k++) {
			r = explain_by_rate(a, entity_of_rate(a, p, k), slow, k, e);
		}
	}
	return r;
}

// Words -----------------------------------------------------------------------------------------

static void append_pressure(struct text *t, double value)
{
	words_append_percent(t, value);
	text_append_string(t, " of the time");
}

static void append_cpus(struct text *t, double value)
{
	words_append_counted(t, value, "CPU");
}

static void append_bytes_rate(struct text *t, double value)
{
	words_append_bytes(t, value);
	text_append_string(t, "/s");
}

static void append_rate(struct text *t, double value)
{
	words_append_number(t, value);
	text_append_string(t, "/s");
}

static void append_value(struct text *t, const struct slow_cause *cause, double value)
{
	static const char *const cpus[] = {NAME_CPU_TIME, NAME_THROTTLED_TIME};
	bool seconds = strcmp(cause->unit, "s") == 0;
	bool of_cpus = false;
	for (size_t i = 0; cause->metric && i < ARRAY_LENGTH(cpus); i++) {
		of_cpus = of_cpus || strcmp(cause->metric, cpus[i]) == 0;
	}
	void (*const append)(struct text *, double) = !cause->metric ? words_append_seconds
	                                              : of_cpus      ? append_cpus
	                                              : seconds      ? append_pressure
	                                              : strcmp(cause->unit, "By") == 0
	                                                      ? append_bytes_rate
	                                                      : append_rate;
	append(t, value);
}

void slow_iteration_append_why(struct text *t, const struct slow_iteration *slow)
{
	for (size_t i = 0; i < slow->n_causes; i++) {
		const struct slow_cause *cause = &slow->causes[i];
		text_append_string(t, i ? "; " : "");
		text_append_printable(t, cause->what, strlen(cause->what));
		text_append_string(t, " ");
		append_value(t, cause, cause->value);
		text_append_string(t, " instead of ");
		append_value(t, cause, cause->usual);
	}
}
