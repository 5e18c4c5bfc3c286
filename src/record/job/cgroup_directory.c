// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Directories of cgroups.

#include "record/job/cgroup_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/text.h"
#include "record/host/cgroupfs.h"
#include "record/host/file.h"
#include "record/host/procfs.h"

char *cgroup_directory_join(const char *directory, const char *name)
{
	struct text path = {0};
	text_format(&path, "%s/%s", directory, name);
	return text_steal(&path);
}

// They are ours, their process is gone, nothing runs in them (rmdir sees to that), and they are not
// just being made.
void cgroup_directory_sweep(int root_fd, const char *parent)
{
	enum { SURELY_MADE_SECONDS = 10 };
	int fd = openat(root_fd, parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	if (!directory) {
		if (fd >= 0) {
			close(fd);
		}
		return;
	}
	for (struct dirent *item; (item = readdir(directory));) {
		struct cursor name = cursor_of(item->d_name, strlen(item->d_name));
		uint64_t pid;
		struct stat status;
		char process[32];
		if (!cursor_literal(&name, CGROUP_NAME_PREFIX) || !cursor_u64(&name, &pid)) {
			continue;
		}
		(void)cursor_literal(&name, CGROUP_LEAF_SUFFIX);
		if (name.at != name.end) {
			continue;
		}
		snprintf(process, sizeof(process), "/proc/%llu", (unsigned long long)pid);
		if (access(process, F_OK) < 0 && fstatat(fd, item->d_name, &status, 0) == 0 &&
			status.st_mtime + SURELY_MADE_SECONDS < time(NULL)) {
			(void)unlinkat(fd, item->d_name, AT_REMOVEDIR);
		}
	}
	closedir(directory);
}

// Refuses a directory that this process is not in: a child of it would take the job out of its own
// cgroup, and from under its limits. mountinfo of a container can mislead to such a one.
static int check_is_here(int root_fd, const char *directory, struct error *e)
{
	_cleanup_free_ char *path = cgroup_directory_join(directory, "cgroup.procs");
	struct host_file file = HOST_FILE_CLOSED;
	struct cursor text, line;
	uint64_t pid;
	bool found = false;
	int r = path ? host_file_open(&file, root_fd, path, e) : -ENOMEM;
	if (r < 0) {
		return path ? r : error_errno(e, ENOMEM, "/%s", directory);
	}
	r = host_file_read_to_end(&file, &text);
	while (r == 0 && !found && cursor_line(&text, &line)) {
		found = cursor_u64(&line, &pid) && pid == (uint64_t)getpid();
	}
	host_file_close(&file);
	if (r == -EOPNOTSUPP) { // what v2 answers for the threads of a threaded cgroup
		return error_set(e, EOPNOTSUPP,
			"/%s is a threaded cgroup, which cannot hold whole processes", directory);
	}
	if (r < 0) {
		return error_errno(e, -r, "/%s", path);
	}
	return found ? 0 : error_set(e, ESRCH, "strain does not run in /%s", directory);
}

int cgroup_directory_make(int root_fd, const char *parent, char **ret, struct error *e)
{
	_cleanup_close_ int parent_fd = openat(root_fd, parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (parent_fd < 0) {
		return error_errno(e, errno, "/%s", parent);
	}
	int r = check_is_here(root_fd, parent, e);
	if (r < 0) {
		return r;
	}
	char name[32];
	snprintf(name, sizeof(name), CGROUP_NAME_PREFIX "%d", (int)getpid());
	_cleanup_free_ char *path = cgroup_directory_join(parent, name);
	if (!path) {
		return error_errno(e, ENOMEM, "/%s", parent);
	}
	cgroup_directory_sweep(parent_fd, ".");
	// One with our own pid is of an earlier process; an empty one will do, so make it anew.
	(void)unlinkat(parent_fd, name, AT_REMOVEDIR);
	if (mkdirat(parent_fd, name, 0755) < 0) {
		return error_errno(e, errno, "/%s", parent);
	}
	if (faccessat(parent_fd, name, W_OK, 0) < 0) {
		int code = errno;
		(void)unlinkat(parent_fd, name, AT_REMOVEDIR);
		return error_errno(e, code, "/%s/%s", parent, name);
	}
	*ret = take_pointer(path);
	return 0;
}

// file: "/cgroup.procs"
static int move_by(const char *directory, const char *file, const char *pid)
{
	char path[PATH_MAX] = "/";
	size_t length = strlen(directory), file_size = strlen(file) + 1;
	if (length + file_size + 1 > sizeof(path)) {
		return -ENAMETOOLONG;
	}
	memcpy(path + 1, directory, length);
	memcpy(path + 1 + length, file, file_size);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0) {
		return -errno;
	}
	int r = write(fd, pid, strlen(pid)) < 0 ? -errno : 0;
	close(fd);
	return r;
}

int cgroup_directory_move(const char *directory, const char *pid)
{
	return move_by(directory, "/cgroup.procs", pid);
}

// A process of many threads is moved at once, for which Linux keeps all of the machine from forking
// and waits for each CPU: milliseconds. A thread that moves itself ("0" to v1's `tasks`) needs
// neither.
int cgroup_directory_enter_alone(const char *directory)
{
	return move_by(directory, "/tasks", "0") == 0 ? 0 : cgroup_directory_move(directory, "0");
}

// 0: it cannot be read.
static pid_t parent_of(int root_fd, pid_t pid)
{
	char path[40], buffer[512];
	struct cursor text;
	struct proc_stat stat;
	snprintf(path, sizeof(path), "proc/%d/stat", (int)pid);
	return host_read_once(root_fd, path, buffer, sizeof(buffer), &text, NULL) == 0 &&
	                       proc_stat_parse(text, &stat) == 0
	               ? (pid_t)stat.parent
	               : 0;
}

// The sweep that waits for this process, and does nothing else meanwhile; between the two stands a
// keeper, which does not either. 0: there is none.
static pid_t find_sweep(int root_fd)
{
	const char *value = secure_getenv("STRAIN_SWEEP_PID");
	int64_t pid;
	return value && parse_integer(value, 1, INT32_MAX, &pid, NULL) == 0 &&
	                       (pid == getppid() || pid == parent_of(root_fd, getppid()))
	               ? (pid_t)pid
	               : 0;
}

static bool is_ours(int root_fd, uint64_t pid, pid_t sweep)
{
	bool above = sweep > 0 && (pid == (uint64_t)sweep || pid == (uint64_t)getppid());
	return pid == (uint64_t)getpid() || above || parent_of(root_fd, (pid_t)pid) == getpid();
}

int cgroup_directory_step_aside(int root_fd, const char *directory, const char *leaf)
{
	char buffer[4096];
	struct cursor text, line;
	uint64_t pid;
	pid_t sweep = find_sweep(root_fd);
	int r = cgroup_read(
		root_fd, directory, "cgroup.procs", buffer, sizeof(buffer), &text, NULL);
	if (r < 0 || text.end == buffer + sizeof(buffer)) {
		return r < 0 ? r : -EBUSY;
	}
	struct cursor again = text;
	while (cursor_line(&text, &line)) {
		if (!cursor_u64(&line, &pid) || !is_ours(root_fd, pid, sweep)) {
			return -EBUSY;
		}
	}
	while (r == 0 && cursor_line(&again, &line)) {
		char word[24];
		if (cursor_u64(&line, &pid)) {
			snprintf(word, sizeof(word), "%llu", (unsigned long long)pid);
			r = cgroup_directory_move(leaf, word);
			r = r == -ESRCH ? 0 : r;
		}
	}
	return r;
}

// Moves what runs in the directory into the one above.
static void move_out(const char *directory)
{
	_cleanup_free_ char *parent = strdup(directory);
	_cleanup_free_ char *procs = cgroup_directory_join(directory, "cgroup.procs");
	_cleanup_close_ int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct host_file file = HOST_FILE_CLOSED;
	struct cursor text, line;
	if (!parent || !procs || host_file_open(&file, root_fd, procs, NULL) < 0) {
		return;
	}
	*strrchr(parent, '/') = '\0';
	if (host_file_read(&file, &text) == 0) {
		while (cursor_line(&text, &line)) {
			uint64_t number;
			char pid[24];
			if (cursor_u64(&line, &number)) {
				snprintf(pid, sizeof(pid), "%llu", (unsigned long long)number);
				(void)cgroup_directory_move(parent, pid);
			}
		}
	}
	host_file_close(&file);
}

int cgroup_directory_remove(const char *directory)
{
	// A process that has just ended, or forks while it is moved, takes another round.
	enum { ROUNDS = 50, PAUSE_US = 2000 };
	char path[PATH_MAX];
	if (snprintf(path, sizeof(path), "/%s", directory) >= (int)sizeof(path)) {
		return -ENAMETOOLONG;
	}
	for (int i = 0; rmdir(path) < 0; i++) {
		if (errno == ENOENT) {
			return 0;
		}
		if (errno != EBUSY || i == ROUNDS) {
			return -errno;
		}
		move_out(directory);
		if (i > 0) {
			usleep(PAUSE_US);
		}
	}
	return 0;
}

int cgroup_directory_write(int root_fd, const char *directory, const char *name, const char *line)
{
	_cleanup_free_ char *path = cgroup_directory_join(directory, name);
	_cleanup_close_ int fd = path ? openat(root_fd, path, O_WRONLY | O_CLOEXEC) : -1;
	if (fd < 0) {
		return path ? -errno : -ENOMEM;
	}
	return write(fd, line, strlen(line)) < 0 ? -errno : 0;
}
