// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A job of several runs (study/joint.h), for people and for programs.

#pragma once

#include <stdbool.h>
#include <stdio.h>

struct joint;

// Prints its ranks, the one that the others wait for, and why; and how ranks failed. Of many ranks,
// unless `all`, those that failed and those that wait least. Returns 0 or -errno.
int joint_show_text(const struct joint *j, bool all, FILE *stream);
// Writes one JSON document. Returns 0 or -errno.
int joint_show_json(const struct joint *j, FILE *stream);
