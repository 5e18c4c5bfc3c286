// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Growing strings: escaping and readable quantities.

#include "base/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"

void text_done(struct text *t)
{
	free(t->data);
	*t = (struct text){0};
}

void text_clear(struct text *t)
{
	t->length = 0;
	if (t->data) {
		t->data[0] = '\0';
	}
}

static bool text_reserve(struct text *t, size_t more)
{
	void *data = t->data;
	if (t->failed || array_reserve(&data, &t->capacity, t->length + more + 1, 1) < 0) {
		t->failed = true;
		return false;
	}
	t->data = data;
	return true;
}

void text_append(struct text *t, const char *data, size_t length)
{
	if (text_reserve(t, length)) {
		memcpy(t->data + t->length, data, length);
		t->length += length;
		t->data[t->length] = '\0';
	}
}

void text_append_string(struct text *t, const char *string)
{
	text_append(t, string, strlen(string));
}

void text_format(struct text *t, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	va_list again;
	va_copy(again, arguments);
	int length = vsnprintf(NULL, 0, format, arguments);
	if (length < 0) {
		t->failed = true;
	} else if (text_reserve(t, (size_t)length)) {
		vsnprintf(t->data + t->length, (size_t)length + 1, format, again);
		t->length += (size_t)length;
	}
	va_end(again);
	va_end(arguments);
}

// Length of the UTF-8 sequence at data, 0 if it is invalid (including overlong forms and
// surrogates).
static size_t utf8_length(const unsigned char *data, size_t length)
{
	unsigned char c = data[0];
	size_t n = c < 0x80                ? 1
	           : c >= 0xc2 && c < 0xe0 ? 2
	           : (c & 0xf0) == 0xe0    ? 3
	           : c >= 0xf0 && c < 0xf5 ? 4
	                                   : 0;
	if (n == 0 || n > length) {
		return 0;
	}
	for (size_t i = 1; i < n; i++) {
		if ((data[i] & 0xc0) != 0x80) {
			return 0;
		}
	}
	bool overlong = (c == 0xe0 && data[1] < 0xa0) || (c == 0xf0 && data[1] < 0x90);
	bool beyond = (c == 0xed && data[1] > 0x9f) || (c == 0xf4 && data[1] > 0x8f);
	return overlong || beyond ? 0 : n;
}

// Characters of two and more bytes that are escaped: they move the cursor, change the writing
// direction, or are invisible.
struct code_range {
	uint32_t first, last;
};

static const struct code_range hidden[] = {
	{0x80, 0x9f}, // C1 controls
	{0xad, 0xad}, // soft hyphen
	{0x34f, 0x34f}, // combining grapheme joiner
	{0x61c, 0x61c}, // Arabic letter mark
	{0x115f, 0x1160}, // Hangul fillers
	{0x17b4, 0x17b5}, // Khmer inherent vowels
	{0x180e, 0x180e}, // Mongolian vowel separator
	{0x200b, 0x200f}, // zero width; direction marks
	{0x2028, 0x202e}, // separators; embeddings and overrides of the direction
	{0x2060, 0x206f}, // word joiner, invisible operators, isolates
	{0x3164, 0x3164}, // Hangul filler
	{0xfeff, 0xfeff}, // byte order mark
	{0xffa0, 0xffa0}, // half-width Hangul filler
	{0xfff0, 0xfffb}, // specials
	{0xe0000, 0xe0fff}, // tags, variation selectors
};

static uint32_t code_of(const unsigned char *at, size_t length)
{
	uint32_t code = length == 1 ? at[0] : at[0] & (0xffu >> (length + 1));
	for (size_t i = 1; i < length; i++) {
		code = code << 6 | (at[i] & 0x3f);
	}
	return code;
}

static bool is_hidden(uint32_t code)
{
	for (size_t i = 0; i < ARRAY_LENGTH(hidden); i++) {
		if (code >= hidden[i].first && code <= hidden[i].last) {
			return true;
		}
	}
	return code < 0x20 || code == 0x7f;
}

// \u202e, or two of them for a character beyond 16 bits.
static void append_json_escape(struct text *t, uint32_t code)
{
	if (code > 0xffff) {
		text_format(t, "\\u%04x", 0xd800 + ((code - 0x10000) >> 10));
		code = 0xdc00 + ((code - 0x10000) & 0x3ff);
	}
	text_format(t, "\\u%04x", code);
}

