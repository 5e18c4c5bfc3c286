// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Finds the files from which a job reads its data.

#include "probe/dataset.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/beneath.h"
#include "base/cleanup.h"
#include "base/parse.h"
#include "base/text.h"

// Page cache --------------------------------------------------------------------------------------
//
// How much of single files is in the page cache.

#define READ_BYTES ((size_t)1 << 20)
#define MINCORE_BYTES ((uint64_t)1 << 30) // mapped at once

#ifndef SYS_cachestat
#define SYS_cachestat 451 // the same number on all architectures
#endif

// The structs of cachestat(2), which older kernel headers do not have.
struct kernel_cachestat_range {
	uint64_t offset;
	uint64_t length; // 0: to the end of the file
};

struct kernel_cachestat {
	uint64_t cached, dirty, writeback, evicted, recently_evicted; // pages
};

static int mincore_window(int fd, uint64_t offset, size_t length, uint64_t *resident)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), n = (length + page - 1) / page;
	_cleanup_free_ unsigned char *in_core = malloc(n);
	void *at = in_core ? mmap(NULL, length, PROT_READ, MAP_SHARED, fd, (off_t)offset)
	                   : MAP_FAILED;
	if (at == MAP_FAILED) {
		return in_core ? -errno : -ENOMEM;
	}
	int result = mincore(at, length, in_core) < 0 ? -errno : 0;
	munmap(at, length);
	for (size_t i = 0; i < n && result == 0; i++) {
		*resident += (in_core[i] & 1) * page;
	}
	return result;
}

static int resident_by_mincore(int fd, uint64_t *ret_bytes)
{
	struct stat status;
	uint64_t resident = 0;
	if (fstat(fd, &status) < 0) {
		return -errno;
	}
	uint64_t size = (uint64_t)status.st_size;
	for (uint64_t at = 0; at < size; at += MINCORE_BYTES) {
		uint64_t length = size - at < MINCORE_BYTES ? size - at : MINCORE_BYTES;
		int result = mincore_window(fd, at, (size_t)length, &resident);
		if (result < 0) {
			return result;
		}
	}
	*ret_bytes = resident;
	return 0;
}

// Sets *ret_bytes to the part of an open file that is in the page cache, in whole pages. Uses
// cachestat(2) (Linux 6.5), else mincore(2), which only works for files that the caller owns or may
// write. Returns 0 or -errno.
static int page_cache_resident(int fd, uint64_t *ret_bytes)
{
	struct kernel_cachestat_range all = {0};
	struct kernel_cachestat cache;
	if (syscall(SYS_cachestat, fd, &all, &cache, 0) == 0) {
		*ret_bytes = cache.cached * (uint64_t)sysconf(_SC_PAGESIZE);
		return 0;
	}
	return errno == ENOSYS || errno == EPERM || errno == EOPNOTSUPP
	               ? resident_by_mincore(fd, ret_bytes)
	               : -errno;
}

int dataset_fill_page_cache(int fd)
{
	_cleanup_free_ char *buffer = malloc(READ_BYTES);
	if (!buffer) {
		return -ENOMEM;
	}
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	for (off_t at = 0;;) {
		ssize_t n = pread(fd, buffer, READ_BYTES, at);
		if (n <= 0) {
			return n < 0 ? -errno : 0;
		}
		at += n;
	}
}

