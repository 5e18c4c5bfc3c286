// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The source of Intel's GPUs on trees of files like those of i915 and xe.

#include "recording.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

static const char maker[] =
	// A device: folder, vendor, device, class; its link: GT/s, lanes.
	"device() {\n"
	"  mkdir -p $1; echo $2 >$1/vendor; echo $3 >$1/device; echo $4 >$1/class\n"
	"}\n"
	"link() {\n"
	"  for w in current max; do echo \"$2 GT/s PCIe\" >$1/${w}_link_speed\n"
	"    echo $3 >$1/${w}_link_width; done\n"
	"}\n"
	// A GPU: folder, number, driver, device. Leaves its folder in d, its place in place.
	"gpu() {\n"
	"  d=$1; place=$(basename $d)\n"
	"  device $d 0x8086 $4 0x030000\n"
	"  mkdir -p $d/power $d/drm/card$2 $d/drm/renderD$((128 + $2)) sys/class/drm \\\n"
	"    sys/bus/pci/devices sys/bus/pci/drivers/$3\n"
	"  echo active >$d/power/runtime_status\n"
	"  ln -sfn /bus/pci/drivers/$3 $d/driver\n"
	"  ln -sfn ../../../$d/drm/card$2 sys/class/drm/card$2\n"
	"  ln -sfn ../../../../$d sys/bus/pci/devices/$place\n"
	"  echo drm 1.1.0 >sys/class/drm/version; mkdir -p sys/class/drm/card$2-DP-1\n"
	"}\n"
	// On a card with a switch of its own, in a slot of eight lanes of generation 4: number,
        // bus, driver, device.
	"card() {\n"
	"  p=sys/devices/pci0000:00/0000:00:0$2.0; u=$p/0000:1$2:00.0; l=$u/0000:2$2:01.0\n"
	"  device $p 0x8086 0x460d 0x060400; link $p 32.0 16\n"
	"  device $u 0x8086 0xe2ff 0x060400; link $u 16.0 8\n"
	"  device $l 0x8086 0xe2f0 0x060400; link $l 2.5 1\n"
	"  gpu $l/0000:0$2:00.0 $1 $3 $4; link $d 2.5 1\n"
	"}\n"
	"integrated() { gpu sys/devices/pci0000:00/0000:00:02.0 $1 $2 $3; }\n"
	// Of the last GPU: tile, number, name, idle ms, MHz.
	"xe_gt() {\n"
	"  g=$d/tile$1/gt$2; mkdir -p $g/gtidle $g/freq0/throttle\n"
	"  echo gt$2-$3 >$g/gtidle/name; echo $4 >$g/gtidle/idle_residency_ms\n"
	"  echo $5 >$g/freq0/act_freq; echo 2850 >$g/freq0/rp0_freq\n"
	"  echo 0 >$g/freq0/throttle/status; echo none >$g/freq0/throttle/reasons\n"
	"}\n"
	// Number of the card, idle ms, MHz.
	"i915_gt() {\n"
	"  g=$d/drm/card$1/gt/gt0; mkdir -p $g\n"
	"  echo $2 >$g/rc6_residency_ms; echo $3 >$g/rps_act_freq_mhz\n"
	"  echo 2400 >$g/rps_RP0_freq_mhz; echo 0 >$g/throttle_reason_status\n"
	"}\n"
	// Channel, label.
	"labelled() { for k in temp power energy; do echo $2 >$h/$k$1_label; done; }\n"
	"xe_hwmon() {\n"
	"  h=$d/hwmon/hwmon5; mkdir -p $h; echo xe >$h/name\n"
	"  labelled 1 card; labelled 2 pkg; labelled 3 vram\n"
	"  echo 190000000 >$h/power1_max; echo 710520000000 >$h/energy1_input\n"
	"  echo 977130000 >$h/energy2_input\n"
	"  echo 60000 >$h/temp2_input; echo 62000 >$h/temp3_input\n"
	"}\n"
	"i915_hwmon() {\n"
	"  for i in 1 2 3 5 6 7; do mkdir -p $d/hwmon/hwmon$i; echo nvme >$d/hwmon/hwmon$i/name\n"
	"  done; h=$d/hwmon/hwmon4; mkdir -p $h\n"
	"  echo i915 >$h/name\n"
	"  echo 190000000 >$h/power1_max; echo 88123456789 >$h/energy1_input\n"
	"  echo 61000 >$h/temp1_input\n"
	"}\n"
	"b580() {\n"
	"  card $1 $2 xe 0xe20b; xe_gt 0 0 rc 5000000 2850; xe_gt 0 1 mc 9000000 1500; xe_hwmon\n"
	"}\n"
	"a770() { card $1 $2 i915 0x56a0; i915_gt $1 1234567 2350; i915_hwmon; }\n"
	// A descriptor: process, number, node, driver, place, client; more lines.
	"open() {\n"
	"  mkdir -p proc/$1/fd proc/$1/fdinfo; ln -sfn /dev/dri/$3 proc/$1/fd/$2; "
	"f=proc/$1/fdinfo/$2\n"
	"  printf 'pos:\\t0\\nflags:\\t02100002\\ndrm-driver:\\t%s\\ndrm-client-id:\\t%s\\n'"
	" $4 $6 >$f\n"
	"  printf 'drm-pdev:\\t%s\\ndrm-client-name:\\tmy: job\\n' $5 >>$f; shift 6\n"
	"  for line; do echo \"$line\" >>$f; done\n"
	"}\n"
	// Of xe: busy, total.
	"cycles() {\n"
	"  for c in rcs:5 ccs:$1; do\n"
	"    printf 'drm-cycles-%s: %s\\ndrm-total-cycles-%s: %s\\n' ${c%:*} ${c#*:} ${c%:*} "
	"$2\n"
	"  done\n"
	"}\n";

