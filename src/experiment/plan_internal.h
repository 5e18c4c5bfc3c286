// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What the files that read a plan share.

#pragma once

#include "experiment/plan.h"

struct plan_reading {
	struct plan *plan;
	struct error *e;
};

// plan_values.c: a scalar of a kind, or the error that says what was expected.
int plan_whole(const struct plan_reading *r, const struct yaml_node *node, const char *field,
	uint64_t minimum, uint64_t maximum, uint64_t *ret);
int plan_number(
	const struct plan_reading *r, const struct yaml_node *node, const char *field, double *ret);
// A number of seconds or a duration (90, 10min); more than 0.
int plan_seconds(
	const struct plan_reading *r, const struct yaml_node *node, const char *field, double *ret);
int plan_text(
	const struct plan_reading *r, const struct yaml_node *node, const char *field, char **ret);
// {NAME: value}: names of letters, digits and _, each value a scalar.
int plan_pairs(const struct plan_reading *r, const struct yaml_node *node, const char *field,
	struct plan_pairs *ret);

// Whether it can name a parameter: a letter or _, then letters, digits, _ and -.
bool plan_is_name(const char *name);

// plan_factors.c
int plan_parameters(const struct plan_reading *r, const struct yaml_node *node);
int plan_resources(const struct plan_reading *r, const struct yaml_node *node);

// plan_command.c
int plan_command(const struct plan_reading *r, const struct yaml_node *node);
// When all is read: whether placeholders and parameters belong together.
int plan_check_use(const struct plan_reading *r);
