// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The NVML source against the fake library of tests/fake.

#include "recording.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "machine/nvml.h"

static void test_a_training_job_on_two_gpus(void **state)
{
	(void)state;
	struct recording *r = record(HOST_PIDS, NULL, training);
	play(r, 3000);
	check_value(r, gpu(0), "hw.gpu.memory.limit", 85e9);
	check_value(r, gpu(1), "hw.gpu.memory.usage", old_driver() ? 6e8 : 0);
	check_value(r, gpu(0), "hw.gpu.utilization", 0.34);
	check_value(r, gpu(1), "hw.gpu.utilization", 0);
	check_value(r, gpu(0), "strain.gpu.memory.utilization", 0.12);
	check_value(r, gpu(0), "strain.gpu.clock.sm", 1980e6);
	check_value(r, gpu(0), "strain.gpu.throttle", 4);
	check_value(r, gpu(1), "strain.gpu.throttle", 0);
	check_value(r, gpu(0), "hw.power", old_driver() ? 320 : 321);
	check_value(r, gpu(0), "hw.temperature", 54);
	check_value(r, gpu(0), "strain.gpu.power.limit", 700);
	check_value(r, gpu(0), "strain.gpu.pcie.generation", 1);
	// The two processes are the job's, 77 is not.
	check_value(r, gpu(0), "strain.gpu.job.memory.usage", 1000000);
	check_value(r, gpu(1), "strain.gpu.job.memory.usage", 500300);
	check_value(r, gpu(1), "strain.gpu.job.processes", 2);
	check_value(r, OWN_ENTITY, "strain.gpu.memory.usage", 1500000);
	check_value(r, OTHER_ENTITY, "strain.gpu.memory.usage", 300);
	assert_int_equal(count_rows(r, gpu(0), "strain.gpu.clock.sm"), 30);
	recording_free(r);
}

static void test_what_only_new_drivers_tell(void **state)
{
	(void)state;
	struct recording *r = record(HOST_PIDS, NULL, training);
	play(r, 3000);
	if (old_driver()) {
		assert_string_equal(
			missing_reason(r, gpu(0), "hw.energy"), "this driver is too old for it");
		assert_string_equal(missing_reason(r, gpu(0), "strain.gpu.memory.reserved"),
			"this driver is too old for it");
		assert_non_null(strstr(
			missing_reason(r, gpu(0), "strain.gpu.sm.activity"), "too old for it"));
		recording_free(r);
		return;
	}
	check_value(r, gpu(0), "hw.gpu.memory.usage", 7e9);
	check_value(r, gpu(0), "strain.gpu.memory.reserved", 6e8);
	check_value(r, gpu(0), "strain.gpu.sm.activity", 0.315);
	check_value(r, gpu(0), "strain.gpu.dram.activity", 0.18);
	assert_string_equal(missing_reason(r, gpu(0), "strain.gpu.tensor.activity"),
		"not supported by this GPU");
	check_value(r, gpu(0), "strain.gpu.errors.corrected", 3);
	check_value(r, gpu(0), "strain.gpu.rows.remapped", 3);
	assert_string_equal(
		missing_reason(r, gpu(0), "strain.gpu.pages.retired"), "not supported by this GPU");
	check_value(r, OWN_ENTITY, "strain.gpu.utilization", 0.5);
	struct row energy = last_row(r, gpu(0), "hw.energy");
	assert_float_equal((double)energy.value * energy.metric->scale, 1000 + 321 * 2, 40);
	recording_free(r);
}

static void test_utilisation_comes_once_with_the_drivers_time(void **state)
{
	(void)state;
	needs_new_driver();
	struct recording *r = record(HOST_PIDS, NULL, training);
	play(r, 2000);
	// Samples at 167, 334, ... 1837 ms (the last readings see up to 1,800).
	size_t n = count_rows(r, gpu(0), "hw.gpu.utilization");
	assert_int_equal(n, 10);
	int64_t before = 0;
	for (size_t i = 0; i < r->n_rows; i++) {
		const struct row *row = &r->rows[i];
		if (row->entity == gpu(0) && strcmp(row->metric->name, "hw.gpu.utilization") == 0) {
			// The script's clock counts whole milliseconds and began a little later.
			int64_t step = row->t_us - before;
			assert_true(before == 0 || (step > 160000 && step < 175000));
			before = row->t_us;
			assert_int_equal(row->value, row->t_us > 500000 ? 34 : 0);
		}
	}
	recording_free(r);
}

