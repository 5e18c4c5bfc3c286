// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A learnable set of synthetic images: 32x32 pixels of three colours, ten classes, all from a seed.
// An image is not stored but rendered when it is asked for, which costs the CPU about what decoding
// a small compressed image does.

#pragma once

#include <stdint.h>

#include "burden.h"
#include "shared.h"

enum {
	IMAGE_EDGE = 32,
	IMAGE_COLOURS = 3,
	IMAGE_FLOATS = IMAGE_EDGE * IMAGE_EDGE * IMAGE_COLOURS,
	CLASSES = 10,
	CLASS_WAVES = 3,
};

// A plane wave across the image: turns across its width and height, where it
// begins (in turns), and a weight per colour.
struct wave {
	float across;
	float down;
	float phase;
	float colour[IMAGE_COLOURS];
};

struct dataset {
	uint64_t seed;
	uint32_t samples;
	uint64_t first; // number of the first of them
	const struct shared_images *shared; // that all frameworks have; NULL: those of this program
	uint32_t share; // of each batch, of `shares` equal ones: what a loader prepares
	uint32_t shares;
	struct wave waves[CLASSES][CLASS_WAVES]; // what the images of a class have in common
	struct burden burden; // what whoever prepares images spends on them besides: nothing
};

void dataset_init(struct dataset *dataset, uint32_t samples, uint64_t seed);

// Fills order[samples] with every index once, shuffled differently in each epoch.
void dataset_shuffle(const struct dataset *dataset, uint32_t epoch, uint32_t *order);

// Prepares one sample. Of its own images: renders it to 40x40 pixels of 8 bits, cuts 32x32 out at a
// place that depends on the epoch, mirrors every other one, and scales to about -2 to 2. A shared
// one is cut out of itself, with what lies beyond its edges mirrored. Pixels lie row by row with
// their colours together.
void dataset_prepare(const struct dataset *dataset, uint32_t epoch, uint32_t index,
	float image[IMAGE_FLOATS], uint8_t *ret_class);
