// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What the files that look for secrets share.

#pragma once

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

// A text, and which of its bytes are secret.
struct secret_marks {
	const char *text; // ends with NUL
	size_t length;
	bool *secret; // [length]
};

static inline void secret_mark(const struct secret_marks *m, size_t from, size_t to)
{
	if (to > from) {
		memset(m->secret + from, true, to - from);
	}
}

static inline bool secret_is_name_byte(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

// Whether a list " a b c " has a word of `length` bytes.
bool secret_listed(const char *list, const char *word, size_t length);

// secret_name.c: names that are secret in the query of a URL only: sig, key.
bool secret_query_name(const char *name, size_t length);

// --tokens, which takes secrets or a number of tokens.
bool secret_tokens_option(const char *name, size_t length);
// What such an option has for a number, or a file: 300, 1e9, 10B, a/b.bin.
bool secret_is_count(const char *value, size_t length);

// secret_value.c: whether a value is a placeholder: ${NAME}, {name}.
bool secret_is_reference(const char *value, size_t length);
// Marks tokens by their prefixes, JSON web tokens, private keys, "Bearer X", and the
// user information of URLs.
void secret_mark_values(const struct secret_marks *m);

// secret_program.c: what the words of a command line are, one after the other.
struct secret_words {
	const char *program; // the last that was named and that we know, in the text of that word
	size_t program_length;
	bool subcommand; // the word that the program's row asks for was there
	enum secret_kind {
		SECRET_NOTHING,
		SECRET_WHOLE, // all of the word
		SECRET_AFTER, // what comes after the first of some delimiters: user:password
	} pending; // what the next word is
	bool may_be_count; // the option before may have a number or a file: --tokens
	bool may_be_flag; // the option before may have no value: --auth
	const char *delimiters;
};

struct secret_word {
	enum secret_kind kind;
	size_t from; // of what is secret in it
};

// What the next word is. The words of a script are given without their quotes.
struct secret_word secret_next_word(struct secret_words *w, const char *word, size_t length);