#define B580 "sys/bus/pci/devices/0000:03:00.0"
#define GT0 B580 "/tile0/gt0"
#define GT1 B580 "/tile0/gt1"
#define A770 "sys/bus/pci/devices/0000:03:00.0"
#define A770_GT A770 "/drm/card0/gt/gt0"

static void change(const struct recording *r, const char *commands)
{
	char line[16384], own[32];
	snprintf(own, sizeof(own), "own=%d\n", (int)getpid());
	snprintf(line, sizeof(line), "cd %s\nset -e\n%s%s%s", r->folder, maker, own, commands);
	assert_int_equal(system(line), 0);
}

static struct recording *record_intel(const char *commands)
{
	struct recording *r = recording_of(&source_intelgpu, HOST_PIDS, NULL);
	struct error e = {0};
	recording_members = 1;
	r->captured = true;
	change(r, commands);
	if (recording_open(r, NULL, &e) < 0) {
		fail_msg("%s", e.text);
	}
	return r;
}

static bool has(const struct recording *r, unsigned index, const char *attribute)
{
	return strstr(attributes(r, gpu(index)), attribute);
}

static bool lacks(const struct recording *r, unsigned index, const char *metric, const char *why)
{
	return count_rows(r, gpu(index), metric) == 0 &&
	       strstr(missing_reason(r, gpu(index), metric), why);
}

static bool is_gap(const struct recording *r, unsigned index, const char *metric)
{
	return last_row(r, gpu(index), metric).value == VALUE_MISSING;
}

static void test_xe(void **state)
{
	(void)state;
	// A client under two descriptors and in a second process, and one of its own.
	struct recording *r = record_intel(
		"b580 1 3\n"
		"open $own 5 renderD129 xe 0000:03:00.0 31 \"$(cycles 1000 100000)\" "
		"'drm-resident-vram0: 5120 MiB' 'drm-resident-gtt: 192 KiB'\n"
		"cp proc/$own/fdinfo/5 proc/$own/fdinfo/6; ln -s /dev/dri/card1 "
		"proc/$own/fd/6\n"
		"open $own 8 renderD129 xe 0000:03:00.0 33 "
		"'drm-resident-vram0: 24567808'\n"
		"open 4242 5 renderD129 xe 0000:03:00.0 31; cp "
		"proc/$own/fdinfo/5 proc/4242/fdinfo\n"
		"ln -s /dev/null proc/$own/fd/0; ln -s 'socket:[1]' "
		"proc/$own/fd/1\n");
	recording_members = 2;
	play(r, 1000);
	change(r, "echo 5000072 >" GT0 "/gtidle/idle_residency_ms\n"
		  "echo 9000180 >" GT1 "/gtidle/idle_residency_ms\n"
		  "echo 710548300000 >" B580 "/hwmon/hwmon5/energy1_input\n"
		  "for f in proc/$own/fdinfo/5 proc/$own/fdinfo/6 proc/4242/fdinfo/5; do\n"
		  "sed -i 's/ccs: 1000$/ccs: 56000/; s/: 100000/: 200000/' $f\n"
		  "done\n");
	play(r, 10);
	check_value(r, gpu(0), "hw.gpu.utilization", 0.64); // of the busier GT
	check_value(r, gpu(0), "hw.power", 141.5); // of the board, not of the chip
	check_value(r, gpu(0), "hw.energy", 710548.3);
	check_value(r, gpu(0), "strain.gpu.clock.sm", 2850e6);
	check_value(r, gpu(0), "strain.gpu.throttle", 0);
	check_value(r, gpu(0), "hw.temperature", 60);
	check_value(r, gpu(0), "strain.gpu.memory.temperature", 62);
	check_value(r, gpu(0), "strain.gpu.power.limit", 190);
	check_value(r, gpu(0), "strain.gpu.pcie.generation", 4); // of the slot
	check_value(r, gpu(0), "strain.gpu.pcie.width", 8);
	check_value(r, gpu(0), "strain.gpu.job.processes", 2);
	check_value(r, gpu(0), "strain.gpu.job.utilization", 0.55);
	check_value(r, gpu(0), "strain.gpu.job.memory.usage", 5368709120.0 + 24567808);
	check_value(r, OWN_ENTITY, "strain.gpu.memory.usage", 5368709120.0 + 24567808);
	check_value(r, OWN_ENTITY, "strain.gpu.utilization", 0.55);
	check_value(r, OTHER_ENTITY, "strain.gpu.memory.usage", 5368709120.0);
	assert_true(has(r, 0, "\"model\":\"Intel Arc B580\""));
	assert_true(has(r, 0, "\"uuid\":\"pci-0000:03:00.0\""));
	assert_true(has(r, 0, "\"clock_sm_max_hz\":2850000000"));
	assert_true(has(r, 0, "\"utilization_method\":\"idle residency (upper bound)\""));
	assert_true(has(r, 0, "\"power_domain\":\"board\""));
	assert_true(lacks(r, 0, "hw.gpu.memory.usage", "only that of each process"));
	assert_true(lacks(r, 0, "hw.gpu.memory.limit", "only that of each process"));
	assert_true(lacks(r, 0, "strain.gpu.others.processes", "only the job's"));
	recording_free(r);
}

