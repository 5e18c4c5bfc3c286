// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Number parsing for untrusted bytes. It reports errors, guesses nothing, and reads nothing past
// the end. A cursor walks kernel text; options are parsed as a whole.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

// A view of borrowed bytes without a terminating NUL.
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
// Skips n fields separated by blanks. Returns false if there are fewer.
bool cursor_skip_fields(struct cursor *c, unsigned n);
// Skips blanks and takes a decimal number. Returns false, without moving the cursor, if there is
// none or it exceeds 64 bits.
bool cursor_u64(struct cursor *c, uint64_t *ret);
bool cursor_i64(struct cursor *c, int64_t *ret);
// Takes the next field (no blanks, no newline) as a view. Returns false at the end of the line.
bool cursor_word(struct cursor *c, struct cursor *ret);
// Takes the rest of the line, without its newline, and moves past it. Returns false at the end of
// input.
bool cursor_line(struct cursor *c, struct cursor *ret);
// Skips `literal` if it comes next. Returns whether it did.
bool cursor_literal(struct cursor *c, const char *literal);
// Whether the view equals `text`.
bool cursor_is(struct cursor c, const char *text);

// Options: all of `text` must match. Errors name the expected form and the text found.
//
// A duration with a unit: "10ms", "2s", "1.5s", "250us", "1min", "2h", "1d". Returns ns.
int parse_duration(const char *text, uint64_t *ret_ns, struct error *e);
// A size in SI units (kB, MB, GB, TB) or binary units (KiB, MiB, GiB, TiB, or K, M, G, T):
// "256MiB", "1GB". A number without a unit is in bytes.
int parse_size(const char *text, uint64_t *ret_bytes, struct error *e);
// A size per second: "100MB/s".
int parse_rate(const char *text, uint64_t *ret_bytes_per_s, struct error *e);
// A percentage from 0 to 100 %: "1%", "0.5 %". Returns a ratio (0.01).
int parse_percent(const char *text, double *ret_ratio, struct error *e);
// A decimal number from minimum to maximum.
int parse_integer(
	const char *text, int64_t minimum, int64_t maximum, int64_t *ret, struct error *e);
