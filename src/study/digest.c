// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Making, storing and reading digests. A digest passes through the same rows whether it comes from
// the file or from an analysis, so that one function makes it and there is one place that distrusts
// what a file says.

#include "study/digest.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/text.h"
#include "run/analysis.h"
#include "run/entities.h"
#include "run/unit.h"
#include "runfile/amend.h"
#include "runfile/database.h"
#include "runfile/labels.h"
#include "runfile/reader.h"
#include "runfile/writer.h"
#include "verdict/causes.h"
#include "verdict/verdict.h"

// Names of findings beside the measures. Those of the second group are never stored: the file says
// them otherwise, or has no findings.
#define RULES "rules"
#define OUTCOME_TEXT "outcome_text"
#define MEMORY_KIND "memory_kind"
#define HEADLINE "headline"
#define PARTIAL "partial"
#define RECORDED "recorded_seconds"
#define HOST_CPUS "host_cpus"
#define MACHINE_MEMORY "host_memory_bytes"
#define MACHINE_GPUS "host_gpus"
#define RANKS "ranks_on_node"
#define GPU_NAME "gpu"
#define HOST_CPUS_USED "host_cpus_used"

#define STATE "state"
#define DAMAGED "damaged"
#define JOB_ONLY "job_only"
#define NOTICE "notice"

// Rows of an analysis -----------------------------------------------------------------------------

struct rows {
	struct findings *findings;
	bool failed;
};

static void add_text(struct rows *r, enum findings_table table, const char *name, const char *text)
{
	if (text) {
		r->failed = r->failed || findings_add(r->findings, table, name, text, NAN) < 0;
	}
}

static void add_word(struct rows *r, const char *name, const char *text)
{
	add_text(r, FINDINGS_FINDING, name, text);
}

static void add_number(struct rows *r, const char *name, double number)
{
	if (isfinite(number)) {
		r->failed = r->failed ||
		            findings_add(r->findings, FINDINGS_FINDING, name, NULL, number) < 0;
	}
}

static void add_measures(struct rows *r, const struct analysis *a, bool job_only)
{
	double values[N_MEASURES];
	const char *reasons[N_MEASURES];
	_cleanup_text_ struct text no_iterations = {0};
	measures_compute(a, job_only, values, reasons);
	if (a->phases.missing) { // "the job marked none" is an answer to another question
		text_format(&no_iterations, "no iterations: %s", a->phases.missing);
	}
	for (size_t i = 0; i < N_MEASURES; i++) {
		const char *reason = reasons[i];
		if (reason && reason == a->phases.missing && no_iterations.data) {
			reason = no_iterations.data;
		}
		bool stored = measures[i].kind != MEASURE_KIND_WORDS &&
		              i != MEASURE_TOKENS_PER_SECOND;
		if (stored && (isfinite(values[i]) || reason)) {
			r->failed = r->failed ||
			            findings_add(r->findings, FINDINGS_FINDING, measures[i].name,
					    isfinite(values[i]) ? NULL : reason, values[i]) < 0;
		}
	}
}

static void add_machine(struct rows *r, const struct analysis *a)
{
	struct allocation allocation;
	allocation_find(a, &allocation);
	add_number(r, MACHINE_MEMORY, allocation.of[ALLOCATED_MEMORY].machine);
	add_number(r, MACHINE_GPUS, allocation.of[ALLOCATED_GPUS].machine);
	add_number(r, RANKS, allocation.ranks);
	add_word(r, GPU_NAME, allocation.gpu);
}

static void add_findings(struct rows *r, const struct analysis *a, bool job_only,
	enum outcome outcome, const char *outcome_text)
{
	const struct overview *o = &a->overview;
	_cleanup_text_ struct text partial = {0};
	if (o->partial) {
		overview_append_recorded(&partial, o);
	}
	add_number(r, RULES, DIGEST_RULES);
	add_word(r, measures[MEASURE_OUTCOME].name, outcome_word(outcome));
	add_word(r, OUTCOME_TEXT, outcome_text);
	add_word(r, MEMORY_KIND, o->memory.kind);
	add_word(r, PARTIAL, partial.data);
	add_number(r, RECORDED, o->recorded_s);
	add_number(r, HOST_CPUS, o->host_cpus);
	add_number(r, HOST_CPUS_USED, o->host_cpus_used);
	if (!job_only) {
		add_word(
			r, measures[MEASURE_VERDICT].name, bottleneck_name(a->verdict->bottleneck));
		add_word(r, HEADLINE, a->verdict->headline);
		add_machine(r, a);
	}
	add_measures(r, a, job_only);
	r->failed = r->failed || partial.failed;
}

