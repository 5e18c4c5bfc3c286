// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Fields of comma-separated values, quoted as RFC 4180 says; lines end with LF. Missing is an empty
// field.

#pragma once

#include <stdio.h>

#include "base/text.h"

// Invalid UTF-8 becomes U+FFFD. NULL is missing. What a spreadsheet would take for a formula (it
// begins with = + - @, and is no number) gets an apostrophe before it: labels and names are chosen
// by whoever started the run.
void csv_append_text(struct text *t, const char *field);
// Writes what was made of these: as it is, or to a terminal with control characters escaped.
void csv_print(const char *data, size_t length, FILE *stream);
// 15 digits; not finite is missing.
void csv_append_number(struct text *t, double value);
