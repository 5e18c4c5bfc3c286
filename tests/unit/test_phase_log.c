// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Which phase a training thread was in at a moment.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "record/mark/ring.h"
#include "record/sample/feed.h"
#include "record/mark/phase_log.h"
#include "record/mark/spans.h"

enum { ENTITY = 7, LATE = 1000000000 };

struct logged {
	struct phase_log *log;
	struct feed *feed;
	struct spans *spans;
	struct marked_thread *thread;
	_Atomic unsigned epochs;
};

static struct marked_thread *thread_of(struct logged *l, int64_t entity)
{
	struct marked_thread *thread;
	assert_int_equal(marked_thread_new(l->spans, 1, &thread), 0);
	marked_thread_owner(thread, entity, &(struct ring_owner){.pid = 1, .tid = 1});
	return thread;
}

static int begin(void **state)
{
	static struct logged l;
	l = (struct logged){0};
	assert_int_equal(phase_log_new(&l.log), 0);
	assert_int_equal(feed_new(1 << 20, &l.feed), 0);
	assert_int_equal(spans_new(l.feed, 0, 1000000, &l.epochs, &l.spans), 0);
	spans_log_phases(l.spans, l.log);
	l.thread = thread_of(&l, ENTITY);
	*state = &l;
	return 0;
}

static int end(void **state)
{
	struct logged *l = *state;
	if (l->thread) {
		marked_thread_end(l->thread, LATE, "exit");
	}
	spans_free(l->spans);
	feed_free(l->feed);
	phase_log_free(l->log);
	return 0;
}

static void mark(struct marked_thread *thread, enum strain_mark_kind kind, int64_t at_ns,
	const char *name, unsigned depth)
{
	marked_thread_take(thread, &(struct ring_mark){.kind = kind,
					   .depth = depth,
					   .name = name,
					   .time_ns = (uint64_t)at_ns,
					   .number = 1,
					   .samples = -1});
}

static void span(struct marked_thread *thread, int64_t began_ns, int64_t at_ns, const char *name)
{
	marked_thread_take(thread, &(struct ring_mark){.kind = STRAIN_MARK_SPAN,
					   .name = name,
					   .time_ns = (uint64_t)at_ns,
					   .began_ns = (uint64_t)began_ns,
					   .samples = -1});
}

static void assert_phase(struct logged *l, int64_t at_ns, const char *expected)
{
	int phase;
	assert_true(phase_log_at(l->log, ENTITY, at_ns, LATE, true, &phase));
	const char *name = phase_log_name(phase);
	if (!expected) {
		assert_null(name);
	} else if (!name || strcmp(name, expected) != 0) {
		fail_msg("at %d: %s instead of %s", (int)at_ns, name ? name : "NULL", expected);
	}
}

// As the hooks mark a step: its phases when it has ended.
static void phases_come_afterwards(void **state)
{
	struct logged *l = *state;
	int phase;
	mark(l->thread, STRAIN_MARK_ITERATION, 100, "", 0);
	mark(l->thread, STRAIN_MARK_BEGIN, 110, "data", 0);
	mark(l->thread, STRAIN_MARK_END, 150, "", 0);
	assert_false(phase_log_at(l->log, ENTITY, 160, LATE, false, &phase));
	assert_true(phase_log_at(l->log, ENTITY, 90, LATE, false, &phase));
	span(l->thread, 200, 300, "forward");
	span(l->thread, 300, 400, "backward");
	span(l->thread, 410, 450, "optimizer");
	mark(l->thread, STRAIN_MARK_ITERATION_END, 460, "", 0);
	mark(l->thread, STRAIN_MARK_ITERATION, 500, "", 0);
	assert_true(phase_log_at(l->log, ENTITY, 160, LATE, false, &phase));
	static const struct {
		int64_t at_ns;
		const char *phase;
	} expected[] = {{50, ""}, {105, "other"}, {110, "data"}, {149, "data"}, {150, "other"},
		{200, "forward"}, {299, "forward"}, {300, "backward"}, {399, "backward"},
		{400, "other"}, {410, "optimizer"}, {449, "optimizer"}, {455, "other"}, {470, ""},
		{500, "other"}, {5000, "other"}};
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		assert_phase(l, expected[i].at_ns, expected[i].phase);
	}
}

