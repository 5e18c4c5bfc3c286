#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# How runs are named to commands: as strain ls prints them, by the beginning of a name, by how far
# back they are; and where they are looked for.

bats_require_minimum_version 1.5.0

# Four runs, eval-1 the oldest and train-3 the newest.
setup_file() {
	cd "$BATS_FILE_TMPDIR" || return
	mkdir runs
	local i=0 name
	for name in eval-1 train-1 train-10 train-3; do
		i=$((i + 1))
		"$BUILD_ROOT/tests/tools/make_run" "runs/$name.strain" 1
		sqlite3 "runs/$name.strain" "UPDATE run SET value = value + $i * 10000000000
			WHERE key = 'start_utc_ns'"
	done
}

setup() {
	export XDG_STATE_HOME="$BATS_TEST_TMPDIR/state"
	unset STRAIN_DIR COLUMNS
	cp -r "$BATS_FILE_TMPDIR/runs" "$BATS_TEST_TMPDIR/runs"
	cd "$BATS_TEST_TMPDIR/runs" || return
}

# The name of the run that a command shows, given the words of the command line.
shown() {
	"$STRAIN" show --json "$@" | python3 -c 'import json, sys; print(json.load(sys.stdin)["run"]["name"])'
}

@test "a run is named as ls prints it, with its ending, or by its path" {
	for name in $("$STRAIN" ls --json | python3 -c 'import json, sys
print(*(run["name"] for run in json.load(sys.stdin)))'); do
		[ "$(shown "$name")" = "$name" ]
		[ "$(shown "$name.strain")" = "$name" ]
		[ "$(shown "./$name")" = "$name" ]
		[ "$(cd / && shown "$BATS_TEST_TMPDIR/runs/$name")" = "$name" ]
	done
	cd /
	STRAIN_DIR="$BATS_TEST_TMPDIR/runs" run -0 shown train-3
	[ "$output" = train-3 ]
	STRAIN_DIR="$BATS_TEST_TMPDIR/runs" run -0 shown train-3.strain
	[ "$output" = train-3 ]
}

@test "the beginning of one name is enough, a whole name is never the beginning of another" {
	[ "$(shown ev)" = eval-1 ]
	[ "$(shown train-3)" = train-3 ]
	[ "$(shown train-1)" = train-1 ]
	[ "$(shown ../runs/ev)" = eval-1 ]
}

@test "a beginning of several names is one error that lists them" {
	run -1 --separate-stderr "$STRAIN" show train
	[ -z "$output" ]
	[ "$stderr" = "strain: 'train' is ambiguous (3 names): train-1, train-10, train-3" ]
	for i in 1 2 3 4 5; do
		cp eval-1.strain "train-2$i.strain"
	done
	run -1 --separate-stderr "$STRAIN" sql train "SELECT 1"
	[ "$stderr" = "strain: 'train' is ambiguous (8 names): train-1, train-10, train-21, train-22, train-23, train-24 and 2 more" ]
}

@test "a program beside its runs is not taken for one of them" {
	mkdir ../one && cp train-3.strain ../one && cd ../one
	printf '#!/bin/sh\n' >train
	[ "$(shown train)" = train-3 ]
	rm train && mkdir train
	[ "$(shown train)" = train-3 ]
	rm train-3.strain
	run -1 --separate-stderr "$STRAIN" show train
	[ "$stderr" = "strain: train: expected a run file, found a directory" ]
	echo text >notes
	run -1 --separate-stderr "$STRAIN" show notes
	[ "$stderr" = "strain: notes: not a run file" ]
}

@test "-1 is the newest run, -2 the newest but one" {
	[ "$(shown)" = train-3 ]
	[ "$(shown -1)" = train-3 ]
	[ "$(shown -2)" = train-10 ]
	[ "$(shown -3)" = train-1 ]
	[ "$(shown -4)" = eval-1 ]
	run -1 --separate-stderr "$STRAIN" show -5
	[ "$stderr" = "strain: there are only 4 runs (*.strain) in ." ]
	run -1 --separate-stderr "$STRAIN" show -999999
	[ "$stderr" = "strain: there are only 4 runs (*.strain) in ." ]
	run -2 --separate-stderr "$STRAIN" show -0
	[ "$stderr" = "strain: no option '-0' (strain show --help)" ]
	# What follows an option that takes a value is its value.
	run -2 --separate-stderr "$STRAIN" export --every -1
	[[ "$stderr" == "strain: --every: "*"found '-1'"* ]]
	run -2 --separate-stderr "$STRAIN" show -1 -2
	[ "$stderr" = "strain: expected one run, found '-2' too (strain show --help)" ]
	run -2 --separate-stderr "$STRAIN" show -1x
	[ "$stderr" = "strain: no option '-1x' (strain show --help)" ]
	run -2 --separate-stderr "$STRAIN" mark --frob
	[ "$stderr" = "strain: no option '--frob' (strain mark --help)" ]
}

@test "every command that takes a run takes all of these" {
	for name in -2 train-10 train-10.strain ./train-10; do
		run -0 "$STRAIN" sql --csv "$name" "SELECT value FROM run WHERE key = 'start_utc_ns'"
		started=${lines[1]}
		[ "$started" = "$(sqlite3 train-10.strain "SELECT value FROM run WHERE key = 'start_utc_ns'")" ]
		run -0 "$STRAIN" export "$name" -e job -m process.cpu.time --every 10s
		[ "${#lines[@]}" = 2 ]
		[ "$("$STRAIN" ls --json "$name" | python3 -c 'import json, sys
print(*(run["name"] for run in json.load(sys.stdin)))')" = train-10 ]
		run -0 "$STRAIN" compare eval-1 "$name"
		[[ "$output" == *eval-1*train-10* ]]
		if "$STRAIN" report "$name" -o page.html; then
			grep -q '"name":"train-10"' page.html
		fi
	done
}

@test "a sweep is named as ls prints it" {
	mkdir ../sweeps ../sweeps/a.sweep && cd ../sweeps
	cp ../runs/eval-1.strain a.sweep/0001-1.strain
	echo "command: x" >a.sweep/plan.yaml
	cd /
	export STRAIN_DIR="$BATS_TEST_TMPDIR/sweeps"
	[[ "$("$STRAIN" ls)" == *"a.sweep/"* ]]
	for name in a.sweep/ a.sweep a; do
		[ "$("$STRAIN" ls --json "$name" | python3 -c 'import json, sys
print(*(run["name"] for run in json.load(sys.stdin)))')" = 0001-1 ]
	done
}

@test "a name that nothing has is said, with the nearest" {
	run -1 --separate-stderr "$STRAIN" show tarin-3
	[ "$stderr" = "strain: no run 'tarin-3' in the current directory; did you mean 'train-3'?" ]
	run -1 --separate-stderr "$STRAIN" show frobnicate
	[ "$stderr" = "strain: no run 'frobnicate' in the current directory (strain ls lists the runs)" ]
	run -1 --separate-stderr "$STRAIN" show none.strain
	[ "$stderr" = "strain: none.strain: No such file or directory" ]
	run -1 --separate-stderr "$STRAIN" show $'x\e[31m'
	[[ "$stderr" == "strain: no run 'x\x1b[31m' "* ]]
}

@test "the folder of runs that could not be written here is searched, too" {
	mkdir -p "$XDG_STATE_HOME/strain" ../empty
	mv train-3.strain "$XDG_STATE_HOME/strain/"
	[ "$(shown train-3)" = train-3 ] # not here: there
	[ "$(shown train-3.strain)" = train-3 ]
	[ "$(shown)" = train-10 ] # here are some, and here can be written
	cd ../empty
	[ "$(shown)" = train-3 ]
	[ "$(shown -1)" = train-3 ]
	[[ "$("$STRAIN" ls)" == *"train-3 "* ]]
	run -1 --separate-stderr "$STRAIN" show -2
	[ "$stderr" = "strain: there is only 1 run (*.strain) in ." ]
	rm -r "$XDG_STATE_HOME"
	run -1 --separate-stderr "$STRAIN" show
	[ "$stderr" = "strain: no run (*.strain) in the current directory" ]
}

@test "where the folder cannot be written, the newest may be in the other one" {
	local as=() folder
	folder=$(mktemp -d "${TMPDIR:-/tmp}/strain-naming-XXXXXX")
	mkdir -p "$folder/runs" "$folder/state/strain"
	cp eval-1.strain train-10.strain "$folder/runs/"
	cp train-3.strain "$folder/state/strain/"
	if [ "$(id -u)" = 0 ]; then # who can write anywhere
		command -v setpriv >/dev/null || skip "setpriv is not installed"
		as=(setpriv --reuid=65534 --clear-groups)
		chown -R 65534 "$folder"
		"${as[@]}" "$STRAIN" --version || skip "another user cannot start strain here"
	fi
	chmod a-w "$folder/runs"
	cd "$folder/runs"
	export XDG_STATE_HOME="$folder/state" XDG_CACHE_HOME="$folder/state/cache"
	[[ "$("${as[@]}" "$STRAIN" show)" == "train-3 "* ]]
	[[ "$("${as[@]}" "$STRAIN" show -2)" == "train-10 "* ]]
	[ "$("${as[@]}" "$STRAIN" ls | wc -l)" = 4 ]
	cd /
	chmod u+w "$folder/runs"
	rm -r "$folder"
}

@test "run -o completes the name" {
	mkdir ../out && cd ../out
	"$STRAIN" run --no-verdict -o mine true
	"$STRAIN" run --no-verdict -o there.strain true
	"$STRAIN" run --no-verdict --output=v1.2 true
	[ "$(ls)" = "mine.strain
there.strain
v1.2.strain" ]
	[ "$(shown mine)" = mine ]
	run -125 --separate-stderr "$STRAIN" run -o mine true
	[[ "$stderr" == *mine.strain* ]]
	run -125 --separate-stderr "$STRAIN" run -o new/ true
	[ "$stderr" = "strain: --output: expected a file name, found 'new/' (strain run --help)" ]
}
