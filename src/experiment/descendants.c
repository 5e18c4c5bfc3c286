// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Descendants, from one look through /proc.

#include "experiment/descendants.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/process.h"

struct processes {
	struct process_entry *items; // [n]
	unsigned *depths; // [n]: below the root; 0: not below it, as far as one knows
	size_t n;
};

// Empty where they cannot be listed: the next look may find them.
static struct processes list_processes(void)
{
	struct processes p = {0};
	if (process_list(&p.items, &p.n) == 0 && p.n > 0) {
		p.depths = calloc(p.n, sizeof(*p.depths));
	}
	p.n = p.depths ? p.n : 0;
	return p;
}

static void processes_done(struct processes *p)
{
	free(p->items);
	free(p->depths);
}

static int compare_pid(const void *pid, const void *entry)
{
	pid_t a = *(const pid_t *)pid, b = ((const struct process_entry *)entry)->pid;
	return (a > b) - (a < b);
}

static unsigned depth_of(const struct processes *p, pid_t pid)
{
	const struct process_entry *found = bsearch(
		&pid, p->items, p->n, sizeof(*p->items), compare_pid);
	return found ? p->depths[found - p->items] : 0;
}

// A parent may stand after its child: pids come round.
static void find_depths(struct processes *p, pid_t root, pid_t kept)
{
	for (bool more = true; more;) {
		more = false;
		for (size_t i = 0; i < p->n; i++) {
			const struct process_entry *one = &p->items[i];
			if (p->depths[i] > 0 || one->pid == kept || one->pid == 1) {
				continue;
			}
			unsigned above = depth_of(p, one->parent);
			p->depths[i] = one->parent == root ? 1 : above > 0 ? above + 1 : 0;
			more = more || p->depths[i] > 0;
		}
	}
}

static bool is_told(const struct told *t, const struct process_entry *one)
{
	for (size_t i = 0; i < t->n; i++) {
		if (t->items[i].pid == one->pid && t->items[i].start_ticks == one->start_ticks) {
			return true;
		}
	}
	return false;
}

static void add_told(struct told *t, const struct process_entry *one)
{
	if (array_reserve((void **)&t->items, &t->capacity, t->n + 1, sizeof(*t->items)) == 0) {
		t->items[t->n++] = (struct told_process){one->pid, one->start_ticks};
	}
}

static bool send(const struct process_entry *one, int signal_number)
{
	return process_signal_child(one->pid, one->start_ticks, signal_number) == 0;
}

size_t descendants_signal(
	pid_t root, unsigned first, unsigned last, pid_t kept, int signal_number, struct told *told)
{
	struct processes p = list_processes();
	size_t n = 0;
	find_depths(&p, root, kept);
	first = first > 0 ? first : 1;
	for (size_t i = 0; i < p.n; i++) {
		const struct process_entry *one = &p.items[i];
		bool meant = p.depths[i] >= first && p.depths[i] <= last;
		if (!meant || (told && is_told(told, one))) {
			continue;
		}
		n += send(one, signal_number);
		if (told) {
			add_told(told, one);
		}
	}
	processes_done(&p);
	return n;
}

size_t descendants_find(pid_t root, pid_t kept, pid_t *pids, size_t most, size_t *ret_mine)
{
	struct processes p = list_processes();
	size_t n = 0;
	*ret_mine = 0;
	find_depths(&p, root, kept);
	for (size_t i = 0; i < p.n; i++) {
		if (p.depths[i] == 0) {
			continue;
		}
		if (n < most) {
			pids[n] = p.items[i].pid;
		}
		n++;
		*ret_mine += send(&p.items[i], 0);
	}
	processes_done(&p);
	return n;
}
