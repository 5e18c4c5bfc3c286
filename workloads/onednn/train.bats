#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# What onednn-train prints, and how it ends. $TRAIN is the program.

bats_require_minimum_version 1.5.0

setup() {
	export OMP_NUM_THREADS=1
}

epoch_line='^epoch [0-9]+/[0-9]+  loss [0-9]+\.[0-9]{4}  accuracy [01]\.[0-9]{3}  [0-9.]+ s  [0-9]+ images/s$'

# Nothing that was started with this seed is left.
nothing_left() {
	local seed=$1 i
	for i in $(seq 50); do
		pgrep -f -- "--seed $seed" >/dev/null || return 0
		sleep 0.1
	done
	return 1
}

@test "prints the model and a line per epoch" {
	run --separate-stderr "$TRAIN" --samples 200 --epochs 2 --workers 2
	[ "$status" -eq 0 ]
	[ -z "$stderr" ]
	[ "${lines[0]}" = "cnn: 89450 parameters, 200 images, batch size 32, 2 workers" ]
	[[ "${lines[1]}" =~ $epoch_line ]]
	[[ "${lines[2]}" =~ ^epoch\ 2/2 ]]
	[ "${#lines[@]}" -eq 3 ]
}

@test "the same seed gives the same losses, with and without workers" {
	once() {
		"$TRAIN" --samples 320 --epochs 2 --seed "$1" --workers "$2" | sed -n 's/.*\(loss [0-9.]*  accuracy [0-9.]*\).*/\1/p'
	}
	[ "$(once 5 0)" = "$(once 5 3)" ]
	[ "$(once 5 0)" != "$(once 6 0)" ]
}

@test "refuses what it cannot do" {
	run -2 "$TRAIN" --batch-size 0
	[[ "$output" == *"--batch-size"* ]]
	run -2 "$TRAIN" --model resnet9000
	[[ "$output" == *"no model 'resnet9000'"* ]]
	run -2 "$TRAIN" --dataset dt3
	run -2 "$TRAIN" --workers many
	run -2 "$TRAIN" extra
	run -1 "$TRAIN" --samples 3
	[ "$output" = "onednn-train: 3 samples do not fill a batch of 32" ]
}

@test "an interrupt ends it and its workers, by that signal" {
	run timeout --preserve-status -s INT 1 "$TRAIN" --epochs 1000 --workers 2 --seed 771001
	[ "$status" -eq 130 ]
	[[ "$output" == *"stopped by signal 2"* ]]
	nothing_left 771001
}

@test "killed, it leaves no workers" {
	run timeout --preserve-status --foreground -s KILL 1 "$TRAIN" --epochs 1000 --workers 2 --seed 771002
	[ "$status" -eq 137 ]
	nothing_left 771002
}

@test "a killed worker is an error that says so" {
	"$TRAIN" --epochs 1000 --workers 2 --seed 771003 >/dev/null 2>"$BATS_TEST_TMPDIR/errors" &
	trainer=$!
	worker=
	for i in $(seq 100); do
		worker=$(pgrep -P "$trainer" | head -1) || true
		[ -n "$worker" ] && break
		sleep 0.1
	done
	kill -KILL "$worker"
	status=0
	wait "$trainer" || status=$?
	[ "$status" -eq 1 ]
	grep -q "loader worker [01] (pid $worker) was killed by signal 9 (Killed)" "$BATS_TEST_TMPDIR/errors"
	nothing_left 771003
}

@test "output that cannot be written is an error" {
	run -1 bash -c '"$TRAIN" --samples 64 --epochs 1 >/dev/full'
	[[ "$output" == *"cannot write"* ]]
}
