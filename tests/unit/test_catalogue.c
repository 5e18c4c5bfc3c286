// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Many runs: finding their files, and their digests, stored or computed.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "study/catalogue.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "base/clock.h"
#include "run/analysis.h"
#include "verdict/verdict.h"
#include "synthetic_run.h"

#define PSS "strain.memory.pss:max"

enum { KEPT = 5 }; // runs in tests/traces

struct place {
	char directory[32];
	char runs[96];
};

#define STORED "schema-1004-onednn"

// Stores the digest of today's rules in the run that has one.
static void store_digest(const struct place *p)
{
	char path[160];
	struct error e = {0};
	struct reader *reader = NULL;
	struct analysis analysis;
	struct verdict verdict;
	snprintf(path, sizeof(path), "%s/" STORED ".strain", p->runs);
	assert_int_equal(reader_open(path, &reader, &e), 0);
	assert_int_equal(analysis_load_brief(reader, &analysis, &e), 0);
	assert_int_equal(verdict_judge(&analysis, &verdict, &e), 0);
	assert_int_equal(digest_finish(path, &analysis, &e), 0);
	verdict_done(&verdict);
	analysis_done(&analysis);
	reader_free(reader);
}

// A place with a cache of its own, and the stored runs in it.
static int make_place(void **state)
{
	struct place *p = calloc(1, sizeof(*p));
	char command[1024];
	assert_non_null(p);
	snprintf(p->directory, sizeof(p->directory), "/tmp/strain-test-XXXXXX");
	assert_non_null(mkdtemp(p->directory));
	snprintf(p->runs, sizeof(p->runs), "%s/runs", p->directory);
	snprintf(command, sizeof(command), "mkdir %s && cp %s/tests/traces/*.strain %s", p->runs,
		getenv("SOURCE_ROOT"), p->runs);
	assert_int_equal(system(command), 0);
	store_digest(p);
	*state = p;
	return 0;
}

static int remove_place(void **state)
{
	struct place *p = *state;
	char command[128];
	snprintf(command, sizeof(command), "chmod -R u+w '%s'; rm -rf '%s'", p->directory,
		p->directory);
	int r = system(command);
	free(p);
	return r;
}

static void shell(const struct place *p, const char *command)
{
	char line[1024];
	snprintf(line, sizeof(line), "cd %s && %s", p->directory, command);
	assert_int_equal(system(line), 0);
}

static void read_paths(struct catalogue *c, char **paths, size_t n)
{
	struct error e = {0};
	if (catalogue_read(paths, n, c, &e) < 0) {
		fail_msg("%s", e.text);
	}
}

static void read_runs(struct place *p, struct catalogue *c)
{
	read_paths(c, (char *[]){p->runs}, 1);
}

static const struct digest *run_named(const struct catalogue *c, const char *name)
{
	for (size_t i = 0; i < c->n; i++) {
		if (strcmp(c->runs[i].name, name) == 0) {
			return &c->runs[i];
		}
	}
	fail_msg("no run %s", name);
	return NULL;
}

static void assert_same_text(const char *a, const char *b)
{
	assert_int_equal(!a, !b);
	if (a) {
		assert_string_equal(a, b);
	}
}

static void assert_same_run(const struct digest *a, const struct digest *b)
{
	const char *const left[] = {a->path, a->name, a->sweep_directory, a->host, a->command,
		a->outcome_text, a->memory_kind, a->verdict, a->headline};
	const char *const right[] = {b->path, b->name, b->sweep_directory, b->host, b->command,
		b->outcome_text, b->memory_kind, b->verdict, b->headline};
	for (size_t i = 0; i < ARRAY_LENGTH(left); i++) {
		assert_same_text(left[i], right[i]);
	}
	assert_int_equal(a->start_utc_ns, b->start_utc_ns);
	assert_int_equal(a->outcome, b->outcome);
	assert_int_equal(a->exit_status, b->exit_status);
	assert_int_equal(a->n_labels, b->n_labels);
	for (size_t i = 0; i < a->n_labels; i++) {
		assert_string_equal(a->labels[i].name, b->labels[i].name);
		assert_string_equal(a->labels[i].value, b->labels[i].value);
	}
	for (size_t i = 0; i < N_MEASURES; i++) {
		assert_memory_equal(&a->measures[i], &b->measures[i], sizeof(double));
		assert_same_text(a->reasons[i], b->reasons[i]);
	}
}

