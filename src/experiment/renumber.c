// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// New names for runs, in two steps: one may want the name that another still has.

#include "experiment/renumber.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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
	bool there; // it has its name already
};

struct moves {
	struct move *items;
	size_t n;
	size_t capacity;
	bool begun; // by one that was ended: something is aside
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

// What a run was given and the plan does not have any more makes it another thing.
static bool has_lost_factor(
	const struct sweep *sweep, const struct plan *was, struct reader *reader)
{
	bool lost = false;
	for (size_t f = 0; f < was->n_factors && !lost; f++) {
		const char *name = was->factors[f].name;
		lost = !plan_factor(&sweep->plan, name) && reader_label(reader, name);
	}
	return lost;
}

static struct trial_place find_trial(
	const struct sweep *sweep, const struct plan *was, const char *path)
{
	struct trial_place none = {0};
	struct reader *reader = NULL;
	int64_t repeat = 0;
	if (reader_open(path, &reader, NULL) < 0) {
		return none;
	}
	const char *label = reader_label(reader, "repeat");
	bool known = label &&
	             parse_integer(label, 1, (int64_t)sweep->plan.repeats, &repeat, NULL) == 0 &&
	             !has_lost_factor(sweep, was, reader);
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

// Renaming ----------------------------------------------------------------------------------------

// -EEXIST where there is something of the new name.
static int rename_new(const struct sweep *sweep, const char *from, int folder, const char *to)
{
	struct stat status;
	if (renameat2(sweep->folder, from, folder, to, RENAME_NOREPLACE) == 0) {
		return 0;
	}
	if (errno != EINVAL && errno != ENOSYS) {
		return -errno;
	}
	// Neither every kernel nor every file system has it. The folder is locked.
	if (fstatat(folder, to, &status, AT_SYMLINK_NOFOLLOW) == 0) {
		return -EEXIST;
	}
	return renameat(sweep->folder, from, folder, to) < 0 ? -errno : 0;
}

// "0001-1.strain.moving" is to "0001-1.log.moving" as "0001-1.strain" to "0001-1.log".
static void append_log_name(struct text *t, const char *run)
{
	size_t stem = strcspn(run, ".");
	const char *rest = run + stem;
	size_t own = strlen(SWEEP_RUN);
	rest += strncmp(rest, SWEEP_RUN, own) == 0 ? own : 0;
	text_append(t, run, stem);
	text_format(t, "%s%s", SWEEP_LOG, rest);
}

// A run and its log, within the sweep's folder or into another. The log goes first: what is ended
// in between finds the run, and nothing is left of it to do.
static int rename_run(
	const struct sweep *sweep, const char *from, int folder, const char *to, struct error *e)
{
	_cleanup_text_ struct text old_log = {0}, new_log = {0};
	append_log_name(&old_log, from);
	append_log_name(&new_log, to);
	if (old_log.failed || new_log.failed) {
		return error_errno(e, ENOMEM, "%s", sweep->directory);
	}
	int result = rename_new(sweep, old_log.data, folder, new_log.data);
	if (result < 0 && result != -ENOENT && result != -EEXIST) {
		return error_errno(e, -result, "%s/%s", sweep->directory, old_log.data);
	}
	result = rename_new(sweep, from, folder, to);
	return result < 0 ? error_errno(e, -result, "%s/%s", sweep->directory, from) : 0;
}

static void name_trial(char *buffer, size_t size, struct trial_place trial)
{
	snprintf(buffer, size, "%04u-%u%s", trial.configuration, trial.repeat, SWEEP_RUN);
}

// What there is -----------------------------------------------------------------------------------

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct move *)a)->name, ((const struct move *)b)->name);
}

// Each trial has one run: the one that is there already, or the first.
static int settle_targets(const struct sweep *sweep, struct moves *moves, struct error *e)
{
	size_t repeats = (size_t)sweep->plan.repeats;
	_cleanup_free_ bool *taken = calloc(sweep->trials.n + 1, sizeof(*taken));
	if (!taken) {
		return error_errno(e, ENOMEM, "%s", sweep->directory);
	}
	if (moves->n > 1) {
		qsort(moves->items, moves->n, sizeof(*moves->items), compare_names);
	}
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < moves->n; i++) {
			struct move *move = &moves->items[i];
			if (move->to.configuration == 0 || move->there != (pass == 0)) {
				continue;
			}
			bool *own = &taken[(move->to.configuration - 1) * repeats +
					   move->to.repeat - 1];
			if (*own) {
				move->to.configuration = 0;
			}
			*own = true;
		}
	}
	return 0;
}

static int add_move(struct moves *moves, const char *name, struct trial_place to)
{
	char target[48];
	name_trial(target, sizeof(target), to);
	char *copy = strdup(name);
	if (!copy || array_reserve((void **)&moves->items, &moves->capacity, moves->n + 1,
			     sizeof(*moves->items)) < 0) {
		free(copy);
		return -ENOMEM;
	}
	struct move *move = &moves->items[moves->n++];
	move->name = copy;
	move->to = to;
	move->there = strcmp(name, target) == 0;
	return 0;
}

