// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Finds out whether probes can run over an overlay, and keeps its scratch folder.

#include "probe/overlay.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "machine/overlay.h"

// Files examined for their owner, in the order in which they are found.
#define EXAMINED_MOST 20000
#define MOUNTS_BYTES 200

// The scratch folder ------------------------------------------------------------------------------

static bool is_in_memory(const char *path)
{
	struct statfs found;
	return statfs(path, &found) == 0 &&
	       (found.f_type == TMPFS_MAGIC || found.f_type == RAMFS_MAGIC);
}

// Prefix of scratch folders in folders for temporary files. Only this user's are ever touched.
static void scratch_prefix(char *buffer, size_t size)
{
	snprintf(buffer, size, "strain-overlay-%u-", (unsigned)geteuid());
}

// Locks a scratch folder. False: it is not this user's, or it is in use.
static bool hold(int fd)
{
	struct stat status;
	return fd >= 0 && fstat(fd, &status) == 0 && status.st_uid == geteuid() &&
	       (status.st_mode & 0077) == 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
}

// Removes scratch folders of processes that were killed.
static void remove_abandoned(const char *path)
{
	char prefix[48];
	int parent = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = parent < 0 ? NULL : fdopendir(parent);
	scratch_prefix(prefix, sizeof(prefix));
	for (struct dirent *entry; list && (entry = readdir(list));) {
		if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0) {
			continue;
		}
		_cleanup_close_ int fd = beneath_open(
			parent, entry->d_name, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
		if (hold(fd)) {
			beneath_empty(fd);
			unlinkat(parent, entry->d_name, AT_REMOVEDIR);
		}
	}
	if (list) {
		closedir(list);
	} else if (parent >= 0) {
		close(parent);
	}
}

static int make_scratch(const char *parent, struct probe_overlay *o, struct error *e)
{
	char prefix[48];
	_cleanup_text_ struct text path = {0};
	remove_abandoned(parent);
	scratch_prefix(prefix, sizeof(prefix));
	text_format(&path, "%s/%sXXXXXX", parent, prefix);
	if (path.failed || !mkdtemp(path.data)) {
		return error_errno(e, path.failed ? ENOMEM : errno, "%s", parent);
	}
	_cleanup_close_ int fd = open(path.data, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (!hold(fd)) {
		return error_set(e, EBUSY, "cannot lock %s", path.data);
	}
	o->lock = take_fd(fd);
	o->scratch = text_steal(&path);
	return o->scratch ? 0 : error_set(e, ENOMEM, "out of memory");
}

static void remove_scratch(struct probe_overlay *o)
{
	if (o->scratch && o->lock >= 0) {
		beneath_empty(o->lock);
		beneath_remove(o->lock, o->scratch);
	}
	if (o->lock >= 0) {
		close(o->lock);
	}
	o->lock = -1;
	free(take_pointer(o->scratch));
}

// The root of an overlay has the mode and owner of its upper folder.
static int make_upper(const struct probe_overlay *o, struct error *e)
{
	struct stat status;
	if (stat(o->directory, &status) < 0) {
		return error_errno(e, errno, "%s", o->directory);
	}
	if (mkdirat(o->lock, OVERLAY_UPPER, 0700) < 0 || mkdirat(o->lock, OVERLAY_WORK, 0700) < 0) {
		return error_errno(e, errno, "%s", o->scratch);
	}
	(void)!fchownat(o->lock, OVERLAY_UPPER, status.st_uid, status.st_gid, 0);
	if (fchmodat(o->lock, OVERLAY_UPPER, status.st_mode & 07777, 0) < 0) {
		return error_errno(e, errno, "%s", o->scratch);
	}
	return 0;
}

int probe_overlay_begin(const struct probe_overlay *o, struct error *e)
{
	beneath_empty(o->lock);
	return make_upper(o, e);
}

void probe_overlay_end(const struct probe_overlay *o)
{
	beneath_empty(o->lock);
}

// Trial -------------------------------------------------------------------------------------------

// An overlay can be read-only although mounting it succeeded. A directory that the user may not
// write is no obstacle.
static int write_file(struct error *e)
{
	static const char name[] = ".strain-overlay";
	_cleanup_close_ int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 && errno != EACCES && errno != EEXIST) {
		return error_errno(e, errno, "cannot write to an overlay");
	}
	if (fd >= 0 && unlink(name) < 0) {
		return error_errno(e, errno, "cannot remove files of an overlay");
	}
	return 0;
}

struct outcome { // of the trial
	int result; // of overlay_enter
	struct error error;
};

static _Noreturn void try_overlay(const struct probe_overlay *o, int fd)
{
	struct outcome outcome = {0};
	const struct overlay overlay = {.directory = o->directory, .scratch = o->scratch};
	outcome.result = overlay_enter(&overlay, &outcome.error);
	int written = outcome.result < 0 ? 0 : write_file(&outcome.error);
	outcome.result = written < 0 ? written : outcome.result;
	(void)!write(fd, &outcome, sizeof(outcome));
	_exit(0);
}

