// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Fields of comma-separated values.

#include "render/csv.h"

#include <math.h>
#include <string.h>

void csv_append_text(struct text *t, const char *field)
{
	if (!field) {
		return;
	}
	if (!field[strcspn(field, ",\"\r\n")]) {
		text_append_utf8(t, field, strlen(field));
		return;
	}
	text_append(t, "\"", 1);
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

void csv_append_number(struct text *t, double value)
{
	if (isfinite(value)) {
		text_format(t, "%.15g", value);
	}
}
