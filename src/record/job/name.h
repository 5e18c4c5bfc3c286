// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The default name of a run file: program, time, rank: train-20261120-104211-rank3.strain

#pragma once

#include <stddef.h>
#include <sys/types.h>
#include <time.h>

#include "base/beneath.h"
#include "base/error.h"

// "train-20261120-104211" or with the rank of the environment "train-20261120-104211-rank3".
void name_of_run(char *const *command, time_t start, char *buffer, size_t size);
// The same of a process that runs already, by its command line; "pid-42" where that is not told.
void name_of_attached(pid_t pid, time_t start, char *buffer, size_t size);

// Reserves a new, empty file NAME.strain (NAME-2.strain where that is taken) in $STRAIN_DIR, else
// in the current directory; where that cannot be written in $XDG_STATE_HOME/strain. *ret_notice is
// then a text that says so, else NULL; *ret_file is that file. Both are owned by the caller.
int name_reserve(const char *name, char **ret_path, struct beneath_file *ret_file,
	char **ret_notice, struct error *e);
