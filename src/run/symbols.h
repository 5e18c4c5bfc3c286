// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Names of the functions that samples of CPU time are in, from the symbol tables of the mapped
// files (elfutils' libelf).

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

// Looks up the addresses of a finished run and writes their names into it: once, on the machine and
// soon after the time of the run, for a file can be replaced. Files that are not regular, too
// large, damaged or gone give no names; all of it ends after two seconds. 0, or -errno where the
// run cannot be written.
int symbols_add(const char *path, struct error *e);

// Names of addresses in one file: offsets[n] ascend; ret_names[i] is NULL or allocated. 0, or
// -errno where it is no ELF file that can be read.
int symbols_of_file(const char *path, const int64_t *offsets, size_t n, char **ret_names);
