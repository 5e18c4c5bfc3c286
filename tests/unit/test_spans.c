// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// From marks of threads to spans: kinds, parents, ends, epochs, and what is not kept.

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "record/mark/ring.h"
#include "record/sample/feed.h"
#include "record/mark/spans.h"

struct spans_fixture {
	struct feed *feed;
	struct spans *spans;
	struct marked_thread *thread;
	_Atomic unsigned epochs;
	struct item *items;
};

static void spans_setup(struct spans_fixture *f, uint64_t max)
{
	memset(f, 0, sizeof(*f));
	assert_int_equal(feed_new((size_t)64 << 20, &f->feed), 0);
	assert_int_equal(spans_new(f->feed, 1000, max, &f->epochs, &f->spans), 0);
	assert_int_equal(marked_thread_new(f->spans, 8, &f->thread), 0);
	marked_thread_owner(f->thread, 5, &(struct ring_owner){.pid = 7});
}

static void items_free(struct item *item)
{
	while (item) {
		struct item *next = item->next;
		item_free(item);
		item = next;
	}
}

static void spans_teardown(struct spans_fixture *f)
{
	items_free(f->items);
	spans_free(f->spans);
	feed_free(f->feed);
}

static void mark(struct marked_thread *thread, enum strain_mark_kind kind, unsigned depth,
	const char *name, uint64_t t, int64_t number, int64_t samples)
{
	struct ring_mark m = {.kind = kind,
		.depth = depth,
		.name = name,
		.time_ns = 1000 + t,
		.number = number,
		.samples = samples,
		.value = 0.25};
	marked_thread_take(thread, &m);
}

static const struct item *find(struct spans_fixture *f, enum item_kind kind, const char *name)
{
	if (!f->items) {
		f->items = feed_take(f->feed, 0);
	}
	for (const struct item *i = f->items; i; i = i->next) {
		if (i->kind == kind && (!name || strcmp(i->name, name) == 0)) {
			return i;
		}
	}
	return NULL;
}

static void spans_have_kinds_and_parents(void **state)
{
	(void)state;
	struct spans_fixture f;
	spans_setup(&f, 1000);
	mark(f.thread, STRAIN_MARK_EPOCH, 0, "", 10, 1, -1);
	mark(f.thread, STRAIN_MARK_ITERATION, 0, "", 20, 4, 32);
	mark(f.thread, STRAIN_MARK_BEGIN, 0, "forward", 30, -1, -1);
	mark(f.thread, STRAIN_MARK_BEGIN, 1, "mine", 31, -1, -1);
	mark(f.thread, STRAIN_MARK_POINT, 2, "loss", 32, -1, -1);
	mark(f.thread, STRAIN_MARK_END, 1, "", 33, -1, -1);
	mark(f.thread, STRAIN_MARK_END, 0, "", 40, -1, -1);
	mark(f.thread, STRAIN_MARK_ITERATION, 0, "", 50, 5, 32);
	mark(f.thread, STRAIN_MARK_ITERATION_END, 0, "", 55, -1, 48);
	mark(f.thread, STRAIN_MARK_ITERATION, 0, "", 57, 6, -1);
	mark(f.thread, STRAIN_MARK_ITERATION_END, 0, "", 58, 0, -1); // there was none
	mark(f.thread, STRAIN_MARK_EPOCH_END, 0, "", 60, -1, -1);
	mark(f.thread, STRAIN_MARK_BEGIN, 0, "prepare", 70, -1, 16);
	mark(f.thread, STRAIN_MARK_END, 0, "", 80, -1, -1);
	marked_thread_end(f.thread, 1100, "exit");
	spans_settle(f.spans);
	assert_string_equal(find(&f, ITEM_SPAN, "prepare")->text, "phase");
	assert_int_equal(find(&f, ITEM_SPAN, "prepare")->samples, 16);
	const struct item *epoch = find(&f, ITEM_SPAN, "epoch");
	const struct item *iteration = find(&f, ITEM_SPAN, "iteration");
	const struct item *forward = find(&f, ITEM_SPAN, "forward");
	const struct item *mine = find(&f, ITEM_SPAN, "mine");
	const struct item *loss = find(&f, ITEM_SPAN, "loss");
	const struct item *end = find(&f, ITEM_SPAN_END, NULL);
	assert_string_equal(epoch->text, "epoch");
	assert_int_equal(epoch->number, 1);
	assert_int_equal(iteration->parent, epoch->span);
	assert_int_equal(iteration->samples, 32);
	assert_int_equal(iteration->last_ns, 50);
	assert_string_equal(forward->text, "phase");
	assert_int_equal(forward->parent, iteration->span);
	assert_string_equal(mine->text, "user");
	assert_int_equal(mine->parent, forward->span);
	assert_string_equal(mine->key, "{\"process\":5}");
	assert_int_equal(loss->parent, mine->span);
	assert_true(loss->value == 0.25);
	assert_int_equal(end->span, epoch->span);
	assert_int_equal(end->samples, 80); // as said at the end of the one, not at its beginning
	assert_int_equal(end->last_ns, 60);
	assert_null(end->key);
	assert_int_equal(f.epochs, 2); // one began, one ended
	spans_teardown(&f);
}

