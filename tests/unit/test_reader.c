// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Reading runs: finished, live, cut off, on disks that cannot be written, and the table `samples`.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "place.h"
#include "synthetic_run.h"
#include "runfile/index.h"
#include "runfile/amend.h"
#include "runfile/reader.h"
#include "runfile/writer.h"

// The name has what means something to SQLite's file names.
static int make_place(void **state)
{
	struct place *p = calloc(1, sizeof(*p));
	if (!p || place_init(p, "a %?#.strain") < 0) {
		free(p);
		return -1;
	}
	*state = p;
	return 0;
}

static int remove_place(void **state)
{
	struct place *p = *state;
	chmod(p->directory, 0700);
	int r = place_clear(p);
	free(p);
	return r;
}

static struct reader *open_run(const char *path)
{
	struct reader *r;
	struct error e = {0};
	if (reader_open(path, &r, &e) < 0) {
		fail_msg("%s", e.text);
	}
	return r;
}

static void write_run(const char *path, const struct synthetic_run *run)
{
	struct error e = {0};
	if (synthetic_run_write(path, run, &e) < 0) {
		fail_msg("%s", e.text);
	}
}

static double ask_number(struct reader *r, const char *sql)
{
	sqlite3_stmt *statement;
	if (sqlite3_prepare_v2(reader_database(r), sql, -1, &statement, NULL) != SQLITE_OK) {
		fail_msg("%s: %s", sql, sqlite3_errmsg(reader_database(r)));
	}
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	double answer = sqlite3_column_double(statement, 0);
	sqlite3_finalize(statement);
	return answer;
}

static void test_a_finished_run(void **state)
{
	struct place *p = *state;
	struct error e = {0};
	struct series s;
	write_run(p->run, &(struct synthetic_run){.seconds = 5});
	struct reader *r = open_run(p->run);
	assert_int_equal(reader_state(r), RUN_FINISHED);
	assert_null(reader_notice(r));
	assert_string_equal(reader_run(r, "name"), "train");
	assert_null(reader_run(r, "nothing"));
	assert_int_equal(reader_run_i64(r, "interval_ns", -1), 10000000);
	assert_int_equal(reader_run_i64(r, "name", -1), -1);
	assert_string_equal(reader_label(r, "batch_size"), "32");
	assert_int_equal(reader_end_ns(r), 5000000000);
	assert_int_equal(
		reader_series(r, SYNTHETIC_MAIN, "process.cpu.time", INT64_MIN, INT64_MAX, &s, &e),
		0);
	assert_int_equal(s.n, 500);
	assert_ptr_equal(s.minimum, s.values);
	for (size_t i = 1; i < s.n; i++) {
		assert_true(s.t_us[i] > s.t_us[i - 1]);
		assert_true(s.values[i] >= s.values[i - 1]);
	}
	assert_true(s.values[s.n - 1] > 2 && s.values[s.n - 1] < 4);
	series_done(&s);
	assert_int_equal(
		reader_series(r, SYNTHETIC_MAIN, "process.cpu.time", 1000000, 1500000, &s, &e), 0);
	assert_in_range(s.n, 49, 51);
	assert_true(s.t_us[0] >= 1000000 && s.t_us[s.n - 1] <= 1500000);
	series_done(&s);
	reader_free(r);
}

