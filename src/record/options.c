// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The options of `strain run`, one per row.

#include "record/options.h"

#include <stddef.h>

const struct argp_option run_option_table[] = {
	{"output", 'o', "FILE", 0,
		"write the run to FILE (.strain is added if missing; default: "
		"PROGRAM-DATE-TIME.strain in $STRAIN_DIR, or in the current directory)",
		0},
	{"force", OPTION_FORCE, NULL, 0, "overwrite FILE if it exists", 0},
	{"interval", OPTION_INTERVAL, "TIME", 0,
		"sample the job's processes every TIME, 100us to 60s (default: 50ms; 20ms at the "
		"start and while epochs are short)",
		0},
	{"overhead", OPTION_OVERHEAD, "PERCENT", 0,
		"sample less often if recording would use more than PERCENT of one CPU (default: "
		"1%; unlimited if --interval is given alone)",
		0},
	{"label", OPTION_LABEL, "NAME=VALUE", 0,
		"attach a label for selecting and comparing runs; may be repeated; ranks and the "
		"Slurm job are added automatically",
		0},
	{"job", OPTION_JOB, "NAME", 0,
		"name the job to which this run belongs (label job=NAME); needed if each rank has "
		"its own run and the launcher does not name the job",
		0},
	{"epoch-pattern", OPTION_EPOCH_PATTERN, "REGEX", 0,
		"mark an epoch at each line of the job's output that matches; the group "
		"(?<epoch>...) is its number, other named groups, like (?<loss>...), become "
		"points; auto matches lines such as \"Epoch 3/10\" that count up",
		0},
	{"max-size", OPTION_MAX_SIZE, "SIZE", 0,
		"keep the file below SIZE by thinning its oldest samples (256MiB)", 0},
	{"pid", OPTION_PID, "PID", 0,
		"record a running process until it ends or Ctrl-C is "
		"pressed",
		0},
	{"cpus", OPTION_CPUS, "N|LIST", 0,
		"limit the job to N CPUs, or to the CPUs in LIST (0-1,4); if this or another "
		"limit cannot be set, the job is not started",
		0},
	{"memory", OPTION_MEMORY, "SIZE", 0,
		"limit the memory of the job to SIZE (4GiB); the kernel kills a job that exceeds "
		"it; "
		"needs a writable cgroup",
		0},
	{"disk-read", OPTION_DISK_READ, "RATE", 0,
		"limit reads from each disk to RATE (100MB/s, unlimited); needs a writable "
		"cgroup",
		0},
	{"gpus", OPTION_GPUS, "N|LIST", 0,
		"limit the job to the first N GPUs available to strain (0: none), or to the GPUs "
		"in LIST (0,2)",
		0},
	{"no-cgroup", OPTION_NO_CGROUP, NULL, 0, "do not create a cgroup for the job", 0},
	{"no-markers", OPTION_NO_MARKERS, NULL, 0,
		"do not collect marks from the job (leave STRAIN_MARKERS unset)", 0},
	{"no-hooks", OPTION_NO_HOOKS, NULL, 0,
		"do not hook Python frameworks (leave PYTHONPATH unchanged)", 0},
	{"no-profile", OPTION_NO_PROFILE, NULL, 0, "do not profile CPU time", 0},
	{"lines", OPTION_LINES, NULL, 0,
		"sample the line of the script that each Python process executes, 20 times a "
		"second until the end (default: a few hundred samples of PyTorch, Keras and JAX "
		"jobs)",
		0},
	{"no-verdict", OPTION_NO_VERDICT, NULL, 0,
		"skip the verdict and summary; the first command that reads the run computes "
		"them",
		0},
	// Set by `strain sweep`: a signal to the launcher is meant for the job, and the sweep ends
        // the remaining processes itself.
	{"supervised", OPTION_SUPERVISED, NULL, OPTION_HIDDEN, NULL, 0},
	// Set by `strain advise`: the job runs over an overlay of its directory, with its files in
        // DIR (machine/overlay.h).
	{"overlay", OPTION_OVERLAY, "DIR", OPTION_HIDDEN, NULL, 0},
	{"help", OPTION_HELP, NULL, 0, "print this help", -1},
	{"usage", OPTION_USAGE, NULL, 0, "print the list of options", -1},
	{0},
};
