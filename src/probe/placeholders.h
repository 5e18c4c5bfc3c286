// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Placeholders in the command of a job: {batch_size}, {workers} and {learning_rate}, each with an
// optional default, {batch_size=32}.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define PLACEHOLDER_BATCH_MOST (1 << 24)

enum placeholder {
	PLACEHOLDER_BATCH_SIZE,
	PLACEHOLDER_WORKERS,
	PLACEHOLDER_LEARNING_RATE,
	N_PLACEHOLDERS,
};

#define PLACEHOLDER_BATCH_DEFAULT 16

// Values for the placeholders. -1, and 0 for the learning rate: its default; without one 16
// samples, 0 workers; a learning rate needs a default.
struct placeholder_values {
	int64_t batch_size, workers;
	double learning_rate;
};

// Whether a word of a command (ends with NULL) has any placeholder.
bool placeholders_any(char *const *command);
// Whether it has this one; then its default is in *ret_otherwise, NAN without one.
bool placeholders_has(char *const *command, enum placeholder kind, double *ret_otherwise);
// Finds braces that are nearly a placeholder: a misspelt name, "{batchsize=16}", or a value that is
// none, "{workers=two}". Other braces (JSON, format strings, variables of a shell) are the job's.
// Returns 0, or -EINVAL with a line.
int placeholders_check(char *const *command, struct error *e);
// The command with values; ends with NULL. NULL: out of memory.
char **placeholders_fill(char *const *command, const struct placeholder_values *values);
void placeholders_free(char **command);
