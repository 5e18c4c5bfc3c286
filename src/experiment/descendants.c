// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Descendants, from one look through /proc.

#include "experiment/descendants.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/parse.h"

struct process {
	pid_t pid;
	pid_t parent;
	uint64_t start_ticks;
	unsigned depth; // below the root; 0: not below it, as far as one knows
};

struct processes {
	struct process *items;
	size_t n;
	size_t capacity;
};

static bool read_process(const char *pid, struct process *ret)
{
	char path[64], stat[1024];
	int64_t number, parent;
	uint64_t start_ticks;
	struct cursor state;
	snprintf(path, sizeof(path), "/proc/%.16s/stat", pid);
	if (parse_integer(pid, 2, INT_MAX, &number, NULL) < 0) {
		return false;
	}
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, stat, sizeof(stat) - 1);
	stat[length > 0 ? length : 0] = '\0';
	// The name, the second field, may hold anything; the state is field 3, the parent 4, the
	// start 22.
	const char *name_end = strrchr(stat, ')');
	struct cursor c = cursor_of(
		name_end ? name_end + 1 : "", name_end ? strlen(name_end + 1) : 0);
	if (!cursor_word(&c, &state) || cursor_is(state, "Z") || cursor_is(state, "X") ||
		!cursor_i64(&c, &parent) || !cursor_skip_fields(&c, 17) ||
		!cursor_u64(&c, &start_ticks)) {
		return false;
	}
	*ret = (struct process){
		.pid = (pid_t)number, .parent = (pid_t)parent, .start_ticks = start_ticks};
	return true;
}

static int compare_pids(const void *a, const void *b)
{
	const struct process *x = a, *y = b;
	return (x->pid > y->pid) - (x->pid < y->pid);
}

// What there is no memory for is left out: the next look finds it.
static struct processes list_processes(void)
{
	struct processes p = {0};
	struct process one;
	DIR *proc = opendir("/proc");
	for (struct dirent *entry; proc && (entry = readdir(proc));) {
		if (read_process(entry->d_name, &one) &&
			array_reserve((void **)&p.items, &p.capacity, p.n + 1, sizeof(*p.items)) ==
				0) {
			p.items[p.n++] = one;
		}
	}
	if (proc) {
		closedir(proc);
	}
	if (p.n > 1) {
		qsort(p.items, p.n, sizeof(*p.items), compare_pids);
	}
	return p;
}

static unsigned depth_of(const struct processes *p, pid_t pid)
{
	const struct process wanted = {.pid = pid};
	const struct process *found = bsearch(
		&wanted, p->items, p->n, sizeof(*p->items), compare_pids);
	return found ? found->depth : 0;
}

// A parent may stand after its child: pids come round.
static void find_depths(struct processes *p, pid_t root, pid_t kept)
{
	for (bool more = true; more;) {
		more = false;
		for (size_t i = 0; i < p->n; i++) {
			struct process *one = &p->items[i];
			if (one->depth > 0 || one->pid == kept) {
				continue;
			}
			unsigned above = depth_of(p, one->parent);
			one->depth = one->parent == root ? 1 : above > 0 ? above + 1 : 0;
			more = more || one->depth > 0;
		}
	}
}

static bool is_told(const struct told *t, const struct process *one)
{
	for (size_t i = 0; i < t->n; i++) {
		if (t->items[i].pid == one->pid && t->items[i].start_ticks == one->start_ticks) {
			return true;
		}
	}
	return false;
}

static void add_told(struct told *t, const struct process *one)
{
	if (array_reserve((void **)&t->items, &t->capacity, t->n + 1, sizeof(*t->items)) == 0) {
		t->items[t->n++] = (struct told_process){one->pid, one->start_ticks};
	}
}

void told_done(struct told *t)
{
	free(t->items);
	*t = (struct told){0};
}

size_t descendants_signal(
	pid_t root, unsigned first, unsigned last, pid_t kept, int signal_number, struct told *told)
{
	struct processes p = list_processes();
	size_t n = 0;
	find_depths(&p, root, kept);
	first = first > 0 ? first : 1;
	for (size_t i = 0; i < p.n; i++) {
		const struct process *one = &p.items[i];
		if (one->depth < first || one->depth > last || (told && is_told(told, one))) {
			continue;
		}
		if (kill(one->pid, signal_number) == 0) {
			n++;
		}
		if (told) {
			add_told(told, one);
		}
	}
	free(p.items);
	return n;
}

size_t descendants_find(pid_t root, pid_t kept, pid_t *pids, size_t most, size_t *ret_mine)
{
	struct processes p = list_processes();
	size_t n = 0;
	*ret_mine = 0;
	find_depths(&p, root, kept);
	for (size_t i = 0; i < p.n; i++) {
		if (p.items[i].depth == 0) {
			continue;
		}
		if (n < most) {
			pids[n] = p.items[i].pid;
		}
		n++;
		*ret_mine += kill(p.items[i].pid, 0) == 0;
	}
	free(p.items);
	return n;
}
