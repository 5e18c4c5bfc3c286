#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# strain compare: runs as tables by label, repeats averaged, what differs beyond noise marked. Its words:
# words.golden.

load messages

setup_file() {
	cd "$BATS_FILE_TMPDIR" || return
	python3 "$SOURCE_ROOT/tests/cli/paper_sweep.py" "$SOURCE_ROOT/tests/traces/schema-1001-onednn.strain"
	sleep 0.1
}

setup() {
	cd "$BATS_FILE_TMPDIR" || return
	unset COLUMNS STRAIN_DIR
}

@test "compare finds out what tells runs apart" {
	run -0 --separate-stderr "$STRAIN" compare paper.sweep
	[ -z "$stderr" ]
	prints batch_size pytorch tensorflow
	prints 32 "1.210 +-0.025" "1.50 +-0.25"
	prints 128 "0.910 +-0.025" "1.50 +-0.12"
	prints 512 "[1]"
	prints 1024 - "[2]"
	prints "[1]" "2 GiB"
	prints "[2]" --epoch-pattern
	[ "$(json '[(m["name"], d["rows"], d["columns"]) for m in d["measures"]]' "$STRAIN" compare paper.sweep)" = \
		"[('epoch_seconds', ['batch_size'], ['framework'])]" ]
}

@test "cells are held against a baseline, and what is beyond noise is marked" {
	run -0 "$STRAIN" compare paper.sweep --where 'batch_size<=128' --baseline batch_size=32
	[[ "${lines[2]}" == "        32  1.210 +-0.025 "*" 1.50 +-0.25"* ]]
	[[ "${lines[3]}" == "       128  0.910 +-0.025  1.33x* "*" 1.50 +-0.12  1.000x" ]]
	prints batch_size=32 Welch Holm 2 "5 %"
	"$STRAIN" compare paper.sweep --where 'batch_size<=128' --baseline batch_size=32 --format json |
		python3 -c 'import json, sys
table = json.load(sys.stdin)
assert table["baseline"] == "batch_size=32" and table["tests"] == 2, table
cells = {(c["labels"]["batch_size"], c["labels"]["framework"]): c for c in table["cells"]}
cell = cells["128", "pytorch"]
assert cell["beyond_noise"] is True and cell["probability"] < 0.001, cell
assert abs(cell["speed_up"] - 1.21 / 0.91) < 1e-9 and cell["ratio"] is None and cell["n"] == 3
assert abs(cell["high"] - cell["mean"] - 4.302652730 * 0.01 / 3 ** 0.5) < 1e-9
assert cells["128", "tensorflow"]["beyond_noise"] is False
assert cells["32", "pytorch"]["speed_up"] is None and cells["32", "pytorch"]["is_baseline"]
assert not cell["is_baseline"] and table["baseline_from"] is None'
}

@test "of a time and a rate faster is larger, of all else it is a ratio" {
	"$STRAIN" compare paper.sweep --where 'batch_size<=128' --rows batch_size,framework --baseline batch_size=32 \
		--value epoch_seconds,samples_per_second,host_memory_peak,cpu_seconds --format json >"$BATS_TEST_TMPDIR/table"
	python3 - "$BATS_TEST_TMPDIR/table" <<-'EOF'
		import json, sys
		means, against = {}, {}
		for cell in json.load(open(sys.argv[1]))["cells"]:
		    if cell["labels"]["framework"] == "pytorch":
		        key = cell["measure"], cell["labels"]["batch_size"]
		        means[key], against[key] = cell["mean"], (cell["speed_up"], cell["ratio"])
		for measure, speed, less in (("epoch_seconds", True, True), ("samples_per_second", True, False),
		                             ("host_memory_peak", False, True), ("cpu_seconds", False, True)):
		    ratio = means[measure, "128"] / means[measure, "32"]
		    speed_up, other = against[measure, "128"]
		    found = speed_up if speed else other
		    assert (other if speed else speed_up) is None, measure
		    assert abs(found - (1 / ratio if speed and less else ratio)) < 1e-9, (measure, found, ratio)
	EOF
	run -0 "$STRAIN" compare paper.sweep --where 'batch_size<=128' --rows batch_size,framework --baseline batch_size=32 \
		--value epoch_seconds,host_memory_peak
	line_names "${lines[0]}" "s (speed-up)" "MB (ratio)"
	prints speed-up batch_size=32 ratio
	run -0 "$STRAIN" compare paper.sweep --where 'batch_size<=128' --rows batch_size,framework --baseline batch_size=32 --format csv
	[[ "${lines[0]}" == *",deviation,speed_up,ratio,probability,beyond_noise,is_baseline,words,failed,note" ]]
}

# A sweep of the runs above whose plan has a baseline.
planned_sweep() { # NAME BASELINE
	cp -r "$BATS_FILE_TMPDIR/paper.sweep" "$1.sweep"
	cat >"$1.sweep/plan.yaml" <<-EOF
		command: [x, "\${args}"]
		parameters: {batch_size: {values: [32, 128]}, framework: {values: [pytorch, tensorflow]}}
		repeats: 3
		baseline: $2
	EOF
}

