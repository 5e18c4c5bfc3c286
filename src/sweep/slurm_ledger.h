// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Which trials of a sweep have been handed to Slurm: the names of small files in the folder `slurm`
// of the sweep. Each change is one system call, so that neither a killed sweep nor a lost answer of
// sbatch leaves a trial lost or doubled:
//
//   CCCC-R.ATTEMPT.TOKEN.TASK.ticket   before the submission: this task of the array TOKEN may run
//                                      the trial
//   CCCC-R.ATTEMPT.TOKEN.TASK.taken    the task has renamed its ticket when it started, and written
//                                      its owner into it
//   TOKEN.job                          after the submission: the id of the array
//   TOKEN.cancelled                    the sweep cancels the array: its trials have no outcome
//   TOKEN-TASK.out                     what Slurm and strain say about the task
//
// A sweep that is not sure whether an array was submitted removes its tickets. Of a removal and a
// renaming exactly one succeeds: either the task has begun, or it never will.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "sweep/trials.h"

#define SLURM_LEDGER "slurm"
enum { SLURM_TOKEN_SIZE = 17 }; // hexadecimal, unguessable, with its NUL

struct slurm_ticket {
	struct trial_place trial;
	uint32_t attempt; // from 1
	char token[SLURM_TOKEN_SIZE];
	uint32_t task; // from 1
	bool taken;
};

// Opens the folder `slurm` in the folder of a sweep, made if `make`. Returns a descriptor or
// -errno: -EPERM if it is another user's, or others can write it. sweep_path: for the message.
int slurm_ledger_open(int sweep_folder, const char *sweep_path, bool make, struct error *e);
int slurm_ledger_new_token(char token[SLURM_TOKEN_SIZE]); // 0 or -errno

// The part of a ticket's name before its last dot. Owned by the caller; NULL: out of memory.
char *slurm_ticket_stem(const struct slurm_ticket *ticket);
// Reads such a part. False: it is none.
bool slurm_ticket_parse(const char *stem, size_t length, struct slurm_ticket *ret);

// Calls `each` with all tickets, with each more than once, also those that tasks take meanwhile.
// Returns 0 or -errno.
int slurm_ledger_list(
	int ledger, int (*each)(void *context, const struct slurm_ticket *ticket), void *context);
bool slurm_ledger_has_tickets(int ledger); // true if they cannot be listed

int slurm_ledger_write(int ledger, const struct slurm_ticket *ticket); // 0 or -errno
// Writes what was written to the disk: before a submission.
int slurm_ledger_sync(int ledger);
// True: the trial will not start with this ticket, and has not. False: it has, or had.
bool slurm_ledger_revoke(int ledger, const struct slurm_ticket *ticket);
// Removes the ticket, taken or not, and the output of its task.
void slurm_ledger_remove(int ledger, const struct slurm_ticket *ticket);
// What Slurm wrote about the task: at most its last 4 KiB.
void slurm_ledger_read_output(int ledger, const struct slurm_ticket *ticket, struct text *ret);

// Ids of arrays. 0: not known.
uint64_t slurm_ledger_job(int ledger, const char *token);
int slurm_ledger_write_job(int ledger, const char *token, uint64_t job);
int slurm_ledger_cancel(int ledger, const char *token);
bool slurm_ledger_is_cancelled(int ledger, const char *token);
// Removes the files of an array without tickets.
void slurm_ledger_forget(int ledger, const char *token);

// Removes the files of arrays that are not `kept`: a sweep was killed before it could.
void slurm_ledger_tidy(int ledger, bool (*kept)(void *context, const char *token), void *context);

// In a task of an array. again: Slurm has started it before, and what it wrote then is removed.
// Returns 0, or -ENOENT: its ticket was removed, so the trial must not run; then the task's output
// is removed, too. *ret_owner is to be kept, and freed.
int slurm_ledger_take(int ledger, const struct slurm_ticket *ticket, bool again, char **ret_owner);
// Whether the trial is still that of the task: false if the sweep or Slurm has given it to another.
bool slurm_ledger_owns(int ledger, const struct slurm_ticket *ticket, const char *owner);
