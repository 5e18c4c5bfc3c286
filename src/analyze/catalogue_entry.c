// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Entries of the catalogue. Numbers are as the machine has them: an index is never carried to
// another. Strings have their length before them and a NUL behind, so that a run can point at them.

#include "analyze/catalogue_entry.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyze/analysis.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "trace/bytes.h"
#include "trace/crc32.h"
#include "trace/store.h"

#define FORMAT 1 // of the bytes: counts up with it
#define LABELS_MAX 4096
#define NO_REASON 0
// Clocks of kernels before 6.13 move every 10 ms at most: of what was written twice within that
// time both look the same. Servers' clocks may differ from ours.
#define SETTLED_NS ((int64_t)(50 * NS_PER_MS))
#define SETTLED_ON_NETWORK_NS ((int64_t)(10 * NS_PER_S))

// Over the sources of this folder: what other rules found is found anew. From sources_sum.c, which
// the build makes.
extern const unsigned analyze_sources_sum;

// --- identity

static int64_t timestamp_ns(const struct timespec *t)
{
	return (int64_t)t->tv_sec * (int64_t)NS_PER_S + t->tv_nsec;
}

struct file_identity file_identity_of(const struct stat *status)
{
	return (struct file_identity){
		.device = status->st_dev,
		.inode = status->st_ino,
		.size = status->st_size,
		.mtime_ns = timestamp_ns(&status->st_mtim),
		.ctime_ns = timestamp_ns(&status->st_ctim),
	};
}

bool file_identity_same(const struct file_identity *a, const struct file_identity *b)
{
	return a->device == b->device && a->inode == b->inode && a->size == b->size &&
	       a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}

// What SQLite keeps beside a file that is not settled.
static bool has_sibling(const char *path)
{
	static const char *const suffixes[] = {"-wal", "-journal"};
	for (size_t i = 0; i < ARRAY_LENGTH(suffixes); i++) {
		struct text name = {0};
		struct stat status;
		text_format(&name, "%s%s", path, suffixes[i]);
		bool there = name.data && stat(name.data, &status) == 0 && status.st_size > 0;
		text_done(&name);
		if (there) {
			return true;
		}
	}
	return false;
}

static bool is_settled(const char *path, const struct file_identity *file)
{
	int64_t now_ns = (int64_t)clock_realtime_ns();
	return now_ns - file->ctime_ns >=
	       (store_is_on_network(path) ? SETTLED_ON_NETWORK_NS : SETTLED_NS);
}

bool file_identity_is_lasting(const char *path, const struct file_identity *before)
{
	struct stat status;
	if (stat(path, &status) < 0) {
		return false;
	}
	struct file_identity now = file_identity_of(&status);
	return file_identity_same(before, &now) && !has_sibling(path) && is_settled(path, &now);
}

uint32_t catalogue_entry_stamp(void)
{
	struct text about = {0};
	text_format(&about, "%s %d %u", STRAIN_VERSION, FORMAT, analyze_sources_sum);
	for (size_t i = 0; i < N_MEASURES; i++) {
		text_format(&about, " %s", measures[i].name);
	}
	uint32_t stamp = about.data ? crc32_of(about.data, about.length) : 0;
	text_done(&about);
	return stamp;
}

// --- writing

struct packer {
	struct bytes bytes;
	bool failed;
};

static void pack(struct packer *p, const void *data, size_t length)
{
	p->failed = p->failed || bytes_reserve(&p->bytes, length) < 0;
	if (!p->failed) {
		bytes_put(&p->bytes, data, length);
	}
}

static void pack_integer(struct packer *p, int64_t value)
{
	pack(p, &value, sizeof(value));
}

static void pack_string(struct packer *p, const char *string)
{
	const char *text = string ? string : "";
	uint32_t length = (uint32_t)strlen(text);
	pack(p, &length, sizeof(length));
	pack(p, text, length + 1);
}

