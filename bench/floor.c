// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The floor under the recorder's cost: the system calls that it cannot do without, at its default
// rates, and nothing else: no parsing, no list of processes, no file written.
//
//   floor SECONDS COUNTER [MS:PATH]... PID...
//
// reads each PATH every MS (0: every tick of 10 ms) and of each process what stands in the table
// below. Keeps the number of its ticks in the file COUNTER, as 8 bytes, for those who look at its
// CPU clock meanwhile; prints the ticks and the CPU time in nanoseconds that they took.

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"

#define TICK_NS (10 * NS_PER_MS)
// Proportional memory is read in rounds that take a thousandth of the time.
#define ROUND_SHARE 1000

// As in src/record/source/process.c. Beside these, the CPU clock at every tick.
static const struct {
	const char *name;
	int64_t every_ms;
} process_files[] = {
	{"statm", 0},
	{"stat", 100},
	{"schedstat", 100},
	{"io", 100},
	{"status", 1000},
};

struct file {
	int fd;
	uint64_t every_ns;
	uint64_t next_ns;
};

struct process {
	pid_t pid;
	clockid_t clock;
};

struct floor {
	struct file *files;
	size_t file_count;
	size_t file_capacity;
	struct process *processes;
	size_t process_count;
	size_t process_capacity;
	uint64_t round_ns; // when the next round of smaps_rollup is due
	uint64_t rounds_took_ns;
	uint64_t start_ns;
};

static int add_file(struct floor *f, const char *path, int64_t every_ms, struct error *e)
{
	void *files = f->files;
	if (array_reserve(&files, &f->file_capacity, f->file_count + 1, sizeof(*f->files)) < 0) {
		return error_set(e, ENOMEM, "out of memory");
	}
	f->files = files;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		f->files[f->file_count++] = (struct file){fd, (uint64_t)every_ms * NS_PER_MS, 0};
	}
	return 0; // what this kernel does not have, the recorder does not read either
}

static int add_process(struct floor *f, pid_t pid, struct error *e)
{
	void *processes = f->processes;
	if (array_reserve(&processes, &f->process_capacity, f->process_count + 1,
		    sizeof(*f->processes)) < 0) {
		return error_set(e, ENOMEM, "out of memory");
	}
	f->processes = processes;
	struct process *p = &f->processes[f->process_count++];
	p->pid = pid;
	if (clock_getcpuclockid(pid, &p->clock) != 0) {
		return error_set(e, ESRCH, "no process %d", (int)pid);
	}
	int r = 0;
	for (size_t i = 0; i < ARRAY_LENGTH(process_files) && r == 0; i++) {
		char path[64];
		snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, process_files[i].name);
		r = add_file(f, path, process_files[i].every_ms, e);
	}
	return r;
}

static int add_argument(struct floor *f, char *argument, struct error *e)
{
	int64_t number;
	char *colon = strchr(argument, ':');
	if (!colon) {
		int r = parse_integer(argument, 1, INT32_MAX, &number, e);
		return r < 0 ? r : add_process(f, (pid_t)number, e);
	}
	*colon = '\0';
	int r = parse_integer(argument, 0, 3600000, &number, e);
	return r < 0 ? r : add_file(f, colon + 1, number, e);
}

static void read_round(struct floor *f)
{
	char buffer[4096];
	uint64_t start_ns = clock_monotonic_ns();
	for (size_t i = 0; i < f->process_count; i++) {
		char path[64];
		snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)f->processes[i].pid);
		_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0) {
			(void)!pread(fd, buffer, sizeof(buffer), 0);
		}
	}
	uint64_t end_ns = clock_monotonic_ns();
	f->rounds_took_ns += end_ns - start_ns;
	uint64_t earned_ns = f->start_ns + f->rounds_took_ns * ROUND_SHARE;
	f->round_ns = end_ns + NS_PER_S > earned_ns ? end_ns + NS_PER_S : earned_ns;
}

static void tick(struct floor *f, uint64_t now_ns)
{
	char buffer[16384];
	struct timespec cpu;
	for (size_t i = 0; i < f->process_count; i++) {
		clock_gettime(f->processes[i].clock, &cpu);
	}
	for (size_t i = 0; i < f->file_count; i++) {
		struct file *file = &f->files[i];
		if (now_ns >= file->next_ns) {
			(void)!pread(file->fd, buffer, sizeof(buffer), 0);
			file->next_ns = now_ns +
			                (file->every_ns ? file->every_ns - TICK_NS / 2 : 0);
		}
	}
	if (now_ns >= f->round_ns) {
		read_round(f);
	}
}

static int open_counter(const char *path, uint64_t **ret, struct error *e)
{
	_cleanup_close_ int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, sizeof(**ret)) < 0) {
		return error_errno(e, errno, "%s", path);
	}
	void *counter = mmap(NULL, sizeof(**ret), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (counter == MAP_FAILED) {
		return error_errno(e, errno, "%s", path);
	}
	*ret = counter;
	return 0;
}

// A tick that comes late is not caught up with, as in the recorder.
static void run(struct floor *f, uint64_t seconds, uint64_t *ticks)
{
	uint64_t next_ns = f->start_ns = clock_monotonic_ns();
	f->round_ns = f->start_ns + NS_PER_S / 2;
	while (next_ns < f->start_ns + seconds * NS_PER_S) {
		next_ns += TICK_NS;
		struct timespec next = {.tv_sec = (time_t)(next_ns / NS_PER_S),
			.tv_nsec = (long)(next_ns % NS_PER_S)};
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
		uint64_t now_ns = clock_monotonic_ns();
		tick(f, now_ns);
		++*ticks;
		next_ns = now_ns > next_ns + TICK_NS ? now_ns : next_ns;
	}
}

int main(int argc, char **argv)
{
	struct floor f = {0};
	struct error e = {0};
	int64_t seconds = 0;
	uint64_t *ticks = NULL;
	int r = argc < 4 ? error_set(&e, EINVAL, "usage: floor SECONDS COUNTER [MS:PATH]... PID...")
	                 : parse_integer(argv[1], 1, 3600, &seconds, &e);
	r = r < 0 ? r : open_counter(argv[2], &ticks, &e);
	for (int i = 3; i < argc && r == 0; i++) {
		r = add_argument(&f, argv[i], &e);
	}
	if (r < 0) {
		fprintf(stderr, "floor: %s\n", e.text);
		return 1;
	}
	// As the recorder, where it may: who has to wait for a CPU finds its caches emptied.
	(void)sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
	uint64_t before_ns = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
	run(&f, (uint64_t)seconds, ticks);
	uint64_t took_ns = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) - before_ns;
	printf("%llu %llu\n", (unsigned long long)*ticks, (unsigned long long)took_ns);
	return 0;
}
