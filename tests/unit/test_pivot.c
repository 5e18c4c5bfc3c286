// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Pivots of runs that are made up here: cells, baselines, what failed, and every format.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "study/pivot.h"
#include "show/pivot_write.h"
#include "messages.h"

enum { RUNS_MAX = 16 };

struct made {
	struct digest runs[RUNS_MAX];
	struct run_label labels[RUNS_MAX][2];
	const struct digest *pointers[RUNS_MAX];
	size_t n;
};

static void add(struct made *m, const char *batch, const char *framework, double epoch_s)
{
	struct digest *run = &m->runs[m->n];
	m->labels[m->n][0] = (struct run_label){
		(char *)(uintptr_t) "batch_size", (char *)(uintptr_t)batch};
	m->labels[m->n][1] = (struct run_label){
		(char *)(uintptr_t) "framework", (char *)(uintptr_t)framework};
	*run = (struct digest){.name = (char *)(uintptr_t) "run",
		.host = "node1",
		.labels = m->labels[m->n],
		.n_labels = 2,
		.outcome_text = "",
		.verdict = "input"};
	for (size_t i = 0; i < N_MEASURES; i++) {
		run->measures[i] = NAN;
		run->reasons[i] = "not measured";
	}
	run->measures[MEASURE_EPOCH] = epoch_s;
	m->pointers[m->n] = run;
	m->n++;
}

static void add_failed(struct made *m, const char *batch, const char *framework,
	enum outcome outcome, const char *text)
{
	add(m, batch, framework, 1e9);
	m->runs[m->n - 1].outcome = outcome;
	m->runs[m->n - 1].outcome_text = text;
}

static const char *const batch_size[] = {"batch_size"};
static const char *const framework[] = {"framework"};

// Three repeats of 32 and 128 in two frameworks; one of them does not fit.
static void make(struct made *m)
{
	static const double pytorch[] = {41.2, 41.5, 40.9, 30.2, 30.1, 30.4};
	*m = (struct made){0};
	for (size_t i = 0; i < 6; i++) {
		add(m, i < 3 ? "32" : "128", "pytorch", pytorch[i]);
	}
	add(m, "32", "tensorflow", 50.1);
	add(m, "32", "tensorflow", 52.9);
	add_failed(m, "32", "tensorflow", OUTCOME_CRASH, "SIGSEGV");
	add_failed(m, "128", "tensorflow", OUTCOME_OUT_OF_MEMORY, "out of device memory: 3 GB");
	add_failed(m, "128", "tensorflow", OUTCOME_OUT_OF_MEMORY, "out of device memory: 3 GB");
}

static struct pivot_request request_for(const struct made *m, const struct pivot_value *value)
{
	return (struct pivot_request){.runs = m->pointers,
		.n_runs = m->n,
		.rows = batch_size,
		.n_rows = 1,
		.columns = framework,
		.n_columns = 1,
		.values = value,
		.n_values = 1};
}

static void build(const struct pivot_request *request, struct pivot *p)
{
	struct error e = {0};
	if (pivot_build(request, p, &e) < 0) {
		fail_msg("%s", e.text);
	}
}

static char *written(const struct pivot *p, enum pivot_format format, unsigned width)
{
	char *text = NULL;
	size_t length;
	FILE *stream = open_memstream(&text, &length);
	assert_non_null(stream);
	assert_int_equal(pivot_write(p, format, stream, &(struct table_style){.width = width}), 0);
	fclose(stream);
	return text;
}

