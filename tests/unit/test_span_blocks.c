// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Spans in blocks: what is put comes back from the table `span`, in order, whatever was merged,
// killed or damaged meanwhile; beside spans that are rows.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "place.h"
#include "runfile/reader.h"
#include "runfile/span_rows.h"
#include "runfile/writer.h"
#include "runfile/writer_internal.h"

#define SECOND INT64_C(1000000000)
#define FIRST_ID 10

struct written {
	struct place place;
	struct writer *writer;
};

static int make_place(void **state)
{
	struct written *p = calloc(1, sizeof(*p));
	if (!p || place_init(&p->place, "a.strain") < 0) {
		free(p);
		return -1;
	}
	*state = p;
	struct error e = {0};
	return writer_create(p->place.run, &(struct writer_options){0}, &p->writer, &e);
}

static int remove_place(void **state)
{
	struct written *p = *state;
	writer_free(p->writer);
	int r = place_done(&p->place);
	free(p);
	return r;
}

// Span i: of ten milliseconds, every ten, in an iteration of ten of them.
static struct writer_span nth(int64_t i)
{
	bool iteration = i % 10 == 0;
	return (struct writer_span){
		.name = iteration ? "iteration"
	                : i % 2   ? "forward"
	                          : "backward",
		.kind = iteration ? "iteration" : "phase",
		.start_ns = i * SECOND / 100,
		.end_ns = (iteration ? i + 10 : i + 1) * SECOND / 100,
		.thread = 4242,
		.parent = iteration ? 1 : FIRST_ID + i - i % 10,
		.number = iteration ? i / 10 : -1,
		.samples = iteration ? 32 : -1,
		.value = NAN,
		.attributes = i % 7 ? "{\"process\":3}" : NULL,
		.id = FIRST_ID + i,
	};
}

static void put(struct written *p, int64_t from, int64_t to)
{
	for (int64_t i = from; i < to; i++) {
		struct writer_span span = nth(i);
		int64_t id = 0;
		assert_int_equal(writer_put_span(p->writer, &span, &id), 0);
		assert_int_equal(id, span.id);
	}
}

static void commit(struct written *p)
{
	assert_int_equal(writer_commit(p->writer, NULL), 0);
}

static void finish(struct written *p)
{
	assert_int_equal(writer_finish(p->writer, 100 * SECOND, 0, NULL), 0);
	writer_free(p->writer);
	p->writer = NULL;
}

static struct reader *open_run(const struct written *p)
{
	struct reader *r = NULL;
	struct error e = {0};
	if (reader_open(p->place.run, &r, &e) < 0) {
		fail_msg("%s", e.text);
	}
	return r;
}

static int64_t number(struct reader *r, const char *sql)
{
	sqlite3_stmt *statement;
	int64_t answer = -1;
	sqlite3 *database = reader_database(r);
	if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK) {
		fail_msg("%s: %s", sql, sqlite3_errmsg(database));
	}
	if (sqlite3_step(statement) == SQLITE_ROW) {
		answer = sqlite3_column_int64(statement, 0);
	}
	sqlite3_finalize(statement);
	return answer;
}

static bool same_number(sqlite3_stmt *row, int column, int64_t value, int64_t none)
{
	return value == none ? sqlite3_column_type(row, column) == SQLITE_NULL
	                     : sqlite3_column_int64(row, column) == value;
}

// All of them, as they were put, in the order of their start.
static void assert_spans(struct reader *r, int64_t n)
{
	sqlite3_stmt *row;
	assert_int_equal(sqlite3_prepare_v2(reader_database(r),
				 "SELECT id, name, kind, start_ns, end_ns, thread, parent, number,"
				 " samples, value, attributes FROM span WHERE kind <> 'epoch'"
				 " ORDER BY start_ns, id",
				 -1, &row, NULL),
		SQLITE_OK);
	for (int64_t i = 0; i < n; i++) {
		struct writer_span span = nth(i);
		assert_int_equal(sqlite3_step(row), SQLITE_ROW);
		assert_int_equal(sqlite3_column_int64(row, 0), span.id);
		assert_string_equal((const char *)sqlite3_column_text(row, 1), span.name);
		assert_string_equal((const char *)sqlite3_column_text(row, 2), span.kind);
		assert_int_equal(sqlite3_column_int64(row, 3), span.start_ns);
		assert_int_equal(sqlite3_column_int64(row, 4), span.end_ns);
		assert_true(same_number(row, 5, span.thread, 0));
		assert_true(same_number(row, 6, span.parent, 0));
		assert_true(same_number(row, 7, span.number, -1));
		assert_true(same_number(row, 8, span.samples, -1));
		assert_int_equal(sqlite3_column_type(row, 9), SQLITE_NULL);
		assert_string_equal((const char *)sqlite3_column_text(row, 10),
			span.attributes ? span.attributes : "{}");
	}
	assert_int_equal(sqlite3_step(row), SQLITE_DONE);
	sqlite3_finalize(row);
}

