// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Verdicts from figures: each bottleneck is recognised, the sentences are right, and what is not
// known is not claimed. And what is missing, in words.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "run/analysis.h"
#include "base/words.h"
#include "base/cleanup.h"
#include "verdict/causes.h"
#include "verdict/verdict.h"
#include "messages.h"

// A job of a minute on four CPUs of which nothing else is known.
static struct analysis quiet_job(void)
{
	struct analysis a = {0};
	struct overview *o = &a.overview;
	o->duration_s = o->recorded_s = o->running_s = o->end_s = 60;
	o->exit_status = 0;
	o->cpus = o->host_cpus = 4;
	o->cpus_used = 2;
	o->cpu_seconds = 120;
	o->cpus_used_p95 = o->throttled = o->host_cpus_used = o->cpu_wait_seconds = NAN;
	o->memory = (struct memory_figure){
		.peak_bytes = NAN, .at_most_bytes = NAN, .mean_bytes = NAN};
	o->memory_limit_bytes = o->asked_bytes = NAN;
	o->storage_read_bytes = o->storage_write_bytes = NAN;
	for (unsigned i = 0; i < N_PRESSURES; i++) {
		o->pressure.some[i] = o->pressure.full[i] = NAN;
	}
	return a;
}

static void assert_verdict(const struct analysis *a, enum bottleneck bottleneck, const char *says)
{
	struct verdict v = {0};
	assert_int_equal(verdict_build(a, &v), 0);
	assert_string_equal(bottleneck_name(v.bottleneck), bottleneck_name(bottleneck));
	assert_says(v.headline, says);
	assert_true(words_columns(v.headline) <= 112);
	assert_true(words_columns(v.next) <= 112);
	verdict_done(&v);
}

static void test_cpus(void **state)
{
	(void)state;
	struct analysis a = quiet_job();
	assert_verdict(&a, BOTTLENECK_UNKNOWN, "... 2 ... 4");
	a.overview.cpus_used = 3.84;
	assert_verdict(&a, BOTTLENECK_CPU, "... 3.8 ... 4");
	struct process_row rows[] = {
		{.role = ROLE_MAIN, .cpu_seconds = 60, .cpu_share = 1, .label = (char[]){"main"}},
		{.role = ROLE_LOADER, .cpu_seconds = 90, .cpu_share = 1.5},
		{.role = ROLE_LOADER, .cpu_seconds = NAN, .cpu_share = NAN},
	};
	a.processes = (struct process_list){rows, 3, 3};
	assert_verdict(&a, BOTTLENECK_CPU, "... 3.8 ... 4 ... 1.5 ... 1");
	a.overview.cpus = a.overview.cpus_used = 1;
	a.processes.n = 0;
	assert_verdict(&a, BOTTLENECK_CPU, "... 1 ... 1");
}

static void test_one_thread_and_company(void **state)
{
	(void)state;
	struct analysis a = quiet_job();
	struct process_row row = {.role = ROLE_MAIN,
		.cpu_seconds = 59,
		.cpu_share = 0.98,
		.label = (char[]){"python3 train.py"}};
	a.processes = (struct process_list){&row, 1, 1};
	a.overview.cpus_used = 1;
	a.overview.cpu_seconds = 60;
	assert_verdict(&a, BOTTLENECK_ONE_THREAD, "... python3 ... train.py ... 4");
	row.cpu_seconds = 50; // loader workers beside it, far from busy
	a.overview.cpus_used = 1.2;
	assert_verdict(&a, BOTTLENECK_ONE_THREAD, "... python3 ... train.py ... 4 ... 0.4");
	row.cpu_share = 1.1; // not one thread
	assert_verdict(&a, BOTTLENECK_UNKNOWN, "... 1.2 ... 4");
	row.cpu_share = 0.98;
	row.cpu_seconds = 59;
	a.overview.cpus_used = 1;
	a.overview.host_cpus_used = 3.9;
	a.overview.cpu_wait_seconds = 1; // it hardly ever wanted more
	assert_verdict(&a, BOTTLENECK_ONE_THREAD, "... python3 ... train.py ... 4");
	a.overview.cpu_wait_seconds = 41;
	assert_verdict(&a, BOTTLENECK_CONTENTION, "... 1 ... 4 ... 41.0 s ... 2.9");
	a.overview.host_cpus_used = NAN;
	a.overview.cpus_used = 0.04;
	assert_verdict(&a, BOTTLENECK_IDLE, "... 0.04 ... 4");
}

