// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What of strain enters the job: the hooks for Python (hooks/python) and the library that takes
// NVTX's ranges (hooks/nvtx), by paths in its environment. An environment lives longer than a run,
// and is carried to other machines; so such a path is never one that somebody else can take, now or
// once it is gone: the installed part, else a copy in the user's cache folder, else nothing.

#pragma once

#include <stdbool.h>

#include "base/error.h"

#define NVTX_VARIABLE "NVTX_INJECTION64_PATH"

// The folder that belongs before the job's PYTHONPATH. *ret is owned by the caller. command: the
// job's, ends with NULL; of a container's, which sees the user's home more often than the
// installation, the copy is meant; NULL: of no job. -errno, with the reason, where there is none.
int injection_hooks(char *const *command, char **ret, struct error *e);
// The library, for NVTX_VARIABLE, likewise. -EEXIST: the variable names another tool's already,
// which is left in peace.
int injection_nvtx(char *const *command, char **ret, struct error *e);

// Sets the job's environment, in its process; NULL: none. What a run around this one has set goes:
// these are not its marks.
//   markers  STRAIN_MARKERS
//   hooks    the first of PYTHONPATH, and STRAIN_HOOKS, by which a run within finds it there
//   nvtx     NVTX_VARIABLE
//   lines    STRAIN_LINES, by which the hooks look at lines
void injection_enter(const char *markers, const char *hooks, const char *nvtx, bool lines);
