// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Before the job runs. Everything that can go wrong does so here.

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "record/job/injection.h"
#include "record/launcher.h"
#include "record/launcher_state.h"
#include "record/marker_directory.h"
#include "record/name.h"
#include "record/say.h"

enum { READY_TIMEOUT_MS = 10000 };

static int choose_path(struct launcher *l, struct error *e)
{
	if (l->options.output) {
		l->path = strdup(l->options.output);
		return l->path ? 0 : error_errno(e, ENOMEM, "cannot record");
	}
	char name[128];
	_cleanup_free_ char *notice = NULL;
	if (l->options.pid > 0) {
		name_of_attached(l->options.pid, time(NULL), name, sizeof(name));
	} else {
		name_of_run(l->options.command, time(NULL), name, sizeof(name));
	}
	int rc = name_reserve(name, &l->path, &l->reserved, &notice, e);
	if (notice) {
		say("%s", notice);
	}
	l->options.force = rc == 0 || l->options.force;
	return rc;
}

static void make_cgroup(struct launcher *l)
{
	if (l->options.no_cgroup) {
		error_set(&l->cgroup_error, ECANCELED, "--no-cgroup was given");
	} else {
		l->has_cgroup = job_cgroup_create(&l->cgroup, &l->cgroup_error) == 0;
	}
}

static int set_limits(struct launcher *l, struct error *e)
{
	if (!limits_any(&l->options.limits)) {
		return 0;
	}
	_cleanup_close_ int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const struct limits_place place = {
		.root_fd = root_fd,
		.cgroup = l->has_cgroup ? &l->cgroup : NULL,
		.why_none = &l->cgroup_error,
	};
	int rc = limits_set(&l->options.limits, &place, &l->limits, e);
	if (rc == 0) {
		limits_set_environment(&l->limits);
	}
	return rc;
}

void remove_cgroup(struct launcher *l)
{
	if (l->has_cgroup) {
		job_cgroup_remove(&l->cgroup); // what still runs in it keeps it
		job_cgroup_done(&l->cgroup);
		l->has_cgroup = false;
	}
}

static void make_markers(struct launcher *l)
{
	if (l->options.no_markers) {
		error_set(&l->markers_error, ECANCELED, "--no-markers was given");
	} else {
		marker_directory_make(&l->markers, &l->markers_error);
	}
	if (!l->markers.path) {
		l->nvtx_error = l->markers_error;
	} else {
		injection_nvtx(l->options.command, &l->nvtx, &l->nvtx_error);
	}
}

static void make_hooks(struct launcher *l)
{
	if (l->options.no_hooks) {
		error_set(&l->hooks_error, ECANCELED, "--no-hooks was given");
	} else if (!l->markers.path) {
		error_set(&l->hooks_error, ECANCELED, "no directory for marks: %.400s",
			l->markers_error.text);
	} else {
		injection_hooks(l->options.command, &l->hooks, &l->hooks_error);
	}
}

void remove_markers(struct launcher *l)
{
	free(take_pointer(l->hooks));
	marker_directory_remove(&l->markers);
	marker_directory_done(&l->markers);
	free(take_pointer(l->nvtx));
}

static void watch_output(struct launcher *l)
{
	struct error e = {0};
	l->forwarding = FORWARDING_NONE;
	if (!l->options.epoch_pattern) {
		forwarding_open_files(&l->forwarding);
		return;
	}
	if (forwarding_open(&l->forwarding, &e) < 0) {
		say("%s", e.text);
	}
	if (forwarding_start(&l->forwarding, &e) < 0) {
		say("%s; no epochs will be seen", e.text);
	}
}

static int start_child(struct launcher *l, struct error *e)
{
	struct child_config config = {
		.command = l->options.command,
		.signals = &l->signals,
		.cgroup = l->has_cgroup ? &l->cgroup : NULL,
		.limits = &l->limits,
		.markers = l->markers.path,
		.nvtx = l->nvtx,
		.hooks = l->hooks,
		.lines = l->options.lines,
		.output = {forwarding_job(&l->forwarding, STDOUT_FILENO),
			forwarding_job(&l->forwarding, STDERR_FILENO)},
	};
	return child_start(&config, &l->child, e);
}