# What cells are compared with, and whether that is from the plan: the arguments of compare.
baseline() {
	json '"%s %s" % (d["baseline"], d["baseline_from"] and "plan" in d["baseline_from"] and "plan")' "$STRAIN" compare "$@"
}

@test "only runs that ended well count, unless all are asked for" {
	cd "$BATS_TEST_TMPDIR"
	for outcome in unknown crash cut_off stopped success; do
		copy_run 0001-1 "ends/$outcome.strain"
		sqlite3 "ends/$outcome.strain" "INSERT OR REPLACE INTO run VALUES ('outcome', '$outcome'), ('outcome_text', 'so it is');
			INSERT INTO label VALUES ('ended', '$outcome')"
	done
	numbers() { # OPTION...: for which of them there is one
		"$STRAIN" compare ends --rows ended --value epoch_seconds --json "$@" |
			jq -r '[.cells[] | select(.n > 0) | .labels.ended] | join(" ")'
	}
	[ "$(numbers)" = "stopped success" ] || numbers
	[ "$(numbers --all)" = "crash cut_off stopped success unknown" ]
	run -0 "$STRAIN" compare ends --rows ended --value epoch_seconds
	prints unknown "[1]"
	prints "[1]" "so it is"
	fails_with 2 --layout --all -- "$STRAIN" compare ends --all --layout torres2021-table3
}

@test "without the option the plan's baseline is taken" {
	cd "$BATS_TEST_TMPDIR"
	planned_sweep a "{batch_size: 32}"
	run -0 --separate-stderr "$STRAIN" compare a.sweep --where 'batch_size<=128'
	[[ "$output" == *"0.910 +-0.025  1.33x*"* ]] || { echo "$output"; false; }
	prints speed-up batch_size=32 plan
	[ -z "$stderr" ]
	"$STRAIN" compare a.sweep --where 'batch_size<=128' --json | python3 -c 'import json, sys
table = json.load(sys.stdin)
assert table["baseline"] == "batch_size=32" and "plan" in table["baseline_from"], table'
	# the option has the last word, also to have none
	[ "$(baseline a.sweep --where 'batch_size<=128' --baseline framework=pytorch)" = "framework=pytorch None" ]
	run -0 "$STRAIN" compare a.sweep --where 'batch_size<=128' --baseline ''
	[[ "$output" != *"speed-up"* ]]
	[ "$(baseline a.sweep --where 'batch_size<=128' --baseline '')" = "None None" ]
	# runs of it that are named are its trials too; what all have in common is no matter
	[ "$(baseline a.sweep/000[13]-*.strain --rows batch_size)" = "batch_size=32 plan" ]
	run -0 --separate-stderr "$STRAIN" compare a.sweep --where batch_size=32
	[ -z "$stderr" ]
	[ "$(baseline a.sweep --where batch_size=32)" = "None None" ]
}

@test "the table that ends a sweep says the same" {
	cd "$BATS_TEST_TMPDIR"
	planned_sweep a "{batch_size: 32}"
	rm a.sweep/000[56]-*
	"$STRAIN" sweep a.sweep --json >sweep.json
	"$STRAIN" compare a.sweep --json >compare.json
	python3 - <<-'EOF'
		import json
		sweep, compare = json.load(open("sweep.json")), json.load(open("compare.json"))
		assert sweep["speed_up_of"] == compare["cells"][0]["measure"] == "epoch_seconds", sweep
		cells = {(c["labels"]["batch_size"], c["labels"]["framework"]): c for c in compare["cells"]}
		assert len(sweep["configurations"]) == len(cells) == 4
		for row in sweep["configurations"]:
		    cell = cells[row["batch_size"], row["framework"]]
		    for key in "speed_up", "probability", "beyond_noise", "is_baseline":
		        assert row[key] == cell[key], (key, row, cell)
		    assert row["epoch_seconds"] == cell["mean"], (row, cell)
		assert abs(sweep["configurations"][2]["speed_up"] - 1.21 / 0.91) < 1e-9, sweep
	EOF
	run -0 --separate-stderr "$STRAIN" sweep a.sweep
	[[ "${lines[0]}" == *" OUTCOME  SPEED-UP "*" EPOCH "* ]] || { echo "$output"; false; }
	[[ "${lines[1]}" == *" success  baseline "* ]]
	[[ "${lines[3]}" == *" success    1.33x* "* ]]
	prints speed-up batch_size=32 Welch
}

@test "a plan's baseline that the table cannot show is said, and so are plans that differ" {
	cd "$BATS_TEST_TMPDIR"
	planned_sweep a "{batch_size: 32}"
	planned_sweep b "{framework: tensorflow}"
	run -0 --separate-stderr "$STRAIN" compare a.sweep --where batch_size=128 --rows framework,batch_size
	notes_only plan baseline batch_size=32
	run -0 --separate-stderr "$STRAIN" compare a.sweep --rows framework --where 'batch_size<=128'
	notes plan baseline "'batch_size'"
	run -0 --separate-stderr "$STRAIN" compare a.sweep b.sweep --rows batch_size --columns framework --where 'batch_size<=128'
	notes a.sweep batch_size=32 b.sweep framework=tensorflow --baseline
	[[ "$output" != *"speed-up"* ]]
	planned_sweep c "{batch_size: 32}"
	[ "$(baseline a.sweep c.sweep --rows batch_size --columns framework --where 'batch_size<=128')" = "batch_size=32 plan" ]
	# beside each other, the directories are what is compared
	run -0 --separate-stderr "$STRAIN" compare a.sweep b.sweep --where 'batch_size<=128'
	[ -z "$stderr" ]
	prints speed-up a.sweep
	echo "baseline: 7" >c.sweep/plan.yaml # a plan that is wrong says nothing
	run -0 --separate-stderr "$STRAIN" compare c.sweep --where 'batch_size<=128'
	[[ "$output" != *"speed-up"* ]]
	[ -z "$stderr" ]
}

