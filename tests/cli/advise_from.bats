#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# strain advise --from: a recorded job on another machine.

load messages

setup() {
	FOLDER=$(mktemp -d /var/tmp/strain-advise-test-XXXXXX)
	cd "$FOLDER" || return
	cat >job.sh <<-'EOF'
		echo started >>started
		i=0
		while [ $i -lt "$1" ]; do
			i=$((i + 1))
			"$STRAIN" mark iteration $i 8
			sleep 0.02
		done
	EOF
}

teardown() {
	cd /
	rm -rf "$FOLDER"
}

record() { # NAME [ITERATIONS]
	"$STRAIN" run -o "$1" --no-verdict -- sh job.sh "${2:-80}"
}

# An expression over the answer.
field() { # EXPRESSION
	python3 -c 'import json, sys
a = json.load(open("answer.json"))
print(eval(sys.argv[1], {}, {"a": a, "cases": a["cases"]}))' "$1"
}

@test "each change alone and all together, and nothing is run" {
	record a
	run -0 --separate-stderr "$STRAIN" advise --from a.strain --json --cpus 64 --memory 1TB --disk-read 500MB/s --cpu-speed 2x
	echo "$output" | tee answer.json
	[ "$(wc -l <started)" -eq 1 ]
	[ "$(ls -d -- *.advice 2>/dev/null | wc -l)" -eq 0 ]
	[ "$(field '[c["change"].split()[0] for c in cases]')" = "['as', 'CPUs', 'memory', 'storage', 'CPU', 'all']" ]
	[ "$(field 'cases[0]["gain"] == 1 and cases[0]["observed"]')" = True ]
	[ "$(field 'cases[1]["values"]["cpus"], cases[2]["values"]["memory"], cases[3]["values"]["disk_read"]')" = \
		"(64, 1000000000000, 500000000)" ]
	[ "$(field 'all(c["rate_low"] <= c["rate"] <= c["rate_high"] for c in cases)')" = True ]
	[ "$(field 'abs(cases[4]["gain"] - 2) < 0.01 and not cases[4]["observed"]')" = True ]
	# With sanitizers, the program that marks reads files itself.
	[ "$(field 'cases[2]["note"] in ("it reads no files while it iterates", "all data already comes from the page cache")')" = True ]
	python3 - "$SOURCE_ROOT" <<-'EOF'
		import json, sys
		from pathlib import Path
		sys.path.insert(0, sys.argv[1] + "/tests/cli")
		sys.dont_write_bytecode = True
		import json_keys
		found = {}
		json_keys.walk(json.loads(Path("answer.json").read_text()), "", found)
		known = json_keys.documented(Path(sys.argv[1]) / "docs/json.md")["strain advise --from"]
		wrong = list(json_keys.compare("strain advise --from", known, found))
		assert not wrong, wrong
	EOF
}

@test "without a change each resource is doubled, for the runs of a folder" {
	mkdir kept.advice
	record kept.advice/01-now
	record kept.advice/02-verify # under a limit: not comparable
	run -0 --separate-stderr "$STRAIN" advise --from kept.advice
	[[ ${lines[0]} == "kept.advice/01-now.strain: batch size 8,"* ]]
	[[ $output == *"CPU speed 2x"* ]]
	[[ $output == *"based on 1 run;"* ]]
}

@test "--verify runs the job under the limits" {
	record a 150
	run -0 --separate-stderr "$STRAIN" advise --from a.strain --json --cpus 1 --gpu-speed 2x --verify --in-place --limit 20s -o kept
	echo "$output" | tee answer.json
	echo "$stderr"
	[ "$(wc -l <started)" -eq 3 ] # recorded, again, on one CPU
	[ "$(field 'a["in_place"], a["in_place_reason"] is None')" = "(True, False)" ]
	[ "$(field 'cases[0]["measured"] > 0 and cases[0]["error"] is None')" = True ]
	[ "$(field 'abs(cases[1]["rate"] * cases[0]["measured"] / cases[0]["rate"] / cases[1]["measured"] - 1 - cases[1]["error"]) < 1e-6')" = True ]
	[ "$(field 'cases[2]["measured"], "not measured: this machine cannot change the speed" in cases[2]["note"]')" = "(None, True)" ]
	[ -f kept/02-what-if.strain ]
}

