// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What can be said to `strain run`, a row each.

#include "record/launch/option_table.h"

#include <stddef.h>

const struct argp_option run_option_table[] = {
	{"output", 'o', "FILE", 0,
		"Write the run to FILE (.strain is added where it lacks). Otherwise to "
		"PROGRAM-DATE-TIME.strain in $STRAIN_DIR, else "
		"here",
		0},
	{"force", OPTION_FORCE, NULL, 0, "Replace FILE where it exists", 0},
	{"interval", OPTION_INTERVAL, "TIME", 0,
		"Read the job's processes every TIME: 100us to 60s (10ms)", 0},
	{"overhead", OPTION_OVERHEAD, "PERCENT", 0,
		"Slow down where recording would take more than this of one CPU (1%; without a "
		"limit "
		"where --interval is given)",
		0},
	{"label", OPTION_LABEL, "NAME=VALUE", 0,
		"Note something about the run, to find and compare it by; may be repeated. Ranks "
		"and "
		"Slurm's job are noted by themselves",
		0},
	{"epoch-pattern", OPTION_EPOCH_PATTERN, "REGEX", 0,
		"A line of the job's output that matches marks an epoch. A group (?<epoch>...) "
		"is its number; other named groups, like (?<loss>...), become points. auto: lines "
		"such as \"Epoch 3/10\" that count up",
		0},
	{"max-size", OPTION_MAX_SIZE, "SIZE", 0,
		"Keep the file below SIZE by thinning its oldest samples (256MiB)", 0},
	{"pid", OPTION_PID, "PID", 0,
		"Record a process that runs already, until it ends or Ctrl-C is pressed", 0},
	{"cpus", OPTION_CPUS, "N|LIST", 0,
		"Let the job use N CPUs, or those of LIST (0-1,4), and no others. It does not run "
		"where this or another limit cannot be set",
		0},
	{"memory", OPTION_MEMORY, "SIZE", 0,
		"Kill the job where it takes more memory than SIZE (4GiB): needs a cgroup that "
		"strain may make",
		0},
	{"disk-read", OPTION_DISK_READ, "RATE", 0,
		"Let the job read at most RATE (100MB/s, unlimited) from each disk: needs a cgroup "
		"that strain may make",
		0},
	{"gpus", OPTION_GPUS, "N|LIST", 0,
		"Show the job the first N GPUs (0: none), or those of LIST (0,2), of those that "
		"strain may use",
		0},
	{"no-cgroup", OPTION_NO_CGROUP, NULL, 0, "Give the job no cgroup of its own", 0},
	{"no-markers", OPTION_NO_MARKERS, NULL, 0,
		"Take no marks from the job (STRAIN_MARKERS is not set)", 0},
	{"no-hooks", OPTION_NO_HOOKS, NULL, 0,
		"Hook no framework in the job's Pythons (PYTHONPATH stays as it is)", 0},
	{"no-profile", OPTION_NO_PROFILE, NULL, 0, "Take no samples of what the CPU time goes into",
		0},
	{"lines", OPTION_LINES, NULL, 0,
		"Look 20 times a second which line of the script each Python is in", 0},
	{"no-verdict", OPTION_NO_VERDICT, NULL, 0,
		"End without verdict and summary: the first command that reads the run computes "
		"them",
		0},
	// What `strain sweep` says: whoever signals the launcher means the job, and ends the rest
        // by itself.
	{"supervised", OPTION_SUPERVISED, NULL, OPTION_HIDDEN, NULL, 0},
	{"help", OPTION_HELP, NULL, 0, "Show this help", -1},
	{0},
};
