// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// How processes are read.
//
// Tiers by cost: the CPU clock at every tick, everything else some ticks apart; statm at every tick
// while memory changes.
//
// While the clock of a process stands still, to the nanosecond, none of its threads has run: it is
// the same process, and what only itself can change has not changed. The row is written again, the
// file is not read. Resident memory alone can be taken away by others, so statm is read now and
// then all the same. It also guards against reused pids, with which a clock would silently go on
// while an open statm says ESRCH: often enough, since no pid comes round in so short a time.
//
// The job's CPU time is the cgroup's counter where the job has one of its own. Elsewhere it is the
// sum over live processes of their own time and that of the children they have reaped, and of what
// the launcher has reaped. A process that ends between two readings moves from one term to the
// other; parents are read before their children's clocks, so that it is never counted twice, and
// the total is kept from falling for the tick in which it is counted in neither. With --pid what
// processes had used before the run, and their children that they had reaped, is no part of it.

#include "record/source/process_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "record/host/procfs.h"

#define SIGCHLD_BIT (UINT64_C(1) << 16) // signal 17
// Memory of a process that does not run can still be reclaimed.
#define STATM_AT_REST_NS (100 * NS_PER_MS)
// I/O counters of a process that runs, and whose last few readings were the same: most processes
// that compute do none. Memory: statm_steady_ns.
#define IO_STEADY_NS (300 * NS_PER_MS)
#define IS_STEADY 3 // readings in a row that said the same

