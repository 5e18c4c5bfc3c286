// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The job's cgroup, for exact CPU time and memory of every process that it starts.
//
// On v2 a cgroup that holds processes cannot enable controllers for its children (no internal
// processes), and the one in which strain was started holds at least strain. If it holds no other
// processes except a sweep that started strain, they move aside into a leaf of their own for the
// duration of the run, and controllers can be enabled. Otherwise the job's cgroup has cpu.stat,
// which needs no controller, but neither memory.stat nor io.stat.

#include "machine/cgroup.h"

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
#include "machine/cgroupfs.h"
#include "machine/file.h"
#include "machine/procfs.h"

// Directory ---------------------------------------------------------------------------------------
//
// Cgroup directories.

char *cgroup_directory_join(const char *directory, const char *name)
{
	struct text path = {0};
	text_format(&path, "%s/%s", directory, name);
	return text_steal(&path);
}

// Removes empty child directories that a killed launcher left: their names are ours, their process
// is gone, nothing runs in them (rmdir checks that), and they are not just being created.
static void cgroup_directory_sweep(int root_fd, const char *parent)
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

// Rejects a directory that does not contain this process: a child of it would move the job out of
// its own cgroup and its limits. A container's mountinfo can lead to such a directory.
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
	if (r == -EOPNOTSUPP) { // the result on v2 for threads of a threaded cgroup
		return error_set(e, EOPNOTSUPP,
			"/%s is a threaded cgroup, which cannot hold whole processes", directory);
	}
	if (r < 0) {
		return error_errno(e, -r, "/%s", path);
	}
	return found ? 0 : error_set(e, ESRCH, "strain does not run in /%s", directory);
}

// Creates parent/strain-PID; *ret is its path. Rejects a parent that does not contain this process.
// Removes directories left by a killed launcher. Errors name the directory.
static int cgroup_directory_make(int root_fd, const char *parent, char **ret, struct error *e)
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
	// A directory with our pid is from an earlier process. If it is empty, recreate it.
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

// Moves a process ("0": the calling one) into the directory. Only system calls. Returns 0 or
// -errno.
static int cgroup_directory_move(const char *directory, const char *pid)
{
	return move_by(directory, "/cgroup.procs", pid);
}

// Moves the calling process, which has one thread, into the directory; on v1 without the delay of
// cgroup_directory_move. Only system calls. Returns 0 or -errno. To move a process with many
// threads at once, Linux blocks all forks on the machine and waits for each CPU, for milliseconds.
// A thread that moves itself ("0" to v1's `tasks`) needs neither.
static int cgroup_directory_enter_alone(const char *directory)
{
	return move_by(directory, "/tasks", "0") == 0 ? 0 : cgroup_directory_move(directory, "0");
}

// Returns 0 if it cannot be read.
static pid_t parent_of(int root_fd, pid_t pid)
{
	char path[40];
	struct proc_stat stat;
	snprintf(path, sizeof(path), "proc/%d/stat", (int)pid);
	return proc_stat_read(root_fd, path, &stat) == 0 ? stat.parent : 0;
}

