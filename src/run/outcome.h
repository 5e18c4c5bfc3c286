// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What became of a job, in one word, and why, in one line. A run of a sweep says it itself (key
// `outcome`); of any other it is inferred here, and nowhere else, from how the job ended, what the
// kernel killed, and the last that the job printed.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "runfile/reader.h"

enum outcome {
	OUTCOME_SUCCESS,
	OUTCOME_STOPPED, // by a rule of the sweep, as it should: a success too
	OUTCOME_OUT_OF_MEMORY, // of the host, of the cgroup or of a device: the line begins with
	                       // which
	OUTCOME_TIME_LIMIT,
	OUTCOME_CRASH,
	OUTCOME_INTERRUPTED, // by whoever asked it to end: SIGINT, SIGTERM, SIGHUP
	OUTCOME_SKIPPED, // exit status 77: what it needs is not on that machine
	OUTCOME_REFUSED, // a limit could not be set: it never ran
	OUTCOME_CUT_OFF, // nobody saw its end
	OUTCOME_LIVE, // it has none yet
	OUTCOME_UNKNOWN, // it ended, nobody knows how: a job that was not strain's child
	N_OUTCOMES,
};

enum { EXIT_SKIPPED = 77 };

// "out_of_memory": the word of the key and of tables.
const char *outcome_word(enum outcome outcome);
bool outcome_parse(const char *word, enum outcome *ret);
// Whether the job is known to have done what it should: success and stopped. Numbers of such runs
// alone count beside others, in every table, figure and page.
bool outcome_is_success(enum outcome outcome);

struct outcome_evidence {
	const char *word; // the key `outcome`; NULL: there is none
	const char *text; // the key `outcome_text`; NULL
	enum run_state state;
	int64_t status; // of the job as waitpid gives it; -1: not known
	const char *kill; // text of the event `oom_kill`: of a process of the job; NULL: none
	const char *kill_nearby; // of `oom_kill_nearby`: of the job's, or of one beside it; NULL
	const char *output; // the last that it printed (event `output`); need not end with NUL
	size_t output_length;
};

// The line is owned by the caller, printable, and "" after a success. -ENOMEM.
int outcome_judge(const struct outcome_evidence *evidence, enum outcome *ret, char **ret_text);
// Of a run.
struct outcome_told {
	enum outcome outcome;
	char *text; // as above
	char *output; // the last that it printed, valid UTF-8: escape it; NULL: not known
};
// -ENOMEM; -EBADMSG where its events cannot be read.
int outcome_tell(struct reader *r, struct outcome_told *ret, struct error *e);
void outcome_told_done(struct outcome_told *told);
// The same without the output.
int outcome_of(struct reader *r, enum outcome *ret, char **ret_text, struct error *e);

// The last lines of an output that are not blank: at most n. Returns how many; lines are in order,
// and need not end with NUL: escape them.
struct cursor;
size_t outcome_last_lines(const char *output, size_t n, struct cursor *ret);
