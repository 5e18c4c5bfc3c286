// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Folders in which somebody else makes what is there: links, mounts, whatever takes the place of
// what was removed.

#pragma once

// Opens a name in an open folder, one step down: no link is followed, no mount entered (a dead
// FUSE server would hold whoever asks it). flags as for open(), with O_CLOEXEC added. A descriptor,
// or -errno: -EXDEV for a mount, -ELOOP for a link. Before Linux 5.6 mounts are entered.
int beneath_open(int folder, const char *name, int flags);

// Removes all that is in an open folder, and no mount. What another process puts there meanwhile
// may stay, and so may what lies more than 16 folders deep.
void beneath_empty(int folder);

// Removes the empty folder that `path` names, if it is still the open one. Nothing else that may
// have that name by now is touched. Once it is removed, later calls do nothing.
void beneath_remove(int folder, const char *path);
