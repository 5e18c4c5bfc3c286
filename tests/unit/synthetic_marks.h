// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What the training loop of a synthetic run marks in one epoch: iterations with their phases, a
// validation and a checkpoint at its end, and what loader workers prepare.

#pragma once

#include <stdint.h>

struct writer;

struct synthetic_marks {
	int epoch; // from 0
	int64_t start_ns;
	int64_t end_ns;
	unsigned iterations;
	unsigned workers;
	unsigned own; // spans of the job's own in each iteration, in one that holds them
	unsigned ranks; // of more than one the others wait for the first
};

// 0 or -errno. Each 97th iteration waits long for its data.
int synthetic_marks_write(struct writer *w, const struct synthetic_marks *marks);
