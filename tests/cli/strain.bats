#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The program itself: its help, its version, commands that do not exist.

bats_require_minimum_version 1.5.0

@test "no command prints the help on standard error and fails" {
	run -2 --separate-stderr "$STRAIN"
	[ -z "$output" ]
	[[ "$stderr" == "Usage: strain COMMAND"* ]]
}

@test "help goes to standard output and lists the commands" {
	run -0 --separate-stderr "$STRAIN" --help
	[[ "$output" == *"record a job from start to end"* ]]
	[ -z "$stderr" ]
}

@test "the version is one line" {
	run -0 "$STRAIN" --version
	[[ "$output" =~ ^strain\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
}

@test "strain help is the help, strain help COMMAND that of the command" {
	[ "$("$STRAIN" help)" = "$("$STRAIN" --help)" ]
	for command in $("$STRAIN" --help | sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p'); do
		[ "$("$STRAIN" help "$command")" = "$("$STRAIN" "$command" --help)" ]
		[[ "$("$STRAIN" help "$command")" == "Usage: strain $command"* ]]
	done
	run -2 --separate-stderr "$STRAIN" help rnu
	[ "$stderr" = "strain: no command 'rnu'; did you mean 'run'?" ]
	run -2 --separate-stderr "$STRAIN" help run sweep
	[ "$stderr" = "strain: expected one command, found 'sweep' too (strain --help)" ]
}

@test "strain version is the version, also as JSON" {
	[ "$("$STRAIN" version)" = "$("$STRAIN" --version)" ]
	"$STRAIN" version --json | python3 -c 'import json, sys
assert "strain " + json.load(sys.stdin)["version"] == sys.argv[1]' "$("$STRAIN" --version)"
	run -2 --separate-stderr "$STRAIN" version 2
	[ "$stderr" = "strain: unexpected argument '2' (strain version --help)" ]
}

@test "a mistyped command gets a suggestion" {
	run -2 --separate-stderr "$STRAIN" rnu
	[ "$stderr" = "strain: no command 'rnu'; did you mean 'run'?" ]
	[ -z "$output" ]
}

@test "what resembles nothing gets none" {
	run -2 --separate-stderr "$STRAIN" vresion
	[ "$stderr" = "strain: no command 'vresion'; did you mean 'version'?" ]
	run -2 --separate-stderr "$STRAIN" frobnicate
	[ "$stderr" = "strain: no command 'frobnicate' (strain --help)" ]
}
