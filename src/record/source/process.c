// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The job's processes, and the job as their sum.

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "machine/cgroup.h"
#include "machine/cgroupfs.h"
#include "machine/exit_status.h"
#include "machine/file.h"
#include "machine/procfs.h"
#include "machine/tree.h"
#include "record/sample/source.h"

// State -------------------------------------------------------------------------------------------

enum { CPU_TIME, CPU_RESIDENT, CPU_SHARED, N_CPU };

enum {
	STAT_USER,
	STAT_SYSTEM,
	STAT_CHILDREN,
	STAT_WAIT,
	STAT_LEADER,
	STAT_BLOCKED,
	STAT_MINOR,
	STAT_MAJOR,
	STAT_THREADS,
	STAT_STATE,
	STAT_STOPPED,
	N_STAT
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

enum { STATUS_VOLUNTARY, STATUS_INVOLUNTARY, STATUS_PEAK, STATUS_SWAP, STATUS_CPUS, N_STATUS };

enum { JOB_CPU, JOB_PROCESSES, JOB_RSS, JOB_OWN, N_JOB };

enum { JOB_STOPPED, N_JOB_STOPPED };

enum { JOB_PEAK_LARGEST, JOB_PEAK_MOST, JOB_PEAK_CGROUP, N_JOB_PEAK };

enum {
	GROUP_CPU,
	GROUP_JOB,
	GROUP_STAT,
	GROUP_JOB_STOPPED,
	GROUP_IO,
	GROUP_JOB_IO,
	GROUP_STATUS,
	GROUP_JOB_PEAK,
	N_GROUPS
};

// A file of one process, opened at the first reading and kept open.
struct reading {
	int fd;
	bool failed; // it failed, and that was reported
	uint64_t seen_ns; // the process's CPU clock at the last reading
};

// Time for which a process, or the whole job, was stopped.
struct stopped {
	uint64_t ns; // so far
	uint64_t seen_ns; // time of the last look; 0: none yet
	uint64_t cpu_ns; // its CPU time then
	uint64_t edge_ns; // half the time from the look before a stop to the first in it
	bool is; // it was stopped then
	bool counted; // and had been for the whole time since the look before
};

struct readings {
	uint64_t cpu_ns; // its own, last reading
	int64_t cpu_row[N_CPU]; // the last row of GROUP_CPU
	uint64_t statm_ns; // last reading of statm; 0: none yet
	uint64_t statm_seen_ns; // the CPU clock then
	unsigned statm_same; // consecutive readings with the same values
	uint64_t io_ns; // the same for io
	unsigned io_same;
	uint64_t child_ns; // of reaped children, last reading
	// of children that have left since the last look at its signals, or since it forgets
	uint64_t left_ns;
	bool forgets; // it ignores SIGCHLD: the kernel reaps its children, and forgets their time
	uint64_t rss_kib;
	uint64_t own_kib; // part of the above: anonymous and not inherited
	uint64_t least_kib; // minimum of anonymous memory so far
	uint64_t high_kib; // highest resident size known
	int64_t before_bytes; // VmHWM of the time before the run; 0: it began in the run
	uint64_t high_faults; // page faults before the last reading of VmHWM
	uint64_t status_ns; // time of that reading; 0: none yet
	bool look; // it released memory since: VmHWM may be higher than the readings
	uint64_t left_at_statm_kib, left_at_status_kib; // peak.left_kib when each was read
	int64_t io[N_IO];
	int64_t wait_us;
	int64_t leader_us; // CPU time of the leader thread
	struct stopped stopped;
	struct reading io_file, schedstat_file, status_file;
	struct stream *streams[N_GROUPS];
};

// The peak of the job's memory.
struct peak {
	int root_fd; // borrowed
	pid_t reaper;
	uint64_t largest_kib; // of one process
	uint64_t alive_kib; // sum of the peaks of living processes
	uint64_t left_kib; // sum of the peaks of all that have left
	uint64_t left_faults;
	uint64_t rose_from_kib; // smallest left_at of those whose peak rose in this round; else
	                        // UINT64_MAX
	uint64_t most_kib; // largest sum so far
	uint64_t huge_base; // huge pages mapped when the run began
	bool huge_known;
	char *own_cgroup; // a cgroup with the job's memory and nothing else; NULL
	int version; // of that cgroup
	bool cgroup_sought;
	struct host_file cgroup; // its peak, or that of the cgroup around the job
};

struct process_source {
	struct tree *tree;
	bool own_tree; // created for doctor, where there is no job
	bool captured;
	struct sink *sink; // of the call in progress: tree_update calls joined and left
	int64_t job;
	uint64_t ns_per_tick;
	uint64_t kib_per_page;
	uint64_t statm_steady_ns; // between readings of memory that does not change
	int64_t cpu_unit_us; // CPU times from ticks are rounded down to multiples of it
	struct host_file cgroup_cpu; // closed if the job has no cgroup of its own
	bool cgroup_v2;
	bool delay_accounting;
	bool sigchld_ignored; // reported
	uint64_t forgotten_ns; // of children of processes that have left and forgot them
	bool many; // reported
	struct stream *job_stream, *job_io_stream, *job_peak_stream, *job_stopped_stream;
	uint64_t total_ns; // never decreases
	uint64_t base_ns; // the cgroup's counter when the run began
	bool attached; // --pid: processes may have used CPU time before the run
	uint64_t start_ns; // of the run
	uint64_t before_ns; // total used before the run, including reaped children
	uint64_t rss_kib, own_kib;
	struct stopped stopped;
	struct gap_looks {
		uint64_t ns; // the last look; 0: none yet
		uint64_t usual_ns; // between two; 0: not known yet
		uint64_t cpu_ns; // of the job, until then
		uint64_t delay_ns; // of this thread, until then
	} looks;
	int root_fd; // borrowed
	struct host_file own_schedstat;
	struct peak peak;
	int reaper_io_fd; // the launcher's io, which includes what it reaped
	int64_t reaper_base[N_IO];
	int64_t job_io[N_IO]; // never decreases
};

static int process_read_cpu(void *state, struct sink *sink, uint64_t now_ns);
static int process_read_job(void *state, struct sink *sink, uint64_t now_ns);
static int process_read_stat(void *state, struct sink *sink, uint64_t now_ns);
static int process_read_job_stopped(void *state, struct sink *sink, uint64_t now_ns);
static int process_read_io(void *state, struct sink *sink, uint64_t now_ns);
static int process_read_job_io(void *state, struct sink *sink, uint64_t now_ns);
static int process_read_status(void *state, struct sink *sink, uint64_t now_ns);
static int process_read_job_peak(void *state, struct sink *sink, uint64_t now_ns);

// Metrics -----------------------------------------------------------------------------------------
//
// Metrics of processes, and of the job as their sum.

static const struct metric cpu_metrics[N_CPU] = {
	[CPU_TIME] = {"process.cpu.time", METRIC_COUNTER, "s", 1e-6,
		"CPU time of all threads of the process, from its CPU clock (exact to the "
		"nanosecond, stored in microseconds)."},
	[CPU_RESIDENT] = {"process.memory.usage", METRIC_GAUGE, "By", 1024,
		"Resident memory (statm). Shared pages count in each process, so sums over "
		"processes are meaningless; see strain.memory.pss."},
	[CPU_SHARED] = {"strain.memory.shared", METRIC_GAUGE, "By", 1024,
		"Resident memory that maps files or shared memory (statm's third field)."},
};

static const struct metric stat_metrics[N_STAT] = {
	[STAT_USER] = {"strain.cpu.time.user", METRIC_COUNTER, "s", 0.01,
		"CPU time in user mode (stat; the kernel splits the exact time by sampled ticks)."},
	[STAT_SYSTEM] = {"strain.cpu.time.system", METRIC_COUNTER, "s", 0.01,
		"CPU time in the kernel (stat; see strain.cpu.time.user)."},
	[STAT_CHILDREN] = {"strain.cpu.time.children", METRIC_COUNTER, "s", 0.01,
		"CPU time of children that the process has waited for, including their "
		"children (stat)."},
	[STAT_WAIT] = {"strain.cpu.wait", METRIC_COUNTER, "s", 1e-6,
		"Time in which the leader thread was ready to run but had no CPU (schedstat; "
		"excludes other threads)."},
	[STAT_LEADER] = {"strain.cpu.time.leader", METRIC_COUNTER, "s", 1e-6,
		"CPU time of the leader thread alone (schedstat): in Python, the thread that runs "
		"the script."},
	[STAT_BLOCKED] = {"strain.io.wait", METRIC_COUNTER, "s", 0.01,
		"Time blocked on storage (stat's delayacct_blkio_ticks); needs "
		"kernel.task_delayacct=1."},
	[STAT_MINOR] = {"process.paging.faults.minor", METRIC_COUNTER, "{fault}", 1,
		"Page faults that did not read from storage (stat)."},
	[STAT_MAJOR] = {"process.paging.faults.major", METRIC_COUNTER, "{fault}", 1,
		"Page faults that read from storage (stat)."},
	[STAT_THREADS] = {"process.thread.count", METRIC_GAUGE, "{thread}", 1,
		"Threads of the process (stat)."},
	[STAT_STATE] = {"strain.process.state", METRIC_STATE, "1", 1,
		"State of the leader thread, as the character code of the kernel's letter "
		"(stat): 82 R running, 83 S sleeping, 68 D blocked, 84 T stopped, 116 t "
		"stopped by a debugger, 90 Z ended."},
	[STAT_STOPPED] = {"strain.process.stopped_time", METRIC_COUNTER, "s", 1e-6,
		"Time in which the process was stopped (SIGSTOP, Ctrl-Z, a debugger), from its "
		"state at each reading. Stops shorter than two readings are not detected."},
};

// The same table is used for processes and the job.
static const struct metric io_metrics[N_IO] = {
	[IO_ASKED_READ] = {"strain.io.read", METRIC_COUNTER, "By", 1,
		"Bytes requested by read calls, including reads from the page cache, pipes and "
		"terminals (io: rchar). Children that were waited for count in their parent."},
	[IO_ASKED_WRITE] = {"strain.io.write", METRIC_COUNTER, "By", 1,
		"Bytes passed to write calls (io: wchar)."},
	[IO_STORAGE_READ] = {"process.disk.io.read", METRIC_COUNTER, "By", 1,
		"Bytes read from storage (io: read_bytes). The other requested bytes came from "
		"the page cache, pipes, sockets or devices."},
	[IO_STORAGE_WRITE] = {"process.disk.io.write", METRIC_COUNTER, "By", 1,
		"Bytes written to storage, counted when pages become dirty (io: write_bytes)."},
	[IO_READ_CALLS] = {"strain.io.read_calls", METRIC_COUNTER, "{call}", 1,
		"Read calls (io: syscr)."},
	[IO_WRITE_CALLS] = {"strain.io.write_calls", METRIC_COUNTER, "{call}", 1,
		"Write calls (io: syscw)."},
};

static const struct metric status_metrics[N_STATUS] = {
	[STATUS_VOLUNTARY] = {"process.context_switches.voluntary", METRIC_COUNTER, "{switch}", 1,
		"Number of times that the leader thread gave up its CPU to wait (status; "
		"excludes other threads)."},
	[STATUS_INVOLUNTARY] = {"process.context_switches.involuntary", METRIC_COUNTER, "{switch}",
		1, "Number of times that the leader thread was preempted (status)."},
	[STATUS_PEAK] = {"strain.memory.peak", METRIC_GAUGE, "By", 1024,
		"Peak resident memory of the process (status: VmHWM)."},
	[STATUS_SWAP] = {"strain.memory.swap", METRIC_GAUGE, "By", 1024,
		"Anonymous memory in swap (status: VmSwap)."},
	[STATUS_CPUS] = {"strain.cpu.allowed", METRIC_GAUGE, "{cpu}", 1,
		"CPUs that the leader thread may run on: its affinity within its cpuset (status: "
		"Cpus_allowed_list). Other threads may be bound elsewhere."},
};

static const struct metric job_metrics[N_JOB] = {
	[JOB_CPU] = {"process.cpu.time", METRIC_COUNTER, "s", 1e-6,
		"CPU time of all processes that were ever part of the job. The run's key "
		"cpu_time_source names the method."},
	[JOB_PROCESSES] = {"strain.process.count", METRIC_GAUGE, "{process}", 1,
		"Number of processes of the job."},
	[JOB_RSS] = {"strain.memory.rss_sum", METRIC_GAUGE, "By", 1024,
		"Sum of the resident memory of the processes. Shared pages count more than "
		"once; see strain.memory.pss and the cgroup's memory."},
	[JOB_OWN] = {"strain.memory.own_sum", METRIC_GAUGE, "By", 1024,
		"Sum of the anonymous memory of the processes (statm: resident minus shared), "
		"minus the memory that each inherited. No page counts twice; memory shared "
		"with a parent counts in the parent."},
};

static const struct metric job_stopped_metrics[N_JOB_STOPPED] = {
	[JOB_STOPPED] = {"strain.stopped_time", METRIC_COUNTER, "s", 1e-6,
		"Time in which processes of the job were stopped and no others ran (see "
		"strain.process.stopped_time), or in which neither the job nor the recorder "
		"ran: frozen, or the machine stood still."},
};

static const struct metric job_peak_metrics[N_JOB_PEAK] = {
	[JOB_PEAK_LARGEST] = {"strain.memory.peak", METRIC_GAUGE, "By", 1024,
		"Peak resident memory of the largest process of the job (status: VmHWM; wait4: "
		"ru_maxrss): a lower bound for the job."},
	[JOB_PEAK_MOST] = {"strain.memory.peak.bound", METRIC_GAUGE, "By", 1024,
		"Upper bound of the job's peak resident memory: the largest sum of such peaks "
		"of processes that lived at the same time, plus the memory that unobserved "
		"page faults can have touched. Known at the end of the job."},
	[JOB_PEAK_CGROUP] = {"strain.cgroup.memory.peak", METRIC_GAUGE, "By", 1024,
		"Peak memory charged to the job's cgroup, including page cache. If the job has "
		"no cgroup of its own: of the cgroup in which it was started, including other "
		"programs and the time before the job (memory.peak, memory.max_usage_in_bytes)."},
};
static const struct group process_groups[N_GROUPS] = {
	[GROUP_CPU] = {"cpu", ENTITY_PROCESS, cpu_metrics, N_CPU, 0, process_read_cpu, SHARED_NOT},
	[GROUP_JOB] = {"job", ENTITY_JOB, job_metrics, N_JOB, 0, process_read_job, SHARED_NOT},
	[GROUP_STAT] = {"stat", ENTITY_PROCESS, stat_metrics, N_STAT, 100 * NS_PER_MS,
		process_read_stat, SHARED_NOT},
	[GROUP_JOB_STOPPED] = {"job_stopped", ENTITY_JOB, job_stopped_metrics, N_JOB_STOPPED,
		100 * NS_PER_MS, process_read_job_stopped, SHARED_NOT},
	[GROUP_IO] = {"io", ENTITY_PROCESS, io_metrics, N_IO, 100 * NS_PER_MS, process_read_io,
		SHARED_NOT},
	[GROUP_JOB_IO] = {"job_io", ENTITY_JOB, io_metrics, N_IO, 100 * NS_PER_MS,
		process_read_job_io, SHARED_NOT},
	[GROUP_STATUS] = {"status", ENTITY_PROCESS, status_metrics, N_STATUS, NS_PER_S,
		process_read_status, SHARED_NOT},
	[GROUP_JOB_PEAK] = {"job_peak", ENTITY_JOB, job_peak_metrics, N_JOB_PEAK, NS_PER_S,
		process_read_job_peak, SHARED_NOT},
};

// Stopped -----------------------------------------------------------------------------------------
//
// The time for which a process was stopped, from looks at its state some 100 ms apart. A tracer
// stops its program at every system call, for microseconds. A stop therefore counts only if two
// consecutive looks found it and the process did not run in between. Its start and end are assumed
// in the middle between two looks.

#define RAN 50 // more CPU time than one part in this many of the time means that it ran

// Adds a look at now_ns: whether something was stopped, and the CPU time of what would run.
static void process_stopped_look(struct stopped *s, bool is, uint64_t cpu_ns, uint64_t now_ns)
{
	uint64_t since_ns = s->seen_ns > 0 && now_ns > s->seen_ns ? now_ns - s->seen_ns : 0;
	uint64_t ran_ns = cpu_ns > s->cpu_ns ? cpu_ns - s->cpu_ns : 0;
	bool whole = is && s->is && ran_ns <= since_ns / RAN;
	if (whole) {
		s->ns += since_ns + s->edge_ns;
	} else if (s->counted) {
		s->ns += since_ns / 2;
	}
	s->edge_ns = is && !s->is ? since_ns / 2 : 0;
	s->counted = whole;
	s->is = is;
	s->seen_ns = now_ns;
	s->cpu_ns = cpu_ns;
}

// A gap between two looks in which neither this thread nor the job ran: both were frozen (a
// cgroup's freezer, scontrol suspend), or the virtual machine stood still. A thread that lacked a
// CPU was ready meanwhile, which the kernel counts (schedstat); then nothing is known about the
// job.
#define FROZEN_NS (2 * NS_PER_S)
#define FROZEN_INTERVALS 5u

// Time in which this thread was ready and had no CPU. False: the kernel does not count it.
static bool process_own_delay(struct process_source *s, uint64_t *ret_ns)
{
	struct cursor text;
	if (s->own_schedstat.fd < 0 && host_file_open(&s->own_schedstat, s->root_fd,
					       "proc/thread-self/schedstat", NULL) < 0) {
		return false;
	}
	return host_file_read(&s->own_schedstat, &text) == 0 && cursor_skip_fields(&text, 1) &&
	       cursor_u64(&text, ret_ns);
}

static void process_note_frozen(struct process_source *s, uint64_t now_ns)
{
	struct gap_looks *before = &s->looks;
	struct gap_looks now = {.ns = now_ns, .cpu_ns = s->total_ns};
	if (s->captured || s->own_tree || !process_own_delay(s, &now.delay_ns)) {
		return;
	}
	uint64_t since_ns = before->ns > 0 && now_ns > before->ns ? now_ns - before->ns : 0;
	uint64_t usual_ns = before->usual_ns;
	bool gap = usual_ns > 0 && since_ns >= FROZEN_NS && since_ns >= FROZEN_INTERVALS * usual_ns;
	bool still = now.cpu_ns - before->cpu_ns <= since_ns / RAN &&
	             now.delay_ns - before->delay_ns <= since_ns / RAN;
	if (gap && still && !s->stopped.is) {
		s->stopped.ns += since_ns - usual_ns;
		sink_event(s->sink, now_ns, "frozen", s->job,
			"neither the job nor its recorder ran for %.1f s: frozen (scontrol "
			"suspend, a cgroup's freezer), or the machine stood still",
			(double)(since_ns - usual_ns) / 1e9);
	}
	// A look that came early does not shorten what is usual at once.
	now.usual_ns = gap ? usual_ns : since_ns > usual_ns / 2 ? since_ns : usual_ns / 2;
	*before = now;
}

static int process_read_job_stopped(void *state, struct sink *sink, uint64_t now_ns)
{
	struct process_source *s = state;
	const int64_t values[N_JOB_STOPPED] = {
		[JOB_STOPPED] = (int64_t)(s->stopped.ns / NS_PER_US)};
	if (!s->job_stopped_stream && s->job) {
		s->job_stopped_stream = sink_stream(
			sink, s->job, &process_groups[GROUP_JOB_STOPPED]);
	}
	stream_row(s->job_stopped_stream, now_ns, values);
	return 0;
}

// Memory ------------------------------------------------------------------------------------------
//
// The job's memory without a cgroup: bounds of its peak, and its size at each tick.
//
// Lower bound. The kernel keeps the highest resident size of each process (VmHWM) while the process
// lives. After reaping, the launcher knows the largest of all (ru_maxrss). A fork begins with its
// parent's value and exec does not reset it, so a value that the launcher itself has had tells
// nothing.
//
// Upper bound. The sum of the peaks of processes that lived at the same time; plus, for growth
// after the last look at a process or in processes never seen, the page faults reaped by the
// launcher beyond those seen. A fault maps one page, up to 16 of a file (fault-around), 512 of a
// huge page; the machine counts huge pages. A process that grew since the last look may have done
// so at the same time as processes that have left since, so their peaks are added to its own.
//
// Size at each tick. A process's anonymous memory (statm: resident less shared) less its minimum so
// far: inherited memory belongs to the parent, or was dropped by an exec. No page is counted twice;
// a page mapped by several processes is counted at most once.

#define PAGE_KIB 4
#define FAULT_AROUND_KIB (16 * PAGE_KIB)
#define HUGE_KIB 2048
// VmHWM is read again after a process released this much, and this share of its memory.
#define FELL_KIB 1024
#define FELL_SHARE 16
#define LOOK_AGAIN_NS (50 * NS_PER_MS)

// Reads the number of huge pages that the machine has mapped so far. Returns false if it is
// unknown.
static bool huge_faults(int root_fd, uint64_t *ret)
{
	static const char *const keys[] = {"thp_fault_alloc", "thp_file_mapped"};
	struct host_file file = HOST_FILE_CLOSED;
	struct cursor text;
	int64_t values[ARRAY_LENGTH(keys)];
	bool read = host_file_open(&file, root_fd, "proc/vmstat", NULL) == 0 &&
	            host_file_read(&file, &text) == 0;
	*ret = 0;
	if (read) {
		file_keys_parse(text, keys, ARRAY_LENGTH(keys), values);
		for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
			*ret += values[i] > 0 ? (uint64_t)values[i] : 0; // absent: none
		}
	}
	host_file_close(&file);
	return read;
}