static void test_a_buffer_of_another_clock(void **state)
{
	(void)state;
	needs_new_driver();
	static const char *const bases[] = {"gpu * sample.base 1\n", "gpu * sample.base 2\n"};
	char script[4096];
	for (size_t i = 0; i < ARRAY_LENGTH(bases); i++) {
		snprintf(script, sizeof(script), "%s%s", training, bases[i]);
		struct recording *r = record(HOST_PIDS, NULL, script);
		play(r, 2000);
		check_value(r, gpu(0), "hw.gpu.utilization", 0.34);
		// CLOCK_MONOTONIC is found out; nonsense falls back to the plain call.
		assert_int_equal(count_rows(r, gpu(0), "hw.gpu.utilization"), i == 0 ? 10 : 9);
		assert_int_equal(r->calls("nvmlDeviceGetUtilizationRates"), i == 0 ? 0 : 18);
		recording_free(r);
	}
}

static void test_a_silent_buffer_is_not_trusted(void **state)
{
	(void)state;
	needs_new_driver();
	struct recording *r = record(HOST_PIDS, NULL,
		"gpu 0 utilization.gpu 70\n"
		"gpu 0 sample.period 100\n"
		"at 1000 gpu 0 result.nvmlDeviceGetSamples 6\n");
	play(r, 3900);
	assert_int_equal(r->calls("nvmlDeviceGetUtilizationRates"), 0);
	play(r, 2000);
	assert_true(r->calls("nvmlDeviceGetUtilizationRates") > 5);
	check_value(r, gpu(0), "hw.gpu.utilization", 0.7);
	recording_free(r);
}

static void test_what_is_not_supported_is_asked_once(void **state)
{
	(void)state;
	struct recording *r = record(HOST_PIDS, NULL, "gpus 1\n");
	play(r, 3000);
	static const char *const metrics[] = {"hw.gpu.utilization", "hw.gpu.memory.usage",
		"strain.gpu.clock.sm", "hw.power", "strain.gpu.pcie.host_to_device",
		"strain.gpu.nvlink.receive", "hw.temperature", "strain.gpu.job.memory.usage"};
	for (size_t i = 0; i < ARRAY_LENGTH(metrics); i++) {
		const char *reason = missing_reason(r, gpu(0), metrics[i]);
		assert_true(strcmp(reason, "not supported by this GPU") == 0 ||
			    strcmp(reason, "this driver is too old for it") == 0);
		assert_int_equal(count_rows(r, gpu(0), metrics[i]), 0);
	}
	assert_int_equal(r->calls("nvmlDeviceGetClockInfo"), 2);
	assert_int_equal(r->calls("nvmlDeviceGetPowerUsage"), 1);
	assert_string_equal(
		missing_reason(r, 0, "strain.gpu.memory.usage"), "not supported by this GPU");
	for (size_t i = 0; i < source_nvml.n_groups; i++) {
		// "job" is read with the processes, whose environment tells which GPUs they may
		// use; Xids are told by every GPU.
		static const char *const lasting[] = {"job", "gpu_processes", "errors"};
		bool last = false;
		for (size_t j = 0; j < ARRAY_LENGTH(lasting); j++) {
			last = last || strcmp(source_nvml.groups[i].name, lasting[j]) == 0;
		}
		assert_true(r->ended[i] || last);
	}
	recording_free(r);
}