static void whole(struct marked_thread *thread, const char *name, uint64_t began, uint64_t ended)
{
	marked_thread_take(thread, &(struct ring_mark){.kind = STRAIN_MARK_SPAN,
					   .name = name,
					   .began_ns = 1000 + began,
					   .time_ns = 1000 + ended,
					   .number = 3,
					   .samples = -1});
}

static void whole_spans_cross_and_have_the_parent_that_was_there(void **state)
{
	(void)state;
	struct spans_fixture f;
	spans_setup(&f, 1000);
	mark(f.thread, STRAIN_MARK_ITERATION, 0, "", 20, 4, 32);
	mark(f.thread, STRAIN_MARK_BEGIN, 0, "outer", 30, -1, -1);
	mark(f.thread, STRAIN_MARK_BEGIN, 1, "inner", 40, -1, -1);
	whole(f.thread, "older than all", 10, 50);
	whole(f.thread, "older than outer", 25, 51);
	whole(f.thread, "older than inner", 35, 52);
	whole(f.thread, "data", 45, 53);
	mark(f.thread, STRAIN_MARK_END, 1, "", 60, -1, -1);
	mark(f.thread, STRAIN_MARK_END, 0, "", 70, -1, -1);
	marked_thread_end(f.thread, 1100, "exit");
	const struct item *data = find(&f, ITEM_SPAN, "data");
	assert_int_equal(data->parent, find(&f, ITEM_SPAN, "inner")->span);
	assert_int_equal(data->t_ns, 45);
	assert_int_equal(data->last_ns, 53);
	assert_int_equal(data->number, 3);
	assert_string_equal(data->text, "phase");
	assert_int_equal(find(&f, ITEM_SPAN, "older than all")->parent, 0);
	assert_int_equal(find(&f, ITEM_SPAN, "older than outer")->parent,
		find(&f, ITEM_SPAN, "iteration")->span);
	assert_int_equal(find(&f, ITEM_SPAN, "older than inner")->parent,
		find(&f, ITEM_SPAN, "outer")->span);
	assert_int_equal(find(&f, ITEM_SPAN, "inner")->last_ns, 60); // nothing was lost
	assert_string_equal(find(&f, ITEM_SPAN, "inner")->key, "{\"process\":5}");
	spans_teardown(&f);
}

