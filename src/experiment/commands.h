// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Whether the commands of a sweep's trials exist.

#pragma once

#include "base/error.h"

struct sweep;

// Looks up the commands of the trials that are still to run, with the PATH that each will have. 0;
// -ENOENT, -EACCES, ... with the first that cannot be executed, and how many trials need it.
int commands_check(const struct sweep *sweep, struct error *e);
