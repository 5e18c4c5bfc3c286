// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The user's folder for data that can be recreated: $XDG_CACHE_HOME/strain, else ~/.cache/strain.

#pragma once

#include "base/error.h"

// Returns the path, owned by the caller, and creates the folder with mode 0700 if necessary.
// Returns NULL and sets e if HOME is not set, if others can write the folder, or if it belongs to
// another user (sudo may keep HOME, and the owner could not replace files that root leaves there).
char *cache_folder(struct error *e);