static void ranges_of_nvtx_are_no_phases(void **state)
{
	(void)state;
	struct spans_fixture f;
	spans_setup(&f, 1000);
	marked_thread_owner(f.thread, 5, &(struct ring_owner){.pid = 7, .nvtx = true});
	mark(f.thread, STRAIN_MARK_BEGIN, 0, "forward", 30, -1, -1);
	mark(f.thread, STRAIN_MARK_END, 0, "", 40, -1, -1);
	marked_thread_end(f.thread, 1100, "exit");
	assert_string_equal(find(&f, ITEM_SPAN, "forward")->text, "user");
	assert_string_equal(
		find(&f, ITEM_SPAN, "forward")->key, "{\"process\":5,\"from\":\"nvtx\"}");
	spans_teardown(&f);
}

static void what_was_open_at_the_end_says_so(void **state)
{
	(void)state;
	struct spans_fixture f;
	spans_setup(&f, 1000);
	mark(f.thread, STRAIN_MARK_EPOCH, 0, "", 10, 1, -1);
	mark(f.thread, STRAIN_MARK_ITERATION, 0, "", 20, 4, 32);
	mark(f.thread, STRAIN_MARK_BEGIN, 0, "forward", 30, -1, -1);
	marked_thread_end(f.thread, 1100, "exit");
	spans_settle(f.spans);
	assert_string_equal(
		find(&f, ITEM_SPAN, "forward")->key, "{\"process\":5,\"end\":\"exit\"}");
	assert_int_equal(find(&f, ITEM_SPAN, "forward")->last_ns, 100);
	assert_string_equal(find(&f, ITEM_SPAN_END, NULL)->key, "{\"end\":\"exit\"}");
	assert_int_equal(find(&f, ITEM_SPAN_END, NULL)->samples, -1); // it was not done
	spans_teardown(&f);
}

static void dropped_marks_do_not_shift_the_rest(void **state)
{
	(void)state;
	struct spans_fixture f;
	spans_setup(&f, 1000);
	mark(f.thread, STRAIN_MARK_BEGIN, 0, "outer", 10, -1, -1);
	mark(f.thread, STRAIN_MARK_BEGIN, 1, "one", 20, -1, -1);
	// its end is lost, and the beginning of the next
	mark(f.thread, STRAIN_MARK_BEGIN, 1, "three", 40, -1, -1);
	mark(f.thread, STRAIN_MARK_END, 1, "", 50, -1, -1);
	mark(f.thread, STRAIN_MARK_END, 1, "", 60, -1, -1); // whose beginning was lost
	mark(f.thread, STRAIN_MARK_END, 0, "", 70, -1, -1);
	assert_string_equal(find(&f, ITEM_SPAN, "one")->key, "{\"process\":5,\"end\":\"lost\"}");
	assert_int_equal(find(&f, ITEM_SPAN, "three")->last_ns, 50);
	assert_int_equal(find(&f, ITEM_SPAN, "outer")->last_ns, 70);
	assert_string_equal(find(&f, ITEM_SPAN, "outer")->key, "{\"process\":5}");
	marked_thread_end(f.thread, 1100, "exit");
	spans_teardown(&f);
}

// The end of the first and the beginning of the second were dropped: together they are no
// iteration.
static void an_iteration_with_a_gap_says_so(void **state)
{
	(void)state;
	struct spans_fixture f;
	spans_setup(&f, 1000);
	mark(f.thread, STRAIN_MARK_ITERATION, 0, "", 10, 0, -1);
	struct ring_mark end = {.kind = STRAIN_MARK_ITERATION_END,
		.name = "",
		.time_ns = 1050,
		.number = -1,
		.samples = 32,
		.gap = true};
	marked_thread_take(f.thread, &end);
	assert_string_equal(find(&f, ITEM_SPAN, "iteration")->key, "{\"process\":5,\"lost\":1}");
	mark(f.thread, STRAIN_MARK_ITERATION, 0, "", 60, 2, 32);
	mark(f.thread, STRAIN_MARK_ITERATION_END, 0, "", 70, -1, -1);
	items_free(f.items);
	f.items = NULL;
	assert_string_equal(find(&f, ITEM_SPAN, "iteration")->key, "{\"process\":5}");
	marked_thread_end(f.thread, 1100, "exit");
	spans_teardown(&f);
}

