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
	struct stop *items; // in order, not touching each other
	size_t n;
	size_t capacity;
	double total_s;
};

// Stops of the whole job, in which no process of it ran. Returns 0 or -ENOMEM.
int stops_of_job(const struct run_tables *tables, struct stops *ret);
// Also includes stops of a process that the others wait for: one that trains or has a considerable
// part of the job's CPU time. Returns 0 or -ENOMEM.
int stops_of_any(
	const struct run_tables *tables, const struct process_list *processes, struct stops *ret);
void stops_done(struct stops *s);
// The time within a stretch for which the job was stopped.
int64_t stops_within(const struct stops *s, int64_t from_ns, int64_t to_ns);
