// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The unit of a run's rates: a job or its hooks may say what its samples are (the run's key
// samples_unit), and how many tokens a sample has (tokens_per_sample).

#pragma once

#include "runfile/reader.h"

#define UNIT_BYTES 33 // of the longest unit, with its NUL

// The value of samples_unit if it is a word, else "". NULL is none.
const char *unit_word(const char *unit);
// "steps"; "samples" if the job does not say, or says no word. Lives as long as the reader, which
// may be NULL.
const char *unit_of_samples(struct reader *r);
// The value of tokens_per_sample, the mean number of tokens in a sample, above 0; NAN: not known.
// NULL is none.
double unit_tokens(const char *text);
// The same of a run. The reader may be NULL.
double unit_tokens_per_sample(struct reader *r);
// Why there is no rate in tokens.
extern const char unit_no_tokens[];
