// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The marks of one epoch of a synthetic run's training loop: iterations with their phases,
// validation and a checkpoint at the end, and the batches that loader workers prepare.

#pragma once

#include <stdint.h>

struct writer;

struct synthetic_marks {
	int epoch; // from 0
	int64_t start_ns;
	int64_t end_ns;
	unsigned iterations;
	unsigned workers;
	unsigned own; // named spans in each iteration, inside a common one
	unsigned ranks; // with more than one, the others wait for the first
};

// Returns 0 or -errno. Every 97th iteration waits long for its data.
int synthetic_marks_write(struct writer *w, const struct synthetic_marks *marks);
