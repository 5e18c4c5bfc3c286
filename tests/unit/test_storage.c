// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Run files where storing is not easy: no WAL, a reader in the way, a full disk, a disk that cannot
// be written.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "place.h"
#include "runfile/amend.h"
#include "runfile/reader_internal.h"
#include "runfile/writer_internal.h"

static int remove_place(void **state)
{
	struct place *p = *state;
	umount2(p->directory, MNT_DETACH);
	int r = place_clear(p);
	free(p);
	return r;
}

// SQLite's own file system without shared memory, as on a file system where WAL cannot be.
static int open_without_shared_memory(
	sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret_flags)
{
	static sqlite3_io_methods methods;
	sqlite3_vfs *real = vfs->pAppData;
	int result = real->xOpen(real, name, file, flags, ret_flags);
	if (file->pMethods && flags & SQLITE_OPEN_MAIN_DB) {
		methods = *file->pMethods;
		methods.iVersion = 1;
		file->pMethods = &methods;
	}
	return result;
}

static const char *vfs_without_wal(void)
{
	static sqlite3_vfs vfs;
	if (!vfs.zName) {
		vfs = *sqlite3_vfs_find(NULL);
		vfs.pAppData = sqlite3_vfs_find(NULL);
		vfs.zName = "without-wal";
		vfs.pNext = NULL;
		vfs.xOpen = open_without_shared_memory;
		assert_int_equal(sqlite3_vfs_register(&vfs, 0), SQLITE_OK);
	}
	return vfs.zName;
}

static struct writer *start(const char *path, const char *vfs)
{
	static const struct metric metric = {"hw.power", METRIC_GAUGE, "W", 1, "Power."};
	struct error e = {0};
	struct writer *w;
	struct writer_options options = {.replace = true, .vfs = vfs};
	struct writer_entity entity = {1, ENTITY_GPU, "gpu", "gpu", 0, 0, -1, NULL};
	if (writer_create(path, &options, &w, &e) < 0) {
		fail_msg("%s", e.text);
	}
	assert_int_equal(writer_put_metric(w, 1, &metric, ENTITY_GPU, "nvml"), 0);
	assert_int_equal(writer_put_entity(w, &entity), 0);
	assert_int_equal(writer_commit_now(w, &e), 0);
	return w;
}

