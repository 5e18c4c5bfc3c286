// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The job's processes, and the job as their sum.
//
// Tiers by cost: the CPU clock and statm at every tick (the clock alone would silently go on with a
// process that has taken the pid; an open statm says ESRCH), everything else some ticks apart.
//
// The job's CPU time is the cgroup's counter where the job has one of its own. Elsewhere it is the
// sum over live processes of their own time and that of the children they have reaped, and of what
// the launcher has reaped. A process that ends between two readings moves from one term to the
// other; parents are read before their children's clocks, so that it is never counted twice, and
// the total is kept from falling for the tick in which it is counted in neither.

#include "record/source/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "record/host/file.h"
#include "record/host/procfs.h"
#include "record/job/cgroup.h"
#include "record/job/tree.h"

#define SIGCHLD_BIT (UINT64_C(1) << 16) // signal 17

static const struct metric cpu_metrics[] = {
	{"process.cpu.time", METRIC_COUNTER, "s", 1e-6,
		"CPU time of the process, all threads, from its CPU clock (exact to the "
		"nanosecond, "
		"kept in microseconds)."},
	{"process.memory.usage", METRIC_GAUGE, "By", 1024,
		"Resident memory (statm). Pages shared with other processes count in each of them: "
		"sums "
		"over processes say nothing; see strain.memory.pss."},
	{"strain.memory.shared", METRIC_GAUGE, "By", 1024,
		"Resident memory that maps files or shared memory (statm's third field)."},
};

enum {
	STAT_USER,
	STAT_SYSTEM,
	STAT_CHILDREN,
	STAT_WAIT,
	STAT_BLOCKED,
	STAT_MINOR,
	STAT_MAJOR,
	STAT_THREADS,
	STAT_STATE,
	N_STAT
};
static const struct metric stat_metrics[N_STAT] = {
	[STAT_USER] = {"strain.cpu.time.user", METRIC_COUNTER, "s", 0.01,
		"CPU time in user mode (stat; the kernel splits the exact time by sampled ticks)."},
	[STAT_SYSTEM] = {"strain.cpu.time.system", METRIC_COUNTER, "s", 0.01,
		"CPU time in the kernel (stat; see strain.cpu.time.user)."},
	[STAT_CHILDREN] = {"strain.cpu.time.children", METRIC_COUNTER, "s", 0.01,
		"CPU time of children that the process has waited for, with theirs (stat)."},
	[STAT_WAIT] = {"strain.cpu.wait", METRIC_COUNTER, "s", 1e-6,
		"Time the leader thread was ready to run and had no CPU (schedstat; other threads "
		"are not in it)."},
	[STAT_BLOCKED] = {"strain.io.wait", METRIC_COUNTER, "s", 0.01,
		"Time blocked on storage (stat's delayacct_blkio_ticks); needs "
		"kernel.task_delayacct=1."},
	[STAT_MINOR] = {"process.paging.faults.minor", METRIC_COUNTER, "{fault}", 1,
		"Page faults served without storage (stat)."},
	[STAT_MAJOR] = {"process.paging.faults.major", METRIC_COUNTER, "{fault}", 1,
		"Page faults that had to read storage (stat)."},
	[STAT_THREADS] = {"process.thread.count", METRIC_GAUGE, "{thread}", 1,
		"Threads of the process (stat)."},
	[STAT_STATE] = {"strain.process.state", METRIC_STATE, "1", 1,
		"State of the leader thread as the kernel's letter (stat): 82 R running, 83 S "
		"sleeping, "
		"68 D blocked, 84 T stopped, 90 Z ended."},
};

enum {
	IO_ASKED_READ,
	IO_ASKED_WRITE,
	IO_STORAGE_READ,
	IO_STORAGE_WRITE,
	IO_READ_CALLS,
	IO_WRITE_CALLS,
	N_IO
};
// The same table serves processes and the job.
static const struct metric io_metrics[N_IO] = {
	[IO_ASKED_READ] = {"strain.io.read", METRIC_COUNTER, "By", 1,
		"Bytes asked for by read calls, from the page cache, pipes and terminals too (io: "
		"rchar); "
		"children that were waited for are in their parent's."},
	[IO_ASKED_WRITE] = {"strain.io.write", METRIC_COUNTER, "By", 1,
		"Bytes handed to write calls (io: wchar)."},
	[IO_STORAGE_READ] = {"process.disk.io.read", METRIC_COUNTER, "By", 1,
		"Bytes fetched from storage (io: read_bytes); what was asked for and not fetched "
		"came "
		"from the page cache."},
	[IO_STORAGE_WRITE] = {"process.disk.io.write", METRIC_COUNTER, "By", 1,
		"Bytes sent to storage, counted when pages are made dirty (io: write_bytes)."},
	[IO_READ_CALLS] = {"strain.io.read_calls", METRIC_COUNTER, "{call}", 1,
		"Read calls (io: syscr)."},
	[IO_WRITE_CALLS] = {"strain.io.write_calls", METRIC_COUNTER, "{call}", 1,
		"Write calls (io: syscw)."},
};

