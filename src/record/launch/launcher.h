// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The launcher: the job's parent, which keeps the terminal, the signals and the exit status. Once
// the job runs, no failure of strain may make it fail.

#pragma once

#include "base/launch_status.h"
#include "record/options.h"

enum {
	LAUNCHER_FAILED = LAUNCH_FAILED, // before the job was started
};

// Records the job and returns the job's exit status. If a signal ended the job, the same signal
// ends this process.
int launcher_run(const struct run_options *options);
