// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The launcher while the job runs: it passes signals on, reaps, and listens to nobody else.

#include "record/launcher.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "record/job/exit_status.h"
#include "record/launcher_state.h"
#include "record/usage.h"

enum { DEATHS_TOLD = 8 }; // an event each; the rest are only counted

bool is_fatal(const struct signalfd_siginfo *info)
{
	int signal_number = (int)info->ssi_signo;
	return signal_number == SIGINT || signal_number == SIGQUIT || signal_number == SIGTERM ||
	       signal_number == SIGHUP;
}

bool is_ours(const struct launcher *l, pid_t pid)
{
	return pid == l->recording.pid || pid == l->signals.witness || pid == l->finisher ||
	       forwarding_owns(&l->forwarding, pid);
}

static void forwarder_ended(struct launcher *l, pid_t pid, int status)
{
	if (forwarding_reaped(&l->forwarding, pid, status) &&
		forwarding_deaths(&l->forwarding) <= DEATHS_TOLD) {
		char how[64], text[192];
		exit_status_describe(status, how, sizeof(how));
		snprintf(text, sizeof(text),
			"what passes the job's output on %s; another one does now, but up to %d "
			"bytes of output are lost",
			how, FORWARDER_BYTES);
		recording_say(&l->recording, "forwarder_died", text);
	}
}

static void reap_other(struct launcher *l, pid_t pid)
{
	struct message message = {.kind = MESSAGE_ORPHAN, .pid = pid};
	struct rusage usage;
	int status;
	if (wait4(pid, &status, WNOHANG, &usage) != pid) {
		return;
	}
	if (pid == l->recording.pid) {
		recording_reaped(&l->recording, status);
	} else if (pid == l->signals.witness) {
		l->signals.witness = 0;
	} else if (pid == l->finisher) {
		l->finisher = 0;
	} else if (forwarding_owns(&l->forwarding, pid)) {
		forwarder_ended(l, pid, status);
	} else {
		message.status = status;
		usage_fill(&message, &usage);
		recording_send(&l->recording, &message);
	}
}

void reap(struct launcher *l)
{
	while (!l->ended) {
		siginfo_t info = {0};
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0) {
			return;
		}
		if (info.si_pid != l->job) {
			reap_other(l, info.si_pid);
			continue;
		}
		l->ended = true;
		l->end_ns = clock_monotonic_ns();
		l->status = info.si_code == CLD_EXITED   ? W_EXITCODE(info.si_status, 0)
		            : info.si_code == CLD_DUMPED ? info.si_status | WCOREFLAG
		                                         : info.si_status;
	}
}

bool take_own_signals(struct launcher *l)
{
	struct signalfd_siginfo info;
	bool patient = true;
	while (signals_take(&l->signals, &info)) {
		if (info.ssi_signo == SIGCHLD) {
			reap(l);
		} else if (info.ssi_signo == SIGTSTP) {
			kill(getpid(), SIGSTOP);
		}
		patient = patient && !is_fatal(&info);
	}
	return patient;
}

static void follow_stop(struct launcher *l)
{
	siginfo_t info = {0};
	if (!l->ended && waitid(P_PID, (id_t)l->job, &info, WSTOPPED | WNOHANG) == 0 &&
		info.si_pid == l->job) {
		signals_stop_with(&l->signals, l->job);
	}
}

static void handle_signals(struct launcher *l)
{
	struct signalfd_siginfo info;
	while (signals_take(&l->signals, &info)) {
		if (info.ssi_signo == SIGCHLD) {
			reap(l);
			follow_stop(l);
			continue;
		}
		signals_pass(&l->signals, &info, l->ended ? 0 : l->job);
	}
}

static void watch(struct launcher *l)
{
	reap(l); // a signal may be older than its descriptor
	while (!l->ended) {
		struct pollfd fds[] = {{.fd = l->signals.fd, .events = POLLIN},
			{.fd = l->recording.socket, .events = POLLIN}};
		poll(fds, ARRAY_LENGTH(fds), forwarding_tend(&l->forwarding));
		recording_hear(&l->recording);
		handle_signals(l);
	}
}

// The job's exit status is ours; what it died of, we die of.
static int job_status(const struct launcher *l)
{
	if (l->status >= 0 && WIFSIGNALED(l->status)) {
		signals_die_of(WTERMSIG(l->status));
		return 128 + WTERMSIG(l->status);
	}
	return WEXITSTATUS(l->status);
}

int launcher_run(const struct run_options *options)
{
	struct launcher l = {
		.options = *options,
		.forwarding = FORWARDING_NONE,
		.child = CHILD_NONE,
		.recording = RECORDING_NONE,
		.markers = MARKER_DIRECTORY_NONE,
		.finisher_go = -1,
	};
	descriptors_inherit(&l.inherited);
	int status = options->pid > 0 ? attach(&l) : start_job(&l);
	if (status == 0) {
		if (options->pid == 0) {
			watch(&l);
		}
		finish_run(&l);
		status = options->pid > 0 ? 0 : job_status(&l);
	}
	free(l.path);
	limits_done(&l.limits);
	descriptors_release(&l.inherited);
	return status;
}
