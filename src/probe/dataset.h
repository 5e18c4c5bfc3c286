// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The files from which a job reads its data, as far as they can be found from outside: the files
// that it opened, without programs and settings, and, in folders from which it opened several files
// of a kind, all files of that kind. Also their share in the page cache, and how to change it.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

// Limit on the number of files; `too_many` is set if there were more.
#define DATASET_FILES_MAX 4000000u

struct dataset {
	char **paths; // absolute; sorted and each file once, after dataset_settle
	size_t n;
	size_t capacity;
	uint64_t bytes; // total size of the files, set by dataset_settle
	bool too_many;
};

// Notes a file that the job opened for reading. Ignores files that are not data: a program, a
// library, a settings file of the system, an empty file, and anything but a regular file. `path`
// can have any bytes. Returns 0 or -ENOMEM.
int dataset_note(struct dataset *d, const char *path);
// Notes the regular files that a process has open for reading only. Returns 0 (also if the process
// cannot be inspected) or -ENOMEM.
int dataset_note_process(struct dataset *d, pid_t pid);
// Reads the lists of paths, each ended by NUL, that processes of the job left in the files of a
// folder. Returns 0 or -errno.
int dataset_note_lists(struct dataset *d, const char *folder, struct error *e);
// Finds the files that a job reads while a probe runs it: those that its processes have open, and
// those in the lists that hooks write (STRAIN_OPENED).
struct dataset_finder {
	struct dataset *dataset;
	char *folder; // of the lists
	char *setting; // "STRAIN_OPENED=FOLDER", for the environment of the job
	int fd; // of the folder; -1: none
};

// Makes a folder in `parent`, which the job must be able to reach. Returns 0 or -errno. Call
// dataset_find_done in any case.
int dataset_find_begin(
	const char *parent, struct dataset *dataset, struct dataset_finder *ret, struct error *e);
// For probe_config.look, with the finder as its context.
void dataset_find_look(void *finder, const pid_t *pids, size_t n);
// After the job: notes the lists and settles the dataset. Returns 0 or -errno.
int dataset_find_end(struct dataset_finder *f, struct error *e);
// Removes the folder.
void dataset_find_done(struct dataset_finder *f);

// Call after all files were noted: adds the other files of their folders, and sums up the sizes.
int dataset_settle(struct dataset *d, struct error *e);
void dataset_done(struct dataset *d);

// The share of the dataset in the page cache, from at most a thousand of its files; NAN: no files,
// or not known.
double dataset_cached(const struct dataset *d);
// Reads the dataset into the page cache. -ENOSPC: the files are larger than room_bytes, the memory
// that may be used. `goes_on` is called before each file; false stops with -EINTR.
int dataset_warm(const struct dataset *d, uint64_t room_bytes, bool (*goes_on)(void *context),
	void *context, struct error *e);
// Drops the dataset from the page cache, after dirty pages were written. Returns 0 or -errno.
int dataset_cool(const struct dataset *d, struct error *e);

// Page cache --------------------------------------------------------------------------------------
//
// Measures, fills and drops the page cache of files. This needs no privilege for files that the
// user may read.

// Reads the whole file, so that it is in the page cache if there is room. Returns 0 or -errno.
int dataset_fill_page_cache(int fd);
