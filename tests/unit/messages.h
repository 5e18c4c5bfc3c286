// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// For tests of messages: what one must name, never its sentence. The sentences are in
// tests/cli/words.golden, and may change; with STRAIN_WORDS=FILE a test adds those that it saw to a
// file, for that one (tests/cli/words.sh).

#pragma once

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline bool word_goes_on(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

// Whether a word is there as a whole: 1 is not in 10, 21, 1.5, 0.1 or run-1.
static inline bool word_is_whole(const char *text, const char *at, size_t length)
{
	const char *end = at + length;
	bool begins = at == text || !word_goes_on(*at);
	if (!begins) {
		bool joined = (at[-1] == '.' || at[-1] == '-') && at > text + 1;
		begins = !word_goes_on(at[joined ? -2 : -1]);
	}
	if (!word_goes_on(end[-1])) {
		return begins;
	}
	bool joined = *end == '.' || *end == '-';
	return begins && !word_goes_on(end[joined]);
}

// Whether a text has these words, in this order: "a.yaml:3: ... 1 ... 'many'". What stands before
// the first "..." is its beginning.
static inline bool message_has(const char *text, const char *words)
{
	static const char gap[] = " ... ";
	const char *from = text;
	if (*words == '\0') {
		return true;
	}
	bool first = strncmp(words, gap + 1, strlen(gap + 1)) != 0;
	words += first ? 0 : strlen(gap + 1);
	for (;; first = false) {
		const char *end = strstr(words, gap);
		size_t length = end ? (size_t)(end - words) : strlen(words);
		const char *at = from;
		while (strncmp(at, words, length) != 0 || !word_is_whole(text, at, length)) {
			if (first || *at == '\0') {
				return false;
			}
			at++;
		}
		if (!end) {
			return true;
		}
		from = at + length;
		words = end + strlen(gap);
	}
}

static inline void message_note(const char *sentence)
{
	const char *path = getenv("STRAIN_WORDS");
	FILE *file = path ? fopen(path, "ae") : NULL;
	if (file) {
		fprintf(file, "%s\n", sentence);
		fclose(file);
	}
}

// That a sentence has these words, as message_has() takes them. Of cmocka's tests, after its
// header.
static inline void assert_says(const char *sentence, const char *words)
{
	message_note(sentence);
	if (!message_has(sentence, words)) {
		fail_msg("\"%s\" has not: %s", sentence, words);
	}
}
