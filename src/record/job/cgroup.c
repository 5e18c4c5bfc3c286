// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A cgroup for the job: exact CPU time and memory of everything that it ever starts.
//
// On v2 a cgroup that holds processes cannot hand controllers to its children (no internal
// processes), and the one that we were started in holds at least us. The child then has cpu.stat,
// which needs no controller, and memory.stat only where the parent had handed memory down before.

#include "record/job/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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

#define NAME_PREFIX "strain-"

static char *join(const char *directory, const char *name)
{
	struct text path = {0};
	text_format(&path, "%s/%s", directory, name);
	return text_steal(&path);
}

// Removes children that a launcher of ours left when it was killed: their process is gone, nothing
// runs in them (rmdir sees to that), and they are not just being made.
static void sweep(int parent_fd)
{
	enum { SURELY_MADE_SECONDS = 10 };
	int fd = openat(parent_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
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
		if (!cursor_literal(&name, NAME_PREFIX) || !cursor_u64(&name, &pid) ||
			name.at != name.end) {
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

// Makes parent/strain-PID; *ret is its path. The text of an error names the directory.
static int make_child(int root_fd, const char *parent, char **ret, struct error *e)
{
	_cleanup_close_ int parent_fd = openat(root_fd, parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (parent_fd < 0) {
		return error_errno(e, errno, "/%s", parent);
	}
	char name[32];
	snprintf(name, sizeof(name), NAME_PREFIX "%d", (int)getpid());
	_cleanup_free_ char *path = join(parent, name);
	if (!path) {
		return error_errno(e, ENOMEM, "/%s", parent);
	}
	sweep(parent_fd);
	// One with our own pid is of an earlier process; an empty one will do, so make it anew.
	(void)unlinkat(parent_fd, name, AT_REMOVEDIR);
	if (mkdirat(parent_fd, name, 0755) < 0) {
		return error_errno(e, errno, "/%s", parent);
	}
	// Nobody can be moved in where cgroup.procs cannot be written, or, on v2, is of a domain
	// that is threaded.
	if (faccessat(parent_fd, name, W_OK, 0) < 0) {
		int code = errno;
		(void)unlinkat(parent_fd, name, AT_REMOVEDIR);
		return error_errno(e, code, "/%s/%s", parent, name);
	}
	*ret = take_pointer(path);
	return 0;
}

static bool has_controller(int root_fd, const char *directory, const char *controller)
{
	char buffer[512];
	struct cursor list;
	return cgroup_read(root_fd, directory, "cgroup.controllers", buffer, sizeof(buffer), &list,
		       NULL) == 0 &&
	       cgroup_list_has(list, controller);
}

// A process may be moved only by who may write the cgroup.procs of the nearest common ancestor: the
// one that it is in now.
static int check_procs_writable(int root_fd, const char *directory, struct error *e)
{
	_cleanup_free_ char *procs = join(directory, "cgroup.procs");
	if (!procs || faccessat(root_fd, procs, W_OK, AT_EACCESS) < 0) {
		return error_errno(e, procs ? errno : ENOMEM, "/%s/cgroup.procs", directory);
	}
	return 0;
}

// What a v2 directory serves: CPU time always, the rest where the controllers are.
static int fill_v2(int root_fd, const char *path, struct job_cgroup *ret)
{
	struct job_cgroup made = {.version = 2, .procs = strdup(path), .cpu = strdup(path)};
	made.memory = has_controller(root_fd, path, "memory") ? strdup(path) : NULL;
	made.io = has_controller(root_fd, path, "io") ? strdup(path) : NULL;
	if (!made.procs || !made.cpu) {
		job_cgroup_done(&made);
		return -ENOMEM;
	}
	*ret = made;
	return 0;
}

static int create_v2(
	int root_fd, const struct cgroup_place *place, struct job_cgroup *ret, struct error *e)
{
	_cleanup_free_ char *path = NULL;
	int r = check_procs_writable(root_fd, place->path, e);
	if (r == 0) {
		r = make_child(root_fd, place->path, &path, e);
	}
	if (r < 0) {
		if (e && (r == -EACCES || r == -EPERM)) {
			struct error inner = *e;
			error_set(e, -r,
				"%s; a delegated cgroup would allow it: systemd-run --user --scope "
				"-p Delegate=yes strain run ...",
				inner.text);
		}
		return r;
	}
	r = fill_v2(root_fd, path, ret);
	if (r < 0) {
		(void)unlinkat(root_fd, path, AT_REMOVEDIR);
		error_errno(e, -r, "/%s", path);
	}
	return r;
}

static int create_v1(
	int root_fd, const struct cgroup_places *places, struct job_cgroup *ret, struct error *e)
{
	const struct cgroup_place *cpu = &places->legacy[CGROUP_CPUACCT];
	const struct cgroup_place *memory = &places->legacy[CGROUP_MEMORY];
	struct job_cgroup made = {.version = 1};
	int r_cpu = -ENOENT, r_memory = -ENOENT;
	if (cpu->version) {
		r_cpu = make_child(root_fd, cpu->path, &made.cpu, e);
	}
	// Some mount all controllers as one hierarchy; one directory then serves both.
	if (cpu->version && memory->version && strcmp(cpu->path, memory->path) == 0) {
		r_memory = r_cpu;
		made.memory = made.cpu ? strdup(made.cpu) : NULL;
	} else if (memory->version) {
		r_memory = make_child(root_fd, memory->path, &made.memory, r_cpu < 0 ? e : NULL);
	}
	if (r_cpu < 0 && r_memory < 0) {
		return r_memory == -ENOENT ? r_cpu : r_memory;
	}
	made.procs = strdup(made.cpu ? made.cpu : made.memory);
	if (!made.procs) {
		(void)job_cgroup_remove(&made);
		job_cgroup_done(&made);
		return error_errno(e, ENOMEM, "cgroup");
	}
	*ret = made;
	return 0;
}

int job_cgroup_create(struct job_cgroup *ret, struct error *e)
{
	_cleanup_close_ int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct cgroup_places places = {0};
	int r = root_fd < 0 ? error_errno(e, errno, "/")
	                    : cgroup_places_find(root_fd, "self", &places, e);
	if (r < 0) {
		return r;
	}
	if (places.legacy[CGROUP_CPUACCT].version || places.legacy[CGROUP_MEMORY].version) {
		r = create_v1(root_fd, &places, ret, e);
	} else if (places.unified.version) {
		r = create_v2(root_fd, &places.unified, ret, e);
	} else {
		r = error_set(e, ENOENT, "no cgroup file system is mounted");
	}
	cgroup_places_done(&places);
	return r;
}

// The first strain-PID below a directory.
static char *find_child(int root_fd, const struct cgroup_place *place)
{
	int fd = place->version ? openat(root_fd, place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
	                        : -1;
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	char *found = NULL;
	for (struct dirent *item; directory && !found && (item = readdir(directory));) {
		struct cursor name = cursor_of(item->d_name, strlen(item->d_name));
		uint64_t pid;
		if (cursor_literal(&name, NAME_PREFIX) && cursor_u64(&name, &pid)) {
			found = join(place->path, item->d_name);
		}
	}
	if (directory) {
		closedir(directory);
	} else if (fd >= 0) {
		close(fd);
	}
	return found;
}

int job_cgroup_find(int root_fd, struct job_cgroup *ret)
{
	struct cgroup_places places = {0};
	struct job_cgroup found = {.version = 1};
	int r = cgroup_places_find(root_fd, "self", &places, NULL);
	if (r < 0) {
		return r;
	}
	found.cpu = find_child(root_fd, &places.legacy[CGROUP_CPUACCT]);
	found.memory = find_child(root_fd, &places.legacy[CGROUP_MEMORY]);
	char *unified = NULL;
	if (!found.cpu && !found.memory) {
		unified = find_child(root_fd, &places.unified);
		r = unified ? fill_v2(root_fd, unified, &found) : -ENOENT;
	} else {
		found.procs = strdup(found.cpu ? found.cpu : found.memory);
		r = found.procs ? 0 : -ENOMEM;
	}
	free(unified);
	cgroup_places_done(&places);
	if (r < 0) {
		job_cgroup_done(&found);
		return r;
	}
	*ret = found;
	return 0;
}

// Writes `pid` to /directory/cgroup.procs; nothing but system calls. 0 or -errno.
static int move_into(const char *directory, const char *pid)
{
	static const char file[] = "/cgroup.procs";
	char path[PATH_MAX] = "/";
	size_t length = strlen(directory);
	if (length + sizeof(file) + 1 > sizeof(path)) {
		return -ENAMETOOLONG;
	}
	memcpy(path + 1, directory, length);
	memcpy(path + 1 + length, file, sizeof(file));
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0) {
		return -errno;
	}
	int r = write(fd, pid, strlen(pid)) < 0 ? -errno : 0;
	close(fd);
	return r;
}

int job_cgroup_enter(const struct job_cgroup *cgroup)
{
	const char *const directories[] = {cgroup->procs, cgroup->cpu, cgroup->memory};
	for (size_t i = 0; i < ARRAY_LENGTH(directories); i++) {
		int r = directories[i] ? move_into(directories[i], "0") : 0;
		if (r < 0) {
			return r;
		}
	}
	return 0;
}

// Moves what runs in the directory into the one above.
static void move_out(const char *directory)
{
	_cleanup_free_ char *parent = strdup(directory);
	_cleanup_free_ char *procs = join(directory, "cgroup.procs");
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
				(void)move_into(parent, pid);
			}
		}
	}
	host_file_close(&file);
}

static int remove_directory(const char *directory)
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

int job_cgroup_remove(const struct job_cgroup *cgroup)
{
	const char *const directories[] = {cgroup->procs, cgroup->cpu, cgroup->memory};
	int result = 0;
	for (size_t i = 0; i < ARRAY_LENGTH(directories); i++) {
		int r = directories[i] ? remove_directory(directories[i]) : 0;
		result = result < 0 ? result : r;
	}
	return result;
}

void job_cgroup_done(struct job_cgroup *cgroup)
{
	free(cgroup->cpu);
	free(cgroup->memory);
	free(cgroup->io);
	free(cgroup->procs);
	*cgroup = (struct job_cgroup){0};
}
