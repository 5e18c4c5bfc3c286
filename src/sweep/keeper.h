// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A process between the sweep and a trial's launcher, for as long as there is anything of the
// trial. It takes in what the trial orphans, and so knows what is the trial's: everything below it,
// and nothing else. It also sees to the end where the sweep was killed.
//
// How a job is ended. SIGTERM to its first process, which may have workers that it needs to save
// its work (PyTorch raises an error in a process whose DataLoader's worker dies of SIGTERM). What
// that one leaves behind as it ends is asked next (the command of a shell), and so on. When half
// of the grace is over everything else is asked, too (a shell that waits for a command before it
// obeys a trap); when all of it is, what is left gets SIGKILL. Some processes do not end of it:
// those of another user (setuid), and those that wait within the kernel (NFS, a driver). They are
// told of after a while, and left.

#pragma once

#include <stdint.h>
#include <sys/types.h>

enum keeper_command { KEEPER_ASK = 'a', KEEPER_KILL = 'k' }; // to it: a byte each

enum { KEEPER_LEFT_MOST = 8 };

struct keeper_message { // from it
	size_t n_left; // 0: the launcher has ended; else the last message: it could not end these
	pid_t left[KEEPER_LEFT_MOST]; // the first of them
	int status; // of the launcher as waitpid gives it
	int error; // an errno value: there was no launcher; 0
};

struct keeper_config {
	int socket; // SEQPACKET; its end means: nobody waits any more
	const char *run; // the run file, which knows who records
	const char *mark; // of the trial's processes, see still_running.h
	uint64_t grace_ns; // between SIGTERM and SIGKILL
	// Becomes the launcher, in a child of the keeper; comes back where it cannot.
	void (*become)(const void *context);
	const void *context;
};

// In a child of the sweep. Ends when nothing of the trial is left, or nothing that it can end.
_Noreturn void keeper_run(const struct keeper_config *config);
