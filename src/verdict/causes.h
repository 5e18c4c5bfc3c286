// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What takes an iteration's time, from its phases and from what resources did meanwhile. Each
// cause has a share: how much shorter training would be if it alone were gone. Several may hold,
// and since they overlap, shares need not add up. docs/how-to-read.md tells the rules to users.
//
//   T   an iteration's length; d the share in which it waits for its batch
//   K   T without the waits: what the training thread computes
//   W   workers; per iteration they spend c on the CPU, q ready without one, b blocked
//
// Workers are the limit where d is more than jitter, and then T = (c + q + b) / W with W corrected
// for one that is slower than the others. Without a cause the iteration takes the larger of what
// is left of K and of that.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "verdict/facts.h"
#include "verdict/cause_kinds.h"
#include "verdict/types.h"

// Iterations' share of training: the rest is validation and checkpoints.
double causes_iterations_share(const struct facts *f);
// Pure: from facts alone.
void causes_find(const struct facts *f, struct causes *ret);
// How sure it is that the first cause is what holds the run back.
enum confidence causes_confidence(const struct facts *f, const struct causes *c);
// The row of a bottleneck; its functions are NULL where it is judged without phases.
const struct cause_kind *cause_kind(enum bottleneck bottleneck);

// "cpu", "gpu" ...: for JSON; "low", ...
const char *bottleneck_name(enum bottleneck bottleneck);
const char *confidence_name(enum confidence confidence);
// "unknown", "at most", "estimated".
const char *gain_kind_name(enum gain_kind kind);

// Appends to ret->suggestions, in the order of the causes, of each the largest gain first. 0 or
// -ENOMEM.
int causes_advise(const struct facts *f, const struct causes *c, struct verdict *ret);