// Mounts the overlay in a child. Returns 0, 1 if it took a user namespace, or -errno.
static int make_trial(const struct probe_overlay *o, struct error *e)
{
	struct outcome outcome;
	int fds[2];
	if (pipe2(fds, O_CLOEXEC) < 0) {
		return error_errno(e, errno, "pipe");
	}
	pid_t pid = fork();
	if (pid == 0) {
		try_overlay(o, fds[1]);
	}
	int code = errno;
	close(fds[1]);
	ssize_t n = pid < 0 ? 0 : read(fds[0], &outcome, sizeof(outcome));
	close(fds[0]);
	if (pid < 0) {
		return error_errno(e, code, "fork");
	}
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
	}
	if (n != (ssize_t)sizeof(outcome)) {
		return error_set(e, EIO, "the process that mounts an overlay ended early");
	}
	*e = outcome.error;
	return outcome.result;
}

// A user namespace knows only this user and its group: it cannot copy other files that the user may
// write. Returns -EPERM with the first of them.
static int check_owners(const char *directory, struct error *e)
{
	char *path = strdup(directory);
	char *const paths[] = {path, NULL};
	FTS *tree = path ? fts_open(paths, FTS_PHYSICAL | FTS_XDEV | FTS_NOCHDIR, NULL) : NULL;
	int r = 0;
	unsigned left = EXAMINED_MOST;
	for (FTSENT *entry; r == 0 && left > 0 && tree && (entry = fts_read(tree)); left--) {
		const struct stat *status = entry->fts_statp;
		bool file = entry->fts_info == FTS_F || entry->fts_info == FTS_D;
		bool foreign = file && (status->st_uid != geteuid() || status->st_gid != getegid());
		if (foreign && access(entry->fts_path, W_OK) == 0) {
			r = error_set(e, EPERM,
				"%s has another owner or group, which a user namespace cannot "
				"keep (run it in a copy, or chgrp)",
				entry->fts_path);
		}
	}
	if (tree) {
		fts_close(tree);
	}
	free(path);
	return r;
}

static int try_place(const char *parent, struct probe_overlay *o, struct error *e)
{
	if (is_in_memory(parent) && !is_in_memory(o->directory)) {
		return error_set(e, ENOTSUP,
			"%s is in memory: files of an overlay there would count as the job's "
			"memory",
			parent);
	}
	int r = make_scratch(parent, o, e);
	r = r < 0 ? r : make_upper(o, e);
	r = r < 0 ? r : make_trial(o, e);
	if (r == 1) {
		r = check_owners(o->directory, e);
	}
	if (r < 0) {
		remove_scratch(o);
	}
	return r < 0 ? r : 0;
}

// Returns a description, owned by the caller, or NULL.
static char *mounts_below(const char *directory)
{
	char mounts[MOUNTS_BYTES];
	return overlay_mounts_below(directory, mounts, sizeof(mounts)) > 0 ? strdup(mounts) : NULL;
}

int probe_overlay_find(const char *directory, const char *folder, const char *in_place,
	struct probe_overlay *ret, struct error *e)
{
	const char *temporary = secure_getenv("TMPDIR");
	const char *const parents[] = {
		folder, temporary && *temporary == '/' ? temporary : "/tmp", "/var/tmp"};
	struct error first = {0};
	*ret = PROBE_OVERLAY_NONE;
	ret->directory = realpath(directory ? directory : ".", NULL);
	if (!ret->directory) {
		return error_errno(e, errno, "%s", directory ? directory : "working directory");
	}
	if (!in_place && strcmp(ret->directory, "/") == 0) {
		in_place = "an overlay cannot replace /";
	}
	for (size_t i = 0; i < ARRAY_LENGTH(parents) && !in_place && !ret->scratch; i++) {
		struct error why = {0};
		if (try_place(parents[i], ret, &why) < 0 && i == 0) {
			first = why;
		}
	}
	if (!ret->scratch) {
		ret->in_place = strdup(in_place ? in_place : first.text);
		return ret->in_place ? 0 : error_set(e, ENOMEM, "out of memory");
	}
	ret->mounts = mounts_below(ret->directory);
	return 0;
}

char *probe_overlay_sentence(const struct probe_overlay *o)
{
	_cleanup_text_ struct text line = {0};
	if (o->in_place) {
		text_append_string(&line, "the job runs in place and may overwrite its checkpoints "
					  "and logs: ");
		text_append_printable(&line, o->in_place, strlen(o->in_place));
		return text_steal(&line);
	}
	text_append_string(&line, "the job runs over an overlay of ");
	text_append_printable(&line, o->directory, strlen(o->directory));
	text_append_string(&line, ": it can overwrite only files outside of it");
	if (o->mounts) {
		text_append_string(&line, " and in ");
		text_append_printable(&line, o->mounts, strlen(o->mounts));
	}
	return text_steal(&line);
}

void probe_overlay_done(struct probe_overlay *o)
{
	remove_scratch(o);
	free(o->directory);
	free(o->in_place);
	free(o->mounts);
	*o = PROBE_OVERLAY_NONE;
}
