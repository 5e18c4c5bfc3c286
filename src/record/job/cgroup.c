// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A cgroup for the job: exact CPU time and memory of everything that it ever starts.
//
// On v2 a cgroup that holds processes cannot hand controllers to its children (no internal
// processes), and the one that we were started in holds at least us. Where it holds nobody else, we
// step aside into a leaf of our own for as long as the run lasts, and it can. Elsewhere the job's
// cgroup has cpu.stat, which needs no controller, but neither memory.stat nor io.stat.

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
#include "record/host/procfs.h"

#define NAME_PREFIX "strain-"
#define LEAF_SUFFIX ".self"

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
		if (!cursor_literal(&name, NAME_PREFIX) || !cursor_u64(&name, &pid)) {
			continue;
		}
		(void)cursor_literal(&name, LEAF_SUFFIX);
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
	_cleanup_free_ char *path = join(directory, "cgroup.procs");
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

// With v1's memory.use_hierarchy at 0 (before Linux 5.11) a child is not under its parent's limit:
// the job would lose the one that it has.
static int check_keeps_limit(int root_fd, const struct cgroup_places *places, struct error *e)
{
	const char *directory = places->legacy[CGROUP_MEMORY].path;
	char buffer[16];
	struct cursor text;
	uint64_t on, limit;
	if (cgroup_read(root_fd, directory, "memory.use_hierarchy", buffer, sizeof(buffer), &text,
		    NULL) == 0 &&
		cursor_u64(&text, &on) && on == 0 &&
		cgroup_memory_limit(root_fd, places, &limit, NULL) == 0) {
		return error_set(e, ENOTSUP,
			"/%s: a child would not be under its limit (memory.use_hierarchy is 0)",
			directory);
	}
	return 0;
}

// Makes parent/strain-PID; *ret is its path. The text of an error names the directory.
static int make_child(int root_fd, const char *parent, char **ret, struct error *e)
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

// Writes a line to one of the directory's files. 0 or -errno.
static int write_file(int root_fd, const char *directory, const char *name, const char *line)
{
	_cleanup_free_ char *path = join(directory, name);
	_cleanup_close_ int fd = path ? openat(root_fd, path, O_WRONLY | O_CLOEXEC) : -1;
	if (fd < 0) {
		return path ? -errno : -ENOMEM;
	}
	return write(fd, line, strlen(line)) < 0 ? -errno : 0;
}

static bool is_ours(int root_fd, uint64_t pid)
{
	char path[40], buffer[512];
	struct cursor text;
	struct proc_stat stat;
	snprintf(path, sizeof(path), "proc/%llu/stat", (unsigned long long)pid);
	return pid == (uint64_t)getpid() ||
	       (host_read_once(root_fd, path, buffer, sizeof(buffer), &text, NULL) == 0 &&
		       proc_stat_parse(text, &stat) == 0 && stat.parent == getpid());
}

// Moves this process and its children from the directory into the leaf. -EBUSY, and nobody has
// moved, where somebody else is there too.
static int step_aside(int root_fd, const char *directory, const char *leaf)
{
	char buffer[4096];
	struct cursor text, line;
	uint64_t pid;
	int r = cgroup_read(
		root_fd, directory, "cgroup.procs", buffer, sizeof(buffer), &text, NULL);
	if (r < 0 || text.end == buffer + sizeof(buffer)) {
		return r < 0 ? r : -EBUSY;
	}
	struct cursor again = text;
	while (cursor_line(&text, &line)) {
		if (!cursor_u64(&line, &pid) || !is_ours(root_fd, pid)) {
			return -EBUSY;
		}
	}
	while (r == 0 && cursor_line(&again, &line)) {
		char word[24];
		if (cursor_u64(&line, &pid)) {
			snprintf(word, sizeof(word), "%llu", (unsigned long long)pid);
			r = move_into(leaf, word);
			r = r == -ESRCH ? 0 : r;
		}
	}
	return r;
}

