// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What to try against the causes that were found, and what it would bring.

#pragma once

#include "analyze/causes.h"

// What the iteration would take with so many workers, as a share of what it takes now:
//
//   rate(W, C) = min(1 / computing, W / prepare, C / (c_main + c_prepare))
//
// with prepare the time of a batch in a worker that has a CPU of its own, c the CPU time. NAN where
// the CPU time of the workers or of the training process is not known.
double advice_length_with(const struct facts *f, unsigned workers, double cpus);
// The fewest workers within 1 % of the best, as far as CPUs, memory and /dev/shm allow.
unsigned advice_workers(const struct facts *f);

// Appends to ret->suggestions, the largest gain first. 0 or -ENOMEM.
int advice_build(const struct facts *f, const struct causes *c, struct verdict *ret);
