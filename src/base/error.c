// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Errors as text to which callers add context.

#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int error_set(struct error *e, int code, const char *format, ...)
{
	if (e) {
		va_list arguments;
		va_start(arguments, format);
		vsnprintf(e->text, sizeof(e->text), format, arguments);
		va_end(arguments);
		e->code = code;
	}
	return -code;
}

int error_errno(struct error *e, int code, const char *format, ...)
{
	if (e) {
		va_list arguments;
		va_start(arguments, format);
		vsnprintf(e->text, sizeof(e->text), format, arguments);
		va_end(arguments);
		size_t length = strlen(e->text);
		// strerrordesc_np: no locale, no static buffer, thread-safe.
		const char *description = code == EBADMSG ? "not in the expected form"
		                                          : strerrordesc_np(code);
		snprintf(e->text + length, sizeof(e->text) - length, ": %s",
			description ? description : "unknown error");
		e->code = code;
	}
	return -code;
}

int error_prefix(struct error *e, const char *format, ...)
{
	if (!e) {
		return -EINVAL;
	}
	char inner[sizeof(e->text)];
	memcpy(inner, e->text, sizeof(inner));
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(e->text, sizeof(e->text), format, arguments);
	va_end(arguments);
	size_t length = strlen(e->text);
	snprintf(e->text + length, sizeof(e->text) - length, ": %s", inner);
	return -e->code;
}
