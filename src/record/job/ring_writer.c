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

// The number that a thread has where it lives; -1: not known.
static int64_t inner_tid_of(int root_fd, const char *path)
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
		if (inner_tid_of(root_fd, path) == (int64_t)inner_tid) {
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

struct ring_writer ring_writer_of(
	int root_fd, const struct ring_owner *owner, const struct identity *process)
{
	bool leader = owner->tid == owner->pid;
	bool inner = process->inner_pid != process->pid;
	return (struct ring_writer){
		.pid = process->pid,
		.tid = leader  ? process->pid
	               : inner ? find_thread(root_fd, process->pid, owner->tid)
	                       : (pid_t)owner->tid,
	};
}

bool ring_writer_lives(int root_fd, const struct ring_writer *writer)
{
	char path[64], buffer[1024];
	struct cursor text;
	if (writer->pid <= 0) {
		return true;
	}
	snprintf(path, sizeof(path), "proc/%d/task/%d/stat", (int)writer->pid,
		(int)(writer->tid > 0 ? writer->tid : writer->pid));
	int r = host_read_once(root_fd, path, buffer, sizeof(buffer), &text, NULL);
	if (r < 0) {
		return r != -ENOENT && r != -ESRCH;
	}
	struct proc_stat stat;
	return proc_stat_parse(text, &stat) < 0 || (stat.state != 'Z' && stat.state != 'X');
}
