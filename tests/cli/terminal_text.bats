#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# What a job chooses (its command, labels, files, output) reaches no terminal as it is
# (terminal_text.py), and a pipe unchanged.

load run_helpers

@test "no command sends a terminal what a job has chosen" {
	/usr/bin/python3 "$SOURCE_ROOT/tests/cli/terminal_text.py" terminal
}

@test "errors and progress show file names escaped" {
	/usr/bin/python3 "$SOURCE_ROOT/tests/cli/terminal_text.py" errors
}

@test "a pipe gets CSV and JSON as they are" {
	/usr/bin/python3 "$SOURCE_ROOT/tests/cli/terminal_text.py" pipe
}
