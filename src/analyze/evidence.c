// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The figures under a verdict: a row each, of those that were measured.

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis.h"
#include "analyze/facts.h"
#include "analyze/leak_facts.h"
#include "analyze/names.h"
#include "analyze/profile.h"
#include "analyze/thresholds.h"
#include "analyze/thread_facts.h"
#include "analyze/wait_facts.h"
#include "analyze/words.h"

#define APART_S 0.2 // of two stops, to be different
#define STOLEN 0.75 // of what others used: it was the hypervisor

int evidence_put(struct verdict *v, const char *what, struct text *value, const char *source)
{
	struct evidence *grown = realloc(v->evidence, (v->n_evidence + 1) * sizeof(*grown));
	if (!grown) {
		text_done(value);
		return -ENOMEM;
	}
	v->evidence = grown;
	struct text title = {0};
	text_append_string(&title, what);
	struct evidence evidence = {text_steal(&title), text_steal(value), source};
	if (!evidence.what || !evidence.value) {
		free(evidence.what);
		free(evidence.value);
		return -ENOMEM;
	}
	grown[v->n_evidence++] = evidence;
	return 0;
}

static int put_cpu(const struct analysis *a, struct verdict *v)
{
	const struct overview *o = &a->overview;
	if (!isfinite(o->cpus_used)) {
		return 0;
	}
	struct text value = {0};
	words_append_number(&value, o->cpus_used);
	text_append_string(&value, " of ");
	words_append_counted(&value, o->cpus, "CPU");
	if (isfinite(o->cpus_used_p95)) {
		text_append_string(&value, ", 95th percentile ");
		words_append_number(&value, o->cpus_used_p95);
	}
	return evidence_put(v, "CPU", &value, NAME_CPU_TIME);
}

static int put_throttling(const struct analysis *a, const struct facts *f, struct verdict *v)
{
	const struct overview *o = &a->overview;
	if (!(o->throttled > 0)) {
		return 0;
	}
	const struct entity *job = entity_first(&a->entities, ENTITY_JOB);
	double seconds = analysis_figure(a, job ? job->id : 0, NAME_THROTTLED_TIME, FIGURE_TOTAL);
	struct text value = {0};
	text_append_string(&value, "used up in ");
	words_append_percent(&value, o->throttled);
	text_append_string(&value, " of its periods");
	if (isfinite(seconds)) { // each CPU counts: it may pass the time of the run
		text_append_string(&value, "; ");
		words_append_number(&value, seconds);
		text_append_string(&value, " CPU-seconds held back");
	}
	if (f->quota.where) {
		text_append_string(
			&value, f->quota.own ? "; the job's own cgroup " : "; around strain: ");
		text_append_printable(&value, f->quota.where, strlen(f->quota.where));
	}
	return evidence_put(v, "CPU quota", &value, NAME_PERIODS_THROTTLED);
}

static int put_memory(const struct analysis *a, struct verdict *v)
{
	const struct overview *o = &a->overview;
	if (!isfinite(o->memory.peak_bytes)) {
		return 0;
	}
	struct text value = {0};
	overview_append_memory(&value, &o->memory, o->memory_limit_bytes);
	bool one = strcmp(o->memory.kind, "resident") == 0;
	text_format(&value, ", peak of %s (%s)", one ? "the largest process" : "all processes",
		o->memory.kind);
	return evidence_put(v, "memory", &value, o->memory.metric);
}

static int put_growth(const struct facts *f, struct verdict *v)
{
	if (!f->growth.leak) {
		return 0;
	}
	struct text value = {0};
	leak_append_warning(&value, &f->growth);
	return evidence_put(v, "growth", &value, NAME_ANONYMOUS);
}

