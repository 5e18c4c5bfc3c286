// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The directory of a sweep.

#include "sweep/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/command.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/text.h"
#include "base/trust.h"
#include "base/whole_file.h"
#include "base/words.h"
#include "runfile/amend.h"
#include "runfile/reader.h"
#include "runfile/still_running.h"
#include "sweep/plan_kept.h"
#include "sweep/slurm_ledger.h"
#include "sweep/template.h"

static bool sweep_has(const struct sweep *sweep, const char *name);
static DIR *sweep_list(const struct sweep *sweep);
static int commands_check(const struct sweep *sweep, struct error *e);

// Renumber ----------------------------------------------------------------------------------------
//
// Renames runs in two steps, since one may need a name that another still has.

#define MOVING ".moving"

struct move {
	char *name; // current name, without folder
	struct trial_place to; // configuration 0: no trial of the plan
	bool there; // it already has that name
};

struct moves {
	struct move *items;
	size_t n;
	size_t capacity;
	bool begun; // an earlier renumbering was not completed: some runs have temporary names
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

// Whether the run has a factor that is no longer in the plan; then it is a different trial.
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

// Renames a file; -EEXIST if the new name exists.
static int rename_new(const struct sweep *sweep, const char *from, int folder, const char *to)
{
	struct stat status;
	if (renameat2(sweep->folder, from, folder, to, RENAME_NOREPLACE) == 0) {
		return 0;
	}
	if (errno != EINVAL && errno != ENOSYS) {
		return -errno;
	}
	// Not every kernel or file system supports RENAME_NOREPLACE. The folder is locked.
	if (fstatat(folder, to, &status, AT_SYMLINK_NOFOLLOW) == 0) {
		return -EEXIST;
	}
	return renameat(sweep->folder, from, folder, to) < 0 ? -errno : 0;
}

// Appends the name of a run's log: "0001-1.log" for "0001-1.strain", "0001-1.log.moving" for
// "0001-1.strain.moving".
static void append_log_name(struct text *t, const char *run)
{
	size_t stem = strcspn(run, ".");
	const char *rest = run + stem;
	size_t own = strlen(SWEEP_RUN);
	rest += strncmp(rest, SWEEP_RUN, own) == 0 ? own : 0;
	text_append(t, run, stem);
	text_format(t, "%s%s", SWEEP_LOG, rest);
}

// Renames a run and its log, within the sweep's folder or into another. The log goes first: if this
// is interrupted in between, the run is still found under its old name.
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

// Collecting --------------------------------------------------------------------------------------

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct move *)a)->name, ((const struct move *)b)->name);
}

// Makes sure that each trial has one run: the one that already has its name, else the first.
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
		// Runs that were being moved when an earlier renumbering was interrupted are moved
		// now. Only regular files: writing to a link would change its target.
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

// Removes logs of trials that did not end, so that no renamed run gets one of them.
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

// Renaming is the last step: until then the run counts as one to be moved.
static int take_place(const struct sweep *sweep, const struct move *move, struct error *e)
{
	char number[16], name[48];
	_cleanup_text_ struct text path = {0};
	text_format(&path, "%s/%s", sweep->directory, move->name);
	snprintf(number, sizeof(number), "%u", move->to.configuration);
	name_trial(name, sizeof(name), move->to);
	const struct amendment trial = {AMEND_LABEL, "trial", number};
	int result = path.failed ? error_errno(e, ENOMEM, "%s", sweep->directory)
	                         : amend_run(path.data, &trial, 1, e);
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
		i++) { // an earlier change may have left one
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
			known = result != -EEXIST; // another file has that name
		}
		result = known ? result : leave_out(sweep, move, e);
		*ret_left_out += !known;
	}
	return result;
}

// Renames the runs of plan `was` for the sweep's plan. Runs without a trial in it are moved to the
// folder left-out, each with its log; `say` (may be NULL) reports their number. If interrupted,
// call it again.
static int renumber_runs(const struct sweep *sweep, const struct plan *was,
	void (*say)(const char *text), struct error *e)
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
			left_out > 0 ? "; the others are moved to the folder " SWEEP_LEFT_OUT : "");
		say(line.data ? line.data : "");
	}
	for (size_t i = 0; i < moves.n; i++) {
		free(moves.items[i].name);
	}
	free(moves.items);
	return result;
}

// Whether an interrupted renumbering has left runs with temporary names in the sweep's directory.
static bool renumber_is_begun(const struct sweep *sweep)
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

// Sweep -------------------------------------------------------------------------------------------

#define PLAN "plan.yaml"
#define LOCK "lock"
#define NUMBER_BYTES 16
#define PAUSE_NS (20 * NS_PER_MS)
#define WAIT_NS (60 * NS_PER_S)

// Names -------------------------------------------------------------------------------------------

