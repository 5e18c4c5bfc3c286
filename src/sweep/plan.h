// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The plan of a sweep: a YAML file in the format known from W&B's sweeps, read strictly. See
// strain-sweep(1).

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "study/yaml.h"

struct expression;
struct text;

#define PLAN_MAX_FACTORS 64u
#define PLAN_MAX_VALUES 10000u
#define PLAN_MAX_REPEATS 1000u
#define PLAN_MAX_TRIALS 100000u
#define PLAN_MAX_CONFIGURATIONS 1000000u // before constraints
#define PLAN_GRACE_S 10
#define PLAN_MAX_DRAWN 10000u // for method random

enum plan_distribution {
	DISTRIBUTION_VALUES, // a value from a list
	DISTRIBUTION_UNIFORM,
	DISTRIBUTION_INT_UNIFORM,
	DISTRIBUTION_Q_UNIFORM, // quantized
	DISTRIBUTION_LOG_UNIFORM,
};

// A factor: a parameter of the job, or a resource of the machine that the job gets.
struct plan_factor {
	char *name;
	bool resource;
	bool used; // occurs in the command or the environment
	bool named; // occurs there by its own name, not only through ${args}
	enum plan_distribution distribution;
	char **values; // [n_values], as written, in the plan's order
	size_t n_values;
	double minimum; // of an interval
	double maximum;
	double step;
	const struct yaml_node *place;
};

struct plan_pair {
	char *name;
	char *value;
};

struct plan_pairs {
	struct plan_pair *items;
	size_t n;
	size_t capacity;
};

struct plan_constraint {
	struct expression *expression;
	const struct yaml_node *place;
};

#define PLAN_SLURM "slurm" // the executor

struct plan_stop { // a value of 0 means no such rule
	uint64_t epochs;
	double seconds;
	double step_error; // relative
};

// How trials are submitted to Slurm, beside the resources of each.
struct plan_slurm {
	char *partition; // NULL: Slurm's own
	double time_s; // limit of a trial; 0: from `timeout`, or else Slurm's own
	uint64_t parallel; // trials of an array that may run at a time; 0: any
	bool no_requeue; // a preempted trial, or one whose node failed, does not run again
	char **options; // [n_options] of sbatch
	size_t n_options;
};

// The first line of a plan with masked secrets (plan_kept.h): it can be read, but not run.
#define PLAN_MASKED \
	"# Secrets are left out of this plan (***): only the original plan can resume the sweep."

struct plan {
	struct yaml yaml;
	bool masked; // begins with PLAN_MASKED
	char *name;
	char **command; // [n_command] words with placeholders
	size_t n_command;
	struct plan_pairs environment; // the values have placeholders
	struct plan_pairs labels; // labels of every run
	struct plan_factor *factors; // parameters, then resources, each in the plan's order
	size_t n_factors;
	size_t factors_capacity;
	struct plan_constraint *constraints;
	size_t n_constraints;
	size_t constraints_capacity;
	struct plan_pairs baseline; // names of factors and their values
	bool random; // method: random
	bool in_order; // order: plan
	uint64_t n_drawn; // trials: number of configurations to draw
	uint64_t repeats;
	uint64_t seed;
	struct plan_stop stop;
	double timeout_s; // 0: none
	double grace_s; // time for a job to end by itself
	char *executor; // "local", "slurm"
	struct plan_slurm slurm;
	char *epoch_pattern; // of `strain run`; NULL: none
};

// Reads a plan. `name` is the start of error messages, which are one line: "NAME:LINE:COLUMN:
// FIELD: expected ..., found ...". Returns 0, -EINVAL or -ENOMEM.
int plan_read(const char *name, const char *data, size_t size, struct plan *ret, struct error *e);
// The same from a file; the second from an open one, with `path` as its name in errors.
int plan_open(const char *path, struct plan *ret, struct error *e);
int plan_read_file(int fd, const char *path, struct plan *ret, struct error *e);
// Reads the file of a plan, at most slightly more than YAML_MAX_BYTES.
int plan_read_text(const char *path, struct text *ret, struct error *e);
void plan_done(struct plan *plan);

// NULL if there is none of this name.
const struct plan_factor *plan_factor(const struct plan *plan, const char *name);

// Whether two plans differ. If so, *ret is the first difference, "parameters.batch_size: was [32],
// is [32, 64]". Owned by the caller; NULL: out of memory.
bool plan_differs(const struct plan *was, const struct plan *is, char **ret);
