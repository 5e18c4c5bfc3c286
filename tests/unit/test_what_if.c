// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A recorded job on another machine: each change alone, what it cannot know, and hostile values.

#include "probe/what_if.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define DATA 10e9 // bytes of an epoch
#define HELD 2e9

// One thread computes 1 ms a sample. Two workers prepare each in 1 ms, and read 100 kB of it, half
// of it from a disk of 50 MB/s, which is the limit: 1 ms a sample from storage.
static struct observation from_disk(void)
{
	return (struct observation){
		.batch_size = 10,
		.loader_batch_size = 10,
		.workers = 2,
		.cpus = 4,
		.threads = 1,
		.rate = {500, 490, 510},
		.iteration = {0.020, 0.0196, 0.0204},
		.iterations = 1000,
		.compute = 0.010,
		.wait = 0.010,
		.main_cpu = 0.010,
		.prepare_cpu = 0.001,
		.asked = 100000,
		.stored = 50000,
		.storage_rate = 25e6,
		.waits_for_storage = true,
		.anonymous = HELD,
		.shared = NAN,
		.kernel = NAN,
		.memory_total = HELD + 0.6 * DATA,
		.epoch_samples = DATA / 100000,
		.epoch = DATA / 100000 / 500 + 30,
		.gpu_busy = NAN,
	};
}

static struct what_if_case with(const struct what_if *w, enum what_if_kind kind, double value)
{
	struct what_if_values values = what_if_unchanged();
	values.of[kind] = value;
	return what_if_predict(w, &values);
}

static struct what_if begin(const struct observation *seen)
{
	struct what_if w;
	assert_int_equal(what_if_begin(seen, 1, &w, NULL), 0);
	return w;
}

static void assert_close(double a, double b, double relative)
{
	if (!(fabs(a / b - 1) <= relative)) {
		fail_msg("%g is not %g within %g", a, b, relative);
	}
}

static void test_as_recorded(void **state)
{
	(void)state;
	struct observation seen = from_disk();
	struct what_if w = begin(&seen);
	struct what_if_values unchanged = what_if_unchanged();
	struct what_if_case c = what_if_predict(&w, &unchanged);
	assert_true(c.at.rate.value == 500 && c.gain.value == 1 && !c.at.extrapolated);
	assert_close(c.epoch.value, seen.epoch, 1e-9);
	assert_close(w.between, 30, 1e-6);
	assert_int_equal(c.at.bound, RATE_STORAGE);
	assert_null(c.note);
	for (enum what_if_kind i = 0; i < N_WHAT_IF; i++) { // the recorded values change nothing
		double value = what_if_recorded(&w).of[i];
		if (isfinite(value)) {
			assert_close(with(&w, i, value).at.rate.value, 500, 0.02);
		}
	}
}

static void test_a_faster_disk(void **state)
{
	(void)state;
	struct observation seen = from_disk();
	struct what_if w = begin(&seen);
	struct what_if_case slow = with(&w, WHAT_IF_DISK_READ, 12.5e6);
	assert_close(slow.at.rate.value, 250, 0.01);
	assert_close(slow.epoch.value, DATA / 100000 / 250 + 30, 0.01);
	struct what_if_case fast = with(&w, WHAT_IF_DISK_READ, 500e6);
	assert_true(fast.at.rate.value > 900 && fast.at.bound == RATE_COMPUTE);
	assert_true(fast.at.extrapolated && fast.at.rate.low < fast.at.rate.value);
}

static void test_memory_is_page_cache(void **state)
{
	(void)state;
	struct observation seen = from_disk();
	struct what_if w = begin(&seen);
	struct what_if_case all = with(&w, WHAT_IF_MEMORY, HELD + DATA);
	assert_close(all.hit.value, 1, 1e-9);
	assert_true(all.at.rate.value > 900 && all.at.bound != RATE_STORAGE);
	struct what_if_case less = with(&w, WHAT_IF_MEMORY, HELD + 0.3 * DATA);
	assert_true(less.hit.low <= less.hit.value && less.hit.value <= less.hit.high);
	assert_true(less.hit.high <= 0.3 && less.hit.low >= 0.3 + 0.7 * log(0.7) - 1e-9);
	assert_true(less.at.rate.value < 500 && less.at.rate.value > 250);
	struct what_if_case none = with(&w, WHAT_IF_MEMORY, HELD / 2);
	assert_true(none.too_small && isnan(none.at.rate.value) && none.note);
}

