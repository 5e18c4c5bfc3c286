// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Run files of every version that there was stay readable.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "runfile/reader.h"

static struct reader *open_trace(const char *name)
{
	struct reader *r;
	struct error e = {0};
	_cleanup_free_ char *path = NULL;
	const char *root = getenv("SOURCE_ROOT");
	assert_true(asprintf(&path, "%s/tests/traces/%s", root ? root : ".", name) > 0);
	if (reader_open(path, &r, &e) < 0) {
		fail_msg("%s", e.text);
	}
	return r;
}

static void test_schema_1000(void **state)
{
	(void)state;
	struct error e = {0};
	struct series s;
	struct reader *r = open_trace("schema-1000.strain");
	assert_int_equal(reader_state(r), RUN_FINISHED);
	assert_null(reader_notice(r));
	assert_string_equal(reader_run(r, "hostname"), "node1");
	assert_string_equal(reader_label(r, "workers"), "2");
	assert_int_equal(reader_end_ns(r), 10000000000);
	assert_int_equal(reader_series(r, 3, "process.cpu.time", INT64_MIN, INT64_MAX, &s, &e), 0);
	assert_int_equal(s.n, 1000);
	assert_int_equal(s.t_us[999], 9990040);
	assert_float_equal(s.values[999], 5.271734, 1e-9);
	series_done(&s);
	assert_int_equal(
		reader_series(r, 3, "process.disk.io.read", INT64_MIN, INT64_MAX, &s, &e), 0);
	unsigned missing = 0;
	for (size_t i = 0; i < s.n; i++) {
		missing += isnan(s.values[i]);
	}
	assert_int_equal(s.n, 100);
	assert_int_equal(missing, 2);
	series_done(&s);
	assert_int_equal(reader_damage(r), 0);
	reader_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_schema_1000),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
