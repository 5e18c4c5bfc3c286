// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The output of Slurm's commands, read with bounds: names, reasons and comments in it are those
// that users and administrators chose.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "run/outcome.h"

// States of a job, as far as they differ for a sweep.
enum slurm_state {
	SLURM_UNKNOWN, // a word that is not in the table
	SLURM_WAITING, // pending, requeued, held, being configured
	SLURM_RUNNING, // running, suspended, completing
	SLURM_COMPLETED, // exit status 0
	SLURM_FAILED, // another one, or a signal
	SLURM_OUT_OF_MEMORY,
	SLURM_TIMEOUT, // also its deadline
	SLURM_CANCELLED,
	SLURM_PREEMPTED,
	SLURM_NODE_FAIL, // also a node that did not boot
	SLURM_GONE, // Slurm does not know the job, or does no longer
};

// "PENDING", or "CANCELLED by 1000".
enum slurm_state slurm_state_of(const char *word, size_t length);
// Whether a job in this state will not run any more.
bool slurm_state_is_final(enum slurm_state state);

// The id of a job from the output of `sbatch --parsable`: "123" or "123;cluster". False: there is
// none.
bool slurm_text_job(const char *data, size_t size, uint64_t *ret);

// The value of a key from `scontrol show config`: "SLURM_VERSION           = 22.05.8". Owned by the
// caller; NULL: the key is missing, or out of memory.
char *slurm_text_setting(const char *data, size_t size, const char *key);
// "22.05.8" as 2205; 0: not a version.
unsigned slurm_text_version(const char *version);

// A line of `squeue --format=SLURM_QUEUE_FORMAT`.
#define SLURM_QUEUE_FORMAT "%F|%K|%T|%N|%r|%j"
struct slurm_queued {
	uint64_t job; // of the array
	uint32_t task; // its index in the array
	enum slurm_state state;
	const char *reason; // borrowed, without an end
	size_t reason_length;
	const char *name; // borrowed, without an end
	size_t name_length;
};
// Calls `each` with each line that is one. Returns the number of other lines.
size_t slurm_text_queue(const char *data, size_t size,
	void (*each)(void *context, const struct slurm_queued *line), void *context);

// A job in the output of `scontrol --oneliner show job ID`.
struct slurm_job {
	enum slurm_state state;
	int exit_status; // -1: not known
	int exit_signal; // 0: none
	char reason[64]; // printable
	char node[64]; // printable; of its batch script
	unsigned restarts;
};
// Finds the task of an array (task 0: a job that is none). False: it is not there.
bool slurm_text_find_job(const char *data, size_t size, uint32_t task, struct slurm_job *ret);

// How a trial ended whose processes could not say so themselves. output: what slurmstepd wrote. The
// outcome is N_OUTCOMES if neither tells; then, and always, *why is a line.
enum outcome slurm_text_judge(
	const struct slurm_job *job, const char *output, size_t output_size, struct text *why);