char *sweep_trial_name(struct trial_place trial)
{
	return sweep_file_name(trial, "");
}

char *sweep_file_name(struct trial_place trial, const char *suffix)
{
	struct text t = {0};
	text_format(&t, "%04u-%u%s", trial.configuration, trial.repeat, suffix);
	return text_steal(&t);
}

char *sweep_path(const struct sweep *sweep, struct trial_place trial, const char *suffix)
{
	struct text t = {0};
	text_format(
		&t, "%s/%04u-%u%s", sweep->directory, trial.configuration, trial.repeat, suffix);
	return text_steal(&t);
}

static bool is_directory(const char *path)
{
	struct stat status;
	return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static char *join(const char *directory, const char *name)
{
	struct text t = {0};
	text_format(&t, "%s/%s", directory, name);
	return text_steal(&t);
}

// The last component of a path, without one of these endings.
static char *stem_of(const char *path)
{
	static const char *const endings[] = {".yaml", ".yml", ".sweep"};
	size_t end = strlen(path);
	while (end > 1 && path[end - 1] == '/') {
		end--;
	}
	size_t from = end;
	while (from > 0 && path[from - 1] != '/') {
		from--;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(endings); i++) {
		size_t length = strlen(endings[i]);
		if (end - from > length && strncmp(path + end - length, endings[i], length) == 0) {
			end -= length;
			break;
		}
	}
	return strndup(path + from, end - from);
}

// Refuses a folder that others own or can write: its user should read it first.
static int check_owner_of(int folder, const char *path, struct error *e)
{
	struct stat status;
	struct error why = {0};
	int result = trust_own(folder, path, &why);
	bool theirs = fstat(folder, &status) == 0 && status.st_uid != geteuid();
	return result < 0
	               ? error_set(e, why.code, "%.380s%s", why.text,
				 theirs ? " (copy its plan.yaml, read it, and sweep the copy)" : "")
	               : 0;
}

static int check_owner(const char *path, struct error *e)
{
	_cleanup_close_ int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return folder < 0 ? error_errno(e, errno, "%s", path) : check_owner_of(folder, path, e);
}

// Finds the path of the plan and the sweep's directory. ret_own: the plan is the one in that
// directory.
static int find_places(const struct sweep_options *options, struct sweep *sweep, char **ret_plan,
	bool *ret_own, struct error *e)
{
	const char *plan = *options->plan ? options->plan : ".";
	bool directory = is_directory(plan);
	struct text own = {0};
	*ret_plan = directory ? join(plan, PLAN) : strdup(plan);
	if (directory && *ret_plan && access(*ret_plan, F_OK) < 0 && errno == ENOENT) {
		return error_set(e, ENOENT,
			"%s: expected a plan or the folder of a sweep, found a folder without "
			"plan.yaml",
			plan);
	}
	if (directory && options->directory && !options->look) {
		int result = check_owner(plan, e);
		if (result < 0) {
			return result;
		}
	}
	sweep->stem = stem_of(directory && strcmp(plan, ".") == 0 ? "sweep" : plan);
	if (options->directory) {
		text_append_string(&own, options->directory);
	} else if (directory) {
		text_append_string(&own, plan);
	} else if (sweep->stem) {
		text_format(&own, "%s.sweep", sweep->stem);
	}
	while (!own.failed && own.length > 1 && own.data[own.length - 1] == '/') {
		own.data[--own.length] = '\0';
	}
	sweep->directory = text_steal(&own);
	*ret_own = directory && !options->directory;
	if (!*ret_plan || !sweep->stem || !sweep->directory) {
		return error_errno(e, ENOMEM, "%s", plan);
	}
	return 0;
}

// Files -------------------------------------------------------------------------------------------

// Whether a file of this name exists.
static bool sweep_has(const struct sweep *sweep, const char *name)
{
	struct stat status;
	return fstatat(sweep->folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

// Moves a descriptor above the three standard ones.
static int move_up(int fd)
{
	if (fd < 0) {
		return -errno;
	}
	if (fd > STDERR_FILENO) {
		return fd;
	}
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	int result = moved < 0 ? -errno : moved;
	close(fd);
	return result;
}

int sweep_create_file(const struct sweep *sweep, const char *name)
{
	return move_up(openat(sweep->folder, name,
		O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_APPEND | O_CLOEXEC, 0600));
}

int sweep_open_file(const struct sweep *sweep, const char *name)
{
	// O_NONBLOCK: opening a FIFO would block.
	return move_up(openat(sweep->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
}

// Lists the directory; NULL with errno. The caller calls closedir.
static DIR *sweep_list(const struct sweep *sweep)
{
	// A new descriptor has its own position.
	int fd = openat(sweep->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	if (fd >= 0 && !folder) {
		close(fd);
	}
	return folder;
}

static int fail_at(const struct sweep *sweep, const char *name, int code, struct error *e)
{
	return code == ELOOP ? error_set(e, ELOOP, "%s/%s: expected a file, found a link",
				       sweep->directory, name)
	                     : error_errno(e, code, "%s/%s", sweep->directory, name);
}

// Whether nothing is run.
static bool only_looks(const struct sweep_options *options)
{
	return options->look && !options->part;
}

// Opens a plan in the folder. For looking only, anybody may own it.
static int open_own_plan(const struct sweep_options *options, const struct sweep *sweep,
	const char *name, struct plan *ret, struct error *e)
{
	_cleanup_free_ char *path = join(sweep->directory, name);
	*ret = (struct plan){0};
	if (!path) {
		return error_errno(e, ENOMEM, "%s", sweep->directory);
	}
	_cleanup_close_ int fd = sweep_open_file(sweep, name);
	if (fd < 0) {
		return fail_at(sweep, name, -fd, e);
	}
	int result = only_looks(options) ? 0 : trust_own(fd, path, e);
	return result < 0 ? result : plan_read_file(fd, path, ret, e);
}

// The directory -----------------------------------------------------------------------------------

// Checks that the directory has only files of a sweep.
static int check_directory(const struct sweep *sweep, struct error *e)
{
	DIR *folder = sweep_list(sweep);
	if (!folder) {
		return error_errno(e, errno, "%s", sweep->directory);
	}
	bool empty = true;
	for (struct dirent *entry; (entry = readdir(folder));) {
		empty = empty &&
		        (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
				strcmp(entry->d_name, LOCK) == 0 ||
				strncmp(entry->d_name, PLAN, strlen(PLAN)) == 0);
	}
	closedir(folder);
	return empty || sweep_has(sweep, PLAN)
	               ? 0
	               : error_set(e, EEXIST,
				 "%s: expected a new or empty folder or a sweep, found other "
				 "files (-o DIR: another folder)",
				 sweep->directory);
}

// The two lines of the lock: "1234 host" (pid first, so that it can be read even if the name has
// blanks), and the sweep's number.
struct holder {
	char process[192];
	char number[2 * NUMBER_BYTES + 1]; // hexadecimal; "": none
};

static void read_holder(int fd, struct holder *ret)
{
	char buffer[256];
	struct cursor line;
	ssize_t n = pread(fd, buffer, sizeof(buffer) - 1, 0);
	buffer[n > 0 ? n : 0] = '\0';
	struct cursor c = cursor_of(buffer, n > 0 ? (size_t)n : 0);
	*ret = (struct holder){0};
	if (cursor_line(&c, &line)) {
		_cleanup_text_ struct text process = {0};
		text_append_printable(&process, line.at, (size_t)(line.end - line.at));
		snprintf(
			ret->process, sizeof(ret->process), "%s", process.data ? process.data : "");
	}
	if (cursor_line(&c, &line) && line.end - line.at == 2 * NUMBER_BYTES &&
		strspn(line.at, "0123456789abcdef") >= 2 * NUMBER_BYTES) {
		memcpy(ret->number, line.at, 2 * NUMBER_BYTES);
	}
}

static int write_holder(int fd, struct holder *holder)
{
	unsigned char number[NUMBER_BYTES];
	char host[128] = "", text[512];
	if (!*holder->number) {
		if (getrandom(number, sizeof(number), 0) != sizeof(number)) {
			return -EIO;
		}
		for (size_t i = 0; i < sizeof(number); i++) {
			snprintf(holder->number + 2 * i, 3, "%02x", number[i]);
		}
	}
	gethostname(host, sizeof(host) - 1);
	int length = snprintf(
		text, sizeof(text), "%d %s\n%s\n", (int)getpid(), host, holder->number);
	ssize_t n = pwrite(fd, text, (size_t)length, 0);
	return n < 0 ? -errno : n < length ? -ENOSPC : ftruncate(fd, length) < 0 ? -errno : 0;
}

static int say_in_use(const struct sweep *sweep, struct holder *holder, struct error *e)
{
	char *blank = strchr(holder->process, ' ');
	if (!blank) {
		return error_set(e, EBUSY, "%s: in use by another process", sweep->directory);
	}
	*blank = '\0';
	return error_set(e, EBUSY, "%s: in use by process %s on %s", sweep->directory,
		holder->process, blank + 1);
}

// part: trials of the same sweep may run beside it.
static int make_mark(struct sweep *sweep, const char *number, const char *part, struct error *e)
{
	struct stat status;
	struct text mark = {0};
	if (fstat(sweep->folder, &status) < 0) {
		return error_errno(e, errno, "%s", sweep->directory);
	}
	text_format(&mark, "%" PRIx64 ":%" PRIx64 ":%s%s%s", (uint64_t)status.st_dev,
		(uint64_t)status.st_ino, number, part ? ":" : "", part ? part : "");
	sweep->mark = text_steal(&mark);
	return sweep->mark ? 0 : error_errno(e, ENOMEM, "%s", sweep->directory);
}

static int lock_directory(struct sweep *sweep, struct error *e)
{
	struct stat status;
	struct holder holder;
	_cleanup_close_ int fd = move_up(openat(
		sweep->folder, LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
	if (fd < 0 || fstat(fd, &status) < 0) {
		return fail_at(sweep, LOCK, fd < 0 ? -fd : errno, e);
	}
	if (!S_ISREG(status.st_mode)) {
		return error_set(e, EINVAL, "%s/%s: expected a file", sweep->directory, LOCK);
	}
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		int code = errno;
		read_holder(fd, &holder);
		return code == EWOULDBLOCK ? say_in_use(sweep, &holder, e)
		                           : fail_at(sweep, LOCK, code, e);
	}
	read_holder(fd, &holder);
	int result = fchmod(fd, 0600) < 0 ? -errno : write_holder(fd, &holder);
	if (result < 0) {
		return fail_at(sweep, LOCK, -result, e);
	}
	sweep->lock = take_fd(fd);
	return make_mark(sweep, holder.number, NULL, e);
}

// Instead of the lock, which the sweep may hold.
static int take_part(struct sweep *sweep, const char *part, struct error *e)
{
	struct holder holder;
	_cleanup_close_ int fd = sweep_open_file(sweep, LOCK);
	if (fd < 0) {
		return fail_at(sweep, LOCK, -fd, e);
	}
	read_holder(fd, &holder);
	return *holder.number ? make_mark(sweep, holder.number, part, e)
	                      : error_set(e, EINVAL, "%s/%s: expected the number of a sweep",
					sweep->directory, LOCK);
}

// A link created by somebody else could lead anywhere.
static int check_link(const struct sweep *sweep, struct error *e)
{
	struct stat status;
	if (lstat(sweep->directory, &status) == 0 && S_ISLNK(status.st_mode) &&
		status.st_uid != geteuid() && status.st_uid != 0) {
		return error_set(e, EPERM,
			"%s: dubious ownership: a link that belongs to user %u, not to %u (-o DIR: "
			"a folder of your own)",
			sweep->directory, (unsigned)status.st_uid, (unsigned)geteuid());
	}
	return 0;
}

static int open_directory(const struct sweep_options *options, struct sweep *sweep, struct error *e)
{
	int result = only_looks(options) ? 0 : check_link(sweep, e);
	if (result < 0) {
		return result;
	}
	sweep->folder = open(sweep->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (sweep->folder < 0) {
		return options->look && errno == ENOENT
		               ? 0
		               : error_errno(e, errno, "%s", sweep->directory);
	}
	return only_looks(options) ? 0 : check_owner_of(sweep->folder, sweep->directory, e);
}

int sweep_check_place(const struct sweep *sweep, struct error *e)
{
	struct stat held, found;
	if (fstat(sweep->folder, &held) == 0 && stat(sweep->directory, &found) == 0 &&
		held.st_dev == found.st_dev && held.st_ino == found.st_ino) {
		return 0;
	}
	return error_set(
		e, ESTALE, "%s: was moved or replaced while the sweep ran", sweep->directory);
}

// The plan in it ----------------------------------------------------------------------------------

// Reads a plan as it is stored in the folder.
static int read_kept(const char *from, struct text *ret, struct error *e)
{
	_cleanup_text_ struct text data = {0};
	struct plan plan;
	int result = plan_read_text(from, &data, e);
	const char *yaml = data.data ? data.data : "";
	result = result < 0 ? result : plan_read(from, yaml, data.length, &plan, e);
	if (result == 0) {
		result = plan_kept(&plan, yaml, data.length, ret, e);
		plan_done(&plan);
	}
	return result;
}

// Copies atomically.
static int copy_plan(const struct sweep *sweep, const char *from, const char *to, struct error *e)
{
	static const char part[] = PLAN ".part";
	_cleanup_text_ struct text kept = {0};
	int result = read_kept(from, &kept, e);
	if (result < 0) {
		return result;
	}
	unlinkat(sweep->folder, part, 0);
	_cleanup_close_ int out = sweep_create_file(sweep, part);
	result = out < 0 ? out : whole_file_write_to(out, kept.data, kept.length);
	result = result == 0 && fsync(out) < 0 ? -errno : result;
	if (result == 0 && renameat(sweep->folder, part, sweep->folder, to) < 0) {
		result = -errno;
	}
	if (result < 0) {
		unlinkat(sweep->folder, part, 0);
		return fail_at(sweep, to, -result, e);
	}
	return 0;
}

static int plan_changed(
	const struct sweep_options *options, const struct sweep *sweep, bool *ret, struct error *e)
{
	struct plan was;
	char *what = NULL;
	int result = open_own_plan(options, sweep, PLAN, &was, e);
	if (result < 0) {
		return error_prefix(e, "the plan that was started");
	}
	result = plan_kept_differs(&was, &sweep->plan, ret, &what, e);
	if (result == 0 && *ret) {
		error_set(e, ESTALE,
			"%s was started with another plan: %.330s (--force resumes with this plan)",
			sweep->directory, what ? what : "");
	}
	free(what);
	plan_done(&was);
	return result;
}

// Renames the runs for the next plan, then makes that the sweep's plan. If interrupted, this
// continues when the sweep is opened again. Without a next plan, only the renaming was incomplete.
static int finish_change(
	const struct sweep_options *options, const struct sweep *sweep, struct error *e)
{
	struct plan was = {0};
	struct sweep changed = {
		.directory = sweep->directory,
		.stem = sweep->stem,
		.folder = sweep->folder,
		.lock = -1,
	};
	bool has_next = sweep_has(sweep, SWEEP_NEXT_PLAN);
	int result = open_own_plan(options, sweep, PLAN, &was, e);
	if (result < 0) {
		return error_prefix(e, "the plan that was started");
	}
	result = open_own_plan(options, sweep, has_next ? SWEEP_NEXT_PLAN : PLAN, &changed.plan, e);
	result = result < 0 ? result : trials_make(&changed.plan, &changed.trials, e);
	result = result < 0 ? result : renumber_runs(&changed, &was, options->say, e);
	if (result == 0 && has_next &&
		renameat(sweep->folder, SWEEP_NEXT_PLAN, sweep->folder, PLAN) < 0) {
		result = fail_at(sweep, PLAN, errno, e);
	}
	trials_done(&changed.trials);
	plan_done(&changed.plan);
	plan_done(&was);
	return result;
}

static bool is_changing(const struct sweep *sweep)
{
	return sweep_has(sweep, PLAN) &&
	       (sweep_has(sweep, SWEEP_NEXT_PLAN) || renumber_is_begun(sweep));
}

static int read_plan(const struct sweep_options *options, struct sweep *sweep, const char *path,
	bool own, struct error *e)
{
	int result = own && sweep->folder >= 0
	                     ? open_own_plan(options, sweep, PLAN, &sweep->plan, e)
	                     : plan_open(path, &sweep->plan, e);
	return result < 0 ? result : trials_make(&sweep->plan, &sweep->trials, e);
}

// Completes a change. The plan that was read may be the sweep's own, so it is read again.
static int go_on_changing(const struct sweep_options *options, struct sweep *sweep,
	const char *path, bool own, struct error *e)
{
	if (!is_changing(sweep)) {
		return 0;
	}
	if (options->look) {
		_cleanup_text_ struct text word = {0};
		text_append_path(&word, sweep->directory);
		return error_set(e, ESTALE,
			"%s: a change of its plan is incomplete (strain sweep %s completes it)",
			sweep->directory, word.data ? word.data : "");
	}
	int result = finish_change(options, sweep, e);
	if (result < 0) {
		return result;
	}
	trials_done(&sweep->trials);
	plan_done(&sweep->plan);
	return read_plan(options, sweep, path, own, e);
}

static int settle_plan(
	const struct sweep_options *options, struct sweep *sweep, const char *path, struct error *e)
{
	bool changed = false;
	if (!sweep_has(sweep, PLAN)) {
		return options->look ? 0 : copy_plan(sweep, path, PLAN, e);
	}
	int result = plan_changed(options, sweep, &changed, e);
	if (result < 0 || !changed) {
		return result;
	}
	if (!options->force) {
		return -ESTALE;
	}
	if (options->look) {
		return 0;
	}
	result = copy_plan(sweep, path, SWEEP_NEXT_PLAN, e);
	return result < 0 ? result : finish_change(options, sweep, e);
}

// Remains of a killed sweep -----------------------------------------------------------------------

// Parses "0007-2.running..." or ".log". False: another file.
static bool parse_name(const char *name, struct trial_place *ret, const char **ret_suffix)
{
	struct cursor c = cursor_of(name, strlen(name));
	uint64_t configuration, repeat;
	if (!cursor_u64(&c, &configuration) || !cursor_literal(&c, "-") ||
		!cursor_u64(&c, &repeat) || configuration > UINT32_MAX || repeat > UINT32_MAX) {
		return false;
	}
	*ret = (struct trial_place){(uint32_t)configuration, (uint32_t)repeat};
	*ret_suffix = c.at;
	return true;
}

static void remove_matching(
	const struct sweep *sweep, const struct trial_place *only, const char *const *prefixes)
{
	DIR *folder = sweep_list(sweep);
	for (struct dirent *entry; folder && (entry = readdir(folder));) {
		struct trial_place trial;
		const char *suffix;
		if (!parse_name(entry->d_name, &trial, &suffix) ||
			(only && (only->configuration != trial.configuration ||
					 only->repeat != trial.repeat))) {
			continue;
		}
		for (size_t i = 0; prefixes[i]; i++) {
			if (strncmp(suffix, prefixes[i], strlen(prefixes[i])) == 0) {
				unlinkat(sweep->folder, entry->d_name, 0);
				break;
			}
		}
	}
	if (folder) {
		closedir(folder);
	}
}

void sweep_remove_trial(const struct sweep *sweep, struct trial_place trial)
{
	static const char *const prefixes[] = {SWEEP_RUNNING, SWEEP_LOG, NULL};
	remove_matching(sweep, &trial, prefixes);
}

void sweep_remove_run(const struct sweep *sweep, struct trial_place trial)
{
	static const char *const prefixes[] = {SWEEP_RUNNING, NULL};
	remove_matching(sweep, &trial, prefixes);
}

// A client of NFS remembers that a file is missing until the folder has changed, and asks when this
// client changes it.
void sweep_refresh(const struct sweep *sweep)
{
	futimens(sweep->folder, NULL);
}

double sweep_silence(const struct sweep *sweep, struct trial_place trial)
{
	static const char *const endings[] = {SWEEP_RUNNING, SWEEP_RUNNING "-wal", SWEEP_LOG};
	struct stat folder, file;
	double silence = INFINITY;
	for (size_t i = 0; i < ARRAY_LENGTH(endings) && fstat(sweep->folder, &folder) == 0; i++) {
		_cleanup_free_ char *name = sweep_file_name(trial, endings[i]);
		if (name && fstatat(sweep->folder, name, &file, AT_SYMLINK_NOFOLLOW) == 0) {
			silence = fmin(silence, difftime(folder.st_mtime, file.st_mtime));
		}
	}
	return silence;
}

bool sweep_is_complete(const struct sweep *sweep, struct trial_place trial)
{
	_cleanup_free_ char *run = sweep_file_name(trial, SWEEP_RUN);
	return run && sweep_has(sweep, run);
}

// The temporary run of the killed sweep's trial, to find its recorder. NULL: none.
static char *find_running(const struct sweep *sweep)
{
	char *path = NULL;
	DIR *folder = sweep_list(sweep);
	for (struct dirent *entry; folder && !path && (entry = readdir(folder));) {
		struct trial_place trial;
		struct stat status;
		const char *suffix;
		if (parse_name(entry->d_name, &trial, &suffix) &&
			strcmp(suffix, SWEEP_RUNNING) == 0 &&
			fstatat(sweep->folder, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISREG(status.st_mode)) {
			path = join(sweep->directory, entry->d_name);
		}
	}
	if (folder) {
		closedir(folder);
	}
	return path;
}

// Sends SIGTERM or SIGKILL to all but the recorder. A recorder without anything to record ends by
// itself, else it is killed.
static void signal_left(const struct sweep *sweep, int signal_number)
{
	_cleanup_free_ char *run = find_running(sweep);
	pid_t recorder = run ? still_running_recorder(run, sweep->mark) : 0;
	ssize_t others = still_running_signal(sweep->mark, recorder, signal_number);
	if (others == 0 && recorder > 0 && signal_number == SIGKILL) {
		// for example if its launcher is stopped
		still_running_kill_recorder(run, sweep->mark);
	}
}

// Waits until all processes with the sweep's mark have ended. The trial's keeper ends them, or
// without one the launcher. After half of the grace period the remaining ones get SIGTERM, after
// all of it SIGKILL, the recorder too.
static int end_left(const struct sweep_options *options, const struct sweep *sweep, struct error *e)
{
	uint64_t start_ns = clock_monotonic_ns(), grace_ns = (uint64_t)(sweep->plan.grace_s * 1e9);
	void (*say)(const char *text) = options->say;
	bool said = false, asked = false;
	ssize_t left;
	while ((left = still_running_signal(sweep->mark, 0, 0)) > 0) {
		uint64_t passed_ns = clock_monotonic_ns() - start_ns;
		if (say && !said) {
			say("ending the trial that a killed sweep left running");
			said = true;
		}
		if (passed_ns > grace_ns + WAIT_NS) {
			if (say) {
				say("it could not be ended, and may disturb the trials");
			}
			return 0;
		}
		if (passed_ns > grace_ns) {
			signal_left(sweep, SIGKILL);
		} else if (passed_ns > grace_ns / 2 && !asked) {
			signal_left(sweep, SIGTERM);
			asked = true;
		}
		const struct timespec pause = {.tv_nsec = (long)PAUSE_NS};
		nanosleep(&pause, NULL);
	}
	return left < 0 ? error_errno(e, (int)-left,
				  "%s: cannot determine which of its processes "
				  "still run: /proc",
				  sweep->directory)
	                : 0;
}

static int clean_up(const struct sweep_options *options, const struct sweep *sweep, struct error *e)
{
	static const char *const prefixes[] = {SWEEP_RUNNING, NULL};
	if (strcmp(sweep->plan.executor, PLAN_SLURM) == 0) {
		return 0; // a trial removes its own remains before it starts
	}
	int result = end_left(options, sweep, e);
	if (result < 0) {
		return result;
	}
	remove_matching(sweep, NULL, prefixes);
	// The log of a trial is kept only if the trial failed.
	for (size_t i = 0; i < sweep->trials.n; i++) {
		_cleanup_free_ char *log = sweep_file_name(sweep->trials.order[i], SWEEP_LOG);
		if (log && !sweep->done[i]) {
			unlinkat(sweep->folder, log, 0);
		}
	}
	return 0;
}

static int find_done(struct sweep *sweep, struct error *e)
{
	sweep->done = calloc(sweep->trials.n + 1, sizeof(*sweep->done));
	if (!sweep->done) {
		return error_errno(e, ENOMEM, "%s", sweep->directory);
	}
	for (size_t i = 0; i < sweep->trials.n; i++) {
		_cleanup_free_ char *run = sweep_file_name(sweep->trials.order[i], SWEEP_RUN);
		sweep->done[i] = run && faccessat(sweep->folder, run, F_OK, 0) == 0;
		sweep->n_done += sweep->done[i];
	}
	return 0;
}

static int make_directory(const struct sweep_options *options, struct sweep *sweep, struct error *e)
{
	if (!options->look && mkdir(sweep->directory, 0700) < 0 && errno != EEXIST) {
		return error_errno(e, errno, "%s", sweep->directory);
	}
	return open_directory(options, sweep, e);
}

static int take_directory(const struct sweep_options *options, struct sweep *sweep, struct error *e)
{
	int result = sweep->folder < 0 ? make_directory(options, sweep, e) : 0;
	if (result < 0 || sweep->folder < 0) {
		return result;
	}
	result = check_directory(sweep, e);
	return result < 0 || options->look ? result : lock_directory(sweep, e);
}

// Checks a new sweep before its folder is made: correcting a rejected plan must not count as a
// change.
static int check_new(
	const struct sweep_options *options, const struct sweep *sweep, struct error *e)
{
	_cleanup_free_ char *kept = join(sweep->directory, PLAN);
	bool started = !kept || access(kept, F_OK) == 0;
	return started || options->look ? 0 : commands_check(sweep, e);
}

// A masked plan would give its jobs *** in place of secrets.
static int check_masked(const struct sweep_options *options, const struct sweep *sweep,
	const char *path, struct error *e)
{
	if (only_looks(options) || !sweep->plan.masked) {
		return 0;
	}
	_cleanup_text_ struct text word = {0};
	text_append_path(&word, sweep->directory);
	return error_set(e, EINVAL,
		"%s: secrets are left out of it (***): resume with the original plan (strain sweep "
		"PLAN.yaml -o %s)",
		path, word.data ? word.data : "");
}

// Trials that Slurm has are those of the plan they were submitted with.
static int check_slurm(const struct sweep_options *options, const struct sweep *sweep,
	const char *path, bool own, struct error *e)
{
	_cleanup_close_ int ledger = slurm_ledger_open(
		sweep->folder, sweep->directory, false, NULL);
	struct plan was;
	char *what = NULL;
	bool changed = false;
	if (ledger < 0 || own || !slurm_ledger_has_tickets(ledger) || !sweep_has(sweep, PLAN)) {
		return 0;
	}
	int result = open_own_plan(options, sweep, PLAN, &was, e);
	if (result < 0) {
		return result;
	}
	result = plan_kept_differs(&was, &sweep->plan, &changed, &what, e);
	if (result == 0 && changed && options->force) {
		result = error_set(e, EBUSY,
			"%s: cannot change the plan to that of %.100s: trials of it are in Slurm "
			"(strain sweep %.100s continues with it; Ctrl-C there cancels them)",
			sweep->directory, path, sweep->directory);
	}
	free(what);
	plan_done(&was);
	return result;
}

int sweep_open(const struct sweep_options *options, struct sweep *ret, struct error *e)
{
	_cleanup_free_ char *path = NULL;
	struct error ignored = {0};
	bool own = false;
	e = e ? e : &ignored;
	*ret = (struct sweep){.folder = -1, .lock = -1};
	int result = find_places(options, ret, &path, &own, e);
	result = result == 0 && own ? open_directory(options, ret, e) : result;
	result = result < 0 ? result : read_plan(options, ret, path, own, e);
	result = result < 0 ? result : check_masked(options, ret, path, e);
	result = result < 0 ? result : check_new(options, ret, e);
	result = result < 0 ? result : take_directory(options, ret, e);
	result = result == 0 && options->part ? take_part(ret, options->part, e) : result;
	result = result == 0 && !options->look ? check_slurm(options, ret, path, own, e) : result;
	result = result < 0 ? result : go_on_changing(options, ret, path, own, e);
	result = result < 0 ? result : settle_plan(options, ret, path, e);
	result = result < 0 ? result : find_done(ret, e);
	result = result < 0 || options->look ? result : commands_check(ret, e);
	result = result < 0 || options->look ? result : clean_up(options, ret, e);
	if (result < 0) {
		sweep_close(ret);
	}
	return result;
}

void sweep_close(struct sweep *sweep)
{
	free(sweep->done);
	trials_done(&sweep->trials);
	plan_done(&sweep->plan);
	free(sweep->directory);
	free(sweep->stem);
	free(sweep->mark);
	if (sweep->folder >= 0) {
		close(sweep->folder);
	}
	if (sweep->lock >= 0) {
		close(sweep->lock);
	}
	*sweep = (struct sweep){.folder = -1, .lock = -1};
}

// Commands ----------------------------------------------------------------------------------------
//
// Checks the commands before the first trial, so that a typing error is one error instead of a
// crash for each trial.

// A command that was looked up, and the result. Consecutive trials usually have the same one.
struct lookup {
	char *name;
	char *path; // PATH of the trial; NULL: not set
	int problem;
};

static void lookup_done(struct lookup *l)
{
	free(l->name);
	free(l->path);
	*l = (struct lookup){0};
}

static bool is_same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

// The last entry counts, as with putenv.
static const char *path_of(char *const *environment)
{
	const char *path = getenv("PATH");
	for (size_t i = 0; environment[i]; i++) {
		if (strncmp(environment[i], "PATH=", strlen("PATH=")) == 0) {
			path = environment[i] + strlen("PATH=");
		}
	}
	return path;
}

static int look_up(const struct sweep *sweep, size_t configuration, struct lookup *l)
{
	char **command = trials_command(&sweep->trials, configuration);
	char **environment = trials_environment(&sweep->trials, configuration);
	int result = command && environment ? 0 : -ENOMEM;
	const char *path = result == 0 ? path_of(environment) : NULL;
	if (result == 0 && !(is_same(l->name, command[0]) && is_same(l->path, path))) {
		lookup_done(l);
		l->name = strdup(command[0]);
		l->path = path ? strdup(path) : NULL;
		l->problem = command_check_program(command[0], path);
		result = l->name && (l->path || !path) ? 0 : -ENOMEM;
	}
	template_free_words(command);
	template_free_words(environment);
	return result;
}

// Looks up the commands of the trials still to run, with the PATH that each will have. Returns 0;
// -ENOENT, -EACCES, ... for the first that cannot be executed, with the number of trials that need
// it.
static int commands_check(const struct sweep *sweep, struct error *e)
{
	_cleanup_(lookup_done) struct lookup l = {0};
	_cleanup_free_ char *wrong = NULL;
	size_t n = 0, n_to_run = sweep->trials.n - sweep->n_done;
	int problem = 0;
	for (size_t i = 0; i < sweep->trials.n; i++) {
		if (sweep->done && sweep->done[i]) {
			continue;
		}
		int result = look_up(sweep, sweep->trials.order[i].configuration, &l);
		if (result == 0 && l.problem && !wrong) {
			wrong = strdup(l.name);
			problem = l.problem;
			result = wrong ? 0 : -ENOMEM;
		}
		if (result < 0) {
			return error_errno(e, -result, "%s", sweep->directory);
		}
		n += l.problem == problem && wrong && strcmp(l.name, wrong) == 0;
	}
	const char *why = strerrordesc_np(problem);
	return wrong ? error_set(e, problem,
			       "cannot run '%.200s': %s (the command of %zu of %zu trials)", wrong,
			       why ? why : "unknown error", n, n_to_run)
	             : 0;
}

// A run of `true` takes 40 kB, a trial refused by a limit 14 kB.
#define SMALLEST_RUN_BYTES 16384

int sweep_check_space(const struct sweep *sweep, struct error *e)
{
	struct statvfs disk;
	double needed = (double)(sweep->trials.n - sweep->n_done) * SMALLEST_RUN_BYTES;
	if (statvfs(sweep->directory, &disk) < 0 || disk.f_blocks == 0) {
		return 0;
	}
	double there = (double)disk.f_bfree * (double)disk.f_frsize;
	if (needed <= there) {
		return 0;
	}
	_cleanup_text_ struct text needs = {0}, has = {0};
	words_append_bytes(&needs, needed);
	words_append_bytes(&has, there);
	return error_set(e, ENOSPC,
		"%s: not enough space for %zu more trials: they need at least %s, available: %s",
		sweep->directory, sweep->trials.n - sweep->n_done, needs.data ? needs.data : "",
		has.data ? has.data : "");
}