static void test_what_is_not_known_is_missing(void **state)
{
	(void)state;
	struct observation seen = from_disk();
	seen.epoch_samples = seen.epoch = NAN;
	struct what_if w = begin(&seen);
	struct what_if_case c = with(&w, WHAT_IF_MEMORY, 1e12);
	assert_true(isnan(c.at.rate.value) && isnan(c.epoch.value));
	assert_non_null(strstr(c.note, "no whole epoch"));
	c = with(&w, WHAT_IF_CPUS, 8); // that needs no epoch
	assert_true(c.at.rate.value > 0 && isnan(c.epoch.value));
	// Everything came from the page cache: less of it needs storage, which nobody saw.
	seen = from_disk();
	seen.stored = 0;
	seen.waits_for_storage = false;
	seen.memory_total = HELD + 2 * DATA;
	w = begin(&seen);
	c = with(&w, WHAT_IF_MEMORY, HELD + DATA / 2);
	assert_true(isnan(c.at.rate.value));
	assert_non_null(strstr(c.note, "--disk-read"));
	struct what_if_values both = c.values;
	both.of[WHAT_IF_DISK_READ] = 10e6;
	c = what_if_predict(&w, &both);
	assert_true(c.at.bound == RATE_STORAGE && c.at.rate.value < 500);
	c = with(&w, WHAT_IF_DISK_READ, 1e9);
	assert_non_null(strstr(c.note, "no bytes come from storage"));
}

static void test_gpus(void **state)
{
	(void)state;
	struct observation seen = from_disk();
	struct what_if w = begin(&seen);
	struct what_if_case c = with(&w, WHAT_IF_GPU_SPEED, 2);
	assert_close(c.at.rate.value, 500, 0.02);
	assert_non_null(strstr(c.note, "no GPU"));
	seen.waits_for_storage = false;
	seen.stored = 0;
	seen.wait = 0;
	seen.prepare_cpu = 0.0001;
	seen.compute = 0.020;
	seen.gpu_busy = 0.8;
	w = begin(&seen);
	c = with(&w, WHAT_IF_GPU_SPEED, 4);
	assert_close(c.at.rate.value, 10 / (0.020 * (0.2 + 0.8 / 4)), 0.02);
}

static void test_the_first_reading_of_data(void **state)
{
	(void)state;
	struct observation seen = from_disk();
	seen.memory_total = HELD + 3 * DATA; // there was room for all of it
	struct what_if w = begin(&seen);
	struct what_if_case c = with(&w, WHAT_IF_MEMORY, HELD + 6 * DATA);
	assert_close(c.hit.value, 0.5, 1e-9);
	assert_close(c.at.rate.value, 500, 0.02);
	assert_non_null(strstr(c.note, "first time"));
}

static void test_nothing_seen(void **state)
{
	(void)state;
	struct what_if w;
	struct error e = {0};
	struct observation seen = from_disk();
	char why[] = "no iterations";
	seen.rate.value = NAN;
	seen.rate_missing = why;
	assert_int_equal(what_if_begin(&seen, 1, &w, &e), -ENODATA);
	assert_non_null(strstr(e.text, "no iterations"));
	assert_int_equal(what_if_begin(NULL, 0, &w, &e), -ENODATA);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_recorded),
		cmocka_unit_test(test_a_faster_disk),
		cmocka_unit_test(test_memory_is_page_cache),
		cmocka_unit_test(test_what_is_not_known_is_missing),
		cmocka_unit_test(test_gpus),
		cmocka_unit_test(test_the_first_reading_of_data),
		cmocka_unit_test(test_nothing_seen),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
