// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The images of dt1 and dt2, which are identical in all frameworks, to the last bit.
// ../datasets/synthetic.py defines them; this is the same in C.

#pragma once

#include <stdint.h>

enum {
	SHARED_EDGE = 32,
	SHARED_COLOURS = 3,
	SHARED_LEVELS = SHARED_EDGE * SHARED_EDGE * SHARED_COLOURS,
	SHARED_CLASSES = 10,
	SHARED_WAVES = 3,
	SHARED_TURN = 1024, // steps of a full turn
};

struct shared_wave {
	int32_t across;
	int32_t down;
	int32_t phase;
	int32_t colour[SHARED_COLOURS];
};

struct shared_images {
	uint64_t seed;
	struct shared_wave waves[SHARED_CLASSES][SHARED_WAVES];
	int32_t cosine[SHARED_TURN];
};

void shared_init(struct shared_images *images, uint64_t seed);

// Renders image `number`, row by row with its colours together. Returns its class.
int shared_render(
	const struct shared_images *images, uint64_t number, uint8_t levels[SHARED_LEVELS]);
