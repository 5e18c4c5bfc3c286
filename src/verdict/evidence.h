// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What memory holds, as far as readings at certain moments tell: the training process when the
// framework was imported, when the first iteration began, after the first ones, and at its most.
// What came between two moments is named after what a training job does there; what is taken and
// given back within a step shows only in steps longer than the readings' distance.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

struct analysis;

enum holding {
	HOLDING_FRAMEWORK, // the process when its imports were done
	HOLDING_DATASET, // since then, before the first iteration: dataset, weights
	HOLDING_TRAINING, // since then, after two iterations: gradients, optimizer state, workspace
	HOLDING_ACTIVATIONS, // at most more than that, within steps
	HOLDING_GROWTH, // what steps keep and never give back: a leak
	HOLDING_WORKERS, // the other processes' own
	HOLDING_BATCHES, // shared memory: batches on their way
	HOLDING_FILES, // page cache of the job: can be dropped
	HOLDING_GPU_MODEL, // on the device before the first iteration: context, weights
	HOLDING_GPU_TRAINING, // since then, at most: gradients, optimizer, activations, what is
	                      // reserved but unused
	N_HOLDINGS,
};

struct held {
	double bytes[N_HOLDINGS]; // NAN: not known
};

void held_find(const struct analysis *a, struct held *ret);
// "framework", ...; whether it is on a GPU; "strain.memory.pss", ...
const char *holding_name(enum holding holding);
bool holding_is_of_gpu(enum holding holding);
const char *holding_metric(enum holding holding);
// "framework 210 MB, dataset and weights 150 MB, ...": what has at least a megabyte.
void held_append(struct text *t, const struct held *held, bool of_gpu);