static int start_recorder(struct launcher *l, struct error *e)
{
	struct recorder_config config = {
		.options = &l->options,
		.path = l->path,
		.cgroup = l->has_cgroup ? &l->cgroup : NULL,
		.limits = &l->limits,
		.markers = l->markers.path ? &l->markers : NULL,
		.hooks = l->hooks ? l->markers.fd : -1,
		.missing = {{"cgroup_missing", l->has_cgroup ? NULL : l->cgroup_error.text},
			{"markers_missing", l->markers.path ? NULL : l->markers_error.text},
			{"nvtx_missing", l->nvtx ? NULL : l->nvtx_error.text},
			{"hooks_missing", l->hooks ? NULL : l->hooks_error.text}},
		.start_ns = clock_monotonic_ns(),
		.launcher = getpid(),
		.output = {forwarding_copy(&l->forwarding, STDOUT_FILENO),
			forwarding_copy(&l->forwarding, STDERR_FILENO)},
	};
	return recording_start(&l->recording, &config, e);
}

// A signal that came while nothing ran yet ends the run before it begins.
static bool was_interrupted(struct launcher *l)
{
	struct signalfd_siginfo info;
	while (l->interrupted == 0 && signals_take(&l->signals, &info)) {
		l->interrupted = is_fatal(&info) ? (int)info.ssi_signo : 0;
	}
	return l->interrupted != 0;
}

// 0 when the recorder is ready; else -errno with what it, or its silence, said.
static int wait_ready(struct launcher *l, struct error *e)
{
	uint64_t deadline = clock_monotonic_ns() + READY_TIMEOUT_MS * NS_PER_MS;
	while (!was_interrupted(l)) {
		struct message message;
		uint64_t now = clock_monotonic_ns();
		if (recording_take(&l->recording, &message)) {
			if (message.kind == MESSAGE_READY) {
				return 0;
			}
			if (message.kind == MESSAGE_FAILED) {
				return error_set(e, EIO, "%s", message.text);
			}
		} else if (l->recording.socket < 0) {
			return error_set(e, EPIPE, "the recorder ended before it was ready");
		} else if (now >= deadline) {
			return error_set(e, ETIMEDOUT, "the recorder was not ready within %d s",
				READY_TIMEOUT_MS / 1000);
		} else {
			struct pollfd fds[] = {{.fd = l->recording.socket, .events = POLLIN},
				{.fd = l->signals.fd, .events = POLLIN}};
			poll(fds, ARRAY_LENGTH(fds), (int)((deadline - now) / NS_PER_MS) + 1);
		}
	}
	return error_set(e, EINTR, "interrupted");
}

void drop_recording(struct launcher *l)
{
	recording_discard(&l->recording);
	if (l->path) {
		beneath_unlink(l->path, l->reserved, (const char *const[]){"", NULL});
	}
	l->reserved = (struct beneath_file){0};
	free(take_pointer(l->path));
}

// Takes everything back: the job will not run.
static int give_up(struct launcher *l, int status)
{
	child_cancel(&l->child);
	drop_recording(l);
	forwarding_release(&l->forwarding);
	remove_cgroup(l);
	remove_markers(l);
	signals_close(&l->signals);
	if (l->interrupted) {
		signals_die_of(l->interrupted);
		return 128 + l->interrupted;
	}
	return status;
}

int start_recording(struct launcher *l, struct error *e)
{
	if (choose_path(l, e) < 0) {
		say("not recording: %s", e->text);
		return 0;
	}
	int rc = start_recorder(l, e);
	if (rc == 0) {
		rc = wait_ready(l, e);
	}
	// Only a file that was asked for by name is worth not running the job.
	if (rc == 0 || l->interrupted || (l->options.output && rc == -EIO)) {
		return rc;
	}
	say("not recording: %s", e->text);
	drop_recording(l);
	return 0;
}

