#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# How tests are run and counted: what fails once beside others and passes by itself is named and
# counts as passed; what fails twice has failed, and so have many that fail.

bats_require_minimum_version 1.5.0

# A project whose test NAME is `sh -c COMMAND`: project NAME COMMAND...
project() {
	echo "project('example', meson_version: '>= 1.0')" >meson.build
	while [ $# -gt 0 ]; do
		echo "test('$1', find_program('sh'), args: ['-c', '''$2'''], suite: 'some')" >>meson.build
		shift 2
	done
	meson setup build >/dev/null
}

run_and_count() {
	"$SOURCE_ROOT/tools/run_suites.sh" build testlog --suite some >/dev/null 2>&1
	"$SOURCE_ROOT/tools/summarize.py" --label 'example: ' --again build/meson-logs/testlog-again.json \
		build/meson-logs/testlog.json
}

setup() {
	cd "$BATS_TEST_TMPDIR" || exit 1
}

@test "all pass: nothing runs again" {
	project 'one of two' 'echo x >>ran' another true
	run -0 run_and_count
	[ "$output" = "example: 2 passed, 0 failed, 0 skipped" ]
	[ "$(cat build/ran ran 2>/dev/null | wc -l)" = 1 ]
}

@test "what passes by itself is named, and what it printed first is there" {
	project 'once, not twice' "[ -e $PWD/there ] || { touch $PWD/there; echo bad luck; exit 1; }" good true
	run -0 run_and_count
	[[ "$output" == *"once, not twice failed beside others and passed by itself"*"bad luck"* ]]
	[[ "$output" == *"unsteady: "*"once, not twice: failed beside others, passed by itself"* ]]
	[ "${lines[-1]}" = "example: 2 passed, 0 failed, 0 skipped" ]
}

@test "a suite that ran and passed is told from one that did not" {
	project good true another true
	echo "test('elsewhere', find_program('false'), suite: 'rest')" >>meson.build
	meson test -C build >/dev/null 2>&1 || true
	"$SOURCE_ROOT/tools/summarize.py" --passed some build/meson-logs/testlog.json
	run -1 "$SOURCE_ROOT/tools/summarize.py" --passed other build/meson-logs/testlog.json
	run -1 "$SOURCE_ROOT/tools/summarize.py" --passed some build/meson-logs/none.json
	rm -r build
	project good true skipped 'exit 77'
	echo "test('elsewhere', find_program('true'), suite: 'rest')" >>meson.build
	meson test -C build >/dev/null 2>&1 || true
	run -1 "$SOURCE_ROOT/tools/summarize.py" --passed some build/meson-logs/testlog.json
}

@test "what fails twice has failed" {
	project always false good true
	run -1 run_and_count
	[[ "$output" != *unsteady* ]]
	[ "${lines[-1]}" = "example: 1 passed, 1 failed, 0 skipped" ]
	# What was left of a run before is not taken for this one's.
	run -1 run_and_count
	[ "${lines[-1]}" = "example: 1 passed, 1 failed, 0 skipped" ]
}

@test "many that fail are no matter of chance" {
	local tests=() i
	for i in $(seq 13); do
		tests+=("t$i" "[ -e $PWD/there$i ] || { touch $PWD/there$i; exit 1; }")
	done
	project "${tests[@]}"
	run -1 run_and_count
	[ "${lines[-1]}" = "example: 0 passed, 13 failed, 0 skipped" ]
}

@test "a test that did not come to an end the second time has failed" {
	project always 'kill -9 $$' good true
	run -1 run_and_count
	[ "${lines[-1]}" = "example: 1 passed, 1 failed, 0 skipped" ]
}
