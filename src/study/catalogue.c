// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The catalogue: finds run files and reads their digests, with several threads per CPU.

#include "study/catalogue.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/bytes.h"
#include "base/cache_folder.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/crc32.h"
#include "base/error.h"
#include "base/text.h"
#include "run/analysis.h"
#include "run/query.h"
#include "run/summary.h"
#include "runfile/database.h"
#include "runfile/index.h"
#include "runfile/reader.h"
#include "study/kept_advice.h"
#include "study/parallel.h"
#include "study/prices.h"
#include "verdict/causes.h"
#include "verdict/verdict.h"

struct catalogue_file {
	char *path; // owned
	char *sweep; // owned; NULL: no trial
	size_t found_by; // as in struct digest
	dev_t device;
	ino_t inode;
	int64_t mtime_ns;
	bool is_there; // the fields above are known
	bool is_left_out; // the same file is in the list already, or is one too many
	bool is_read;
	struct digest digest; // owned; where is_read and error is NULL
	char *error; // owned; why it cannot be read
	bool out_of_memory;
};

// Reading -----------------------------------------------------------------------------------------

struct reading {
	struct catalogue_file **files; // [n] to be read
	size_t n;
	bool job_only;
};

static void catalogue_file_done(struct catalogue_file *file)
{
	free(file->path);
	free(file->sweep);
	digest_done(&file->digest);
	free(file->error);
}

// Called by several threads, each for other files.
static void read_one(void *context, size_t at)
{
	const struct reading *reading = context;
	struct catalogue_file *file = reading->files[at];
	struct error e = {0};
	file->is_read = true;
	if (digest_read(file->path, reading->job_only, &file->digest, &e) < 0) {
		file->error = strdup(e.text);
		file->out_of_memory = e.code == ENOMEM || !file->error;
	}
}

// Gives every file that is not left out a digest or an error. -ENOMEM.
static int catalogue_reading(struct catalogue_file *files, size_t n,
	const struct catalogue_options *options, struct error *e)
{
	_cleanup_free_ struct catalogue_file **wanted = calloc(n + 1, sizeof(void *));
	struct reading reading = {.files = wanted, .job_only = options->job_only};
	if (!wanted) {
		return error_errno(e, ENOMEM, "cannot read runs");
	}
	for (size_t i = 0; i < n; i++) {
		if (!files[i].is_left_out) {
			wanted[reading.n++] = &files[i];
		}
	}
	const struct parallel all = {
		reading.n, read_one, &reading, options->progressed, options->context};
	parallel_run(&all);
	for (size_t i = 0; i < reading.n; i++) {
		if (wanted[i]->out_of_memory) {
			return error_errno(e, ENOMEM, "%s", wanted[i]->path);
		}
	}
	return 0;
}

// Catalogue ---------------------------------------------------------------------------------------

static const char run_suffix[] = ".strain";

// --- which files

struct found {
	struct catalogue_file *items;
	size_t n;
	size_t capacity;
	size_t by; // index of the path that is being walked
	bool advice; // as of the options
	const struct prices *prices;
};

static void found_done(struct found *found)
{
	for (size_t i = 0; i < found->n; i++) {
		catalogue_file_done(&found->items[i]);
	}
	free(found->items);
}

// If stat fails, reading the file will say why.
static int found_add(struct found *found, const char *path, const char *sweep)
{
	void *items = found->items;
	if (array_reserve(&items, &found->capacity, found->n + 1, sizeof(*found->items)) < 0) {
		return -ENOMEM;
	}
	found->items = items;
	struct catalogue_file file = {
		.path = strdup(path), .sweep = sweep ? strdup(sweep) : NULL, .found_by = found->by};
	struct stat status;
	if (stat(path, &status) == 0) {
		file.device = status.st_dev;
		file.inode = status.st_ino;
		file.mtime_ns = (int64_t)status.st_mtim.tv_sec * (int64_t)NS_PER_S +
		                status.st_mtim.tv_nsec;
		file.is_there = true;
	}
	found->items[found->n++] = file;
	return file.path && (file.sweep || !sweep) ? 0 : -ENOMEM;
}

static bool is_run_name(const char *name)
{
	size_t length = strlen(name), n = strlen(run_suffix);
	return length > n && strcmp(name + length - n, run_suffix) == 0;
}

// "0007-2.strain"
static bool is_trial_name(const char *name)
{
	static const char digits[] = "0123456789";
	size_t number = strspn(name, digits);
	size_t repeat = number >= 4 && name[number] == '-' ? strspn(name + number + 1, digits) : 0;
	return repeat > 0 && strcmp(name + number + 1 + repeat, run_suffix) == 0;
}