static int put_cache(const struct analysis *a, struct verdict *v)
{
	double share = overview_cache_share(&a->overview);
	if (!isfinite(share)) {
		return 0;
	}
	struct text value = {0};
	words_append_percent(&value, share);
	text_append_string(&value, " of ");
	words_append_bytes(&value, a->overview.asked_bytes);
	text_append_string(&value, " read");
	return evidence_put(v, "page cache", &value, NAME_READ_ASKED);
}

static int put_pressure(const struct analysis *a, struct verdict *v)
{
	static const char *const titles[N_PRESSURES] = {"cpu", "memory", "io"};
	const struct pressure_figures *pressure = &a->overview.pressure;
	struct text value = {0};
	for (unsigned i = 0; i < N_PRESSURES; i++) {
		if (isfinite(pressure->some[i])) {
			text_format(&value, "%s%s ", value.length ? ", " : "", titles[i]);
			words_append_percent(&value, pressure->some[i]);
		}
	}
	if (value.length == 0) {
		return 0;
	}
	text_append_string(&value, pressure->of_job ? " (of the job)" : " (of the host)");
	return evidence_put(v, "pressure", &value,
		pressure->of_job ? "strain.cgroup.pressure" : "strain.pressure");
}

// What phases make known -------------------------------------------------------------------------

static int put_training(const struct facts *f, struct verdict *v)
{
	if (!isfinite(f->main_cpus)) {
		return 0;
	}
	struct text value = {0};
	words_append_number(&value, f->main_cpus);
	text_append_string(&value, " of ");
	words_append_counted(&value, f->cpus, "CPU");
	if (f->main_queued >= 0.01) {
		text_append_string(&value, "; ready without one ");
		words_append_percent(&value, f->main_queued);
		text_append_string(&value, " of the time");
	}
	return evidence_put(
		v, "training", &value, f->main_queued >= 0.01 ? NAME_CPU_WAIT : NAME_CPU_TIME);
}

static int put_workers(const struct facts *f, struct verdict *v)
{
	const struct worker_facts *w = &f->workers;
	if (w->n == 0 || !isfinite(w->cpus)) {
		return 0;
	}
	struct text value = {0};
	text_format(&value, "%u use ", w->n);
	words_append_number(&value, w->cpus);
	text_append_string(&value, " of ");
	words_append_counted(&value, f->cpus, "CPU");
	if (w->preparing > 0) {
		text_append_string(&value, ", preparing ");
		words_append_percent(&value, fmin(1, w->preparing / w->n));
		text_append_string(&value, " of the time");
	}
	return evidence_put(v, "loader workers", &value, NAME_CPU_TIME);
}

static int put_looks(struct verdict *v, const char *what, const struct wait_facts *waits)
{
	struct text value = {0};
	if (waits->looks == 0) {
		return 0;
	}
	wait_facts_append(&value, waits);
	if (value.length == 0) {
		return 0;
	}
	text_format(&value, " (%llu looks)", (unsigned long long)waits->looks);
	return evidence_put(v, what, &value, NAME_WAIT "looks");
}

// What the training thread and the workers wait for.
static int put_waits(const struct facts *f, struct verdict *v)
{
	int r = put_looks(v, "training waits", &f->waits);
	return r < 0 ? r : put_looks(v, "workers wait", &f->worker_waits);
}

static void append_time(struct text *t, double seconds, const char *what)
{
	if (seconds >= 1e-6) {
		text_append_string(t, ", ");
		words_append_seconds(t, seconds);
		text_append_string(t, what);
	}
}

// Processes that an iteration starts, where it starts any.
static int put_children(const struct facts *f, struct verdict *v)
{
	const struct children_facts *c = &f->children;
	struct text value = {0};
	if (!(c->per_iteration >= 0.01)) {
		return 0;
	}
	words_append_number(&value, c->per_iteration);
	text_append_string(&value, " an iteration");
	append_time(&value, c->cpu_s, " of CPU time");
	append_time(&value, c->waits_s, " waited for");
	if (c->command && *c->command) {
		text_append_string(&value, ", mostly ");
		words_append_place(&value, c->command, 24);
	}
	return evidence_put(v, "children", &value, NAME_CHILDREN_STARTED);
}

