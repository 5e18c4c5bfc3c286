// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A sweep's directory.

#include "experiment/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/text.h"
#include "experiment/renumber.h"
#include "trace/still_running.h"

#define PAUSE_NS (20 * NS_PER_MS)
#define WAIT_NS (60 * NS_PER_S)

// Names ------------------------------------------------------------------------------------------

char *sweep_trial_name(struct trial_place trial)
{
	struct text t = {0};
	text_format(&t, "%04u-%u", trial.configuration, trial.repeat);
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

// The plan's own path, and where its sweep is.
static int find_places(
	const struct sweep_options *options, struct sweep *sweep, char **ret_plan, struct error *e)
{
	const char *plan = *options->plan ? options->plan : ".";
	bool directory = is_directory(plan);
	struct text own = {0};
	*ret_plan = directory ? join(plan, "plan.yaml") : strdup(plan);
	if (directory && *ret_plan && access(*ret_plan, F_OK) < 0 && errno == ENOENT) {
		return error_set(e, ENOENT,
			"%s: expected a plan or the folder of a sweep, found one without plan.yaml",
			plan);
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
	if (!*ret_plan || !sweep->stem || !sweep->directory) {
		return error_errno(e, ENOMEM, "%s", plan);
	}
	return 0;
}

// The directory -----------------------------------------------------------------------------------

// Whether nothing in it but what a sweep has.
static int check_directory(const char *path, struct error *e)
{
	_cleanup_free_ char *plan = join(path, "plan.yaml");
	DIR *folder = opendir(path);
	if (!folder || !plan) {
		int code = errno;
		if (folder) {
			closedir(folder);
		}
		return error_errno(e, code, "%s", path);
	}
	bool empty = true;
	for (struct dirent *entry; (entry = readdir(folder));) {
		empty = empty &&
		        (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
				strcmp(entry->d_name, "lock") == 0 ||
				strncmp(entry->d_name, "plan.yaml", 9) == 0);
	}
	closedir(folder);
	return empty || access(plan, F_OK) == 0
	               ? 0
	               : error_set(e, EEXIST,
				 "%s: expected a new or empty folder or a sweep, found other "
				 "files (-o DIR: another folder)",
				 path);
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

// "1234 host": pid first, so that it can be read also where a name has blanks.
static void read_holder(int fd, char *buffer, size_t size)
{
	ssize_t n = pread(fd, buffer, size - 1, 0);
	buffer[n > 0 ? n : 0] = '\0';
	buffer[strcspn(buffer, "\n")] = '\0';
}

static int lock_directory(struct sweep *sweep, struct error *e)
{
	_cleanup_free_ char *path = join(sweep->directory, "lock");
	if (!path) {
		return error_errno(e, ENOMEM, "%s", sweep->directory);
	}
	_cleanup_close_ int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (fd < 0) {
		return error_errno(e, errno, "%s", path);
	}
	char holder[256], host[128] = "";
	gethostname(host, sizeof(host) - 1);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		int code = errno;
		if (code != EWOULDBLOCK) {
			return error_errno(e, code, "%s", path);
		}
		read_holder(fd, holder, sizeof(holder));
		char *blank = strchr(holder, ' ');
		if (!blank) {
			return error_set(
				e, EBUSY, "%s: in use by another process", sweep->directory);
		}
		*blank = '\0';
		return error_set(e, EBUSY, "%s: in use by process %s on %s", sweep->directory,
			holder, blank + 1);
	}
	int length = snprintf(holder, sizeof(holder), "%d %s\n", (int)getpid(), host);
	int result = ftruncate(fd, 0) < 0 ? -errno : write_all(fd, holder, (size_t)length);
	if (result < 0) {
		return error_errno(e, -result, "%s", path);
	}
	sweep->lock = take_fd(fd);
	return 0;
}

// The plan in it ----------------------------------------------------------------------------------

static int copy_data(int in, int out)
{
	char buffer[65536];
	for (;;) {
		ssize_t n = read(in, buffer, sizeof(buffer));
		if (n <= 0) {
			return n < 0 ? -errno : 0;
		}
		int result = write_all(out, buffer, (size_t)n);
		if (result < 0) {
			return result;
		}
	}
}

// Whole or not at all.
static int copy_plan(const char *from, const char *to, struct error *e)
{
	_cleanup_free_ char *part = NULL;
	if (asprintf(&part, "%s.part", to) < 0) {
		part = NULL;
		return error_errno(e, ENOMEM, "%s", to);
	}
	_cleanup_close_ int in = open(from, O_RDONLY | O_CLOEXEC);
	if (in < 0) {
		return error_errno(e, errno, "%s", from);
	}
	_cleanup_close_ int out = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	int result = out < 0 ? -errno : copy_data(in, out);
	result = result == 0 && fsync(out) < 0 ? -errno : result;
	if (result == 0 && rename(part, to) < 0) {
		result = -errno;
	}
	if (result < 0) {
		unlink(part);
		return error_errno(e, -result, "%s", to);
	}
	return 0;
}

static int plan_changed(const struct sweep *sweep, const char *kept, bool *ret, struct error *e)
{
	struct plan was;
	char *what = NULL;
	int result = plan_open(kept, &was, e);
	if (result < 0) {
		return error_prefix(e, "the plan that was started");
	}
	*ret = plan_differs(&was, &sweep->plan, &what);
	if (*ret) {
		error_set(e, ESTALE,
			"%s was started with another plan: %.330s (--force: go on "
			"with this one)",
			sweep->directory, what ? what : "");
	}
	free(what);
	plan_done(&was);
	return 0;
}

// The runs take the names that the plan gives them, then it is the sweep's: what is ended in
// between goes on when the sweep is opened again. Without a next one, the names are what is wrong.
static int finish_change(
	const struct sweep_options *options, const struct sweep *sweep, struct error *e)
{
	_cleanup_free_ char *kept = join(sweep->directory, "plan.yaml");
	_cleanup_free_ char *next = join(sweep->directory, SWEEP_NEXT_PLAN);
	struct plan was = {0};
	struct sweep changed = {.directory = sweep->directory, .stem = sweep->stem, .lock = -1};
	if (!kept || !next) {
		return error_errno(e, ENOMEM, "%s", sweep->directory);
	}
	bool has_next = access(next, F_OK) == 0;
	int result = plan_open(kept, &was, e);
	if (result < 0) {
		return error_prefix(e, "the plan that was started");
	}
	result = plan_open(has_next ? next : kept, &changed.plan, e);
	result = result < 0 ? result : trials_make(&changed.plan, &changed.trials, e);
	result = result < 0 ? result : renumber_runs(&changed, &was, options->say, e);
	if (result == 0 && has_next && rename(next, kept) < 0) {
		result = error_errno(e, errno, "%s", kept);
	}
	trials_done(&changed.trials);
	plan_done(&changed.plan);
	plan_done(&was);
	return result;
}

static bool is_changing(const struct sweep *sweep)
{
	_cleanup_free_ char *next = join(sweep->directory, SWEEP_NEXT_PLAN);
	_cleanup_free_ char *kept = join(sweep->directory, "plan.yaml");
	return next && kept && access(kept, F_OK) == 0 &&
	       (access(next, F_OK) == 0 || renumber_is_begun(sweep->directory));
}

// The plan that was read may be the sweep's own, which is another one then.
static int go_on_changing(
	const struct sweep_options *options, struct sweep *sweep, const char *path, struct error *e)
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
	sweep->plan = (struct plan){0};
	result = plan_open(path, &sweep->plan, e);
	return result < 0 ? result : trials_make(&sweep->plan, &sweep->trials, e);
}

static int settle_plan(
	const struct sweep_options *options, struct sweep *sweep, const char *path, struct error *e)
{
	_cleanup_free_ char *kept = join(sweep->directory, "plan.yaml");
	_cleanup_free_ char *next = join(sweep->directory, SWEEP_NEXT_PLAN);
	bool changed = false;
	if (!kept || !next) {
		return error_errno(e, ENOMEM, "%s", sweep->directory);
	}
	if (access(kept, F_OK) < 0) {
		return options->look ? 0 : copy_plan(path, kept, e);
	}
	int result = plan_changed(sweep, kept, &changed, e);
	if (result < 0 || !changed) {
		return result;
	}
	if (!options->force) {
		return -ESTALE;
	}
	if (options->look) {
		return 0;
	}
	result = copy_plan(path, next, e);
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

static void remove_file(const char *directory, const char *name)
{
	_cleanup_free_ char *path = join(directory, name);
	if (path) {
		unlink(path);
	}
}

static void remove_matching(
	const struct sweep *sweep, const struct trial_place *only, const char *const *prefixes)
{
	DIR *folder = opendir(sweep->directory);
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
				remove_file(sweep->directory, entry->d_name);
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

// Waits until the job of a trial has ended, which its keeper sees to, or its launcher without one;
// asks what is left of it, then makes it, and its recorder. One that is recorded into another file
// is that one's: this folder is a copy.
static void end_job(
	const struct sweep_options *options, const struct sweep *sweep, const char *path)
{
	uint64_t start_ns = clock_monotonic_ns(), grace_ns = (uint64_t)(sweep->plan.grace_s * 1e9);
	bool said = false, asked = false;
	pid_t first = still_running_recorder(path);
	if (first > 0 && !still_running_is_of(path, first)) {
		return;
	}
	for (;;) {
		uint64_t passed_ns = clock_monotonic_ns() - start_ns;
		bool ask = passed_ns > grace_ns / 2 && !asked, make = passed_ns > grace_ns;
		size_t left = still_running_signal(path, make ? SIGKILL : ask ? SIGTERM : 0);
		pid_t recorder = still_running_recorder(path);
		if ((left == 0 && recorder == 0) || passed_ns > grace_ns + WAIT_NS) {
			return;
		}
		if (options->say && !said) {
			options->say("ending the trial that a killed sweep has left running");
			said = true;
		}
		if (left == 0 && make) {
			kill(recorder, SIGKILL); // a launcher that is stopped, say
		}
		asked = asked || ask;
		const struct timespec pause = {.tv_nsec = (long)PAUSE_NS};
		nanosleep(&pause, NULL);
	}
}

static void end_jobs(const struct sweep_options *options, const struct sweep *sweep)
{
	DIR *folder = opendir(sweep->directory);
	for (struct dirent *entry; folder && (entry = readdir(folder));) {
		struct trial_place trial;
		const char *suffix;
		_cleanup_free_ char *path = NULL;
		if (parse_name(entry->d_name, &trial, &suffix) &&
			strcmp(suffix, SWEEP_RUNNING) == 0 &&
			(path = join(sweep->directory, entry->d_name))) {
			end_job(options, sweep, path);
		}
	}
	if (folder) {
		closedir(folder);
	}
}

static void clean_up(const struct sweep_options *options, const struct sweep *sweep)
{
	static const char *const prefixes[] = {SWEEP_RUNNING, NULL};
	end_jobs(options, sweep);
	remove_matching(sweep, NULL, prefixes);
	// The log of a trial is kept only where it failed.
	for (size_t i = 0; i < sweep->trials.n; i++) {
		_cleanup_free_ char *log = sweep_path(sweep, sweep->trials.order[i], SWEEP_LOG);
		if (log && !sweep->done[i]) {
			unlink(log);
		}
	}
}

static int find_done(struct sweep *sweep, struct error *e)
{
	sweep->done = calloc(sweep->trials.n + 1, sizeof(*sweep->done));
	if (!sweep->done) {
		return error_errno(e, ENOMEM, "%s", sweep->directory);
	}
	for (size_t i = 0; i < sweep->trials.n; i++) {
		_cleanup_free_ char *run = sweep_path(sweep, sweep->trials.order[i], SWEEP_RUN);
		sweep->done[i] = run && access(run, F_OK) == 0;
		sweep->n_done += sweep->done[i];
	}
	return 0;
}

static int make_directory(const struct sweep_options *options, struct sweep *sweep, struct error *e)
{
	if (options->look && access(sweep->directory, F_OK) < 0) {
		return 0;
	}
	if (!options->look && mkdir(sweep->directory, 0777) < 0 && errno != EEXIST) {
		return error_errno(e, errno, "%s", sweep->directory);
	}
	int result = check_directory(sweep->directory, e);
	return result < 0 || options->look ? result : lock_directory(sweep, e);
}

int sweep_open(const struct sweep_options *options, struct sweep *ret, struct error *e)
{
	_cleanup_free_ char *path = NULL;
	struct error ignored = {0};
	e = e ? e : &ignored;
	*ret = (struct sweep){.lock = -1};
	int result = find_places(options, ret, &path, e);
	result = result < 0 ? result : plan_open(path, &ret->plan, e);
	result = result < 0 ? result : trials_make(&ret->plan, &ret->trials, e);
	result = result < 0 ? result : make_directory(options, ret, e);
	result = result < 0 ? result : go_on_changing(options, ret, path, e);
	result = result < 0 ? result : settle_plan(options, ret, path, e);
	result = result < 0 ? result : find_done(ret, e);
	if (result < 0) {
		sweep_close(ret);
		return result;
	}
	if (!options->look) {
		clean_up(options, ret);
	}
	return 0;
}

void sweep_close(struct sweep *sweep)
{
	free(sweep->done);
	trials_done(&sweep->trials);
	plan_done(&sweep->plan);
	free(sweep->directory);
	free(sweep->stem);
	if (sweep->lock >= 0) {
		close(sweep->lock);
	}
	*sweep = (struct sweep){.lock = -1};
}
