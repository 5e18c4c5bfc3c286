// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A thread that reads the rings in the run's marker directory and makes spans from their marks.

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
	struct tree *tree; // to identify the writers
	struct feed *feed;
	uint64_t start_ns; // the run's start
	uint64_t max_bytes; // of the run file: spans may use a quarter; 0: no limit
	_Atomic unsigned *epochs; // counts starts and ends of epochs
	struct phase_log *phases; // of training threads
};

// Everything in *config is borrowed and must outlive the thread.
int marks_start(const struct marks_config *config, struct marks **ret, struct error *e);
// Reads the remaining marks, closes open spans, records in the run what was dropped, ends the
// thread, removes the directory and frees. Accepts NULL.
void marks_stop(struct marks *m);
