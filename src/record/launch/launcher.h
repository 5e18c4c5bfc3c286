// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The launcher: the job's parent, which keeps the terminal, the signals and the exit status. Once
// the job runs, nothing of ours may fail it.

#pragma once

#include "base/launch_status.h"
#include "record/options.h"

enum {
	LAUNCHER_FAILED = LAUNCH_FAILED, // before the job was started
};

// Records the job and returns the exit status of the process: the job's own. Where the job died of
// a signal, so does this process.
int launcher_run(const struct run_options *options);
