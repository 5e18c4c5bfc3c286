// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Finds what takes an iteration's time, from its phases and from the use of resources meanwhile.
// Each cause has a share: how much shorter training would be without this cause alone. Several can
// hold. Since they overlap, shares need not add up. docs/how-to-read.md explains the rules to
// users.
//
//   T   the length of an iteration; d is the share in which it waits for its batch
//   K   T without the waits: what the training thread computes
//   W   the number of workers; per iteration they spend c on the CPU, q ready without one, b
//   blocked
//
// Workers are the limit if d exceeds jitter; then T = (c + q + b) / W, with W corrected for a
// worker that is slower than the others. Without a cause, the iteration takes the larger of the
// remaining K and the remaining T of the workers.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "verdict/cause_kinds.h"
#include "verdict/facts.h"
#include "verdict/types.h"

// Uses only the facts.
void causes_find(const struct facts *f, struct causes *ret);
// The confidence that the first cause limits the run.
enum confidence causes_confidence(const struct facts *f, const struct causes *c);
// The row of a bottleneck; its functions are NULL if it is judged without phases.
const struct cause_kind *cause_kind(enum bottleneck bottleneck);

// "cpu", "gpu" ...: for JSON; "low", ...
const char *bottleneck_name(enum bottleneck bottleneck);
const char *confidence_name(enum confidence confidence);
// "unknown", "at most", "estimated".
const char *gain_kind_name(enum gain_kind kind);

// Appends to ret->suggestions, in the order of the causes, the largest gain first within a cause.
// Returns 0 or -ENOMEM.
int causes_advise(const struct facts *f, const struct causes *c, struct verdict *ret);

// "input-bound (CPU preprocessing): each iteration spends 61 % of its time waiting for ..."
void causes_append_headline(struct text *t, const struct facts *f, const struct cause *cause);
// If computing is first, appends the largest cause that could be removed: "; next cause: child
// processes, 16 %".
void causes_append_second(struct text *t, const struct facts *f, const struct causes *c);
// Appends all causes beside the first; nothing if the verdict does not come from causes.
void causes_append_parts(struct text *t, const struct verdict *v);
// Appends the shares of an iteration: "data 61 %, forward 12 % ... (+-1 %, 1,430 iterations)".
void causes_append_shares(struct text *t, const struct facts *f);
// Appends how to raise the confidence; nothing if that is not possible.
void causes_append_needed(struct text *t, const struct facts *f, const struct causes *c);