static void test_i915(void **state)
{
	(void)state;
	struct recording *r = record_intel(
		"a770 0 3; open $own 5 renderD128 i915 0000:03:00.0 7 'drm-engine-render: 5 "
		"ns' "
		"'drm-engine-compute: 9288864723 ns' 'drm-engine-video: 0 ns' "
		"'drm-engine-capacity-video: 2' 'drm-resident-local0: 6144 MiB' "
		"'drm-resident-system0: 192 KiB' 'drm-resident-stolen-local0: 64 MiB'\n");
	play(r, 1000);
	change(r, "echo 1234593 >" A770_GT "/rc6_residency_ms; echo 2400 >" A770_GT
		  "/rps_act_freq_mhz\n"
		  "echo 88160906789 >" A770 "/hwmon/hwmon4/energy1_input\n"
		  "sed -i 's/9288864723/9788864723/; s/video: 0/video: 900000000/' "
		  "proc/$own/fdinfo/5\n");
	play(r, 10);
	check_value(r, gpu(0), "hw.gpu.utilization", 0.87);
	check_value(r, gpu(0), "hw.power", 187.25);
	check_value(r, gpu(0), "strain.gpu.clock.sm", 2400e6);
	check_value(r, gpu(0), "hw.temperature", 61);
	check_value(r, gpu(0), "strain.gpu.job.utilization", 0.5); // and video 0.9 / 2
	check_value(r, gpu(0), "strain.gpu.job.memory.usage", 6442450944.0);
	assert_true(has(r, 0, "\"power_domain\":\"chip\""));
	assert_true(lacks(r, 0, "strain.gpu.memory.temperature", "does not have it"));
	recording_free(r);
}

// Linux 6.1: no sensors, no sizes; an A380 without times of engines. Ids are of each device.
static void test_an_old_i915(void **state)
{
	(void)state;
	struct recording *r = record_intel(
		"integrated 0 i915 0x3e92; i915_gt 0 1000 1100; rm $g/throttle*\n"
		"card 1 3 i915 0x56a5; i915_gt 1 2000 2400\n"
		"open $own 9 renderD128 i915 0000:00:02.0 7 'drm-engine-render: 5 ns'\n"
		"open $own 10 renderD129 i915 0000:03:00.0 7\n");
	play(r, 1000);
	change(r, "sed -i 's/: 5 ns/: 450000005 ns/' proc/$own/fdinfo/9\n");
	play(r, 2500);
	check_value(r, OWN_ENTITY, "strain.gpu.utilization", 0);
	check_value(r, gpu(0), "strain.gpu.job.processes", 1);
	check_value(r, gpu(1), "strain.gpu.job.processes", 1); // nothing says that it does not
	assert_int_equal(count_rows(r, gpu(0), "strain.gpu.job.utilization"), 3);
	assert_true(is_gap(r, 1, "strain.gpu.job.utilization"));
	assert_true(is_gap(r, 1, "strain.gpu.job.memory.usage"));
	assert_true(lacks(r, 1, "hw.power", "i915: since Linux 6.2"));
	assert_true(lacks(r, 0, "hw.power", "integrated"));
	assert_true(lacks(r, 0, "strain.gpu.throttle", "throttle_reason_status"));
	assert_true(has(r, 0, "\"integrated\":true"));
	assert_false(has(r, 1, "\"integrated\":true"));
	recording_close(r);
	assert_true(lacks(r, 1, "strain.gpu.job.utilization", "does not report it"));
	recording_free(r);
}

// Linux 5.10: one count of the card, and nothing of its clients.
static void test_an_ancient_i915(void **state)
{
	(void)state;
	struct recording *r = record_intel(
		"integrated 0 i915 0x3e92; c=$d/drm/card0; mkdir $c/power\n"
		"echo 123456 >$c/power/rc6_residency_ms; echo 1150 >$c/gt_act_freq_mhz\n"
		"open $own 9 renderD128 i915 0 0; echo 'pos: 0' >proc/$own/fdinfo/9\n");
	play(r, 200);
	change(r, "echo 123500 >sys/class/drm/card0/power/rc6_residency_ms\n");
	play(r, 1010);
	assert_int_equal(count_rows(r, gpu(0), "hw.gpu.utilization"), 6);
	check_value(r, gpu(0), "strain.gpu.clock.sm", 1150e6);
	check_value(r, gpu(0), "strain.gpu.job.processes", 1);
	assert_true(is_gap(r, 0, "strain.gpu.job.utilization"));
	recording_free(r);
}

