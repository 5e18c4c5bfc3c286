// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Messages and progress of all commands on standard error. They contain file names and text from
// jobs, which is escaped here.

#include "cmd/command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/words.h"
#include "run/timeline.h"
#include "runfile/reader.h"

__attribute__((format(printf, 3, 0))) static void say(
	const char *before, const char *after, const char *format, va_list arguments)
{
	_cleanup_free_ char *raw = NULL;
	_cleanup_text_ struct text shown = {0};
	if (vasprintf(&raw, format, arguments) < 0) {
		raw = NULL;
	}
	text_append_printable(&shown, raw ? raw : format, strlen(raw ? raw : format));
	fprintf(stderr, "%s%s%s", before, shown.data ? shown.data : "", after);
}

void command_note(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	say("strain: ", "\n", format, arguments);
	va_end(arguments);
}

void command_detail(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	say("", "\n", format, arguments);
	va_end(arguments);
}

void command_lines(const char *lines)
{
	_cleanup_text_ struct text shown = {0};
	text_append_lines(&shown, lines, strlen(lines));
	fputs(shown.data ? shown.data : "", stderr);
}

void command_prompt(const char *prompt)
{
	fputs(prompt, stderr);
}

void command_progress(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	say("\r", "\033[K", format, arguments);
	va_end(arguments);
}

void command_progress_end(void)
{
	fputs("\r\033[K", stderr);
}

int command_fail(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	say("strain: ", "\n", format, arguments);
	va_end(arguments);
	return STATUS_FAILURE;
}

int command_usage(const char *command, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	say("strain: ", "", format, arguments);
	fprintf(stderr, " (strain %s --help)\n", command);
	va_end(arguments);
	return STATUS_USAGE;
}

int command_flush(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout)) {
		return STATUS_OK;
	}
	// EPIPE: the reader of the pipe needs no more.
	return errno == EPIPE ? STATUS_OK
	                      : command_fail("cannot write: %s", strerrordesc_np(errno));
}

// --- progress

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

void progress_of_runs_start(struct progress_of_runs *p, const char *doing)
{
	*p = (struct progress_of_runs){.doing = doing, .start_ns = (int64_t)clock_monotonic_ns()};
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
	if (p->doing) {
		command_progress("strain: %s: %s", p->doing, line.data ? line.data : "");
	} else {
		command_progress("strain: reading %llu runs: %s", (unsigned long long)total,
			line.data ? line.data : "");
	}
	p->shown_ns = now_ns;
}

void progress_of_runs_end(struct progress_of_runs *p)
{
	end_shown(p->shown_ns);
}
