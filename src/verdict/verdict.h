// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The bottleneck of a run, with the evidence, the confidence, and what to try: from the phases of
// its iterations if there are any (causes.h), else from system metrics. Sentences are made here,
// once, for the terminal, the end of a run and the report.

#pragma once

#include "base/error.h"
#include "base/text.h"
#include "verdict/types.h"

struct analysis;

// Needs the analysis' overview and epochs. Every text is printable.
int verdict_build(const struct analysis *a, struct verdict *ret);
// The same of what analysis_load gave, which has it then (a->verdict): *ret lives as long. -ENOMEM:
// and the analysis is released.
int verdict_judge(struct analysis *a, struct verdict *ret, struct error *e);
void verdict_done(struct verdict *v);

// The lines that end `strain run`: at most six, one more of a part, one of memory that grows, one
// of what to type for a job that marks nothing, and of a job that failed the last three that it
// printed; each with its newline, none over 120 columns but the last two, the commands that show
// more.
void verdict_lines(const struct analysis *a, struct text *out);
