// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A job of several runs (study/joint.h) on the page of runs: all ranks on one axis of time.

#pragma once

#include <stdio.h>

#include "base/error.h"

struct joint;

// Writes it as the first of the page's runs, after page_begin. Returns 0 or -errno.
int page_joint_add(FILE *out, const struct joint *j, struct error *e);
