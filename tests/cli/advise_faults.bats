#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# strain advise and what goes wrong: the answer or one line, nothing left running.

load advise_helpers

setup() {
	enter_folder
	JOB="$SOURCE_ROOT/tests/cli/advise_plain.py"
	export STRAIN
}

teardown() {
	cd /
	mountpoint -q "$FOLDER/small" && umount "$FOLDER/small"
	leave_folder
}

advise() { # OPTION... -- ARGUMENT...: of the job
	local options=()
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	# a rate of this precision is known at once, also where other tests run
	"$STRAIN" advise --limit 10s --error 30% "${options[@]}" -- python3 "$JOB" --batch '{batch_size=8}' "$@"
}

# Waits for the job with this batch size, and prints its process.
job_with() { # BATCH
	local process words
	for _ in $(seq 300); do
		for process in /proc/[0-9]*; do
			words=$(tr '\0' ' ' 2>/dev/null <"$process/cmdline") || continue
			if [[ ${words%% *} == *python* && $words == *"$JOB --batch $1 " ]]; then
				echo "${process#/proc/}"
				return 0
			fi
		done 2>/dev/null
		sleep 0.1
	done
	return 1
}

@test "a job that needs a terminal, and one that never iterates" {
	run -1 --separate-stderr advise -- --terminal </dev/null
	[[ $stderr == *"the job failed with exit status 1"*"standard input is not a terminal"* ]]
	run -1 --separate-stderr "$STRAIN" advise --limit 5s -- python3 "$JOB" --never
	[[ $stderr == *"no iterations"* ]]
	nothing_runs advise_plain.py
}

@test "a start that fails leaves no folder behind, unless it holds more than was printed" {
	run -1 --separate-stderr "$STRAIN" advise -- sh -c 'echo broken >&2; exit 3'
	[[ $stderr == *broken* ]]
	run -1 --separate-stderr "$STRAIN" advise -- ./no-such-program
	[[ $stderr == *no-such-program* ]]
	run -1 --separate-stderr "$STRAIN" advise --limit 5s -- python3 -c 'import time; print("waits", flush=True); time.sleep(99)'
	[[ $stderr == *"no iterations"*--limit*waits* ]]
	[ -z "$(ls)" ]
	run -1 --separate-stderr "$STRAIN" advise -o named -- sh -c 'exit 3' # as the user said
	[ -e named/01-now.strain ]
	run -1 --separate-stderr "$STRAIN" advise -- sh -c 'seq 1000; exit 3'
	local folder=(sh-*.advice)
	[[ $stderr == *"output: ${folder[0]}/01-now.out"* ]]
	[ "$(head -n 1 "${folder[0]}/01-now.out")" = 1 ]
	rm -r named "${folder[0]}"
	cat >dies <<-'EOF'
		#!/bin/sh
		for i in $(seq 60); do "$STRAIN" mark iteration $i 8; sleep 0.02; done
		exit 3
	EOF
	chmod +x dies
	run -1 --separate-stderr "$STRAIN" advise -- ./dies
	folder=(dies-*.advice)
	[[ $stderr == *"strain show ${folder[0]}/01-now.strain"* ]]
	"$STRAIN" show "${folder[0]}/01-now" | grep -q ITERATIONS
	rm -r "${folder[0]}"
	"$STRAIN" advise -- sleep 99 2>said &
	local advising=$!
	for _ in $(seq 100); do
		[ -e "$(echo sleep-*.advice/01-now.strain)" ] && break
		sleep 0.1
	done
	kill -INT "$advising" || kill -TERM "$advising"
	wait "$advising" || true
	[ "$(echo *)" = "dies said" ]
	nothing_runs advise_plain.py
}

@test "on a terminal, the job has one as wide, and its input has ended" {
	timeout 120 python3 - "$STRAIN" advise --limit 20s --time 5s -o kept -- python3 "$JOB" --terminal <<-'EOF'
		import fcntl, os, pty, struct, sys, termios
		pid, master = pty.fork()
		if pid == 0:
		    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 77, 0, 0))
		    os.execv(sys.argv[1], sys.argv[1:])
		try:
		    while os.read(master, 4096):
		        pass
		except OSError:  # the terminal is gone
		    pass
		status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
		assert status == 0, status
	EOF
	[ "$(head -n 1 kept/01-now.out)" = "columns 77, read ['', '', '']" ]
	nothing_runs advise_plain.py
}