static void put_epoch(struct written *p)
{
	int64_t id;
	struct writer_span epoch = {"epoch", "epoch", 0, -1, 4242, 0, 1, -1, NAN, NULL, 1};
	assert_int_equal(writer_put_span(p->writer, &epoch, &id), 0);
}

// Live: each second's block; at the end: merged.
static void test_all_come_back(void **state)
{
	struct written *p = *state;
	put_epoch(p);
	for (int64_t second = 0; second < 20; second++) {
		put(p, second * 100, second * 100 + 100);
		commit(p);
	}
	struct reader *r = open_run(p);
	assert_int_equal(reader_state(r), RUN_LIVE);
	assert_int_equal(number(r, "SELECT count(*) FROM span_block"), 20);
	assert_spans(r, 2000);
	reader_free(r);
	assert_int_equal(writer_compact(p->writer, 10 * SECOND, NULL), 0);
	put(p, 2000, 2100);
	finish(p);
	r = open_run(p);
	assert_int_equal(number(r, "SELECT count(*) FROM span_block"), 1);
	assert_int_equal(number(r, "SELECT codec FROM span_block"), 2);
	assert_spans(r, 2100);
	assert_true(number(r, "SELECT sum(length(words) + length(payload)) FROM span_block") <
		    2100 * 10);
	reader_free(r);
}

// Full blocks stay, and the last one grows.
static void test_many(void **state)
{
	struct written *p = *state;
	const int64_t n = 5 * SPAN_ROWS_MAX / 2;
	put(p, 0, n);
	commit(p);
	assert_int_equal(writer_compact(p->writer, INT64_MAX, NULL), 0);
	put(p, n, n + 10);
	finish(p);
	struct reader *r = open_run(p);
	assert_int_equal(number(r, "SELECT count(*) FROM span_block"), 4);
	assert_int_equal(number(r, "SELECT count(*) FROM span_block WHERE rows = 8192"), 2);
	assert_spans(r, n + 10);
	reader_free(r);
}

// As they end: what holds others comes after them, the longest in the last block of all.
static void test_blocks_that_overlap(void **state)
{
	struct written *p = *state;
	enum { N = 50 };
	for (int64_t i = 0; i < N; i++) { // nested, the innermost first
		struct writer_span span = {"range", "user", (N - i) * 10, SECOND * (i + 1), 1, 0,
			-1, -1, NAN, NULL, 100 + N - i};
		assert_int_equal(writer_put_span(p->writer, &span, NULL), 0);
		commit(p); // a block each
	}
	struct reader *r = open_run(p);
	assert_int_equal(number(r, "SELECT count(*) FROM span_block"), N);
	assert_int_equal(number(r, "SELECT count(*) FROM span"), N);
	assert_int_equal(
		number(r, "SELECT count(*) FROM (SELECT start_ns - lag(start_ns) OVER () AS step"
			  " FROM span) WHERE step <= 0"),
		0);
	reader_free(r);
}

