// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Which column of a pivot is the fastest, and how sure that is.

#pragma once

#include "render/pivot.h"

// Fills p->ranking: of a pivot without rows, by the first value that tells how fast a job is (a
// time of an epoch before others), of the columns that have it. Fewer than two: none. -ENOMEM.
int pivot_ranking_build(struct pivot *p);
void pivot_ranking_done(struct pivot_ranking *ranking);
