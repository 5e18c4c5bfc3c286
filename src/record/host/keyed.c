// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Names and numbers, a line each.

#include "record/host/keyed.h"

bool keyed_next(struct cursor *text, struct cursor *ret_key, struct cursor *ret_value)
{
	struct cursor line;
	while (cursor_line(text, &line)) {
		const char *at = line.at;
		while (at < line.end && *at != ':' && *at != ' ' && *at != '\t') {
			at++;
		}
		if (at > line.at) {
			*ret_key = (struct cursor){line.at, at};
			*ret_value = (struct cursor){at + (at < line.end && *at == ':'), line.end};
			return true;
		}
	}
	return false;
}

int64_t keyed_number(struct cursor value)
{
	int64_t number;
	if (!cursor_i64(&value, &number)) {
		return KEYED_ABSENT;
	}
	cursor_skip_blanks(&value);
	if (cursor_literal(&value, "kB") && __builtin_mul_overflow(number, 1024, &number)) {
		return KEYED_ABSENT;
	}
	return number;
}

size_t keyed_parse(struct cursor text, const char *const *keys, size_t n, int64_t *values)
{
	for (size_t i = 0; i < n; i++) {
		values[i] = KEYED_ABSENT;
	}
	size_t found = 0, expected = 0;
	struct cursor key, value;
	while (found < n && keyed_next(&text, &key, &value)) {
		for (size_t i = 0; i < n; i++) {
			size_t at = expected + i < n ? expected + i : expected + i - n;
			if (*keys[at] == *key.at && cursor_is(key, keys[at])) {
				if (values[at] == KEYED_ABSENT) {
					values[at] = keyed_number(value);
					found += values[at] != KEYED_ABSENT;
				}
				expected = at + 1 < n ? at + 1 : 0;
				break;
			}
		}
	}
	return found;
}
