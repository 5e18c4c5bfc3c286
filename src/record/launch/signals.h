// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The launcher's signals. It is in the same process group as the job, so signals from the terminal
// reach the job directly. A signal sent only to the launcher is passed on, once.
//
// A signal does not show whether kill() was sent to the group or to the launcher alone. A witness
// process finds out: it is in the same group and blocks all signals, so that a signal to the group
// stays pending in the witness until the launcher asks. Slurm signals either every process of a
// step, one by one (proctrack/linuxproc), of which the witness is one, or the launcher alone, as
// the step's task (proctrack/cgroup): the witness tells these apart, too.

#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/signalfd.h>
#include <sys/types.h>

#include "base/error.h"

struct signals {
	int fd; // signalfd, non-blocking
	sigset_t original_mask;
	struct sigaction original_child; // SIGCHLD
	struct sigaction original_pipe; // SIGPIPE
	unsigned patience_ms; // until a signal that the witness does not have was not the group's
	pid_t witness; // 0: none yet
	int question; // socket to the witness; -1: none
	pid_t guard; // the last one: its SIGCONT is not meant for the job
	unsigned group[NSIG]; // how often each signal reached the group according to the witness,
	                      // less those that the launcher has taken
	bool asked; // since the launcher last had no signal pending
	uint64_t asked_ns; // when it was asked last
};

// Blocks the signals and opens the descriptor.
int signals_open(struct signals *s, struct error *e);
// Restores strain's original dispositions and mask in a child of the launcher, before exec.
// Async-signal-safe.
void signals_restore(const struct signals *s);

// Starts the witness; call it after forking the job's child. Without a witness, every signal that
// is not the terminal's is passed on.
void signals_watch(struct signals *s);
// Takes the next signal. Returns false if none is pending.
bool signals_take(struct signals *s, struct signalfd_siginfo *ret);
// Passes the signal on to the job, unless the job already has it.
void signals_pass(struct signals *s, const struct signalfd_siginfo *info, pid_t job);
// After the job stopped: stops the launcher too, so that the shell notices, until one of the two is
// continued.
void signals_stop_with(struct signals *s, pid_t job);
// Ends the witness.
void signals_close(struct signals *s);

// Ends this process by the signal that ended the job, without writing a second core dump. Returns
// only if that failed.
void signals_die_of(int signal_number);
