// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What the hooks counted for --lines: files `lines-PID` in the marker directory
// (hooks/python/strain_lines.py has their format). The job can write anything there.

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "record/job/identity.h"

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
