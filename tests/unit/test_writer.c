// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The writer: how a run file begins, what is put into it, how it ends.

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
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "place.h"
#include "runfile/writer.h"

static const struct metric cpu_time = {
	"process.cpu.time", METRIC_COUNTER, "s", 1e-6, "CPU time of the process."};

static void put_everything(struct writer *w)
{
	uint32_t ids[] = {1};
	int64_t t[] = {1000000, 2000000}, values[] = {5, VALUE_MISSING}, *columns[] = {values};
	struct block block = {2, 1, ids, NULL, t, columns};
	struct writer_entity entity = {7, ENTITY_PROCESS, "10:99", "a\xff(", 0, 5, -1, NULL};
	struct writer_span span = {"epoch", "epoch", 0, -1, 0, 0, 3, -1, NAN, NULL, 0};
	int64_t id = 0;
	assert_int_equal(writer_put_run(w, "command", "[\"true\"]"), 0);
	assert_int_equal(writer_put_label(w, "batch_size", "32"), 0);
	assert_int_equal(writer_put_metric(w, 1, &cpu_time, ENTITY_PROCESS, "processes"), 0);
	assert_int_equal(writer_put_entity(w, &entity), 0);
	entity.last_ns = 9;
	assert_int_equal(writer_put_entity(w, &entity), 0);
	assert_int_equal(writer_put_missing(w, 7, 1, 0, -1, "not here"), 0);
	assert_int_equal(writer_put_block(w, 7, "processes", &block), 0);
	assert_int_equal(writer_put_span(w, &span, &id), 0);
	assert_int_equal(writer_end_span(w, id, 4000), 0);
	assert_int_equal(writer_put_event(w, 1, "oom_kill", 7, "killed"), 0);
}

