// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Cursors over untrusted bytes, and the values of options.

#include "base/parse.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

void cursor_skip_blanks(struct cursor *c)
{
	while (c->at < c->end && is_blank(*c->at)) {
		c->at++;
	}
}

bool cursor_word(struct cursor *c, struct cursor *ret)
{
	struct cursor rest = *c;
	cursor_skip_blanks(&rest);
	const char *start = rest.at;
	while (rest.at < rest.end && !is_blank(*rest.at) && *rest.at != '\n') {
		rest.at++;
	}
	if (rest.at == start) {
		return false;
	}
	*ret = (struct cursor){start, rest.at};
	*c = rest;
	return true;
}

bool cursor_skip_fields(struct cursor *c, unsigned n)
{
	struct cursor word;
	for (unsigned i = 0; i < n; i++) {
		if (!cursor_word(c, &word)) {
			return false;
		}
	}
	return true;
}

bool cursor_u64(struct cursor *c, uint64_t *ret)
{
	struct cursor rest = *c;
	cursor_skip_blanks(&rest);
	const char *start = rest.at;
	uint64_t value = 0;
	while (rest.at < rest.end && is_digit(*rest.at)) {
		if (__builtin_mul_overflow(value, 10, &value) ||
			__builtin_add_overflow(value, (uint64_t)(*rest.at - '0'), &value)) {
			return false;
		}
		rest.at++;
	}
	if (rest.at == start) {
		return false;
	}
	*ret = value;
	*c = rest;
	return true;
}

bool cursor_i64(struct cursor *c, int64_t *ret)
{
	struct cursor rest = *c;
	cursor_skip_blanks(&rest);
	bool negative = rest.at < rest.end && *rest.at == '-';
	if (negative) {
		rest.at++;
	}
	uint64_t magnitude;
	if (rest.at >= rest.end || !is_digit(*rest.at) || !cursor_u64(&rest, &magnitude) ||
		magnitude > INT64_MAX) {
		return false;
	}
	*ret = negative ? -(int64_t)magnitude : (int64_t)magnitude;
	*c = rest;
	return true;
}

bool cursor_line(struct cursor *c, struct cursor *ret)
{
	if (c->at >= c->end) {
		return false;
	}
	const char *newline = memchr(c->at, '\n', (size_t)(c->end - c->at));
	*ret = (struct cursor){c->at, newline ? newline : c->end};
	c->at = newline ? newline + 1 : c->end;
	return true;
}

bool cursor_literal(struct cursor *c, const char *literal)
{
	size_t length = strlen(literal);
	if ((size_t)(c->end - c->at) < length || memcmp(c->at, literal, length) != 0) {
		return false;
	}
	c->at += length;
	return true;
}

bool cursor_is(struct cursor c, const char *text)
{
	return cursor_literal(&c, text) && c.at == c.end;
}

struct unit {
	const char *name;
	double factor;
};

// A number of at least 0 with one of the units. `bare` is the factor without a unit; 0: a unit is
// required.
static int parse_with_unit(const char *text, const struct unit *units, size_t n_units, double bare,
	double maximum, double *ret, const char *expected, struct error *e)
{
	char *rest;
	errno = 0;
	// strtod would accept "inf", "nan", "0x10" and leading blanks.
	bool plain = is_digit(text[0]) || (text[0] == '.' && is_digit(text[1]));
	if (!plain || (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))) {
		return error_set(e, EINVAL, "expected %s, found '%s'", expected, text);
	}
	double number = strtod(text, &rest);
	while (is_blank(*rest)) {
		rest++;
	}
	double factor = *rest ? 0 : bare;
	for (size_t i = 0; *rest && i < n_units; i++) {
		if (strcmp(rest, units[i].name) == 0) {
			factor = units[i].factor;
		}
	}
	if (errno || factor == 0) {
		return error_set(e, EINVAL, "expected %s, found '%s'", expected, text);
	}
	if (number * factor > maximum) {
		return error_set(
			e, ERANGE, "expected %s, found '%s', which is too large", expected, text);
	}
	*ret = number * factor;
	return 0;
}

int parse_duration(const char *text, uint64_t *ret_ns, struct error *e)
{
	static const struct unit units[] = {
		{"ns", 1},
		{"us", 1e3},
		{"ms", 1e6},
		{"s", 1e9},
		{"min", 60e9},
		{"h", 3600e9},
		{"d", 86400e9},
	};
	double ns = 0;
	int r = parse_with_unit(text, units, ARRAY_LENGTH(units), 0, 9e18, &ns,
		"a duration such as 10ms, 2s or 1min", e);
	if (r == 0) {
		*ret_ns = (uint64_t)llround(ns);
	}
	return r;
}

// `per` must follow the unit.
static int parse_bytes(const char *text, const char *per, uint64_t *ret_bytes, const char *expected,
	struct error *e)
{
	static const struct unit units[] = {
		{"B", 1},
		{"kB", 1e3},
		{"KB", 1e3},
		{"MB", 1e6},
		{"GB", 1e9},
		{"TB", 1e12},
		{"KiB", 1024.0},
		{"MiB", 1048576.0},
		{"GiB", 1073741824.0},
		{"TiB", 1099511627776.0},
		// As in Slurm, systemd and Docker.
		{"K", 1024.0},
		{"M", 1048576.0},
		{"G", 1073741824.0},
		{"T", 1099511627776.0},
	};
	size_t length = strlen(text), tail = strlen(per);
	char number[64];
	double bytes = 0;
	if (length < tail || length - tail >= sizeof(number) ||
		strcmp(text + length - tail, per) != 0) {
		return error_set(e, EINVAL, "expected %s, found '%s'", expected, text);
	}
	memcpy(number, text, length - tail);
	number[length - tail] = '\0';
	int r = parse_with_unit(
		number, units, ARRAY_LENGTH(units), 1, 9e18, &bytes, expected, NULL);
	if (r < 0) {
		return error_set(e, -r, "expected %s, found '%s'%s", expected, text,
			r == -ERANGE ? ", which is too large" : "");
	}
	*ret_bytes = (uint64_t)llround(bytes);
	return 0;
}

int parse_size(const char *text, uint64_t *ret_bytes, struct error *e)
{
	return parse_bytes(text, "", ret_bytes, "a size such as 256MiB, 4G or 1GB", e);
}

int parse_rate(const char *text, uint64_t *ret_bytes_per_s, struct error *e)
{
	return parse_bytes(text, "/s", ret_bytes_per_s, "a rate such as 100MB/s", e);
}

int parse_percent(const char *text, double *ret_ratio, struct error *e)
{
	static const struct unit units[] = {{"%", 0.01}};
	return parse_with_unit(
		text, units, ARRAY_LENGTH(units), 0, 1, ret_ratio, "a percentage such as 1%", e);
}

int parse_integer(const char *text, int64_t minimum, int64_t maximum, int64_t *ret, struct error *e)
{
	struct cursor c = cursor_of(text, strlen(text));
	int64_t value;
	if (is_blank(text[0]) || !cursor_i64(&c, &value) || c.at != c.end || value < minimum ||
		value > maximum) {
		return error_set(e, EINVAL, "expected a whole number from %lld to %lld, found '%s'",
			(long long)minimum, (long long)maximum, text);
	}
	*ret = value;
	return 0;
}
