// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What holds the run back, as far as it can be told from outside the job, with the evidence and how
// sure that is. Sentences are made here, once, for the terminal, the end of a run and the report.

#pragma once

#include <stddef.h>

#include "base/text.h"

struct analysis;

enum bottleneck {
	BOTTLENECK_UNKNOWN, // too short, or too little was measured
	BOTTLENECK_FAILED, // the job did not end as it should: out of memory, killed
	BOTTLENECK_CPU,
	BOTTLENECK_CPU_QUOTA, // throttled by its cgroup
	BOTTLENECK_ONE_THREAD, // one busy CPU, the others idle
	BOTTLENECK_GPU,
	BOTTLENECK_STORAGE,
	BOTTLENECK_MEMORY,
	BOTTLENECK_CONTENTION, // others use the CPUs
	BOTTLENECK_IDLE, // waits for something that was not measured
	N_BOTTLENECKS,
};

enum confidence { CONFIDENCE_NONE, CONFIDENCE_LOW, CONFIDENCE_MEDIUM, CONFIDENCE_HIGH };

struct evidence {
	char *what; // "CPU"
	char *value; // "1.9 of 2 CPUs"
	const char *source; // a metric's name, or NULL
};

struct verdict {
	enum bottleneck bottleneck;
	enum confidence confidence;
	char *headline; // "CPU-bound: the job used 1.9 of 2 CPUs"
	char *next; // what to try, or what would make it surer; "" where there is nothing to say
	struct evidence *evidence; // [n_evidence]
	size_t n_evidence;
};

// "cpu", "gpu" ...: for JSON; "low", ...
const char *bottleneck_name(enum bottleneck bottleneck);
const char *confidence_name(enum confidence confidence);

// Needs the analysis' overview and epochs. Every text is printable.
int verdict_build(const struct analysis *a, struct verdict *ret);
void verdict_done(struct verdict *v);

// The evidence alone; verdict_build calls it.
int evidence_build(const struct analysis *a, struct verdict *ret);

// The lines that end `strain run`: at most five, none over 120 columns, each with its newline.
void verdict_lines(const struct analysis *a, struct text *out);