static void ranks_share_the_epochs_of_one(void **state)
{
	(void)state;
	struct spans_fixture f;
	struct marked_thread *other;
	spans_setup(&f, 1000);
	assert_int_equal(marked_thread_new(f.spans, 9, &other), 0);
	marked_thread_owner(other, 0, &(struct ring_owner){.pid = 9});
	mark(f.thread, STRAIN_MARK_EPOCH, 0, "", 10, 1, -1);
	mark(other, STRAIN_MARK_EPOCH, 0, "", 12, 1, -1);
	mark(f.thread, STRAIN_MARK_ITERATION, 0, "", 20, 0, 32);
	mark(other, STRAIN_MARK_ITERATION, 0, "", 20, 0, 32);
	mark(f.thread, STRAIN_MARK_EPOCH_END, 0, "", 60, -1, -1);
	spans_settle(f.spans);
	mark(other, STRAIN_MARK_EPOCH_END, 0, "", 70, -1, -1); // read later: it counts still
	spans_settle(f.spans);
	const struct item *user = NULL;
	struct item end = {0};
	unsigned epochs = 0;
	find(&f, ITEM_SPAN, NULL);
	for (const struct item *i = f.items; i; i = i->next) {
		end = i->kind == ITEM_SPAN_END ? *i : end;
		bool named = i->kind == ITEM_SPAN && strcmp(i->name, "epoch") == 0;
		epochs += named && strcmp(i->text, "epoch") == 0;
		user = named && strcmp(i->text, "user") == 0 ? i : user;
	}
	assert_int_equal(epochs, 1);
	assert_non_null(user);
	assert_string_equal(user->key, "{\"pid\":9}");
	assert_int_equal(end.samples, 64);
	assert_int_equal(end.last_ns, 60);
	marked_thread_end(other, 1100, "exit");
	marked_thread_end(f.thread, 1100, "exit");
	spans_teardown(&f);
}

// Samples of the epochs, by their ids, as far as they were settled.
static void samples_of_epochs(struct spans_fixture *f, int64_t *samples, size_t n)
{
	int64_t ids[8] = {0};
	size_t epochs = 0;
	find(f, ITEM_SPAN, NULL);
	for (const struct item *i = f->items; i; i = i->next) {
		if (i->kind == ITEM_SPAN && strcmp(i->text, "epoch") == 0) {
			assert_true(epochs < n);
			ids[epochs++] = i->span;
		}
		for (size_t k = 0; k < epochs && i->kind == ITEM_SPAN_END; k++) {
			samples[k] = i->span == ids[k] ? i->samples : samples[k];
		}
	}
	assert_int_equal(epochs, n);
}

