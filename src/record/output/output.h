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

// A value instead of a pattern: lines such as "Epoch 3/10", "[epoch 3]", "Train Epoch: 3" with
// increasing numbers.
#define OUTPUT_PATTERN_AUTO "auto"
// A value instead of a pattern: no search.
#define OUTPUT_PATTERN_NONE "none"

struct output_pattern; // compiled, shared by both streams
struct output_stream; // the state of one stream: the unfinished line

// Returns -EINVAL with a text for a pattern that is invalid or matches every line.
int output_pattern_new(const char *pattern, struct output_pattern **ret, struct error *e);
void output_pattern_free(struct output_pattern *p);

struct output_point {
	const char *name; // of the group
	double value;
};

// A match. number is the value of a group named `epoch` (or of the first group whose name ends in
// "epoch"), else -1. Points are the other named groups that contain a number.
struct output_match {
	int64_t number;
	uint32_t form; // hash of the line up to the number, ignoring other numbers in it
	size_t n_points;
	struct output_point points[16];
};

// Counts epochs in the lines of OUTPUT_PATTERN_AUTO: numbers begin with 0 or 1, and each is one
// more than the last. Further lines of the same epoch, and lines that only look like one, are
// ignored. Settings printed before training may look like the first epoch. The second epoch's line
// identifies the line of the first, because both have the same form.
struct output_count {
	bool begun;
	int64_t last; // last number reported, after the first
	bool sure; // the first line is known
	size_t n_firsts;
	struct output_first {
		int64_t number;
		int64_t t_ns;
		uint32_t form;
	} firsts[8]; // lines that may be the first epoch; the first of them was reported
};

enum output_told {
	OUTPUT_TOLD_NOTHING,
	OUTPUT_TOLD_NEXT, // the next epoch
	OUTPUT_TOLD_ANEW, // also the next epoch, but all earlier reports are wrong: there was one
	                  // epoch, from *ret_first_ns
};

enum output_told output_count_line(struct output_count *c, const struct output_match *match,
	int64_t t_ns, int64_t *ret_first_ns);

int output_stream_new(struct output_pattern *p, struct output_stream **ret);
void output_stream_free(struct output_stream *s);
// Adds bytes; calls `matched` for each matching line.
void output_stream_feed(struct output_stream *s, const char *data, size_t length,
	void (*matched)(void *context, const struct output_match *match), void *context);
// Bytes are missing here. Drops the unfinished line and everything up to the next line end.
void output_stream_reset(struct output_stream *s);
// Number of lines on which matching reached a limit. Accepts NULL.
uint64_t output_stream_limited(const struct output_stream *s);
