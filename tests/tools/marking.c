// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A job that marks itself, in one of the ways below; for tests/cli/marks.bats.

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "strain/marker.h"

static void rest(long ms)
{
	const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	nanosleep(&time, NULL);
}

// Three epochs of ten iterations of 32 samples.
static void train(void)
{
	for (int epoch = 1; epoch <= 3; epoch++) {
		strain_epoch(epoch);
		for (int i = 0; i < 10; i++) {
			strain_iteration(i, 32);
			strain_begin("data");
			rest(2);
			strain_end();
			strain_begin("forward");
			rest(2);
			strain_end();
			strain_point("loss", 1.0 / epoch);
		}
		printf("epoch %d accuracy=0.%d\n", epoch, epoch);
		fflush(stdout);
	}
	strain_epoch_end();
}

static void *work(void *context)
{
	strain_begin("work");
	rest(50);
	strain_end();
	return context;
}

static void threads(void)
{
	enum { THREADS = 6 };
	pthread_t all[THREADS];
	for (int i = 0; i < THREADS; i++) {
		pthread_create(&all[i], NULL, work, NULL);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(all[i], NULL);
	}
}

// A child inside a span of its parent has spans of its own, and neither ends the other's.
static void forks(void)
{
	strain_begin("parent");
	pid_t child = fork();
	if (child == 0) {
		strain_begin("child");
		rest(200);
		strain_end();
		strain_end();
		_exit(0);
	}
	waitpid(child, NULL, 0);
	strain_end();
}

// Killed in the middle of a span; its parent goes on, and does not look at once.
static void killed(void)
{
	pid_t child = fork();
	if (child == 0) {
		strain_begin("doomed");
		rest(200);
		raise(SIGKILL);
	}
	rest(1500);
	waitpid(child, NULL, 0);
	strain_begin("after");
	strain_end();
}

static void executes(char **argv)
{
	char train_argument[] = "train";
	char *arguments[] = {argv[0], train_argument, NULL};
	strain_begin("before exec");
	rest(200);
	execv("/proc/self/exe", arguments);
}

// As fast as it can.
static void flood(void)
{
	strain_epoch(1);
	for (int i = 0; i < 3000000; i++) {
		strain_begin("forward");
		strain_end();
	}
	strain_epoch_end();
}

// Marks for two seconds.
static void steady(void)
{
	for (int i = 0; i < 2000; i++) {
		for (int k = 0; k < 100; k++) {
			strain_point("x", k);
		}
		rest(1);
	}
}

// 20 iterations of 8 samples that take 30 ms, with OMP_NUM_THREADS=1 a third of that: in sleep, so
// that it does not matter how busy a machine is. Fails with OMP_NUM_THREADS=3.
static void by_threads(void)
{
	const char *threads = getenv("OMP_NUM_THREADS");
	if (threads && strcmp(threads, "3") == 0) {
		fputs("marking: three threads are too many\n", stderr);
		exit(3);
	}
	strain_epoch(1);
	for (int i = 0; i < 20; i++) {
		strain_iteration(i, 8);
		strain_begin("forward");
		rest(threads && strcmp(threads, "1") == 0 ? 10 : 30);
		strain_end();
	}
	strain_epoch_end();
}

static double cpu_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

// 150 iterations of 20 ms of CPU time, however long that takes.
static void computes(void)
{
	strain_epoch(1);
	for (int i = 0; i < 150; i++) {
		strain_iteration(i, 32);
		strain_begin("data");
		rest(2);
		strain_end();
		strain_begin("forward");
		for (double until = cpu_ms() + 20; cpu_ms() < until;) {
		}
		strain_end();
	}
	strain_epoch_end();
}

static void ring_path(char *path, size_t size)
{
	char command[512];
	snprintf(command, sizeof(command), "ls \"$STRAIN_MARKERS\"/ring-%d-*", (int)getpid());
	FILE *list = popen(command, "r");
	if (list && fgets(path, (int)size, list)) {
		path[strcspn(path, "\n")] = '\0';
	}
	if (list) {
		pclose(list);
	}
}

static void truncates(void)
{
	char path[512] = "";
	strain_begin("good");
	rest(300);
	strain_end();
	rest(300);
	ring_path(path, sizeof(path));
	if (truncate(path, 10) < 0) {
		perror(path);
	}
	rest(500); // does not mark again: that would be its own end
}

// A directory full of what is no ring, and a ring that is not what it says.
static void hostile(void)
{
	const char *directory = getenv("STRAIN_MARKERS");
	char path[512];
	for (int i = 0; directory && i < 20000; i++) {
		snprintf(path, sizeof(path), "%s/ring-%d", directory, i);
		int r = i % 4 == 0   ? mkfifo(path, 0600)
		        : i % 4 == 1 ? symlink("/etc/passwd", path)
		        : i % 4 == 2 ? mkdir(path, 0700)
		                     : close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
		if (r < 0) {
			perror(path);
			return;
		}
	}
	strain_begin("x");
	strain_end();
	struct strain_ring *ring = strain_marker_self_.marker->ring;
	for (int i = 0; i < 500; i++) {
		ring->written = (uint64_t)rand() << 20;
		ring->record[i].name = 65535;
		ring->magic = (uint64_t)rand();
		rest(1);
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} ways[] = {{"train", train}, {"threads", threads}, {"forks", forks}, {"killed", killed},
		{"flood", flood}, {"steady", steady}, {"computes", computes},
		{"by_threads", by_threads}, {"truncates", truncates}, {"hostile", hostile}};
	const char *name = argc > 1 ? argv[1] : "";
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (strcmp(ways[i].name, name) == 0) {
			ways[i].run();
			return 0;
		}
	}
	if (strcmp(name, "executes") == 0) {
		executes(argv);
	}
	fprintf(stderr, "marking: no way '%s'\n", name);
	return 1;
}
