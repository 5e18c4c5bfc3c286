// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The options of `strain run`: strain-record parses them, and strain completes them in shells.

#pragma once

#include <argp.h>

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
