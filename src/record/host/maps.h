// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Lines of /proc/PID/maps (proc(5)).

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/parse.h"

struct mapping {
	uint64_t from;
	uint64_t to;
	uint64_t offset; // in the file
	bool runs; // it may be executed
	struct cursor path; // empty: anonymous; "[stack]", "[vdso]"
};

// "0x1f", "1f"; false, and nothing moved, where there is no number or it passes 64 bits.
bool maps_take_hex(struct cursor *c, uint64_t *ret);
// False where the line is none of such a file.
bool maps_take_line(struct cursor line, struct mapping *ret);
