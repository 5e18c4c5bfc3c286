// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Building text: a buffer that grows, JSON strings, and quantities as people read them.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A growing NUL-terminated string. A failed allocation sets `failed`, later appends do nothing, and
// the owner asks once at the end.
struct text {
	char *data; // owned; NULL while empty
	size_t length;
	size_t capacity;
	bool failed;
};

void text_done(struct text *t);
void text_clear(struct text *t);
void text_append(struct text *t, const char *data, size_t length);
void text_append_string(struct text *t, const char *string);
void text_format(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
// A JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD; control characters and
// what cannot be seen become escapes.
void text_append_json(struct text *t, const char *data, size_t length);
// JSON that is there already, with the characters that text_append_printable escapes as \uXXXX.
void text_append_json_safe(struct text *t, const char *data, size_t length);
void text_append_json_string(struct text *t, const char *string);
// The same bytes as text that is safe on a terminal: bytes that are no UTF-8, control characters,
// and those that cannot be seen or turn the direction of writing are escaped: \x1b, \u202e.
void text_append_printable(struct text *t, const char *data, size_t length);
// The same, but newlines stay newlines.
void text_append_lines(struct text *t, const char *data, size_t length);
// A word as it is typed in a shell, in quotes where it needs them, and safe on a terminal.
void text_append_word(struct text *t, const char *word);
// The same bytes as valid UTF-8: what is not becomes U+FFFD.
void text_append_utf8(struct text *t, const char *data, size_t length);
// The finished string ("" where nothing was appended), owned by the caller; NULL after a failure.
char *text_steal(struct text *t);

#define _cleanup_text_ __attribute__((cleanup(text_done)))

// Quantities for people: SI units, no more digits than help, and always a value or nothing at all.
// Each writes at most `size` bytes with its NUL and returns `buffer`.
char *text_bytes(char *buffer, size_t size, double bytes); // "3.2 GB", "310 MB", "0 B"

#define TEXT_BINARY 0x1p20 // a limit of that kind

// The same in the unit in which the limit was written: "4.0 GiB", "3.9 GiB" beside that. A limit is
// beside itself.
char *text_bytes_beside(char *buffer, size_t size, double bytes, double limit);
char *text_seconds(char *buffer, size_t size,
	double seconds); // "41.2 s", "2 min 4 s", "3 h 12 min", "12.3 ms"
char *text_percent(char *buffer, size_t size, double ratio); // "61 %", "0.4 %"
char *text_count(char *buffer, size_t size, uint64_t count); // "12,344"
