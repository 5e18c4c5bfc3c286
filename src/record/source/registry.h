// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Numbers for metrics and entities: which id a group's metrics have in this run's file.

#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct group;

struct registry_row {
	const struct group *group;
	const char *source; // name
	uint32_t *ids; // [group->n_metrics], owned
};

// Filled before the lanes start and constant afterwards, but for the entities' counter.
struct registry {
	struct registry_row *rows;
	size_t n_rows;
	size_t capacity;
	uint32_t last_id;
	_Atomic int64_t last_entity;
};

// Gives ids to the metrics of a group. 0 or -ENOMEM.
int registry_add(struct registry *r, const char *source, const struct group *group);
// NULL where the group is not known.
const struct registry_row *registry_find(const struct registry *r, const struct group *group);
void registry_done(struct registry *r);