static void test_a_laptop(void **state)
{
	(void)state;
	struct recording *r = record_intel(
		"a770 2 3; echo 0 >$h/power1_max; integrated 1 i915 0x46a6; i915_gt 1 7000 500\n"
		"open $own 9 renderD129 i915 0000:00:02.0 7 'drm-resident-system0: 200 MiB' "
		"'drm-resident-stolen-system0: 1 MiB'\n"
		"open $own 10 renderD130 i915 0000:03:00.0 8 'drm-resident-local0: 3072 MiB' "
		"'drm-resident-system0: 10 MiB'\n");
	play(r, 1010);
	assert_true(has(r, 0, "\"model\":\"Intel Iris Xe Graphics\"")); // by place
	assert_true(has(r, 0, "\"integrated\":true"));
	assert_false(has(r, 0, "pcie_peak"));
	check_value(r, gpu(0), "strain.gpu.job.memory.usage", 200.0 * (1 << 20));
	check_value(r, gpu(1), "strain.gpu.job.memory.usage", 3072.0 * (1 << 20));
	check_value(r, OWN_ENTITY, "strain.gpu.memory.usage", 3272.0 * (1 << 20));
	assert_true(lacks(r, 1, "strain.gpu.power.limit", "the limit is off"));
	assert_true(lacks(r, 0, "hw.gpu.memory.usage", "integrated"));
	assert_true(lacks(r, 0, "strain.gpu.pcie.width", "integrated"));
	recording_free(r);
}

// Two tiles are one GPU; the chip's energy is the second channel, and there is no first.
static void test_tiles(void **state)
{
	(void)state;
	struct recording *r = record_intel(
		"gpu sys/devices/pci0000:00/0000:00:06.0/0000:2a:00.0 1 xe 0x0bd5; link $d 32.0 "
		"16\n"
		"xe_gt 0 0 rc 3000000 0; xe_gt 1 1 rc 3100000 1600\n"
		"h=$d/hwmon/hwmon7; mkdir -p $h; echo xe >$h/name; echo pkg >$h/energy2_label\n"
		"echo 5000000000000 >$h/energy2_input\n"
		"open $own 11 renderD129 xe 0000:2a:00.0 101 'drm-cycles-ccs: 0' "
		"'drm-total-cycles-ccs: 100' 'drm-engine-capacity-ccs: 2' "
		"'drm-resident-vram0: 1 MiB' 'drm-resident-vram1: 9216 MiB'\n");
	play(r, 1000);
	change(r, "cd sys/bus/pci/devices/0000:2a:00.0\n"
		  "echo 3000200 >tile0/gt0/gtidle/idle_residency_ms\n"
		  "echo 3100004 >tile1/gt1/gtidle/idle_residency_ms\n"
		  "echo 5000082400000 >hwmon/hwmon7/energy2_input\n"
		  "cd $OLDPWD; sed -i 's/drm-cycles-ccs: 0/drm-cycles-ccs: 98/; "
		  "s/: 100$/: 200/' proc/$own/fdinfo/11\n");
	play(r, 10);
	check_value(r, gpu(0), "hw.gpu.utilization", 0.98);
	check_value(r, gpu(0), "hw.power", 412);
	check_value(r, gpu(0), "strain.gpu.clock.sm", 1600e6);
	check_value(r, gpu(0), "strain.gpu.pcie.generation", 5); // no switch: its own
	check_value(r, gpu(0), "strain.gpu.job.utilization", 0.49);
	check_value(r, gpu(0), "strain.gpu.job.memory.usage", 9217.0 * (1 << 20));
	assert_true(lacks(r, 0, "hw.temperature", "does not have it"));
	assert_true(has(r, 0, "\"power_domain\":\"chip\""));
	recording_free(r);
}

static void test_a_gpu_that_sleeps_is_not_woken(void **state)
{
	(void)state;
	struct recording *r = record_intel(
		"b580 1 3; echo suspended >$d/power/runtime_status\n"
		"open $own 9 renderD129 xe 0000:03:00.0 4 'drm-resident-vram0: 512 MiB'\n"
		// Read while it sleeps, these would be judged for ever.
		"mv $d/tile0 $d/away; mv $h/temp2_input $h/heat\n");
	play(r, 1210);
	check_value(r, gpu(0), "hw.gpu.utilization", 0);
	assert_int_equal(count_rows(r, gpu(0), "hw.power"), 0);
	assert_int_equal(count_rows(r, gpu(0), "strain.gpu.clock.sm"), 0);
	assert_int_equal(count_rows(r, gpu(0), "strain.gpu.pcie.width"), 0);
	assert_true(is_gap(r, 0, "strain.gpu.job.memory.usage")); // reading fdinfo would wake it
	assert_true(is_gap(r, 0, "strain.gpu.job.processes"));
	check_value(r, gpu(0), "strain.gpu.job.utilization", 0);
	assert_int_equal(count_rows(r, OWN_ENTITY, "strain.gpu.memory.usage"), 0);
	change(r, "cd " B580 "; mv away tile0; mv hwmon/hwmon5/heat hwmon/hwmon5/temp2_input\n"
		  "echo active >power/runtime_status\n");
	play(r, 1400);
	check_value(r, gpu(0), "hw.gpu.utilization", 1); // its idle time stands still
	check_value(r, gpu(0), "hw.temperature", 60);
	check_value(r, gpu(0), "strain.gpu.job.memory.usage", 512.0 * (1 << 20));
	// Falling asleep: of the time since the last reading nothing is known.
	change(r, "echo suspended >" B580 "/power/runtime_status\n");
	play(r, 200);
	assert_true(is_gap(r, 0, "hw.gpu.utilization"));
	play(r, 200);
	check_value(r, gpu(0), "hw.gpu.utilization", 0);
	change(r, ": >" B580 "/power/runtime_status\n");
	size_t rows = count_rows(r, gpu(0), "strain.gpu.clock.sm");
	play(r, 200);
	assert_true(is_gap(r, 0, "hw.gpu.utilization")); // it may sleep
	assert_int_equal(count_rows(r, gpu(0), "strain.gpu.clock.sm"), rows);
	recording_free(r);
}

