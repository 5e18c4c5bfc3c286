// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The parts of strain that enter the job, by paths in its environment: the Python hooks
// (hooks/python) and the library that receives NVTX ranges (hooks/nvtx). An environment outlives a
// run and is copied to other machines. A path in it must therefore never be one that another user
// can take over, now or after it is removed. It is the installed part, else a copy in the user's
// cache folder, else none.

#pragma once

#include <stdbool.h>

#include "base/error.h"

#define NVTX_VARIABLE "NVTX_INJECTION64_PATH"

// Finds the folder to put first in the job's PYTHONPATH. *ret is owned by the caller. command: the
// job's, ends with NULL; NULL: no job. For a container the copy is preferred, because containers
// see the user's home more often than the installation. Returns -errno with the reason if there is
// none.
int injection_hooks(char *const *command, char **ret, struct error *e);
// The same for the library, for NVTX_VARIABLE. Returns -EEXIST if the variable already names
// another tool's library, which is kept.
int injection_nvtx(char *const *command, char **ret, struct error *e);

// Sets the environment in the job's process; NULL: none. Values set by an enclosing run are
// removed: its marks are not ours.
//   markers  STRAIN_MARKERS
//   hooks    first in PYTHONPATH, and STRAIN_HOOKS, by which a nested run finds it there
//   nvtx     NVTX_VARIABLE
//   lines    STRAIN_LINES, which makes the hooks count lines: "all" or "few"
void injection_enter(const char *markers, const char *hooks, const char *nvtx, const char *lines);
