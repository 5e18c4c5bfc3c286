#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# strain ls: the runs of a directory, chosen by label and sorted.

load messages

# Three runs that differ in label, length and start.
setup_file() {
	cd "$BATS_FILE_TMPDIR" || return
	local i=0
	for batch in 8 128 32; do
		i=$((i + 1))
		"$BUILD_ROOT/tests/tools/make_run" "run$batch.strain" $((4 - i))
		python3 - "run$batch.strain" "$batch" "$i" <<-'EOF'
			import sqlite3, sys
			name, batch, i = sys.argv[1:]
			run = sqlite3.connect(name)
			run.execute("UPDATE label SET value = ? WHERE name = 'batch_size'", (batch,))
			run.execute("UPDATE run SET value = value + ? WHERE key = 'start_utc_ns'",
			            (int(i) * 10**10,))
			run.commit()
		EOF
	done
	echo "no run" >other.txt
}

setup() {
	cd "$BATS_FILE_TMPDIR" || return
	unset COLUMNS STRAIN_DIR
}

names() {
	"$STRAIN" ls --json "$@" | python3 -c 'import json, sys
print(*(run["name"] for run in json.load(sys.stdin)))'
}

@test "ls lists runs, the newest first" {
	run -0 --separate-stderr "$STRAIN" ls
	[[ "${lines[0]}" == "RUN "*"STATE"*"TIME"*"CPUS"*"MEMORY"*"LABELS" ]]
	[[ "${lines[1]}" == "run32 "*"exit 0"*"batch_size=32 workers=2" ]]
	[ "${#lines[@]}" = 4 ]
	[ -z "$stderr" ]
	[ "$(names)" = "run32 run128 run8" ]
	[ "$(names --reverse)" = "run8 run128 run32" ]
}

@test "labels sort as numbers where they are" {
	[ "$(names --sort batch_size)" = "run8 run32 run128" ]
	[ "$(names --sort duration)" = "run8 run128 run32" ]
	[ "$(names --sort name)" = "run128 run32 run8" ]
	[ "$(names --sort cpu | wc -w)" = 3 ]
	[ "$(names --sort memory | wc -w)" = 3 ]
}

@test "a narrow terminal has names whole, and says what it has no room for" {
	for width in 30 40 60 80; do
		COLUMNS=$width run -0 "$STRAIN" ls
		for line in "${lines[@]}"; do
			[ "${#line}" -le "$width" ]
		done
		[[ "$output" == *"run128 "* ]]
	done
	COLUMNS=40 run -0 "$STRAIN" ls
	prints 40 START
	[[ "${lines[0]}" != *START* ]]
	run -0 "$STRAIN" ls
	[[ "${lines[0]}" == *START* ]]
	[ "${#lines[@]}" = 4 ]
}

@test "a key that no run has is said" {
	fails_with 1 --sort "'batchsize'" -- "$STRAIN" ls --sort batchsize
	run -1 "$STRAIN" ls --json --sort batchsize
	run -0 --separate-stderr "$STRAIN" ls --sort workers
	[ -z "$stderr" ]
}

@test "--where chooses by label, several all together" {
	[ "$(names --where batch_size=128)" = "run128" ]
	[ "$(names --where workers=2 --where batch_size=8)" = "run8" ]
	[ "$(names --where batch_size=9)" = "" ]
	run -0 --separate-stderr "$STRAIN" ls --where batch_size=9
	[ -z "$output" ]
	notes_only .
}

@test "a directory is an argument, or STRAIN_DIR" {
	cd /
	run -0 "$STRAIN" ls "$BATS_FILE_TMPDIR"
	[ "${#lines[@]}" = 4 ]
	STRAIN_DIR=$BATS_FILE_TMPDIR run -0 "$STRAIN" ls
	[ "${#lines[@]}" = 4 ]
	fails_with 1 /nowhere -- "$STRAIN" ls /nowhere
}

