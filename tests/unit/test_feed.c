// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The queue to the run file: whose rows are spared where nobody takes them.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "base/clock.h"
#include "record/sample/feed.h"
#include "record/sample/source.h"

#define MAX_BYTES ((size_t)256 << 10)

static void free_items(struct item *item)
{
	while (item) {
		struct item *next = item->next;
		item_free(item);
		item = next;
	}
}

static bool put_rows(struct feed *f, enum entity_kind kind)
{
	return feed_put(f, &(struct item){.kind = ITEM_BLOCK,
				   .entity = 1,
				   .entity_kind = kind,
				   .source = "test",
				   .block = {.n_rows = 10, .n_columns = 10}});
}

// Until there is no more room for them. How many there were.
static unsigned fill(struct feed *f, enum entity_kind kind)
{
	unsigned n = 0;
	while (n < 100000 && put_rows(f, kind)) {
		n++;
	}
	return n;
}

static void test_rows_of_processes_are_spared_first(void **state)
{
	(void)state;
	struct feed *f;
	assert_int_equal(feed_new(MAX_BYTES, &f), 0);
	assert_true(fill(f, ENTITY_PROCESS) > 100);
	assert_int_equal(feed_lost_rows(f), 10);
	assert_false(put_rows(f, ENTITY_GPU));
	assert_true(put_rows(f, ENTITY_JOB));
	assert_true(put_rows(f, ENTITY_HOST));
	assert_true(put_rows(f, ENTITY_RECORDER));
	assert_false(put_rows(f, ENTITY_PROCESS)); // still not
	assert_int_equal(feed_lost_rows(f), 30);
	free_items(feed_take(f, 0));
	assert_null(feed_take(f, 0));
	assert_true(put_rows(f, ENTITY_PROCESS));
	feed_free(f);
}

// What a slow writer holds is memory of the recorder as much as what waits for it.
static void test_what_the_reader_holds_counts(void **state)
{
	(void)state;
	struct feed *f;
	assert_int_equal(feed_new(MAX_BYTES, &f), 0);
	unsigned room = fill(f, ENTITY_PROCESS);
	struct item *held = feed_take(f, 0);
	assert_int_equal(feed_bytes(f), 0);
	assert_int_equal(fill(f, ENTITY_PROCESS), 0);
	free_items(held);
	assert_null(feed_take(f, 0));
	assert_int_equal(fill(f, ENTITY_PROCESS), room);
	feed_free(f);
}

static void test_what_is_no_row_has_room_also_then(void **state)
{
	(void)state;
	struct feed *f;
	assert_int_equal(feed_new(MAX_BYTES, &f), 0);
	assert_true(fill(f, ENTITY_JOB) > 100); // many seconds of nobody who takes them
	for (unsigned i = 0; i < 100; i++) {
		assert_true(feed_put(
			f, &(struct item){
				   .kind = ITEM_ENTITY, .entity = i, .key = "1:2", .name = "sh"}));
	}
	assert_true(feed_put(f, &(struct item){.kind = ITEM_EVENT, .event = "lost", .text = "x"}));
	feed_free(f);
}

static int read_nothing(void *state, struct sink *sink, uint64_t now_ns)
{
	(void)state;
	(void)sink;
	(void)now_ns;
	return 0;
}

// A row says whose it is by its group.
static void test_rows_know_whose_they_are(void **state)
{
	(void)state;
	static const struct metric metrics[] = {{"test", METRIC_GAUGE, "1", 1, "A test."}};
	static const struct group groups[] = {
		{"job", ENTITY_JOB, metrics, 1, 0, read_nothing, SHARED_NOT},
		{"processes", ENTITY_PROCESS, metrics, 1, 0, read_nothing, SHARED_NOT}};
	struct registry registry = {0};
	struct feed *f;
	struct sink *sink;
	const int64_t value = 7;
	assert_int_equal(feed_new(MAX_BYTES, &f), 0);
	assert_int_equal(sink_new(&registry, f, 0, &sink), 0);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(registry_add(&registry, "test", &groups[i]), 0);
		struct stream *stream = sink_stream(sink, 1, &groups[i]);
		assert_non_null(stream);
		stream_row(stream, NS_PER_S, &value);
		stream_close(stream);
		struct item *item = feed_take(f, 0);
		assert_non_null(item);
		assert_int_equal(item->kind, ITEM_BLOCK);
		assert_int_equal(item->entity_kind, groups[i].entity_kind);
		free_items(item);
	}
	sink_free(sink);
	feed_free(f);
	registry_done(&registry);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_of_processes_are_spared_first),
		cmocka_unit_test(test_what_the_reader_holds_counts),
		cmocka_unit_test(test_what_is_no_row_has_room_also_then),
		cmocka_unit_test(test_rows_know_whose_they_are),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
