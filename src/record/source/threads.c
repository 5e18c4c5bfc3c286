// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The threads of training processes: CPU time and time runnable without a CPU, ten times a second,
// summed by purpose (machine/thread_kind.h).
//
// A thread's CPU clock (MAKE_THREAD_CPUCLOCK) can be read only by its own process: clock_gettime
// returns EINVAL to others. Its schedstat is readable by anyone, costs 1 us, and also has the time
// runnable. Idle threads are read once a second.
//
// The processes are those that mark iterations; if none does, the one with the most CPU time. The
// purpose of a thread is looked for until there is evidence: in its name when it is new, then in
// the system call in which it waits. CPU time before that remains with the unnamed threads.

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "machine/file.h"
#include "machine/procfs.h"
#include "machine/thread_kind.h"
#include "machine/tree.h"
#include "record/sample/source.h"

enum {
	PROGRAMS_MOST = TREE_TRAINING_MAX,
	THREADS_MOST = 128, // per process
	LISTED_MOST = 1024,
	IDLE_AFTER = 5, // readings without CPU time, after which a thread is read less often
	IDLE_ROUNDS = 10,
	LOOKS_MOST = 600, // a minute of looks: a thread that never waits in that time shows no wait
	NAMED_LOOKS = 5, // readings of the name: threads set their names after they begin
};
#define YOUNG_NS (500 * NS_PER_MS)
#define CHOOSE_NS NS_PER_S // between choices of the process with the most CPU time
#define LIST_NS NS_PER_S // between lists of threads whose number did not change
#define MAPS_NS NS_PER_S // between readings of mappings: doubles with each
#define MAPS_LONGEST_NS (64 * NS_PER_S)

enum { OF_CPU, OF_EARLIER, OF_READY, OF_RUNS, OF_COUNT, N_OF };
enum { RUNNING_LOOKS = N_OF * N_THREAD_KINDS, ALONE, UNREAD, N_METRICS };
#define AT(kind, what) ((kind)*N_OF + (what))

#define FROM " (schedstat of each thread)."
#define SECONDS METRIC_COUNTER, "s", 1e-6
#define ROWS(kind, name, who)                                                                      \
	[AT(kind,                                                                                  \
		OF_CPU)] = {"strain.threads." name ".cpu_time", SECONDS, "CPU time of " who FROM}, \
		[AT(kind, OF_EARLIER)] = {"strain.threads." name ".earlier_time", SECONDS,         \
			"CPU time first counted for unnamed threads, and later attributed to " who \
				FROM},                                                             \
		[AT(kind, OF_READY)] = {"strain.threads." name ".ready_time", SECONDS,             \
			"Time spent ready to run but without a CPU, by " who FROM},                \
		[AT(kind, OF_RUNS)] = {"strain.threads." name ".runs", METRIC_COUNTER, "{run}", 1, \
			"Number of times on a CPU, each until a wait or a switch, of " who FROM},  \
		[AT(kind, OF_COUNT)] = {"strain.threads." name ".count", METRIC_GAUGE, "{thread}", \
			1, "Current number of threads: " who FROM}

static const struct metric metrics[N_METRICS] = {
	ROWS(THREAD_MAIN, "main", "the main thread of a training process"),
	ROWS(THREAD_OPENMP, "openmp",
		"the OpenMP team of a training process, without its "
		"main thread"),
	ROWS(THREAD_BLAS, "blas", "the BLAS thread pool of a training process"),
	ROWS(THREAD_POOL, "pool", "the framework's thread pool (Eigen, XLA, TBB)"),
	ROWS(THREAD_DEVICE, "device", "autograd and device threads"),
	ROWS(THREAD_PYTHON, "python", "Python threads other than the main thread"),
	ROWS(THREAD_UNNAMED, "unnamed", "threads of unknown purpose"),
	ROWS(THREAD_OTHER, "other", "other threads of a training process"),
	[RUNNING_LOOKS] = {"strain.threads.unnamed.running_looks", METRIC_COUNTER, "{look}", 1,
		"Samples of an unnamed thread in which it was running or ready. A Python "
		"thread is soon seen waiting for the interpreter; a polling team is not "
		"(/proc/PID/task/TID/syscall)."},
	[ALONE] = {"strain.threads.team.alone_time", METRIC_COUNTER, "s", 1e-6,
		"CPU time of the busiest OpenMP, BLAS or unnamed thread beyond the time in "
		"which the main thread ran or was ready. The main thread gave it no work in "
		"that time: it was probably spinning."},
	[UNREAD] = {"strain.threads.unread", METRIC_GAUGE, "{thread}", 1,
		"Threads of a training process that are not read, because there are more than "
		"128, or the recorder has no file descriptors left."},
};

