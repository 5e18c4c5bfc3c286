// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Measures of stored runs and of one made of arithmetic, against what SQL finds in their files, or
// what they were made with.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/analysis.h"
#include "run/measures.h"
#include "base/cleanup.h"
#include "synthetic_run.h"

struct measured {
	struct reader *reader;
	struct analysis analysis;
	double values[N_MEASURES];
	const char *reasons[N_MEASURES];
};

static void measure(struct measured *m, const char *path)
{
	struct error e = {0};
	assert_int_equal(reader_open(path, &m->reader, &e), 0);
	assert_int_equal(analysis_load(m->reader, &m->analysis, &e), 0);
	measures_compute(&m->analysis, false, m->values, m->reasons);
}

static void measure_stored(struct measured *m, const char *name)
{
	char path[512];
	snprintf(path, sizeof(path), "%s/tests/traces/%s", getenv("SOURCE_ROOT"), name);
	measure(m, path);
}

static void measured_done(struct measured *m)
{
	analysis_done(&m->analysis);
	reader_free(m->reader);
}

static double ask(struct measured *m, const char *sql)
{
	sqlite3_stmt *statement = NULL;
	assert_int_equal(
		sqlite3_prepare_v2(reader_database(m->reader), sql, -1, &statement, NULL), 0);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	double value = sqlite3_column_double(statement, 0);
	sqlite3_finalize(statement);
	return value;
}

static void near(double value, double expected, double tolerance)
{
	if (!(fabs(value / expected - 1) <= tolerance)) {
		fail_msg("%.9g, expected %.9g", value, expected);
	}
}

static void test_a_stored_run_is_worth_what_its_file_says(void **state)
{
	(void)state;
	struct measured m;
	measure_stored(&m, "schema-1001-onednn.strain");
	near(m.values[MEASURE_TRAINING],
		ask(&m, "SELECT (max(end_ns) - min(start_ns)) / 1e9 FROM span"
			" WHERE kind = 'epoch'"),
		1e-9);
	near(m.values[MEASURE_EPOCH],
		ask(&m, "SELECT avg(end_ns - start_ns) / 1e9 FROM span WHERE kind = 'epoch'"),
		1e-9);
	near(m.values[MEASURE_FIRST_EPOCH],
		ask(&m, "SELECT (end_ns - start_ns) / 1e9 FROM span WHERE kind = 'epoch'"
			" ORDER BY start_ns LIMIT 1"),
		1e-9);
	near(m.values[MEASURE_DURATION],
		ask(&m, "SELECT value / 1e9 FROM run WHERE key = 'end_ns'"), 1e-9);
	near(m.values[MEASURE_SAMPLES_PER_SECOND],
		ask(&m, "SELECT sum(samples) * 1e9 / sum(end_ns - start_ns) FROM span"
			" WHERE kind = 'iteration'"),
		0.05); // warm-up is in these
	assert_true(m.values[MEASURE_EPOCHS] == 3);
	assert_true(m.values[MEASURE_ITERATIONS] ==
		    ask(&m, "SELECT count(*) FROM span WHERE kind = 'iteration'"));
	near(m.values[MEASURE_CPU_UTILIZATION], 100 * m.values[MEASURE_CPUS_USED], 1e-12);
	near(m.values[MEASURE_CPUS_USED],
		m.values[MEASURE_CPU_SECONDS] / m.values[MEASURE_DURATION], 1e-12);
	// Nothing bounded that job: it was allocated the machine, and what it did not use was idle.
	double hours = m.values[MEASURE_DURATION] / 3600;
	near(m.values[MEASURE_CPU_HOURS_ALLOCATED], m.values[MEASURE_CPUS_ALLOCATED] * hours, 1e-9);
	near(m.values[MEASURE_IDLE_CPU_HOURS],
		m.values[MEASURE_CPU_HOURS_ALLOCATED] - m.values[MEASURE_CPU_SECONDS] / 3600, 1e-9);
	near(m.values[MEASURE_GB_HOURS_ALLOCATED], m.values[MEASURE_MEMORY_ALLOCATED] / 1e9 * hours,
		1e-9);
	near(m.values[MEASURE_IDLE_GB_HOURS],
		m.values[MEASURE_GB_HOURS_ALLOCATED] -
			m.values[MEASURE_HOST_MEMORY_MEAN] / 1e9 * hours,
		1e-9);
	double share = 0;
	for (size_t k = MEASURE_DATA_SHARE; k <= MEASURE_OTHER_SHARE; k++) {
		share += m.values[k];
	}
	near(share, 100, 1e-9);
	measured_done(&m);
}

// The first epoch of such a run holds what came before it.
static void test_where_lines_end_epochs_the_first_counts_for_nothing(void **state)
{
	(void)state;
	struct measured m;
	measure_stored(&m, "schema-1000-onednn.strain");
	assert_true(isnan(m.values[MEASURE_TRAINING]));
	assert_true(isnan(m.values[MEASURE_FIRST_EPOCH]));
	assert_non_null(strstr(m.reasons[MEASURE_TRAINING], "the start of the first"));
	near(m.values[MEASURE_EPOCH],
		ask(&m, "SELECT avg(end_ns - start_ns) / 1e9 FROM (SELECT * FROM span"
			" WHERE kind = 'epoch' ORDER BY start_ns LIMIT -1 OFFSET 1)"),
		1e-9);
	measured_done(&m);
}

