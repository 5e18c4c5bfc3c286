#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Verdicts of recorded jobs: their form, and the classes about GPUs, of which a fake NVML (tests/fake)
# plays what a real card would say. Whether verdicts are right: tests/cases, tests/truth.

bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR"
	script=$BATS_TEST_TMPDIR/script
	cp "$SOURCE_ROOT/tests/fake/training.script" "$script"
	unset CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER
	train=$BUILD_ROOT/workloads/onednn/onednn-train
	[ -x "$train" ] || skip 'onednn-train is not built'
	cp "$train" strain-gpu-job
}

# A job of a few hundred steps on GPU 0 of the fake, as the script then says.
record_gpu() {
	[ "$(readlink /proc/self/ns/pid)" = 'pid:[4026531836]' ] ||
		skip 'in a pid namespace of its own, where a process must hold /dev/nvidia*'
	LD_LIBRARY_PATH=$BUILD_ROOT/tests/fake/full STRAIN_FAKE_NVML=$script \
		"$STRAIN" run -o run.strain -- ./strain-gpu-job -n 4800 -e 2 -t 1 -w 1 >out 2>err
}

on_gpu() {
	echo 'gpu 0 processes @strain-gpu-job:2000000000:31' >>"$script"
}

# Of --json: a path of keys, or a program of Python over `v`, the verdict.
verdict() {
	"$STRAIN" show --json run.strain | python3 -c '
import json, sys
v = json.load(sys.stdin)["verdict"]
print(eval(sys.argv[1]))' "$1"
}

# That this is the bottleneck, or, where others use the CPUs that the test would need, that they are a
# cause.
expect_bottleneck() {
	[ "$(verdict 'v["bottleneck"]')" = "$1" ] ||
		[ "$(verdict 'any(c["cause"] in ("contention", "cpu") for c in v["causes"])')" = True ]
}

@test "a job that marks its phases: shares, advice and what memory holds" {
	"$STRAIN" run -o run.strain -- ./strain-gpu-job -n 1280 -e 2 -t 1 -w 1 --prepare-us 2000 2>err
	[ "$(verdict '[c["cause"] for c in v["causes"]] != []')" = True ]
	[ "$(verdict 'all(0 <= c["share"]["value"] <= 1 for c in v["causes"])')" = True ]
	[ "$(verdict 'len(v["suggestions"]) > 0 and all(s["action"] for s in v["suggestions"])')" = True ]
	[ "$(verdict 'any(e["metric"] == "process.cpu.time" for e in v["evidence"])')" = True ]
	[ "$(verdict 'any((h["bytes"] or 0) > 1e6 for h in v["memory_contents"])')" = True ]
	run -0 "$STRAIN" show run.strain
	[[ "$output" == *$'\nVerdict   '*" data "*" %, forward "*$'\nEvidence  '*$'\nMemory    '*$'\nTry       '* ]]
	# At the end of the run: the verdict, and the first of what to try.
	grep -qF "strain: $(verdict 'v["headline"][:60]')" err
	tr -s ' \n' ' ' <err | grep -qF "$(verdict 'v["suggestions"][0]["action"][:40]')"
	# Two commands, a line on the recording, and at most two each, or one more, on the rest.
	[ "$(wc -l <err)" -le 10 ]
}

@test "a GPU that is busy is what the job waits for" {
	on_gpu
	sed -i 's/^gpu 0 utilization.gpu .*/gpu 0 utilization.gpu 95/' "$script"
	record_gpu
	expect_bottleneck compute
	# It is the GPU that computes, not a CPU.
	if [ "$(verdict 'v["bottleneck"]')" = compute ]; then
		[ "$(verdict '"GPU" in v["headline"] and "CPU" not in v["headline"]')" = True ]
	fi
}

@test "a GPU that waits for the host" {
	on_gpu
	record_gpu
	# How long the host keeps it waiting depends on how busy the host is.
	[ "$(verdict 'v["bottleneck"]')" != compute ]
	[ "$(verdict 'all(c["share"]["value"] <= 0.35 for c in v["causes"] if c["cause"] == "compute")')" = True ]
	[ "$(verdict 'all(c["share"]["value"] <= 0.67 for c in v["causes"] if c["cause"] != "start-up")')" = True ]
}

@test "a GPU that is lost in the first epoch has no figures in the last one" {
	on_gpu
	echo 'at 500 gpu 0 lost 15' >>"$script"
	record_gpu
	run -0 "$STRAIN" sql run.strain "SELECT epoch FROM summary_by_name
		WHERE metric = 'hw.gpu.memory.usage' AND aggregate = 'mean' AND epoch IS NOT NULL"
	[[ "$output" != *2* ]]
	run -0 "$STRAIN" show run.strain
	[[ "$(grep -A2 '^EPOCH .*GPU MEMORY' <<<"$output" | tail -1)" =~ ' 2 '.*' - ' ]]
}

@test "a GPU whose clocks are held down" {
	on_gpu
	sed -i 's/^gpu 0 utilization.gpu .*/gpu 0 utilization.gpu 97/; s/^gpu \* reasons .*/gpu * reasons 64/; s/^gpu 0 clock.sm .*/gpu 0 clock.sm 900/' "$script"
	record_gpu
	expect_bottleneck gpu-throttled
}

# Turns for some seconds of CPU time on one CPU, which it gives itself; a shell that may use all waits for it.
@test "CPUs that a job leaves to itself are what it may use" {
	[ "$(nproc)" -ge 2 ] || skip 'one CPU'
	turn='import time
while time.process_time() < 3: pass'
	"$STRAIN" run -o run.strain -- sh -c 'taskset -c "$1" python3 -c "$2"; true' sh \
		"$(taskset -pc $$ | sed 's/.*[ ,-]//')" "$turn" 2>err
	[ "$("$STRAIN" show --json run.strain | python3 -c 'import json, sys
print(json.load(sys.stdin)["job"]["cpus"] == 1)')" = True ]
	"$STRAIN" sql run.strain "SELECT DISTINCT value FROM samples WHERE metric = 'strain.cpu.allowed'" >out
	grep -qx ' *1' out
}

@test "a job that sleeps is idle, and the verdict says that it sleeps" {
	"$STRAIN" run -o run -- sleep 4 2>err
	[[ "$(verdict 'v["headline"]')" == "mostly idle: "*"; sleep sleeps "*" % of its time" ]]
}