// Memory: processes joining and leaving, results of statm, the decision to read VmHWM, its result
// with the page faults before it, and the end of a round over the processes.
static void process_memory_open(struct process_source *s, const struct source_context *context)
{
	struct peak *peak = &s->peak;
	*peak = (struct peak){.root_fd = context->root_fd,
		.reaper = context->reaper,
		.rose_from_kib = UINT64_MAX,
		.cgroup = HOST_FILE_CLOSED};
	peak->huge_known = huge_faults(context->root_fd, &peak->huge_base);
	if (context->cgroup && context->cgroup->memory) {
		peak->own_cgroup = strdup(context->cgroup->memory);
		peak->version = context->cgroup->version;
	}
}

static void process_memory_close(struct process_source *s)
{
	host_file_close(&s->peak.cgroup);
	free(s->peak.own_cgroup);
}

static void process_memory_joined(struct process_source *s, struct process *p)
{
	struct readings *r = p->readings;
	// A process without a parent in the job inherited no memory of another process of the job.
	r->least_kib = tree_find(s->tree, p->parent) ? UINT64_MAX : 0;
	r->left_at_statm_kib = r->left_at_status_kib = s->peak.left_kib;
}

static void process_memory_left(struct process_source *s, const struct process *p)
{
	const struct readings *r = p->readings;
	s->peak.left_kib += r->high_kib;
	s->peak.alive_kib -= r->high_kib;
	s->peak.left_faults += r->high_faults;
}

