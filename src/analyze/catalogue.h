// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Many runs, a row each: what lists, comparisons and pages of sweeps are made of. Reading a long
// run takes seconds, so what was found is kept in an index (catalogue_index.h); files have the last
// word.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/measures.h"
#include "analyze/outcome.h"
#include "analyze/overview.h"
#include "base/error.h"

// Strings come from runs, or from an index that anyone may have written: escape them. None is NULL
// but sweep_directory and the reasons of what is known.
struct catalogue_run {
	char *path; // as it was given, or below the directory that was
	char *name; // of the file, without ".strain"
	char *sweep_directory; // that it is a trial of; NULL: none
	size_t found_by; // which of the paths of the call; the first of several
	const char *host; // name of the machine
	const char *command;
	int64_t start_utc_ns; // 0: not known
	struct run_label *labels; // [n_labels], by name
	size_t n_labels;
	enum run_state state;
	bool damaged;
	const char *partial; // "recorded 12.0 s of 30.0 s: the disk was full"; "": all of it
	double recorded_s; // of the job's time; NAN: not known
	int exit_status; // -1 where unknown or killed
	int exit_signal; // 0 for none
	enum outcome outcome;
	const char *outcome_text; // a line; "" after a success
	const char *memory_kind; // which memory the measures of host memory mean: "PSS"
	bool job_only; // the other measures were not asked for
	double measures[N_MEASURES]; // NAN: missing
	const char *reasons[N_MEASURES]; // why one is missing; NULL where it is not
	const char *verdict; // a word, "input"; "" where job_only
	const char *headline; // a line; "" where job_only
	void *entry; // what holds the strings above
};

struct catalogue {
	struct catalogue_run *runs; // [n], the newest start first
	size_t n;
	char **unreadable; // [n_unreadable] lines "PATH: why": files that should be runs
	size_t n_unreadable;
	char **notices; // [n_notices] lines "PATH: what": what is lost of runs that are damaged
	size_t n_notices;
	size_t n_read; // runs that no index knew, or that are still recorded
};

struct catalogue_options {
	bool job_only; // only measures of the job as a whole: an index that is cold costs less
	size_t most_read; // runs that the index does not know; the others are left out. 0: all
	// Called now and then by the caller's thread while runs are read that the index does not
	// know. NULL: nobody wants to know.
	void (*progressed)(void *context, uint64_t done, uint64_t total);
	void *context;
};

// The runs at these paths: files; directories with what is in them, trials of sweep directories in
// them too; directories of sweeps. A file that comes twice is there once. Errors: a path that is
// not there, a directory that cannot be read, no memory.
int catalogue_read(char *const *paths, size_t n_paths, struct catalogue *ret, struct error *e);
int catalogue_read_with(char *const *paths, size_t n_paths, const struct catalogue_options *options,
	struct catalogue *ret, struct error *e);
void catalogue_done(struct catalogue *c);

// Value of a label, NULL where the run has none of that name. `machine` is the host's name where no
// label has that name. Lives as long as the run.
const char *catalogue_label(const struct catalogue_run *run, const char *name);

// run_newest (trace/index.h), which opens only those files whose start the index does not know.
int catalogue_newest(size_t back, char **ret_path, struct error *e);

// Whether a directory is a sweep's: it holds a plan and the lock or the runs of trials.
bool catalogue_is_sweep(const char *directory);
