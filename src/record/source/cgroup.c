// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The job's cgroup: exact CPU time, memory by what it is used for, storage, pressure; and the
// limits that apply to it, which the cgroups above may set.
//
// Only a cgroup of the job's own says anything about the job. Limits and throttling are read from
// the one that sets them, also where others share it: they slow the job all the same. The job may
// move into a cgroup that it makes for itself: which quota applies is looked for while it runs.

#include "record/source/source.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "record/host/cgroupfs.h"
#include "record/host/file.h"
#include "record/host/iostat.h"
#include "record/host/keyed.h"
#include "record/host/pressure.h"
#include "record/job/cgroup.h"
#include "record/job/tree.h"
#include "record/source/cpu_quota.h"
#include "record/source/out_of_memory.h"

enum { CPU_TOTAL, CPU_USER, CPU_SYSTEM, N_CPU };
static const struct metric cpu_metrics[N_CPU] = {
	[CPU_TOTAL] = {"strain.cgroup.cpu.time", METRIC_COUNTER, "s", 1e-6,
		"CPU time of everything that ever ran in the job's own cgroup, exact (cpu.stat, "
		"cpuacct.usage)."},
	[CPU_USER] = {"strain.cgroup.cpu.time.user", METRIC_COUNTER, "s", 1e-6,
		"The part of it in user mode; on cgroup v1 in hundredths of a second (cpu.stat, "
		"cpuacct.stat)."},
	[CPU_SYSTEM] = {"strain.cgroup.cpu.time.system", METRIC_COUNTER, "s", 1e-6,
		"The part of it in the kernel; on cgroup v1 in hundredths of a second (cpu.stat, "
		"cpuacct.stat)."},
};

enum { THROTTLE_PERIODS, THROTTLE_THROTTLED, THROTTLE_TIME, N_THROTTLE };
static const struct metric throttle_metrics[N_THROTTLE] = {
	[THROTTLE_PERIODS] = {"strain.cgroup.cpu.periods", METRIC_COUNTER, "{period}", 1,
		"Periods of the CPU quota in which there was something to run, in the cgroup that "
		"sets the quota: of several levels the one that throttles, else the tightest; "
		"others may share it (cpu.stat: nr_periods)."},
	[THROTTLE_THROTTLED] = {"strain.cgroup.cpu.periods.throttled", METRIC_COUNTER, "{period}",
		1,
		"Periods that ended early because the CPU quota was used up (cpu.stat: "
		"nr_throttled)."},
	[THROTTLE_TIME] = {"strain.cgroup.cpu.throttled_time", METRIC_COUNTER, "s", 1e-6,
		"CPU-seconds in which the quota held runnable threads back: each CPU counts for "
		"itself, so that it may pass the time of the run. Linux 6.18 was seen to count "
		"about half (cpu.stat: throttled_usec, throttled_time)."},
};

enum { LIMIT_CPUS, LIMIT_MEMORY, LIMIT_HITS, LIMIT_INSIDE, N_LIMIT };
static const struct metric limit_metrics[N_LIMIT] = {
	[LIMIT_CPUS] = {"strain.cgroup.cpu.limit", METRIC_GAUGE, "{cpu}", 0.001,
		"CPUs that the tightest quota allows, of the cgroup in which the job spends most "
		"of its CPU time and those above it (cpu.max, cpu.cfs_quota_us)."},
	[LIMIT_MEMORY] = {"strain.cgroup.memory.limit", METRIC_GAUGE, "By", 1024,
		"Memory that the tightest limit allows, of the job's cgroup and those above it "
		"(memory.max, memory.limit_in_bytes)."},
	[LIMIT_HITS] = {"strain.cgroup.memory.limit.hits", METRIC_COUNTER, "{hit}", 1,
		"Times that memory was at that limit and pages had to be dropped or processes "
		"killed; others may share it (memory.events: max; memory.failcnt)."},
	[LIMIT_INSIDE] = {"strain.cgroup.cpu.limit.inside", METRIC_GAUGE, "1", 1,
		"Who sets the quota whose periods are counted: 1, a cgroup that the job is in and "
		"strain is not; 0, one around strain."},
};

