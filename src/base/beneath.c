// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Folders by descriptor. unlinkat() and rmdir() act on a name, never on a file system mounted
// there. Opening and stat follow mounts; beneath_open and statx with cached results are used
// instead.

#include "base/beneath.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

enum {
	DEEPEST = 16,
	PASSES = 3, // over a folder to which files are being added
	ENTRIES_MOST = 1 << 20,
};

int beneath_open(int folder, const char *name, int flags)
{
	const struct open_how how = {
		.flags = (unsigned)flags | O_CLOEXEC | O_NOFOLLOW,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
	};
	long fd = syscall(SYS_openat2, folder, name, &how, sizeof(how));
	if (fd >= 0) {
		return (int)fd;
	}
	// System call filters that do not know this call return EPERM.
	if (errno == ENOSYS || errno == EPERM) {
		fd = openat(folder, name, flags | O_CLOEXEC | O_NOFOLLOW);
	}
	return fd >= 0 ? (int)fd : -errno;
}

// Emptying ----------------------------------------------------------------------------------------

struct emptying {
	unsigned left; // upper bound of entries still to be examined
	unsigned deeper; // upper bound of folder levels below this one
};

static bool empty_folder(struct emptying *e, int folder);

// Opens a folder to be emptied. Its owner may have made it unreadable or read-only, as the kernel
// does with the work folder of an overlay.
static int open_to_empty(int parent, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NONBLOCK;
	int folder = beneath_open(parent, name, flags);
	if (folder == -EACCES) {
		char path[32];
		_cleanup_close_ int handle = beneath_open(parent, name, O_PATH | O_DIRECTORY);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", handle);
		folder = handle >= 0 && chmod(path, 0700) == 0 ? beneath_open(parent, name, flags)
		                                               : folder;
	}
	if (folder >= 0) {
		(void)fchmod(folder, 0700);
	}
	return folder;
}

static bool remove_folder(struct emptying *e, int parent, const char *name)
{
	if (unlinkat(parent, name, AT_REMOVEDIR) == 0) {
		return true;
	}
	if ((errno != ENOTEMPTY && errno != EEXIST) || e->deeper == 0) {
		return false;
	}
	int folder = open_to_empty(parent, name);
	if (folder < 0) {
		return false;
	}
	e->deeper--;
	bool removed = empty_folder(e, folder);
	e->deeper++;
	return unlinkat(parent, name, AT_REMOVEDIR) == 0 || removed;
}

static bool remove_entry(struct emptying *e, int folder, const char *name)
{
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
		return false;
	}
	if (unlinkat(folder, name, 0) == 0) {
		return true;
	}
	return (errno == EISDIR || errno == EPERM) && remove_folder(e, folder, name);
}

// One pass over the folder. Closes the descriptor. Returns whether anything was removed.
static bool empty_once(struct emptying *e, int fd)
{
	DIR *list = fdopendir(fd);
	bool removed = false;
	if (!list) {
		close(fd);
		return false;
	}
	for (struct dirent *entry; e->left > 0 && (entry = readdir(list)); e->left--) {
		removed = remove_entry(e, fd, entry->d_name) || removed;
	}
	closedir(list);
	return removed;
}

// Takes ownership of the descriptor. Returns whether anything was removed.
static bool empty_folder(struct emptying *e, int folder)
{
	bool removed = false;
	for (int i = 0; i < PASSES; i++) {
		// A new descriptor has its own directory offset, whoever else reads the folder.
		int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0 || !empty_once(e, fd)) {
			break;
		}
		removed = true;
	}
	close(folder);
	return removed;
}

void beneath_empty(int folder)
{
	struct emptying e = {.left = ENTRIES_MOST, .deeper = DEEPEST};
	int own = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (own >= 0) {
		empty_folder(&e, own);
	}
}

// Whether a path names that folder, without a request to a file system that may hang.
static bool names_folder(const char *path, const struct stat *folder)
{
	struct statx found;
	return statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC,
		       STATX_INO, &found) == 0 &&
	       makedev(found.stx_dev_major, found.stx_dev_minor) == folder->st_dev &&
	       found.stx_ino == folder->st_ino;
}

void beneath_remove(int folder, const char *path)
{
	struct stat status;
	// Without a link, the folder was removed already and its name may belong to anyone.
	if (fstat(folder, &status) == 0 && status.st_nlink > 0 && names_folder(path, &status)) {
		rmdir(path);
	}
}

// Files -------------------------------------------------------------------------------------------

struct beneath_file beneath_file_of(int fd)
{
	struct stat status;
	return fd >= 0 && fstat(fd, &status) == 0
	               ? (struct beneath_file){status.st_dev, status.st_ino}
	               : (struct beneath_file){0, 0};
}

static int open_parent(const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *parent = slash ? strndup(path, (size_t)(slash - path + 1))
	                                    : strdup(".");
	*ret_name = slash ? slash + 1 : path;
	return parent ? open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
}

void beneath_unlink(const char *path, struct beneath_file file, const char *const *endings)
{
	const char *name;
	struct stat status;
	_cleanup_close_ int folder = open_parent(path, &name);
	if (folder < 0 || file.inode == 0 ||
		fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
		status.st_dev != file.device || status.st_ino != file.inode) {
		return;
	}
	for (; *endings; endings++) {
		_cleanup_text_ struct text ended = {0};
		text_format(&ended, "%s%s", name, *endings);
		if (!ended.failed) {
			unlinkat(folder, ended.data, 0);
		}
	}
}
