// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: the strain authors
//
// Ranges that are open. Two sorts cannot be told to the ring before they end, because they need not
// nest with what else their thread has open: those pushed in a domain of their own (they nest with
// those of the same domain only), and those that are started and ended, perhaps by another thread.

#pragma once

#include <stdint.h>

#include "nvtx/names.h"

// In the default domain: how many were open already; NVTX_NOT_TRACKED where this thread's marks go
// nowhere, or nothing is to be popped.
int range_push(const struct range_name *name);
int range_pop(void);

// The same in another domain.
int range_push_in(uintptr_t domain, const struct range_name *name);
int range_pop_in(uintptr_t domain);

// The id of the range, never 0; 0 where there is no room for one more, or marks go nowhere.
uint64_t range_start(const struct range_name *name);
void range_end(uint64_t id); // one that is not open is nothing

// A point; its value is NAN where the event has none.
void range_mark(const struct range_name *name, double value);