static int read_threads(void *state, struct sink *sink, uint64_t now_ns);

static const struct group groups[] = {
	{"threads", ENTITY_PROCESS, metrics, N_METRICS, 100 * NS_PER_MS, read_threads, SHARED_NOT},
};

struct thread {
	pid_t tid; // 0: free
	int fd; // schedstat
	enum thread_kind kind;
	bool seen; // in the last list
	unsigned named, looks, idle;
	uint64_t cpu_ns, ready_ns, runs; // last reading
	uint64_t unnamed_ns; // CPU time until its purpose was known
};

struct program { // a training process
	int64_t entity; // 0: free
	pid_t pid;
	bool there; // in this round
	uint64_t links; // of its task directory when it was last listed
	uint64_t listed_ns, maps_ns, maps_pause_ns;
	bool hides_calls; // /proc/PID/syscall is not readable
	size_t unread;
	struct thread_ranges ranges;
	struct thread threads[THREADS_MOST];
	size_t n; // slots of threads in use, including holes
	uint64_t sums[N_OF][N_THREAD_KINDS]; // never decrease
	uint64_t running_looks;
	uint64_t alone_ns;
	struct stream *stream;
};

struct threads {
	struct tree *tree;
	int root_fd; // borrowed
	int most_fd; // higher descriptors are reserved for others
	unsigned round;
	struct tree_member *members;
	size_t n_members, members_capacity;
	uint64_t chosen_ns;
	int64_t chosen; // the one with the most CPU time; 0: none yet
	struct program *programs[PROGRAMS_MOST];
};

// Threads -----------------------------------------------------------------------------------------

static void thread_close(struct thread *t)
{
	close(t->fd);
	*t = (struct thread){.fd = -1};
}

static int task_read(struct threads *s, const struct program *p, pid_t tid, const char *file,
	char *buffer, size_t size, struct cursor *ret)
{
	char path[96];
	snprintf(path, sizeof(path), "proc/%d/task/%d/%s", (int)p->pid, (int)tid, file);
	return file_read_once(s->root_fd, path, buffer, size, ret, NULL);
}

static bool thread_add(struct threads *s, struct program *p, pid_t tid)
{
	char path[96];
	struct thread *hole = NULL;
	for (size_t i = 0; i < p->n && !hole; i++) {
		hole = p->threads[i].tid == 0 ? &p->threads[i] : NULL;
	}
	if (!hole && p->n < THREADS_MOST) {
		hole = &p->threads[p->n++];
		hole->tid = 0;
	}
	if (!hole) {
		return false;
	}
	snprintf(path, sizeof(path), "proc/%d/task/%d/schedstat", (int)p->pid, (int)tid);
	int fd = openat(s->root_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd > s->most_fd) {
		close(fd);
		fd = -1;
	}
	if (fd < 0) {
		return false;
	}
	*hole = (struct thread){.tid = tid,
		.fd = fd,
		.kind = tid == p->pid ? THREAD_MAIN : THREAD_UNNAMED,
		.seen = true};
	return true;
}

static struct thread *thread_find(struct program *p, pid_t tid)
{
	for (size_t i = 0; i < p->n; i++) {
		if (p->threads[i].tid == tid) {
			return &p->threads[i];
		}
	}
	return NULL;
}

static void list_threads(struct threads *s, struct program *p, DIR *tasks)
{
	const struct dirent *entry;
	size_t listed = 0;
	p->unread = 0;
	for (size_t i = 0; i < p->n; i++) {
		p->threads[i].seen = false;
	}
	while ((entry = readdir(tasks)) && listed < LISTED_MOST) {
		struct cursor name = cursor_of(entry->d_name, strlen(entry->d_name));
		int64_t tid;
		if (!cursor_i64(&name, &tid) || tid <= 0 || tid > INT32_MAX) {
			continue;
		}
		listed++;
		struct thread *known = thread_find(p, (pid_t)tid);
		if (known) {
			known->seen = true;
		} else {
			p->unread += !thread_add(s, p, (pid_t)tid);
		}
	}
	for (size_t i = 0; i < p->n; i++) {
		if (p->threads[i].tid && !p->threads[i].seen) {
			thread_close(&p->threads[i]);
		}
	}
}

