// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The recorder: the process that samples the job and writes the run file.

#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "record/options.h"

struct job_cgroup;
struct limits;
struct marker_directory;

// An optional part of the run: a key of the run, and the reason for its absence (NULL: present).
struct missing_part {
	const char *key;
	const char *reason;
};

struct recorder_config {
	const struct run_options *options;
	const char *path; // of the run file
	const struct job_cgroup *cgroup; // the job's own; NULL: none
	const struct limits *limits; // of the job
	uint64_t start_ns; // the run's start, CLOCK_MONOTONIC
	pid_t launcher; // the recorder's parent; reaps the job
	int socket; // to the launcher (record/protocol.h)
	// Copies of the job's standard output and error for --epoch-pattern: the read end of a
	// pipe, or a regular file to which the job appends. -1: none.
	int output[2];
	const struct marker_directory *markers; // NULL: none
	int hooks; // descriptor of the same folder if the job's Python processes have hooks, which
	           // report there; -1: none
	struct missing_part missing[4];
};

// Runs in the recorder's process, which already ignores the signals of the job's group, until the
// job has ended and the file is closed. Never touches the job. Returns the exit status of the
// process.
int recorder_run(const struct recorder_config *config);
