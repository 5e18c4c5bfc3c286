// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Figures against what the machine can do: no more CPUs than it has, shares between 0 and 1, no
// more time than the run had, no more bytes than a link or memory can move. A figure that fails is
// an error of measurement or of arithmetic: it becomes NAN, which rules and tables take for "not
// known", and is noted.

#pragma once

#include <stddef.h>

struct analysis;
struct facts;

#define IMPLAUSIBLE_MAX 16 // notes; more figures are left out without one

struct implausible_list {
	char *items[IMPLAUSIBLE_MAX]; // "loader workers, CPUs: 2.5 of at most 2"; printable
	size_t n;
};

// What bounds a figure.
struct machine_bounds {
	double cpus; // of the machine; NAN in any of these: no bound is known
	double memory_bytes;
	double run_s;
	double over_s; // the time that rates are of: the shorter, the coarser are clocks
};

// Checks the figures of the overview, and those of the facts; `notes` NULL: none are kept.
void plausible_overview(struct analysis *a, struct implausible_list *notes);
void plausible_facts(
	const struct machine_bounds *bounds, struct facts *f, struct implausible_list *notes);
// What bounds the figures of a run over a stretch of so many seconds.
struct machine_bounds plausible_bounds(const struct analysis *a, double over_s);
void implausible_list_done(struct implausible_list *list);
