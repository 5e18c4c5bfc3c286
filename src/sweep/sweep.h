// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The directory of a sweep: plan.yaml (the plan at its start), a lock, and a run file for each
// complete trial, CCCC-R.strain (configuration and repeat). The further files of a trial in
// progress, CCCC-R.running and CCCC-R.log, are removed when the sweep is opened again.
//
// Only the user may have access to write: a folder or plan that others own or can write is refused.
// The folder is held by descriptor, and links in it are never followed for writing.

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
#define SWEEP_NEXT_PLAN "plan.yaml.next" // the plan for which runs are being renumbered
#define SWEEP_LEFT_OUT "left-out" // folder for runs without a trial in a changed plan

struct sweep_options {
	const char *plan; // a file, or the directory of a sweep
	// NULL: STEM.sweep in the current directory, or the one given as `plan`
	const char *directory;
	bool force; // continue with a changed plan
	bool look; // change nothing; the directory need not exist
	// Of a process that runs one trial of the sweep, which may be open elsewhere: its name,
	// "0007-2". Changes nothing but this trial's files. NULL: all trials.
	const char *part;
	void (*say)(const char *text); // called with a line for people from time to time
};

struct sweep {
	char *directory;
	char *stem; // of the plan's name
	struct plan plan;
	struct trials trials;
	bool *done; // [trials.n], by trials.order: its run exists
	size_t n_done;
	int folder; // the directory; -1: it does not exist
	int lock; // -1: none
	// Carried by the processes of this sweep's trials (still_running.h): the directory's device
	// and inode, which no copy has, and a number of the sweep's. NULL: none is started.
	char *mark;
};

// Opens a sweep. Locks the directory, writes the plan into it if there is none, completes an
// interrupted change of the plan, removes incomplete files, and ends processes left by a killed
// sweep. Under Slurm, incomplete trials may run elsewhere: their files are left. Errors, each with
// one line: -EINVAL for a wrong plan; -ENOENT, -EACCES for a command that cannot be executed;
// -EBUSY if another process holds the lock; -EEXIST if the directory is not a sweep's; -ESTALE if
// the plan was changed; -EPERM if others own or can write the directory or its plan; -ENOSPC, ...
int sweep_open(const struct sweep_options *options, struct sweep *ret, struct error *e);
void sweep_close(struct sweep *sweep);
// DIRECTORY/0007-2SUFFIX; "0007-2" alone. Owned by the caller; NULL: out of memory.
char *sweep_path(const struct sweep *sweep, struct trial_place trial, const char *suffix);
char *sweep_trial_name(struct trial_place trial);
char *sweep_file_name(struct trial_place trial, const char *suffix);
// -ESTALE: the path of the directory now leads to another one.
int sweep_check_place(const struct sweep *sweep, struct error *e);
// Files of the directory: creates one that must not exist; opens one for reading that must not be a
// link. Return a descriptor or -errno.
int sweep_create_file(const struct sweep *sweep, const char *name);
int sweep_open_file(const struct sweep *sweep, const char *name);
// Removes what an unfinished trial left: its run file with SQLite's files, and its log.
void sweep_remove_trial(const struct sweep *sweep, struct trial_place trial);
// The same without its log.
void sweep_remove_run(const struct sweep *sweep, struct trial_place trial);
// Makes sure that files which other machines have made in the folder are seen (NFS).
void sweep_refresh(const struct sweep *sweep);
// Seconds since the running trial's files were last written, by the clock of their file system;
// INFINITY: it has none. After sweep_refresh.
double sweep_silence(const struct sweep *sweep, struct trial_place trial);
// Whether the trial has its run.
bool sweep_is_complete(const struct sweep *sweep, struct trial_place trial);
// -ENOSPC: the disk would be full before the last trial, even with the smallest runs. A less
// certain lack of space is no error, since space may become free.
int sweep_check_space(const struct sweep *sweep, struct error *e);
