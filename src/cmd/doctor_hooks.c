// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Whether training jobs will mark themselves. Nothing is run or imported for it, which would take
// seconds: PyTorch is looked for where the Python of PATH has its packages. A job can use another.

#include "cmd/doctor_checks.h"

#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "record/host/file.h"
#include "record/job/injection.h"

enum { PYTHONS_MAX = 8 };

// "__version__ = '1.13.0'"
static bool read_version(const char *path, char *version, size_t size)
{
	char buffer[4096];
	struct cursor text, line;
	static const char name[] = "__version__ = '";
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || host_pread(fd, buffer, sizeof(buffer), &text) < 0) {
		return false;
	}
	while (cursor_line(&text, &line)) {
		size_t length = (size_t)(line.end - line.at), skip = strlen(name);
		if (length > skip && strncmp(line.at, name, skip) == 0) {
			const char *end = memchr(line.at + skip, '\'', length - skip);
			snprintf(version, size, "%.*s",
				end ? (int)(end - line.at - (ptrdiff_t)skip) : 0, line.at + skip);
			return end != NULL;
		}
	}
	return false;
}

// Looks below a prefix (/usr for /usr/bin/python3) as Python itself and Debian lay packages out.
static bool find_torch(const char *prefix, char *version, size_t size)
{
	static const char *const places[] = {"lib/python3*/site-packages",
		"lib/python3*/dist-packages", "lib64/python3*/site-packages"};
	bool found = false;
	for (size_t i = 0; i < ARRAY_LENGTH(places) && !found; i++) {
		char pattern[PATH_MAX + 64];
		glob_t matches;
		snprintf(pattern, sizeof(pattern), "%s/%s/torch/version.py", prefix, places[i]);
		if (glob(pattern, 0, NULL, &matches) == 0) {
			for (size_t k = 0; k < matches.gl_pathc && !found; k++) {
				found = read_version(matches.gl_pathv[k], version, size);
			}
			globfree(&matches);
		}
	}
	return found;
}

// Each python3 of PATH, a few at most: `python` is the first beside which PyTorch lies.
static bool search_path(char *python, size_t size, char *version, size_t version_size)
{
	const char *at = getenv("PATH");
	for (unsigned n = 0; at && *at && n < PYTHONS_MAX;) {
		size_t length = strcspn(at, ":");
		char directory[PATH_MAX];
		snprintf(directory, sizeof(directory), "%.*s", (int)length, at);
		snprintf(python, size, "%s/python3", directory);
		char *last = strrchr(directory, '/');
		if (length < PATH_MAX && last && access(python, X_OK) == 0) {
			n++;
			*last = '\0';
			if (find_torch(directory, version, version_size)) {
				return true;
			}
		}
		at += length + (at[length] == ':');
	}
	return false;
}

void doctor_check_hooks(struct doctor_check *ret)
{
	struct error e = {0};
	_cleanup_free_ char *folder = NULL;
	char python[PATH_MAX + 16] = "", version[64] = "";
	*ret = (struct doctor_check){.name = "hooks", .state = DOCTOR_AVAILABLE};
	if (injection_hooks(NULL, &folder, &e) < 0) {
		ret->state = DOCTOR_MISSING;
		snprintf(ret->detail, sizeof(ret->detail),
			"training jobs do not mark themselves: %.150s", e.text);
	} else if (search_path(python, sizeof(python), version, sizeof(version))) {
		snprintf(ret->detail, sizeof(ret->detail),
			"PyTorch %.32s of %.80s marks its epochs and phases, and that of other "
			"Pythons (1.13 and newer)",
			version, python);
	} else {
		snprintf(ret->detail, sizeof(ret->detail),
			"PyTorch (1.13 and newer) marks its epochs and phases; none is beside the "
			"python3 of PATH");
	}
}
