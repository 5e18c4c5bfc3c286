// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: the strain authors
//
// Open ranges. Two kinds cannot be written to the ring before they end, because they need not nest
// with the thread's other spans: ranges pushed in a domain of their own (which nest only with those
// of the same domain), and ranges started and ended separately, perhaps by another thread.

#pragma once

#include <stdint.h>

#include "nvtx/names.h"

// Ranges of the default domain. Return the number of ranges already open; NVTX_NOT_TRACKED if this
// thread's marks are not recorded, or there is nothing to pop.
int range_push(const struct range_name *name);
int range_pop(void);

// The same in another domain.
int range_push_in(uintptr_t domain, const struct range_name *name);
int range_pop_in(uintptr_t domain);

// Returns the range's id; 0 if there are too many ranges, or marks are not recorded.
uint64_t range_start(const struct range_name *name);
void range_end(uint64_t id); // ignores a range that is not open

// A point; value is NAN if the event has none.
void range_mark(const struct range_name *name, double value);
