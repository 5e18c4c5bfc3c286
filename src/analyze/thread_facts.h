// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The threads of the process that trains, by what they are for, and what their clocks say about
// teams that spin and about Python's lock where no sample may be taken.

#pragma once

#include <stdint.h>

#include "analyze/facts.h"

struct analysis;
struct stretch;
struct text;

void thread_facts_init(struct thread_facts *t);
// Fills facts.threads. `main` is the process that trains. Needs the shares of phases and the
// framework.
void thread_facts_fill(
	const struct analysis *a, int64_t main, const struct stretch *stretch, struct facts *ret);
// "main", "OpenMP team", ...
const char *thread_group_title(enum thread_group group);

// CPU time that a group used while its threads were unnamed, as it was told apart later: moves that
// part of the unnamed threads' CPUs. earlier[]: seconds of the whole run, NAN or 0 where none;
// unnamed_s: what all unnamed threads used.
void thread_facts_rename(
	struct thread_facts *t, const double earlier[N_THREAD_GROUPS], double unnamed_s);
// Everything after `groups`, from these, the rate of looks that found unnamed threads running, the
// share of time in which one ran alone, and the shares of phases (f->share).
void thread_facts_conclude(
	struct thread_facts *t, const struct facts *f, double running_looks, double alone);
// "main 0.9, OpenMP team of 3 2.1 CPUs": groups that used a CPU for 2 % of the time or more.
void thread_facts_append(struct text *text, const struct thread_facts *t);
