// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Many runs, a row each, for lists, comparisons and pages of sweeps. Reading a long run takes
// seconds, so an index keeps the results; an entry counts only while its file is unchanged.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"
#include "run/measures.h"
#include "run/outcome.h"
#include "run/overview.h"

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

// index_newest_run (runfile/index.h), which opens only those files whose start the index does not
// know.
int catalogue_newest(size_t back, char **ret_path, struct error *e);

// Whether a directory is a sweep's: it holds a plan and the lock or the runs of trials.
bool catalogue_is_sweep(const char *directory);

// Catalogue entry ---------------------------------------------------------------------------------
//
// What the catalogue knows of a run, as bytes: read from its file, kept in the index, looked at.

// By which a file is known again. Whoever writes it moves its ctime, whatever tools set the mtime
// to.
struct file_identity {
	uint64_t device;
	uint64_t inode;
	int64_t size;
	int64_t mtime_ns;
	int64_t ctime_ns;
};

struct file_identity file_identity_of(const struct stat *status);

struct catalogue_entry {
	void *data; // owned
	size_t length;
	struct file_identity file;
	bool lasting; // the file will not change by itself: nobody records it any more
};

#define CATALOGUE_ENTRY_MAX (1 << 20) // bytes

// Reads a run. Errors as reader_open. Safe to call from several threads.
int catalogue_entry_read(
	const char *path, bool job_only, struct catalogue_entry *ret, struct error *e);

struct analysis;

// The same of a run that is analysed already, whose outcome is written into its file after that.
// What is left for the caller: `file` and `lasting`.
int catalogue_entry_make(const struct analysis *a, enum outcome outcome, const char *outcome_text,
	struct catalogue_entry *ret, struct error *e);
// Fills a run but what is of the place of its file: path, name, sweep_directory, found_by. It
// points into data, which must outlive it, and labels are its own. -EBADMSG: no entry of this
// version; -ENOMEM.
int catalogue_entry_decode(
	const void *data, size_t length, struct catalogue_run *ret, const char **ret_notice);

// Catalogue index ---------------------------------------------------------------------------------
//
// Where entries of the catalogue, and single figures of runs, are kept: an SQLite file in
// $XDG_CACHE_HOME/strain, else
// ~/.cache/strain. It may be deleted at any time and is never needed: where it cannot be read,
// nothing is found, where it cannot be written, nothing is kept. Several commands may use it at
// once. An entry counts only for the file that it was made of, and with a sum over its bytes.

struct catalogue_index;

// NULL where there can be none.
struct catalogue_index *catalogue_index_open(void);
// Keeps what was put. NULL is accepted.
void catalogue_index_close(struct catalogue_index *index);

// What somebody found out about a run, by a name of his own: "strain.memory.pss:max".
struct catalogue_figure {
	double value; // NAN: missing
	uint8_t reason; // why, by numbers of his own
	char unit[48];
};

// Of a file that is lasting: file_identity_is_lasting.
void catalogue_index_put_figure(struct catalogue_index *index, const struct file_identity *file,
	const char *name, const struct catalogue_figure *figure);

// Catalogue metric --------------------------------------------------------------------------------
//
// Figures of metrics beyond the measures: "strain.memory.pss:max", from the runs' summaries. A file
// is opened for those that the index does not know.

struct catalogue_metric {
	double *numbers; // [n] NAN: missing
	const char **reasons; // [n] why; they live for ever
	char unit[48]; // UCUM; rates of counters are per second
};

// name: METRIC:AGGREGATE, of the job where it has that metric, else of the host, of GPUs, disks,
// networks or the recorder: totals added up, the greatest maximum, else their mean. Errors: an
// aggregate that there is none of, a metric that no run has.
int catalogue_metric_read(const struct catalogue_run *const *runs, size_t n, const char *name,
	struct catalogue_metric *ret, struct error *e);
void catalogue_metric_done(struct catalogue_metric *metric);

// Catalogue keep ----------------------------------------------------------------------------------
//
// Runs that their own maker tells the index of, so that nobody has to read them again. Several at
// once: opening the index takes longer than what is kept in it.

struct catalogue_keep {
	struct catalogue_entry *items;
	size_t n;
	size_t capacity;
};

// Takes the entry of the run that is at `path` now and that nobody will write any more. Nothing of
// it is needed: what cannot be kept is read again.
void catalogue_keep_add(
	struct catalogue_keep *keep, struct catalogue_entry *entry, const char *path);
// Puts them into the index.
void catalogue_keep_flush(struct catalogue_keep *keep);
