// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What `strain sweep` says.

#pragma once

#include <stdbool.h>
#include <stddef.h>

struct column;
struct plan;
struct sweep;
struct text;

// A line on standard error.
void sweep_say(const char *text);
// "40 trials of 20 configurations (16 excluded by constraints), 12 there, into plan.sweep"
void sweep_append_counts(struct text *t, const struct sweep *sweep);
// `first`, a column for each thing that varies, `more`. Owned by the caller; NULL: out of memory.
struct column *sweep_columns(const struct plan *plan, const struct column *first,
	const struct column *more, size_t n_more);
// --dry-run: what there is to do, and the trials in their order. The exit status.
int sweep_print_trials(const struct sweep *sweep, bool json);
