// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The user's folder for data that can be recreated: $XDG_CACHE_HOME/strain, else ~/.cache/strain.

#pragma once

#include "base/error.h"

// Its path, owned by the caller; made (mode 0700) where it is not there. NULL, with the reason,
// where there is none: HOME is not set, the folder belongs to another user (a home that sudo kept:
// what root leaves there its owner could not replace), or others can write it.
char *cache_folder(struct error *e);
