// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The launcher's signals. It shares the shell's process group with the job, so that what the
// terminal sends reaches the job without us. What was sent to the launcher alone is passed on,
// once.
//
// Whether kill() meant the group or the launcher cannot be seen in the signal. A witness can tell:
// a process in the same group that blocks every signal, so that what reached the group stays
// pending with it until the launcher asks.

#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/signalfd.h>
#include <sys/types.h>

#include "base/error.h"

struct signals {
	int fd; // signalfd, non-blocking
	sigset_t original_mask;
	struct sigaction original_child; // SIGCHLD
	struct sigaction original_pipe; // SIGPIPE
	bool pass; // false under Slurm, which signals every process itself
	pid_t witness; // 0: none yet
	int question; // to the witness; -1: none
	pid_t guard; // the last one: its SIGCONT is not for the job
	unsigned group[NSIG]; // how often each reached the group, as the witness told, without
	                      // those that the launcher has taken
	bool asked; // since the launcher had no signal left
};

// Blocks the signals and opens the descriptor. supervised: what signals the launcher does not
// signal the job, whoever else would (Slurm).
int signals_open(struct signals *s, bool supervised, struct error *e);
// In a child of the launcher, before exec: dispositions and mask as strain found them.
// Async-signal-safe.
void signals_restore(const struct signals *s);

// Starts the witness; to be called after the job's child was forked. Without one, every signal that
// is not the terminal's is passed on.
void signals_watch(struct signals *s);
// Takes the next signal. False where none is pending.
bool signals_take(struct signals *s, struct signalfd_siginfo *ret);
// Passes it on to the job, unless the job has it already.
void signals_pass(struct signals *s, const struct signalfd_siginfo *info, pid_t job);
// The job has stopped: stops the launcher too, so that the shell sees it, until somebody continues
// one of the two.
void signals_stop_with(struct signals *s, pid_t job);
// Ends the witness.
void signals_close(struct signals *s);

// Ends this process by the signal that the job died of, without a core dump of ours.
// Returns only where that was not possible.
void signals_die_of(int signal_number);