static void test_a_gpu_falls_off_the_bus(void **state)
{
	(void)state;
	char script[4096];
	snprintf(script, sizeof(script), "%sat 1000 gpu 0 lost 15\n", training);
	struct recording *r = record(HOST_PIDS, NULL, script);
	play(r, 3000);
	const struct note *lost = event(r, "gpu_lost");
	assert_non_null(lost);
	assert_int_equal(lost->entity, gpu(0));
	assert_non_null(strstr(lost->text, "fell off the bus"));
	assert_string_equal(
		missing_reason(r, gpu(0), "hw.gpu.memory.usage"), "the GPU fell off the bus");
	assert_true(last_row(r, gpu(0), "strain.gpu.clock.sm").t_us < 1000000);
	assert_true(last_row(r, gpu(1), "strain.gpu.clock.sm").t_us > 2800000);
	check_value(r, gpu(1), "strain.gpu.job.memory.usage", 500300);
	size_t lost_events = 0, ends = 0;
	for (size_t i = 0; i < r->n_notes; i++) {
		lost_events += strcmp(r->notes[i].kind_text, "gpu_lost") == 0;
		ends += r->notes[i].kind == ITEM_ENTITY_END && r->notes[i].entity == gpu(0);
	}
	assert_int_equal(lost_events, 1);
	assert_int_equal(ends, 1);
	recording_free(r);
}

static void test_a_driver_that_knows_no_answer_for_a_second(void **state)
{
	(void)state;
	char script[4096];
	snprintf(script, sizeof(script), "%sat 1000 gpu * lost 999\nat 2500 gpu * lost 0\n",
		training);
	struct recording *r = record(HOST_PIDS, NULL, script);
	play(r, 5000);
	assert_null(event(r, "gpu_lost"));
	assert_true(last_row(r, gpu(0), "strain.gpu.clock.sm").t_us > 4000000);
	recording_free(r);
}

static void test_a_counter_of_energy_that_steps_back(void **state)
{
	(void)state;
	needs_new_driver();
	char script[4096];
	snprintf(script, sizeof(script), "%sat 2500 gpu 0 energy 5\n", training);
	struct recording *r = record(HOST_PIDS, NULL, script);
	play(r, 5000);
	assert_string_equal(
		missing_reason(r, gpu(0), "hw.energy"), "the counter of energy stepped back");
	recording_free(r);
}

// No process has a pid above the kernel's limit.
static void test_pids_of_another_namespace(void **state)
{
	(void)state;
	struct recording *r = record(HOST_PIDS, NULL, "gpu 0 processes 4200001:5000\n");
	play(r, 5000);
	assert_int_equal(count_rows(r, gpu(0), "strain.gpu.job.processes"), 0);
	recording_free(r);
}

static void test_a_driver_that_knows_no_answer_any_more(void **state)
{
	(void)state;
	char script[4096];
	snprintf(script, sizeof(script), "%sat 1000 gpu * lost 999\n", training);
	struct recording *r = record(HOST_PIDS, NULL, script);
	play(r, 900);
	assert_null(event(r, "gpu_lost"));
	play(r, 12000);
	assert_non_null(event(r, "gpu_lost"));
	for (size_t i = 0; i < source_nvml.n_groups; i++) {
		assert_true(r->ended[i] || strcmp(source_nvml.groups[i].name, "job") == 0);
	}
	recording_free(r);
}

static void test_an_error_that_passes_is_a_gap(void **state)
{
	(void)state;
	struct recording *r = record(HOST_PIDS, NULL,
		"gpu 0 clock.sm 1000\n"
		"gpu 0 clock.memory 2000\n"
		"at 1000 gpu 0 clock.sm error:10\n"
		"at 2000 gpu 0 clock.sm 1500\n");
	play(r, 1500);
	assert_true(last_row(r, gpu(0), "strain.gpu.clock.sm").value == VALUE_MISSING);
	check_value(r, gpu(0), "strain.gpu.clock.memory", 2000e6);
	play(r, 1000);
	check_value(r, gpu(0), "strain.gpu.clock.sm", 1500e6);
	assert_string_equal(missing_reason(r, gpu(0), "strain.gpu.clock.sm"), "(not said)");
	recording_free(r);
}

