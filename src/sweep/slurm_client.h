// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Runs a command of Slurm and takes its output.

#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"

struct slurm_command { // a program, found with PATH, and its arguments
	char **words; // [n_words], owned
	size_t n_words;
	size_t capacity;
	bool failed; // out of memory
	const volatile sig_atomic_t *interrupts; // more than 0 ends it; NULL: nothing does
};

void slurm_command_add(struct slurm_command *c, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void slurm_command_add_words(struct slurm_command *c, const char *const *words, size_t n);
void slurm_command_done(struct slurm_command *c);

struct slurm_answer {
	struct text output; // at most 16 MiB
	struct text
		complaint; // what it wrote to standard error, one printable line, "" for nothing
};

// Runs a command with `input` as its standard input, at most for a minute: Slurm's own patience is
// shorter. It does not receive signals of the terminal, since an interrupted sbatch may or may not
// have submitted. Frees the command. Returns 0; or -errno with a line that has the complaint:
// -ENOENT if there is no such program, -ETIME if it took too long, -EINTR if it was interrupted,
// -EIO if it failed, -EFBIG if it printed too much, -ENOMEM.
int slurm_client_run(struct slurm_command *command, const char *input, size_t input_size,
	struct slurm_answer *ret, struct error *e);
void slurm_answer_done(struct slurm_answer *a);

#define _cleanup_slurm_answer_ __attribute__((cleanup(slurm_answer_done)))