// A rank begins and ends its epochs a little before or after the one that leads, and what it marked
// may be read before what the leader marked at the same time.
static void a_rank_is_in_the_epoch_that_it_says(void **state)
{
	(void)state;
	struct spans_fixture f;
	struct marked_thread *other;
	int64_t samples[3] = {0};
	spans_setup(&f, 1000);
	assert_int_equal(marked_thread_new(f.spans, 9, &other), 0);
	marked_thread_owner(other, 6, &(struct ring_owner){.pid = 9});
	mark(f.thread, STRAIN_MARK_EPOCH, 0, "", 10, 1, -1);
	mark(other, STRAIN_MARK_EPOCH, 0, "", 4, 1, -1); // before the leader's
	mark(other, STRAIN_MARK_ITERATION, 0, "", 5, 0, 32);
	mark(other, STRAIN_MARK_ITERATION, 0, "", 30, 1, 32);
	mark(other, STRAIN_MARK_EPOCH, 0, "", 50, 2, -1); // the leader's was not read yet
	mark(other, STRAIN_MARK_ITERATION, 0, "", 51, 0, 16);
	mark(other, STRAIN_MARK_ITERATION, 0, "", 70, 1, 16);
	mark(other, STRAIN_MARK_EPOCH, 0, "", 90, 7, -1); // which the leader never has
	mark(other, STRAIN_MARK_ITERATION, 0, "", 91, 0, 4);
	mark(other, STRAIN_MARK_EPOCH_END, 0, "", 95, -1, -1);
	mark(f.thread, STRAIN_MARK_ITERATION, 0, "", 11, 0, 32);
	mark(f.thread, STRAIN_MARK_EPOCH, 0, "", 60, 2, -1);
	mark(f.thread, STRAIN_MARK_ITERATION, 0, "", 61, 0, 16);
	mark(f.thread, STRAIN_MARK_EPOCH, 0, "", 88, 3, -1);
	mark(f.thread, STRAIN_MARK_EPOCH_END, 0, "", 100, -1, -1);
	marked_thread_end(f.thread, 1100, "exit");
	marked_thread_end(other, 1100, "exit");
	spans_settle(f.spans);
	samples_of_epochs(&f, samples, 3);
	assert_int_equal(samples[0], 96);
	assert_int_equal(samples[1], 48);
	assert_int_equal(samples[2], 4); // by its time
	spans_teardown(&f);
}

// Who marks no epochs is in the one that holds the middle of its iteration.
static void a_thread_without_epochs_is_where_the_leader_is(void **state)
{
	(void)state;
	struct spans_fixture f;
	struct marked_thread *other;
	int64_t samples[2] = {0};
	spans_setup(&f, 1000);
	assert_int_equal(marked_thread_new(f.spans, 9, &other), 0);
	mark(f.thread, STRAIN_MARK_EPOCH, 0, "", 10, 1, -1);
	mark(f.thread, STRAIN_MARK_EPOCH, 0, "", 60, 2, -1);
	mark(other, STRAIN_MARK_ITERATION, 0, "", 8, 0, 32);
	mark(other, STRAIN_MARK_ITERATION, 0, "", 58, 1, 16); // ends in the second
	mark(other, STRAIN_MARK_ITERATION_END, 0, "", 90, 1, -1);
	spans_settle(f.spans);
	samples_of_epochs(&f, samples, 2);
	assert_int_equal(samples[0], 32);
	assert_int_equal(samples[1], 16);
	marked_thread_end(other, 1100, "exit");
	marked_thread_end(f.thread, 1100, "exit");
	spans_teardown(&f);
}

static void no_more_spans_than_may_be(void **state)
{
	(void)state;
	struct spans_fixture f;
	spans_setup(&f, 10);
	mark(f.thread, STRAIN_MARK_EPOCH, 0, "", 0, 1, -1);
	for (unsigned i = 0; i < 100; i++) {
		mark(f.thread, STRAIN_MARK_ITERATION, 0, "", 1 + i, i, 2);
	}
	mark(f.thread, STRAIN_MARK_EPOCH_END, 0, "", 200, -1, -1);
	spans_settle(f.spans);
	assert_int_equal(spans_dropped(f.spans), 90);
	assert_int_equal(find(&f, ITEM_SPAN_END, NULL)->samples, 200); // all of them
	marked_thread_end(f.thread, 1100, "exit");
	spans_teardown(&f);
}

struct kept {
	unsigned iterations; // with their two phases
	unsigned lost; // that say so
	unsigned phases; // since the last iteration
};

static void count_kept(struct spans_fixture *f, struct kept *kept)
{
	items_free(f->items);
	f->items = feed_take(f->feed, 0);
	for (const struct item *i = f->items; i; i = i->next) {
		bool iteration = i->kind == ITEM_SPAN && strcmp(i->text, "iteration") == 0;
		kept->phases += i->kind == ITEM_SPAN && strcmp(i->text, "phase") == 0;
		if (iteration && strstr(i->key, "\"lost\":")) {
			kept->lost++;
			kept->phases = 0;
		} else if (iteration) {
			kept->iterations++;
			assert_int_equal(kept->phases, 2);
			kept->phases = 0;
		}
	}
}