enum {
	MEMORY_USAGE,
	MEMORY_ANONYMOUS,
	MEMORY_FILE,
	MEMORY_SHMEM,
	MEMORY_KERNEL,
	MEMORY_SWAP,
	MEMORY_REFAULTS,
	MEMORY_MAJOR,
	MEMORY_OOM,
	N_MEMORY,
};
static const struct metric memory_metrics[N_MEMORY] = {
	[MEMORY_USAGE] = {"strain.cgroup.memory.usage", METRIC_GAUGE, "By", 1024,
		"Everything charged to the job's own cgroup, page cache too; what others had in "
		"the "
		"page cache before is not (memory.current, memory.usage_in_bytes)."},
	[MEMORY_ANONYMOUS] = {"strain.memory.anonymous", METRIC_GAUGE, "By", 1024,
		"Memory of the job that no file backs, every page counted once (memory.stat: anon, "
		"total_rss)."},
	[MEMORY_FILE] = {"strain.memory.file", METRIC_GAUGE, "By", 1024,
		"Page cache charged to the job, without shared memory; it can be dropped "
		"(memory.stat:"
		" file less shmem)."},
	[MEMORY_SHMEM] = {"strain.memory.shmem", METRIC_GAUGE, "By", 1024,
		"Shared memory and tmpfs of the job: what loader workers hand over (memory.stat: "
		"shmem)."},
	[MEMORY_KERNEL] = {"strain.memory.kernel", METRIC_GAUGE, "By", 1024,
		"Kernel memory for the job: page tables, stacks, sockets, inodes (memory.stat: "
		"kernel; memory.kmem.usage_in_bytes)."},
	[MEMORY_SWAP] = {"strain.memory.swap", METRIC_GAUGE, "By", 1024,
		"The job's memory in swap (memory.swap.current; memory.stat: total_swap)."},
	[MEMORY_REFAULTS] = {"strain.memory.refaults", METRIC_COUNTER, "{page}", 1,
		"Pages of files that the job read again soon after they had been dropped: the "
		"limit "
		"or the machine is too small for its working set (memory.stat: "
		"workingset_refault_file)."},
	[MEMORY_MAJOR] = {"strain.cgroup.paging.faults.major", METRIC_COUNTER, "{fault}", 1,
		"Page faults of the job that had to read storage (memory.stat: pgmajfault)."},
	[MEMORY_OOM] = {"strain.cgroup.oom_kills", METRIC_COUNTER, "{kill}", 1,
		"Processes of the job that the kernel killed for lack of memory (memory.events, "
		"memory.oom_control)."},
};

enum { IO_READ, IO_WRITE, IO_READS, IO_WRITES, N_IO };
static const struct metric io_metrics[N_IO] = {
	[IO_READ] = {"strain.cgroup.io.read", METRIC_COUNTER, "By", 1,
		"Bytes that the job's cgroup read from all disks, by whichever process; what "
		"stands on other disks (device mapper, RAID) is not counted again (io.stat)."},
	[IO_WRITE] = {"strain.cgroup.io.write", METRIC_COUNTER, "By", 1,
		"Bytes that the job's cgroup wrote to all disks, writeback of its page cache too "
		"(io.stat)."},
	[IO_READS] = {"strain.cgroup.io.operations.read", METRIC_COUNTER, "{operation}", 1,
		"Reads of the job's cgroup from all disks (io.stat)."},
	[IO_WRITES] = {"strain.cgroup.io.operations.write", METRIC_COUNTER, "{operation}", 1,
		"Writes of the job's cgroup to all disks (io.stat)."},
};

