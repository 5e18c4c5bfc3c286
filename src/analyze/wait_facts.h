// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What the training thread and the loader's workers wait for, from looks at them (source `waits`),
// and the processes that steps start.

#pragma once

#include <stdint.h>

#include "base/text.h"

struct analysis;
struct facts;
struct stretch;

// Fills facts.waits, facts.worker_waits and facts.children. `main` is the process that trains.
// Needs length_s, ranks and workers.
//
// A worker without a batch to prepare waits at the pipe that names the next one: looks that find
// one at a pipe are left out, and the other shares are of the time that it prepares.
void wait_facts_fill(
	const struct analysis *a, int64_t main, const struct stretch *stretch, struct facts *ret);

struct wait_facts;
// "sleep 84 %, lock 5 %": kinds with 5 % or more, the largest first; nothing where there are none.
void wait_facts_append(struct text *t, const struct wait_facts *waits);
