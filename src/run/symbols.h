// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Names the functions that contain samples of CPU time, from the symbol tables of the mapped files
// (elfutils' libelf).

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

// Looks up the sampled addresses of a finished run and writes their names into it. Run once, on the
// same machine and soon after the run, since a file can be replaced. Files that are not regular,
// too large, damaged or missing give no names. It ends after two seconds at the latest. Returns 0,
// or -errno if the run cannot be written.
int symbols_add(const char *path, struct error *e);

// The words of a C++ name that people need: "mul_kernel" for one of PyTorch's loops over elements,
// of which compilers make long names; else the function with its namespaces, of which the first are
// left out if it is long ("at::CPUGeneratorImpl::random64"). Names without such words stay as they
// are. What is longer than `size` bytes, at least 1, is cut. Reads the lengths of identifiers of
// the Itanium C++ ABI (section 5.1, mangling), not its types.
void symbols_shorten(const char *name, char *ret, size_t size);

// Names the addresses in one file. offsets[n] ascend; ret_names[i] is NULL or allocated. Returns 0,
// or -errno if it is not a readable ELF file.
int symbols_of_file(const char *path, const int64_t *offsets, size_t n, char **ret_names);
