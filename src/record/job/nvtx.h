// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The library by which the job's NVTX ranges come to be marks (hooks/nvtx).

#pragma once

#include "base/error.h"

#define NVTX_VARIABLE "NVTX_INJECTION64_PATH"

// Its path, for NVTX_VARIABLE of the job. *ret is owned by the caller. -errno, with the reason:
// the variable has another tool already, which is left in peace; there is no such part.
int nvtx_find(char **ret, struct error *e);
