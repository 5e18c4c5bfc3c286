// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "record/sample/sampler.h"
#include "record/scribe.h"

// A recorder whose cost is proportional to its rate: `cost` of a core at slow 1.
static double settle(struct budget *b, double cost, unsigned seconds)
{
	double used = 0;
	for (unsigned i = 0; i < seconds; i++) {
		used = cost / b->slow;
		budget_update(b, 1, used);
	}
	return used;
}

static void test_a_cheap_recorder_is_never_slowed(void **state)
{
	(void)state;
	struct budget b;
	budget_init(&b, 0.01);
	settle(&b, 0.009, 100);
	assert_float_equal(b.slow, 1, 1e-9);
}

static void test_an_expensive_one_comes_under_its_budget_and_stays(void **state)
{
	(void)state;
	struct budget b;
	budget_init(&b, 0.01);
	double used = settle(&b, 0.2, 30);
	assert_true(used <= 0.0101);
	assert_true(used >= 0.005); // and wastes not more than half of it
	for (unsigned i = 0; i < 100; i++) {
		assert_true(settle(&b, 0.2, 1) <= 0.0101);
	}
}

static void test_it_becomes_faster_again(void **state)
{
	(void)state;
	struct budget b;
	budget_init(&b, 0.01);
	settle(&b, 0.2, 30);
	settle(&b, 0.002, 60);
	assert_float_equal(b.slow, 1, 1e-9);
}

static void test_a_single_expensive_second_is_forgiven(void **state)
{
	(void)state;
	struct budget b;
	budget_init(&b, 0.01);
	settle(&b, 0.004, 20);
	assert_false(budget_update(&b, 1, 0.03)); // a compaction
	assert_float_equal(b.slow, 1, 1e-9);
}

static void test_rare_rounds_are_paid_from_savings(void **state)
{
	(void)state;
	struct budget b;
	budget_init(&b, 0.01);
	budget_update(&b, 1, 0.05); // starting
	for (unsigned i = 0; i < 3600; i++) {
		// smaps_rollup of a job of 12 GiB every 45 s: 0.98 % in all
		assert_false(budget_update(&b, 1, i % 45 == 44 ? 0.13 : 0.007));
	}
	assert_float_equal(b.slow, 1, 1e-9);
}

static void test_savings_undo_a_slowing(void **state)
{
	(void)state;
	struct budget b;
	budget_init(&b, 0.01);
	settle(&b, 0.02, 20); // a busy start
	assert_true(b.slow > 1.5);
	settle(&b, 0.008, 120); // 0.8 of the budget
	assert_float_equal(b.slow, 1, 1e-9);
}

static void test_over_a_minute_the_budget_is_kept(void **state)
{
	(void)state;
	struct budget b;
	double used = 0;
	budget_init(&b, 0.01);
	for (unsigned i = 0; i < 60; i++) {
		used += settle(&b, 0.04, 1);
	}
	assert_true(used <= 0.01 * 60 * 1.25); // what it had saved to begin with, and no more
	assert_true(used >= 0.01 * 60 * 0.75);
}

static void test_what_wavers_is_said_rarely(void **state)
{
	(void)state;
	struct budget b;
	unsigned said = 0;
	budget_init(&b, 0.01);
	for (unsigned i = 0; i < 3600; i++) {
		said += budget_update(&b, 1, (i % 20 < 10 ? 0.03 : 0.025) / b.slow);
	}
	assert_true(said >= 1 && said <= 20);
}

static void test_without_a_budget_nothing_is_slowed(void **state)
{
	(void)state;
	struct budget b;
	budget_init(&b, 0);
	settle(&b, 0.5, 20);
	assert_float_equal(b.slow, 1, 1e-9);
}

static struct epoch_line line(int64_t seconds)
{
	return (struct epoch_line){.t_ns = seconds * 1000000000, .number = -1};
}

static void test_lines_that_begin_epochs(void **state)
{
	(void)state;
	const struct epoch_line lines[] = {line(4), line(14), line(24)};
	assert_false(scribe_epochs_end_at_lines(lines, 3, 34000000000));
	assert_false(
		scribe_epochs_end_at_lines(lines, 3, 36000000000)); // something saved at the end
	assert_false(scribe_epochs_end_at_lines(lines, 1, 34000000000));
	assert_false(scribe_epochs_end_at_lines(lines, 0, 34000000000));
}

static void test_lines_that_end_epochs(void **state)
{
	(void)state;
	const struct epoch_line lines[] = {line(14), line(24), line(34)};
	assert_true(scribe_epochs_end_at_lines(lines, 3, 34500000000));
	assert_true(scribe_epochs_end_at_lines(lines, 3, 36000000000));
	assert_true(scribe_epochs_end_at_lines(lines, 1, 15000000000));
}

