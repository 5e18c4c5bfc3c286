// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The directory of a run's rings of marks: in memory (/dev/shm) where there is room, else in /tmp.

#pragma once

#include "base/error.h"

// Makes it, for this user alone. *ret is owned by the caller. -errno, with the reason why there is
// none.
int marker_directory_make(char **ret, struct error *e);
// Removes it with all it holds; one that is gone already is fine.
void marker_directory_remove(const char *path);
