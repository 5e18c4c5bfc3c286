// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The reference for a sweep's durations: stopwatch FILE COMMAND... runs a command, appends a line
// with its duration in nanoseconds to FILE, and exits with its status.

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

int main(int argc, char **argv)
{
	if (argc < 3) {
		fputs("usage: stopwatch FILE COMMAND...\n", stderr);
		return 2;
	}
	pid_t pid = -1;
	int status = 0;
	const uint64_t start_ns = clock_monotonic_ns();
	int failed = posix_spawnp(&pid, argv[2], NULL, NULL, argv + 2, environ);
	if (failed == 0 && waitpid(pid, &status, 0) < 0) {
		failed = errno;
	}
	const uint64_t took_ns = clock_monotonic_ns() - start_ns;
	if (failed != 0) {
		fprintf(stderr, "stopwatch: %s: %s\n", argv[2], strerror(failed));
		return 1;
	}
	FILE *file = fopen(argv[1], "a");
	if (file == NULL || fprintf(file, "%llu\n", (unsigned long long)took_ns) < 0 ||
		fclose(file) != 0) {
		perror(argv[1]);
		return 1;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
