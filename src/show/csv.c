// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Fields of comma-separated values.

#include "show/csv.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_number(const char *field)
{
	char *end;
	return !field[strspn(field, "+-.0123456789eE")] && isfinite(strtod(field, &end)) &&
	       end != field && !*end;
}

// Some programs skip tabs and carriage returns before they look for a formula.
static bool is_formula(const char *field)
{
	const char *first = field + strspn(field, "\t\r\n");
	return *first && strchr("=+-@", *first) && !is_number(first);
}

void csv_append_text(struct text *t, const char *field)
{
	if (!field) {
		return;
	}
	const char *guard = is_formula(field) ? "'" : "";
	if (!field[strcspn(field, ",\"\r\n")]) {
		text_append_string(t, guard);
		text_append_utf8(t, field, strlen(field));
		return;
	}
	text_append(t, "\"", 1);
	text_append_string(t, guard);
	while (*field) {
		size_t length = strcspn(field, "\"");
		text_append_utf8(t, field, length);
		field += length;
		if (*field == '"') {
			text_append(t, "\"\"", 2);
			field++;
		}
	}
	text_append(t, "\"", 1);
}

void csv_print(const char *data, size_t length, FILE *stream)
{
	_cleanup_text_ struct text shown = {0};
	if (isatty(fileno(stream))) {
		text_append_lines(&shown, data, length);
		data = shown.data ? shown.data : "";
		length = shown.length;
	}
	fwrite(data, 1, length, stream);
}

void csv_append_number(struct text *t, double value)
{
	if (isfinite(value)) {
		text_format(t, "%.15g", value);
	}
}
