#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Nothing is leaked, and nothing uninitialised is used, where a run is recorded and shown. The job
# itself is not looked at.

bats_require_minimum_version 1.5.0

under_valgrind() {
	valgrind --quiet --leak-check=full --show-leak-kinds=definite,indirect \
		--errors-for-leak-kinds=definite,indirect --error-exitcode=99 \
		--trace-children=yes --trace-children-skip='/bin/*,/usr/bin/*' \
		--log-file="$BATS_TEST_TMPDIR/valgrind.%p" "$@"
}

# Each process has a log of its own; where all went well, each is empty but for what valgrind says
# about itself (--PID--).
assert_clean() {
	local found
	found=$(cat "$BATS_TEST_TMPDIR"/valgrind.* | grep -vE '^==[0-9]+== *$|^--[0-9]+-- ' || true)
	[ -z "$found" ] || {
		echo "$found"
		return 1
	}
}

setup() {
	run_file=$BATS_TEST_TMPDIR/run.strain
}

@test "run leaks nothing" {
	run -3 under_valgrind "$STRAIN" run -o "$run_file" -- /bin/sh -c '/bin/true; exit 3'
	assert_clean
	[ -s "$run_file" ]
}

@test "run with an epoch pattern and a pipe leaks nothing" {
	under_valgrind "$STRAIN" run -o "$run_file" --epoch-pattern '^epoch (?<epoch>\d+)' -- \
		/bin/sh -c 'for i in 1 2 3; do echo "epoch $i"; /bin/sleep 0.1; done' | cat >"$BATS_TEST_TMPDIR/out"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/out")" = 3 ]
	assert_clean
}

@test "run of a command that does not exist leaks nothing" {
	run -127 under_valgrind "$STRAIN" run -o "$run_file" -- no-such-command
	assert_clean
}

@test "show leaks nothing" {
	"$STRAIN" run -o "$run_file" -- /bin/sh -c '/bin/sleep 0.2' 2>"$BATS_TEST_TMPDIR/said"
	under_valgrind "$STRAIN" show "$run_file" >"$BATS_TEST_TMPDIR/shown"
	assert_clean
	under_valgrind "$STRAIN" show --json "$run_file" >"$BATS_TEST_TMPDIR/shown"
	assert_clean
}

@test "show of what is no run leaks nothing" {
	echo 'not a run' >"$run_file"
	run -1 under_valgrind "$STRAIN" show "$run_file"
	assert_clean
}
