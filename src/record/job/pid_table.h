// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Processes by pid: open addressing, at most half full.

#pragma once

#include <stddef.h>
#include <sys/types.h>

struct process;

struct pid_table {
	struct process **slots; // NULL is free
	size_t n_slots; // 0, or a power of two
	size_t n;
};

// Makes room for one more. 0 or -ENOMEM, and then nothing has changed.
int pid_table_reserve(struct pid_table *table);
// After pid_table_reserve; the pid is not in the table yet.
void pid_table_insert(struct pid_table *table, struct process *p);
// p is in the table.
void pid_table_remove(struct pid_table *table, const struct process *p);
struct process *pid_table_find(const struct pid_table *table, pid_t pid); // NULL: not there
void pid_table_done(struct pid_table *table);