@test "rows, columns and values are what is asked for" {
	layout() {
		json 'd["rows"], d["columns"], [m["name"] for m in d["measures"]]' "$STRAIN" compare paper.sweep "$@"
	}
	run -0 "$STRAIN" compare paper.sweep --rows framework --columns batch_size --value step_seconds,outcome --where batch_size=32
	[[ "${lines[1]}" == "framework "*" 32" ]]
	[[ "$output" == *"pytorch "*"pytorch "*"success"* ]]
	[ "$(layout --rows framework --columns batch_size --value step_seconds,outcome --where batch_size=32)" = \
		"(['framework'], ['batch_size'], ['step_seconds', 'outcome'])" ]
	run -0 "$STRAIN" compare paper.sweep --rows trial,repeat --value epoch_seconds,outcome
	[[ "${lines[0]}" == "trial  repeat  "*"outcome" ]]
	[ "${#lines[@]}" -ge 15 ]
	run -0 "$STRAIN" compare paper.sweep --columns framework --rows batch_size,machine
	[[ "${lines[1]}" == "batch_size  machine "* ]]
}

@test "what is averaged though it differs is said" {
	run -0 --separate-stderr "$STRAIN" compare paper.sweep --rows batch_size --value epoch_seconds
	notes framework --rows --columns
}

@test "a label that others tell is left out, and that is said" {
	cd "$BATS_TEST_TMPDIR"
	local batch dataset samples
	for batch in 32 64 128; do
		for dataset in dt1 dt2; do
			samples=1000
			[ $dataset = dt1 ] || samples=10000
			copy_run 0001-1 "told/$batch-$dataset.strain"
			sqlite3 "told/$batch-$dataset.strain" "DELETE FROM label; INSERT INTO label VALUES
				('batch_size', '$batch'), ('dataset', '$dataset'), ('samples', '$samples'), ('rate', '$batch.5')"
		done
	done
	run -0 --separate-stderr "$STRAIN" compare told
	notes_only samples --rows
	[[ "${lines[1]}" =~ ^batch_size\ +rate\ +dt1\ +dt2$ ]] || { echo "$output"; false; } # both change together
	[ "${#lines[@]}" = 6 ]
	run -0 --separate-stderr "$STRAIN" compare told --rows batch_size,samples
	[[ "${lines[0]}" =~ ^batch_size\ +samples\  ]]
	[ -z "$stderr" ]
	fails_with 2 --value METRIC:AGGREGATE "'process.cpu.time'" -- "$STRAIN" compare told --value process.cpu.time
}

@test "what a random search drew is not told by the rest of each draw, which no other run has" {
	cd "$BATS_TEST_TMPDIR"
	local lr batch dropout
	while read -r lr batch dropout; do
		copy_run 0001-1 "drawn/of$lr.strain"
		sqlite3 "drawn/of$lr.strain" "DELETE FROM label; INSERT INTO label VALUES
			('lr', '$lr'), ('batch_size', '$batch'), ('dropout', '$dropout')"
	done <<-'EOF'
		.013 16 .1
		.2 32 .1
		.0071 16 .3
		.052 64 .3
		.0009 32 .5
	EOF
	run -0 --separate-stderr "$STRAIN" compare drawn --value epoch_seconds
	[ -z "$stderr" ] || { echo "$stderr"; false; }
	[[ "$output" == *.0071* ]] || { echo "$output"; false; }
	# a name for each draw, which all its repeats have, tells nothing either
	for lr in .013 .2 .0071 .052 .0009; do
		sqlite3 "drawn/of$lr.strain" "INSERT INTO label VALUES ('draw', 'of $lr'), ('repeat', '1')"
		cp "drawn/of$lr.strain" "drawn/of$lr-2.strain"
		sqlite3 "drawn/of$lr-2.strain" "UPDATE label SET value = '2' WHERE name = 'repeat';
			UPDATE run SET value = value + 1 WHERE key = 'start_utc_ns'"
	done
	run -0 --separate-stderr "$STRAIN" compare drawn --value epoch_seconds
	[ -z "$stderr" ] || { echo "$stderr"; false; }
}

