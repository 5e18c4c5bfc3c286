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

// "train-20261120-104211", or with a rank in the environment "train-20261120-104211-rank3".
void name_of_run(char *const *command, time_t start, char *buffer, size_t size);
// The same for a running process, from its command line; "pid-42" if that is not readable.
void name_of_attached(pid_t pid, time_t start, char *buffer, size_t size);

// Creates a new, empty file NAME.strain (NAME-2.strain if that exists) in $STRAIN_DIR, else in the
// current directory; if that is not writable, in $XDG_STATE_HOME/strain, and *ret_notice is then a
// text that says so, else NULL. *ret_file identifies the file. Path and notice are owned by the
// caller.
int name_reserve(const char *name, char **ret_path, struct beneath_file *ret_file,
	char **ret_notice, struct error *e);
