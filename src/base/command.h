// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The program that a command line runs. Wrapper programs (env, nice, srun, ...) are skipped.

#pragma once

#include <stddef.h>

#include "base/error.h"

// Writes a word fit for a file name: "python3 -u x/train.py" is "train". command ends with NULL.
void command_name(char *const *command, char *buffer, size_t size);
// Returns the position in `command` of the program that finally runs.
char *const *command_program(char *const *command);

// Program -----------------------------------------------------------------------------------------
//
// Checks whether a command can be executed before starting it.

// Returns 0, or the errno value that execvp would give for this name. path: the value of PATH;
// NULL: not set.
int command_check_program(const char *name, const char *path);
// Sets the error for a program that cannot be run. code: as command_check_program returned it.
void command_cannot_run(const char *name, int code, struct error *e);
