#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Iterations and phases in strain show: of a run made of arithmetic, and of recorded ones.

load run_helpers

setup_file() {
	cd "$BATS_FILE_TMPDIR" || return
	"$BUILD_ROOT/tests/tools/make_run" train.strain 30 10ms 0 900 3
}

setup() {
	cd "$BATS_FILE_TMPDIR" || return
	unset COLUMNS STRAIN_DIR NO_COLOR
}

@test "iterations, phases with intervals, where the rest of the run went, the slowest" {
	run -0 --separate-stderr "$STRAIN" show train.strain
	[ -z "$stderr" ]
	diff - <(sed -n '/^ITERATIONS/,/^EPOCH/p' <<<"$output" | cut -c1-76 | sed 's/ *$//') <<-'EOF'
		ITERATIONS     MEAN   MEDIAN     95 %     99 %  SLOWEST  SAMPLES/S
		       899  23.4 ms  26.3 ms  30.9 ms  55.5 ms   119 ms      1,369
		
		PHASE       SHARE  95 % CI          MEAN   MEDIAN     95 %  LONGEST  WHOLE R
		data         45 %  38 to 52 %    10.6 ms  15.8 ms  18.6 ms   101 ms      9.6
		transfer    3.3 %  2.9 to 3.7 %  0.77 ms  0.74 ms  0.95 ms  1.07 ms     691
		forward      16 %  14 to 18 %    3.84 ms  3.72 ms  4.75 ms  5.35 ms      3.5
		backward     27 %  24 to 31 %    6.39 ms  6.18 ms  7.90 ms  8.91 ms      5.8
		optimizer   5.5 %  4.8 to 6.2 %  1.28 ms  1.24 ms  1.58 ms  1.78 ms      1.2
		other       2.2 %  1.9 to 2.5 %  0.51 ms   494 us  0.63 ms  0.71 ms     461
		validation      -                      -        -        -        -      2.2
		checkpoint      -                      -        -        -        -     720
		Outside   3.0 s before the first iteration; 2.9 s validation, checkpoints an
		          the last
		Excluded  the first iteration: warm-up
		
		SLOWEST      AT  EPOCH  ITERATION  DIFFERENCES
		 119 ms  11.0 s      2          0  data 101 ms instead of 15.8 ms; read from
		 109 ms  19.0 s      3          0  data 92.3 ms instead of 15.8 ms; host sta
		 107 ms   5.8 s      1         96  data 90.7 ms instead of 15.8 ms; read fro
		
		EPOCH   TIME  OVERALL SAMPLES/S  CPUS  GPU BUSY  HOST PSS  GPU MEMORY  READ
	EOF
}

@test "--iterations adds phases by epoch, workers, and more slow ones" {
	run -0 "$STRAIN" show --iterations train.strain
	[[ "$output" == *$'\n'"EPOCH  ITERATIONS  SAMPLES/S  OUTSIDE   data  transfer"*"checkpoint"$'\n'* ]]
	[[ "$output" == *"PREPARED BY"*"PER SAMPLE"*"CPU TIME"* ]]
	[[ "$output" == *$'\n'"worker 0 "*" 300    9,600 "*" ms "* ]]
	[[ "$output" == *$'\n'"process 100002 "* ]]
	[ "$(sed -n '/^SLOWEST/,/^$/p' <<<"$output" | grep -c ' instead of ')" = 10 ]
	[ "$("$STRAIN" show --all train.strain | grep -c "PREPARED BY")" = 1 ]
}

