// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What an answer of `strain advise` adds to the digests of its runs, and answers that are none.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "study/kept_advice.h"
#include "messages.h"

static const char answer[] =
	"{\"largest_batch\": {\"value\": 90, \"low\": 90, \"high\": 110, \"estimate\": 99,"
	"  \"verified\": 90, \"missing\": null},"
	" \"advised\": {\"batch_size\": 64, \"workers\": 2},"
	" \"rate\": {\"measured\": null, \"gain\": null, \"missing\": \"too short\"},"
	" \"memory\": {\"limit\": 2147483648, \"limit_kind\": \"requested\", \"measured\": 1e9},"
	" \"thesis\": {\"largest_batch\": 95, \"seconds\": 4.5},"
	" \"convergence\": ["
	"  {\"at_equal\": \"samples\", \"batch_size\": 32, \"loss\": -0.5, \"seconds\": 3},"
	"  {\"at_equal\": \"samples\", \"batch_size\": 64, \"loss\": 0.6, \"accuracy\": 91,"
	"   \"seconds\": 2},"
	"  {\"at_equal\": \"time\", \"batch_size\": 64, \"loss\": 9, \"seconds\": 9}],"
	" \"runs\": ["
	"  {\"run\": \"01-now.strain\", \"step\": \"now\", \"batch_size\": 32, \"workers\": 0,"
	"   \"seconds\": 5},"
	"  {\"run\": \"02-line.strain\", \"step\": \"line\", \"batch_size\": 128, \"seconds\": 2},"
	"  {\"run\": \"03-workers.strain\", \"step\": \"workers\", \"seconds\": 100},"
	"  {\"run\": \"04-converge.strain\", \"step\": \"converge\", \"batch_size\": 32},"
	"  {\"run\": \"05-converge.strain\", \"step\": \"converge\", \"batch_size\": 64}],"
	" \"seconds\": 120.5, \"page\": [\"one\", \"\", \"two\"]}";

static void parse(const char *text, struct kept_advice *ret)
{
	struct error e = {0};
	if (kept_advice_parse(text, strlen(text), ret, &e) < 0) {
		fail_msg("%s", e.text);
	}
}

// A run that was labelled by its user.
static struct digest made_run(void)
{
	struct digest run = {.labels = calloc(2, sizeof(*run.labels)), .n_labels = 2, .host = ""};
	assert_non_null(run.labels);
	run.labels[0] = (struct run_label){(char *)(uintptr_t) "model", (char *)(uintptr_t) "tiny"};
	run.labels[1] = (struct run_label){
		(char *)(uintptr_t) "workers", (char *)(uintptr_t) "four"};
	return run;
}

static void test_the_first_run_carries_the_answer(void **state)
{
	(void)state;
	struct kept_advice a;
	struct digest run = made_run();
	parse(answer, &a);
	assert_int_equal(kept_advice_tell(&a, "01-now.strain", &run), 0);
	kept_advice_done(&a); // the digest owns what it was told
	assert_float_equal(run.measures[MEASURE_LARGEST_BATCH], 90, 0);
	assert_float_equal(run.measures[MEASURE_LARGEST_BATCH_HIGH], 110, 0);
	assert_float_equal(run.measures[MEASURE_LARGEST_BATCH_ERROR], 10, 1e-9);
	assert_float_equal(run.measures[MEASURE_LARGEST_BATCH_SECONDS], 7, 1e-9);
	assert_float_equal(run.measures[MEASURE_LARGEST_BATCH_THESIS], 95, 0);
	assert_float_equal(run.measures[MEASURE_ADVISED_WORKERS], 2, 0);
	assert_float_equal(run.measures[MEASURE_ADVICE_SECONDS], 120.5, 0);
	assert_true(isnan(run.measures[MEASURE_ADVISED_RATE]));
	assert_string_equal(run.reasons[MEASURE_ADVISED_RATE], "too short");
	assert_true(isnan(run.measures[MEASURE_WORKERS_THESIS]));
	assert_says(run.reasons[MEASURE_WORKERS_THESIS], "... does not have it");
	assert_string_equal(digest_label(&run, "step"), "now");
	assert_string_equal(digest_label(&run, "batch_size"), "32");
	assert_string_equal(digest_label(&run, "memory"), "2GiB");
	assert_string_equal(digest_label(&run, "model"), "tiny");
	assert_string_equal(digest_label(&run, "workers"), "four"); // the user's stays
	for (size_t i = 1; i < run.n_labels; i++) {
		assert_true(strcmp(run.labels[i - 1].name, run.labels[i].name) < 0);
	}
	digest_done(&run);
}

