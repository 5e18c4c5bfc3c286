// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Tries every source once: which metrics can be measured here, and why others cannot. Records
// nothing.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "record/sample/source.h"

// One metric of one entity: a value, or the reason why there is none.
struct availability_value {
	const struct group *group;
	size_t metric; // index in the group
	const char *entity; // name; "" for all of the kind
	int64_t value; // VALUE_MISSING if there is none
	const char *reason; // NULL if there is a value or no known reason
};

struct availability_result {
	const struct source *source;
	struct error failed; // code 0 where the source opened
	struct availability_value *values; // [n_values], in the order of groups, entities, metrics
	size_t n_values;
};

struct availability;

// context needs root_fd, captured, tree and cgroup; entities get their ids here. Readings are taken
// as if seconds passed between them. Returns 0 or -ENOMEM.
int availability_run(const struct source_context *context, struct availability **ret);
void availability_free(struct availability *p); // accepts NULL
const struct availability_result *availability_results(const struct availability *p, size_t *ret_n);
