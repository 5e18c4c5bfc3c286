#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# strain export: readings as CSV and JSON.

load messages

setup_file() {
	cd "$BATS_FILE_TMPDIR" || return
	"$BUILD_ROOT/tests/tools/make_run" train.strain 5
}

setup() {
	cd "$BATS_FILE_TMPDIR" || return
}

@test "CSV has a header and every reading" {
	"$STRAIN" export train.strain --format csv >"$BATS_TEST_TMPDIR/all.csv"
	"$STRAIN" sql --csv train.strain "SELECT count(*) FROM samples" >"$BATS_TEST_TMPDIR/count"
	python3 - "$BATS_TEST_TMPDIR" <<-'EOF'
		import csv, sys
		rows = list(csv.DictReader(open(sys.argv[1] + "/all.csv")))
		wanted = int(open(sys.argv[1] + "/count").read().split()[1])
		assert len(rows) == wanted, (len(rows), wanted)
		assert list(rows[0]) == ["kind", "key", "name", "metric", "unit", "t_s", "value"]
		assert {"host", "job", "process", "gpu"} <= {row["kind"] for row in rows}
		assert all(float(row["t_s"]) <= 5 for row in rows)
	EOF
}

@test "--metric and --entity choose" {
	run -0 "$STRAIN" export train.strain -m hw.power -m hw.energy
	for line in "${lines[@]:1}"; do
		[[ "$line" == "gpu,"*",hw.power,W,"* ]] || [[ "$line" == "gpu,"*",hw.energy,J,"* ]]
	done
	run -0 "$STRAIN" export train.strain --metric process.cpu.time --entity job
	[[ "${lines[1]}" == "job,job,train.py,process.cpu.time,s,"* ]]
	run ! grep -q "^process," <<<"$output"
	fails_with 1 train.strain "'nope'" -- "$STRAIN" export train.strain --metric nope
}

