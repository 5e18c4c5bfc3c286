// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// strain finish [--wait] RUN: strain-record starts it when the job has ended. It stores summary and
// digest in the run file and prints the verdict on standard error, of ranks with runs of their own
// that of the first. The run is complete without it.
// --wait: it is started while the file is being closed, and waits for a byte on standard input that
// says that the file is closed; at end of file it does nothing.

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cmd/command.h"
#include "run/analysis.h"
#include "run/symbols.h"
#include "runfile/database.h"
#include "runfile/labels.h"
#include "runfile/reader.h"
#include "study/digest.h"
#include "verdict/verdict.h"

static bool has_samples(struct reader *reader)
{
	return database_number(reader_database(reader),
		       "SELECT EXISTS (SELECT 1 FROM profile_sample)", 0) > 0;
}

// Appends the command that shows all ranks of the job, which have runs beside this one.
static void append_ranks(struct text *lines, const char *path)
{
	const char *slash = strrchr(path, '/');
	_cleanup_text_ struct text directory = {0};
	text_append(&directory, slash ? path : ".", slash ? (size_t)(slash - path) : 1);
	text_append_string(lines, "        strain show ");
	text_append_path(lines, slash == path ? "/" : directory.data ? directory.data : ".");
	text_append_string(lines, " # all ranks\n");
}

// What is printed about a run. Of the ranks of a job that each have a run of their own, the first
// prints its verdict; the others would only repeat most of it, unless they failed.
static void print_lines(const struct analysis *a)
{
	const struct overview *o = &a->overview;
	bool several = labels_world(o->labels, o->n_labels) > 1 && a->phases.n_ranks <= 1;
	int rank = several ? labels_rank(o->labels, o->n_labels) : -1;
	struct text lines = {0};
	_cleanup_text_ struct text lost = {0};
	const char *label;
	bool interrupted = o->outcome.outcome == OUTCOME_INTERRUPTED;
	if (rank > 0 && (interrupted || outcome_is_success(o->outcome.outcome)) && !o->partial) {
		return;
	}
	epoch_list_append_not_finite(&lost, &a->tables.epochs);
	if (lost.length > 0) {
		text_format(&lines, "strain: %s\n", lost.data);
	}
	verdict_lines(a, &lines);
	_cleanup_free_ char *job = labels_job(o->labels, o->n_labels, &label);
	if (rank == 0 && job) {
		append_ranks(&lines, reader_path(a->tables.reader));
	}
	command_lines(lines.data ? lines.data : "");
	text_done(&lines);
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
	print_lines(&analysis);
	// Readers compute what could not be written.
	int r = live ? 0 : digest_finish(reader_path(reader), &analysis, &e);
	verdict_done(&verdict);
	analysis_done(&analysis);
	return r < 0 ? STATUS_FAILURE : STATUS_OK;
}

int command_finish(int argc, char **argv)
{
	bool wait = argc > 2 && strcmp(argv[1], "--wait") == 0;
	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		puts("Usage: strain finish RUN\n\nCompute the summary and the verdict of a run "
		     "that lacks them, and store them in it.");
		return command_flush();
	}
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
