// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Locations of the parts of an installation: programs and files that belong to the running program.

#pragma once

#include "base/error.h"

// Returns the path of a part, owned by the caller; or NULL with the reason in e. Searches
// STRAIN_HOME, if set; otherwise the folder of the running program, ../lib/strain, and (from there)
// ../bin and ../../bin. A folder is skipped if a user who could not replace the program itself can
// write it. access_mode: the access required, as for access().
char *installation_find(const char *name, int access_mode, struct error *e);
