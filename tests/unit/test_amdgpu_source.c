// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The source of AMD's GPUs on trees of files like those of amdgpu and kfd.

#include "recording.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

// A GPU behind the switch on its own card, in a slot of sixteen lanes of generation 4; the inner
// link of the switch is faster. Arguments: the kfd node, its id, the bus number.
static const char maker[] =
	"gpu() {\n"
	"  n=sys/class/kfd/kfd/topology/nodes\n"
	"  mkdir -p $n/0 $n/$1 sys/bus/pci/devices sys/class/kfd/kfd/proc\n"
	"  echo 0 >$n/0/gpu_id\n"
	"  echo $2 >$n/$1/gpu_id\n"
	"  printf 'cpu_cores_count 0\\nsimd_count 416\\nlocation_id %d\\ndomain 0\\n"
	"max_engine_clk_fcompute 1700\\ngfx_target_version 90010\\n' $(($3 * 256)) "
	">$n/$1/properties\n"
	"  port=$(printf 'sys/devices/pci0000:00/0000:00:0%d.0' $1)\n"
	"  up=$port/0000:a$3:00.0\n"
	"  d=$up/0000:b$3:00.0/$(printf '0000:%02x:00.0' $3)\n"
	"  mkdir -p $d/hwmon/hwmon$1 $d/ras $d/power\n"
	"  echo 0x1022 >$port/vendor; echo 0x1002 >$up/vendor; echo 0x1002 "
	">$up/0000:b$3:00.0/vendor\n"
	"  echo 0x1002 >$d/vendor\n"
	"  echo '16.0 GT/s PCIe' >$up/current_link_speed; echo 16 >$up/current_link_width\n"
	"  echo '16.0 GT/s PCIe' >$up/max_link_speed; echo 16 >$up/max_link_width\n"
	"  echo '32.0 GT/s PCIe' >$d/current_link_speed; echo 16 >$d/current_link_width\n"
	"  echo '32.0 GT/s PCIe' >$d/max_link_speed; echo 16 >$d/max_link_width\n"
	"  ln -sfn ../../../../$d sys/bus/pci/devices/$(basename $d)\n"
	"  echo 34 >$d/gpu_busy_percent; echo 12 >$d/mem_busy_percent\n"
	"  echo 68702699520 >$d/mem_info_vram_total; echo 9000000000 >$d/mem_info_vram_used\n"
	"  printf '1234567890abcd%02x\\n' $3 >$d/unique_id\n"
	"  echo 'Instinct MI210' >$d/product_name\n"
	"  echo active >$d/power/runtime_status; echo 3 >$d/pcie_replay_count\n"
	"  printf 'ue: 0\\nce: 3\\n' >$d/ras/umc_err_count\n"
	"  h=$d/hwmon/hwmon$1\n"
	"  echo 250000000 >$h/power1_average; echo 300000000 >$h/power1_cap\n"
	"  echo edge >$h/temp1_label; echo 48000 >$h/temp1_input\n"
	"  echo junction >$h/temp2_label; echo 61000 >$h/temp2_input\n"
	"  echo mem >$h/temp3_label; echo 55000 >$h/temp3_input\n"
	"  echo sclk >$h/freq1_label; echo 1400000000 >$h/freq1_input\n"
	"  echo mclk >$h/freq2_label; echo 1600000000 >$h/freq2_input\n"
	"  table $d 1 3 655360 4\n"
	"}\n"
	// The driver's table: folder, version, energy in 2^-16 J, throttling.
	"table() {\n"
	"  python3 - $@ <<'END'\n"
	"import struct, sys\n"
	"folder, format, content, energy, bits = sys.argv[1], *map(int, sys.argv[2:])\n"
	"t = bytearray(b'\\xff' * 120)\n"
	"struct.pack_into('<HBB', t, 0, 120, format, content)\n"
	"struct.pack_into('<Q', t, 24, energy)\n"
	"struct.pack_into('<Q', t, 112, bits)\n"
	"open(folder + '/gpu_metrics', 'wb').write(t)\n"
	"END\n"
	"}\n"
	// What a process holds: pid, the GPU's id, bytes, whether it has a queue there.
	"user() {\n"
	"  p=sys/class/kfd/kfd/proc/$1\n"
	"  mkdir -p $p/queues; echo 32770 >$p/pasid; echo $3 >$p/vram_$2\n"
	"  if [ $4 = 1 ]; then mkdir -p $p/queues/$2; echo $2 >$p/queues/$2/gpuid; fi\n"
	"}\n";

