// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// One line to the person at the terminal: "strain: TEXT". Only main.c, the launcher and what they
// call before the job starts or after it ended may speak; standard output is the job's alone.

#pragma once

// Writes the line to standard error in one piece. A standard error that is gone is no error.
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
