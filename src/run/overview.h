// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The main figures of a run. NAN, -1 and NULL mean "not known"; 0 never does.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "run/outcome.h"
#include "run/summary.h"
#include "runfile/labels.h"
#include "runfile/reader.h"

struct run_tables;
struct stops;
struct text;

// The peak is known by two bounds. If they differ by at most 3 %, it is reported as exact, else as
// a lower bound.
struct memory_figure {
	double peak_bytes; // at least
	double at_most_bytes;
	double mean_bytes;
	// The kind of memory: one of job_memory's, or "resident" (of one process); NULL
	const char *kind;
	const char *metric; // its name; NULL
	const char *source; // source of the peak: "high-water marks", "cgroup", "sampled"; NULL
	bool at_least; // the peak may have been more
};

struct gpu_figures {
	int64_t entity;
	const char *name; // escape it
	double memory_peak_bytes; // of the device
	double memory_bytes; // capacity
	double busy; // mean ratio: a kernel was resident
	double busy_p95;
	double power_watts; // mean
	double energy_joules;
	double to_device_bytes_per_s; // PCIe, mean
	double from_device_bytes_per_s;
	double nvlink_in_bytes_per_s; // all links, mean
	double nvlink_out_bytes_per_s;
	double temperature_max_c;
};

struct device_figures { // a disk or a network interface
	int64_t entity;
	const char *name; // escape it
	double in_bytes; // read, received
	double out_bytes; // written, sent
	double busy; // mean ratio of time; NAN for a network interface
};

enum pressure_resource { PRESSURE_CPU, PRESSURE_MEMORY, PRESSURE_IO, N_PRESSURES };

// Share of time in which some (or all) tasks that could run were stalled.
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

struct overview {
	char *name; // of the run: its file's name without ".strain"; escape it
	char *command; // escape it
	struct run_label *labels; // [n_labels], by name
	size_t n_labels;
	enum run_state state;
	bool damaged; // part of the file is lost
	bool attached; // to a process that ran already
	bool epoch_pattern; // --epoch-pattern other than auto
	double duration_s; // of the job, else of the run
	double end_s; // end of the run, since its start
	double recorded_s; // recorded part of duration_s, to which rates refer
	double running_s; // recorded_s - stopped_s
	double stopped_s; // time for which the whole job was stopped (stops.h)
	const char *partial; // why only a part was recorded; NULL: all was. Borrowed from the
	                     // reader; escape it
	int exit_status; // -1 where unknown or killed
	int exit_signal; // 0 for none
	struct outcome_told outcome;
	char *stopped; // stop rule by which a sweep ended it; NULL: none. Escape it
	double cpus; // available to the job (affinity, cgroup quota), else those of the host
	double quota_cpus; // overview_quota_cpus
	double cpu_seconds; // of the job
	bool cpu_inexact; // the total is known to be incomplete
	double cpus_used; // mean
	double cpus_used_p95;
	double cpu_wait_seconds; // time for which leader threads were runnable and waited for a CPU
	double throttled; // ratio of periods in which the CPU quota was used up
	double host_cpus; // of the machine
	double host_cpus_used; // by all programs, mean
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

// job_stops: when the whole job was stopped. stops: also when a process that the others wait for
// was stopped. Returns 0 or -ENOMEM.
int overview_build(const struct run_tables *tables, const struct stops *job_stops,
	const struct stops *stops, struct overview *ret);
void overview_done(struct overview *o);
// "at least 2.1 GB", "2.1 GB", or with a capacity `of`, "2.1 of 16 GB" (NAN: none).
void overview_append_memory(struct text *t, const struct memory_figure *memory, double of);
// "0.8 s", "0.8 s, and was stopped for 12.0 s"
void overview_append_running(struct text *t, const struct overview *o);
// The state of the run for programs: "live", "finished", "cut off", "damaged".
const char *overview_state(const struct overview *o);
// The state for people, with the exit status: "exit 0", "SIGKILL", "cut off, damaged".
void overview_append_outcome(struct text *t, const struct overview *o);
// "recorded 12.0 s of 30.0 s: the disk was full", for a run of which a part was recorded.
void overview_append_recorded(struct text *t, const struct overview *o);
// Appends the limits that the run set for its job: "2 CPUs (cpuset 0-1), 4.3 GB of memory (cgroup
// v1 memory)"; nothing if it set none.
void overview_append_limits(struct text *t, struct reader *r);
// Bytes per second that --disk-read allowed; NAN: it was not given.
double overview_disk_read_limit(struct reader *r);
// Share of the bytes read that did not come from storage; NAN: not known.
double overview_cache_share(const struct overview *o);
// A number from the key "limits" of the run; NAN: there is none.
double overview_limit(struct reader *r, const char *name);
// CPUs that the quota allowed for most of the run (the median over time); NAN: none is known.
double overview_quota_cpus(const struct run_tables *t);

// Job memory --------------------------------------------------------------------------------------
//
// Host memory of a job over time. No single metric measures it. PSS counts each shared page once,
// but is read rarely. The cgroup's anonymous and shared memory is read often, but does not include
// mapped files. A sum of resident sizes counts shared pages several times. The private memory of
// processes does not include shared memory.

struct job_memory {
	struct series series; // empty: nothing was read
	// "PSS", "anonymous and shared" (the cgroup's), "anonymous" (the processes' own), "sum of
	// resident"; NULL
	const char *kind;
	const char *metric; // its name; NULL
};

// Returns PSS if it was read; between its readings, the cgroup's memory or the processes' private
// memory, plus its difference from PSS, interpolated between readings of PSS, and at most the sum
// of resident sizes. Without PSS, returns the cgroup's memory, else private memory, else the sum.
// -ENOMEM.
int job_memory_read(struct reader *r, int64_t job, struct job_memory *ret);
void job_memory_done(struct job_memory *m);
