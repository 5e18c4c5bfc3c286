// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Compaction changes no value; thinning keeps what it says it keeps.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "runfile/reader.h"
#include "runfile/writer.h"

#define PATH_TEMPLATE "/tmp/strain-test-XXXXXX"

enum { RATE = 100 };

static const struct metric metrics[] = {
	{"process.cpu.time", METRIC_COUNTER, "s", 1e-6, "CPU time."},
	{"process.memory.usage", METRIC_GAUGE, "By", 1, "Memory."},
	{"strain.state", METRIC_STATE, "1", 1, "A state."},
};

// Grows with noise, so that it does not compress to nothing.
static int64_t counter_at(int64_t row)
{
	uint64_t x = (uint64_t)row * UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
	return row * 10000 + (int64_t)((x ^ x >> 32) % 900);
}

// One spike each hundred rows.
static int64_t gauge_at(int64_t row)
{
	return row % 100 == 42 ? 5000 + row : 1000;
}

static struct writer *start(char *path, uint64_t max_bytes)
{
	struct error e = {0};
	struct writer *w;
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	struct writer_options options = {.replace = true, .max_bytes = max_bytes};
	assert_int_equal(writer_create(path, &options, &w, &e), 0);
	for (uint32_t i = 0; i < ARRAY_LENGTH(metrics); i++) {
		assert_int_equal(
			writer_put_metric(w, i + 1, &metrics[i], ENTITY_PROCESS, "processes"), 0);
	}
	for (int64_t id = 1; id <= 2; id++) {
		struct writer_entity entity = {
			id, ENTITY_PROCESS, id == 1 ? "1" : "2", "x", 0, 0, -1, NULL};
		assert_int_equal(writer_put_entity(w, &entity), 0);
	}
	return w;
}

// A second of rows of both entities, every `step`th missing in the gauge.
static void put_second(struct writer *w, int64_t second)
{
	uint32_t ids[] = {1, 2, 3};
	int64_t t[RATE], counter[RATE], gauge[RATE], state[RATE];
	int64_t *columns[] = {counter, gauge, state};
	for (int i = 0; i < RATE; i++) {
		int64_t row = second * RATE + i;
		t[i] = row * 10000;
		counter[i] = counter_at(row);
		gauge[i] = row % 7 == 0 ? VALUE_MISSING : gauge_at(row);
		state[i] = second % 2;
	}
	struct block b = {RATE, 3, ids, NULL, t, columns};
	struct block slow = {1, 1, ids + 1, NULL, t, &columns[1]};
	gauge[0] = gauge_at(second * RATE);
	assert_int_equal(writer_put_block(w, 1, "processes", &b), 0);
	assert_int_equal(writer_put_block(w, 2, "processes", &slow), 0);
}

static void record(struct writer *w, int64_t from, int64_t to)
{
	struct error e = {0};
	for (int64_t second = from; second < to; second++) {
		put_second(w, second);
		assert_int_equal(writer_commit(w, &e), 0);
		if (second % 60 == 59) {
			assert_int_equal(writer_compact(w, (second + 1) * 1000000000, &e), 0);
		}
	}
}

// As the recorder does it: what is compacted lags behind, so that no block ends with a minute.
static void record_lagging(struct writer *w, int64_t to)
{
	struct error e = {0};
	for (int64_t second = 0; second < to; second++) {
		put_second(w, second);
		assert_int_equal(writer_commit(w, &e), 0);
		if (second % 60 == 59) {
			assert_int_equal(writer_compact(w, (second - 2) * 1000000000, &e), 0);
		}
	}
}

