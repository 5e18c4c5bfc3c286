// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The options of `strain run`.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/job/limits.h"
#include "runfile/labels.h"

struct run_options {
	char *output; // -o; NULL: a name made of program and start
	bool force; // replace an existing file
	uint64_t interval_ns; // --interval; 0: adapted to the job (sample/sampler.h, Pace)
	double overhead; // --overhead, of one core; 0: no budget
	uint64_t max_bytes; // --max-size; 256 MiB
	char *epoch_pattern; // NULL for none
	struct run_label *labels; // [n_labels], from --label and the environment
	size_t n_labels;
	pid_t pid; // --pid; 0: a command is started
	struct limits_wanted limits; // --cpus, --memory, --disk-read, --gpus
	bool no_cgroup;
	bool no_markers;
	bool no_hooks;
	bool no_profile;
	bool lines;
	bool no_verdict;
	bool supervised; // by a sweep, whose signals are for the job only, also under Slurm
	const char *overlay; // scratch folder of an overlay of the job's directory; NULL: none
	char **command; // argv, ends with NULL; NULL with --pid
};
