// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The readings of a run as CSV or JSON, in rows.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "run/entities.h"

struct reader;
struct samples_format;

enum { SAMPLES_METRICS_MAX = 64 };

struct samples_request {
	const struct samples_format *format;
	const char *metrics[SAMPLES_METRICS_MAX]; // names
	size_t n_metrics; // 0: all
	bool every_kind; // of entities
	enum entity_kind kind; // else this one
	int64_t bucket_us; // 0: every reading
	bool wide; // a column for each metric; needs a bucket
};

// "csv", "json" or "jsonl"; NULL: no such format. Static.
const struct samples_format *samples_format_find(const char *name);

// Writes the readings asked for. A name that no metric of the run has is an error. Returns 0 or
// -errno; an error of the stream is left to the caller (ferror).
int samples_write(struct reader *reader, const struct samples_request *request, FILE *stream,
	struct error *e);