static bool has_file(const char *directory, const char *name)
{
	_cleanup_free_ char *path = NULL;
	struct stat status;
	return asprintf(&path, "%s/%s", directory, name) >= 0 && stat(path, &status) == 0 &&
	       S_ISREG(status.st_mode);
}

static bool has_trial(const char *directory)
{
	DIR *stream = opendir(directory);
	bool found = false;
	for (struct dirent *entry; stream && !found && (entry = readdir(stream));) {
		found = is_trial_name(entry->d_name);
	}
	if (stream) {
		closedir(stream);
	}
	return found;
}

bool catalogue_is_sweep(const char *directory)
{
	return has_file(directory, "plan.yaml") &&
	       (has_file(directory, "lock") || has_trial(directory));
}

// DIRECTORY/NAME, or NAME in "."; owned by the caller.
static char *path_in(const char *directory, const char *name)
{
	char *path = NULL;
	bool here = strcmp(directory, ".") == 0;
	size_t length = strlen(directory);
	const char *slash = here || (length > 0 && directory[length - 1] == '/') ? "" : "/";
	return asprintf(&path, "%s%s%s", here ? "" : directory, slash, name) < 0 ? NULL : path;
}

static bool is_directory(const struct dirent *entry, const char *path)
{
	struct stat status;
	return entry->d_type == DT_DIR ||
	       ((entry->d_type == DT_UNKNOWN || entry->d_type == DT_LNK) &&
		       stat(path, &status) == 0 && S_ISDIR(status.st_mode));
}

static int walk(struct found *found, const char *directory, bool is_sweep, struct error *e);

static int walk_entry(struct found *found, const char *directory, bool is_sweep,
	const struct dirent *entry, struct error *e)
{
	bool is_run = is_run_name(entry->d_name);
	if (entry->d_name[0] == '.' || (!is_run && entry->d_type == DT_REG)) {
		return 0;
	}
	_cleanup_free_ char *path = path_in(directory, entry->d_name);
	if (!path) {
		return error_errno(e, ENOMEM, "%s", directory);
	}
	if (is_directory(entry, path)) {
		bool sweep = !is_sweep && catalogue_is_sweep(path);
		bool advice = !is_sweep && !sweep && found->advice && kept_advice_is_in(path);
		return sweep || advice ? walk(found, path, sweep, e) : 0;
	}
	int r = is_run ? found_add(found, path, is_sweep ? directory : NULL) : 0;
	return r < 0 ? error_errno(e, -r, "%s", path) : 0;
}

static int walk(struct found *found, const char *directory, bool is_sweep, struct error *e)
{
	DIR *stream = opendir(directory);
	if (!stream) {
		return error_errno(e, errno, "%s", directory);
	}
	int r = 0;
	struct dirent *entry;
	while (r == 0 && (errno = 0, entry = readdir(stream))) {
		r = walk_entry(found, directory, is_sweep, entry, e);
	}
	if (r == 0 && errno) {
		r = error_errno(e, errno, "%s", directory);
	}
	closedir(stream);
	return r;
}

// Adds the run files at a path; in a sweep's directory they are trials.
static int find_files(struct found *found, const char *path, struct error *e)
{
	struct stat status;
	if (stat(path, &status) < 0) {
		return error_errno(e, errno, "%s", path);
	}
	if (S_ISDIR(status.st_mode)) {
		return walk(found, path, catalogue_is_sweep(path), e);
	}
	_cleanup_free_ char *directory = strdup(path);
	char *slash = directory ? strrchr(directory, '/') : NULL;
	if (slash) {
		*slash = '\0';
	}
	const char *parent = slash ? directory : ".";
	bool is_trial = is_trial_name(slash ? slash + 1 : path) && catalogue_is_sweep(parent);
	int r = directory ? found_add(found, path, is_trial ? parent : NULL) : -ENOMEM;
	return r < 0 ? error_errno(e, -r, "%s", path) : 0;
}

static int compare_identity(const void *left, const void *right)
{
	const struct catalogue_file *a = *(const struct catalogue_file *const *)left;
	const struct catalogue_file *b = *(const struct catalogue_file *const *)right;
	if (a->device != b->device) {
		return a->device < b->device ? -1 : 1;
	}
	if (a->inode != b->inode) {
		return a->inode < b->inode ? -1 : 1;
	}
	return (a > b) - (a < b);
}