// Iterations that come faster than may be kept go whole; of one too large to borrow for, it is
// said.
static void iterations_are_kept_whole(void **state)
{
	(void)state;
	struct spans_fixture f;
	struct kept kept = {0};
	int64_t t = 0;
	spans_setup(&f, 4000000);
	for (unsigned i = 0; i < 20000; i++, t += 500000) { // 6,000 spans a second
		mark(f.thread, STRAIN_MARK_ITERATION, 0, "", t++, i, 2);
		bool large = i == 19999;
		for (unsigned phase = 0; phase < (large ? 20000 : 2); phase++) {
			mark(f.thread, STRAIN_MARK_BEGIN, 0, "data", t++, -1, -1);
			mark(f.thread, STRAIN_MARK_END, 0, "", t, -1, -1);
			t += large ? 100000 : 0;
		}
		if (i % 1000 == 0) {
			count_kept(&f, &kept);
		}
		t += i == 19998 ? 1000000000 : 0; // that the large one may begin
	}
	mark(f.thread, STRAIN_MARK_EPOCH_END, 0, "", t, -1, -1);
	count_kept(&f, &kept);
	assert_true(kept.iterations > 10000 && kept.iterations < 19000);
	assert_int_equal(kept.lost, 1);
	assert_int_equal(kept.phases, 0);
	marked_thread_end(f.thread, (uint64_t)t + 2000, "exit");
	spans_teardown(&f);
}

// Two days of an iteration a second: ever fewer are kept, but some of each hour.
static void a_long_job_is_seen_to_its_end(void **state)
{
	(void)state;
	enum { HOURS = 48, MAX = 100000 };
	struct spans_fixture f;
	struct kept kept = {0};
	unsigned before = 0;
	spans_setup(&f, MAX);
	for (unsigned hour = 0; hour < HOURS; hour++) {
		for (unsigned i = 0; i < 3600; i++) {
			int64_t t = ((int64_t)hour * 3600 + i) * 1000000000;
			mark(f.thread, STRAIN_MARK_ITERATION, 0, "", t, i, 2);
			for (unsigned phase = 0; phase < 2; phase++) {
				mark(f.thread, STRAIN_MARK_BEGIN, 0, "data", ++t, -1, -1);
				mark(f.thread, STRAIN_MARK_END, 0, "", ++t, -1, -1);
			}
		}
		count_kept(&f, &kept);
		assert_true(kept.iterations > before);
		before = kept.iterations;
	}
	assert_true(3 * kept.iterations < MAX);
	assert_true(3 * kept.iterations > MAX / 2);
	marked_thread_end(f.thread, (uint64_t)HOURS * 3600000000000u + 2000, "exit");
	spans_teardown(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spans_have_kinds_and_parents),
		cmocka_unit_test(whole_spans_cross_and_have_the_parent_that_was_there),
		cmocka_unit_test(ranges_of_nvtx_are_no_phases),
		cmocka_unit_test(what_was_open_at_the_end_says_so),
		cmocka_unit_test(dropped_marks_do_not_shift_the_rest),
		cmocka_unit_test(an_iteration_with_a_gap_says_so),
		cmocka_unit_test(ranks_share_the_epochs_of_one),
		cmocka_unit_test(a_rank_is_in_the_epoch_that_it_says),
		cmocka_unit_test(a_thread_without_epochs_is_where_the_leader_is),
		cmocka_unit_test(no_more_spans_than_may_be),
		cmocka_unit_test(iterations_are_kept_whole),
		cmocka_unit_test(a_long_job_is_seen_to_its_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
