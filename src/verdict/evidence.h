// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The figures behind a verdict, and the contents of memory.

#pragma once

#include <stdbool.h>

#include "base/text.h"
#include "verdict/types.h"

struct analysis;
struct facts;

// Appends the measured figures to ret->evidence. Returns 0 or -ENOMEM.
int evidence_build(const struct analysis *a, const struct facts *f, struct verdict *ret);

void memory_breakdown_find(const struct analysis *a, struct memory_breakdown *ret);
// "framework", ...; whether it is on a GPU; "strain.memory.pss", ...
const char *holding_name(enum holding holding);
bool holding_is_of_gpu(enum holding holding);
const char *holding_metric(enum holding holding);
// Appends "framework 210 MB, dataset and weights 150 MB, ...": contents of at least a megabyte.
void memory_breakdown_append(struct text *t, const struct memory_breakdown *memory, bool of_gpu);
