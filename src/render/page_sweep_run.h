// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What the page of a sweep shows of one run when it is opened.

#pragma once

#include <jansson.h>
#include <stddef.h>

#include "base/error.h"

struct catalogue_run;

// Strings of a page, each once.
struct page_strings {
	json_t *list;
	json_t *places; // by string
};

int page_strings_init(struct page_strings *strings);
void page_strings_done(struct page_strings *strings);
// Its place in the list; -1 for NULL. Very long ones are cut.
json_t *page_strings_add(struct page_strings *strings, const char *string);

// What all runs of a page share.
struct page_sweep_room {
	struct page_strings *strings;
	json_t *line_kinds; // grows by kinds of lines that are new
	size_t epochs; // at most so many of a run
	size_t output_bytes; // of a run that succeeded
	size_t failed_output_bytes; // of another
	size_t points; // of a line
};

// NULL: out of memory. What of the run cannot be read is left out.
json_t *page_sweep_run(
	const struct catalogue_run *run, const char *report, struct page_sweep_room *room);