static void test_runs_with_the_same_labels_are_repeats(void **state)
{
	(void)state;
	struct made m;
	struct pivot p;
	struct pivot_value value = pivot_value_of(MEASURE_EPOCH);
	make(&m);
	struct pivot_request request = request_for(&m, &value);
	build(&request, &p);
	assert_int_equal(p.rows.n, 2);
	assert_int_equal(p.columns.n, 2);
	assert_string_equal(pivot_key(&p.rows, 0, 0), "32"); // by size
	assert_string_equal(pivot_key(&p.rows, 1, 0), "128");
	const struct pivot_cell *cell = pivot_at(&p, 0, 0, 0);
	assert_int_equal(cell->repeats.n, 3);
	assert_true(fabs(cell->repeats.mean - 41.2) < 1e-9);
	cell = pivot_at(&p, 0, 1, 0); // what failed does not count
	assert_int_equal(cell->n_runs, 3);
	assert_int_equal(cell->repeats.n, 2);
	assert_int_equal(pivot_failed(cell), 1);
	assert_string_equal(p.notes[cell->note - 1], "SIGSEGV");
	cell = pivot_at(&p, 1, 1, 0);
	assert_int_equal(cell->repeats.n, 0);
	assert_int_equal(cell->outcomes[OUTCOME_OUT_OF_MEMORY], 2);
	assert_int_equal(p.fewest, 2);
	assert_int_equal(p.most, 3);
	pivot_done(&p);
}

static void test_a_baseline_is_held_against_each_of_its_kind(void **state)
{
	(void)state;
	struct made m;
	struct pivot p;
	struct pivot_value value = pivot_value_of(MEASURE_EPOCH);
	make(&m);
	struct pivot_request request = request_for(&m, &value);
	request.baseline = &(struct pivot_match){"batch_size", "32.0"}; // as a number
	request.n_baseline = 1;
	build(&request, &p);
	assert_true(pivot_at(&p, 0, 0, 0)->is_baseline);
	assert_true(pivot_at(&p, 0, 1, 0)->is_baseline);
	const struct pivot_cell *cell = pivot_at(&p, 1, 0, 0);
	assert_true(fabs(cell->against - 41.2 / (90.7 / 3)) < 1e-9); // the shorter the faster
	assert_true(cell->beyond_noise);
	assert_true(isnan(pivot_at(&p, 1, 1, 0)->against));
	assert_int_equal(p.n_tests, 1);
	assert_string_equal(p.baseline, "batch_size=32");
	pivot_done(&p);
	struct error e = {0};
	request.baseline = &(struct pivot_match){"batch_size", "33"};
	assert_true(pivot_build(&request, &p, &e) < 0);
	assert_says(e.text, "baseline: ... batch_size=33");
	request.baseline = &(struct pivot_match){"batchsize", "32"};
	assert_true(pivot_build(&request, &p, &e) < 0);
	assert_says(e.text, "baseline: ... 'batchsize'");
}

static void test_one_run_each_flags_nothing(void **state)
{
	(void)state;
	struct made m = {0};
	struct pivot p;
	struct pivot_value value = pivot_value_of(MEASURE_EPOCH);
	add(&m, "32", "pytorch", 41);
	add(&m, "32", "tensorflow", 4);
	struct pivot_request request = request_for(&m, &value);
	request.n_rows = 0;
	request.first_is_baseline = true;
	build(&request, &p);
	assert_int_equal(p.n_tests, 0);
	assert_true(fabs(pivot_at(&p, 0, 1, 0)->against - 41.0 / 4) < 1e-9);
	assert_false(pivot_at(&p, 0, 1, 0)->beyond_noise);
	_cleanup_free_ char *text = written(&p, PIVOT_TEXT, 0);
	assert_says(text, "columns: framework\n ... pytorch  tensorflow\n ... 41    4  10.2x\n\n "
			  "... pytorch ... \n\ntensorflow ... 10.2 ... pytorch");
	pivot_done(&p);
}

static void test_numbers_against_a_baseline(void **state)
{
	(void)state;
	static const struct {
		double number;
		const char *written;
	} rows[] = {{0.0434, "0.043"}, {0.391, "0.39"}, {1.004, "1.004"}, {0.93, "0.930"},
		{1.333, "1.33"}, {12.46, "12.5"}, {130.2, "130"}, {12345, "12,345"}};
	for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
		_cleanup_text_ struct text t = {0};
		grid_append_against(&t, rows[i].number);
		assert_string_equal(t.data, rows[i].written);
	}
}

