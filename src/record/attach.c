// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// --pid: records a process that runs already, until it ends or somebody presses Ctrl-C.

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "record/job/exit_status.h"
#include "record/launcher.h"
#include "record/launcher_state.h"
#include "record/say.h"

enum { REAPED_TIMEOUT_MS = 200 };

static int open_process(pid_t pid, struct error *e)
{
	char path[32];
	struct stat st;
	int fd = pidfd_open(pid, 0);
	if (fd < 0) {
		return errno == ESRCH || errno == EINVAL
		               ? error_set(e, ESRCH, "there is no process %d", (int)pid)
		               : error_errno(e, errno, "cannot watch process %d", (int)pid);
	}
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (stat(path, &st) == 0 && st.st_uid != geteuid() && geteuid() != 0) {
		close(fd);
		return error_set(e, EPERM, "process %d belongs to another user (uid %u)", (int)pid,
			st.st_uid);
	}
	return fd;
}

// The wait status, or -1 for unknown. It is told only once the parent has reaped the process.
static int read_status(int fd)
{
	struct pollfd reaped = {.fd = fd};
	int status;
	poll(&reaped, 1, REAPED_TIMEOUT_MS);
	return exit_status_of(fd, &status) ? status : -1;
}

static void watch_process(struct launcher *l, int fd)
{
	for (;;) {
		struct pollfd fds[] = {{.fd = fd, .events = POLLIN},
			{.fd = l->signals.fd, .events = POLLIN},
			{.fd = l->recording.socket, .events = POLLIN}};
		poll(fds, ARRAY_LENGTH(fds), -1);
		recording_hear(&l->recording);
		if (!take_own_signals(l) || l->recording.socket < 0) {
			return; // without its recorder nothing is left to wait for
		}
		if (fds[0].revents) {
			l->status = read_status(fd);
			return;
		}
	}
}

// The process goes on as if we had never been.
static int give_up(struct launcher *l, const struct error *e)
{
	drop_recording(l);
	if (l->interrupted) {
		signals_die_of(l->interrupted);
		return 128 + l->interrupted;
	}
	say("%s", e->text);
	return LAUNCHER_FAILED;
}

int attach(struct launcher *l)
{
	struct error e = {0};
	_cleanup_close_ int fd = open_process(l->options.pid, &e);
	error_set(&l->cgroup_error, ECANCELED, "strain was attached to a process that ran already");
	l->hooks_error = l->nvtx_error = l->markers_error = l->cgroup_error;
	l->status = -1;
	if (fd < 0 || signals_open(&l->signals, false, &e) < 0 || start_recording(l, &e) < 0) {
		return give_up(l, &e);
	}
	if (!l->path) {
		return LAUNCHER_FAILED; // start_recording said why
	}
	l->job = l->options.pid;
	recording_send_patiently(&l->recording,
		&(struct message){.kind = MESSAGE_STARTED, .pid = l->job}, SEND_TIMEOUT_MS);
	say("recording process %d to %s until it ends (Ctrl-C: until now)", (int)l->job, l->path);
	watch_process(l, fd);
	l->end_ns = clock_monotonic_ns();
	return 0;
}