static void change(const struct recording *r, const char *commands)
{
	char line[8192];
	snprintf(line, sizeof(line), "cd %s\nset -e\n%s%s", r->folder, maker, commands);
	assert_int_equal(system(line), 0);
}

static struct recording *record_amd(const char *namespace, const char *commands)
{
	struct recording *r = recording_of(&source_amdgpu, namespace, NULL);
	struct error e = {0};
	change(r, commands);
	if (recording_open(r, NULL, &e) < 0) {
		fail_msg("%s", e.text);
	}
	return r;
}

#define FIRST "sys/bus/pci/devices/0000:03:00.0"

static void test_a_training_job_on_one_of_two(void **state)
{
	(void)state;
	char commands[512];
	snprintf(commands, sizeof(commands),
		"gpu 1 5001 3; gpu 2 5002 4; user %d 5001 8000000000 1; user %d 5002 2000000 0\n"
		"user 1 5002 400000000 1\n",
		(int)getpid(), (int)getpid());
	struct recording *r = record_amd(HOST_PIDS, commands);
	play(r, 2500);
	check_value(r, gpu(0), "hw.gpu.utilization", 0.34);
	check_value(r, gpu(0), "strain.gpu.memory.utilization", 0.12);
	check_value(r, gpu(0), "hw.gpu.memory.usage", 9e9);
	check_value(r, gpu(0), "hw.gpu.memory.limit", 68702699520.0);
	check_value(r, gpu(0), "hw.power", 250);
	check_value(r, gpu(0), "hw.energy", 10);
	check_value(r, gpu(0), "strain.gpu.clock.sm", 1400e6);
	check_value(r, gpu(0), "strain.gpu.clock.memory", 1600e6);
	check_value(r, gpu(0), "strain.gpu.throttle", 4);
	check_value(r, gpu(0), "hw.temperature", 61); // the hottest point, not the edge
	check_value(r, gpu(0), "strain.gpu.memory.temperature", 55);
	check_value(r, gpu(0), "strain.gpu.power.limit", 300);
	check_value(r, gpu(0), "strain.gpu.pcie.generation", 4); // of the slot
	check_value(r, gpu(0), "strain.gpu.pcie.width", 16);
	check_value(r, gpu(0), "strain.gpu.errors.corrected", 3);
	check_value(r, gpu(0), "strain.gpu.pcie.replays", 3);
	// This process gives work to the first GPU; what the runtime holds of the other is little.
	check_value(r, gpu(0), "strain.gpu.job.processes", 1);
	check_value(r, gpu(0), "strain.gpu.job.memory.usage", 8e9);
	check_value(r, gpu(0), "strain.gpu.others.processes", 0);
	check_value(r, gpu(1), "strain.gpu.job.processes", 0);
	check_value(r, gpu(1), "strain.gpu.others.processes", 1);
	check_value(r, gpu(1), "strain.gpu.others.memory.usage", 4e8);
	check_value(r, OWN_ENTITY, "strain.gpu.memory.usage", 8002000000);
	assert_non_null(strstr(attributes(r, gpu(0)), "\"model\":\"AMD Instinct MI210\""));
	assert_non_null(strstr(attributes(r, gpu(0)), "\"uuid\":\"GPU-1234567890abcd03\""));
	assert_non_null(strstr(attributes(r, gpu(0)), "\"pci_bus_id\":\"0000:03:00.0\""));
	assert_non_null(strstr(attributes(r, gpu(0)), "\"clock_sm_max_hz\":1700000000"));
	assert_non_null(
		strstr(missing_reason(r, gpu(0), "strain.gpu.pcie.host_to_device"), "pcie_bw"));
	assert_null(event(r, "gpu_errors"));
	recording_free(r);
}