static void test_the_runs_of_the_convergence_have_their_losses(void **state)
{
	(void)state;
	struct kept_advice a;
	struct digest now = made_run(), advised = made_run(), other = made_run();
	parse(answer, &a);
	assert_int_equal(kept_advice_tell(&a, "04-converge.strain", &now), 0);
	assert_int_equal(kept_advice_tell(&a, "05-converge.strain", &advised), 0);
	assert_int_equal(kept_advice_tell(&a, "06-other.strain", &other), 0);
	assert_float_equal(now.measures[MEASURE_VALIDATION_LOSS], -0.5, 0);
	assert_float_equal(now.measures[MEASURE_VALIDATION_SECONDS], 3, 0);
	assert_true(isnan(now.measures[MEASURE_VALIDATION_ACCURACY]));
	assert_says(now.reasons[MEASURE_VALIDATION_ACCURACY], "the job printed none");
	assert_float_equal(advised.measures[MEASURE_VALIDATION_LOSS], 0.6, 0); // of equal samples
	assert_float_equal(advised.measures[MEASURE_VALIDATION_ACCURACY], 91, 0);
	assert_true(isnan(now.measures[MEASURE_LARGEST_BATCH]));
	assert_says(now.reasons[MEASURE_LARGEST_BATCH], "... first run");
	assert_true(isnan(other.measures[MEASURE_LARGEST_BATCH]));
	assert_string_equal(other.reasons[MEASURE_LARGEST_BATCH], kept_advice_none);
	assert_null(digest_label(&other, "step"));
	kept_advice_done(&a);
	digest_done(&now);
	digest_done(&advised);
	digest_done(&other);
}

static void test_the_words_of_a_limit(void **state)
{
	(void)state;
	static const struct {
		const char *memory, *label;
	} cases[] = {
		{"{\"limit\": 500000000, \"limit_kind\": \"requested\"}", "500MB"},
		{"{\"limit\": 1572864, \"limit_kind\": \"cgroup\"}", "1572864"},
		{"{\"limit\": 3145728, \"limit_kind\": \"cgroup\"}", "3MiB"},
		{"{\"limit\": 2147483648, \"limit_kind\": \"machine\"}", ""},
		{"{\"limit\": 2147483648, \"limit_kind\": \"gpu\"}", ""},
		{"{\"limit\": -1, \"limit_kind\": \"requested\"}", ""},
		{"{\"limit\": 1e300, \"limit_kind\": \"requested\"}", ""},
		{"{\"limit\": null, \"limit_kind\": null}", ""},
		{"{}", ""},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		_cleanup_text_ struct text text = {0};
		struct kept_advice a;
		text_format(&text, "{\"largest_batch\": {}, \"runs\": [], \"memory\": %s}",
			cases[i].memory);
		parse(text.data, &a);
		assert_string_equal(a.memory, cases[i].label);
		kept_advice_done(&a);
	}
}

