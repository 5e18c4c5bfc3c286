// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The figures of a run that a person asks for first. NAN, -1 or NULL is "not known", never 0.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "run/outcome.h"
#include "run/summary.h"
#include "runfile/reader.h"

struct run_tables;
struct stops;
struct text;

// Of the peak two bounds are known. Where they are as good as one (3 %) it is the peak; else no
// more is known than that it was at least so much.
struct memory_figure {
	double peak_bytes; // at least
	double at_most_bytes;
	double mean_bytes;
	// What is in the peak: job_memory's kinds, or "resident" (of one process); NULL
	const char *kind;
	const char *metric; // its name; NULL
	const char *source; // how the peak is known: "high-water marks", "cgroup", "sampled"; NULL
	bool at_least; // the peak may have been more
};

struct gpu_figures {
	int64_t entity;
	const char *name; // escape it
	double memory_peak_bytes; // of the device
	double memory_bytes; // that it has
	double busy; // mean ratio: a kernel was resident
	double busy_p95;
	double power_watts; // mean
	double energy_joules;
	double to_device_bytes_per_s; // PCIe, mean
	double from_device_bytes_per_s;
};

struct device_figures { // a disk or a network interface
	int64_t entity;
	const char *name; // escape it
	double in_bytes; // read, received
	double out_bytes; // written, sent
	double busy; // mean ratio of time; NAN for a network interface
};

enum pressure_resource { PRESSURE_CPU, PRESSURE_MEMORY, PRESSURE_IO, N_PRESSURES };

// Share of time in which some (or all) of those who wanted to run were stalled.
struct pressure_figures {
	double some[N_PRESSURES]; // mean ratio
	double full[N_PRESSURES];
	bool of_job; // of the job's own cgroup; else of the whole host
};

struct recording_figures {
	double cpu_share; // of one CPU
	double memory_peak_bytes;
	double ticks;
	double ticks_late;
	double ticks_missed;
	int64_t file_bytes;
};

struct run_label {
	char *name; // escape both
	char *value;
};

struct overview {
	char *name; // of the run: its file's name without ".strain"; escape it
	char *command; // escape it
	struct run_label *labels; // [n_labels], by name
	size_t n_labels;
	enum run_state state;
	bool damaged; // something of the file is lost
	bool attached; // to a process that ran already
	bool epoch_pattern; // one of its own was given
	double duration_s; // of the job; of the run where nobody saw the job's start and end
	double end_s; // of the run, since its start, which is before the job's
	double recorded_s; // how much of duration_s is in the file: what rates are of
	double running_s; // of recorded_s, without stopped_s
	double stopped_s; // nothing of the job ran, since it was stopped (stops.h)
	const char *partial; // why it is not all of it, or NULL; the reader's. Escape it
	int exit_status; // -1 where unknown or killed
	int exit_signal; // 0 for none
	struct outcome_told outcome;
	char *stopped; // how a sweep ended it, as it was to; NULL: it did not. Escape it
	double cpus; // that the job may use (affinity, cgroup quota), else the host's
	double cpu_seconds; // of the job
	bool cpu_inexact; // the run says that the total misses something
	double cpus_used; // mean
	double cpus_used_p95;
	double cpu_wait_seconds; // that the processes' leader threads were ready and had no CPU
	double throttled; // ratio of its quota's periods that ended early because it was used up
	double host_cpus; // that the machine has
	double host_cpus_used; // by everybody, mean
	struct memory_figure memory; // of the job
	double memory_limit_bytes; // the cgroup's, else the host's memory
	bool memory_limit_is_cgroup;
	double asked_bytes; // read through system calls
	double storage_read_bytes;
	double storage_write_bytes;
	struct pressure_figures pressure;
	struct gpu_figures *gpus; // [n_gpus]
	size_t n_gpus;
	struct device_figures *disks; // [n_disks], those that did something
	size_t n_disks;
	struct device_figures *networks;
	size_t n_networks;
	struct recording_figures recording;
};

// job_stops: nothing of the job ran; stops: the same, or a process that others wait for was
// stopped. 0 or -ENOMEM.
int overview_build(const struct run_tables *tables, const struct stops *job_stops,
	const struct stops *stops, struct overview *ret);
void overview_done(struct overview *o);
// "at least 2.1 GB", or what is known to be all; `of` NAN for none: "2.1 of 16 GB".
void overview_append_memory(struct text *t, const struct memory_figure *memory, double of);
// "0.8 s", "0.8 s, and was stopped for 12.0 s"
void overview_append_running(struct text *t, const struct overview *o);
// How the run stands, in one word for programs: "live", "finished", "cut off", "damaged".
const char *overview_state(const struct overview *o);
// The same for people, with what became of the job: "exit 0", "SIGKILL", "cut off, damaged".
void overview_append_outcome(struct text *t, const struct overview *o);
// "recorded 12.0 s of 30.0 s: the disk was full"; of a part.
void overview_append_recorded(struct text *t, const struct overview *o);
// The limits that the run set for its job, in words: "2 CPUs (cpuset 0-1), 4.3 GB of memory (cgroup
// v1 memory)"; nothing where it set none.
void overview_append_limits(struct text *t, struct reader *r);
// Share of what was read that the page cache answered; NAN where that is not known.
double overview_cache_share(const struct overview *o);
// A number of the run's key "limits" (what the job was allowed); NAN where there is none.
double overview_limit(struct reader *r, const char *name);
// CPUs that the quota allowed for most of the run (the median over time); NAN: none is known.
double overview_quota_cpus(const struct run_tables *t);

// Job memory --------------------------------------------------------------------------------------
//
// The host memory that a job held, over time. No one metric is that: PSS counts each shared page
// once, and is read seldom; the cgroup's anonymous and shared memory is read often, without the
// files that processes have mapped; a sum of resident sizes counts shared pages several times; what
// each process has of its own (no cgroup) leaves out what they share.

struct job_memory {
	struct series series; // empty: nothing was read
	// "PSS", "anonymous and shared" (the cgroup's), "anonymous" (the processes' own), "sum of
	// resident"; NULL
	const char *kind;
	const char *metric; // its name; NULL
};

// PSS where it was read: at its readings that, and between them the cgroup's memory, or the
// processes' own, with what PSS had beyond it, never above the sum of resident sizes. Else the
// cgroup's, else the processes' own, else the sum. -ENOMEM.
int job_memory_read(struct reader *r, int64_t job, struct job_memory *ret);
void job_memory_done(struct job_memory *m);
