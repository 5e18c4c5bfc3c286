// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Text building: a growing buffer, JSON strings, and quantities in readable form.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A growing NUL-terminated string. A failed allocation sets `failed`, and later appends do nothing.
// The owner checks once at the end.
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
// A JSON string with its quotes. Invalid UTF-8 becomes U+FFFD; control and invisible characters
// become escapes.
void text_append_json(struct text *t, const char *data, size_t length);
// Existing JSON. Characters that text_append_printable escapes become \uXXXX.
void text_append_json_safe(struct text *t, const char *data, size_t length);
void text_append_json_string(struct text *t, const char *string);
// Text that is safe on a terminal. Invalid UTF-8, control characters, invisible characters and
// characters that change the writing direction are escaped: \x1b, \u202e.
void text_append_printable(struct text *t, const char *data, size_t length);
// The same, but newlines are kept.
void text_append_lines(struct text *t, const char *data, size_t length);
// A shell word, quoted if necessary, and safe on a terminal: $'...' around escapes.
void text_append_word(struct text *t, const char *word);
// The same for a path: one that begins with "-" would be taken for an option, and gets "./".
void text_append_path(struct text *t, const char *path);
// The same bytes as valid UTF-8: invalid bytes become U+FFFD.
void text_append_utf8(struct text *t, const char *data, size_t length);
// Returns the finished string ("" if nothing was appended), owned by the caller; NULL after a
// failure.
char *text_steal(struct text *t);

#define _cleanup_text_ __attribute__((cleanup(text_done)))

// Quantities in SI units with few digits. Each function writes at most `size` bytes including the
// NUL and returns `buffer`.
char *text_bytes(char *buffer, size_t size, double bytes); // "3.2 GB", "310 MB", "0 B"

#define TEXT_BINARY 0x1p20 // a limit in binary units

// A quantity in the unit in which its limit was written: "3.9 GiB" beside a limit of "4.0 GiB". To
// format the limit itself, pass it as both arguments.
char *text_bytes_beside(char *buffer, size_t size, double bytes, double limit);
char *text_seconds(char *buffer, size_t size,
	double seconds); // "41.2 s", "2 min 4 s", "3 h 12 min", "12.3 ms"
char *text_percent(char *buffer, size_t size, double ratio); // "61 %", "0.4 %"
char *text_count(char *buffer, size_t size, uint64_t count); // "12,344"
