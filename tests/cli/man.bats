#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The manual: every command has a page, and an option stands in both, the command's --help and its
# page.

bats_require_minimum_version 1.5.0

# The commands that people see.
commands() {
	"$STRAIN" --help | sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p'
}

# Options that --help prints, a line each. Every program has --usage; it needs no page.
options_of_help() {
	"$STRAIN" "$1" --help | grep -E '^ +(-[a-zA-Z?], )*--[a-z]' | grep -oE -- '--[a-z][a-z-]*' |
		grep -vx -- '--usage' | sort -u
}

# Options that begin an entry of the page.
options_of_page() {
	grep -E '^\*-' "$SOURCE_ROOT/man/strain-$1.1.scd" | grep -oE -- '--[a-z][a-z-]*' | sort -u
}

@test "there are commands" {
	[ "$(commands | wc -l)" -ge 1 ]
	commands | grep -qx run
}

@test "every command has a page, and strain(1) names it" {
	for command in $(commands); do
		[ -s "$SOURCE_ROOT/man/strain-$command.1.scd" ] || {
			echo "no man/strain-$command.1.scd"
			return 1
		}
		grep -qF "*strain-$command*(1)" "$SOURCE_ROOT/man/strain.1.scd"
		grep -qF "'strain-$command.1'" "$SOURCE_ROOT/man/meson.build"
	done
}

@test "every option of a command's help is in its page, and the reverse" {
	for command in $(commands); do
		diff <(options_of_help "$command") <(options_of_page "$command") || {
			echo "strain $command: < in --help only, > in the page only"
			return 1
		}
	done
}

@test "every page becomes a manual page" {
	command -v scdoc >/dev/null || skip "scdoc is not installed"
	for page in "$SOURCE_ROOT"/man/*.scd; do
		scdoc <"$page" >"$BATS_TEST_TMPDIR/page" || {
			echo "$page"
			return 1
		}
	done
}
