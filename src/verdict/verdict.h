// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What holds the run back, with the evidence, how sure that is, and what to try. From the phases of
// its iterations where there are any (causes.h), else from outside the job. Sentences are made
// here, once, for the terminal, the end of a run and the report.

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
