#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# strain run on a machine with GPUs: a fake NVML (tests/fake) plays them.

bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR"
	script=$BATS_TEST_TMPDIR/script
	cp "$SOURCE_ROOT/tests/fake/training.script" "$script"
	unset CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER
}

# The fake is found as the driver's library would be.
record() {
	LD_LIBRARY_PATH=$BUILD_ROOT/tests/fake/${age:-full} STRAIN_FAKE_NVML=$script \
		"$STRAIN" run -o run.strain -- "$@"
}

# Comma-separated values without the header.
query() {
	"$STRAIN" sql run.strain "$1" --csv | tail -n +2
}

# Values of a metric of the GPU with an index.
values() {
	query "select $1 from samples where value is not null and metric = '$2' and entity =
		(select id from entity where kind = 'gpu' and key like 'GPU-0000fa4' || '$3' || '%')"
}

@test "a job on a GPU: values, attributes, the other GPU" {
	record sleep 2
	[ "$(values 'max(value)' hw.gpu.utilization e)" = 0.34 ]
	[ "$(values 'max(value)' hw.gpu.utilization f)" = 0 ]
	[ "$(values 'max(value)' hw.power e)" = 320 ]
	[ "$(values 'max(value) > 0' strain.gpu.pcie.host_to_device e)" = 1 ]
	query "select attributes from entity where kind = 'gpu'" | grep -q 'memory_peak_bytes_per_s'
	"$STRAIN" show run.strain | grep -q 'GPU 0 Fake H100'
}

@test "a reading that costs CPU time is made less often, and slows down no other" {
	cat >>"$script" <<-'EOF'
		gpu * burn.nvmlDeviceGetPowerUsage 20
		gpu * burn.nvmlDeviceGetFieldValues 20
	EOF
	# A tenth of the budget: 40 ms of two GPUs every 2 s.
	LD_LIBRARY_PATH=$BUILD_ROOT/tests/fake/full STRAIN_FAKE_NVML=$script "$STRAIN" run -o run.strain --overhead 20% -- sleep 4
	[ "$(values 'count(*) between 1 and 5' hw.power e)" = 1 ]
	[ "$(values 'count(*) > 15' hw.gpu.memory.usage e)" = 1 ]
	[ "$(query "select count(*) from event where kind = 'interval'")" = 0 ]
	# What the driver kept of the last seconds is read at the end.
	[ "$(values 'max(t) > 3' hw.energy e)" = 1 ]
}

@test "a process of the job holds GPU memory" {
	[ "$(readlink /proc/self/ns/pid)" = 'pid:[4026531836]' ] ||
		skip 'in a pid namespace of its own, where a process must hold /dev/nvidia*'
	cp "$(command -v sleep)" strain-gpu-job
	echo 'gpu 0 processes @strain-gpu-job:2000000000:31' >>"$script"
	record ./strain-gpu-job 3
	query "select max(value) from samples where metric = 'strain.gpu.memory.usage'" |
		grep -qx 2000000000
	[ "$(values 'max(value)' strain.gpu.job.memory.usage e)" = 2000000000 ]
}

@test "a GPU that falls off the bus is an event, and the job does not notice" {
	echo 'at 500 gpu 1 lost 15' >>"$script"
	run -3 record sh -c 'sleep 2; exit 3'
	query "select text from event where kind = 'gpu_lost'" | grep -q 'GPU 1 '
	[ "$(query "select count(*) > 0 from missing join entity on entity.id = missing.entity where kind = 'gpu'" | tail -n 1)" = 1 ]
	[ "$(values 'count(*) > 2' hw.power e)" = 1 ]
}

@test "a driver that hangs holds up neither the job nor the end" {
	echo 'at 300 gpu 0 hang.nvmlDeviceGetClockInfo 1' >>"$script"
	run -4 record sh -c 'sleep 1; exit 4'
	query "select text from event" | grep -qi driver
	# What it measured is missing since then.
	query "select reason from missing where from_ns > 2e8" | grep -qx 'the driver did not answer'
	# Energy is no sum of the readings before that.
	[ "$("$STRAIN" show --json run.strain | python3 -c 'import json, sys
print([gpu["energy_j"] for gpu in json.load(sys.stdin)["gpus"]])')" = "[None, None]" ]
}

@test "a driver's library that crashes ends neither the job nor the recording" {
	echo 'at 300 gpu 0 crash.nvmlDeviceGetClockInfo 1' >>"$script"
	run -4 record sh -c 'sleep 1.5; exit 4'
	query "select reason from missing where from_ns > 2e8" | grep -qx "the driver's library crashed (SIGSEGV)"
	[ "$(query "select max(t) > 1 from samples where metric = 'process.cpu.time'" | tail -n 1)" = 1 ]
	sed -i '$ d' "$script"
	echo 'gpu 0 crash.nvmlDeviceGetMaxClockInfo 1' >>"$script"
	rm run.strain
	record sleep 0.5
	query "select text from event where kind = 'source_dropped'" | grep -qx "the driver's library crashed (SIGSEGV)"
}

@test "a reading that fails later leaves its reason" {
	echo 'at 1500 gpu 0 result.nvmlDeviceGetClockInfo 10' >>"$script"
	record sleep 4
	[ "$(values 'count(*) > 0' strain.gpu.clock.sm e)" = 1 ]
	query "select reason from missing where from_ns > 1e9" | grep -qx 'the driver timed out'
}

@test "readings that are not due are no gap" {
	echo 'gpu * burn.nvmlDeviceGetProcessUtilization 2' >>"$script"
	record sleep 3
	[ "$(query "select count(*) from missing where reason like 'there were too few readings%'" | tail -n 1)" = 0 ]
}

@test "doctor: a driver that hangs, and one whose library crashes" {
	ask() {
		LD_LIBRARY_PATH=$BUILD_ROOT/tests/fake/full STRAIN_FAKE_NVML=$script timeout 100 "$STRAIN" doctor
	}
	echo 'gpu 0 crash.nvmlDeviceGetMaxClockInfo 1' >>"$script"
	ask | grep -q "^nvml .*the driver's library crashed (signal 11)"
	sed -i '$ d' "$script"
	echo 'gpu 0 hang.nvmlDeviceGetMaxClockInfo 1' >>"$script"
	ask | grep -q '^nvml .*the driver did not answer within 30 s'
}

@test "a driver that hangs at once" {
	echo 'gpu 0 hang.nvmlDeviceGetMaxClockInfo 1' >>"$script"
	run -0 record sleep 2
	[ "$("$STRAIN" show --json run.strain | python3 -c 'import json, sys
found = json.load(sys.stdin)["allocation"]["gpus"]
print(found["allocated"], found["used_s"], found["missing"])')" = "2 None the driver was not ready when the job ended" ]
}

@test "an old driver: less, with the reason" {
	age=old
	record sleep 1.5
	[ "$(values 'max(value)' hw.gpu.memory.usage e)" = 5700000000 ]
	query "select reason from missing" | grep -q driver
}

@test "a driver that does not match its library says so" {
	echo 'init 18' >>"$script"
	record sleep 0.5
	query "select reason from missing" | grep -q 'version mismatch'
}
