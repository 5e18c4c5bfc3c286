// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The ranks of a run for `strain show`: who trains beside whom, and who waits for whom.

#pragma once

#include "analyze/analysis.h"
#include "render/table.h"

// By number; of more than `limit` the slowest. Without rows where there is one rank or none. 0 or
// -ENOMEM.
int rank_table_build(const struct analysis *a, size_t limit, struct table **ret);
// "1, whose epochs are the run's; all 2 ranks together 1,182 samples/s": of which of several ranks
// the run's figures are; nothing where there is one.
void rank_append_whose(struct text *t, const struct phases *p);
// Of every thread that iterates. A new reference; NULL: out of memory.
struct json_t *rank_list_json(const struct analysis *a);
