// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The catalogue: which files there are, what the index knows of them, and the others read, by
// several threads where there are CPUs for them.

#include "analyze/catalogue.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analyze/catalogue_entry.h"
#include "analyze/catalogue_index.h"
#include "analyze/catalogue_reading.h"
#include "base/array.h"
#include "base/cleanup.h"

static const char run_suffix[] = ".strain";

// --- which files

struct found {
	struct catalogue_file *items;
	size_t n;
	size_t capacity;
	size_t by; // which path is looked at
};

static void found_done(struct found *found)
{
	for (size_t i = 0; i < found->n; i++) {
		catalogue_file_done(&found->items[i]);
	}
	free(found->items);
}

// What stat says of a file, or why it says nothing, is for the reading of it to tell.
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
		file.identity = file_identity_of(&status);
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

// A path below a directory, owned by the caller; what is in "." has no directory before it.
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
		return !is_sweep && catalogue_is_sweep(path) ? walk(found, path, true, e) : 0;
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

// A sweep's directory that is named as such knows its trials as well as one that is come upon.
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
	if (a->identity.device != b->identity.device) {
		return a->identity.device < b->identity.device ? -1 : 1;
	}
	if (a->identity.inode != b->identity.inode) {
		return a->identity.inode < b->identity.inode ? -1 : 1;
	}
	return (a > b) - (a < b);
}

// Of a file that comes twice the first stays.
static int leave_out_doubles(struct found *found)
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
		order[i]->is_double = order[i]->is_there && order[i - 1]->is_there &&
		                      order[i]->identity.device == order[i - 1]->identity.device &&
		                      order[i]->identity.inode == order[i - 1]->identity.inode;
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

// Moves a file's entry into the catalogue.
static int add_run(struct catalogue *c, struct catalogue_file *file)
{
	struct catalogue_run run = {0};
	const char *notice = NULL;
	int r = catalogue_entry_decode(file->entry.data, file->entry.length, &run, &notice);
	if (r < 0) {
		return r;
	}
	run.name = name_of(file->path);
	run.path = take_pointer(file->path);
	run.found_by = file->found_by;
	run.sweep_directory = take_pointer(file->sweep);
	run.entry = take_pointer(file->entry.data);
	c->runs[c->n++] = run;
	if (!run.name) {
		return -ENOMEM;
	}
	return notice ? add_line(&c->notices, &c->n_notices, run.path, notice) : 0;
}

static int compare_newest_first(const void *left, const void *right)
{
	const struct catalogue_run *a = left, *b = right;
	if (a->start_utc_ns != b->start_utc_ns) {
		return a->start_utc_ns < b->start_utc_ns ? 1 : -1;
	}
	return strcmp(a->path, b->path);
}

static int fill(struct catalogue *c, struct found *found, struct error *e)
{
	c->runs = calloc(found->n + 1, sizeof(*c->runs));
	int r = c->runs ? 0 : -ENOMEM;
	for (size_t i = 0; i < found->n && r == 0; i++) {
		struct catalogue_file *file = &found->items[i];
		if (file->is_double) {
			continue;
		}
		if (!file->entry.data) {
			r = add_line(&c->unreadable, &c->n_unreadable, NULL, file->error);
		} else {
			r = add_run(c, file);
		}
	}
	if (r == 0 && c->n > 0) {
		qsort(c->runs, c->n, sizeof(*c->runs), compare_newest_first);
	}
	return r < 0 ? error_errno(e, -r, "cannot list runs") : 0;
}

// What the index knows: an entry that cannot be looked at is as good as none.
static void ask_index(struct found *found, struct catalogue_index *index, bool job_only)
{
	for (size_t i = 0; i < found->n; i++) {
		struct catalogue_file *file = &found->items[i];
		struct catalogue_run run = {0};
		const char *notice;
		if (file->is_double || !file->is_there ||
			!catalogue_index_find(index, &file->identity, job_only, &file->entry)) {
			continue;
		}
		if (catalogue_entry_decode(file->entry.data, file->entry.length, &run, &notice) <
			0) {
			free(take_pointer(file->entry.data));
		}
		free(run.labels);
	}
}

// Where only so many may be read, the others are as if they were not there.
static void leave_out_unread(struct found *found, size_t most)
{
	size_t n = 0;
	for (size_t i = found->n; most > 0 && i-- > 0;) {
		struct catalogue_file *file = &found->items[i];
		bool read = !file->is_double && !file->entry.data;
		n += read;
		file->is_double = file->is_double || (read && n > most);
	}
}

int catalogue_read_with(char *const *paths, size_t n_paths, const struct catalogue_options *options,
	struct catalogue *ret, struct error *e)
{
	struct found found = {0};
	struct catalogue c = {0};
	int r = 0;
	for (size_t i = 0; i < n_paths && r == 0; i++) {
		found.by = i;
		r = find_files(&found, paths[i], e);
	}
	if (r == 0 && leave_out_doubles(&found) < 0) {
		r = error_errno(e, ENOMEM, "cannot list runs");
	}
	if (r == 0) {
		struct catalogue_index *index = catalogue_index_open();
		ask_index(&found, index, options->job_only);
		leave_out_unread(&found, options->most_read);
		r = catalogue_reading(found.items, found.n, options, index, &c.n_read, e);
		catalogue_index_close(index);
	}
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
		struct catalogue_run *run = &c->runs[i];
		free(run->path);
		free(run->name);
		free(run->sweep_directory);
		free(run->labels);
		free(run->entry);
	}
	free(c->runs);
	free_lines(c->unreadable, c->n_unreadable);
	free_lines(c->notices, c->n_notices);
	*c = (struct catalogue){0};
}

const char *catalogue_label(const struct catalogue_run *run, const char *name)
{
	for (size_t i = 0; i < run->n_labels; i++) {
		if (strcmp(run->labels[i].name, name) == 0) {
			return run->labels[i].value;
		}
	}
	return strcmp(name, "machine") == 0 && *run->host ? run->host : NULL;
}
