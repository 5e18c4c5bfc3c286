// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Files beside a database.

#include "trace/beside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"

const char *const beside_suffixes[BESIDE_N] = {"-wal", "-shm", "-journal"};

static const char journal_suffix[] = "-journal";

// By the names in /proc, which lead to the open files: another thread may be closing a descriptor
// that is looked at here.
bool beside_is_open(const struct stat *file, int but)
{
	DIR *folder = opendir("/proc/self/fd");
	bool found = !folder; // nobody can tell
	for (struct dirent *entry; folder && !found && (entry = readdir(folder));) {
		int64_t fd;
		struct stat other;
		found = parse_integer(entry->d_name, 0, INT32_MAX, &fd, NULL) == 0 && fd != but &&
		        fstatat(dirfd(folder), entry->d_name, &other, 0) == 0 &&
		        other.st_dev == file->st_dev && other.st_ino == file->st_ino;
	}
	if (folder) {
		closedir(folder);
	}
	return found;
}

bool beside_is_shared_journal(int fd)
{
	static const unsigned char magic[] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
	unsigned char end[sizeof(magic)];
	struct stat status;
	return fstat(fd, &status) == 0 && status.st_size >= 2 * (off_t)sizeof(end) &&
	       pread(fd, end, sizeof(end), status.st_size - (off_t)sizeof(end)) ==
	               (ssize_t)sizeof(end) &&
	       memcmp(end, magic, sizeof(magic)) == 0;
}

static int check_status(
	const char *name, const struct stat *status, const struct stat *file, struct error *e)
{
	if (!S_ISREG(status->st_mode)) {
		return error_set(
			e, EPERM, "%s: expected a file of SQLite's, found no regular file", name);
	}
	if (status->st_uid != file->st_uid) {
		return error_set(e, EPERM, "%s: belongs to user %u, not to %u as the run does",
			name, (unsigned)status->st_uid, (unsigned)file->st_uid);
	}
	if (status->st_nlink != 1) {
		return error_set(e, EPERM, "%s: has another name besides", name);
	}
	return 0;
}

static int check_journal(const char *name, struct error *e)
{
	_cleanup_close_ int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	return fd >= 0 && beside_is_shared_journal(fd)
	               ? error_set(e, EPROTO, "%s: names another file, which no run's journal does",
				 name)
	               : 0;
}

// must_be_open: where it is there, SQLite has it open.
static int check_all(const char *path, const struct stat *file, bool must_be_open, struct error *e)
{
	// SQLite follows links, and looks beside the file that they lead to.
	_cleanup_free_ char *real = realpath(path, NULL);
	for (size_t i = 0; i < BESIDE_N; i++) {
		_cleanup_free_ char *name = NULL;
		struct stat status;
		if (asprintf(&name, "%s%s", real ? real : path, beside_suffixes[i]) < 0) {
			return error_errno(e, ENOMEM, "%s", path);
		}
		if (lstat(name, &status) < 0) {
			if (errno == ENOENT) {
				continue;
			}
			return error_errno(e, errno, "%s", name);
		}
		bool is_journal = strcmp(beside_suffixes[i], journal_suffix) == 0;
		int r = check_status(name, &status, file, e);
		if (r == 0 && is_journal && !must_be_open) {
			r = check_journal(name, e);
		}
		if (r == 0 && !is_journal && must_be_open && !beside_is_open(&status, -1)) {
			r = error_set(e, ESTALE, "%s: was replaced while it was opened", name);
		}
		if (r < 0) {
			return r;
		}
	}
	return 0;
}

int beside_check(const char *path, const struct stat *file, struct error *e)
{
	return check_all(path, file, false, e);
}

int beside_check_open(const char *path, const struct stat *file, struct error *e)
{
	return check_all(path, file, true, e);
}

static char *journal_of(const char *path)
{
	_cleanup_free_ char *real = realpath(path, NULL);
	char *name = NULL;
	return asprintf(&name, "%s%s", real ? real : path, journal_suffix) < 0 ? NULL : name;
}

int beside_claim_journal(const char *path, const struct stat *file, struct error *e)
{
	_cleanup_free_ char *name = journal_of(path);
	struct stat status;
	if (!name) {
		return error_errno(e, ENOMEM, "%s", path);
	}
	_cleanup_close_ int fd = open(
		name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0) {
		return 0;
	}
	if (errno != EEXIST || lstat(name, &status) < 0) {
		return error_errno(e, errno, "%s", name);
	}
	int r = check_status(name, &status, file, e);
	return r < 0 ? r : check_journal(name, e);
}

void beside_release_journal(const char *path)
{
	_cleanup_free_ char *name = journal_of(path);
	struct stat status;
	if (name && lstat(name, &status) == 0 && S_ISREG(status.st_mode) && status.st_size == 0 &&
		status.st_uid == geteuid()) {
		unlink(name);
	}
}
