// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The files that SQLite keeps beside a database and finds by their names: PATH-wal, PATH-shm,
// PATH-journal. In a folder where others can make names one of them may be somebody else's: what is
// written would be theirs to read, and what they wrote would be played back.

#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "base/error.h"

#define BESIDE_N 3
extern const char *const beside_suffixes[BESIDE_N]; // -wal, -shm, -journal

// Whether what is beside the file `path`, which has this status, is its owner's alone: regular
// files, each with one name. 0; -EPERM "PATH-wal: belongs to user 7, not to 5 as the run does";
// -EPROTO: a shared journal (below); -errno.
int beside_check(const char *path, const struct stat *file, struct error *e);

// The same, and that what is there is what this process has open: SQLite found no other file by the
// name. Call it when SQLite has opened what it needs.
int beside_check_open(const char *path, const struct stat *file, struct error *e);

// Whether a descriptor of this process besides `but` (-1: none) leads to this very file.
bool beside_is_open(const struct stat *file, int but);

// Makes the file's journal, empty, before SQLite would, so that nobody else does. 0, also where it
// is there and the owner's; else as beside_check.
int beside_claim_journal(const char *path, const struct stat *file, struct error *e);
// Removes a journal that is empty and the effective user's.
void beside_release_journal(const char *path);

// Whether a journal says that it belongs to a transaction of several databases: SQLite would remove
// the file that it names. No run has one.
bool beside_is_shared_journal(int fd);
