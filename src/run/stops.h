// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Times in which the job was stopped (SIGSTOP, Ctrl-Z, a debugger). They say nothing about the job
// and are excluded from shares and rates.

#pragma once

#include <stddef.h>
#include <stdint.h>

struct process_list;
struct run_tables;

struct stop { // since the run's start
	int64_t from_ns;
	int64_t to_ns;
};

struct stops {
	struct stop *items; // in order, none touches another
	size_t n;
	size_t capacity;
	double total_s;
};

// Of the job as a whole: nothing of it ran. 0 or -ENOMEM.
int stops_of_job(const struct run_tables *tables, struct stops *ret);
// With those of a process that the others wait for: it trains, or has a part of the job's CPU time.
// 0 or -ENOMEM.
int stops_of_any(
	const struct run_tables *tables, const struct process_list *processes, struct stops *ret);
void stops_done(struct stops *s);
// How much of a stretch they are.
int64_t stops_within(const struct stops *s, int64_t from_ns, int64_t to_ns);
