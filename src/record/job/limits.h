// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What the job may use at most, as --cpus, --memory, --disk-read and --gpus ask for it: set before
// the job runs, on the job alone, or the job does not run.

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
	unsigned cpu_count; // 0: those of `cpus`
	struct cpus cpus;
	uint64_t memory_bytes;
	uint64_t read_bytes_per_s; // from each disk; 0: unlimited
	unsigned gpu_count; // where gpu_list is NULL
	char *gpu_list; // "0,2", "GPU-8932f937": owned
};

// Takes the value of an option, in place of one that was given before. -EINVAL or -ERANGE with a
// text that names the option.
int limits_read(struct limits_wanted *wanted, enum limit limit, const char *text, struct error *e);
bool limits_any(const struct limits_wanted *wanted);
void limits_wanted_done(struct limits_wanted *wanted);

// "--cpus" and "limit_cpus": the option, and the key of table run that tells what was set.
const char *limit_option(enum limit limit);
const char *limit_key(enum limit limit);

struct limits {
	char *set[N_LIMITS]; // what was set and how, "2 (cpuset 0-1)"; NULL: nothing; owned
	struct cpus cpus; // where cpus were limited
	bool affinity; // and the job's first process has to do that itself
	bool in_cgroup; // some are the cgroup's: a job that is not in it must not run
	uint64_t memory_bytes; // 0: not limited
	char *gpus; // the job's CUDA_VISIBLE_DEVICES; NULL: as it is; owned
	bool gpus_of_hip; // its HIP_VISIBLE_DEVICES, too
};

// Where they are set.
struct limits_place {
	int root_fd; // the machine's
	struct job_cgroup *cgroup; // the job's own, where nobody is yet; NULL: none
	const struct error *why_none; // then
};

// Sets all that are wanted. -errno with one line where one cannot be; those before it are left to
// the cgroup's removal.
int limits_set(const struct limits_wanted *wanted, const struct limits_place *place,
	struct limits *ret, struct error *e);
// In the job's first process: what no cgroup does. Async-signal-safe. 0 or -errno.
int limits_enter(const struct limits *limits);
// In a process from which the job inherits its environment.
void limits_set_environment(const struct limits *limits);
void limits_done(struct limits *limits);

// Limits set --------------------------------------------------------------------------------------
//
// The setters of limits.c that have files of their own. Each sets one limit and says in
// limits->set how. 0 or -errno with a text that does not name the option yet.

enum { LIMIT_GPUS_MAX = 128, GPU_UUID_BYTES = 96 };

// The cards of a machine.
struct gpu_cards {
	unsigned n;
	bool hip; // AMD's: no UUIDs
	char uuids[LIMIT_GPUS_MAX][GPU_UUID_BYTES];
};

// Which of `cards` the job gets, as CUDA_VISIBLE_DEVICES says it, of those that `visible` (the same
// variable of ours; NULL: all) names. *ret is owned by the caller.
int limits_choose_gpus(const struct limits_wanted *wanted, const struct gpu_cards *cards,
	const char *visible, char **ret, unsigned *ret_count, struct error *e);
