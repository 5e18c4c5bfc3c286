// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Selection of runs by conditions on labels and measures.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "study/catalogue.h"

struct text;

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

// Adds the condition "LABEL=VALUE", "MEASURE>NUMBER", ...; the argument must live as long. -EINVAL
// if it is neither; e says why.
int selection_add(struct selection *s, const char *argument, struct error *e);
void selection_done(struct selection *s);
bool selection_has(const struct selection *s, const struct digest *run);
// Whether a condition needs more than the job as a whole.
bool selection_needs_all(const struct selection *s);

// The first name in a condition that is a measure which needs a price list, and no label of any
// run; NULL: none is.
const char *selection_needs_prices(const struct selection *s, const struct catalogue *c);

// The first name in a condition that is neither a label of any run nor a measure; NULL: none.
const char *selection_unknown_name(const struct selection *s, const struct catalogue *c);
// Appends "OPTION: no run has a label 'X'; did you mean 'Y'? There are: ...". measures_too: names
// of measures count too.
void selection_append_unknown(struct text *line, const struct catalogue *c, const char *option,
	const char *name, bool measures_too);

// The selected runs of a catalogue, in the order of the paths that it was read from; those of one
// path with the oldest first.
struct selected {
	const struct digest **runs; // [n]
	const char **sources; // [n] the paths that found them
	size_t n;
};
// Returns 0 or -ENOMEM; selected_done is needed after both.
int selected_find(const struct selection *s, const struct catalogue *c, char *const *paths,
	struct selected *ret);
void selected_done(struct selected *selected);
