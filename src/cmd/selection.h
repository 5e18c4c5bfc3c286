// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Selection of runs, common to `ls` and `compare`.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "study/catalogue.h"

struct argp_state;

enum { WHERE_MAX = 32 };

enum condition_kind {
	WHERE_IS,
	WHERE_IS_NOT,
	WHERE_LESS,
	WHERE_AT_MOST,
	WHERE_MORE,
	WHERE_AT_LEAST
};

struct condition {
	char *name; // of a label, else of a measure; owned
	enum condition_kind kind;
	const char *value;
};

struct selection {
	struct condition where[WHERE_MAX];
	size_t n_where;
};

// Parses "LABEL=VALUE", "MEASURE>NUMBER", ...; ends the program where it is neither.
void selection_add(struct selection *s, const char *argument, const struct argp_state *state);
void selection_done(struct selection *s);
bool selection_has(const struct selection *s, const struct digest *run);
// Whether a condition needs more than the job as a whole.
bool selection_needs_all(const struct selection *s);

// Reads the catalogue, with progress, and says on standard error what cannot be read. An exit
// status.
int selection_read(char *const *paths, size_t n, const struct catalogue_options *wanted,
	struct catalogue *ret);

// One line on standard error: "OPTION: no run has a label 'X'; did you mean 'Y'? There are: ...".
// measures: names of measures count too.
void selection_say_unknown(
	const struct catalogue *c, const char *option, const char *name, bool measures_too);
// Says so for the first condition whose name is neither a label of any run nor a measure.
bool selection_is_known(const struct selection *s, const struct catalogue *c);