static void test_a_gpu_that_sleeps_all_the_time(void **state)
{
	(void)state;
	struct recording *r = record_intel("b580 1 3; echo suspended >$d/power/runtime_status\n"
					   "open $own 9 renderD129 xe 0000:03:00.0 4\n");
	play(r, 3500);
	check_value(r, gpu(0), "hw.gpu.utilization", 0);
	recording_close(r);
	assert_true(lacks(r, 0, "hw.power", "slept all the time"));
	assert_true(lacks(r, 0, "strain.gpu.job.processes", "would wake it"));
	recording_free(r);
}

// The longest time without a row.
static int64_t longest_pause_us(const struct recording *r, const char *metric)
{
	int64_t longest = 0, before = 0;
	for (size_t i = 0; i < r->n_rows; i++) {
		if (r->rows[i].entity == gpu(0) && strcmp(r->rows[i].metric->name, metric) == 0) {
			int64_t pause = r->rows[i].t_us - before;
			longest = pause > longest ? pause : longest;
			before = r->rows[i].t_us;
		}
	}
	return longest;
}

static void advance_idle(struct recording *r, const char *file, unsigned ms)
{
	char commands[160];
	static unsigned idle = 5000000;
	for (unsigned t = 0; t < ms; t += 200) {
		snprintf(commands, sizeof(commands), "echo %u >%s\n", idle += 200, file);
		change(r, commands);
		play(r, 200);
	}
}

// Readings keep a card awake: an idle one that the job does not use has pauses longer than the
// driver waits before it lets the card sleep.
static void test_an_idle_gpu_may_fall_asleep(void **state)
{
	(void)state;
	struct recording *r = record_intel(
		"b580 1 3; echo 2000 >$d/power/autosuspend_delay_ms; rm -r $d/tile0/gt1\n");
	static const char *const woken[] = {
		"hw.gpu.utilization", "strain.gpu.clock.sm", "hw.energy", "hw.temperature"};
	advance_idle(r, GT0 "/gtidle/idle_residency_ms", 12000);
	for (size_t i = 0; i < ARRAY_LENGTH(woken); i++) {
		assert_in_range(longest_pause_us(r, woken[i]), 3000000, 6000000);
		assert_in_range(count_rows(r, gpu(0), woken[i]), 2, 24);
	}
	// A reading after a pause is of all of it.
	check_value(r, gpu(0), "hw.gpu.utilization", 0);
	recording_free(r);
	// In use, it has none.
	r = record_intel("b580 1 3; echo 2000 >$d/power/autosuspend_delay_ms; rm -r $d/tile0/gt1\n"
			 "open $own 9 renderD129 xe 0000:03:00.0 4\n");
	advance_idle(r, GT0 "/gtidle/idle_residency_ms", 6000);
	assert_int_equal(longest_pause_us(r, "hw.gpu.utilization"), 200000);
	recording_free(r);
}

// Nor if another program keeps it busy.
static void test_a_busy_gpu_is_read_at_every_turn(void **state)
{
	(void)state;
	struct recording *r = record_intel("b580 1 3\n");
	play(r, 6000);
	assert_int_equal(longest_pause_us(r, "hw.gpu.utilization"), 200000);
	check_value(r, gpu(0), "hw.gpu.utilization", 1);
	check_value(r, gpu(0), "strain.gpu.job.processes", 0);
	check_value(r, gpu(0), "strain.gpu.job.utilization", 0);
	assert_int_equal(count_rows(r, OWN_ENTITY, "strain.gpu.memory.usage"), 0);
	recording_free(r);
}

// A virtual function has its clients' memory, and nothing else.
static void test_a_virtual_function(void **state)
{
	(void)state;
	struct recording *r = record_intel(
		"gpu sys/devices/pci0000:00/0000:06:00.0 0 xe 0xe20b; link $d 2.5 1\n"
		"mkdir -p $d/tile0/gt0 $d/tile0/gt1\n"
		"open $own 4 renderD128 xe 0000:06:00.0 55 'drm-resident-vram0: 1024 MiB'\n");
	play(r, 1010);
	assert_true(lacks(r, 0, "hw.gpu.utilization", "idle_residency_ms"));
	assert_true(lacks(r, 0, "strain.gpu.clock.sm", "act_freq"));
	assert_true(lacks(r, 0, "strain.gpu.throttle", "throttle"));
	assert_true(lacks(r, 0, "hw.power", "virtual functions"));
	assert_true(lacks(r, 0, "strain.gpu.pcie.width", "slot's link"));
	check_value(r, gpu(0), "strain.gpu.job.memory.usage", 1024.0 * (1 << 20));
	check_value(r, gpu(0), "strain.gpu.job.processes", 1);
	assert_true(is_gap(r, 0, "strain.gpu.job.utilization"));
	recording_free(r);
}

