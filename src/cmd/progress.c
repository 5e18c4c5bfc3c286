// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Shows the progress of reading.

#include "cmd/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/words.h"
#include "cmd/command.h"
#include "run/timeline.h"
#include "runfile/reader.h"

#define SHOW_EVERY_NS (NS_PER_S / 5)

static void progressed(void *context)
{
	struct progress *p = context;
	int64_t now_ns = (int64_t)clock_monotonic_ns();
	p->done++;
	if (now_ns - p->shown_ns < (int64_t)SHOW_EVERY_NS) {
		return;
	}
	_cleanup_text_ struct text line = {0}, name = {0};
	const char *path = reader_path(p->reader);
	double seconds = (double)(now_ns - p->start_ns) / 1e9;
	if (!words_append_progress(&line, p->done, p->total, seconds)) {
		return;
	}
	words_append_elided(&name, path, 40);
	command_progress(
		"strain: reading %s: %s", name.data ? name.data : "", line.data ? line.data : "");
	p->shown_ns = now_ns;
}

static uint64_t ask(struct reader *reader, const char *sql)
{
	sqlite3_stmt *statement = NULL;
	uint64_t answer = 0;
	if (sqlite3_prepare_v2(reader_database(reader), sql, -1, &statement, NULL) == SQLITE_OK &&
		sqlite3_step(statement) == SQLITE_ROW) {
		answer = (uint64_t)sqlite3_column_int64(statement, 0);
	}
	sqlite3_finalize(statement);
	return answer;
}

void progress_start(struct progress *p, struct reader *reader, unsigned of)
{
	*p = (struct progress){0};
	if (!isatty(STDERR_FILENO)) {
		return;
	}
	uint64_t passes = (of & PROGRESS_BLOCKS) != 0;
	if (of & PROGRESS_ANALYSIS) {
		passes += 1 + !ask(reader, "SELECT EXISTS (SELECT 1 FROM summary)");
	}
	p->reader = reader;
	p->start_ns = (int64_t)clock_monotonic_ns();
	p->total = ask(reader, "SELECT count(*) FROM block") * passes;
	uint64_t parts = span_pass_parts(reader);
	if (of & PROGRESS_ANALYSIS) {
		p->total += parts / 4 + parts;
	}
	if (of & PROGRESS_PAGE) {
		p->total += parts;
	}
	reader_watch(reader, progressed, p);
}

static void end_shown(int64_t shown_ns)
{
	if (shown_ns) {
		command_progress_end();
	}
}

void progress_end(struct progress *p)
{
	if (p->reader) {
		reader_watch(p->reader, NULL, NULL);
		end_shown(p->shown_ns);
	}
}

void progress_of_runs_start(struct progress_of_runs *p)
{
	*p = (struct progress_of_runs){.start_ns = (int64_t)clock_monotonic_ns()};
}

void progress_of_runs(void *context, uint64_t done, uint64_t total)
{
	struct progress_of_runs *p = context;
	int64_t now_ns = (int64_t)clock_monotonic_ns();
	_cleanup_text_ struct text line = {0};
	double seconds = (double)(now_ns - p->start_ns) / 1e9;
	if (now_ns - p->shown_ns < (int64_t)SHOW_EVERY_NS || !isatty(STDERR_FILENO) ||
		!words_append_progress(&line, done, total, seconds)) {
		return;
	}
	command_progress("strain: reading %llu runs: %s", (unsigned long long)total,
		line.data ? line.data : "");
	p->shown_ns = now_ns;
}

void progress_of_runs_end(struct progress_of_runs *p)
{
	end_shown(p->shown_ns);
}
