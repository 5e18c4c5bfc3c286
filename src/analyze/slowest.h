// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What was otherwise in the slowest iterations, and on the machine around them. Only phases.c needs
// this.

#pragma once

#include "analyze/phases.h"
#include "analyze/steady.h"

// Fills what p->slowest have beside their iterations. 0, or -errno: the rest is not explained.
int slowest_explain(
	const struct analysis *a, const struct steady *steady, struct phases *p, struct error *e);
