// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The distance of two words, and what is wrong with an option.

#include "base/suggest.h"

#include <stdbool.h>
#include <string.h>

#include "base/text.h"

// Words of two letters, such as t1 and io1, would else all be near each other.
enum { LETTERS_PER_EDIT = 3 };

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
	size_t n = strlen(word), m = strlen(candidate);
	if (distance < s->distance && distance * LETTERS_PER_EDIT <= (n > m ? n : m)) {
		s->distance = distance;
		s->word = candidate;
	}
}

// Options -----------------------------------------------------------------------------------------

static const struct argp_option *find_letter(
	char letter, const struct argp_option *const *tables, size_t n_tables)
{
	for (size_t i = 0; i < n_tables; i++) {
		for (const struct argp_option *o = tables[i]; o->name; o++) {
			if (o->key == letter) {
				return o;
			}
		}
	}
	return NULL;
}

// Whether a word is several short options, -ax, one of which does not exist.
static bool has_unknown_letter(
	const char *word, const struct argp_option *const *tables, size_t n_tables)
{
	bool several = word[0] == '-' && word[1] && word[1] != '-' && word[2];
	for (const char *letter = word + 1; several && *letter; letter++) {
		if (!find_letter(*letter, tables, n_tables)) {
			return true;
		}
	}
	return false;
}

// argp advances past a word of several letters only after the last.
const char *suggest_refused_word(
	const struct argp_state *state, const struct argp_option *const *tables, size_t n_tables)
{
	if (state->next < state->argc &&
		has_unknown_letter(state->argv[state->next], tables, n_tables)) {
		return state->argv[state->next];
	}
	return state->next > 0 && state->next <= state->argc ? state->argv[state->next - 1] : "";
}

// The options that a word may mean.
struct meant {
	const struct argp_option *option; // with this name; else one that begins like it
	bool exact;
	struct text names; // of those that begin like it: "--no-hooks, --no-markers"
	unsigned n;
	struct suggestion_of_word nearest;
};

static void consider_option(struct meant *m, const char *name, const struct argp_option *option)
{
	const size_t length = strlen(name);
	if (option->flags & OPTION_HIDDEN) {
		return;
	}
	suggest_consider(&m->nearest, name, option->name);
	if (strncmp(option->name, name, length) != 0) {
		return;
	}
	m->option = m->exact ? m->option : option;
	m->exact = m->exact || option->name[length] == '\0';
	m->n++;
	text_format(&m->names, "%s--%s", m->names.length > 0 ? ", " : "", option->name);
}

static void append_long(struct text *t, const char *word, const struct meant *m)
{
	const int length = (int)strcspn(word, "=");
	const char *value = word[length] ? word + length + 1 : NULL;
	const bool known = m->exact || m->n == 1;
	if (m->n > 1 && !known) {
		text_format(t, "option '%.*s' is ambiguous: %s", length, word,
			m->names.data ? m->names.data : "");
	} else if (known && m->option->arg) {
		text_format(t, "option '--%s' needs a value: %s", m->option->name, m->option->arg);
	} else if (known) {
		text_format(t, "option '--%s' takes no value, found '%s'", m->option->name,
			value ? value : "");
	} else if (m->nearest.word) {
		text_format(
			t, "no option '%.*s'; did you mean '--%s'?", length, word, m->nearest.word);
	} else {
		text_format(t, "no option '%.*s'", length, word);
	}
}

static void append_short(struct text *t, const char *word, const struct argp_option *option)
{
	if (option && option->arg && word[2] == '\0') {
		text_format(t, "option '%s' needs a value: %s", word, option->arg);
	} else {
		text_format(t, "no option '%s'", word);
	}
}

void suggest_append_refused(
	struct text *t, const char *word, const struct argp_option *const *tables, size_t n_tables)
{
	struct meant meant = {.nearest = SUGGEST_NONE};
	const bool is_long = strncmp(word, "--", 2) == 0;
	_cleanup_text_ struct text name = {0};
	text_append(&name, is_long ? word + 2 : "", is_long ? strcspn(word + 2, "=") : 0);
	for (size_t i = 0; i < n_tables; i++) {
		for (const struct argp_option *o = tables[i]; is_long && o->name; o++) {
			consider_option(&meant, name.data ? name.data : "", o);
		}
	}
	if (is_long) {
		append_long(t, word, &meant);
	} else {
		append_short(t, word, *word == '-' ? find_letter(word[1], tables, n_tables) : NULL);
	}
	text_done(&meant.names);
}
