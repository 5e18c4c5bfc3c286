// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Text with placeholders: ${name}, ${args}. $${ stands for a literal ${. There is no shell: nothing
// else is special.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"

struct placeholder {
	size_t from; // offset of its '$', in bytes
	size_t to; // offset after its '}'
	char name[80];
};

// Finds the next placeholder at or after `from`. Returns 1; 0: there is none; -EINVAL: it has no
// end or no name, and e has "expected ..., found ...".
int template_next(const char *template, size_t from, struct placeholder *ret, struct error *e);

// Appends the text with the values that `lookup` returns (NULL: the placeholder is kept).
void template_expand(struct text *t, const char *template,
	const char *(*lookup)(const void *context, const char *name), const void *context);

// Splits a command line into words: blanks, '...', "...", and backslashes as in a shell; ${...} is
// one word whatever it contains. Nothing is expanded. The words and the array (terminated by NULL)
// are owned by the caller. -EINVAL as above; also for an operator such as `|`, which would need a
// shell.
int template_split(const char *line, char ***ret_words, size_t *ret_n, struct error *e);
void template_free_words(char **words);
