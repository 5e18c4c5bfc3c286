// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// strain run: executes strain-record, which links few libraries and starts in milliseconds.

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/installation.h"
#include "cmd/command.h"

int command_run(int argc, char **argv)
{
	(void)argc;
	struct error e = {0};
	_cleanup_free_ char *recorder = installation_find("strain-record", X_OK, &e);
	if (!recorder) {
		command_fail("cannot record: %s", e.text);
		return STATUS_RUN_FAILED;
	}
	execv(recorder, argv);
	command_fail("cannot record: %s: %s", recorder, strerrordesc_np(errno));
	return STATUS_RUN_FAILED;
}
