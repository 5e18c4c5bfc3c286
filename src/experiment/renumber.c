// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// New names for runs, in two steps: one may want the name that another still has.

#include "experiment/renumber.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/parse.h"
#include "base/text.h"
#include "experiment/sweep.h"
#include "trace/amend.h"
#include "trace/reader.h"

#define MOVING ".moving"

struct move {
	char *name; // as it is called now, without folder
	struct trial_place to; // configuration 0: no trial is this one
};

struct moves {
	struct move *items;
	size_t n;
	size_t capacity;
};

static bool has_suffix(const char *name, const char *suffix)
{
	size_t length = strlen(name), n = strlen(suffix);
	return length > n && strcmp(name + length - n, suffix) == 0;
}

static bool is_configuration(const struct sweep *sweep, size_t configuration, struct reader *reader)
{
	bool same = true;
	for (size_t f = 0; f < sweep->plan.n_factors && same; f++) {
		const char *value = reader_label(reader, sweep->plan.factors[f].name);
		same = value && strcmp(value, trials_value(&sweep->trials, configuration, f)) == 0;
	}
	return same;
}

static struct trial_place find_trial(const struct sweep *sweep, const char *path)
{
	struct trial_place none = {0};
	struct reader *reader = NULL;
	int64_t repeat = 0;
	if (reader_open(path, &reader, NULL) < 0) {
		return none;
	}
	const char *label = reader_label(reader, "repeat");
	bool known = label &&
	             parse_integer(label, 1, (int64_t)sweep->plan.repeats, &repeat, NULL) == 0;
	struct trial_place found = none;
	for (size_t i = 1; known && i <= sweep->trials.n_configurations; i++) {
		if (is_configuration(sweep, i, reader)) {
			found = (struct trial_place){(uint32_t)i, (uint32_t)repeat};
			break;
		}
	}
	reader_free(reader);
	return found;
}

static int rename_in(const char *directory, const char *from, const char *folder, const char *to,
	struct error *e)
{
	_cleanup_text_ struct text old = {0}, new = {0};
	text_format(&old, "%s/%s", directory, from);
	text_format(&new, "%s/%s%s%s", directory, folder, *folder ? "/" : "", to);
	if (old.failed || new.failed) {
		return error_errno(e, ENOMEM, "%s", directory);
	}
	return rename(old.data, new.data) < 0 ? error_errno(e, errno, "%s", new.data) : 0;
}

static int collect(const struct sweep *sweep, struct moves *moves, struct error *e)
{
	DIR *folder = opendir(sweep->directory);
	if (!folder) {
		return error_errno(e, errno, "%s", sweep->directory);
	}
	int result = 0;
	for (struct dirent *entry; result == 0 && (entry = readdir(folder));) {
		_cleanup_text_ struct text path = {0};
		text_format(&path, "%s/%s", sweep->directory, entry->d_name);
		// A run that was being moved when all ended is moved now.
		if (!has_suffix(entry->d_name, SWEEP_RUN) && !has_suffix(entry->d_name, MOVING)) {
			continue;
		}
		char *name = strdup(entry->d_name);
		if (!name || path.failed ||
			array_reserve((void **)&moves->items, &moves->capacity, moves->n + 1,
				sizeof(*moves->items)) < 0) {
			free(name);
			result = error_errno(e, ENOMEM, "%s", sweep->directory);
			break;
		}
		moves->items[moves->n++] = (struct move){name, find_trial(sweep, path.data)};
	}
	closedir(folder);
	return result;
}

static int step_aside(const struct sweep *sweep, struct moves *moves, struct error *e)
{
	int result = 0;
	for (size_t i = 0; i < moves->n && result == 0; i++) {
		struct move *move = &moves->items[i];
		char *moving = NULL;
		if (has_suffix(move->name, MOVING)) {
			continue;
		}
		if (asprintf(&moving, "%s%s", move->name, MOVING) < 0) {
			return error_errno(e, ENOMEM, "%s", sweep->directory);
		}
		result = rename_in(sweep->directory, move->name, "", moving, e);
		free(move->name);
		move->name = moving;
	}
	return result;
}

static int take_place(const struct sweep *sweep, const struct move *move, struct error *e)
{
	char number[16], name[48];
	_cleanup_free_ char *path = sweep_path(sweep, move->to, SWEEP_RUN);
	snprintf(number, sizeof(number), "%u", move->to.configuration);
	snprintf(name, sizeof(name), "%04u-%u%s", move->to.configuration, move->to.repeat,
		SWEEP_RUN);
	const struct amendment trial = {AMEND_LABEL, "trial", number};
	int result = rename_in(sweep->directory, move->name, "", name, e);
	return result < 0 || !path ? result : run_amend(path, &trial, 1, e);
}

static int leave_out(const struct sweep *sweep, const struct move *move, struct error *e)
{
	_cleanup_text_ struct text folder = {0}, name = {0};
	text_format(&folder, "%s/%s", sweep->directory, SWEEP_LEFT_OUT);
	text_append(&name, move->name, strlen(move->name) - strlen(MOVING));
	if (folder.failed || name.failed) {
		return error_errno(e, ENOMEM, "%s", sweep->directory);
	}
	mkdir(folder.data, 0777);
	for (unsigned i = 1; i < 10000; i++) { // one of an earlier change may have the name
		_cleanup_text_ struct text path = {0};
		text_format(&path, "%s/%s", folder.data, name.data);
		if (path.failed || access(path.data, F_OK) < 0) {
			break;
		}
		text_clear(&name);
		text_append(&name, move->name, strcspn(move->name, "."));
		text_format(&name, "_%u%s", i, SWEEP_RUN);
	}
	return rename_in(sweep->directory, move->name, SWEEP_LEFT_OUT, name.data, e);
}

int renumber_runs(const struct sweep *sweep, void (*say)(const char *text), struct error *e)
{
	struct moves moves = {0};
	size_t left_out = 0;
	int result = collect(sweep, &moves, e);
	result = result < 0 ? result : step_aside(sweep, &moves, e);
	for (size_t i = 0; i < moves.n && result == 0; i++) {
		bool known = moves.items[i].to.configuration > 0;
		result = known ? take_place(sweep, &moves.items[i], e)
		               : leave_out(sweep, &moves.items[i], e);
		left_out += !known;
	}
	if (result == 0 && say && moves.n > 0) {
		_cleanup_text_ struct text line = {0};
		text_format(&line, "the changed plan keeps %zu of %zu runs%s", moves.n - left_out,
			moves.n,
			left_out > 0 ? "; the others are in the folder " SWEEP_LEFT_OUT : "");
		say(line.data ? line.data : "");
	}
	for (size_t i = 0; i < moves.n; i++) {
		free(moves.items[i].name);
	}
	free(moves.items);
	return result;
}
