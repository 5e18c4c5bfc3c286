// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A job of several runs (study/joint.h), for people and for programs.

#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/text.h"

struct joint;

// What is said of a job above its table, a line each: how ranks failed, the one that the others
// wait for, what was allocated, clocks that differ. Returns 0 or -ENOMEM.
int joint_show_append(struct text *t, const struct joint *j);
// "job 17.0 (SLURM_JOB_ID): 8 ranks on 1 host, from 8 runs; 935 samples/s", and a newline.
void joint_show_append_heading(struct text *t, const struct joint *j);
// What the samples of all its runs are: "samples" if they differ.
const char *joint_show_unit(const struct joint *j);
// A rank's run: "the slowest"; how it ended, if not well; NULL: nothing.
struct joint_rank;
const char *joint_show_note(const struct joint_rank *r);
// The rank that failed first; NULL: none failed.
const struct joint_rank *joint_show_first_failed(const struct joint *j);
// The ranks to show of many, in *ret [n], owned by the caller, by number: those that failed, the
// slowest, those that wait least. Returns their number, or -ENOMEM.
int joint_show_worst(const struct joint *j, size_t most, const struct joint_rank ***ret);

// Prints its ranks, the one that the others wait for, and why; and how ranks failed. Of many ranks,
// unless `all`, those that failed and those that wait least. Returns 0 or -errno.
int joint_show_text(const struct joint *j, bool all, FILE *stream);
// Writes one JSON document. Returns 0 or -errno.
int joint_show_json(const struct joint *j, FILE *stream);