static void test_what_is_missing_says_why(void **state)
{
	(void)state;
	struct measured m;
	measure_stored(&m, "schema-1001-onednn.strain");
	for (size_t i = 0; i < N_MEASURES; i++) {
		bool words = measures[i].kind == MEASURE_KIND_WORDS;
		bool beside = measure_is_of_advice((enum measure_id)i) || // not in the run
		              measure_is_priced((enum measure_id)i);
		assert_true(isfinite(m.values[i]) || words || beside || m.reasons[i]);
		assert_true(!isfinite(m.values[i]) || !m.reasons[i]);
	}
	assert_true(isnan(m.values[MEASURE_GPU_UTILIZATION]));
	assert_non_null(strstr(m.reasons[MEASURE_GPU_UTILIZATION], "libnvidia-ml.so.1"));
	measured_done(&m);
}

struct place {
	char directory[64];
	char path[96];
};

static void make_place(struct place *p, const struct synthetic_run *run)
{
	struct error e = {0};
	snprintf(p->directory, sizeof(p->directory), "/tmp/strain-test-XXXXXX");
	assert_non_null(mkdtemp(p->directory));
	snprintf(p->path, sizeof(p->path), "%s/train.strain", p->directory);
	assert_int_equal(synthetic_run_write(p->path, run, &e), 0);
}

static void place_done(struct place *p)
{
	static const char *const parts[] = {"", "-wal", "-shm"};
	for (size_t i = 0; i < ARRAY_LENGTH(parts); i++) {
		char path[sizeof(p->path) + 8];
		snprintf(path, sizeof(path), "%s%s", p->path, parts[i]);
		unlink(path);
	}
	assert_int_equal(rmdir(p->directory), 0);
}

static void test_a_run_of_arithmetic_is_worth_what_it_was_made_of(void **state)
{
	(void)state;
	struct place p = {0};
	struct measured m;
	make_place(&p, &(struct synthetic_run){.seconds = 30, .iterations = 300});
	measure(&m, p.path);
	near(m.values[MEASURE_DURATION], 30, 1e-6);
	near(m.values[MEASURE_TRAINING], 24, 1e-6); // all but the first and the last tenth
	near(m.values[MEASURE_EPOCH], 8, 1e-6);
	near(m.values[MEASURE_STARTUP], 3, 1e-3);
	assert_true(m.values[MEASURE_ITERATIONS] == 300);
	near(m.values[MEASURE_STEP], 24.0 / 300, 0.3); // they differ in length
	near(m.values[MEASURE_SAMPLES_PER_SECOND],
		ask(&m, "SELECT sum(samples) * 1e9 / sum(end_ns - start_ns) FROM span"
			" WHERE kind = 'iteration'"),
		0.05);
	assert_true(m.values[MEASURE_DATA_SHARE] > 20 && m.values[MEASURE_DATA_SHARE] < 100);
	assert_true(
		m.values[MEASURE_GPU_UTILIZATION] > 20 && m.values[MEASURE_GPU_UTILIZATION] <= 100);
	near(m.values[MEASURE_GPU_MEMORY_UTILIZATION],
		100 * m.values[MEASURE_DEVICE_MEMORY_PEAK] / 17179869184.0, 1e-9);
	measured_done(&m);
	place_done(&p);
}

static void test_samples_are_those_of_all_ranks(void **state)
{
	(void)state;
	struct place p = {0};
	struct measured m;
	double rates[2];
	for (unsigned ranks = 1; ranks <= 2; ranks++) {
		make_place(&p,
			&(struct synthetic_run){.seconds = 30, .iterations = 300, .ranks = ranks});
		measure(&m, p.path);
		rates[ranks - 1] = m.values[MEASURE_SAMPLES_PER_SECOND];
		measured_done(&m);
		place_done(&p);
	}
	near(rates[1], 2 * rates[0], 0.05);
}

static void test_a_run_that_is_cut_off_has_what_ended(void **state)
{
	(void)state;
	struct place p = {0};
	struct measured m;
	make_place(&p, &(struct synthetic_run){.seconds = 10, .unfinished = true});
	measure(&m, p.path);
	assert_true(isfinite(m.values[MEASURE_DURATION]));
	assert_true(isnan(m.values[MEASURE_STEP]));
	assert_non_null(m.reasons[MEASURE_STEP]);
	measured_done(&m);
	place_done(&p);
}

static void test_the_table_is_whole(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_MEASURES; i++) {
		const struct measure *measure = &measures[i];
		assert_non_null(measure->name);
		assert_non_null(measure->title);
		assert_non_null(measure->help);
		assert_int_equal(measure_by_name(measure->name), i);
		bool words = measure->kind == MEASURE_KIND_WORDS;
		bool beside = measure_is_of_advice((enum measure_id)i) ||
		              measure_is_priced((enum measure_id)i);
		assert_true((words || beside) == !measure->compute && !(words && beside));
	}
	assert_int_equal(measure_by_name("epoch_second"), N_MEASURES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_stored_run_is_worth_what_its_file_says),
		cmocka_unit_test(test_where_lines_end_epochs_the_first_counts_for_nothing),
		cmocka_unit_test(test_what_is_missing_says_why),
		cmocka_unit_test(test_a_run_of_arithmetic_is_worth_what_it_was_made_of),
		cmocka_unit_test(test_samples_are_those_of_all_ranks),
		cmocka_unit_test(test_a_run_that_is_cut_off_has_what_ended),
		cmocka_unit_test(test_the_table_is_whole),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
