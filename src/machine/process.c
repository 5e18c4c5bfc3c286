// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Identifies processes.

#include "machine/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/parse.h"
#include "machine/file.h"
#include "machine/procfs.h"

// Direct system calls: not every C library has functions for them.
static int open_pidfd(int64_t pid)
{
	long fd = syscall(SYS_pidfd_open, (pid_t)pid, 0);
	return fd < 0 ? -errno : (int)fd;
}

int process_send(int pidfd, int signal_number)
{
	return syscall(SYS_pidfd_send_signal, pidfd, signal_number, NULL, 0) < 0 ? -errno : 0;
}

// The pidfd of a zombie is readable, too.
static bool has_ended(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};
	return poll(&p, 1, 0) > 0 && p.revents & POLLIN;
}

// Returns 0 or -errno.
static int read_stat(int64_t pid, struct proc_stat *ret)
{
	char path[48];
	snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)pid);
	return proc_stat_read(AT_FDCWD, path, ret);
}

// Of a zombie the first thread has ended; others may still run.
static bool is_zombie(const struct proc_stat *stat)
{
	return stat->state == 'Z' || stat->state == 'X';
}

// Whether /proc uses the pid namespace of this process. It does not if only one of the two is in a
// new namespace.
static bool is_our_proc(void)
{
	char self[24], own[24];
	ssize_t n = readlink("/proc/self", self, sizeof(self) - 1);
	snprintf(own, sizeof(own), "%d", (int)getpid());
	self[n > 0 ? n : 0] = '\0';
	return strcmp(self, own) == 0;
}

// For kernels and containers without pidfds: the result may be outdated when it is used.
static enum process_answer is_by_number(int64_t pid, uint64_t start_ticks)
{
	struct proc_stat stat;
	if (!is_our_proc() || read_stat(pid, &stat) < 0) {
		return kill((pid_t)pid, 0) < 0 && errno == ESRCH ? PROCESS_NO : PROCESS_CANNOT_TELL;
	}
	return stat.start_ticks == start_ticks && !is_zombie(&stat) ? PROCESS_YES : PROCESS_NO;
}

// While the process of a pidfd lives, no other process can have its pid. What /proc says about the
// pid in that time therefore applies to that process.
static enum process_answer is_by_pidfd(int pidfd, int64_t pid, uint64_t start_ticks)
{
	struct proc_stat stat;
	bool known = is_our_proc() && read_stat(pid, &stat) == 0;
	return has_ended(pidfd)                  ? PROCESS_NO
	       : !known                          ? PROCESS_CANNOT_TELL
	       : stat.start_ticks != start_ticks ? PROCESS_NO
	                                         : PROCESS_YES;
}

// Whether pidfds are unavailable: an old kernel, or a container that filters system calls.
static bool are_refused(int result)
{
	return result == -ENOSYS || result == -EPERM || result == -EACCES;
}

enum process_answer process_is(int64_t pid, uint64_t start_ticks, int *ret_pidfd)
{
	if (pid <= 0 || pid > INT_MAX || start_ticks == 0) {
		return PROCESS_NO; // no such process
	}
	_cleanup_close_ int pidfd = open_pidfd(pid);
	if (pidfd == -ESRCH || pidfd == -EINVAL || pidfd == -ENOENT) {
		return PROCESS_NO; // no such process, or a thread of a process with another pid
	}
	if (pidfd < 0) {
		return are_refused(pidfd) && !ret_pidfd ? is_by_number(pid, start_ticks)
		                                        : PROCESS_CANNOT_TELL;
	}
	enum process_answer answer = is_by_pidfd(pidfd, pid, start_ticks);
	if (answer == PROCESS_YES && ret_pidfd) {
		*ret_pidfd = take_fd(pidfd);
	}
	return answer;
}

// Whether the first line of a file, or the target of a link, equals this text.
static bool file_is(const char *path, const char *text)
{
	char line[64];
	return file_read_line(AT_FDCWD, path, line, sizeof(line)) && strcmp(line, text) == 0;
}

