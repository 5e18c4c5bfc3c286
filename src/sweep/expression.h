// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Constraints of a plan: "workers <= 2 * cpus and model != 'vgg16'".
//
//   or, and, not, == != < <= > >= (not chained), + -, * / %, -x, ( ), numbers, sizes (4GiB,
//   100MB/s), texts in quotes, names of factors. A value that reads as a number, a size or a rate
//   is a number; `unlimited` is larger than any number. Every other value is a text, which can only
//   be equal to another or not.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define EXPRESSION_MAX_DEPTH 300 // levels of operators; about 50 parentheses
#define EXPRESSION_MAX_PARTS 1000

struct expression;

// On failure *ret_at is the offset of the error in bytes, and e has "expected ..., found ...".
int expression_parse(const char *text, struct expression **ret, size_t *ret_at, struct error *e);
void expression_free(struct expression *x);

// The names in the expression, in order, with repetitions, and their offsets.
size_t expression_n_names(const struct expression *x);
const char *expression_name(const struct expression *x, size_t i, size_t *ret_at);

// Evaluates the expression. `lookup` returns the values of names, never NULL. Errors as above.
int expression_holds(const struct expression *x,
	const char *(*lookup)(const void *context, const char *name), const void *context,
	bool *ret, size_t *ret_at, struct error *e);

// Reads a value as a number. False: it is a text.
bool expression_number(const char *text, double *ret);