@test "a job of three iterations" {
	# as fast with every batch size: nothing is there to gain, whatever the machine does meanwhile
	run -0 --separate-stderr advise --json -o kept -- --iterations 3 --sample-seconds 0.05
	echo "$stderr"
	[ "$(field 'a["advised"]["batch_size"], a["rate"]["now"] is None or a["advised"]["keep"]' kept/advice.json)" = \
		"(8, True)" ]
	nothing_runs advise_plain.py
}

@test "a limit below the program's own size" {
	run -0 --separate-stderr advise --memory 2MB -o kept --
	[[ $output == *"nothing fits in 2.0 MB: a batch size of 1 needs "* ]]
	[ "$(field 'largest["nothing_fits"], largest["verified"]' kept/advice.json)" = "(True, None)" ]
	run -0 "$STRAIN" ls
	[[ $output == *"no batch fits"* ]]
}

@test "ulimit -v: memory that is no line, and a job that catches its failure and goes on with less" {
	is_slow
	ulimit -v 400000
	run -0 --separate-stderr advise --limit 20s --json -o kept -- --bent --catch
	echo "$stderr" "$output"
	# 64 MiB and three times the rest, twice: what an iteration holds while it takes the next.
	[ "$(field '64 <= largest["verified"] < largest["failed"] <= 120' kept/advice.json)" = True ]
	[ "$(field 'a["memory"]["limit_kind"]' kept/advice.json)" = "address space" ]
	nothing_runs advise_plain.py
}

@test "memory that does not grow with the batch size at first, and memory that never does" {
	is_slow
	run -0 --separate-stderr advise --limit 20s --memory 300MB --json -o kept -- --least 40
	echo "$stderr" "$output"
	# 1 MiB a sample, twice: what an iteration holds while it takes the next
	[ "$(field '110 < largest["verified"] < 145, largest["open"]' kept/advice.json)" = "(True, False)" ]
	run -0 --separate-stderr advise --limit 20s --memory 300MB -o open -- --least 64 --constant
	echo "$stderr" "$output"
	[[ $(tr -s ' \n' ' ' <<<"$output") == *"larger ones may fit, because memory does not grow with the batch size up to this one"* ]]
	[ "$(field 'largest["open"], largest["high"], largest["missing"]' open/advice.json)" = "(True, None, None)" ]
	[ "$(field '32 < largest["verified"] == largest["value"]' open/advice.json)" = True ]
	nothing_runs advise_plain.py
}

@test "a job that accumulates gradients: the batch size is that of the command" {
	run -0 --separate-stderr advise --memory 300MB --json -o kept -- --accumulate 5
	echo "$stderr" "$output"
	[ "$(field '[r["accumulated"] for r in runs] == [5] * len(runs)' kept/advice.json)" = True ]
	[ "$(field 'runs[0]["batch_size"], a["largest_batch"]["missing"]' kept/advice.json)" = "(8, None)" ]
	[ "$(field '110 < largest["value"] < 150' kept/advice.json)" = True ] # 2 MiB a sample
}

@test "a probe that is killed from outside" {
	advise -o kept -- >printed 2>said &
	local advising=$! job
	job=$(job_with 32)
	kill -KILL "$job"
	wait $advising
	cat printed said
	grep -q "the probe with batch size 32 failed: the job was killed by signal 9" printed
	nothing_runs advise_plain.py
}

@test "--memory above the limit that applies" {
	ulimit -v 4000000
	run -1 --separate-stderr "$STRAIN" advise --memory 8GiB -- true
	echo "$stderr"
	[[ "${stderr_lines[-1]}" == "strain: --memory: expected at most the limit of 4.1 GB"*"found 8.6 GB" ]]
	[ -z "$(find . -name '*.advice')" ]
}

