// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The images common to all frameworks are those of ../datasets/synthetic.py, to the last bit:
// images 59,990 to 60,009 of two seeds have the sums (FNV-1a of pixels, then class) that it gives.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "shared.h"

static uint64_t sum_byte(uint64_t sum, uint8_t byte)
{
	return (sum ^ byte) * UINT64_C(0x100000001b3);
}

static uint64_t sum_images(uint64_t seed)
{
	static struct shared_images images;
	static uint8_t levels[SHARED_LEVELS];
	shared_init(&images, seed);
	uint64_t sum = UINT64_C(0xcbf29ce484222325);
	for (uint64_t number = 59990; number < 60010; number++) {
		int class = shared_render(&images, number, levels);
		for (int i = 0; i < SHARED_LEVELS; i++) {
			sum = sum_byte(sum, levels[i]);
		}
		sum = sum_byte(sum, (uint8_t) class);
	}
	return sum;
}

static void test_same_as_python(void **state)
{
	(void)state;
	assert_int_equal(sum_images(1), UINT64_C(0xd6027b7be13ddb4a));
	assert_int_equal(sum_images((UINT64_C(1) << 40) + 7), UINT64_C(0x56df9e3e2dbfdd3f));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_as_python),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