// Reasons repeat: each is written once, and a measure has its number.
static void pack_measures(struct packer *p, const struct analysis *a, bool job_only)
{
	double values[N_MEASURES];
	const char *reasons[N_MEASURES];
	const char *distinct[N_MEASURES];
	uint8_t numbers[N_MEASURES] = {0};
	size_t n = 0;
	struct text no_iterations = {0};
	measures_compute(a, job_only, values, reasons);
	if (a->phases.missing) { // "the job marked none" is an answer to another question
		text_format(&no_iterations, "no iterations: %s", a->phases.missing);
	}
	for (size_t i = 0; i < N_MEASURES; i++) {
		size_t at = 0;
		if (reasons[i] && reasons[i] == a->phases.missing && no_iterations.data) {
			reasons[i] = no_iterations.data;
		}
		while (reasons[i] && at < n && strcmp(distinct[at], reasons[i]) != 0) {
			at++;
		}
		if (reasons[i] && at == n) {
			distinct[n++] = reasons[i];
		}
		numbers[i] = reasons[i] ? (uint8_t)(at + 1) : NO_REASON;
	}
	pack(p, values, sizeof(values));
	pack(p, numbers, sizeof(numbers));
	pack_integer(p, (int64_t)n);
	for (size_t i = 0; i < n; i++) {
		pack_string(p, distinct[i]);
	}
	text_done(&no_iterations);
}

struct judged {
	enum outcome outcome;
	const char *text;
	const char *notice;
	bool job_only;
};

// In the order in which catalogue_entry_decode takes it.
static void pack_run(struct packer *p, const struct analysis *a, const struct judged *judged)
{
	const struct overview *o = &a->overview;
	const int64_t numbers[] = {judged->job_only, reader_run_i64(a->reader, "start_utc_ns", 0),
		o->state, o->damaged, o->exit_status, o->exit_signal, judged->outcome};
	for (size_t i = 0; i < ARRAY_LENGTH(numbers); i++) {
		pack_integer(p, numbers[i]);
	}
	const char *const strings[] = {reader_run(a->reader, "hostname"), o->command, judged->text,
		o->memory.kind, judged->job_only ? "" : bottleneck_name(a->verdict.bottleneck),
		judged->job_only ? "" : a->verdict.headline, judged->notice};
	for (size_t i = 0; i < ARRAY_LENGTH(strings); i++) {
		pack_string(p, strings[i]);
	}
	_cleanup_text_ struct text partial = {0};
	if (o->partial) {
		overview_append_recorded(&partial, o);
	}
	p->failed = p->failed || partial.failed;
	pack_string(p, partial.data);
	pack(p, &o->recorded_s, sizeof(o->recorded_s));
	pack_measures(p, a, judged->job_only);
	size_t n = o->n_labels < LABELS_MAX ? o->n_labels : LABELS_MAX;
	pack_integer(p, (int64_t)n);
	for (size_t i = 0; i < n; i++) {
		pack_string(p, o->labels[i].name);
		pack_string(p, o->labels[i].value);
	}
}

// --- looking

struct unpacker {
	const char *at;
	const char *end;
	bool failed;
};

static const void *unpack(struct unpacker *u, size_t length)
{
	if (u->failed || (size_t)(u->end - u->at) < length) {
		u->failed = true;
		return NULL;
	}
	const void *data = u->at;
	u->at += length;
	return data;
}

// Between least and most: of anything else it is no entry.
static int64_t unpack_integer(struct unpacker *u, int64_t least, int64_t most)
{
	int64_t value = least;
	const void *data = unpack(u, sizeof(value));
	if (data) {
		memcpy(&value, data, sizeof(value));
	}
	u->failed = u->failed || value < least || value > most;
	return u->failed ? least : value;
}

static const char *unpack_string(struct unpacker *u)
{
	uint32_t length = 0;
	const void *size = unpack(u, sizeof(length));
	if (size) {
		memcpy(&length, size, sizeof(length));
	}
	const char *string = unpack(u, (size_t)length + 1);
	u->failed = u->failed || string[length] != '\0';
	return u->failed ? "" : string;
}

static void unpack_measures(struct unpacker *u, struct catalogue_run *run)
{
	const char *distinct[N_MEASURES] = {0};
	const void *values = unpack(u, sizeof(run->measures));
	const uint8_t *numbers = unpack(u, N_MEASURES);
	size_t n = (size_t)unpack_integer(u, 0, N_MEASURES);
	for (size_t i = 0; i < n; i++) {
		distinct[i] = unpack_string(u);
	}
	if (u->failed) {
		return;
	}
	memcpy(run->measures, values, sizeof(run->measures));
	for (size_t i = 0; i < N_MEASURES; i++) {
		bool known = isfinite(run->measures[i]);
		u->failed = u->failed || numbers[i] > n || isinf(run->measures[i]);
		run->reasons[i] = !known && !u->failed && numbers[i] ? distinct[numbers[i] - 1]
		                                                     : NULL;
	}
}

