// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A directory that a process can write without changing it: an overlay file system in a mount
// namespace of its own (mount_namespaces(7), Documentation/filesystems/overlayfs.rst of the
// kernel).

#pragma once

#include "base/error.h"

// The folders of an overlay in its scratch folder.
#define OVERLAY_UPPER "upper" // files that the process wrote
#define OVERLAY_WORK "work" // for the kernel, on the same file system

enum { OVERLAY_KEPT = 2 };

struct overlay {
	const char *directory; // without links; not "/"
	const char *scratch; // has the empty folders OVERLAY_UPPER and OVERLAY_WORK
	// Folders that remain writable, even below the directory; NULL: none.
	const char *kept[OVERLAY_KEPT];
};

// Moves the calling process, a single-threaded child between fork and exec, into a mount namespace
// in which the directory is an overlay, and makes the directory its working directory. Without the
// capability to mount, it also enters a user namespace that maps only its own user and group, which
// keep their numbers. File systems mounted below the directory remain writable. Returns 0, 1 in a
// user namespace, or -errno with the failed step; the process must then end.
int overlay_enter(const struct overlay *overlay, struct error *e);

// Appends the file systems mounted below the directory, which an overlay of it does not cover, as
// "A, B"; at most `size` bytes with the NUL. Returns their number, or -errno.
int overlay_mounts_below(const char *directory, char *buffer, size_t size);
