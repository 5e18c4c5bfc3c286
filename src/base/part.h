// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Where the parts of an installation are: programs and files that belong to the one that runs.

#pragma once

// The path of a part, owned by the caller; NULL where there is none. Looked for in STRAIN_HOME,
// else beside the running program, in ../lib/strain, and (from there) in ../../bin. access_mode: as
// for access(), what must be possible with it.
char *part_find(const char *name, int access_mode);