enum { STATUS_VOLUNTARY, STATUS_INVOLUNTARY, STATUS_PEAK, STATUS_SWAP, N_STATUS };
static const struct metric status_metrics[N_STATUS] = {
	[STATUS_VOLUNTARY] = {"process.context_switches.voluntary", METRIC_COUNTER, "{switch}", 1,
		"Times the leader thread gave up its CPU to wait (status; other threads are not in "
		"it)."},
	[STATUS_INVOLUNTARY] = {"process.context_switches.involuntary", METRIC_COUNTER, "{switch}",
		1, "Times the leader thread was taken off its CPU (status)."},
	[STATUS_PEAK] = {"strain.memory.peak", METRIC_GAUGE, "By", 1024,
		"The most resident memory the process ever had (status: VmHWM)."},
	[STATUS_SWAP] = {"strain.memory.swap", METRIC_GAUGE, "By", 1024,
		"Anonymous memory in swap (status: VmSwap)."},
};

enum { JOB_CPU, JOB_PROCESSES, JOB_RSS, N_JOB };
static const struct metric job_metrics[N_JOB] = {
	[JOB_CPU] = {"process.cpu.time", METRIC_COUNTER, "s", 1e-6,
		"CPU time of the job with every process that ever was in it; the run's key "
		"cpu_time_exact says how it is known."},
	[JOB_PROCESSES] = {"strain.process.count", METRIC_GAUGE, "{process}", 1,
		"Processes of the job that live."},
	[JOB_RSS] = {"strain.memory.rss_sum", METRIC_GAUGE, "By", 1024,
		"Sum of the processes' resident memory: shared pages count more than once. See "
		"strain.memory.pss and the cgroup's."},
};

static int read_cpu(void *state, struct sink *sink, uint64_t now_ns);
static int read_job(void *state, struct sink *sink, uint64_t now_ns);
static int read_stat_group(void *state, struct sink *sink, uint64_t now_ns);
static int read_io_group(void *state, struct sink *sink, uint64_t now_ns);
static int read_job_io(void *state, struct sink *sink, uint64_t now_ns);
static int read_status_group(void *state, struct sink *sink, uint64_t now_ns);

enum { GROUP_CPU, GROUP_JOB, GROUP_STAT, GROUP_IO, GROUP_JOB_IO, GROUP_STATUS, N_GROUPS };
static const struct group groups[N_GROUPS] = {
	[GROUP_CPU] = {"cpu", ENTITY_PROCESS, cpu_metrics, ARRAY_LENGTH(cpu_metrics), 0, read_cpu},
	[GROUP_JOB] = {"job", ENTITY_JOB, job_metrics, N_JOB, 0, read_job},
	[GROUP_STAT] = {"stat", ENTITY_PROCESS, stat_metrics, N_STAT, 100 * NS_PER_MS,
		read_stat_group},
	[GROUP_IO] = {"io", ENTITY_PROCESS, io_metrics, N_IO, 100 * NS_PER_MS, read_io_group},
	[GROUP_JOB_IO] = {"job_io", ENTITY_JOB, io_metrics, N_IO, 100 * NS_PER_MS, read_job_io},
	[GROUP_STATUS] = {"status", ENTITY_PROCESS, status_metrics, N_STATUS, NS_PER_S,
		read_status_group},
};

// A file of one process: opened with the first reading and kept.
struct reading {
	int fd;
	bool failed; // and said so
};

struct readings {
	uint64_t cpu_ns; // own, as last read
	uint64_t child_ns; // of reaped children, as last read
	uint64_t rss_kib;
	int64_t io[N_IO];
	struct reading io_file, schedstat_file, status_file;
	struct stream *streams[N_GROUPS];
};