static bool can_write(const char *path)
{
	sqlite3 *database;
	assert_int_equal(sqlite3_open_v2(path, &database, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
	int status = sqlite3_exec(
		database, "BEGIN IMMEDIATE; DELETE FROM summary; COMMIT", NULL, NULL, NULL);
	sqlite3_close(database);
	return status == SQLITE_OK;
}

static void test_a_run_that_is_held_is_locked_until_it_is_released(void **state)
{
	struct place *p = *state;
	struct error e = {0};
	write_run(p->run, &(struct synthetic_run){.seconds = 2});
	struct reader *r = open_run(p->run);
	reader_hold(r);
	for (int64_t entity = SYNTHETIC_MAIN; entity <= SYNTHETIC_WORKER_2; entity++) {
		struct series s;
		assert_int_equal(
			reader_series(r, entity, "process.cpu.time", INT64_MIN, INT64_MAX, &s, &e),
			0);
		assert_in_range(s.n, 100, 200);
		series_done(&s);
	}
	assert_false(can_write(p->run));
	reader_release(r);
	assert_true(can_write(p->run));
	reader_free(r);
}

static void test_what_is_not_there_is_empty(void **state)
{
	struct place *p = *state;
	struct series s;
	struct error e = {0};
	write_run(p->run, &(struct synthetic_run){.seconds = 2});
	struct reader *r = open_run(p->run);
	static const struct {
		int64_t entity;
		const char *metric;
	} nothing[] = {{99, "process.cpu.time"}, {SYNTHETIC_MAIN, "hw.power"}, {0, "hw.power"},
		{SYNTHETIC_GPU, "strain.gpu.sm.activity"}};
	for (size_t i = 0; i < ARRAY_LENGTH(nothing); i++) {
		assert_int_equal(reader_series(r, nothing[i].entity, nothing[i].metric, INT64_MIN,
					 INT64_MAX, &s, &e),
			0);
		assert_int_equal(s.n, 0);
		series_done(&s);
	}
	reader_free(r);
}

static int count_rows(void *context, int64_t entity, const struct block *b)
{
	assert_int_equal(entity, SYNTHETIC_MAIN);
	*(uint64_t *)context += (uint64_t)b->n_rows * b->n_columns;
	return 0;
}

static int stop_at_once(void *context, int64_t entity, const struct block *b)
{
	(void)entity;
	(void)b;
	++*(uint64_t *)context;
	return 1;
}

static void test_walking_blocks(void **state)
{
	struct place *p = *state;
	struct error e = {0};
	uint64_t values = 0, calls = 0;
	write_run(p->run, &(struct synthetic_run){.seconds = 2});
	struct reader *r = open_run(p->run);
	assert_int_equal(reader_blocks(r, SYNTHETIC_MAIN, count_rows, &values, &e), 0);
	// CPU and memory at each of 200 ticks, 8 and 4 metrics at every tenth, 4 at the first.
	assert_int_equal(values, 200 + 200 + 20 * 8 + 20 * 4 + 4);
	assert_int_equal(reader_blocks(r, SYNTHETIC_MAIN, stop_at_once, &calls, &e), 0);
	assert_int_equal(calls, 1);
	reader_free(r);
}

static void test_samples_in_sql(void **state)
{
	struct place *p = *state;
	write_run(p->run, &(struct synthetic_run){.seconds = 4});
	struct reader *r = open_run(p->run);
	assert_float_equal(ask_number(r, "SELECT count(*) FROM samples WHERE entity = 3 AND metric "
					 "= 'process.cpu.time'"),
		400, 0);
	assert_float_equal(ask_number(r, "SELECT count(*) FROM samples WHERE t >= 1 AND t < 2 AND "
					 "metric = 'process.cpu.time' AND entity = 3"),
		100, 1);
	// The same figure by other ways through the planner.
	double all = ask_number(r, "SELECT count(*) FROM samples");
	assert_float_equal(all,
		ask_number(r, "SELECT sum(n) FROM (SELECT count(*) AS n FROM "
			      "samples GROUP BY entity, metric)"),
		0);
	assert_float_equal(
		ask_number(r, "SELECT max(value) FROM samples WHERE metric = 'process.cpu.time'"),
		ask_number(r, "SELECT max(value) FROM samples s JOIN entity e ON e.id = s.entity "
			      "WHERE s.metric = 'process.cpu.time' AND e.kind = 'job'"),
		0);
	assert_true(ask_number(r, "SELECT count(*) FROM samples WHERE value IS NULL AND metric = "
				  "'process.disk.io.read'") >= 1);
	assert_float_equal(ask_number(r, "SELECT count(*) FROM samples WHERE entity = 0"), 0, 0);
	assert_float_equal(
		ask_number(r, "SELECT count(*) FROM samples WHERE metric = 'nothing'"), 0, 0);
	assert_float_equal(ask_number(r, "SELECT value FROM samples WHERE entity = 6 AND metric = "
					 "'hw.gpu.memory.limit' ORDER BY t LIMIT 1"),
		17179869184.0, 0);
	assert_true(ask_number(r, "SELECT t FROM samples WHERE entity = 3 AND metric = "
				  "'process.cpu.time' ORDER BY t DESC LIMIT 1") > 3.9);
	assert_int_equal(
		sqlite3_exec(reader_database(r), "DELETE FROM run", NULL, NULL, NULL) & 0xff,
		SQLITE_READONLY);
	reader_free(r);
}

static void test_a_live_run(void **state)
{
	struct place *p = *state;
	struct error e = {0};
	struct writer *w;
	static const struct metric metric = {"hw.power", METRIC_GAUGE, "W", 0.001, "Power."};
	assert_int_equal(writer_create(p->run, &(struct writer_options){0}, &w, &e), 0);
	struct writer_entity entity = {1, ENTITY_GPU, "gpu", "gpu", 0, 0, -1, NULL};
	assert_int_equal(writer_put_metric(w, 1, &metric, ENTITY_GPU, "nvml"), 0);
	assert_int_equal(writer_put_entity(w, &entity), 0);
	for (int64_t second = 0; second < 3; second++) {
		uint32_t ids[] = {1};
		int64_t t[] = {second * 1000000}, v[] = {120000 + second}, *columns[] = {v};
		struct block b = {1, 1, ids, NULL, t, columns};
		struct series s;
		assert_int_equal(writer_put_block(w, 1, "nvml", &b), 0);
		assert_int_equal(writer_commit(w, &e), 0);
		// Written this moment, by a recorder of another machine as far as the keys say.
		struct reader *r = open_run(p->run);
		assert_int_equal(reader_state(r), RUN_LIVE);
		assert_int_equal(reader_end_ns(r), second * 1000000000);
		assert_int_equal(reader_series(r, 1, "hw.power", INT64_MIN, INT64_MAX, &s, &e), 0);
		assert_int_equal(s.n, second + 1);
		assert_float_equal(s.values[second], 120 + 0.001 * (double)second, 1e-9);
		series_done(&s);
		reader_free(r);
	}
	assert_int_equal(writer_finish(w, 3000000000, 0, &e), 0);
	writer_free(w);
	struct reader *r = open_run(p->run);
	assert_int_equal(reader_state(r), RUN_FINISHED);
	reader_free(r);
}

static void read_start_ticks(char *ticks, size_t size)
{
	FILE *file = fopen("/proc/self/stat", "re");
	char line[1024];
	assert_non_null(file);
	assert_non_null(fgets(line, sizeof(line), file));
	fclose(file);
	char *at = strrchr(line, ')');
	for (int field = 2; at && field < 22; field++) {
		at = strchr(at + 1, ' ');
	}
	assert_non_null(at);
	snprintf(ticks, size, "%.*s", (int)strcspn(at + 1, " "), at + 1);
}

// A run whose recorder is this process, or one that is gone, on this machine.
static void write_run_of_this_boot(const char *path, bool alive)
{
	struct error e = {0};
	struct writer *w;
	char boot_id[64] = "", pid[24], ticks[24];
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	assert_non_null(file);
	assert_non_null(fgets(boot_id, sizeof(boot_id), file));
	fclose(file);
	boot_id[strcspn(boot_id, "\n")] = '\0';
	read_start_ticks(ticks, sizeof(ticks));
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	write_run(path, &(struct synthetic_run){.seconds = 2, .unfinished = true});
	assert_int_equal(writer_open(path, &w, &e), 0);
	assert_int_equal(writer_put_run(w, "boot_id", boot_id), 0);
	assert_int_equal(writer_put_run(w, "recorder_pid", pid), 0);
	assert_int_equal(writer_put_run(w, "recorder_start_ticks", alive ? ticks : "1"), 0);
	assert_int_equal(writer_commit(w, &e), 0);
	writer_free(w);
}

static void assert_cut_off(const char *path, bool closed)
{
	struct reader *r = open_run(path);
	assert_int_equal(reader_state(r), RUN_CUT_OFF);
	assert_string_equal(reader_notice(r), "cut off: nothing was recorded after 2.0 s");
	assert_string_equal(reader_run(r, "state"), closed ? "cut_off" : "recording");
	assert_in_range(reader_end_ns(r), 1980000000, 2000000000);
	assert_int_equal(reader_is_unclosed(r), !closed);
	assert_null(reader_run(r, "status"));
	reader_free(r);
}

static void test_a_run_that_was_cut_off_is_closed_by_a_call_of_its_own(void **state)
{
	struct place *p = *state;
	struct error e = {0};
	write_run_of_this_boot(p->run, true);
	struct reader *r = open_run(p->run);
	assert_int_equal(reader_state(r), RUN_LIVE);
	assert_null(reader_run(r, "end_ns"));
	reader_free(r);
	assert_int_equal(amend_close(p->run, &e), 0); // not while it is recorded
	r = open_run(p->run);
	assert_int_equal(reader_state(r), RUN_LIVE);
	reader_free(r);
	unlink(p->run);
	write_run_of_this_boot(p->run, false); // the pid belongs to somebody else now
	for (int i = 0; i < 2; i++) {
		assert_cut_off(p->run, false);
	}
	for (int i = 0; i < 2; i++) {
		assert_int_equal(amend_close(p->run, &e), 0);
		assert_cut_off(p->run, true);
	}
	char wal[128];
	snprintf(wal, sizeof(wal), "%s-wal", p->run);
	assert_int_equal(access(wal, F_OK), -1);
}

static void test_where_nothing_can_be_written(void **state)
{
	struct place *p = *state;
	if (geteuid() == 0) {
		print_message("root writes anywhere; test_storage has a read-only disk\n");
		skip();
	}
	write_run_of_this_boot(p->run, false);
	chmod(p->run, 0400);
	chmod(p->directory, 0500);
	struct reader *r = open_run(p->run);
	assert_int_equal(reader_state(r), RUN_CUT_OFF);
	assert_float_equal(ask_number(r, "SELECT count(*) FROM samples WHERE entity = 3 AND metric "
					 "= 'process.cpu.time'"),
		200, 0);
	reader_free(r);
}

static void test_the_newest_run(void **state)
{
	struct place *p = *state;
	struct error e = {0};
	char *path = NULL, other[128];
	setenv("STRAIN_DIR", p->directory, 1);
	assert_int_equal(index_newest_run(0, &path, &e), -ENOENT);
	assert_non_null(strstr(e.text, p->directory));
	write_run(p->run, &(struct synthetic_run){.seconds = 1});
	snprintf(other, sizeof(other), "%s/b.strain", p->directory);
	write_run(other, &(struct synthetic_run){.seconds = 1});
	struct writer *w;
	assert_int_equal(writer_open(other, &w, &e), 0);
	assert_int_equal(writer_put_run(w, "start_utc_ns", "1895171331000000000"), 0);
	writer_free(w);
	snprintf(other, sizeof(other), "%s/c.strain", p->directory);
	FILE *file = fopen(other, "we");
	assert_non_null(file);
	fputs("no run", file);
	fclose(file);
	assert_int_equal(index_newest_run(0, &path, &e), 0);
	assert_non_null(strstr(path, "/b.strain"));
	free(path);
	assert_int_equal(index_newest_run(1, &path, &e), 0);
	assert_string_equal(path, p->run);
	free(path);
	assert_int_equal(index_newest_run(2, &path, &e), -ENOENT);
	setenv("STRAIN_DIR", "/nowhere", 1);
	assert_int_equal(index_newest_run(0, &path, &e), -ENOENT);
}

static void test_a_truncated_run_is_the_newest(void **state)
{
	struct place *p = *state;
	char *path = NULL;
	struct error e = {0};
	struct stat status;
	write_run(p->run, &(struct synthetic_run){.seconds = 5});
	assert_int_equal(stat(p->run, &status), 0);
	assert_int_equal(truncate(p->run, status.st_size * 9 / 10), 0);
	setenv("STRAIN_DIR", p->directory, 1);
	assert_int_equal(index_newest_run(0, &path, &e), 0);
	assert_string_equal(path, p->run);
	free(path);
	struct reader *r = open_run(p->run);
	assert_true(reader_is_damaged(r));
	assert_non_null(strstr(reader_notice(r), "truncated"));
	reader_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_finished_run, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_what_is_not_there_is_empty, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_a_run_that_is_held_is_locked_until_it_is_released, make_place,
			remove_place),
		cmocka_unit_test_setup_teardown(test_walking_blocks, make_place, remove_place),
		cmocka_unit_test_setup_teardown(test_samples_in_sql, make_place, remove_place),
		cmocka_unit_test_setup_teardown(test_a_live_run, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_a_run_that_was_cut_off_is_closed_by_a_call_of_its_own, make_place,
			remove_place),
		cmocka_unit_test_setup_teardown(
			test_where_nothing_can_be_written, make_place, remove_place),
		cmocka_unit_test_setup_teardown(test_the_newest_run, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_a_truncated_run_is_the_newest, make_place, remove_place),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
