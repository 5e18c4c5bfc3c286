// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Small reproducible random numbers: SplitMix64 (Steele, Lea, Flood 2014). Its state is a counter,
// so each sample can have a stream of its own at no cost.

#pragma once

#include <stdint.h>

struct random {
	uint64_t state;
};

static inline uint64_t random_u64(struct random *random)
{
	uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

// The stream of a seed for two numbers.
static inline struct random random_stream(uint64_t seed, uint64_t a, uint64_t b)
{
	struct random random = {seed};
	random.state = random_u64(&random) ^ a;
	random.state = random_u64(&random) ^ b;
	return random;
}

// A number below `limit`. `limit` must be far below 2^32: the bias is below limit / 2^32.
static inline uint32_t random_below(struct random *random, uint32_t limit)
{
	return (uint32_t)((random_u64(random) >> 32) * limit >> 32);
}

// Uniform between low and high.
static inline float random_between(struct random *random, float low, float high)
{
	return low + (high - low) * (float)(random_u64(random) >> 40) * 0x1p-24f;
}
