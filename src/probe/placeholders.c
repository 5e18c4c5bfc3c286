// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Finds and fills placeholders.

#include "probe/placeholders.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/suggest.h"
#include "base/text.h"

static const char *const names[N_PLACEHOLDERS] = {
	[PLACEHOLDER_BATCH_SIZE] = "batch_size",
	[PLACEHOLDER_WORKERS] = "workers",
	[PLACEHOLDER_LEARNING_RATE] = "learning_rate",
};

struct slot { // a placeholder in a word
	size_t from, to;
	enum placeholder kind;
	double otherwise; // its default; NAN: none
	const char *text; // the default as it was written, text_length bytes
	size_t text_length;
};

static unsigned least_of(enum placeholder kind)
{
	return kind == PLACEHOLDER_BATCH_SIZE ? 1 : 0;
}

// Takes a default: a whole number, or of a learning rate any number above 0.
static bool take_default(struct cursor *c, enum placeholder kind, struct slot *ret)
{
	uint64_t whole;
	char copy[40], *end;
	const char *from = c->at;
	size_t length = strcspn(from, "}");
	if (kind != PLACEHOLDER_LEARNING_RATE) {
		bool valid = cursor_u64(c, &whole) && whole <= PLACEHOLDER_BATCH_MOST &&
		             whole >= least_of(kind);
		ret->otherwise = valid ? (double)whole : NAN;
		ret->text = from;
		ret->text_length = (size_t)(c->at - from);
		return valid;
	}
	if (length >= sizeof(copy)) {
		return false;
	}
	memcpy(copy, from, length);
	copy[length] = '\0';
	ret->otherwise = strtod(copy, &end);
	ret->text = from;
	ret->text_length = length;
	c->at += length;
	return length > 0 && *end == '\0' && ret->otherwise > 0 && isfinite(ret->otherwise);
}

// Finds the first placeholder in a word, from an offset on.
static bool find_slot(const char *word, size_t from, struct slot *ret)
{
	for (const char *at = strchr(word + from, '{'); at; at = strchr(at + 1, '{')) {
		for (enum placeholder kind = 0; kind < N_PLACEHOLDERS; kind++) {
			struct cursor c = cursor_of(at, strlen(at));
			struct slot slot = {.kind = kind, .otherwise = NAN};
			if (!cursor_literal(&c, "{") || !cursor_literal(&c, names[kind]) ||
				(cursor_literal(&c, "=") && !take_default(&c, kind, &slot)) ||
				!cursor_literal(&c, "}")) {
				continue;
			}
			slot.from = (size_t)(at - word);
			slot.to = (size_t)(c.at - word);
			*ret = slot;
			return true;
		}
	}
	return false;
}

bool placeholders_any(char *const *command)
{
	struct slot slot;
	bool found = false;
	for (; *command && !found; command++) {
		found = find_slot(*command, 0, &slot);
	}
	return found;
}

bool placeholders_has(char *const *command, enum placeholder kind, double *ret_otherwise)
{
	for (; *command; command++) {
		struct slot slot = {0};
		for (size_t from = 0; find_slot(*command, from, &slot); from = slot.to) {
			if (slot.kind == kind) {
				*ret_otherwise = slot.otherwise;
				return true;
			}
		}
	}
	return false;
}

// Misspelt ones -----------------------------------------------------------------------------------

enum { NAME_BYTES = 24 }; // of a name that may be misspelt

// So many letters of a name make one error likely: {worker} is {workers}, {markers} is not.
#define LETTERS_PER_ERROR 4

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-';
}

// The name in braces, in lower case, with "_" for "-". Returns its length; 0: the brace is no
// placeholder, or belongs to another language: ${name}, {{name}}.
static size_t read_name(const char *word, const char *brace, char *ret)
{
	size_t n = 0;
	bool other = brace > word && (brace[-1] == '$' || brace[-1] == '{');
	for (const char *c = brace + 1; !other && is_letter(*c); c++) {
		if (n == NAME_BYTES - 1) {
			return 0;
		}
		ret[n++] = *c == '-' ? '_' : *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
	}
	ret[n] = '\0';
	return n;
}