struct both {
	struct made m;
	struct pivot_value value;
	struct pivot_match baseline;
	struct pivot p;
};

static int make_both(void **state)
{
	struct both *both = calloc(1, sizeof(*both));
	assert_non_null(both);
	make(&both->m);
	both->value = pivot_value_of(MEASURE_EPOCH);
	both->baseline = (struct pivot_match){"batch_size", "32"};
	struct pivot_request request = request_for(&both->m, &both->value);
	request.baseline = &both->baseline;
	request.n_baseline = 1;
	build(&request, &both->p);
	*state = both;
	return 0;
}

static int free_both(void **state)
{
	struct both *both = *state;
	pivot_done(&both->p);
	free(both);
	return 0;
}

static void assert_written(
	void **state, enum pivot_format format, unsigned width, const char *expected)
{
	struct both *both = *state;
	_cleanup_free_ char *text = written(&both->p, format, width);
	assert_says(text, expected);
}

static void test_the_terminal(void **state)
{
	assert_written(state, PIVOT_TEXT, 0,
		"... , s (speed-up), by framework\nbatch_size               "
		"pytorch            tensorflow\n        32  41.20 +-0.75          52 +-18, 1 crash "
		"[1]\n       128  30.23 +-0.38  1.36x*     out of memory [2]\n\n ... 2 to 3 ... 95 "
		"% "
		"... \nspeed-up: ... batch_size=32 ... Welch ... Holm ... 1 ... 5 % ... \n[1] "
		"SIGSEGV\n[2] out of device memory: 3 GB\n");
}

static void test_what_has_no_room_beside_follows_below(void **state)
{
	assert_written(state, PIVOT_TEXT, 44,
		"... , s (speed-up), by framework\nbatch_size               "
		"pytorch\n        32  41.20 +-0.75\n       128  30.23 +-0.38  "
		"1.36x*\n\nbatch_size            tensorflow\n        32  52 +-18, 1 crash "
		"[1]\n       128     out of memory [2]\n\n ... 2 to 3 ... 95 % ... \nspeed-up: ... "
		"batch_size=32 ... \n[1] SIGSEGV\n[2] out of device memory: 3 GB\n");
	struct both *both = *state;
	_cleanup_free_ char *text = written(&both->p, PIVOT_TEXT, 44);
	char *rest = text;
	for (char *line; (line = strsep(&rest, "\n"));) {
		assert_true(strlen(line) <= 44);
	}
}

static void test_markdown(void **state)
{
	assert_written(state, PIVOT_MARKDOWN, 0,
		"** ... , s (speed-up), by framework**\n"
		"\n"
		"| batch\\_size | pytorch | tensorflow |\n"
		"| ---: | ---: | ---: |\n"
		"| 32 | 41.20 \u00b1 0.75 | 52 \u00b1 18, 1 crash <sup>1</sup> |\n"
		"| 128 | 30.23 \u00b1 0.38 (1.36\u00d7\\*) | out of memory <sup>2</sup> |\n"
		"\n ... 2 to 3 ... \u00b1 ... 95 % ... \n"
		"\n"
		"speed-up: ... batch\\_size=32 ... \\* ... 5 % ... \n"
		"\n"
		"<sup>1</sup> SIGSEGV\n"
		"\n"
		"<sup>2</sup> out of device memory: 3 GB\n");
}

static void test_latex(void **state)
{
	assert_written(state, PIVOT_LATEX, 0,
		"% ... \\usepackage{booktabs}\n"
		"\\begin{table}\n"
		"  \\centering\n"
		"  \\caption{ ... , s (speed-up), by framework}\n"
		"  \\begin{tabular}{rrr}\n"
		"    \\toprule\n"
		"    batch\\_size & pytorch & tensorflow \\\\\n"
		"    \\midrule\n"
		"    32 & 41.20 $\\pm$ 0.75 & 52 $\\pm$ 18, 1 crash\\textsuperscript{1} \\\\\n"
		"    128 & 30.23 $\\pm$ 0.38 (1.36$\\times$*) & out of "
		"memory\\textsuperscript{2} \\\\\n"
		"    \\bottomrule\n"
		"  \\end{tabular}\n"
		"\n"
		"  \\par\\footnotesize ... 2 to 3 ... $\\pm$ ... 95 \\% ... \n"
		"  \\par\\footnotesize ... batch\\_size=32 ... 5 \\% ... \n"
		"  \\par\\footnotesize\\textsuperscript{1}~SIGSEGV\n"
		"  \\par\\footnotesize\\textsuperscript{2}~out of device memory: 3 GB\n"
		"\\end{table}\n");
}

