// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Many runs: finding their files, and reading the digest of each.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "study/digest.h"

struct prices;

struct catalogue {
	struct digest *runs; // [n], the newest start first
	size_t n;
	char **unreadable; // [n_unreadable] lines "PATH: why": files that should be runs
	size_t n_unreadable;
	// [n_notices] lines "PATH: what is lost", of damaged runs, and of answers of `strain
	// advise` that cannot be read
	char **notices;
	size_t n_notices;
};

struct catalogue_options {
	bool job_only; // only measures of the job as a whole: less to compute for older files
	bool advice; // also the runs in folders of `strain advise` inside of directories
	const struct prices
		*prices; // of the measures with prices; outlives the catalogue; NULL: none
	size_t most_read; // read at most so many files, the last written ones; 0: all
	// Called now and then by the caller's thread while runs are read. NULL: no progress.
	void (*progressed)(void *context, uint64_t done, uint64_t total);
	void *context;
};

// Reads the runs at these paths: files; directories with their run files and the trials of sweep
// directories in them; sweep directories. A file that several paths name is read once. Errors: a
// path that does not exist, a directory that cannot be read, -ENOMEM. A file that cannot be read is
// in `unreadable`. Runs in a folder of `strain advise` have what its answer says (kept_advice.h).
int catalogue_read(char *const *paths, size_t n_paths, struct catalogue *ret, struct error *e);
int catalogue_read_with(char *const *paths, size_t n_paths, const struct catalogue_options *options,
	struct catalogue *ret, struct error *e);
void catalogue_done(struct catalogue *c);

// Whether a directory is a sweep's: it holds a plan and the lock or the runs of trials.
bool catalogue_is_sweep(const char *directory);

// Metric ------------------------------------------------------------------------------------------
//
// Figures of metrics beyond the measures, such as "strain.memory.pss:max", from the summaries in
// the run files.

struct catalogue_metric {
	double *numbers; // [n] NAN: missing
	const char **reasons; // [n] why it is missing; static
	char unit[48]; // UCUM; rates of counters are per second
};

// name: METRIC:AGGREGATE, of the job where it has that metric, else of the host, GPUs, disks,
// networks or the recorder. Of several entities: the sum of totals, the largest maximum, the mean
// of the others. Errors: an unknown aggregate, a metric that no run has, -ENOMEM.
int catalogue_metric_read(const struct digest *const *runs, size_t n, const char *name,
	struct catalogue_metric *ret, struct error *e);
void catalogue_metric_done(struct catalogue_metric *metric);
