// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What a job wrote of the lines that it was in: taken where it is well-formed, passed over else.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "record/mark/hooks.h"

static struct line_process parse(const char *text)
{
	struct line_process process = {0};
	assert_int_equal(line_counts_parse(text, strlen(text), &process), 0);
	return process;
}

static void rows_of_one_line_add_up(void **state)
{
	(void)state;
	struct line_process p = parse("process 4026531836 123456789\n"
				      "3\tforward\t42\t/home/me/train.py\tstep\n"
				      "2\t\t7\t/home/me/train.py\t<module>\n"
				      "4\tforward\t42\t/home/me/train.py\tstep\n");
	assert_int_equal(p.who.pid_namespace, 4026531836);
	assert_int_equal(p.who.at_ns, 123456789);
	assert_int_equal(p.n, 2);
	assert_int_equal(p.counts[0].samples, 7);
	assert_int_equal(p.counts[0].line, 42);
	assert_string_equal(p.counts[0].phase, "forward");
	assert_string_equal(p.counts[0].file, "/home/me/train.py");
	assert_string_equal(p.counts[0].function, "step");
	assert_string_equal(p.counts[1].phase, "");
	line_process_done(&p);
}

static void what_is_not_well_formed_is_passed_over(void **state)
{
	static const char *const lines[] = {
		"0\tforward\t42\ttrain.py\tstep\n", // no look
		"-1\tforward\t42\ttrain.py\tstep\n", "99999999999\tforward\t42\ttrain.py\tstep\n",
		"1x\tforward\t42\ttrain.py\tstep\n", "1\tforward\t-42\ttrain.py\tstep\n",
		"1\tforward\t\ttrain.py\tstep\n",
		"1\tforward\t42\t\tstep\n", // in no file
		"1\ta phase with a name that is far too long\t42\ttrain.py\tstep\n",
		"1\tforward\t42\ttrain.py\tstep\tmore\n", "1\tforward\t42\n", "process\n",
		"process x y\n", "\n", "\t\t\t\t\n",
		"1\tforward\t42\ttrain.py\tstep", // it was being written
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LENGTH(lines); i++) {
		struct line_process p = parse(lines[i]);
		if (p.n != 0 || p.who.at_ns != 0) {
			fail_msg("taken: %s", lines[i]);
		}
		line_process_done(&p);
	}
}

static void names_can_be_shown(void **state)
{
	(void)state;
	struct line_process p = parse("1\tfor\x1bward\t42\t/x/\x1b[31mtrain.py\tst\xff"
				      "ep\n");
	assert_int_equal(p.n, 1);
	assert_null(strchr(p.counts[0].phase, '\x1b'));
	assert_null(strchr(p.counts[0].file, '\x1b'));
	assert_null(strchr(p.counts[0].function, 0xff));
	line_process_done(&p);
}

static void rows_are_bounded(void **state)
{
	(void)state;
	_cleanup_text_ struct text t = {0};
	for (int i = 0; i < 5000; i++) {
		text_format(&t, "2000000000\t\t%d\ttrain.py\tf\n", i);
	}
	text_append_string(&t, "2000000000\t\t0\ttrain.py\tf\n");
	struct line_process p = parse(t.data);
	assert_int_equal(p.n, 2048);
	assert_int_equal(p.counts[0].samples, INT32_MAX); // the sum is, too
	line_process_done(&p);
}

static void put_file(const char *folder, const char *name, const char *text)
{
	_cleanup_text_ struct text path = {0};
	text_format(&path, "%s/%s", folder, name);
	FILE *file = fopen(path.data, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

// A job that writes as much as it can.
static void rows_of_all_files_are_bounded(void **state)
{
	(void)state;
	enum { FILES = 80, ROWS = 2100, BOUND = 65 * 2048 };
	char folder[] = "/tmp/strain-lines-XXXXXX", name[64];
	_cleanup_text_ struct text text = {0};
	struct line_counts counts;
	size_t rows = 0;
	assert_non_null(mkdtemp(folder));
	for (int i = 0; i < ROWS; i++) {
		text_format(&text, "1\t\t%d\ta.py\tf\n", i);
	}
	for (int i = 1; i <= FILES; i++) {
		snprintf(name, sizeof(name), "lines-%d", i);
		put_file(folder, name, text.data);
	}
	int directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(line_counts_read(directory, &counts), 0);
	for (size_t i = 0; i < counts.n; i++) {
		rows += counts.processes[i].n;
	}
	assert_in_range(rows, 2048, BOUND);
	line_counts_done(&counts);
	close(directory);
	for (int i = 1; i <= FILES; i++) {
		snprintf(name, sizeof(name), "%s/lines-%d", folder, i);
		(void)unlink(name);
	}
	assert_int_equal(rmdir(folder), 0);
}

static void files_of_the_directory_are_read(void **state)
{
	char folder[] = "/tmp/strain-lines-XXXXXX";
	struct line_counts counts;
	(void)state;
	assert_non_null(mkdtemp(folder));
	put_file(folder, "lines-12", "process 1 2\n1\t\t3\ta.py\tf\n");
	put_file(folder, "lines-x", "1\t\t3\ta.py\tf\n");
	put_file(folder, "hook-12", "1\t\t3\ta.py\tf\n");
	int directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(directory >= 0);
	assert_int_equal(mkfifoat(directory, "lines-13", 0600), 0);
	assert_int_equal(symlinkat("lines-12", directory, "lines-14"), 0);
	assert_int_equal(line_counts_read(directory, &counts), 0);
	assert_int_equal(counts.n, 1);
	assert_int_equal(counts.processes[0].who.inner_pid, 12);
	assert_int_equal(counts.processes[0].n, 1);
	line_counts_done(&counts);
	assert_int_equal(line_counts_read(-1, &counts), 0);
	assert_int_equal(counts.n, 0);
	static const char *const names[] = {
		"lines-12", "lines-x", "hook-12", "lines-13", "lines-14"};
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		assert_int_equal(unlinkat(directory, names[i], 0), 0);
	}
	close(directory);
	assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_of_one_line_add_up),
		cmocka_unit_test(what_is_not_well_formed_is_passed_over),
		cmocka_unit_test(names_can_be_shown),
		cmocka_unit_test(rows_are_bounded),
		cmocka_unit_test(files_of_the_directory_are_read),
		cmocka_unit_test(rows_of_all_files_are_bounded),
	};
	return cmocka_run_group_tests_name("line counts", tests, NULL, NULL);
}
