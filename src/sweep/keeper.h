// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A process between the sweep and a trial's launcher, which runs as long as any process of the
// trial. As subreaper it adopts the trial's orphans, so that exactly the processes below it are the
// trial's. It also ends the trial if the sweep was killed.
//
// How a job is ended. First, SIGTERM to its first process, which may need its workers to save its
// work (PyTorch raises an error in a process whose DataLoader's worker is ended by SIGTERM). When
// that process ends, the children it leaves are signalled next (the command of a shell), and so on.
// After half of the grace period, all others get SIGTERM, too (a shell waits for its command before
// it runs a trap). After all of it, the remaining processes get SIGKILL. Some processes do not end
// then: those of another user (setuid), and those that wait in the kernel (NFS, a driver). They are
// reported after a while, and left.

#pragma once

#include <stdint.h>
#include <sys/types.h>

// commands to the keeper, one byte each
enum keeper_command { KEEPER_ASK = 'a', KEEPER_KILL = 'k' };

enum { KEEPER_LEFT_MOST = 8 };

struct keeper_message { // from the keeper
	// 0: the launcher has ended; else the last message: processes that it could not end
	size_t n_left;
	pid_t left[KEEPER_LEFT_MOST]; // the first of these
	int status; // of the launcher, as waitpid returns it
	int error; // an errno value if the launcher was not started; 0
};

struct keeper_config {
	int socket; // SEQPACKET; if it is closed, the sweep has ended
	const char *run; // the run file, which names its recorder
	const char *mark; // of the trial's processes (still_running.h)
	uint64_t grace_ns; // between SIGTERM and SIGKILL
	// Called in a child of the keeper to become the launcher; returns on failure.
	void (*become)(const void *context);
	const void *context;
};

// Called in a child of the sweep. Exits when no process of the trial is left, or none that can be
// ended.
_Noreturn void keeper_run(const struct keeper_config *config);