static int compare_newest_file_first(const void *left, const void *right)
{
	const struct catalogue_file *a = *(const struct catalogue_file *const *)left;
	const struct catalogue_file *b = *(const struct catalogue_file *const *)right;
	return (a->mtime_ns < b->mtime_ns) - (a->mtime_ns > b->mtime_ns);
}

// Leaves out all but the first of paths to one file, and all but the `most` files that were written
// last (0: all stay).
static int leave_out(struct found *found, size_t most)
{
	_cleanup_free_ struct catalogue_file **order = calloc(found->n + 1, sizeof(void *));
	if (!order) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < found->n; i++) {
		order[i] = &found->items[i];
	}
	if (found->n > 0) {
		qsort(order, found->n, sizeof(void *), compare_identity);
	}
	for (size_t i = 1; i < found->n; i++) {
		order[i]->is_left_out = order[i]->is_there && order[i - 1]->is_there &&
		                        order[i]->device == order[i - 1]->device &&
		                        order[i]->inode == order[i - 1]->inode;
	}
	if (most > 0 && found->n > most) {
		qsort(order, found->n, sizeof(void *), compare_newest_file_first);
		for (size_t i = most; i < found->n; i++) {
			order[i]->is_left_out = true;
		}
	}
	return 0;
}

// --- rows

static int add_line(char ***lines, size_t *n, const char *path, const char *text)
{
	char **grown = realloc(*lines, (*n + 1) * sizeof(*grown));
	if (!grown) {
		return -ENOMEM;
	}
	*lines = grown;
	int length = path ? asprintf(&grown[*n], "%s: %s", path, text)
	                  : asprintf(&grown[*n], "%s", text);
	*n += length >= 0;
	return length < 0 ? -ENOMEM : 0;
}

static char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t length = strlen(name);
	return strndup(name, is_run_name(name) ? length - strlen(run_suffix) : length);
}

// Moves a file's digest into the catalogue.
static int add_run(struct catalogue *c, struct catalogue_file *file)
{
	struct digest *run = &c->runs[c->n++];
	*run = file->digest;
	file->digest = (struct digest){0};
	run->name = name_of(file->path);
	run->path = take_pointer(file->path);
	run->found_by = file->found_by;
	run->sweep_directory = take_pointer(file->sweep);
	if (!run->name) {
		return -ENOMEM;
	}
	return run->notice ? add_line(&c->notices, &c->n_notices, run->path, run->notice) : 0;
}

// The answer of `strain advise` in the directory of the last run: runs of a directory follow each
// other.
struct beside {
	char *directory; // owned; NULL: no run yet
	bool has_answer;
	struct kept_advice answer;
};

static void beside_done(struct beside *b)
{
	kept_advice_done(&b->answer);
	free(b->directory);
}

// Takes ownership of the directory. -ENOMEM.
static int beside_enter(struct beside *b, char *directory, struct catalogue *c)
{
	struct error e = {0};
	beside_done(b);
	*b = (struct beside){.directory = directory};
	int r = kept_advice_read(directory, &b->answer, &e);
	b->has_answer = r == 0;
	bool is_wrong = r < 0 && r != -ENOENT && r != -ENOTDIR;
	return is_wrong ? add_line(&c->notices, &c->n_notices, NULL, e.text) : 0;
}

// Adds what the answer beside a run says of it.
static int add_advice(struct beside *b, struct digest *run, struct catalogue *c)
{
	const char *slash = strrchr(run->path, '/');
	size_t length = slash ? (size_t)(slash - run->path) : 0;
	char *directory = slash ? strndup(run->path, length > 0 ? length : 1) : strdup(".");
	bool same = directory && b->directory && strcmp(directory, b->directory) == 0;
	int r = !directory ? -ENOMEM : same ? 0 : beside_enter(b, directory, c);
	if (same) {
		free(directory);
	}
	for (size_t i = 0; i < N_MEASURES; i++) {
		if (measure_is_of_advice((enum measure_id)i)) {
			run->reasons[i] = kept_advice_none;
		}
	}
	if (r < 0 || !b->has_answer) {
		return r;
	}
	run->advice_directory = strdup(b->directory);
	return run->advice_directory
	               ? kept_advice_tell(&b->answer, slash ? slash + 1 : run->path, run)
	               : -ENOMEM;
}

static int compare_newest_first(const void *left, const void *right)
{
	const struct digest *a = left, *b = right;
	if (a->start_utc_ns != b->start_utc_ns) {
		return a->start_utc_ns < b->start_utc_ns ? 1 : -1;
	}
	return strcmp(a->path, b->path);
}