static void test_what_is_no_answer(void **state)
{
	(void)state;
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"", "... JSON ... line"},
		{"{\"largest_batch\": {\"value\": 1}", "... JSON"},
		{"{\"largest_batch\": {}, \"largest_batch\": {}}", "... JSON"},
		{"[]", "... largest_batch"},
		{"{}", "... largest_batch"},
		{"{\"largest_batch\": 3}", "... largest_batch"},
		{"{\"largest_batch\": {\"value\": \"90\"}}",
			"largest_batch.value ... number ... string"},
		{"{\"largest_batch\": {\"missing\": {}}}",
			"largest_batch.missing ... string ... object"},
		{"{\"largest_batch\": {}, \"thesis\": []}", "thesis ... object ... array"},
		{"{\"largest_batch\": {}, \"seconds\": true}", "seconds ... number ... true"},
		{"{\"largest_batch\": {}}", "runs ... array ... nothing"},
		{"{\"largest_batch\": {}, \"runs\": [null]}", "runs[] ... object ... null"},
		{"{\"largest_batch\": {}, \"runs\": [{\"run\": 1}]}",
			"runs[].run ... string ... number"},
		{"{\"largest_batch\": {}, \"runs\": [{\"batch_size\": -1}]}",
			"runs[].batch_size ... whole"},
		{"{\"largest_batch\": {}, \"runs\": [{\"workers\": 2.5}]}",
			"runs[].workers ... whole"},
		{"{\"largest_batch\": {}, \"runs\": [{\"workers\": 9999999999}]}",
			"runs[].workers ... whole"},
		{"{\"largest_batch\": {}, \"runs\": [], \"convergence\": {}}",
			"convergence ... array ... object"},
		{"{\"largest_batch\": {}, \"runs\": [], \"convergence\": [1]}",
			"convergence[] ... object ... number"},
		{"{\"largest_batch\": {}, \"runs\": [], \"page\": \"x\"}",
			"page ... array ... string"},
		{"{\"largest_batch\": {}, \"runs\": [], \"page\": [1]}",
			"page[] ... string ... number"},
		{"{\"largest_batch\": {}, \"runs\": [], \"memory\": {\"limit_kind\": 1}}",
			"memory.limit_kind ... string ... number"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct kept_advice a;
		struct error e = {0};
		assert_int_equal(
			kept_advice_parse(cases[i].text, strlen(cases[i].text), &a, &e), -EBADMSG);
		assert_says(e.text, cases[i].says);
	}
}

// Appends `n` times the same.
static char *repeated(const char *before, const char *item, size_t n, const char *after)
{
	struct text text = {0};
	text_append_string(&text, before);
	for (size_t i = 0; i < n; i++) {
		text_format(&text, "%s%s", i > 0 ? "," : "", item);
	}
	text_append_string(&text, after);
	return text_steal(&text);
}

static void refuse(char *text, int code, const char *says)
{
	struct kept_advice a;
	struct error e = {0};
	assert_int_equal(kept_advice_parse(text, strlen(text), &a, &e), -code);
	assert_says(e.text, says);
	free(text);
}

static void test_bounds(void **state)
{
	(void)state;
	refuse(repeated("{\"largest_batch\": {}, \"runs\": [", "{}", KEPT_RUNS_MAX + 1, "]}"),
		EBADMSG, "runs ... 64 ... 65");
	refuse(repeated("{\"largest_batch\": {}, \"runs\": [], \"page\": [", "\"\"",
		       KEPT_LINES_MAX + 1, "]}"),
		EBADMSG, "page ... 256 ... 257");
	refuse(repeated("{\"largest_batch\": {}, \"runs\": [], \"convergence\": [", "{}",
		       KEPT_RUNS_MAX + 1, "]}"),
		EBADMSG, "convergence ... 64 ... 65");
	refuse(repeated("[", "1", KEPT_ADVICE_BYTES_MAX, "]"), EFBIG, "... 1048576");
	refuse(repeated("", "[", 100000, ""), EBADMSG, "... JSON");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_first_run_carries_the_answer),
		cmocka_unit_test(test_the_runs_of_the_convergence_have_their_losses),
		cmocka_unit_test(test_the_words_of_a_limit),
		cmocka_unit_test(test_what_is_no_answer),
		cmocka_unit_test(test_bounds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
