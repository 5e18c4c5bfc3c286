#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# strain show and strain finish: what a run says, at its end and later.

load messages

setup_file() {
	cd "$BATS_FILE_TMPDIR" || return
	"$BUILD_ROOT/tests/tools/make_run" train.strain 20
}

setup() {
	cd "$BATS_FILE_TMPDIR" || return
	unset COLUMNS STRAIN_DIR NO_COLOR
}

@test "show prints verdict, epochs, processes, devices, cost and what is missing" {
	run -0 --separate-stderr "$STRAIN" show train.strain
	[ -z "$stderr" ]
	[[ "${lines[0]}" == "train   20.0 s   exit 0   batch_size=32 workers=2" ]]
	[[ "${lines[1]}" == "python3 train.py --workers 2" ]]
	[[ "$output" == *$'\nVerdict   '* ]]
	prints EPOCH TIME "OVERALL SAMPLES/S" "HOST PSS" loss
	prints main "python3 train.py"
	prints loader "worker 0"
	prints "Example GPU 16GB"
	prints disk nvme0n1
	prints Recording "9.0 MB"
	prints Missing GPU "sm activity"
	[ "$(json 'd["verdict"]["bottleneck"], d["verdict"]["confidence"], round(d["job"]["cpus_used"]), d["job"]["host_cpus"],
		[(m["subject"], m["metrics"]) for m in d["missing"]]' "$STRAIN" show train.strain)" = \
		"('unknown', 'low', 1, 4, [('GPU sm activity', 'strain.gpu.sm.activity')])" ]
}

@test "without a run, the newest here or in STRAIN_DIR is shown" {
	run -0 "$STRAIN" show
	[[ "${lines[0]}" == "train   20.0 s"* ]]
	cd /
	STRAIN_DIR=$BATS_FILE_TMPDIR run -0 "$STRAIN" show
	[[ "${lines[0]}" == "train   20.0 s"* ]]
	mkdir -p "$BATS_TEST_TMPDIR/empty"
	cd "$BATS_TEST_TMPDIR/empty"
	fails_with 1 -- "$STRAIN" show
}

@test "no line is wider than the terminal, and what is left out is said" {
	for width in 40 60 80 120 200; do
		COLUMNS=$width run -0 "$STRAIN" show train.strain
		for line in "${lines[@]}"; do
			[ "${#line}" -le "$width" ]
		done
		[ "$width" -gt 60 ] || prints "$width"
		[ "$width" -lt 200 ] || [[ "$output" != *" $width "* ]]
	done
	# Where there is no terminal nothing is left out or shortened.
	run -0 "$STRAIN" show train.strain
	[[ "$output" != *…* ]]
	[[ "$output" == *"FROM STORAGE"*"TO STORAGE"* ]]
}

@test "what a job calls itself cannot reach the terminal" {
	run -0 "$STRAIN" show --all train.strain
	[[ "$output" != *$'\033'* ]]
}

@test "colour is for terminals only, and not under NO_COLOR" {
	script -qec "'$STRAIN' show train.strain" /dev/null >"$BATS_TEST_TMPDIR/coloured"
	grep -q $'\033\\[1m' "$BATS_TEST_TMPDIR/coloured"
	NO_COLOR=1 script -qec "'$STRAIN' show train.strain" /dev/null >"$BATS_TEST_TMPDIR/plain"
	run ! grep -q $'\033\\[' "$BATS_TEST_TMPDIR/plain"
}

@test "--json is one document with numbers in seconds and bytes" {
	"$STRAIN" show --json train.strain >"$BATS_TEST_TMPDIR/run.json"
	python3 - "$BATS_TEST_TMPDIR/run.json" <<-'EOF'
		import json, sys
		run = json.load(open(sys.argv[1]))
		assert run["run"]["duration_s"] == 20, run["run"]
		assert run["run"]["labels"] == {"batch_size": "32", "workers": "2"}
		assert run["run"]["exit_status"] == 0
		assert [e["epoch"] for e in run["epochs"]] == [1, 2, 3]
		assert run["processes"][0]["pid"] == 4242
		assert run["processes"][0]["cpu_seconds"] > 1
		assert any(p["command"].find("<script>") >= 0 for p in run["processes"])
		assert run["gpus"][0]["memory_bytes"] == 17179869184
		assert run["missing"][0]["reason"]
		assert run["verdict"]["confidence"] == "low"
		assert run["job"]["throttled_ratio"] is None
	EOF
}

@test "what CPU time went into, by role and by phase" {
	local file="$SOURCE_ROOT/tests/traces/schema-1003-onednn.strain"
	run -0 --separate-stderr "$STRAIN" show "$file"
	prints More "strain show --all" # which has the tables
	[[ "$output" != *"CPU TIME OF"* ]]
	run -0 --separate-stderr "$STRAIN" show --all "$file"
	prints "training thread" "84 %" "97 %"
	prints backward "73 %"
	"$STRAIN" show --json "$file" >"$BATS_TEST_TMPDIR/run.json"
	python3 - "$BATS_TEST_TMPDIR/run.json" <<-'EOF'
		import json, sys
		time = json.load(open(sys.argv[1]))["cpu_time"]
		assert time["missing"] is None and time["phases_missing"] is None
		roles = {bar["of"]: bar for bar in time["roles"]}
		phases = {bar["of"]: bar for bar in time["phases"]}
		assert {of: bar["samples"] for of, bar in roles.items()} == {"training thread": 132, "workers": 25}
		assert {of: bar["samples"] for of, bar in phases.items()} == {"forward": 34, "backward": 96, "optimizer": 2}
		for bar in time["roles"] + time["phases"]:
		    assert sum(c["samples"] for c in bar["classes"]) == bar["samples"]
		assert roles["workers"]["functions"][0]["function"] == "dataset_prepare (train)"
		assert abs(sum(bar["share_ratio"] for bar in time["phases"]) - 1) < 1e-9
	EOF
}

@test "the line to try also has advice whose cause takes nearly all of the time, without a figure" {
	"$STRAIN" show --json "$SOURCE_ROOT/tests/truth/logistic.strain" >"$BATS_TEST_TMPDIR/run.json"
	python3 - "$BATS_TEST_TMPDIR/run.json" <<-'EOF'
		import json, sys
		verdict = json.load(open(sys.argv[1]))["verdict"]
		first, second = verdict["suggestions"][:2]
		assert 1 < first["times_faster"]["value"] < 2 and second["gain"] == "unknown", (first, second)
		assert verdict["next"].startswith("to try: " + first["action"]), verdict["next"]
		assert verdict["next"].endswith("; or " + second["action"]), verdict["next"]
	EOF
}

@test "why no CPU time was sampled is one line" {
	# Why there are no samples, as --json has it: also in `show`, on a line of its own.
	not_sampled() { # RUN
		local reason
		reason=$(json 'd["cpu_time"]["roles"] == [] and d["cpu_time"]["missing"]' "$STRAIN" show "$1")
		run -0 --separate-stderr "$STRAIN" show --all "$1"
		[ -n "$reason" ] && [[ "$output" == *$'\nCPU time  '*"$reason"$'\n'* ]] && [[ "$output" != *"CPU TIME OF"* ]]
	}
	"$STRAIN" run --no-profile -o unsampled.strain -- true 2>/dev/null
	not_sampled unsampled.strain
	prints "CPU time" --no-profile
	not_sampled "$SOURCE_ROOT/tests/traces/schema-1001-onednn.strain"
	# Forbidden or not: there are samples or a reason.
	"$STRAIN" run -o perhaps.strain -- true 2>/dev/null
	not_sampled perhaps.strain
}

@test "finish prints at most seven lines, none over 120 columns, and keeps the summary" {
	cp train.strain "$BATS_TEST_TMPDIR/again.strain"
	cd "$BATS_TEST_TMPDIR"
	run -0 --separate-stderr "$STRAIN" finish again.strain
	[ -z "$output" ]
	[ "${#stderr_lines[@]}" -le 7 ]
	[ "${#stderr_lines[@]}" -ge 3 ]
	[[ "${stderr_lines[0]}" == "strain: "* ]]
	for line in "${stderr_lines[@]}"; do
		[ "${#line}" -le 120 ]
	done
	[ "${stderr_lines[-2]}" = "        strain show again.strain" ]
	[ "${stderr_lines[-1]}" = "        strain report again.strain -o report.html" ]
	run -0 "$STRAIN" sql --csv again.strain "SELECT count(*) > 100 FROM summary"
	[ "${lines[1]}" = 1 ]
	run -0 "$STRAIN" sql --csv again.strain "SELECT round(value) FROM summary_by_name
		WHERE entity_kind = 'job' AND metric = 'process.cpu.time' AND aggregate = 'total'
		AND epoch IS NULL"
	[ "${#lines[@]}" = 2 ]
	# Any SQLite shell reads it.
	[ "$(sqlite3 again.strain "SELECT aggregate FROM summary_by_name
		WHERE entity_kind = 'job' AND metric = 'process.cpu.time' AND epoch = 2
		ORDER BY aggregate" | paste -s -d ' ')" = 'max mean p50 p95 total' ]
	"$STRAIN" show --json again.strain >read.json
	"$STRAIN" show --json "$BATS_FILE_TMPDIR/train.strain" >computed.json
	python3 -c 'import json
a, b = (json.load(open(n)) for n in ("read.json", "computed.json"))
assert a["processes"] == b["processes"] and a["epochs"] == b["epochs"] and a["job"] == b["job"]'
}

@test "a run elsewhere is named with its path" {
	cp train.strain "$BATS_TEST_TMPDIR/there.strain"
	run -0 --separate-stderr "$STRAIN" finish "$BATS_TEST_TMPDIR/there.strain"
	[ "${stderr_lines[-2]}" = "        strain show $BATS_TEST_TMPDIR/there.strain" ]
	[ "${stderr_lines[-1]}" = "        strain report $BATS_TEST_TMPDIR/there.strain -o report.html" ]
}

@test "the commands that end a run can be copied, whatever the file is called" {
	cd "$BATS_TEST_TMPDIR"
	cp "$BATS_FILE_TMPDIR/train.strain" "it's \$(mine).strain"
	run -0 --separate-stderr "$STRAIN" finish "it's \$(mine).strain"
	for line in "${stderr_lines[@]: -2}"; do
		[[ "$line" == "        strain "* ]]
		bash -c "strain() { \"$STRAIN\" \"\$@\"; }; $line" 2>said ||
			grep -q 'built without HTML pages' said
	done
	[ -s report.html ] || [[ "$("$STRAIN" report -o x.html 2>&1)" == *"built without HTML pages"* ]]
}

@test "a run without an end is shown" {
	"$BUILD_ROOT/tests/tools/make_run" "$BATS_TEST_TMPDIR/cut.strain" +5
	run -0 --separate-stderr "$STRAIN" show "$BATS_TEST_TMPDIR/cut.strain"
	[[ "${lines[0]}" == "cut   "*"   live"* ]] || [[ "${lines[0]}" == "cut   "*"cut off"* ]]
	[[ "$output" == *"main    python3 train.py"* ]]
}

@test "damaged blocks are left out and counted" {
	cp train.strain "$BATS_TEST_TMPDIR/bad.strain"
	python3 - "$BATS_TEST_TMPDIR/bad.strain" <<-'EOF'
		import sqlite3, sys
		run = sqlite3.connect(sys.argv[1])
		run.execute("UPDATE block SET payload = zeroblob(length(payload)) WHERE entity = 3")
		run.commit()
	EOF
	run -0 --separate-stderr "$STRAIN" show "$BATS_TEST_TMPDIR/bad.strain"
	[[ "$stderr" =~ bad.strain:.*[1-9] ]]
	[[ "$output" == *"main    python3 train.py"* ]]
	[[ "$output" == *"loader  worker 0"* ]]
	run -0 --separate-stderr "$STRAIN" show --json "$BATS_TEST_TMPDIR/bad.strain"
	python3 -c 'import json, sys; json.loads(sys.argv[1])' "$output"
}

@test "what is no run gets one line" {
	cd "$BATS_TEST_TMPDIR"
	: >empty.strain
	echo "not a run" >text.strain
	head -c 10000 "$BATS_FILE_TMPDIR/train.strain" >short.strain
	mkdir none
	for file in empty.strain text.strain none nowhere.strain; do
		fails_with 1 "$file" -- "$STRAIN" show "$file"
	done
	run --separate-stderr "$STRAIN" show short.strain # as much as can be read
	[ "$status" -le 1 ]
	fails_with 1 text.strain -- "$STRAIN" finish text.strain
}

@test "wrong usage says what was expected" {
	fails_with 2 "'--frob'" "strain show --help" -- "$STRAIN" show --frob
	fails_with 2 "'b'" "strain show --help" -- "$STRAIN" show a b
	run -0 "$STRAIN" show --help
	prints "strain show" RUN
	prints --json
	prints --all
}
