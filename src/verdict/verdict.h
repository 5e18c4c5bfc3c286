// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Builds the verdict: the bottleneck of a run, with evidence, confidence, and advice. It uses the
// phases of the run's iterations (causes.h), else system metrics. Each sentence is made once, for
// the terminal, the end of a run and the report.

#pragma once

#include "base/error.h"
#include "base/text.h"
#include "verdict/types.h"

struct analysis;

// Needs the overview and epochs of the analysis. All texts are printable. Returns 0, then release
// *ret; -ENOMEM, then *ret is empty.
int verdict_build(const struct analysis *a, struct verdict *ret);
// The same for an analysis from analysis_load, which then refers to *ret (a->verdict): *ret must
// live as long. On -ENOMEM the analysis is released.
int verdict_judge(struct analysis *a, struct verdict *ret, struct error *e);
void verdict_done(struct verdict *v);

// Appends the lines that end `strain run`: six, of which long ones are folded; one more each for a
// partial recording, for memory that grows, and for how to mark a job without marks; and the last
// three lines of output of a failed job. Each ends with a newline. No line is longer than 120
// columns, except the last two, the commands that show more.
void verdict_lines(const struct analysis *a, struct text *out);
