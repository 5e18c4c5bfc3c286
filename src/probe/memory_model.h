// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Memory as a function of the batch size: M(B) = X + s B in one regime (Tripathi 2019,
// equation 4.1), by weighted least squares over probes of different batch sizes, with an interval.
// Below a change of regime (another algorithm for small batches) the line is another one: probes
// that do not lie on the line of the larger ones are left out.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "run/phases.h"

enum { MEMORY_POINTS_MAX = 16 };

// Relative standard deviation of one measured peak: with an allocator that returns every large
// block to the kernel, and with glibc's default, whose peak depends on the order of blocks.
#define MEMORY_DEVIATION_PINNED 0.004
#define MEMORY_DEVIATION_DEFAULT 0.03
// The same of runs that last, and what they need more than short ones. Seen with a CNN under 300
// MiB: of runs in which short ones met the limit at batch size 62, 5 of 5 passed with 44, 4 of 5
// with 50, 3 of 9 with 60, 2 of 5 with 64.
#define MEMORY_DEVIATION_LASTING 0.04
#define MEMORY_GROWTH_LASTING 0.03
// A point farther from the line than this share is in another regime (pinned allocator).
#define MEMORY_REGIME 0.01

struct memory_point {
	double batch; // samples
	double bytes;
	bool left_out; // set by memory_model_fit: another regime
};

struct memory_model {
	double intercept; // X, bytes
	double slope; // s, bytes per sample
	double deviation; // relative, of one point
	double residual; // relative, largest of the points used; NAN: fewer than three
	double batch_min, batch_max; // of the points used
	double covariance[3]; // of intercept and slope: 00, 01, 11
	size_t used; // number of points
	size_t left_out;
	bool flat; // memory does not grow with the batch size beyond its noise
};

// Fits the line. Points of equal batch size count as repeats. deviation: relative standard
// deviation of a point, at least; repeats and residuals can raise it. Returns false with fewer than
// two different batch sizes.
bool memory_model_fit(
	struct memory_point *points, size_t n, double deviation, struct memory_model *ret);
// Whether a batch size is in the regime of the line: not below its points, if others were left out.
bool memory_model_covers(const struct memory_model *m, double batch);
// Bytes at a batch size, with a 95 % interval for one more run.
struct estimate memory_model_bytes(const struct memory_model *m, double batch);
// The largest batch size whose memory is at most `limit` bytes by what was measured next to it,
// without a line through all points: memory often grows faster with larger batches (another
// algorithm, more of a step in memory at once), and then a line through distant points lies above
// it in between. value, low: by the straight line between the points on both sides of the limit.
// high: by that through the two below it. NAN: not enough points, or they do not ascend.
struct estimate memory_point_largest(
	const struct memory_point *points, size_t n, double limit, double deviation);
// The largest batch size whose memory is at most `limit` bytes, at most `most`; 0: not even 1.
// value: of the line; low and high: of the 95 % interval of a run.
struct estimate memory_model_largest(const struct memory_model *m, double limit, double most);

// A run under the limit.
struct memory_trial {
	double batch;
	bool passed;
};

// The largest batch size that one more run under `limit` bytes passes with the probability `share`.
// Runs of one batch size need different memory (glibc's peak depends on the order of blocks), so
// that one that passed may fail the next time. Runs that last need more than the short ones of the
// line: with glibc's default allocator 2 to 8 % were seen. doubt: of that, a relative standard
// deviation. 0: not even 1. NAN: no line, or it does not ascend.
double memory_model_passes(const struct memory_model *m, double limit, double doubt,
	const struct memory_trial *trials, size_t n, double share);