static void test_counters_that_wrap_or_fall(void **state)
{
	(void)state;
	struct recording *r = record_intel(
		"a770 0 3; echo 4294967200 >$g/rc6_residency_ms\n"
		"b580 1 4; echo 4294967200 >$d/tile0/gt1/gtidle/idle_residency_ms\n"
		"open $own 5 renderD128 i915 0000:03:00.0 7 'drm-engine-compute: 1000000000 "
		"ns'\n"
		"open $own 6 renderD129 xe 0000:04:00.0 8 \"$(cycles 1000 700000)\" \n");
	play(r, 1000);
	change(r, "echo 24 >" A770_GT "/rc6_residency_ms\n" // 120 ms on
		  "cd sys/bus/pci/devices/0000:04:00.0; echo 9000000 >hwmon/hwmon5/energy1_input\n"
		  "echo 120 >tile0/gt0/gtidle/idle_residency_ms; cd $OLDPWD\n"
		  "sed -i 's/: 1000000000/: 900000000/' proc/$own/fdinfo/5\n"
		  "sed -i 's/: 700000/: 100/; s/: 1000$/: 51000/' "
		  "proc/$own/fdinfo/6\n");
	play(r, 200);
	check_value(r, gpu(0), "hw.gpu.utilization", 0.4);
	check_value(r, gpu(0), "strain.gpu.job.utilization", 0); // it went back
	assert_true(is_gap(r, 1, "hw.gpu.utilization"));
	assert_true(is_gap(r, 1, "hw.power"));
	check_value(r, gpu(1), "hw.energy", 9);
	assert_true(is_gap(r, 1, "strain.gpu.job.utilization"));
	change(r, "sed -i 's/: 900000000/: 1200000000/' proc/$own/fdinfo/5\n"
		  "cd sys/bus/pci/devices/0000:04:00.0; echo 29000000 >hwmon/hwmon5/energy1_input\n"
		  "cd $OLDPWD; sed -i 's/: 100$/: 200/; s/: 51000/: 51030/' "
		  "proc/$own/fdinfo/6\n");
	play(r, 1010);
	check_value(r, gpu(0), "strain.gpu.job.utilization", 0.2); // above where it was
	check_value(r, gpu(1), "strain.gpu.job.utilization", 0.3);
	recording_free(r);
}

// The firmware's gaps are zeros, and a longer pause loses turns of the counter.
static void test_energy(void **state)
{
	(void)state;
	struct recording *r = record_intel("b580 1 3\n");
	play(r, 400);
	check_value(r, gpu(0), "hw.power", 0);
	change(r, "echo 0 >" B580 "/hwmon/hwmon5/energy1_input\n");
	play(r, 800);
	assert_true(is_gap(r, 0, "hw.power"));
	assert_true(is_gap(r, 0, "hw.energy"));
	change(r, "echo 710620000000 >" B580 "/hwmon/hwmon5/energy1_input\n");
	play(r, 200);
	assert_true(is_gap(r, 0, "hw.power"));
	change(r, "echo 710640000000 >" B580 "/hwmon/hwmon5/energy1_input\n");
	play(r, 200);
	check_value(r, gpu(0), "hw.power", 100);
	r->now_ns += 300 * NS_PER_S;
	change(r, "echo 740640000000 >" B580 "/hwmon/hwmon5/energy1_input\n");
	play(r, 200);
	assert_true(is_gap(r, 0, "hw.power"));
	change(r, "echo 760640000000 >" B580 "/hwmon/hwmon5/energy1_input\n"); // 100 kW
	play(r, 200);
	assert_true(is_gap(r, 0, "hw.power"));
	recording_free(r);
}

static void test_nonsense_is_a_gap(void **state)
{
	(void)state;
	static const char *const values[] = {"-1", "oops", "", "34 35", "1500 MHz",
		"18446744073709551615", "99999999999999999999999",
		"$(head -c 5000 /dev/zero | tr '\\0' 7)"};
	struct recording *r = record_intel("b580 1 3\n");
	for (size_t i = 0; i < ARRAY_LENGTH(values); i++) {
		char commands[512];
		snprintf(commands, sizeof(commands),
			"v=\"%s\"; cd " B580 "; for f in tile0/gt0/gtidle/idle_residency_ms "
			"tile0/gt0/freq0/act_freq hwmon/hwmon5/temp2_input hwmon/hwmon5/power1_max "
			"hwmon/hwmon5/energy1_input ../../current_link_width; do echo $v >$f; "
			"done\n",
			values[i]);
		change(r, commands);
		play(r, 4800); // an idle card is read again after a pause
		assert_true(is_gap(r, 0, "hw.gpu.utilization"));
		assert_true(is_gap(r, 0, "strain.gpu.clock.sm"));
		assert_true(is_gap(r, 0, "hw.temperature"));
		assert_true(is_gap(r, 0, "strain.gpu.power.limit"));
		assert_true(is_gap(r, 0, "hw.energy"));
		assert_true(is_gap(r, 0, "strain.gpu.pcie.width"));
	}
	change(r, "echo 400 >" GT0 "/freq0/act_freq; printf 61000 >" B580
		  "/hwmon/hwmon5/temp2_input\n");
	play(r, 4800);
	check_value(r, gpu(0), "strain.gpu.clock.sm", 400e6);
	check_value(r, gpu(0), "hw.temperature", 61);
	recording_free(r);
}

