// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What every command needs: failing in one line, and finding the other parts.

#include "cmd/command.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

int command_fail(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	fputs("strain: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
	return STATUS_FAILURE;
}

int command_usage(const char *command, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	fputs("strain: ", stderr);
	vfprintf(stderr, format, arguments);
	fprintf(stderr, " (strain %s --help)\n", command);
	va_end(arguments);
	return STATUS_USAGE;
}

static char *part_in(const char *directory, const char *between, const char *name)
{
	struct text path = {0};
	text_format(&path, "%s%s/%s", directory, between, name);
	char *found = text_steal(&path);
	if (found && access(found, R_OK) == 0) {
		return found;
	}
	free(found);
	return NULL;
}

char *command_find_part(const char *name)
{
	const char *home = getenv("STRAIN_HOME");
	char *found = home && *home ? part_in(home, "", name) : NULL;
	char here[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", here, sizeof(here) - 1);
	if (found || length <= 0) {
		return found;
	}
	here[length] = '\0';
	*strrchr(here, '/') = '\0';
	found = part_in(here, "", name);
	return found ? found : part_in(here, "/../lib/strain", name);
}
