// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The hooks' way into the job's environment.

#include "record/hooks_copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/part.h"
#include "base/text.h"

static const char part[] = "hooks/python";
static const char folder_name[] = "python"; // in the marker directory

static int copy_file(int from, int to, const char *name, struct error *e)
{
	_cleanup_close_ int in = openat(from, name, O_RDONLY | O_CLOEXEC);
	struct stat status;
	if (in < 0 || fstat(in, &status) < 0) {
		return error_errno(e, errno, "%s", name);
	}
	_cleanup_close_ int out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (out < 0) {
		return error_errno(e, errno, "%s", name);
	}
	while (status.st_size > 0) {
		ssize_t n = sendfile(out, in, NULL, (size_t)status.st_size);
		if (n <= 0) {
			return error_errno(e, n < 0 ? errno : EIO, "%s", name);
		}
		status.st_size -= n;
	}
	return 0;
}

static bool is_source(const char *name)
{
	size_t length = strlen(name);
	return length > 3 && strcmp(name + length - 3, ".py") == 0;
}

static int copy_sources(DIR *from, const char *folder, struct error *e)
{
	_cleanup_close_ int to = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = to < 0 ? error_errno(e, errno, "%s", folder) : 0;
	for (struct dirent *entry; r == 0 && (entry = readdir(from));) {
		r = is_source(entry->d_name) ? copy_file(dirfd(from), to, entry->d_name, e) : 0;
	}
	return r;
}

int hooks_copy(const char *directory, char **ret, struct error *e)
{
	_cleanup_free_ char *source = part_find(part, R_OK | X_OK, e);
	struct text folder = {0};
	text_format(&folder, "%s/%s", directory, folder_name);
	_cleanup_free_ char *path = text_steal(&folder);
	if (!source) {
		return -ENOENT;
	}
	if (!path) {
		return error_set(e, ENOMEM, "out of memory");
	}
	if (mkdir(path, 0700) < 0) {
		return error_errno(e, errno, "%s", path);
	}
	DIR *from = opendir(source);
	int r = from ? copy_sources(from, path, e) : error_errno(e, errno, "%s", source);
	if (from) {
		closedir(from);
	}
	if (r == 0) {
		*ret = take_pointer(path);
	}
	return r;
}

// Appends the entries of a path but one.
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

void hooks_set_path(const char *folder)
{
	const char *path = getenv("PYTHONPATH"), *outer = getenv("STRAIN_MARKERS");
	_cleanup_text_ struct text outer_folder = {0}, result = {0};
	if (!folder && (!path || !outer)) {
		return;
	}
	if (outer) {
		text_format(&outer_folder, "%s/%s", outer, folder_name);
	}
	text_append_string(&result, folder ? folder : "");
	append_others(&result, path ? path : "", outer_folder.data);
	if (!result.failed && !outer_folder.failed) {
		result.length > 0 ? setenv("PYTHONPATH", result.data, 1) : unsetenv("PYTHONPATH");
	}
}