enum { PRESSURE_CPU, PRESSURE_MEMORY, PRESSURE_IO, N_PRESSURES };
static const struct metric pressure_metrics[2 * N_PRESSURES] = {
	{"strain.cgroup.pressure.cpu.some", METRIC_COUNTER, "s", 1e-6,
		"Time that at least one task of the job was ready to run and had no CPU, the quota "
		"included (cpu.pressure)."},
	{"strain.cgroup.pressure.cpu.full", METRIC_COUNTER, "s", 1e-6,
		"Time that every task of the job that could run had no CPU (cpu.pressure, Linux "
		"5.13)."},
	{"strain.cgroup.pressure.memory.some", METRIC_COUNTER, "s", 1e-6,
		"Time that at least one task of the job waited for memory (memory.pressure)."},
	{"strain.cgroup.pressure.memory.full", METRIC_COUNTER, "s", 1e-6,
		"Time that all tasks of the job which were not idle waited for memory at once "
		"(memory.pressure)."},
	{"strain.cgroup.pressure.io.some", METRIC_COUNTER, "s", 1e-6,
		"Time that at least one task of the job waited for storage (io.pressure)."},
	{"strain.cgroup.pressure.io.full", METRIC_COUNTER, "s", 1e-6,
		"Time that all tasks of the job which were not idle waited for storage at once "
		"(io.pressure)."},
};

static int read_cpu(void *state, struct sink *sink, uint64_t now_ns);
static int read_throttle(void *state, struct sink *sink, uint64_t now_ns);
static int read_limit(void *state, struct sink *sink, uint64_t now_ns);
static int read_memory(void *state, struct sink *sink, uint64_t now_ns);
static int read_io(void *state, struct sink *sink, uint64_t now_ns);
static int read_pressure(void *state, struct sink *sink, uint64_t now_ns);

enum { GROUP_CPU, GROUP_THROTTLE, GROUP_LIMIT, GROUP_MEMORY, GROUP_IO, GROUP_PRESSURE, N_GROUPS };
static const struct group groups[N_GROUPS] = {
	[GROUP_CPU] = {"cpu", ENTITY_JOB, cpu_metrics, N_CPU, 100 * NS_PER_MS, read_cpu},
	[GROUP_THROTTLE] = {"throttling", ENTITY_JOB, throttle_metrics, N_THROTTLE, 100 * NS_PER_MS,
		read_throttle},
	[GROUP_LIMIT] = {"limits", ENTITY_JOB, limit_metrics, N_LIMIT, 10 * NS_PER_S, read_limit},
	[GROUP_MEMORY] = {"memory", ENTITY_JOB, memory_metrics, N_MEMORY, 100 * NS_PER_MS,
		read_memory},
	[GROUP_IO] = {"io", ENTITY_JOB, io_metrics, N_IO, 100 * NS_PER_MS, read_io},
	[GROUP_PRESSURE] = {"pressure", ENTITY_JOB, pressure_metrics, 2 * N_PRESSURES,
		100 * NS_PER_MS, read_pressure},
};

// What a job has not met by then it is said to have none of.
#define SETTLED_NS (3 * NS_PER_S)

struct cgroup_source {
	int root_fd;
	int64_t job;
	int version;
	struct cgroup_places places; // of the job
	struct host_file cpu, cpu_modes; // v1 has the modes in a file of their own
	struct cpu_quota quota;
	struct sink *sink;
	uint64_t first_ns; // a process of the job was there; 0: none was yet
	bool ran; // the job ran before, or there is none: nothing is waited for
	bool told; // which limits are missing was said
	bool limits_missing[N_LIMIT];
	double limit_told; // CPUs in the last row
	struct host_file memory_stat, memory_usage;
	struct host_file memory_swap; // v2
	struct host_file memory_kernel; // v1, and v2 before Linux 5.18 has none
	struct host_file io;
	struct host_file pressures[N_PRESSURES];
	struct stream *streams[N_GROUPS];
	struct out_of_memory oom;
	struct iostat_disks disks; // seen in io.stat so far
};

// Reading ---------------------------------------------------------------------------------------