static int64_t ask(struct reader *r, const char *sql)
{
	sqlite3_stmt *statement;
	assert_int_equal(
		sqlite3_prepare_v2(reader_database(r), sql, -1, &statement, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	int64_t answer = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return answer;
}

static struct reader *open_run(const char *path)
{
	struct error e = {0};
	struct reader *r;
	if (reader_open(path, &r, &e) < 0) {
		fail_msg("%s", e.text);
	}
	return r;
}

static void assert_whole(struct reader *r, int64_t seconds)
{
	struct error e = {0};
	struct series s;
	assert_int_equal(reader_series(r, 1, "process.cpu.time", INT64_MIN, INT64_MAX, &s, &e), 0);
	assert_int_equal(s.n, seconds * RATE);
	for (size_t i = 0; i < s.n; i++) {
		assert_int_equal(s.t_us[i], i * 10000);
		assert_float_equal(s.values[i], (double)counter_at((int64_t)i) * 1e-6, 1e-9);
	}
	series_done(&s);
	assert_int_equal(
		reader_series(r, 1, "process.memory.usage", INT64_MIN, INT64_MAX, &s, &e), 0);
	assert_int_equal(s.n, seconds * RATE);
	for (size_t i = 0; i < s.n; i++) {
		if (i % 7 == 0 && i % RATE != 0) {
			assert_true(isnan(s.values[i]));
		} else {
			assert_float_equal(s.values[i], (double)gauge_at((int64_t)i), 0);
		}
	}
	series_done(&s);
	assert_int_equal(
		reader_series(r, 2, "process.memory.usage", INT64_MIN, INT64_MAX, &s, &e), 0);
	assert_int_equal(s.n, seconds);
	series_done(&s);
}

static void test_compaction_changes_no_value(void **state)
{
	(void)state;
	char path[] = PATH_TEMPLATE;
	struct error e = {0};
	struct writer *w = start(path, 0);
	record(w, 0, 200);
	struct reader *r = open_run(path);
	assert_whole(r, 200);
	// 20 seconds of two entities are not merged yet.
	assert_int_equal(ask(r, "SELECT count(*) FROM block WHERE codec = 1"), 40);
	// Three minutes of 100 rows a second stand for themselves; one row a second joins up.
	assert_int_equal(ask(r, "SELECT count(*) FROM block WHERE codec = 2 AND entity = 1"), 3);
	assert_int_equal(ask(r, "SELECT count(*) FROM block WHERE codec = 2 AND entity = 2"), 1);
	reader_free(r);
	record(w, 200, 1500);
	assert_int_equal(writer_finish(w, 1500000000000, 0, &e), 0);
	writer_free(w);
	r = open_run(path);
	assert_whole(r, 1500);
	assert_int_equal(ask(r, "SELECT count(*) FROM block WHERE codec = 1"), 0);
	assert_int_equal(ask(r, "SELECT count(*) FROM block WHERE entity = 2"), 3);
	assert_true(ask(r, "SELECT max(t_last - t_first) FROM block") <= 600000000000);
	assert_int_equal(ask(r, "SELECT freelist_count FROM pragma_freelist_count"), 0);
	reader_free(r);
	unlink(path);
}

static void test_rows_that_come_late_are_not_lost(void **state)
{
	(void)state;
	char path[] = PATH_TEMPLATE;
	struct error e = {0};
	struct writer *w = start(path, 0);
	record(w, 0, 30);
	// A lane that blocked hands on what it has after the others were compacted.
	assert_int_equal(writer_compact(w, 10000000000, &e), 0);
	assert_int_equal(writer_compact(w, 10000000000, &e), 0);
	record(w, 30, 70);
	assert_int_equal(writer_compact(w, 70000000000, &e), 0);
	struct reader *r = open_run(path);
	assert_whole(r, 70);
	assert_int_equal(ask(r, "SELECT count(*) FROM block WHERE codec = 1"), 0);
	reader_free(r);
	writer_free(w);
	unlink(path);
}

static void test_thinning_keeps_spikes_and_rates(void **state)
{
	(void)state;
	enum { SECONDS = 1800, LIMIT = 150000 };
	char path[] = PATH_TEMPLATE;
	struct error e = {0};
	struct writer *w = start(path, LIMIT);
	record(w, 0, SECONDS);
	assert_int_equal(writer_finish(w, SECONDS * INT64_C(1000000000), 0, &e), 0);
	assert_true(writer_file_bytes(w) <= LIMIT);
	writer_free(w);
	struct reader *r = open_run(path);
	assert_true(ask(r, "SELECT count(*) FROM event WHERE kind = 'thinned'") >= 1);
	struct series s;
	assert_int_equal(
		reader_series(r, 1, "process.memory.usage", INT64_MIN, INT64_MAX, &s, &e), 0);
	assert_true(s.n < SECONDS * RATE / 2);
	assert_ptr_not_equal(s.minimum, s.values);
	double spikes = 0, highest = 0;
	for (size_t i = 0; i < s.n; i++) {
		if (isnan(s.values[i])) {
			continue;
		}
		assert_true(s.minimum[i] <= s.values[i] && s.values[i] <= s.maximum[i]);
		spikes += s.maximum[i] > 4999;
		highest = fmax(highest, s.maximum[i]);
	}
	// Most spikes were read, and each is in a bucket of its own.
	assert_true(spikes > 100);
	// The very last spike, at row 179942, was not read.
	assert_float_equal(highest, gauge_at(179842), 0);
	series_done(&s);
	assert_int_equal(reader_series(r, 1, "process.cpu.time", INT64_MIN, INT64_MAX, &s, &e), 0);
	assert_ptr_equal(s.minimum, s.values);
	for (size_t i = 0; i < s.n; i++) {
		assert_float_equal(s.values[i] * 1e6, (double)counter_at(s.t_us[i] / 10000), 1e-3);
	}
	assert_int_equal(s.t_us[s.n - 1], (SECONDS * RATE - 1) * 10000);
	series_done(&s);
	// The last minute is whole.
	assert_int_equal(reader_series(r, 1, "process.cpu.time", (SECONDS - 59) * 1000000,
				 INT64_MAX, &s, &e),
		0);
	assert_int_equal(s.n, 59 * RATE);
	series_done(&s);
	reader_free(r);
	unlink(path);
}

static size_t count_rows(struct reader *r, int64_t from_s, int64_t to_s)
{
	struct error e = {0};
	struct series s;
	assert_int_equal(reader_series(r, 1, "process.memory.usage", from_s * 1000000,
				 to_s * 1000000 - 1, &s, &e),
		0);
	size_t n = s.n;
	series_done(&s);
	return n;
}

static void test_blocks_that_reach_over_a_minute_are_thinned(void **state)
{
	(void)state;
	enum { SECONDS = 900, LIMIT = 100000 };
	char path[] = PATH_TEMPLATE;
	struct error e = {0};
	struct writer *w = start(path, LIMIT);
	record_lagging(w, SECONDS);
	assert_int_equal(writer_finish(w, SECONDS * INT64_C(1000000000), 0, &e), 0);
	assert_true(writer_file_bytes(w) <= LIMIT);
	writer_free(w);
	struct reader *r = open_run(path);
	// At most a row each 100 ms, in every minute but those that were not reached; and no row
	// further from the next than a second.
	for (int64_t minute = 0; minute < 5; minute++) {
		size_t n = count_rows(r, minute * 60, minute * 60 + 60);
		assert_in_range(n, 59, 601);
	}
	assert_in_range(count_rows(r, SECONDS - 60, SECONDS), 60 * RATE - 60, 60 * RATE);
	assert_int_equal(ask(r, "SELECT count(*) FROM event WHERE kind = 'thinned' AND text LIKE "
				"'%10.0 s%'"),
		0);
	reader_free(r);
	unlink(path);
}

// Eight more streams of noise.
static void put_noise(struct writer *w, int64_t second)
{
	static const char *const sources[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
	uint32_t id = 1;
	int64_t t[RATE], counter[RATE], *columns[] = {counter};
	struct block b = {RATE, 1, &id, NULL, t, columns};
	for (size_t k = 0; k < ARRAY_LENGTH(sources); k++) {
		for (int i = 0; i < RATE; i++) {
			int64_t row = second * RATE + i;
			t[i] = row * 10000;
			counter[i] = counter_at(row + (int64_t)k * 1000000);
		}
		assert_int_equal(writer_put_block(w, 2, sources[k], &b), 0);
	}
}

// So much that not even the last minute fits.
static void test_a_fast_run_under_a_small_limit(void **state)
{
	(void)state;
	enum { SECONDS = 40, LIMIT = 100000 };
	unsigned compacted = 0;
	char path[] = PATH_TEMPLATE;
	struct error e = {0};
	struct writer *w = start(path, LIMIT);
	for (int64_t second = 0; second < SECONDS; second++) {
		put_second(w, second);
		put_noise(w, second);
		assert_int_equal(writer_commit(w, &e), 0);
		if (second % 5 == 4 && writer_is_over_limit(w)) {
			assert_int_equal(writer_compact(w, (second - 2) * 1000000000, &e), 0);
			compacted++;
		}
	}
	assert_true(compacted > 0);
	assert_int_equal(writer_finish(w, SECONDS * INT64_C(1000000000), 0, &e), 0);
	assert_true(writer_file_bytes(w) <= LIMIT);
	assert_false(writer_is_over_limit(w));
	writer_free(w);
	struct reader *r = open_run(path);
	assert_in_range(count_rows(r, 0, 10), 10, 101);
	assert_in_range(count_rows(r, SECONDS - 3, SECONDS), 3 * RATE - 3, 3 * RATE);
	reader_free(r);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_compaction_changes_no_value),
		cmocka_unit_test(test_rows_that_come_late_are_not_lost),
		cmocka_unit_test(test_thinning_keeps_spikes_and_rates),
		cmocka_unit_test(test_blocks_that_reach_over_a_minute_are_thinned),
		cmocka_unit_test(test_a_fast_run_under_a_small_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
