// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What a job printed about its progress (loss, accuracy) over the samples that it had trained and
// over time, from its run.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum { CURVE_POINTS_MAX = 1024 };

// Lines of validation as scripts print them: "val_loss: 2.30", "Test set: Average loss: 0.05,
// Accuracy: 9830". Groups: loss, accuracy.
extern const char curve_pattern[];

struct curve_point {
	double seconds; // since the first iteration
	double samples; // trained by then; iterations if samples are not counted
	double loss, accuracy; // NAN: the line had none
};

struct curve {
	struct curve_point *points; // [n], ascending
	size_t n;
	bool of_samples;
	double seconds, samples; // of the whole run
	double rate; // samples per second
	char *missing; // why there are no points; NULL: there are
};

// Reads a finished run, recorded with an --epoch-pattern whose groups are loss and accuracy.
// Returns 0, or -errno if it cannot be read. Release ret in any case.
int curve_read(const char *path, struct curve *ret, struct error *e);
void curve_done(struct curve *c);

// The last point at or before so many samples; NULL: none.
const struct curve_point *curve_at_samples(const struct curve *c, double samples);
// The same for seconds.
const struct curve_point *curve_at_seconds(const struct curve *c, double seconds);
