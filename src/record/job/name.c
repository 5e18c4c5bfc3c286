// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The default name of a run file.

#include "record/job/name.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/command.h"
#include "base/text.h"
#include "runfile/index.h"
#include "runfile/labels.h"

void name_of_run(char *const *command, time_t start, char *buffer, size_t size)
{
	char name[80], date[32] = "";
	command_name(command, name, sizeof(name));
	struct tm local;
	if (localtime_r(&start, &local)) {
		strftime(date, sizeof(date), "-%Y%m%d-%H%M%S", &local);
	}
	const char *rank = NULL;
	for (size_t i = 0; labels_of_rank[i] && !rank; i++) {
		const char *value = getenv(labels_of_rank[i]);
		bool number = value && *value && strlen(value) < 10 &&
		              strspn(value, "0123456789") == strlen(value);
		rank = number ? value : NULL;
	}
	snprintf(buffer, size, "%s%s%s%s", name, date, rank ? "-rank" : "", rank ? rank : "");
}

void name_of_attached(pid_t pid, time_t start, char *buffer, size_t size)
{
	enum { LINE_BYTES = 4096, WORDS_MAX = 64 };
	char path[32], line[LINE_BYTES], *words[WORDS_MAX + 1] = {NULL};
	size_t n = 0;
	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
	char *end = line + (length > 0 ? length : 0);
	*end = '\0';
	for (char *at = line; at < end && n < WORDS_MAX; at += strlen(at) + 1) {
		words[n++] = at;
	}
	if (n == 0 || *words[0] == '\0') {
		snprintf(line, sizeof(line), "pid-%d", (int)pid);
		words[0] = line;
		words[1] = NULL;
	}
	name_of_run(words, start, buffer, size);
}

// Whether there is a file that SQLite would take for the run's. It belongs to another run, or is an
// attack by a user who predicted the name.
static bool has_something_beside(const char *path)
{
	static const char *const endings[] = {"-wal", "-shm", "-journal", "-reserve"};
	bool found = false;
	for (size_t i = 0; i < ARRAY_LENGTH(endings) && !found; i++) {
		_cleanup_text_ struct text name = {0};
		struct stat status;
		text_format(&name, "%s%s", path, endings[i]);
		found = name.failed || lstat(name.data, &status) == 0;
	}
	return found;
}

// Creates DIRECTORY/NAME[-N].strain. The file is empty and new, so that two runs started in one
// second do not share a name.
static int reserve_in(
	const char *directory, const char *name, char **ret_path, struct beneath_file *ret_file)
{
	for (unsigned attempt = 1; attempt < 10000; attempt++) {
		_cleanup_text_ struct text path = {0};
		bool here = strcmp(directory, ".") == 0;
		text_format(&path, "%s%s%s", here ? "" : directory, here ? "" : "/", name);
		if (attempt > 1) {
			text_format(&path, "-%u", attempt);
		}
		text_append_string(&path, ".strain");
		if (path.failed) {
			return -ENOMEM;
		}
		int fd = open(
			path.data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		const struct beneath_file made = beneath_file_of(fd);
		if (fd >= 0 && has_something_beside(path.data)) {
			close(fd);
			beneath_unlink(path.data, made, (const char *const[]){"", NULL});
			continue;
		}
		if (fd >= 0) {
			close(fd);
			*ret_file = made;
			*ret_path = text_steal(&path);
			return *ret_path ? 0 : -ENOMEM;
		}
		if (errno != EEXIST) {
			return -errno;
		}
	}
	return -EEXIST;
}

static void make_directories(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	mkdir(path, 0700);
}

int name_reserve(const char *name, char **ret_path, struct beneath_file *ret_file,
	char **ret_notice, struct error *e)
{
	const char *directory = places_usual();
	bool here = strcmp(directory, ".") == 0;
	*ret_notice = NULL;
	if (!here) {
		mkdir(directory, 0700);
	}
	int first = reserve_in(directory, name, ret_path, ret_file);
	if (first == 0) {
		return 0;
	}
	_cleanup_free_ char *state = places_fallback();
	const char *shown = here ? "the current directory" : directory;
	if (state) {
		make_directories(state);
	}
	int second = state ? reserve_in(state, name, ret_path, ret_file) : -ENOENT;
	if (second < 0) {
		return error_set(e, -first, "cannot write to %s (%s), nor to %s (%s)", shown,
			strerrordesc_np(-first), state ? state : "$XDG_STATE_HOME/strain",
			state ? strerrordesc_np(-second)
			      : "neither XDG_STATE_HOME nor HOME is an absolute path");
	}
	struct text notice = {0};
	text_format(&notice, "cannot write to %s (%s); recording to %s", shown,
		strerrordesc_np(-first), *ret_path);
	*ret_notice = text_steal(&notice);
	return 0;
}
