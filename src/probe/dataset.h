// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The files that a job reads its data from, as far as they can be learnt from outside: what it
// opened, without programs and settings, and in folders of which it opened several files of a kind,
// all of that kind. Their share in the page cache, and both ways to change it.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

// More files than this are left out, and `too_many` says so.
#define DATASET_FILES_MAX 4000000u

struct dataset {
	char **paths; // absolute, sorted once dataset_settle was called; each file once
	size_t n;
	size_t capacity;
	uint64_t bytes; // of all files, as dataset_settle found them
	bool too_many;
};

// Notes a file that the job opened for reading; what is no data is passed over (a program, a
// library, a settings file of the system, what is no regular file, an empty one). Hostile: any
// bytes. 0 or -ENOMEM.
int dataset_note(struct dataset *d, const char *path);
// The regular files that a process has open for reading only. 0 (also where it may not be looked
// into) or -ENOMEM.
int dataset_note_process(struct dataset *d, pid_t pid);
// Reads lists of paths, each ended by NUL, as processes of the job left them in the files of a
// folder. 0 or -errno.
int dataset_note_lists(struct dataset *d, const char *folder, struct error *e);
// When everything was noted: adds the other files of their folders, and measures.
int dataset_settle(struct dataset *d, struct error *e);
void dataset_done(struct dataset *d);

// The share of the dataset that is in the page cache, from at most a thousand of its files; NAN
// where there is none, or it cannot be known.
double dataset_cached(const struct dataset *d);
// Into the page cache. -ENOSPC where there is less memory than the files have bytes (room_bytes:
// what may be taken). `goes_on` is asked before each file; false ends it with -EINTR.
int dataset_warm(const struct dataset *d, uint64_t room_bytes, bool (*goes_on)(void *context),
	void *context, struct error *e);
// Out of the page cache, after what is dirty has been written. 0 or -errno.
int dataset_cool(const struct dataset *d, struct error *e);

// Page cache --------------------------------------------------------------------------------------
//
// How much of files is in the page cache, putting them in and dropping them: without privilege, for
// files that may be read.

// Reads the whole file, so that it is in the cache where there is room. 0, or -errno.
int dataset_fill_page_cache(int fd);
