// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Reads advice.json (docs/json.md).

#include "study/kept_advice.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

const char kept_advice_none[] = "the run is not part of an answer of strain advise";

static const char no_key[] = "the answer of strain advise does not have it";
static const char not_compared[] =
	"only the two runs that compare convergence have it (strain advise --validate)";
static const char other_run[] = "only the first run of strain advise has it";

// The numbers of an answer ------------------------------------------------------------------------

// Where a measure is: OBJECT.KEY, and why it is not there: OBJECT.REASON or OBJECT.OTHER_REASON.
struct kept_number {
	enum measure_id measure;
	const char *object; // NULL: the answer itself
	const char *key;
	const char *reason, *other_reason; // NULL: none
	const char *otherwise; // the reason if neither is there
};

static const char thesis_unknown[] = "its rule needs two runs of different batch sizes";
static const char not_run[] = "the advised configuration was not run";

static const struct kept_number numbers[] = {
	{MEASURE_LARGEST_BATCH, "largest_batch", "value", "missing", NULL, "not known"},
	{MEASURE_LARGEST_BATCH_LOW, "largest_batch", "low", "missing", NULL, "not known"},
	{MEASURE_LARGEST_BATCH_HIGH, "largest_batch", "high", "missing", NULL, "not known"},
	{MEASURE_LARGEST_BATCH_ESTIMATE, "largest_batch", "estimate", "missing", NULL, "not known"},
	{MEASURE_LARGEST_BATCH_VERIFIED, "largest_batch", "verified", "verified_missing", "missing",
		"no batch size was verified"},
	{MEASURE_LARGEST_BATCH_THESIS, "thesis", "largest_batch", NULL, NULL, thesis_unknown},
	{MEASURE_WORKERS_THESIS, "thesis", "workers_that_fit", NULL, NULL,
		"the memory of a worker is not known"},
	{MEASURE_SECONDS_THESIS, "thesis", "seconds", NULL, NULL, thesis_unknown},
	{MEASURE_MEMORY_LIMIT, "memory", "limit", NULL, NULL, "not known"},
	{MEASURE_ADVISED_BATCH_SIZE, "advised", "batch_size", "missing", NULL, "none is advised"},
	{MEASURE_ADVISED_WORKERS, "advised", "workers", "missing", NULL, "none are advised"},
	{MEASURE_ADVISED_RATE, "rate", "measured", "missing", NULL, not_run},
	{MEASURE_ADVISED_GAIN, "rate", "gain", "missing", NULL, not_run},
	{MEASURE_ADVISED_MEMORY, "memory", "measured", NULL, NULL, not_run},
	{MEASURE_ADVICE_SECONDS, NULL, "seconds", NULL, NULL, "not known"},
};

// Appends "largest_batch.value".
static void append_place(struct text *t, const char *object, const char *key)
{
	text_format(t, "%s%s%s", object ? object : "", object ? "." : "", key);
}

// What a value is, for messages.
static const char *type_name(const json_t *value)
{
	static const char *const names[] = {[JSON_OBJECT] = "an object",
		[JSON_ARRAY] = "an array",
		[JSON_STRING] = "a string",
		[JSON_INTEGER] = "a number",
		[JSON_REAL] = "a number",
		[JSON_TRUE] = "true",
		[JSON_FALSE] = "false",
		[JSON_NULL] = "null"};
	return value ? names[json_typeof(value)] : "nothing";
}

static int wrong_type(const char *object, const char *key, const char *expected,
	const json_t *found, struct error *e)
{
	_cleanup_text_ struct text place = {0};
	append_place(&place, object, key);
	return error_set(e, EBADMSG, "%s: expected %s, found %s", place.data ? place.data : key,
		expected, type_name(found));
}

// *ret is NAN for null and for a key that is not there.
static int read_number(
	const json_t *from, const char *object, const char *key, double *ret, struct error *e)
{
	const json_t *value = json_object_get(from, key);
	*ret = NAN;
	if (!value || json_is_null(value)) {
		return 0;
	}
	if (!json_is_number(value)) {
		return wrong_type(object, key, "a number or null", value, e);
	}
	*ret = json_number_value(value);
	return 0;
}