static void assert_same(const struct catalogue *a, const struct catalogue *b)
{
	assert_int_equal(a->n, b->n);
	for (size_t i = 0; i < a->n; i++) {
		assert_same_run(&a->runs[i], &b->runs[i]);
	}
}

static void test_a_digest_has_what_lists_show(void **state)
{
	struct place *p = *state;
	struct catalogue c;
	read_runs(p, &c);
	assert_int_equal(c.n, KEPT);
	const struct digest *run = run_named(&c, "schema-1001-onednn");
	assert_string_equal(digest_label(run, "batch_size"), "64");
	assert_null(digest_label(run, "batch"));
	assert_string_equal(digest_label(run, "machine"), "node1");
	assert_int_equal(run->outcome, OUTCOME_SUCCESS);
	assert_int_equal(run->exit_status, 0);
	assert_true(run->measures[MEASURE_SAMPLES_PER_SECOND] > 1000);
	assert_true(*run->verdict && *run->headline && strstr(run->command, "./train"));
	assert_true(c.runs[0].start_utc_ns >= c.runs[1].start_utc_ns);
	catalogue_done(&c);
}

// Changes findings of the stored run, and reads all.
static void read_changed(struct place *p, const char *sql, struct catalogue *ret)
{
	_cleanup_text_ struct text command = {0};
	text_format(&command, "sqlite3 runs/" STORED ".strain \"%s\"", sql);
	shell(p, command.data);
	read_runs(p, ret);
	assert_int_equal(ret->n, KEPT);
}

// The digest does not say where it is from, but what it says can be changed in the file.
static void test_a_stored_digest_is_used(void **state)
{
	struct place *p = *state;
	struct catalogue c;
	read_changed(p, "UPDATE finding SET number = 12345 WHERE name = 'epoch_seconds'", &c);
	assert_true(run_named(&c, STORED)->measures[MEASURE_EPOCH] == 12345);
	catalogue_done(&c);
	struct catalogue_options options = {.job_only = true};
	struct error e = {0};
	assert_int_equal(catalogue_read_with((char *[]){p->runs}, 1, &options, &c, &e), 0);
	assert_true(run_named(&c, STORED)->measures[MEASURE_EPOCH] == 12345);
	const struct digest *older = run_named(&c, "schema-1001-onednn");
	assert_true(older->job_only && isnan(older->measures[MEASURE_EPOCH]));
	assert_true(isfinite(older->measures[MEASURE_DURATION]));
	catalogue_done(&c);
}

static void test_a_stored_digest_is_what_would_be_computed(void **state)
{
	struct place *p = *state;
	struct catalogue stored, computed;
	read_runs(p, &stored);
	read_changed(p, "DELETE FROM finding", &computed);
	assert_same(&stored, &computed);
	catalogue_done(&stored);
	catalogue_done(&computed);
}

// Labels may be added after the end of the run.
static void test_labels_are_those_of_the_file(void **state)
{
	struct place *p = *state;
	struct catalogue c;
	read_changed(p, "UPDATE label SET value = '65' WHERE name = 'batch_size'", &c);
	assert_string_equal(digest_label(run_named(&c, STORED), "batch_size"), "65");
	catalogue_done(&c);
}

