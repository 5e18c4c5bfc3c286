// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Run files that are no run files, or not any more: one clear line, and what can still be read is
// read.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "place.h"
#include "synthetic_run.h"
#include "runfile/reader.h"
#include "runfile/writer.h"

struct finished {
	struct place place;
	uint8_t *bytes; // of a finished run
	size_t length;
};

static void write_bytes(const char *path, const void *data, size_t length)
{
	FILE *file = fopen(path, "we");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, length, file), length);
	assert_int_equal(fclose(file), 0);
}

static void read_bytes(struct finished *p)
{
	struct stat st;
	FILE *file = fopen(p->place.run, "re");
	assert_non_null(file);
	assert_int_equal(fstat(fileno(file), &st), 0);
	p->length = (size_t)st.st_size;
	p->bytes = malloc(p->length);
	assert_non_null(p->bytes);
	assert_int_equal(fread(p->bytes, 1, p->length, file), p->length);
	fclose(file);
}

static int make_place(void **state)
{
	struct finished *p = calloc(1, sizeof(*p));
	struct error e = {0};
	assert_non_null(p);
	*state = p;
	assert_int_equal(place_init(&p->place, "a.strain"), 0);
	assert_int_equal(
		synthetic_run_write(p->place.run, &(struct synthetic_run){.seconds = 20}, &e), 0);
	read_bytes(p);
	return 0;
}

static int remove_place(void **state)
{
	struct finished *p = *state;
	int r = place_clear(&p->place);
	free(p->bytes);
	free(p);
	return r;
}

static void assert_refused(const char *path, int code, const char *text)
{
	struct reader *r = NULL;
	struct error e = {0};
	int found = reader_open(path, &r, &e);
	if (found != -code || !strstr(e.text, text) || !strstr(e.text, path) ||
		strchr(e.text, '\n')) {
		fail_msg("expected %d, '%s'; found %d, '%s'", -code, text, found, e.text);
	}
}

static void change(const char *path, const char *sql)
{
	sqlite3 *database;
	assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
	if (sqlite3_exec(database, sql, NULL, NULL, NULL) != SQLITE_OK) {
		fail_msg("%s", sqlite3_errmsg(database));
	}
	sqlite3_close(database);
}

static void test_what_is_no_run(void **state)
{
	struct finished *p = *state;
	assert_refused("/nowhere/a.strain", ENOENT, "No such file");
	assert_refused(p->place.directory, EISDIR, "found a directory");
	assert_refused("/dev/null", EINVAL, "expected a run file");
	write_bytes(p->place.run, "", 0);
	assert_refused(p->place.run, EBADMSG, "empty");
	write_bytes(p->place.run, "hello\n", 6);
	assert_refused(p->place.run, EBADMSG, "not a run file");
	write_bytes(p->place.run, p->bytes, 50);
	assert_refused(p->place.run, EBADMSG, "truncated");
	unlink(p->place.run);
	change(p->place.run, "CREATE TABLE run (key, value)");
	assert_refused(p->place.run, EBADMSG, "another database");
}

static void test_other_versions(void **state)
{
	struct finished *p = *state;
	change(p->place.run, "PRAGMA user_version = 2000");
	assert_refused(p->place.run, EPROTONOSUPPORT,
		"is newer than this strain, which reads up to schema");
	change(p->place.run, "PRAGMA user_version = 1005; CREATE TABLE colour (id INTEGER)");
	struct reader *r;
	struct error e = {0};
	assert_int_equal(reader_open(p->place.run, &r, &e), 0);
	assert_non_null(strstr(reader_notice(r), "newer strain (schema 1.5)"));
	assert_int_equal(reader_state(r), RUN_FINISHED);
	reader_free(r);
	change(p->place.run, "ALTER TABLE span ADD COLUMN colour TEXT");
	assert_refused(p->place.run, EBADMSG, "found a table, 'span', with an unknown definition");
}