// *ret is -1 for null and for a key that is not there.
static int read_whole(
	const json_t *from, const char *object, const char *key, int64_t *ret, struct error *e)
{
	const json_t *value = json_object_get(from, key);
	bool whole = json_is_integer(value) && json_integer_value(value) >= 0 &&
	             json_integer_value(value) <= INT32_MAX;
	*ret = whole ? json_integer_value(value) : -1;
	return whole || !value || json_is_null(value)
	               ? 0
	               : wrong_type(object, key, "a whole number from 0 or null", value, e);
}

// *ret is NULL for null and for a key that is not there.
static int read_text(
	const json_t *from, const char *object, const char *key, const char **ret, struct error *e)
{
	const json_t *value = json_object_get(from, key);
	*ret = json_string_value(value);
	return *ret || !value || json_is_null(value)
	               ? 0
	               : wrong_type(object, key, "a string or null", value, e);
}

static int read_measure(struct kept_advice *a, const struct kept_number *n, struct error *e)
{
	const json_t *from = n->object ? json_object_get(a->json, n->object) : a->json;
	double *value = &a->numbers[n->measure];
	const char *reason = NULL, *other = NULL;
	if (from && !json_is_object(from)) {
		return wrong_type(NULL, n->object, "an object", from, e);
	}
	int r = read_number(from, n->object, n->key, value, e);
	r = r < 0 || !n->reason ? r : read_text(from, n->object, n->reason, &reason, e);
	r = r < 0 || !n->other_reason ? r : read_text(from, n->object, n->other_reason, &other, e);
	if (r == 0 && isnan(*value)) {
		bool known = json_object_get(from, n->key) != NULL;
		a->reasons[n->measure] = reason  ? reason
		                         : other ? other
		                         : known ? n->otherwise
		                                 : no_key;
	}
	return r;
}

static void compute_error(struct kept_advice *a)
{
	double ran = a->numbers[MEASURE_LARGEST_BATCH_VERIFIED];
	double estimate = a->numbers[MEASURE_LARGEST_BATCH_ESTIMATE];
	if (ran > 0 && isfinite(estimate)) {
		a->numbers[MEASURE_LARGEST_BATCH_ERROR] = fabs(ran - estimate) / ran * 100;
	} else {
		a->reasons[MEASURE_LARGEST_BATCH_ERROR] =
			isfinite(estimate) ? a->reasons[MEASURE_LARGEST_BATCH_VERIFIED]
					   : a->reasons[MEASURE_LARGEST_BATCH_ESTIMATE];
	}
}

// The limit in the words of --memory: "4GiB", "500MB". That of the whole machine or of a GPU is
// none that somebody set.
static int read_limit(struct kept_advice *a, struct error *e)
{
	static const struct {
		double bytes;
		const char *unit;
	} units[] = {{0x1p30, "GiB"}, {1e9, "GB"}, {0x1p20, "MiB"}, {1e6, "MB"}};
	const char *kind;
	double limit = a->numbers[MEASURE_MEMORY_LIMIT];
	int r = read_text(json_object_get(a->json, "memory"), "memory", "limit_kind", &kind, e);
	bool set = r == 0 && kind && limit >= 1 && limit <= 0x1p50 &&
	           (strcmp(kind, "requested") == 0 || strcmp(kind, "cgroup") == 0);
	for (size_t i = 0; set && i < ARRAY_LENGTH(units) && !*a->memory; i++) {
		if (fmod(limit, units[i].bytes) == 0) {
			snprintf(a->memory, sizeof(a->memory), "%.0f%s", limit / units[i].bytes,
				units[i].unit);
		}
	}
	if (set && !*a->memory) {
		snprintf(a->memory, sizeof(a->memory), "%.0f", limit);
	}
	return r;
}

// The runs of an answer ---------------------------------------------------------------------------

static int read_run(const json_t *json, struct kept_run *ret, struct error *e)
{
	static const char object[] = "runs[]";
	*ret = (struct kept_run){.loss = NAN, .accuracy = NAN, .validation_s = NAN};
	if (!json_is_object(json)) {
		return wrong_type(NULL, object, "an object", json, e);
	}
	int r = read_text(json, object, "run", &ret->name, e);
	r = r < 0 ? r : read_text(json, object, "step", &ret->step, e);
	r = r < 0 ? r : read_whole(json, object, "batch_size", &ret->batch_size, e);
	r = r < 0 ? r : read_whole(json, object, "workers", &ret->workers, e);
	return r < 0 ? r : read_number(json, object, "seconds", &ret->seconds, e);
}