static bool link_is(const char *path, const char *text)
{
	char target[64];
	ssize_t n = readlink(path, target, sizeof(target) - 1);
	target[n > 0 ? n : 0] = '\0';
	return n > 0 && strcmp(target, text) == 0;
}

enum process_answer process_find(const struct process_name *name, int *ret_pidfd)
{
	bool here = name->boot_id && file_is("/proc/sys/kernel/random/boot_id", name->boot_id) &&
	            (!name->pid_namespace || link_is("/proc/self/ns/pid", name->pid_namespace));
	return here ? process_is(name->pid, name->start_ticks, ret_pidfd) : PROCESS_CANNOT_TELL;
}

int process_signal(int64_t pid, uint64_t start_ticks, int signal_number)
{
	_cleanup_close_ int pidfd = -1;
	enum process_answer answer = process_is(pid, start_ticks, &pidfd);
	return answer == PROCESS_YES  ? process_send(pidfd, signal_number)
	       : answer == PROCESS_NO ? -ESRCH
	                              : -EAGAIN;
}

int process_signal_child(int64_t pid, uint64_t start_ticks, int signal_number)
{
	int result = process_signal(pid, start_ticks, signal_number);
	if (result != -EAGAIN) {
		return result;
	}
	_cleanup_close_ int pidfd = open_pidfd(pid);
	if (!are_refused(pidfd) || process_is(pid, start_ticks, NULL) != PROCESS_YES) {
		return -EAGAIN;
	}
	return kill((pid_t)pid, signal_number) == 0 ? 0 : -errno;
}

// A list ------------------------------------------------------------------------------------------

static int compare_pids(const void *a, const void *b)
{
	const struct process_entry *x = a, *y = b;
	return (x->pid > y->pid) - (x->pid < y->pid);
}

static int add_process(const char *name, struct process_entry **items, size_t *n, size_t *capacity)
{
	struct proc_stat stat;
	int64_t pid;
	if (parse_integer(name, 1, INT_MAX, &pid, NULL) < 0) {
		return 0; // not a process
	}
	int result = read_stat(pid, &stat);
	if (result == -EMFILE || result == -ENFILE || result == -ENOMEM) {
		return result;
	}
	if (result < 0 || is_zombie(&stat)) {
		return 0; // it has ended, or is not visible to us
	}
	if (array_reserve((void **)items, capacity, *n + 1, sizeof(**items)) < 0) {
		return -ENOMEM;
	}
	(*items)[(*n)++] = (struct process_entry){(pid_t)pid, stat.parent, stat.start_ticks};
	return 0;
}

int process_list(struct process_entry **ret, size_t *ret_n)
{
	struct process_entry *items = NULL;
	size_t n = 0, capacity = 0;
	DIR *proc = opendir("/proc");
	if (!proc) {
		return -errno;
	}
	int result = 0;
	for (struct dirent *entry; result == 0 && (entry = readdir(proc));) {
		result = add_process(entry->d_name, &items, &n, &capacity);
	}
	closedir(proc);
	if (result < 0) {
		free(items);
		return result;
	}
	if (n > 1) {
		qsort(items, n, sizeof(*items), compare_pids);
	}
	*ret = items;
	*ret_n = n;
	return 0;
}

bool process_is_nobody(int64_t pid)
{
	return pid > 0 && pid <= INT32_MAX && kill((pid_t)pid, 0) < 0 && errno == ESRCH;
}

// "pid:[4026531836]" is the first pid namespace (PROC_PID_INIT_INO in Linux).
bool process_namespace_is_nested(int root_fd)
{
	char link[64];
	ssize_t n = readlinkat(root_fd, "proc/self/ns/pid", link, sizeof(link) - 1);
	link[n > 0 ? n : 0] = '\0';
	return strcmp(link, "pid:[4026531836]") != 0;
}