// Notes the peak of a process. left_at_kib: peak.left_kib at the look before.
static void note_high(
	struct process_source *s, struct readings *r, uint64_t kib, uint64_t left_at_kib)
{
	struct peak *peak = &s->peak;
	if (kib <= r->high_kib) {
		return;
	}
	peak->alive_kib += kib - r->high_kib;
	r->high_kib = kib;
	peak->largest_kib = kib > peak->largest_kib ? kib : peak->largest_kib;
	peak->rose_from_kib = left_at_kib < peak->rose_from_kib ? left_at_kib : peak->rose_from_kib;
}

static void process_memory_seen(struct process_source *s, struct process *p, int64_t resident_kib,
	int64_t shared_kib, uint64_t now_ns)
{
	struct readings *r = p->readings;
	uint64_t before_kib = r->rss_kib;
	uint64_t resident = resident_kib > 0 ? (uint64_t)resident_kib : 0;
	r->own_kib = 0;
	if (resident > 0 && shared_kib >= 0 && resident_kib >= shared_kib) {
		uint64_t anonymous = resident - (uint64_t)shared_kib;
		r->least_kib = anonymous < r->least_kib ? anonymous : r->least_kib;
		r->own_kib = anonymous - r->least_kib;
	}
	note_high(s, r, resident, r->left_at_statm_kib);
	r->left_at_statm_kib = s->peak.left_kib;
	bool fell = resident + FELL_KIB < before_kib &&
	            resident < before_kib - before_kib / FELL_SHARE;
	bool young = r->status_ns == 0 && now_ns >= p->first_ns + LOOK_AGAIN_NS;
	r->look = r->look || fell || young;
}