// A recorder that was told of a cgroup which the job is not in would measure nothing.
static int record_without_cgroup(struct launcher *l, int code, struct error *e)
{
	error_errno(&l->cgroup_error, code, "the job cannot enter its cgroup");
	if (l->limits.in_cgroup) {
		return error_set(e, code, "%s, which limits it", l->cgroup_error.text);
	}
	remove_cgroup(l);
	if (!l->path) {
		return 0;
	}
	drop_recording(l);
	return start_recording(l, e);
}

// Whether what failed can be tried again as it is: not a machine that is what it is.
static bool may_pass(int code)
{
	return code == EAGAIN || code == EINTR || code == EMFILE || code == ENFILE ||
	       code == ENOMEM || code == ETIMEDOUT;
}

// A limit could not be set. A sweep has to know whether there is any use in trying again.
static int limit_status(const struct launcher *l, int code)
{
	return l->options.supervised && !may_pass(code) ? LAUNCH_REFUSED : LAUNCHER_FAILED;
}

// The child enters its cgroup while the recorder starts.
static int finish_entry(struct launcher *l, struct error *e)
{
	struct child_entry entry;
	child_wait_entry(&l->child, &entry);
	if (entry.limits < 0) {
		return error_errno(e, -entry.limits, "%s: the job cannot be bound to its CPUs",
			limit_option(LIMIT_CPUS));
	}
	return entry.cgroup < 0 ? record_without_cgroup(l, -entry.cgroup, e) : 0;
}

// A launcher that leads a session, or is a container's first process, takes the job with it.
static void say_dependence(struct launcher *l)
{
	if (getpid() == 1 || getsid(0) == getpid()) {
		recording_say(&l->recording, "launcher",
			getpid() == 1
				? "strain is the first process of its pid namespace: its death "
				  "would end the job"
				: "strain leads its session: its death would end the job");
	}
}

// What the job was given is the job's alone now: a pipe that it closes is closed.
static void let_go(struct launcher *l)
{
	forwarding_let_go(&l->forwarding);
	descriptors_release(&l->inherited);
	descriptors_null(STDIN_FILENO);
	descriptors_null(STDOUT_FILENO);
}

// 0 when the job runs; else the exit status.
int start_job(struct launcher *l)
{
	struct error e = {0};
	int status = child_check(l->options.command, &e);
	if (status != 0) {
		say("%s", e.text);
		return status;
	}
	if (signals_open(&l->signals, l->options.supervised, &e) < 0) {
		say("%s", e.text);
		return LAUNCHER_FAILED;
	}
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	make_cgroup(l);
	if (set_limits(l, &e) < 0) {
		say("%s", e.text);
		return give_up(l, limit_status(l, e.code));
	}
	make_markers(l);
	make_hooks(l);
	watch_output(l);
	bool ready = start_child(l, &e) == 0 && start_recording(l, &e) == 0;
	if (!ready || finish_entry(l, &e) < 0) {
		if (!l->interrupted) {
			say("%s", e.text);
		}
		// EIO is the run file's.
		bool limit = ready && e.code != EIO;
		return give_up(l, limit ? limit_status(l, e.code) : LAUNCHER_FAILED);
	}
	signals_watch(&l->signals);
	const uint64_t start_ns = clock_monotonic_ns();
	status = child_go(&l->child, l->options.command, &e);
	if (status != 0) {
		say("%s", e.text);
		return give_up(l, status);
	}
	l->job = l->child.pid;
	const struct message started = {.kind = MESSAGE_STARTED, .pid = l->job, .at_ns = start_ns};
	recording_send_patiently(&l->recording, &started, SEND_TIMEOUT_MS);
	say_dependence(l);
	let_go(l);
	return 0;
}
