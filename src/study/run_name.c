// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Finds the path of a run from what the user typed.

#include "study/run_name.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/parse.h"
#include "base/suggest.h"
#include "base/text.h"
#include "runfile/index.h"
#include "study/catalogue.h"
#include "study/kept_advice.h"

#define ENDING ".strain"

enum { BACK_DIGITS = 6, LISTED = 6 };

struct candidate {
	char *path;
	char *name; // as the user types it
};

struct candidates {
	struct candidate *items;
	size_t n;
	size_t capacity;
};

static void candidates_done(struct candidates *c)
{
	for (size_t i = 0; i < c->n; i++) {
		free(c->items[i].path);
		free(c->items[i].name);
	}
	free(c->items);
}

bool run_name_is_back(const char *word)
{
	size_t digits = word[0] == '-' && word[1] != '0' ? strspn(word + 1, "0123456789") : 0;
	return digits > 0 && digits <= BACK_DIGITS && word[1 + digits] == '\0';
}

// --- candidates

static char *path_in(const char *directory, const char *name)
{
	char *path = NULL;
	bool here = strcmp(directory, ".") == 0, slash = here || strcmp(directory, "/") == 0;
	return asprintf(&path, "%s%s%s", here ? "" : directory, slash ? "" : "/", name) < 0 ? NULL
	                                                                                    : path;
}

// Takes both strings, also on failure.
static int add(struct candidates *c, char *path, char *name)
{
	void *items = c->items;
	int r = path && name ? array_reserve(&items, &c->capacity, c->n + 1, sizeof(*c->items))
	                     : -ENOMEM;
	if (r < 0) {
		free(path);
		free(name);
		return r;
	}
	c->items = items;
	c->items[c->n++] = (struct candidate){path, name};
	return 0;
}

static int add_entry(struct candidates *c, const char *directory, const char *entry,
	const char *start, enum run_name_kind kind)
{
	_cleanup_free_ char *path = NULL;
	if (strncmp(entry, start, strlen(start)) != 0 || (*entry == '.' && *start != '.')) {
		return 0;
	}
	if (index_run_name_is(entry)) {
		return add(c, path_in(directory, entry),
			strndup(entry, strlen(entry) - strlen(ENDING)));
	}
	path = kind != RUN_NAME_FILE ? path_in(directory, entry) : NULL;
	if (path && (catalogue_is_sweep(path) || kept_advice_is_in(path))) {
		char *name = NULL;
		return add(c, take_pointer(path), asprintf(&name, "%s/", entry) < 0 ? NULL : name);
	}
	return 0;
}

// An unreadable directory counts as empty.
static int look_into(
	struct candidates *c, const char *directory, const char *start, enum run_name_kind kind)
{
	DIR *stream = opendir(directory);
	int r = 0;
	for (struct dirent *entry; stream && r == 0 && (entry = readdir(stream));) {
		r = add_entry(c, directory, entry->d_name, start, kind);
	}
	if (stream) {
		closedir(stream);
	}
	return r;
}

static int compare_names(const void *left, const void *right)
{
	const struct candidate *a = left, *b = right;
	return strcmp(a->name, b->name);
}

// If nothing in the usual folders matches, the fallback is searched too: runs that could not be
// written here are there.
static int look_everywhere(
	struct candidates *c, const char *start, enum run_name_kind kind, struct places *places)
{
	int r = 0;
	for (size_t i = 0; i < places->n && r == 0; i++) {
		r = look_into(c, places->paths[i], start, kind);
	}
	if (r == 0 && c->n == 0 && places->n == 1) {
		_cleanup_free_ char *fallback = places_fallback();
		r = fallback ? look_into(c, fallback, start, kind) : 0;
	}
	if (c->n > 0) {
		qsort(c->items, c->n, sizeof(*c->items), compare_names);
	}
	return r;
}

// --- selection

// Whether the file can be a run. A file with another extension is checked by its first bytes: the
// program `train` may be next to its runs.
static bool may_be_run(const char *path, const struct stat *status)
{
	static const char magic[] = "SQLite format 3";
	char found[sizeof(magic)] = "";
	if (index_run_name_is(path) || !S_ISREG(status->st_mode)) {
		return true;
	}
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	return file && fread(found, 1, sizeof(found), file) == sizeof(found) &&
	       memcmp(found, magic, sizeof(magic)) == 0;
}

enum finding { FOUND_NOTHING, FOUND_RUN, FOUND_OTHER };

// Tries a path as given, and with the extension of runs.
static enum finding try_path(const char *path, enum run_name_kind kind, char **ret_path)
{
	_cleanup_free_ char *with_ending = NULL;
	struct stat status;
	bool there = stat(path, &status) == 0;
	bool fits = there &&
	            (S_ISDIR(status.st_mode) ? kind != RUN_NAME_FILE : may_be_run(path, &status));
	if (fits) {
		*ret_path = strdup(path);
		return FOUND_RUN;
	}
	if (asprintf(&with_ending, "%s" ENDING, path) >= 0 && stat(with_ending, &status) == 0) {
		*ret_path = take_pointer(with_ending);
		return FOUND_RUN;
	}
	return there ? FOUND_OTHER : FOUND_NOTHING;
}

