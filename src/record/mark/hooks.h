// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The reports of the hooks in the job's processes: files in the marker directory with one fact per
// line (docs/hooks.md). They are untrusted: the job can write anything there.

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "machine/tree.h"

struct hooks;
struct writer;

// Reads the reports before the directory is removed. Returns NULL without a directory (-1) or
// memory.
struct hooks *hooks_read(int directory);
// Writes the keys known so far while the job runs: `hooks`, `loader_...` and `optimizer_...`.
// Nothing is reported as missing, because it may still come. Does nothing without a directory.
void hooks_put_so_far(int directory, struct writer *w);
// Writes the keys `hooks`, `hooks_missing`, `loader_...` and `optimizer_...` of the run, and frees.
// Accepts NULL and then writes nothing.
void hooks_put(struct hooks *hooks, struct writer *w);

// Line counts -------------------------------------------------------------------------------------
//
// Line counts of the hooks for --lines: files `lines-PID` in the marker directory
// (hooks/python/strain_lines.py has their format). They are untrusted: the job can write anything
// there.

struct writer;

enum { LINE_PHASE_BYTES = 24, LINE_NAME_BYTES = 256 };

struct line_count {
	char phase[LINE_PHASE_BYTES];
	char file[LINE_NAME_BYTES]; // printable UTF-8
	char function[LINE_NAME_BYTES];
	int64_t line; // 0: unknown
	int64_t samples;
};

struct line_process {
	struct identity_claim who; // inner_pid is from the file's name
	struct line_count *counts;
	size_t n, capacity;
};

struct line_counts {
	struct line_process *processes;
	size_t n, capacity;
};

// Reads the counts before the directory is removed; nothing without one (-1). The number of files,
// bytes per file and rows per process are bounded; malformed content is skipped. Returns 0 or
// -ENOMEM.
int line_counts_read(int directory, struct line_counts *ret);
// Parses the content of one file. Returns 0 or -ENOMEM.
int line_counts_parse(const char *data, size_t length, struct line_process *ret);
// Writes the rows of each process under its entity.
void line_counts_put(const struct line_process *process, int64_t entity, struct writer *w);
void line_counts_done(struct line_counts *counts);
void line_process_done(struct line_process *process);