// Which threads of the training process used CPUs, where more than the first did.
static int put_threads(const struct facts *f, struct verdict *v)
{
	struct text value = {0};
	if (!f->threads.known || !(f->threads.others_cpus >= 0.05)) {
		return 0;
	}
	thread_facts_append(&value, &f->threads);
	if (f->threads.team_outside >= 0.05) {
		text_append_string(&value, ", the team for ");
		words_append_percent(&value, f->threads.team_outside);
		text_append_string(&value, " of the time while nothing computes");
	}
	return evidence_put(v, "training threads", &value, NAME_THREADS_OF "main.cpu_time");
}

// What CPU time went into.
static int put_lines(const struct facts *f, struct verdict *v)
{
	char count[32];
	if (f->lines.looks < LOOKS_ENOUGH) {
		return 0;
	}
	struct text value = {0};
	words_append_percent(&value, f->lines.share);
	text_append_string(&value, " of the run in ");
	words_append_place(&value, f->lines.top, 60);
	text_format(&value, " (%s looks)", text_count(count, sizeof(count), f->lines.looks));
	return evidence_put(v, "lines", &value, NULL);
}

static int put_samples(const struct facts *f, struct verdict *v)
{
	const struct code_facts *groups[N_CODE_GROUPS] = {
		[CODE_LEADER] = &f->code,
		[CODE_THREADS] = &f->code_threads,
		[CODE_WORKERS] = &f->code_workers,
	};
	int r = 0;
	for (size_t i = 0; i < N_CODE_GROUPS && r == 0; i++) {
		struct text value = {0};
		code_facts_append(&value, groups[i]);
		if (value.length > 0) {
			text_format(
				&value, " (%llu samples)", (unsigned long long)groups[i]->samples);
			r = evidence_put(v, code_group_name((enum code_group)i), &value,
				"strain.profile.samples");
		}
	}
	return r;
}

// Both sides of the queue of batches, where one waits for the other.
static int put_rates(const struct facts *f, struct verdict *v)
{
	double rate = f->samples / f->length_s.value, trains = f->samples / f->compute_s;
	char number[32];
	if (!(rate > 0) || !(trains > 0) || !(f->share[PHASE_DATA].value >= 0.05)) {
		return 0;
	}
	struct text value = {0};
	text_format(&value, "%s samples/s",
		text_count(number, sizeof(number), (uint64_t)llround(rate)));
	text_format(&value, "; %s would be trained if they were there",
		text_count(number, sizeof(number), (uint64_t)llround(trains)));
	return evidence_put(v, "input", &value, NULL);
}

// Others on the same CPUs, programs and machines.
static int put_others(const struct facts *f, struct verdict *v)
{
	if (!(f->host_others_cpus >= 0.1)) {
		return 0;
	}
	struct text value = {0};
	words_append_number(&value, f->host_others_cpus);
	text_append_string(&value, f->cpus < f->host_cpus ? " of the machine's " : " of ");
	words_append_counted(&value, f->host_cpus, "CPU");
	if (f->stolen_cpus >= STOLEN * f->host_others_cpus) {
		text_append_string(&value, ", taken by the hypervisor");
	} else if (f->stolen_cpus >= 0.05) {
		text_append_string(&value, ", of which the hypervisor took ");
		words_append_number(&value, f->stolen_cpus);
	}
	return evidence_put(v, "others", &value, "system.cpu.time");
}

