// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// When the job has ended: its last output, the end of the file, what is left running, the verdict.

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/part.h"
#include "base/text.h"
#include "record/launcher_state.h"
#include "record/say.h"
#include "record/usage.h"

enum {
	LAST_READ_TIMEOUT_MS = 300,
	DONE_TIMEOUT_MS = 20000,
	DONE_NOTICE_MS = 2000,
	RECORDER_EXIT_MS = 1000,
	LEFT_NAMED = 4,
};

enum waited { WAITED_DONE, WAITED_TIME, WAITED_INTERRUPTED };

static bool output_is_through(struct launcher *l)
{
	return forwarding_is_through(&l->forwarding);
}

static bool recorder_has_answered(struct launcher *l)
{
	return l->recording.done || l->recording.socket < 0;
}

static bool recorder_measures_no_more(struct launcher *l)
{
	return l->recording.closing || recorder_has_answered(l);
}

static bool recorder_is_gone(struct launcher *l)
{
	return l->recording.pid == 0;
}

static bool finisher_is_gone(struct launcher *l)
{
	return l->finisher == 0;
}

// timeout_ms -1: for as long as it takes. A sweep's signal was for the job, which had just ended by
// itself: what has a limit is waited for.
static enum waited wait_until(
	struct launcher *l, bool (*is_done)(struct launcher *l), int timeout_ms)
{
	uint64_t deadline = clock_monotonic_ns() + (uint64_t)(timeout_ms + 1) * NS_PER_MS;
	while (!is_done(l)) {
		uint64_t now = clock_monotonic_ns();
		int due_ms = forwarding_tend(&l->forwarding);
		if (timeout_ms >= 0 && now >= deadline) {
			return WAITED_TIME;
		}
		struct pollfd fds[] = {
			{.fd = l->signals.fd, .events = POLLIN},
			{.fd = l->recording.socket, .events = POLLIN},
			{.fd = l->forwarding.channels[0].control, .events = POLLIN},
			{.fd = l->forwarding.channels[1].control, .events = POLLIN},
		};
		int wait_ms = timeout_ms < 0 ? -1 : (int)((deadline - now) / NS_PER_MS) + 1;
		wait_ms = due_ms >= 0 && (wait_ms < 0 || due_ms < wait_ms) ? due_ms : wait_ms;
		poll(fds, ARRAY_LENGTH(fds), wait_ms);
		recording_hear(&l->recording);
		if (!take_own_signals(l) && !(l->options.supervised && timeout_ms >= 0)) {
			return WAITED_INTERRUPTED;
		}
	}
	return WAITED_DONE;
}

// A blocked reader of the job's output blocks us as it would have blocked the job.
static void drain_output(struct launcher *l)
{
	take_own_signals(l); // the Ctrl-C that ended the job is not one against us
	forwarding_finish(&l->forwarding);
	wait_until(l, output_is_through, -1);
	uint64_t dropped = forwarding_dropped(&l->forwarding);
	if (dropped > 0) {
		char text[96];
		snprintf(text, sizeof(text), "%" PRIu64 " bytes of output not searched for epochs",
			dropped);
		recording_say(&l->recording, "lost", text);
	}
}

// Lines may be missing from what the job printed: whoever reads it has to know.
static void say_lost_output(struct launcher *l)
{
	unsigned deaths = forwarding_deaths(&l->forwarding);
	if (deaths > 0) {
		say("what passes the job's output on was killed %u time%s and started again: up "
		    "to %d bytes of output are missing%s",
			deaths, deaths > 1 ? "s" : "", FORWARDER_BYTES,
			deaths > 1 ? " each time" : "");
	}
}

static void end_job(struct launcher *l)
{
	struct message message = {.kind = MESSAGE_EXITED, .pid = l->job, .status = l->status};
	struct rusage usage = {0};
	recording_send_patiently(&l->recording, &message, SEND_TIMEOUT_MS);
	recording_wait(&l->recording, MESSAGE_LAST_READ, LAST_READ_TIMEOUT_MS);
	if (l->options.pid > 0) {
		message.user_us = message.system_us = message.max_rss_bytes = message.faults =
			UINT64_MAX; // unknown
	} else {
		wait4(l->job, &l->status, 0, &usage);
		usage_fill(&message, &usage);
	}
	l->job = 0;
	l->ended = false;
	reap(l);
	drain_output(l);
	say_lost_output(l);
	message.kind = MESSAGE_END;
	message.status = l->status;
	message.at_ns = l->end_ns;
	recording_send_patiently(&l->recording, &message, SEND_TIMEOUT_MS);
}

static void close_for_recorder(struct launcher *l)
{
	struct recording *r = &l->recording;
	struct error e = {0};
	char death[128], at[32];
	recording_describe_death(r, death, sizeof(death));
	text_seconds(at, sizeof(at), (double)(r->dead_ns - r->start_ns) / 1e9);
	say("%s; the recording stops at %s", death, at);
	if (recording_close_file(r, l->end_ns, l->status, &e) < 0) {
		say("cannot close %s: %s", l->path, e.text);
	}
}

