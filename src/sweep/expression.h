// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Constraints of a plan: "workers <= 2 * cpus and model != 'vgg16'".
//
//   or, and, not, == != < <= > >= (not chained), + -, * / %, -x, ( ), numbers, sizes (4GiB,
//   100MB/s), texts in quotes, names of what varies. A value that reads as a number, a size or a
//   rate is a number; `unlimited` is more than any; every other is a text, which is only the same
//   as another or not.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define EXPRESSION_MAX_DEPTH 300 // levels of operators; about 50 parentheses
#define EXPRESSION_MAX_PARTS 1000

struct expression;

// On failure *ret_at is where in the text, in bytes, and e reads "expected ..., found ...".
int expression_parse(const char *text, struct expression **ret, size_t *ret_at, struct error *e);
void expression_free(struct expression *x);

// The names in it, in order, with repetitions; and where each stands.
size_t expression_n_names(const struct expression *x);
const char *expression_name(const struct expression *x, size_t i, size_t *ret_at);

// Whether it holds where `lookup` gives the values of names (never NULL). As above on failure.
int expression_holds(const struct expression *x,
	const char *(*lookup)(const void *context, const char *name), const void *context,
	bool *ret, size_t *ret_at, struct error *e);

// The number that a value reads as. False: it is a text.
bool expression_number(const char *text, double *ret);