static void test_questions(void **state)
{
	struct written *p = *state;
	put_epoch(p);
	put(p, 0, 2000);
	finish(p);
	struct reader *r = open_run(p);
	assert_int_equal(number(r, "SELECT count(*) FROM span WHERE kind = 'iteration'"), 200);
	assert_int_equal(number(r, "SELECT count(*) FROM span WHERE kind = 'epoch'"), 1);
	assert_int_equal(number(r, "SELECT count(*) FROM span WHERE kind = 'nothing'"), 0);
	assert_int_equal(number(r, "SELECT start_ns FROM span WHERE id = 1000"), 9900000000);
	assert_int_equal(number(r, "SELECT count(*) FROM span WHERE id = 1"), 1);
	assert_int_equal(number(r, "SELECT count(*) FROM span WHERE id = 9"), 0);
	assert_int_equal(number(r, "SELECT count(*) FROM span WHERE id IS NULL"), 0);
	assert_int_equal(
		number(r, "SELECT count(*) FROM span WHERE kind = 'Iteration' COLLATE NOCASE"),
		200);
	assert_int_equal(number(r, "SELECT count(*) FROM span s JOIN span i ON i.id = s.parent"
				   " WHERE i.kind = 'iteration' AND s.start_ns >= i.start_ns"),
		1800);
	assert_int_equal(number(r, "SELECT count(*) FROM span s JOIN span i ON i.id = s.parent"
				   " WHERE i.kind = 'epoch'"),
		200);
	reader_free(r);
}

// This process's pid, which belonged to another when the run was recorded.
static void put_dead_recorder(struct written *p)
{
	char boot_id[64] = "", pid[24];
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	assert_non_null(file);
	assert_non_null(fgets(boot_id, sizeof(boot_id), file));
	fclose(file);
	boot_id[strcspn(boot_id, "\n")] = '\0';
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	assert_int_equal(writer_put_run(p->writer, "boot_id", boot_id), 0);
	assert_int_equal(writer_put_run(p->writer, "recorder_pid", pid), 0);
	assert_int_equal(writer_put_run(p->writer, "recorder_start_ticks", "1"), 0);
}

// Nobody finished it: up to the last commit all is there.
static void test_a_run_that_was_cut_off(void **state)
{
	struct written *p = *state;
	put(p, 0, 300);
	commit(p);
	put_dead_recorder(p);
	writer_free(p->writer);
	p->writer = NULL;
	struct reader *r = open_run(p);
	assert_int_equal(reader_state(r), RUN_CUT_OFF);
	assert_spans(r, 300);
	assert_int_equal(reader_end_ns(r), 3 * SECOND);
	reader_free(r);
}

static void change(const struct written *p, const char *sql)
{
	sqlite3 *database;
	assert_int_equal(sqlite3_open(p->place.run, &database), SQLITE_OK);
	assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(database);
}

static void test_a_damaged_block(void **state)
{
	struct written *p = *state;
	put(p, 0, 100);
	commit(p);
	put(p, 100, 200);
	commit(p);
	change(p, "UPDATE span_block SET payload = CAST(x'00' || substr(payload, 2) AS BLOB),"
		  " codec = 7 WHERE id = 2");
	struct reader *r = open_run(p);
	assert_int_equal(number(r, "SELECT count(*) FROM span"), 100);
	assert_int_equal(number(r, "SELECT count(*) FROM span"), 100);
	assert_int_equal(reader_damage(r), 1);
	assert_string_equal(reader_notice(r), "1 damaged block left out");
	reader_free(r);
	// The writer leaves it where it is, too.
	finish(p);
	r = open_run(p);
	assert_int_equal(number(r, "SELECT count(*) FROM span_block"), 2);
	reader_free(r);
}

static void test_a_file_without_blocks(void **state)
{
	struct written *p = *state;
	struct writer_span span = nth(0);
	span.id = 0; // so that it is a row
	assert_int_equal(writer_put_span(p->writer, &span, NULL), 0);
	finish(p);
	change(p, "DROP TABLE span_block; PRAGMA user_version = 1000");
	struct reader *r = open_run(p);
	assert_int_equal(number(r, "SELECT count(*) FROM span WHERE kind = 'iteration'"), 1);
	assert_null(reader_notice(r));
	reader_free(r);
}

