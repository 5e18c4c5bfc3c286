// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The loader's workers, out of all that ever were: a loader that starts them anew with each epoch
// has no more of them for that, and another loader's, for validation, prepare nothing for training.

#pragma once

#include "analyze/facts.h"
#include "analyze/rate.h"

// Fills ret->workers, but for what settings say. `main` is the process that trains. Needs
// ret->ranks.
void worker_facts_fill(
	const struct analysis *a, int64_t main, const struct stretch *stretch, struct facts *ret);