// Asks the kernel to drop the file from the page cache (posix_fadvise(2), POSIX_FADV_DONTNEED).
// Dirty or mapped pages, and files in memory, stay: check with page_cache_resident. Returns 0 or
// -errno.
static int page_cache_drop(int fd)
{
	return -posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

// Dataset -----------------------------------------------------------------------------------------

// This many files of a kind from one folder count as a sample of it.
#define OF_A_KIND 4
// Limit on a list left by a process; a longer one means that the job opens files endlessly.
#define LIST_BYTES_MAX ((off_t)64 << 20)
#define LISTS_MAX 4096
#define ASKED_MAX 1000 // files checked for their share in the page cache, as a sample of all

// Folders of the system and of programs, which do not contain data.
static const char *const system_folders[] = {
	"/bin/",
	"/boot/",
	"/dev/",
	"/etc/",
	"/lib/",
	"/lib32/",
	"/lib64/",
	"/proc/",
	"/run/",
	"/sbin/",
	"/sys/",
	"/usr/bin/",
	"/usr/include/",
	"/usr/lib/",
	"/usr/lib32/",
	"/usr/lib64/",
	"/usr/libexec/",
	"/usr/sbin/",
	"/usr/share/",
	"/var/lib/",
};
static const char *const program_folders[] = {
	"/site-packages/",
	"/dist-packages/",
	"/__pycache__/",
	"/.git/",
};
static const char *const program_endings[] = {
	".py",
	".pyc",
	".pyi",
	".pyd",
	".so",
	".pth",
	".egg",
	".whl",
	".toml",
	".cfg",
	".ini",
	".yaml",
	".yml",
	".log",
	".strain",
	".strain-wal",
	".strain-shm",
};

static const char *ending_of(const char *path)
{
	const char *name = strrchr(path, '/');
	name = name ? name + 1 : path;
	const char *dot = strrchr(name, '.');
	return dot && dot != name ? dot : "";
}

static int open_file(const char *path)
{
	return open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

static bool is_program(const char *path)
{
	for (size_t i = 0; i < ARRAY_LENGTH(system_folders); i++) {
		if (strncmp(path, system_folders[i], strlen(system_folders[i])) == 0) {
			return true;
		}
	}
	for (size_t i = 0; i < ARRAY_LENGTH(program_folders); i++) {
		if (strstr(path, program_folders[i])) {
			return true;
		}
	}
	for (size_t i = 0; i < ARRAY_LENGTH(program_endings); i++) {
		if (strcmp(ending_of(path), program_endings[i]) == 0) {
			return true;
		}
	}
	return strstr(path, ".so.") != NULL;
}

// Whether the file is an executable script: its interpreter keeps it open.
static bool is_script(const char *path, const struct stat *status)
{
	char start[2];
	_cleanup_close_ int fd = status->st_mode & 0111 ? open_file(path) : -1;
	return fd >= 0 && pread(fd, start, sizeof(start), 0) == sizeof(start) && start[0] == '#' &&
	       start[1] == '!';
}

static int add(struct dataset *d, const char *path)
{
	void *paths = d->paths;
	if (d->n >= DATASET_FILES_MAX) {
		d->too_many = true;
		return 0;
	}
	char *copy = strdup(path);
	if (!copy || array_reserve(&paths, &d->capacity, d->n + 1, sizeof(*d->paths)) < 0) {
		free(copy);
		return -ENOMEM;
	}
	d->paths = paths;
	d->paths[d->n++] = copy;
	return 0;
}

int dataset_note(struct dataset *d, const char *path)
{
	struct stat status;
	if (path[0] != '/' || strlen(path) >= PATH_MAX || is_program(path) ||
		stat(path, &status) < 0 || !S_ISREG(status.st_mode) || status.st_size == 0 ||
		is_script(path, &status)) {
		return 0;
	}
	return add(d, path);
}

// Whether a descriptor of a process is open for reading only, from the octal flags in its fdinfo.
static bool is_read_only(int proc, const char *number)
{
	char name[32], text[256];
	snprintf(name, sizeof(name), "fdinfo/%.16s", number);
	_cleanup_close_ int fd = openat(proc, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	const char *flags = strstr(text, "flags:");
	return flags && (strtoul(flags + strlen("flags:"), NULL, 8) & O_ACCMODE) == O_RDONLY;
}

int dataset_note_process(struct dataset *d, pid_t pid)
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	_cleanup_close_ int proc = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int list = proc < 0 ? -1 : openat(proc, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *descriptors = list < 0 ? NULL : fdopendir(list);
	int result = 0;
	for (struct dirent *entry; descriptors && result == 0 && (entry = readdir(descriptors));) {
		ssize_t n = readlinkat(list, entry->d_name, path, sizeof(path) - 1);
		if (n > 0 && path[0] == '/' && is_read_only(proc, entry->d_name)) {
			path[n] = '\0';
			result = dataset_note(d, path);
		}
	}
	if (descriptors) {
		closedir(descriptors);
	} else if (list >= 0) {
		close(list);
	}
	return result;
}

// Opens a list in a folder that the job can write. NULL: not a regular file, as the job may have
// replaced it.
static FILE *open_list(int folder, const char *name)
{
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat status;
	bool regular = fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
	FILE *list = regular ? fdopen(fd, "re") : NULL;
	if (!list && fd >= 0) {
		close(fd);
	}
	return list;
}

static int note_list(struct dataset *d, int folder, const char *name)
{
	_cleanup_fclose_ FILE *list = open_list(folder, name);
	_cleanup_free_ char *path = NULL;
	size_t size = 0;
	off_t bytes = 0;
	for (ssize_t n;
		list && bytes < LIST_BYTES_MAX && (n = getdelim(&path, &size, '\0', list)) > 0;) {
		bytes += n;
		// the last path, cut off
		int result = path[n - 1] == '\0' ? dataset_note(d, path) : 0;
		if (result < 0) {
			return result;
		}
	}
	return 0;
}

int dataset_note_lists(struct dataset *d, const char *folder, struct error *e)
{
	DIR *lists = opendir(folder);
	int result = lists ? 0 : error_errno(e, errno, "%s", folder);
	unsigned n = 0;
	for (struct dirent *entry; lists && result == 0 && (entry = readdir(lists));) {
		if (strncmp(entry->d_name, "opened-", strlen("opened-")) == 0 && n++ < LISTS_MAX) {
			result = note_list(d, dirfd(lists), entry->d_name);
		}
	}
	if (lists) {
		closedir(lists);
	}
	return result;
}

// Folders with a sample of their files ------------------------------------------------------------

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort_once(struct dataset *d)
{
	size_t kept = 0;
	if (d->n > 0) {
		qsort(d->paths, d->n, sizeof(*d->paths), by_name);
	}
	for (size_t i = 0; i < d->n; i++) {
		if (kept > 0 && strcmp(d->paths[kept - 1], d->paths[i]) == 0) {
			free(d->paths[i]);
		} else {
			d->paths[kept++] = d->paths[i];
		}
	}
	d->n = kept;
}

// Length of the path of the folder `up` levels above the file; 0 if that is the root.
static size_t folder_length(const char *path, unsigned up)
{
	size_t length = strlen(path);
	for (unsigned i = 0; i < up; i++) {
		while (length > 0 && path[--length] != '/') {
		}
	}
	return length;
}

// "FOLDER/*ENDING" of a noted file; NULL: there is none, or out of memory.
static char *kind_of(const char *path, unsigned up)
{
	struct text kind = {0};
	size_t length = folder_length(path, up);
	if (length == 0) {
		return NULL;
	}
	text_append(&kind, path, length);
	text_format(&kind, "/*%s", ending_of(path));
	return text_steal(&kind);
}

// Adds the files with this ending in the folders `down` levels below `folder` (0: in `folder`
// itself).
static int add_folder(struct dataset *d, const char *folder, const char *ending, unsigned down)
{
	DIR *files = opendir(folder);
	int result = 0;
	for (struct dirent *entry; files && result == 0 && (entry = readdir(files));) {
		_cleanup_text_ struct text path = {0};
		text_format(&path, "%s/%s", folder, entry->d_name);
		if (path.failed) {
			result = -ENOMEM;
		} else if (down > 0) {
			bool into = entry->d_name[0] != '.' &&
			            (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN);
			result = into ? add_folder(d, path.data, ending, down - 1) : 0;
		} else if (entry->d_type == DT_REG && !d->too_many &&
			   strcmp(ending_of(path.data), ending) == 0) {
			result = add(d, path.data);
		}
	}
	if (files) {
		closedir(files);
	}
	return result;
}

// The sorted list of "FOLDER/*ENDING" for each file of the sample, where FOLDER is `up` levels
// above.
static int kinds_of(const struct dataset *sample, unsigned up, struct dataset *ret)
{
	int result = 0;
	for (size_t i = 0; i < sample->n && result == 0; i++) {
		_cleanup_free_ char *kind = kind_of(sample->paths[i], up);
		result = kind ? add(ret, kind) : 0;
	}
	if (ret->n > 0) {
		qsort(ret->paths, ret->n, sizeof(*ret->paths), by_name);
	}
	return result;
}

// For each kind with enough files, adds all files of that kind, `down` levels below its folder.
static int add_kinds(struct dataset *d, const struct dataset *kinds, unsigned down)
{
	int result = 0;
	for (size_t i = 0, next; i < kinds->n && result == 0; i = next) {
		for (next = i + 1;
			next < kinds->n && strcmp(kinds->paths[i], kinds->paths[next]) == 0;
			next++) {
		}
		const char *star = strrchr(kinds->paths[i], '*');
		if (next - i >= OF_A_KIND) {
			_cleanup_free_ char *folder = strndup(
				kinds->paths[i], (size_t)(star - 1 - kinds->paths[i]));
			result = folder ? add_folder(d, folder, star + 1, down) : -ENOMEM;
		}
	}
	return result;
}

// Adds the other files of the same kind in a folder. If there is a folder for each class, also
// those in the other folders of the same parent.
static int add_siblings(struct dataset *d)
{
	struct dataset kinds = {0}, classes = {0};
	int result = kinds_of(d, 1, &kinds);
	result = result < 0 ? result : add_kinds(d, &kinds, 0);
	sort_once(&kinds);
	result = result < 0 ? result : kinds_of(&kinds, 2, &classes);
	result = result < 0 ? result : add_kinds(d, &classes, 1);
	dataset_done(&kinds);
	dataset_done(&classes);
	return result;
}

// The identity of a file, and the index of one of its paths.
struct identity {
	dev_t device;
	ino_t inode;
	uint64_t bytes;
	size_t path;
};

static int by_identity(const void *left, const void *right)
{
	const struct identity *a = left, *b = right;
	if (a->device != b->device) {
		return a->device < b->device ? -1 : 1;
	}
	if (a->inode != b->inode) {
		return a->inode < b->inode ? -1 : 1;
	}
	return (a->path > b->path) - (a->path < b->path);
}

// Sums up the sizes. Of a file with several paths (a link to its folder, a hard link), one is kept,
// by device and inode. Files that no longer exist are removed.
static int measure(struct dataset *d)
{
	_cleanup_free_ struct identity *files = calloc(d->n + 1, sizeof(*files));
	_cleanup_free_ bool *keep = calloc(d->n + 1, sizeof(*keep));
	size_t n = 0, kept = 0;
	if (!files || !keep) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < d->n; i++) {
		struct stat status;
		if (stat(d->paths[i], &status) == 0) {
			files[n++] = (struct identity){
				status.st_dev, status.st_ino, (uint64_t)status.st_size, i};
		}
	}
	qsort(files, n, sizeof(*files), by_identity);
	d->bytes = 0;
	for (size_t i = 0; i < n; i++) {
		if (i == 0 || files[i].device != files[i - 1].device ||
			files[i].inode != files[i - 1].inode) {
			keep[files[i].path] = true;
			d->bytes += files[i].bytes;
		}
	}
	for (size_t i = 0; i < d->n; i++) {
		if (keep[i]) {
			d->paths[kept++] = d->paths[i];
		} else {
			free(d->paths[i]);
		}
	}
	d->n = kept;
	return 0;
}

int dataset_settle(struct dataset *d, struct error *e)
{
	sort_once(d);
	int result = add_siblings(d);
	sort_once(d);
	result = result < 0 ? result : measure(d);
	return result < 0 ? error_set(e, ENOMEM, "the dataset's files: out of memory") : 0;
}

void dataset_done(struct dataset *d)
{
	for (size_t i = 0; i < d->n; i++) {
		free(d->paths[i]);
	}
	free(d->paths);
	*d = (struct dataset){0};
}

// The page cache ----------------------------------------------------------------------------------

double dataset_cached(const struct dataset *d)
{
	uint64_t bytes = 0, cached = 0;
	size_t step = d->n / ASKED_MAX + 1;
	for (size_t i = 0; i < d->n; i += step) {
		_cleanup_close_ int fd = open_file(d->paths[i]);
		struct stat status;
		uint64_t resident = 0;
		if (fd >= 0 && fstat(fd, &status) == 0 && page_cache_resident(fd, &resident) == 0) {
			uint64_t size = (uint64_t)status.st_size;
			bytes += size;
			cached += resident < size ? resident : size; // `resident` is in whole pages
		}
	}
	return bytes > 0 ? (double)cached / (double)bytes : NAN;
}

int dataset_warm(const struct dataset *d, uint64_t room_bytes, bool (*goes_on)(void *context),
	void *context, struct error *e)
{
	if (d->bytes > room_bytes) {
		char bytes[32], room[32];
		return error_set(e, ENOSPC,
			"the dataset does not fit into the page cache: it has %s, but only %s are "
			"free",
			text_bytes(bytes, sizeof(bytes), (double)d->bytes),
			text_bytes(room, sizeof(room), (double)room_bytes));
	}
	for (size_t i = 0; i < d->n; i++) {
		_cleanup_close_ int fd = open_file(d->paths[i]);
		if (!goes_on(context)) {
			return error_set(e, EINTR, "interrupted");
		}
		int result = fd < 0 ? 0 : dataset_fill_page_cache(fd);
		if (result < 0) {
			return error_errno(e, -result, "%s", d->paths[i]);
		}
	}
	return 0;
}

int dataset_cool(const struct dataset *d, struct error *e)
{
	dev_t synced = 0;
	for (size_t i = 0; i < d->n; i++) {
		_cleanup_close_ int fd = open_file(d->paths[i]);
		struct stat status;
		if (fd < 0 || fstat(fd, &status) < 0) {
			continue;
		}
		if (status.st_dev != synced && syncfs(fd) == 0) {
			synced = status.st_dev; // dirty pages cannot be dropped
		}
		int result = page_cache_drop(fd);
		if (result < 0) {
			return error_errno(
				e, -result, "cannot drop %s from the page cache", d->paths[i]);
		}
	}
	return 0;
}

// Finding -----------------------------------------------------------------------------------------

int dataset_find_begin(
	const char *parent, struct dataset *dataset, struct dataset_finder *ret, struct error *e)
{
	_cleanup_text_ struct text folder = {0}, setting = {0};
	*ret = (struct dataset_finder){.dataset = dataset, .fd = -1};
	text_format(&folder, "%s/strain-opened-XXXXXX", parent);
	if (folder.failed) {
		return error_set(e, ENOMEM, "out of memory");
	}
	if (!mkdtemp(folder.data)) {
		return error_errno(e, errno, "cannot make a folder in %s", parent);
	}
	text_format(&setting, "STRAIN_OPENED=%s", folder.data);
	ret->fd = open(folder.data, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (ret->fd < 0 || setting.failed) {
		int code = ret->fd < 0 ? errno : ENOMEM;
		rmdir(folder.data);
		return error_errno(e, code, "%s", folder.data);
	}
	ret->folder = text_steal(&folder);
	ret->setting = text_steal(&setting);
	return 0;
}

void dataset_find_look(void *finder, const pid_t *pids, size_t n)
{
	struct dataset_finder *f = finder;
	for (size_t i = 0; i < n; i++) {
		dataset_note_process(f->dataset, pids[i]);
	}
}

int dataset_find_end(struct dataset_finder *f, struct error *e)
{
	int result = dataset_note_lists(f->dataset, f->folder, e);
	return result < 0 ? result : dataset_settle(f->dataset, e);
}

void dataset_find_done(struct dataset_finder *f)
{
	if (f->fd >= 0) {
		beneath_empty(f->fd);
		beneath_remove(f->fd, f->folder);
		close(f->fd);
	}
	free(f->folder);
	free(f->setting);
	*f = (struct dataset_finder){.fd = -1};
}
