// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Locations of the parts of an installation.

#include "base/installation.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/trust.h"

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

// The folder of the running program. Returns false if it is unknown.
static bool find_here(char buffer[PATH_MAX])
{
	ssize_t length = readlink("/proc/self/exe", buffer, PATH_MAX - 1);
	// Without /proc, the path that it was executed by.
	const char *executed = (const char *)getauxval(
		AT_EXECFN); // NOLINT(performance-no-int-to-ptr)
	if (length <= 0 && !(executed && strchr(executed, '/') && realpath(executed, buffer))) {
		return false;
	}
	if (length > 0) {
		buffer[length] = '\0';
	}
	char *slash = strrchr(buffer, '/');
	if (slash) {
		*slash = '\0';
	}
	return slash;
}

char *installation_find(const char *name, int access_mode, struct error *e)
{
	static const char *const places[] = {"", "/../lib/strain", "/../bin", "/../../bin"};
	// Trusted like PATH: the user sets it.
	const char *home = secure_getenv("STRAIN_HOME");
	char *found = home && *home ? part_in(home, "", name, access_mode) : NULL;
	char here[PATH_MAX];
	if (found) {
		return found;
	}
	error_set(e, ENOENT,
		"%s is neither in $STRAIN_HOME nor beside the program nor in ../lib/strain", name);
	for (size_t i = 0; find_here(here) && i < ARRAY_LENGTH(places); i++) {
		found = part_in(here, places[i], name, access_mode);
		if (found && trust_part(found, false, e) == 0) {
			return found;
		}
		free(found);
	}
	return NULL;
}