static bool is_step(const struct kept_run *run, const char *step)
{
	return run->step && strcmp(run->step, step) == 0;
}

static int read_runs(struct kept_advice *a, struct error *e)
{
	const json_t *list = json_object_get(a->json, "runs");
	size_t n = json_array_size(list);
	if (!json_is_array(list)) {
		return wrong_type(NULL, "runs", "an array", list, e);
	}
	if (n > KEPT_RUNS_MAX) {
		return error_set(
			e, EBADMSG, "runs: expected at most %d, found %zu", KEPT_RUNS_MAX, n);
	}
	double seconds = 0;
	for (size_t i = 0; i < n; i++) {
		struct kept_run *run = &a->runs[i];
		int r = read_run(json_array_get(list, i), run, e);
		if (r < 0) {
			return r;
		}
		bool counts = is_step(run, "now") || is_step(run, "line") || is_step(run, "verify");
		seconds += counts && isfinite(run->seconds) ? run->seconds : 0;
	}
	a->n_runs = n;
	if (isfinite(a->numbers[MEASURE_LARGEST_BATCH])) {
		a->numbers[MEASURE_LARGEST_BATCH_SECONDS] = seconds;
	} else {
		a->reasons[MEASURE_LARGEST_BATCH_SECONDS] = a->reasons[MEASURE_LARGEST_BATCH];
	}
	return 0;
}

// The run of a point of the convergence: the first of its batch size that has none yet.
static struct kept_run *run_of_point(struct kept_advice *a, int64_t batch_size)
{
	for (size_t i = 0; i < a->n_runs; i++) {
		struct kept_run *run = &a->runs[i];
		if (is_step(run, "converge") && run->batch_size == batch_size &&
			isnan(run->validation_s)) {
			return run;
		}
	}
	return NULL;
}

// A point after equal samples, which the runs of both configurations reached.
static int read_point(struct kept_advice *a, const json_t *json, struct error *e)
{
	static const char object[] = "convergence[]";
	const char *at;
	int64_t batch_size;
	double loss, accuracy, seconds;
	if (!json_is_object(json)) {
		return wrong_type(NULL, object, "an object", json, e);
	}
	int r = read_text(json, object, "at_equal", &at, e);
	r = r < 0 ? r : read_whole(json, object, "batch_size", &batch_size, e);
	r = r < 0 ? r : read_number(json, object, "loss", &loss, e);
	r = r < 0 ? r : read_number(json, object, "accuracy", &accuracy, e);
	r = r < 0 ? r : read_number(json, object, "seconds", &seconds, e);
	struct kept_run *run = r == 0 && at && strcmp(at, "samples") == 0
	                               ? run_of_point(a, batch_size)
	                               : NULL;
	if (run) {
		run->loss = loss;
		run->accuracy = accuracy;
		run->validation_s = seconds;
	}
	return r;
}

static int read_convergence(struct kept_advice *a, struct error *e)
{
	const json_t *list = json_object_get(a->json, "convergence");
	size_t n = json_array_size(list);
	if (list && !json_is_array(list) && !json_is_null(list)) {
		return wrong_type(NULL, "convergence", "an array or null", list, e);
	}
	if (n > KEPT_RUNS_MAX) {
		return error_set(e, EBADMSG, "convergence: expected at most %d points, found %zu",
			KEPT_RUNS_MAX, n);
	}
	const char *missing;
	int r = read_text(a->json, NULL, "convergence_missing", &missing, e);
	for (size_t i = 0; i < n && r == 0; i++) {
		r = read_point(a, json_array_get(list, i), e);
	}
	for (enum measure_id i = MEASURE_VALIDATION_LOSS; i <= MEASURE_VALIDATION_SECONDS; i++) {
		a->reasons[i] = missing ? missing : not_compared;
	}
	return r;
}

// What was printed --------------------------------------------------------------------------------

