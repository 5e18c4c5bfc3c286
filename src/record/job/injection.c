// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The parts of strain that enter a job, and the job's environment.

#include "record/job/injection.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/beneath.h"
#include "base/cache_folder.h"
#include "base/cleanup.h"
#include "base/crc32.h"
#include "base/installation.h"
#include "base/text.h"
#include "base/trust.h"
#include "base/whole_file.h"

enum { PART_BYTES_MAX = 4 << 20 }; // per file

// A part is a set of files in one folder.
struct part {
	const char *name; // for installation_find(): the folder, or its only file
	const char *file; // the only file; NULL: all Python sources
	const char *copy; // prefix of the copy's name
};

static const struct part hooks_part = {"hooks/python", NULL, "hooks"};
static const struct part nvtx_part = {"libstrain-nvtx.so", "libstrain-nvtx.so", "nvtx"};

// The files of a part -----------------------------------------------------------------------------

// Reads a regular file completely. Returns -errno.
static int read_file(int folder, const char *name, struct text *ret)
{
	_cleanup_close_ int fd = beneath_open(folder, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	struct stat status;
	if (fd < 0 || fstat(fd, &status) < 0) {
		return fd < 0 ? fd : -errno;
	}
	if (!S_ISREG(status.st_mode) || status.st_size > PART_BYTES_MAX) {
		return -EINVAL;
	}
	text_clear(ret);
	char buffer[16384];
	ssize_t n;
	while ((n = read(fd, buffer, sizeof(buffer))) > 0 && ret->length <= PART_BYTES_MAX) {
		text_append(ret, buffer, (size_t)n);
	}
	return n < 0 ? -errno : ret->failed ? -ENOMEM : 0;
}

static int write_file(int folder, const char *name, const struct text *bytes)
{
	_cleanup_close_ int fd = openat(
		folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		return -errno;
	}
	return whole_file_write_to(fd, bytes->data, bytes->length);
}

static bool belongs(const struct part *part, const char *name)
{
	size_t length = strlen(name);
	return part->file ? strcmp(name, part->file) == 0
	                  : length > 3 && strcmp(name + length - 3, ".py") == 0;
}

// Reads each file of the part. Adds a checksum of names and contents, independent of their order,
// to *sum. Writes the files into the folder `to`, unless that is -1.
static int go_through(const struct part *part, int folder, int to, uint32_t *sum, struct error *e)
{
	int own = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = own < 0 ? NULL : fdopendir(own);
	_cleanup_text_ struct text bytes = {0};
	int r = list ? 0 : error_errno(e, errno, "%s", part->name);
	*sum = 0;
	for (struct dirent *entry; r == 0 && (entry = readdir(list));) {
		if (!belongs(part, entry->d_name)) {
			continue;
		}
		r = read_file(folder, entry->d_name, &bytes);
		r = r == 0 && to >= 0 ? write_file(to, entry->d_name, &bytes) : r;
		if (r < 0) {
			r = error_errno(e, -r, "%s", entry->d_name);
		}
		*sum += crc32_of(entry->d_name, strlen(entry->d_name)) ^
		        crc32_of(bytes.data ? bytes.data : "", bytes.length) * 31;
	}
	if (list) {
		closedir(list);
	} else if (own >= 0) {
		close(own);
	}
	return r;
}

// A copy in the cache -----------------------------------------------------------------------------

static int open_folder(const char *path, struct error *e)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? error_errno(e, errno, "%s", path) : fd;
}

// Fills a folder beside the copy and renames it, so that a copy is always complete. Another run may
// be first.
static int make_copy(const struct part *part, int source, const char *path, struct error *e)
{
	_cleanup_text_ struct text beside = {0};
	uint32_t sum;
	text_format(&beside, "%s.XXXXXX", path);
	if (beside.failed || !mkdtemp(beside.data)) {
		return error_errno(e, beside.failed ? ENOMEM : errno, "%s", path);
	}
	_cleanup_close_ int to = open_folder(beside.data, e);
	int r = to < 0 ? to : go_through(part, source, to, &sum, e);
	if (r == 0 && rename(beside.data, path) < 0) {
		r = errno == EEXIST || errno == ENOTEMPTY ? -EEXIST
		                                          : error_errno(e, errno, "%s", path);
	}
	if (r < 0) {
		if (to >= 0) {
			beneath_empty(to);
		}
		rmdir(beside.data);
	}
	return r == -EEXIST ? 0 : r;
}

static int check_copy(const struct part *part, const char *path, uint32_t expected, struct error *e)
{
	uint32_t sum;
	_cleanup_close_ int fd = open_folder(path, e);
	int r = fd < 0 ? fd : go_through(part, fd, -1, &sum, e);
	if (r == 0 && sum != expected) {
		r = error_set(e, EBADMSG, "%s: the copy was modified; remove it", path);
	}
	return r;
}

// Finds the folder of the copy and creates it if necessary. It is kept, because a job's environment
// may name it.
static int copy_part(const struct part *part, const char *folder, char **ret, struct error *e)
{
	uint32_t sum;
	_cleanup_close_ int source = open_folder(folder, e);
	int r = source < 0 ? source : go_through(part, source, -1, &sum, e);
	_cleanup_free_ char *cache = r < 0 ? NULL : cache_folder(e);
	if (!cache) {
		return r < 0 ? r : -ENOENT;
	}
	struct text path = {0};
	text_format(&path, "%s/%s-%08x", cache, part->copy, sum);
	_cleanup_free_ char *copy = text_steal(&path);
	if (!copy) {
		return error_set(e, ENOMEM, "out of memory");
	}
	if (access(copy, F_OK) < 0) {
		r = make_copy(part, source, copy, e);
	}
	if (r == 0) {
		r = check_copy(part, copy, sum, e);
	}
	if (r == 0) {
		r = trust_part(copy, true, e);
	}
	if (r == 0) {
		*ret = take_pointer(copy);
	}
	return r;
}

