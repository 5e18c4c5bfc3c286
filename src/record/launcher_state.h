// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A run, as the launcher's files share it: start.c before the job runs, launcher.c while it does,
// finish.c when it has ended, attach.c in place of the first two with --pid.

#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "record/child.h"
#include "record/descriptors.h"
#include "record/forwarding.h"
#include "record/job/cgroup.h"
#include "record/marker_directory.h"
#include "record/options.h"
#include "record/recording.h"
#include "record/signals.h"

enum { SEND_TIMEOUT_MS = 300 };

struct launcher {
	struct run_options options; // with `force` where the file is reserved
	struct descriptors inherited;
	struct signals signals;
	struct forwarding forwarding;
	struct job_cgroup cgroup;
	bool has_cgroup;
	struct error cgroup_error; // why there is none
	struct limits limits; // of the job
	struct marker_directory markers;
	struct error markers_error; // why there is none
	char *nvtx; // the library that takes NVTX's ranges; owned; NULL: none
	struct error nvtx_error; // why there is none
	char *hooks; // what comes first in the job's PYTHONPATH; owned; NULL: nothing
	struct error hooks_error; // why nothing does
	struct child child;
	struct recording recording;
	char *path; // of the run file; owned; NULL: nothing is recorded
	struct beneath_file
		reserved; // the file that was there, empty, before the recorder; or none
	pid_t job; // 0 before it runs and after it was reaped
	bool ended; // it is a zombie still
	int status; // as waitpid gives it; -1 for unknown
	uint64_t end_ns; // CLOCK_MONOTONIC
	int interrupted; // by a signal that came before the job ran
	bool left_nothing; // the job, when the file began to be closed
	pid_t finisher; // strain finish; 0: none
	int finisher_go; // one byte starts it; closed without one, it ends; -1: none
};

// start.c. 0 when the job runs; else the exit status, and everything is taken back.
int start_job(struct launcher *l);
// Chooses the file, starts the recorder, waits until it is ready. -errno, with a text, where the
// run must not go on: -o cannot be written, or a signal came. Where nothing can be recorded
// otherwise, it says so, path is NULL, and the answer is 0.
int start_recording(struct launcher *l, struct error *e);
// Ends the recorder, which never saw the job, and removes its file.
void drop_recording(struct launcher *l);
void remove_cgroup(struct launcher *l);
void remove_markers(struct launcher *l);

// launcher.c
void reap(struct launcher *l); // what has ended, but not the job
bool is_ours(const struct launcher *l, pid_t pid); // a helper of ours, that lives
bool is_fatal(const struct signalfd_siginfo *info); // HUP, INT, QUIT, TERM
// Takes the signals where none is for the job, which has ended or is not ours (--pid): reaps, stops
// with Ctrl-Z. False where the person at the terminal, or a system that goes down, wants us to end.
bool take_own_signals(struct launcher *l);

// attach.c: records a process that runs already, to its end. 0, or the exit status of a failure.
int attach(struct launcher *l);

// finish.c: reaps the job, passes its last output on, has the file closed, names what was left
// running, and starts `strain finish`.
void finish_run(struct launcher *l);