@test "two runs stand side by side, and one run each proves nothing" {
	run -0 --separate-stderr "$STRAIN" compare paper.sweep/0003-1.strain paper.sweep/0001-1.strain
	[ "${lines[0]}" = "columns: run" ]
	[[ "${lines[1]}" == *" 0003-1 "*" 0001-1" ]]
	[[ "$output" == *" 0.900 "*" 1.20 "*" 0.75x"* ]]
	[[ "$output" != *"x*"* ]]
	[ "$(json 'd["tests"], {c.get("beyond_noise") for c in d["cells"]}, {c.get("probability") for c in d["cells"]}' \
		"$STRAIN" compare paper.sweep/0003-1.strain paper.sweep/0001-1.strain)" = "(0, {None}, {None})" ]
	[ -z "$stderr" ]
	cp paper.sweep/0001-1.strain "$BATS_TEST_TMPDIR/"
	run -0 "$STRAIN" compare paper.sweep/0001-1.strain "$BATS_TEST_TMPDIR/0001-1.strain"
	[ "${lines[0]}" = "columns: path" ] # both have one name
	[[ "${lines[1]}" == *" paper.sweep/0001-1.strain "*"$BATS_TEST_TMPDIR/0001-1.strain"* ]]
}

@test "directories are held against each other" {
	mkdir "$BATS_TEST_TMPDIR/old" "$BATS_TEST_TMPDIR/new" && cd "$BATS_TEST_TMPDIR"
	cp "$BATS_FILE_TMPDIR"/paper.sweep/0003-?.strain old
	cp "$BATS_FILE_TMPDIR"/paper.sweep/0001-?.strain new
	run -0 "$STRAIN" compare old new --rows "" --columns from --value epoch_seconds
	[[ "${lines[1]}" == *" old "*" new"* ]]
	run -0 "$STRAIN" compare old new --rows framework --columns from --baseline from=old
	[[ "$output" == *"pytorch "*"0.910 +-0.025"*"1.210 +-0.025  0.75x*"* ]]
}

# One of the runs above under another name, of another command where one is given.
copy_run() { # NAME TO [COMMAND]
	mkdir -p "$(dirname "$2")"
	cp "$BATS_FILE_TMPDIR/paper.sweep/$1.strain" "$2"
	if [ $# = 3 ]; then
		sqlite3 "$2" "UPDATE run SET value = json_array('$3') WHERE key = 'command'"
	fi
}

# How many runs are from each argument.
runs_from() {
	"$STRAIN" compare "$@" --rows "" --columns from --value epoch_seconds --format csv | tail -n +2 | cut -d, -f1,4
}

@test "a run is from the argument that found it" {
	cd "$BATS_TEST_TMPDIR"
	copy_run 0003-1 d1/a.strain
	copy_run 0003-2 d1/b.strain
	copy_run 0001-1 d2/a.strain
	copy_run 0001-2 d1/deeper/c.strain
	cd d1
	run -0 runs_from . ../d2
	[ "$output" = $'.,2\n../d2,1' ]
	run -0 runs_from ../d2 .
	[ "$output" = $'../d2,1\n.,2' ]
	cd "$BATS_TEST_TMPDIR"
	run -0 runs_from d1 d1/deeper
	[ "$output" = $'d1,2\nd1/deeper,1' ]
	run -0 runs_from d2 d1/a.strain d1 # one that two find is the first's
	[ "$output" = $'d2,1\nd1/a.strain,1\nd1,1' ]
}

# What is said to be the fastest, and, where nothing is, which of these words the reason has.
unranked() { # RUN...
	json '" ".join([str(d["ranking"])] + [w for w in ("crash", "success", "a.py", "b.py", "train.py", "other.train")
		if w in (d["unranked"] or "")])' "$STRAIN" compare "$@"
}

# Which is the fastest, and how many times as fast it is as the others.
ranking() { # RUN...
	json '" ".join([*d["ranking"]["fastest"].values()] + ["%.2f" % t["times"] for t in d["ranking"]["times_as_fast"]])' \
		"$STRAIN" compare "$@"
}

@test "side by side every run has a column, whatever their names" {
	cd "$BATS_TEST_TMPDIR"
	copy_run 0001-1 all/A.sweep/0001-1.strain
	copy_run 0001-2 all/B.sweep/0001-1.strain
	echo "command: x" | tee all/A.sweep/plan.yaml >all/B.sweep/plan.yaml
	sqlite3 all/B.sweep/0001-1.strain "INSERT OR REPLACE INTO run VALUES ('outcome', 'crash')"
	sqlite3 all/B.sweep/0001-1.strain "UPDATE label SET value = '64' WHERE name = 'batch_size'"
	run -0 --separate-stderr "$STRAIN" compare all
	[ "${lines[0]}" = "columns: path" ]
	[[ "${lines[1]}" == *" all/A.sweep/0001-1.strain  all/B.sweep/0001-1.strain"* ]]
	[[ "${lines[2]}" == "batch_size "*" 32 "*" 64" ]] # what differs is first
	[[ "${lines[3]}" == "outcome "*" success "*" crash" ]]
	[ -z "$stderr" ]
	[ "$(unranked all)" = "None crash success" ]
	# labels that hide the name and the path of a run do not merge them either
	for sweep in A B; do
		sqlite3 all/$sweep.sweep/0001-1.strain "INSERT INTO label VALUES ('run', '7'), ('path', 'x')"
	done
	run -0 --separate-stderr "$STRAIN" compare all
	[[ "${lines[3]}" == "outcome "*" success "*" crash" ]]
	[ -z "$stderr" ]
}

