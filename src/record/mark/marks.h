// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A thread that reads the rings of the run's marker directory and makes spans of their marks.

#pragma once

#include <stdint.h>

#include "base/error.h"

struct marks;
struct feed;
struct marker_directory;
struct phase_log;
struct tree;

struct marks_config {
	const struct marker_directory *directory;
	int root_fd;
	struct tree *tree; // for who the writers are
	struct feed *feed;
	uint64_t start_ns; // the run's start
	uint64_t max_bytes; // of the run file: a quarter can be spans; 0 for no limit
	_Atomic unsigned *epochs; // counts beginnings and ends of epochs
	struct phase_log *phases; // of training threads
};

// All in *config is borrowed, and outlives the thread.
int marks_start(const struct marks_config *config, struct marks **ret, struct error *e);
// Reads what is there, closes what is open, says in the run what was not kept, ends the thread,
// removes the directory and frees. Accepts NULL.
void marks_stop(struct marks *m);
