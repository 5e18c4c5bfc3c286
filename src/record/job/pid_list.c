// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Pids, listed and remembered.

#include "record/job/pid_list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "record/host/file.h"

#define PID_LIMIT ((pid_t)1 << 22) // PID_MAX_LIMIT of 64-bit kernels
#define WORD_BITS 64
#define CGROUPS_MAX 256 // below the job's
#define CGROUPS_DEPTH 8

static bool list_add(struct pid_list *list, uint64_t pid)
{
	void *pids = list->pids;
	if (pid > INT32_MAX ||
		array_reserve(&pids, &list->capacity, list->n + 1, sizeof(pid_t)) < 0) {
		return false;
	}
	list->pids = pids;
	list->pids[list->n++] = (pid_t)pid;
	return true;
}

void pid_list_proc(struct pid_list *list, int proc_fd)
{
	list->n = 0;
	int fd = openat(proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	if (!directory) {
		if (fd >= 0) {
			close(fd);
		}
		return;
	}
	const struct dirent *entry;
	while ((entry = readdir(directory))) {
		struct cursor name = cursor_of(entry->d_name, strlen(entry->d_name));
		uint64_t pid;
		if (*name.at >= '1' && *name.at <= '9' && cursor_u64(&name, &pid) &&
			name.at == name.end && !list_add(list, pid)) {
			break;
		}
	}
	closedir(directory);
}

// Appends what a cgroup.procs says.
static void list_procs(struct pid_list *list, int root_fd, const char *path)
{
	struct host_file file = HOST_FILE_CLOSED;
	struct cursor text, line;
	uint64_t pid;
	if (host_file_open(&file, root_fd, path, NULL) == 0 && host_file_read(&file, &text) == 0) {
		while (cursor_line(&text, &line) && cursor_u64(&line, &pid) &&
			list_add(list, pid)) {
		}
	}
	host_file_close(&file);
}

// A directory of cgroupfs has two links and one for each directory in it.
static DIR *open_parent(int root_fd, const char *path)
{
	struct stat st;
	if (fstatat(root_fd, path, &st, 0) < 0 || st.st_nlink == 2) {
		return NULL;
	}
	int fd = openat(root_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	if (!directory && fd >= 0) {
		close(fd);
	}
	return directory;
}

static void list_below(
	struct pid_list *list, int root_fd, const char *directory, unsigned depth, unsigned *left)
{
	DIR *parent = open_parent(root_fd, directory);
	for (struct dirent *entry; parent && *left > 0 && (entry = readdir(parent));) {
		if (entry->d_type != DT_DIR || *entry->d_name == '.') {
			continue;
		}
		_cleanup_text_ struct text child = {0}, procs = {0};
		text_format(&child, "%s/%s", directory, entry->d_name);
		text_format(&procs, "%s/%s/cgroup.procs", directory, entry->d_name);
		if (!child.data || !procs.data) {
			break;
		}
		(*left)--;
		list_procs(list, root_fd, procs.data);
		if (depth > 0) {
			list_below(list, root_fd, child.data, depth - 1, left);
		}
	}
	if (parent) {
		closedir(parent);
	}
}

void pid_list_cgroup(struct pid_list *list, int root_fd, const char *path)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *directory = slash ? strndup(path, (size_t)(slash - path)) : NULL;
	unsigned left = CGROUPS_MAX;
	list->n = 0;
	list_procs(list, root_fd, path);
	if (directory) {
		list_below(list, root_fd, directory, CGROUPS_DEPTH, &left);
	}
}

void pid_list_done(struct pid_list *list)
{
	free(list->pids);
	*list = (struct pid_list){0};
}

void pid_set_add(struct pid_set *set, pid_t pid)
{
	if (!set->words) {
		set->words = calloc(PID_LIMIT / WORD_BITS, sizeof(*set->words));
	}
	if (set->words && pid >= 0 && pid < PID_LIMIT) {
		set->words[pid / WORD_BITS] |= UINT64_C(1) << (pid % WORD_BITS);
	}
}

int pid_set_has(const struct pid_set *set, pid_t pid)
{
	return set->words && pid >= 0 && pid < PID_LIMIT &&
	       (set->words[pid / WORD_BITS] >> (pid % WORD_BITS) & 1);
}

void pid_set_clear(struct pid_set *set)
{
	free(set->words);
	set->words = NULL;
}
