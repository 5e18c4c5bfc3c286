// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Every source, on the machine that runs the test: what it declares, and that opening and reading
// it yields a value or a reason for each of its metrics. Values are tested on captured machines
// (tests/hosts).

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "record/sample/feed.h"
#include "record/sample/source.h"

extern const struct source source_null;

static void test_no_metric_is_declared_twice(void **state)
{
	(void)state;
	struct declared {
		const struct metric *metric;
		enum entity_kind kind;
	} all[1024];
	size_t n = 0;
	for (size_t i = 0; source_list[i]; i++) {
		for (size_t g = 0; g < source_list[i]->n_groups; g++) {
			const struct group *group = &source_list[i]->groups[g];
			for (size_t m = 0; m < group->n_metrics; m++) {
				for (size_t k = 0; k < n; k++) {
					// Sources of one device share a table.
					if (all[k].kind == group->entity_kind &&
						all[k].metric != &group->metrics[m] &&
						strcmp(all[k].metric->name,
							group->metrics[m].name) == 0) {
						fail_msg("%s is declared twice for a %s",
							group->metrics[m].name,
							entity_kind_name(group->entity_kind));
					}
				}
				assert_true(n < ARRAY_LENGTH(all));
				all[n++] = (struct declared){
					&group->metrics[m], group->entity_kind};
			}
		}
	}
	assert_true(n > 50);
}

static void test_every_metric_is_explained(void **state)
{
	(void)state;
	for (size_t i = 0; source_list[i]; i++) {
		const struct source *source = source_list[i];
		assert_non_null(source->help);
		for (size_t g = 0; g < source->n_groups; g++) {
			for (size_t m = 0; m < source->groups[g].n_metrics; m++) {
				const struct metric *metric = &source->groups[g].metrics[m];
				size_t length = metric->help ? strlen(metric->help) : 0;
				if (length < 20 || metric->help[length - 1] != '.' ||
					!(metric->scale > 0) || !metric->unit[0]) {
					fail_msg("%s lacks help, unit or scale", metric->name);
				}
				if (strstr(metric->help, "  ")) {
					fail_msg("%s: help has two blanks", metric->name);
				}
			}
		}
	}
}

struct run {
	struct registry registry;
	struct feed *feed;
	struct sink *sink;
	struct source_context context;
};

static int set_up(void **state)
{
	struct run *r = calloc(1, sizeof(*r));
	r->context = (struct source_context){
		.root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC),
		.host = 1,
		.job = 2,
		.recorder = 3,
		.start_ns = clock_monotonic_ns(),
	};
	r->registry.last_entity = 3;
	assert_int_equal(feed_new((size_t)64 << 20, &r->feed), 0);
	assert_int_equal(sink_new(&r->registry, r->feed, r->context.start_ns, &r->sink), 0);
	*state = r;
	return 0;
}

static int tear_down(void **state)
{
	struct run *r = *state;
	sink_free(r->sink);
	feed_free(r->feed);
	registry_done(&r->registry);
	close(r->context.root_fd);
	free(r);
	return 0;
}

// Takes what the sink has; counts rows and reasons.
static void drain(struct run *r, size_t *rows, size_t *missing)
{
	*rows = *missing = 0;
	sink_flush(r->sink);
	struct item *item = feed_take(r->feed, 0);
	while (item) {
		struct item *next = item->next;
		*rows += item->kind == ITEM_BLOCK ? item->block.n_rows : 0;
		*missing += item->kind == ITEM_MISSING;
		item_free(item);
		item = next;
	}
}

static void open_and_read(struct run *r, const struct source *source)
{
	struct error e = {0};
	void *opened = NULL;
	size_t rows, missing;
	for (size_t g = 0; g < source->n_groups; g++) {
		assert_int_equal(registry_add(&r->registry, source->name, &source->groups[g]), 0);
	}
	int result = source->open(&r->context, r->sink, &opened, &e);
	if (result < 0) {
		assert_int_equal(result, -e.code);
		assert_true(strlen(e.text) > 0);
		print_message("%s: %s\n", source->name, e.text);
		drain(r, &rows, &missing);
		return;
	}
	for (size_t round = 0; round < 3; round++) {
		for (size_t g = 0; g < source->n_groups; g++) {
			(void)source->groups[g].read(opened, r->sink, clock_monotonic_ns());
		}
	}
	drain(r, &rows, &missing);
	print_message("%s: %zu rows, %zu missing\n", source->name, rows, missing);
	// A disk or an interface need not be here; everything else says something.
	assert_true(rows + missing > 0 || source->groups[0].entity_kind == ENTITY_DISK ||
		    source->groups[0].entity_kind == ENTITY_NETWORK ||
		    source->groups[0].entity_kind == ENTITY_GPU);
	source->close(opened);
	drain(r, &rows, &missing);
}

static void test_every_source_opens_or_says_why(void **state)
{
	for (size_t i = 0; source_list[i]; i++) {
		open_and_read(*state, source_list[i]);
		source_list[i]->close(NULL);
	}
}

static void test_the_template_works(void **state)
{
	open_and_read(*state, &source_null);
	source_null.close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_metric_is_declared_twice),
		cmocka_unit_test(test_every_metric_is_explained),
		cmocka_unit_test_setup_teardown(
			test_every_source_opens_or_says_why, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_template_works, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