@test "--json has every figure, and times that add up" {
	"$STRAIN" show --json train.strain >"$BATS_TEST_TMPDIR/run.json"
	python3 - "$BATS_TEST_TMPDIR/run.json" <<-'EOF'
		import json, sys
		run = json.load(open(sys.argv[1]))
		i = run["iterations"]
		assert i["missing"] is None and i["count"] == 900 and i["steady"] == 899, i
		assert i["mean_s_low"] < i["mean_s"] < i["mean_s_high"], i
		parts = ["startup_s", "total_s", "apart_s", "between_s", "unrecorded_s", "after_s"]
		assert abs(sum(i[p] for p in parts) - 30) < 1e-6, i
		phases = {p["phase"]: p for p in run["phases"]}
		shares = [p["share_ratio"] for p in phases.values() if not p["apart"]]
		assert abs(sum(shares) - 1) < 1e-9, shares
		assert phases["validation"]["share_ratio"] is None
		data = phases["data"]
		assert data["share_low_ratio"] < data["share_ratio"] < data["share_high_ratio"]
		for e in run["phases_by_epoch"]:
		    whole = sum(e["phases_s"].values()) + e["outside_s"] + e["unrecorded_s"]
		    assert abs(whole - e["seconds"]) < 1e-6, e
		assert len(run["workers"]) == 3 and run["workers"][2]["cpu_s"] is None
		assert len(run["ranks"]) == 1 and run["ranks"][0]["iterations"] == 900
		assert run["ranks"][0]["waits_ratio"] is None and not run["ranks"][0]["slowest"]
		slow = run["slowest_iterations"]
		assert len(slow) == 10 and slow[0]["differences"][0]["what"] == "data", slow[0]
	EOF
}

@test "numbers as the job gave them, to the last digit" {
	cp "$BATS_FILE_TMPDIR/train.strain" numbers.strain
	python3 - <<-'EOF'
		import sqlite3
		run = sqlite3.connect("numbers.strain")
		run.execute("UPDATE span SET number = 9223372036854775806 WHERE kind = 'epoch' AND number = 3")
		thread, about = 4242, '{"process":3}'
		run.execute("INSERT INTO span (name, kind, start_ns, end_ns, thread, number, samples, attributes)"
		    " VALUES ('iteration', 'iteration', 27000000000, 28500000000, ?, 9223372036854775807, 32, ?)",
		    (thread, about))
		run.commit()
	EOF
	run -0 --separate-stderr "$STRAIN" show --iterations numbers.strain
	[ -z "$stderr" ]
	[[ "$output" != *e+18* ]]
	[[ "$output" == *" 9,223,372,036,854,775,807  "* ]] # of the slowest iteration
	[[ "$output" == *$'\n'"9,223,372,036,854,775,806  "* ]] # of the last epoch
	run -0 "$STRAIN" show --json numbers.strain
	[[ "$output" == *'"number": 9223372036854775807'* && "$output" == *'"epoch": 9223372036854775806'* ]]
}

@test "of several ranks: who waits for whom, and of which the figures are" {
	"$BUILD_ROOT/tests/tools/make_run" ranks.strain 30 10ms 0 900 0 3
	run -0 --separate-stderr "$STRAIN" show ranks.strain
	[ -z "$stderr" ]
	prints rank 2 3 4,107
	diff - <(sed -n '/^RANK/,/^SLOWEST/p' <<<"$output" | sed 's/  the slowest$//') <<-'EOF'
		RANK  PID   ITERATIONS  SAMPLES/S   MEDIAN  OWN WORK  WAITS
		   0  6001         900      1,369  26.3 ms   9.35 ms   60 %
		   1  6002         900      1,369  26.3 ms   9.35 ms   60 %
		   2  4242         900      1,369  26.3 ms   23.4 ms    0 %

		SLOWEST      AT  EPOCH  ITERATION  DIFFERENCES
	EOF
	COLUMNS=40 run -0 "$STRAIN" show ranks.strain
	[[ "$output" == *$'\n'"RANK  OWN WORK  WAITS"$'\n'* ]]
	slowest='["%(rank)s %(pid)s" % r for r in d["ranks"] if r["slowest"]]'
	[ "$(json "$slowest" "$STRAIN" show ranks.strain)" = "['2 4242']" ]
	"$BUILD_ROOT/tests/tools/make_run" ranks.strain 30 10ms 0 300 0 20
	run -0 "$STRAIN" show ranks.strain
	[[ "$output" == *$'\n'"  19  4242 "* && "$output" != *$'\n'"  18  6019 "* ]]
	prints 4 "(--iterations)"
	[ "$(json "$slowest" "$STRAIN" show ranks.strain)" = "['19 4242']" ]
	run -0 "$STRAIN" show --iterations ranks.strain
	[[ "$output" == *$'\n'"  18  6019 "*$'\n'"  19  4242 "* && "$output" != *"(--iterations)"* ]]
	run -0 "$STRAIN" show --iterations train.strain
	[[ "$output" != *RANK* && "$output" != *"rank "* ]]
}

