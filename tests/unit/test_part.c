// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/installation.h"

static void make_file(const char *folder, const char *name, mode_t mode)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, mode);
	assert_true(fd >= 0);
	close(fd);
}

static void remove_file(const char *folder, const char *name)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(unlink(path), 0);
}

static void test_the_home_comes_first(void **state)
{
	(void)state;
	char folder[] = "/tmp/strain-test-XXXXXX", expected[128];
	assert_non_null(mkdtemp(folder));
	make_file(folder, "test_part", 0700); // as the program that runs
	make_file(folder, "text", 0600);
	setenv("STRAIN_HOME", folder, 1);
	char *found = installation_find("test_part", X_OK, NULL);
	snprintf(expected, sizeof(expected), "%s/test_part", folder);
	assert_string_equal(found, expected);
	free(found);
	assert_null(installation_find("text", X_OK, NULL)); // it cannot be run
	found = installation_find("text", R_OK, NULL);
	assert_non_null(found);
	free(found);
	remove_file(folder, "test_part");
	remove_file(folder, "text");
	assert_int_equal(rmdir(folder), 0);
}

static void test_else_beside_the_program(void **state)
{
	(void)state;
	setenv("STRAIN_HOME", "/nowhere", 1);
	char *found = installation_find("test_part", X_OK, NULL);
	assert_non_null(found);
	assert_non_null(strstr(found, "/test_part"));
	free(found);
	unsetenv("STRAIN_HOME");
	found = installation_find("test_part", X_OK, NULL);
	assert_non_null(found);
	free(found);
	assert_null(installation_find("strain-no-such-part", R_OK, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_home_comes_first),
		cmocka_unit_test(test_else_beside_the_program),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