// What findings_read takes from the tables `run` and `label`.
static void add_keys(struct rows *r, const struct analysis *a)
{
	static const char *const keys[] = {"hostname", "command", "start_utc_ns", "status",
		"samples_unit", "tokens_per_sample"};
	const struct overview *o = &a->overview;
	for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
		add_text(r, FINDINGS_KEY, keys[i], reader_run(a->tables.reader, keys[i]));
	}
	for (size_t i = 0; i < o->n_labels; i++) {
		add_text(r, FINDINGS_LABEL, o->labels[i].name, o->labels[i].value);
	}
}

static void add_all(struct rows *r, const struct analysis *a, bool job_only)
{
	struct reader *reader = a->tables.reader;
	const struct overview *o = &a->overview;
	add_findings(r, a, job_only, o->outcome.outcome, o->outcome.text);
	add_keys(r, a);
	add_number(r, STATE, o->state);
	add_number(r, DAMAGED, o->damaged);
	add_number(r, JOB_ONLY, job_only);
	add_word(r, NOTICE, reader_is_damaged(reader) ? reader_notice(reader) : NULL);
	findings_sort(r->findings);
}

static int compute(struct reader *reader, bool job_only, struct findings *ret, struct error *e)
{
	struct analysis a;
	struct verdict verdict = {0};
	struct rows rows = {.findings = ret};
	int r = job_only ? analysis_load_job(reader, &a, e) : analysis_load_brief(reader, &a, e);
	r = r < 0 || job_only ? r : verdict_judge(&a, &verdict, e);
	if (r < 0) {
		return r;
	}
	add_all(&rows, &a, job_only);
	verdict_done(&verdict);
	analysis_done(&a);
	return rows.failed ? error_errno(e, ENOMEM, "%s", reader_path(reader)) : 0;
}

// Digest of rows ----------------------------------------------------------------------------------

static const char *text_or_empty(
	const struct findings *f, enum findings_table table, const char *name)
{
	const char *text = findings_text(f, table, name);
	return text ? text : "";
}

static const char *word_or_empty(const struct findings *f, const char *name)
{
	return text_or_empty(f, FINDINGS_FINDING, name);
}

static int64_t key_number(const struct findings *f, const char *name, int64_t otherwise)
{
	const char *text = findings_text(f, FINDINGS_KEY, name);
	int64_t number;
	return text && parse_integer(text, INT64_MIN, INT64_MAX, &number, NULL) == 0 ? number
	                                                                             : otherwise;
}

static bool flag(const struct findings *f, const char *name)
{
	return findings_number(f, name) > 0;
}

static void fill_exit(struct digest *d)
{
	int64_t status = key_number(&d->findings, "status", -1);
	bool known = d->state == RUN_FINISHED && status >= 0 && status <= INT32_MAX;
	d->exit_status = known && WIFEXITED((int)status) ? WEXITSTATUS((int)status) : -1;
	d->exit_signal = known && WIFSIGNALED((int)status) ? WTERMSIG((int)status) : 0;
}

static void fill_measures(struct digest *d)
{
	for (size_t i = 0; i < N_MEASURES; i++) {
		bool elsewhere = measures[i].kind == MEASURE_KIND_WORDS ||
		                 measure_is_of_advice((enum measure_id)i) ||
		                 measure_is_priced((enum measure_id)i);
		const struct findings_row *row = elsewhere ? NULL
		                                           : findings_find(&d->findings,
								     FINDINGS_FINDING,
								     measures[i].name);
		d->measures[i] = row ? row->number : NAN;
		d->reasons[i] = row && isnan(row->number) ? row->text : NULL;
	}
}

// The rate in tokens is that of samples times a key of the run; it is not stored.
static void fill_tokens(struct digest *d)
{
	double tokens = unit_tokens(findings_text(&d->findings, FINDINGS_KEY, "tokens_per_sample"));
	d->measures[MEASURE_TOKENS_PER_SECOND] = tokens * d->measures[MEASURE_SAMPLES_PER_SECOND];
	d->reasons[MEASURE_TOKENS_PER_SECOND] = isfinite(tokens)
	                                                ? d->reasons[MEASURE_SAMPLES_PER_SECOND]
	                                                : unit_no_tokens;
}

// The key that a sweep sets decides, as in outcome_judge; it may be set after the digest was
// stored.
static bool fill_outcome(struct digest *d)
{
	const struct findings *f = &d->findings;
	const char *key = findings_text(f, FINDINGS_KEY, "outcome");
	bool set = key && outcome_parse(key, &d->outcome);
	d->outcome_text = set ? text_or_empty(f, FINDINGS_KEY, "outcome_text")
	                      : word_or_empty(f, OUTCOME_TEXT);
	return set || outcome_parse(word_or_empty(f, measures[MEASURE_OUTCOME].name), &d->outcome);
}

