#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Time in which a job is stopped is named, and in no share, rate or verdict.

load messages

setup() {
	cd "$BATS_TEST_TMPDIR"
	export MARKING="$BUILD_ROOT/tests/tools/marking"
}

# Says how long the job's process stood still, and what the run says, to `seen`.
# record SCRIPT: a shell script, the job; `stop SECONDS PID` in it stops a process, while others
# compute on all CPUs, and appends how long that took to the file `truth`.
record() {
	cat >job <<-'EOF'
		stop() {
			kill -STOP "$2"
			from=$(date +%s%N)
			"$BATS_TEST_TMPDIR/others" "$1"
			to=$(date +%s%N)
			kill -CONT "$2"
			echo $(((to - from) / 1000000)) >>truth
		}
	EOF
	echo "$1" >>job
	# What others compute is outside of the job: they are asked through a pipe.
	mkfifo ask answer
	while read -r seconds; do
		for _ in $(seq "$(nproc)"); do
			timeout "$seconds" sh -c 'while :; do :; done' 3>&- &
		done
		sleep "$seconds"
		echo done
	done <ask >answer &
	others=$!
	printf '#!/bin/sh\necho "$1" >&5\nread -r _ <&6\n' >others
	chmod +x others
	exec 5>ask 6<answer
	"$STRAIN" run -o run.strain bash job >out 2>verdict
	exec 5>&- 6<&-
	wait $others
	"$STRAIN" show --json run.strain >seen
	"$STRAIN" show run.strain >text
}

# check EXPRESSION: of `seen` and of `truth`, the seconds that were.
check() {
	/usr/bin/python3 -c '
import json, os, sys
seen = json.load(open("seen"))
truth = sum(int(line) for line in open("truth")) / 1e3 if os.path.exists("truth") else 0
run, job, verdict, processes = (seen[key] for key in ("run", "job", "verdict", "processes"))
iterations = seen.get("iterations")
assert eval(sys.argv[1]), (sys.argv[1], truth, run, job, verdict["headline"], verdict["evidence"], iterations)' "$1"
}

EDGES=0.35 # seconds that both edges of a stop may be off, and more than a reading's delay

@test "a job that was stopped is not slowed down by others" {
	record '"$MARKING" computes & sleep 1; stop 5 $!; wait'
	check "abs(run['job_stopped_s'] - truth) <= $EDGES + 0.02 * truth"
	check "abs(run['stopped_s'] - truth) <= $EDGES + 0.02 * truth"
	check "abs(job['cpus_used'] - job['cpu_seconds'] / (run['duration_s'] - run['job_stopped_s'])) < 0.01"
	check "verdict['bottleneck'] != 'contention' or job['host_cpus_used'] - job['cpus_used'] > 0.2 * job['host_cpus']"
	check "any(row['what'] == 'stopped' and ' s' in row['value'] for row in verdict['evidence'])"
	check "[p['stopped_seconds'] > 4 for p in processes if p['name'] == 'marking'] == [True]"
	check "all('%d %%' % round(100 * p['cpu_ratio']) in next(row for row in open('text') if ' marking ' in row) for p in processes if p['name'] == 'marking')"
	grep -q 'stopped .*[45]\.[0-9] s' verdict
	grep -q 'stopped  .*[45]\.[0-9] s' text
}

@test "an iteration during which the job was stopped is in no figure of them" {
	record '"$MARKING" computes & sleep 1; stop 3 $!; sleep 0.3; stop 2 $!; wait'
	check "1 <= iterations['stopped'] <= 9 and iterations['steady'] >= 100"
	check "iterations['max_s'] < 1.9"
	check "iterations['total_s'] < run['duration_s'] - truth + 0.7"
	check "abs(iterations['stopped_s'] - truth) <= 2 * $EDGES + 0.02 * truth"
	grep -q "^ .* $(/usr/bin/python3 -c 'import json
print(json.load(open("seen"))["iterations"]["stopped"])') .*stopped\|^Excluded .*stopped" text
}

