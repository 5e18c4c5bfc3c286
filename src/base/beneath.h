// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Files in folders to which other users can add links, mounts or replacements.

#pragma once

#include <sys/types.h>

// Opens a name directly in an open folder. It follows no link and enters no mount, because a dead
// FUSE server would block the caller. flags as for open(), with O_CLOEXEC added. Returns a
// descriptor, or -errno: -EXDEV for a mount, -ELOOP for a link. Before Linux 5.6, mounts are
// entered.
int beneath_open(int folder, const char *name, int flags);

// Removes the content of an open folder, except mounts, also of folders that their owner, this
// user, made unreadable or read-only. Files that another process adds meanwhile may remain, and so
// may files more than 16 folders deep.
void beneath_empty(int folder);

// Removes the empty folder at `path` if it is still the open one, and never another folder that now
// has the name. After the removal, later calls do nothing.
void beneath_remove(int folder, const char *path);

// The identity of a file. inode 0: none.
struct beneath_file {
	dev_t device;
	ino_t inode;
};

// Returns the identity of an open file.
struct beneath_file beneath_file_of(int fd);

// Removes the names made of `path` and each of `endings` ("" is the file itself; NULL ends the
// list) if `path` still names that file; otherwise does nothing. All names are removed in the one
// folder in which the file was found, so that a user who can exchange folders on the path cannot
// choose the files removed.
void beneath_unlink(const char *path, struct beneath_file file, const char *const *endings);