// The directory has two links and one for each thread, so a change of their number is seen at once.
static void look_for_threads(struct threads *s, struct program *p, uint64_t now_ns)
{
	char path[64];
	struct stat status;
	snprintf(path, sizeof(path), "proc/%d/task", (int)p->pid);
	if (fstatat(s->root_fd, path, &status, 0) < 0 ||
		(p->links == status.st_nlink && now_ns < p->listed_ns + LIST_NS)) {
		return;
	}
	int fd = openat(s->root_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *tasks = fd >= 0 ? fdopendir(fd) : NULL;
	if (tasks) {
		p->links = status.st_nlink;
		p->listed_ns = now_ns;
		list_threads(s, p, tasks);
		closedir(tasks);
	} else if (fd >= 0) {
		close(fd);
	}
}

// What they are for -------------------------------------------------------------------------------

static void read_maps(struct threads *s, struct program *p, uint64_t now_ns)
{
	struct host_file file = HOST_FILE_CLOSED;
	struct cursor maps;
	char path[64];
	if (p->maps_ns && now_ns < p->maps_ns + p->maps_pause_ns) {
		return;
	}
	p->maps_pause_ns = p->maps_ns == 0                          ? MAPS_NS
	                   : p->maps_pause_ns < MAPS_LONGEST_NS / 2 ? 2 * p->maps_pause_ns
	                                                            : MAPS_LONGEST_NS;
	p->maps_ns = now_ns;
	snprintf(path, sizeof(path), "proc/%d/maps", (int)p->pid);
	if (host_file_open(&file, s->root_fd, path, NULL) == 0 &&
		host_file_read_to_end(&file, &maps) == 0) {
		thread_ranges_read(maps, &p->ranges);
	}
	host_file_close(&file);
}

static void look_at(struct threads *s, struct program *p, struct thread *t, uint64_t now_ns)
{
	char buffer[256];
	struct cursor text;
	if (t->named < NAMED_LOOKS) {
		t->named++;
		if (task_read(s, p, t->tid, "comm", buffer, sizeof(buffer), &text) == 0) {
			t->kind = thread_kind_of_name(text);
		}
	}
	if (t->kind != THREAD_UNNAMED || p->hides_calls || t->looks >= LOOKS_MOST) {
		return;
	}
	t->looks++;
	int r = task_read(s, p, t->tid, "syscall", buffer, sizeof(buffer), &text);
	p->hides_calls = r == -EPERM || r == -EACCES; // -ENOENT: the thread has ended
	if (r < 0) {
		return;
	}
	struct cursor runs = text;
	if (cursor_literal(&runs, "running")) {
		p->running_looks++;
		return;
	}
	if (p->maps_ns == 0) {
		read_maps(s, p, now_ns);
	}
	t->kind = thread_kind_of_call(text, &p->ranges);
	if (t->kind == THREAD_UNNAMED) {
		read_maps(s, p, now_ns); // for the next look: a library may be new
	}
}

// Reading -----------------------------------------------------------------------------------------

// Reads the thread's use since the last reading. Returns false if it is gone.
static bool thread_read(struct program *p, struct thread *t, uint64_t *ret_cpu, uint64_t *ret_ready)
{
	char buffer[128];
	struct cursor text;
	struct proc_schedstat now;
	if (file_pread(t->fd, buffer, sizeof(buffer), &text) < 0 ||
		proc_schedstat_parse(text, &now) < 0) {
		return false;
	}
	*ret_cpu = now.run_ns > t->cpu_ns ? now.run_ns - t->cpu_ns : 0;
	*ret_ready = now.wait_ns > t->ready_ns ? now.wait_ns - t->ready_ns : 0;
	p->sums[OF_CPU][t->kind] += *ret_cpu;
	p->sums[OF_READY][t->kind] += *ret_ready;
	p->sums[OF_RUNS][t->kind] += now.slices > t->runs ? now.slices - t->runs : 0;
	t->unnamed_ns += t->kind == THREAD_UNNAMED ? *ret_cpu : 0;
	t->idle = *ret_cpu > 0 ? 0 : t->idle + 1;
	t->cpu_ns = now.run_ns;
	t->ready_ns = now.wait_ns;
	t->runs = now.slices;
	return true;
}

static bool may_be_team(enum thread_kind kind)
{
	return kind == THREAD_OPENMP || kind == THREAD_BLAS || kind == THREAD_UNNAMED;
}

static bool is_due(const struct threads *s, const struct thread *t)
{
	return t->tid && (t->kind == THREAD_MAIN || t->idle < IDLE_AFTER ||
				 s->round % IDLE_ROUNDS == (unsigned)t->tid % IDLE_ROUNDS);
}

static void read_program(struct threads *s, struct program *p, uint64_t now_ns)
{
	uint64_t main_ns = 0, busiest_ns = 0;
	for (size_t i = 0; i < p->n; i++) {
		struct thread *t = &p->threads[i];
		uint64_t cpu_ns, ready_ns;
		if (!is_due(s, t)) {
			continue;
		}
		// Its time is that of more than one round, or of its whole life.
		bool rested = t->idle >= IDLE_AFTER || t->runs == 0;
		if (t->kind == THREAD_UNNAMED) {
			look_at(s, p, t, now_ns);
		}
		if (t->kind != THREAD_UNNAMED && t->unnamed_ns > 0) {
			p->sums[OF_EARLIER][t->kind] += t->unnamed_ns;
			t->unnamed_ns = 0;
		}
		if (!thread_read(p, t, &cpu_ns, &ready_ns)) {
			thread_close(t);
			p->listed_ns = 0;
			continue;
		}
		main_ns += t->kind == THREAD_MAIN ? cpu_ns + ready_ns : 0;
		if (may_be_team(t->kind) && !rested && cpu_ns > busiest_ns) {
			busiest_ns = cpu_ns;
		}
	}
	p->alone_ns += busiest_ns > main_ns ? busiest_ns - main_ns : 0;
}

static void put_program(struct program *p, struct sink *sink, uint64_t now_ns)
{
	int64_t values[N_METRICS];
	size_t counts[N_THREAD_KINDS] = {0};
	for (size_t i = 0; i < p->n; i++) {
		counts[p->threads[i].kind] += p->threads[i].tid != 0;
	}
	for (size_t k = 0; k < N_THREAD_KINDS; k++) {
		values[AT(k, OF_CPU)] = (int64_t)(p->sums[OF_CPU][k] / NS_PER_US);
		values[AT(k, OF_EARLIER)] = (int64_t)(p->sums[OF_EARLIER][k] / NS_PER_US);
		values[AT(k, OF_READY)] = (int64_t)(p->sums[OF_READY][k] / NS_PER_US);
		values[AT(k, OF_RUNS)] = (int64_t)p->sums[OF_RUNS][k];
		values[AT(k, OF_COUNT)] = (int64_t)counts[k];
	}
	values[RUNNING_LOOKS] = (int64_t)p->running_looks;
	values[ALONE] = (int64_t)(p->alone_ns / NS_PER_US);
	values[UNREAD] = (int64_t)p->unread;
	if (!p->stream) {
		p->stream = sink_stream(sink, p->entity, &groups[0]);
	}
	stream_row(p->stream, now_ns, values);
}

// Processes ---------------------------------------------------------------------------------------

static void program_free(struct program *p)
{
	for (size_t i = 0; p && i < p->n; i++) {
		if (p->threads[i].tid) {
			thread_close(&p->threads[i]);
		}
	}
	free(p);
}

static const struct tree_member *member_of(const struct threads *s, int64_t entity)
{
	for (size_t i = 0; i < s->n_members; i++) {
		if (s->members[i].entity == entity) {
			return &s->members[i];
		}
	}
	return NULL;
}

// Used if no process marks iterations. The choice is kept until another process has twice the CPU
// time: a program that starts others is overtaken by those that compute.
static int64_t choose_busiest(struct threads *s, uint64_t now_ns)
{
	uint64_t most_ns = 0, chosen_ns = 0;
	int64_t most = 0;
	if (s->chosen && now_ns < s->chosen_ns + CHOOSE_NS) {
		return s->chosen;
	}
	s->chosen_ns = now_ns;
	for (size_t i = 0; i < s->n_members; i++) {
		struct timespec used;
		clockid_t clock = (clockid_t)((~(unsigned)s->members[i].pid << 3) | 2);
		if (now_ns < s->members[i].first_ns + YOUNG_NS || clock_gettime(clock, &used) < 0) {
			continue;
		}
		uint64_t ns = (uint64_t)used.tv_sec * NS_PER_S + (uint64_t)used.tv_nsec;
		chosen_ns = s->members[i].entity == s->chosen ? ns : chosen_ns;
		if (ns > most_ns) {
			most_ns = ns;
			most = s->members[i].entity;
		}
	}
	s->chosen = chosen_ns > 0 && most_ns < 2 * chosen_ns ? s->chosen : most;
	return s->chosen;
}

static void follow(struct threads *s, int64_t entity)
{
	const struct tree_member *member = member_of(s, entity);
	struct program **hole = NULL;
	for (size_t i = 0; i < PROGRAMS_MOST; i++) {
		struct program *p = s->programs[i];
		if (p && p->entity == entity) {
			p->there = member != NULL;
			return;
		}
		hole = !p && !hole ? &s->programs[i] : hole;
	}
	struct program *p = hole && member ? calloc(1, sizeof(*p)) : NULL;
	if (p) {
		p->entity = entity;
		p->pid = member->pid;
		p->there = true;
		*hole = p;
	}
}

static void choose_programs(struct threads *s, uint64_t now_ns)
{
	int64_t training[TREE_TRAINING_MAX];
	if (tree_training(s->tree, training) == 0) {
		training[0] = choose_busiest(s, now_ns);
	}
	for (size_t i = 0; i < PROGRAMS_MOST; i++) {
		if (s->programs[i]) {
			s->programs[i]->there = false;
		}
	}
	for (size_t i = 0; i < TREE_TRAINING_MAX; i++) {
		if (training[i]) {
			follow(s, training[i]);
		}
	}
	for (size_t i = 0; i < PROGRAMS_MOST; i++) {
		if (s->programs[i] && !s->programs[i]->there) {
			stream_close(s->programs[i]->stream);
			program_free(s->programs[i]);
			s->programs[i] = NULL;
		}
	}
}

static int read_threads(void *state, struct sink *sink, uint64_t now_ns)
{
	struct threads *s = state;
	if (tree_snapshot(s->tree, &s->members, &s->n_members, &s->members_capacity) < 0) {
		return 0;
	}
	s->round++;
	choose_programs(s, now_ns);
	for (size_t i = 0; i < PROGRAMS_MOST; i++) {
		struct program *p = s->programs[i];
		if (p) {
			look_for_threads(s, p, now_ns);
			// The lane may have waited for another source since now_ns.
			uint64_t read_ns = clock_monotonic_ns();
			read_program(s, p, read_ns);
			put_program(p, sink, read_ns);
		}
	}
	return 0;
}

// Opening -----------------------------------------------------------------------------------------

static void threads_close(void *state)
{
	struct threads *s = state;
	for (size_t i = 0; s && i < PROGRAMS_MOST; i++) {
		program_free(s->programs[i]); // the sink owns the streams
	}
	if (s) {
		free(s->members);
	}
	free(s);
}

static int threads_open(
	const struct source_context *context, struct sink *sink, void **ret_state, struct error *e)
{
	char buffer[128];
	struct cursor text;
	(void)sink;
	if (context->captured) {
		return error_set(e, ENOENT, "a captured machine runs no threads");
	}
	if (!context->tree) {
		return error_set(e, ENOENT, "needs a running job");
	}
	if (file_read_once(context->root_fd, "proc/self/schedstat", buffer, sizeof(buffer), &text,
		    NULL) < 0) {
		return error_set(
			e, ENOENT, "no /proc/PID/schedstat (a kernel without CONFIG_SCHED_INFO)");
	}
	struct threads *s = calloc(1, sizeof(*s));
	if (!s) {
		return error_set(e, ENOMEM, "out of memory");
	}
	struct rlimit descriptors = {.rlim_cur = 256};
	getrlimit(RLIMIT_NOFILE, &descriptors);
	s->most_fd = (int)(descriptors.rlim_cur < 4096 ? descriptors.rlim_cur / 2 : 2048);
	s->tree = context->tree;
	s->root_fd = context->root_fd;
	*ret_state = s;
	return 0;
}

const struct source source_threads = {
	.name = "threads",
	.help = "threads of training processes: CPU time by purpose",
	.lane = LANE_MEMORY,
	.groups = groups,
	.n_groups = ARRAY_LENGTH(groups),
	.open = threads_open,
	.close = threads_close,
};