// The single value that a query gives, as text, owned by the caller.
static char *ask(const char *path, const char *sql)
{
	sqlite3 *database;
	sqlite3_stmt *statement;
	assert_int_equal(sqlite3_open_v2(path, &database, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(database, sql, -1, &statement, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	const char *text = (const char *)sqlite3_column_text(statement, 0);
	char *answer = strdup(text ? text : "NULL");
	sqlite3_finalize(statement);
	sqlite3_close(database);
	return answer;
}

static void assert_answer(const char *path, const char *sql, const char *expected)
{
	_cleanup_free_ char *found = ask(path, sql);
	assert_string_equal(found, expected);
}

static void test_a_finished_run_is_one_file(void **state)
{
	struct place *p = *state;
	struct writer *w;
	struct error e = {0};
	assert_int_equal(writer_create(p->run, &(struct writer_options){0}, &w, &e), 0);
	assert_true(writer_uses_wal(w));
	put_everything(w);
	assert_int_equal(writer_commit(w, &e), 0);
	assert_answer(p->run, "SELECT value FROM run WHERE key = 'state'", "recording");
	assert_int_equal(writer_finish(w, 5000000000, 256, &e), 0);
	writer_free(w);
	struct stat st;
	assert_int_equal(stat(p->run, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_answer(p->run, "PRAGMA journal_mode", "delete");
	assert_answer(p->run, "PRAGMA application_id", "1937011297");
	assert_answer(p->run, "PRAGMA user_version", "1004");
	assert_answer(p->run, "PRAGMA integrity_check", "ok");
	assert_answer(p->run,
		"SELECT group_concat(key || '=' || value) FROM run WHERE key != 'command'",
		"end_ns=5000000000,state=finished,status=256");
	assert_answer(
		p->run, "SELECT name || last_ns || attributes FROM entity", "a\xef\xbf\xbd(9{}");
	assert_answer(p->run, "SELECT end_ns || number FROM span WHERE value IS NULL", "40003");
	assert_answer(p->run, "SELECT t_first || ' ' || t_last || ' ' || rows FROM block",
		"1000000000 2000000000 2");
	assert_answer(p->run, "SELECT reason FROM missing WHERE to_ns IS NULL", "not here");
}

static void test_what_stands_in_the_way(void **state)
{
	struct place *p = *state;
	struct writer *w;
	struct error e = {0};
	assert_int_equal(writer_create(p->run, &(struct writer_options){0}, &w, &e), 0);
	writer_free(w);
	assert_int_equal(writer_create(p->run, &(struct writer_options){0}, &w, &e), -EEXIST);
	assert_non_null(strstr(e.text, p->run));
	struct writer_options replace = {.replace = true};
	assert_int_equal(writer_create(p->run, &replace, &w, &e), 0);
	writer_free(w);
	assert_int_equal(writer_create(p->directory, &replace, &w, &e), -EISDIR);
	assert_int_equal(writer_create("/nowhere/a.strain", &replace, &w, &e), -ENOENT);
	assert_int_equal(writer_create("/dev/null", &replace, &w, &e), -EEXIST);
}

static void test_another_process_closes_the_run(void **state)
{
	struct place *p = *state;
	struct writer *w;
	struct error e = {0};
	assert_int_equal(writer_create(p->run, &(struct writer_options){0}, &w, &e), 0);
	put_everything(w);
	writer_free(w);
	assert_answer(p->run, "SELECT value FROM run WHERE key = 'state'", "recording");
	assert_int_equal(writer_open(p->run, &w, &e), 0);
	assert_int_equal(writer_finish_cut_off(w, 77, &e), 0);
	writer_free(w);
	assert_answer(p->run, "SELECT value FROM run WHERE key = 'state'", "cut_off");
	assert_answer(p->run, "SELECT count(*) FROM run WHERE key = 'status'", "0");
	assert_answer(p->run, "PRAGMA journal_mode", "delete");
	assert_int_equal(writer_open("/dev/null", &w, &e) < 0, true);
	assert_int_equal(writer_open("/nowhere/a.strain", &w, &e), -ENOENT);
}

// Somebody removes the run while it is written, and another one takes its name: SQLite's files
// beside it are that one's now.
static void test_a_run_in_its_place_is_left_alone(void **state)
{
	struct place *p = *state;
	struct writer *first, *second;
	struct error e = {0};
	assert_int_equal(writer_create(p->run, &(struct writer_options){0}, &first, &e), 0);
	put_everything(first);
	assert_int_equal(writer_commit(first, &e), 0);
	unlink(p->run);
	assert_int_equal(writer_create(p->run, &(struct writer_options){0}, &second, &e), 0);
	assert_int_equal(writer_put_run(second, "command", "[\"false\"]"), 0);
	assert_int_equal(writer_commit(second, &e), 0);
	assert_int_equal(
		writer_put_run(first, "command", "[\"late\"]"), 0); // nobody has looked yet
	assert_int_equal(writer_commit(first, &e), -ESTALE);
	assert_string_equal(strrchr(e.text, '/'), "/a.strain: was removed or replaced");
	assert_true(writer_put_run(first, "command", "[\"later\"]") < 0);
	assert_int_equal(writer_finish(first, 9, 0, &e), -ESTALE);
	writer_free(first);
	assert_int_equal(writer_finish(second, 5, 0, &e), 0);
	writer_free(second);
	assert_answer(p->run, "SELECT value FROM run WHERE key = 'command'", "[\"false\"]");
	assert_answer(p->run, "SELECT count(*) FROM block", "0");
	assert_answer(p->run, "SELECT value FROM run WHERE key = 'end_ns'", "5");
}

static void test_bad_puts_do_no_harm(void **state)
{
	struct place *p = *state;
	struct writer *w;
	struct error e = {0};
	assert_int_equal(writer_create(p->run, &(struct writer_options){0}, &w, &e), 0);
	int64_t t[] = {2, 1}, *columns[] = {t};
	uint32_t ids[] = {1};
	struct block falls = {2, 1, ids, NULL, t, columns};
	assert_int_equal(writer_put_label(w, "kept", "yes"), 0);
	assert_int_equal(writer_put_block(w, 1, "x", &falls), -EINVAL);
	assert_int_equal(writer_put_metric(w, 1, &cpu_time, ENTITY_PROCESS, "x"), 0);
	struct writer_entity entity = {1, ENTITY_PROCESS, "10:99", "a", 0, 5, -1, NULL};
	assert_int_equal(writer_put_entity(w, &entity), 0);
	entity.id = 2;
	assert_int_equal(writer_put_entity(w, &entity), -EINVAL); // the key is taken
	falls.n_rows = 0;
	assert_int_equal(writer_put_block(w, 1, "x", &falls), 0);
	assert_int_equal(writer_finish(w, 1, 0, &e), 0);
	writer_free(w);
	assert_answer(p->run, "SELECT value FROM label", "yes");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_a_finished_run_is_one_file, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(
			test_what_stands_in_the_way, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(
			test_another_process_closes_the_run, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(
			test_a_run_in_its_place_is_left_alone, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(
			test_bad_puts_do_no_harm, place_setup, place_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
