// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Reads the table line_sample, which has one row per process and line.

#include "run/script_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "run/analysis.h"
#include "run/query.h"
#include "runfile/reader.h"

void script_lines_done(struct script_lines *shares)
{
	for (size_t i = 0; i < shares->n; i++) {
		free(shares->items[i].phase);
		free(shares->items[i].file);
		free(shares->items[i].function);
	}
	*shares = (struct script_lines){0};
}

struct loading {
	int64_t wanted; // entity of the process; 0: the first one
	struct script_lines *shares;
};

static char *copy_of(sqlite3_stmt *row, int column)
{
	const char *text = (const char *)sqlite3_column_text(row, column);
	return text ? strdup(text) : NULL;
}

// Rows are sorted by process, most samples first, then by line, most frequent first.
static int take_row(void *context, sqlite3_stmt *row)
{
	enum { ENTITY, PHASE, FILE_NAME, LINE, FUNCTION, SAMPLES };
	struct loading *l = context;
	int64_t entity = sqlite3_column_int64(row, ENTITY);
	int64_t samples = sqlite3_column_int64(row, SAMPLES);
	l->wanted = l->wanted ? l->wanted : entity;
	if (entity != l->wanted || samples <= 0 || samples > INT32_MAX) {
		return 0;
	}
	l->shares->samples += (uint64_t)samples;
	if (l->shares->n == LINE_SHARES_MOST) {
		return 0;
	}
	struct script_line *share = &l->shares->items[l->shares->n++];
	*share = (struct script_line){copy_of(row, PHASE), copy_of(row, FILE_NAME),
		sqlite3_column_int64(row, LINE), copy_of(row, FUNCTION), (uint64_t)samples};
	return share->file && share->function ? 0 : -ENOMEM;
}

static int load_of(const struct analysis *a, int64_t entity, struct script_lines *ret)
{
	static const char select[] =
		"SELECT s.entity, s.phase, s.file, s.line, s.function, SUM(s.samples) AS n"
		" FROM line_sample AS s JOIN (SELECT entity, SUM(samples) AS looks FROM line_sample"
		" GROUP BY entity) AS p ON p.entity = s.entity"
		" GROUP BY s.entity, s.phase, s.file, s.line, s.function"
		" ORDER BY p.looks DESC, s.entity, n DESC, s.file, s.line";
	struct loading l = {entity, ret};
	*ret = (struct script_lines){0};
	// Of a damaged file, the rows before the damage are used.
	int r = query_each(a->tables.reader, select, take_row, &l, NULL);
	if (r == -ENOMEM) {
		script_lines_done(ret);
	}
	return r == -ENOMEM ? r : 0;
}

int script_lines_load(const struct analysis *a, struct script_lines *ret)
{
	int64_t trainer = analysis_trainer(a);
	*ret = (struct script_lines){0};
	if (!a->tables.reader || !reader_has_lines(a->tables.reader)) {
		return 0;
	}
	int r = trainer ? load_of(a, trainer, ret) : 0;
	return r == 0 && ret->samples == 0 ? load_of(a, 0, ret) : r;
}

// The end of a path, from the slash before its last `folders` folders.
static const char *end_of(const char *file, unsigned folders)
{
	const char *at = file + strlen(file);
	while (at > file && (at[-1] != '/' || folders-- > 0)) {
		at--;
	}
	return at;
}

const char *script_lines_short(const struct script_lines *shares, const char *file)
{
	enum { FOLDERS_MOST = 8 };
	for (unsigned folders = 0; folders < FOLDERS_MOST; folders++) {
		const char *name = end_of(file, folders);
		bool unique = true;
		for (size_t i = 0; i < shares->n && unique; i++) {
			const char *other = shares->items[i].file;
			unique = strcmp(other, file) == 0 ||
			         strcmp(end_of(other, folders), name) != 0;
		}
		if (unique) {
			return name;
		}
	}
	return file;
}
