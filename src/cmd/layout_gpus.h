// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Runs on several GPUs, once for each of these: for layouts that have a line for each GPU.

#pragma once

#include <stddef.h>

#include "analyze/catalogue.h"
#include "analyze/measures.h"

#define LAYOUT_LABEL_GPU "gpu" // "GPU 0 of 2"

struct layout_gpus {
	struct catalogue_run *copies; // [n] each with the measure of one GPU, and its label
	size_t n;
	size_t n_runs; // that they are of
};

// Replaces runs that used several GPUs by copies, one for each GPU; where any did, others get the
// label, too. Nothing happens where none did. The array grows as it must; what the copies point to
// is the runs'. -ENOMEM.
int layout_gpus_spread(enum measure_id measure, const struct catalogue_run ***runs, size_t *n,
	struct layout_gpus *ret);
void layout_gpus_done(struct layout_gpus *gpus);