// Makes the directory hand memory and io down to its children, if need be by stepping aside.
// Leaves everything as it was where that does not work.
static void hand_down(int root_fd, const char *directory, struct job_cgroup *made)
{
	static const char control[] = "cgroup.subtree_control";
	int r = write_file(root_fd, directory, control, "+memory");
	_cleanup_free_ char *leaf = NULL;
	if (r == -EBUSY) {
		struct text path = {0};
		text_format(&path, "%s" LEAF_SUFFIX, made->procs);
		leaf = text_steal(&path);
		if (!leaf || mkdirat(root_fd, leaf, 0755) < 0) {
			return;
		}
		r = step_aside(root_fd, directory, leaf);
		r = r < 0 ? r : write_file(root_fd, directory, control, "+memory");
		if (r < 0) {
			(void)remove_directory(leaf);
			return;
		}
	}
	if (r == 0) {
		bool io = write_file(root_fd, directory, control, "+io") == 0;
		made->undo = strdup(io ? "-memory -io" : "-memory");
		made->leaf = take_pointer(leaf);
	}
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

// v2: a new child of a cgroup that has threaded ones is a "domain invalid": it takes nobody in.
static int check_takes_processes(int root_fd, const char *directory, struct error *e)
{
	char buffer[32];
	struct cursor text, word;
	if (cgroup_read(root_fd, directory, "cgroup.type", buffer, sizeof(buffer), &text, NULL) ==
			0 &&
		cursor_word(&text, &word) && cursor_word(&text, &word) &&
		cursor_is(word, "invalid")) {
		return error_set(e, EOPNOTSUPP,
			"/%s: beside threaded cgroups none can be made for whole processes",
			directory);
	}
	return 0;
}

// Appends to the reason what would allow it. Returns r.
static int add_hint(int r, const char *unless_permitted, struct error *e)
{
	const char *hint = r == -EACCES || r == -EPERM ? unless_permitted
	                   : r == -EROFS               ? "a container whose cgroups are mounted "
	                                                 "writable would allow it"
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
		r = make_child(root_fd, place->path, &path, e);
	}
	if (r < 0) {
		return add_hint(r,
			"a delegated cgroup would allow it: systemd-run --user --scope -p "
			"Delegate=yes strain run ...",
			e);
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

// Says in `made` why there is no directory, where there is none.
static int make_memory_child(
	int root_fd, const struct cgroup_places *places, struct job_cgroup *made, struct error *e)
{
	const struct cgroup_place *memory = &places->legacy[CGROUP_MEMORY];
	struct error why = {0};
	int r = memory->version ? check_keeps_limit(root_fd, places, &why)
	        : memory->hidden
	                ? error_set(&why, ENOENT, "%s", CGROUP_HIDDEN_REASON)
	                : error_set(&why, ENOENT, "the memory controller is not mounted as v1");
	r = r < 0 ? r : make_child(root_fd, memory->path, &made->memory, &why);
	if (r < 0) {
		made->memory_reason = strdup(why.text);
		if (e) {
			*e = why;
		}
	}
	return r;
}

// Some mount all controllers as one hierarchy; one directory then serves both.
static bool is_shared(const struct cgroup_place *a, const struct cgroup_place *b)
{
	return a->version && b->version && strcmp(a->path, b->path) == 0;
}

static int create_v1(
	int root_fd, const struct cgroup_places *places, struct job_cgroup *ret, struct error *e)
{
	const struct cgroup_place *cpu = &places->legacy[CGROUP_CPUACCT];
	const struct cgroup_place *memory = &places->legacy[CGROUP_MEMORY];
	struct job_cgroup made = {.version = 1};
	int r_cpu = -ENOENT, r_memory = make_memory_child(root_fd, places, &made, e);
	if (is_shared(cpu, memory)) {
		r_cpu = r_memory;
		made.cpu = made.memory ? strdup(made.memory) : NULL;
	} else if (cpu->version) {
		r_cpu = make_child(root_fd, cpu->path, &made.cpu, r_memory < 0 ? e : NULL);
	}
	if (r_cpu < 0 && r_memory < 0) {
		job_cgroup_done(&made);
		return add_hint(r_memory == -ENOENT ? r_cpu : r_memory,
			"starting in a cgroup there that is yours would allow it", e);
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
		r = error_set(e, ENOENT, "%s",
			cgroup_places_hidden(&places) ? CGROUP_HIDDEN_REASON
						      : "no cgroup file system is mounted");
	}
	cgroup_places_done(&places);
	return r;
}

// The job's cgroup of a run whose processes are in `place`: beside their leaf, or below.
static char *find_child(int root_fd, const struct cgroup_place *place)
{
	const size_t suffix = strlen(LEAF_SUFFIX),
		     length = place->version ? strlen(place->path) : 0;
	if (length > suffix && strcmp(place->path + length - suffix, LEAF_SUFFIX) == 0) {
		return strndup(place->path, length - suffix);
	}
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

// Whether the directory has more children than the one of the job.
static bool has_other_children(int root_fd, const char *path)
{
	struct stat status;
	// A directory in cgroupfs has two links, and one for each child.
	return fstatat(root_fd, path, &status, 0) == 0 && status.st_nlink > 3;
}

// The cgroup above hands down again what it did before; not where it still has other children than
// our leaf, for whom that would be a loss.
static void take_back(const struct job_cgroup *cgroup)
{
	_cleanup_close_ int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_free_ char *parent = strdup(cgroup->procs);
	if (!parent) {
		return;
	}
	*strrchr(parent, '/') = '\0';
	if (cgroup->leaf || !has_other_children(root_fd, parent)) {
		(void)write_file(root_fd, parent, "cgroup.subtree_control", cgroup->undo);
	}
}

int job_cgroup_remove(const struct job_cgroup *cgroup)
{
	const char *const directories[] = {cgroup->procs, cgroup->cpu, cgroup->memory};
	int result = 0;
	// First of all, because a cgroup that hands controllers down takes no processes in.
	if (cgroup->undo) {
		take_back(cgroup);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(directories); i++) {
		int r = directories[i] ? remove_directory(directories[i]) : 0;
		result = result < 0 ? result : r;
	}
	if (cgroup->leaf) {
		int r = remove_directory(cgroup->leaf);
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
	free(cgroup->leaf);
	free(cgroup->undo);
	free(cgroup->memory_reason);
	*cgroup = (struct job_cgroup){0};
}
