// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Mounts an overlay in namespaces of the calling process.

#include "machine/overlay.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "machine/file.h"

enum { BELOW_MOST = 64 };

// Mounts below the directory ----------------------------------------------------------------------

struct below {
	char *paths[BELOW_MOST + OVERLAY_KEPT]; // owned
	int trees[BELOW_MOST + OVERLAY_KEPT]; // detached copies of what is mounted there; or -1
	size_t n;
};

static void below_done(struct below *b)
{
	for (size_t i = 0; i < b->n; i++) {
		free(b->paths[i]);
		if (b->trees[i] >= 0) {
			close(b->trees[i]);
		}
	}
	b->n = 0;
}

static bool is_below(const char *path, const char *directory)
{
	size_t length = strlen(directory);
	return strncmp(path, directory, length) == 0 && path[length] == '/';
}

// Whether one of the paths is this one, or is above it.
static bool covers(const struct below *b, const char *path)
{
	for (size_t i = 0; i < b->n; i++) {
		if (strcmp(b->paths[i], path) == 0 || is_below(path, b->paths[i])) {
			return true;
		}
	}
	return false;
}

// The mount point in a line of mountinfo; NULL: none, or out of memory.
static char *mount_point(struct cursor line)
{
	struct cursor point;
	return cursor_skip_fields(&line, 4) && cursor_word(&line, &point) ? file_unescape(point)
	                                                                  : NULL;
}

static int by_length(const void *one, const void *other)
{
	size_t a = strlen(*(char *const *)one), b = strlen(*(char *const *)other);
	return (a > b) - (a < b);
}

// Finds the topmost mounts below the directory. What is mounted below them is part of them.
static int find_below(const char *directory, struct below *ret)
{
	struct host_file file = HOST_FILE_CLOSED;
	struct cursor text, line;
	struct below all = {.n = 0};
	int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = root_fd < 0 ? -errno : host_file_open(&file, root_fd, "proc/self/mountinfo", NULL);
	r = r < 0 ? r : host_file_read_to_end(&file, &text);
	while (r == 0 && cursor_line(&text, &line)) {
		char *point = mount_point(line);
		if (!point || !is_below(point, directory)) {
			free(point);
		} else if (all.n == BELOW_MOST) {
			free(point);
			r = -E2BIG;
		} else {
			all.trees[all.n] = -1;
			all.paths[all.n++] = point;
		}
	}
	host_file_close(&file);
	if (root_fd >= 0) {
		close(root_fd);
	}
	qsort(all.paths, all.n, sizeof(all.paths[0]), by_length);
	ret->n = 0;
	for (size_t i = 0; r == 0 && i < all.n; i++) {
		if (!covers(ret, all.paths[i])) {
			ret->trees[ret->n] = -1;
			ret->paths[ret->n++] = take_pointer(all.paths[i]);
		}
	}
	below_done(&all);
	return r;
}

int overlay_mounts_below(const char *directory, char *buffer, size_t size)
{
	struct below below = {.n = 0};
	size_t length = 0;
	int r = find_below(directory, &below);
	*buffer = '\0';
	for (size_t i = 0; r == 0 && i < below.n; i++) {
		int n = snprintf(
			buffer + length, size - length, "%s%s", i > 0 ? ", " : "", below.paths[i]);
		if ((size_t)n >= size - length) {
			snprintf(buffer + length, size - length, "%s", i > 0 ? ", ..." : "...");
			break;
		}
		length += (size_t)n;
	}
	r = r < 0 ? r : (int)below.n;
	below_done(&below);
	return r;
}

// Copies what is mounted below the directory, and the folders to keep, before the overlay hides
// them. A mount that this process may not enter, such as another user's FUSE mount, is left out:
// the job may not enter it either.
static int hold_below(const struct overlay *overlay, struct below *below, struct error *e)
{
	const unsigned all = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_NO_AUTOMOUNT;
	int r = find_below(overlay->directory, below);
	if (r < 0) {
		return error_errno(e, -r, "mounts below %s", overlay->directory);
	}
	for (size_t i = 0; i < OVERLAY_KEPT; i++) {
		if (overlay->kept[i] && is_below(overlay->kept[i], overlay->directory)) {
			char *path = strdup(overlay->kept[i]);
			if (!path) {
				return error_set(e, ENOMEM, "out of memory");
			}
			below->trees[below->n] = -1;
			below->paths[below->n++] = path;
		}
	}
	for (size_t i = 0; i < below->n; i++) {
		below->trees[i] = open_tree(AT_FDCWD, below->paths[i], all);
		if (below->trees[i] < 0 && errno != EACCES) {
			return error_errno(e, errno, "%s", below->paths[i]);
		}
	}
	return 0;
}

