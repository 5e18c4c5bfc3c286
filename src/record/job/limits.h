// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Resource limits of the job: --cpus, --memory, --disk-read and --gpus. They are set before the job
// runs and apply to it alone. If one cannot be set, the job does not run.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "machine/cpus.h"

struct job_cgroup;

enum limit { LIMIT_CPUS, LIMIT_MEMORY, LIMIT_DISK_READ, LIMIT_GPUS, N_LIMITS };

#define LIMIT_MEMORY_MIN (UINT64_C(1) << 20)
#define LIMIT_RATE_MIN (UINT64_C(4) << 10)

struct limits_wanted {
	bool wanted[N_LIMITS];
	unsigned cpu_count; // 0: the set in `cpus`
	struct cpus cpus;
	uint64_t memory_bytes;
	uint64_t read_bytes_per_s; // from each disk; 0: unlimited
	unsigned gpu_count; // if gpu_list is NULL
	char *gpu_list; // "0,2", "GPU-8932f937": owned
};

// Parses the value of an option, replacing an earlier one. Returns -EINVAL or -ERANGE with a text
// that names the option.
int limits_read(struct limits_wanted *wanted, enum limit limit, const char *text, struct error *e);
bool limits_any(const struct limits_wanted *wanted);
void limits_wanted_done(struct limits_wanted *wanted);

// "--cpus" and "limit_cpus": the option, and the key in table run with the limit that was set.
const char *limit_option(enum limit limit);
const char *limit_key(enum limit limit);

struct limits {
	char *set[N_LIMITS]; // the limit and its means, "2 (cpuset 0-1)"; NULL: none; owned
	struct cpus cpus; // if CPUs are limited
	bool affinity; // the job's first process must set its own affinity
	bool in_cgroup; // the cgroup has some limits: a job outside it must not run
	uint64_t memory_bytes; // 0: not limited
	char *gpus; // the job's CUDA_VISIBLE_DEVICES; NULL: unchanged; owned
	bool gpus_of_hip; // sets HIP_VISIBLE_DEVICES, too
};

// Where limits are set.
struct limits_place {
	int root_fd; // the machine's
	struct job_cgroup *cgroup; // the job's own, still empty; NULL: none
	const struct error *why_none; // why `cgroup` is NULL
};

// Whether --cpus COUNT can be set: of the CPUs that this process may use, within the quota of its
// cgroup. Returns 0, or -errno with a text that does not name the option.
int limits_check_cpus(unsigned count, int root_fd, struct error *e);
// Sets all wanted limits. Returns -errno with one line if one cannot be set; limits set before it
// disappear with the cgroup.
int limits_set(const struct limits_wanted *wanted, const struct limits_place *place,
	struct limits *ret, struct error *e);
// Sets the limits that no cgroup sets, in the job's first process. Async-signal-safe. Returns 0 or
// -errno.
int limits_enter(const struct limits *limits);
// Sets the variables in a process from which the job inherits its environment.
void limits_set_environment(const struct limits *limits);
void limits_done(struct limits *limits);

// Limits set --------------------------------------------------------------------------------------
//
// Setters in files of their own. Each sets one limit and describes it in limits->set. Returns 0, or
// -errno with a text that does not yet name the option.

enum { LIMIT_GPUS_MAX = 128, GPU_UUID_BYTES = 96 };

// The GPUs of a machine.
struct gpu_cards {
	unsigned n;
	bool hip; // AMD GPUs, which have no UUIDs
	char uuids[LIMIT_GPUS_MAX][GPU_UUID_BYTES];
};

// Chooses GPUs of `cards` for the job, in the format of CUDA_VISIBLE_DEVICES, from those in
// `visible` (our value of that variable; NULL: all). *ret is owned by the caller.
int limits_choose_gpus(const struct limits_wanted *wanted, const struct gpu_cards *cards,
	const char *visible, char **ret, unsigned *ret_count, struct error *e);