static void append_json_character(struct text *t, const char *data, size_t length)
{
	unsigned char c = (unsigned char)data[0];
	switch (c) {
	case '"':
	case '\\':
		text_append(t, "\\", 1);
		text_append(t, data, 1);
		break;
	case '\n':
		text_append(t, "\\n", 2);
		break;
	case '\t':
		text_append(t, "\\t", 2);
		break;
	default:
		if (is_hidden(code_of((const unsigned char *)data, length))) {
			append_json_escape(t, code_of((const unsigned char *)data, length));
		} else {
			text_append(t, data, length);
		}
	}
}

void text_append_json(struct text *t, const char *data, size_t length)
{
	text_append(t, "\"", 1);
	for (size_t i = 0; i < length;) {
		size_t n = utf8_length((const unsigned char *)data + i, length - i);
		if (n == 0) {
			text_append_string(t, "\xef\xbf\xbd");
			i++;
		} else {
			append_json_character(t, data + i, n);
			i += n;
		}
	}
	text_append(t, "\"", 1);
}

void text_append_json_safe(struct text *t, const char *data, size_t length)
{
	for (size_t i = 0; i < length;) {
		const unsigned char *at = (const unsigned char *)data + i;
		size_t n = utf8_length(at, length - i);
		if (n > 1 && is_hidden(code_of(at, n))) {
			append_json_escape(t, code_of(at, n));
		} else {
			text_append(t, data + i, n ? n : 1);
		}
		i += n ? n : 1;
	}
}

void text_append_json_string(struct text *t, const char *string)
{
	text_append_json(t, string, strlen(string));
}

// One character of n bytes, or an invalid byte (n 0), in displayed form.
static void append_shown(struct text *t, const char *data, size_t n)
{
	uint32_t code = n > 0 ? code_of((const unsigned char *)data, n) : (unsigned char)*data;
	if (n > 0 && !is_hidden(code)) {
		text_append(t, data, n);
	} else if (n < 2) {
		bool named = code == '\n' || code == '\r' || code == '\t';
		text_format(t, named ? "\\%c" : "\\x%02x",
			code == '\n'   ? 'n'
			: code == '\r' ? 'r'
			: code == '\t' ? 't'
				       : code);
	} else {
		text_format(t, code > 0xffff ? "\\U%08x" : "\\u%04x", code);
	}
}

void text_append_printable(struct text *t, const char *data, size_t length)
{
	for (size_t i = 0; i < length;) {
		size_t n = utf8_length((const unsigned char *)data + i, length - i);
		append_shown(t, data + i, n);
		i += n ? n : 1;
	}
}

void text_append_lines(struct text *t, const char *data, size_t length)
{
	for (size_t i = 0; i < length;) {
		size_t n = data[i] == '\n'
		                   ? 0
		                   : utf8_length((const unsigned char *)data + i, length - i);
		if (data[i] == '\n') {
			text_append(t, "\n", 1);
		} else {
			append_shown(t, data + i, n);
		}
		i += n ? n : 1;
	}
}

// Whether a terminal shows every character of the word unchanged.
static bool is_printable(const char *word)
{
	for (size_t i = 0, length = strlen(word); i < length;) {
		size_t n = utf8_length((const unsigned char *)word + i, length - i);
		if (n == 0 || is_hidden(code_of((const unsigned char *)word + i, n))) {
			return false;
		}
		i += n;
	}
	return true;
}

// $'new\nline': in plain quotes, a shell would not undo the escapes. Those of bytes, unlike \u202e,
// mean the same in every locale.
static void append_escaped_word(struct text *t, const char *word)
{
	text_append_string(t, "$'");
	for (size_t i = 0, length = strlen(word); i < length;) {
		size_t n = utf8_length((const unsigned char *)word + i, length - i);
		if (n > 1 && is_hidden(code_of((const unsigned char *)word + i, n))) {
			for (size_t k = 0; k < n; k++) {
				append_shown(t, word + i + k, 0);
			}
		} else {
			text_append_string(t, strchr("'\\", word[i]) ? "\\" : "");
			append_shown(t, word + i, n);
		}
		i += n ? n : 1;
	}
	text_append_string(t, "'");
}