static bool read_keys(struct host_file *f, const char *const *keys, size_t n, int64_t *values)
{
	struct cursor text;
	if (f->fd >= 0 && host_file_read(f, &text) == 0) {
		return keyed_parse(text, keys, n, values) > 0;
	}
	for (size_t i = 0; i < n; i++) {
		values[i] = VALUE_MISSING;
	}
	return false;
}

static int64_t read_number(struct host_file *f)
{
	struct cursor text;
	int64_t number;
	return f->fd >= 0 && host_file_read(f, &text) == 0 && cursor_i64(&text, &number)
	               ? number
	               : VALUE_MISSING;
}

static int64_t divided(int64_t value, int64_t divisor)
{
	return value == VALUE_MISSING ? VALUE_MISSING : value / divisor;
}

static int64_t or_else(int64_t value, int64_t other)
{
	return value == VALUE_MISSING ? other : value;
}

static int64_t difference(int64_t a, int64_t b)
{
	return a == VALUE_MISSING || b == VALUE_MISSING ? VALUE_MISSING : a > b ? a - b : 0;
}

// The row goes out; what the first one lacks is said to be missing for good.
static void put_row(struct cgroup_source *s, struct sink *sink, int group, uint64_t now_ns,
	const int64_t *values, const char *reason)
{
	if (!s->streams[group]) {
		s->streams[group] = sink_stream(sink, s->job, &groups[group]);
		for (size_t i = 0; i < groups[group].n_metrics; i++) {
			if (values[i] == VALUE_MISSING) {
				sink_missing(sink, s->job, &groups[group], i, reason);
			}
		}
	}
	stream_row(s->streams[group], now_ns, values);
}

static int read_cpu(void *state, struct sink *sink, uint64_t now_ns)
{
	static const char *const keys[N_CPU] = {"usage_usec", "user_usec", "system_usec"};
	static const char *const v1_keys[N_CPU] = {"", "user", "system"};
	struct cgroup_source *s = state;
	int64_t values[N_CPU];
	if (s->cpu.fd < 0) {
		return -ENOENT; // said when the source was opened
	}
	if (s->version == 2) {
		read_keys(&s->cpu, keys, N_CPU, values);
	} else {
		const int64_t us_per_tick = 1000000 / sysconf(_SC_CLK_TCK);
		read_keys(&s->cpu_modes, v1_keys, N_CPU, values);
		values[CPU_TOTAL] = divided(read_number(&s->cpu), NS_PER_US);
		for (size_t i = CPU_USER; i <= CPU_SYSTEM; i++) {
			values[i] = values[i] == VALUE_MISSING ? VALUE_MISSING
			                                       : values[i] * us_per_tick;
		}
	}
	put_row(s, sink, GROUP_CPU, now_ns, values, "the cgroup's files do not have it");
	return 0;
}

static void tell_no_quota(const struct cgroup_source *s)
{
	if (!s->quota.directory || s->quota.stat.fd < 0) {
		sink_missing_group(s->sink, s->job, &groups[GROUP_THROTTLE],
			s->quota.directory ? "the cgroup of the quota has no cpu.stat"
					   : "no CPU quota applies to the job");
	}
}

static void tell_missing_limits(struct cgroup_source *s)
{
	const char *reason = cgroup_places_hidden(&s->places) ? CGROUP_HIDDEN_REASON
	                                                      : "no cgroup limits it";
	for (size_t i = 0; i < N_LIMIT; i++) {
		if (s->limits_missing[i]) {
			sink_missing(s->sink, s->job, &groups[GROUP_LIMIT], i, reason);
		}
	}
}

// A job that has just begun may still go where a quota or a limit applies: what it has not is said
// after a while, or at its end.
static void settle(struct cgroup_source *s)
{
	if (!s->told) {
		s->told = true;
		tell_no_quota(s);
		tell_missing_limits(s);
	}
}

