// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The figures and sentences of a page: tiles, chips, the table of epochs, the notes at its end.

#pragma once

#include <jansson.h>

#define MOST_EPOCHS 2000 // that are drawn and listed; the notes count the others

struct analysis;
struct panel_list;

// A string; NULL is null, bytes that are not UTF-8 become '?'.
json_t *page_string(const char *string);
json_t *page_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
// A number; null where it is not finite.
json_t *page_number(double value);

json_t *page_started(const struct analysis *a);
json_t *page_notice(const struct analysis *a);
json_t *page_chips(const struct analysis *a);
json_t *page_tiles(const struct analysis *a);
// Sets epoch_columns and epoch_rows.
void page_epoch_table(json_t *run, const struct analysis *a);
json_t *page_notes(const struct analysis *a, const struct panel_list *panels);
