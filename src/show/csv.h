// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Fields of comma-separated values, quoted as in RFC 4180. Lines end with LF. A missing value is an
// empty field.

#pragma once

#include <stdio.h>

#include "base/text.h"

// Invalid UTF-8 becomes U+FFFD; NULL is missing. A field that a spreadsheet would take for a
// formula (it begins with = + - @ and is not a number) gets a leading apostrophe: labels and names
// come from whoever started the run.
void csv_append_text(struct text *t, const char *field);
// Prints such fields unchanged; to a terminal, with control characters escaped.
void csv_print(const char *data, size_t length, FILE *stream);
// 15 digits. A number that is not finite is missing.
void csv_append_number(struct text *t, double value);