static void test_a_clock_that_is_set_is_noticed(void **state)
{
	(void)state;
	struct clock_watch w = {0};
	struct clock_change c;
	const uint64_t s = 1000000000, day = 86400 * s, start = 20000 * day;
	assert_false(clock_watch_look(&w, 5 * s, 5 * s, start, &c));
	assert_false(clock_watch_look(&w, 6 * s, 6 * s, start + s, &c));
	assert_false(clock_watch_look(&w, 7 * s, 7 * s, start + 2 * s + 500000, &c)); // slewed
	assert_true(clock_watch_look(&w, 8 * s, 8 * s, start + 3 * s - day, &c)); // set back
	assert_int_equal(c.set_ns, -(int64_t)day - 500000);
	assert_int_equal(c.suspended_ns, 0);
	assert_false(clock_watch_look(&w, 9 * s, 9 * s, start + 4 * s - day, &c));
	assert_true(clock_watch_look(&w, 10 * s, 10 * s, start + 5 * s, &c)); // and again
	assert_int_equal(w.suspended_ns, 0);
}

static void test_a_machine_that_sleeps_is_noticed_and_its_clock_was_not_set(void **state)
{
	(void)state;
	struct clock_watch w = {0};
	struct clock_change c;
	const uint64_t s = 1000000000, start = 20000 * 86400 * s;
	assert_false(clock_watch_look(&w, 5 * s, 100 * s, start, &c)); // it had slept before
	assert_true(clock_watch_look(&w, 6 * s, 161 * s, start + 61 * s, &c));
	assert_int_equal(c.suspended_ns, 60 * s);
	assert_int_equal(c.set_ns, 0);
	assert_false(clock_watch_look(&w, 7 * s, 162 * s, start + 62 * s, &c));
	// Asleep, and woken by somebody who also set the clock.
	assert_true(clock_watch_look(&w, 8 * s, 173 * s, start + 74 * s, &c));
	assert_int_equal(c.suspended_ns, 10 * s);
	assert_int_equal(c.set_ns, s);
	assert_int_equal(w.suspended_ns, 70 * s);
}

static void test_the_pace_adapts(void **state)
{
	(void)state;
	struct pace p;
	uint64_t now = 1000 * NS_PER_S, epochs = 0, processes = 1;
	pace_init(&p, 0, now);
	for (int second = 0; second < 30; second++, now += NS_PER_S) {
		// A burst of starts at 10 s, epochs of 0.4 s from 20 s to 22 s.
		processes += second == 10 ? 8 : 0;
		epochs += second >= 20 && second <= 22 ? 3 : second % 4 == 0;
		bool fast = second < 5 || (second >= 10 && second < 15) ||
		            (second >= 20 && second < 27);
		assert_int_equal(pace_update(&p, now, epochs, processes),
			fast ? PACE_FAST_INTERVAL_NS : PACE_INTERVAL_NS);
	}
}

static void test_a_pace_that_was_asked_for_is_kept(void **state)
{
	(void)state;
	struct pace p;
	uint64_t now = 1000 * NS_PER_S;
	pace_init(&p, 7 * NS_PER_MS, now);
	for (uint64_t second = 0; second < 10; second++) {
		assert_int_equal(pace_update(&p, now + second * NS_PER_S, 9 * second, 9 * second),
			7 * NS_PER_MS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_pace_adapts),
		cmocka_unit_test(test_a_pace_that_was_asked_for_is_kept),
		cmocka_unit_test(test_a_cheap_recorder_is_never_slowed),
		cmocka_unit_test(test_an_expensive_one_comes_under_its_budget_and_stays),
		cmocka_unit_test(test_it_becomes_faster_again),
		cmocka_unit_test(test_a_single_expensive_second_is_forgiven),
		cmocka_unit_test(test_rare_rounds_are_paid_from_savings),
		cmocka_unit_test(test_savings_undo_a_slowing),
		cmocka_unit_test(test_over_a_minute_the_budget_is_kept),
		cmocka_unit_test(test_what_wavers_is_said_rarely),
		cmocka_unit_test(test_without_a_budget_nothing_is_slowed),
		cmocka_unit_test(test_a_clock_that_is_set_is_noticed),
		cmocka_unit_test(test_a_machine_that_sleeps_is_noticed_and_its_clock_was_not_set),
		cmocka_unit_test(test_lines_that_begin_epochs),
		cmocka_unit_test(test_lines_that_end_epochs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