static void test_values_follow_the_files(void **state)
{
	(void)state;
	struct recording *r = record_amd(HOST_PIDS, "gpu 1 5001 3\n");
	play(r, 500);
	change(r, "echo 97 >" FIRST "/gpu_busy_percent; echo 0 >" FIRST "/mem_info_vram_used\n"
		  "printf 'ue: 1\\nce: 3\\n' >" FIRST "/ras/umc_err_count\n"
		  "table " FIRST " 1 3 1310720 $((1 << 36))\n");
	play(r, 61000);
	check_value(r, gpu(0), "hw.gpu.utilization", 0.97);
	check_value(r, gpu(0), "hw.gpu.memory.usage", 0);
	check_value(r, gpu(0), "strain.gpu.throttle", 32);
	check_value(r, gpu(0), "hw.energy", 20);
	assert_string_equal(event(r, "gpu_errors")->text,
		"GPU 0 (AMD Instinct MI210): 1 uncorrected ECC error");
	change(r, "echo 0 >" FIRST "/gpu_busy_percent; table " FIRST " 1 3 1310720 0\n");
	play(r, 500);
	check_value(r, gpu(0), "strain.gpu.throttle", 1); // idle
	recording_free(r);
}

// A desktop GPU, or an old kernel: fewer files, each with its reason.
static void test_what_is_not_there_is_said(void **state)
{
	(void)state;
	struct recording *r = record_amd(HOST_PIDS,
		"gpu 1 5001 3; cd " FIRST "; rm -r ras gpu_metrics product_name unique_id "
		"mem_busy_percent hwmon/hwmon1/temp2_* hwmon/hwmon1/power1_average\n"
		"echo 180000000 >hwmon/hwmon1/power1_input\n");
	play(r, 2500);
	check_value(r, gpu(0), "hw.power", 180);
	check_value(r, gpu(0), "hw.temperature", 48);
	check_value(r, gpu(0), "hw.gpu.utilization", 0.34);
	assert_string_equal(missing_reason(r, gpu(0), "strain.gpu.memory.utilization"),
		"mem_busy_percent: the driver does not have it for this GPU");
	assert_non_null(strstr(missing_reason(r, gpu(0), "strain.gpu.throttle"), "Linux 5.10"));
	assert_non_null(strstr(missing_reason(r, gpu(0), "hw.energy"), "Linux 5.10"));
	assert_string_equal(missing_reason(r, gpu(0), "hw.errors"), "this GPU's memory has no ECC");
	assert_non_null(strstr(attributes(r, gpu(0)), "\"model\":\"AMD gfx90a\""));
	assert_non_null(strstr(attributes(r, gpu(0)), "\"uuid\":\"pci-0000:03:00.0\""));
	recording_free(r);
}

static void test_a_table_of_another_version(void **state)
{
	(void)state;
	struct recording *r = record_amd(HOST_PIDS,
		"gpu 1 5001 3; table " FIRST " 9 7 655360 4; gpu 2 5002 4\n"
		"printf 'xy' >sys/bus/pci/devices/0000:04:00.0/gpu_metrics\n");
	play(r, 1200);
	assert_string_equal(missing_reason(r, gpu(0), "hw.energy"),
		"the driver's table gpu_metrics, version 9.7, lacks it");
	assert_string_equal(missing_reason(r, gpu(1), "strain.gpu.throttle"),
		"the driver's table gpu_metrics, version 0.0, lacks it");
	recording_free(r);
}

