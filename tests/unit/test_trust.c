// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/trust.h"

#define OTHER 65533u

struct place {
	char folder[64];
	char path[128];
};

static const char *path_of(struct place *p, const char *name)
{
	snprintf(p->path, sizeof(p->path), "%s/%s", p->folder, name);
	return p->path;
}

static void make_folder(struct place *p, const char *name, mode_t mode)
{
	assert_int_equal(mkdir(path_of(p, name), 0700), 0);
	assert_int_equal(chmod(p->path, mode), 0);
}

static void make_file(struct place *p, const char *name, mode_t mode)
{
	int fd = open(path_of(p, name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static struct trust look(struct place *p, const char *name)
{
	struct trust t;
	struct error e = {0};
	assert_int_equal(trust_of(path_of(p, name), &t, &e), 0);
	return t;
}

static int set_up(void **state)
{
	static struct place place;
	memcpy(place.folder, "/tmp/strain-test-XXXXXX", sizeof("/tmp/strain-test-XXXXXX"));
	*state = &place;
	return mkdtemp(place.folder) ? 0 : -1;
}

static int tear_down(void **state)
{
	struct place *p = *state;
	static const char *const names[] = {
		"link/file", "a/b/file", "a/b/own", "a/link", "a/b", "a", "link", "loop", "file"};
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		remove(path_of(p, names[i]));
	}
	return rmdir(p->folder);
}

static void test_own_files_below_tmp(void **state)
{
	struct place *p = *state;
	make_folder(p, "a", 0755);
	make_file(p, "a/link", 0644);
	struct trust t = look(p, "a/link");
	assert_false(t.everyone);
	assert_true(t.in_public); // below /tmp: the name is free for all once it is gone
	assert_int_equal(t.n_groups, 0);
}

static void test_a_folder_on_the_way_that_others_write(void **state)
{
	struct place *p = *state;
	make_folder(p, "a", 0777);
	make_folder(p, "a/b", 0755);
	make_file(p, "a/b/file", 0644);
	assert_true(look(p, "a/b/file").everyone);
	assert_int_equal(chmod(path_of(p, "a"), 0775), 0);
	struct trust t = look(p, "a/b/file");
	assert_false(t.everyone);
	assert_int_equal(t.n_groups, 1);
	assert_int_equal(t.groups[0], getegid());
	// As in /tmp: what is there stays.
	assert_int_equal(chmod(path_of(p, "a"), 01777), 0);
	t = look(p, "a/b/file");
	assert_false(t.everyone);
	assert_true(t.in_public);
}

static void test_links_are_followed(void **state)
{
	struct place *p = *state;
	make_folder(p, "a", 0700);
	make_folder(p, "a/b", 0777);
	make_file(p, "a/b/file", 0600);
	assert_int_equal(symlink("a/./b/../b", path_of(p, "link")), 0);
	assert_true(look(p, "link/file").everyone);
	assert_int_equal(chmod(path_of(p, "a/b"), 0700), 0);
	assert_false(look(p, "link/file").everyone);
	assert_int_equal(symlink("loop", path_of(p, "loop")), 0);
	struct trust t;
	struct error e = {0};
	assert_int_equal(trust_of(path_of(p, "loop/file"), &t, &e), -ELOOP);
	assert_int_equal(trust_of(path_of(p, "none"), &t, &e), -ENOENT);
	assert_non_null(strstr(e.text, "none"));
}

static void test_a_link_that_leads_out(void **state)
{
	struct place *p = *state;
	make_folder(p, "a", 0777);
	assert_int_equal(symlink("/usr/bin/env", path_of(p, "a/link")), 0);
	// The program is root's, the link to it everyone's to change.
	assert_true(look(p, "a/link").everyone);
}

static void test_another_owner(void **state)
{
	struct place *p = *state;
	if (geteuid() != 0) {
		skip(); // only root gives files away
	}
	make_folder(p, "a", 0755);
	make_file(p, "a/link", 0644);
	assert_int_equal(chown(path_of(p, "a"), OTHER, OTHER), 0);
	struct trust t = look(p, "a/link"), none = {0};
	assert_int_equal(t.n_owners, 1);
	assert_int_equal(t.owners[0], OTHER);
	assert_false(trust_within(&t, &none));
	assert_true(trust_within(&none, &t));
	struct error e = {0};
	assert_int_equal(trust_part(path_of(p, "a/link"), false, &e), -EPERM);
	assert_non_null(strstr(e.text, "user 65533 can change it"));
}

static void test_parts(void **state)
{
	struct place *p = *state;
	struct error e = {0};
	make_folder(p, "a", 0755);
	make_file(p, "a/link", 0644);
	assert_int_equal(trust_part(path_of(p, "a/link"), false, &e), 0);
	assert_int_equal(trust_part(path_of(p, "a/link"), true, &e), -EPERM);
	assert_non_null(strstr(e.text, "everyone can create files"));
	assert_int_equal(chmod(path_of(p, "a"), 0777), 0);
	assert_int_equal(trust_part(path_of(p, "a/link"), false, &e), -EPERM);
	assert_non_null(strstr(e.text, "everyone can change it"));
}

static void test_a_group_is_no_other(void **state)
{
	(void)state;
	const struct trust one = {.groups = {7}, .n_groups = 1};
	const struct trust two = {.groups = {5, 7}, .n_groups = 2};
	const struct trust all = {.everyone = true};
	assert_true(trust_within(&one, &two));
	assert_false(trust_within(&two, &one));
	assert_true(trust_within(&two, &all));
	assert_false(trust_within(&all, &two));
}

static void test_own(void **state)
{
	struct place *p = *state;
	struct error e = {0};
	make_folder(p, "a", 0755);
	int fd = open(path_of(p, "a"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(trust_own(fd, p->path, &e), 0);
	assert_int_equal(fchmod(fd, 0775), 0);
	assert_int_equal(trust_own(fd, p->path, &e), -EPERM);
	assert_non_null(strstr(e.text, "chmod go-w '"));
	if (geteuid() == 0) {
		assert_int_equal(fchown(fd, OTHER, OTHER), 0);
		assert_int_equal(trust_own(fd, p->path, &e), -EPERM);
		assert_non_null(strstr(e.text, "dubious ownership"));
	}
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_own_files_below_tmp, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_folder_on_the_way_that_others_write, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_links_are_followed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_link_that_leads_out, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_another_owner, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_parts, set_up, tear_down),
		cmocka_unit_test(test_a_group_is_no_other),
		cmocka_unit_test_setup_teardown(test_own, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