static int collect(
	const struct sweep *sweep, const struct plan *was, struct moves *moves, struct error *e)
{
	DIR *folder = sweep_list(sweep);
	if (!folder) {
		return error_errno(e, errno, "%s", sweep->directory);
	}
	int result = 0;
	for (struct dirent *entry; result == 0 && (entry = readdir(folder));) {
		_cleanup_text_ struct text path = {0};
		text_format(&path, "%s/%s", sweep->directory, entry->d_name);
		moves->begun = moves->begun || has_suffix(entry->d_name, SWEEP_RUN MOVING);
		// A run that was being moved when all ended is moved now. What is no file is left
		// alone: a link would be written through.
		struct stat status;
		if ((!has_suffix(entry->d_name, SWEEP_RUN) &&
			    !has_suffix(entry->d_name, SWEEP_RUN MOVING)) ||
			fstatat(sweep->folder, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
			!S_ISREG(status.st_mode)) {
			continue;
		}
		if (path.failed ||
			add_move(moves, entry->d_name, find_trial(sweep, was, path.data)) < 0) {
			result = error_errno(e, ENOMEM, "%s", sweep->directory);
		}
	}
	closedir(folder);
	return result < 0 ? result : settle_targets(sweep, moves, e);
}

// Of trials that did not end: no run that comes to have that name is to have it.
static void remove_stray_logs(const struct sweep *sweep)
{
	DIR *folder = sweep_list(sweep);
	for (struct dirent *entry; folder && (entry = readdir(folder));) {
		_cleanup_text_ struct text run = {0};
		if (!has_suffix(entry->d_name, SWEEP_LOG)) {
			continue;
		}
		text_append(&run, entry->d_name, strlen(entry->d_name) - strlen(SWEEP_LOG));
		text_append_string(&run, SWEEP_RUN);
		if (!run.failed && !sweep_has(sweep, run.data)) {
			unlinkat(sweep->folder, entry->d_name, 0);
		}
	}
	if (folder) {
		closedir(folder);
	}
}

// Moving ------------------------------------------------------------------------------------------

static int step_aside(const struct sweep *sweep, struct moves *moves, struct error *e)
{
	int result = 0;
	for (size_t i = 0; i < moves->n && result == 0; i++) {
		struct move *move = &moves->items[i];
		char *moving = NULL;
		if (has_suffix(move->name, MOVING) || (move->there && move->to.configuration > 0)) {
			continue;
		}
		result = -EEXIST;
		for (unsigned k = 0; k < 10000 && result == -EEXIST; k++) {
			char number[16];
			snprintf(number, sizeof(number), "_%u", k);
			free(moving);
			if (asprintf(&moving, "%.*s%s%s", (int)strcspn(move->name, "."), move->name,
				    k > 0 ? number : "", SWEEP_RUN MOVING) < 0) {
				return error_errno(e, ENOMEM, "%s", sweep->directory);
			}
			result = rename_run(sweep, move->name, sweep->folder, moving, e);
		}
		free(move->name);
		move->name = moving;
	}
	return result;
}

// Its new name is the last step: until then it is one that is to be moved.
static int take_place(const struct sweep *sweep, const struct move *move, struct error *e)
{
	char number[16], name[48];
	_cleanup_text_ struct text path = {0};
	text_format(&path, "%s/%s", sweep->directory, move->name);
	snprintf(number, sizeof(number), "%u", move->to.configuration);
	name_trial(name, sizeof(name), move->to);
	const struct amendment trial = {AMEND_LABEL, "trial", number};
	int result = path.failed ? error_errno(e, ENOMEM, "%s", sweep->directory)
	                         : run_amend(path.data, &trial, 1, e);
	return result < 0 || move->there ? result
	                                 : rename_run(sweep, move->name, sweep->folder, name, e);
}

static int leave_out(const struct sweep *sweep, const struct move *move, struct error *e)
{
	_cleanup_text_ struct text name = {0};
	mkdirat(sweep->folder, SWEEP_LEFT_OUT, 0700);
	_cleanup_close_ int folder = openat(
		sweep->folder, SWEEP_LEFT_OUT, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder < 0) {
		return error_errno(e, errno, "%s/" SWEEP_LEFT_OUT "/", sweep->directory);
	}
	text_append(&name, move->name, strlen(move->name) - strlen(MOVING));
	for (unsigned i = 1; i < 10000 && !name.failed;
		i++) { // one of an earlier change may have it
		struct stat status;
		if (fstatat(folder, name.data, &status, AT_SYMLINK_NOFOLLOW) < 0) {
			break;
		}
		text_clear(&name);
		text_append(&name, move->name, strcspn(move->name, "."));
		text_format(&name, "_%u%s", i, SWEEP_RUN);
	}
	return name.failed ? error_errno(e, ENOMEM, "%s", sweep->directory)
	                   : rename_run(sweep, move->name, folder, name.data, e);
}

static int move_all(
	const struct sweep *sweep, const struct moves *moves, size_t *ret_left_out, struct error *e)
{
	int result = 0;
	for (size_t i = 0; i < moves->n && result == 0; i++) {
		const struct move *move = &moves->items[i];
		bool known = move->to.configuration > 0;
		if (known && (!move->there || moves->begun)) {
			result = take_place(sweep, move, e);
			known = result != -EEXIST; // a run of that name that is none of ours
		}
		result = known ? result : leave_out(sweep, move, e);
		*ret_left_out += !known;
	}
	return result;
}

int renumber_runs(const struct sweep *sweep, const struct plan *was, void (*say)(const char *text),
	struct error *e)
{
	struct moves moves = {0};
	size_t left_out = 0;
	int result = collect(sweep, was, &moves, e);
	if (result == 0 && !moves.begun) {
		remove_stray_logs(sweep);
	}
	result = result < 0 ? result : step_aside(sweep, &moves, e);
	result = result < 0 ? result : move_all(sweep, &moves, &left_out, e);
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

bool renumber_is_begun(const struct sweep *sweep)
{
	DIR *folder = sweep_list(sweep);
	bool begun = false;
	for (struct dirent *entry; folder && !begun && (entry = readdir(folder));) {
		begun = has_suffix(entry->d_name, SWEEP_RUN MOVING);
	}
	if (folder) {
		closedir(folder);
	}
	return begun;
}