static void test_a_view_in_place_of_a_table(void **state)
{
	struct finished *p = *state;
	change(p->place.run, "ALTER TABLE run RENAME TO hidden; CREATE VIEW run AS WITH RECURSIVE "
			     "x(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x) "
			     "SELECT n AS key, n AS value FROM x");
	assert_refused(p->place.run, EBADMSG, "found a table, 'hidden', which is not part of it");
}

static int count_values(void *context, int64_t entity, const struct block *b)
{
	(void)entity;
	*(uint64_t *)context += (uint64_t)b->n_rows * b->n_columns;
	return 0;
}

// Opens the file and reads everything; -1 where it does not open.
static int64_t count_all(const char *path, char *notice, size_t size)
{
	struct reader *r;
	struct error e = {0};
	uint64_t values = 0;
	notice[0] = '\0';
	if (reader_open(path, &r, &e) < 0) {
		assert_true(e.text[0] != '\0' && !strchr(e.text, '\n'));
		return -1;
	}
	for (int64_t entity = 1; entity <= SYNTHETIC_RECORDER; entity++) {
		struct error read_error = {0};
		if (reader_blocks(r, entity, count_values, &values, &read_error) < 0) {
			fail_msg("%s", read_error.text);
		}
	}
	const char *text = reader_notice(r);
	snprintf(notice, size, "%s", text ? text : "");
	reader_free(r);
	return (int64_t)values;
}

static void test_truncated_anywhere(void **state)
{
	struct finished *p = *state;
	char notice[512];
	int64_t whole = count_all(p->place.run, notice, sizeof(notice)), opened = 0;
	assert_string_equal(notice, "");
	for (size_t length = 100; length < p->length; length += 3067) {
		write_bytes(p->place.run, p->bytes, length);
		int64_t values = count_all(p->place.run, notice, sizeof(notice));
		assert_true(values <= whole);
		if (values >= 0) {
			if (!strstr(notice, "truncated")) {
				fail_msg("%zu of %zu bytes: '%s'", length, p->length, notice);
			}
			opened++;
		}
	}
	assert_true(opened > 0);
	// The end of the last page gone: nearly all is left.
	write_bytes(p->place.run, p->bytes, p->length - 100);
	assert_true(count_all(p->place.run, notice, sizeof(notice)) > whole / 2);
}

static void test_a_damaged_block_is_one_block(void **state)
{
	struct finished *p = *state;
	char notice[512];
	int64_t whole = count_all(p->place.run, notice, sizeof(notice));
	// One byte in the middle of the payload of a block of process 3.
	change(p->place.run,
		"UPDATE block SET payload = CAST(substr(payload, 1, length(payload) / 2) || "
		"x'00ff' "
		"|| substr(payload, length(payload) / 2 + 3) AS BLOB) WHERE id = (SELECT "
		"min(id) FROM block "
		"WHERE entity = 3)");
	int64_t left = count_all(p->place.run, notice, sizeof(notice));
	assert_string_equal(notice, "1 damaged block left out");
	assert_in_range(left, whole / 2, whole - 1);
	struct reader *r;
	struct error e = {0};
	struct series s;
	assert_int_equal(reader_open(p->place.run, &r, &e), 0);
	for (int i = 0; i < 2; i++) { // the same block again is not another block
		assert_int_equal(
			reader_series(r, 3, "process.cpu.time", INT64_MIN, INT64_MAX, &s, &e), 0);
		series_done(&s);
		assert_true(reader_damage(r) <= 1);
	}
	int rows = sqlite3_exec(
		reader_database(r), "SELECT count(*) FROM samples", NULL, NULL, NULL);
	assert_int_equal(rows, SQLITE_OK);
	assert_int_equal(reader_damage(r), 1);
	reader_free(r);
}

static void test_a_clock_that_is_gone(void **state)
{
	struct finished *p = *state;
	char notice[512];
	change(p->place.run, "DELETE FROM clock");
	assert_true(count_all(p->place.run, notice, sizeof(notice)) > 0); // short blocks have none
	assert_non_null(strstr(notice, "damaged blocks left out"));
}

