// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A trial's processes, by their mark.

#include "runfile/still_running.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "machine/process.h"
#include "runfile/database.h"
#include "runfile/reader_internal.h"

#define ENVIRONMENT_MOST (4u << 20) // bytes of one that are looked through

// Marks -------------------------------------------------------------------------------------------

// Not of a process that hides its environment: one of another user, one with more privileges.
static bool carries(pid_t pid, const char *mark)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	_cleanup_free_ char *pair = NULL;
	size_t capacity = 0, name = strlen(STILL_RUNNING_VARIABLE), read = 0;
	ssize_t length;
	while (file && read < ENVIRONMENT_MOST &&
		(length = getdelim(&pair, &capacity, '\0', file)) > 0) {
		if (strncmp(pair, STILL_RUNNING_VARIABLE "=", name + 1) == 0) {
			return strcmp(pair + name + 1, mark) == 0;
		}
		read += (size_t)length;
	}
	return false;
}

struct found {
	struct process_entry *items; // [n]
	bool *meant; // [n]
	size_t n;
};

static int compare_pid(const void *pid, const void *entry)
{
	pid_t a = *(const pid_t *)pid, b = ((const struct process_entry *)entry)->pid;
	return (a > b) - (a < b);
}

// NULL: there is none.
static const struct process_entry *find(const struct found *f, pid_t pid)
{
	return bsearch(&pid, f->items, f->n, sizeof(*f->items), compare_pid);
}

static void add_children(struct found *f)
{
	for (bool more = true; more;) {
		more = false;
		for (size_t i = 0; i < f->n; i++) {
			const struct process_entry *above = find(f, f->items[i].parent);
			if (!f->meant[i] && above && f->meant[above - f->items]) {
				more = f->meant[i] = true;
			}
		}
	}
}

// This process and those above it are not what is left of another.
static void spare_own(struct found *f)
{
	pid_t pid = getpid();
	for (size_t i = 0; i < f->n; i++) { // at most so many are above it
		const struct process_entry *one = find(f, pid);
		if (!one) {
			return;
		}
		f->meant[one - f->items] = false;
		pid = one->parent;
	}
}

static int find_all(const char *mark, struct found *f)
{
	int result = process_list(&f->items, &f->n);
	if (result < 0) {
		return result;
	}
	f->meant = calloc(f->n + 1, sizeof(*f->meant));
	if (!f->meant) {
		free(f->items);
		return -ENOMEM;
	}
	for (size_t i = 0; i < f->n; i++) {
		f->meant[i] = f->items[i].pid > 1 && carries(f->items[i].pid, mark);
	}
	add_children(f);
	spare_own(f);
	return 0;
}

ssize_t still_running_signal(const char *mark, pid_t kept, int signal_number)
{
	struct found f = {0};
	ssize_t n = 0;
	int result = find_all(mark, &f);
	if (result < 0) {
		return result;
	}
	for (size_t i = 0; i < f.n; i++) {
		const struct process_entry *one = &f.items[i];
		if (f.meant[i] && one->pid != kept) {
			int sent = process_signal(one->pid, one->start_ticks, signal_number);
			n += sent == 0 || sent == -EAGAIN;
		}
	}
	free(f.items);
	free(f.meant);
	return n;
}

// The recorder ------------------------------------------------------------------------------------

// A file of this name that is not ours yet, or no longer, has no recorder of ours.
static pid_t find_recorder(const char *path, const char *mark, int *ret_pidfd)
{
	sqlite3 *database = NULL;
	if (reader_open_database(path, &database, NULL) < 0) {
		return 0;
	}
	sqlite3_int64 pid = database_number(
		database, "SELECT CAST(value AS INTEGER) FROM run WHERE key = 'recorder_pid'", 0);
	sqlite3_int64 start = database_number(database,
		"SELECT CAST(value AS INTEGER) FROM run WHERE key = 'recorder_start_ticks'", 0);
	sqlite3_close(database);
	_cleanup_close_ int pidfd = -1;
	if (pid <= 1 || start <= 0 || process_is(pid, (uint64_t)start, &pidfd) != PROCESS_YES ||
		!carries((pid_t)pid, mark)) {
		return 0;
	}
	if (ret_pidfd) {
		*ret_pidfd = take_fd(pidfd);
	}
	return (pid_t)pid;
}

pid_t still_running_recorder(const char *path, const char *mark)
{
	return find_recorder(path, mark, NULL);
}

void still_running_kill_recorder(const char *path, const char *mark)
{
	_cleanup_close_ int pidfd = -1;
	if (find_recorder(path, mark, &pidfd) > 0) {
		process_send(pidfd, SIGKILL);
	}
}
