// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The floor of the recorder's cost: the system calls that it needs, at its default rates, and
// nothing else. No parsing, no list of processes, no file written.
//
//   floor SECONDS COUNTER [MS:PATH]... PID...
//
// Reads each PATH every MS (0: every tick of 10 ms), and of each process the files in the table
// below. Stores the number of ticks in the file COUNTER, as 8 bytes, for programs that read its CPU
// clock meanwhile. Prints the ticks, and the CPU time in nanoseconds that they took.

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
// smaps_rollup is read in rounds that take a thousandth of the time.
#define ROUND_SHARE 1000

// As in src/record/source/process.c. In addition, the CPU clock is read at every tick.
static const struct rule {
	const char *name;
	uint64_t every_ns; // 0: every tick
	uint64_t steady_ns; // if the last readings were equal; 0: no difference
	uint64_t rest_ns; // while the CPU clock does not advance; 0: no difference
} process_files[] = {
	{"statm", 0, 50 * NS_PER_MS, 100 * NS_PER_MS},
	{"stat", 100 * NS_PER_MS, 0, 0},
	{"schedstat", 100 * NS_PER_MS, 0, UINT64_MAX / 2},
	{"io", 100 * NS_PER_MS, 300 * NS_PER_MS, UINT64_MAX / 2},
	{"status", NS_PER_S, 0, 0},
};

enum { IS_STEADY = 3, TEXT_BYTES = 128 };

struct file {
	struct rule rule;
	int fd;
	size_t process; // its process; SIZE_MAX: none
	uint64_t next_ns;
	uint64_t read_ns; // time of the last reading
	uint64_t cpu_ns; // CPU clock of its process at that time
	unsigned same; // number of equal readings in a row
	char text[TEXT_BYTES]; // start of the last reading
};

struct process {
	pid_t pid;
	clockid_t clock;
	uint64_t cpu_ns;
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

static int add_file(
	struct floor *f, const char *path, struct rule rule, size_t process, struct error *e)
{
	void *files = f->files;
	if (array_reserve(&files, &f->file_capacity, f->file_count + 1, sizeof(*f->files)) < 0) {
		return error_set(e, ENOMEM, "out of memory");
	}
	f->files = files;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		f->files[f->file_count++] = (struct file){
			.rule = rule, .fd = fd, .process = process};
	}
	return 0; // the recorder does not read missing files either
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
		r = add_file(f, path, process_files[i], f->process_count - 1, e);
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
	struct rule rule = {.every_ns = r < 0 ? 0 : (uint64_t)number * NS_PER_MS};
	return r < 0 ? r : add_file(f, colon + 1, rule, SIZE_MAX, e);
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

// Whether a file that is due can have changed.
static bool is_worth_reading(const struct floor *f, const struct file *file, uint64_t now_ns)
{
	if (file->process == SIZE_MAX || file->read_ns == 0) {
		return true;
	}
	bool rests = file->rule.rest_ns && f->processes[file->process].cpu_ns == file->cpu_ns;
	bool steady = file->rule.steady_ns && file->same >= IS_STEADY;
	uint64_t wait_ns = rests ? file->rule.rest_ns : steady ? file->rule.steady_ns : 0;
	return now_ns >= file->read_ns + wait_ns;
}

static void read_once(const struct floor *f, struct file *file, uint64_t now_ns)
{
	char buffer[16384];
	ssize_t n = pread(file->fd, buffer, sizeof(buffer), 0);
	file->read_ns = now_ns;
	if (file->process != SIZE_MAX && n >= 0) {
		size_t length = n < TEXT_BYTES ? (size_t)n : TEXT_BYTES;
		file->same = memcmp(buffer, file->text, length) == 0 ? file->same + 1 : 0;
		file->cpu_ns = f->processes[file->process].cpu_ns;
		memcpy(file->text, buffer, length);
	}
}

static void tick(struct floor *f, uint64_t now_ns)
{
	struct timespec cpu = {0};
	for (size_t i = 0; i < f->process_count; i++) {
		clock_gettime(f->processes[i].clock, &cpu);
		f->processes[i].cpu_ns = (uint64_t)cpu.tv_sec * NS_PER_S + (uint64_t)cpu.tv_nsec;
	}
	for (size_t i = 0; i < f->file_count; i++) {
		struct file *file = &f->files[i];
		if (now_ns < file->next_ns) {
			continue;
		}
		file->next_ns = now_ns +
		                (file->rule.every_ns ? file->rule.every_ns - TICK_NS / 2 : 0);
		if (is_worth_reading(f, file, now_ns)) {
			read_once(f, file, now_ns);
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

// Ticks that are late are skipped, as in the recorder.
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
	// Like the recorder, if permitted. A thread that waits for a CPU finds its caches cold.
	(void)sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
	uint64_t before_ns = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
	run(&f, (uint64_t)seconds, ticks);
	uint64_t took_ns = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) - before_ns;
	printf("%llu %llu\n", (unsigned long long)*ticks, (unsigned long long)took_ns);
	return 0;
}
