#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# What goes wrong while a job is recorded: the job ends as it would have, and what was written is readable.

bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR"
}

teardown() {
	if [ -n "${MOUNTED:-}" ]; then
		umount "$MOUNTED"
	fi
}

ask() {
	"$STRAIN" sql --csv "$1" "$2" 2>/dev/null | sed -n 2p
}

# The recorder among the launcher's children: the one in a session of its own.
recorder_of() {
	local pid
	for pid in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do
		[ "$(ps -o sess= -p "$pid" | tr -d ' ')" = "$pid" ] &&
			[ "$(readlink "/proc/$pid/exe")" = "$(readlink "/proc/$1/exe")" ] && echo "$pid"
	done
	return 0
}

# Records a job of 2.5 s and kills the recorder after $2 hundredths of a second. Leaves the launcher's
# status, the time of the kill and of the start (s of the monotonic clock) in files named after $1.
record_and_kill() {
	"$STRAIN" run -o "$1.strain" --interval 10ms sh -c 'sleep 2.5; echo whole; exit 7' >"$1.out" 2>"$1.err" &
	local launcher=$! pid=""
	while [ -z "$pid" ] && kill -0 $launcher 2>/dev/null; do
		pid=$(recorder_of $launcher)
	done
	sleep "$(printf '0.%02d' $(($2 % 100)))"
	[ $(($2 / 100)) = 0 ] || sleep 1
	cut -d' ' -f1 /proc/uptime >"$1.killed"
	# On a slow machine the job may be over by now; then there was no recorder to kill.
	kill -KILL "$pid" 2>/dev/null || touch "$1.alive"
	local status=0
	wait $launcher || status=$?
	echo $status >"$1.status"
}

# The run's end as the launcher wrote it lies after the kill; what was sampled reaches to within 2 s of it.
check_killed() {
	[ "$(cat "$1.status")" = 7 ]
	[ "$(cat "$1.out")" = whole ]
	[ ! -e "$1.alive" ] || return 0
	[ "$(ask "$1.strain" "SELECT value FROM run WHERE key = 'state'")" = finished ]
	local last started lost
	last=$(ask "$1.strain" "SELECT coalesce(max(t), 0) FROM samples")
	started=$(ask "$1.strain" "SELECT value / 1e9 FROM run WHERE key = 'start_monotonic_ns'")
	if ! grep -q "^strain: .*recorder" "$1.err"; then
		# On a slow machine it may have done its work, and be about to exit.
		echo "$1: killed at $(cat "$1.killed"), begun at $started"
		awk -v k="$(cat "$1.killed")" -v s="$started" 'BEGIN { exit !(k - s >= 2.5) }'
		return
	fi
	killed=$((killed + 1))
	lost=$(awk -v k="$(cat "$1.killed")" -v s="$started" -v l="$last" 'BEGIN { print k - s - l }')
	echo "$1: killed at $(cat "$1.killed"), lost $lost s"
	awk -v l="$lost" 'BEGIN { exit !(l <= 2) }'
}

@test "the recorder killed at any moment: the job ends as it would have, at most 2 s are lost" {
	count=${STRAIN_KILLS:-20} killed=0
	for ((i = 0; i < count; i += 5)); do
		for ((k = i; k < i + 5 && k < count; k++)); do
			record_and_kill "k$k" $((RANDOM % 150)) &
		done
		wait
	done
	for ((k = 0; k < count; k++)); do
		check_killed "k$k"
	done
	[ "$killed" -ge $((count / 2)) ]
}

@test "the launcher killed: how the job ended is not known" {
	"$STRAIN" run --no-cgroup -o run.strain -- sh -c 'sleep 2; exit 3' &
	local launcher=$!
	sleep 1
	kill -KILL "$launcher"
	for _ in $(seq 100); do
		[ -z "$("$STRAIN" show --json run.strain 2>/dev/null | grep -o '"state": "live"')" ] && break
		sleep 0.1
	done
	sleep 1
	"$STRAIN" show run.strain | head -n 1 | grep -q 'exit status unknown'
}

