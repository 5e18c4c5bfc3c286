// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A sweep's directory: plan.yaml (the plan as it was started), lock, and a run file for each trial
// that is complete: CCCC-R.strain, configuration and repeat. What a trial in progress has beside
// that, CCCC-R.running and CCCC-R.log, is removed when the sweep is opened again.
//
// The folder is the user's alone: what others own or can write is not obeyed. It is held by
// descriptor, and no link in it is followed to write.

#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "sweep/plan.h"
#include "sweep/trials.h"

#define SWEEP_RUN ".strain"
#define SWEEP_RUNNING ".running"
#define SWEEP_LOG ".log"
#define SWEEP_NEXT_PLAN "plan.yaml.next" // that the runs are being renumbered for
#define SWEEP_LEFT_OUT "left-out" // a folder for runs that a changed plan has no trial for

struct sweep_options {
	const char *plan; // a file, or the directory of a sweep
	const char *directory; // NULL: STEM.sweep here, or the one that `plan` is
	bool force; // go on with a changed plan
	bool look; // change nothing: the directory need not be there
	void (*say)(const char *text); // a line for people, now and then
};

struct sweep {
	char *directory;
	char *stem; // of the plan's name
	struct plan plan;
	struct trials trials;
	bool *done; // [trials.n], as trials.order: its run is there
	size_t n_done;
	int folder; // the directory; -1: it is not there
	int lock; // -1: none
	// What the processes of this sweep's trials carry, see still_running.h: the directory's own
	// device and inode, which no copy has, and a number of the sweep's. NULL: none is started.
	char *mark;
};

// Locks the directory, puts the plan into it where it has none, goes on with a change of the plan
// that was not done to its end, removes what is half done, and ends what still runs of a sweep that
// was killed. -EINVAL for a wrong plan, -ENOENT, -EACCES for a command that cannot be executed,
// -EBUSY where another process has it, -EEXIST for a directory of something else, -ESTALE where the
// plan was changed, -EPERM where others own or can write the directory or its plan, -ENOSPC, ...
// each with one line.
int sweep_open(const struct sweep_options *options, struct sweep *ret, struct error *e);
void sweep_close(struct sweep *sweep);
// DIRECTORY/0007-2SUFFIX; "0007-2" alone. Owned by the caller; NULL: out of memory.
char *sweep_path(const struct sweep *sweep, struct trial_place trial, const char *suffix);
char *sweep_trial_name(struct trial_place trial);
char *sweep_file_name(struct trial_place trial, const char *suffix);
// -ESTALE where the path of the directory leads to another one now.
int sweep_check_place(const struct sweep *sweep, struct error *e);
// Files of the directory. Makes one, which is not there yet; opens one to read, which is no link:
// descriptors, or -errno.
int sweep_create_file(const struct sweep *sweep, const char *name);
int sweep_open_file(const struct sweep *sweep, const char *name);
// Removes what a trial that did not end has left: its run file and SQLite's beside it, and its log.
void sweep_remove_trial(const struct sweep *sweep, struct trial_place trial);