# Reads all its files in each epoch, in random order.
reader() { # FILES
	local i
	mkdir data
	for ((i = 0; i < $1; i++)); do
		head -c 2000000 /dev/urandom >"data/$i"
	done
	cat >reader.py <<-'EOF'
		import os, random, sys, time
		import strain
		files = sorted("data/" + name for name in os.listdir("data"))
		for _ in strain.epochs(range(int(sys.argv[1]))):
		    random.shuffle(files)
		    for name in strain.iterations(files, samples=4):
		        with open(name, "rb", buffering=0) as file:
		            while file.read(1 << 16):
		                pass
		        time.sleep(0.03)
	EOF
}

@test "--verify under a limit of memory: the run has a page cache of its own, and the rate is that of its third epoch" {
	"$STRAIN" run --no-verdict -o can --memory 1GB -- true 2>/dev/null || skip "no cgroup limits memory here"
	reader 60
	mkdir temporary
	export TMPDIR=$PWD/temporary
	"$STRAIN" run -o a --no-verdict -- python3 reader.py 4
	run -0 --separate-stderr "$STRAIN" advise --from a.strain --json --memory 90MB --verify --in-place -o kept
	echo "$output" | tee answer.json
	echo "$stderr"
	[[ $stderr == *"run 2 of 2: three epochs, of which two fill the page cache"* ]]
	[ "$(field 'cases[0]["page_cache_measured"] > 0.6, cases[0]["measured"] > 0')" = "(True, True)" ]
	# All of it was in the page cache, and the limit holds about half of it.
	[ "$(field 'cases[1]["measured"] > 0 and 0.03 < cases[1]["page_cache_measured"] < 0.9')" = True ]
	[ "$(field 'abs(cases[1]["page_cache_measured"] - cases[1]["page_cache_ratio"]) < 0.3')" = True ]
	[[ "$(field 'cases[1]["note"]')" == *"the page cache had "*" % of the bytes read, expected: "* ]]
	[ -z "$(ls -A temporary)" ]
	# One epoch is too few.
	run -0 --separate-stderr "$STRAIN" advise --from a.strain --json --memory 90MB --verify --in-place -o one -- python3 reader.py 1
	echo "$output" | tee answer.json
	[[ "$(field 'cases[1]["measured"], cases[1]["note"]')" == "(None, "*"not measured: its second epoch did not end"* ]]
	[ "$(field 'cases[1]["page_cache_measured"]')" = None ]
	# A limit of time in which there are no three.
	run -0 --separate-stderr "$STRAIN" advise --from a.strain --json --memory 90MB --verify --in-place --limit 5s -o short
	echo "$output" | tee answer.json
	[[ "$(field 'cases[1]["note"]')" == *"not measured: "*"the 3 epochs that it needs take about "*": set --limit"* ]]
}

@test "a run that others can write supplies no command" {
	record a
	chmod 666 a.strain
	run -1 --separate-stderr "$STRAIN" advise --from a.strain --cpus 1 --verify --limit 5s
	echo "$stderr"
	[ "$(wc -l <started)" -eq 1 ]
	[[ $stderr == *"cannot restart its job"* ]]
	[[ $stderr == *"--verify -- COMMAND..."* ]]
	"$STRAIN" advise --from a.strain --cpus 1 >/dev/null # computing needs no command
}

@test "what is wrong with the options and the runs" {
	record none 0
	run -1 --separate-stderr "$STRAIN" advise --from none.strain
	[[ $stderr == *"no run has the time of an iteration"* ]]
	echo text >broken.strain
	run -1 --separate-stderr "$STRAIN" advise --from broken.strain
	[ -n "$stderr" ]
	run -1 --separate-stderr "$STRAIN" advise --from missing
	[[ $stderr == *"missing"* ]]
	local wrong
	for wrong in "--from" "--from a --gpu-speed 0x" "--from a --cpu-speed x" "--from a --disk-read 5" "--from a --thesis" \
		"--from a -- true" "--gpu-speed 2x -- true" "--stalls --verify -- true"; do
		# shellcheck disable=SC2086
		run -2 --separate-stderr "$STRAIN" advise $wrong
		echo "$wrong: $stderr"
		[ "${#stderr_lines[@]}" -eq 1 ]
	done
}
