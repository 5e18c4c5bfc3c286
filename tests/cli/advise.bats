#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Short runs that answer a question.

load messages

setup() {
	FOLDER=$(mktemp -d /var/tmp/strain-advise-test-XXXXXX) # /tmp is memory on some machines
	cd "$FOLDER" || return
	head -c 4000000 /dev/zero >data.bin
	# Marks itself; has its data open, and reads it again and again.
	cat >job <<-'EOF'
		#!/bin/sh
		exec 3<data.bin
		i=0
		while [ $i -lt "${ITERATIONS:-1000000}" ]; do
			i=$((i + 1))
			"$STRAIN" mark iteration $i 8
			dd if=/dev/fd/3 of=/dev/null bs=1M count=1 2>/dev/null
		done
	EOF
	chmod +x job
}

teardown() {
	cd /
	rm -rf "$FOLDER"
}

# Fails, and names it, where a job of this test still runs.
left_running() {
	local process command
	for process in /proc/[0-9]*; do
		[ "$(readlink "$process/cwd")" = "$PWD" ] || continue
		command=$(tr '\0' ' ' <"$process/cmdline" 2>/dev/null) || continue
		if [[ "$command" == *"./job"* ]]; then
			echo "still runs: $command"
			return 1
		fi
	done
}

field() {
	/usr/bin/python3 -c 'import json, sys
found = json.load(open(sys.argv[1]))
print(eval(sys.argv[2], {}, {"a": found, "runs": {r["run"]: r for r in found["runs"]}}))' \
		advice.json "$1"
}

@test "warm and cold runs of a job that marks itself" {
	run -0 --separate-stderr "$STRAIN" advise --stalls --limit 5s --error 50% --json -o kept -- ./job
	echo "$stderr"
	echo "$output" | tee advice.json
	[ "$(field 'a["unit"]')" = samples/s ]
	[ "$(field 'runs["warm"]["rate"] > 0')" = True ]
	[ "$(field 'a["data"]["bytes"], a["data"]["files"]')" = "(4000000, 1)" ]
	# No framework hands out its batches again.
	[[ "$(field 'a["stalls"]["prep"]["value"], a["stalls"]["prep"]["missing"]')" == "(None, "*hook* ]]
	if ! [[ "$(field 'a["stalls"]["fetch"].get("missing")')" == None ]]; then
		[[ "$(field 'a["stalls"]["fetch"]["value"], a["stalls"]["fetch"]["missing"]')" == "(None, "*memory* ]]
		skip "what is in /var/tmp stays in memory"
	fi
	notes cold
	[ "$(field 'runs["cold"]["cached_at_start"] <= 0.05')" = True ]
	# Other load can make the cold run the faster one: then it is below 0, and within its interval.
	[ "$(field '-9 < a["stalls"]["fetch"]["low"] < a["stalls"]["fetch"]["value"] <= 1')" = True ]
	run -0 "$STRAIN" show kept/cold.strain
	[ -e kept/warm.out ]
}

@test "a cold run that is the faster one makes the interval wide, and is no stall of 0" {
	sed -i 's|^i=.*+ 1))$|&; [ -z "$STRAIN_OPENED" ] \|\| sleep 0.06|' job # only in the warm run
	run -0 --separate-stderr "$STRAIN" advise --stalls --limit 8s --error 50% -o kept --json -- ./job
	echo "$stderr"
	echo "$output" | tee advice.json
	[ "$(field 'a["stalls"]["fetch"].get("missing")')" = None ] || skip "what is in /var/tmp stays in memory"
	[ "$(field 'runs["cold"]["rate"] > runs["warm"]["rate"]')" = True ]
	[ "$(field 'a["stalls"]["fetch"]["value"] < 0 and a["stalls"]["fetch"]["low"] < a["stalls"]["fetch"]["value"]')" = True ]
	[ "$(field 'a["stalls"]["fetch"]["noise"] and a["stalls"]["fetch"]["high"] > 0')" = True ]
}

@test "nothing is left behind, of the job and of the runs" {
	mkdir elsewhere
	run -0 --separate-stderr env TMPDIR="$PWD/elsewhere" "$STRAIN" advise --stalls --limit 5s --error 50% -- ./job
	[ -z "$(ls elsewhere)" ]
	prints "fetch stall"
	left_running
}

