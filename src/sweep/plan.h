// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The plan of a sweep: a YAML file in the format that W&B's sweeps made familiar, read strictly.
// docs: strain-sweep(1).

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "sweep/yaml.h"

struct expression;
struct text;

#define PLAN_MAX_FACTORS 64u
#define PLAN_MAX_VALUES 10000u
#define PLAN_MAX_REPEATS 1000u
#define PLAN_MAX_TRIALS 100000u
#define PLAN_MAX_CONFIGURATIONS 1000000u // before constraints
#define PLAN_GRACE_S 10
#define PLAN_MAX_DRAWN 10000u // of method random

enum plan_distribution {
	DISTRIBUTION_VALUES, // one of a list
	DISTRIBUTION_UNIFORM,
	DISTRIBUTION_INT_UNIFORM,
	DISTRIBUTION_Q_UNIFORM, // in steps
	DISTRIBUTION_LOG_UNIFORM,
};

// What varies: a parameter of the job, or a resource that it is given.
struct plan_factor {
	char *name;
	bool resource;
	bool used; // in the command or the environment
	bool named; // and by itself there, not by ${args} alone
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

struct plan_stop { // 0: no such rule
	uint64_t epochs;
	double seconds;
	double step_error; // a ratio
};

// The first line of a plan whose secrets were masked (plan_kept.h): it can be read, but not run.
#define PLAN_MASKED \
	"# Secrets are left out of this plan (***): only the original plan can resume the sweep."

struct plan {
	struct yaml yaml;
	bool masked; // begins with PLAN_MASKED
	char *name;
	char **command; // [n_command] words, with placeholders
	size_t n_command;
	struct plan_pairs environment; // values with placeholders
	struct plan_pairs labels; // that every run gets
	struct plan_factor *factors; // parameters, then resources; each in the plan's order
	size_t n_factors;
	size_t factors_capacity;
	struct plan_constraint *constraints;
	size_t n_constraints;
	size_t constraints_capacity;
	struct plan_pairs baseline; // names of factors, and values
	bool random; // method
	bool in_order; // order: plan
	uint64_t n_drawn; // trials: how many configurations are drawn
	uint64_t repeats;
	uint64_t seed;
	struct plan_stop stop;
	double timeout_s; // 0: none
	double grace_s; // what a job that is to end is given
	char *executor;
	char *epoch_pattern; // of `strain run`; NULL: none
};

// `name` is what errors begin with: "NAME:LINE:COLUMN: FIELD: expected ..., found ...". Each is one
// line. -EINVAL, -ENOMEM.
int plan_read(const char *name, const char *data, size_t size, struct plan *ret, struct error *e);
// The same of a file; and of an open one, which `path` is the name of in errors.
int plan_open(const char *path, struct plan *ret, struct error *e);
int plan_read_file(int fd, const char *path, struct plan *ret, struct error *e);
// What is in the file of a plan, at most YAML_MAX_BYTES and a little.
int plan_read_text(const char *path, struct text *ret, struct error *e);
void plan_done(struct plan *plan);

// NULL where there is none.
const struct plan_factor *plan_factor(const struct plan *plan, const char *name);

// What the other plan says otherwise, as "parameters.batch_size: was [32], is [32, 64]". False:
// they say the same. Owned by the caller; NULL: out of memory.
bool plan_differs(const struct plan *was, const struct plan *is, char **ret);