static void test_process_lists_of_every_size(void **state)
{
	(void)state;
	static const unsigned sizes[] = {16, 24, 32};
	char script[256];
	for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
		snprintf(script, sizeof(script),
			"gpu 0 processes self:1000 77:5000 4242:70\ngpu 0 entry.size %u\n",
			sizes[i]);
		struct recording *r = record(HOST_PIDS, NULL, script);
		play(r, 10);
		check_value(r, OWN_ENTITY, "strain.gpu.memory.usage", 1000);
		check_value(r, OTHER_ENTITY, "strain.gpu.memory.usage", 70);
		recording_free(r);
	}
}

static void test_process_lists_that_lie(void **state)
{
	(void)state;
	static const char *const scripts[] = {
		"gpu 0 processes self:1000\ngpu 0 processes.claimed 4000000000\n",
		"gpu 0 processes self:1000\ngpu 0 processes.claimed 3\n",
		"gpu 0 processes self:1000 77:1 78:2\ngpu 0 entry.size 40\n",
	};
	for (size_t i = 0; i < ARRAY_LENGTH(scripts); i++) {
		struct recording *r = record(HOST_PIDS, NULL, scripts[i]);
		play(r, 1010);
		assert_int_equal(count_rows(r, OWN_ENTITY, "strain.gpu.memory.usage"), 0);
		assert_string_equal(missing_reason(r, gpu(0), "strain.gpu.job.memory.usage"),
			"this driver knows another version of the call");
		recording_free(r);
	}
}

static void test_a_process_that_lets_its_memory_go(void **state)
{
	(void)state;
	struct recording *r = record(HOST_PIDS, NULL,
		"gpu 0 processes self:1000 4242:unknown\n"
		"at 1500 gpu 0 processes 4242:unknown\n");
	play(r, 3010);
	check_value(r, OWN_ENTITY, "strain.gpu.memory.usage", 0);
	assert_true(last_row(r, OTHER_ENTITY, "strain.gpu.memory.usage").value == VALUE_MISSING);
	assert_true(last_row(r, gpu(0), "strain.gpu.job.memory.usage").value == VALUE_MISSING);
	check_value(r, gpu(0), "strain.gpu.job.processes", 1);
	recording_free(r);
}

// The host's pids: one happens to be a pid of the job here, which has no GPU open.
static void test_host_pids_in_a_container(void **state)
{
	(void)state;
	struct recording *r = record(
		OWN_PIDS, "/dev/null", "gpu 0 processes self:1000:20 77:5000:50\n");
	play(r, 12000);
	assert_int_equal(count_rows(r, OWN_ENTITY, "strain.gpu.memory.usage"), 0);
	assert_int_equal(count_rows(r, gpu(0), "strain.gpu.job.memory.usage"), 0);
	assert_non_null(strstr(missing_reason(r, 0, "strain.gpu.memory.usage"), "--pid=host"));
	recording_free(r);
}

// Newer drivers translate the pids of the list, forget the memory, and sample under the host's.
static void test_translated_pids_in_a_container(void **state)
{
	(void)state;
	struct recording *r = record(
		OWN_PIDS, "/dev/nvidia0", "gpu 0 processes self:0:20:645400\n");
	play(r, 12000);
	assert_int_equal(count_rows(r, OWN_ENTITY, "strain.gpu.memory.usage"), 0);
	assert_int_equal(count_rows(r, OWN_ENTITY, "strain.gpu.utilization"), 0);
	check_value(r, gpu(0), "strain.gpu.job.processes", 1);
	recording_free(r);
	r = record(OWN_PIDS, "/dev/nvidia0", "gpu 0 processes self:1000:20\n");
	play(r, 1010);
	check_value(r, OWN_ENTITY, "strain.gpu.memory.usage", 1000);
	recording_free(r);
}

static void test_a_divided_gpu_says_so(void **state)
{
	(void)state;
	struct recording *r = record(HOST_PIDS, NULL,
		"gpu 0 mig 1\n"
		"gpu 0 memory.total 1000\n"
		"gpu 0 memory.used 10\n"
		"gpu 0 processes error:4\n");
	play(r, 1010);
	assert_non_null(strstr(missing_reason(r, gpu(0), "hw.gpu.utilization"), "(MIG)"));
	assert_non_null(
		strstr(missing_reason(r, gpu(0), "strain.gpu.job.memory.usage"), "no permission"));
	assert_non_null(strstr(attributes(r, gpu(0)), "\"mig\":true"));
	check_value(r, gpu(0), "hw.gpu.memory.usage", 10);
	recording_free(r);
}

