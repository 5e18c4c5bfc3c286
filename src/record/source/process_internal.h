// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Inside of the process source: its tables (process_metrics.c), its readings (process_read.c), and
// who comes and goes (process.c).

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "record/host/file.h"
#include "record/job/tree.h"
#include "record/source/source.h"

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
extern const struct group process_groups[N_GROUPS];

// A file of one process: opened with the first reading and kept.
struct reading {
	int fd;
	bool failed; // and said so
	uint64_t seen_ns; // the process's CPU clock when it was last read
};

// How long a process, or the whole job, was stopped (process_stopped.c).
struct stopped {
	uint64_t ns; // so far
	uint64_t seen_ns; // when it was last looked at; 0: not yet
	uint64_t cpu_ns; // its CPU time then
	uint64_t edge_ns; // half the time between the look before a stop and the first in it
	bool is; // it was stopped then
	bool counted; // and had been for a whole look
};

struct readings {
	uint64_t cpu_ns; // own, as last read
	int64_t cpu_row[N_CPU]; // the last row of GROUP_CPU
	uint64_t statm_ns; // when statm was last read; 0: not yet
	uint64_t statm_seen_ns; // the CPU clock then
	unsigned statm_same; // readings in a row that said the same
	uint64_t io_ns; // likewise of io
	unsigned io_same;
	uint64_t child_ns; // of reaped children, as last read
	uint64_t rss_kib;
	uint64_t own_kib; // of that: anonymous, and not inherited
	uint64_t least_kib; // of anonymous memory, so far
	uint64_t high_kib; // the most resident that is known of
	int64_t before_bytes; // VmHWM of before the run; 0: it began in it
	uint64_t high_faults; // of pages, before VmHWM was last read
	uint64_t status_ns; // when that was; 0: not yet
	bool look; // something was given back since: VmHWM may know more
	uint64_t left_at_statm_kib, left_at_status_kib; // peak.left_kib when either was read
	int64_t io[N_IO];
	int64_t wait_us;
	int64_t leader_us; // CPU time of the leader thread
	struct stopped stopped;
	struct reading io_file, schedstat_file, status_file;
	struct stream *streams[N_GROUPS];
};

// The job's peak of memory (process_memory.c).
struct peak {
	int root_fd; // borrowed
	pid_t reaper;
	uint64_t largest_kib; // that one process had
	uint64_t alive_kib; // the marks of those that live
	uint64_t left_kib; // and of all that have left
	uint64_t left_faults;
	uint64_t rose_from_kib; // the least left_at of those that rose in this round; UINT64_MAX
	uint64_t most_kib; // the largest sum so far
	uint64_t huge_base; // huge pages mapped when the run began
	bool huge_known;
	char *own_cgroup; // that has the job's memory, and only that; NULL
	int version; // of it
	bool cgroup_sought;
	struct host_file cgroup; // its peak, or that of the one where the job is
};

struct process_source {
	struct tree *tree;
	bool own_tree; // made for doctor, where there is no job
	bool captured;
	struct sink *sink; // of the call in progress: joined and left are called from tree_update
	int64_t job;
	uint64_t ns_per_tick;
	uint64_t kib_per_page;
	uint64_t statm_steady_ns; // between looks at memory that does not change
	int64_t cpu_unit_us; // CPU times of ticks are rounded down to multiples of it
	struct host_file cgroup_cpu; // closed where the job has no cgroup of its own
	bool cgroup_v2;
	bool delay_accounting;
	bool sigchld_ignored; // said
	bool many; // said
	struct stream *job_stream, *job_io_stream, *job_peak_stream, *job_stopped_stream;
	uint64_t total_ns; // never falls
	uint64_t base_ns; // of the cgroup's counter when the run began
	bool attached; // --pid: processes may have used CPU time before the run
	uint64_t start_ns; // of the run
	uint64_t before_ns; // what they had used, with their reaped children's, in all
	uint64_t rss_kib, own_kib;
	struct stopped stopped;
	struct peak peak;
	int reaper_io_fd; // the launcher's io: has what it reaped
	int64_t reaper_base[N_IO];
	int64_t job_io[N_IO]; // never falls
};

// The readers of the groups above.
int process_read_cpu(void *state, struct sink *sink, uint64_t now_ns);
int process_read_job(void *state, struct sink *sink, uint64_t now_ns);
int process_read_stat(void *state, struct sink *sink, uint64_t now_ns);
int process_read_job_stopped(void *state, struct sink *sink, uint64_t now_ns);
int process_read_io(void *state, struct sink *sink, uint64_t now_ns);
int process_read_job_io(void *state, struct sink *sink, uint64_t now_ns);
int process_read_status(void *state, struct sink *sink, uint64_t now_ns);
int process_read_job_peak(void *state, struct sink *sink, uint64_t now_ns);

// Memory: who comes and goes, what statm said, whether VmHWM is to be read now, what it said with
// how many faults of pages before, and the end of a round over the processes.
void process_memory_open(struct process_source *s, const struct source_context *context);
void process_memory_close(struct process_source *s);
void process_memory_joined(struct process_source *s, struct process *p);
void process_memory_left(struct process_source *s, const struct process *p);
void process_memory_seen(struct process_source *s, struct process *p, int64_t resident_kib,
	int64_t shared_kib, uint64_t now_ns);
bool process_memory_looks(const struct process *p, uint64_t now_ns);
void process_memory_looked(
	struct process_source *s, struct process *p, int64_t high_bytes, uint64_t faults);
void process_memory_round(struct process_source *s);

// Takes in that something was found stopped or not at now_ns, with the CPU time of what would run.
void process_stopped_look(struct stopped *s, bool is, uint64_t cpu_ns, uint64_t now_ns);
// A process of before the run has joined: what it used is not the job's.
void process_note_before(struct process_source *s, struct process *p);
// The counter of the job's own cgroup. False where there is none.
bool process_cgroup_ns(struct process_source *s, uint64_t *ret);
// What the launcher has reaped, from its own io; zeros where it cannot be read.
void process_reaper_io(struct process_source *s, int64_t values[N_IO]);
