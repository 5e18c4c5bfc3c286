// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Where the parts of an installation are.

#include "base/part.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

static char *part_in(const char *directory, const char *between, const char *name, int access_mode)
{
	struct text path = {0};
	text_format(&path, "%s%s/%s", directory, between, name);
	char *found = text_steal(&path);
	if (found && access(found, access_mode) == 0) {
		return found;
	}
	free(found);
	return NULL;
}

char *part_find(const char *name, int access_mode)
{
	static const char *const places[] = {"", "/../lib/strain", "/../bin", "/../../bin"};
	const char *home = getenv("STRAIN_HOME");
	char *found = home && *home ? part_in(home, "", name, access_mode) : NULL;
	char here[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", here, sizeof(here) - 1);
	if (found || length <= 0) {
		return found;
	}
	here[length] = '\0';
	*strrchr(here, '/') = '\0';
	for (size_t i = 0; i < ARRAY_LENGTH(places) && !found; i++) {
		found = part_in(here, places[i], name, access_mode);
	}
	return found;
}