# A job that holds out against SIGINT and SIGTERM is killed, and so is what it started.
@test "a job that ignores signals is ended all the same" {
	cat >stubborn <<-'EOF'
		#!/bin/sh
		trap '' INT TERM
		exec ./job
	EOF
	chmod +x stubborn
	ITERATIONS=100000000 run -0 "$STRAIN" advise --stalls --limit 5s --error 50% -- ./stubborn
	left_running
}

@test "a job that fails, one without iterations, one that ends by itself" {
	run -1 --separate-stderr "$STRAIN" advise --stalls sh -c 'echo "no such dataset"; exit 3'
	[ -z "$output" ]
	[[ "$stderr" =~ warm.*[^0-9]"3: no such dataset" ]]
	# The present configuration is what runs.
	run -1 --separate-stderr "$STRAIN" advise --stalls sh -c 'echo "runs $1, $2"; exit 3' sh '{batch_size=32}' '{workers}'
	[[ "$stderr" == *": runs 32, 0"* ]]
	run -1 --separate-stderr "$STRAIN" advise --stalls sleep 0.3
	[ -z "$output" ]
	notes rate warm
	ITERATIONS=40 run -0 --separate-stderr "$STRAIN" advise --stalls --json ./job
	echo "$output" | tee advice.json
	[ "$(field 'a["stalls"]["prep"]["value"], a["stalls"]["prep"]["missing"] != ""')" = "(None, True)" ]
}

@test "Ctrl-C ends it, and what it started" {
	mkdir elsewhere
	TMPDIR="$PWD/elsewhere" "$STRAIN" advise --stalls --limit 60s -- ./job 2>said &
	local advice=$!
	for _ in $(seq 600); do
		[ -z "$(find elsewhere -name warm.strain)" ] || break
		sleep 0.1
	done
	[ -n "$(find elsewhere -name warm.strain)" ]
	sleep 1
	kill -INT "$advice" || kill -TERM "$advice"
	local status=0
	wait "$advice" || status=$?
	[ "$status" = 130 ]
	[ -z "$(ls elsewhere)" ]
}

@test "options that are wrong" {
	fails_with 2 "expected a command to run" "strain advise --help" -- "$STRAIN" advise
	fails_with 2 "strain advise --help" -- "$STRAIN" advise --stalls
	fails_with 2 --error -- "$STRAIN" advise --stalls --error 0 true
	fails_with 2 --limit 5s 24h "'1s'" -- "$STRAIN" advise --stalls --limit 1s true
	fails_with 2 batchsize batch_size -- "$STRAIN" advise --stalls true '{batchsize=2}'
	mkdir there
	fails_with 1 there "File exists" -- "$STRAIN" advise --stalls -o there true
	fails_with 1 no/where "No such file or directory" -- "$STRAIN" advise --stalls -o no/where true
}

needs_torch() {
	[ -d /usr/lib/python3/dist-packages/torch ] ||
		skip "no PyTorch (python3-torch) for /usr/bin/python3"
	export OMP_NUM_THREADS=1
}

@test "prepared batches are handed out again as they were" {
	needs_torch
	run -0 /usr/bin/python3 -B "$SOURCE_ROOT/tests/hooks/replay.py" "$SOURCE_ROOT/hooks/python"
	[ "$output" = "handed out again" ]
}

@test "a job that mostly prepares: the prep stall, and which files are its data" {
	needs_torch
	mkdir images
	for i in $(seq 40); do
		head -c 20000 /dev/urandom >"images/$i.raw"
	done
	run -0 --separate-stderr "$STRAIN" advise --stalls --limit 100s --error 25% --json -- \
		/usr/bin/python3 "$SOURCE_ROOT/tests/hooks/stalls.py" images
	echo "$stderr"
	echo "$output" | tee advice.json
	[ "$(field 'a["unit"]')" = samples/s ]
	# 12 ms of work for a batch, against a step of little more than 1 ms.
	[ "$(field 'a["stalls"]["prep"]["value"] > 0.5')" = True ]
	[ "$(field 'a["stalls"]["prep"]["low"] > 0')" = True ]
	[ "$(field 'a["data"]["files"], a["data"]["bytes"]')" = "(40, 800000)" ]
	[ "$(field 'a["batches_edited_in_place"]')" = False ]
}
