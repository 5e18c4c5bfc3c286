// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Prints one line to the terminal: "strain: TEXT". Only main.c, the launcher and functions that
// they call before the job starts or after it ends may print; standard output belongs to the job.

#pragma once

// Writes the line to standard error in one write. A closed standard error is not an error.
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
