// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What the processes of a job are for. Only processes.c needs this.

#pragma once

#include "analyze/processes.h"

// Fills role and number of every row. Rows are sorted by entity; parent, command, name, times, CPU
// time and what is known of marks and programs are there. 0 or -ENOMEM.
int roles_assign(struct process_row *rows, size_t n);
