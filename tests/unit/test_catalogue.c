// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Many runs, and the index that remembers them: whatever becomes of it, files have the last word.

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
#include "synthetic_run.h"

#define PSS "strain.memory.pss:max"

enum { KEPT = 4 }; // runs in tests/traces

struct place {
	char directory[32];
	char runs[96];
	char cache[96];
	char index[128];
};

// A place with a cache of its own, and the stored runs in it.
static int make_place(void **state)
{
	struct place *p = calloc(1, sizeof(*p));
	char command[1024];
	assert_non_null(p);
	snprintf(p->directory, sizeof(p->directory), "/tmp/strain-test-XXXXXX");
	assert_non_null(mkdtemp(p->directory));
	snprintf(p->runs, sizeof(p->runs), "%s/runs", p->directory);
	snprintf(p->cache, sizeof(p->cache), "%s/cache", p->directory);
	snprintf(p->index, sizeof(p->index), "%s/strain/runs-2.sqlite", p->cache);
	setenv("XDG_CACHE_HOME", p->cache, 1);
	snprintf(command, sizeof(command), "mkdir %s && cp %s/tests/traces/*.strain %s", p->runs,
		getenv("SOURCE_ROOT"), p->runs);
	assert_int_equal(system(command), 0);
	usleep(60000); // younger files are not kept
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

static const struct catalogue_run *run_named(const struct catalogue *c, const char *name)
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

static void assert_same_run(const struct catalogue_run *a, const struct catalogue_run *b)
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

static void test_the_index_remembers_what_was_read(void **state)
{
	struct place *p = *state;
	struct catalogue cold, warm;
	read_runs(p, &cold);
	assert_int_equal(cold.n, KEPT);
	assert_int_equal(cold.n_read, KEPT);
	read_runs(p, &warm);
	assert_int_equal(warm.n_read, 0);
	assert_same(&cold, &warm);
	const struct catalogue_run *run = run_named(&warm, "schema-1001-onednn");
	assert_string_equal(catalogue_label(run, "batch_size"), "64");
	assert_null(catalogue_label(run, "batch"));
	assert_string_equal(catalogue_label(run, "machine"), "node1");
	assert_int_equal(run->outcome, OUTCOME_SUCCESS);
	assert_true(run->measures[MEASURE_SAMPLES_PER_SECOND] > 1000);
	assert_true(*run->verdict && *run->headline);
	assert_true(warm.runs[0].start_utc_ns >= warm.runs[1].start_utc_ns);
	catalogue_done(&cold);
	catalogue_done(&warm);
}

static void test_what_was_read_in_part_is_read_whole_when_asked(void **state)
{
	struct place *p = *state;
	struct catalogue c;
	struct error e = {0};
	struct catalogue_options options = {.job_only = true};
	char *paths[] = {p->runs};
	assert_int_equal(catalogue_read_with(paths, 1, &options, &c, &e), 0);
	assert_true(c.runs[0].job_only && isnan(c.runs[0].measures[MEASURE_EPOCH]));
	assert_true(isfinite(c.runs[0].measures[MEASURE_DURATION]));
	catalogue_done(&c);
	read_runs(p, &c);
	assert_int_equal(c.n_read, KEPT);
	assert_true(isfinite(c.runs[0].measures[MEASURE_EPOCH]));
	catalogue_done(&c);
	assert_int_equal(catalogue_read_with(paths, 1, &options, &c, &e), 0);
	assert_int_equal(c.n_read, 0); // the whole holds the part
	catalogue_done(&c);
}

// The same size and mtime: inode and ctime tell.
static void test_a_file_that_was_replaced_is_read_again(void **state)
{
	struct place *p = *state;
	struct catalogue c;
	read_runs(p, &c);
	catalogue_done(&c);
	shell(p, "cd runs && cp schema-1000-onednn.strain new && "
		 "sqlite3 new \"UPDATE label SET value = '65' WHERE name = 'batch_size'\" && "
		 "touch -r schema-1000-onednn.strain new && "
		 "test $(stat -c %s new) = $(stat -c %s schema-1000-onednn.strain) && "
		 "mv new schema-1000-onednn.strain");
	read_runs(p, &c);
	assert_int_equal(c.n_read, 1);
	assert_string_equal(
		catalogue_label(run_named(&c, "schema-1000-onednn"), "batch_size"), "65");
	catalogue_done(&c);
	// In place, so that the inode stays.
	shell(p, "cd runs && cp -p schema-1000-onednn.strain times && "
		 "sqlite3 schema-1000-onednn.strain "
		 "\"UPDATE label SET value = '66' WHERE name = 'batch_size'\" && "
		 "touch -r times schema-1000-onednn.strain && rm times");
	read_runs(p, &c);
	assert_int_equal(c.n_read, 1);
	assert_string_equal(
		catalogue_label(run_named(&c, "schema-1000-onednn"), "batch_size"), "66");
	catalogue_done(&c);
}

static void test_a_moved_file_is_listed_where_it_is(void **state)
{
	struct place *p = *state;
	struct catalogue c;
	read_runs(p, &c);
	catalogue_done(&c);
	shell(p, "mv runs/schema-1000.strain runs/other.strain");
	read_runs(p, &c);
	assert_int_equal(c.n, KEPT);
	run_named(&c, "other");
	catalogue_done(&c);
}

static void test_an_index_that_is_gone_or_no_index_is_made_anew(void **state)
{
	struct place *p = *state;
	struct catalogue first, c;
	static const char *const spoil[] = {
		"rm cache/strain/runs-2.sqlite",
		"rm -r cache/strain",
		"echo nothing >cache/strain/runs-2.sqlite",
		": >cache/strain/runs-2.sqlite",
		"truncate -s 5000 cache/strain/runs-2.sqlite",
		"sqlite3 cache/strain/runs-2.sqlite 'PRAGMA user_version = 7'",
		"sqlite3 cache/strain/runs-2.sqlite 'DROP TABLE entry; CREATE TABLE entry (a)'",
		"cp runs/schema-1000.strain cache/strain/runs-2.sqlite",
	};
	read_runs(p, &first);
	for (size_t i = 0; i < ARRAY_LENGTH(spoil); i++) {
		shell(p, spoil[i]);
		read_runs(p, &c);
		assert_int_equal(c.n_read, KEPT);
		assert_same(&first, &c);
		catalogue_done(&c);
		read_runs(p, &c);
		assert_int_equal(c.n_read, 0);
		assert_same(&first, &c);
		catalogue_done(&c);
	}
	catalogue_done(&first);
}

// Every way in which there can be no index; root may write anywhere, so not by permissions.
static void test_without_an_index_everything_is_there(void **state)
{
	struct place *p = *state;
	struct catalogue first, c;
	static const char *const spoil[] = {
		"rm -rf cache && : >cache", // no directory
		"rm -rf cache && ln -s /proc cache", // none that can be written
		"rm -rf cache && mkdir -p cache/strain/runs-2.sqlite",
		"rm -rf cache && mkdir -p cache/strain && mkfifo cache/strain/runs-2.sqlite",
		"rm -rf cache && mkdir -p cache/strain && mkfifo cache/strain/runs-2.sqlite.lock",
		"rm -rf cache; mkdir -p cache/strain; ln -s /dev/full cache/strain/runs-2.sqlite",
	};
	read_runs(p, &first);
	for (size_t i = 0; i < ARRAY_LENGTH(spoil); i++) {
		shell(p, spoil[i]);
		read_runs(p, &c);
		assert_int_equal(c.n_read, KEPT);
		assert_same(&first, &c);
		catalogue_done(&c);
	}
	catalogue_done(&first);
}

// Bytes of the index change: what comes out is the truth or nothing.
static void test_a_damaged_index_is_never_believed(void **state)
{
	struct place *p = *state;
	struct catalogue first, c;
	read_runs(p, &first);
	uint64_t random = 88172645463325252u;
	for (int round = 0; round < 25; round++) {
		struct stat status;
		assert_int_equal(stat(p->index, &status), 0);
		_cleanup_close_ int fd = open(p->index, O_RDWR);
		for (int i = 0; i < 1 + round / 2; i++) {
			random ^= random << 13, random ^= random >> 7, random ^= random << 17;
			uint8_t byte = (uint8_t)(random >> 32);
			assert_int_equal(
				pwrite(fd, &byte, 1, (off_t)(random % (uint64_t)status.st_size)),
				1);
		}
		read_runs(p, &c);
		assert_same(&first, &c);
		catalogue_done(&c);
		read_runs(p, &c); // heals
		catalogue_done(&c);
	}
	catalogue_done(&first);
}

static double pss_of(const struct catalogue *c, size_t run)
{
	struct catalogue_metric metric;
	struct error e = {0};
	const struct catalogue_run *const runs[] = {&c->runs[run]};
	if (catalogue_metric_read(runs, 1, PSS, &metric, &e) < 0) {
		return NAN;
	}
	double value = metric.numbers[0];
	assert_int_equal(!metric.reasons[0], isfinite(value));
	assert_string_equal(metric.unit, "By");
	catalogue_metric_done(&metric);
	return value;
}

static struct file_identity identity_of(const char *path)
{
	struct stat status;
	assert_int_equal(stat(path, &status), 0);
	return file_identity_of(&status);
}

static void put_figure(const char *path, const char *name, double value, const char *unit)
{
	struct file_identity file = identity_of(path);
	struct catalogue_figure figure = {.value = value};
	struct catalogue_index *index = catalogue_index_open();
	assert_non_null(index);
	snprintf(figure.unit, sizeof(figure.unit), "%s", unit);
	catalogue_index_put_figure(index, &file, name, &figure);
	catalogue_index_close(index);
}

// A figure that is not the file's own shows whether the index was asked.
static void test_figures_of_metrics_come_from_the_index(void **state)
{
	struct place *p = *state;
	struct catalogue c;
	read_runs(p, &c);
	double truth[KEPT];
	for (size_t i = 0; i < c.n; i++) {
		truth[i] = pss_of(&c, i);
		put_figure(c.runs[i].path, PSS, 12345, "By");
		assert_true(pss_of(&c, i) == 12345);
		put_figure(c.runs[i].path, "strain.memory.pss:mean", 1, "By"); // is another one
		assert_true(pss_of(&c, i) == 12345);
	}
	shell(p, "sqlite3 cache/strain/runs-2.sqlite 'UPDATE figure SET value = 777'");
	for (size_t i = 0; i < c.n; i++) { // is not what was kept
		assert_memory_equal(&(double){pss_of(&c, i)}, &truth[i], sizeof(double));
	}
	put_figure(c.runs[0].path, PSS, 12345, "By");
	shell(p, "touch runs/*.strain"); // other files for all that anyone can tell
	assert_memory_equal(&(double){pss_of(&c, 0)}, &truth[0], sizeof(double));
	shell(p, "rm -r cache");
	assert_memory_equal(&(double){pss_of(&c, 0)}, &truth[0], sizeof(double));
	shell(p, "rm -r cache && : >cache"); // there can be none
	assert_memory_equal(&(double){pss_of(&c, 0)}, &truth[0], sizeof(double));
	catalogue_done(&c);
}

static void assert_newest(const struct place *p, const char *name)
{
	_cleanup_free_ char *path = NULL, *expected = NULL;
	struct error e = {0};
	setenv("STRAIN_DIR", p->runs, 1);
	assert_int_equal(catalogue_newest(0, &path, &e), 0);
	assert_true(asprintf(&expected, "%s/%s", p->runs, name) > 0);
	assert_string_equal(path, expected);
}

static void test_the_newest_run_comes_from_the_index(void **state)
{
	struct place *p = *state;
	struct catalogue c;
	read_runs(p, &c);
	_cleanup_text_ struct text newest = {0}, oldest = {0};
	text_format(&newest, "%s.strain", c.runs[0].name);
	text_format(&oldest, "%s.strain", c.runs[c.n - 1].name);
	for (int round = 0; round < 2; round++) {
		assert_newest(p, newest.data);
	}
	put_figure(c.runs[c.n - 1].path, "start_utc_ns", 8e18, "ns");
	assert_newest(p, oldest.data);
	shell(p, "touch runs/*.strain");
	assert_newest(p, newest.data);
	shell(p, "rm -r cache && : >cache");
	assert_newest(p, newest.data);
	catalogue_done(&c);
}

static void test_a_run_without_an_end_is_never_kept(void **state)
{
	struct place *p = *state;
	struct catalogue c;
	struct error e = {0};
	char path[160];
	// Its recorder is this process.
	FILE *stat_file = fopen("/proc/self/stat", "r");
	assert_non_null(stat_file);
	fclose(stat_file);
	snprintf(path, sizeof(path), "%s/live.strain", p->runs);
	assert_int_equal(
		synthetic_run_write(path,
			&(struct synthetic_run){
				.seconds = 2, .unfinished = true, .recorder_pid = getpid()},
			&e),
		0);
	usleep(60000);
	for (int i = 0; i < 2; i++) {
		read_runs(p, &c);
		assert_int_equal(c.n, KEPT + 1);
		assert_int_equal(c.n_read, i == 0 ? KEPT + 1 : 1);
		catalogue_done(&c);
	}
}

static void test_files_that_are_no_runs_are_named(void **state)
{
	struct place *p = *state;
	struct catalogue c;
	shell(p, "cd runs && echo nothing >text.strain && mkfifo fifo.strain && : >empty.strain && "
		 "ln -s nowhere dangling.strain && mkdir directory.strain && echo >notes.txt");
	for (int i = 0; i < 2; i++) {
		read_runs(p, &c);
		assert_int_equal(c.n, KEPT);
		assert_int_equal(c.n_unreadable, 4);
		for (size_t k = 0; k < c.n_unreadable; k++) {
			assert_non_null(strstr(c.unreadable[k], p->runs));
		}
		catalogue_done(&c);
	}
}

static void test_what_is_damaged_says_so_also_from_the_index(void **state)
{
	struct place *p = *state;
	struct catalogue c;
	shell(p, "truncate -s -8000 runs/schema-1000-onednn.strain && sleep 0.1");
	for (int i = 0; i < 2; i++) {
		read_runs(p, &c);
		assert_int_equal(c.n, KEPT);
		assert_int_equal(c.n_notices, 1);
		assert_non_null(strstr(c.notices[0], "schema-1000-onednn.strain: truncated"));
		assert_true(run_named(&c, "schema-1000-onednn")->damaged);
		catalogue_done(&c);
	}
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

// Several commands at once, with a cold index: all see the same.
static void test_many_at_once(void **state)
{
	struct place *p = *state;
	pid_t children[6];
	for (size_t i = 0; i < ARRAY_LENGTH(children); i++) {
		children[i] = fork();
		assert_true(children[i] >= 0);
		if (children[i] == 0) {
			bool fine = true;
			for (int round = 0; round < 5 && fine; round++) {
				struct catalogue c;
				struct error e = {0};
				fine = catalogue_read((char *[]){p->runs}, 1, &c, &e) == 0 &&
				       c.n == KEPT && c.runs[0].measures[MEASURE_EPOCH] > 1;
				unlink(i == 0 ? p->index : "");
			}
			_exit(fine ? 0 : 1);
		}
	}
	for (size_t i = 0; i < ARRAY_LENGTH(children); i++) {
		int status;
		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_int_equal(status, 0);
	}
}

static void test_bytes_that_are_no_entry_are_refused(void **state)
{
	struct place *p = *state;
	struct catalogue_entry entry;
	struct catalogue_run run;
	struct error e = {0};
	const char *notice;
	char path[200];
	snprintf(path, sizeof(path), "%s/schema-1001-onednn.strain", p->runs);
	assert_int_equal(catalogue_entry_read(path, false, &entry, &e), 0);
	assert_true(entry.lasting);
	assert_int_equal(catalogue_entry_decode(entry.data, entry.length, &run, &notice), 0);
	free(run.labels);
	for (size_t length = 0; length < entry.length; length++) {
		_cleanup_free_ void *part = malloc(length + 1);
		memcpy(part, entry.data, length);
		assert_true(catalogue_entry_decode(part, length, &run, &notice) < 0);
	}
	free(entry.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_the_index_remembers_what_was_read, make_place, remove_place),
		cmocka_unit_test_setup_teardown(test_what_was_read_in_part_is_read_whole_when_asked,
			make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_a_file_that_was_replaced_is_read_again, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_a_moved_file_is_listed_where_it_is, make_place, remove_place),
		cmocka_unit_test_setup_teardown(test_an_index_that_is_gone_or_no_index_is_made_anew,
			make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_without_an_index_everything_is_there, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_a_damaged_index_is_never_believed, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_figures_of_metrics_come_from_the_index, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_the_newest_run_comes_from_the_index, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_a_run_without_an_end_is_never_kept, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_files_that_are_no_runs_are_named, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_what_is_damaged_says_so_also_from_the_index, make_place, remove_place),
		cmocka_unit_test_setup_teardown(test_sweeps_and_doubles, make_place, remove_place),
		cmocka_unit_test_setup_teardown(test_many_at_once, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_bytes_that_are_no_entry_are_refused, make_place, remove_place),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