static int fill(struct catalogue *c, struct found *found, struct error *e)
{
	_cleanup_(beside_done) struct beside beside = {0};
	c->runs = calloc(found->n + 1, sizeof(*c->runs));
	int r = c->runs ? 0 : -ENOMEM;
	for (size_t i = 0; i < found->n && r == 0; i++) {
		struct catalogue_file *file = &found->items[i];
		if (file->is_left_out) {
			continue;
		}
		if (file->error) {
			r = add_line(&c->unreadable, &c->n_unreadable, NULL, file->error);
		} else {
			r = add_run(c, file);
			r = r < 0 ? r : add_advice(&beside, &c->runs[c->n - 1], c);
			r = r < 0 ? r : prices_tell(found->prices, &c->runs[c->n - 1]);
		}
	}
	if (r == 0 && c->n > 0) {
		qsort(c->runs, c->n, sizeof(*c->runs), compare_newest_first);
	}
	return r < 0 ? error_errno(e, -r, "cannot list runs") : 0;
}

int catalogue_read_with(char *const *paths, size_t n_paths, const struct catalogue_options *options,
	struct catalogue *ret, struct error *e)
{
	struct found found = {.advice = options->advice, .prices = options->prices};
	struct catalogue c = {0};
	int r = 0;
	for (size_t i = 0; i < n_paths && r == 0; i++) {
		found.by = i;
		r = find_files(&found, paths[i], e);
	}
	if (r == 0 && leave_out(&found, options->most_read) < 0) {
		r = error_errno(e, ENOMEM, "cannot list runs");
	}
	r = r < 0 ? r : catalogue_reading(found.items, found.n, options, e);
	r = r < 0 ? r : fill(&c, &found, e);
	found_done(&found);
	if (r < 0) {
		catalogue_done(&c);
		return r;
	}
	*ret = c;
	return 0;
}

int catalogue_read(char *const *paths, size_t n_paths, struct catalogue *ret, struct error *e)
{
	return catalogue_read_with(paths, n_paths, &(struct catalogue_options){0}, ret, e);
}

static void free_lines(char **lines, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(lines[i]);
	}
	free(lines);
}

void catalogue_done(struct catalogue *c)
{
	for (size_t i = 0; i < c->n; i++) {
		digest_done(&c->runs[i]);
	}
	free(c->runs);
	free_lines(c->unreadable, c->n_unreadable);
	free_lines(c->notices, c->n_notices);
	*c = (struct catalogue){0};
}

// Metric ------------------------------------------------------------------------------------------
//
// Reads a figure of a metric from each run.

// Kinds of entities, in the order in which they are searched for the metric.
static const char *const kinds[] = {"job", "host", "gpu", "disk", "network", "recorder"};

struct asked {
	char *metric; // owned
	enum figure figure;
};

static int parse_name(const char *name, struct asked *ret, struct error *e)
{
	const char *colon = strrchr(name, ':');
	for (size_t i = 0; colon && i < N_FIGURES; i++) {
		if (strcmp(colon + 1, figure_name((enum figure)i)) == 0) {
			*ret = (struct asked){
				strndup(name, (size_t)(colon - name)), (enum figure)i};
			return ret->metric ? 0 : error_errno(e, ENOMEM, "%s", name);
		}
	}
	return error_set(e, EINVAL,
		"'%s': expected METRIC:AGGREGATE, with total, mean, p50, p95 or max", name);
}

// The figures of the entities of one kind.
struct gathered {
	size_t n;
	double sum;
	double largest;
	char unit[48];
};

static size_t kind_of(const char *kind)
{
	size_t i = 0;
	while (i < ARRAY_LENGTH(kinds) && (!kind || strcmp(kinds[i], kind) != 0)) {
		i++;
	}
	return i;
}

// Rates of counters are per second; seconds per second have no unit.
static void take_unit(char *ret, size_t size, const char *unit, bool is_rate)
{
	bool seconds = strcmp(unit, "s") == 0;
	snprintf(ret, size, "%s%s", is_rate && seconds ? "1" : unit,
		is_rate && !seconds ? "/s" : "");
}

static void gather(sqlite3_stmt *row, enum figure figure, struct gathered *all)
{
	size_t kind = kind_of((const char *)sqlite3_column_text(row, 0));
	const char *unit = (const char *)sqlite3_column_text(row, 1);
	const char *sort = (const char *)sqlite3_column_text(row, 2);
	double value = sqlite3_column_double(row, 3);
	if (kind == ARRAY_LENGTH(kinds) || !isfinite(value)) {
		return;
	}
	struct gathered *g = &all[kind];
	bool is_rate = sort && strcmp(sort, "counter") == 0 && figure != FIGURE_TOTAL;
	take_unit(g->unit, sizeof(g->unit), unit ? unit : "", is_rate);
	g->sum += value;
	g->largest = g->n++ == 0 || value > g->largest ? value : g->largest;
}

