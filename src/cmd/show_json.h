// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A run as one JSON document.

#pragma once

#include <stdio.h>

#include "analyze/analysis.h"

// Seconds, bytes and ratios; what was not measured is null. 0 or -errno.
int show_json(const struct analysis *a, FILE *stream);