static void test_csv_has_a_record_for_each_cell(void **state)
{
	struct both *both = *state;
	_cleanup_free_ char *csv = written(&both->p, PIVOT_CSV, 0);
	assert_non_null(strstr(csv, "batch_size,framework,measure,unit,runs,n,mean,"));
	assert_non_null(strstr(csv, "\n32,tensorflow,epoch_seconds,s,3,2,51.5,"));
	assert_non_null(strstr(csv, ",out of memory,out of device memory: 3 GB\n"));
}

static void test_hostile_labels_stay_letters(void **state)
{
	(void)state;
	struct made m = {0};
	struct pivot p;
	struct pivot_value value = pivot_value_of(MEASURE_EPOCH);
	add(&m, "<script>|*", "a\\b{$&#_%~^}", 41);
	add(&m, "\x1b[2J\xff\n", "x", 42);
	add(&m, "[64,64]", "x", 43);
	add(&m, "=HYPERLINK(\"a\")", "@SUM(1)", 44);
	add(&m, "-3e2", "--lr ?`\u00e9", 45);
	struct pivot_request request = request_for(&m, &value);
	build(&request, &p);
	_cleanup_free_ char *latex = written(&p, PIVOT_LATEX, 0);
	_cleanup_free_ char *csv = written(&p, PIVOT_CSV, 0);
	_cleanup_free_ char *markdown = written(&p, PIVOT_MARKDOWN, 0);
	_cleanup_free_ char *text = written(&p, PIVOT_TEXT, 0);
	assert_non_null(strstr(latex, "a\\textbackslash{}b\\{\\$\\&\\#\\_\\%\\textasciitilde{}"
				      "\\textasciicircum{}\\}"));
	assert_non_null(strstr(latex, "\n    {}[64,64] &")); // else an argument of the row before
	assert_non_null(strstr(markdown, "&lt;script&gt;\\|\\*"));
	assert_non_null(strstr(latex, "=HYPERLINK(\\char34{}a\\char34{})"));
	assert_non_null(strstr(latex, "-{}-lr ?{}`\u00e9"));
	assert_non_null(strstr(csv, "\n\"'=HYPERLINK(\"\"a\"\")\",'@SUM(1),epoch_seconds,"));
	assert_non_null(strstr(csv, "\n-3e2,'--lr ?`\u00e9,epoch_seconds,"));
	assert_null(strchr(latex, '\x1b'));
	assert_null(strchr(markdown, '\x1b'));
	assert_null(strchr(text, '\x1b'));
	assert_non_null(strstr(text, "\\x1b[2J"));
	pivot_done(&p);
}

static void test_labels_are_ordered_by_size(void **state)
{
	(void)state;
	const char *const order[] = {
		"2", "32", "100", "4KiB", "4MiB", "1GB", "4GiB", "any", "unlimited", NULL};
	for (size_t i = 0; i + 1 < ARRAY_LENGTH(order); i++) {
		assert_true(run_table_compare(order[i], order[i + 1]) < 0);
		assert_true(run_table_compare(order[i + 1], order[i]) > 0);
	}
	assert_true(run_table_compare("100MB/s", "1GB/s") < 0);
	assert_int_equal(run_table_compare(NULL, NULL), 0);
}