static const char no_metric[] = "the summary of the run does not contain this metric";
static const char no_summary[] = "the run has no summary";
static const char unreadable[] = "the run can no longer be read";

struct found_figure {
	double value; // NAN: missing
	const char *reason; // why it is missing; NULL
	char unit[48];
};

static struct found_figure take_figure(const struct gathered *all, enum figure figure)
{
	struct found_figure found = {.value = NAN, .reason = no_metric};
	for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
		if (all[i].n > 0) {
			found.value = figure == FIGURE_TOTAL ? all[i].sum
			              : figure == FIGURE_MAX ? all[i].largest
			                                     : all[i].sum / (double)all[i].n;
			found.reason = NULL;
			snprintf(found.unit, sizeof(found.unit), "%s", all[i].unit);
			break;
		}
	}
	return found;
}

// The figure in the summary of an open run.
static struct found_figure query_figure(sqlite3 *database, const struct asked *asked)
{
	static const char sql[] =
		"SELECT e.kind, m.unit, m.kind, (CASE ?2 WHEN 'total' THEN total WHEN 'mean' THEN"
		" mean WHEN 'p50' THEN p50 WHEN 'p95' THEN p95 ELSE max END) * m.scale / 1000"
		" AS value FROM summary AS s JOIN metric AS m ON m.id = s.metric AND m.name = ?1"
		" JOIN entity AS e ON e.id = s.entity"
		" WHERE s.epoch IS NULL AND value IS NOT NULL LIMIT 10000";
	_cleanup_statement_ sqlite3_stmt *statement = NULL;
	struct gathered all[ARRAY_LENGTH(kinds)] = {0};
	int result = sqlite3_prepare_v2(database, sql, -1, &statement, NULL);
	if (result != SQLITE_OK) {
		return (struct found_figure){.value = NAN, .reason = no_summary};
	}
	sqlite3_bind_text(statement, 1, asked->metric, -1, SQLITE_STATIC);
	sqlite3_bind_text(statement, 2, figure_name(asked->figure), -1, SQLITE_STATIC);
	while (sqlite3_step(statement) == SQLITE_ROW) {
		gather(statement, asked->figure, all);
	}
	return take_figure(all, asked->figure);
}

static struct found_figure read_figure(const char *path, const struct asked *asked)
{
	struct found_figure found = {.value = NAN, .reason = unreadable};
	struct reader *reader = NULL;
	sqlite3 *database = NULL;
	if (findings_open(path, &database, NULL) == 0) {
		found = query_figure(database, asked);
		database_close(database);
	} else if (reader_open(path, &reader, NULL) == 0) {
		found = query_figure(reader_database(reader), asked);
		reader_free(reader);
	}
	return found;
}

int catalogue_metric_read(const struct digest *const *runs, size_t n, const char *name,
	struct catalogue_metric *ret, struct error *e)
{
	struct asked asked = {0};
	int r = parse_name(name, &asked, e);
	if (r < 0) {
		return r;
	}
	_cleanup_free_ char *metric = asked.metric;
	struct catalogue_metric found = {.numbers = calloc(n + 1, sizeof(*found.numbers)),
		.reasons = calloc(n + 1, sizeof(*found.reasons))};
	size_t known = 0;
	for (size_t i = 0; found.numbers && found.reasons && i < n; i++) {
		struct found_figure figure = read_figure(runs[i]->path, &asked);
		found.numbers[i] = figure.value;
		found.reasons[i] = figure.reason;
		if (!figure.reason) {
			snprintf(found.unit, sizeof(found.unit), "%s", figure.unit);
			known++;
		}
	}
	if (!found.numbers || !found.reasons || known == 0) {
		catalogue_metric_done(&found);
		return known == 0 ? error_set(e, ENOENT,
					    "no run has a metric '%s' with that aggregate "
					    "(docs/metrics.md lists them)",
					    metric)
		                  : error_errno(e, ENOMEM, "%s", name);
	}
	*ret = found;
	return 0;
}

void catalogue_metric_done(struct catalogue_metric *metric)
{
	free(metric->numbers);
	free(metric->reasons);
	*metric = (struct catalogue_metric){0};
}
