// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A file written whole or not at all.

#pragma once

#include <stddef.h>

#include "base/error.h"

// Writes beside the path and takes its place, with mode 0600 less umask. A link is replaced,
// and what it led to stays as it was: in a folder where others can make names the link may be
// theirs. What is no regular file (a FIFO, /dev/null), or a descriptor (/dev/stdout), is written to
// as it is. -errno, "cannot write PATH: ..."; then the path is as before.
int whole_file_write(const char *path, const void *data, size_t length, struct error *e);