static void put_limits(struct cgroup_source *s, struct sink *sink, uint64_t now_ns)
{
	const struct cpu_quota *q = &s->quota;
	int64_t values[N_LIMIT] = {VALUE_MISSING, VALUE_MISSING, VALUE_MISSING, VALUE_MISSING};
	uint64_t bytes;
	s->limit_told = q->least_cpus;
	if (q->directory) {
		values[LIMIT_CPUS] = (int64_t)llround(q->least_cpus * 1000);
		values[LIMIT_INSIDE] = q->own;
	}
	if (cgroup_memory_limit(s->root_fd, q->found ? &q->places : &s->places, &bytes, NULL) ==
		0) {
		values[LIMIT_MEMORY] = (int64_t)(bytes / 1024);
		values[LIMIT_HITS] = out_of_memory_limit_hits(&s->oom);
	}
	if (!s->streams[GROUP_LIMIT]) {
		s->streams[GROUP_LIMIT] = sink_stream(sink, s->job, &groups[GROUP_LIMIT]);
	}
	for (size_t i = 0; i < N_LIMIT; i++) {
		s->limits_missing[i] = s->limits_missing[i] && values[i] == VALUE_MISSING;
	}
	stream_row(s->streams[GROUP_LIMIT], now_ns, values);
}

static int read_throttle(void *state, struct sink *sink, uint64_t now_ns)
{
	struct cgroup_source *s = state;
	struct cpu_quota_counts counts;
	if (cpu_quota_look(&s->quota, NULL, sink, s->job, now_ns)) {
		s->first_ns = s->first_ns ? s->first_ns : now_ns;
		if (s->streams[GROUP_LIMIT] && s->quota.least_cpus != s->limit_told &&
			!(isnan(s->quota.least_cpus) && isnan(s->limit_told))) {
			put_limits(s, sink, now_ns);
		}
		if (now_ns - s->first_ns >= SETTLED_NS) {
			settle(s);
		}
	}
	if (cpu_quota_read(&s->quota, &counts)) {
		const int64_t values[N_THROTTLE] = {[THROTTLE_PERIODS] = counts.periods,
			[THROTTLE_THROTTLED] = counts.throttled,
			[THROTTLE_TIME] = counts.throttled_us};
		put_row(s, sink, GROUP_THROTTLE, now_ns, values, "cpu.stat does not have it");
	}
	return s->quota.directory || s->quota.tree ? 0 : -ENOENT;
}

static int read_limit(void *state, struct sink *sink, uint64_t now_ns)
{
	struct cgroup_source *s = state;
	put_limits(s, sink, now_ns);
	if (s->ran) {
		settle(s);
	}
	return 0;
}

static int read_memory(void *state, struct sink *sink, uint64_t now_ns)
{
	enum { ANON, FILE_PAGES, KERNEL, SHMEM, REFAULT_OLD, REFAULT, MAJOR, SWAP, N };
	static const char *const v2_keys[N] = {"anon", "file", "kernel", "shmem",
		"workingset_refault", "workingset_refault_file", "pgmajfault", ""};
	static const char *const v1_keys[N] = {"total_rss", "total_cache", "", "total_shmem",
		"total_workingset_refault", "total_workingset_refault_file", "total_pgmajfault",
		"total_swap"};
	struct cgroup_source *s = state;
	int64_t v[N], kills = out_of_memory_kills(&s->oom, sink, s->job, now_ns);
	if (s->memory_stat.fd < 0) {
		return kills == VALUE_MISSING ? -ENOENT : 0;
	}
	read_keys(&s->memory_stat, s->version == 2 ? v2_keys : v1_keys, N, v);
	const int64_t swap = s->version == 2 ? read_number(&s->memory_swap) : v[SWAP];
	const int64_t values[N_MEMORY] = {
		[MEMORY_USAGE] = divided(read_number(&s->memory_usage), 1024),
		[MEMORY_ANONYMOUS] = divided(v[ANON], 1024),
		[MEMORY_FILE] = divided(difference(v[FILE_PAGES], v[SHMEM]), 1024),
		[MEMORY_SHMEM] = divided(v[SHMEM], 1024),
		[MEMORY_KERNEL] = divided(or_else(v[KERNEL], read_number(&s->memory_kernel)), 1024),
		[MEMORY_SWAP] = divided(swap, 1024),
		[MEMORY_REFAULTS] = or_else(v[REFAULT], v[REFAULT_OLD]),
		[MEMORY_MAJOR] = v[MAJOR],
		[MEMORY_OOM] = kills,
	};
	put_row(s, sink, GROUP_MEMORY, now_ns, values,
		"this kernel's memory controller does not "
		"tell it");
	return 0;
}