// Rows of labels are neighbours, sorted by name.
static int fill_labels(struct digest *d)
{
	const struct findings *f = &d->findings;
	d->labels = calloc(f->n + 1, sizeof(*d->labels));
	for (size_t i = 0; d->labels && i < f->n; i++) {
		if (f->rows[i].table == FINDINGS_LABEL && f->rows[i].text) {
			// Never written through: the row owns the text.
			d->labels[d->n_labels++] = (struct run_label){
				f->rows[i].name, (char *)(uintptr_t)f->rows[i].text};
		}
	}
	return d->labels ? 0 : -ENOMEM;
}

// The rows own the line, too.
static int fill_command(struct digest *d)
{
	struct findings *f = &d->findings;
	_cleanup_free_ char *line = entity_command_line(text_or_empty(f, FINDINGS_KEY, "command"));
	if (!line || findings_add(f, FINDINGS_FINDING, "command_line", line, NAN) < 0) {
		return -ENOMEM;
	}
	d->command = f->rows[f->n - 1].text;
	return 0;
}

static int fill(struct digest *d)
{
	const struct findings *f = &d->findings;
	double state = findings_number(f, STATE);
	d->state = state == RUN_LIVE ? RUN_LIVE : state == RUN_CUT_OFF ? RUN_CUT_OFF : RUN_FINISHED;
	if (findings_number(f, RULES) != DIGEST_RULES || !fill_outcome(d)) {
		return -EBADMSG;
	}
	d->damaged = flag(f, DAMAGED);
	d->job_only = flag(f, JOB_ONLY);
	d->notice = findings_text(f, FINDINGS_FINDING, NOTICE);
	d->host = text_or_empty(f, FINDINGS_KEY, "hostname");
	d->unit = unit_word(findings_text(f, FINDINGS_KEY, "samples_unit"));
	d->start_utc_ns = key_number(f, "start_utc_ns", 0);
	d->partial = word_or_empty(f, PARTIAL);
	d->recorded_s = findings_number(f, RECORDED);
	d->memory_kind = word_or_empty(f, MEMORY_KIND);
	d->host_cpus = findings_number(f, HOST_CPUS);
	d->host_cpus_used = findings_number(f, HOST_CPUS_USED);
	d->machine[ALLOCATED_CPUS] = d->host_cpus;
	d->machine[ALLOCATED_MEMORY] = findings_number(f, MACHINE_MEMORY);
	d->machine[ALLOCATED_GPUS] = findings_number(f, MACHINE_GPUS);
	d->ranks = fmax(1, findings_number(f, RANKS));
	d->gpu = word_or_empty(f, GPU_NAME);
	d->verdict = word_or_empty(f, measures[MEASURE_VERDICT].name);
	d->headline = word_or_empty(f, HEADLINE);
	fill_exit(d);
	fill_measures(d);
	fill_tokens(d);
	return fill_labels(d) < 0 || fill_command(d) < 0 ? -ENOMEM : 0;
}

int digest_of(struct findings *findings, struct digest *ret)
{
	struct digest d = {.findings = *findings};
	*findings = (struct findings){0};
	int r = fill(&d);
	if (r < 0) {
		digest_done(&d);
		return r;
	}
	*ret = d;
	return 0;
}

void digest_done(struct digest *d)
{
	findings_done(&d->findings);
	free(d->path);
	free(d->name);
	free(d->sweep_directory);
	free(d->advice_directory);
	free(d->labels);
	*d = (struct digest){0};
}

int digest_make(const struct analysis *a, struct digest *ret)
{
	_cleanup_(findings_done) struct findings findings = {0};
	struct rows rows = {.findings = &findings};
	add_all(&rows, a, false);
	return rows.failed || digest_of(&findings, ret) < 0 ? -ENOMEM : 0;
}

const char *digest_own(struct digest *d, const char *text)
{
	struct findings *f = &d->findings;
	return findings_add(f, FINDINGS_FINDING, "text", text, NAN) < 0 ? NULL
	                                                                : f->rows[f->n - 1].text;
}

const char *digest_label(const struct digest *d, const char *name)
{
	const char *value = labels_find(d->labels, d->n_labels, name);
	bool machine = !value && strcmp(name, "machine") == 0 && *d->host;
	return machine ? d->host : value;
}