static int unpack_labels(struct unpacker *u, struct catalogue_run *run)
{
	size_t n = (size_t)unpack_integer(u, 0, LABELS_MAX);
	struct run_label *labels = n ? calloc(n, sizeof(*labels)) : NULL;
	if (n && !labels) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		// Never written through: a run's strings are looked at.
		labels[i].name = (char *)(uintptr_t)unpack_string(u);
		labels[i].value = (char *)(uintptr_t)unpack_string(u);
	}
	run->labels = labels;
	run->n_labels = n;
	return 0;
}

int catalogue_entry_decode(
	const void *data, size_t length, struct catalogue_run *ret, const char **ret_notice)
{
	struct unpacker u = {data, (const char *)data + length, false};
	struct catalogue_run run = {0};
	run.job_only = unpack_integer(&u, 0, 1);
	run.start_utc_ns = unpack_integer(&u, INT64_MIN, INT64_MAX);
	run.state = (enum run_state)unpack_integer(&u, RUN_FINISHED, RUN_CUT_OFF);
	run.damaged = unpack_integer(&u, 0, 1);
	run.exit_status = (int)unpack_integer(&u, -1, 255);
	run.exit_signal = (int)unpack_integer(&u, 0, 127);
	run.outcome = (enum outcome)unpack_integer(&u, 0, N_OUTCOMES - 1);
	run.host = unpack_string(&u);
	run.command = unpack_string(&u);
	run.outcome_text = unpack_string(&u);
	run.memory_kind = unpack_string(&u);
	run.verdict = unpack_string(&u);
	run.headline = unpack_string(&u);
	const char *notice = unpack_string(&u);
	run.partial = unpack_string(&u);
	const void *recorded_s = unpack(&u, sizeof(run.recorded_s));
	memcpy(&run.recorded_s, recorded_s ? recorded_s : &(double){NAN}, sizeof(run.recorded_s));
	u.failed = u.failed || isinf(run.recorded_s);
	unpack_measures(&u, &run);
	int r = unpack_labels(&u, &run);
	if (r < 0 || u.failed || u.at != u.end) {
		free(run.labels);
		return r < 0 ? r : -EBADMSG;
	}
	*ret = run;
	*ret_notice = *notice ? notice : NULL;
	return 0;
}

// --- reading

static int pack_analysis(const struct analysis *a, const struct judged *judged,
	struct catalogue_entry *ret, struct error *e)
{
	struct packer p = {0};
	pack_run(&p, a, judged);
	if (p.failed) {
		free(p.bytes.data);
		return error_errno(e, ENOMEM, "%s", reader_path(a->reader));
	}
	ret->data = p.bytes.data;
	ret->length = p.bytes.length;
	return 0;
}

int catalogue_entry_make(const struct analysis *a, enum outcome outcome, const char *outcome_text,
	struct catalogue_entry *ret, struct error *e)
{
	const struct judged judged = {.outcome = outcome, .text = outcome_text};
	*ret = (struct catalogue_entry){0};
	return pack_analysis(a, &judged, ret, e);
}

static int encode(
	struct reader *reader, bool job_only, struct catalogue_entry *ret, struct error *e)
{
	struct analysis a;
	struct judged judged = {.job_only = job_only};
	int r = job_only ? analysis_load_job(reader, &a, e) : analysis_load_brief(reader, &a, e);
	if (r < 0) {
		return r;
	}
	judged.outcome = a.overview.outcome.outcome;
	judged.text = a.overview.outcome.text;
	judged.notice = reader_is_damaged(reader) ? reader_notice(reader) : NULL;
	r = pack_analysis(&a, &judged, ret, e);
	analysis_done(&a);
	return r;
}

int catalogue_entry_read(
	const char *path, bool job_only, struct catalogue_entry *ret, struct error *e)
{
	struct stat before;
	struct reader *reader = NULL;
	struct catalogue_entry entry = {0};
	bool was_there = stat(path, &before) == 0;
	int r = reader_open(path, &reader, e);
	if (r < 0) {
		return r;
	}
	bool ended = reader_state(reader) != RUN_LIVE && reader_run(reader, "end_ns");
	r = encode(reader, job_only, &entry, e);
	reader_free(reader);
	if (r < 0) {
		return r;
	}
	if (was_there) {
		entry.file = file_identity_of(&before);
		entry.lasting = ended && file_identity_is_lasting(path, &entry.file);
	}
	*ret = entry;
	return 0;
}
