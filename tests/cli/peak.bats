#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The most memory that a job had, against jobs of which that is known (touching), as an ordinary
# user has it: without a cgroup.

bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR"
	TOUCHING="$BUILD_ROOT/tests/tools/touching"
}

# record SHAPE MB MS [OPTION...]: what strain says of the peak, and what it was, go to `peak`.
record() {
	local truth
	truth=$("$STRAIN" run -o run.strain --force --no-cgroup "${@:4}" "$TOUCHING" "$1" "$2" "$3" 2>verdict)
	"$STRAIN" show --json run.strain | /usr/bin/python3 -c '
import json, sys
shown, truth = json.load(sys.stdin), int(sys.argv[1])
job = shown["job"]
print(truth, job["memory_peak_bytes"], job["memory_peak_at_most_bytes"], job["memory_peak_source"])
json.dump(dict(truth=truth, job=job, processes=shown["processes"]), open("peak", "w"))' "$truth"
}

# check EXPRESSION: of `truth`, `peak`, `most`, `source`, `job`, `processes`; PROGRAMS is what the
# programs themselves may take.
check() {
	/usr/bin/python3 -c '
import json, sys
seen = json.load(open("peak"))
truth, job, processes = seen["truth"], seen["job"], seen["processes"]
peak, most, source = (job["memory_peak_" + name] for name in ("bytes", "at_most_bytes", "source"))
PROGRAMS, MB = 12e6, 1e6
assert eval(sys.argv[1]), seen' "$1"
}

# What must hold of every peak, whatever the machine did meanwhile.
check_sound() {
	check 'source in ("high-water marks", "cgroup", "sampled")'
	check 'peak <= truth + PROGRAMS'
	check 'most is None or most >= peak'
	check 'source == "sampled" or abs(peak - truth) <= 0.02 * truth + PROGRAMS'
	if check 'source == "sampled"' 2>/dev/null; then
		grep -q 'memory at least [0-9]' verdict
		"$STRAIN" show run.strain | grep -q 'memory  *at least [0-9]'
	else
		grep -q 'memory [0-9]' verdict
		"$STRAIN" show run.strain | grep -q 'memory  *[0-9]'
	fi
}

@test "one process for a quarter of a second: its high-water mark" {
	record one 400 250
	check_sound
	check 'peak >= 0.98 * truth'
	record one 400 1500 # long enough to be met afterwards on any machine
	check_sound
	check 'source == "high-water marks"'
}

@test "one process, read so seldom that no reading met it" {
	record one 200 30 --interval 1s
	check_sound
	check 'peak >= 0.98 * truth'
}

@test "a child, and two children one after the other" {
	for shape in child apart; do
		record $shape 200 250
		check_sound
		check 'peak >= 0.97 * truth'
	done
	record child 400 1500
	check 'source == "high-water marks"'
}

@test "a child that ends while it holds its memory: what its parent reaped says how much" {
	record dies 200 250
	check_sound
	check 'peak >= 0.97 * truth'
	record dies 200 30 --interval 1s
	check_sound
	check 'peak >= 0.97 * truth'
}

@test "two children at the same time are at least the larger, and at most both" {
	record together 150 400
	check_sound
	check 'peak >= 0.97 * truth / 2 and (most is None or most >= 0.98 * truth)'
	record together 150 30 --interval 1s
	check_sound
	check 'peak >= 0.97 * truth / 2 and source == "sampled"'
}

@test "memory that several processes map counts once" {
	for shape in inherited shared; do
		record $shape 150 400
		check_sound
		check 'peak >= 0.97 * truth'
	done
}

@test "the process itself has its peak, and its memory by three counts" {
	record child 200 400
	check 'max(p["resident_peak_bytes"] for p in processes) >= 0.99 * truth'
	check 'min(p["resident_peak_bytes"] for p in processes) <= PROGRAMS'
	record one 200 3000
	check 'all(processes[0][k] >= 0.99 * truth for k in ("resident_peak_bytes", "memory_peak_bytes", "uss_peak_bytes"))'
}

@test "of a process that is only looked at, what was before and after readings is not known" {
	"$TOUCHING" one 100 2000 >truth &
	"$STRAIN" run -o run.strain --no-cgroup --pid $! 2>verdict
	wait $!
	[ "$("$STRAIN" show --json run.strain | /usr/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)["job"]["memory_peak_source"])')" = sampled ]
	grep -q 'memory at least [0-9]' verdict
}

@test "what a process had before it was looked at is not the run's" {
	"$TOUCHING" one 200 2500 >truth &
	pid=$!
	until [ "$(awk '{ print $2 }' /proc/$pid/statm)" -gt 40000 ]; do sleep 0.05; done
	until [ "$(awk '{ print $2 }' /proc/$pid/statm)" -lt 4000 ]; do sleep 0.05; done
	"$STRAIN" run -o run.strain --no-cgroup --pid $pid 2>verdict
	wait $pid
	"$STRAIN" show --json run.strain | /usr/bin/python3 -c '
import json, sys
job = json.load(sys.stdin)["job"]
assert job["memory_peak_bytes"] < 12e6, job'
}