struct process_source {
	struct tree *tree;
	bool own_tree; // made for doctor, where there is no job
	bool captured;
	struct sink *sink; // of the call in progress: joined and left are called from tree_update
	int64_t job;
	uint64_t ns_per_tick;
	uint64_t kib_per_page;
	struct host_file cgroup_cpu; // closed where the job has no cgroup of its own
	bool cgroup_v2;
	bool delay_accounting;
	bool sigchld_ignored; // said
	bool many; // said
	struct stream *job_stream, *job_io_stream;
	uint64_t total_ns; // never falls
	uint64_t base_ns; // of the cgroup's counter when the run began
	uint64_t rss_kib;
	int reaper_io_fd; // the launcher's io: has what it reaped
	int64_t reaper_base[N_IO];
	int64_t job_io[N_IO]; // never falls
};

// Joining and leaving ---------------------------------------------------------------------------

static int process_joined(void *context, struct process *p)
{
	struct process_source *s = context;
	struct readings *r = calloc(1, sizeof(*r));
	if (!r) {
		return -ENOMEM;
	}
	r->io_file.fd = r->schedstat_file.fd = r->status_file.fd = -1;
	memset(r->io, 0, sizeof(r->io));
	char key[64], attributes[96];
	snprintf(key, sizeof(key), "%d:%llu", (int)p->pid, (unsigned long long)p->start_ticks);
	snprintf(attributes, sizeof(attributes), "{\"pid\":%d,\"parent_pid\":%d}", (int)p->pid,
		(int)p->parent);
	const struct process *parent = tree_find(s->tree, p->parent);
	p->entity = sink_entity(s->sink, &(struct sink_entity){
						 .kind = ENTITY_PROCESS,
						 .key = key,
						 .name = p->name,
						 .parent = parent ? parent->entity : s->job,
						 .first_ns = p->first_ns,
						 .attributes = attributes,
					 });
	p->readings = r;
	return 0;
}

static void process_left(void *context, struct process *p)
{
	struct process_source *s = context;
	struct readings *r = p->readings;
	tree_close(s->tree, &r->io_file.fd);
	tree_close(s->tree, &r->schedstat_file.fd);
	tree_close(s->tree, &r->status_file.fd);
	for (size_t i = 0; i < N_GROUPS; i++) {
		if (s->sink) {
			stream_close(r->streams[i]);
		}
	}
	if (s->sink) {
		sink_entity_end(s->sink, p->entity, clock_monotonic_ns(), NULL);
	}
	free(r);
}

static void put_row(struct process_source *s, struct process *p, int group, uint64_t now_ns,
	const int64_t *values)
{
	struct readings *r = p->readings;
	if (!r->streams[group]) {
		r->streams[group] = sink_stream(s->sink, p->entity, &groups[group]);
	}
	stream_row(r->streams[group], now_ns, values);
}

// Reads a file of a process: through a descriptor that stays open (a zombie's io still reads
// through one), or, where descriptors run out, opened for this once.
static int read_file(struct process_source *s, const struct process *p, struct reading *file,
	const char *name, char *buffer, size_t size, struct cursor *ret)
{
	if (file->fd < 0) {
		file->fd = tree_open(s->tree, p, name);
	}
	if (file->fd >= 0) {
		return host_pread(file->fd, buffer, size, ret);
	}
	if (file->fd != -EMFILE) {
		return file->fd;
	}
	int fd = tree_open_once(s->tree, p, name);
	if (fd < 0) {
		return fd;
	}
	int result = host_pread(fd, buffer, size, ret);
	close(fd);
	return result;
}

// Said once per process and group; a process that is just gone is not news.
static void reading_failed(struct process_source *s, const struct process *p, struct reading *file,
	int group, const char *name, int error)
{
	if (error == -ESRCH || error == -ENOENT || error == -ENODATA || file->failed) {
		return;
	}
	file->failed = true;
	char reason[160];
	snprintf(reason, sizeof(reason), "%s: %s%s", name, strerrordesc_np(-error),
		error == -EACCES || error == -EPERM
			? " (the process is another user's, or may not be looked into)"
			: "");
	sink_missing_group(s->sink, p->entity, &groups[group], reason);
}

// CPU -------------------------------------------------------------------------------------------