// The placeholder that a name means; NULL: none.
static const char *find_meant(const char *name)
{
	struct suggestion_of_word meant = SUGGEST_NONE;
	for (enum placeholder kind = 0; kind < N_PLACEHOLDERS; kind++) {
		suggest_consider(&meant, name, names[kind]);
	}
	bool near = meant.word && meant.distance * LETTERS_PER_ERROR <= strlen(meant.word);
	return near ? meant.word : NULL;
}

// Checks one pair of braces, which is no placeholder.
static int check_braces(const char *word, const char *brace, struct error *e)
{
	char name[NAME_BYTES];
	size_t n = read_name(word, brace, name), length = strcspn(brace, "}");
	const char *value = brace + 1 + n, *meant = n > 0 ? find_meant(name) : NULL;
	bool valued = *value == '=' && value[1] && value[1] != '}';
	// "{worker}" in a word of code is a variable, in a name of a file the job's own pattern.
	bool alone = (brace == word || brace[-1] == '=') && brace[length] && !brace[length + 1];
	if (!meant || brace[length] != '}' || !(valued || (*value == '}' && alone))) {
		return 0;
	}
	if (n != strlen(meant) || strncmp(brace + 1, meant, n) != 0) {
		return error_set(e, EINVAL, "expected the placeholder {%s%.*s}, found '%.*s'",
			meant, (int)(brace + length - value), value, (int)length + 1, brace);
	}
	char range[64] = "number above 0";
	if (strcmp(meant, names[PLACEHOLDER_LEARNING_RATE]) != 0) {
		bool batch = strcmp(meant, names[PLACEHOLDER_BATCH_SIZE]) == 0;
		snprintf(range, sizeof(range), "whole number from %u to %d",
			least_of(batch ? PLACEHOLDER_BATCH_SIZE : PLACEHOLDER_WORKERS),
			PLACEHOLDER_BATCH_MOST);
	}
	return error_set(e, EINVAL, "expected a %s as the value of {%s}, found '%.*s'", range,
		meant, (int)(brace + length - value - 1), value + 1);
}

int placeholders_check(char *const *command, struct error *e)
{
	int r = 0;
	for (; *command && r == 0; command++) {
		const char *word = *command;
		for (const char *at = strchr(word, '{'); at && r == 0; at = strchr(at + 1, '{')) {
			struct slot slot;
			bool is = find_slot(word, (size_t)(at - word), &slot) &&
			          slot.from == (size_t)(at - word);
			r = is ? 0 : check_braces(word, at, e);
		}
	}
	return r;
}

// Values ------------------------------------------------------------------------------------------

static void append_value(
	struct text *text, const struct slot *slot, const struct placeholder_values *values)
{
	int64_t whole = slot->kind == PLACEHOLDER_WORKERS ? values->workers : values->batch_size;
	if (slot->kind == PLACEHOLDER_LEARNING_RATE && values->learning_rate > 0) {
		text_format(text, "%.6g", values->learning_rate);
	} else if (slot->kind != PLACEHOLDER_LEARNING_RATE && whole >= 0) {
		text_format(text, "%" PRId64, whole);
	} else if (slot->text_length > 0) {
		text_append(text, slot->text, slot->text_length);
	} else if (slot->kind == PLACEHOLDER_BATCH_SIZE) {
		text_format(text, "%d", PLACEHOLDER_BATCH_DEFAULT);
	} else if (slot->kind == PLACEHOLDER_WORKERS) {
		text_append_string(text, "0");
	}
}

static char *expand(const char *word, const struct placeholder_values *values)
{
	_cleanup_text_ struct text text = {0};
	struct slot slot = {0};
	size_t from = 0;
	while (find_slot(word, from, &slot)) {
		text_append(&text, word + from, slot.from - from);
		append_value(&text, &slot, values);
		from = slot.to;
	}
	text_append_string(&text, word + from);
	return text_steal(&text);
}

char **placeholders_fill(char *const *command, const struct placeholder_values *values)
{
	size_t n = 0;
	while (command[n]) {
		n++;
	}
	char **words = calloc(n + 1, sizeof(*words));
	for (size_t i = 0; words && i < n; i++) {
		words[i] = expand(command[i], values);
		if (!words[i]) {
			placeholders_free(words);
			return NULL;
		}
	}
	return words;
}

void placeholders_free(char **command)
{
	for (char **word = command; word && *word; word++) {
		free(*word);
	}
	free(command);
}
