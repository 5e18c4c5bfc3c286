// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What makes repeats worth a second look before they are believed, as hyperfine warns of it:
// outliers, a first run that was slower than the rest, other programs on the machine.

#pragma once

#include <stddef.h>

#include "render/pivot.h"

struct compare_warnings {
	char **lines; // [n] printable
	size_t n;
};

// Of a request that is complete: runs that agree in its labels are repeats. 0, -ENOMEM.
int compare_warnings_find(const struct pivot_request *request, struct compare_warnings *ret);
void compare_warnings_done(struct compare_warnings *w);