static void assert_number(double value, double half, const char *expected)
{
	struct text t = {0};
	grid_append_number(&t, value, half);
	if (isfinite(half)) {
		text_append_string(&t, " +-");
		grid_append_half(&t, value, half);
	}
	assert_string_equal(t.data, expected);
	text_done(&t);
}

static void test_sizes_are_in_the_unit_that_labels_have(void **state)
{
	(void)state;
	static const struct {
		const char *memory;
		const char *title;
		const char *number;
	} cases[] = {{"4GiB", "host memory, peak, GiB", " 3.50\n"},
		{"4GB", "host memory, peak, GB", " 3.76\n"},
		{"GiB", "host memory, peak, GB", " 3.76\n"}};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct made m = {0};
		struct pivot p;
		struct pivot_value value = pivot_value_of(MEASURE_HOST_MEMORY_PEAK);
		add(&m, cases[i].memory, "pytorch", 1);
		m.runs[0].measures[MEASURE_HOST_MEMORY_PEAK] = 3.5 * 0x1p30;
		struct pivot_request request = request_for(&m, &value);
		build(&request, &p);
		_cleanup_free_ char *text = written(&p, PIVOT_TEXT, 0);
		assert_non_null(strstr(text, cases[i].title));
		assert_non_null(strstr(text, cases[i].number));
		pivot_done(&p);
	}
}

static void test_two_digits_of_an_interval_count_and_its_mean_ends_where_it_does(void **state)
{
	(void)state;
	assert_number(1.43, 4.2, "1.4 +-4.2");
	assert_number(1.94, 7.16, "1.9 +-7.2");
	assert_number(41.2345, 0.4, "41.23 +-0.40");
	assert_number(41.2345, 0.14, "41.23 +-0.14");
	assert_number(41.2345, 0.0996, "41.23 +-0.10"); // rounding makes a digit more
	assert_number(41.2345, 9.97, "41 +-10");
	assert_number(41.2345, 20, "41 +-20");
	assert_number(818, 365.4, "820 +-370");
	assert_number(12345.6, 1234.5, "12,300 +-1200");
	assert_number(1.43, 365, "1 +-365"); // what is there is not shown as 0
	assert_number(0, 0.123, "0.00 +-0.12");
	assert_number(-0.5, 0.02, "-0.500 +-0.020");
	assert_number(41.2345, 0, "41.2 +-0");
}

static void test_three_digits_count_without_an_interval(void **state)
{
	(void)state;
	assert_number(41.2345, NAN, "41.2");
	assert_number(412.345, NAN, "412");
	assert_number(0.0412345, NAN, "0.0412");
	assert_number(12345.6, NAN, "12,346");
	assert_number(1234.5, NAN, "1234"); // as papers have them: four digits stand together
	assert_number(0, NAN, "0");
	assert_number(3, NAN, "3");
	assert_number(1e20, NAN, "1e+20");
}

int main(void)
{
	setlocale(LC_CTYPE, "C.UTF-8");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runs_with_the_same_labels_are_repeats),
		cmocka_unit_test(test_a_baseline_is_held_against_each_of_its_kind),
		cmocka_unit_test(test_numbers_against_a_baseline),
		cmocka_unit_test(test_one_run_each_flags_nothing),
		cmocka_unit_test_setup_teardown(test_the_terminal, make_both, free_both),
		cmocka_unit_test_setup_teardown(
			test_what_has_no_room_beside_follows_below, make_both, free_both),
		cmocka_unit_test_setup_teardown(test_markdown, make_both, free_both),
		cmocka_unit_test_setup_teardown(test_latex, make_both, free_both),
		cmocka_unit_test_setup_teardown(
			test_csv_has_a_record_for_each_cell, make_both, free_both),
		cmocka_unit_test(test_hostile_labels_stay_letters),
		cmocka_unit_test(test_labels_are_ordered_by_size),
		cmocka_unit_test(test_sizes_are_in_the_unit_that_labels_have),
		cmocka_unit_test(
			test_two_digits_of_an_interval_count_and_its_mean_ends_where_it_does),
		cmocka_unit_test(test_three_digits_count_without_an_interval),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