static int put_disturbed(const struct facts *f, struct verdict *v)
{
	bool disturbed = f->main_queued >= QUEUED || f->others_cpus >= OTHERS * f->cpus;
	// Steps differ by themselves, too: then the shortest say nothing of the others.
	if (!disturbed || !(f->compute_s >= USUAL * f->undisturbed_s)) {
		return 0;
	}
	struct text value = {0};
	words_append_seconds(&value, f->compute_s);
	text_append_string(&value, " on average, ");
	words_append_seconds(&value, f->undisturbed_s);
	text_append_string(&value, " undisturbed");
	return evidence_put(v, "a step", &value, NULL);
}

static int put_storage(const struct facts *f, struct verdict *v)
{
	const struct storage_facts *s = &f->storage;
	if (!(s->read_rate >= 1e5)) {
		return 0;
	}
	struct text value = {0};
	words_append_bytes(&value, s->read_rate);
	text_append_string(&value, "/s from storage");
	if (s->refault_rate >= 1e5) {
		text_append_string(&value, ", of which ");
		words_append_bytes(&value, s->refault_rate);
		text_append_string(&value, "/s had just been dropped");
	}
	return evidence_put(
		v, "reading", &value, s->refault_rate >= 1e5 ? NAME_REFAULTS : NAME_READ_STORAGE);
}

static int put_ranks(const struct facts *f, struct verdict *v)
{
	if (f->ranks.n < 2 || !isfinite(f->ranks.waits_most)) {
		return 0;
	}
	struct text value = {0};
	text_format(&value, "%u, waiting ", f->ranks.n);
	words_append_percent(&value, f->ranks.waits_least);
	text_append_string(&value, " to ");
	words_append_percent(&value, f->ranks.waits_most);
	text_append_string(&value, " of their iterations");
	text_append_string(&value, f->ranks.inferred ? ", as far as backward tells" : "");
	return evidence_put(v, "ranks", &value, NULL);
}

// Who was stopped, and for how long: the job, and of its processes those that were beside it.
static int put_stopped(const struct analysis *a, struct verdict *v)
{
	const struct overview *o = &a->overview;
	struct text value = {0};
	if (o->stopped_s > 0) {
		text_append_string(&value, "for ");
		words_append_seconds(&value, o->stopped_s);
	}
	for (size_t i = 0; i < a->processes.n && a->stops.total_s > a->job_stops.total_s; i++) {
		const struct process_row *row = &a->processes.items[i];
		if (row->stopped_s > o->stopped_s + APART_S) {
			text_format(&value, "%s%s for ", value.length ? "; " : "", row->label);
			words_append_seconds(&value, row->stopped_s);
		}
	}
	if (value.length == 0) {
		return 0;
	}
	text_append_string(&value, ", which is in no share and no rate");
	return evidence_put(
		v, "stopped", &value, o->stopped_s > 0 ? NAME_STOPPED : NAME_PROCESS_STOPPED);
}

static int put_phases(const struct facts *f, struct verdict *v)
{
	static int (*const puts[])(const struct facts *f, struct verdict *v) = {put_rates,
		put_workers, put_training, put_waits, put_children, put_threads, put_samples,
		put_lines, put_disturbed, put_storage, put_ranks};
	int r = put_others(f, v);
	for (size_t i = 0; f->parts && i < sizeof(puts) / sizeof(puts[0]) && r == 0; i++) {
		r = puts[i](f, v);
	}
	return r;
}

int evidence_build(const struct analysis *a, const struct facts *f, struct verdict *ret)
{
	static int (*const puts[])(const struct analysis *a, struct verdict *v) = {
		put_memory, put_cache, put_pressure};
	int r = put_stopped(a, ret);
	r = r < 0 ? r : put_phases(f, ret);
	r = r < 0 ? r : gpu_evidence_build(&f->gpu, ret);
	r = r < 0 ? r : put_cpu(a, ret);
	r = r < 0 ? r : put_throttling(a, f, ret);
	r = r < 0 ? r : put_growth(f, ret);
	for (size_t i = 0; i < sizeof(puts) / sizeof(puts[0]) && r == 0; i++) {
		r = puts[i](a, ret);
	}
	return r;
}