@test "all processes of a job are stopped, its shell too" {
	printf '#!/bin/sh\necho >ready\n"$MARKING" computes\n' >script
	chmod +x script
	setsid "$STRAIN" run -o run.strain ./script 2>verdict &
	until [ -e ready ]; do sleep 0.05; done
	sleep 1
	group=$(pgrep -x script -s "$(pgrep -x marking -n | xargs ps -o sid= -p | tr -d ' ')" | head -n 1)
	[ -n "$group" ]
	pids="$group $(pgrep -P "$group")"
	kill -STOP $pids
	sleep 3
	kill -CONT $pids
	wait $!
	"$STRAIN" show --json run.strain >seen
	check "2.5 <= run['job_stopped_s'] <= 6"
}

@test "a short stop" {
	record '"$MARKING" computes & sleep 1; stop 0.6 $!; wait'
	check "abs(run['job_stopped_s'] - truth) <= $EDGES"
}

@test "one of two ranks is stopped: it is named, and the other's time beside it counts for nothing" {
	record '"$MARKING" computes & "$MARKING" computes & sleep 1; stop 4 $!; wait'
	check "abs(run['stopped_s'] - truth) <= $EDGES + 0.02 * truth"
	check "sorted(p['stopped_seconds'] > 3 for p in processes if p['name'] == 'marking') == [False, True]"
	check "any(row['what'] == 'stopped' and 'rank ' in row['value'] for row in verdict['evidence'])"
	check "iterations['max_s'] < 2"
}

@test "a job that nobody stopped says nothing of it" {
	record '"$MARKING" computes; sleep 1'
	check "run['stopped_s'] == 0 and run['job_stopped_s'] == 0"
	check "not any(row['what'] == 'stopped' for row in verdict['evidence'])"
	[ "$(grep -c -i stopped text verdict | tr '\n' ' ')" = 'text:0 verdict:0 ' ]
}

@test "a tracer that stops its program at every system call has not stopped the job" {
	command -v strace >/dev/null || skip "no strace"
	strace -o /dev/null true 2>/dev/null || skip "programs may not be traced here"
	"$STRAIN" run -o run.strain strace -f -o /dev/null "$MARKING" steady 2>verdict
	"$STRAIN" show --json run.strain >seen
	check "run['stopped_s'] == 0 and all(p['stopped_seconds'] == 0 for p in processes)"
}

# As scontrol suspend, a cgroup's freezer, or a virtual machine that stands still.
@test "a job that is frozen together with its recorder: the gap is no training" {
	cat >job.py <<-'EOF'
		import strain, time
		for epoch in range(2):
		    strain.epoch(epoch)
		    for i in range(60):
		        strain.iteration(i, 32)
		        with strain.phase("forward"):
		            until = time.monotonic() + 0.04
		            while time.monotonic() < until:
		                pass
		strain.epoch_end()
	EOF
	"$STRAIN" run -o run.strain /usr/bin/python3 job.py >out 2>verdict 3>&- &
	local launcher=$! all from
	sleep 2
	all=$(pgrep -P "$launcher")
	from=$(date +%s%N)
	# shellcheck disable=SC2086 # a list
	kill -STOP $all
	sleep 4
	# shellcheck disable=SC2086
	kill -CONT $all
	echo $((($(date +%s%N) - from) / 1000000)) >truth
	wait "$launcher"
	"$STRAIN" show --json run.strain >seen
	check "abs((run['job_stopped_s'] or 0) - truth) < $EDGES + 0.02 * truth"
	check 'iterations["max_s"] < 1 and iterations["samples_per_second"] > 32 / 0.08'
	[ "$(jq -r '[.events[] | select(.kind == "frozen")] | length' seen)" = 1 ]
}

@test "a job that sleeps is not frozen, at any interval" {
	local interval
	for interval in 20ms 3s; do
		"$STRAIN" run -o run.strain --force --interval "$interval" sleep 7
		[ "$("$STRAIN" show --json run.strain | jq -c '[([.events[] | select(.kind == "frozen")] | length), .run.job_stopped_s]')" = "[0,0]" ]
	done
}
