// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A job of many short processes: short_lived COUNT runs COUNT processes of 1 to 5 ms of CPU time
// each, two at a time. It prints the CPU time of these and of itself by the kernel's accounts, in
// microseconds.

#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"

static uint64_t used_us(int who)
{
	struct rusage usage;
	getrusage(who, &usage);
	return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
	       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void burn(uint64_t ns)
{
	while (clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) < ns) {
	}
}

int main(int argc, char **argv)
{
	struct error e = {0};
	int64_t count = 0;
	if (argc != 2 || parse_integer(argv[1], 1, 1000000, &count, &e) < 0) {
		fputs("usage: short_lived COUNT\n", stderr);
		return 2;
	}
	for (int64_t i = 0; i < count; i++) {
		if (i >= 2) {
			wait(NULL);
		}
		pid_t pid = fork();
		if (pid < 0) {
			perror("short_lived: fork");
			return 1;
		}
		if (pid == 0) {
			burn(NS_PER_MS + (uint64_t)i * 997 % 4001 * NS_PER_US);
			_exit(0);
		}
	}
	while (wait(NULL) > 0) {
	}
	printf("%llu\n", (unsigned long long)(used_us(RUSAGE_SELF) + used_us(RUSAGE_CHILDREN)));
	return 0;
}
