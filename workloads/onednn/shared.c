// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Uses integers, because floating-point cosines differ between libraries.

#include "shared.h"

#include <math.h>

#include "random.h"

enum { STREAM_CLASSES = 1, STREAM_PIXELS = 3 };

static int32_t draw(struct random *random, uint32_t limit)
{
	return (int32_t)random_below(random, limit);
}

void shared_init(struct shared_images *images, uint64_t seed)
{
	images->seed = seed;
	struct random random = random_stream(seed, STREAM_CLASSES, 0);
	for (int class = 0; class < SHARED_CLASSES; class ++) {
		for (int i = 0; i < SHARED_WAVES; i++) {
			struct shared_wave *wave = &images->waves[class][i];
			wave->across = draw(&random, 8 * SHARED_TURN) - 4 * SHARED_TURN;
			wave->down = draw(&random, 8 * SHARED_TURN) - 4 * SHARED_TURN;
			wave->phase = draw(&random, SHARED_TURN);
			for (int c = 0; c < SHARED_COLOURS; c++) {
				wave->colour[c] = draw(&random, 255) - 127;
			}
		}
	}
	for (int i = 0; i < SHARED_TURN; i++) {
		images->cosine[i] = (int32_t)lrint(127 * cos(i * (2 * M_PI / SHARED_TURN)));
	}
}

static void add_wave(int32_t pixels[SHARED_LEVELS], const struct shared_images *images,
	const struct shared_wave *wave, uint64_t random)
{
	int32_t off = (int32_t)((random & UINT32_MAX) * 717 >> 32) - 358;
	int32_t strength = (int32_t)(random >> 56);
	for (int y = 0; y < SHARED_EDGE; y++) {
		for (int x = 0; x < SHARED_EDGE; x++) {
			int32_t angle = ((wave->down * y + wave->across * x) >> 5) + wave->phase;
			int32_t height = images->cosine[(angle + off) & (SHARED_TURN - 1)];
			for (int c = 0; c < SHARED_COLOURS; c++) {
				*pixels++ += height * (wave->colour[c] * strength) >> 17;
			}
		}
	}
}

int shared_render(
	const struct shared_images *images, uint64_t number, uint8_t levels[SHARED_LEVELS])
{
	struct random random = random_stream(images->seed, STREAM_PIXELS, number);
	int class = draw(&random, SHARED_CLASSES);
	uint64_t waves[SHARED_WAVES];
	for (int i = 0; i < SHARED_WAVES; i++) {
		waves[i] = random_u64(&random);
	}
	int32_t pixels[SHARED_LEVELS];
	for (int i = 0; i < SHARED_LEVELS; i += 8) {
		uint64_t noise = random_u64(&random);
		for (int k = 0; k < 8; k++, noise >>= 8) {
			pixels[i + k] = ((int32_t)(noise & 0xff) * 80 >> 8) + 88;
		}
	}
	for (int i = 0; i < SHARED_WAVES; i++) {
		add_wave(pixels, images, &images->waves[class][i], waves[i]);
	}
	for (int i = 0; i < SHARED_LEVELS; i++) {
		levels[i] = (uint8_t)(pixels[i] < 0 ? 0 : pixels[i] > 255 ? 255 : pixels[i]);
	}
	return class;
}
