// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The job's processes: who belongs to it, from first to last. The tick lane keeps it up to date;
// other lanes look at it through the two thread-safe calls at the end.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct tree;

struct tree_member {
	pid_t pid; // in the recorder's pid namespace
	uint64_t start_ticks; // field 22 of stat: with pid, an identity that a reused pid does not
	                      // share
	int64_t entity;
};

// Copies the members alive now into *items (grown with array_reserve). 0 or -ENOMEM.
int tree_snapshot(struct tree *tree, struct tree_member **items, size_t *n, size_t *capacity);
// The entity of a live member, 0 where pid is none of the job's.
int64_t tree_entity_of(struct tree *tree, pid_t pid);