static void inner_phases_win_but_for_those_apart(void **state)
{
	struct logged *l = *state;
	mark(l->thread, STRAIN_MARK_ITERATION, 100, "", 0);
	mark(l->thread, STRAIN_MARK_BEGIN, 110, "step", 0);
	mark(l->thread, STRAIN_MARK_BEGIN, 120, "my own", 1);
	mark(l->thread, STRAIN_MARK_BEGIN, 130, "transfer", 2);
	mark(l->thread, STRAIN_MARK_END, 140, "", 2);
	mark(l->thread, STRAIN_MARK_END, 150, "", 1);
	span(l->thread, 125, 160, "forward"); // the transfer began later
	mark(l->thread, STRAIN_MARK_END, 170, "", 0);
	mark(l->thread, STRAIN_MARK_BEGIN, 200, "validation", 0);
	mark(l->thread, STRAIN_MARK_BEGIN, 210, "data", 1);
	mark(l->thread, STRAIN_MARK_END, 220, "", 1);
	span(l->thread, 221, 225, "forward");
	mark(l->thread, STRAIN_MARK_END, 230, "", 0);
	assert_phase(l, 115, "step");
	assert_phase(l, 122, "step");
	assert_phase(l, 127, "forward");
	assert_phase(l, 135, "transfer");
	assert_phase(l, 145, "forward");
	assert_phase(l, 165, "step");
	assert_phase(l, 180, "other");
	assert_phase(l, 215, "validation");
	assert_phase(l, 223, "validation");
	assert_phase(l, 235, "other");
}

static void lost_marks_are_not_guessed(void **state)
{
	struct logged *l = *state;
	mark(l->thread, STRAIN_MARK_ITERATION, 100, "", 0);
	mark(l->thread, STRAIN_MARK_BEGIN, 110, "data", 0);
	marked_thread_take(l->thread, &(struct ring_mark){.kind = STRAIN_MARK_ITERATION,
					      .name = "",
					      .time_ns = 300,
					      .number = 9,
					      .samples = -1,
					      .gap = true});
	mark(l->thread, STRAIN_MARK_END, 310, "", 0);
	span(l->thread, 200, 320, "forward");
	assert_phase(l, 105, "other");
	assert_phase(l, 150, NULL);
	assert_phase(l, 250, NULL);
	assert_phase(l, 315, "forward");
}

static void an_iteration_that_was_none(void **state)
{
	struct logged *l = *state;
	mark(l->thread, STRAIN_MARK_ITERATION, 100, "", 0);
	mark(l->thread, STRAIN_MARK_BEGIN, 110, "data", 0);
	mark(l->thread, STRAIN_MARK_END, 120, "", 0);
	marked_thread_take(l->thread, &(struct ring_mark){.kind = STRAIN_MARK_ITERATION_END,
					      .name = "",
					      .time_ns = 130,
					      .samples = -1});
	assert_phase(l, 105, "");
	assert_phase(l, 115, "data");
	assert_phase(l, 125, "");
	assert_phase(l, 135, "");
}

// What is older than the log is not known; memory does not grow without bound.
static void old_times_are_forgotten(void **state)
{
	struct logged *l = *state;
	for (int64_t i = 0; i < 40000; i++) {
		mark(l->thread, STRAIN_MARK_ITERATION, 100 + i * 100, "", 0);
		mark(l->thread, STRAIN_MARK_BEGIN, 110 + i * 100, "data", 0);
		mark(l->thread, STRAIN_MARK_END, 120 + i * 100, "", 0);
	}
	assert_phase(l, 115, NULL);
	assert_phase(l, 115 + 39990 * 100, "data");
	assert_phase(l, 125 + 39990 * 100, "other");
}

static void one_thread_of_a_process_counts(void **state)
{
	struct logged *l = *state;
	int phase;
	assert_false(phase_log_iterates(l->log, 0));
	mark(l->thread, STRAIN_MARK_ITERATION, 100, "", 0);
	struct marked_thread *other = thread_of(l, ENTITY), *elsewhere = thread_of(l, ENTITY + 1);
	mark(other, STRAIN_MARK_BEGIN, 150, "data", 0);
	mark(elsewhere, STRAIN_MARK_BEGIN, 150, "prepare", 0); // a loader's worker
	assert_phase(l, 160, "other");
	assert_true(phase_log_iterates(l->log, ENTITY));
	assert_false(phase_log_iterates(l->log, ENTITY + 1));
	assert_true(phase_log_at(l->log, ENTITY + 1, 160, LATE, true, &phase));
	assert_int_equal(phase, LOGGED_NONE);
	marked_thread_end(other, 200, "exit");
	marked_thread_end(elsewhere, 200, "exit");
	marked_thread_end(l->thread, 300, "exit");
	l->thread = thread_of(l, ENTITY); // the next one of the process
	mark(l->thread, STRAIN_MARK_ITERATION, 400, "", 0);
	mark(l->thread, STRAIN_MARK_BEGIN, 410, "data", 0);
	assert_phase(l, 250, "other");
	assert_phase(l, 350, "");
	assert_phase(l, 420, "data");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(phases_come_afterwards, begin, end),
		cmocka_unit_test_setup_teardown(inner_phases_win_but_for_those_apart, begin, end),
		cmocka_unit_test_setup_teardown(lost_marks_are_not_guessed, begin, end),
		cmocka_unit_test_setup_teardown(an_iteration_that_was_none, begin, end),
		cmocka_unit_test_setup_teardown(old_times_are_forgotten, begin, end),
		cmocka_unit_test_setup_teardown(one_thread_of_a_process_counts, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