static void sum_io(struct cgroup_source *s, struct cursor text, int64_t *sums)
{
	struct iostat_line line;
	while (iostat_next(&text, &line)) {
		const int64_t values[N_IO] = {
			[IO_READ] = line.read_bytes,
			[IO_WRITE] = line.write_bytes,
			[IO_READS] = line.reads,
			[IO_WRITES] = line.writes,
		};
		bool counted = iostat_counts(&s->disks, s->root_fd, line.device);
		for (size_t i = 0; counted && i < N_IO; i++) {
			if (__builtin_add_overflow(sums[i], values[i], &sums[i])) {
				sums[i] = INT64_MAX;
			}
		}
	}
}

static int read_io(void *state, struct sink *sink, uint64_t now_ns)
{
	struct cgroup_source *s = state;
	struct cursor text;
	int64_t values[N_IO] = {0};
	if (s->io.fd < 0) {
		return -ENOENT;
	}
	if (host_file_read(&s->io, &text) == 0) {
		sum_io(s, text, values);
		put_row(s, sink, GROUP_IO, now_ns, values, "");
	}
	return 0;
}

static int read_pressure(void *state, struct sink *sink, uint64_t now_ns)
{
	struct cgroup_source *s = state;
	int64_t values[2 * N_PRESSURES];
	bool any = false;
	for (size_t i = 0; i < N_PRESSURES; i++) {
		struct pressure p = {KEYED_ABSENT, KEYED_ABSENT};
		struct cursor text;
		if (s->pressures[i].fd >= 0) {
			any = true;
			if (host_file_read(&s->pressures[i], &text) == 0) {
				(void)pressure_parse(text, &p);
			}
		}
		values[2 * i] = p.some_us;
		values[2 * i + 1] = p.full_us;
	}
	if (!any) {
		return -ENOENT;
	}
	put_row(s, sink, GROUP_PRESSURE, now_ns, values, "this kernel does not tell it");
	return 0;
}

// Opening ---------------------------------------------------------------------------------------

static int open_in(struct cgroup_source *s, struct host_file *f, const char *directory,
	const char *name, struct error *e)
{
	char path[PATH_MAX];
	if (!directory || snprintf(path, sizeof(path), "%s/%s", directory, name) >= PATH_MAX) {
		return error_errno(e, ENOENT, "%s", name);
	}
	return host_file_open(f, s->root_fd, path, e);
}

static void open_cpu(struct cgroup_source *s, const char *directory, struct sink *sink)
{
	struct error e = {0};
	int r = open_in(s, &s->cpu, directory, s->version == 2 ? "cpu.stat" : "cpuacct.usage", &e);
	if (r == 0 && s->version == 1) {
		(void)open_in(s, &s->cpu_modes, directory, "cpuacct.stat", NULL);
	}
	if (r < 0) {
		sink_missing_group(sink, s->job, &groups[GROUP_CPU],
			directory ? e.text
				  : "no cgroup of the job's own in the cpuacct controller");
	}
}

