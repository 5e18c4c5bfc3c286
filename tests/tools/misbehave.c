// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// misbehave WHAT [N]: jobs that are hard to record. Every one is bounded in processes and time.

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MANY_MAX 11000

static uint64_t cpu_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void burn_ms(unsigned ms)
{
	uint64_t until = cpu_ns() + ms * UINT64_C(1000000);
	while (cpu_ns() < until) {
	}
}

static uint64_t timeval_us(struct timeval t)
{
	return (uint64_t)t.tv_sec * UINT64_C(1000000) + (uint64_t)t.tv_usec;
}

// The kernel's account of this process and of those that it waited for, in us.
static uint64_t account_us(void)
{
	struct rusage self, children;
	getrusage(RUSAGE_SELF, &self);
	getrusage(RUSAGE_CHILDREN, &children);
	return timeval_us(self.ru_utime) + timeval_us(self.ru_stime) +
	       timeval_us(children.ru_utime) + timeval_us(children.ru_stime);
}

static pid_t fork_or_die(void)
{
	pid_t pid = fork();
	if (pid < 0) {
		perror("misbehave: fork");
		_exit(3);
	}
	return pid;
}

// n processes, one after the other, of 1 to 5 ms; prints the kernel's account.
static int short_lived(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (fork_or_die() == 0) {
			burn_ms(1 + i % 5);
			_exit(0);
		}
		wait(NULL);
	}
	printf("%llu\n", (unsigned long long)account_us());
	return 0;
}

// The same, by a process whose children nobody waits for.
static int ignore_children(unsigned n)
{
	signal(SIGCHLD, SIG_IGN);
	for (unsigned i = 0; i < n; i++) {
		if (fork_or_die() == 0) {
			burn_ms(20);
			_exit(0);
		}
		usleep(15000);
	}
	while (wait(NULL) > 0 || errno == EINTR) {
	}
	return 0;
}

static int bad_name(unsigned ms)
{
	prctl(PR_SET_NAME, "a) R 1 (b");
	burn_ms(ms);
	sleep(1);
	return 0;
}

static void *burn_thread(void *all_there)
{
	burn_ms(1);
	pthread_barrier_wait(all_there);
	usleep(500000);
	return NULL;
}

static int threads(unsigned n)
{
	pthread_t ids[MANY_MAX];
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 64 * 1024);
	pthread_barrier_t all_there;
	pthread_barrier_init(&all_there, NULL, n);
	unsigned started = 0;
	for (; started < n; started++) {
		if (pthread_create(&ids[started], &attributes, burn_thread, &all_there) != 0) {
			return 3; // and with it all that wait
		}
	}
	for (unsigned i = 0; i < started; i++) {
		pthread_join(ids[i], NULL);
	}
	return 0;
}

// n processes at once, each of which burns a little and waits for the end.
static int bomb(unsigned n)
{
	unsigned started = 0;
	for (; started < n; started++) {
		pid_t pid = fork();
		if (pid < 0) {
			break;
		}
		if (pid == 0) {
			burn_ms(1);
			sleep(2);
			_exit(0);
		}
	}
	while (wait(NULL) > 0) {
	}
	printf("%u %llu\n", started, (unsigned long long)account_us());
	return 0;
}

// n processes, 1000 at a time, each of which lives long enough to be seen; prints the account.
static int waves(unsigned n)
{
	enum { AT_ONCE = 1000 };
	for (unsigned i = 0; i < n; i++) {
		if (fork_or_die() == 0) {
			usleep(300000);
			_exit(0);
		}
		if (i % AT_ONCE == AT_ONCE - 1 || i + 1 == n) {
			while (wait(NULL) > 0 || errno == EINTR) {
			}
		}
	}
	printf("%llu\n", (unsigned long long)account_us());
	return 0;
}

// A daemon: twice forked, in a session of its own; burns while its first parent is long gone.
static int daemonize(unsigned ms)
{
	int end[2]; // closed when the daemon ends
	if (pipe(end) < 0) {
		return 3;
	}
	pid_t middle = fork_or_die();
	if (middle == 0) {
		setsid();
		if (fork_or_die() == 0) {
			prctl(PR_SET_NAME, "the-daemon");
			burn_ms(ms);
			_exit(0);
		}
		_exit(0);
	}
	waitpid(middle, NULL, 0);
	close(end[1]);
	char byte;
	return read(end[0], &byte, 1) == 0 ? 0 : 3;
}

// A zombie that nobody waits for while its parent goes on.
static int zombie(unsigned ms)
{
	if (fork_or_die() == 0) {
		burn_ms(ms);
		_exit(7);
	}
	sleep(1);
	return 0;
}

// Takes n MiB, and would keep them for a second.
static int eat(unsigned n)
{
	for (unsigned i = 0; i < n; i += 4) {
		// Volatile: memory that is never read needs not be taken, as some compilers know.
		volatile char *taken = malloc((size_t)4 << 20);
		if (!taken) {
			return 3;
		}
		for (size_t at = 0; at < (size_t)4 << 20; at += 4096) {
			taken[at] = 1;
		}
		usleep(5000);
	}
	sleep(1);
	return 0;
}

// Uses a little CPU time and some other number of pages, again and again.
static _Noreturn void waver(unsigned seed)
{
	enum { PAGES = 64, PAGE = 4096 };
	char *pages = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	while (pages != MAP_FAILED) {
		seed = seed * 1103515245u + 12345u;
		madvise(pages, (size_t)PAGES * PAGE, MADV_DONTNEED);
		for (unsigned i = 0; i < (seed >> 16) % PAGES; i++) {
			pages[(size_t)i * PAGE] = 1;
		}
		usleep(1000 + (seed >> 16) % 500);
	}
	_exit(3);
}

// Takes 100 MiB for 5 ms.
static void spike(void)
{
	const size_t size = (size_t)100 << 20;
	char *taken = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	usleep(5000);
	if (taken != MAP_FAILED) {
		munmap(taken, size);
	}
}

// n processes that waver, while this one first takes much memory ten times for a moment, and then
// waits for a file "stop" (a minute at most).
static int crowd(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (fork_or_die() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			waver(i);
		}
	}
	for (unsigned i = 0; i < 10; i++) {
		usleep(180000);
		spike();
	}
	for (unsigned i = 0; i < 600 && access("stop", F_OK) < 0; i++) {
		usleep(100000);
	}
	return 0;
}

// Two processes that each want a CPU for n ms of its time.
static int burn(unsigned ms)
{
	pid_t other = fork_or_die();
	burn_ms(ms);
	if (other == 0) {
		_exit(0);
	}
	waitpid(other, NULL, 0);
	return 0;
}

// Installed setuid: out of reach of who started it.
static int outrank(unsigned n)
{
	if (setresuid(0, 0, 0) < 0) {
		perror("misbehave: setresuid");
		return 3;
	}
	sleep(n);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(unsigned n);
	} jobs[] = {
		{"short", short_lived},
		{"ignore-children", ignore_children},
		{"bad-name", bad_name},
		{"threads", threads},
		{"bomb", bomb},
		{"waves", waves},
		{"daemon", daemonize},
		{"zombie", zombie},
		{"eat", eat},
		{"burn", burn},
		{"crowd", crowd},
		{"outrank", outrank},
	};
	unsigned n = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1;
	for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]) && argc > 1; i++) {
		if (strcmp(jobs[i].name, argv[1]) == 0) {
			return jobs[i].run(n < MANY_MAX ? n : MANY_MAX);
		}
	}
	fputs("usage: misbehave WHAT [N]\n", stderr);
	return 2;
}
