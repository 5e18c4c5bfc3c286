// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Reads the table line_sample, which has one row per process and line.

#include "run/script_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "run/analysis.h"
#include "run/processes.h"
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

static char *copy_of(sqlite3_stmt *row, int column)
{
	const char *text = (const char *)sqlite3_column_text(row, column);
	return text ? strdup(text) : NULL;
}

// Rows are sorted by line, most frequent first.
static int take_row(void *context, sqlite3_stmt *row)
{
	enum { PHASE, FILE_NAME, LINE, FUNCTION, SAMPLES };
	struct script_lines *shares = context;
	int64_t samples = sqlite3_column_int64(row, SAMPLES);
	if (samples <= 0 || samples > INT32_MAX) {
		return 0;
	}
	shares->samples += (uint64_t)samples;
	if (shares->n == SCRIPT_LINES_MAX) {
		return 0;
	}
	struct script_line *share = &shares->items[shares->n++];
	*share = (struct script_line){copy_of(row, PHASE), copy_of(row, FILE_NAME),
		sqlite3_column_int64(row, LINE), copy_of(row, FUNCTION), (uint64_t)samples};
	return share->file && share->function ? 0 : -ENOMEM;
}

// of: an SQL expression for the entities of the processes. threads: of threads that do not train.
static int load_of(const struct analysis *a, const char *of, bool threads, struct script_lines *ret)
{
	_cleanup_text_ struct text select = {0};
	text_format(&select,
		"SELECT phase, file, line, function, SUM(samples) AS n FROM line_sample"
		" WHERE entity IN (%s) AND coalesce(phase, '') %s ('thread', 'pipeline')"
		" GROUP BY phase, file, line, function ORDER BY n DESC, file, line",
		of, threads ? "IN" : "NOT IN");
	*ret = (struct script_lines){0};
	// Of a damaged file, the rows before the damage are used.
	int r = select.failed ? -ENOMEM
	                      : query_each(a->tables.reader, select.data, take_row, ret, NULL);
	if (r == -ENOMEM) {
		script_lines_done(ret);
	}
	return r == -ENOMEM ? r : 0;
}

static void append_loaders(struct text *t, const struct process_list *processes)
{
	for (size_t i = 0; i < processes->n; i++) {
		if (processes->items[i].role == ROLE_LOADER) {
			text_format(t, t->length > 0 ? ", %lld" : "%lld",
				(long long)processes->items[i].entity);
		}
	}
}

const char *script_lines_name(enum script_lines_of of)
{
	static const char *const names[N_SCRIPT_LINES] = {
		[SCRIPT_LINES_TRAINER] = "main",
		[SCRIPT_LINES_THREADS] = "thread",
		[SCRIPT_LINES_LOADERS] = "loader",
	};
	return names[of];
}

int script_lines_load(
	const struct analysis *a, enum script_lines_of which, struct script_lines *ret)
{
	_cleanup_text_ struct text loaders = {0}, of = {0};
	bool threads = which == SCRIPT_LINES_THREADS;
	*ret = (struct script_lines){0};
	if (!a->tables.reader || !reader_has_lines(a->tables.reader)) {
		return 0;
	}
	append_loaders(&loaders, &a->processes);
	text_append_string(&loaders, "");
	if (which == SCRIPT_LINES_LOADERS) {
		return loaders.failed ? -ENOMEM : load_of(a, loaders.data, false, ret);
	}
	text_format(&of, "%lld", (long long)analysis_trainer(a));
	int r = of.failed ? -ENOMEM : load_of(a, of.data, threads, ret);
	ret->of_trainer = ret->samples > 0;
	if (r < 0 || ret->samples > 0 || threads) {
		return r;
	}
	text_clear(&of);
	text_format(&of,
		"SELECT entity FROM line_sample WHERE entity NOT IN (%s) GROUP BY entity"
		" ORDER BY SUM(samples) DESC, entity LIMIT 1",
		loaders.failed ? "" : loaders.data);
	return of.failed ? -ENOMEM : load_of(a, of.data, false, ret);
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
