// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The reports of the hooks in the job's processes: files in the marker directory, one fact per line
// (docs/hooks.md). The job can write anything there.

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "machine/tree.h"

struct hooks;
struct writer;

// Reads what is in the open directory, before it goes. NULL without one (-1), or without memory.
struct hooks *hooks_read(int directory);
// Puts what is known by now, while the job runs: `hooks`, `loader_...` and `optimizer_...`, and not
// what is missing, which may still come. Without a directory: nothing.
void hooks_put_so_far(int directory, struct writer *w);
// Puts the keys `hooks`, `hooks_missing`, `loader_...` and `optimizer_...` of the run, and frees.
// Accepts NULL: says nothing.
void hooks_put(struct hooks *hooks, struct writer *w);

// Line counts -------------------------------------------------------------------------------------
//
// What the hooks counted for --lines: files `lines-PID` in the marker directory
// (hooks/python/strain_lines.py has their format). The job can write anything there.

struct writer;

enum { LINE_PHASE_BYTES = 24, LINE_NAME_BYTES = 256 };

struct line_count {
	char phase[LINE_PHASE_BYTES];
	char file[LINE_NAME_BYTES]; // printable UTF-8
	char function[LINE_NAME_BYTES];
	int64_t line; // 0: not known
	int64_t samples;
};

struct line_process {
	struct identity_claim who; // inner_pid is that of the file's name
	struct line_count *counts;
	size_t n, capacity;
};

struct line_counts {
	struct line_process *processes;
	size_t n, capacity;
};

// Reads what is in the open directory, before it goes; nothing without one (-1). Bounded: files,
// bytes of a file, rows of a process; what is not well-formed is passed over. 0 or -ENOMEM.
int line_counts_read(int directory, struct line_counts *ret);
// One file's content. 0 or -ENOMEM.
int line_counts_parse(const char *data, size_t length, struct line_process *ret);
// Puts the rows of a process under its entity.
void line_counts_put(const struct line_process *process, int64_t entity, struct writer *w);
void line_counts_done(struct line_counts *counts);
void line_process_done(struct line_process *process);