// Reading and storing -----------------------------------------------------------------------------

static int read_computed(const char *path, bool job_only, struct digest *ret, struct error *e)
{
	_cleanup_(findings_done) struct findings findings = {0};
	struct reader *reader = NULL;
	int r = reader_open(path, &reader, e);
	if (r < 0) {
		return r;
	}
	r = compute(reader, job_only, &findings, e);
	reader_free(reader);
	if (r == 0 && digest_of(&findings, ret) < 0) {
		r = error_errno(e, ENOMEM, "%s", path);
	}
	return r;
}

int digest_read(const char *path, bool job_only, struct digest *ret, struct error *e)
{
	_cleanup_(findings_done) struct findings findings = {0};
	int r = findings_read(path, &findings, NULL);
	r = r < 0 ? r : digest_of(&findings, ret);
	return r == -ENOMEM ? error_errno(e, ENOMEM, "%s", path)
	       : r < 0      ? read_computed(path, job_only, ret, e)
	                    : 0;
}

struct stored {
	const struct analysis *a;
	const struct findings *findings;
	const struct digest_event *events;
	size_t n_events;
	int64_t end_ns;
};

// Whether the file is still that of the run: `strain run --force` may have replaced it meanwhile.
static bool is_same_run(struct writer *w, struct reader *reader)
{
	static const char sql[] =
		"SELECT CAST(value AS INTEGER) FROM run WHERE key = 'start_utc_ns'";
	return database_number(writer_database(w), sql, 0) ==
	       reader_run_i64(reader, "start_utc_ns", 0);
}

static int put(struct writer *w, void *context)
{
	const struct stored *s = context;
	if (!is_same_run(w, s->a->tables.reader)) {
		return -ESTALE;
	}
	int r = summary_put(w, &s->a->tables.summary, &s->a->tables.metrics);
	// A digest of a damaged file would outlive the notice of the damage.
	r = r < 0 || reader_is_damaged(s->a->tables.reader) ? r : findings_put(w, s->findings);
	for (size_t i = 0; i < s->n_events && r == 0; i++) {
		r = writer_put_event(w, s->end_ns, s->events[i].kind, 0, s->events[i].text);
	}
	return r;
}

int digest_store(const char *path, const struct analysis *a, enum outcome outcome,
	const char *outcome_text, const struct digest_event *events, size_t n_events,
	struct error *e)
{
	_cleanup_(findings_done) struct findings findings = {0};
	struct rows rows = {.findings = &findings};
	add_findings(&rows, a, false, outcome, outcome_text);
	if (rows.failed) {
		return error_errno(e, ENOMEM, "%s", path);
	}
	struct stored stored = {
		a, &findings, events, n_events, reader_run_i64(a->tables.reader, "end_ns", 0)};
	int r = amend_with(path, put, &stored, e);
	if (r == -ESTALE) {
		return error_set(e, ESTALE, "%s: another run has replaced it", path);
	}
	return r < 0 ? error_prefix(e, "cannot write the summary") : 0;
}

// --- when a run has ended

static bool has_event(const struct analysis *a, const char *kind)
{
	for (size_t i = 0; i < a->tables.events.n; i++) {
		if (strcmp(a->tables.events.items[i].kind, kind) == 0) {
			return true;
		}
	}
	return false;
}

// Events for the file, unless it has them. Readers that find none compute them.
static size_t list_events(const struct analysis *a, struct text *warning, struct text *left_out,
	struct digest_event ret[2])
{
	size_t n = 0;
	growth_append_warning(warning, &a->growth);
	text_append_string(warning, a->growth.leak && a->gpu_growth.leak ? "; " : "");
	growth_append_warning(warning, &a->gpu_growth);
	for (size_t i = 0; a->implausible && i < a->implausible->n; i++) {
		text_format(left_out, "%s%s", i ? "; " : "discarded: ", a->implausible->items[i]);
	}
	if (warning->length > 0 && warning->data && !has_event(a, "memory_growth")) {
		ret[n++] = (struct digest_event){"memory_growth", warning->data};
	}
	if (left_out->length > 0 && left_out->data && !has_event(a, "implausible")) {
		ret[n++] = (struct digest_event){"implausible", left_out->data};
	}
	return n;
}

int digest_finish(const char *path, const struct analysis *a, struct error *e)
{
	_cleanup_text_ struct text warning = {0}, left_out = {0};
	struct digest_event events[2];
	size_t n = list_events(a, &warning, &left_out, events);
	const struct outcome_told *outcome = &a->overview.outcome;
	return digest_store(path, a, outcome->outcome, outcome->text, events, n, e);
}
