// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// One write per line, so that lines do not mix with the job's output.

#include "record/launch/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

void say(const char *format, ...)
{
	char raw[1024];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(raw, sizeof(raw), format, arguments);
	va_end(arguments);

	// Names of programs and files come from the job: they must not send escape codes to the
	// terminal.
	_cleanup_text_ struct text line = {0};
	text_append_string(&line, "strain: ");
	text_append_lines(&line, raw, strlen(raw));
	text_append_string(&line, "\n");
	if (!line.failed && write(STDERR_FILENO, line.data, line.length) < 0) {
		return; // nobody can read it
	}
}