static bool process_memory_looks(const struct process *p, uint64_t now_ns)
{
	const struct readings *r = p->readings;
	return r->look && now_ns >= r->status_ns + LOOK_AGAIN_NS;
}

static void process_memory_looked(
	struct process_source *s, struct process *p, int64_t high_bytes, uint64_t faults)
{
	struct readings *r = p->readings;
	r->look = false;
	// The peak before the run is not the job's. Until it is exceeded, readings are used.
	if (s->attached && p->first_ns < s->start_ns && r->before_bytes == 0) {
		r->before_bytes = high_bytes;
	}
	if (high_bytes > r->before_bytes) {
		note_high(s, r, (uint64_t)high_bytes / 1024, r->left_at_status_kib);
		r->left_at_status_kib = s->peak.left_kib;
		r->high_faults = faults;
	}
}

static void process_memory_round(struct process_source *s)
{
	struct peak *peak = &s->peak;
	if (peak->rose_from_kib == UINT64_MAX) {
		return;
	}
	uint64_t sum_kib = peak->alive_kib + peak->left_kib - peak->rose_from_kib;
	peak->most_kib = sum_kib > peak->most_kib ? sum_kib : peak->most_kib;
	peak->rose_from_kib = UINT64_MAX;
}

// The launcher's own peak; UINT64_MAX if unknown.
static uint64_t launcher_kib(const struct peak *peak)
{
	char path[64];
	struct proc_status status;
	snprintf(path, sizeof(path), "proc/%d/status", (int)peak->reaper);
	bool known = peak->reaper > 0 && proc_status_read(peak->root_fd, path, &status) == 0 &&
	             status.peak_resident_bytes >= 0;
	return known ? (uint64_t)status.peak_resident_bytes / 1024 : UINT64_MAX;
}

