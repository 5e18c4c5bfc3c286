// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "machine/file.h"
#include "machine/machine.h"

static void test_files_of_every_length_are_read_whole(void **state)
{
	(void)state;
	static const size_t lengths[] = {
		0, 1, 2047, 2048, 2049, 3071, 3072, 4095, 4096, 4097, 8192, 20000};
	for (size_t i = 0; i < ARRAY_LENGTH(lengths); i++) {
		char path[] = "/tmp/strain-file-XXXXXX";
		_cleanup_close_ int fd = mkstemp(path);
		assert_true(fd >= 0);
		_cleanup_free_ char *content = malloc(lengths[i] + 1);
		memset(content, 'a', lengths[i]);
		if (lengths[i]) {
			content[lengths[i] - 1] = 'z';
		}
		assert_int_equal(write(fd, content, lengths[i]), lengths[i]);
		struct host_file f;
		struct error e = {0};
		assert_int_equal(host_file_open(&f, AT_FDCWD, path, &e), 0);
		for (int round = 0; round < 3; round++) {
			struct cursor text;
			assert_int_equal(round < 2 ? host_file_read(&f, &text)
						   : host_file_read_to_end(&f, &text),
				0);
			assert_int_equal(text.end - text.at, lengths[i]);
			assert_memory_equal(text.at, content, lengths[i]);
		}
		host_file_close(&f);
		unlink(path);
	}
}

// vmstat is between two and four kilobytes long, and its end must be there from the first reading.
static void test_a_kernel_file_is_read_to_its_last_line(void **state)
{
	(void)state;
	static const char *const paths[] = {"/proc/vmstat", "/proc/stat", "/proc/meminfo"};
	for (size_t i = 0; i < ARRAY_LENGTH(paths); i++) {
		struct host_file f;
		struct cursor text;
		assert_int_equal(host_file_open(&f, AT_FDCWD, paths[i], NULL), 0);
		assert_int_equal(host_file_read(&f, &text), 0);
		size_t first = (size_t)(text.end - text.at);
		assert_int_equal(text.end[-1], '\n');
		assert_int_equal(host_file_read_to_end(&f, &text), 0);
		// Numbers may have grown by a digit in between, but no line is missing.
		assert_true((size_t)(text.end - text.at) < first + 100);
		host_file_close(&f);
	}
}

static void test_errors_name_the_file(void **state)
{
	(void)state;
	struct host_file f;
	struct error e = {0};
	int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(host_file_open(&f, root, "no/such/file", &e), -ENOENT);
	assert_string_equal(e.text, "/no/such/file: No such file or directory");
	close(root);
}

static void test_the_first_line(void **state)
{
	(void)state;
	static const struct {
		const char *content, *line;
	} cases[] = {
		{"  Model 3  \nnext\n", "Model 3"},
		{"ends here", "ends here"},
		{"longer than the space for it\n", "longer than the"},
		{"\nsecond\n", ""},
		{"", "unchanged"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		char path[] = "/tmp/strain-file-XXXXXX", line[16] = "unchanged";
		_cleanup_close_ int fd = mkstemp(path);
		size_t length = strlen(cases[i].content);
		assert_int_equal(write(fd, cases[i].content, length), length);
		assert_int_equal(file_read_line(AT_FDCWD, path, line, sizeof(line)), i < 3);
		assert_string_equal(line, cases[i].line);
		unlink(path);
	}
	char line[16];
	assert_false(file_read_line(AT_FDCWD, "/no/such/file", line, sizeof(line)));
}

static void write_table(int root, size_t lines, const char *last)
{
	int fd = openat(root, "proc/bus/pci/devices", O_WRONLY | O_CREAT | O_TRUNC, 0600);
	FILE *table = fdopen(fd, "w");
	assert_non_null(table);
	for (size_t i = 1; i <= lines; i++) { // as long as the kernel's
		fprintf(table, "%04zx\t%s\t1f", i, i < lines ? "8086a0ef" : last);
		for (int k = 0; k < 14; k++) {
			fprintf(table, "\t%16x", 0x10de);
		}
		fprintf(table, "\tdriver\n");
	}
	assert_int_equal(fclose(table), 0);
}

static void test_the_last_device_of_a_long_table_counts(void **state)
{
	(void)state;
	char path[] = "/tmp/strain-root-XXXXXX";
	assert_non_null(mkdtemp(path));
	int root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(machine_pci_devices(root, "10de"), -ENOENT);
	assert_int_equal(mkdirat(root, "proc", 0700), 0);
	assert_int_equal(mkdirat(root, "proc/bus", 0700), 0);
	assert_int_equal(mkdirat(root, "proc/bus/pci", 0700), 0);
	write_table(root, 40, "10DE20b2");
	assert_int_equal(machine_pci_devices(root, "10de"), 1);
	write_table(root, 40, "10de20b");
	assert_int_equal(machine_pci_devices(root, "10de"), 0);
	write_table(root, 4000, "10de20b2"); // what has no end is not known
	assert_int_equal(machine_pci_devices(root, "10de"), -EFBIG);
	unlinkat(root, "proc/bus/pci/devices", 0);
	unlinkat(root, "proc/bus/pci", AT_REMOVEDIR);
	unlinkat(root, "proc/bus", AT_REMOVEDIR);
	unlinkat(root, "proc", AT_REMOVEDIR);
	close(root);
	rmdir(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files_of_every_length_are_read_whole),
		cmocka_unit_test(test_a_kernel_file_is_read_to_its_last_line),
		cmocka_unit_test(test_errors_name_the_file),
		cmocka_unit_test(test_the_first_line),
		cmocka_unit_test(test_the_last_device_of_a_long_table_counts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