// An instance has memory and processes of its own; which is the job's is known where there is one,
// or where its environment names one.
static void test_a_divided_gpu_with_instances(void **state)
{
	(void)state;
	needs_new_driver();
	static const char divided[] = "gpu 0 mig 1\n"
				      "gpu 0 memory.total 80000\n"
				      "gpu 0 memory.used 70000\n"
				      "gpu 100 uuid MIG-aaaa\n"
				      "gpu 100 memory.total 20000\n"
				      "gpu 100 memory.used 5000\n"
				      "gpu 100 processes self:4000\n";
	char script[1024];
	struct recording *r = record(HOST_PIDS, NULL, divided);
	play(r, 1010);
	check_value(r, gpu(0), "hw.gpu.memory.usage", 5000);
	check_value(r, gpu(0), "hw.gpu.memory.limit", 20000);
	check_value(r, gpu(0), "strain.gpu.job.memory.usage", 4000);
	assert_non_null(strstr(attributes(r, gpu(0)), "\"memory_bytes\":20000"));
	assert_non_null(strstr(attributes(r, gpu(0)), "\"mig_instance\":\"MIG-aaaa\""));
	recording_free(r);
	snprintf(script, sizeof(script), "%sgpu 101 uuid MIG-bbbb\ngpu 101 memory.total 10000\n%s",
		divided, "gpu 101 memory.used 100\ngpu 101 processes 77:1\n");
	r = record(HOST_PIDS, NULL, script);
	play(r, 1010);
	assert_int_equal(count_rows(r, gpu(0), "hw.gpu.memory.usage"), 0);
	assert_null(strstr(attributes(r, gpu(0)), "memory_bytes"));
	recording_close(r);
	assert_non_null(
		strstr(missing_reason(r, gpu(0), "hw.gpu.memory.usage"), "which of them the job"));
	recording_free(r);
	setenv("CUDA_VISIBLE_DEVICES", "MIG-bbbb", 1);
	r = record(HOST_PIDS, NULL, script);
	unsetenv("CUDA_VISIBLE_DEVICES");
	play(r, 1010);
	check_value(r, gpu(0), "hw.gpu.memory.usage", 100);
	check_value(r, gpu(0), "strain.gpu.others.processes", 1);
	recording_free(r);
}

// Two programs on one GPU: what each does there.
static void test_a_gpu_that_is_shared(void **state)
{
	(void)state;
	needs_new_driver();
	struct recording *r = record(HOST_PIDS, NULL,
		"gpu 0 processes self:1000:30 77:5000:60 78:700:5 4242:10:10\n"
		"at 2000 gpu 0 result.nvmlDeviceGetProcessUtilization 6\n");
	play(r, 1010);
	check_value(r, gpu(0), "strain.gpu.job.processes", 2);
	check_value(r, gpu(0), "strain.gpu.job.utilization", 0.4);
	check_value(r, gpu(0), "strain.gpu.others.processes", 2);
	check_value(r, gpu(0), "strain.gpu.others.memory.usage", 5700);
	check_value(r, gpu(0), "strain.gpu.others.utilization", 0.65);
	// "Not found": nobody was busy.
	play(r, 2000);
	check_value(r, gpu(0), "strain.gpu.job.utilization", 0);
	check_value(r, gpu(0), "strain.gpu.others.utilization", 0);
	check_value(r, OWN_ENTITY, "strain.gpu.utilization", 0);
	recording_free(r);
}

