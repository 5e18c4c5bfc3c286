// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A learnable dataset of synthetic images: 32x32 pixels of three colours, ten classes, all derived
// from a seed. Images are not stored, but rendered on demand, which takes about as much CPU time as
// decoding a small compressed image.

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

// A plane wave across the image: turns across its width and height, its phase (in turns), and a
// weight per colour.
struct wave {
	float across;
	float down;
	float phase;
	float colour[IMAGE_COLOURS];
};

struct dataset {
	uint64_t seed;
	uint32_t samples;
	uint64_t first; // number of the first image
	// images common to all frameworks; NULL: this program's own
	const struct shared_images *shared;
	uint32_t share; // part of each batch, of `shares` equal ones, that a loader prepares
	uint32_t shares;
	struct wave waves[CLASSES][CLASS_WAVES]; // common to the images of a class
	struct burden burden; // extra cost of preparing an image; zeroed: none
};

void dataset_init(struct dataset *dataset, uint32_t samples, uint64_t seed);

// Sets order[samples] to a permutation of the indexes, different in each epoch.
void dataset_shuffle(const struct dataset *dataset, uint32_t epoch, uint32_t *order);

// Prepares one sample. An image of its own is rendered to 40x40 pixels of 8 bits, cropped to 32x32
// at a position that depends on the epoch, mirrored half of the time, and scaled to about -2 to 2.
// A shared image is cropped with mirrored edges. Pixels are stored row by row, with their colours
// together.
void dataset_prepare(const struct dataset *dataset, uint32_t epoch, uint32_t index,
	float image[IMAGE_FLOATS], uint8_t *ret_class);