static void open_memory(struct cgroup_source *s, const struct job_cgroup *cgroup, struct sink *sink)
{
	static const char v2_reason[] =
		"on cgroup v2 memory is counted where strain is alone in a cgroup that it may "
		"change: systemd-run --user --scope -p Delegate=yes strain run ...";
	static const char v1_reason[] = "the job has no cgroup of its own in the memory controller";
	const char *directory = cgroup->memory;
	struct error e = {0};
	if (open_in(s, &s->memory_stat, directory, "memory.stat", &e) < 0) {
		sink_missing_group(sink, s->job, &groups[GROUP_MEMORY],
			directory               ? e.text
			: cgroup->memory_reason ? cgroup->memory_reason
			: s->version == 2       ? v2_reason
						: v1_reason);
		return;
	}
	if (s->version == 2) {
		(void)open_in(s, &s->memory_usage, directory, "memory.current", NULL);
		(void)open_in(s, &s->memory_swap, directory, "memory.swap.current", NULL);
	} else {
		(void)open_in(s, &s->memory_usage, directory, "memory.usage_in_bytes", NULL);
		(void)open_in(s, &s->memory_kernel, directory, "memory.kmem.usage_in_bytes", NULL);
	}
}

static void open_io(struct cgroup_source *s, const char *directory, struct sink *sink)
{
	if (s->version == 1) {
		sink_missing_group(sink, s->job, &groups[GROUP_IO],
			"only cgroup v2 counts a job's storage, its page cache included");
	} else if (open_in(s, &s->io, directory, "io.stat", NULL) < 0) {
		sink_missing_group(sink, s->job, &groups[GROUP_IO],
			"on cgroup v2 storage is counted where strain is alone in a cgroup that "
			"it may change and that has the io controller");
	}
}

static void open_pressure(struct cgroup_source *s, const char *directory, struct sink *sink)
{
	static const char *const names[N_PRESSURES] = {
		"cpu.pressure", "memory.pressure", "io.pressure"};
	for (size_t i = 0; i < N_PRESSURES; i++) {
		struct cursor text;
		int r = s->version == 2 ? open_in(s, &s->pressures[i], directory, names[i], NULL)
		                        : -ENOTSUP;
		if (r == 0 && (r = host_file_read(&s->pressures[i], &text)) < 0) {
			host_file_close(&s->pressures[i]);
		}
		if (r < 0) {
			const char *reason = s->version == 1
			                             ? "only cgroup v2 keeps a job's pressure"
			                             : pressure_reason(-r);
			sink_missing(sink, s->job, &groups[GROUP_PRESSURE], 2 * i, reason);
			sink_missing(sink, s->job, &groups[GROUP_PRESSURE], 2 * i + 1, reason);
		}
	}
}

// What limits the job begins with its own cgroup, which need not be below ours: where processes had
// to step aside for it (job/cgroup.c), it is beside us.
static void go_down(struct cgroup_source *s, const struct job_cgroup *cgroup)
{
	struct cgroup_place *place = cgroup->version == 2 ? &s->places.unified
	                                                  : &s->places.legacy[CGROUP_MEMORY];
	const char *own = cgroup->version == 2 ? cgroup->procs : cgroup->memory;
	char *path = own && place->version ? strdup(own) : NULL;
	if (path) {
		free(place->path);
		place->path = path;
	}
}

// The cgroups of the job: of one of its processes where it runs already, else ours, which is the
// one above the job's own.
static int find_places(
	struct cgroup_source *s, const struct source_context *context, struct error *e)
{
	char pid[16] = "self";
	struct tree_member *members = NULL;
	size_t n = 0, capacity = 0;
	if (context->tree && tree_snapshot(context->tree, &members, &n, &capacity) == 0 && n > 0) {
		snprintf(pid, sizeof(pid), "%d", (int)members[0].pid);
	}
	free(members);
	s->ran = n > 0 || !context->tree;
	return cgroup_places_find(s->root_fd, pid, &s->places, e);
}

// What is around strain is around its job; of a job that ran before, what is around that.
static void open_quota(struct cgroup_source *s, const struct source_context *context)
{
	struct cgroup_places around = {0};
	bool started = context->reaper || context->captured;
	if (!started || cgroup_places_find(s->root_fd, "self", &around, NULL) < 0) {
		cpu_quota_set_base(&s->quota, &s->places);
	} else {
		cpu_quota_set_base(&s->quota, &around);
	}
	cgroup_places_done(&around);
	(void)cpu_quota_look(&s->quota, &s->places, context->captured ? NULL : s->sink, s->job,
		context->start_ns);
}

