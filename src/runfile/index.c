// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Finds the newest run.

#include "runfile/index.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "runfile/database.h"
#include "runfile/reader_internal.h"

// Index -------------------------------------------------------------------------------------------

struct dated_run {
	char *path;
	int64_t written_ns; // modification time of the file; INT64_MAX: unknown
	int64_t start_utc_ns;
	bool readable;
};

struct dated_runs {
	struct dated_run *items;
	size_t n;
	size_t capacity;
};

static void dated_runs_done(struct dated_runs *runs)
{
	for (size_t i = 0; i < runs->n; i++) {
		free(runs->items[i].path);
	}
	free(runs->items);
}

// Reads only the start of the run. Returns false if the file must be opened by the reader.
static bool read_start(struct dated_run *run)
{
	sqlite3 *database = NULL;
	if (reader_open_database(run->path, &database, NULL) < 0) {
		return false;
	}
	run->start_utc_ns = database_number(
		database, "SELECT CAST(value AS INTEGER) FROM run WHERE key = 'start_utc_ns'", 0);
	database_close(database);
	return run->start_utc_ns > 0;
}

static void date_run(struct dated_run *run)
{
	struct reader *reader = NULL;
	struct stat status;
	// Opening other types, such as a FIFO, could block for ever.
	if (stat(run->path, &status) < 0 || !S_ISREG(status.st_mode)) {
		return;
	}
	run->readable = read_start(run);
	if (!run->readable && reader_open(run->path, &reader, NULL) == 0) {
		run->readable = true;
		run->start_utc_ns = reader_run_i64(reader, "start_utc_ns", 0);
		reader_free(reader);
	}
}

bool index_run_name_is(const char *name)
{
	static const char suffix[] = ".strain";
	size_t length = strlen(name), n = sizeof(suffix) - 1;
	return length > n && strcmp(name + length - n, suffix) == 0;
}

static int add_run(struct dated_runs *runs, const char *directory, const char *name)
{
	void *items = runs->items;
	struct dated_run run = {0};
	bool here = strcmp(directory, ".") == 0;
	if (asprintf(&run.path, "%s%s%s", here ? "" : directory, here ? "" : "/", name) < 0) {
		return -ENOMEM;
	}
	struct stat status;
	run.written_ns = stat(run.path, &status) < 0
	                         ? INT64_MAX
	                         : (int64_t)status.st_mtim.tv_sec * (int64_t)NS_PER_S +
	                                   status.st_mtim.tv_nsec;
	if (array_reserve(&items, &runs->capacity, runs->n + 1, sizeof(run)) < 0) {
		free(run.path);
		return -ENOMEM;
	}
	runs->items = items;
	runs->items[runs->n++] = run;
	return 0;
}

static int compare_newest_first(const void *a, const void *b)
{
	const struct dated_run *x = a, *y = b;
	if (x->readable != y->readable) {
		return x->readable ? -1 : 1;
	}
	if (x->start_utc_ns != y->start_utc_ns) {
		return x->start_utc_ns < y->start_utc_ns ? 1 : -1;
	}
	return strcmp(x->path, y->path);
}

static int read_directory(const char *directory, struct dated_runs *runs, struct error *e)
{
	DIR *stream = opendir(directory);
	if (!stream) {
		return error_errno(e, errno, "%s", directory);
	}
	int r = 0;
	for (struct dirent *entry; r == 0 && (entry = readdir(stream));) {
		if (index_run_name_is(entry->d_name)) {
			r = add_run(runs, directory, entry->d_name);
		}
	}
	closedir(stream);
	return r < 0 ? error_errno(e, -r, "%s", directory) : 0;
}

static int compare_last_written_first(const void *a, const void *b)
{
	const struct dated_run *x = a, *y = b;
	return (x->written_ns < y->written_ns) - (x->written_ns > y->written_ns);
}

// Tolerance for the clock of a file server.
#define SLACK_NS (600 * (int64_t)NS_PER_S)

enum { NEWEST_MAX = 64 };

// Keeps the `wanted` newest starts, the newest first.
static void keep_newest(int64_t starts[NEWEST_MAX], size_t wanted, int64_t start)
{
	for (size_t i = 0; i < wanted; i++) {
		if (start > starts[i]) {
			int64_t older = starts[i];
			starts[i] = start;
			start = older;
		}
	}
}

