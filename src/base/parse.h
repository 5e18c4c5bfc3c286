// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Parsing numbers in untrusted bytes: errors are reported, nothing is guessed, nothing is read past
// the end. Kernel text is walked with a cursor; options are parsed whole.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

// A view of bytes that are not ours and not NUL-terminated.
struct cursor {
	const char *at;
	const char *end;
};

static inline struct cursor cursor_of(const char *data, size_t length)
{
	return (struct cursor){data, data + length};
}

// Skips blanks (space and tab).
void cursor_skip_blanks(struct cursor *c);
// Skips n fields separated by blanks. False where there are fewer.
bool cursor_skip_fields(struct cursor *c, unsigned n);
// Takes a decimal number after blanks. False, and nothing moved, where there is none or it passes
// 64 bits.
bool cursor_u64(struct cursor *c, uint64_t *ret);
bool cursor_i64(struct cursor *c, int64_t *ret);
// Takes the next field (no blanks, no newline) as a view. False at the end of the line.
bool cursor_word(struct cursor *c, struct cursor *ret);
// Takes the rest of the line, without its newline, and moves past it. False at the end of input.
bool cursor_line(struct cursor *c, struct cursor *ret);
// Skips `literal` if it comes next.
bool cursor_literal(struct cursor *c, const char *literal);
// Whether the view is exactly this text.
bool cursor_is(struct cursor c, const char *text);

// Options: the whole of `text` must fit. Errors name what was expected and what was found.
// "10ms", "2s", "1.5s", "250us", "1min", "2h", "1d"; a unit is needed. Result in ns.
int parse_duration(const char *text, uint64_t *ret_ns, struct error *e);
// "256MiB", "1GB", "4096"; SI (kB, MB, GB, TB) and binary (KiB, MiB, GiB, TiB, or K, M, G, T); a
// bare number is bytes.
int parse_size(const char *text, uint64_t *ret_bytes, struct error *e);
// "100MB/s": a size a second.
int parse_rate(const char *text, uint64_t *ret_bytes_per_s, struct error *e);
// "1%", "0.5 %"; result as a ratio (0.01). At least 0, at most 1.
int parse_percent(const char *text, double *ret_ratio, struct error *e);
// A decimal number between minimum and maximum.
int parse_integer(
	const char *text, int64_t minimum, int64_t maximum, int64_t *ret, struct error *e);
