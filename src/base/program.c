// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Looking a command up.

#include "base/program.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

// 0 or the errno value that exec would give.
static int program_problem(const char *path)
{
	struct stat st;
	if (stat(path, &st) < 0) {
		return errno;
	}
	return !S_ISREG(st.st_mode) ? EACCES : access(path, X_OK) < 0 ? errno : 0;
}

// As a shell searches: the first that can run; "not executable" where one was found that cannot. In
// a directory that may not be entered nothing is found.
static int search_problem(const char *name, const char *path)
{
	int problem = ENOENT;
	for (const char *at = path ? path : "/bin:/usr/bin"; problem != 0;) {
		size_t length = strcspn(at, ":");
		_cleanup_text_ struct text candidate = {0};
		text_append(&candidate, length > 0 ? at : ".", length > 0 ? length : 1);
		text_format(&candidate, "/%s", name);
		struct stat st;
		bool there = !candidate.failed && stat(candidate.data, &st) == 0;
		int found = candidate.failed ? ENOMEM
		            : there          ? program_problem(candidate.data)
		                             : ENOENT;
		problem = found == 0 || found == EACCES ? found : problem;
		if (at[length] == '\0') {
			break;
		}
		at += length + 1;
	}
	return problem;
}

int program_check(const char *name, const char *path)
{
	return *name == '\0'       ? ENOENT
	       : strchr(name, '/') ? program_problem(name)
	                           : search_problem(name, path);
}
