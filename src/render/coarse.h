// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A line in few bytes: so many columns of a run's time, a byte for the mean and one for the
// greatest value of each. web/src/sweep_run.ts reads it.

#pragma once

#include <stddef.h>

#include "base/text.h"
#include "render/buckets.h"

// Appends the columns of [0, seconds] as base64: n means, then n greatest values; 255 where nothing
// could be read, 254 is *ret_most. False, and nothing appended, where no value is above 0 or memory
// is short.
bool coarse_append(
	struct text *t, const struct buckets *b, double seconds, size_t n, double *ret_most);
