// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Exit statuses of strain-record when the job did not run. Callers decide by these codes, not by
// printed text.

#pragma once

enum launch_status {
	LAUNCH_REFUSED =
		124, // with --supervised: this machine cannot set a limit, and will not later
	LAUNCH_FAILED = 125, // with --supervised: for a reason that may pass
	LAUNCH_NOT_EXECUTABLE = 126, // the command, as a shell has it
	LAUNCH_NOT_FOUND = 127,
};
