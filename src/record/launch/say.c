// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// One write per line, so that lines do not mix with the job's output.

#include "record/launch/say.h"

#include <stdarg.h>
#include <stdio.h>
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
	for (const char *c = raw; *c; c++) {
		if (*c == '\n') {
			text_append(&line, c, 1);
		} else {
			size_t length = 1;
			while (c[length] && c[length] != '\n') {
				length++;
			}
			text_append_printable(&line, c, length);
			c += length - 1;
		}
	}
	text_append_string(&line, "\n");
	if (!line.failed && write(STDERR_FILENO, line.data, line.length) < 0) {
		return; // nobody can read it
	}
}