static void put_row(struct process_source *s, struct process *p, int group, uint64_t now_ns,
	const int64_t *values)
{
	struct readings *r = p->readings;
	if (!r->streams[group]) {
		r->streams[group] = sink_stream(s->sink, p->entity, &process_groups[group]);
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
	sink_missing_group(s->sink, p->entity, &process_groups[group], reason);
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

// Whether the process has not run since its clock was seen_ns.
static bool stood_still(const struct readings *r, uint64_t seen_ns)
{
	return seen_ns > 0 && r->cpu_ns == seen_ns;
}

static bool needs_statm(const struct process_source *s, const struct readings *r, uint64_t now_ns)
{
	uint64_t wait_ns = stood_still(r, r->statm_seen_ns) ? STATM_AT_REST_NS
	                   : r->statm_same >= IS_STEADY     ? s->statm_steady_ns
	                                                    : 0;
	return now_ns >= r->statm_ns + wait_ns;
}

static int64_t rounded_us(const struct process_source *s, uint64_t ns)
{
	int64_t us = (int64_t)(ns / NS_PER_US);
	return us - us % s->cpu_unit_us;
}

static bool read_clock(const struct process_source *s, const struct process *p, uint64_t *ret_ns)
{
	struct timespec cpu;
	// Not through libc and the vDSO, which have nothing to say of this clock: a twentieth less.
	if (s->captured || syscall(SYS_clock_gettime, p->cpu_clock, &cpu) != 0) {
		return false;
	}
	*ret_ns = (uint64_t)cpu.tv_sec * NS_PER_S + (uint64_t)cpu.tv_nsec;
	return true;
}

// Whoever reaps it, now or later, has all of its time: so it is taken off the sum once, and the sum
// stays right when it moves. Of a zombie, which may have no clock, stat tells it.
void process_note_before(struct process_source *s, struct process *p)
{
	struct readings *r = p->readings;
	struct proc_stat stat;
	bool clock = read_clock(s, p, &r->cpu_ns);
	if (process_stat(s, p, &stat) < 0) {
		return;
	}
	if (!clock) {
		r->cpu_ns = (stat.user_ticks + stat.system_ticks) * s->ns_per_tick;
	}
	s->before_ns += r->cpu_ns + r->child_ns;
}

// No memory at all: it has ended, or a program is just being loaded into it.
static void check_zombie(struct process_source *s, struct process *p)
{
	struct proc_stat stat;
	if (process_stat(s, p, &stat) == 0 && (stat.state == 'Z' || stat.state == 'X')) {
		p->zombie = true;
		// 0 is also what is told to those who may not look: then its parent's word is
		// needed.
		p->status = stat.exit_code > 0 ? (int)stat.exit_code : -1;
	}
}

// Notes what statm said, and for how many readings it has said the same.
static void note_statm(struct process_source *s, struct process *p, const struct proc_statm *statm,
	uint64_t now_ns)
{
	struct readings *r = p->readings;
	int64_t resident = VALUE_MISSING, shared = VALUE_MISSING;
	if (statm) {
		resident = (int64_t)(statm->resident_pages * s->kib_per_page);
		shared = p->statm_fd >= 0 ? (int64_t)(statm->shared_pages * s->kib_per_page)
		                          : VALUE_MISSING;
	}
	bool same = resident == r->cpu_row[CPU_RESIDENT] && shared == r->cpu_row[CPU_SHARED];
	r->statm_same = same ? r->statm_same + 1 : 0;
	process_memory_seen(s, p, resident, shared, now_ns);
	r->cpu_row[CPU_RESIDENT] = resident;
	r->cpu_row[CPU_SHARED] = shared;
	r->rss_kib = statm ? (uint64_t)resident : 0;
}

// 0, or -ESRCH where the process is gone.
static int read_memory(struct process_source *s, struct process *p, uint64_t now_ns)
{
	struct readings *r = p->readings;
	struct proc_statm statm;
	int result = process_statm(s, p, &statm);
	if (result == -ESRCH || result == -ENOENT) {
		return -ESRCH;
	}
	bool memory = result == 0 && statm.size_pages > 0;
	r->statm_ns = now_ns;
	r->statm_seen_ns = r->cpu_ns;
	note_statm(s, p, memory ? &statm : NULL, now_ns);
	if (!memory && !p->zombie) {
		check_zombie(s, p);
	}
	return 0;
}

// Reads clock and statm of one process. 0, or -ESRCH where it is gone.
static int process_tick(struct process_source *s, struct process *p, uint64_t now_ns)
{
	struct readings *r = p->readings;
	bool was_zombie = p->zombie;
	bool clock = read_clock(s, p, &r->cpu_ns);
	if ((!clock || needs_statm(s, r, now_ns)) && read_memory(s, p, now_ns) < 0) {
		return -ESRCH;
	}
	if (was_zombie) {
		return 0; // its last row has been written
	}
	r->cpu_row[CPU_TIME] = clock || s->captured ? rounded_us(s, r->cpu_ns) : VALUE_MISSING;
	put_row(s, p, GROUP_CPU, now_ns, r->cpu_row);
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

static void read_status(struct process_source *s, struct process *p, uint64_t now_ns)
{
	struct readings *r = p->readings;
	char buffer[4096];
	struct cursor text;
	struct proc_stat stat = {0};
	struct proc_status status;
	if (p->zombie || r->status_file.failed) {
		return;
	}
	r->status_ns = now_ns;
	(void)process_stat(s, p, &stat); // its faults, before what they have led to
	int result = read_file(s, p, &r->status_file, "status", buffer, sizeof(buffer), &text);
	result = result < 0 ? result : proc_status_parse(text, &status);
	if (result < 0) {
		reading_failed(s, p, &r->status_file, GROUP_STATUS, "status", result);
		return;
	}
	process_memory_looked(
		s, p, status.peak_resident_bytes, stat.minor_faults + stat.major_faults);
	check_sigchld(s, p, &status);
	const int64_t values[N_STATUS] = {
		[STATUS_VOLUNTARY] = count_or_missing(status.voluntary_switches),
		[STATUS_INVOLUNTARY] = count_or_missing(status.involuntary_switches),
		[STATUS_PEAK] = kib(status.peak_resident_bytes),
		[STATUS_SWAP] = kib(status.swap_bytes),
		[STATUS_CPUS] = status.cpus_allowed ? status.cpus_allowed : VALUE_MISSING,
	};
	put_row(s, p, GROUP_STATUS, now_ns, values);
}

int process_read_status(void *state, struct sink *sink, uint64_t now_ns)
{
	struct process_source *s = state;
	s->sink = sink;
	size_t n;
	struct process *const *members = tree_members(s->tree, &n);
	for (size_t i = 0; i < n; i++) {
		struct readings *r = members[i]->readings;
		if (r->status_ns != now_ns) { // else it was read for its memory
			read_status(s, members[i], now_ns);
		}
	}
	process_memory_round(s);
	return 0;
}

// The job ---------------------------------------------------------------------------------------

// The counter of the job's own cgroup. False where there is none.
bool process_cgroup_ns(struct process_source *s, uint64_t *ret)
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

int process_read_cpu(void *state, struct sink *sink, uint64_t now_ns)
{
	struct process_source *s = state;
	s->sink = sink;
	tree_update(s->tree, now_ns);
	note_many(s, now_ns);
	size_t n;
	// What the launcher reaped is read before the clocks of those whom it may reap meanwhile.
	uint64_t sum_ns = atomic_load(&tree_reaped(s->tree)->cpu_ns);
	struct process *const *members = tree_members(s->tree, &n);
	struct proc_stat stat;
	for (size_t i = 0; i < n && s->cgroup_cpu.fd < 0; i++) {
		if (members[i]->n_children > 0 || members[i]->child_lost) {
			process_stat(s, members[i], &stat);
		}
	}
	s->rss_kib = s->own_kib = 0;
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
		s->own_kib += r->own_kib;
		if (process_memory_looks(p, now_ns)) {
			read_status(s, p, now_ns);
		}
		i++;
	}
	process_memory_round(s);
	sum_ns = sum_ns > s->before_ns ? sum_ns - s->before_ns : 0;
	uint64_t cgroup_ns;
	if (process_cgroup_ns(s, &cgroup_ns)) {
		sum_ns = cgroup_ns - s->base_ns;
	}
	s->total_ns = sum_ns > s->total_ns ? sum_ns : s->total_ns;
	return 0;
}

int process_read_job(void *state, struct sink *sink, uint64_t now_ns)
{
	struct process_source *s = state;
	size_t n;
	tree_members(s->tree, &n);
	const int64_t values[N_JOB] = {
		[JOB_CPU] = rounded_us(s, s->total_ns),
		[JOB_PROCESSES] = (int64_t)n,
		[JOB_RSS] = (int64_t)s->rss_kib,
		[JOB_OWN] = (int64_t)s->own_kib,
	};
	if (!s->job_stream && s->job) {
		s->job_stream = sink_stream(sink, s->job, &process_groups[GROUP_JOB]);
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
	if (stood_still(r, r->schedstat_file.seen_ns)) {
		return r->wait_us;
	}
	r->leader_us = VALUE_MISSING;
	if (r->schedstat_file.failed ||
		read_file(s, p, &r->schedstat_file, "schedstat", buffer, sizeof(buffer), &text) <
			0 ||
		proc_schedstat_parse(text, &schedstat) < 0) {
		r->schedstat_file.failed = true;
		sink_missing(s->sink, 0, &process_groups[GROUP_STAT], STAT_WAIT,
			"no /proc/PID/schedstat (a kernel without CONFIG_SCHED_INFO)");
		return VALUE_MISSING;
	}
	r->schedstat_file.seen_ns = r->cpu_ns;
	r->wait_us = (int64_t)(schedstat.wait_ns / NS_PER_US);
	r->leader_us = rounded_us(s, schedstat.run_ns);
	return r->wait_us;
}

int process_read_stat(void *state, struct sink *sink, uint64_t now_ns)
{
	struct process_source *s = state;
	s->sink = sink;
	size_t n;
	struct process *const *members = tree_members(s->tree, &n);
	bool any_stopped = false;
	uint64_t cpu_ns = 0;
	for (size_t i = 0; i < n; i++) {
		struct process *p = members[i];
		struct readings *r = p->readings;
		struct proc_stat stat;
		if (p->zombie || process_stat(s, p, &stat) < 0) {
			continue;
		}
		bool stopped = stat.state == 'T' || stat.state == 't';
		process_stopped_look(&r->stopped, stopped, r->cpu_ns, now_ns);
		any_stopped = any_stopped || stopped;
		cpu_ns += r->cpu_ns;
		int64_t wait_us = process_wait_us(s, p); // and the leader's CPU time
		int64_t values[N_STAT] = {
			[STAT_USER] = (int64_t)stat.user_ticks,
			[STAT_SYSTEM] = (int64_t)stat.system_ticks,
			[STAT_CHILDREN] = (int64_t)(stat.child_user_ticks +
						    stat.child_system_ticks),
			[STAT_WAIT] = wait_us,
			[STAT_LEADER] = r->leader_us,
			[STAT_BLOCKED] = s->delay_accounting ? stat.block_delay_ticks
		                                             : VALUE_MISSING,
			[STAT_MINOR] = (int64_t)stat.minor_faults,
			[STAT_MAJOR] = (int64_t)stat.major_faults,
			[STAT_THREADS] = stat.threads,
			[STAT_STATE] = stat.state,
			[STAT_STOPPED] = (int64_t)(r->stopped.ns / NS_PER_US),
		};
		put_row(s, p, GROUP_STAT, now_ns, values);
	}
	process_stopped_look(&s->stopped, any_stopped, cpu_ns, now_ns);
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

static bool needs_io(const struct process *p, uint64_t now_ns)
{
	const struct readings *r = p->readings;
	return !stood_still(r, r->io_file.seen_ns) &&
	       (p->zombie || r->io_same < IS_STEADY || now_ns >= r->io_ns + IO_STEADY_NS);
}

// 0, or -errno where it could not be read.
static int read_io(struct process_source *s, struct process *p, uint64_t now_ns)
{
	struct readings *r = p->readings;
	char buffer[512];
	struct cursor text;
	struct proc_io io;
	int64_t values[N_IO];
	int result = read_file(s, p, &r->io_file, "io", buffer, sizeof(buffer), &text);
	result = result < 0 ? result : proc_io_parse(text, &io);
	if (result < 0) {
		return result;
	}
	io_values(&io, values);
	r->io_same = memcmp(values, r->io, sizeof(values)) == 0 ? r->io_same + 1 : 0;
	r->io_ns = now_ns;
	r->io_file.seen_ns = r->cpu_ns;
	memcpy(r->io, values, sizeof(values));
	return 0;
}

int process_read_io(void *state, struct sink *sink, uint64_t now_ns)
{
	struct process_source *s = state;
	s->sink = sink;
	size_t n;
	struct process *const *members = tree_members(s->tree, &n);
	for (size_t i = 0; i < n; i++) {
		struct process *p = members[i];
		struct readings *r = p->readings;
		if (r->io_file.failed || (p->zombie && r->io_file.fd < 0)) {
			continue;
		}
		int result = needs_io(p, now_ns) ? read_io(s, p, now_ns) : 0;
		if (result < 0) {
			reading_failed(s, p, &r->io_file, GROUP_IO, "io", result);
			continue;
		}
		put_row(s, p, GROUP_IO, now_ns, r->io);
	}
	return 0;
}

// What the launcher has reaped is in its own io, less what it had when the run began.
void process_reaper_io(struct process_source *s, int64_t values[N_IO])
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

int process_read_job_io(void *state, struct sink *sink, uint64_t now_ns)
{
	struct process_source *s = state;
	size_t n;
	struct process *const *members = tree_members(s->tree, &n);
	int64_t sums[N_IO];
	process_reaper_io(s, sums);
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
		s->job_io_stream = sink_stream(sink, s->job, &process_groups[GROUP_JOB_IO]);
	}
	stream_row(s->job_io_stream, now_ns, s->job_io);
	return 0;
}
