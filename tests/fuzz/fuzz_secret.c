// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Command lines as /proc gives them, and texts: always a JSON array, at most so long, the same when
// it is masked again, and no token that is known by its prefix is left, whatever stands around it.

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char planted[] = "ghp_0123456789abcdefABCDEF0123456789abcd";

static void expect(bool right)
{
	if (!right) {
		abort();
	}
}

static void check_command(const char *data, size_t size)
{
	_cleanup_text_ struct text out = {0};
	secret_append_command(&out, data, size);
	expect(!out.failed && out.length >= 2 && out.data[0] == '[' &&
		out.data[out.length - 1] == ']');
	expect(out.length <= 2 + 9 * (size + 1)); // 6 for an escaped byte, or *** and "",
}

// A token between what the fuzzer chose: in an argument of its own, and in a text.
static void check_planted(const char *data, size_t size, size_t at)
{
	_cleanup_text_ struct text line = {0}, out = {0}, text = {0};
	text_append(&line, data, at);
	text_append(&line, " ", 1);
	text_append_string(&line, planted);
	text_append(&line, " ", 1);
	text_append(&line, data + at, size - at);
	secret_append_text(&text, line.data, line.length);
	line.data[at] = '\0';
	secret_append_command(&out, line.data, line.length);
	expect(!memmem(out.data, out.length, planted, strlen(planted)));
	expect(!memmem(text.data, text.length, planted, strlen(planted)));
}

static void check_again(const char *data, size_t size)
{
	_cleanup_text_ struct text once = {0}, twice = {0};
	secret_append_text(&once, data, size);
	expect(!once.failed && once.length <= 3 * size);
	secret_append_text(&twice, once.data ? once.data : "", once.length);
	expect(twice.length == once.length &&
		(once.length == 0 || memcmp(once.data, twice.data, once.length) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	check_command(text, size);
	if (!memmem(text, size, "0123456789", 10)) { // of the fuzzer's own, within another word
		check_planted(text, size, size > 0 ? data[0] % size : 0);
	}
	check_again(text, size);
	return 0;
}