@test "JSON has labels, seconds and bytes" {
	"$STRAIN" ls --json --where batch_size=8 | python3 -c 'import json, sys
[run] = json.load(sys.stdin)
assert run["labels"] == {"batch_size": "8", "workers": "2"}, run
assert run["duration_s"] == 3 and run["path"] == "run8.strain"
assert (run["state"], run["exit_status"], run["exit_signal"]) == ("finished", 0, None)
assert run["cpu_seconds"] > 0 and run["memory_peak_bytes"] > 1e6'
}

# In a copy of a run: change KEY VALUE
change() {
	sqlite3 "$1" "UPDATE run SET value = '$3' WHERE key = '$2'"
}

@test "what is damaged is listed with what is missing, what is no run is said" {
	mkdir "$BATS_TEST_TMPDIR/bad" && cd "$BATS_TEST_TMPDIR/bad"
	cp "$BATS_FILE_TMPDIR/run8.strain" old.strain
	cp "$BATS_FILE_TMPDIR/run32.strain" cut.strain
	truncate -s -20000 cut.strain
	echo "no run" >text.strain
	mkfifo fifo.strain
	run -0 --separate-stderr timeout 60 "$STRAIN" ls
	[ "${#lines[@]}" = 3 ]
	[[ "${lines[1]}" == "cut "*"damaged"*"batch_size=32"* ]]
	notes cut.strain "20 kB"
	notes text.strain
	notes fifo.strain
	[ "${#stderr_lines[@]}" = 3 ]
	[ "$("$STRAIN" ls --json 2>/dev/null | python3 -c '
import json, sys
print(*(run["state"] for run in json.load(sys.stdin)))')" = "damaged finished" ]
	run -0 --separate-stderr timeout 60 "$STRAIN" show # the newest
	[[ "${lines[0]}" == "cut "*"damaged"* ]]
	notes_only cut.strain "20 kB"
}

# The same three keys, whichever command prints them.
states() {
	for command in ls "show $1.strain"; do
		# shellcheck disable=SC2086 # two words
		"$STRAIN" $command --json | python3 -c 'import json, sys
run = json.load(sys.stdin)
run = run["run"] if "run" in run else next(r for r in run if r["name"] == sys.argv[1])
print(run["state"], run["exit_status"], run["exit_signal"], sep=", ")' "$1"
	done
}

@test "what is neither a run nor there is one line, and a failure" {
	fails_with 1 other.txt -- "$STRAIN" ls other.txt
	fails_with 1 "'nope'" -- "$STRAIN" ls nope
	[[ "$stderr" != *"strain ls"* ]]
}

@test "ls and show have the same words for how a run stands" {
	mkdir "$BATS_TEST_TMPDIR/states" && cd "$BATS_TEST_TMPDIR/states"
	for status in 0:exit0 256:exit1 9:killed 35:realtime; do
		cp "$BATS_FILE_TMPDIR/run8.strain" "${status#*:}.strain"
		change "${status#*:}.strain" status "${status%:*}"
	done
	cp exit0.strain cut.strain
	change cut.strain state cut_off
	[ "$(states exit0 | uniq)" = "finished, 0, None" ]
	[ "$(states exit1 | uniq)" = "finished, 1, None" ]
	[ "$(states killed | uniq)" = "finished, None, 9" ]
	[ "$(states realtime | uniq)" = "finished, None, 35" ]
	[ "$(states cut | uniq)" = "cut off, None, None" ]
	listed=$("$STRAIN" ls)
	for words in "exit0:exit 0" "exit1:exit 1" "killed:SIGKILL" "realtime:signal 35" "cut:cut off"; do
		[[ "$listed" == *"${words%%:*} "*" ${words#*:} "* ]]
		[[ "$("$STRAIN" show "${words%%:*}.strain" 2>/dev/null)" == "${words%%:*} "*"   ${words#*:} "* ]]
	done
}

@test "a sweep is one line, its trials are listed inside" {
	mkdir -p "$BATS_TEST_TMPDIR/sweeps/a.sweep" && cd "$BATS_TEST_TMPDIR/sweeps"
	cp "$BATS_FILE_TMPDIR/run8.strain" a.sweep/0001-1.strain
	cp "$BATS_FILE_TMPDIR/run32.strain" a.sweep/0002-1.strain
	cp "$BATS_FILE_TMPDIR/run128.strain" a.sweep/0003-1.strain
	change a.sweep/0003-1.strain status 256
	echo "command: x" >a.sweep/plan.yaml
	cp "$BATS_FILE_TMPDIR/run8.strain" .
	run -0 --separate-stderr "$STRAIN" ls
	[ "${#lines[@]}" = 3 ]
	[[ "$output" == *"a.sweep/ "*"3 trials: 1 crash "*" 6.0 s "*"batch_size=8,32,128 workers=2"* ]]
	[[ "$output" == *"run8 "*"exit 0"* ]]
	"$STRAIN" ls --json | python3 -c 'import json, sys
[sweep] = [row for row in json.load(sys.stdin) if row["state"] == "sweep"]
assert sweep["trials"] == 3 and sweep["outcomes"] == {"success": 2, "crash": 1}, sweep
assert sweep["path"] == "a.sweep"'
	[ "$(names --where outcome=crash)" = "a.sweep/" ]
	[ "$(names a.sweep --sort batch_size)" = "0001-1 0002-1 0003-1" ]
	[ "$("$STRAIN" ls a.sweep/ | wc -l)" = 4 ]
	[ "$("$STRAIN" ls a.sweep --where outcome=crash | wc -l)" = 2 ]
}

@test "runs are chosen and sorted by what they are worth" {
	[ "$(names --where 'duration_seconds>1.5')" = "run128 run8" ]
	[ "$(names --where 'duration_seconds<=2' --where batch_size!=32)" = "run128" ]
	[ "$(names --where outcome=success | wc -w)" = 3 ]
	[ "$(names --where machine=nowhere | wc -w)" = 0 ]
	[ "$(names --sort duration_seconds)" = "run8 run128 run32" ]
	run -0 "$STRAIN" ls --sort epoch_seconds
	[[ "${lines[0]}" == *" EPOCH_SECONDS  LABELS" ]]
	[[ "${lines[1]}" == "run8 "*"800 ms "* ]]
	run -0 --separate-stderr "$STRAIN" ls --where outcom=success
	notes --where "'outcom'" "'outcome'" "batch_size, workers"
}

@test "wrong usage says what was expected" {
	fails_with 2 outcome success cancelled preempted node_failure unknown "'foo'" -- \
		"$STRAIN" ls --where outcome=foo
	fails_with 2 --where LABEL=VALUE "'batch_size'" "strain ls --help" -- "$STRAIN" ls --where batch_size
	fails_with 2 "'--sort'" "strain ls --help" -- "$STRAIN" ls --sort
}

@test "a finished run holds what lists show, and lists show the same without it" {
	cd "$BATS_TEST_TMPDIR"
	"$STRAIN" run -o done --label batch_size=32 -- sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; exit 3' 2>/dev/null || true
	finding() { "$STRAIN" sql --csv done.strain "SELECT text FROM finding WHERE name = '$1'" | tail -n 1; }
	[ "$(finding outcome)" = crash ]
	[ -n "$(finding verdict)" ]
	"$STRAIN" ls --json . | jq 'del(.[].measures)' >stored
	[ "$("$STRAIN" ls --json . | jq '.[0].measures | has("epoch_seconds")')" = true ]
	sqlite3 done.strain 'DELETE FROM finding'
	"$STRAIN" ls --json . | jq 'del(.[].measures)' >computed
	cmp stored computed
	# Finishing it again stores them again.
	"$STRAIN" finish done.strain 2>/dev/null
	[ "$(finding outcome)" = crash ]
	"$STRAIN" ls --json . | jq 'del(.[].measures)' | cmp - stored
}