// Upper bound of memory touched but not seen, from the page faults of all reaped processes.
static bool unseen_kib(const struct process_source *s, uint64_t all_faults, uint64_t *ret)
{
	const struct peak *peak = &s->peak;
	uint64_t faults = all_faults > peak->left_faults ? all_faults - peak->left_faults : 0;
	uint64_t huge;
	if (!peak->huge_known || !huge_faults(peak->root_fd, &huge)) {
		return false;
	}
	huge = huge > peak->huge_base ? huge - peak->huge_base : 0;
	huge = huge < faults ? huge : faults;
	*ret = faults * FAULT_AROUND_KIB + huge * HUGE_KIB;
	return true;
}

// Opens the cgroup whose memory includes the job's: its own, or the one in which it was started.
// The peak of the root cgroup is not used.
static void open_cgroup_peak(struct peak *peak, pid_t first, struct error *e)
{
	struct cgroup_places places = {0};
	char pid[16], path[PATH_MAX];
	const char *directory = peak->own_cgroup;
	int version = peak->version;
	snprintf(pid, sizeof(pid), "%d", (int)first);
	if (!directory && cgroup_places_find(peak->root_fd, pid, &places, NULL) == 0) {
		const struct cgroup_place *place = cgroup_place_of(&places, CGROUP_MEMORY);
		bool root = !place->version || strlen(place->path) <= place->mount_length;
		directory = root ? NULL : place->path;
		version = place->version;
	}
	const char *name = version == 2 ? "memory.peak" : "memory.max_usage_in_bytes";
	int length = snprintf(path, sizeof(path), "%s/%s", directory ? directory : "", name);
	int r = length < (int)sizeof(path) ? 0 : -ENAMETOOLONG;
	if (!directory) {
		error_set(e, ENOENT, "the job is in no cgroup that counts memory");
	} else if (r < 0 || (r = host_file_open(&peak->cgroup, peak->root_fd, path, NULL)) < 0) {
		error_set(e, -r, "%s: %s%s", name, strerrordesc_np(-r),
			version == 2 && r == -ENOENT ? " (needs Linux 5.19)" : "");
	}
	cgroup_places_done(&places);
	peak->cgroup_sought = true;
}

