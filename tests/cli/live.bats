#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Every command that reads runs, on one that is still being recorded; and what a run without epochs
# is told about them.

load run_helpers

# Starts a job that lasts until `stop` exists, and waits for its first second of readings.
start_job() {
	"$STRAIN" run -o live.strain --epoch-pattern 'epoch (?<epoch>\d+)' -- \
		sh -c 'echo epoch 1; while [ ! -e stop ]; do sleep 0.05; done; echo epoch 2' \
		>job.out 2>job.err 3>&- &
	job=$!
	eventually has_readings
}

has_readings() {
	[ "$("$STRAIN" sql --csv live.strain \
		"SELECT count(*) > 100 AND EXISTS (SELECT * FROM span) FROM samples" 2>/dev/null | tail -n 1)" = 1 ]
}

valid_json() {
	/usr/bin/python3 -c 'import json, sys; json.load(sys.stdin)'
}

teardown() {
	touch stop
	[ -z "${job:-}" ] || wait "$job" || true
}

@test "all commands read a run that is still being recorded" {
	start_job
	run -0 --separate-stderr "$STRAIN" show live.strain
	[[ "${lines[0]}" == "live "*"live" ]]
	[ -z "$stderr" ]
	"$STRAIN" show --json live.strain >show.json
	/usr/bin/python3 -c 'import json
run = json.load(open("show.json"))
assert run["run"]["state"] == "live" and run["run"]["exit_status"] is None, run["run"]
assert run["epochs"][0]["open"] is True, run["epochs"]'
	run -0 --separate-stderr "$STRAIN" ls .
	[[ "${lines[1]}" == "live "*" live "* ]]
	"$STRAIN" ls --json . | valid_json
	"$STRAIN" export --format json live.strain | valid_json
	[ "$("$STRAIN" export live.strain | wc -l)" -gt 100 ]
	run -0 --separate-stderr "$STRAIN" report live.strain -o live.html || [[ "$stderr" == *"without HTML pages"* ]]
	[ "$(run_key live.strain state)" != finished ]
	touch stop
	wait "$job"
	[ "$(run_key live.strain state)" = finished ]
	run -0 "$STRAIN" show live.strain
	[[ "${lines[0]}" == "live "*"exit 0"* ]]
}

@test "a run without epochs is told only what would have given it some" {
	"$STRAIN" run -o without.strain sleep 1.2
	"$STRAIN" run -o unmatched.strain --epoch-pattern 'epoch' sleep 1.2
	sleep 1.6 3>&- &
	"$STRAIN" run -o attached.strain --pid $!
	# What else is to be tried depends on the machine's load, and with it where lines are broken.
	run -0 bash -c '"$STRAIN" show without.strain | tr -s " \n" " "'
	[[ "$output" == *" Hint "*--epoch-pattern* ]]
	run -0 bash -c '"$STRAIN" show unmatched.strain | tr -s " \n" " "'
	[[ "$output" == *--epoch-pattern* && "$output" != *"strain mark"* ]]
	run -0 "$STRAIN" show attached.strain
	[[ "$output" != *epoch-pattern* ]]
}
