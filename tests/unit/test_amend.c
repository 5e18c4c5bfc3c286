// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Adding to a finished run, and a run of a job that never was.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka wants these before it.
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "runfile/amend.h"
#include "runfile/reader.h"

static char folder[] = "/tmp/strain-amend-XXXXXX";
static char run[64];

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder)) {
		return -1;
	}
	snprintf(run, sizeof(run), "%s/a.strain", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(run);
	return rmdir(folder);
}

static const struct amendment first[] = {
	{AMEND_LABEL, "batch_size", "32"},
	{AMEND_LABEL, "trial", "1"},
	{AMEND_KEY, "outcome", "refused"},
};

static void assert_count(struct reader *reader, const char *sql, int expected)
{
	sqlite3_stmt *statement = NULL;
	assert_int_equal(
		sqlite3_prepare_v2(reader_database(reader), sql, -1, &statement, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	assert_int_equal(sqlite3_column_int(statement, 0), expected);
	sqlite3_finalize(statement);
}

static void test_empty(void **state)
{
	struct reader *reader = NULL;
	struct error e = {0};
	(void)state;
	assert_int_equal(amend_write_empty(run, first, ARRAY_LENGTH(first), &e), 0);
	assert_int_equal(amend_write_empty(run, first, ARRAY_LENGTH(first), &e), -EEXIST);
	assert_int_equal(reader_open(run, &reader, &e), 0);
	assert_int_equal(reader_state(reader), RUN_FINISHED);
	assert_true(reader_run_i64(reader, "start_utc_ns", 0) > 0);
	assert_non_null(reader_run(reader, "hostname"));
	assert_string_equal(reader_label(reader, "batch_size"), "32");
	reader_free(reader);
}

static void test_amend(void **state)
{
	static const struct amendment items[] = {
		{AMEND_LABEL, "trial", "7"},
		{AMEND_KEY, "outcome", "crash"},
		{AMEND_KEY, "outcome_text", "\xc3\xa9"},
		{AMEND_EVENT, "output", "the last\nwords"},
	};
	struct reader *reader = NULL;
	struct error e = {0};
	(void)state;
	assert_int_equal(amend_run(run, items, ARRAY_LENGTH(items), &e), 0);
	assert_int_equal(reader_open(run, &reader, &e), 0);
	assert_string_equal(reader_label(reader, "trial"), "7");
	assert_string_equal(reader_label(reader, "batch_size"), "32");
	assert_string_equal(reader_run(reader, "outcome"), "crash");
	assert_count(reader, "SELECT count(*) FROM event WHERE kind = 'output'", 1);
	assert_int_equal(reader_state(reader), RUN_FINISHED);
	reader_free(reader);
	// One file, as a finished run is.
	static const char *const suffixes[] = {"-wal", "-shm", "-journal", "-reserve"};
	for (size_t i = 0; i < ARRAY_LENGTH(suffixes); i++) {
		char path[96];
		snprintf(path, sizeof(path), "%s%s", run, suffixes[i]);
		assert_int_equal(access(path, F_OK), -1);
	}
}

static void test_no_run(void **state)
{
	struct error e = {0};
	char path[96];
	(void)state;
	snprintf(path, sizeof(path), "%s/none.strain", folder);
	assert_true(amend_run(path, first, 1, &e) < 0);
	assert_non_null(strstr(e.text, path));
	assert_int_equal(access(path, F_OK), -1);
	assert_true(amend_run("/etc/passwd", first, 1, &e) < 0);
	assert_int_equal(amend_write_empty("/nonexistent/a.strain", first, 1, &e), -ENOENT);
}

// The last name of a run may belong to one that another process has completed.
static void test_rename(void **state)
{
	char other[64];
	struct error e = {0};
	struct stat before, after;
	(void)state;
	unlink(run);
	snprintf(other, sizeof(other), "%s/b.strain", folder);
	assert_int_equal(amend_write_empty(run, first, 1, &e), 0);
	assert_int_equal(amend_write_empty(other, first, 1, &e), 0);
	assert_int_equal(stat(run, &before), 0);
	assert_int_equal(amend_rename(other, run, &e), -EEXIST);
	assert_int_equal(access(other, F_OK), 0);
	assert_int_equal(stat(run, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	unlink(run);
	assert_int_equal(amend_rename(other, run, &e), 0);
	assert_int_equal(access(other, F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_amend),
		cmocka_unit_test(test_no_run),
		cmocka_unit_test(test_rename),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