static void note_stat(struct process_source *s, struct process *p, const struct proc_stat *stat)
{
	struct readings *r = p->readings;
	r->child_ns = (stat->child_user_ticks + stat->child_system_ticks) * s->ns_per_tick;
	p->child_lost = false;
	if (s->captured) {
		r->cpu_ns = (stat->user_ticks + stat->system_ticks) * s->ns_per_tick;
	}
	if (strcmp(stat->name, p->name) != 0) {
		tree_rename(s->tree, p, stat->name);
	}
}

static int process_stat(struct process_source *s, struct process *p, struct proc_stat *ret)
{
	char buffer[1024];
	struct cursor text;
	int r;
	if (p->stat_fd >= 0) {
		r = host_pread(p->stat_fd, buffer, sizeof(buffer), &text);
	} else {
		struct reading once = {.fd = -EMFILE};
		r = read_file(s, p, &once, "stat", buffer, sizeof(buffer), &text);
	}
	r = r < 0 ? r : proc_stat_parse(text, ret);
	if (r == 0 && ret->start_ticks != p->start_ticks) {
		r = -ESRCH;
	}
	if (r == 0) {
		note_stat(s, p, ret);
	}
	return r;
}

// Whether the process is still there: statm through a descriptor opened for it, not for its pid.
static int process_statm(struct process_source *s, struct process *p, struct proc_statm *ret)
{
	char buffer[128];
	struct cursor text;
	if (p->statm_fd >= 0) {
		int r = host_pread(p->statm_fd, buffer, sizeof(buffer), &text);
		return r < 0 ? r : proc_statm_parse(text, ret);
	}
	struct proc_stat stat;
	int r = process_stat(s, p, &stat);
	if (r == 0) {
		uint64_t resident = stat.rss_pages > 0 ? (uint64_t)stat.rss_pages : 0;
		*ret = (struct proc_statm){.size_pages = resident, .resident_pages = resident};
	}
	return r;
}

// Reads clock and statm of one process. 0, or -ESRCH where it is gone.
static int process_tick(struct process_source *s, struct process *p, uint64_t now_ns)
{
	struct readings *r = p->readings;
	struct timespec cpu;
	bool clock = !s->captured && clock_gettime(p->cpu_clock, &cpu) == 0;
	struct proc_statm statm;
	int result = process_statm(s, p, &statm);
	if (result == -ESRCH || result == -ENOENT) {
		return -ESRCH;
	}
	if (clock) {
		r->cpu_ns = (uint64_t)cpu.tv_sec * NS_PER_S + (uint64_t)cpu.tv_nsec;
	}
	bool memory = result == 0 && statm.size_pages > 0;
	r->rss_kib = memory ? statm.resident_pages * s->kib_per_page : 0;
	if (p->zombie) {
		return 0; // its last row has been written
	}
	// No memory at all: it has ended, or a program is just being loaded into it.
	struct proc_stat stat;
	if (!memory && process_stat(s, p, &stat) == 0 && (stat.state == 'Z' || stat.state == 'X')) {
		p->zombie = true;
	}
	const int64_t values[] = {
		clock || s->captured ? (int64_t)(r->cpu_ns / NS_PER_US) : VALUE_MISSING,
		memory ? (int64_t)r->rss_kib : VALUE_MISSING,
		memory && p->statm_fd >= 0 ? (int64_t)(statm.shared_pages * s->kib_per_page)
					   : VALUE_MISSING,
	};
	put_row(s, p, GROUP_CPU, now_ns, values);
	return 0;
}

// The counter of the job's own cgroup. False where there is none.
static bool cgroup_cpu_ns(struct process_source *s, uint64_t *ret)
{
	struct cursor text;
	if (s->cgroup_cpu.fd < 0 || host_file_read(&s->cgroup_cpu, &text) < 0) {
		return false;
	}
	if (!s->cgroup_v2) {
		return cursor_u64(&text, ret);
	}
	uint64_t us;
	if (!cursor_literal(&text, "usage_usec ") || !cursor_u64(&text, &us)) {
		return false;
	}
	*ret = us * NS_PER_US;
	return true;
}

static void note_many(struct process_source *s, uint64_t now_ns)
{
	if (!s->many && tree_many(s->tree)) {
		s->many = true;
		sink_event(s->sink, now_ns, "many_processes", s->job,
			"more than %llu processes so far: those that live for less than a second "
		        "are "
			"counted in CPU time from now on, and not listed",
			(unsigned long long)tree_seen(s->tree));
	}
}