@test "Ctrl-C before the job is known: no request, and a reason" {
	"$STRAIN" advise --limit 30s --error 0.1% --memory 300MB --kubernetes -o kept -- python3 "$JOB" --batch '{batch_size=8}' \
		>printed 2>said &
	local advising=$!
	job_with 32
	kill -INT "$advising"
	wait "$advising" || true
	cat printed said
	[ "$(grep -c nan printed)" = 0 ]
	[ -s printed ] || grep -q "strain: cannot print a resource request: interrupted before the first probe ended" said
	[ ! -s printed ] || grep -q "^# interrupted" printed
	nothing_runs advise_plain.py
}

@test "Ctrl-C before memory is known: no other batch size is advised" {
	"$STRAIN" advise --limit 10s --error 0.1% --memory 300MB --json -o kept -- python3 "$JOB" --batch '{batch_size=8}' \
		>printed 2>said &
	local advising=$!
	job_with 32
	sleep 3
	kill -INT "$advising"
	wait $advising || true
	cat said
	[ "$(field 'largest["missing"] is not None, a["advised"]["batch_size"] in (8, None)' printed)" = "(True, True)" ]
	[ "$(field '[line.split()[1] for line in a["page"] if line.startswith("advice ")]' printed)" = "['none:']" ]
	nothing_runs advise_plain.py
	run -0 --separate-stderr advise --time 5s --
	[[ $output == *"advice         none: the time ran out before"* ]]
}

@test "processes that the job leaves behind are ended" {
	cat >leaves.py <<-'EOF'
		import os, subprocess, time
		subprocess.Popen(["sleep", "4242"], start_new_session=True)
		for number in range(100000):
		    subprocess.run([os.environ["STRAIN"], "mark", "iteration", str(number + 1), "8"], check=False)
		    time.sleep(0.01)
	EOF
	run -0 "$STRAIN" advise --limit 10s --time 5s -- python3 leaves.py
	local process
	for process in /proc/[0-9]*; do
		[ "$(tr '\0' ' ' <"$process/cmdline" 2>/dev/null)" != "sleep 4242 " ]
	done 2>/dev/null
}

@test "a full disk" {
	[ "$(id -u)" -eq 0 ] || skip "needs root to mount a small file system"
	mkdir small
	mount -t tmpfs -o size=200k tmpfs small || skip "cannot mount"
	run -1 --separate-stderr advise -o small/kept --
	echo "$stderr"
	[[ $stderr == *"No space left on device"* ]]
	[ ! -e small/kept/advice.json ]
	umount small
	mount -t tmpfs -o size=400k tmpfs small
	run --separate-stderr advise -o small/kept --
	echo "$stderr" "$output"
	[[ $status -ne 0 || -e small/kept/advice.json ]]
	[ ! -e small/kept/advice.json ] || field 'a["probes"]' small/kept/advice.json # whole
	nothing_runs advise_plain.py
}

@test "two at once in one directory, and a folder that is there" {
	advise --memory 300MB --time 5s -- >one 2>&1 &
	local other=$!
	advise --memory 300MB --time 5s -- >two 2>&1
	wait $other
	local folders=(*.advice)
	[ "${#folders[@]}" -eq 2 ]
	for folder in "${folders[@]}"; do
		[ "$(field 'a["probes"] == len(runs)' "$folder/advice.json")" = True ]
	done
	run -1 --separate-stderr advise -o "${folders[0]}" --
	[[ $stderr == *"File exists"* ]]
}

@test "a limit is verified under a cgroup, or by the peak where none can be written" {
	is_slow
	run --separate-stderr advise --limit 30s --memory 200MB --json -o kept --
	echo "$stderr"
	[ "$status" = 0 ]
	field 'largest' kept/advice.json
	[ "$(field 'largest["verified"] is not None and largest["verified_by"] in ("limit", "measured")' kept/advice.json)" = True ]
	# Each probe is announced, with how many there will be.
	echo "$stderr" >said
	python3 - "$(field 'len(runs)' kept/advice.json)" <<-'EOF'
		import re, sys
		found = re.findall(r"probe (\d+) of (about )?(\d+), about [^:]* left(, at most [^:]*)?: .", open("said").read())
		assert [int(each[0]) for each in found] == list(range(2, int(sys.argv[1]) + 1)), found
		for at, about, of, most in found:
		    assert bool(about) == bool(most) and int(at) <= int(of) < 3 * int(sys.argv[1]), found
		    assert about or int(of) == int(sys.argv[1]), found
	EOF
}
