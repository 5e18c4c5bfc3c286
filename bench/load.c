// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A job of many processes: load PROCESSES SECONDS BUSY_US PERIOD_US. Each process computes for
// BUSY_US in every PERIOD_US.

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"

enum { PROCESSES, SECONDS, BUSY_US, PERIOD_US, N_NUMBERS };

static void compute(const int64_t *numbers)
{
	uint64_t now_ns = clock_monotonic_ns();
	uint64_t end_ns = now_ns + (uint64_t)numbers[SECONDS] * NS_PER_S;
	uint64_t next_ns = now_ns;
	while (next_ns < end_ns) {
		uint64_t busy_until_ns = clock_monotonic_ns() +
		                         (uint64_t)numbers[BUSY_US] * NS_PER_US;
		while (clock_monotonic_ns() < busy_until_ns) {
		}
		next_ns += (uint64_t)numbers[PERIOD_US] * NS_PER_US;
		struct timespec next = {.tv_sec = (time_t)(next_ns / NS_PER_S),
			.tv_nsec = (long)(next_ns % NS_PER_S)};
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
}

int main(int argc, char **argv)
{
	int64_t numbers[N_NUMBERS];
	struct error e = {0};
	for (int i = 0; i < N_NUMBERS; i++) {
		if (argc != N_NUMBERS + 1 ||
			parse_integer(argv[i + 1], 1, 1000000000, &numbers[i], &e) < 0) {
			fputs("usage: load PROCESSES SECONDS BUSY_US PERIOD_US\n", stderr);
			return 2;
		}
	}
	for (int64_t i = 1; i < numbers[PROCESSES]; i++) {
		pid_t pid = fork();
		if (pid < 0) {
			perror("load: fork");
			return 1;
		}
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			compute(numbers);
			_exit(0);
		}
	}
	compute(numbers);
	while (wait(NULL) > 0 || errno == EINTR) {
	}
	return 0;
}