static int read_page(struct kept_advice *a, struct error *e)
{
	const json_t *list = json_object_get(a->json, "page");
	size_t n = json_array_size(list);
	if (list && !json_is_array(list) && !json_is_null(list)) {
		return wrong_type(NULL, "page", "an array or null", list, e);
	}
	if (n > KEPT_LINES_MAX) {
		return error_set(e, EBADMSG, "page: expected at most %d lines, found %zu",
			KEPT_LINES_MAX, n);
	}
	for (size_t i = 0; i < n; i++) {
		const json_t *line = json_array_get(list, i);
		if (!json_is_string(line)) {
			return wrong_type(NULL, "page[]", "a string", line, e);
		}
		a->page[i] = json_string_value(line);
	}
	a->n_page = n;
	return 0;
}

// Reading -----------------------------------------------------------------------------------------

static int read_answer(struct kept_advice *a, struct error *e)
{
	int r = 0;
	if (!json_is_object(json_object_get(a->json, "largest_batch"))) {
		return error_set(
			e, EBADMSG, "expected an answer of strain advise, found no largest_batch");
	}
	for (size_t i = 0; i < ARRAY_LENGTH(numbers) && r == 0; i++) {
		r = read_measure(a, &numbers[i], e);
	}
	if (json_is_true(json_object_get(json_object_get(a->json, "advised"), "keep")) &&
		isnan(a->numbers[MEASURE_ADVISED_GAIN])) {
		a->reasons[MEASURE_ADVISED_GAIN] = "the present configuration is kept";
	}
	compute_error(a);
	r = r < 0 ? r : read_limit(a, e);
	r = r < 0 ? r : read_runs(a, e);
	r = r < 0 ? r : read_convergence(a, e);
	return r < 0 ? r : read_page(a, e);
}

int kept_advice_parse(const char *data, size_t length, struct kept_advice *ret, struct error *e)
{
	json_error_t wrong;
	*ret = (struct kept_advice){0};
	for (size_t i = 0; i < N_MEASURES; i++) {
		ret->numbers[i] = NAN;
	}
	if (length > KEPT_ADVICE_BYTES_MAX) {
		return error_set(e, EFBIG, "expected at most %d bytes", KEPT_ADVICE_BYTES_MAX);
	}
	ret->json = json_loadb(data, length, JSON_REJECT_DUPLICATES, &wrong);
	if (!ret->json) {
		return error_set(
			e, EBADMSG, "expected JSON, found something else in line %d", wrong.line);
	}
	int r = read_answer(ret, e);
	if (r < 0) {
		kept_advice_done(ret);
	}
	return r;
}

void kept_advice_done(struct kept_advice *a)
{
	json_decref(a->json);
	*a = (struct kept_advice){0};
}

static int open_answer(const char *path, struct stat *ret, struct error *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
	if (fd < 0) {
		return errno == ELOOP ? error_set(e, ELOOP, "%s: is a link", path)
		                      : error_errno(e, errno, "%s", path);
	}
	const char *wrong = fstat(fd, ret) < 0 || !S_ISREG(ret->st_mode) ? "is not a regular file"
	                    : ret->st_size > KEPT_ADVICE_BYTES_MAX       ? "is larger than 1 MiB"
	                                                                 : NULL;
	if (wrong) {
		close(fd);
		return error_set(e, EBADMSG, "%s: %s", path, wrong);
	}
	return fd;
}

// The file may grow or shrink while it is read.
static int read_file(
	int fd, const char *path, char *data, size_t size, size_t *ret_length, struct error *e)
{
	size_t length = 0;
	ssize_t n = 1;
	while (length < size && (n = read(fd, data + length, size - length)) > 0) {
		length += (size_t)n;
	}
	*ret_length = length;
	return n < 0 ? error_errno(e, errno, "%s", path) : 0;
}

static char *path_in(const char *directory)
{
	struct text path = {0};
	text_format(&path, "%s/%s", directory, KEPT_ADVICE_NAME);
	return text_steal(&path);
}

bool kept_advice_is_in(const char *directory)
{
	_cleanup_free_ char *path = path_in(directory);
	struct stat status;
	return path && lstat(path, &status) == 0;
}

