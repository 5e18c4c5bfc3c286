// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The answer of `strain advise` as it is kept in the folder of its runs. Anyone may have written
// it: its size, types and numbers are checked, and its texts have to be escaped.

#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "run/measures.h"
#include "study/digest.h"

#define KEPT_ADVICE_NAME "advice.json"

enum { KEPT_ADVICE_BYTES_MAX = 1 << 20, KEPT_RUNS_MAX = 64, KEPT_LINES_MAX = 256 };

// A run of the answer. Texts are parts of its JSON.
struct kept_run {
	const char *name; // of the file, without directory; NULL: not known
	const char *step; // "now", "line", ...; NULL: not known
	int64_t batch_size; // -1: not known
	int64_t workers;
	double seconds; // NAN: not known
	double loss, accuracy, validation_s; // NAN: not compared
};

struct kept_advice {
	json_t *json; // owned
	double numbers[N_MEASURES]; // NAN: missing
	const char *reasons[N_MEASURES]; // why one is missing; static, or part of the JSON
	struct kept_run
		runs[KEPT_RUNS_MAX]; // [n_runs] in their order; the first carries the measures
	size_t n_runs;
	const char *page[KEPT_LINES_MAX]; // [n_page] the lines that were printed; 0: not kept
	size_t n_page;
	char memory[32]; // the limit, if it was set: "4GiB"; "": none was
};

// Whether a directory holds an answer.
bool kept_advice_is_in(const char *directory);
// Reads the answer in a directory. -ENOENT: there is none, without a line; other errors: -errno,
// one line with the path.
int kept_advice_read(const char *directory, struct kept_advice *ret, struct error *e);
// The same of the contents of the file. The line has no path.
int kept_advice_parse(const char *data, size_t length, struct kept_advice *ret, struct error *e);
void kept_advice_done(struct kept_advice *a);

// Adds to the digest d of the run in FILE (without directory) what the answer says of it: the
// labels step, batch_size, workers and memory where the run has none of that name, and measures.
// -ENOMEM.
int kept_advice_tell(const struct kept_advice *a, const char *file, struct digest *d);

// Why a run that belongs to no answer lacks its measures.
extern const char kept_advice_none[];
