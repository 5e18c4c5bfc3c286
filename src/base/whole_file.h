// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Files written as a whole: atomic replacement, and writing all bytes to a descriptor.

#pragma once

#include <stddef.h>

#include "base/error.h"

// Writes a temporary file beside `path` and renames it, with mode 0600 less umask. A link is
// replaced and its target left unchanged: in a folder where others can create names, the link may
// be theirs. Anything but a regular file (a FIFO, /dev/null), and a descriptor (/dev/stdout), is
// written to directly. Returns -errno with "cannot write PATH: ..."; the old file is then
// unchanged.
int whole_file_write(const char *path, const void *data, size_t length, struct error *e);

// Writes all bytes, in several calls if necessary. Returns 0 or -errno.
int whole_file_write_to(int fd, const void *data, size_t length);