static int64_t cgroup_peak_kib(struct process_source *s, struct sink *sink)
{
	struct cursor text;
	uint64_t bytes;
	size_t n;
	struct process *const *members = tree_members(s->tree, &n);
	if (!s->peak.cgroup_sought && n > 0) {
		struct error e = {0};
		open_cgroup_peak(&s->peak, members[0]->pid, &e);
		if (s->peak.cgroup.fd < 0) {
			sink_missing(sink, s->job, &process_groups[GROUP_JOB_PEAK], JOB_PEAK_CGROUP,
				e.text);
		}
	}
	bool read = s->peak.cgroup.fd >= 0 && host_file_read(&s->peak.cgroup, &text) == 0 &&
	            cursor_u64(&text, &bytes) && bytes <= INT64_MAX;
	return read ? (int64_t)(bytes / 1024) : VALUE_MISSING;
}

static int process_read_job_peak(void *state, struct sink *sink, uint64_t now_ns)
{
	struct process_source *s = state;
	struct peak *peak = &s->peak;
	const struct reaped *reaped = tree_reaped(s->tree);
	uint64_t reaped_kib = atomic_load(&reaped->peak_bytes) / 1024, unseen;
	if (reaped_kib > peak->largest_kib && reaped_kib > launcher_kib(peak)) {
		peak->largest_kib = reaped_kib;
	}
	int64_t values[N_JOB_PEAK] = {
		[JOB_PEAK_LARGEST] = peak->largest_kib > 0 ? (int64_t)peak->largest_kib
	                                                   : VALUE_MISSING,
		[JOB_PEAK_MOST] = VALUE_MISSING,
		[JOB_PEAK_CGROUP] = cgroup_peak_kib(s, sink),
	};
	if (atomic_load(&reaped->first) && unseen_kib(s, atomic_load(&reaped->faults), &unseen)) {
		uint64_t most_kib = peak->most_kib + unseen;
		most_kib = most_kib > peak->largest_kib ? most_kib : peak->largest_kib;
		values[JOB_PEAK_MOST] = (int64_t)most_kib;
	}
	if (!s->job_peak_stream && s->job) {
		s->job_peak_stream = sink_stream(sink, s->job, &process_groups[GROUP_JOB_PEAK]);
		if (peak->reaper == 0) {
			sink_missing(sink, s->job, &process_groups[GROUP_JOB_PEAK], JOB_PEAK_MOST,
				"measured only for jobs that strain run starts");
		}
	}
	stream_row(s->job_peak_stream, now_ns, values);
	return 0;
}

// Read --------------------------------------------------------------------------------------------
//
// Reading processes.
//
// Costs decide the rate: the CPU clock at every tick, statm at every tick while memory changes,
// everything else less often.
//
// While the clock of a process does not advance by a nanosecond, none of its threads has run: it is
// the same process, and values that only it can change are unchanged. The row is written again
// without reading the file. Only resident memory can be taken away by others, so statm is still
// read now and then. That also detects reused pids, where a clock would silently continue while the
// open statm returns ESRCH. It is often enough, because no pid is reused in so short a time.
//
// The job's CPU time is the counter of its own cgroup, if it has one. Otherwise it is the sum of
// the time of live processes and their reaped children, and of everything that the launcher reaped.
// A process that ends between two readings moves from one term to the other. Parents are read
// before their children's clocks, so that it is never counted twice, and the total is kept from
// decreasing during the tick in which it is in neither. With --pid, time that processes and their
// reaped children used before the run is excluded.

#define SIGCHLD_BIT (UINT64_C(1) << 16) // signal 17
// Memory of a process that does not run can still be reclaimed.
#define STATM_AT_REST_NS (100 * NS_PER_MS)
// Interval for I/O counters of a running process whose last few readings were equal: most computing
// processes do no I/O. For memory: statm_steady_ns.
#define IO_STEADY_NS (300 * NS_PER_MS)
#define IS_STEADY 3 // consecutive equal readings

static void put_row(struct process_source *s, struct process *p, int group, uint64_t now_ns,
	const int64_t *values)
{
	struct readings *r = p->readings;
	if (!r->streams[group]) {
		r->streams[group] = sink_stream(s->sink, p->entity, &process_groups[group]);
	}
	stream_row(r->streams[group], now_ns, values);
}

// Reads a file of a process through a descriptor that stays open (through which a zombie's io
// remains readable). If descriptors run out, it is opened for this reading.
static int read_file(struct process_source *s, const struct process *p, struct reading *file,
	const char *name, char *buffer, size_t size, struct cursor *ret)
{
	if (file->fd < 0) {
		file->fd = tree_open(s->tree, p, name);
	}
	if (file->fd >= 0) {
		return file_pread(file->fd, buffer, size, ret);
	}
	if (file->fd != -EMFILE) {
		return file->fd;
	}
	int fd = tree_open_once(s->tree, p, name);
	if (fd < 0) {
		return fd;
	}
	int result = file_pread(fd, buffer, size, ret);
	close(fd);
	return result;
}

