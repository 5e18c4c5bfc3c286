// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Processes by pid.

#include "record/job/pid_table.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "record/job/tree.h"

#define SLOTS_FIRST 256u

static size_t next_slot(const struct pid_table *table, size_t slot)
{
	return (slot + 1) & (table->n_slots - 1);
}

static size_t first_slot(const struct pid_table *table, pid_t pid)
{
	return ((uint32_t)pid * 2654435761u) & (table->n_slots - 1);
}

struct process *pid_table_find(const struct pid_table *table, pid_t pid)
{
	if (table->n_slots == 0) {
		return NULL;
	}
	size_t slot = first_slot(table, pid);
	while (table->slots[slot] && table->slots[slot]->pid != pid) {
		slot = next_slot(table, slot);
	}
	return table->slots[slot];
}

static void place(struct pid_table *table, struct process *p)
{
	size_t slot = first_slot(table, p->pid);
	while (table->slots[slot]) {
		slot = next_slot(table, slot);
	}
	table->slots[slot] = p;
}

void pid_table_insert(struct pid_table *table, struct process *p)
{
	place(table, p);
	table->n++;
}

void pid_table_remove(struct pid_table *table, const struct process *p)
{
	size_t slot = first_slot(table, p->pid);
	while (table->slots[slot] != p) {
		slot = next_slot(table, slot);
	}
	table->slots[slot] = NULL;
	table->n--;
	// Those behind it are placed anew, so that no search stops at the hole.
	for (slot = next_slot(table, slot); table->slots[slot]; slot = next_slot(table, slot)) {
		struct process *behind = table->slots[slot];
		table->slots[slot] = NULL;
		place(table, behind);
	}
}

int pid_table_reserve(struct pid_table *table)
{
	if ((table->n + 1) * 2 <= table->n_slots) {
		return 0;
	}
	struct pid_table grown = {.n_slots = table->n_slots ? table->n_slots * 2 : SLOTS_FIRST};
	grown.slots = calloc(grown.n_slots, sizeof(struct process *));
	if (!grown.slots) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < table->n_slots; i++) {
		if (table->slots[i]) {
			pid_table_insert(&grown, table->slots[i]);
		}
	}
	free(table->slots);
	*table = grown;
	return 0;
}

void pid_table_done(struct pid_table *table)
{
	free(table->slots);
	*table = (struct pid_table){0};
}
