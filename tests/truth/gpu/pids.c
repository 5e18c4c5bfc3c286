// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Preloaded into the recorder of a replay: the pid namespace that STRAIN_REPLAY_PIDS names, and a
// file NAME.nvidia0 that a process holds as the device /dev/nvidia0. So a replay is in a container,
// or not, wherever the test runs.

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static ssize_t copy(const char *text, char *buffer, size_t size)
{
	size_t length = strlen(text);
	length = length < size ? length : size;
	memcpy(buffer, text, length);
	return (ssize_t)length;
}

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name)
__attribute__((visibility("default"))) ssize_t readlinkat(
	int directory, const char *path, char *buffer, size_t size)
{
	static const char device[] = ".nvidia0";
	char whole[4200];
	const char *pids = getenv("STRAIN_REPLAY_PIDS");
	if (pids && strcmp(path, "proc/self/ns/pid") == 0) {
		return copy(pids, buffer, size);
	}
	ssize_t n = syscall(SYS_readlinkat, directory, path, whole, sizeof(whole));
	size_t end = sizeof(device) - 1;
	if (n >= (ssize_t)end && memcmp(whole + (size_t)n - end, device, end) == 0) {
		return copy("/dev/nvidia0", buffer, size);
	}
	return syscall(SYS_readlinkat, directory, path, buffer, size);
}