// Reported once per process and group. A process that has just ended is not reported.
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

// CPU ---------------------------------------------------------------------------------------------

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
		r = file_pread(p->stat_fd, buffer, sizeof(buffer), &text);
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

// Whether the process still exists: reads statm through a descriptor opened for it, not for its
// pid.
static int process_statm(struct process_source *s, struct process *p, struct proc_statm *ret)
{
	char buffer[128];
	struct cursor text;
	if (p->statm_fd >= 0) {
		int r = file_pread(p->statm_fd, buffer, sizeof(buffer), &text);
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
	// Not through libc and the vDSO, which cannot help with this clock: a twentieth faster.
	if (s->captured || syscall(SYS_clock_gettime, p->cpu_clock, &cpu) != 0) {
		return false;
	}
	*ret_ns = (uint64_t)cpu.tv_sec * NS_PER_S + (uint64_t)cpu.tv_nsec;
	return true;
}

// Handles a process older than the run: its earlier CPU time is not the job's. Whoever reaps it,
// now or later, gets all of its time. The earlier time is therefore subtracted from the sum once,
// which stays correct when the time moves. A zombie may have no clock; stat has its time.
static void process_note_before(struct process_source *s, struct process *p)
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

// No memory at all: it has ended, or a program is just being loaded.
static void check_zombie(struct process_source *s, struct process *p)
{
	struct proc_stat stat;
	if (process_stat(s, p, &stat) == 0 && (stat.state == 'Z' || stat.state == 'X')) {
		p->zombie = true;
		// 0 is also returned to readers without permission: then the parent's report is
		// needed.
		p->status = stat.exit_code > 0 ? (int)stat.exit_code : -1;
	}
}

// Notes the result of statm, and the number of consecutive equal readings.
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

// Returns 0, or -ESRCH if the process is gone.
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

// Reads clock and statm of one process. Returns 0, or -ESRCH if it is gone.
static int process_tick(struct process_source *s, struct process *p, uint64_t now_ns)
{
	struct readings *r = p->readings;
	bool was_zombie = p->zombie;
	bool clock = read_clock(s, p, &r->cpu_ns);
	if ((!clock || needs_statm(s, r, now_ns)) && read_memory(s, p, now_ns) < 0) {
		return -ESRCH;
	}
	if (was_zombie) {
		return 0; // its last row was written
	}
	r->cpu_row[CPU_TIME] = clock || s->captured ? rounded_us(s, r->cpu_ns) : VALUE_MISSING;
	put_row(s, p, GROUP_CPU, now_ns, r->cpu_row);
	return 0;
}

// status ------------------------------------------------------------------------------------------

// Children of a process that ignores SIGCHLD disappear without being waited for: what they used
// after their last reading is lost.
static void check_sigchld(
	struct process_source *s, const struct process *p, const struct proc_status *status)
{
	struct readings *r = p->readings;
	bool forgets = status->ignored_signals & SIGCHLD_BIT;
	if (!forgets) { // those that left were reaped, but for the last ones before a change
		s->forgotten_ns += r->forgets ? r->left_ns : 0;
		r->left_ns = 0;
	}
	r->forgets = forgets;
	if (r->forgets && !s->sigchld_ignored && s->cgroup_cpu.fd < 0 &&
		(p->n_children > 0 || r->left_ns > 0)) {
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
	(void)process_stat(s, p, &stat); // its page faults, read before their effects
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

static int process_read_status(void *state, struct sink *sink, uint64_t now_ns)
{
	struct process_source *s = state;
	s->sink = sink;
	size_t n;
	struct process *const *members = tree_members(s->tree, &n);
	for (size_t i = 0; i < n; i++) {
		struct readings *r = members[i]->readings;
		if (r->status_ns != now_ns) { // otherwise it was read for its memory
			read_status(s, members[i], now_ns);
		}
	}
	process_memory_round(s);
	return 0;
}

// The job -----------------------------------------------------------------------------------------

// Reads the counter of the job's own cgroup. Returns false if there is none.
static bool process_cgroup_ns(struct process_source *s, uint64_t *ret)
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
			"are counted in CPU time from now on, and not listed",
			(unsigned long long)tree_seen(s->tree));
	}
}

static int process_read_cpu(void *state, struct sink *sink, uint64_t now_ns)
{
	struct process_source *s = state;
	s->sink = sink;
	tree_update(s->tree, now_ns);
	note_many(s, now_ns);
	size_t n;
	// The launcher's sum is read before the clocks of processes that it may reap meanwhile.
	uint64_t sum_ns = atomic_load(&tree_reaped(s->tree)->cpu_ns);
	struct process *const *members = tree_members(s->tree, &n);
	struct proc_stat stat;
	for (size_t i = 0; i < n && s->cgroup_cpu.fd < 0; i++) {
		if (members[i]->n_children > 0 || members[i]->child_lost) {
			process_stat(s, members[i], &stat);
		}
	}
	sum_ns += s->forgotten_ns;
	s->rss_kib = s->own_kib = 0;
	for (size_t i = 0; i < n;) {
		struct process *p = members[i];
		if (process_tick(s, p, now_ns) < 0) {
			tree_remove(s->tree, p);
			members = tree_members(s->tree, &n);
			continue;
		}
		const struct readings *r = p->readings;
		sum_ns += r->cpu_ns + r->child_ns + (r->forgets ? r->left_ns : 0);
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

static int process_read_job(void *state, struct sink *sink, uint64_t now_ns)
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

// stat, schedstat ---------------------------------------------------------------------------------

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

static int process_read_stat(void *state, struct sink *sink, uint64_t now_ns)
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
		int64_t wait_us = process_wait_us(s, p); // also reads the leader's CPU time
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
	process_note_frozen(s, now_ns);
	process_stopped_look(&s->stopped, any_stopped, cpu_ns, now_ns);
	return 0;
}

// io ----------------------------------------------------------------------------------------------

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

// Returns 0, or -errno if it could not be read.
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

static int process_read_io(void *state, struct sink *sink, uint64_t now_ns)
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

// I/O of reaped processes: the launcher's own io, less its value when the run began; zeros if it
// cannot be read.
static void process_reaper_io(struct process_source *s, int64_t values[N_IO])
{
	char buffer[512];
	struct cursor text;
	struct proc_io io;
	memset(values, 0, N_IO * sizeof(*values));
	if (s->reaper_io_fd >= 0 &&
		file_pread(s->reaper_io_fd, buffer, sizeof(buffer), &text) == 0 &&
		proc_io_parse(text, &io) == 0) {
		io_values(&io, values);
	}
}

static int process_read_job_io(void *state, struct sink *sink, uint64_t now_ns)
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

// Joining and leaving -----------------------------------------------------------------------------

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
	process_memory_joined(s, p);
	if (s->attached && p->first_ns < s->start_ns) {
		process_note_before(s, p);
	}
	return 0;
}