static enum finding try_exact(
	const char *name, enum run_name_kind kind, const struct places *places, char **ret_path)
{
	enum finding first = try_path(name, kind, ret_path), found = first;
	for (size_t i = 0; i < places->n && found != FOUND_RUN && *name != '/'; i++) {
		_cleanup_free_ char *path = path_in(places->paths[i], name);
		found = path ? try_path(path, kind, ret_path) : FOUND_NOTHING;
	}
	_cleanup_free_ char *fallback = found != FOUND_RUN && *name != '/' ? places_fallback()
	                                                                   : NULL;
	_cleanup_free_ char *path = fallback ? path_in(fallback, name) : NULL;
	found = path ? try_path(path, kind, ret_path) : found;
	return found == FOUND_RUN ? found : first;
}

static int say_several(const char *name, const struct candidates *c, struct error *e)
{
	_cleanup_text_ struct text line = {0};
	text_format(&line, "'%s' is ambiguous (%zu names): ", name, c->n);
	for (size_t i = 0; i < c->n && i < LISTED; i++) {
		text_format(&line, "%s%s", i ? ", " : "", c->items[i].name);
	}
	if (c->n > LISTED) {
		text_format(&line, " and %zu more", c->n - LISTED);
	}
	return error_set(e, EINVAL, "%s", line.data ? line.data : name);
}

static int say_none(
	const char *name, enum run_name_kind kind, struct places *places, struct error *e)
{
	struct candidates all = {0};
	struct suggestion_of_word nearest = SUGGEST_NONE;
	bool here = strcmp(places->paths[0], ".") == 0;
	look_everywhere(&all, "", kind, places);
	for (size_t i = 0; i < all.n; i++) {
		suggest_consider(&nearest, name, all.items[i].name);
	}
	const char *hint = kind == RUN_NAME_LISTED ? "" : " (strain ls lists the runs)";
	int r = error_set(e, ENOENT, "no %s '%s' in %s%s%s%s",
		kind == RUN_NAME_LISTED ? "directory, sweep or run" : "run", name,
		here ? "the current directory" : places->paths[0],
		nearest.word ? "; did you mean '" : hint, nearest.word ? nearest.word : "",
		nearest.word ? "'?" : "");
	candidates_done(&all);
	return r;
}

// Finds the only run whose name begins like this; for a path, in its directory.
static int find_beginning(const char *name, enum run_name_kind kind, struct places *places,
	char **ret_path, struct error *e)
{
	struct candidates c = {0};
	const char *slash = strrchr(name, '/');
	_cleanup_free_ char *directory = slash ? strndup(name,
							 slash > name ? (size_t)(slash - name) : 1)
	                                       : NULL;
	int r = directory ? look_into(&c, directory, slash + 1, kind)
	                  : look_everywhere(&c, name, kind, places);
	if (r < 0) {
		r = error_errno(e, -r, "cannot look for runs");
	} else if (c.n == 1 && *(slash ? slash + 1 : name)) {
		*ret_path = take_pointer(c.items[0].path);
	} else if (c.n > 1 && *(slash ? slash + 1 : name)) {
		r = say_several(name, &c, e);
	} else {
		r = -ENOENT;
	}
	candidates_done(&c);
	return r;
}

static int find_in(const char *name, enum run_name_kind kind, struct places *places,
	char **ret_path, struct error *e)
{
	enum finding found = try_exact(name, kind, places, ret_path);
	if (found == FOUND_RUN) {
		return *ret_path ? 0 : error_errno(e, ENOMEM, "cannot look for runs");
	}
	int r = index_run_name_is(name) ? -ENOENT : find_beginning(name, kind, places, ret_path, e);
	if (r != -ENOENT) {
		return r;
	}
	// For a file that is no run, or does not exist, opening the path gives the error.
	if (found == FOUND_OTHER || strchr(name, '/') || index_run_name_is(name)) {
		*ret_path = strdup(name);
		return *ret_path ? 0 : error_errno(e, ENOMEM, "cannot look for runs");
	}
	return say_none(name, kind, places, e);
}

int run_name_find(const char *name, enum run_name_kind kind, char **ret_path, struct error *e)
{
	struct places places;
	int64_t from_end = 0;
	if (run_name_is_back(name) && parse_integer(name + 1, 1, 999999, &from_end, NULL) == 0) {
		return index_newest_run((size_t)from_end - 1, ret_path, e);
	}
	if (places_find(&places) < 0) {
		return error_errno(e, ENOMEM, "cannot look for runs");
	}
	int r = find_in(name, kind, &places, ret_path, e);
	places_done(&places);
	return r;
}

char **run_name_list(const char *start, enum run_name_kind kind)
{
	struct candidates c = {0};
	struct places places;
	if (places_find(&places) < 0) {
		return NULL;
	}
	int r = look_everywhere(&c, start, kind, &places);
	char **names = r < 0 ? NULL : calloc(c.n + 1, sizeof(*names));
	for (size_t i = 0; names && i < c.n; i++) {
		names[i] = take_pointer(c.items[i].name);
	}
	candidates_done(&c);
	places_done(&places);
	return names;
}

void run_name_list_free(char **names)
{
	for (size_t i = 0; names && names[i]; i++) {
		free(names[i]);
	}
	free(names);
}
