// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Kernel text with one name and number a line: "MemTotal:  24684096 kB", "anon 4096", "rchar: 12".

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/parse.h"

// What a number is where the kernel did not tell it: the same integer as VALUE_MISSING, so that it
// passes through a source untouched.
#define KEYED_ABSENT INT64_MIN

// Takes the next line that has a name. value begins behind the name and its colon and ends with the
// line. False at the end of the text.
bool keyed_next(struct cursor *text, struct cursor *ret_key, struct cursor *ret_value);

// The number that value begins with; "kB" behind it makes bytes of it. KEYED_ABSENT where there is
// none or it passes 63 bits.
int64_t keyed_number(struct cursor value);

// Finds the numbers of n names, in one pass and fastest where the names stand in the text's order.
// values[i] is KEYED_ABSENT for what the text lacks; of a name that comes twice the first counts.
// Returns how many were found.
size_t keyed_parse(struct cursor text, const char *const *keys, size_t n, int64_t *values);
