// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What came out of a sweep: its configurations with the means of their repeats.

#pragma once

#include <stdbool.h>

struct sweep;

// Reads the runs that are there and prints the table, what became of trials that failed, and what
// to type next. The exit status.
int sweep_print_results(const struct sweep *sweep, bool json);
