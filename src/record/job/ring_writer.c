// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Who writes a ring, and whether they live.

#include "record/job/ring_writer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "record/host/file.h"
#include "record/host/procfs.h"

enum { THREADS_MAX = 4096 }; // of one process, looked through for one of them

// "pid:[4026531836]"
static uint64_t namespace_inode(int root_fd, const char *path)
{
	char link[64];
	uint64_t inode;
	ssize_t n = readlinkat(root_fd, path, link, sizeof(link));
	struct cursor c = cursor_of(link, n > 0 ? (size_t)n : 0);
	return n > 0 && cursor_literal(&c, "pid:[") && cursor_u64(&c, &inode) ? inode : 0;
}

uint64_t ring_own_namespace(int root_fd)
{
	return namespace_inode(root_fd, "proc/self/ns/pid");
}

// The number that a process or thread has where it lives; -1: not known.
static int64_t inner_pid(int root_fd, const char *path)
{
	char buffer[4096];
	struct cursor text;
	struct proc_status status;
	if (host_read_once(root_fd, path, buffer, sizeof(buffer), &text, NULL) < 0 ||
		proc_status_parse(text, &status) < 0) {
		return -1;
	}
	return status.pid_in_namespace;
}

static pid_t find_thread(int root_fd, pid_t pid, uint32_t inner_tid)
{
	char path[64];
	snprintf(path, sizeof(path), "proc/%d/task", (int)pid);
	int fd = openat(root_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *tasks = fd < 0 ? NULL : fdopendir(fd);
	pid_t found = 0;
	unsigned n = 0;
	for (struct dirent *entry;
		tasks && !found && n < THREADS_MAX && (entry = readdir(tasks));) {
		int64_t tid;
		if (parse_integer(entry->d_name, 1, INT32_MAX, &tid, NULL) < 0) {
			continue;
		}
		n++;
		snprintf(path, sizeof(path), "proc/%d/task/%d/status", (int)pid, (int)tid);
		if (inner_pid(root_fd, path) == (int64_t)inner_tid) {
			found = (pid_t)tid;
		}
	}
	if (tasks) {
		closedir(tasks);
	} else if (fd >= 0) {
		close(fd);
	}
	return found;
}

static bool is_writer(int root_fd, const struct ring_owner *owner, pid_t pid)
{
	char path[64];
	snprintf(path, sizeof(path), "proc/%d/ns/pid", (int)pid);
	if (namespace_inode(root_fd, path) != owner->pid_namespace) {
		return false;
	}
	snprintf(path, sizeof(path), "proc/%d/status", (int)pid);
	return inner_pid(root_fd, path) == (int64_t)owner->pid;
}

bool ring_writer_find(int root_fd, const struct ring_owner *owner, uint64_t own_namespace,
	const pid_t *members, size_t n, struct ring_writer *ret)
{
	if (owner->pid_namespace == 0 || owner->pid_namespace == own_namespace) {
		*ret = (struct ring_writer){(pid_t)owner->pid, (pid_t)owner->tid};
		return true;
	}
	for (size_t i = 0; i < n; i++) {
		if (is_writer(root_fd, owner, members[i])) {
			pid_t tid = owner->tid == owner->pid
			                    ? members[i]
			                    : find_thread(root_fd, members[i], owner->tid);
			*ret = (struct ring_writer){members[i], tid};
			return true;
		}
	}
	return false;
}

bool ring_writer_lives(int root_fd, const struct ring_writer *writer)
{
	char path[64], buffer[1024];
	struct cursor text;
	if (writer->pid <= 0 || writer->tid <= 0) {
		return true;
	}
	snprintf(path, sizeof(path), "proc/%d/task/%d/stat", (int)writer->pid, (int)writer->tid);
	int r = host_read_once(root_fd, path, buffer, sizeof(buffer), &text, NULL);
	if (r < 0) {
		return r != -ENOENT && r != -ESRCH;
	}
	struct proc_stat stat;
	return proc_stat_parse(text, &stat) < 0 || (stat.state != 'Z' && stat.state != 'X');
}
