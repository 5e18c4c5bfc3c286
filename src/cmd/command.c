// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Messages of all commands on standard error. They contain file names and text from jobs, which is
// escaped here.

#include "cmd/command.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

__attribute__((format(printf, 3, 0))) static void say(
	const char *before, const char *after, const char *format, va_list arguments)
{
	_cleanup_free_ char *raw = NULL;
	_cleanup_text_ struct text shown = {0};
	if (vasprintf(&raw, format, arguments) < 0) {
		raw = NULL;
	}
	text_append_printable(&shown, raw ? raw : format, strlen(raw ? raw : format));
	fprintf(stderr, "%s%s%s", before, shown.data ? shown.data : "", after);
}

void command_note(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	say("strain: ", "\n", format, arguments);
	va_end(arguments);
}

void command_detail(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	say("", "\n", format, arguments);
	va_end(arguments);
}

void command_lines(const char *lines)
{
	_cleanup_text_ struct text shown = {0};
	text_append_lines(&shown, lines, strlen(lines));
	fputs(shown.data ? shown.data : "", stderr);
}

void command_prompt(const char *prompt)
{
	fputs(prompt, stderr);
}

void command_progress(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	say("\r", "\033[K", format, arguments);
	va_end(arguments);
}

void command_progress_end(void)
{
	fputs("\r\033[K", stderr);
}

int command_fail(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	say("strain: ", "\n", format, arguments);
	va_end(arguments);
	return STATUS_FAILURE;
}

int command_usage(const char *command, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	say("strain: ", "", format, arguments);
	fprintf(stderr, " (strain %s --help)\n", command);
	va_end(arguments);
	return STATUS_USAGE;
}