@test "--every makes buckets: a counter's last value, a gauge's mean" {
	run -0 "$STRAIN" export train.strain -m process.cpu.time -e job --every 1s
	[ "${#lines[@]}" = 6 ]
	[[ "${lines[1]}" == *",s,0,"* ]]
	[[ "${lines[5]}" == *",s,4,"* ]]
	last=$("$STRAIN" sql --csv train.strain "SELECT max(value) FROM samples
		WHERE entity = 2 AND metric = 'process.cpu.time'" | tail -1)
	[ "${lines[5]##*,}" = "$last" ]
	run -0 "$STRAIN" export train.strain -m hw.gpu.memory.limit --every 2.5s
	[ "${#lines[@]}" = 3 ]
	[[ "${lines[1]}" == *",0,17179869184" ]]
	[[ "${lines[2]}" == *",2.5,17179869184" ]]
}

@test "--wide has a column for each metric and a row for each time" {
	for every in "" "--every 250ms"; do
		# shellcheck disable=SC2086 # none or two words
		"$STRAIN" export train.strain --wide $every >"$BATS_TEST_TMPDIR/wide.csv"
		# shellcheck disable=SC2086
		"$STRAIN" export train.strain --wide --json $every >"$BATS_TEST_TMPDIR/wide.json"
		# shellcheck disable=SC2086
		"$STRAIN" export train.strain --wide -f jsonl $every >"$BATS_TEST_TMPDIR/wide.jsonl"
		"$STRAIN" export train.strain ${every:---every 1s} >"$BATS_TEST_TMPDIR/long.csv"
		python3 - "$BATS_TEST_TMPDIR" <<-'EOF'
			import csv, json, sys
			folder = sys.argv[1]
			wide = list(csv.DictReader(open(folder + "/wide.csv")))
			assert list(wide[0])[:4] == ["kind", "key", "name", "t_s"]
			metrics = list(wide[0])[4:]
			assert "process.cpu.time" in metrics and len(set(metrics)) == len(metrics)
			# Every value of the long table, and no other.
			found = {}
			for row in wide:
			    for metric in metrics:
			        if row[metric]:
			            found[row["kind"], row["key"], metric, row["t_s"]] = row[metric]
			expected = {(row["kind"], row["key"], row["metric"], row["t_s"]): row["value"]
			            for row in csv.DictReader(open(folder + "/long.csv")) if row["value"]}
			assert found == expected, (len(found), len(expected))
			# A time once, and in order.
			times = [(row["kind"], row["key"], float(row["t_s"])) for row in wide]
			assert len(set(times)) == len(times)
			for before, after in zip(times, times[1:]):
			    assert before[:2] != after[:2] or before[2] < after[2]
			rows = json.load(open(folder + "/wide.json"))
			assert rows == [json.loads(line) for line in open(folder + "/wide.jsonl")]
			assert len(rows) == len(wide) and list(rows[0])[4:] == metrics
			assert all(row["process.cpu.time"] is None or row["process.cpu.time"] >= 0 for row in rows)
		EOF
	done
	run -0 "$STRAIN" export train.strain -w -e job -m process.cpu.time
	[ "${lines[0]}" = "kind,key,name,t_s,process.cpu.time" ]
	[ "${#lines[@]}" = 6 ]
	run -0 "$STRAIN" export train.strain -w -e host -m hw.power
	[ "$output" = "kind,key,name,t_s" ]
	[ "$("$STRAIN" export train.strain --json -m hw.power)" = "$("$STRAIN" export train.strain -f json -m hw.power)" ]
}

@test "JSON is one array, JSON lines a row a line" {
	"$STRAIN" export train.strain -f json -m process.cpu.time >"$BATS_TEST_TMPDIR/x.json"
	"$STRAIN" export train.strain -f jsonl -m process.cpu.time >"$BATS_TEST_TMPDIR/x.jsonl"
	python3 - "$BATS_TEST_TMPDIR" <<-'EOF'
		import json, sys
		rows = json.load(open(sys.argv[1] + "/x.json"))
		lines = [json.loads(line) for line in open(sys.argv[1] + "/x.jsonl")]
		assert rows == lines and len(rows) > 1000
		assert any(row["name"] == "<b>worker</b>" for row in rows)
	EOF
}

@test "an answer without rows is valid too" {
	run -0 "$STRAIN" export train.strain -f json -e host -m hw.power
	python3 -c 'import json, sys; assert json.loads(sys.argv[1]) == []' "$output"
	run -0 "$STRAIN" export train.strain -f jsonl -e host -m hw.power
	[ -z "$output" ]
	run -0 "$STRAIN" export train.strain -e host -m hw.power
	[ "$output" = "kind,key,name,metric,unit,t_s,value" ]
}

@test "missing readings are empty, or null" {
	cp train.strain "$BATS_TEST_TMPDIR/names.strain"
	python3 - "$BATS_TEST_TMPDIR/names.strain" <<-'EOF'
		import sqlite3, sys
		run = sqlite3.connect(sys.argv[1])
		run.execute("UPDATE entity SET name = ? WHERE id = 6", ('a,"b"\nc\x1b',))
		run.execute("UPDATE metric SET scale = 9e999 WHERE name = 'hw.power'")
		run.commit()
	EOF
	run -0 "$STRAIN" export "$BATS_TEST_TMPDIR/names.strain" -m hw.power --every 10s
	[[ "$output" == *'"a,""b""'* ]]
	[[ "$output" == *",hw.power,W,0," ]]
	run -0 "$STRAIN" export "$BATS_TEST_TMPDIR/names.strain" -f json -m hw.power
	python3 -c 'import json, sys
rows = json.loads(sys.argv[1])
assert all(row["value"] is None for row in rows) and rows[0]["name"] == "a,\"b\"\nc\x1b"' "$output"
}

@test "a reader that has seen enough is no failure worth words" {
	run -0 --separate-stderr bash -c "'$STRAIN' export train.strain | head -1"
	[ -z "$stderr" ]
	run -1 --separate-stderr bash -c "'$STRAIN' export train.strain >/dev/full"
	notes_only "No space left on device"
}

@test "wrong usage says what was expected" {
	fails_with 2 --format csv json jsonl "'xml'" "strain export --help" -- "$STRAIN" export --format xml
	fails_with 2 --every "'10'" -- "$STRAIN" export --every 10
	fails_with 2 --every 1ms -- "$STRAIN" export --every 1us
	fails_with 2 --entity "'planet'" -- "$STRAIN" export --entity planet
}
