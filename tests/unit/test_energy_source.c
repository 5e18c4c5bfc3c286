// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The energy source on a tree of files that the test changes: which domains count, counters that
// wrap, and what is missing.

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
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "record/sample/feed.h"
#include "record/sample/source.h"

extern const struct source source_energy;

#define MISSING VALUE_MISSING

struct machine {
	char directory[32];
	struct registry registry;
	struct feed *feed;
	struct sink *sink;
	struct source_context context;
	void *opened;
};

static void shell(const struct machine *m, const char *command)
{
	char line[2048];
	snprintf(line, sizeof(line), "cd %s && %s", m->directory, command);
	assert_int_equal(system(line), 0);
}

static int set_up(void **state)
{
	struct machine *m = calloc(1, sizeof(*m));
	snprintf(m->directory, sizeof(m->directory), "/tmp/strain-test-XXXXXX");
	assert_non_null(mkdtemp(m->directory));
	m->context = (struct source_context){
		.root_fd = open(m->directory, O_PATH | O_DIRECTORY | O_CLOEXEC),
		.captured = true,
		.host = 1,
		.start_ns = clock_monotonic_ns(),
	};
	m->registry.last_entity = 3;
	assert_int_equal(feed_new((size_t)1 << 20, &m->feed), 0);
	assert_int_equal(sink_new(&m->registry, m->feed, m->context.start_ns, &m->sink), 0);
	assert_int_equal(
		registry_add(&m->registry, source_energy.name, &source_energy.groups[0]), 0);
	*state = m;
	return 0;
}

static int tear_down(void **state)
{
	struct machine *m = *state;
	char line[64];
	source_energy.close(m->opened);
	sink_free(m->sink);
	feed_free(m->feed);
	registry_done(&m->registry);
	close(m->context.root_fd);
	snprintf(line, sizeof(line), "rm -r %s", m->directory);
	int r = system(line);
	free(m);
	return r;
}

// Makes a domain with a counter in microjoules.
static void make(const struct machine *m, const char *folder, const char *name, const char *uj)
{
	char line[512];
	snprintf(line, sizeof(line),
		"mkdir -p sys/class/powercap/%s && cd sys/class/powercap/%s && echo %s >name && "
		"echo %s >energy_uj && echo 1000000000 >max_energy_range_uj",
		folder, folder, name, uj);
	shell(m, line);
}

static void set(const struct machine *m, const char *folder, const char *uj)
{
	char line[256];
	snprintf(line, sizeof(line), "echo %s >sys/class/powercap/%s/energy_uj", uj, folder);
	shell(m, line);
}

static void open_source(struct machine *m)
{
	struct error e = {0};
	if (source_energy.open(&m->context, m->sink, &m->opened, &e) < 0) {
		fail_msg("%s", e.text);
	}
}

// Reads once, and checks the row in millijoules.
static void reads(struct machine *m, int64_t host, int64_t platform)
{
	bool any = false;
	assert_int_equal(source_energy.groups[0].read(m->opened, m->sink, clock_monotonic_ns()), 0);
	sink_flush(m->sink);
	for (struct item *item = feed_take(m->feed, 0), *next; item; item = next) {
		next = item->next;
		if (item->kind == ITEM_BLOCK) {
			assert_int_equal(item->block.n_rows, 1);
			assert_int_equal(item->block.columns[0][0], host);
			assert_int_equal(item->block.columns[1][0], platform);
			any = true;
		}
		item_free(item);
	}
	assert_true(any);
}

static void test_packages_and_memory_add_up(void **state)
{
	struct machine *m = *state;
	make(m, "intel-rapl:0", "package-0", "5000000");
	make(m, "intel-rapl:0:0", "core", "4000000"); // part of the package
	make(m, "intel-rapl:0:1", "dram", "1000000");
	make(m, "intel-rapl:1", "package-1", "7000000");
	open_source(m);
	reads(m, 0, MISSING); // counted from here
	set(m, "intel-rapl:0", "5250000");
	set(m, "intel-rapl:0:0", "4200000");
	set(m, "intel-rapl:0:1", "1030000");
	set(m, "intel-rapl:1", "7500000");
	reads(m, 250 + 30 + 500, MISSING);
	set(m, "intel-rapl:1", "7500999"); // less than a millijoule is not lost
	reads(m, 780, MISSING);
	set(m, "intel-rapl:1", "7501000");
	reads(m, 781, MISSING);
}

static void test_a_counter_that_wraps_goes_on(void **state)
{
	struct machine *m = *state;
	make(m, "intel-rapl:0", "package-0", "999000000");
	make(m, "intel-rapl:1", "psys", "2000000");
	open_source(m);
	reads(m, 0, 0);
	set(m, "intel-rapl:0", "500000"); // after 1 J the counter began again
	set(m, "intel-rapl:1", "12000000");
	reads(m, 1500, 10000);
}

// A part that cannot be read now makes the sum unknown, not small; later it is known again.
static void test_an_unreadable_moment_is_missing(void **state)
{
	struct machine *m = *state;
	make(m, "intel-rapl:0", "package-0", "1000000");
	make(m, "intel-rapl:1", "package-1", "1000000");
	open_source(m);
	reads(m, 0, MISSING);
	set(m, "intel-rapl:0", "oops");
	set(m, "intel-rapl:1", "3000000");
	reads(m, MISSING, MISSING);
	set(m, "intel-rapl:0", "-5");
	reads(m, MISSING, MISSING);
	set(m, "intel-rapl:0", "4000000");
	reads(m, 5000, MISSING);
}

static void test_a_machine_without_counters_says_so(void **state)
{
	struct machine *m = *state;
	struct error e = {0};
	assert_int_equal(source_energy.open(&m->context, m->sink, &m->opened, &e), -ENOENT);
	assert_non_null(strstr(e.text, "/sys/class/powercap"));
	make(m, "intel-rapl:0", "package-0", "");
	assert_int_equal(source_energy.open(&m->context, m->sink, &m->opened, &e), -EIO);
	assert_non_null(strstr(e.text, "intel-rapl:0/energy_uj"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_packages_and_memory_add_up, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_counter_that_wraps_goes_on, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_an_unreadable_moment_is_missing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_machine_without_counters_says_so, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
