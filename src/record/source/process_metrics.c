// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What is told of processes, and of the job as their sum.

#include "record/source/process_internal.h"

#include "base/clock.h"

static const struct metric cpu_metrics[N_CPU] = {
	[CPU_TIME] = {"process.cpu.time", METRIC_COUNTER, "s", 1e-6,
		"CPU time of the process, all threads, from its CPU clock (exact to the "
		"nanosecond, "
		"kept in microseconds)."},
	[CPU_RESIDENT] = {"process.memory.usage", METRIC_GAUGE, "By", 1024,
		"Resident memory (statm). Pages shared with other processes count in each of them: "
		"sums "
		"over processes say nothing; see strain.memory.pss."},
	[CPU_SHARED] = {"strain.memory.shared", METRIC_GAUGE, "By", 1024,
		"Resident memory that maps files or shared memory (statm's third field)."},
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
	[STAT_LEADER] = {"strain.cpu.time.leader", METRIC_COUNTER, "s", 1e-6,
		"CPU time of the leader thread alone (schedstat): in Python, the thread that runs "
		"the script."},
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
		"68 D blocked, 84 T stopped, 116 t stopped by a debugger, 90 Z ended."},
	[STAT_STOPPED] = {"strain.process.stopped_time", METRIC_COUNTER, "s", 1e-6,
		"Time that the process was stopped (SIGSTOP, Ctrl-Z, a debugger), from its state "
		"at "
		"each reading: stops shorter than two readings are not in it."},
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
	[STATUS_CPUS] = {"strain.cpu.allowed", METRIC_GAUGE, "{cpu}", 1,
		"CPUs that the leader thread may run on: its affinity within its cpuset (status: "
		"Cpus_allowed_list). Other threads may be bound elsewhere."},
};

static const struct metric job_metrics[N_JOB] = {
	[JOB_CPU] = {"process.cpu.time", METRIC_COUNTER, "s", 1e-6,
		"CPU time of the job with every process that ever was in it; the run's key "
		"cpu_time_source says how it is known."},
	[JOB_PROCESSES] = {"strain.process.count", METRIC_GAUGE, "{process}", 1,
		"Processes of the job that live."},
	[JOB_RSS] = {"strain.memory.rss_sum", METRIC_GAUGE, "By", 1024,
		"Sum of the processes' resident memory: shared pages count more than once. See "
		"strain.memory.pss and the cgroup's."},
	[JOB_OWN] = {"strain.memory.own_sum", METRIC_GAUGE, "By", 1024,
		"Sum of the processes' anonymous memory (statm: resident less shared), less what "
		"each had inherited: no page counts twice, and what a process shares with its "
		"parent only in the parent."},
};

static const struct metric job_stopped_metrics[N_JOB_STOPPED] = {
	[JOB_STOPPED] = {"strain.stopped_time", METRIC_COUNTER, "s", 1e-6,
		"Time that processes of the job were stopped and none of the others ran; see "
		"strain.process.stopped_time."},
};

static const struct metric job_peak_metrics[N_JOB_PEAK] = {
	[JOB_PEAK_LARGEST] = {"strain.memory.peak", METRIC_GAUGE, "By", 1024,
		"The most resident memory that one process of the job ever had (status: VmHWM; "
		"wait4: ru_maxrss): the job had at least as much."},
	[JOB_PEAK_MOST] = {"strain.memory.peak.bound", METRIC_GAUGE, "By", 1024,
		"Resident memory that the job had at most at any time: the largest sum of such "
		"peaks of processes that lived at once, and what faults of pages allow for that "
		"nobody saw. Known at the end."},
	[JOB_PEAK_CGROUP] = {"strain.cgroup.memory.peak", METRIC_GAUGE, "By", 1024,
		"The most that was ever charged to the job's cgroup, page cache too; where the job "
		"has none of its own, to the one that it was started in, by others and before it "
		"as well (memory.peak, memory.max_usage_in_bytes)."},
};

const struct group process_groups[N_GROUPS] = {
	[GROUP_CPU] = {"cpu", ENTITY_PROCESS, cpu_metrics, N_CPU, 0, process_read_cpu},
	[GROUP_JOB] = {"job", ENTITY_JOB, job_metrics, N_JOB, 0, process_read_job},
	[GROUP_STAT] = {"stat", ENTITY_PROCESS, stat_metrics, N_STAT, 100 * NS_PER_MS,
		process_read_stat},
	[GROUP_JOB_STOPPED] = {"job_stopped", ENTITY_JOB, job_stopped_metrics, N_JOB_STOPPED,
		100 * NS_PER_MS, process_read_job_stopped},
	[GROUP_IO] = {"io", ENTITY_PROCESS, io_metrics, N_IO, 100 * NS_PER_MS, process_read_io},
	[GROUP_JOB_IO] = {"job_io", ENTITY_JOB, io_metrics, N_IO, 100 * NS_PER_MS,
		process_read_job_io},
	[GROUP_STATUS] = {"status", ENTITY_PROCESS, status_metrics, N_STATUS, NS_PER_S,
		process_read_status},
	[GROUP_JOB_PEAK] = {"job_peak", ENTITY_JOB, job_peak_metrics, N_JOB_PEAK, NS_PER_S,
		process_read_job_peak},
};
