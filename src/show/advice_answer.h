// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The answer of `strain advise`: for people, and as JSON (docs/json.md).

#pragma once

#include <jansson.h>
#include <stdio.h>

#include "base/error.h"
#include "probe/advice.h"

// Prints the answer. folder: where the probes are.
void advice_answer_print(
	FILE *out, const struct advice *a, const struct advice_config *config, const char *folder);
// Prints what the rules of Tripathi 2019 estimate from the same runs.
void advice_answer_print_thesis(FILE *out, const struct advice *a);
// Both as an array of lines without secrets; a new reference; NULL: out of memory.
json_t *advice_answer_page(const struct advice *a, const struct advice_config *config,
	const char *folder, bool thesis);
// Prints a request for what the advised configuration needs, in the words of a scheduler, and its
// command. Returns 0; -ENODATA with the reason if that is not known, and prints nothing.
enum advise_request { REQUEST_NONE, REQUEST_SBATCH, REQUEST_DOCKER, REQUEST_KUBERNETES };
int advice_answer_request(FILE *out, const struct advice *a, const struct advice_config *config,
	enum advise_request request, struct error *e);
// Returns a new reference; NULL: out of memory.
json_t *advice_answer_json(const struct advice *a, const struct advice_config *config);