// Whatever is wrong with the findings, the digest is then that of the samples.
static void test_a_digest_that_does_not_count_is_computed(void **state)
{
	struct place *p = *state;
	struct catalogue computed, c;
	static const char *const changes[] = {
		"UPDATE finding SET number = 0 WHERE name = 'rules'",
		"UPDATE finding SET number = 1e300 WHERE name = 'rules'",
		"UPDATE finding SET number = NULL, text = '1' WHERE name = 'rules'",
		"UPDATE finding SET text = 'excellent' WHERE name = 'outcome'",
		"DELETE FROM finding WHERE name = 'rules'",
		"PRAGMA journal_mode = WAL",
	};
	shell(p, "cp runs/" STORED ".strain kept");
	read_changed(p, "DELETE FROM finding", &computed);
	for (size_t i = 0; i < ARRAY_LENGTH(changes); i++) {
		shell(p, "cp kept runs/" STORED ".strain");
		shell(p, "sqlite3 runs/" STORED
			 ".strain \"UPDATE finding SET number = 7 WHERE name = 'cpu_seconds'\"");
		read_changed(p, changes[i], &c);
		assert_same(&computed, &c);
		catalogue_done(&c);
	}
	catalogue_done(&computed);
}

static void test_numbers_that_are_none_are_missing(void **state)
{
	struct place *p = *state;
	struct catalogue c;
	read_changed(p,
		"UPDATE finding SET number = 9e999 WHERE name = 'cpu_seconds';"
		"UPDATE finding SET number = -9e999, text = 'why' WHERE name = 'epoch_seconds';"
		"INSERT INTO finding VALUES ('state', 1, NULL), ('no measure', 5, 'x')",
		&c);
	const struct digest *run = run_named(&c, STORED);
	assert_true(isnan(run->measures[MEASURE_CPU_SECONDS]));
	assert_null(run->reasons[MEASURE_CPU_SECONDS]);
	assert_true(isnan(run->measures[MEASURE_EPOCH]));
	assert_string_equal(run->reasons[MEASURE_EPOCH], "why");
	catalogue_done(&c);
}

// More rows or bytes than any run has: the reader says so, as of any other table.
static void test_too_many_findings_are_refused(void **state)
{
	struct place *p = *state;
	struct catalogue c;
	shell(p,
		"sqlite3 runs/" STORED ".strain \"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "
		"SELECT i + 1 FROM n WHERE i < 20000) INSERT INTO finding SELECT 'x' || i, i, NULL "
		"FROM n\"");
	read_runs(p, &c);
	assert_int_equal(c.n, KEPT - 1);
	assert_int_equal(c.n_unreadable, 1);
	assert_non_null(strstr(c.unreadable[0], "findings"));
	catalogue_done(&c);
}

static double pss_of(const struct catalogue *c, size_t run)
{
	struct catalogue_metric metric;
	struct error e = {0};
	const struct digest *const runs[] = {&c->runs[run]};
	if (catalogue_metric_read(runs, 1, PSS, &metric, &e) < 0) {
		return NAN;
	}
	double value = metric.numbers[0];
	assert_int_equal(!metric.reasons[0], isfinite(value));
	assert_string_equal(metric.unit, "By");
	catalogue_metric_done(&metric);
	return value;
}

static void test_figures_of_metrics(void **state)
{
	struct place *p = *state;
	struct catalogue c;
	read_runs(p, &c);
	for (size_t i = 0; i < c.n; i++) { // of settled files, and through the reader
		double pss = pss_of(&c, i);
		_cleanup_text_ struct text command = {0};
		text_format(&command, "sqlite3 '%s' 'PRAGMA journal_mode = WAL' >/dev/null",
			c.runs[i].path);
		shell(p, command.data);
		assert_memory_equal(&(double){pss_of(&c, i)}, &pss, sizeof(double));
	}
	catalogue_done(&c);
}

static void test_a_live_run_is_computed(void **state)
{
	struct place *p = *state;
	struct catalogue c;
	struct error e = {0};
	char path[160];
	snprintf(path, sizeof(path), "%s/live.strain", p->runs);
	// Its recorder is this process.
	assert_int_equal(
		synthetic_run_write(path,
			&(struct synthetic_run){
				.seconds = 2, .unfinished = true, .recorder_pid = getpid()},
			&e),
		0);
	read_runs(p, &c);
	assert_int_equal(c.n, KEPT + 1);
	assert_int_equal(run_named(&c, "live")->state, RUN_LIVE);
	assert_int_equal(run_named(&c, "live")->outcome, OUTCOME_LIVE);
	catalogue_done(&c);
}