// How it ended, as JSON; NULL if unknown.
static const char *exit_attributes(const struct process *p, char *buffer, size_t size)
{
	int status = p->status;
	if (status < 0 && (p->pidfd < 0 || !exit_status_of(p->pidfd, &status))) {
		return NULL;
	}
	snprintf(buffer, size,
		WIFSIGNALED(status) ? "{\"exit_signal\":%d}" : "{\"exit_status\":%d}",
		WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	return buffer;
}

static void process_left(void *context, struct process *p)
{
	struct process_source *s = context;
	struct readings *r = p->readings;
	struct process *parent = tree_find(s->tree, p->parent);
	if (s->sink && parent && parent != p && parent->readings) {
		struct readings *of_parent = parent->readings;
		of_parent->left_ns += r->cpu_ns + r->child_ns;
	}
	s->forgotten_ns += r->forgets ? r->left_ns : 0;
	process_memory_left(s, p);
	tree_close(s->tree, &r->io_file.fd);
	tree_close(s->tree, &r->schedstat_file.fd);
	tree_close(s->tree, &r->status_file.fd);
	for (size_t i = 0; i < N_GROUPS; i++) {
		if (s->sink) {
			stream_close(r->streams[i]);
		}
	}
	if (s->sink) {
		char attributes[64];
		sink_entity_end(s->sink, p->entity, clock_monotonic_ns(),
			exit_attributes(p, attributes, sizeof(attributes)));
	}
	free(r);
}

// Opening -----------------------------------------------------------------------------------------

static bool delay_accounting_on(int root_fd)
{
	char buffer[16];
	struct cursor text;
	uint64_t on;
	return file_read_once(root_fd, "proc/sys/kernel/task_delayacct", buffer, sizeof(buffer),
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
		!process_cgroup_ns(s, &s->base_ns)) {
		host_file_close(&s->cgroup_cpu);
	}
}

static void open_reaper(struct process_source *s, pid_t reaper, int root_fd)
{
	char path[64];
	snprintf(path, sizeof(path), "proc/%d/io", (int)reaper);
	s->reaper_io_fd = reaper > 0 ? openat(root_fd, path, O_RDONLY | O_CLOEXEC) : -1;
	process_reaper_io(s, s->reaper_base);
}

static void process_source_close(void *state)
{
	struct process_source *s = state;
	if (!s) {
		return;
	}
	size_t n = 0;
	struct process *const *members = s->tree ? tree_members(s->tree, &n) : NULL;
	s->sink = NULL; // living processes have no end, and the sink frees their streams
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
	host_file_close(&s->own_schedstat);
	host_file_close(&s->cgroup_cpu);
	process_memory_close(s);
	free(s);
}

// A thousandth of a tick, at most 10 us. For a process running on another CPU, the kernel returns
// the scheduler's last count, which lags by up to a kernel tick (1 to 10 ms). Microseconds are
// noise then, and noise was half of the size of a run file.
static int64_t cpu_unit_us(uint64_t interval_ns)
{
	uint64_t unit_us = interval_ns / (1000 * NS_PER_US);
	return unit_us < 1 ? 1 : unit_us > 10 ? 10 : (int64_t)unit_us;
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
		.cpu_unit_us = cpu_unit_us(context->interval_ns),
		// An interval below 10 ms is meant to find things that take less than 50 ms.
		.statm_steady_ns = context->interval_ns < 10 * NS_PER_MS ? 0 : 50 * NS_PER_MS,
		.cgroup_cpu = HOST_FILE_CLOSED,
		.root_fd = context->root_fd,
		.own_schedstat = HOST_FILE_CLOSED,
		.peak = {.cgroup = HOST_FILE_CLOSED},
		.delay_accounting = delay_accounting_on(context->root_fd),
		.reaper_io_fd = -1,
		.attached = context->tree && context->reaper == 0,
		.start_ns = context->start_ns,
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
	process_memory_open(s, context);
	open_cgroup(s, context);
	open_reaper(s, context->reaper, context->root_fd);
	if (!s->delay_accounting) {
		sink_missing(sink, 0, &process_groups[GROUP_STAT], STAT_BLOCKED,
			"delay accounting is off; enable it with sysctl kernel.task_delayacct=1");
	}
	*ret_state = s;
	return 0;
}

const struct source source_process = {
	.name = "processes",
	.help = "the job's processes: CPU time, memory, storage, threads, faults",
	.lane = LANE_TICK,
	.groups = process_groups,
	.n_groups = N_GROUPS,
	.open = process_source_open,
	.close = process_source_close,
};