static int read_cpu(void *state, struct sink *sink, uint64_t now_ns)
{
	struct process_source *s = state;
	s->sink = sink;
	tree_update(s->tree, now_ns);
	note_many(s, now_ns);
	size_t n;
	// What the launcher reaped is read before the clocks of those whom it may reap meanwhile.
	uint64_t sum_ns = tree_reaped_ns(s->tree);
	struct process *const *members = tree_members(s->tree, &n);
	struct proc_stat stat;
	for (size_t i = 0; i < n && s->cgroup_cpu.fd < 0; i++) {
		if (members[i]->n_children > 0 || members[i]->child_lost) {
			process_stat(s, members[i], &stat);
		}
	}
	s->rss_kib = 0;
	for (size_t i = 0; i < n;) {
		struct process *p = members[i];
		if (process_tick(s, p, now_ns) < 0) {
			tree_remove(s->tree, p);
			members = tree_members(s->tree, &n);
			continue;
		}
		const struct readings *r = p->readings;
		sum_ns += r->cpu_ns + r->child_ns;
		s->rss_kib += r->rss_kib;
		i++;
	}
	uint64_t cgroup_ns;
	if (cgroup_cpu_ns(s, &cgroup_ns)) {
		sum_ns = cgroup_ns - s->base_ns;
	}
	s->total_ns = sum_ns > s->total_ns ? sum_ns : s->total_ns;
	return 0;
}

static int read_job(void *state, struct sink *sink, uint64_t now_ns)
{
	struct process_source *s = state;
	size_t n;
	tree_members(s->tree, &n);
	const int64_t values[N_JOB] = {
		[JOB_CPU] = (int64_t)(s->total_ns / NS_PER_US),
		[JOB_PROCESSES] = (int64_t)n,
		[JOB_RSS] = (int64_t)s->rss_kib,
	};
	if (!s->job_stream && s->job) {
		s->job_stream = sink_stream(sink, s->job, &groups[GROUP_JOB]);
	}
	stream_row(s->job_stream, now_ns, values);
	return 0;
}

// stat, schedstat -------------------------------------------------------------------------------

static int64_t process_wait_us(struct process_source *s, struct process *p)
{
	struct readings *r = p->readings;
	char buffer[128];
	struct cursor text;
	struct proc_schedstat schedstat;
	if (r->schedstat_file.failed ||
		read_file(s, p, &r->schedstat_file, "schedstat", buffer, sizeof(buffer), &text) <
			0 ||
		proc_schedstat_parse(text, &schedstat) < 0) {
		r->schedstat_file.failed = true;
		sink_missing(s->sink, 0, &groups[GROUP_STAT], STAT_WAIT,
			"no /proc/PID/schedstat (a kernel without CONFIG_SCHED_INFO)");
		return VALUE_MISSING;
	}
	return (int64_t)(schedstat.wait_ns / NS_PER_US);
}

static int read_stat_group(void *state, struct sink *sink, uint64_t now_ns)
{
	struct process_source *s = state;
	s->sink = sink;
	size_t n;
	struct process *const *members = tree_members(s->tree, &n);
	for (size_t i = 0; i < n; i++) {
		struct process *p = members[i];
		struct proc_stat stat;
		if (p->zombie || process_stat(s, p, &stat) < 0) {
			continue;
		}
		int64_t values[N_STAT] = {
			[STAT_USER] = (int64_t)stat.user_ticks,
			[STAT_SYSTEM] = (int64_t)stat.system_ticks,
			[STAT_CHILDREN] = (int64_t)(stat.child_user_ticks +
						    stat.child_system_ticks),
			[STAT_WAIT] = process_wait_us(s, p),
			[STAT_BLOCKED] = s->delay_accounting ? stat.block_delay_ticks
		                                             : VALUE_MISSING,
			[STAT_MINOR] = (int64_t)stat.minor_faults,
			[STAT_MAJOR] = (int64_t)stat.major_faults,
			[STAT_THREADS] = stat.threads,
			[STAT_STATE] = stat.state,
		};
		put_row(s, p, GROUP_STAT, now_ns, values);
	}
	return 0;
}

// io --------------------------------------------------------------------------------------------

static void io_values(const struct proc_io *io, int64_t values[N_IO])
{
	values[IO_ASKED_READ] = io->asked_read_bytes;
	values[IO_ASKED_WRITE] = io->asked_write_bytes;
	values[IO_STORAGE_READ] = io->storage_read_bytes;
	values[IO_STORAGE_WRITE] = io->storage_write_bytes;
	values[IO_READ_CALLS] = io->read_calls;
	values[IO_WRITE_CALLS] = io->write_calls;
}