// strain finish, waiting on its standard input.
static void start_finisher(struct launcher *l)
{
	_cleanup_free_ char *strain = part_find("strain", X_OK, NULL);
	int go[2];
	if (!strain || pipe2(go, O_CLOEXEC) < 0) {
		return;
	}
	l->finisher = fork();
	if (l->finisher == 0) {
		char name[] = "strain", command[] = "finish", wait[] = "--wait";
		char *arguments[] = {name, command, wait, l->path, NULL};
		signals_restore(&l->signals);
		dup2(go[0], STDIN_FILENO);
		dup2(STDERR_FILENO, STDOUT_FILENO); // standard output is the job's alone
		fcntl(STDERR_FILENO, F_SETFD, 0); // also our /dev/null: a file must not become 2
		execv(strain, arguments);
		_exit(1);
	}
	close(go[0]);
	if (l->finisher < 0) {
		l->finisher = 0;
		close(go[1]);
	} else {
		l->finisher_go = go[1];
	}
}

// ---- what the job left running

static pid_t read_parent(int proc, const char *pid, char *name, size_t size)
{
	char path[32], stat[512];
	snprintf(path, sizeof(path), "%.16s/stat", pid);
	_cleanup_close_ int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, stat, sizeof(stat) - 1);
	stat[length > 0 ? length : 0] = '\0';
	char *open = strchr(stat, '('), *close = strrchr(stat, ')');
	int64_t parent;
	if (!open || !close || close < open || strlen(close) < 4 || close[2] == 'Z') {
		return 0;
	}
	struct cursor c = cursor_of(close + 3, strlen(close + 3));
	snprintf(name, size, "%.*s", (int)(close - open - 1), open + 1);
	return cursor_i64(&c, &parent) ? (pid_t)parent : 0;
}

// What lost its parent became our child: each is the head of what is left. Returns how many.
static unsigned find_left(const struct launcher *l, struct text *names)
{
	DIR *proc = opendir("/proc");
	unsigned n = 0;
	for (struct dirent *entry; proc && (entry = readdir(proc));) {
		int64_t pid;
		char name[64];
		if (parse_integer(entry->d_name, 1, INT_MAX, &pid, NULL) < 0 ||
			read_parent(dirfd(proc), entry->d_name, name, sizeof(name)) != getpid() ||
			is_ours(l, (pid_t)pid)) {
			continue;
		}
		if (n++ < LEFT_NAMED) {
			text_format(names, "%s%s (%d)", n > 1 ? ", " : "", name, (int)pid);
		}
	}
	if (proc) {
		closedir(proc);
	}
	if (n > LEFT_NAMED) {
		text_format(names, " and %u more", n - LEFT_NAMED);
	}
	return n;
}

static bool names_left(const struct launcher *l)
{
	return l->options.pid == 0 && !l->options.supervised; // a sweep ends it
}

// Looks again where something was left before the file was closed: it may have ended since. What
// was empty then has stayed so, for everything that the job left is below a child of ours.
static void name_left(struct launcher *l)
{
	_cleanup_text_ struct text names = {0};
	if (l->left_nothing) {
		return;
	}
	if (find_left(l, &names) > 0 && !names.failed) {
		say("the job left running: %s", names.data);
	}
}

// ---- the end of the file

// Whether the file is closed.
static bool finish_recording(struct launcher *l)
{
	struct recording *r = &l->recording;
	enum waited waited = wait_until(l, recorder_measures_no_more, DONE_NOTICE_MS);
	if (waited == WAITED_DONE && !l->options.no_verdict) {
		start_finisher(l); // its start takes as long as a short run's file to be closed
	}
	if (waited == WAITED_DONE && names_left(l)) {
		_cleanup_text_ struct text names = {0};
		l->left_nothing = find_left(l, &names) == 0; // while there is time
	}
	if (waited == WAITED_DONE) {
		waited = wait_until(l, recorder_has_answered, DONE_NOTICE_MS);
	}
	if (waited == WAITED_TIME) {
		say("writing the end of %s (Ctrl-C: not to wait)", l->path);
		waited = wait_until(l, recorder_has_answered, DONE_TIMEOUT_MS - DONE_NOTICE_MS);
	}
	if (waited != WAITED_DONE) {
		say("not waiting for the recorder, which still writes %s", l->path);
		return false;
	}
	// Also where a signal ended the wait, the recorder may have been reaped in it.
	if (wait_until(l, recorder_is_gone, RECORDER_EXIT_MS) != WAITED_DONE && r->dead &&
		r->pid > 0) {
		kill(r->pid, SIGKILL); // it hung up without ending
		wait_until(l, recorder_is_gone, RECORDER_EXIT_MS);
	}
	if (r->dead) {
		close_for_recorder(l);
	}
	return true;
}

// ---- the verdict

// The file is closed.
static void let_finisher_go(struct launcher *l)
{
	if (l->finisher_go >= 0) {
		(void)!write(l->finisher_go, "", 1); // one that was killed is reaped as any
	}
}

static void wait_for_verdict(struct launcher *l)
{
	if (l->finisher_go >= 0) {
		close(l->finisher_go); // where nothing was closed, it ends
		l->finisher_go = -1;
	}
	if (wait_until(l, finisher_is_gone, -1) != WAITED_DONE && l->finisher > 0) {
		kill(l->finisher, SIGTERM);
		waitpid(l->finisher, NULL, 0);
	}
}

void finish_run(struct launcher *l)
{
	end_job(l);
	bool closed = l->path && finish_recording(l);
	signals_close(&l->signals);
	reap(l);
	if (names_left(l)) {
		name_left(l);
	}
	if (closed) {
		let_finisher_go(l);
	}
	remove_cgroup(l); // takes its time, too
	remove_markers(l);
	wait_for_verdict(l);
}
