// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The spans that a job's author named, for `strain show`.

#pragma once

#include "analyze/analysis.h"
#include "render/table.h"

// Those that took the longest, at most `limit`, and what holds them; each behind the one that holds
// it. 0 or -ENOMEM.
int span_table_build(const struct analysis *a, size_t limit, struct table **ret);
// All of them. A new reference; NULL: out of memory.
struct json_t *span_list_json(const struct phases *p);
