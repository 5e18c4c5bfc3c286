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

# What a program calls: not what lies beneath.
calls_of_header() {
	sed -n 's/^static inline void \(strain_[a-z_]*\)(.*/\1/p' "$SOURCE_ROOT/include/strain/marker.h" |
		grep -vE '^strain_(marker|ring)_' | sort
}

@test "every call of marker.h is in its page, in what it declares and in what it says, and the reverse" {
	local page="$SOURCE_ROOT/man/strain-marker.3.scd"
	[ "$(calls_of_header | wc -l)" -ge 7 ]
	diff <(calls_of_header) <(sed -n 's/^void \(strain_[a-z_]*\)(.*/\1/p' "$page" | sort)
	diff <(calls_of_header) <(grep -E '^\*strain_' "$page" | grep -oE 'strain_[a-z_]+' | sort)
}

@test "what the page of marker.h declares is what the header declares" {
	printf '#include <strain/marker.h>\n' >"$BATS_TEST_TMPDIR/page.c"
	grep -E '^void strain_' "$SOURCE_ROOT/man/strain-marker.3.scd" | sed 's/^void/static inline void/' \
		>>"$BATS_TEST_TMPDIR/page.c"
	cc -std=c11 -fsyntax-only -Wall -Werror -I "$SOURCE_ROOT/include" "$BATS_TEST_TMPDIR/page.c"
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
