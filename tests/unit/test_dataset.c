// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Which files are a job's data, and their way in and out of the page cache.

#include "probe/dataset.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/text.h"

#define FILE_BYTES 65536

static char folder[] = "/var/tmp/strain-dataset-XXXXXX"; // /tmp is memory on some machines

static char *path_of(const char *name)
{
	struct text path = {0};
	text_format(&path, "%s/%s", folder, name);
	return text_steal(&path);
}

static void make_folder(const char *name)
{
	char *path = path_of(name);
	assert_int_equal(mkdir(path, 0700), 0);
	free(path);
}

static void make_file(const char *name, size_t bytes)
{
	char *path = path_of(name), *data = calloc(1, bytes + 1);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, bytes, file), bytes);
	fclose(file);
	free(data);
	free(path);
}

static void note(struct dataset *d, const char *name)
{
	char *path = path_of(name);
	assert_int_equal(dataset_note(d, path), 0);
	free(path);
}

static bool holds(const struct dataset *d, const char *name)
{
	char *path = path_of(name);
	bool found = false;
	for (size_t i = 0; i < d->n; i++) {
		found = found || strcmp(d->paths[i], path) == 0;
	}
	free(path);
	return found;
}

static int set_up(void **state)
{
	static const char *const folders[] = {
		"train", "train/a", "train/b", "train/c", "train/d", "train/e", "few"};
	(void)state;
	assert_non_null(mkdtemp(folder));
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		char name[64];
		make_folder(folders[i]);
		for (int k = 0; k < 6; k++) {
			snprintf(name, sizeof(name), "%s/%d.jpg", folders[i], k);
			make_file(name, FILE_BYTES);
		}
		snprintf(name, sizeof(name), "%s/notes.txt", folders[i]);
		make_file(name, 10);
	}
	make_file("few/empty.jpg", 0);
	make_file("few/model.py", 10);
	make_file("few/libx.so.1", 10);
	char *script = path_of("few/train");
	FILE *file = fopen(script, "w");
	assert_non_null(file);
	fputs("#!/bin/sh\n", file);
	assert_int_equal(fchmod(fileno(file), 0700), 0);
	fclose(file);
	free(script);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	struct text command = {0};
	text_format(&command, "rm -rf %s", folder);
	int result = system(command.data); // NOLINT(cert-env33-c): a folder of our own
	text_done(&command);
	return result;
}

static void test_what_is_no_data(void **state)
{
	(void)state;
	struct dataset d = {0};
	struct error e = {0};
	note(&d, "few/empty.jpg");
	note(&d, "few/model.py");
	note(&d, "few/libx.so.1");
	note(&d, "few/train");
	note(&d, "few"); // a folder
	note(&d, "few/nothing.jpg");
	assert_int_equal(dataset_note(&d, "few/0.jpg"), 0); // relative to what?
	assert_int_equal(dataset_note(&d, ""), 0);
	assert_int_equal(dataset_note(&d, "/etc/passwd"), 0);
	assert_int_equal(dataset_note(&d, "/dev/null"), 0);
	char *long_path = malloc(PATH_MAX + 10);
	memset(long_path, '/', PATH_MAX + 9);
	long_path[PATH_MAX + 9] = '\0';
	assert_int_equal(dataset_note(&d, long_path), 0);
	free(long_path);
	assert_int_equal(dataset_settle(&d, &e), 0);
	assert_int_equal(d.n, 0);
	assert_int_equal(d.bytes, 0);
	assert_true(isnan(dataset_cached(&d)));
	dataset_done(&d);
}

static void test_few_files_are_themselves(void **state)
{
	(void)state;
	struct dataset d = {0};
	struct error e = {0};
	for (int i = 0; i < 3; i++) { // again and again
		note(&d, "few/0.jpg");
		note(&d, "few/1.jpg");
		note(&d, "few/2.jpg");
	}
	assert_int_equal(dataset_settle(&d, &e), 0);
	assert_int_equal(d.n, 3);
	assert_int_equal(d.bytes, 3 * FILE_BYTES);
	dataset_done(&d);
}

static void test_several_are_a_sample_of_their_folder(void **state)
{
	(void)state;
	struct dataset d = {0};
	struct error e = {0};
	note(&d, "few/0.jpg");
	note(&d, "few/1.jpg");
	note(&d, "few/2.jpg");
	note(&d, "few/3.jpg");
	note(&d, "train/a/notes.txt");
	assert_int_equal(dataset_settle(&d, &e), 0);
	assert_true(holds(&d, "few/5.jpg"));
	assert_false(holds(&d, "few/notes.txt"));
	assert_false(holds(&d, "train/a/0.jpg"));
	assert_false(holds(&d, "train/0.jpg")); // one folder is no sample of what lies beside it
	assert_int_equal(d.n, 7 + 1); // the empty one costs nothing
	dataset_done(&d);
}

