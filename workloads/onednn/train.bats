#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# Output and exit status of onednn-train. $TRAIN is the program.

bats_require_minimum_version 1.5.0

setup() {
	export OMP_NUM_THREADS=1
	cd "$BATS_TEST_TMPDIR" || return
}

epoch_line='^epoch [0-9]+/[0-9]+  loss [0-9]+\.[0-9]{4}  accuracy [01]\.[0-9]{3}  [0-9.]+ s  [0-9]+ images/s$'

# No process that was started with this seed is left.
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

@test "processes share each batch and train as one does; images are resized, and it says so" {
	scores() {
		"$TRAIN" --samples 320 --epochs 2 --dataset dt1 --validation-samples 64 "$@" | sed -n 's/  [0-9.]* s .*//p'
	}
	scores >one
	scores --processes 2 --workers 1 >two
	[[ "$(sed -n 2p one)" =~ ^validation\ 1/2\ \ loss\ [0-9.]+\ \ accuracy\ [01]\.[0-9]{3}$ ]]
	[ "$(wc -l <one)" = 4 ]
	# Sums are rounded differently, which 20 steps of Adam amplify: 0.0001 was seen.
	paste one two | awk '{ print; if (NF != 12 || ($4 - $10) ^ 2 > 0.01 ^ 2 || ($6 - $12) ^ 2 > 0.02 ^ 2) exit 1 }'
	run -0 "$TRAIN" --model cnn --image-size 40 --samples 32 --epochs 1 --processes 2 --dataset dt1
	[[ "${lines[0]}" =~ ^cnn:\ [0-9]+\ parameters,\ 32\ images,\ batch\ size\ 32,\ 0\ workers,\ 2\ processes,\ images\ resized\ from\ 32\ to\ 40\ pixels$ ]]
}

@test "refuses what it cannot do" {
	run -2 "$TRAIN" --processes 3
	[[ "$output" == *"3 processes cannot share batches of 32"* ]]
	run -2 "$TRAIN" --model alexnet --image-size 32
	[[ "$output" == *"alexnet needs images of at least 63 pixels"* ]]
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

@test "what makes it slow does, and changes nothing else" {
	losses() {
		"$TRAIN" --samples 160 --epochs 1 "$@" | sed -n 's/.*\(loss [0-9.]*  accuracy [0-9.]*\).*/\1/p'
	}
	head -c 200000 /dev/zero >"$BATS_TEST_TMPDIR/data"
	plain=$(losses --workers 2)
	[ -n "$plain" ]
	[ "$(losses --workers 2 --prepare-us 200 --slow-worker 1 --slow-worker-us 300 --step-us 100)" = "$plain" ]
	[ "$(losses --data "$BATS_TEST_TMPDIR/data" --image-bytes 50000 --validate 3)" = "$plain" ]
	[ "$(losses --ranks 2 --slow-rank 1 --slow-rank-us 500)" = "$plain" ]
	[ "$(losses --workers 2 --checkpoint "$BATS_TEST_TMPDIR/saved" --checkpoint-bytes 1000000)" = "$plain" ]
	[ "$(stat -c %s "$BATS_TEST_TMPDIR/saved")" -eq 1000000 ]
	[ ! -e "$BATS_TEST_TMPDIR/saved.new" ]
}

@test "data that cannot be read is an error of the worker that reads it" {
	run "$TRAIN" --samples 64 --epochs 1 --workers 2 --data /nonexistent
	[ "$status" -eq 1 ]
	[[ "$output" == *"cannot open /nonexistent: No such file or directory"* ]]
	run "$TRAIN" --samples 64 --epochs 1 --data /dev/null
	[ "$status" -eq 1 ]
	[[ "$output" == *"smaller than one image"* ]]
	run "$TRAIN" --samples 64 --epochs 1 --checkpoint /nonexistent/a
	[ "$status" -eq 1 ]
	[[ "$output" == *"cannot write the checkpoint /nonexistent/a"* ]]
}

@test "a rank that is killed ends the others" {
	"$TRAIN" --epochs 1000 --ranks 2 --seed 771004 >/dev/null 2>"$BATS_TEST_TMPDIR/errors" &
	trainer=$!
	rank=
	for i in $(seq 100); do
		rank=$(pgrep -P "$trainer" | head -1) || true
		[ -n "$rank" ] && break
		sleep 0.1
	done
	kill -KILL "$rank"
	status=0
	wait "$trainer" || status=$?
	[ "$status" -eq 1 ]
	grep -q "another rank is gone" "$BATS_TEST_TMPDIR/errors"
	nothing_left 771004
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