void text_append_word(struct text *t, const char *word)
{
	if (!is_printable(word)) {
		append_escaped_word(t, word);
		return;
	}
	bool plain = *word && !strpbrk(word, " '\"\\$*?<>|&;(){}[]~#`!");
	text_append_string(t, plain ? "" : "'");
	for (const char *at = word; *at;) {
		size_t length = plain ? strlen(at) : strcspn(at, "'");
		text_append(t, at, length);
		at += length;
		if (*at) {
			text_append_string(t, "'\\''");
			at++;
		}
	}
	text_append_string(t, plain ? "" : "'");
}

void text_append_path(struct text *t, const char *path)
{
	_cleanup_text_ struct text inside = {0};
	text_format(&inside, "%s%s", *path == '-' ? "./" : "", path);
	t->failed = t->failed || inside.failed;
	text_append_word(t, inside.data ? inside.data : path);
}

void text_append_utf8(struct text *t, const char *data, size_t length)
{
	for (size_t i = 0; i < length;) {
		size_t n = utf8_length((const unsigned char *)data + i, length - i);
		if (n == 0) {
			text_append_string(t, "\xef\xbf\xbd");
			i++;
		} else {
			text_append(t, data + i, n);
			i += n;
		}
	}
}

char *text_steal(struct text *t)
{
	if (!t->failed && !t->data) {
		text_append(t, "", 0);
	}
	if (t->failed) {
		text_done(t);
		return NULL;
	}
	char *data = t->data;
	*t = (struct text){0};
	return data;
}

static char *bytes_in(char *buffer, size_t size, double bytes, bool binary)
{
	static const char *const units[][6] = {
		{"B", "kB", "MB", "GB", "TB", "PB"}, {"B", "KiB", "MiB", "GiB", "TiB", "PiB"}};
	double next = binary ? 1024 : 1000;
	size_t unit = 0;
	while (fabs(bytes) >= next - 0.5 && unit + 1 < ARRAY_LENGTH(units[0])) {
		bytes /= next;
		unit++;
	}
	int digits = unit > 0 && fabs(bytes) < 9.95 ? 1 : 0;
	snprintf(buffer, size, "%.*f %s", digits, bytes, units[binary][unit]);
	return buffer;
}

char *text_bytes(char *buffer, size_t size, double bytes)
{
	return bytes_in(buffer, size, bytes, false);
}

// Whether a limit was written in MiB or GiB: a multiple of 1 MiB, or 2048 GB.
static bool text_is_binary_limit(double limit)
{
	return limit >= 0x1p20 && fmod(limit, 0x1p20) == 0;
}

char *text_bytes_beside(char *buffer, size_t size, double bytes, double limit)
{
	return bytes_in(buffer, size, bytes, text_is_binary_limit(limit));
}

char *text_seconds(char *buffer, size_t size, double seconds)
{
	long whole = lround(seconds);
	if (seconds < 0.0005) {
		snprintf(buffer, size, seconds <= 0 ? "0 s" : "%.0f us", seconds * 1e6);
	} else if (seconds < 0.9995) {
		snprintf(buffer, size, "%.*f ms",
			seconds < 0.00995  ? 2
			: seconds < 0.0995 ? 1
					   : 0,
			seconds * 1e3);
	} else if (seconds < 99.95) {
		snprintf(buffer, size, "%.1f s", seconds);
	} else if (whole < 3600) {
		snprintf(buffer, size, "%ld min %ld s", whole / 60, whole % 60);
	} else if (whole < 86400) {
		snprintf(buffer, size, "%ld h %ld min", whole / 3600, whole % 3600 / 60);
	} else {
		snprintf(buffer, size, "%ld d %ld h", whole / 86400, whole % 86400 / 3600);
	}
	return buffer;
}

char *text_percent(char *buffer, size_t size, double ratio)
{
	double percent = ratio * 100;
	int digits = fabs(percent) < 9.95 && fabs(percent) >= 0.05 ? 1 : 0;
	if (percent > 0 && percent < 0.05) {
		snprintf(buffer, size, "under 0.1 %%");
	} else {
		snprintf(
			buffer, size, "%.*f %%", digits, percent > -0.05 ? fabs(percent) : percent);
	}
	return buffer;
}

char *text_count(char *buffer, size_t size, uint64_t count)
{
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)count);
	size_t at = 0;
	for (int i = 0; i < n && at + 1 < size; i++) {
		if (i > 0 && (n - i) % 3 == 0) {
			buffer[at++] = ',';
		}
		if (at + 1 < size) {
			buffer[at++] = digits[i];
		}
	}
	if (size) {
		buffer[at] = '\0';
	}
	return buffer;
}