static int read_io_group(void *state, struct sink *sink, uint64_t now_ns)
{
	struct process_source *s = state;
	s->sink = sink;
	size_t n;
	struct process *const *members = tree_members(s->tree, &n);
	for (size_t i = 0; i < n; i++) {
		struct process *p = members[i];
		struct readings *r = p->readings;
		char buffer[512];
		struct cursor text;
		struct proc_io io;
		if (r->io_file.failed || (p->zombie && r->io_file.fd < 0)) {
			continue;
		}
		int result = read_file(s, p, &r->io_file, "io", buffer, sizeof(buffer), &text);
		result = result < 0 ? result : proc_io_parse(text, &io);
		if (result < 0) {
			reading_failed(s, p, &r->io_file, GROUP_IO, "io", result);
			continue;
		}
		io_values(&io, r->io);
		put_row(s, p, GROUP_IO, now_ns, r->io);
	}
	return 0;
}

// What the launcher has reaped is in its own io, less what it had when the run began.
static void reaper_io(struct process_source *s, int64_t values[N_IO])
{
	char buffer[512];
	struct cursor text;
	struct proc_io io;
	memset(values, 0, N_IO * sizeof(*values));
	if (s->reaper_io_fd >= 0 &&
		host_pread(s->reaper_io_fd, buffer, sizeof(buffer), &text) == 0 &&
		proc_io_parse(text, &io) == 0) {
		io_values(&io, values);
	}
}

static int read_job_io(void *state, struct sink *sink, uint64_t now_ns)
{
	struct process_source *s = state;
	size_t n;
	struct process *const *members = tree_members(s->tree, &n);
	int64_t sums[N_IO];
	reaper_io(s, sums);
	for (size_t k = 0; k < N_IO; k++) {
		sums[k] -= s->reaper_base[k];
	}
	for (size_t i = 0; i < n; i++) {
		const struct readings *r = members[i]->readings;
		for (size_t k = 0; k < N_IO; k++) {
			sums[k] += r->io[k] > 0 ? r->io[k] : 0; // absent: nothing to add
		}
	}
	for (size_t k = 0; k < N_IO; k++) {
		s->job_io[k] = sums[k] > s->job_io[k] ? sums[k] : s->job_io[k];
	}
	if (!s->job_io_stream && s->job) {
		s->job_io_stream = sink_stream(sink, s->job, &groups[GROUP_JOB_IO]);
	}
	stream_row(s->job_io_stream, now_ns, s->job_io);
	return 0;
}

// status ----------------------------------------------------------------------------------------

// Children of a process that ignores SIGCHLD vanish without being waited for, and with them their
// time.
static void check_sigchld(
	struct process_source *s, const struct process *p, const struct proc_status *status)
{
	if ((status->ignored_signals & SIGCHLD_BIT) && !s->sigchld_ignored &&
		s->cgroup_cpu.fd < 0 && p->n_children > 0) {
		s->sigchld_ignored = true;
		sink_event(s->sink, clock_monotonic_ns(), "cpu_time_inexact", p->entity,
			"process %d ignores SIGCHLD: the kernel forgets its children's CPU time, "
			"so the job's "
			"total is too small; a cgroup of its own would make it exact",
			(int)p->pid);
	}
}

static int64_t kib(int64_t bytes)
{
	return bytes < 0 ? VALUE_MISSING : bytes / 1024;
}

static int64_t count_or_missing(int64_t value)
{
	return value < 0 ? VALUE_MISSING : value;
}

static int read_status_group(void *state, struct sink *sink, uint64_t now_ns)
{
	struct process_source *s = state;
	s->sink = sink;
	size_t n;
	struct process *const *members = tree_members(s->tree, &n);
	for (size_t i = 0; i < n; i++) {
		struct process *p = members[i];
		struct readings *r = p->readings;
		char buffer[4096];
		struct cursor text;
		struct proc_status status;
		if (p->zombie || r->status_file.failed) {
			continue;
		}
		int result = read_file(
			s, p, &r->status_file, "status", buffer, sizeof(buffer), &text);
		result = result < 0 ? result : proc_status_parse(text, &status);
		if (result < 0) {
			reading_failed(s, p, &r->status_file, GROUP_STATUS, "status", result);
			continue;
		}
		check_sigchld(s, p, &status);
		const int64_t values[N_STATUS] = {
			[STATUS_VOLUNTARY] = count_or_missing(status.voluntary_switches),
			[STATUS_INVOLUNTARY] = count_or_missing(status.involuntary_switches),
			[STATUS_PEAK] = kib(status.peak_resident_bytes),
			[STATUS_SWAP] = kib(status.swap_bytes),
		};
		put_row(s, p, GROUP_STATUS, now_ns, values);
	}
	return 0;
}

