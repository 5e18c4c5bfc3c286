#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# How far a long reading is: a line on the terminal, and on nothing else, once two seconds have
# passed: on a clock of the test's own, which goes on when it is looked at.

bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	unset COLUMNS STRAIN_DIR NO_COLOR
	"$BUILD_ROOT/tests/tools/make_run" train.strain 60
	export TEST_CLOCK_MS=500
}

# Runs strain on the test's clock.
on_clock() {
	LD_PRELOAD="$BUILD_ROOT/tests/tools/test_clock.so" \
		ASAN_OPTIONS="${ASAN_OPTIONS-}:verify_asan_link_order=0" "$STRAIN" "$@"
}

# The same, with standard error on a terminal; what it wrote there goes to err.
on_terminal() {
	export -f on_clock
	/usr/bin/python3 -c '
import os, pty, subprocess, sys
terminal, theirs = pty.openpty()
command = subprocess.Popen(["bash", "-c", "on_clock \"$@\"", "bash", *sys.argv[1:]],
    stdout=subprocess.DEVNULL, stderr=theirs)
os.close(theirs)
with open("err", "wb") as err:
    try:
        while data := os.read(terminal, 65536):
            err.write(data)
    except OSError: # nobody has the other end any more
        pass
sys.exit(command.wait())' "$@"
}

# It was said how far, more and more, and is taken away at the end.
says_how_far() {
	/usr/bin/python3 -c '
import re
err = open("err", "rb").read().decode()
line = r"\rstrain: reading train\.strain: (\d+) %(?:, [\d.]+ [\d. a-z]+ left)?\x1b\[K"
assert re.fullmatch("(?:" + line + r")+\r\x1b\[K(?!\r).*", err, re.DOTALL), repr(err)
shares = [int(share) for share in re.findall(line, err)]
assert len(shares) > 3 and shares == sorted(shares) and 0 < shares[-1] <= 99, shares'
}

# How often it was said: at each part of the run that is read.
said() {
	grep -o 'reading train.strain' err | wc -l
}

@test "show, finish, export and report say how far they are" {
	on_terminal show train.strain
	says_how_far
	local without_summary
	without_summary=$(said)
	on_terminal export --format csv train.strain
	says_how_far
	if "$STRAIN" report -o page.html train.strain 2>err || ! grep -q 'built without HTML pages' err; then
		on_terminal report --force -o page.html train.strain
		says_how_far
	fi
	on_terminal finish train.strain
	says_how_far
	on_terminal show train.strain # which has its summary now
	says_how_far
	[ "$(said)" -lt "$without_summary" ]
}

@test "iterations and phases count, not only readings" {
	"$BUILD_ROOT/tests/tools/make_run" train.strain 60 1s 0 20000 2
	"$STRAIN" finish train.strain 2>err
	on_terminal show train.strain
	says_how_far
	[ "$(said)" -gt 100 ] # 160,000 spans; there are some 20 blocks
	"$BUILD_ROOT/tests/tools/make_run" few.strain 60 1s
	mv few.strain train.strain
	on_terminal show train.strain
	[ "$(said)" -lt 60 ]
}

@test "nothing of it in a file, nor before two seconds have passed" {
	on_clock show train.strain 2>err >/dev/null
	[ ! -s err ]
	TEST_CLOCK_MS=0 on_terminal export --format csv train.strain
	[ ! -s err ]
}
