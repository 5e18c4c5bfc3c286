// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Batches, prepared ahead by worker processes; or, without workers, when they are asked for.

#pragma once

#include <stdint.h>

#include "base/error.h"
#include "dataset.h"

struct batch {
	float *images; // batch_size * IMAGE_FLOATS
	uint8_t *classes; // batch_size
};

struct loader;

// Starts the workers: fork before anything else has threads. The batches of an epoch are whole ones
// only; a rest of samples is left out. The dataset must outlive the loader, which holds at least
// one batch.
int loader_open(const struct dataset *dataset, uint32_t batch_size, uint32_t epochs,
	uint32_t workers, struct loader **ret, struct error *e);

// How many batches an epoch has.
uint32_t loader_epoch_batches(const struct loader *loader);

// The next batch, the same for any number of workers. It is valid until the next call. Not to be
// called after the last batch of the last epoch. -ECHILD: a worker has died.
int loader_next(struct loader *loader, struct batch *ret, struct error *e);

// Ends the workers and waits for them. NULL is fine.
void loader_close(struct loader *loader);
