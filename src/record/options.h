// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The options of `strain run`: strain-record parses them, and strain completes them in shells.

#pragma once

#include <argp.h>
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
	bool supervised; // by a sweep, whose signals are for the job only
	const char *overlay; // scratch folder of an overlay of the job's directory; NULL: none
	char **command; // argv, ends with NULL; NULL with --pid
};

enum option_key {
	OPTION_FORCE = 0x100,
	OPTION_INTERVAL,
	OPTION_LABEL,
	OPTION_JOB,
	OPTION_EPOCH_PATTERN,
	OPTION_OVERHEAD,
	OPTION_MAX_SIZE,
	OPTION_PID,
	OPTION_CPUS, // followed by the other limits in the order of enum limit
	OPTION_MEMORY,
	OPTION_DISK_READ,
	OPTION_GPUS,
	OPTION_NO_CGROUP,
	OPTION_NO_MARKERS,
	OPTION_NO_HOOKS,
	OPTION_NO_PROFILE,
	OPTION_LINES,
	OPTION_NO_VERDICT,
	OPTION_SUPERVISED,
	OPTION_OVERLAY,
	OPTION_USAGE,
	OPTION_HELP = 'h',
};

extern const struct argp_option run_option_table[];