# A copy of a run with other keys.
with_keys() { # NAME TO [KEY VALUE]...
	local to=$2
	copy_run "$1" "$to"
	shift 2
	while [ $# -gt 0 ]; do
		sqlite3 "$to" "INSERT OR REPLACE INTO run VALUES ('$1', '$2')"
		shift 2
	done
}

@test "what two runs differ in comes first: arguments, command, host, versions" {
	cd "$BATS_TEST_TMPDIR"
	with_keys 0001-1 one.strain command '["/usr/bin/python3.11", "-u", "old/train.py", "--lr", "0.1", "--epochs", "3", "-v"]' \
		hostname node1 kernel 'Linux 6.1' version 0.1.0 hooks 'pytorch 1.13.0: data, backward'
	with_keys 0001-1 two.strain command '["/opt/venv/bin/python3", "-u", "new/train.py", "--epochs", "3", "--lr", "0.2"]' \
		hostname node2 kernel 'Linux 6.1' version 0.1.0 hooks 'pytorch 2.6.0: data'
	run -0 --separate-stderr "$STRAIN" compare one.strain two.strain
	[[ "${lines[2]}" =~ ^"arguments "\ +--lr\ 0.1\ -v\ +--lr\ 0.2$ ]] || { echo "$output"; false; }
	[[ "${lines[3]}" =~ ^"program "\ +/usr/bin/python3.11\ +/opt/venv/bin/python3$ ]]
	[[ "${lines[4]}" =~ ^"host "\ +node1\ +node2$ ]]
	[[ "${lines[5]}" =~ ^"framework "\ +"pytorch 1.13.0"\ +"pytorch 2.6.0"$ ]]
	[[ "${lines[6]}" == "outcome "* ]] # what is equal is left out
	line_names "${lines[-1]}" one two 1.000
	"$STRAIN" compare one.strain two.strain --json >table.json
	python3 - <<-'EOF'
		import json
		table = json.load(open("table.json"))
		words = {(c["measure"], c["labels"]["run"]): c["words"] for c in table["cells"] if "words" in c}
		assert words["arguments", "two"] == "--lr 0.2" and words["host", "one"] == "node1", words
		assert [m["name"] for m in table["measures"]][:2] == ["arguments", "program"]
		assert table["unranked"] is None and table["warnings"] == []
		ranking = table["ranking"]
		assert ranking["measure"] == "epoch_seconds" and ranking["times_as_fast"][0]["times"] == 1
		assert ranking["times_as_fast"][0]["low"] is None
	EOF
	# What is asked for, and no more.
	[ "$(json '[m["name"] for m in d["measures"]]' "$STRAIN" compare one.strain two.strain --value epoch_seconds)" = "['epoch_seconds']" ]
	# Hostile words are shown as such, and cut.
	with_keys 0001-1 odd.strain command '["/usr/bin/python3.11", "old/train.py", "\u001b[2J<script>|&'"$(printf '%0400d' 7)"'"]'
	run -0 "$STRAIN" compare one.strain odd.strain
	[[ "${lines[2]}" == *'\x1b[2J<script>|&000'* && "$output" != *$'\e'* && ${#lines[2]} -lt 140 ]]
}

@test "unlike jobs are not ranked, and it says so" {
	cd "$BATS_TEST_TMPDIR"
	with_keys 0001-1 one.strain command '["python3", "train.py"]'
	with_keys 0003-1 two.strain command '["python3", "-m", "other.train", "--lr", "1"]'
	run -0 "$STRAIN" compare one.strain two.strain
	[[ "${lines[2]}" =~ ^"command "\ +"python train.py"\ +"python -m other.train"$ ]] || { echo "$output"; false; }
	prints "'python train.py'" "'python -m other.train'"
	[[ "$output" != *x\* && "$output" != *"1.33"* ]]
	[ "$(unranked one.strain two.strain)" = "None train.py other.train" ]
	[ "$("$STRAIN" compare one.strain two.strain --json | jq -c '[.ranking, .baseline, .unranked != null]')" = '[null,null,true]' ]
	run -0 "$STRAIN" compare one.strain two.strain --baseline run=one --columns run --rows '' # who asks for it gets it
	[[ "$output" == *"1.33x"* ]]
	# The same in another place, by another version, with other arguments is one job.
	for command in '["/opt/python3.12", "else/where/train.py", "--lr", "7"]' '["python", "-W", "train.py"]' \
		'["nice", "-n", "5", "env", "A=1", "python3", "train.py"]'; do
		with_keys 0003-1 two.strain command "$command"
		run -0 "$STRAIN" compare one.strain two.strain
		line_names "${lines[-1]}" two 1.33 one
		[ "$(ranking one.strain two.strain)" = "two 1.33" ]
	done
	# What only starts a program is not what runs.
	with_keys 0001-1 three.strain command '["timeout", "5", "python3", "a.py"]'
	with_keys 0003-1 two.strain command '["timeout", "5", "python3", "b.py"]'
	[ "$(unranked three.strain two.strain)" = "None a.py b.py" ]
	# Trials of one sweep are what its plan compares.
	mkdir x.sweep
	echo 'command: x' >x.sweep/plan.yaml
	mv three.strain x.sweep/0001-1.strain
	mv two.strain x.sweep/0002-1.strain
	[ "$(json 'd["unranked"]' "$STRAIN" compare x.sweep/0001-1.strain x.sweep/0002-1.strain)" = None ]
	with_keys 0003-1 two.strain command '["python", "-W", "train.py"]'
	mkdir a b
	cp one.strain a
	with_keys 0003-1 b/two.strain command '["python3", "other.py"]'
	[ "$(json 'd["unranked"] is None, d["ranking"]' "$STRAIN" compare a b --rows "" --columns from)" = "(False, None)" ]
}

# Runs of given times of an epoch, in seconds, one after another.
epochs_of() { # FOLDER SECONDS...
	local folder=$1 n=0 file
	shift
	for seconds in "$@"; do
		n=$((n + 1))
		file=$folder/run$n.strain
		copy_run 0001-1 "$file"
		sqlite3 "$file" "UPDATE span SET start_ns = CAST(number * 1e9 * $seconds AS INTEGER),
				end_ns = CAST((number + 1) * 1e9 * $seconds AS INTEGER)
			WHERE kind = 'epoch'; UPDATE run SET value = value + $n * 1000000000 WHERE key = 'start_utc_ns'"
	done
}

@test "a closing sentence with the interval of the ratio" {
	cd "$BATS_TEST_TMPDIR"
	epochs_of slow 0.36 0.40 0.44
	epochs_of fast 0.18 0.20 0.22
	epochs_of noisy 0.30 0.40 0.55
	run -0 --separate-stderr "$STRAIN" compare slow fast
	line_names "${lines[-1]}" fast "2.00 +-0.46" slow
	[ -z "$stderr" ]
	"$STRAIN" compare slow fast --json >table.json
	python3 - <<-'EOF'
		import json, math
		ranking = json.load(open("table.json"))["ranking"]
		assert ranking["fastest"] == {"from": "fast"}, ranking
		other, = ranking["times_as_fast"]
		assert other["than"] == {"from": "slow"} and abs(other["times"] - 2) < 1e-9
		assert abs(math.log(other["high"] / 2) - 2.776445 * math.sqrt(2 * 0.1 ** 2 / 3)) < 1e-6, other
		assert abs(other["low"] * other["high"] - 4) < 1e-9
	EOF
	run -0 "$STRAIN" compare slow noisy
	line_names "${lines[-1]}" slow 1.042 "95 %" noisy
	[ "$(json '[t["low"] < 1 < t["high"] for t in d["ranking"]["times_as_fast"]]' "$STRAIN" compare slow noisy)" = "[True]" ]
	run -0 "$STRAIN" compare slow fast noisy
	line_names "${lines[-1]}" fast "2.00 +-0.46" slow 2.08 "95 %" noisy
	"$STRAIN" compare slow fast -o table.md
	line_names "$(tail -1 table.md)" fast "2.00 ±0.46" slow
	"$STRAIN" compare slow fast -o table.tex
	grep -q 'fast.* 2.00 \$\\pm\$0.46 .*slow' table.tex
}

@test "outliers, a first run that is slower, and other load are warned of" {
	cd "$BATS_TEST_TMPDIR"
	epochs_of outlier 1.0 1.01 0.99 1.4 1.005
	epochs_of first 1.4 1.0 1.01
	epochs_of quiet 1.0 1.02 0.99 1.01 1.005
	run -0 --separate-stderr "$STRAIN" compare outlier quiet
	notes_only warning run4 "1.4 s" "1.0 s" 5
	run -0 --separate-stderr "$STRAIN" compare first quiet
	notes_only warning run1 "1.4 s" "1.0 s"
	[ "$(json 'len(d["warnings"]), "run1 1.4 s" in d["warnings"][0]' "$STRAIN" compare first quiet)" = "(1, True)" ]
	mkdir busy
	for n in 1 2; do
		cp "$SOURCE_ROOT/tests/traces/schema-1001-onednn.strain" busy/$n.strain
	done
	run -0 --separate-stderr "$STRAIN" compare busy/1.strain busy/2.strain
	notes_only warning CPUs "2 of 2" "1, 2"
}

@test "what is said of several runs is said once" {
	cd "$BATS_TEST_TMPDIR"
	for n in 1 2 3 4; do
		copy_run 0001-1 cut/$n.strain
		sqlite3 cut/$n.strain "UPDATE run SET value = 'cut_off' WHERE key = 'state'; DELETE FROM run WHERE key = 'status'"
		echo nothing >cut/no$n.strain
	done
	run -1 --separate-stderr "$STRAIN" compare cut --all
	[ "$(grep -c 'cut/no' <<<"$stderr")" = 1 ] || { echo "$stderr"; false; }
	notes 4
	[[ "$stderr" == *"strain: 4 "*"cut/no"* ]]
}

@test "runs of different jobs that no label tells apart are not averaged in silence" {
	cd "$BATS_TEST_TMPDIR"
	copy_run 0001-1 jobs/a.strain "train"
	copy_run 0001-1 jobs/b.strain "another"
	copy_run 0003-1 jobs/c.strain "train"
	run -0 --separate-stderr "$STRAIN" compare jobs --value epoch_seconds
	notes_only "--columns path"
	run -0 --separate-stderr "$STRAIN" compare jobs --value epoch_seconds --columns path
	[ -z "$stderr" ]
	# told apart already: by a label of theirs, by what a sweep calls its trials
	for label in seed repeat; do
		sqlite3 jobs/b.strain "INSERT OR REPLACE INTO label VALUES ('$label', '2')"
		run -0 --separate-stderr "$STRAIN" compare jobs --value epoch_seconds
		[ -z "$stderr" ]
		sqlite3 jobs/b.strain "UPDATE label SET value = '1' WHERE name = '$label'"
		sqlite3 jobs/a.strain "INSERT OR REPLACE INTO label VALUES ('$label', '1')"
	done
	run -0 --separate-stderr "$STRAIN" compare jobs --value epoch_seconds
	notes_only "--columns path"
}

@test "formats, to a file by its ending" {
	"$STRAIN" compare paper.sweep --where 'batch_size<=128' -o "$BATS_TEST_TMPDIR/t.tex"
	grep -q '\\toprule' "$BATS_TEST_TMPDIR/t.tex"
	"$STRAIN" compare paper.sweep -o "$BATS_TEST_TMPDIR/t.md"
	grep -q '^| ---: | ---: | ---: |$' "$BATS_TEST_TMPDIR/t.md"
	"$STRAIN" compare paper.sweep -o "$BATS_TEST_TMPDIR/t.out" --format csv
	python3 - "$BATS_TEST_TMPDIR/t.out" <<-'EOF'
		import csv, sys
		rows = list(csv.DictReader(open(sys.argv[1])))
		assert len(rows) == 6, rows
		[row] = [r for r in rows if r["batch_size"] == "32" and r["framework"] == "pytorch"]
		assert abs(float(row["mean"]) - 1.21) < 1e-9 and row["n"] == "3" and row["unit"] == "s", row
		[row] = [r for r in rows if r["batch_size"] == "512"]
		assert row["mean"] == "" and row["failed"] == "out of memory", row
	EOF
	[ "$(find "$BATS_TEST_TMPDIR" -type f | wc -l)" = 3 ] # nothing half-written beside them
	fails_with 2 t.xyz .txt .md .tex .csv .json --format -- "$STRAIN" compare paper.sweep -o "$BATS_TEST_TMPDIR/t.xyz"
	fails_with 1 /nowhere/t.md "No such file or directory" -- "$STRAIN" compare paper.sweep -o /nowhere/t.md
	local sum
	sum=$(sha256sum paper.sweep/0001-1.strain)
	fails_with 2 paper.sweep/0001-1.strain -- "$STRAIN" compare paper.sweep -o paper.sweep/0001-1.strain --format csv
	[ "$sum" = "$(sha256sum paper.sweep/0001-1.strain)" ]
}

@test "an output is written into what is no file, and takes the place of what is one" {
	cd "$BATS_TEST_TMPDIR"
	local runs=$BATS_FILE_TMPDIR/paper.sweep
	mkfifo pipe.csv
	cat pipe.csv >got &
	"$STRAIN" compare "$runs" -o pipe.csv
	wait $!
	[ -p pipe.csv ]
	grep -q epoch_seconds got
	ln -s there.csv link.csv
	echo mine >there.csv
	chmod 640 there.csv
	(umask 077 && "$STRAIN" compare "$runs" -o link.csv)
	[ ! -L link.csv ]
	cmp link.csv got
	[ "$(stat -c %a link.csv)" = 600 ]
	[ "$(cat there.csv)" = mine ]
	[ "$(stat -c %a there.csv)" = 640 ]
	# A descriptor is no file to take the place of.
	for out in /dev/stdout /dev/fd/1 /proc/self/fd/1; do
		echo before >stdout.csv
		"$STRAIN" compare "$runs" --format csv -o $out >>stdout.csv
		[ "$(head -1 stdout.csv)" = before ]
		tail -n +2 stdout.csv | cmp - got
		[ -e $out ]
	done
	mkfifo pipe.tex
	cat pipe.tex >got &
	"$STRAIN" compare "$runs" --layout torres2021-table3 -o pipe.tex 2>err
	wait $!
	[ -p pipe.tex ]
	grep -q tabular got
	if command -v gnuplot >/dev/null; then
		mkfifo pipe.svg
		cat pipe.svg >got &
		"$STRAIN" compare "$runs" --figure bars -o pipe.svg 2>err
		wait $!
		[ -p pipe.svg ]
		grep -q '<svg' got
	fi
}

@test "a narrow terminal has every column, below each other" {
	COLUMNS=40 run -0 "$STRAIN" compare paper.sweep
	for line in "${lines[@]}"; do
		[ "${#line}" -le 40 ]
	done
	[[ "$output" == *"batch_size"*"pytorch"*"batch_size"*"tensorflow"* ]]
}

@test "what is mistyped is one line with what there is" {
	fails_with 1 --rows "'batchsize'" "'batch_size'" "batch_size, framework, repeat, sweep, trial" -- \
		"$STRAIN" compare paper.sweep --rows batchsize
	fails_with 2 --value "'epoch_second'" "'epoch_seconds'" "--value help" -- \
		"$STRAIN" compare paper.sweep --value epoch_second
	run -1 --separate-stderr "$STRAIN" compare paper.sweep --where outcom=crash
	notes --where "'outcom'" "'outcome'"
	fails_with 1 paper.sweep --where -- "$STRAIN" compare paper.sweep --where batch_size=7
	fails_with 2 --where epoch_seconds "'4s'" -- "$STRAIN" compare paper.sweep --where 'epoch_seconds<4s'
	fails_with 2 --where outcome success crash "'crashed'" -- "$STRAIN" compare paper.sweep --where outcome=crashed
	run -0 "$STRAIN" compare paper.sweep --where 'outcome=out of memory' --value outcome
	fails_with 2 --layout --rows -- "$STRAIN" compare paper.sweep --layout torres2021-table3 --rows batch_size
	fails_with 1 --baseline batch_size=33 -- "$STRAIN" compare paper.sweep --baseline batch_size=33
	fails_with 1 --baseline "'batchsize'" -- "$STRAIN" compare paper.sweep --baseline batchsize=32
	fails_with 2 --format text markdown latex csv json "'yaml'" -- "$STRAIN" compare paper.sweep --format yaml
	fails_with 1 /nowhere "No such file or directory" -- "$STRAIN" compare /nowhere
}

@test "figures, and what they need" {
	fails_with 2 "'a.pdf'" --figure scaling -- "$STRAIN" compare -o a.pdf paper.sweep
	fails_with 2 --figure "'scalin'" "'scaling'" -- "$STRAIN" compare paper.sweep --figure scalin -o a.svg
	fails_with 2 .pdf .svg .png a.tex -- "$STRAIN" compare paper.sweep --figure bars -o a.tex
	fails_with 1 "--figure timeline" 4 14 --where -- "$STRAIN" compare paper.sweep --figure timeline -o a.svg
	run -1 --separate-stderr "$STRAIN" compare paper.sweep --figure bars --value outcome --rows batch_size -o a.svg
	notes --figure "'outcome'"
	[ ! -e a.svg ]
	command -v gnuplot || skip "no gnuplot"
	cd "$BATS_TEST_TMPDIR"
	for kind in scaling bars heatmap; do
		"$STRAIN" compare "$BATS_FILE_TMPDIR/paper.sweep" --figure $kind -o $kind.svg --keep-script kept
		grep -q "epoch time" $kind.svg
		grep -q "out of memory" $kind.svg
		[ -s "kept/$kind.gp" ]
	done
	grep -q tensorflow scaling.svg
	for kind in timeline memory; do
		"$STRAIN" compare "$BATS_FILE_TMPDIR/paper.sweep" --where repeat=1 --where batch_size=32 --figure $kind -o $kind.svg
		grep -q "<text>pytorch" $kind.svg # what tells them apart
		grep -q "<text>tensorflow" $kind.svg
	done
}

@test "any figure of a metric is a value too" {
	"$STRAIN" compare paper.sweep --where batch_size=32 --rows framework --format json \
		--value process.cpu.time:total,process.cpu.time:mean,strain.memory.pss:max,cpu_seconds,host_memory_peak |
		python3 -c 'import json, sys
table = json.load(sys.stdin)
units = {m["name"]: m["unit"] for m in table["measures"]}
assert units["process.cpu.time:total"] == "s" and units["process.cpu.time:mean"] == "1", units
assert units["strain.memory.pss:max"] == "By", units
cells = {c["measure"]: c["mean"] for c in table["cells"] if c["labels"]["framework"] == "pytorch"}
assert cells["process.cpu.time:total"] == cells["cpu_seconds"] > 0, cells
assert cells["strain.memory.pss:max"] == cells["host_memory_peak"] > 0, cells'
	fails_with 1 --value "'process.cpu.tim'" -- "$STRAIN" compare paper.sweep --rows framework --value process.cpu.tim:max
	fails_with 1 --value "'process.cpu.time:most'" METRIC:AGGREGATE total mean p50 p95 max -- \
		"$STRAIN" compare paper.sweep --rows framework --value process.cpu.time:most
}

@test "measures have a list" {
	run -0 "$STRAIN" compare --value help
	prints epoch_seconds s
	[ "${#lines[@]}" -gt 25 ]
	for line in "${lines[@]}"; do
		grep -qE "^\\*${line%% *}\\*" "$SOURCE_ROOT/man/strain-compare.1.scd" || {
			echo "not in the manual: $line"
			return 1
		}
	done
}

@test "runs of the C trainer, recorded here" {
	local trainer=$BUILD_ROOT/workloads/onednn/onednn-train
	[ -x "$trainer" ] || skip "without oneDNN there is no trainer"
	mkdir "$BATS_TEST_TMPDIR/real" && cd "$BATS_TEST_TMPDIR/real"
	for batch in 16 64; do
		"$STRAIN" run -o "$batch.strain" --label "batch_size=$batch" -- \
			"$trainer" --batch-size "$batch" --samples 200 --epochs 2 --threads 1 >/dev/null 2>&1
	done
	run -0 --separate-stderr "$STRAIN" compare --rows batch_size --value iterations,epochs_ended,outcome,samples_per_second
	[[ "${lines[1]}" == "        16 "*" 24 "*" 2  success "* ]] || { echo "$output"; false; }
	[[ "${lines[2]}" == "        64 "*" 6 "*" 2  success "* ]]
}