// Which one ---------------------------------------------------------------------------------------

// Programs that run the job in a container, with another view of files.
static bool is_container(char *const *command)
{
	static const char *const names[] = {"apptainer", "bwrap", "ch-run", "docker", "enroot",
		"nerdctl", "podman", "podman-hpc", "sarus", "shifter", "singularity", "udocker"};
	for (; command && *command; command++) {
		const char *slash = strrchr(*command, '/');
		for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
			if (strcmp(slash ? slash + 1 : *command, names[i]) == 0) {
				return true;
			}
		}
	}
	return false;
}

static char *join(const char *folder, const char *file)
{
	struct text path = {0};
	text_format(&path, "%s%s%s", folder, file ? "/" : "", file ? file : "");
	return text_steal(&path);
}

// Checks all files that Python reads in the folder: sources, and bytecode in subfolders.
static int trust_folder(const char *path, unsigned deeper, struct error *e)
{
	DIR *list = opendir(path);
	int r = list ? trust_part(path, true, e) : error_errno(e, errno, "%s", path);
	for (struct dirent *entry; r == 0 && (entry = readdir(list));) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
			continue;
		}
		_cleanup_free_ char *name = join(path, entry->d_name);
		bool folder = entry->d_type == DT_DIR && deeper > 0;
		r = !name    ? error_set(e, ENOMEM, "out of memory")
		    : folder ? trust_folder(name, deeper - 1, e)
		             : trust_part(name, true, e);
	}
	if (list) {
		closedir(list);
	}
	return r;
}

static int find_part(const struct part *part, char *const *command, char **ret, struct error *e)
{
	_cleanup_free_ char *found = installation_find(part->name, R_OK, e), *copy = NULL;
	struct error why = {0};
	if (!found) {
		return -ENOENT;
	}
	// Absolute, because the job may change its directory.
	_cleanup_free_ char *installed = realpath(found, NULL);
	if (!installed) {
		return error_errno(e, errno, "%s", found);
	}
	int safe = part->file ? trust_part(installed, true, e) : trust_folder(installed, 1, e);
	if (safe == 0 && !is_container(command)) {
		*ret = take_pointer(installed);
		return 0;
	}
	_cleanup_free_ char *folder = strdup(installed);
	char *slash = folder && part->file ? strrchr(folder, '/') : NULL;
	if (slash) {
		*slash = '\0';
	}
	int r = folder ? copy_part(part, folder, &copy, &why)
	               : error_set(&why, ENOMEM, "out of memory");
	if (r < 0 && safe == 0) {
		*ret = take_pointer(installed); // a container that can see it has it
		return 0;
	}
	if (r < 0) {
		// error_set() must not read what it writes.
		const struct error unsafe = e ? *e : (struct error){0};
		return error_set(e, -r, "%.230s; no copy: %.230s", unsafe.text, why.text);
	}
	*ret = join(copy, part->file);
	return *ret ? 0 : error_set(e, ENOMEM, "out of memory");
}

int injection_hooks(char *const *command, char **ret, struct error *e)
{
	return find_part(&hooks_part, command, ret, e);
}

int injection_nvtx(char *const *command, char **ret, struct error *e)
{
	const char *present = getenv(NVTX_VARIABLE);
	const char *slash = present ? strrchr(present, '/') : NULL;
	bool ours = present && strcmp(slash ? slash + 1 : present, nvtx_part.file) == 0;
	if (present && *present && !ours) {
		return error_set(
			e, EEXIST, "%s was set already, to %.200s", NVTX_VARIABLE, present);
	}
	return find_part(&nvtx_part, command, ret, e);
}

// The environment ---------------------------------------------------------------------------------

static void set(const char *variable, const char *value)
{
	value ? setenv(variable, value, 1) : unsetenv(variable);
}

// Appends the entries of a path except one.
static void append_others(struct text *to, const char *path, const char *without)
{
	for (const char *at = path; at && *path;) {
		size_t length = strcspn(at, ":");
		bool same = without && strlen(without) == length &&
		            memcmp(at, without, length) == 0;
		if (!same) {
			text_append_string(to, to->length > 0 ? ":" : "");
			text_append(to, at, length);
		}
		at = at[length] ? at + length + 1 : NULL;
	}
}

static void set_python_path(const char *hooks)
{
	const char *path = getenv("PYTHONPATH"), *outer = secure_getenv("STRAIN_HOOKS");
	_cleanup_text_ struct text result = {0};
	if (!hooks && (!path || !outer)) {
		return; // an empty entry is kept, too
	}
	text_append_string(&result, hooks ? hooks : "");
	append_others(&result, path ? path : "", outer);
	if (!result.failed) {
		set("PYTHONPATH", result.length > 0 ? result.data : NULL);
	}
}

void injection_enter(const char *markers, const char *hooks, const char *nvtx, const char *lines)
{
	set_python_path(hooks);
	set("STRAIN_HOOKS", hooks);
	set("STRAIN_MARKERS", markers);
	set("STRAIN_LINES", lines);
	if (nvtx) {
		set(NVTX_VARIABLE, nvtx);
	}
}