// A gap that lasts to the end has a reason; one that passes has none.
static void test_gaps_that_last_have_a_reason(void **state)
{
	(void)state;
	struct recording *r = record(HOST_PIDS, NULL,
		"gpu 0 clock.sm error:10\n"
		"gpu 0 clock.memory error:10\n"
		"at 500 gpu 0 clock.memory 2000\n"
		"gpu 0 processes self:unknown\n");
	play(r, 1010);
	recording_close(r);
	assert_string_equal(
		missing_reason(r, gpu(0), "strain.gpu.clock.sm"), "the driver timed out");
	assert_string_equal(missing_reason(r, gpu(0), "strain.gpu.clock.memory"), "(not said)");
	assert_string_equal(missing_reason(r, gpu(0), "strain.gpu.job.memory.usage"),
		"the driver does not report memory by process");
	recording_free(r);
	r = record(OWN_PIDS, "/dev/null", "gpu 0 processes 77:5000:50\n");
	play(r, 1010); // too short for ten readings
	recording_close(r);
	assert_non_null(strstr(missing_reason(r, 0, "strain.gpu.memory.usage"), "--pid=host"));
	assert_non_null(
		strstr(missing_reason(r, gpu(0), "strain.gpu.others.processes"), "--pid=host"));
	recording_free(r);
}

static void test_errors_are_events(void **state)
{
	(void)state;
	needs_new_driver();
	struct recording *r = record(HOST_PIDS, NULL,
		"gpu 0 ecc.uncorrected 3\n"
		"gpu 0 ecc.corrected 5\n"
		"gpu 0 replays 5\n"
		"at 5000 gpu 0 ecc.uncorrected 15\n"
		"at 5000 gpu 0 replays 50\n");
	play(r, 9000);
	assert_null(event(r, "gpu_errors")); // old errors are no news
	play(r, 2000);
	assert_non_null(event(r, "gpu_errors"));
	assert_string_equal(
		event(r, "gpu_errors")->text, "GPU 0 (Fake GPU): 12 uncorrected ECC errors");
	recording_free(r);
}

static void test_xids_are_counted_and_events(void **state)
{
	(void)state;
	needs_new_driver();
	struct recording *r = record(HOST_PIDS, NULL,
		"gpus 3\n"
		"gpu 2 result.nvmlDeviceRegisterEvents 4\n"
		"at 5000 gpu 1 xid 79\n"
		"at 15000 gpu 1 xid 31\n"
		"at 5000 gpu 2 xid 79\n");
	play(r, 25000);
	check_value(r, gpu(0), "strain.gpu.xids", 0);
	check_value(r, gpu(1), "strain.gpu.xids", 2);
	assert_string_equal(
		event(r, "gpu_xid")->text, "GPU 1 (Fake GPU): Xid 79, the GPU fell off the bus");
	assert_int_equal(event(r, "gpu_xid")->entity, gpu(1));
	assert_non_null(strstr(missing_reason(r, gpu(2), "strain.gpu.xids"), "no permission"));
	recording_free(r);
}

static void put_environ(const struct recording *r, const char *variables)
{
	char path[160];
	snprintf(path, sizeof(path), "%s/proc/%d/environ", r->folder, (int)getpid());
	FILE *file = fopen(path, "we");
	assert_non_null(file);
	fwrite(variables, 1, strlen(variables) + 1, file);
	fclose(file);
}

// As "env CUDA_VISIBLE_DEVICES=1 train" looks while the machine is busy: the environment is read
// before env executes the job.
static void test_a_program_executed_in_another_environment(void **state)
{
	(void)state;
	struct recording *r = record(HOST_PIDS, NULL, "gpus 2\ngpu * processes error:3\n");
	put_environ(r, "HOME=/root");
	play(r, 510);
	assert_null(strstr(attributes(r, gpu(0)), "\"visible\":false"));
	put_environ(r, "CUDA_VISIBLE_DEVICES=1");
	play(r, 4010);
	assert_non_null(strstr(attributes(r, gpu(0)), "\"visible\":false"));
	recording_free(r);
}

static void test_which_gpus_it_sees_where_no_process_is_listed(void **state)
{
	(void)state;
	struct recording *r = record(HOST_PIDS, NULL, "gpus 2\ngpu * processes error:3\n");
	put_environ(r, "CUDA_VISIBLE_DEVICES=1");
	play(r, 1010);
	assert_non_null(strstr(attributes(r, gpu(0)), "\"visible\":false"));
	recording_free(r);
}