// Opening ---------------------------------------------------------------------------------------

static bool delay_accounting_on(int root_fd)
{
	char buffer[16];
	struct cursor text;
	uint64_t on;
	return host_read_once(root_fd, "proc/sys/kernel/task_delayacct", buffer, sizeof(buffer),
		       &text, NULL) == 0 &&
	       cursor_u64(&text, &on) && on == 1;
}

static void open_cgroup(struct process_source *s, const struct source_context *context)
{
	const struct job_cgroup *cgroup = context->cgroup;
	if (!cgroup || !cgroup->cpu) {
		return;
	}
	char path[4200];
	s->cgroup_v2 = cgroup->version == 2;
	snprintf(path, sizeof(path), "%s/%s", cgroup->cpu,
		s->cgroup_v2 ? "cpu.stat" : "cpuacct.usage");
	if (host_file_open(&s->cgroup_cpu, context->root_fd, path, NULL) == 0 &&
		!cgroup_cpu_ns(s, &s->base_ns)) {
		host_file_close(&s->cgroup_cpu);
	}
}

static void open_reaper(struct process_source *s, pid_t reaper, int root_fd)
{
	char path[64];
	snprintf(path, sizeof(path), "proc/%d/io", (int)reaper);
	s->reaper_io_fd = reaper > 0 ? openat(root_fd, path, O_RDONLY | O_CLOEXEC) : -1;
	reaper_io(s, s->reaper_base);
}

static void process_source_close(void *state)
{
	struct process_source *s = state;
	if (!s) {
		return;
	}
	size_t n = 0;
	struct process *const *members = s->tree ? tree_members(s->tree, &n) : NULL;
	s->sink = NULL; // those who live on have no end, and the sink frees their streams
	for (size_t i = 0; i < n; i++) {
		process_left(s, members[i]);
		members[i]->readings = NULL;
	}
	if (s->tree) {
		tree_watch(s->tree, &(struct tree_watcher){0});
	}
	if (s->own_tree) {
		tree_free(s->tree);
	}
	if (s->reaper_io_fd >= 0) {
		close(s->reaper_io_fd);
	}
	host_file_close(&s->cgroup_cpu);
	free(s);
}

static int process_source_open(
	const struct source_context *context, struct sink *sink, void **ret_state, struct error *e)
{
	struct process_source *s = calloc(1, sizeof(*s));
	if (!s) {
		return error_set(e, ENOMEM, "out of memory");
	}
	*s = (struct process_source){
		.tree = context->tree,
		.own_tree = !context->tree,
		.captured = context->captured,
		.sink = sink,
		.job = context->job,
		.ns_per_tick = NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK),
		.kib_per_page = (uint64_t)sysconf(_SC_PAGESIZE) / 1024,
		.cgroup_cpu = HOST_FILE_CLOSED,
		.delay_accounting = delay_accounting_on(context->root_fd),
		.reaper_io_fd = -1,
	};
	if (s->own_tree) {
		int r = tree_new(context->root_fd, context->captured, &s->tree, e);
		if (r < 0) {
			process_source_close(s);
			return r;
		}
		tree_start(s->tree, context->captured ? 1 : getpid(), 0, NULL);
	}
	tree_watch(s->tree, &(struct tree_watcher){
				    .context = s, .joined = process_joined, .left = process_left});
	open_cgroup(s, context);
	open_reaper(s, context->reaper, context->root_fd);
	if (!s->delay_accounting) {
		sink_missing(sink, 0, &groups[GROUP_STAT], STAT_BLOCKED,
			"delay accounting is off; sysctl kernel.task_delayacct=1");
	}
	*ret_state = s;
	return 0;
}

const struct source source_process = {
	.name = "processes",
	.help = "the job's processes: CPU time, memory, storage, threads, faults",
	.lane = LANE_TICK,
	.groups = groups,
	.n_groups = N_GROUPS,
	.open = process_source_open,
	.close = process_source_close,
};
