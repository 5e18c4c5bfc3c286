// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Placeholders in the command of strain advise.

#include "probe/placeholders.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

// Asserts what a word of a command becomes.
static void assert_word(const char *word, int64_t batch_size, int64_t workers, const char *expected)
{
	char copy[64], *command[] = {copy, NULL};
	assert_true(strlen(word) < sizeof(copy));
	memcpy(copy, word, strlen(word) + 1);
	const struct placeholder_values values = {batch_size, workers, 0};
	char **made = placeholders_fill(command, &values);
	assert_non_null(made);
	assert_string_equal(made[0], expected);
	assert_null(made[1]);
	placeholders_free(made);
}

static void test_values_and_defaults(void **state)
{
	(void)state;
	assert_word("{batch_size}", 64, 2, "64");
	assert_word("--batch-size={batch_size=32}", 64, 2, "--batch-size=64");
	assert_word("--batch-size={batch_size=32}", -1, -1, "--batch-size=32");
	assert_word("{batch_size}", -1, -1, "16");
	assert_word("{workers}", -1, -1, "0");
	assert_word("{workers=3}", -1, -1, "3");
	assert_word("b{batch_size}w{workers}b{batch_size}", 8, 1, "b8w1b8");
}

static void test_other_braces_stay(void **state)
{
	(void)state;
	static const char *const words[] = {"", "{", "{}", "{batch}", "{batch_size",
		"{batch_size=", "{batch_size=}", "{batch_size=x}", "{batch_size=-1}", "{workers=1",
		"{Workers}", "{batch_sizes}", "{batch_size=99999999999999999999}", "{\"lr\": 0.1}"};
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		assert_word(words[i], 64, 2, words[i]);
		char copy[64], *command[] = {copy, NULL};
		memcpy(copy, words[i], strlen(words[i]) + 1);
		assert_false(placeholders_any(command));
	}
	assert_word("{{batch_size}}", 64, 2, "{64}");
	assert_word("{batch_size={batch_size}", 64, 2, "{batch_size=64");
}

// Asserts the line about a word; NULL: there is none.
static void assert_checked(const char *word, const char *expected)
{
	char copy[80], program[] = "python3", *command[] = {program, copy, NULL};
	struct error e = {0};
	assert_true(strlen(word) < sizeof(copy));
	memcpy(copy, word, strlen(word) + 1);
	assert_int_equal(placeholders_check(command, &e), expected ? -EINVAL : 0);
	assert_string_equal(e.text, expected ? expected : "");
}

static void test_misspelt_ones_are_found(void **state)
{
	(void)state;
	assert_checked("{batchsize=16}",
		"expected the placeholder {batch_size=16}, found '{batchsize=16}'");
	assert_checked("--batch={batch-size}",
		"expected the placeholder {batch_size}, found '{batch-size}'");
	assert_checked("{BATCH_SIZE=4}{workers}",
		"expected the placeholder {batch_size=4}, found '{BATCH_SIZE=4}'");
	assert_checked(
		"{workers}{worker=2}", "expected the placeholder {workers=2}, found '{worker=2}'");
	assert_checked("python3 train.py --lr {learnig_rate=0.1}",
		"expected the placeholder {learning_rate=0.1}, found '{learnig_rate=0.1}'");
	assert_checked("{workers=two}", "expected a whole number from 0 to 16777216 as the value "
					"of {workers}, found 'two'");
	assert_checked("{learning_rate=0}",
		"expected a number above 0 as the value of {learning_rate}, found '0'");
}

static void test_braces_of_the_job_are_allowed(void **state)
{
	(void)state;
	static const char *const words[] = {"{batch_size=16}", "{workers}", "{learning_rate=1e-3}",
		"{\"lr\": 0.1}", "{'worker': 2}", "{}", "{", "{x}", "{0:.3f}", "{markers}",
		"{epoch}", "model-{epoch:02d}-{loss:.2f}.pt", "{batch}", "{batch_size:d}",
		"{batch_size=}", "out-{worker}.txt", "${batchsize}", "{{worker}}", "{a,b}",
		"print(f\"{worker} of {n}\")", "{batchsize",
		"{name_of_more_than_twenty_four_letters=1}"};
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		assert_checked(words[i], NULL);
	}
}

static void test_learning_rates(void **state)
{
	(void)state;
	char word[] = "--lr={learning_rate=1e-3}", *command[] = {word, NULL};
	const struct placeholder_values scaled = {-1, -1, 0.004};
	double otherwise = 0;
	assert_word(word, 64, 2, "--lr=1e-3");
	char **made = placeholders_fill(command, &scaled);
	assert_non_null(made);
	assert_string_equal(made[0], "--lr=0.004");
	placeholders_free(made);
	assert_true(placeholders_has(command, PLACEHOLDER_LEARNING_RATE, &otherwise));
	assert_true(otherwise == 1e-3);
	assert_false(placeholders_has(command, PLACEHOLDER_WORKERS, &otherwise));
	assert_word("{learning_rate=0}", 64, 2, "{learning_rate=0}");
	assert_word("{learning_rate=nan}", 64, 2, "{learning_rate=nan}");
	assert_word("{learning_rate=0.1x}", 64, 2, "{learning_rate=0.1x}");
}

static void test_it_is_found_in_any_word(void **state)
{
	(void)state;
	char program[] = "python3", script[] = "train.py", size[] = "{batch_size=4}";
	char *with[] = {program, script, size, NULL}, *without[] = {program, script, NULL};
	assert_true(placeholders_any(with));
	assert_false(placeholders_any(without));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_and_defaults),
		cmocka_unit_test(test_other_braces_stay),
		cmocka_unit_test(test_misspelt_ones_are_found),
		cmocka_unit_test(test_braces_of_the_job_are_allowed),
		cmocka_unit_test(test_learning_rates),
		cmocka_unit_test(test_it_is_found_in_any_word),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