static void test_odd_clients(void **state)
{
	(void)state;
	struct recording *r = record_intel(
		"b580 1 3; p=0000:03:00.0; n=\"renderD129 xe $p\"; c=\"$(cycles 0 100)\"\n"
		"m='drm-resident-vram0: 1 MiB'\n"
		"open $own 5 $n 31 \"$c\" 'drm-resident-vram0: 2048 MiB'\n"
		"open $own 6 $n 32 \"$(cycles -7 100)\" \"$m\"\n"
		"open $own 7 $n '' \"$c\" \"$m\"\n"
		"open $own 8 renderD129 xe 0000:ff:1f.7 33 \"$m\"\n"
		"open $own 9 renderD129 amdgpu $p 34 \"$m\"\n"
		"open $own 10 $n 35 'drm-resident-vram0: 5000000 GiB'\n"
		"open $own 11 $n 36 'drm-resident-vram0: 0' \"$c\" "
		"'drm-engine-capacity-ccs: 0'\n"
		"open $own 12 $n 37 'drm-resident-vram0: 9223372036854775807 MiB'\n"
		"open $own 13 $n 38 \"$m\"\n"
		"head -c 20000 /dev/zero | tr '\\0' 9 >>$f\n"
		"open $own 14 $n 39; rm $f\n"
		"open $own 15 renderD200 xe $p 40 \"$m\"\n"
		"open $own 16 $n -5 \"$m\"\n"
		"ln -s /dev/dri/renderD129 proc/$own/fd/x; printf '\\0\\n::drm-\\n' >>$f\n");
	play(r, 1000);
	change(r, "for i in 5 11; do sed -i 's/cycles-ccs: 0/cycles-ccs: 50/; "
		  "s/: 100$/: 200/' proc/$own/fdinfo/$i; done\n");
	play(r, 10);
	check_value(r, gpu(0), "strain.gpu.job.utilization", 0.5);
	check_value(r, gpu(0), "strain.gpu.job.memory.usage", 2049.0 * (1 << 20));
	recording_free(r);
}

static void test_files_that_cannot_be_read(void **state)
{
	(void)state;
	struct recording *r = record_intel(
		"b580 1 3\n"
		"for f in $d/tile0/gt0/gtidle/idle_residency_ms $d/tile0/gt0/freq0/act_freq "
		"$h/temp2_input $h/energy1_input; do rm $f; mkdir $f; done\n"
		"rm $h/power1_max; ln -s nowhere $h/power1_max; rm -r $d/tile0/gt1/freq0\n");
	play(r, 1010);
	// The media GT alone is not the card, and the chip is not the board.
	assert_true(lacks(r, 0, "hw.gpu.utilization", "Is a directory"));
	assert_true(lacks(r, 0, "strain.gpu.clock.sm", "Is a directory"));
	assert_true(lacks(r, 0, "hw.temperature", "Is a directory"));
	assert_true(lacks(r, 0, "hw.energy", "Is a directory"));
	assert_true(lacks(r, 0, "hw.power", "Is a directory"));
	assert_true(lacks(r, 0, "strain.gpu.power.limit", "does not have it"));
	check_value(r, gpu(0), "strain.gpu.memory.temperature", 62);
	check_value(r, gpu(0), "strain.gpu.throttle", 0);
	recording_free(r);
}

static void test_other_cards(void **state)
{
	(void)state;
	struct recording *r = record_intel(
		"card 0 5 xe 0x73bf; echo 0x1002 >$d/vendor; card -1 7 xe 0xe20b\n"
		"card 2 6 vfio-pci 0x56a0; b580 1 3; p=0000:05:00.0\n"
		"rm $d/tile0/gt1/gtidle/idle_residency_ms\n"
		"ln -s card8 sys/class/drm/card8; ln -s ../gone/drm/card7 sys/class/drm/card7\n"
		"echo file >sys/class/drm/card00; ln -s ../../$d/drm/card1 sys/class/drm/card1x\n"
		"open $own 5 renderD128 amdgpu $p 55 'drm-resident-vram0: 1 MiB'\n"
		"open $own 6 renderD129 xe 0000:03:00.0 55 'drm-resident-vram0: 2048 MiB'\n");
	play(r, 1010);
	assert_true(has(r, 0, "0000:03:00.0"));
	assert_string_equal(attributes(r, gpu(1)), "");
	check_value(r, gpu(0), "hw.gpu.utilization", 1); // also without the media GT's
	check_value(r, gpu(0), "strain.gpu.job.memory.usage", 2048.0 * (1 << 20));
	recording_free(r);
}

static void test_throttling(void **state)
{
	(void)state;
	struct recording *r = record_intel(
		"a770 0 3; for n in pl1 pl2 thermal vr_tdc; do echo 0 >$g/throttle_reason_$n; "
		"done\n"
		"for n in status pl1 thermal; do echo 1 >$g/throttle_reason_$n; done\n"
		"b580 1 4; t=$d/tile0/gt0/freq0/throttle; echo 'pl2 vr_thermalert' >$t/reasons\n"
		"echo 'prochot' >$d/tile0/gt1/freq0/throttle/reasons\n"
		"b580 2 5; t=$d/tile0/gt0/freq0/throttle; rm $t/reasons; echo 1 >$t/status\n"
		"echo 1 >$t/reason_pwrbrk; echo 0 >$d/tile0/gt0/freq0/act_freq\n");
	play(r, 300);
	check_value(r, gpu(0), "strain.gpu.throttle", 4 | 32);
	check_value(r, gpu(1), "strain.gpu.throttle", 4 | 64);
	check_value(r, gpu(2), "strain.gpu.throttle", 128 | 1); // and idle
	change(r, "echo 'pl1 some_new_reason' "
		  ">sys/bus/pci/devices/0000:04:00.0/tile0/gt0/freq0/throttle/reasons\n"
		  "rm sys/bus/pci/devices/0000:05:00.0/tile0/gt0/freq0/throttle/reason_*\n");
	play(r, 200);
	check_value(r, gpu(1), "strain.gpu.throttle", 4 | 8);
	check_value(r, gpu(2), "strain.gpu.throttle", 8 | 1);
	recording_free(r);
}