// Returns the sweep that waits for this process and does nothing else meanwhile. A keeper is
// between the two, which does not either. 0: there is none.
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
	int r = cgroupfs_read(
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

// Moves the directory's processes into its parent.
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

// Removes the directory. Its processes continue in the parent. Returns 0 (also if it is gone
// already) or -errno: -EBUSY if it has children in use.
static int cgroup_directory_remove(const char *directory)
{
	// A process that has just ended, or that forks while it is moved, needs another round.
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

// Cgroup ------------------------------------------------------------------------------------------

// With v1's memory.use_hierarchy at 0 (before Linux 5.11), a child is not subject to its parent's
// limit: the job would lose its limit.
static int check_keeps_limit(int root_fd, const struct cgroup_places *places, struct error *e)
{
	const char *directory = places->legacy[CGROUP_MEMORY].path;
	char buffer[16];
	struct cursor text;
	uint64_t on, limit;
	if (cgroupfs_read(root_fd, directory, "memory.use_hierarchy", buffer, sizeof(buffer), &text,
		    NULL) == 0 &&
		cursor_u64(&text, &on) && on == 0 &&
		cgroupfs_memory_limit(root_fd, places, &limit, NULL) == 0) {
		return error_set(e, ENOTSUP,
			"/%s: a child would not be under its limit (memory.use_hierarchy is 0)",
			directory);
	}
	return 0;
}

// v1 counts a process that the kernel kills for memory in the process's own cgroup only, and Slurm
// reads that count of its step: with a child, the state of a job over its limit would be FAILED
// instead of OUT_OF_MEMORY. (memcg_memory_event() in the kernel's memcontrol.h.)
static int check_shows_kills(const char *directory, struct error *e)
{
	const char *job = strstr(directory, "/slurm");
	job = job ? strstr(job, "/job_") : NULL;
	if (job && strstr(job, "/step_")) {
		return error_set(e, ENOTSUP,
			"/%s: with a child, Slurm would not see that the kernel kills the job for "
			"its memory (cgroup v1)",
			directory);
	}
	return 0;
}

static bool has_controller(int root_fd, const char *directory, const char *controller)
{
	char buffer[512];
	struct cursor list;
	return cgroupfs_read(root_fd, directory, "cgroup.controllers", buffer, sizeof(buffer),
		       &list, NULL) == 0 &&
	       cgroupfs_list_has(list, controller);
}

// A process may be moved only by a user who can write the cgroup.procs of the nearest common
// ancestor, which is its present cgroup.
static int check_procs_writable(int root_fd, const char *directory, struct error *e)
{
	_cleanup_free_ char *procs = cgroup_directory_join(directory, "cgroup.procs");
	if (!procs || faccessat(root_fd, procs, W_OK, AT_EACCESS) < 0) {
		return error_errno(e, procs ? errno : ENOMEM, "/%s/cgroup.procs", directory);
	}
	return 0;
}

// Enables memory and io for the directory's children, moving its processes aside if necessary. If
// that fails, everything is restored.
static void hand_down(int root_fd, const char *directory, struct job_cgroup *made)
{
	static const char control[] = "cgroup.subtree_control";
	int r = cgroup_directory_write(root_fd, directory, control, "+memory");
	_cleanup_free_ char *leaf = NULL;
	if (r == -EBUSY) {
		struct text path = {0};
		text_format(&path, "%s" CGROUP_LEAF_SUFFIX, made->procs);
		leaf = text_steal(&path);
		if (!leaf || mkdirat(root_fd, leaf, 0755) < 0) {
			return;
		}
		r = cgroup_directory_step_aside(root_fd, directory, leaf);
		r = r < 0 ? r : cgroup_directory_write(root_fd, directory, control, "+memory");
		if (r < 0) {
			(void)cgroup_directory_remove(leaf);
			return;
		}
	}
	if (r == 0) {
		bool io = cgroup_directory_write(root_fd, directory, control, "+io") == 0;
		made->undo = strdup(io ? "-memory -io" : "-memory");
		made->leaf = take_pointer(leaf);
	}
}

// The services of a v2 directory: CPU time always, the others if their controllers are enabled.
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

// v2: a new child of a cgroup with threaded children is "domain invalid" and accepts no processes.
static int check_takes_processes(int root_fd, const char *directory, struct error *e)
{
	char buffer[32];
	struct cursor text, word;
	if (cgroupfs_read(root_fd, directory, "cgroup.type", buffer, sizeof(buffer), &text, NULL) ==
			0 &&
		cursor_word(&text, &word) && cursor_word(&text, &word) &&
		cursor_is(word, "invalid")) {
		return error_set(e, EOPNOTSUPP,
			"/%s: beside threaded cgroups none can be made for whole processes",
			directory);
	}
	return 0;
}

static const char ownership_hint[] = "start strain in a cgroup that you own";

static const char *delegation_hint(void)
{
	return geteuid() == 0 ? "use a delegated cgroup: systemd-run --scope -p Delegate=yes "
	                        "strain run ..."
	                      : "use a delegated cgroup: systemd-run --user --scope -p "
	                        "Delegate=yes strain run ...";
}

static const char *name_of(enum cgroup_controller controller, int version)
{
	return controller == CGROUP_CPUSET   ? "cpuset"
	       : controller == CGROUP_MEMORY ? "memory"
	       : version == 1                ? "blkio"
	                                     : "io";
}

// Either strain's own cgroup has the controller but holds other processes, or it lacks the
// controller.
static const char *hint_v2(int root_fd, const struct job_cgroup *cgroup, const char *controller)
{
	static const char user_hint[] =
		"root can delegate it to users: systemctl edit user@.service, [Service] "
		"Delegate=cpu cpuset io memory pids";
	_cleanup_free_ char *parent = strdup(cgroup->procs);
	if (!parent) {
		return NULL;
	}
	*strrchr(parent, '/') = '\0';
	return geteuid() == 0 || has_controller(root_fd, parent, controller) ? delegation_hint()
	                                                                     : user_hint;
}

int job_cgroup_add_hint(int root_fd, const struct job_cgroup *cgroup,
	enum cgroup_controller controller, struct error *e)
{
	const struct error inner = *e;
	const char *hint = cgroup->version == 2 ? hint_v2(root_fd, cgroup, name_of(controller, 2))
	                   : inner.code == EACCES || inner.code == EPERM ? ownership_hint
	                                                                 : NULL;
	return hint ? error_set(e, inner.code, "%s; %s", inner.text, hint) : -inner.code;
}

// Appends the remedy to the reason. Returns r.
static int add_hint(int r, const char *unless_permitted, struct error *e)
{
	const char *hint = r == -EACCES || r == -EPERM ? unless_permitted
	                   : r == -EROFS               ? "use a container with a writable cgroup "
	                                                 "mount"
	                                               : NULL;
	if (e && hint) {
		const struct error inner = *e;
		error_set(e, -r, "%s; %s", inner.text, hint);
	}
	return r;
}

static int create_v2(
	int root_fd, const struct cgroup_place *place, struct job_cgroup *ret, struct error *e)
{
	_cleanup_free_ char *path = NULL;
	int r = check_procs_writable(root_fd, place->path, e);
	if (r == 0) {
		r = cgroup_directory_make(root_fd, place->path, &path, e);
	}
	if (r < 0) {
		return add_hint(r, delegation_hint(), e);
	}
	struct job_cgroup made = {.version = 2, .procs = path};
	r = check_takes_processes(root_fd, path, e);
	if (r < 0) {
		(void)job_cgroup_remove(&made);
		return r;
	}
	if (!has_controller(root_fd, path, "memory") &&
		has_controller(root_fd, place->path, "memory")) {
		hand_down(root_fd, place->path, &made);
	}
	struct job_cgroup filled;
	r = fill_v2(root_fd, path, &filled);
	if (r < 0) {
		error_errno(e, -r, "/%s", path);
		(void)job_cgroup_remove(&made);
		free(made.leaf);
		free(made.undo);
		return r;
	}
	filled.leaf = made.leaf;
	filled.undo = made.undo;
	*ret = filled;
	return 0;
}

// If there is no directory, stores the reason in `made`.
static int make_memory_child(int root_fd, const struct cgroup_places *places, bool limits_memory,
	struct job_cgroup *made, struct error *e)
{
	const struct cgroup_place *memory = &places->legacy[CGROUP_MEMORY];
	struct error why = {0};
	int r = memory->version ? check_keeps_limit(root_fd, places, &why)
	        : memory->hidden
	                ? error_set(&why, ENOENT, "%s", CGROUP_HIDDEN_REASON)
	                : error_set(&why, ENOENT, "the memory controller is not mounted as v1");
	r = r < 0 || limits_memory ? r : check_shows_kills(memory->path, &why);
	r = r < 0 ? r : cgroup_directory_make(root_fd, memory->path, &made->memory, &why);
	if (r < 0) {
		made->memory_reason = strdup(why.text);
		made->memory_code = -r;
		if (e) {
			*e = why;
		}
	}
	return r;
}

// Some systems mount all controllers as one hierarchy; one directory then serves both.
static bool is_shared(const struct cgroup_place *a, const struct cgroup_place *b)
{
	return a->version && b->version && strcmp(a->path, b->path) == 0;
}

// A run that needs a cgroup only for a limit cleans up here, because no other run may ever do so.
static void sweep_others(int root_fd, const struct cgroup_places *places)
{
	static const enum cgroup_controller others[] = {CGROUP_CPUSET, CGROUP_IO};
	for (size_t i = 0; i < ARRAY_LENGTH(others); i++) {
		if (places->legacy[others[i]].version) {
			cgroup_directory_sweep(root_fd, places->legacy[others[i]].path);
		}
	}
}

static int create_v1(int root_fd, const struct cgroup_places *places, bool limits_memory,
	struct job_cgroup *ret, struct error *e)
{
	const struct cgroup_place *cpu = &places->legacy[CGROUP_CPUACCT];
	const struct cgroup_place *memory = &places->legacy[CGROUP_MEMORY];
	struct job_cgroup made = {.version = 1};
	sweep_others(root_fd, places);
	int r_cpu = -ENOENT, r_memory = make_memory_child(root_fd, places, limits_memory, &made, e);
	if (is_shared(cpu, memory)) {
		r_cpu = r_memory;
		made.cpu = made.memory ? strdup(made.memory) : NULL;
	} else if (cpu->version) {
		r_cpu = cgroup_directory_make(
			root_fd, cpu->path, &made.cpu, r_memory == -ENOENT ? e : NULL);
	}
	if (r_cpu < 0 && r_memory < 0) {
		job_cgroup_done(&made);
		return add_hint(r_memory == -ENOENT ? r_cpu : r_memory, ownership_hint, e);
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

int job_cgroup_create(bool limits_memory, struct job_cgroup *ret, struct error *e)
{
	_cleanup_close_ int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct cgroup_places places = {0};
	int r = root_fd < 0 ? error_errno(e, errno, "/")
	                    : cgroup_places_find(root_fd, "self", &places, e);
	if (r < 0) {
		return r;
	}
	if (places.legacy[CGROUP_CPUACCT].version || places.legacy[CGROUP_MEMORY].version) {
		r = create_v1(root_fd, &places, limits_memory, ret, e);
	} else if (places.unified.version) {
		r = create_v2(root_fd, &places.unified, ret, e);
	} else {
		r = error_set(e, ENOENT, "%s",
			cgroup_places_hidden(&places) ? CGROUP_HIDDEN_REASON
						      : "no cgroup file system is mounted");
	}
	cgroup_places_done(&places);
	return r;
}

// If one directory serves several controllers, it already exists.
static char *find_made(const struct job_cgroup *cgroup, const struct cgroup_place *place)
{
	const char *const made[] = {cgroup->memory, cgroup->cpu, cgroup->cpuset, cgroup->block};
	size_t length = strlen(place->path);
	for (size_t i = 0; i < ARRAY_LENGTH(made); i++) {
		if (made[i] && strncmp(made[i], place->path, length) == 0 &&
			strchr(made[i] + length, '/') == made[i] + length &&
			!strchr(made[i] + length + 1, '/')) {
			return strdup(made[i]);
		}
	}
	return NULL;
}

static int add_v1(int root_fd, enum cgroup_controller controller, const struct job_cgroup *cgroup,
	char **ret, struct error *e)
{
	struct cgroup_places places = {0};
	int r = cgroup_places_find(root_fd, "self", &places, e);
	const struct cgroup_place *place = &places.legacy[controller];
	if (r == 0 && !place->version) {
		r = place->hidden ? error_set(e, ENOENT, "%s", CGROUP_HIDDEN_REASON)
		                  : error_set(e, ENOENT, "the %s controller is not mounted",
					    name_of(controller, 1));
	} else if (r == 0) {
		*ret = find_made(cgroup, place);
		r = *ret ? 0 : cgroup_directory_make(root_fd, place->path, ret, e);
	}
	cgroup_places_done(&places);
	return r;
}

// Whether the cgroup holds processes. They prevent enabling io for children. With cpuset the cgroup
// becomes a threaded domain: its children, including those of other runs, are then "domain invalid"
// and accept no processes (Documentation/admin-guide/cgroup-v2.rst, "Threads"). The root cgroup has
// no type and permits both.
static bool is_in_use(int root_fd, const char *directory)
{
	char buffer[64];
	struct cursor text, word;
	return cgroupfs_read(root_fd, directory, "cgroup.type", buffer, sizeof(buffer), &text,
		       NULL) == 0 &&
	       cgroupfs_read(root_fd, directory, "cgroup.procs", buffer, sizeof(buffer), &text,
		       NULL) == 0 &&
	       cursor_word(&text, &word);
}

// Enables one more controller for the job's cgroup.
static int hand_one_down(int root_fd, const char *name, struct job_cgroup *cgroup)
{
	_cleanup_free_ char *parent = strdup(cgroup->procs);
	struct text word = {0}, undo = {0};
	if (!parent) {
		return -ENOMEM;
	}
	*strrchr(parent, '/') = '\0';
	text_format(&word, "+%s", name);
	text_format(
		&undo, "%s%s-%s", cgroup->undo ? cgroup->undo : "", cgroup->undo ? " " : "", name);
	int r = word.failed || undo.failed   ? -ENOMEM
	        : is_in_use(root_fd, parent) ? -EBUSY
	                                     : cgroup_directory_write(root_fd, parent,
						       "cgroup.subtree_control", word.data);
	if (r == 0) {
		free(cgroup->undo);
		cgroup->undo = text_steal(&undo);
	}
	text_done(&word);
	text_done(&undo);
	return r;
}

static int add_v2(int root_fd, enum cgroup_controller controller, struct job_cgroup *cgroup,
	char **ret, struct error *e)
{
	const char *name = name_of(controller, 2);
	if (!has_controller(root_fd, cgroup->procs, name)) {
		int r = hand_one_down(root_fd, name, cgroup);
		if (r < 0 || !has_controller(root_fd, cgroup->procs, name)) {
			return error_set(e, r < 0 ? -r : ENOENT,
				"the %s controller is not enabled for /%s", name, cgroup->procs);
		}
	}
	*ret = strdup(cgroup->procs);
	return *ret ? 0 : error_errno(e, ENOMEM, "/%s", cgroup->procs);
}

int job_cgroup_add(
	int root_fd, enum cgroup_controller controller, struct job_cgroup *cgroup, struct error *e)
{
	char **field = controller == CGROUP_CPUSET ? &cgroup->cpuset : &cgroup->block;
	if (*field) {
		return 0;
	}
	return cgroup->version == 2 ? add_v2(root_fd, controller, cgroup, field, e)
	                            : add_v1(root_fd, controller, cgroup, field, e);
}

void job_cgroup_drop_cpuset(struct job_cgroup *cgroup)
{
	const char *const others[] = {cgroup->procs, cgroup->cpu, cgroup->memory, cgroup->block};
	bool shared = !cgroup->cpuset;
	for (size_t i = 0; i < ARRAY_LENGTH(others); i++) {
		shared = shared || (others[i] && strcmp(others[i], cgroup->cpuset) == 0);
	}
	if (!shared) {
		(void)cgroup_directory_remove(cgroup->cpuset);
	}
	free(take_pointer(cgroup->cpuset));
}

// Finds the cgroup of a run with processes in `place`: beside their leaf, or below.
static char *find_child(int root_fd, const struct cgroup_place *place)
{
	const size_t suffix = strlen(CGROUP_LEAF_SUFFIX),
		     length = place->version ? strlen(place->path) : 0;
	if (length > suffix && strcmp(place->path + length - suffix, CGROUP_LEAF_SUFFIX) == 0) {
		return strndup(place->path, length - suffix);
	}
	int fd = place->version ? openat(root_fd, place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
	                        : -1;
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	char *found = NULL;
	for (struct dirent *item; directory && !found && (item = readdir(directory));) {
		struct cursor name = cursor_of(item->d_name, strlen(item->d_name));
		uint64_t pid;
		if (cursor_literal(&name, CGROUP_NAME_PREFIX) && cursor_u64(&name, &pid)) {
			found = cgroup_directory_join(place->path, item->d_name);
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

int job_cgroup_enter(const struct job_cgroup *cgroup)
{
	const char *const directories[] = {
		cgroup->procs, cgroup->cpu, cgroup->memory, cgroup->cpuset, cgroup->block};
	for (size_t i = 0; i < ARRAY_LENGTH(directories); i++) {
		if (!directories[i]) {
			continue;
		}
		int r = cgroup->version == 1 ? cgroup_directory_enter_alone(directories[i])
		                             : cgroup_directory_move(directories[i], "0");
		if (r < 0) {
			return r;
		}
	}
	return 0;
}

// Whether the directory has other children than the job's.
static bool has_other_children(int root_fd, const char *path)
{
	struct stat status;
	// A cgroupfs directory has two links, plus one for each child.
	return fstatat(root_fd, path, &status, 0) == 0 && status.st_nlink > 3;
}

// Restores the controllers that the parent cgroup enabled before, unless it has other children than
// our leaf: they would lose them.
static void take_back(const struct job_cgroup *cgroup)
{
	_cleanup_close_ int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_free_ char *parent = strdup(cgroup->procs);
	if (!parent) {
		return;
	}
	*strrchr(parent, '/') = '\0';
	if (cgroup->leaf || !has_other_children(root_fd, parent)) {
		(void)cgroup_directory_write(
			root_fd, parent, "cgroup.subtree_control", cgroup->undo);
	}
}

int job_cgroup_remove(const struct job_cgroup *cgroup)
{
	const char *const directories[] = {
		cgroup->procs, cgroup->cpu, cgroup->memory, cgroup->cpuset, cgroup->block};
	int result = 0;
	// This comes first, because a cgroup that enables controllers for its children accepts no
	// processes.
	if (cgroup->undo) {
		take_back(cgroup);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(directories); i++) {
		int r = directories[i] ? cgroup_directory_remove(directories[i]) : 0;
		result = result < 0 ? result : r;
	}
	if (cgroup->leaf) {
		int r = cgroup_directory_remove(cgroup->leaf);
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
	free(cgroup->cpuset);
	free(cgroup->block);
	free(cgroup->leaf);
	free(cgroup->undo);
	free(cgroup->memory_reason);
	*cgroup = (struct job_cgroup){0};
}
