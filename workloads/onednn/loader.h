// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Loads batches: worker processes prepare them in advance; without workers, they are prepared on
// demand.

#pragma once

#include <stdint.h>

#include "base/error.h"
#include "dataset.h"

struct batch {
	float *images; // batch_size * IMAGE_FLOATS
	uint8_t *classes; // batch_size
};

struct loader;

// Starts the workers by fork: call it before any thread is started. An epoch has complete batches
// only; remaining samples are left out. The dataset must outlive the loader, and have at least one
// batch.
int loader_open(const struct dataset *dataset, uint32_t batch_size, uint32_t epochs,
	uint32_t workers, struct loader **ret, struct error *e);

// Number of batches in an epoch.
uint32_t loader_epoch_batches(const struct loader *loader);

// Returns the next batch, which does not depend on the number of workers. It is valid until the
// next call. Must not be called after the last batch of the last epoch. -ECHILD: a worker has
// ended.
int loader_next(struct loader *loader, struct batch *ret, struct error *e);

// Ends the workers and waits for them. Accepts NULL.
void loader_close(struct loader *loader);
