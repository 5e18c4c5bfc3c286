// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Files in folders to which other users can add links, mounts or replacements.

#pragma once

#include <sys/types.h>

// Opens a name in an open folder, one step down: no link is followed, no mount entered (a dead
// FUSE server would hold whoever asks it). flags as for open(), with O_CLOEXEC added. A descriptor,
// or -errno: -EXDEV for a mount, -ELOOP for a link. Before Linux 5.6 mounts are entered.
int beneath_open(int folder, const char *name, int flags);

// Removes all that is in an open folder, and no mount. What another process puts there meanwhile
// may stay, and so may what lies more than 16 folders deep.
void beneath_empty(int folder);

// Removes the empty folder that `path` names, if it is still the open one. Nothing else that may
// have that name by now is touched. Once it is removed, later calls do nothing.
void beneath_remove(int folder, const char *path);

// Which file a name stood for. ino 0: none.
struct beneath_file {
	dev_t device;
	ino_t inode;
};

// Of an open file.
struct beneath_file beneath_file_of(int fd);

// Removes a file's names that begin with `path` and end with each of these endings ("" is the file
// itself), NULL after the last, if `path` still stands for that file, in the one folder in which it
// does: whoever can exchange folders on the way does not choose what goes. Else does nothing.
void beneath_unlink(const char *path, struct beneath_file file, const char *const *endings);
