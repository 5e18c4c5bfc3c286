// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The recorder as an entity of the run: its cost and its losses.

#pragma once

#include <stdint.h>

#include "record/sample/sampler.h"
#include "record/sample/source.h"

struct self;

// Adds the recorder's groups to the registry, before the metrics are written. 0 or -ENOMEM.
int own_cost_new(struct registry *registry, struct self **ret);
void own_cost_free(struct self *self);

// The groups and their number, for documents.
const struct group *own_cost_groups(const struct self *self, size_t *ret_n);

// Announces the entity. Returns its id.
int64_t own_cost_announce(struct self *self, struct sink *sink, uint64_t now_ns);

// Appends a row of each group. Returns the CPU time of this process in ns.
uint64_t own_cost_read(struct self *self, const struct sampler *sampler, struct feed *feed,
	double slow, uint64_t interval_ns, uint64_t now_ns);
