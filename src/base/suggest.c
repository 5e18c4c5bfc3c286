// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The distance of two words.

#include "base/suggest.h"

#include <stddef.h>
#include <string.h>

// Edit distance of short words: insert, delete, replace, swap neighbours.
static unsigned suggest_distance(const char *a, const char *b)
{
	enum { MAX = 24 };
	size_t n = strnlen(a, MAX), m = strnlen(b, MAX);
	unsigned row[3][MAX + 1];
	for (size_t j = 0; j <= m; j++) {
		row[0][j] = (unsigned)j;
	}
	for (size_t i = 1; i <= n; i++) {
		unsigned *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
		now[0] = (unsigned)i;
		for (size_t j = 1; j <= m; j++) {
			unsigned best = last[j - 1] + (a[i - 1] != b[j - 1]);
			best = last[j] + 1 < best ? last[j] + 1 : best;
			best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
				before[j - 2] + 1 < best) {
				best = before[j - 2] + 1;
			}
			now[j] = best;
		}
	}
	return row[n % 3][m];
}

void suggest_consider(struct suggestion_of_word *s, const char *word, const char *candidate)
{
	unsigned distance = suggest_distance(word, candidate);
	if (distance < s->distance) {
		s->distance = distance;
		s->word = candidate;
	}
}
