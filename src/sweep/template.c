// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Placeholders and words.

#include "sweep/template.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"

int template_next(const char *template, size_t from, struct placeholder *ret, struct error *e)
{
	const char *at = template + from;
	for (; (at = strchr(at, '$')); at++) {
		if (at[1] == '$' && at[2] == '{') {
			at += 2; // skips $${
		} else if (at[1] == '{') {
			break;
		}
	}
	if (!at) {
		return 0;
	}
	size_t length = strcspn(at + 2, "}");
	const char *name = at + 2;
	bool plain = length > 0 && length < sizeof(ret->name);
	for (size_t i = 0; i < length && plain; i++) {
		plain = isalnum((unsigned char)name[i]) || strchr("_.-", name[i]);
	}
	if (!plain || name[length] != '}') {
		return error_set(e, EINVAL, "expected ${name} ($${ for ${ itself), found '%.*s'",
			(int)strnlen(at, 20), at);
	}
	ret->from = (size_t)(at - template);
	ret->to = ret->from + length + 3;
	memcpy(ret->name, name, length);
	ret->name[length] = '\0';
	return 1;
}

// Copies text, with $${ replaced by ${.
static void append_plain(struct text *t, const char *from, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (length - i >= 3 && memcmp(from + i, "$${", 3) == 0) {
			i++;
		}
		text_append(t, from + i, 1);
	}
}

void template_expand(struct text *t, const char *template,
	const char *(*lookup)(const void *context, const char *name), const void *context)
{
	size_t at = 0;
	struct placeholder p;
	while (template_next(template, at, &p, NULL) > 0) {
		const char *value = lookup(context, p.name);
		append_plain(t, template + at, p.from - at);
		if (value) {
			text_append_string(t, value);
		} else {
			text_append(t, template + p.from, p.to - p.from);
		}
		at = p.to;
	}
	append_plain(t, template + at, strlen(template + at));
}

// Words -------------------------------------------------------------------------------------------

struct splitting {
	const char *at;
	struct text word;
	bool quoted; // part of the word is quoted
	char **words;
	size_t n;
	size_t capacity;
	struct error *e;
};

static int finish_word(struct splitting *s)
{
	static const char *const operators[] = {
		"|", "||", "&", "&&", ";", "<", ">", ">>", "2>", "2>&1", "&>"};
	for (size_t i = 0; i < ARRAY_LENGTH(operators) && !s->quoted && s->word.data; i++) {
		if (strcmp(s->word.data, operators[i]) == 0) {
			return error_set(s->e, EINVAL,
				"expected a program and its arguments, found '%s', which needs a "
				"shell: [sh, -c, '...']",
				operators[i]);
		}
	}
	char *word = text_steal(&s->word);
	s->quoted = false;
	if (!word ||
		array_reserve((void **)&s->words, &s->capacity, s->n + 2, sizeof(char *)) < 0) {
		free(word);
		return error_errno(s->e, ENOMEM, "a command");
	}
	s->words[s->n++] = word;
	s->words[s->n] = NULL;
	return 0;
}

static int take_quoted(struct splitting *s)
{
	char quote = *s->at++;
	s->quoted = true;
	for (; *s->at && *s->at != quote; s->at++) {
		if (quote == '"' && *s->at == '\\' && strchr("\"\\", s->at[1]) && s->at[1]) {
			s->at++;
		}
		text_append(&s->word, s->at, 1);
	}
	if (!*s->at) {
		return error_set(s->e, EINVAL, "expected a closing %c, found the end", quote);
	}
	s->at++;
	return 0;
}

static int take_word(struct splitting *s)
{
	int result = 0;
	while (result == 0 && *s->at && !isspace((unsigned char)*s->at)) {
		if (*s->at == '\'' || *s->at == '"') {
			result = take_quoted(s);
		} else if (s->at[0] == '$' && s->at[1] == '{') {
			size_t length = strcspn(s->at, "}");
			text_append(&s->word, s->at, length);
			s->at += length;
		} else if (s->at[0] == '\\' && s->at[1]) {
			text_append(&s->word, s->at + 1, 1);
			s->quoted = true;
			s->at += 2;
		} else {
			text_append(&s->word, s->at++, 1);
		}
	}
	return result < 0 ? result : finish_word(s);
}

int template_split(const char *line, char ***ret_words, size_t *ret_n, struct error *e)
{
	struct splitting s = {.at = line, .e = e};
	int result = 0;
	for (;;) {
		s.at += strspn(s.at, " \t\r\n\v\f");
		if (result < 0 || !*s.at) {
			break;
		}
		result = take_word(&s);
	}
	text_done(&s.word);
	if (result < 0) {
		template_free_words(s.words);
		return result;
	}
	*ret_words = s.words;
	*ret_n = s.n;
	return 0;
}

void template_free_words(char **words)
{
	for (size_t i = 0; words && words[i]; i++) {
		free(words[i]);
	}
	free(words);
}
