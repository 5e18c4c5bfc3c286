// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A sweep's directory.

#include "experiment/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/text.h"
#include "base/trust.h"
#include "experiment/commands.h"
#include "experiment/plan_kept.h"
#include "experiment/renumber.h"
#include "trace/still_running.h"

#define PLAN "plan.yaml"
#define LOCK "lock"
#define NUMBER_BYTES 16
#define PAUSE_NS (20 * NS_PER_MS)
#define WAIT_NS (60 * NS_PER_S)

// Names ------------------------------------------------------------------------------------------

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

// The last part of a path without one of these endings.
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

// What is in a folder of another's, or in one that others can write, is for its user to read first.
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

// The plan's own path, and where its sweep is. ret_own: the plan is the one in the sweep's folder.
static int find_places(const struct sweep_options *options, struct sweep *sweep, char **ret_plan,
	bool *ret_own, struct error *e)
{
	const char *plan = *options->plan ? options->plan : ".";
	bool directory = is_directory(plan);
	struct text own = {0};
	*ret_plan = directory ? join(plan, PLAN) : strdup(plan);
	if (directory && *ret_plan && access(*ret_plan, F_OK) < 0 && errno == ENOENT) {
		return error_set(e, ENOENT,
			"%s: expected a plan or the folder of a sweep, found one without plan.yaml",
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

// Files ------------------------------------------------------------------------------------------

bool sweep_has(const struct sweep *sweep, const char *name)
{
	struct stat status;
	return fstatat(sweep->folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

// Not one of the three that a process is given.
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
	// A FIFO would be waited for.
	return move_up(openat(sweep->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
}

DIR *sweep_list(const struct sweep *sweep)
{
	// A position of its own.
	_cleanup_close_ int fd = openat(
		sweep->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	if (folder) {
		fd = -1;
	}
	return folder;
}

static int fail_at(const struct sweep *sweep, const char *name, int code, struct error *e)
{
	return code == ELOOP ? error_set(e, ELOOP, "%s/%s: expected a file, found a link",
				       sweep->directory, name)
	                     : error_errno(e, code, "%s/%s", sweep->directory, name);
}

// A plan of the folder. Where it is only looked at, it may be anybody's.
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
	int result = options->look ? 0 : trust_own(fd, path, e);
	return result < 0 ? result : plan_read_file(fd, path, ret, e);
}

// The directory -----------------------------------------------------------------------------------

// Whether nothing in it but what a sweep has.
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

static int write_all(int fd, const char *data, size_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, data, size);
		if (n < 0) {
			return -errno;
		}
		data += n;
		size -= (size_t)n;
	}
	return 0;
}

// The lock's two lines: "1234 host" (pid first, so that it can be read also where a name has
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

static int make_mark(struct sweep *sweep, const char *number, struct error *e)
{
	struct stat status;
	struct text mark = {0};
	if (fstat(sweep->folder, &status) < 0) {
		return error_errno(e, errno, "%s", sweep->directory);
	}
	text_format(&mark, "%" PRIx64 ":%" PRIx64 ":%s", (uint64_t)status.st_dev,
		(uint64_t)status.st_ino, number);
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
	return make_mark(sweep, holder.number, e);
}

// A link that somebody else has made leads where he wants.
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
	int result = options->look ? 0 : check_link(sweep, e);
	if (result < 0) {
		return result;
	}
	sweep->folder = open(sweep->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (sweep->folder < 0) {
		return options->look && errno == ENOENT
		               ? 0
		               : error_errno(e, errno, "%s", sweep->directory);
	}
	return options->look ? 0 : check_owner_of(sweep->folder, sweep->directory, e);
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

// As it is kept in the folder.
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

// Whole or not at all.
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
	result = out < 0 ? out : write_all(out, kept.data, kept.length);
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
			"%s was started with another plan: %.330s (--force: go on "
			"with this one)",
			sweep->directory, what ? what : "");
	}
	free(what);
	plan_done(&was);
	return result;
}

// The runs take the names that the plan gives them, then it is the sweep's: what is ended in
// between goes on when the sweep is opened again. Without a next one, the names are what is wrong.
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

// The plan that was read may be the sweep's own, which is another one then.
static int go_on_changing(const struct sweep_options *options, struct sweep *sweep,
	const char *path, bool own, struct error *e)
{
	if (!is_changing(sweep)) {
		return 0;
	}
	if (options->look) {
		return error_set(e, ESTALE,
			"%s: a change of its plan was not done to the end (strain sweep %s goes on "
			"with it)",
			sweep->directory, sweep->directory);
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

// What a sweep that was killed has left -----------------------------------------------------------

// "0007-2.running..." or ".log". False: another file.
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

// The run that a trial of the killed sweep was recorded into, for who records it. NULL: none.
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

// SIGTERM or SIGKILL; a recorder that has nothing to record any more ends by itself, or is killed.
static void signal_left(const struct sweep *sweep, int signal_number)
{
	_cleanup_free_ char *run = find_running(sweep);
	pid_t recorder = run ? still_running_recorder(run, sweep->mark) : 0;
	ssize_t others = still_running_signal(sweep->mark, recorder, signal_number);
	if (others == 0 && recorder > 0 && signal_number == SIGKILL) {
		still_running_kill_recorder(run, sweep->mark); // its launcher is stopped, say
	}
}

// Waits until what carries the sweep's mark has ended, which the trial's keeper sees to, or its
// launcher without one; asks what is left of it, then makes it, and its recorder.
static int end_left(const struct sweep_options *options, const struct sweep *sweep, struct error *e)
{
	uint64_t start_ns = clock_monotonic_ns(), grace_ns = (uint64_t)(sweep->plan.grace_s * 1e9);
	void (*say)(const char *text) = options->say;
	bool said = false, asked = false;
	ssize_t left;
	while ((left = still_running_signal(sweep->mark, 0, 0)) > 0) {
		uint64_t passed_ns = clock_monotonic_ns() - start_ns;
		if (say && !said) {
			say("ending the trial that a killed sweep has left running");
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
	return left < 0 ? error_errno(e, (int)-left, "%s: cannot tell what still runs of it: /proc",
				  sweep->directory)
	                : 0;
}

static int clean_up(const struct sweep_options *options, const struct sweep *sweep, struct error *e)
{
	static const char *const prefixes[] = {SWEEP_RUNNING, NULL};
	int result = end_left(options, sweep, e);
	if (result < 0) {
		return result;
	}
	remove_matching(sweep, NULL, prefixes);
	// The log of a trial is kept only where it failed.
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

// Before a folder is made: a plan that is mended then is not another one than the sweep's.
static int check_new(
	const struct sweep_options *options, const struct sweep *sweep, struct error *e)
{
	_cleanup_free_ char *kept = join(sweep->directory, PLAN);
	bool started = !kept || access(kept, F_OK) == 0;
	return started || options->look ? 0 : commands_check(sweep, e);
}

// Its jobs would be given *** for their secrets.
static int check_masked(const struct sweep_options *options, const struct sweep *sweep,
	const char *path, struct error *e)
{
	return options->look || !sweep->plan.masked
	               ? 0
	               : error_set(e, EINVAL,
				 "%s: secrets are left out in it (***): go on with the plan that "
				 "it was made of (strain sweep PLAN.yaml -o %s)",
				 path, sweep->directory);
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
