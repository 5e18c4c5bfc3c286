// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Which runs there are. "The newest run" is the newest start in $STRAIN_DIR, else in the current
// directory.

#pragma once

#include <stddef.h>

#include "base/error.h"

struct run_list {
	char **paths; // sorted by start, newest first
	size_t n;
};

// Every readable run file (*.strain) directly in `directory`; others are skipped.
int run_list_read(const char *directory, struct run_list *ret, struct error *e);
void run_list_done(struct run_list *list);

// The path of the newest run, owned by the caller. -ENOENT with a text that says where was looked.
int run_newest(char **ret_path, struct error *e);