// As seen: a pool's leader sleeps while the pool's threads lack CPUs.
static void test_starved_of_cpus(void **state)
{
	(void)state;
	struct analysis a = quiet_job();
	struct overview *o = &a.overview;
	o->cpus = o->host_cpus = 2;
	o->cpus_used = 0.1;
	o->host_cpus_used = 1.9;
	o->cpu_wait_seconds = 0.2;
	o->pressure.some[PRESSURE_CPU] = 0.7;
	assert_verdict(&a, BOTTLENECK_CONTENTION, "... 0.1 ... 2 ... 1.8");
	o->pressure.of_job = true;
	assert_verdict(&a, BOTTLENECK_CONTENTION, "... 0.1 ... 2 ... 1.8");
	o->pressure.of_job = false;
	struct process_row row = {.cpu_seconds = 59, .cpu_share = 0.98, .label = (char[]){"train"}};
	a.processes = (struct process_list){&row, 1, 1};
	o->cpus_used = 1; // others waited: it had a CPU all the time
	o->cpu_seconds = 60;
	assert_verdict(&a, BOTTLENECK_ONE_THREAD, "... train ... 2");
	a.processes.n = 0;
	static const char idle[] =
		"mostly idle: the job used 0.1 of 2 CPUs; its waits were not measured";
	o->cpus_used = 0.1;
	o->pressure.some[PRESSURE_CPU] = 0.05; // nobody waited for a CPU
	assert_verdict(&a, BOTTLENECK_IDLE, idle);
	o->pressure.some[PRESSURE_CPU] = 0.7;
	o->host_cpus_used = 0.4; // there were some
	assert_verdict(&a, BOTTLENECK_IDLE, idle);
	o->host_cpus_used = 1.9;
	o->cpus_used = 0.01; // it slept
	assert_verdict(&a, BOTTLENECK_IDLE, "... 0.01 ... 2");
}

static void test_devices(void **state)
{
	(void)state;
	struct analysis a = quiet_job();
	struct gpu_figures gpus[] = {{.busy = 0.93, .name = "a"}, {.busy = NAN, .name = "b"}};
	a.overview.gpus = gpus;
	a.overview.n_gpus = 1;
	assert_verdict(&a, BOTTLENECK_GPU, "... GPU ... 93 %");
	a.overview.n_gpus = 2;
	assert_verdict(&a, BOTTLENECK_GPU, "... 2 GPUs ... 93 %");
	a.overview.n_gpus = 0;
	a.overview.pressure.some[PRESSURE_IO] = 0.4;
	a.overview.pressure.of_job = true;
	// Nothing is said of storage where nobody knows whether the job used it.
	assert_verdict(&a, BOTTLENECK_UNKNOWN, "... 2 ... 4");
	a.overview.storage_read_bytes = 3.2e9;
	assert_verdict(&a, BOTTLENECK_STORAGE, "... 40 % ... 3.2 GB ... ?");
	// Others may be those that wait on this host: 137 B a second say nothing, and 53 MB do.
	a.overview.pressure.of_job = false;
	assert_verdict(&a, BOTTLENECK_STORAGE, "... 40 % ... 3.2 GB ... ?");
	a.overview.storage_read_bytes = 8192;
	assert_verdict(&a, BOTTLENECK_UNKNOWN, "... 2 ... 4");
}

static void test_limits(void **state)
{
	(void)state;
	struct analysis a = quiet_job();
	a.overview.throttled = 0.35;
	assert_verdict(&a, BOTTLENECK_CPU_QUOTA, "... 4 ... 35 %");
	a.overview.memory = (struct memory_figure){.peak_bytes = 7.8e9,
		.at_most_bytes = 7.9e9,
		.mean_bytes = NAN,
		.kind = "PSS",
		.metric = "strain.memory.pss"};
	a.overview.memory_limit_bytes = 8e9;
	assert_verdict(&a, BOTTLENECK_MEMORY, "... 7.8 ... 8.0 GB");
	a.overview.memory_limit_bytes = 0x1p33; // as --memory 8GiB sets it
	a.overview.memory.peak_bytes = 7.8 * 0x1p30;
	assert_verdict(&a, BOTTLENECK_MEMORY, "... 7.8 ... 8.0 GiB");
	a.overview.memory.at_least = true;
	assert_verdict(&a, BOTTLENECK_MEMORY, "... at least 7.8 ... 8.0 GiB");
}

