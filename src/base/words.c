// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Numbers for sentences.

#include "base/words.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

#define ELLIPSIS "\xe2\x80\xa6"

static bool append_unknown(struct text *t, double value)
{
	if (!isfinite(value)) {
		text_append_string(t, "?");
	}
	return !isfinite(value);
}

void words_append_number(struct text *t, double value)
{
	double size = fabs(value);
	if (size > 0 && size < 0.005) {
		text_append_string(t, "under 0.01");
	} else if (value >= 999.5 && value < 1e15) {
		char count[32];
		text_append_string(t, text_count(count, sizeof(count), (uint64_t)round(value)));
	} else if (!append_unknown(t, value)) {
		bool whole = fabs(value - round(value)) < 1e-9;
		text_format(t, "%.*f", whole ? 0 : size < 0.095 ? 2 : size < 9.95 ? 1 : 0, value);
	}
}

void words_append_counted(struct text *t, double n, const char *noun)
{
	words_append_number(t, n);
	text_format(t, " %s%s", noun, n == 1 ? "" : "s");
}

void words_append_bytes(struct text *t, double bytes)
{
	char buffer[32];
	if (!append_unknown(t, bytes)) {
		text_append_string(t, text_bytes(buffer, sizeof(buffer), bytes));
	}
}

// limit: both are written in its unit; NAN: SI
static void append_bytes_of(struct text *t, double bytes, double of, double limit)
{
	char part[32], whole[32];
	if (append_unknown(t, bytes)) {
		return;
	}
	text_bytes_beside(part, sizeof(part), bytes, limit);
	if (!isfinite(of)) {
		text_append_string(t, part);
		return;
	}
	text_bytes_beside(whole, sizeof(whole), of, limit);
	char *unit = strchr(part, ' '), *whole_unit = strchr(whole, ' ');
	if (unit && whole_unit && strcmp(unit, whole_unit) == 0) {
		*unit = '\0';
	}
	text_format(t, "%s of %s", part, whole);
}

void words_append_bytes_of(struct text *t, double bytes, double of)
{
	append_bytes_of(t, bytes, of, NAN);
}

void words_append_bytes_of_limit(struct text *t, double bytes, double limit)
{
	append_bytes_of(t, bytes, limit, limit);
}

void words_append_limit(struct text *t, double limit)
{
	char buffer[32];
	if (!append_unknown(t, limit)) {
		text_append_string(t, text_bytes_beside(buffer, sizeof(buffer), limit, limit));
	}
}

void words_append_seconds(struct text *t, double seconds)
{
	char buffer[32];
	if (!append_unknown(t, seconds)) {
		text_append_string(t, text_seconds(buffer, sizeof(buffer), seconds));
	}
}

void words_append_percent(struct text *t, double ratio)
{
	char buffer[32];
	if (!append_unknown(t, ratio)) {
		text_append_string(t, text_percent(buffer, sizeof(buffer), ratio));
	}
}

bool words_append_progress(struct text *t, uint64_t done, uint64_t total, double seconds)
{
	if (seconds < WORDS_PROGRESS_AFTER_S) {
		return false;
	}
	// A wrong estimate must not show the end before the end.
	double share = total > 0 ? (double)done / (double)total : 0;
	share = share > 0.99 ? 0.99 : share;
	text_format(t, "%.0f %%", floor(share * 100 + 1e-9));
	if (share >= 0.05) {
		text_append_string(t, ", ");
		double left = ceil(seconds / share * (1 - share));
		if (left < 60) {
			text_format(t, "%.0f s left", left);
		} else {
			words_append_seconds(t, left);
			text_append_string(t, " left");
		}
	}
	return true;
}

// Whether a unit is here, alone or before the end of a part of a sentence.
static bool is_unit(const char *text)
{
	static const char *const units[] = {"%", "s", "ms", "us", "min", "h", "B", "kB", "MB", "GB",
		"TB", "KiB", "MiB", "GiB", "TiB", "CPUs"};
	size_t length = strcspn(text, " ,;:.)/");
	for (size_t i = 0; i < ARRAY_LENGTH(units); i++) {
		if (strlen(units[i]) == length && memcmp(text, units[i], length) == 0) {
			return true;
		}
	}
	return false;
}

size_t words_unbroken(const char *text)
{
	size_t at = strcspn(text, " ");
	while (text[at] && at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9' &&
		is_unit(text + at + 1)) {
		at += 1 + strcspn(text + at + 1, " ");
	}
	return at;
}

static bool begins_character(char c)
{
	return ((unsigned char)c & 0xc0) != 0x80;
}

size_t words_columns(const char *text)
{
	size_t n = 0;
	for (; *text; text++) {
		n += begins_character(*text);
	}
	return n;
}

void words_append_elided(struct text *t, const char *text, size_t columns)
{
	struct text whole = {0};
	text_append_printable(&whole, text, strlen(text));
	size_t cut = 0, n = 0; // cut: start of the character that an ellipsis would replace
	for (size_t i = 0; i < whole.length; i++) {
		if (begins_character(whole.data[i])) {
			n++;
			cut = n == columns ? i : cut;
		}
	}
	text_append(t, whole.data ? whole.data : "", n > columns ? cut : whole.length);
	text_append_string(t, n > columns ? ELLIPSIS : "");
	text_done(&whole);
}

void words_append_place(struct text *t, const char *place, size_t columns)
{
	struct text whole = {0};
	text_append_printable(&whole, place, strlen(place));
	const char *all = whole.data ? whole.data : "", *from = strrchr(all, '/');
	if (from && words_columns(all) > columns) {
		for (const char *at = from; at > all; at--) {
			from = *at == '/' && words_columns(at) < columns ? at : from;
		}
		text_append_string(t, ELLIPSIS);
		all = from;
	}
	text_append_string(t, all);
	text_done(&whole);
}

bool words_is_wide(double low, double high)
{
	return isfinite(low) && isfinite(high) && high > 0 && high > WORDS_WIDE * low;
}

void words_append_wide(struct text *t, double low, double high)
{
	if (words_is_wide(low, high)) {
		text_append_string(t, "interval says little");
		if (low > 0) {
			text_format(t, " (factor of %.2g)", high / low);
		}
	}
}

void words_append_folded(
	struct text *t, const char *text, size_t column, size_t indent, size_t width)
{
	for (const char *at = text; *at; at += strspn(at, " ")) {
		size_t length = words_unbroken(at);
		_cleanup_text_ struct text piece = {0};
		text_append_printable(&piece, at, length);
		size_t columns = piece.data ? words_columns(piece.data) : 0;
		if (column < indent) {
			text_format(t, "%*s", (int)(indent - column), "");
			column = indent;
		} else if (column > indent && column + 1 + columns > width) {
			text_format(t, "\n%*s", (int)indent, "");
			column = indent;
		} else if (column > indent) {
			text_append_string(t, " ");
			column++;
		}
		text_append_string(t, piece.data ? piece.data : "");
		column += columns;
		at += length;
	}
}

double words_sum(double a, double b)
{
	return isfinite(a) && isfinite(b) ? a + b : isfinite(a) ? a : b;
}