// MI300's table counts steps of the firmware in which something lowered the clock.
static void test_a_table_with_residencies(void **state)
{
	(void)state;
	static const char table[] =
		"residencies() {\n"
		"  python3 - $@ <<'END'\n"
		"import struct, sys\n"
		"folder, steps, power, socket = sys.argv[1], *map(int, sys.argv[2:])\n"
		"t = bytearray(b'\\xff' * 1664)\n"
		"struct.pack_into('<HBB', t, 0, 1664, 1, 6)\n"
		"struct.pack_into('<Q', t, 16, 65536 * 7)\n"
		"struct.pack_into('<6I', t, 32, steps, 0, power, socket, 0, 0)\n"
		"open(folder + '/gpu_metrics', 'wb').write(t)\n"
		"END\n"
		"}\n";
	char commands[2048];
	snprintf(commands, sizeof(commands), "%sgpu 1 5001 3; residencies " FIRST " 100 10 0\n",
		table);
	struct recording *r = record_amd(HOST_PIDS, commands);
	play(r, 300);
	check_value(r, gpu(0), "hw.energy", 7);
	snprintf(commands, sizeof(commands), "%sresidencies " FIRST " 200 90 10\n", table);
	change(r, commands);
	play(r, 200);
	check_value(r, gpu(0), "strain.gpu.throttle", 4); // 80 of 100 steps at the power limit
	snprintf(commands, sizeof(commands), "%sresidencies " FIRST " 300 95 90\n", table);
	change(r, commands);
	play(r, 200);
	check_value(r, gpu(0), "strain.gpu.throttle", 32);
	recording_free(r);
}

// Of a card with two GPUs, the second has no power of its own.
static void test_the_second_gpu_of_a_card(void **state)
{
	(void)state;
	struct recording *r = record_amd(HOST_PIDS, "gpu 1 5001 3; cd " FIRST "/hwmon/hwmon1\n"
						    "echo 0 >power1_average; echo >power1_cap\n");
	play(r, 3500);
	assert_non_null(strstr(missing_reason(r, gpu(0), "hw.power"), "sensor covers both"));
	recording_close(r);
	assert_non_null(
		strstr(missing_reason(r, gpu(0), "strain.gpu.power.limit"), "without a value"));
	recording_free(r);
}

static void test_nonsense_is_a_gap(void **state)
{
	(void)state;
	static const char *const values[] = {"101", "-1", "oops", "", "34 35",
		"99999999999999999999999", "$(head -c 5000 /dev/zero | tr '\\0' 7)"};
	struct recording *r = record_amd(HOST_PIDS, "gpu 1 5001 3\n");
	for (size_t i = 0; i < ARRAY_LENGTH(values); i++) {
		char commands[256];
		snprintf(commands, sizeof(commands), "echo %s >" FIRST "/gpu_busy_percent\n",
			values[i]);
		change(r, commands);
		play(r, 300);
		assert_true(last_row(r, gpu(0), "hw.gpu.utilization").value == VALUE_MISSING);
	}
	change(r, "echo 50 >" FIRST "/gpu_busy_percent\n");
	play(r, 300);
	check_value(r, gpu(0), "hw.gpu.utilization", 0.5);
	recording_free(r);
}

static void test_odd_names_of_processes(void **state)
{
	(void)state;
	struct recording *r = record_amd(HOST_PIDS,
		"gpu 1 5001 3; user abc 5001 1 1; user 99999999999 5001 1 1; user -5 5001 1 1\n"
		"user 0 5001 1 1; user 1 5001 oops 1; user 2 5001 900000000 0\n");
	play(r, 1200);
	check_value(r, gpu(0), "strain.gpu.others.processes", 2); // 2 holds much, without queues
	check_value(r, gpu(0), "strain.gpu.others.memory.usage", 9e8);
	recording_free(r);
}

