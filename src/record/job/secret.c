// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Masking what looks secret.

#include "record/job/secret.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

// A part of a name that makes it secret, unless what follows the part says that it is another word.
struct secret_part {
	const char *part;
	const char *other[2]; // "token" is none in "tokens"
	const char *again[2]; // "auth" is one in "authorization", though "author" is none
};

static const struct secret_part parts[] = {
	{"apikey", {NULL}, {NULL}},
	{"auth", {"or", NULL}, {"oriz", "oris"}},
	{"credential", {NULL}, {NULL}},
	{"passphrase", {NULL}, {NULL}},
	{"passwd", {NULL}, {NULL}},
	{"password", {NULL}, {NULL}},
	{"secret", {NULL}, {NULL}},
	{"token", {"s", "i"}, {NULL}},
};

static bool begins_with_any(const char *text, const char *const *words)
{
	for (size_t i = 0; i < 2 && words[i]; i++) {
		if (strncmp(text, words[i], strlen(words[i])) == 0) {
			return true;
		}
	}
	return false;
}

static bool has_part(const char *name, const struct secret_part *part)
{
	for (const char *at = name; (at = strstr(at, part->part)); at++) {
		const char *after = at + strlen(part->part);
		if (!begins_with_any(after, part->other) || begins_with_any(after, part->again)) {
			return true;
		}
	}
	return false;
}

bool secret_name(const char *name, size_t length)
{
	// Lower case, without '-' and '_': API-Key is apikey. Longer names are judged by their end.
	char plain[128];
	size_t used = 0;
	size_t from = length > sizeof(plain) - 1 ? length - (sizeof(plain) - 1) : 0;
	for (size_t i = from; i < length; i++) {
		if (name[i] != '-' && name[i] != '_' && name[i] != '.') {
			plain[used++] = (char)tolower((unsigned char)name[i]);
		}
	}
	plain[used] = '\0';
	for (size_t i = 0; i < ARRAY_LENGTH(parts); i++) {
		if (has_part(plain, &parts[i])) {
			return true;
		}
	}
	return false;
}

static bool is_name_byte(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

static bool is_option(const char *word, size_t length)
{
	return length > 1 && word[0] == '-' && !(length == 2 && word[1] == '-');
}

// Where a value that began after a name ends. At the start of an argument it is all of the rest.
static size_t value_length(const char *value, bool whole)
{
	if (whole) {
		return strlen(value);
	}
	if (*value == '"' || *value == '\'') {
		const char *close = strchr(value + 1, *value);
		return close ? (size_t)(close - value) + 1 : strlen(value);
	}
	return strcspn(value, " \t\n;&|\"'");
}

// What stands between a secret name of `length` bytes and its value; 0 where no value follows.
static size_t separator_length(const char *name, size_t length)
{
	const char *after = name + length;
	size_t blanks = strspn(after + (*after == ':'), " ");
	if (*after == '=') {
		return 1;
	}
	if (*after == ':') {
		return 1 + blanks;
	}
	return is_option(name, length) ? blanks : 0;
}

// user:password@ after "://": the length of what stands before the password, 0 where there is none.
static size_t password_offset(const char *authority, size_t *ret_length)
{
	size_t length = strcspn(authority, "/?# \t\n\"'");
	const char *at = memrchr(authority, '@', length);
	const char *colon = at ? memchr(authority, ':', (size_t)(at - authority)) : NULL;
	if (!colon) {
		return 0;
	}
	*ret_length = (size_t)(at - colon) - 1;
	return (size_t)(colon - authority) + 1;
}

// "Bearer x" and "Basic x" are two words of one value.
static size_t scheme_length(const char *value)
{
	static const char *const schemes[] = {"Bearer ", "Basic ", "Token "};
	for (size_t i = 0; i < ARRAY_LENGTH(schemes); i++) {
		if (strncasecmp(value, schemes[i], strlen(schemes[i])) == 0) {
			return strlen(schemes[i]);
		}
	}
	return 0;
}

static void append_masked(struct text *out, const char *argument)
{
	for (const char *at = argument; *at;) {
		size_t length = 0, password;
		while (is_name_byte(at[length])) {
			length++;
		}
		if (length == 0) {
			size_t offset = strncmp(at, "://", 3) == 0
			                        ? password_offset(at + 3, &password)
			                        : 0;
			text_append(out, at, offset ? 3 + offset : 1);
			at += offset ? 3 + offset + password : 1;
			text_append_string(out, offset ? "***" : "");
			continue;
		}
		size_t separator = separator_length(at, length);
		text_append(out, at, length);
		if (separator > 0 && at[length + separator] && secret_name(at, length)) {
			const char *value = at + length + separator;
			size_t scheme = scheme_length(value);
			size_t value_bytes = scheme + value_length(value + scheme,
							      at == argument && at[length] == '=');
			text_append(out, at + length, separator);
			text_append_string(out, value_bytes > 0 ? "***" : "");
			at = value + value_bytes;
			continue;
		}
		at += length;
	}
}

void secret_append(struct text *out, const char *previous, const char *argument)
{
	size_t length = previous ? strlen(previous) : 0;
	bool value = length > 0 && is_option(previous, length) && !strchr(previous, '=') &&
	             secret_name(previous, length) && argument[0] != '-';
	if (value) {
		text_append_string(out, *argument ? "***" : "");
	} else {
		append_masked(out, argument);
	}
}

static void append_json(struct text *out, const char *previous, const char *argument, bool first)
{
	_cleanup_text_ struct text masked = {0};
	secret_append(&masked, previous, argument);
	out->failed = out->failed || masked.failed;
	text_append_string(out, first ? "" : ",");
	text_append_json(out, masked.data ? masked.data : "", masked.length);
}

void secret_append_arguments(struct text *out, char *const *arguments)
{
	text_append_string(out, "[");
	for (size_t i = 0; arguments[i]; i++) {
		append_json(out, i > 0 ? arguments[i - 1] : NULL, arguments[i], i == 0);
	}
	text_append_string(out, "]");
}

void secret_append_command(struct text *out, const char *data, size_t length)
{
	_cleanup_free_ char *copy = malloc(length + 1);
	if (!copy) {
		out->failed = true;
		return;
	}
	memcpy(copy, data, length);
	copy[length] = '\0';
	const char *previous = NULL;
	text_append_string(out, "[");
	for (const char *at = copy; at < copy + length; at += strlen(at) + 1) {
		append_json(out, previous, at, at == copy);
		previous = at;
	}
	text_append_string(out, "]");
}