static void test_at_most_so_many_are_read(void **state)
{
	struct place *p = *state;
	struct catalogue c;
	struct error e = {0};
	struct catalogue_options options = {.job_only = true, .most_read = 2};
	shell(p, "touch -d 2001-01-01 runs/*; touch runs/schema-1000.strain; touch -d 2002-01-01 "
		 "runs/schema-1001-onednn.strain");
	assert_int_equal(catalogue_read_with((char *[]){p->runs}, 1, &options, &c, &e), 0);
	assert_int_equal(c.n, 2);
	run_named(&c, "schema-1000");
	run_named(&c, "schema-1001-onednn");
	catalogue_done(&c);
}

static void test_files_that_are_no_runs_are_named(void **state)
{
	struct place *p = *state;
	struct catalogue c;
	shell(p, "cd runs && echo nothing >text.strain && mkfifo fifo.strain && : >empty.strain && "
		 "ln -s nowhere dangling.strain && mkdir directory.strain && echo >notes.txt");
	read_runs(p, &c);
	assert_int_equal(c.n, KEPT);
	assert_int_equal(c.n_unreadable, 4);
	for (size_t k = 0; k < c.n_unreadable; k++) {
		assert_non_null(strstr(c.unreadable[k], p->runs));
	}
	catalogue_done(&c);
}

static void test_what_is_damaged_says_so(void **state)
{
	struct place *p = *state;
	struct catalogue c;
	shell(p, "truncate -s -8000 runs/schema-1000-onednn.strain && truncate -s -512 "
		 "runs/" STORED ".strain");
	read_runs(p, &c);
	assert_int_equal(c.n, KEPT);
	assert_int_equal(c.n_notices, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_non_null(strstr(c.notices[i], ".strain: truncated"));
	}
	assert_true(run_named(&c, "schema-1000-onednn")->damaged);
	assert_true(run_named(&c, STORED)->damaged);
	catalogue_done(&c);
}

static void test_sweeps_and_doubles(void **state)
{
	struct place *p = *state;
	struct catalogue c;
	shell(p, "cd runs && mkdir a.sweep none .hidden && cp schema-1000.strain "
		 "a.sweep/0001-1.strain && "
		 "cp schema-1000.strain a.sweep/0001-2.strain && echo >a.sweep/plan.yaml && "
		 "cp schema-1000.strain none/x.strain && ln -s schema-1000.strain again.strain");
	read_runs(p, &c);
	assert_int_equal(
		c.n, KEPT + 2); // not what is in a directory that is no sweep, nor a file twice
	size_t trials = 0;
	for (size_t i = 0; i < c.n; i++) {
		trials += c.runs[i].sweep_directory && strstr(c.runs[i].sweep_directory, "a.sweep");
	}
	assert_int_equal(trials, 2);
	catalogue_done(&c);
	char sweep[160], trial[200];
	snprintf(sweep, sizeof(sweep), "%s/a.sweep", p->runs);
	snprintf(trial, sizeof(trial), "%s/0001-2.strain", sweep);
	read_paths(&c, (char *[]){trial, sweep}, 2);
	assert_int_equal(c.n, 2);
	assert_string_equal(c.runs[0].sweep_directory, sweep);
	assert_string_equal(c.runs[1].sweep_directory, sweep);
	catalogue_done(&c);
	struct error e = {0};
	char nowhere[] = "/nowhere";
	assert_true(catalogue_read((char *[]){trial, nowhere}, 2, &c, &e) < 0);
	assert_string_equal(e.text, "/nowhere: No such file or directory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_a_digest_has_what_lists_show, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_a_stored_digest_is_used, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_a_stored_digest_is_what_would_be_computed, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_labels_are_those_of_the_file, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_a_digest_that_does_not_count_is_computed, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_numbers_that_are_none_are_missing, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_too_many_findings_are_refused, make_place, remove_place),
		cmocka_unit_test_setup_teardown(test_figures_of_metrics, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_a_live_run_is_computed, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_at_most_so_many_are_read, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_files_that_are_no_runs_are_named, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_what_is_damaged_says_so, make_place, remove_place),
		cmocka_unit_test_setup_teardown(test_sweeps_and_doubles, make_place, remove_place),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