@test "spans that the author named: nested, the longest first, and how many more" {
	"$BUILD_ROOT/tests/tools/make_run" own.strain 30 10ms 0 900 0 0 3
	run -0 --separate-stderr "$STRAIN" show own.strain
	[ -z "$stderr" ]
	diff - <(sed -n '/^SPAN/,/^$/p' <<<"$output") <<-'EOF'
		SPAN             TIMES   MEDIAN  LONGEST   TOTAL  SHARE  OF
		step               900  26.3 ms   119 ms  21.1 s  100 %  iterations
		  <b>part</b> 0    900  13.2 ms  59.4 ms  10.6 s   50 %  iterations
		  <b>part</b> 1    900  6.58 ms  29.7 ms   5.3 s   25 %  iterations
		  <b>part</b> 2    900  3.29 ms  14.9 ms   2.6 s   12 %  iterations

	EOF
	[[ "$output" != *"(--all)"* ]]
	for width in 40 60 80 120; do
		COLUMNS=$width run -0 "$STRAIN" show own.strain
		[[ "$output" == *$'\n'"SPAN "* ]]
		for line in "${lines[@]}"; do
			[ "${#line}" -le "$width" ]
		done
	done
	"$STRAIN" show --json own.strain >"$BATS_TEST_TMPDIR/own.json"
	python3 - "$BATS_TEST_TMPDIR/own.json" <<-'EOF'
		import json, sys
		spans = json.load(open(sys.argv[1]))["spans"]
		assert [s["parent"] for s in spans] == [None, 0, 0, 0], spans
		assert spans[0]["of"] == "iterations" and abs(spans[1]["share_ratio"] - 0.5) < 1e-3
		assert spans[3]["name"] == "<b>part</b> 2" and spans[3]["count"] == 900
	EOF
	"$BUILD_ROOT/tests/tools/make_run" own.strain 30 10ms 0 90 0 0 15
	run -0 "$STRAIN" show own.strain
	prints 4 "(--all)"
	[[ "$output" != *"part</b> 11"* ]]
	run -0 "$STRAIN" show --all own.strain
	[[ "$output" == *"part</b> 14"* && "$output" != *"(--all)"* ]]
}

@test "without marks nothing is shown, and --json says why" {
	"$BUILD_ROOT/tests/tools/make_run" bare.strain 3
	run -0 "$STRAIN" show --iterations bare.strain
	[[ "$output" != *ITERATIONS* && "$output" != *PHASE* ]]
	run -0 "$STRAIN" show --json bare.strain
	[[ "$output" == *'"missing": "'*iterations* ]]
	[[ "$output" == *'"p50_s": null'* ]]
}

@test "no line is wider than the terminal" {
	for width in 40 60 80 120; do
		COLUMNS=$width run -0 "$STRAIN" show --iterations train.strain
		for line in "${lines[@]}"; do
			[ "${#line}" -le "$width" ]
		done
	done
}

@test "when a slow iteration was is said on narrow terminals too" {
	COLUMNS=40 run -0 "$STRAIN" show train.strain
	[[ "$output" == *$'\n'"SLOWEST      AT  DIFFERENCES"$'\n'" 119 ms  11.0 s  data 101 ms"* ]]
}

@test "a recorded job: what it marked, and its shares" {
	"$STRAIN" run -o run.strain --force "$BUILD_ROOT/tests/tools/marking" train >out 2>err
	"$STRAIN" show --json run.strain >"$BATS_TEST_TMPDIR/run.json"
	python3 - "$BATS_TEST_TMPDIR/run.json" <<-'EOF'
		import json, sys
		run = json.load(open(sys.argv[1]))
		assert run["iterations"]["count"] == 30, run["iterations"]
		assert {p["phase"] for p in run["phases"]} >= {"data", "forward"}, run["phases"]
		assert [e["iterations"] for e in run["phases_by_epoch"]] == [10, 10, 10]
		assert all(e["samples"] == 320 for e in run["phases_by_epoch"])
	EOF
}

@test "the same figures when it was cut off" {
	"$BUILD_ROOT/tests/tools/make_run" cut.strain +30 10ms 0 900 3
	run -0 --separate-stderr "$STRAIN" show cut.strain
	[[ "$output" == *$'\n'"       899  23.4 ms  26.3 ms "* ]]
}
