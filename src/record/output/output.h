// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// --epoch-pattern: finds matching lines in the job's output. Lines end at \n or \r; a line longer
// than 4 KiB is cut there. The output is untrusted: matching has limits in time and depth.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

// In place of a pattern: lines as "Epoch 3/10", "[epoch 3]", "Train Epoch: 3", whose numbers count
// up.
#define OUTPUT_PATTERN_AUTO "auto"
// In place of a pattern: none.
#define OUTPUT_PATTERN_NONE "none"

struct output_pattern; // compiled, shared by both streams
struct output_stream; // the state of one stream: the unfinished line

// -EINVAL with a text for a pattern that is none, or that matches every line.
int output_pattern_new(const char *pattern, struct output_pattern **ret, struct error *e);
void output_pattern_free(struct output_pattern *p);

struct output_point {
	const char *name; // of the group
	double value;
};

// What a match told. number is that of a group named `epoch` (or the first named group whose
// name ends in "epoch"), else -1. Points are the other named groups that hold a number.
struct output_match {
	int64_t number;
	uint32_t form; // of the line up to the number, whatever other numbers stand there
	size_t n_points;
	struct output_point points[16];
};

// Counts what the lines of OUTPUT_PATTERN_AUTO tell: numbers begin with 0 or 1, and each is the one
// before and 1. A further line of the same epoch, or what only looks like one, tells nothing.
// Settings that a job prints before it begins may look like its first epoch: which line was the
// first is known from the second, which has the form of the first.
struct output_count {
	bool begun;
	int64_t last; // number that was told, once begun
	bool sure; // which the first was
	size_t n_firsts;
	struct output_first {
		int64_t number;
		int64_t t_ns;
		uint32_t form;
	} firsts[8]; // lines that may have been; the first was told
};

enum output_told {
	OUTPUT_TOLD_NOTHING,
	OUTPUT_TOLD_NEXT, // the next epoch
	OUTPUT_TOLD_ANEW, // it too; but all that was told is wrong: there was one, from
	                  // *ret_first_ns
};

enum output_told output_count_line(struct output_count *c, const struct output_match *match,
	int64_t t_ns, int64_t *ret_first_ns);

int output_stream_new(struct output_pattern *p, struct output_stream **ret);
void output_stream_free(struct output_stream *s);
// Feeds bytes; calls `matched` for each line that matches.
void output_stream_feed(struct output_stream *s, const char *data, size_t length,
	void (*matched)(void *context, const struct output_match *match), void *context);
// Bytes are missing here: the unfinished line is dropped, and what follows up to the next line end.
void output_stream_reset(struct output_stream *s);
// Lines whose matching hit a limit so far. Accepts NULL.
uint64_t output_stream_limited(const struct output_stream *s);
