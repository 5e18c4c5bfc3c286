// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What the catalogue knows of a run, as bytes: read from its file, kept in the index, looked at.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "analyze/catalogue.h"
#include "base/error.h"

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
bool file_identity_same(const struct file_identity *a, const struct file_identity *b);
// Whether what was read of a file since it was `before` is of it as it is now, and will be of any
// file that looks the same. Of a run that is recorded no more.
bool file_identity_is_lasting(const char *path, const struct file_identity *before);

struct catalogue_entry {
	void *data; // owned
	size_t length;
	struct file_identity file;
	bool lasting; // the file will not change by itself: nobody records it any more
};

#define CATALOGUE_ENTRY_MAX (1 << 20) // bytes
// What changes with the meaning of the bytes or of a measure. The index keeps entries of several.
uint32_t catalogue_entry_stamp(void);

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
