// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// strain finish [--wait] RUN: strain-record starts it when the job has ended. It stores summary and
// digest in the run file and prints the verdict on standard error. The run is complete without it.
// --wait: it is started while the file is being closed, and waits for a byte on standard input that
// says that the file is closed; at end of file it does nothing.

#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cmd/command.h"
#include "cmd/progress.h"
#include "cmd/reading.h"
#include "run/analysis.h"
#include "verdict/verdict.h"
#include "run/symbols.h"
#include "runfile/database.h"
#include "run/growth.h"
#include "study/digest.h"

static bool has_event(const struct analysis *a, const char *kind)
{
	for (size_t i = 0; i < a->tables.events.n; i++) {
		if (strcmp(a->tables.events.items[i].kind, kind) == 0) {
			return true;
		}
	}
	return false;
}

// Events for the file, unless it has them. Readers that find none compute them.
static size_t list_events(const struct analysis *a, struct text *warning, struct text *left_out,
	struct digest_event ret[2])
{
	size_t n = 0;
	growth_append_warning(warning, &a->growth);
	for (size_t i = 0; a->implausible && i < a->implausible->n; i++) {
		text_format(left_out, "%s%s", i ? "; " : "left out: ", a->implausible->items[i]);
	}
	if (warning->length > 0 && warning->data && !has_event(a, "memory_growth")) {
		ret[n++] = (struct digest_event){"memory_growth", warning->data};
	}
	if (left_out->length > 0 && left_out->data && !has_event(a, "implausible")) {
		ret[n++] = (struct digest_event){"implausible", left_out->data};
	}
	return n;
}

static int store(const struct analysis *a, const char *path)
{
	_cleanup_text_ struct text warning = {0}, left_out = {0};
	struct digest_event events[2];
	struct error e = {0};
	size_t n = list_events(a, &warning, &left_out, events);
	const struct outcome_told *outcome = &a->overview.outcome;
	return digest_store(path, a, outcome->outcome, outcome->text, events, n, &e);
}

static bool has_samples(struct reader *reader)
{
	return database_number(reader_database(reader),
		       "SELECT EXISTS (SELECT 1 FROM profile_sample)", 0) > 0;
}

static int finish_run(struct reader *reader)
{
	struct analysis analysis;
	struct error e = {0};
	struct progress progress;
	progress_start(&progress, reader, PROGRESS_ANALYSIS);
	const bool live = reader_state(reader) == RUN_LIVE;
	if (!live) {
		if (has_samples(reader)) {
			(void)symbols_add(
				reader_path(reader), NULL); // without symbols, files name the code
		}
		reader_hold(reader);
	}
	struct verdict verdict;
	int loaded = analysis_load(reader, &analysis, &e);
	loaded = loaded < 0 ? loaded : verdict_judge(&analysis, &verdict, &e);
	if (!live) {
		reader_release(reader);
	}
	progress_end(&progress);
	if (loaded < 0) {
		return command_fail("no verdict: %s", e.text);
	}
	struct text lines = {0};
	verdict_lines(&analysis, &lines);
	command_lines(lines.data ? lines.data : "");
	text_done(&lines);
	// Readers compute what could not be written.
	int r = live ? 0 : store(&analysis, reader_path(reader));
	verdict_done(&verdict);
	analysis_done(&analysis);
	return r < 0 ? STATUS_FAILURE : STATUS_OK;
}

int command_finish(int argc, char **argv)
{
	bool wait = argc > 2 && strcmp(argv[1], "--wait") == 0;
	if (argc != 2 + wait) {
		return command_usage("finish", "finish: expected one run");
	}
	char byte;
	if (wait && read(STDIN_FILENO, &byte, 1) != 1) {
		return STATUS_OK;
	}
	struct reader *reader = NULL;
	struct error e = {0};
	if (reader_open(argv[argc - 1], &reader, &e) < 0) {
		return command_fail("no verdict: %s", e.text);
	}
	int status = finish_run(reader);
	reader_free(reader);
	return status;
}
