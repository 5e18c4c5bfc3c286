// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The user's folder for data that can be recreated.

#include "base/cache_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/trust.h"

// A link is followed: users may keep caches elsewhere.
static int make(const char *path, struct error *e)
{
	if (mkdir(path, 0700) < 0 && errno != EEXIST) {
		return error_errno(e, errno, "%s", path);
	}
	return trust_way(path, e);
}

// Never creates anything in a folder of another user.
static int make_in_own(const char *path, struct error *e)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *parent = strndup(path, slash > path ? (size_t)(slash - path) : 1);
	int r = parent ? trust_way(parent, e) : error_set(e, ENOMEM, "out of memory");
	return r < 0 ? r : make(path, e);
}

static int check_own(const char *path, struct error *e)
{
	_cleanup_close_ int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? error_errno(e, errno, "%s", path) : trust_own(fd, path, e);
}

char *cache_folder(struct error *e)
{
	const char *cache = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
	_cleanup_text_ struct text path = {0};
	if (cache && cache[0] == '/') {
		text_append_string(&path, cache);
	} else if (home && home[0] == '/') {
		text_format(&path, "%s/.cache", home);
	} else {
		error_set(e, ENOENT, "neither XDG_CACHE_HOME nor HOME is set to a folder");
		return NULL;
	}
	if (path.failed || make_in_own(path.data, e) < 0) {
		return NULL;
	}
	text_append_string(&path, "/strain");
	if (path.failed || make(path.data, e) < 0 || check_own(path.data, e) < 0) {
		return NULL;
	}
	return text_steal(&path);
}
