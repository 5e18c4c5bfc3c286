// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Exit statuses of strain-record when the job did not run. Callers decide by these codes, not by
// printed text.

#pragma once

enum launch_status {
	LAUNCH_REFUSED = 124, // with --supervised: this machine can never set a limit
	LAUNCH_FAILED = 125, // with --supervised: a failure that may be temporary
	LAUNCH_NOT_EXECUTABLE = 126, // the command is not executable, as in a shell
	LAUNCH_NOT_FOUND = 127,
};