static void cgroup_close(void *state)
{
	struct cgroup_source *s = state;
	if (!s) {
		return;
	}
	settle(s);
	struct host_file *const files[] = {&s->cpu, &s->cpu_modes, &s->memory_stat,
		&s->memory_usage, &s->memory_swap, &s->memory_kernel, &s->io, &s->pressures[0],
		&s->pressures[1], &s->pressures[2]};
	for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
		host_file_close(files[i]);
	}
	out_of_memory_close(&s->oom);
	cpu_quota_done(&s->quota);
	cgroup_places_done(&s->places);
	free(s);
}

static struct cgroup_source *cgroup_new(const struct source_context *context, struct sink *sink)
{
	struct cgroup_source *s = calloc(1, sizeof(*s));
	if (s) {
		s->root_fd = context->root_fd;
		s->job = context->job;
		s->sink = sink;
		s->version = context->cgroup ? context->cgroup->version : 0;
		s->cpu = s->cpu_modes = s->memory_stat = s->memory_usage = s->memory_swap =
			s->memory_kernel = s->io = HOST_FILE_CLOSED;
		s->limit_told = NAN;
		memset(s->limits_missing, true, sizeof(s->limits_missing));
		cpu_quota_init(&s->quota, context->root_fd, context->tree);
		s->oom.kills_file = s->oom.hits_file = HOST_FILE_CLOSED;
		s->pressures[0] = s->pressures[1] = s->pressures[2] = HOST_FILE_CLOSED;
	}
	return s;
}

static int cgroup_open(
	const struct source_context *context, struct sink *sink, void **ret_state, struct error *e)
{
	static const int own_groups[] = {GROUP_CPU, GROUP_MEMORY, GROUP_IO, GROUP_PRESSURE};
	struct cgroup_source *s = cgroup_new(context, sink);
	if (!s) {
		return error_errno(e, ENOMEM, "cgroup");
	}
	int r = find_places(s, context, e);
	if (r == 0 && context->cgroup) {
		go_down(s, context->cgroup);
	}
	if (r == 0 && !cgroup_place_of(&s->places, CGROUP_MEMORY)->version &&
		!cgroup_place_of(&s->places, CGROUP_CPU)->version) {
		r = error_set(e, ENOENT, "%s",
			cgroup_places_hidden(&s->places) ? CGROUP_HIDDEN_REASON
							 : "no cgroup file system is mounted");
	}
	if (r < 0) {
		s->told = true; // the sampler says why there is nothing
		cgroup_close(s);
		return r;
	}
	out_of_memory_open(&s->oom, s->root_fd, context->cgroup ? context->cgroup->memory : NULL,
		s->version, &s->places);
	if (context->cgroup) {
		open_cpu(s, context->cgroup->cpu, sink);
		open_memory(s, context->cgroup, sink);
		open_io(s, context->cgroup->io, sink);
		open_pressure(s, context->cgroup->procs, sink);
	}
	for (size_t i = 0; !context->cgroup && i < ARRAY_LENGTH(own_groups); i++) {
		sink_missing_group(sink, s->job, &groups[own_groups[i]],
			"the job has no cgroup of its own, and the one that it shares would say "
			"nothing about it");
	}
	open_quota(s, context);
	if (s->ran && !s->quota.directory) {
		tell_no_quota(s);
	}
	*ret_state = s;
	return 0;
}

const struct source source_cgroup = {
	.name = "cgroup",
	.help = "the job's cgroup: exact CPU time, memory by use, limits, throttling",
	.lane = LANE_TICK,
	.groups = groups,
	.n_groups = N_GROUPS,
	.open = cgroup_open,
	.close = cgroup_close,
};
