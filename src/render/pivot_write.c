// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Formats of pivots.

#include "render/pivot_write.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "render/pivot_grid.h"

static const struct {
	const char *name;
	const char *ending;
} formats[N_PIVOT_FORMATS] = {
	[PIVOT_TEXT] = {"text", ".txt"},
	[PIVOT_MARKDOWN] = {"markdown", ".md"},
	[PIVOT_LATEX] = {"latex", ".tex"},
	[PIVOT_CSV] = {"csv", ".csv"},
	[PIVOT_JSON] = {"json", ".json"},
};

const char *pivot_format_name(enum pivot_format format)
{
	return formats[format].name;
}

bool pivot_format_parse(const char *name, enum pivot_format *ret)
{
	for (size_t i = 0; i < N_PIVOT_FORMATS; i++) {
		if (strcmp(name, formats[i].name) == 0) {
			*ret = (enum pivot_format)i;
			return true;
		}
	}
	return false;
}

bool pivot_format_of(const char *path, enum pivot_format *ret)
{
	size_t length = strlen(path);
	for (size_t i = 0; i < N_PIVOT_FORMATS; i++) {
		size_t n = strlen(formats[i].ending);
		if (length > n && strcasecmp(path + length - n, formats[i].ending) == 0) {
			*ret = (enum pivot_format)i;
			return true;
		}
	}
	return false;
}

int pivot_write(const struct pivot *p, enum pivot_format format, FILE *stream,
	const struct table_style *style)
{
	struct grid_list list = {0};
	if (format == PIVOT_CSV || format == PIVOT_JSON) {
		return format == PIVOT_CSV ? pivot_write_csv(p, stream)
		                           : pivot_write_json(p, stream);
	}
	int r = grid_list_build(p, &list);
	if (r == 0) {
		r = format == PIVOT_TEXT    ? pivot_write_text(&list, stream, style)
		    : format == PIVOT_LATEX ? pivot_write_latex(&list, stream)
		                            : pivot_write_markdown(&list, stream);
	}
	grid_list_done(&list);
	return r < 0 ? r : fflush(stream) == EOF || ferror(stream) ? -(errno ? errno : EIO) : 0;
}