// Of schema 1.2, and of 1.3 without a table that it has.
static void test_a_file_without_samples_by_phase(void **state)
{
	struct written *p = *state;
	struct error e = {0};
	struct reader *r;
	put(p, 0, 100);
	finish(p);
	change(p, "DROP TABLE phase_sample; DROP TABLE line_sample");
	assert_int_equal(reader_open(p->place.run, &r, &e), -EBADMSG);
	assert_non_null(strstr(e.text, "'phase_sample' is missing or differs"));
	change(p, "PRAGMA user_version = 1002");
	r = open_run(p);
	assert_int_equal(number(r, "SELECT count(*) FROM span"), 100);
	assert_null(reader_notice(r));
	reader_free(r);
}

// A view could run for ever, and columns of other names hold no spans.
static void test_no_table_of_blocks(void **state)
{
	static const char *const changes[] = {
		"ALTER TABLE span_block RENAME COLUMN words TO wards",
		"ALTER TABLE span_block RENAME TO hidden",
		"CREATE VIEW Span_Block AS WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL"
		" SELECT n + 1 FROM x) SELECT n AS id, 0 AS first_ns, 0 AS last_ns, 0 AS first_id,"
		" 0 AS last_id, 1 AS rows, 1 AS codec, x'' AS words, x'' AS payload FROM x",
	};
	struct written *p = *state;
	struct error e = {0};
	struct reader *r;
	put(p, 0, 100);
	finish(p);
	for (size_t i = 0; i < ARRAY_LENGTH(changes); i++) {
		change(p, changes[i]);
		assert_int_equal(reader_open(p->place.run, &r, &e), -EBADMSG);
		assert_non_null(strstr(e.text, "its schema is not that of a run"));
	}
}

// A block that begins before it says would break the order.
static void test_a_first_start_that_lies(void **state)
{
	struct written *p = *state;
	put(p, 0, 100);
	commit(p);
	put(p, 100, 200);
	commit(p);
	change(p, "UPDATE span_block SET first_ns = 1000000000000 WHERE id = 1");
	struct reader *r = open_run(p);
	assert_int_equal(
		number(r, "SELECT count(*) FROM (SELECT start_ns - lag(start_ns) OVER () AS step"
			  " FROM span ORDER BY start_ns) WHERE step < 0"),
		0);
	assert_int_equal(number(r, "SELECT count(*) FROM span"), 100);
	assert_int_equal(reader_damage(r), 1);
	reader_free(r);
}

// All open at once, they would take as much memory as somebody likes.
static void test_too_many_open_blocks(void **state)
{
	struct written *p = *state;
	put(p, 0, 100);
	finish(p);
	change(p, "WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x WHERE n < 1099)"
		  " INSERT INTO span_block SELECT NULL, first_ns, last_ns, first_id, last_id, rows,"
		  " codec, words, payload FROM span_block, x");
	struct reader *r = open_run(p);
	assert_int_equal(number(r, "SELECT count(*) FROM span_block"), 1100);
	assert_int_equal(number(r, "SELECT count(*) FROM span"), 1024 * 100);
	assert_int_equal(reader_damage(r), 1100 - 1024);
	reader_free(r);
}