static void test_a_container_with_one_of_two(void **state)
{
	(void)state;
	struct recording *r = record_intel(
		"b580 0 3; b580 1 4; mkdir -p dev/dri; : >dev/dri/renderD129\n");
	play(r, 300);
	assert_true(has(r, 0, "\"visible\":false"));
	assert_true(has(r, 1, "\"visible\":true"));
	recording_free(r);
}

static void test_a_gpu_that_goes_away(void **state)
{
	(void)state;
	struct recording *r = record_intel("b580 0 3; b580 1 4\n");
	play(r, 1200);
	change(r, "rm " B580 "\n");
	play(r, 2500);
	assert_non_null(strstr(event(r, "gpu_lost")->text, "GPU 0 (Intel Arc B580, pci-0000:03"));
	size_t rows = count_rows(r, gpu(0), "strain.gpu.clock.sm"),
	       others = count_rows(r, gpu(1), "strain.gpu.clock.sm");
	play(r, 1000);
	assert_int_equal(count_rows(r, gpu(0), "strain.gpu.clock.sm"), rows);
	assert_true(count_rows(r, gpu(1), "strain.gpu.clock.sm") > others);
	recording_free(r);
}

static void test_a_client_that_closes(void **state)
{
	(void)state;
	struct recording *r = record_intel(
		"b580 1 3\n"
		"open $own 6 renderD129 xe 0000:03:00.0 55 'drm-resident-vram0: 2048 MiB'\n");
	play(r, 7100);
	check_value(r, OWN_ENTITY, "strain.gpu.memory.usage", 2048.0 * (1 << 20));
	change(r, "rm proc/$own/fd/6 proc/$own/fdinfo/6\n");
	play(r, 2100);
	check_value(r, gpu(0), "strain.gpu.job.memory.usage", 0);
	check_value(r, gpu(0), "strain.gpu.job.processes", 0);
	check_value(r, OWN_ENTITY, "strain.gpu.memory.usage", 0);
	recording_free(r);
}

static void test_a_machine_without_intel_gpus(void **state)
{
	(void)state;
	struct recording *r = recording_of(&source_intelgpu, HOST_PIDS, NULL);
	struct error e = {0};
	assert_true(source_intelgpu.absent(r->root_fd));
	assert_int_equal(recording_open(r, NULL, &e), -ENODEV);
	assert_non_null(strstr(e.text, "no Intel GPU"));
	change(r, "card 0 5 vfio-pci 0x56a0\n");
	assert_true(source_intelgpu.absent(r->root_fd));
	change(r, "card 1 6 i915 0xffff\n");
	assert_false(source_intelgpu.absent(r->root_fd));
	recording_free(r);
	r = record_intel("card 0 3 i915 0xffff\n");
	collect(r);
	assert_true(has(r, 0, "\"model\":\"Intel GPU 8086:ffff\""));
	recording_free(r);
}

// A live machine has a clock: readings at once, as of `doctor`, are not of the time that they say,
// and wait for a rate.
static void test_readings_without_time_between(void **state)
{
	(void)state;
	struct recording *r = record_intel("b580 1 3\n");
	source_intelgpu.close(r->state);
	r->captured = false;
	struct source_context context = {.root_fd = r->root_fd, .host = 1, .start_ns = r->start_ns};
	struct error e = {0};
	assert_int_equal(source_intelgpu.open(&context, r->sink, &r->state, &e), 0);
	uint64_t before_ns = clock_monotonic_ns();
	play(r, 1000);
	assert_true(clock_monotonic_ns() - before_ns >= 4 * 50 * NS_PER_MS);
	recording_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_xe),
		cmocka_unit_test(test_i915),
		cmocka_unit_test(test_an_old_i915),
		cmocka_unit_test(test_an_ancient_i915),
		cmocka_unit_test(test_a_laptop),
		cmocka_unit_test(test_tiles),
		cmocka_unit_test(test_a_gpu_that_sleeps_is_not_woken),
		cmocka_unit_test(test_a_gpu_that_sleeps_all_the_time),
		cmocka_unit_test(test_an_idle_gpu_may_fall_asleep),
		cmocka_unit_test(test_a_busy_gpu_is_read_at_every_turn),
		cmocka_unit_test(test_a_virtual_function),
		cmocka_unit_test(test_counters_that_wrap_or_fall),
		cmocka_unit_test(test_energy),
		cmocka_unit_test(test_nonsense_is_a_gap),
		cmocka_unit_test(test_odd_clients),
		cmocka_unit_test(test_files_that_cannot_be_read),
		cmocka_unit_test(test_other_cards),
		cmocka_unit_test(test_throttling),
		cmocka_unit_test(test_a_container_with_one_of_two),
		cmocka_unit_test(test_a_gpu_that_goes_away),
		cmocka_unit_test(test_a_client_that_closes),
		cmocka_unit_test(test_a_machine_without_intel_gpus),
		cmocka_unit_test(test_readings_without_time_between),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
