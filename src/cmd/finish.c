// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// strain finish RUN: what strain-record becomes when the job has ended. Writes the summary and
// prints the verdict on standard error. Its failure changes nothing.

#include <locale.h>
#include <stdbool.h>
#include <stdio.h>

#include "analyze/analysis.h"
#include "base/text.h"
#include "cmd/command.h"
#include "cmd/progress.h"
#include "cmd/reading.h"

static int finish_run(struct reader *reader)
{
	struct analysis analysis;
	struct error e = {0};
	struct progress progress;
	progress_start(&progress, reader, PROGRESS_ANALYSIS);
	const bool live = reader_state(reader) == RUN_LIVE;
	if (!live) {
		reader_hold(reader);
	}
	int loaded = analysis_load(reader, &analysis, &e);
	if (!live) {
		reader_release(reader);
	}
	progress_end(&progress);
	if (loaded < 0) {
		return command_fail("no verdict: %s", e.text);
	}
	struct text lines = {0};
	verdict_lines(&analysis, &lines);
	fputs(lines.data ? lines.data : "", stderr);
	text_done(&lines);
	// The first reader computes what could not be written.
	int r = live ? 0
	             : summary_write(reader_path(reader), &analysis.summary, &analysis.metrics, &e);
	analysis_done(&analysis);
	return r < 0 ? STATUS_FAILURE : STATUS_OK;
}

int command_finish(int argc, char **argv)
{
	if (argc != 2) {
		return command_usage("finish", "finish: expected one run");
	}
	struct reader *reader = NULL;
	struct error e = {0};
	if (reader_open(argv[1], &reader, &e) < 0) {
		return command_fail("no verdict: %s", e.text);
	}
	int status = finish_run(reader);
	reader_free(reader);
	return status;
}