// While somebody asks, the writer merges: the new block has the id of an old one.
static void test_a_lookup_while_blocks_are_merged(void **state)
{
	struct written *p = *state;
	put(p, 0, 100);
	commit(p);
	put(p, 100, 200);
	commit(p);
	struct reader *r = open_run(p);
	sqlite3_stmt *statement = NULL;
	assert_int_equal(
		sqlite3_prepare_v2(reader_database(r),
			"SELECT id FROM span WHERE id IN (15, 160, 161)", -1, &statement, NULL),
		SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	assert_int_equal(sqlite3_column_int64(statement, 0), 15);
	assert_int_equal(writer_compact(p->writer, INT64_MAX, NULL), 0);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	assert_int_equal(sqlite3_column_int64(statement, 0), 160);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	assert_int_equal(sqlite3_step(statement), SQLITE_DONE);
	sqlite3_finalize(statement);
	assert_int_equal(number(r, "SELECT count(*) FROM span_block"), 1);
	reader_free(r);
}

// What waited for the batch that is given up does not take the room of the run's end.
static void test_a_full_disk(void **state)
{
	struct written *p = *state;
	char text[4096];
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(
		sqlite3_exec(p->writer->database, "PRAGMA max_page_count = 60", NULL, NULL, NULL),
		SQLITE_OK);
	uint64_t random = 1;
	for (int64_t i = 0; i < 8000; i++) { // more of them than there is room for
		random = random * UINT64_C(6364136223846793005) + 1;
		struct writer_span span = {"range", "user", i, i + (int64_t)(random >> 2), 1, 0,
			(int64_t)(random >> 1), (int64_t)(random >> 3), NAN, NULL, 10 + i};
		assert_int_equal(writer_put_span(p->writer, &span, NULL), 0);
	}
	int r = 0;
	for (int i = 0; i < 100 && r == 0; i++) {
		r = writer_put_event(p->writer, 1, "note", 0, text);
	}
	assert_int_equal(r, -ENOSPC);
	assert_int_equal(writer_finish(p->writer, SECOND, 0, NULL), -ENOSPC);
	writer_free(p->writer);
	p->writer = NULL;
	struct reader *reader = open_run(p);
	assert_int_equal(reader_state(reader), RUN_FINISHED);
	assert_int_equal(number(reader, "SELECT count(*) FROM event"), 1);
	reader_free(reader);
}

// A reader has many open at once.
static void test_a_block_of_too_many(void **state)
{
	(void)state;
	struct span_rows rows = {0}, back = {0};
	struct encoder *encoder;
	_cleanup_text_ struct text words = {0};
	const void *data;
	size_t length;
	assert_int_equal(encoder_new(&encoder), 0);
	for (int64_t i = 0; i < (int64_t)SPAN_ROWS_MAX; i++) {
		struct writer_span span = nth(i);
		assert_int_equal(span_rows_add(&rows, &span), 0);
	}
	assert_int_equal(span_rows_encode(&rows, encoder, CODEC_ZSTD, &words, &data, &length), 0);
	assert_int_equal(
		span_rows_decode(words.data, words.length, data, length, CODEC_ZSTD, &back, NULL),
		0);
	span_rows_done(&back);
	rows.items = realloc(rows.items, (rows.n + 1) * sizeof(*rows.items));
	assert_non_null(rows.items);
	rows.items[rows.n] = rows.items[rows.n - 1];
	rows.n++;
	assert_int_equal(span_rows_encode(&rows, encoder, CODEC_ZSTD, &words, &data, &length), 0);
	assert_int_equal(
		span_rows_decode(words.data, words.length, data, length, CODEC_ZSTD, &back, NULL),
		-EBADMSG);
	span_rows_done(&rows);
	encoder_free(encoder);
}

// More different names than one block holds.
static void test_many_names(void **state)
{
	struct written *p = *state;
	enum { N = 1000 };
	for (int64_t i = 0; i < N; i++) {
		char name[32];
		snprintf(name, sizeof(name), "range %d", (int)i);
		struct writer_span span = {
			name, "user", i * 1000, i * 1000 + 500, 1, 0, -1, -1, NAN, NULL, 10 + i};
		assert_int_equal(writer_put_span(p->writer, &span, NULL), 0);
	}
	finish(p);
	struct reader *r = open_run(p);
	assert_int_equal(number(r, "SELECT count(DISTINCT name) FROM span"), N);
	assert_true(number(r, "SELECT count(*) FROM span_block") >= N / 256);
	reader_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_all_come_back, make_place, remove_place),
		cmocka_unit_test_setup_teardown(test_many, make_place, remove_place),
		cmocka_unit_test_setup_teardown(test_blocks_that_overlap, make_place, remove_place),
		cmocka_unit_test_setup_teardown(test_questions, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_a_run_that_was_cut_off, make_place, remove_place),
		cmocka_unit_test_setup_teardown(test_a_damaged_block, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_a_file_without_blocks, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_a_file_without_samples_by_phase, make_place, remove_place),
		cmocka_unit_test_setup_teardown(test_many_names, make_place, remove_place),
		cmocka_unit_test_setup_teardown(test_no_table_of_blocks, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_a_first_start_that_lies, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_too_many_open_blocks, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_a_lookup_while_blocks_are_merged, make_place, remove_place),
		cmocka_unit_test_setup_teardown(test_a_full_disk, make_place, remove_place),
		cmocka_unit_test(test_a_block_of_too_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
