// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The digest of a run: the row that lists, tables and pages of sweeps show of it. `strain finish`
// and sweeps store it in the run file (runfile/findings.h); it is computed where the file has none
// or has one of other rules.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "run/allocation.h"
#include "run/measures.h"
#include "run/outcome.h"
#include "run/overview.h"
#include "runfile/findings.h"
#include "runfile/labels.h"

struct analysis;

// The version of the rules for measures, verdict and outcome. Raise it with each change of rules
// that gives another digest of the same samples: tests/traces/check.sh finds such changes.
#define DIGEST_RULES 27

// Strings point into `findings`. They come from a file that anyone may have written: escape them.
// None is NULL but `reasons` of known measures and `notice`.
struct digest {
	char *path; // owned; as it was given, or below the directory that was
	char *name; // owned; of the file, without ".strain"
	char *sweep_directory; // owned; that it is a trial of; NULL: none
	char *advice_directory; // owned; of `strain advise`, whose answer has this run; NULL: none
	size_t found_by; // index of the catalogue's path; the first of several
	struct findings findings; // owned
	const char *host; // name of the machine
	const char *command; // as typed in a shell
	int64_t start_utc_ns; // 0: not known
	struct run_label *labels; // [n_labels] owned, by name
	size_t n_labels;
	enum run_state state;
	bool damaged;
	bool job_only; // the other measures and the verdict were not asked for
	const char *notice; // a line on damage; NULL: none
	const char *partial; // "recorded 12.0 s of 30.0 s: the disk was full"; "": all of it
	double recorded_s; // of the job's time; NAN: not known
	int exit_status; // -1 where unknown or killed
	int exit_signal; // 0 for none
	enum outcome outcome;
	const char *outcome_text; // a line; "" after a success
	const char *memory_kind; // which memory the measures of host memory mean: "PSS"
	const char *unit; // what its samples are, a word of the job; "": samples
	double host_cpus; // of the machine; NAN: not known
	double host_cpus_used; // mean, by all programs
	// For prices; not known where job_only.
	double machine[N_ALLOCATED]; // CPUs, bytes of memory, GPUs of the machine; NAN: not known
	double ranks; // of one job, that share the node, each with its own run; at least 1
	const char *gpu; // of struct allocation; "": none known
	const char *currency; // of the measures with prices; NULL: no price list. Borrowed from it
	double measures[N_MEASURES]; // NAN: missing
	const char *reasons[N_MEASURES]; // why one is missing; NULL where it is not
	const char *verdict; // a word, "input"; "" where job_only
	const char *headline; // a line; "" where job_only
};

// Reads the stored digest, or computes one. job_only: measures of the job as a whole are enough,
// which take less time to compute. Safe to call from several threads. Errors as reader_open.
int digest_read(const char *path, bool job_only, struct digest *ret, struct error *e);
// Makes a digest of sorted rows, and takes them. -EBADMSG: they are no digest of today's rules;
// -ENOMEM.
int digest_of(struct findings *findings, struct digest *ret);
void digest_done(struct digest *d);
// Makes the digest of an analysed, judged run that is not stored yet. The path is empty. -ENOMEM.
int digest_make(const struct analysis *a, struct digest *ret);
// Copies a text; it lives as long as the digest. NULL: out of memory.
const char *digest_own(struct digest *d, const char *text);

// Stores summary and digest of an analysed, judged run in its file, and adds events, in one
// transaction. Errors: -errno, one line with the path.
struct digest_event {
	const char *kind;
	const char *text;
};
int digest_store(const char *path, const struct analysis *a, enum outcome outcome,
	const char *outcome_text, const struct digest_event *events, size_t n_events,
	struct error *e);

// The same for a run that has ended by itself: with its own outcome, and with events for the growth
// of memory and for implausible readings unless it has them.
int digest_finish(const char *path, const struct analysis *a, struct error *e);

// Value of a label, NULL where the run has none of that name. `machine` is the host's name where no
// label has that name.
const char *digest_label(const struct digest *d, const char *name);
