// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What every command needs: failing in one line.

#include "cmd/command.h"

#include <stdarg.h>
#include <stdio.h>

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