static void test_attributes(void **state)
{
	(void)state;
	struct recording *r = record(HOST_PIDS, NULL, training);
	collect(r);
	const char *text = attributes(r, gpu(0));
	static const char *const always[] = {"{\"index\":0,", "\"model\":\"Fake H100\"",
		"\"uuid\":\"GPU-0000fa4e-", "\"pci_bus_id\":\"00000000:01:00.0\"",
		"\"memory_bytes\":85000000000", "\"power_limit_w\":700",
		"\"pcie_generation_max\":5", "\"pcie_peak_bytes_per_s\":63015384615",
		"\"compute_capability\":\"9.0\"", "\"clock_sm_max_hz\":1980000000",
		"\"driver\":\"550.54.15\"", "\"cuda\":\"12.4\"", "\"mig\":false",
		"\"visible\":true"};
	static const char *const new[] = {"\"cores\":16896", "\"multiprocessors\":132",
		"\"memory_bus_bits\":5120", "\"memory_peak_bytes_per_s\":3352320000000"};
	for (size_t i = 0; i < ARRAY_LENGTH(always); i++) {
		assert_non_null(strstr(text, always[i]));
	}
	for (size_t i = 0; i < ARRAY_LENGTH(new); i++) {
		assert_true((strstr(text, new[i]) != NULL) == !old_driver());
	}
	recording_free(r);
}

static void test_which_gpus_the_job_sees(void **state)
{
	(void)state;
	char path[160];
	setenv("CUDA_VISIBLE_DEVICES", "0", 1);
	struct recording *r = record(HOST_PIDS, NULL, training);
	unsetenv("CUDA_VISIBLE_DEVICES");
	collect(r);
	assert_non_null(strstr(attributes(r, gpu(0)), "\"visible\":true"));
	assert_non_null(strstr(attributes(r, gpu(1)), "\"visible\":false"));
	// What a process of the job has in its environment counts more.
	snprintf(path, sizeof(path), "%s/proc/%d/environ", r->folder, (int)getpid());
	FILE *file = fopen(path, "we");
	assert_non_null(file);
	static const char environ[] = "A=1\0CUDA_VISIBLE_DEVICES=1\0B=2";
	fwrite(environ, 1, sizeof(environ), file);
	fclose(file);
	play(r, 1010);
	assert_non_null(strstr(attributes(r, gpu(0)), "\"visible\":false"));
	assert_non_null(strstr(attributes(r, gpu(1)), "\"visible\":true"));
	recording_free(r);
}

static void test_hostile_counts_and_texts(void **state)
{
	(void)state;
	struct recording *r = record(HOST_PIDS, NULL,
		"gpus 4000000000\n"
		"gpu 0 name endless\n"
		"gpu 1 name a\"b\\c\n"
		"gpu 0 utilization.gpu 4000000\n"
		"gpu 0 sample.period 100\n"
		"gpu 0 samples.claimed 4000000000\n"
		"gpu 1 memory.used 10e18\n"
		"gpu 1 memory.total 1\n"
		"gpu 2 handle 4\n");
	play(r, 1010);
	// The fake has 16 and refuses the rest, as the third.
	assert_non_null(strstr(missing_reason(r, gpu(2), "hw.power"), "no permission"));
	assert_non_null(strstr(attributes(r, gpu(1)), "\"model\":\"a\\\"b\\\\c\""));
	assert_non_null(strstr(attributes(r, gpu(0)), "xxx\","));
	assert_int_equal(count_rows(r, gpu(0), "hw.gpu.utilization"), 0);
	if (!old_driver()) {
		assert_int_equal(count_rows(r, gpu(1), "hw.gpu.memory.usage"), 0);
	}
	recording_free(r);
}

static void check_refused(const char *script, const char *expected)
{
	struct recording *r = recording_new(HOST_PIDS, NULL);
	struct error e = {0};
	assert_true(recording_open(r, script, &e) < 0);
	if (!strstr(e.text, expected)) {
		fail_msg("expected '%s' in '%s'", expected, e.text);
	}
	recording_free(r);
}

