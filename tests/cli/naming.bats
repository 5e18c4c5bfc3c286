#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# How runs are named to commands: as strain ls prints them, by the beginning of a name, by how far
# back they are; and where they are looked for.

load messages

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

@test "a short name that is not there suggests no other" {
	cp eval-1.strain io1.strain
	fails_with 1 "'t1'" "strain ls" -- "$STRAIN" show t1
	fails_with 1 "'trian-3'" "'train-3'" -- "$STRAIN" show trian-3
}

@test "the beginning of one name is enough, a whole name is never the beginning of another" {
	[ "$(shown ev)" = eval-1 ]
	[ "$(shown train-3)" = train-3 ]
	[ "$(shown train-1)" = train-1 ]
	[ "$(shown ../runs/ev)" = eval-1 ]
}

@test "a beginning of several names is one error that lists them" {
	fails_with 1 "'train'" 3 "train-1, train-10, train-3" -- "$STRAIN" show train
	for i in 1 2 3 4 5; do
		cp eval-1.strain "train-2$i.strain"
	done
	fails_with 1 "'train'" 8 "train-1, train-10, train-21, train-22, train-23, train-24" 2 -- "$STRAIN" sql train "SELECT 1"
}

@test "a program beside its runs is not taken for one of them" {
	mkdir ../one && cp train-3.strain ../one && cd ../one
	printf '#!/bin/sh\n' >train
	[ "$(shown train)" = train-3 ]
	rm train && mkdir train
	[ "$(shown train)" = train-3 ]
	rm train-3.strain
	fails_with 1 train -- "$STRAIN" show train
	echo text >notes
	fails_with 1 notes -- "$STRAIN" show notes
}

@test "-1 is the newest run, -2 the newest but one" {
	[ "$(shown)" = train-3 ]
	[ "$(shown -1)" = train-3 ]
	[ "$(shown -2)" = train-10 ]
	[ "$(shown -3)" = train-1 ]
	[ "$(shown -4)" = eval-1 ]
	fails_with 1 4 . -- "$STRAIN" show -5
	fails_with 1 4 . -- "$STRAIN" show -999999
	fails_with 2 "'-0'" "strain show --help" -- "$STRAIN" show -0
	# What follows an option that takes a value is its value.
	fails_with 2 --every "'-1'" -- "$STRAIN" export --every -1
	fails_with 2 "'-2'" "strain show --help" -- "$STRAIN" show -1 -2
	fails_with 2 "'-1x'" "strain show --help" -- "$STRAIN" show -1x
	fails_with 2 "'--frob'" "strain mark --help" -- "$STRAIN" mark --frob
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
	fails_with 1 "'tarin-3'" "'train-3'" -- "$STRAIN" show tarin-3
	fails_with 1 "'frobnicate'" "strain ls" -- "$STRAIN" show frobnicate
	fails_with 1 none.strain "No such file or directory" -- "$STRAIN" show none.strain
	fails_with 1 "'x\x1b[31m'" -- "$STRAIN" show $'x\e[31m'
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
	fails_with 1 1 . -- "$STRAIN" show -2
	rm -r "$XDG_STATE_HOME"
	fails_with 1 .strain -- "$STRAIN" show
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

@test "where the folder does not exist, the lists have the runs of the other one, too" {
	export STRAIN_DIR=/proc/nowhere
	fails_with 1 /proc/nowhere -- "$STRAIN" ls
	mkdir -p "$XDG_STATE_HOME/strain"
	cp train-1.strain train-3.strain "$XDG_STATE_HOME/strain"
	run -0 --separate-stderr "$STRAIN" ls
	notes_only /proc/nowhere "No such file or directory" "$XDG_STATE_HOME/strain"
	[ "${#lines[@]}" = 3 ]
	run -0 --separate-stderr "$STRAIN" compare
	notes /proc/nowhere "$XDG_STATE_HOME/strain"
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
	fails_with 125 --output "'new/'" "strain run --help" -- "$STRAIN" run -o new/ true
}