@test "in a PID namespace without its own /proc the job runs, unrecorded" {
	if unshare -p -f true 2>/dev/null; then
		run -3 --separate-stderr unshare -p -f "$STRAIN" run -o run.strain -- sh -c 'echo ran; exit 3'
		[ "$output" = ran ]
		[[ $stderr == *"not recording: /proc shows another PID namespace"* ]]
		[[ $stderr != *"left running"* ]]
		[ ! -e run.strain ]
	fi
	run -125 "$STRAIN" run -o no/where.strain -- true # a file that cannot be written
}

@test "the disk fills while it records: the job is unharmed, the run says so" {
	[ "$(id -u)" = 0 ] || skip "needs root, to mount a small file system"
	mkdir small
	mount -t tmpfs -o size=1536k tmpfs small 2>/dev/null || skip "no tmpfs can be mounted here"
	MOUNTED="$PWD/small"
	head -c 700k /dev/zero >small/ballast
	run -3 --separate-stderr "$STRAIN" run --interval 1ms -o small/run.strain \
		sh -c 'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 0.3 & sleep 0.3 & sleep 0.3; done; head -c 2M /dev/zero >small/rest 2>/dev/null; sleep 4; echo whole; exit 3'
	[ "$output" = whole ]
	rm -f small/ballast small/rest
	[ "$(ask small/run.strain "SELECT count(*) > 1000 FROM samples")" = 1 ]
	[ "$(ask small/run.strain "SELECT count(*) FROM event WHERE kind LIKE '%full%' OR text LIKE '%No space%' OR text LIKE '%disk is full%'")" != 0 ]
}

@test "a full disk before the start is said, and costs the job nothing" {
	[ "$(id -u)" = 0 ] || skip "needs root, to mount a small file system"
	mkdir small
	mount -t tmpfs -o size=64k tmpfs small 2>/dev/null || skip "no tmpfs can be mounted here"
	MOUNTED="$PWD/small"
	run -125 --separate-stderr "$STRAIN" run -o small/run.strain echo whole
	[ "$(wc -l <<<"$stderr")" = 1 ]
	[[ "$stderr" == *"small/run.strain"* ]]
	(cd small && STRAIN_DIR=. run -0 --separate-stderr "$STRAIN" run echo whole && [ "$output" = whole ])
}

@test "recorded inside a container with limits" {
	command -v bwrap >/dev/null || skip "bubblewrap is not installed"
	bwrap --dev-bind / / --unshare-pid --proc /proc true 2>/dev/null ||
		skip "bubblewrap may not make namespaces here"
	run -5 bwrap --dev-bind / / --unshare-pid --unshare-net --proc /proc \
		"$STRAIN" run -o inside.strain sh -c 'sleep 0.3 & wait; exit 5'
	[ "$(ask inside.strain "SELECT count(*) FROM entity WHERE kind = 'process'")" -ge 2 ]
	[ "$(ask inside.strain "SELECT count(*) > 10 FROM samples WHERE metric = 'process.cpu.time'")" = 1 ]
}

@test "the job itself inside a container: its processes are seen from outside" {
	command -v bwrap >/dev/null || skip "bubblewrap is not installed"
	bwrap --dev-bind / / --unshare-pid --proc /proc true 2>/dev/null ||
		skip "bubblewrap may not make namespaces here"
	for option in --no-cgroup --force; do
		run -5 "$STRAIN" run "$option" -o outside.strain bwrap --dev-bind / / --unshare-pid --proc /proc \
			sh -c 'sleep 0.4 & wait; exit 5'
		[ "$(ask outside.strain "SELECT count(*) FROM entity WHERE kind = 'process' AND name = 'sleep'")" = 1 ]
		rm outside.strain
	done
}
