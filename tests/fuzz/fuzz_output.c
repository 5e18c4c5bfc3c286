// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What a job prints, against the pattern in the first line of the input.

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "record/output/output.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(void *context, const struct output_match *match)
{
	(void)context;
	if (match->number < -1 || match->n_points > 16) {
		abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	const char *newline = memchr(text, '\n', size);
	size_t length = newline ? (size_t)(newline - text) : 0;
	struct output_pattern *pattern = NULL;
	struct output_stream *stream = NULL;
	char first[256];
	if (length == 0 || length >= sizeof(first)) {
		return 0;
	}
	memcpy(first, text, length);
	first[length] = '\0';
	if (output_pattern_new(first, &pattern, NULL) == 0 &&
		output_stream_new(pattern, &stream) == 0) {
		size_t rest = size - length - 1, part = rest / 2;
		output_stream_feed(stream, newline + 1, part, check, NULL);
		output_stream_feed(stream, newline + 1 + part, rest - part, check, NULL);
	}
	output_stream_free(stream);
	output_pattern_free(pattern);
	return 0;
}
