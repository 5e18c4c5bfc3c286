#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The program itself: its help, its version, commands that do not exist.

load messages

@test "no command prints the help on standard error and fails" {
	run -2 --separate-stderr "$STRAIN"
	[ -z "$output" ]
	line_names "${stderr_lines[0]}" strain COMMAND
}

@test "help goes to standard output and lists the commands" {
	run -0 --separate-stderr "$STRAIN" --help
	[ -z "$stderr" ]
	local command
	for command in run report show ls compare export sql mark sweep advise doctor completion; do
		grep -q "^  $command  *[a-z]" <<<"$output"
	done
}

@test "the version is one line" {
	run -0 "$STRAIN" --version
	[[ "$output" =~ ^strain\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
}

@test "strain help is the help, strain help COMMAND that of the command" {
	[ "$("$STRAIN" help)" = "$("$STRAIN" --help)" ]
	for command in $("$STRAIN" --help | sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p'); do
		[ "$("$STRAIN" help "$command")" = "$("$STRAIN" "$command" --help)" ]
		line_names "$("$STRAIN" help "$command" | head -n 1)" "strain $command"
	done
	fails_with 2 "'rnu'" "'run'" -- "$STRAIN" help rnu
	fails_with 2 "'sweep'" "strain --help" -- "$STRAIN" help run sweep
}

@test "strain version is the version, also as JSON" {
	[ "$("$STRAIN" version)" = "$("$STRAIN" --version)" ]
	"$STRAIN" version --json | python3 -c 'import json, sys
assert "strain " + json.load(sys.stdin)["version"] == sys.argv[1]' "$("$STRAIN" --version)"
	fails_with 2 "'2'" "strain version --help" -- "$STRAIN" version 2
}

@test "every command prints the list of its options" {
	for command in $("$STRAIN" --help | sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p'); do
		run -0 --separate-stderr "$STRAIN" "$command" --usage
		line_names "${lines[0]}" "strain $command"
	done
}

@test "a mistyped command gets a suggestion" {
	fails_with 2 "'rnu'" "'run'" -- "$STRAIN" rnu
}

@test "what resembles nothing gets none" {
	fails_with 2 "'vresion'" "'version'" -- "$STRAIN" vresion
	fails_with 2 "'frobnicate'" "strain --help" -- "$STRAIN" frobnicate
	run ! grep -o "'[a-z]*'[^']*'[a-z]*'" <<<"$stderr"
	fails_with 2 "'-x'" "strain --help" -- "$STRAIN" -x
	[[ "$stderr" != *"'ls'"* ]]
}

@test "a mistyped option gets a suggestion, in every command" {
	fails_with 2 "'--jsn'" "'--json'" -- "$STRAIN" show --jsn
	fails_with 2 "'--dryrun'" "'--dry-run'" -- "$STRAIN" sweep --dryrun plan.yaml
	fails_with 2 "'--valeu'" "'--value'" -- "$STRAIN" compare --valeu duration
	fails_with 125 "'--intervall'" "'--interval'" -- "$STRAIN" run --intervall=5 true
	fails_with 125 "'-xo'" "strain run --help" -- "$STRAIN" run -xo a true
	fails_with 125 --no-hooks --no-markers -- "$STRAIN" run --no true
}

@test "a value that an option does not take is named" {
	fails_with 2 "'--json'" "'3'" -- "$STRAIN" show --json=3
	fails_with 125 "'--force'" "'1'" -- "$STRAIN" run --force=1 true
}
