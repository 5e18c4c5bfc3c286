// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Which threads iterate, which of them the run's iterations are of, and how many of these were
// warm-up. Only timeline.c needs this.

#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/histogram.h"
#include "analyze/span_pass.h"
#include "base/error.h"

struct reader;

// The columns of the queries below.
enum {
	COLUMN_START,
	COLUMN_END,
	COLUMN_THREAD,
	COLUMN_ATTRIBUTES,
	COLUMN_NUMBER,
	COLUMN_SAMPLES,
	COLUMN_NAME,
};

// The index of spans by kind and start gives this order: nothing is sorted.
#define SURVEY_ROWS(kind)                                                                    \
	"SELECT start_ns, end_ns, thread, attributes, number, samples, name FROM span WHERE" \
	" kind = '" kind "' AND start_ns >= 0 AND end_ns > start_ns ORDER BY start_ns, id"
#define SURVEY_ITERATIONS SURVEY_ROWS("iteration")
#define SURVEY_PHASES SURVEY_ROWS("phase")
#define SURVEY_OWN SURVEY_ROWS("user")

#define LANE_NONE SIZE_MAX

struct survey_key {
	int64_t entity;
	int64_t pid;
	int64_t thread;
};

struct survey_thread {
	struct survey_key key;
	size_t lane; // 0: a main one; LANE_NONE: not yet in one
	bool leads; // epochs of the run are its
	uint64_t spans; // iterations; where the run has none, phases
	uint64_t whole; // of these
	int64_t first_ns;
	int64_t last_ns;
	uint64_t warm_up;
	struct histogram lengths;
	double *head; // [n_head], lengths of the first
	size_t n_head;
	size_t head_capacity;
};

struct survey {
	struct survey_thread **threads; // sorted by key
	size_t n;
	size_t capacity;
	struct survey_thread *recent;
	struct span_pass pass; // while it is read
	struct survey_thread *main; // the first of the main ones; NULL without any
	uint64_t whole; // iterations of main threads
	uint64_t warm_up;
};

// 0 or -ENOMEM, or -EBADMSG: what came before the damage is there.
int survey_read(struct survey *s, struct reader *r, struct error *e);
void survey_done(struct survey *s);
// Whose a row is; NULL where there is no room for another thread. 0 or -ENOMEM.
int survey_thread(struct survey *s, sqlite3_stmt *row, struct survey_thread **ret);
// Whether an iteration did not end as it should, or lost something.
bool survey_is_cut(sqlite3_stmt *row);
