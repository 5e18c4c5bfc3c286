// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Text with placeholders: ${name}, ${args}, and $${ for what would be one. No shell: nothing else
// is special.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"

struct placeholder {
	size_t from; // of its '$', in bytes
	size_t to; // behind its '}'
	char name[80];
};

// The next placeholder at or after `from`. 1; 0: there is none; -EINVAL: it has no end or no name,
// and e reads "expected ..., found ...".
int template_next(const char *template, size_t from, struct placeholder *ret, struct error *e);

// The text with the values that `lookup` gives (NULL: the placeholder stays as it is).
void template_expand(struct text *t, const char *template,
	const char *(*lookup)(const void *context, const char *name), const void *context);

// The words of a command line: blanks, '...', "...", and backslashes as in a shell; ${...} is one
// word whatever is in it. Nothing is expanded. Each word and the array (ended by NULL) are owned by
// the caller. -EINVAL as above: also for an operator such as `|`, which only a shell knows.
int template_split(const char *line, char ***ret_words, size_t *ret_n, struct error *e);
void template_free_words(char **words);
