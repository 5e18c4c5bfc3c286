// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Exit status by PIDFD_GET_INFO.

#include "machine/exit_status.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// The kernel's struct pidfd_info (include/uapi/linux/pidfd.h) in its first version; newer headers
// define it.
struct exit_info {
	uint64_t mask;
	uint64_t cgroup;
	uint32_t pids_and_owners[11];
	int32_t status;
};
_Static_assert(sizeof(struct exit_info) == 64, "the size that the ioctl's number carries");

#define EXIT_INFO_MASK (UINT64_C(1) << 3)
#define EXIT_INFO_GET _IOWR(0xFF, 11, struct exit_info)

int exit_status_watch(pid_t pid)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct exit_info info = {.mask = EXIT_INFO_MASK};
	// For a living process the kernel returns all other fields; an older kernel does not know
	// the request.
	if (pidfd >= 0 && ioctl(pidfd, EXIT_INFO_GET, &info) < 0) {
		close(pidfd);
		pidfd = -1;
	}
	return pidfd;
}

bool exit_status_of(int pidfd, int *ret_status)
{
	struct exit_info info = {.mask = EXIT_INFO_MASK};
	if (ioctl(pidfd, EXIT_INFO_GET, &info) < 0 || !(info.mask & EXIT_INFO_MASK)) {
		return false;
	}
	*ret_status = info.status;
	return true;
}

void exit_status_describe(int status, char *buffer, size_t size)
{
	if (WIFSIGNALED(status)) {
		snprintf(buffer, size, "was killed (signal %d)", WTERMSIG(status));
	} else {
		snprintf(buffer, size, "ended with status %d", WEXITSTATUS(status));
	}
}
