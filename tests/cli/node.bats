#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# One recorder reads the machine for all ranks of a job on it.

bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	mkdir runs
	job=test-$$-$BATS_TEST_NUMBER
	pids=()
}

teardown() {
	local pid
	for pid in "${pids[@]}"; do
		kill "$pid" 2>/dev/null || true
	done
}

# Ranks that sleep until the file `end` exists, each below a recorder. The words before strain: strace.
start() { # NUMBER [WORD...]
	local n=$1 rank
	shift
	for ((rank = 0; rank < n; rank++)); do
		RANK=$rank WORLD_SIZE=$n "${@//%/$rank}" "$STRAIN" run --job "$job" --no-verdict -o "runs/$rank.strain" -- \
			sh -c 'while [ ! -e end ]; do sleep 0.2; done' 2>"said$rank" 3>&- &
		pids+=($!)
	done
}

finish() {
	touch end
	local pid
	for pid in "${pids[@]}"; do
		wait "$pid" || true
	done
	pids=()
}

query() { # RUN SQL
	"$STRAIN" sql "$1" "$2" --csv 2>/dev/null | tail -n +2
}

# The runs whose recorders are alive, according to $alive, and read the machine now.
reader_of() { # RANK...
	local rank
	for rank in "$@"; do
		if query "runs/$rank.strain" "select text from event where kind = 'machine_reader'" | grep -q 'this recorder'; then
			echo "$rank"
		fi
	done
}

await_reader() { # RANK...
	local i found
	for ((i = 0; i < 200; i++)); do
		found=$(reader_of "$@")
		if [ -n "$found" ]; then
			echo "$found"
			return
		fi
		sleep 0.1
	done
	echo "nobody reads the machine" >&2
	for found in "$@"; do
		echo "$found: $(query "runs/$found.strain" "select kind || ' ' || text from event") $(cat "said$found")" >&2
	done
	return 1
}

# The longest time without a reading of the host, in whole seconds.
gap() { # RUN
	query "$1" "select cast(max(gap) as integer) from (select t - lag(t) over (order by t) as gap
		from samples where metric = 'system.cpu.time.idle')"
}

@test "of the recorders of a job, one reads the machine; every run has the readings" {
	local reader rank
	start 4
	sleep 4
	reader=$(await_reader 0 1 2 3) # before the end, when others take over
	[ "$(wc -w <<<"$reader")" = 1 ]
	finish
	for rank in 0 1 2 3; do
		[ "$(gap "runs/$rank.strain")" -lt 2 ]
		[ "$(query "runs/$rank.strain" "select count(*) > 20 from samples where metric = 'system.memory.usage.free'")" = 1 ]
		[ "$rank" = "$reader" ] || query "runs/$rank.strain" "select text from event where kind = 'machine_reader'" |
			grep -q "read by the recorder of $reader.strain"
	done
}

@test "a job of one rank, and ranks that no launcher names, read alone" {
	WORLD_SIZE=1 RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=1 "$STRAIN" run --no-verdict -o runs/0.strain sleep 0.3
	"$STRAIN" run --no-verdict -o runs/1.strain sleep 0.3
	[ "$(query runs/0.strain "select count(*) from event where kind = 'machine_reader'")" = 0 ]
	[ "$(query runs/1.strain "select count(*) from event where kind = 'machine_reader'")" = 0 ]
}

@test "system calls: the others hardly read the machine's files" {
	command -v strace >/dev/null || skip "no strace"
	strace -o /dev/null true || skip "strace is not permitted"
	local reader rank all=0 its
	export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 # it does not work under strace
	start 4 strace -f -q -y -e trace=pread64 -o trace%
	sleep 6
	reader=$(await_reader 0 1 2 3)
	finish
	its=$(grep -c '</proc/stat>' "trace$reader")
	[ "$its" -gt 20 ]
	for rank in 0 1 2 3; do
		all=$((all + $(grep -c '</proc/stat>' "trace$rank")))
	done
	echo "reads of /proc/stat: $its by the one that reads, $all by all four"
	[ "$all" -lt $((its * 2)) ]
}

@test "the recorder that reads is killed ten times: another one reads, and nothing is missing" {
	local alive="0 1 2 3 4 5 6 7 8 9 10" reader i
	start 11
	sleep 1
	for ((i = 0; i < 10; i++)); do
		# shellcheck disable=SC2086
		reader=$(await_reader $alive)
		[ "$(wc -w <<<"$reader")" = 1 ]
		kill -KILL "$(query "runs/$reader.strain" "select value from run where key = 'recorder_pid'")"
		alive=$(tr ' ' '\n' <<<"$alive" | grep -vx "$reader" | tr '\n' ' ')
	done
	# shellcheck disable=SC2086
	reader=$(await_reader $alive)
	sleep 1
	finish
	[ "$(query "runs/$reader.strain" "select value from run where key = 'state'")" = finished ]
	echo "longest time without a reading of the host: $(gap "runs/$reader.strain") s"
	[ "$(gap "runs/$reader.strain")" -lt 10 ]
}

@test "the recorder that reads is stopped: the others read for themselves" {
	local reader other
	start 2
	reader=$(await_reader 0 1)
	other=$((1 - reader))
	local recorder
	recorder=$(query "runs/$reader.strain" "select value from run where key = 'recorder_pid'")
	kill -STOP "$recorder"
	sleep 4
	kill -CONT "$recorder"
	sleep 1
	finish
	[ "$(gap "runs/$other.strain")" -lt 4 ]
	[ "$(query "runs/$other.strain" "select count(*) from event where text like 'this recorder reads%'")" = 0 ]
}

@test "GPUs: figures go on when another recorder reads, and are in both runs" {
	local reader other
	cp "$SOURCE_ROOT/tests/fake/training.script" script
	export LD_LIBRARY_PATH=$BUILD_ROOT/tests/fake/full STRAIN_FAKE_NVML=$PWD/script
	start 2
	sleep 2
	reader=$(await_reader 0 1)
	other=$((1 - reader))
	kill -KILL "$(query "runs/$reader.strain" "select value from run where key = 'recorder_pid'")"
	sleep 3
	finish
	query "runs/$other.strain" "select text from event where kind = 'machine_reader'" | grep -q 'this recorder reads'
	local metric
	for metric in strain.gpu.pcie.host_to_device hw.energy; do
		# never back, and never a jump: a rate that is ten times the median
		query "runs/$other.strain" "with d as (select value - lag(value) over (order by t) as d, t - lag(t) over (order by t) as t
			from samples where metric = '$metric' and entity = (select min(id) from entity where kind = 'gpu') and value is not null)
			select min(d) >= 0 and max(d * 1.0 / t) < 20 * (select avg(d * 1.0 / t) from d where t > 0) and count(*) > 3 from d where t > 0" | grep -qx 1
	done
	[ "$(query "runs/$other.strain" "select max(value) from samples where metric = 'hw.gpu.utilization'")" = 0.34 ]
}

@test "a folder that others can write is not used, and that is said" {
	[ "$(id -u)" -ne 0 ] || skip "as root, the test would change a folder of the machine"
	local folder
	folder=/dev/shm/strain-$(id -u)
	mkdir -p -m 700 "$folder"
	chmod 777 "$folder"
	start 2
	sleep 1.5
	finish
	chmod 700 "$folder"
	query runs/0.strain "select text from event where kind = 'machine_reader'" | grep -q "each rank reads the machine: $folder"
	[ "$(gap runs/0.strain)" -lt 2 ]
}