static void test_a_container_does_not_know_its_processes(void **state)
{
	(void)state;
	struct recording *r = record_amd(OWN_PIDS, "gpu 1 5001 3; user 77 5001 900000000 1\n");
	play(r, 2500);
	assert_int_equal(count_rows(r, gpu(0), "strain.gpu.job.processes"), 0);
	assert_non_null(
		strstr(missing_reason(r, gpu(0), "strain.gpu.job.processes"), "--pid=host"));
	check_value(r, gpu(0), "hw.gpu.utilization", 0.34);
	recording_free(r);
	// A list of which nobody exists here is another namespace's, too.
	r = record_amd(HOST_PIDS, "gpu 1 5001 3; user 2147480000 5001 900000000 1\n");
	play(r, 3500);
	assert_int_equal(count_rows(r, gpu(0), "strain.gpu.job.processes"), 0);
	recording_close(r);
	assert_non_null(
		strstr(missing_reason(r, gpu(0), "strain.gpu.job.processes"), "another container"));
	recording_free(r);
}

// A divided GPU has a node of each part, and one device.
static void test_a_divided_gpu(void **state)
{
	(void)state;
	struct recording *r = record_amd(
		HOST_PIDS, "gpu 1 5001 3; gpu 2 5002 3; gpu 3 5003 3; gpu 4 5004 3\n");
	play(r, 1200);
	check_value(r, gpu(0), "hw.power", 250);
	assert_int_equal(count_rows(r, gpu(1), "hw.power"), 0);
	assert_non_null(strstr(missing_reason(r, gpu(1), "hw.power"), "divided"));
	assert_non_null(strstr(attributes(r, gpu(1)), "\"uuid\":\"pci-0000:03:00.0-part1\""));
	assert_non_null(strstr(attributes(r, gpu(3)), "\"uuid\":\"pci-0000:03:00.0-part3\""));
	recording_free(r);
}

static void test_a_gpu_that_goes_away(void **state)
{
	(void)state;
	struct recording *r = record_amd(HOST_PIDS, "gpu 1 5001 3; gpu 2 5002 4\n");
	play(r, 1200);
	change(r, "rm " FIRST "\n");
	play(r, 2500);
	assert_non_null(strstr(event(r, "gpu_lost")->text, "GPU 0 (AMD Instinct MI210"));
	size_t rows = count_rows(r, gpu(0), "hw.power"), others = count_rows(r, gpu(1), "hw.power");
	play(r, 1000);
	assert_int_equal(count_rows(r, gpu(0), "hw.power"), rows);
	assert_true(count_rows(r, gpu(1), "hw.power") > others);
	recording_free(r);
}

static void test_a_gpu_that_sleeps_is_not_woken(void **state)
{
	(void)state;
	struct recording *r = record_amd(HOST_PIDS,
		"gpu 1 5001 3; echo suspended >" FIRST "/power/runtime_status\n"
		// Read while it sleeps, these would be judged for ever.
		"cd " FIRST "; mv gpu_metrics table; : >gpu_metrics; mv ras away\n"
		"mv hwmon/hwmon1/power1_average watts; mv gpu_busy_percent busy\n");
	play(r, 1200);
	assert_int_equal(count_rows(r, gpu(0), "hw.gpu.utilization"), 0);
	change(r, "cd " FIRST "; cat table >gpu_metrics; mv away ras\n"
		  "mv watts hwmon/hwmon1/power1_average; mv busy gpu_busy_percent\n"
		  "echo active >power/runtime_status\n");
	play(r, 1300);
	check_value(r, gpu(0), "hw.gpu.utilization", 0.34);
	check_value(r, gpu(0), "hw.power", 250);
	check_value(r, gpu(0), "strain.gpu.throttle", 4);
	assert_string_equal(missing_reason(r, gpu(0), "hw.errors"), "(not said)");
	recording_free(r);
}

