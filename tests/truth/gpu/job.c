// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The job of a replay: iterations of given phases, which it sleeps or spins through; the fake NVML
// (tests/fake) plays its GPU. Arguments are NAME=NUMBER, the settings below.
//
// Nothing depends on when things happen: it begins when the recorder has read the GPUs twice, and
// what the GPU shows from the middle or the end on follows files that it makes (NAME.middle,
// NAME.end, for the script NAME).

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <strain/marker.h>

#define WAIT_S 60
#define NS 1000000000L

enum {
	ITERATIONS,
	DATA,
	TRANSFER,
	FORWARD,
	BACKWARD,
	OPTIMIZER,
	SPIN,
	MARKS,
	WAIT,
	LISTED,
	DEVICE,
	EXIT,
	N
};

static struct {
	const char *name;
	long value;
} settings[N] = {
	[ITERATIONS] = {"iterations", 40},
	[DATA] = {"data", 0}, // milliseconds, as the others
	[TRANSFER] = {"transfer", 0},
	[FORWARD] = {"forward", 16},
	[BACKWARD] = {"backward", 12},
	[OPTIMIZER] = {"optimizer", 4},
	[SPIN] = {"spin", 0}, // 1: forward computes; 2: data does
	[MARKS] = {"marks", 1}, // 0: no phases, no iterations
	[WAIT] = {"wait", 1}, // for the recorder's readings
	[LISTED] = {"listed", 0}, // at the end, for the third list of processes, where the
                                  // driver has one
	[DEVICE] = {"device", 0}, // holds what looks like /dev/nvidia0 (pids.c)
	[EXIT] = {"exit", 0}, // status
};

static char script[4096];

static void path_of(char *path, size_t size, const char *suffix)
{
	snprintf(path, size, "%s.%s", script, suffix);
}

static void write_number(const char *suffix, long number)
{
	char path[4200], name[4200];
	path_of(path, sizeof(path), "new");
	path_of(name, sizeof(name), suffix);
	FILE *file = fopen(path, "we");
	if (!file || fprintf(file, "%ld\n", number) < 0 || fclose(file) != 0 ||
		rename(path, name) != 0) {
		perror(name);
		exit(71);
	}
}

static void wait_for(const char *suffix)
{
	char path[4200];
	path_of(path, sizeof(path), suffix);
	for (int i = 0; access(path, F_OK) != 0; i++) {
		if (i == WAIT_S * 200) {
			fprintf(stderr, "no %s after %d s\n", path, WAIT_S);
			exit(72);
		}
		usleep(5000);
	}
}

// From now on: a phase that begins late is no shorter for that.
static void pass(long milliseconds, bool spins)
{
	struct timespec now, until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += milliseconds * 1000000;
	until.tv_sec += until.tv_nsec / NS;
	until.tv_nsec %= NS;
	if (!spins) {
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
		}
		return;
	}
	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < until.tv_sec ||
		 (now.tv_sec == until.tv_sec && now.tv_nsec < until.tv_nsec));
}

static void iterate(long number)
{
	bool marks = settings[MARKS].value != 0;
	if (marks) {
		strain_iteration(number, 32);
	}
	for (int phase = DATA; phase <= OPTIMIZER; phase++) {
		if (settings[phase].value == 0) {
			continue;
		}
		if (marks) {
			strain_begin(settings[phase].name);
		}
		long spinning = phase == FORWARD ? 1 : phase == DATA ? 2 : 0;
		pass(settings[phase].value, settings[SPIN].value & spinning);
		if (marks) {
			strain_end();
		}
	}
}

static void set(const char *argument)
{
	for (int i = 0; i < N; i++) {
		size_t length = strlen(settings[i].name);
		if (strncmp(argument, settings[i].name, length) == 0 && argument[length] == '=') {
			settings[i].value = strtol(argument + length + 1, NULL, 10);
			return;
		}
	}
	fprintf(stderr, "%s: no such setting\n", argument);
	exit(70);
}

int main(int argc, char **argv)
{
	char path[4200];
	snprintf(script, sizeof(script), "%s", getenv("STRAIN_FAKE_NVML"));
	for (int i = 1; i < argc; i++) {
		set(argv[i]);
	}
	if (settings[DEVICE].value) {
		path_of(path, sizeof(path), "nvidia0");
		if (open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) < 0) {
			return 73;
		}
	}
	write_number("pid", (long)getpid());
	if (settings[WAIT].value) {
		wait_for("read");
	}
	for (long i = 0; i < settings[ITERATIONS].value; i++) {
		if (i == settings[ITERATIONS].value / 2) {
			write_number("middle", i);
		}
		iterate(i);
	}
	if (settings[MARKS].value) {
		strain_iteration_end(-1);
	}
	if (settings[LISTED].value) {
		wait_for("listed");
	}
	write_number("end", 0);
	return (int)settings[EXIT].value;
}
