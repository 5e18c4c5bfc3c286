// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Time stands for work: iterations are about alike.

#include "analyze/span_pass.h"

#include <stddef.h>

#include "analyze/query.h"
#include "trace/reader.h"

#define SPANS_A_PART 1000
#define PARTS_MAX 100000 // whatever a file says

uint64_t span_pass_parts(struct reader *r)
{
	// Spans of files of schema 1.0 are rows; their ids were given one after the other.
	static const char *const queries[] = {
		"SELECT sum(rows) FROM main.span_block", "SELECT max(id) FROM main.span"};
	int64_t spans = 0;
	for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]) && spans == 0; i++) {
		_cleanup_statement_ sqlite3_stmt *statement = NULL;
		if (sqlite3_prepare_v2(reader_database(r), queries[i], -1, &statement, NULL) ==
				SQLITE_OK &&
			sqlite3_step(statement) == SQLITE_ROW) {
			spans = sqlite3_column_int64(statement, 0);
		}
	}
	int64_t parts = spans / SPANS_A_PART;
	return parts < 0 ? 0 : parts < PARTS_MAX ? (uint64_t)parts : PARTS_MAX;
}

void span_pass_start(struct span_pass *pass, struct reader *r, uint64_t parts)
{
	*pass = (struct span_pass){.reader = r, .end_ns = reader_end_ns(r), .parts = parts};
}

static void tell(struct span_pass *pass, uint64_t parts)
{
	for (; pass->told < parts; pass->told++) {
		reader_progress(pass->reader);
	}
}

void span_pass_at(struct span_pass *pass, int64_t start_ns)
{
	if (start_ns > 0 && start_ns < pass->end_ns) {
		tell(pass,
			(uint64_t)((double)pass->parts * (double)start_ns / (double)pass->end_ns));
	}
}

void span_pass_end(struct span_pass *pass)
{
	tell(pass, pass->parts);
}
