// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The outcome of a job, in one word, with the reason in one line. Trials of a sweep have it in the
// key `outcome`; for other runs it is inferred here, and only here, from the exit status, OOM
// kills, and the end of the output.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "runfile/reader.h"

struct text;

enum outcome {
	OUTCOME_SUCCESS,
	OUTCOME_STOPPED, // by a stop rule of the sweep: a success, too
	OUTCOME_OUT_OF_MEMORY, // of host, cgroup or device; the line begins with which of them
	OUTCOME_TIME_LIMIT,
	OUTCOME_CRASH,
	OUTCOME_INTERRUPTED, // by SIGINT, SIGTERM or SIGHUP
	OUTCOME_SKIPPED, // exit status 77: the machine lacks a requirement
	OUTCOME_REFUSED, // a limit could not be set, so the job never ran
	OUTCOME_CANCELLED, // by somebody who told the scheduler
	OUTCOME_PREEMPTED, // the scheduler gave its place to another job
	OUTCOME_NODE_FAILURE, // its machine failed
	OUTCOME_CUT_OFF, // its end was not recorded
	OUTCOME_LIVE, // still running
	OUTCOME_UNKNOWN, // the job ended, but its status is not known: not a child of strain
	N_OUTCOMES,
};

enum { EXIT_SKIPPED = 77 };

// "out_of_memory": the word of the key and of tables.
const char *outcome_word(enum outcome outcome);
bool outcome_parse(const char *word, enum outcome *ret);
// The same for people: "out of memory".
void outcome_append_shown(struct text *t, enum outcome outcome);
// Appends all words: "success, stopped, ... or unknown".
void outcome_append_words(struct text *t);
// Success and stopped. Tables, figures and pages use only the numbers of such runs.
bool outcome_is_success(enum outcome outcome);

struct outcome_evidence {
	const char *word; // the key `outcome`; NULL: there is none
	const char *text; // the key `outcome_text`; NULL
	enum run_state state;
	int64_t status; // of the job as waitpid gives it; -1: not known
	const char *kill; // text of the event `oom_kill`: of a process of the job; NULL: none
	// text of the event `oom_kill_nearby`: of the job or beside it; NULL
	const char *kill_nearby;
	const char *output; // end of its output (event `output`); need not end with NUL
	size_t output_length;
};

// *ret_text is owned by the caller, printable, and "" after a success. Returns 0 or -ENOMEM.
int outcome_judge(const struct outcome_evidence *evidence, enum outcome *ret, char **ret_text);
// The outcome of a run.
struct outcome_told {
	enum outcome outcome;
	char *text; // as above
	char *output; // end of its output, valid UTF-8: escape it; NULL: not known
};
// Returns 0; -ENOMEM; -EBADMSG if the events cannot be read.
int outcome_tell(struct reader *r, struct outcome_told *ret, struct error *e);
void outcome_told_done(struct outcome_told *told);
// The same without the end of the output.
int outcome_of(struct reader *r, enum outcome *ret, char **ret_text, struct error *e);

// The reason for which Slurm ended a job, as slurmstepd writes it to the output of the job:
// "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***".
// Returns N_OUTCOMES if it wrote none; also if the job is to run again (REQUEUE).
enum outcome outcome_from_slurmstepd(const char *output, size_t length);

// Finds the last non-blank lines of an output, at most n, in order, and returns their number. The
// lines need not end with NUL; escape them.
struct cursor;
size_t outcome_last_lines(const char *output, size_t n, struct cursor *ret);
