// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What threads did over time, as the page draws it: shares of buckets, rows of workers, windows.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/analysis.h"
#include "show/lanes.h"
#include "runfile/writer.h"

#define MS INT64_C(1000000)
#define LENGTH_MS 100 // of an iteration; half of it data, half forward
#define N 40

static void put(struct writer *w, const char *kind, const char *name, int64_t start_ns,
	int64_t end_ns, int64_t thread)
{
	struct writer_span span = {.name = name,
		.kind = kind,
		.start_ns = start_ns,
		.end_ns = end_ns,
		.thread = thread,
		.number = -1,
		.samples = 8,
		.value = NAN,
		.attributes = "{\"pid\":7}"};
	assert_int_equal(writer_put_span(w, &span, NULL), 0);
}

// Forty iterations, the 31st three times as long; two workers prepare, and two others after them.
static int64_t put_marks(struct writer *w)
{
	int64_t at = 0;
	for (int i = 0; i < N; i++) {
		int64_t length = (i == 30 ? 3 : 1) * LENGTH_MS * MS;
		int64_t worker = 10 + i % 2 + (i < N / 2 ? 0 : 2);
		put(w, "iteration", "iteration", at, at + length, 1);
		put(w, "phase", "data", at, at + length / 2, 1);
		put(w, "phase", "forward", at + length / 2, at + length, 1);
		put(w, "phase", "prepare", at, at + length / 4, worker);
		put(w, "iteration", "iteration", at, at + length, 2); // a rank that waits
		put(w, "phase", "forward", at, at + length / 8, 2);
		put(w, "phase", "backward", at + length / 8, at + length / 4, 2);
		put(w, "phase", "communication", at + length / 4, at + length, 2);
		at += length;
	}
	return at;
}

static double mean_of(const struct lane_series *series)
{
	return buckets_figures(&series->buckets).mean;
}

static void shares_rows_and_windows(void **state)
{
	(void)state;
	char path[64];
	struct error e = {0};
	struct writer *w = NULL;
	struct reader *r = NULL;
	struct analysis a;
	struct lane_list lanes;
	snprintf(path, sizeof(path), "/tmp/strain-lanes-%d.strain", getpid());
	assert_int_equal(writer_create(path, &(struct writer_options){.replace = true}, &w, &e), 0);
	int64_t end_ns = put_marks(w);
	assert_int_equal(writer_finish(w, end_ns, 0, &e), 0);
	writer_free(w);
	assert_int_equal(reader_open(path, &r, &e), 0);
	assert_int_equal(analysis_load(r, &a, &e), 0);
	assert_int_equal(lanes_collect(&a, &lanes, &e), 0);
	assert_true(fabs(mean_of(&lanes.phases[PHASE_DATA]) - 0.5) < 0.01);
	assert_true(fabs(mean_of(&lanes.phases[PHASE_FORWARD]) - 0.5) < 0.01);
	assert_int_equal(lanes.phases[PHASE_BACKWARD].buckets.n, 0);
	assert_int_equal(lanes.lengths.buckets.n, N);
	assert_int_equal(lanes.n_workers, 2);
	assert_int_equal(lanes.workers[0].in_turn, 2);
	assert_int_equal(lanes.workers[1].in_turn, 2);
	assert_true(lanes.n_windows > 0);
	int64_t slow_us = INT64_C(30) * LENGTH_MS * 1000;
	assert_true(lanes.windows[0].from_us < slow_us - 3 * LENGTH_MS * 1000);
	assert_true(lanes.windows[0].to_us > slow_us + 6 * LENGTH_MS * 1000);
	// Half of what is in the window is data, to the microsecond, and nothing is twice.
	int64_t data_ns = 0, all_ns = 0;
	for (size_t i = 0; i < lanes.phase_details[0].n; i++) {
		const struct lane_piece *piece = &lanes.phase_details[0].pieces[i];
		all_ns += piece->to_ns - piece->from_ns;
		data_ns += piece->place == PHASE_DATA ? piece->to_ns - piece->from_ns : 0;
	}
	int64_t from_ns = lanes.windows[0].from_us * 1000, to_ns = lanes.windows[0].to_us * 1000;
	assert_int_equal(all_ns, (to_ns < end_ns ? to_ns : end_ns) - from_ns);
	assert_true(llabs(2 * data_ns - all_ns) <= LENGTH_MS * MS);
	// What a rank does between two waits is one stretch.
	assert_int_equal(lanes.n_ranks, 2);
	assert_string_equal(lanes.ranks[1].label, "rank 1");
	assert_true(fabs(mean_of(&lanes.ranks[0].series) - 1) < 0.01);
	assert_true(fabs(mean_of(&lanes.ranks[1].series) - 0.25) < 0.01);
	const struct lane_detail *ranks = &lanes.rank_details[0];
	assert_true(ranks->n > 3 && ranks->n < lanes.phase_details[0].n);
	assert_int_equal(ranks->pieces[0].place, 1);
	// Packed into little room they are coarser, not less.
	assert_int_equal(lanes_pack(&lanes, 2500), 0);
	assert_true(lanes.phases[PHASE_DATA].packed.base64.length < 1500);
	assert_true(fabs(mean_of(&lanes.phases[PHASE_DATA]) - 0.5) < 0.02);
	lanes_done(&lanes);
	analysis_done(&a);
	reader_free(r);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shares_rows_and_windows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
