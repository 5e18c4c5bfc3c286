// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Children and what is below them, as /proc has them.

#include "experiment/children.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/parse.h"
#include "base/process.h"

struct process {
	pid_t pid;
	pid_t parent;
	pid_t group;
	bool below; // what is searched for
};

struct processes {
	struct process *items;
	size_t n;
	size_t capacity;
};

static bool read_process(const char *pid, struct process *ret)
{
	char path[64], stat[512];
	int64_t number, parent, group;
	snprintf(path, sizeof(path), "/proc/%.16s/stat", pid);
	if (parse_integer(pid, 2, INT_MAX, &number, NULL) < 0) {
		return false;
	}
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, stat, sizeof(stat) - 1);
	stat[length > 0 ? length : 0] = '\0';
	// The name, which comes first, may hold anything; then ") S PARENT GROUP".
	const char *close = strrchr(stat, ')');
	if (!close || strlen(close) < 5) {
		return false;
	}
	struct cursor c = cursor_of(close + 3, strlen(close + 3));
	if (!cursor_i64(&c, &parent) || !cursor_i64(&c, &group)) {
		return false;
	}
	*ret = (struct process){
		.pid = (pid_t)number, .parent = (pid_t)parent, .group = (pid_t)group};
	return true;
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
	return p;
}

int children_list(struct children *ret, struct error *e)
{
	siginfo_t info = {0};
	*ret = (struct children){0};
	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD) {
		return 0; // as nearly always: no need to look through all that run
	}
	struct processes p = list_processes();
	int result = 0;
	for (size_t i = 0; i < p.n && result == 0; i++) {
		if (p.items[i].parent != getpid()) {
			continue;
		}
		result = array_reserve(
			(void **)&ret->items, &ret->capacity, ret->n + 1, sizeof(*ret->items));
		if (result == 0) {
			ret->items[ret->n++] = (struct child_identity){
				p.items[i].pid, process_start_ticks(p.items[i].pid)};
		}
	}
	free(p.items);
	if (result < 0) {
		children_done(ret);
		return error_errno(e, ENOMEM, "a trial");
	}
	return 0;
}

void children_done(struct children *c)
{
	free(c->items);
	*c = (struct children){0};
}

static bool is_kept(const struct children *kept, pid_t pid)
{
	for (size_t i = 0; i < kept->n; i++) {
		if (kept->items[i].pid == pid) {
			return kept->items[i].start_ticks == process_start_ticks(pid);
		}
	}
	return false;
}

size_t children_kill(const struct children *kept, pid_t group)
{
	struct processes p = list_processes();
	bool all = getpid() != 1;
	size_t n = 0;
	for (size_t i = 0; i < p.n; i++) {
		const struct process *one = &p.items[i];
		if (one->parent == getpid() && (all || one->group == group) &&
			!is_kept(kept, one->pid)) {
			kill(one->pid, SIGKILL);
			n++;
		}
	}
	free(p.items);
	return n;
}

static bool is_below(const struct processes *p, pid_t parent, pid_t root)
{
	for (size_t i = 0; parent != root && i < p->n; i++) {
		if (p->items[i].pid == parent) {
			return p->items[i].below;
		}
	}
	return parent == root;
}

void descendants_kill(pid_t root, pid_t kept)
{
	struct processes p = list_processes();
	for (bool more = true; more;) { // a parent may stand after its child: pids come round
		more = false;
		for (size_t i = 0; i < p.n; i++) {
			struct process *one = &p.items[i];
			if (!one->below && one->pid != kept && is_below(&p, one->parent, root)) {
				one->below = more = true;
			}
		}
	}
	for (size_t i = 0; i < p.n; i++) {
		if (p.items[i].below) {
			kill(p.items[i].pid, SIGKILL);
		}
	}
	free(p.items);
}