// Opens runs until the `wanted` newest are known. The last write to a file is later than the start
// of its run, so a file last written before the start of the last of these need not be opened. Such
// runs count as unreadable.
static void date_newest(struct dated_runs *runs, size_t wanted)
{
	int64_t starts[NEWEST_MAX] = {0};
	bool bounded = wanted <= NEWEST_MAX;
	if (runs->n > 0) {
		qsort(runs->items, runs->n, sizeof(*runs->items), compare_last_written_first);
	}
	for (size_t i = 0; i < runs->n; i++) {
		struct dated_run *run = &runs->items[i];
		if (bounded && starts[wanted - 1] - SLACK_NS > run->written_ns) {
			return;
		}
		date_run(run);
		if (bounded && run->readable) {
			keep_newest(starts, wanted, run->start_utc_ns);
		}
	}
}

// Lists the run files of all places. Unreadable places are skipped.
static int list_places(const struct places *places, struct dated_runs *ret, struct error *e)
{
	int first = 0, r = 0;
	for (size_t i = 0; i < places->n && r != -ENOMEM; i++) {
		struct error why = {0};
		r = read_directory(places->paths[i], ret, &why);
		if (i == 0 && r < 0) {
			first = error_set(e, -r, "%s", why.text);
		}
	}
	return ret->n == 0 && first < 0 ? first
	       : r == -ENOMEM           ? error_errno(e, ENOMEM, "cannot look for runs")
	                                : 0;
}

static int say_none(const struct places *places, size_t n, struct error *e)
{
	const char *usual = places->paths[0], *other = places->n > 1 ? places->paths[1] : NULL;
	bool here = strcmp(usual, ".") == 0;
	if (n > 0) {
		return error_set(e, ENOENT, "there %s only %zu run%s (*.strain) in %s",
			n == 1 ? "is" : "are", n, n == 1 ? "" : "s", usual);
	}
	return error_set(e, ENOENT, "no run (*.strain) in %s%s%s%s",
		here ? "the current directory" : "$STRAIN_DIR, ", here ? "" : usual,
		other ? ", nor in " : "", other ? other : "");
}

int index_newest_run(size_t back, char **ret_path, struct error *e)
{
	struct places places;
	struct dated_runs runs = {0};
	size_t readable = 0;
	if (places_find(&places) < 0) {
		return error_errno(e, ENOMEM, "cannot look for runs");
	}
	int r = list_places(&places, &runs, e);
	if (r == 0 && runs.n > 0) {
		date_newest(&runs, back + 1);
		qsort(runs.items, runs.n, sizeof(*runs.items), compare_newest_first);
	}
	for (size_t i = 0; i < runs.n; i++) {
		readable += runs.items[i].readable;
	}
	if (r == 0 && back < readable) {
		*ret_path = take_pointer(runs.items[back].path);
	} else if (r == 0) {
		r = say_none(&places, readable, e);
	}
	dated_runs_done(&runs);
	places_done(&places);
	return r;
}

// Places ------------------------------------------------------------------------------------------
//
// Directories of runs.

const char *places_usual(void)
{
	const char *chosen = secure_getenv("STRAIN_DIR");
	return chosen && *chosen ? chosen : ".";
}

char *places_fallback(void)
{
	const char *state = secure_getenv("XDG_STATE_HOME"), *home = secure_getenv("HOME");
	struct text path = {0};
	if (state && *state == '/') {
		text_format(&path, "%s/strain", state);
	} else if (home && *home == '/') {
		text_format(&path, "%s/.local/state/strain", home);
	} else {
		return NULL;
	}
	return text_steal(&path);
}

static bool is_sweep(DIR *stream, const char *name)
{
	struct text plan = {0};
	text_format(&plan, "%s/plan.yaml", name);
	bool there = plan.data && faccessat(dirfd(stream), plan.data, F_OK, 0) == 0;
	text_done(&plan);
	return there;
}

static bool holds_runs(const char *directory)
{
	DIR *stream = opendir(directory);
	bool found = false;
	for (struct dirent *entry; stream && !found && (entry = readdir(stream));) {
		found = index_run_name_is(entry->d_name) ||
		        (entry->d_type != DT_REG && entry->d_name[0] != '.' &&
				is_sweep(stream, entry->d_name));
	}
	if (stream) {
		closedir(stream);
	}
	return found;
}

int places_find(struct places *ret)
{
	const char *usual = places_usual();
	struct places places = {.paths = {strdup(usual)}, .n = 1};
	if (!places.paths[0]) {
		return -ENOMEM;
	}
	if (!holds_runs(usual) || faccessat(AT_FDCWD, usual, W_OK | X_OK, AT_EACCESS) < 0) {
		char *fallback = places_fallback();
		if (fallback && access(fallback, R_OK | X_OK) == 0) {
			places.paths[places.n++] = fallback;
		} else {
			free(fallback);
		}
	}
	*ret = places;
	return 0;
}

void places_done(struct places *places)
{
	for (size_t i = 0; i < places->n; i++) {
		free(places->paths[i]);
	}
	*places = (struct places){0};
}
