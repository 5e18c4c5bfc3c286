#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# strain run on a terminal: keys, signals, sizes (run_terminal.py), with the job's output left
# alone and with it passed on.

load run_helpers

scenario() {
	/usr/bin/python3 "$SOURCE_ROOT/tests/cli/run_terminal.py" "$1"
	/usr/bin/python3 "$SOURCE_ROOT/tests/cli/run_terminal.py" "$1" --epoch-pattern x
}

@test "Ctrl-C reaches the job once" {
	scenario ctrl_c
}

@test "Ctrl-C on a job that does nothing about it is a death by SIGINT" {
	scenario ctrl_c_ends
}

@test "Ctrl-Z stops the job and us, fg continues both" {
	scenario ctrl_z
}

@test "a job that stops itself stops us; continuing either continues both" {
	scenario self_stop
}

@test "a signal sent to us alone reaches the job, once" {
	scenario lone_signals
}

@test "a signal sent to the group reaches the job once" {
	scenario group_signals
}

@test "signals to the group that follow each other closely reach the job once each" {
	scenario close_group_signals
}

@test "under Slurm a signal to the task alone, or to each process, reaches the job once" {
	scenario slurm_signals
}

@test "the job sees the terminal's new size" {
	scenario resized
}

@test "the job sees a terminal" {
	scenario terminal_stays
}

@test "newlines are the terminal's, once" {
	scenario newlines
}

@test "a terminal that hangs up ends the job as it would without us" {
	scenario hang_up
}

@test "the launcher killed on a terminal: the job lives" {
	scenario launcher_killed
}

@test "what passes the output on killed on a terminal: another one goes on" {
	/usr/bin/python3 "$SOURCE_ROOT/tests/cli/run_terminal.py" forwarder_killed --epoch-pattern x
}