int kept_advice_read(const char *directory, struct kept_advice *ret, struct error *e)
{
	_cleanup_free_ char *path = path_in(directory);
	struct stat status;
	size_t length;
	*ret = (struct kept_advice){0};
	if (!path) {
		return error_errno(e, ENOMEM, "%s", directory);
	}
	_cleanup_close_ int fd = open_answer(path, &status, e);
	if (fd < 0) {
		return fd;
	}
	size_t size = (size_t)status.st_size + 1;
	_cleanup_free_ char *data = malloc(size);
	if (!data) {
		return error_errno(e, ENOMEM, "%s", path);
	}
	int r = read_file(fd, path, data, size, &length, e);
	if (r == 0) {
		r = kept_advice_parse(data, length, ret, e);
		r = r < 0 ? error_prefix(e, "%s", path) : 0;
	}
	return r;
}

// Digest ------------------------------------------------------------------------------------------

// Copies a text into the findings of the digest, which own it. NULL: out of memory.
static const struct findings_row *own(struct digest *d, const char *name, const char *text)
{
	return findings_add(&d->findings, FINDINGS_LABEL, name, text, NAN) < 0
	               ? NULL
	               : &d->findings.rows[d->findings.n - 1];
}

// Unless the run has a label of that name.
static int add_label(struct digest *d, const char *name, const char *value)
{
	size_t at = 0;
	while (at < d->n_labels && strcmp(d->labels[at].name, name) < 0) {
		at++;
	}
	if (at < d->n_labels && strcmp(d->labels[at].name, name) == 0) {
		return 0;
	}
	struct run_label *labels = reallocarray(d->labels, d->n_labels + 2, sizeof(*labels));
	d->labels = labels ? labels : d->labels;
	const struct findings_row *row = labels ? own(d, name, value) : NULL;
	if (!row) {
		return -ENOMEM;
	}
	memmove(&labels[at + 1], &labels[at], (d->n_labels++ - at) * sizeof(*labels));
	// Never written through: the row owns the text.
	labels[at] = (struct run_label){row->name, (char *)(uintptr_t)row->text};
	return 0;
}

static int add_number_label(struct digest *d, const char *name, int64_t value)
{
	char text[24];
	snprintf(text, sizeof(text), "%" PRId64, value);
	return value >= 0 ? add_label(d, name, text) : 0;
}

static int add_measure(struct digest *d, enum measure_id measure, double value, const char *reason)
{
	d->measures[measure] = value;
	if (isfinite(value)) {
		d->reasons[measure] = NULL;
		return 0;
	}
	const struct findings_row *row = own(d, measures[measure].name, reason ? reason : no_key);
	d->reasons[measure] = row ? row->text : NULL;
	return row ? 0 : -ENOMEM;
}

static int add_validation(struct digest *d, const struct kept_advice *a, const struct kept_run *run)
{
	const char *reason = isfinite(run->validation_s) ? "the job printed none"
	                                                 : a->reasons[MEASURE_VALIDATION_LOSS];
	int r = add_measure(d, MEASURE_VALIDATION_LOSS, run->loss, reason);
	r = r < 0 ? r : add_measure(d, MEASURE_VALIDATION_ACCURACY, run->accuracy, reason);
	return r < 0 ? r : add_measure(d, MEASURE_VALIDATION_SECONDS, run->validation_s, reason);
}

int kept_advice_tell(const struct kept_advice *a, const char *file, struct digest *d)
{
	size_t at = 0;
	int r = 0;
	while (at < a->n_runs && (!a->runs[at].name || strcmp(a->runs[at].name, file) != 0)) {
		at++;
	}
	const struct kept_run *run = at < a->n_runs ? &a->runs[at] : NULL;
	for (enum measure_id i = MEASURE_LARGEST_BATCH; i < MEASURE_VALIDATION_LOSS && r == 0;
		i++) {
		bool first = run && at == 0;
		r = add_measure(d, i, first ? a->numbers[i] : NAN,
			first ? a->reasons[i]
			: run ? other_run
			      : kept_advice_none);
	}
	static const struct kept_run unknown = {.loss = NAN, .accuracy = NAN, .validation_s = NAN};
	r = r < 0 ? r : add_validation(d, a, run ? run : &unknown);
	if (r < 0 || !run) {
		return r;
	}
	r = run->step ? add_label(d, "step", run->step) : 0;
	r = r < 0 ? r : add_number_label(d, "batch_size", run->batch_size);
	r = r < 0 ? r : add_number_label(d, "workers", run->workers);
	return r < 0 || !*a->memory ? r : add_label(d, "memory", a->memory);
}
