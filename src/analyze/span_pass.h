// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// How far a pass over a run's spans is, told to whoever watches the reader.

#pragma once

#include <stdint.h>

struct reader;

struct span_pass {
	struct reader *reader;
	int64_t end_ns; // of the run
	uint64_t parts; // of the pass
	uint64_t told;
};

// A part is about as much work as reading a block of samples: so many are told of in a pass over
// all spans, and a fourth as many in one over iterations.
uint64_t span_pass_parts(struct reader *r);
void span_pass_start(struct span_pass *pass, struct reader *r, uint64_t parts);
// What begins before this was read. Cheap.
void span_pass_at(struct span_pass *pass, int64_t start_ns);
void span_pass_end(struct span_pass *pass);
