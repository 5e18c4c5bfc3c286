// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Masks what looks secret among arguments.

#include "record/job/secret.h"

#include <ctype.h>
#include <string.h>

#include "base/cleanup.h"

#define MASK "***"

static const char *const secret_words[] = {
	"token",
	"secret",
	"password",
	"passwd",
	"passphrase",
	"api_key",
	"apikey",
	"access_key",
	"private_key",
	"credential",
	"auth",
};

static bool same_letter(char a, char b)
{
	return (a == '-' ? '_' : tolower((unsigned char)a)) == b;
}

static bool word_at(const char *at, const char *end, const char *word)
{
	while (at < end && *word && same_letter(*at, *word)) {
		at++;
		word++;
	}
	return !*word;
}

bool secret_name(const char *name, size_t length)
{
	for (size_t w = 0; w < ARRAY_LENGTH(secret_words); w++) {
		for (size_t i = 0; i < length; i++) {
			// "author" and "authentic" are no secrets; "auth" is where the word ends
			// there.
			bool found = word_at(name + i, name + length, secret_words[w]);
			size_t after = i + strlen(secret_words[w]);
			bool whole = strcmp(secret_words[w], "auth") != 0 || after == length ||
			             !isalpha((unsigned char)name[after]);
			if (found && whole) {
				return true;
			}
		}
	}
	return false;
}

// Where the password of scheme://user:password@host begins and ends. False where there is none.
static bool find_url_password(const char *text, size_t length, size_t *ret_from, size_t *ret_to)
{
	const char *scheme = memmem(text, length, "://", 3);
	if (!scheme) {
		return false;
	}
	const char *end = text + length, *at = scheme + 3, *colon = NULL;
	for (; at < end && *at != '/' && *at != '?' && *at != '#'; at++) {
		if (*at == ':' && !colon) {
			colon = at + 1;
		}
		if (*at == '@') {
			*ret_from = (size_t)((colon ? colon : scheme + 3) - text);
			*ret_to = (size_t)(at - text);
			return true;
		}
	}
	return false;
}

static void append_masked(
	struct text *json, const char *text, size_t from, size_t to, size_t length)
{
	struct text masked = {0};
	text_append(&masked, text, from);
	text_append(&masked, MASK, strlen(MASK));
	text_append(&masked, text + to, length - to);
	if (masked.data) {
		text_append_json(json, masked.data, masked.length);
	}
	text_done(&masked);
}

// Appends one argument. True where it names a secret that the next argument holds.
static bool append_argument(struct text *json, const char *text, size_t length)
{
	const char *equals = memchr(text, '=', length);
	size_t name = equals ? (size_t)(equals - text) : length;
	size_t from, to;
	if (equals && secret_name(text, name)) {
		append_masked(json, text, name + 1, length, length);
		return false;
	}
	if (find_url_password(text, length, &from, &to)) {
		append_masked(json, text, from, to, length);
		return false;
	}
	text_append_json(json, text, length);
	return !equals && length > 1 && text[0] == '-' && secret_name(text, length);
}

void secret_append_command(struct text *json, const char *command, size_t length)
{
	bool secret_follows = false;
	text_append(json, "[", 1);
	for (size_t at = 0; at < length;) {
		size_t n = strnlen(command + at, length - at);
		if (at > 0) {
			text_append(json, ",", 1);
		}
		if (secret_follows && !(n > 1 && command[at] == '-')) {
			text_append_json_string(json, MASK);
			secret_follows = false;
		} else {
			secret_follows = append_argument(json, command + at, n);
		}
		at += n + 1;
	}
	text_append(json, "]", 1);
}
