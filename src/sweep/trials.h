// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The trials of a plan: configurations, their repeats, and their order. The same plan gives the
// same trials on any machine.
//
// Configurations are numbered from 1 in the plan's own order, the last name varying fastest,
// without those that constraints exclude; with method random, in the order in which they are drawn.
// In random order, every configuration has its first repeat before any has its second.

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "sweep/plan.h"

struct trial_place {
	uint32_t configuration; // from 1
	uint32_t repeat; // from 1
};

struct trials {
	const struct plan *plan; // borrowed
	size_t n_configurations;
	uint32_t *choices; // [n_configurations * plan->n_factors]: index of the value
	char **drawn; // values of intervals
	size_t n_drawn;
	size_t drawn_capacity;
	size_t excluded; // configurations excluded by constraints
	struct trial_place *order; // [n]
	size_t n;
};

// Makes the trials. -EINVAL, with a line as from plan_read: a constraint excludes everything or
// cannot be evaluated, there are too many trials, or fewer configurations than are to be drawn.
// -ENOMEM.
int trials_make(const struct plan *plan, struct trials *ret, struct error *e);
void trials_done(struct trials *trials);

// The value of a factor, by its index in the plan, in a configuration (from 1).
const char *trials_value(const struct trials *trials, size_t configuration, size_t factor);
// The same by name; NULL if there is none.
const char *trials_value_of(const struct trials *trials, size_t configuration, const char *name);
// The configuration with the values of the baseline, and otherwise those of `configuration`; 0:
// there is none.
size_t trials_baseline(const struct trials *trials, size_t configuration);

// The command of a configuration, terminated by NULL, and its environment as "NAME=VALUE". Owned by
// the caller (template_free_words); NULL: out of memory.
char **trials_command(const struct trials *trials, size_t configuration);
char **trials_environment(const struct trials *trials, size_t configuration);