// A second of a hundred rows that do not compress.
static int put_second(struct writer *w, int64_t second)
{
	uint32_t ids[] = {1};
	int64_t t[100], values[100], *columns[] = {values};
	uint64_t random = 88172645463325252 + (uint64_t)second;
	for (int i = 0; i < 100; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		t[i] = second * 1000000 + i * 10000;
		values[i] = (int64_t)(random >> 2);
	}
	struct block b = {100, 1, ids, NULL, t, columns};
	return writer_put_block(w, 1, "nvml", &b);
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

// Rows of the only series, which are whole seconds from the start.
static int64_t count_rows(const char *path)
{
	struct reader *r = open_run(path);
	struct error e = {0};
	struct series s;
	if (reader_series(r, 1, "hw.power", INT64_MIN, INT64_MAX, &s, &e) < 0) {
		fail_msg("%s", e.text);
	}
	for (size_t i = 0; i < s.n; i++) {
		assert_int_equal(s.t_us[i], i * 10000);
	}
	int64_t n = (int64_t)s.n;
	series_done(&s);
	reader_free(r);
	return n;
}

static void test_without_wal(void **state)
{
	struct place *p = *state;
	struct error e = {0};
	struct writer *w = start(p->run, vfs_without_wal());
	assert_false(writer_uses_wal(w));
	for (int64_t second = 0; second < 5; second++) {
		assert_int_equal(put_second(w, second), 0);
		assert_int_equal(writer_commit(w, &e), 0);
	}
	// Ten seconds have not passed: the batch is open, and readers are not locked out.
	assert_int_equal(count_rows(p->run), 0);
	assert_int_equal(writer_compact(w, 3000000000, &e), 0); // commits
	assert_int_equal(count_rows(p->run), 500);
	assert_int_equal(put_second(w, 5), 0);
	assert_int_equal(writer_finish(w, 6000000000, 0, &e), 0);
	writer_free(w);
	assert_int_equal(count_rows(p->run), 600);
}

static void test_a_reader_in_the_way(void **state)
{
	struct place *p = *state;
	struct error e = {0};
	struct writer *w = start(p->run, vfs_without_wal());
	sqlite3 *database;
	sqlite3_stmt *statement;
	assert_int_equal(sqlite3_open(p->run, &database), SQLITE_OK);
	assert_int_equal(
		sqlite3_prepare_v2(database, "SELECT * FROM sqlite_master", -1, &statement, NULL),
		SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	assert_int_equal(put_second(w, 0), 0);
	assert_int_equal(writer_commit_now(w, &e), -EBUSY);
	assert_int_equal(put_second(w, 1), 0); // joins the batch that is kept
	sqlite3_finalize(statement);
	assert_int_equal(writer_commit_now(w, &e), 0);
	sqlite3_close(database);
	assert_int_equal(writer_finish(w, 2000000000, 0, &e), 0);
	writer_free(w);
	assert_int_equal(count_rows(p->run), 200);
}

static void test_a_reader_while_it_ends(void **state)
{
	struct place *p = *state;
	struct error e = {0};
	char wal[128];
	snprintf(wal, sizeof(wal), "%s-wal", p->run);
	struct writer *w = start(p->run, NULL);
	assert_int_equal(put_second(w, 0), 0);
	assert_int_equal(writer_commit(w, &e), 0);
	struct reader *r = open_run(p->run);
	assert_int_equal(reader_state(r), RUN_LIVE);
	assert_int_equal(put_second(w, 1), 0);
	assert_int_equal(writer_finish(w, 2000000000, 0, &e), 0);
	writer_free(w);
	assert_int_equal(access(wal, F_OK), 0);
	assert_int_equal(count_rows(p->run), 200); // beside the reader
	reader_free(r);
	assert_int_equal(count_rows(p->run), 200);
	assert_int_equal(access(wal, F_OK), 0); // who reads changes nothing
	assert_int_equal(amend_close(p->run, &e), 0);
	assert_int_equal(count_rows(p->run), 200);
	assert_int_equal(access(wal, F_OK), -1); // one file now
}

// SQLite's own file system, with an attacker who is always in time: what has the ending gets
// another file in its place, just before SQLite opens it ("") or right after ("-wal").
static char evil[160];

static void take_place_of(const char *name)
{
	snprintf(evil, sizeof(evil), "%s.evil", name);
	int fd = open(evil, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(rename(evil, name), 0);
	assert_int_equal(link(name, evil), 0); // to look at it afterwards
}

static int open_too_late(
	sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret_flags)
{
	sqlite3_vfs *real = vfs->pAppData;
	if (flags & SQLITE_OPEN_MAIN_DB) {
		take_place_of(name);
	}
	return real->xOpen(real, name, file, flags, ret_flags);
}

static int open_another_log(
	sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret_flags)
{
	sqlite3_vfs *real = vfs->pAppData;
	int result = real->xOpen(real, name, file, flags, ret_flags);
	if (flags & SQLITE_OPEN_WAL) {
		take_place_of(name);
		unlink(evil); // has one name, as a file of SQLite's
	}
	return result;
}

static const char *vfs_with(
	int (*open_file)(sqlite3_vfs *, const char *, sqlite3_file *, int, int *), sqlite3_vfs *vfs,
	const char *name)
{
	*vfs = *sqlite3_vfs_find(NULL);
	vfs->pAppData = sqlite3_vfs_find(NULL);
	vfs->zName = name;
	vfs->pNext = NULL;
	vfs->xOpen = open_file;
	assert_int_equal(sqlite3_vfs_register(vfs, 0), SQLITE_OK);
	return name;
}

static void test_a_file_that_takes_the_place_of_the_runs_is_not_written(void **state)
{
	struct place *p = *state;
	static sqlite3_vfs too_late, another_log;
	struct writer *w;
	struct error e = {0};
	struct stat status;
	struct writer_options options = {.vfs = vfs_with(open_too_late, &too_late, "too-late")};
	assert_int_equal(writer_create(p->run, &options, &w, &e), -ESTALE);
	assert_non_null(strstr(e.text, "was replaced while it was opened"));
	assert_int_equal(stat(evil, &status), 0);
	assert_int_equal(status.st_size, 0);
	unlink(evil);
	assert_int_equal(unlink(p->run), 0); // by now another's: it was left
	e = (struct error){0};
	options.vfs = vfs_with(open_another_log, &another_log, "another-log");
	assert_int_equal(writer_create(p->run, &options, &w, &e), -ESTALE);
	assert_non_null(strstr(e.text, "-wal: was replaced while it was opened"));
}

static void test_a_log_that_takes_the_place_of_the_runs_is_not_read(void **state)
{
	struct place *p = *state;
	static sqlite3_vfs another_log;
	sqlite3_vfs *before = sqlite3_vfs_find(NULL);
	struct error e = {0};
	sqlite3 *database = NULL;
	struct writer *w = start(p->run, NULL);
	assert_int_equal(put_second(w, 0), 0);
	assert_int_equal(writer_commit_now(w, &e), 0);
	assert_int_equal(reader_open_unchecked(p->run, &database, &e), 0);
	assert_string_equal(sqlite3_db_filename(database, "main"), p->run);
	sqlite3_close(database);
	vfs_with(open_another_log, &another_log, "log-for-readers");
	sqlite3_vfs_register(&another_log, 1);
	int r = reader_open_unchecked(p->run, &database, &e);
	sqlite3_vfs_register(before, 1);
	assert_int_equal(r, 0);
	assert_string_not_equal(sqlite3_db_filename(database, "main"), p->run); // a copy
	sqlite3_close(database);
	writer_free(w);
}

// A run that another process records, by what is in it.
static void record_elsewhere(const char *path)
{
	int status;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct writer *w = start(path, NULL);
		writer_put_run(w, "recorder_pid", "1");
		_exit(writer_commit_now(w, NULL) == 0 ? 0 : 1); // leaves its WAL behind
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void assert_is_not_replaced(const char *path, const char *reason, int n_descriptors)
{
	struct writer_options replace = {.replace = true};
	struct rlimit before, few;
	struct stat was, is;
	struct writer *w = NULL;
	struct error e = {0};
	assert_int_equal(stat(path, &was), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	int next = dup(STDERR_FILENO);
	close(next);
	few = before;
	few.rlim_cur = (rlim_t)(next + n_descriptors);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	int r = writer_create(path, &replace, &w, &e);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_true(r < 0);
	if (stat(path, &is) < 0 || is.st_ino != was.st_ino || !strstr(e.text, reason)) {
		fail_msg("with %d descriptors: %s", n_descriptors, e.text);
	}
}

static void test_what_cannot_be_told_is_not_replaced(void **state)
{
	struct place *p = *state;
	record_elsewhere(p->run);
	for (int i = 1; i < 8; i++) {
		assert_is_not_replaced(p->run, "not overwritten: ", i);
	}
	sqlite3 *database = NULL;
	assert_int_equal(sqlite3_open(p->run, &database), SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(database, "PRAGMA user_version = 99000", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(database);
	assert_is_not_replaced(p->run, "is newer than this strain", 64);
}

// False, and the test is skipped, where this machine allows no mounts.
static bool mount_or_skip(const char *directory, const char *options)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("strain", directory, "tmpfs", 0, options) < 0) {
		print_message("needs root: cannot mount a file system: %s\n", strerror(errno));
		skip();
		return false;
	}
	return true;
}

static void fill_disk(const char *directory, off_t leave)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/other", directory);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	static const char page[4096];
	off_t size = 0;
	while (write(fd, page, sizeof(page)) == sizeof(page)) {
		size += sizeof(page);
	}
	assert_int_equal(ftruncate(fd, size > leave ? size - leave : 0), 0);
	close(fd);
}

static int64_t count_full_events(const char *path)
{
	struct reader *r = open_run(path);
	sqlite3_stmt *statement;
	assert_int_equal(sqlite3_prepare_v2(reader_database(r),
				 "SELECT count(*) FROM event WHERE kind = 'disk_full'", -1,
				 &statement, NULL),
		SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	int64_t n = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	reader_free(r);
	return n;
}

static void record_until_full(struct place *p, const char *vfs, bool wal)
{
	struct error e = {0};
	struct writer *w = start(p->run, vfs);
	assert_int_equal(writer_uses_wal(w), wal);
	fill_disk(p->directory, 300000);
	int64_t committed = 0, second = 0;
	for (int r = 0; r == 0 && second < 10000; second++) {
		r = put_second(w, second);
		r = r == 0 ? writer_commit_now(w, &e) : r;
		if (r == 0) {
			committed = second + 1;
		} else {
			assert_int_equal(r, -ENOSPC);
		}
	}
	assert_in_range(committed, 10, 9999);
	assert_int_equal(put_second(w, second), -ENOSPC);
	assert_int_equal(writer_put_event(w, 1, "x", 0, "x"), -ENOSPC);
	assert_int_equal(writer_commit(w, &e), -ENOSPC);
	assert_int_equal(count_rows(p->run), committed * 100);
	assert_int_equal(count_full_events(p->run), 1);
	assert_int_equal(writer_finish(w, second * 1000000000, 0, &e), -ENOSPC);
	writer_free(w);
	assert_int_equal(count_rows(p->run), committed * 100);
	assert_int_equal(count_full_events(p->run), 1);
	struct reader *r = open_run(p->run);
	assert_int_equal(reader_state(r), RUN_FINISHED);
	assert_int_equal(reader_run_i64(r, "status", -1), 0);
	reader_free(r);
}

static void test_the_disk_fills(void **state)
{
	struct place *p = *state;
	if (mount_or_skip(p->directory, "size=2m")) {
		record_until_full(p, NULL, true);
	}
}

static void test_the_disk_fills_without_wal(void **state)
{
	struct place *p = *state;
	if (mount_or_skip(p->directory, "size=2m")) {
		record_until_full(p, vfs_without_wal(), false);
	}
}

static void test_no_room_to_begin(void **state)
{
	struct place *p = *state;
	struct error e = {0};
	struct writer *w;
	if (!mount_or_skip(p->directory, "size=1m")) {
		return;
	}
	fill_disk(p->directory, 150000);
	assert_int_equal(writer_create(p->run, &(struct writer_options){0}, &w, &e), -ENOSPC);
	assert_non_null(strstr(e.text, p->run));
	assert_int_equal(access(p->run, F_OK), -1); // nothing half-written stays
}

static void kill_a_writer(const char *path)
{
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct writer *w = start(path, NULL);
		for (int64_t second = 0; second < 3; second++) {
			put_second(w, second);
		}
		_exit(writer_commit_now(w, NULL) == 0 ? 0 : 1); // leaves its WAL behind
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void test_a_disk_that_cannot_be_written(void **state)
{
	struct place *p = *state;
	struct error e = {0};
	char finished[96], wal[128];
	if (!mount_or_skip(p->directory, "size=4m")) {
		return;
	}
	snprintf(finished, sizeof(finished), "%s/b.strain", p->directory);
	struct writer *w = start(finished, NULL);
	assert_int_equal(put_second(w, 0), 0);
	assert_int_equal(writer_finish(w, 1000000000, 0, &e), 0);
	writer_free(w);
	kill_a_writer(p->run);
	snprintf(wal, sizeof(wal), "%s-wal", p->run);
	assert_int_equal(access(wal, F_OK), 0);
	snprintf(wal, sizeof(wal), "%s-shm", p->run);
	unlink(wal); // as in a copy of what matters
	assert_int_equal(mount(NULL, p->directory, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
	assert_int_equal(count_rows(finished), 100);
	assert_int_equal(count_rows(p->run), 300);
	snprintf(wal, sizeof(wal), "%s/c.strain", p->directory);
	assert_int_equal(writer_create(wal, &(struct writer_options){0}, &w, &e), -EROFS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_without_wal, place_setup, remove_place),
		cmocka_unit_test_setup_teardown(
			test_a_reader_in_the_way, place_setup, remove_place),
		cmocka_unit_test_setup_teardown(
			test_a_file_that_takes_the_place_of_the_runs_is_not_written, place_setup,
			remove_place),
		cmocka_unit_test_setup_teardown(
			test_a_reader_while_it_ends, place_setup, remove_place),
		cmocka_unit_test_setup_teardown(
			test_a_log_that_takes_the_place_of_the_runs_is_not_read, place_setup,
			remove_place),
		cmocka_unit_test_setup_teardown(
			test_what_cannot_be_told_is_not_replaced, place_setup, remove_place),
		cmocka_unit_test_setup_teardown(test_the_disk_fills, place_setup, remove_place),
		cmocka_unit_test_setup_teardown(
			test_the_disk_fills_without_wal, place_setup, remove_place),
		cmocka_unit_test_setup_teardown(test_no_room_to_begin, place_setup, remove_place),
		cmocka_unit_test_setup_teardown(
			test_a_disk_that_cannot_be_written, place_setup, remove_place),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
