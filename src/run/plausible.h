// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Checks of figures against the machine: no more CPUs than it has, shares between 0 and 1, no more
// time than the run had, no more bytes than a link or memory can move. A figure that fails is an
// error of measurement or of arithmetic: it becomes NAN, which rules and tables treat as unknown,
// and is noted.

#pragma once

#include <stddef.h>

struct overview;
struct run_tables;

#define PLAUSIBLE_ERROR 1.02 // tolerance, as a factor: clocks are read one after the other
#define IMPLAUSIBLE_MAX 16 // further implausible figures are left out without a note

struct implausible_list {
	char *items[IMPLAUSIBLE_MAX]; // "loader workers, CPUs: 2.5 of at most 2"; printable
	size_t n;
};

// Upper bounds of figures.
struct machine_bounds {
	double cpus; // of the machine; in all of these, NAN means no bound is known
	double memory_bytes;
	double run_s;
	double over_s; // length of the stretch of rates; on short ones clocks are coarse
};

// Checks the figures of the overview. notes: NULL keeps no notes.
void plausible_overview(
	const struct run_tables *tables, struct overview *o, struct implausible_list *notes);
// The bounds for the figures of a run over a stretch of over_s seconds.
struct machine_bounds plausible_bounds(
	const struct run_tables *tables, const struct overview *overview, double over_s);
void implausible_list_done(struct implausible_list *list);

// Checks other figures by a table, in which each figure is a double at an offset.
enum bound {
	BOUND_SHARE, // 0 to 1
	BOUND_CPUS, // of the machine
	BOUND_CPU_BURSTS, // of the machine, over short stretches
	BOUND_CPU_SECONDS, // CPUs times the run's length
	BOUND_RUN, // seconds of the run
	BOUND_MEMORY, // bytes of the machine
	BOUND_MOVED, // bytes in the run
	BOUND_RATE, // bytes per second
	N_BOUNDS,
};

struct plausible_row {
	const char *what;
	size_t offset;
	enum bound bound;
};

struct plausible_limits {
	double most[N_BOUNDS];
};

struct plausible_limits plausible_limits_of(const struct machine_bounds *b);
void plausible_rows(const struct plausible_row *rows, size_t n, const struct plausible_limits *l,
	void *figures, struct implausible_list *notes);
void plausible_check(const char *what, double *value, double bound, struct implausible_list *notes);
