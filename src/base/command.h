// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The program that a command line runs. Programs that run another (env, nice, srun, ...) are looked
// through.

#pragma once

#include <stddef.h>

// A word fit for a file name: "python3 -u x/train.py" is "train". command ends with NULL.
void command_name(char *const *command, char *buffer, size_t size);
// The program that a command line starts in the end: a place in it.
char *const *command_program(char *const *command);

// Program -----------------------------------------------------------------------------------------
//
// Whether a command can be executed, before it is.

// 0, or the errno value that execvp gives for this name. path: what PATH is then; NULL: not set.
int command_check_program(const char *name, const char *path);