static uint64_t next_random(uint64_t *random)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return *random;
}

static void test_flipped_bytes_anywhere(void **state)
{
	struct finished *p = *state;
	uint64_t random = 88172645463325252;
	int opened = 0;
	for (int trial = 0; trial < 400; trial++) {
		char notice[512];
		size_t at = next_random(&random) % p->length;
		uint8_t kept = p->bytes[at];
		p->bytes[at] ^= (uint8_t)(1 + next_random(&random) % 255);
		write_bytes(p->place.run, p->bytes, p->length);
		opened += count_all(p->place.run, notice, sizeof(notice)) > 0;
		p->bytes[at] = kept;
	}
	assert_true(opened > 300);
}

// Writes a row of a gauge every millisecond and commits every 20; says what is committed.
static void record_until_killed(const char *path, int said)
{
	static const struct metric metric = {"hw.power", METRIC_GAUGE, "W", 0.001, "Power."};
	struct writer *w;
	struct writer_options options = {.replace = true};
	struct writer_entity entity = {1, ENTITY_GPU, "gpu", "gpu", 0, 0, -1, NULL};
	if (writer_create(path, &options, &w, NULL) < 0 ||
		writer_put_metric(w, 1, &metric, ENTITY_GPU, "nvml") < 0 ||
		writer_put_entity(w, &entity) < 0) {
		_exit(1);
	}
	for (int64_t row = 0;; row++) {
		uint32_t ids[] = {1};
		int64_t t[] = {row * 1000}, values[] = {row}, *columns[] = {values};
		struct block b = {1, 1, ids, NULL, t, columns};
		struct timespec pause = {0, 100000};
		if (writer_put_block(w, 1, "nvml", &b) < 0) {
			_exit(1);
		}
		if (row % 20 == 19 && (writer_commit(w, NULL) < 0 ||
					      write(said, &row, sizeof(row)) != sizeof(row))) {
			_exit(1);
		}
		if (row % 100 == 99 && writer_compact(w, row * 1000000, NULL) < 0) {
			_exit(1);
		}
		nanosleep(&pause, NULL);
	}
}

static void test_killed_at_any_moment(void **state)
{
	struct finished *p = *state;
	uint64_t random = 99;
	for (int trial = 0; trial < 60; trial++) {
		int ends[2];
		assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			close(ends[0]);
			record_until_killed(p->place.run, ends[1]);
		}
		close(ends[1]);
		int64_t committed = -1, row;
		assert_int_equal(read(ends[0], &row, sizeof(row)), sizeof(row));
		committed = row;
		struct timespec pause = {0, (long)(next_random(&random) % 60000000)};
		nanosleep(&pause, NULL);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		while (read(ends[0], &row, sizeof(row)) == sizeof(row)) {
			committed = row;
		}
		close(ends[0]);
		struct reader *r;
		struct error e = {0};
		struct series s;
		if (reader_open(p->place.run, &r, &e) < 0) {
			fail_msg("%s", e.text);
		}
		assert_int_equal(reader_series(r, 1, "hw.power", INT64_MIN, INT64_MAX, &s, &e), 0);
		assert_true((int64_t)s.n > committed);
		for (size_t i = 0; i < s.n; i++) {
			assert_int_equal(s.t_us[i], i * 1000);
		}
		assert_int_equal(reader_damage(r), 0);
		series_done(&s);
		reader_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_what_is_no_run, make_place, remove_place),
		cmocka_unit_test_setup_teardown(test_other_versions, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_a_view_in_place_of_a_table, make_place, remove_place),
		cmocka_unit_test_setup_teardown(test_truncated_anywhere, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_a_damaged_block_is_one_block, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_a_clock_that_is_gone, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_flipped_bytes_anywhere, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_killed_at_any_moment, make_place, remove_place),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