static void test_failures(void **state)
{
	(void)state;
	struct analysis a = quiet_job();
	a.overview.exit_status = -1;
	a.overview.exit_signal = SIGSEGV;
	a.overview.cpus_used = 3.9; // says nothing of a job that crashed
	a.overview.outcome = (struct outcome_told){
		OUTCOME_CRASH, (char[]){"terminated by SIGSEGV"}, NULL};
	assert_verdict(&a, BOTTLENECK_FAILED, "... 60.0 s ... SIGSEGV");
	a.overview.duration_s = a.overview.recorded_s = 0.5;
	assert_verdict(&a, BOTTLENECK_FAILED, "... 500 ms ... SIGSEGV");
	a.overview.duration_s = a.overview.recorded_s = 60;
	a.overview.outcome.outcome = OUTCOME_OUT_OF_MEMORY;
	assert_verdict(&a, BOTTLENECK_FAILED, "... 60.0 s ... SIGSEGV");
	a.overview.outcome = (struct outcome_told){OUTCOME_SKIPPED, (char[]){"no GPU"}, NULL};
	assert_verdict(&a, BOTTLENECK_UNKNOWN, "... 77 ... GPU");
	a.overview.outcome = (struct outcome_told){
		OUTCOME_INTERRUPTED, (char[]){"terminated by SIGTERM"}, NULL};
	assert_verdict(&a, BOTTLENECK_CPU, "... 3.9 ... 4");
	a.overview.cpus_used = 2;
	struct event_row event = {.kind = (char[]){"oom_kill"}, .text = (char[]){""}};
	a.tables.events = (struct event_list){&event, 1, 1, 1};
	a.overview.exit_signal = SIGKILL;
	a.overview.memory_limit_is_cgroup = true;
	a.overview.memory_limit_bytes = 2e9;
	assert_verdict(&a, BOTTLENECK_FAILED, "... 2.0 GB ... 60.0 s");
	a.overview.exit_signal = 0;
	a.overview.exit_status = 1;
	assert_verdict(&a, BOTTLENECK_FAILED, "... 2.0 GB ... 60.0 s");
	a.overview.memory_limit_is_cgroup = false;
	assert_verdict(&a, BOTTLENECK_FAILED, "... 60.0 s");
}

// The kernel killed somebody in the cgroup that the job shares.
static void test_a_kill_nearby(void **state)
{
	(void)state;
	struct analysis a = quiet_job();
	struct event_row event = {.kind = (char[]){"oom_kill_nearby"}, .text = (char[]){""}};
	a.tables.events = (struct event_list){&event, 1, 1, 1};
	// The job ended well: it was somebody else.
	assert_verdict(&a, BOTTLENECK_UNKNOWN, "... 2 ... 4");
	struct process_row row = {.role = ROLE_LOADER, .exit_signal = SIGKILL};
	a.processes = (struct process_list){&row, 1, 1};
	assert_verdict(&a, BOTTLENECK_FAILED, "... 60.0 s");
	a.processes.n = 0;
	a.overview.exit_status = -1;
	a.overview.exit_signal = SIGKILL;
	assert_verdict(&a, BOTTLENECK_FAILED, "... 60.0 s");
}

static void test_a_recorder_that_died(void **state)
{
	(void)state;
	struct analysis a = quiet_job();
	struct event_row event = {
		.t_s = 21, .kind = (char[]){"recorder_died"}, .text = (char[]){""}};
	a.tables.events = (struct event_list){&event, 1, 1, 1};
	a.overview.partial = "the recorder was killed (signal 9)";
	a.overview.recorded_s = a.overview.running_s = 21;
	a.overview.cpus_used = 3.9; // of that part
	assert_verdict(&a, BOTTLENECK_CPU, "... 3.9 ... 4");
	struct text lines = {0};
	struct verdict v;
	assert_int_equal(verdict_build(&a, &v), 0);
	// What verdict_lines begins with: no run of a file is needed for that.
	overview_append_recorded(&lines, &a.overview);
	assert_string_equal(
		lines.data, "recorded 21.0 s of 60.0 s: the recorder was killed (signal 9)");
	text_done(&lines);
	verdict_done(&v);
	a.overview.recorded_s = a.overview.running_s = 0.4;
	assert_verdict(&a, BOTTLENECK_UNKNOWN, "... 400 ms");
	a.overview.recorded_s = a.overview.running_s = 21;
	a.overview.exit_status = -1;
	a.overview.exit_signal = SIGKILL;
	assert_verdict(&a, BOTTLENECK_FAILED, "... 60.0 s");
}

