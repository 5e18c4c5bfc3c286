// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Rows are sorted by file and place, so that only one place is open at a time.

#include "run/short_calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "run/analysis.h"
#include "run/profile.h"
#include "run/query.h"
#include "runfile/reader.h"

// A place is 256 bytes of code: a vectorised loop, or a function.
#define PLACE_BITS "8"
// A place with this part of the samples, and this number, is a loop. In Python loops over elements
// of tensors, 80 % of the samples or more were at other places; where large tensors are computed,
// 38 % or less (of a dozen different operations; of a few, 4 to 20 %).
#define LOOP 0.02
enum {
	LOOP_LEAST = 3,
	SAMPLES_LEAST = 50, // else the standard error exceeds 7 percentage points
};
enum { // samples of short operations, at most
       // For each in a function known to be dispatch: 1.5 to 3.1 seen in ten jobs. Dispatch had at
       // most 8 % of the samples where large tensors are computed.
	DISPATCH_MOST = 4,
	// For each of the interpreter: 0.7 to 1.6 seen in most, 4 where elements of a tensor are
	// assigned one by one.
	CALL_MOST = 4,
};

struct loading {
	const struct analysis *a;
	struct short_calls *calls;
	struct text path; // of the open place
	int64_t place;
	uint64_t *places; // samples of each; the last one is open
	size_t n, capacity;
};

enum { ENTITY, PATH, SYMBOL, PLACE, COUNT };

static bool is_open(const struct loading *l, const char *path, int64_t place)
{
	return l->n > 0 && l->place == place && strcmp(l->path.data, path) == 0;
}

static int open_place(struct loading *l, const char *path, int64_t place)
{
	void *places = l->places;
	if (array_reserve(&places, &l->capacity, l->n + 1, sizeof(*l->places)) < 0) {
		return -ENOMEM;
	}
	l->places = places;
	l->places[l->n++] = 0;
	l->place = place;
	text_clear(&l->path);
	text_append_string(&l->path, path);
	return l->path.failed ? -ENOMEM : 0;
}

static int take_row(void *context, sqlite3_stmt *row)
{
	struct loading *l = context;
	const char *path = (const char *)sqlite3_column_text(row, PATH);
	const char *symbol = (const char *)sqlite3_column_text(row, SYMBOL);
	int64_t place = sqlite3_column_int64(row, PLACE), count = sqlite3_column_int64(row, COUNT);
	bool trains = code_group_of(l->a, sqlite3_column_int64(row, ENTITY), true) == CODE_LEADER;
	if (!path || count <= 0 || count > UINT32_MAX || !trains) {
		return 0;
	}
	// PyTorch's libraries generate matrix kernels at run time.
	enum code_class class = profile_classify(path, symbol, CODE_KERNELS);
	bool computes = class == CODE_KERNELS || class == CODE_FRAMEWORK || class == CODE_COPYING;
	bool python = class == CODE_INTERPRETER || class == CODE_COLLECTION;
	bool dispatch = class == CODE_FRAMEWORK && profile_dispatches(symbol);
	l->calls->samples += (uint64_t)count;
	l->calls->kernel += class == CODE_SYSTEM ? (uint64_t)count : 0;
	if (class == CODE_FRAMEWORK && profile_is_numpy(path)) {
		l->calls->arrays += (uint64_t)count;
		return 0;
	}
	l->calls->interpreter += python ? (uint64_t)count : 0;
	l->calls->arithmetic += computes ? (uint64_t)count : 0;
	l->calls->dispatch += dispatch ? (uint64_t)count : 0;
	if (dispatch ||
		(class != CODE_FRAMEWORK && class != CODE_ALLOCATION && class != CODE_COPYING)) {
		return 0;
	}
	int r = is_open(l, path, place) ? 0 : open_place(l, path, place);
	if (r == 0) {
		l->places[l->n - 1] += (uint64_t)count;
	}
	return r;
}

int short_calls_load(const struct analysis *a, enum phase_id phase, struct short_calls *ret)
{
	_cleanup_text_ struct text select = {0};
	struct loading l = {.a = a, .calls = ret};
	*ret = (struct short_calls){0};
	if (!a->tables.reader || !reader_has_phase_samples(a->tables.reader)) {
		return 0;
	}
	text_format(&select,
		"SELECT s.entity, o.path, y.name, s.address >> " PLACE_BITS ", s.samples"
		" FROM phase_sample AS s JOIN profile_object AS o ON o.id = s.object"
		" LEFT JOIN profile_symbol AS y ON y.object = s.object AND y.address = s.address"
		" WHERE s.leader = 1 AND s.phase = '%s' ORDER BY o.path, 4",
		phase_id_name(phase));
	int r = select.failed ? -ENOMEM
	                      : query_each(a->tables.reader, select.data, take_row, &l, NULL);
	ret->spread = ret->dispatch + short_calls_spread(l.places, l.n, ret->dispatch);
	free(l.places);
	text_done(&l.path);
	return r == -ENOMEM ? r : 0;
}

uint64_t short_calls_spread(const uint64_t *places, size_t n, uint64_t dispatch)
{
	uint64_t all = dispatch, spread = 0;
	for (size_t i = 0; i < n; i++) {
		all += places[i];
	}
	for (size_t i = 0; i < n; i++) {
		bool loop = places[i] >= LOOP_LEAST && (double)places[i] >= LOOP * (double)all;
		spread += loop ? 0 : places[i];
	}
	return spread;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t short_calls_of_engine(const struct short_calls *calls)
{
	return calls->samples < SAMPLES_LEAST
	               ? 0
	               : least(calls->spread, DISPATCH_MOST * calls->dispatch);
}

uint64_t short_calls_samples(const struct short_calls *calls)
{
	return least(short_calls_of_engine(calls), CALL_MOST * calls->interpreter);
}
