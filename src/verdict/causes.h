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
#include "verdict/verdict.h"

#define CAUSES_MAX N_BOTTLENECKS

struct causes {
	struct cause items[CAUSES_MAX]; // the largest share first
	size_t n;
};

// What an iteration waits for batches that workers had long been done with.
double causes_handing_over(const struct facts *f);
// Whether at least half of a share of iterations is where epochs begin.
bool causes_at_epochs(double at_epochs, double share);
// Who has the CPUs that a job lacks.
enum lack {
	LACK_OWN, // the job itself: there are fewer than it has work for
	LACK_OTHERS,
	LACK_NOBODY, // it may use fewer than anybody knows
};
enum lack causes_lack(const struct facts *f);
// Iterations' share of training: the rest is validation and checkpoints.
double causes_iterations_share(const struct facts *f);
// Pure: from facts alone.
void causes_find(const struct facts *f, struct causes *ret);
// NULL where it does not hold.
const struct cause *causes_get(const struct causes *c, enum bottleneck bottleneck);
// Whether something was seen that only this cause does.
bool causes_direct(const struct facts *f, enum bottleneck bottleneck);
// How sure it is that the first cause is what holds the run back.
enum confidence causes_confidence(const struct facts *f, const struct causes *c);
