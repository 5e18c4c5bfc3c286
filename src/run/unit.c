// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The keys are from the job, which may have written anything.

#include "run/unit.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define TOKENS_MOST 1e9 // more than any sample has

const char *unit_word(const char *unit)
{
	size_t length = unit ? strlen(unit) : 0;
	bool word = length > 0 && length < UNIT_BYTES &&
	            strspn(unit, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-") ==
	                    length;
	return word ? unit : "";
}

const char *unit_of_samples(struct reader *r)
{
	const char *unit = unit_word(r ? reader_run(r, "samples_unit") : NULL);
	return *unit ? unit : "samples";
}

const char unit_no_tokens[] = "the batches of the job do not say how many tokens they have";

double unit_tokens(const char *text)
{
	char *end = NULL;
	double tokens = text ? strtod(text, &end) : NAN;
	return text && *end == '\0' && tokens > 0 && tokens <= TOKENS_MOST ? tokens : NAN;
}

double unit_tokens_per_sample(struct reader *r)
{
	return unit_tokens(r ? reader_run(r, "tokens_per_sample") : NULL);
}