static void test_what_is_not_known_is_not_claimed(void **state)
{
	(void)state;
	struct analysis a = quiet_job();
	a.overview.duration_s = a.overview.recorded_s = a.overview.running_s = 0.02;
	assert_verdict(&a, BOTTLENECK_UNKNOWN, "... 20.0 ms");
	a.overview.duration_s = a.overview.recorded_s = a.overview.running_s = 60;
	a.overview.cpus_used = a.overview.cpu_seconds = NAN;
	assert_verdict(&a, BOTTLENECK_UNKNOWN, "... CPU");
}

static void assert_subject(struct missing_list *list, const char *expected)
{
	struct metric_row more[] = {
		{.name = (char[]){"hw.gpu.other"}, .entity_kind = ENTITY_GPU},
		{.name = (char[]){"hw.gpu.more"}, .entity_kind = ENTITY_GPU},
		{.name = (char[]){"x"}, .entity_kind = ENTITY_JOB},
	};
	struct metric_list metrics = {more, 3, 3};
	struct text subject = {0};
	assert_true(missing_list_append_subjects(&subject, &metrics, list, 0));
	_cleanup_free_ char *text = text_steal(&subject);
	assert_string_equal(text, expected);
}

static void test_missing_in_words(void **state)
{
	(void)state;
	char *power[] = {(char[]){"hw.gpu.power"}, (char[]){"hw.gpu.power.limit"}};
	char *limits[] = {
		(char[]){"strain.cgroup.cpu.limit"}, (char[]){"strain.cgroup.memory.limit"}};
	struct missing_group groups[] = {
		{.kind = (char[]){"gpu"}, .reason = (char[]){"a"}, power, 2, 0, true},
		{.kind = (char[]){"job"}, .reason = (char[]){"a"}, limits, 2, 0, true},
	};
	struct missing_list list = {groups, 2, 2};
	assert_subject(&list, "GPU, job cpu limit, memory limit"); // every metric of a GPU
	groups[1].reason[0] = 'b';
	groups[0].n_metrics = 1;
	groups[0].kind[0] = 'x';
	assert_subject(&list, "xpu gpu power");
	struct text none = {0};
	groups[1].reason[0] = 'a';
	assert_false(missing_list_append_subjects(&none, &(struct metric_list){0}, &list, 1));
	assert_null(none.data);
}

static void test_figures_in_words(void **state)
{
	(void)state;
	struct text t = {0};
	words_append_bytes_of(&t, 5.1e9, 16e9);
	text_append_string(&t, "; ");
	words_append_bytes_of(&t, 370e6, 25e9);
	text_append_string(&t, "; ");
	words_append_bytes_of(&t, NAN, 25e9);
	text_append_string(&t, "; ");
	words_append_counted(&t, 1, "CPU");
	text_append_string(&t, "; ");
	words_append_counted(&t, 1.5, "CPU");
	text_append_string(&t, "; ");
	words_append_elided(&t, "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4", 3);
	words_append_elided(&t, "abc\x1b", 4);
	assert_string_equal(t.data,
		"5.1 of 16 GB; 370 MB of 25 GB; ?; 1 CPU; 1.5 CPUs; \xc3\xa4\xc3\xa4\xe2\x80\xa6"
		"abc\xe2\x80\xa6");
	text_done(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cpus),
		cmocka_unit_test(test_one_thread_and_company),
		cmocka_unit_test(test_starved_of_cpus),
		cmocka_unit_test(test_devices),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_a_kill_nearby),
		cmocka_unit_test(test_a_recorder_that_died),
		cmocka_unit_test(test_what_is_not_known_is_not_claimed),
		cmocka_unit_test(test_missing_in_words),
		cmocka_unit_test(test_figures_in_words),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
