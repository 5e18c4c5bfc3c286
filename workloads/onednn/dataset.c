// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Images of a class share three plane waves. Each image has its own phases, amplitudes and noise,
// so that a single pixel tells little about the class.

#include "dataset.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"

enum {
	RENDERED_EDGE = 40,
	RENDERED_BYTES = RENDERED_EDGE * RENDERED_EDGE * IMAGE_COLOURS,
	MARGIN = RENDERED_EDGE - IMAGE_EDGE,
};

// Random streams that must be independent: classes, orders, pixels, augmentation.
enum { STREAM_CLASSES = 1, STREAM_ORDER, STREAM_PIXELS, STREAM_AUGMENT };

static const float turn = 6.2831853f;
static const float noise = 40; // amplitude, in units of 8-bit values

void dataset_init(struct dataset *dataset, uint32_t samples, uint64_t seed)
{
	dataset->seed = seed;
	dataset->samples = samples;
	dataset->first = 0;
	dataset->shared = NULL;
	dataset->share = 0;
	dataset->shares = 1;
	dataset->burden = (struct burden){.slow_worker = -1};
	struct random random = random_stream(seed, STREAM_CLASSES, 0);
	for (int class = 0; class < CLASSES; class ++) {
		for (int i = 0; i < CLASS_WAVES; i++) {
			struct wave *wave = &dataset->waves[class][i];
			wave->across = random_between(&random, -4, 4);
			wave->down = random_between(&random, -4, 4);
			wave->phase = random_between(&random, 0, 1);
			for (int c = 0; c < IMAGE_COLOURS; c++) {
				wave->colour[c] = random_between(&random, -1, 1);
			}
		}
	}
}

void dataset_shuffle(const struct dataset *dataset, uint32_t epoch, uint32_t *order)
{
	struct random random = random_stream(dataset->seed, STREAM_ORDER, epoch);
	for (uint32_t i = 0; i < dataset->samples; i++) {
		uint32_t other = random_below(&random, i + 1);
		order[i] = order[other];
		order[other] = i;
	}
}

static void add_wave(
	float pixels[RENDERED_BYTES], const struct wave *wave, float phase, float strength)
{
	for (int y = 0; y < RENDERED_EDGE; y++) {
		for (int x = 0; x < RENDERED_EDGE; x++) {
			float along = (wave->across * (float)x + wave->down * (float)y) /
			              (float)RENDERED_EDGE;
			float height = strength * cosf(turn * (along + phase));
			float *pixel = pixels + (y * RENDERED_EDGE + x) * IMAGE_COLOURS;
			for (int c = 0; c < IMAGE_COLOURS; c++) {
				pixel[c] += height * wave->colour[c];
			}
		}
	}
}

static int render(const struct dataset *dataset, uint64_t number, uint8_t rendered[RENDERED_BYTES])
{
	struct random random = random_stream(dataset->seed, STREAM_PIXELS, number);
	int class = (int)random_below(&random, CLASSES);
	float pixels[RENDERED_BYTES];
	for (int i = 0; i < RENDERED_BYTES; i++) {
		pixels[i] = 128 + random_between(&random, -noise, noise);
	}
	for (int i = 0; i < CLASS_WAVES; i++) {
		const struct wave *wave = &dataset->waves[class][i];
		float phase = wave->phase + random_between(&random, -0.35f, 0.35f);
		float strength = random_between(&random, 0, 32);
		add_wave(pixels, wave, phase, strength);
	}
	for (int i = 0; i < RENDERED_BYTES; i++) {
		rendered[i] = (uint8_t)fminf(fmaxf(pixels[i], 0), 255);
	}
	return class;
}

// Renders the image with a margin that mirrors its edges.
static int render_shared(
	const struct dataset *dataset, uint64_t number, uint8_t rendered[RENDERED_BYTES])
{
	uint8_t levels[SHARED_LEVELS];
	int class = shared_render(dataset->shared, number, levels);
	for (int y = 0; y < RENDERED_EDGE; y++) {
		int row = abs(y - MARGIN / 2);
		row = row < IMAGE_EDGE ? row : 2 * (IMAGE_EDGE - 1) - row;
		for (int x = 0; x < RENDERED_EDGE; x++) {
			int column = abs(x - MARGIN / 2);
			column = column < IMAGE_EDGE ? column : 2 * (IMAGE_EDGE - 1) - column;
			memcpy(rendered + (y * RENDERED_EDGE + x) * IMAGE_COLOURS,
				levels + (row * IMAGE_EDGE + column) * IMAGE_COLOURS,
				IMAGE_COLOURS);
		}
	}
	return class;
}

void dataset_prepare(const struct dataset *dataset, uint32_t epoch, uint32_t index,
	float image[IMAGE_FLOATS], uint8_t *ret_class)
{
	uint8_t rendered[RENDERED_BYTES];
	uint64_t number = dataset->first + index;
	*ret_class = (uint8_t)(dataset->shared ? render_shared(dataset, number, rendered)
					       : render(dataset, number, rendered));

	struct random random = random_stream(
		dataset->seed, STREAM_AUGMENT, (uint64_t)epoch << 32 | index);
	uint32_t left = random_below(&random, MARGIN + 1);
	uint32_t top = random_below(&random, MARGIN + 1);
	bool mirrored = random_below(&random, 2) != 0;
	for (uint32_t y = 0; y < IMAGE_EDGE; y++) {
		for (uint32_t x = 0; x < IMAGE_EDGE; x++) {
			uint32_t from = left + (mirrored ? IMAGE_EDGE - 1 - x : x);
			const uint8_t *pixel = rendered +
			                       ((top + y) * RENDERED_EDGE + from) * IMAGE_COLOURS;
			for (int c = 0; c < IMAGE_COLOURS; c++) {
				*image++ = ((float)pixel[c] - 128) / 32;
			}
		}
	}
}