static void test_a_file_of_several_names_counts_once(void **state)
{
	(void)state;
	struct dataset d = {0};
	struct error e = {0};
	char *link = path_of("link"), *first = path_of("few/0.jpg"), *hard = path_of("hard.jpg");
	assert_int_equal(symlink("few", link), 0);
	assert_int_equal(linkat(AT_FDCWD, first, AT_FDCWD, hard, 0), 0);
	note(&d, "link/0.jpg");
	note(&d, "few/0.jpg");
	note(&d, "few/1.jpg");
	note(&d, "hard.jpg");
	assert_int_equal(dataset_settle(&d, &e), 0);
	assert_int_equal(d.n, 2);
	assert_int_equal(d.bytes, 2 * FILE_BYTES);
	assert_int_equal(unlink(link), 0);
	assert_int_equal(unlink(hard), 0);
	free(link);
	free(first);
	free(hard);
	dataset_done(&d);
}

static void test_folders_of_classes(void **state)
{
	(void)state;
	struct dataset d = {0};
	struct error e = {0};
	note(&d, "train/a/0.jpg");
	note(&d, "train/b/4.jpg");
	note(&d, "train/c/2.jpg");
	note(&d, "train/d/3.jpg");
	assert_int_equal(dataset_settle(&d, &e), 0);
	assert_true(holds(&d, "train/e/5.jpg"));
	assert_false(holds(&d, "train/0.jpg"));
	assert_false(holds(&d, "few/0.jpg"));
	assert_int_equal(d.n, 5 * 6);
	dataset_done(&d);
}

static void test_lists_and_open_files(void **state)
{
	(void)state;
	struct dataset d = {0};
	struct error e = {0};
	char *list = path_of("opened-1"), *first = path_of("few/0.jpg"),
	     *second = path_of("few/1.jpg"), *third = path_of("few/2.jpg"),
	     *written = path_of("few/3.jpg");
	FILE *file = fopen(list, "w");
	assert_non_null(file);
	fprintf(file, "%s%c%c%s", first, 0, 0, second); // the last one torn
	fclose(file);
	assert_int_equal(dataset_note_lists(&d, folder, &e), 0);
	int fd = open(third, O_RDONLY), out = open(written, O_RDWR);
	assert_int_equal(dataset_note_process(&d, getpid()), 0);
	close(fd);
	close(out);
	assert_int_equal(dataset_settle(&d, &e), 0);
	assert_true(holds(&d, "few/0.jpg"));
	assert_false(holds(&d, "few/1.jpg"));
	assert_true(holds(&d, "few/2.jpg"));
	assert_false(holds(&d, "few/3.jpg"));
	assert_int_equal(dataset_note_process(&d, 0), 0); // nobody
	assert_int_equal(dataset_note_lists(&d, "/nonexistent", &e), -ENOENT);
	unlink(list);
	free(list);
	free(first);
	free(second);
	free(third);
	free(written);
	dataset_done(&d);
}

static bool on(void *context)
{
	return *(const bool *)context;
}

static void test_cold_and_warm(void **state)
{
	(void)state;
	struct dataset d = {0};
	struct error e = {0};
	struct statfs system;
	bool go = true;
	for (int i = 0; i < 6; i++) {
		char name[32];
		snprintf(name, sizeof(name), "few/%d.jpg", i);
		note(&d, name);
	}
	assert_int_equal(dataset_settle(&d, &e), 0);
	assert_int_equal(dataset_warm(&d, 1000, on, &go, &e), -ENOSPC);
	assert_int_equal(dataset_warm(&d, UINT64_MAX, on, &go, &e), 0);
	assert_true(dataset_cached(&d) == 1);
	assert_int_equal(dataset_cool(&d, &e), 0);
	assert_int_equal(statfs(folder, &system), 0);
	if (system.f_type != 0x01021994 &&
		system.f_type != 0x794c7630) { // tmpfs; overlayfs may keep
		assert_true(dataset_cached(&d) == 0);
	}
	// One of the six again, by hand.
	int fd = open(d.paths[2], O_RDONLY);
	assert_int_equal(dataset_fill_page_cache(fd), 0);
	close(fd);
	assert_true(dataset_cached(&d) * 6 >= 1);
	go = false;
	assert_int_equal(dataset_warm(&d, UINT64_MAX, on, &go, &e), -EINTR);
	dataset_done(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_no_data),
		cmocka_unit_test(test_few_files_are_themselves),
		cmocka_unit_test(test_several_are_a_sample_of_their_folder),
		cmocka_unit_test(test_a_file_of_several_names_counts_once),
		cmocka_unit_test(test_folders_of_classes),
		cmocka_unit_test(test_lists_and_open_files),
		cmocka_unit_test(test_cold_and_warm),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
