// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Finds users other than root and the effective user who could change the target of a path: owners
// of the file and of the folders and links on the way to it, groups with write permission,
// everyone. It uses modes and owners only: permissions of an ACL appear as the group mode.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

enum { TRUST_MOST = 16 };

struct trust {
	uid_t owners[TRUST_MOST]; // neither root nor the effective user
	size_t n_owners;
	gid_t groups[TRUST_MOST]; // that may write
	size_t n_groups;
	bool everyone; // another user can replace the target
	bool in_public; // another user can once it is removed: a folder on the path is like /tmp
};

// Checks the file and each folder and link on the path, starting at the root. Returns -errno if the
// path cannot be followed.
int trust_of(const char *path, struct trust *ret, struct error *e);

// Whether everyone who could change `one` could also change `other`.
bool trust_within(const struct trust *one, const struct trust *other);

// Whether a part of an installation, located relative to the running program, can be trusted: only
// users who could change the program can change it. lasting: the path outlives this process, in a
// job's environment; it must then not be below a folder like /tmp either. Returns 0, or -EPERM with
// "PATH: ...".
int trust_part(const char *path, bool lasting, struct error *e);

// Whether only root and the effective user own anything on the path, and nobody else can replace
// its target: such a user could put a link there. Group write permission is accepted on the user's
// own folders, not on root's. Returns 0, or -EPERM with "PATH: ...".
int trust_way(const char *path, struct error *e);

// Whether an open file or folder belongs to the effective user and only that user can write it, so
// that its content can be trusted. Returns 0; -EPERM, naming the owner or the permitted writers and
// the remedy; or -errno. path: for the message.
int trust_own(int fd, const char *path, struct error *e);
