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
	bool everyone; // somebody else can put another thing in its place
	bool in_public; // somebody else can, once it is gone: a folder on the way is like /tmp
};

// Looks at each folder and link on the way, from the root on, and at the file. -errno: the path
// cannot be followed.
int trust_of(const char *path, struct trust *ret, struct error *e);

// Whether all who could change the one could change the other as well.
bool trust_within(const struct trust *one, const struct trust *other);

// Whether a part of an installation, found from the running program, is to be believed: nobody can
// change it who could not change the program. lasting: the path outlives this process, in a job's
// environment; then it may not be below a folder like /tmp either. 0, or -EPERM: "PATH: ...".
int trust_part(const char *path, bool lasting, struct error *e);

// Whether nobody but root and the effective user owns anything on the way, and nobody else can put
// another thing in its place: who can, could put a link there. Groups may write where that is the
// user's own matter, not root's. 0, or -EPERM: "PATH: ...".
int trust_way(const char *path, struct error *e);

// Whether an open file or folder belongs to the effective user and only he can write it: what it
// says may be obeyed. 0; -EPERM with who owns it, or who may write it, and what to do; -errno.
// path: for the text.
int trust_own(int fd, const char *path, struct error *e);