static void test_reasons_why_it_does_not_open(void **state)
{
	(void)state;
	check_refused("init 9\n", "driver is not loaded; load it (modprobe nvidia)");
	check_refused("init 18\n", "driver/library version mismatch");
	check_refused("init 4\n", "no permission to use NVIDIA's driver; ");
	check_refused("init 17\n", "blocked here; allow /dev/nvidia*");
	check_refused("init 28\n", "no NVIDIA GPU; ");
	check_refused("init 12345\n", "(code 12345)");
	check_refused("gpus 0\n", "no NVIDIA GPU; ");
	check_refused("count.result 999\n", "does not count its GPUs");
	struct source_context captured = {.captured = true};
	struct error e = {0};
	void *state_of = NULL;
	assert_int_equal(source_nvml.open(&captured, NULL, &state_of, &e), -ENODEV);
	source_nvml.close(NULL);
}

static void test_libraries_that_cannot_be_used(void **state)
{
	(void)state;
	struct nvml *n;
	struct error e = {0};
	char path[512];
	assert_int_equal(nvml_open("libstrain-no-such.so.1", &n, &e), -ENOENT);
	assert_non_null(strstr(e.text, "was not found; "));
	snprintf(path, sizeof(path), "%s/broken/libnvidia-ml.so.1", getenv("FAKE_NVML_FOLDER"));
	assert_int_equal(nvml_open(path, &n, &e), -ELIBBAD);
	assert_non_null(strstr(e.text, "no nvmlDeviceGetUUID"));
	assert_int_equal(nvml_open("/etc/passwd", &n, &e), -ELIBACC);
	assert_non_null(strstr(e.text, "/etc/passwd cannot be loaded: "));
}

int main(void)
{
	if (!fake_load()) {
		return 1;
	}
	unsetenv("CUDA_VISIBLE_DEVICES");
	unsetenv("CUDA_DEVICE_ORDER");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_training_job_on_two_gpus),
		cmocka_unit_test(test_what_only_new_drivers_tell),
		cmocka_unit_test(test_utilisation_comes_once_with_the_drivers_time),
		cmocka_unit_test(test_a_buffer_of_another_clock),
		cmocka_unit_test(test_a_silent_buffer_is_not_trusted),
		cmocka_unit_test(test_what_is_not_supported_is_asked_once),
		cmocka_unit_test(test_a_gpu_falls_off_the_bus),
		cmocka_unit_test(test_a_driver_that_knows_no_answer_any_more),
		cmocka_unit_test(test_a_driver_that_knows_no_answer_for_a_second),
		cmocka_unit_test(test_a_counter_of_energy_that_steps_back),
		cmocka_unit_test(test_pids_of_another_namespace),
		cmocka_unit_test(test_an_error_that_passes_is_a_gap),
		cmocka_unit_test(test_process_lists_of_every_size),
		cmocka_unit_test(test_process_lists_that_lie),
		cmocka_unit_test(test_a_process_that_lets_its_memory_go),
		cmocka_unit_test(test_host_pids_in_a_container),
		cmocka_unit_test(test_translated_pids_in_a_container),
		cmocka_unit_test(test_a_divided_gpu_says_so),
		cmocka_unit_test(test_a_divided_gpu_with_instances),
		cmocka_unit_test(test_a_gpu_that_is_shared),
		cmocka_unit_test(test_gaps_that_last_have_a_reason),
		cmocka_unit_test(test_errors_are_events),
		cmocka_unit_test(test_xids_are_counted_and_events),
		cmocka_unit_test(test_which_gpus_it_sees_where_no_process_is_listed),
		cmocka_unit_test(test_a_program_executed_in_another_environment),
		cmocka_unit_test(test_attributes),
		cmocka_unit_test(test_which_gpus_the_job_sees),
		cmocka_unit_test(test_hostile_counts_and_texts),
		cmocka_unit_test(test_reasons_why_it_does_not_open),
		cmocka_unit_test(test_libraries_that_cannot_be_used),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