static void test_a_gpu_that_sleeps_all_the_time(void **state)
{
	(void)state;
	struct recording *r = record_amd(
		HOST_PIDS, "gpu 1 5001 3; echo suspended >" FIRST "/power/runtime_status\n");
	play(r, 1200);
	recording_close(r);
	assert_string_equal(missing_reason(r, gpu(0), "hw.gpu.utilization"),
		"the GPU slept, or was reset, all the time");
	recording_free(r);
}

static void test_a_gpu_in_a_processor(void **state)
{
	(void)state;
	struct recording *r = record_amd(HOST_PIDS,
		"gpu 1 5001 3; table " FIRST " 2 2 655360 0; gpu 2 5002 4\n"
		"echo vddnb >sys/bus/pci/devices/0000:04:00.0/hwmon/hwmon2/in1_label\n");
	play(r, 1200);
	for (unsigned i = 0; i < 2; i++) {
		assert_non_null(strstr(attributes(r, gpu(i)), "\"integrated\":true"));
		assert_null(strstr(attributes(r, gpu(i)), "pcie_peak"));
		assert_int_equal(count_rows(r, gpu(i), "hw.power"), 0);
		assert_string_equal(missing_reason(r, gpu(i), "hw.power"),
			"the sensor is the processor's, with its CPUs");
		check_value(r, gpu(i), "hw.gpu.utilization", 0.34);
	}
	recording_free(r);
}

static void test_what_the_environment_leaves_visible(void **state)
{
	(void)state;
	char commands[256];
	snprintf(commands, sizeof(commands),
		"gpu 1 5001 3; gpu 2 5002 4; gpu 3 5003 5\n"
		"printf 'A=1\\0ROCR_VISIBLE_DEVICES=2,0\\0HIP_VISIBLE_DEVICES=1\\0' "
		">proc/%d/environ\n",
		(int)getpid());
	struct recording *r = record_amd(HOST_PIDS, commands);
	play(r, 2500);
	assert_non_null(strstr(attributes(r, gpu(0)), "\"visible\":true"));
	assert_non_null(strstr(attributes(r, gpu(1)), "\"visible\":false"));
	assert_non_null(strstr(attributes(r, gpu(2)), "\"visible\":false"));
	recording_free(r);
}

static void test_a_machine_without_amd_gpus(void **state)
{
	(void)state;
	struct recording *r = recording_of(&source_amdgpu, HOST_PIDS, NULL);
	struct error e = {0};
	assert_true(source_amdgpu.absent(r->root_fd));
	assert_int_equal(recording_open(r, NULL, &e), -ENODEV);
	assert_non_null(strstr(e.text, "no AMD GPU"));
	change(r, "mkdir -p sys/class/kfd/kfd/topology/nodes/0; echo 0 "
		  ">sys/class/kfd/kfd/topology/nodes/0/gpu_id\n");
	assert_true(source_amdgpu.absent(r->root_fd)); // a node of CPUs
	change(r, "gpu 1 5001 3\n");
	assert_false(source_amdgpu.absent(r->root_fd));
	recording_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_training_job_on_one_of_two),
		cmocka_unit_test(test_values_follow_the_files),
		cmocka_unit_test(test_what_is_not_there_is_said),
		cmocka_unit_test(test_a_table_of_another_version),
		cmocka_unit_test(test_a_table_with_residencies),
		cmocka_unit_test(test_the_second_gpu_of_a_card),
		cmocka_unit_test(test_nonsense_is_a_gap),
		cmocka_unit_test(test_odd_names_of_processes),
		cmocka_unit_test(test_a_container_does_not_know_its_processes),
		cmocka_unit_test(test_a_divided_gpu),
		cmocka_unit_test(test_a_gpu_that_goes_away),
		cmocka_unit_test(test_a_gpu_that_sleeps_is_not_woken),
		cmocka_unit_test(test_a_gpu_that_sleeps_all_the_time),
		cmocka_unit_test(test_a_gpu_in_a_processor),
		cmocka_unit_test(test_what_the_environment_leaves_visible),
		cmocka_unit_test(test_a_machine_without_amd_gpus),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