static int put_below(const struct below *below, struct error *e)
{
	for (size_t i = 0; i < below->n; i++) {
		if (below->trees[i] >= 0 && move_mount(below->trees[i], "", AT_FDCWD,
						    below->paths[i], MOVE_MOUNT_F_EMPTY_PATH) < 0) {
			return error_errno(e, errno, "%s", below->paths[i]);
		}
	}
	return 0;
}

// Namespaces --------------------------------------------------------------------------------------

static int write_map(const char *path, const char *line)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t length = (ssize_t)strlen(line);
	return fd < 0 ? -errno : write(fd, line, (size_t)length) == length ? 0 : -errno;
}

// Enters a user namespace with the same user and group. A group can be mapped without privileges
// only if the process gives up changing its groups (user_namespaces(7)).
static int enter_user_namespace(struct error *e)
{
	char user[48], group[48];
	const unsigned uid = geteuid(), gid = getegid();
	snprintf(user, sizeof(user), "%u %u 1", uid, uid);
	snprintf(group, sizeof(group), "%u %u 1", gid, gid);
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0) {
		if (errno == ENOSPC) {
			return error_set(e, ENOSPC,
				"no user namespace: the limit user.max_user_namespaces is reached");
		}
		return error_errno(e, errno, "no user namespace");
	}
	int r = write_map("/proc/self/setgroups", "deny");
	r = r < 0 ? r : write_map("/proc/self/uid_map", user);
	r = r < 0 ? r : write_map("/proc/self/gid_map", group);
	return r < 0 ? error_errno(e, -r, "cannot keep the user in a user namespace") : 0;
}

// A mount namespace whose mounts are not seen elsewhere; mounts made elsewhere are seen here. Sets
// *ret_user if this took a user namespace.
static int enter_namespaces(bool *ret_user, struct error *e)
{
	*ret_user = unshare(CLONE_NEWNS) < 0;
	int r = *ret_user ? enter_user_namespace(e) : 0;
	if (r == 0 && mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0) {
		r = error_errno(e, errno, "cannot change mounts in a namespace");
	}
	return r;
}

// The overlay -------------------------------------------------------------------------------------

// The folders are named by descriptor: the kernel's options would need an escape for commas and
// colons in paths. Only a privileged mount can follow renamed folders (redirect_dir); another one
// keeps its marks in attributes that users may set (userxattr).
static int mount_overlay(const struct overlay *overlay, bool user, struct error *e)
{
	char options[192];
	_cleanup_close_ int lower = open(overlay->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_close_ int scratch = open(overlay->scratch, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (lower < 0 || scratch < 0) {
		return error_errno(
			e, errno, "%s", lower < 0 ? overlay->directory : overlay->scratch);
	}
	snprintf(options, sizeof(options),
		"lowerdir=/proc/self/fd/%d,upperdir=/proc/self/fd/%d/" OVERLAY_UPPER
		",workdir=/proc/self/fd/%d/" OVERLAY_WORK ",index=off,metacopy=off,%s",
		lower, scratch, scratch, user ? "userxattr" : "redirect_dir=on");
	if (mount("strain", overlay->directory, "overlay", 0, options) < 0) {
		return error_errno(
			e, errno, "cannot mount an overlay with its files in %s", overlay->scratch);
	}
	return 0;
}

int overlay_enter(const struct overlay *overlay, struct error *e)
{
	struct below below = {.n = 0};
	bool user;
	int r = enter_namespaces(&user, e);
	r = r < 0 ? r : hold_below(overlay, &below, e);
	r = r < 0 ? r : mount_overlay(overlay, user, e);
	r = r < 0 ? r : put_below(&below, e);
	if (r == 0 && chdir(overlay->directory) < 0) {
		r = error_errno(e, errno, "%s", overlay->directory);
	}
	below_done(&below);
	return r < 0 ? r : user;
}
