// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Pressure (PSI) files, of the machine (proc/pressure/) and of v2 cgroups (cpu.pressure, ...).

#pragma once

#include <stdint.h>

#include "base/parse.h"
#include "record/host/keyed.h"

struct pressure {
	int64_t some_us; // total time that at least one task waited for the resource
	int64_t full_us; // that all tasks waited; KEYED_ABSENT where this kernel has no such line
};

// The whole text of a pressure file. 0 or -EBADMSG; *ret is then untouched.
int pressure_parse(struct cursor text, struct pressure *ret);

// Why the file could not be read (error as open or read gave it, positive), and what would help.
const char *pressure_reason(int error);
