// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The hooks for Python, where the job finds them: beside its rings of marks, so that a container
// that sees the one sees the other.

#pragma once

#include "base/error.h"

// Copies them into a folder of the marker directory. *ret, owned by the caller, is what belongs
// before the job's PYTHONPATH. -errno, with the reason, where there is nothing to copy or no room.
int hooks_copy(const char *directory, char **ret, struct error *e);

// The environment of the job, in its process: the folder (NULL: none) comes before all else in
// PYTHONPATH; that of a run around this one goes.
void hooks_set_path(const char *folder);
