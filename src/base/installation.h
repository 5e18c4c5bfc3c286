// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Locations of the parts of an installation: programs and files that belong to the running program.

#pragma once

#include "base/error.h"

// The path of a part, owned by the caller; NULL where there is none, and then e says why. Looked
// for in STRAIN_HOME, else beside the running program, in ../lib/strain, and (from there) in ../bin
// and
// ../../bin: but not in a folder that somebody can write who could not replace the program itself.
// access_mode: as for access(), what must be possible with it.
char *installation_find(const char *name, int access_mode, struct error *e);
