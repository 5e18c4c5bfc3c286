// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Functions shared by the rows of the table of causes.

#include "verdict/cause_kinds.h"

#include <math.h>
#include <string.h>

#include "base/words.h"
#include "verdict/thresholds.h"

bool cause_sampled(const struct code_facts *code)
{
	return code->samples >= SAMPLES_ENOUGH;
}

double cause_code(const struct code_facts *code, enum code_class class)
{
	return cause_sampled(code) ? known_or_zero(code->share[class]) : 0;
}

void cause_append_quota(struct text *t, double cpus)
{
	text_append_string(t, "limited by its CPU quota of ");
	if (cpus < 1) {
		text_format(t, "%.2g CPUs", cpus);
	} else {
		words_append_counted(t, cpus, "CPU");
	}
}

void cause_append_share(struct text *t, const struct cause *cause)
{
	words_append_percent(t, cause->share.value);
	text_append_string(t, " of each iteration");
}

bool cause_has_line(const struct line_place *line, double part)
{
	// More than all of it: the cause is elsewhere, too.
	return *line->place && part <= 1 + UNSEEN &&
	       line->share - line->error + fmin(1, part) - 1 >= MOST * fmin(1, part);
}

void cause_append_line(
	struct text *t, const char *words, const struct line_place *line, double part)
{
	if (cause_has_line(line, part)) {
		text_append_string(t, words);
		words_append_place(t, line->place, 60);
	}
}

const struct line_place *cause_main_line(const struct facts *f)
{
	const struct line_place *main = &f->lines.main;
	bool is = f->lines.looks >= LOOKS_ENOUGH && *main->place && main->share >= LINE_MAIN;
	return is ? main : NULL;
}

const struct line_place *cause_outside_function(const struct facts *f)
{
	const struct line_facts *lines = &f->lines;
	for (size_t i = 0; i < lines->n_tops && lines->looks >= LOOKS_ENOUGH; i++) {
		const struct line_place *top = &lines->tops[i];
		if (!*top->phase && !top->loop) {
			return top->share - top->error >= WORTH ? top : NULL;
		}
	}
	return NULL;
}

double cause_function_at_most(const struct line_place *function)
{
	return fmin(0.99, function->share + 2 * function->error);
}

void cause_append_main_line(struct text *t, const struct facts *f)
{
	const struct line_place *top = cause_main_line(f);
	if (top) {
		text_append_string(t, "; ");
		words_append_place(t, top->place, 60);
		text_append_string(t, " has ");
		words_append_percent(t, top->share);
		text_append_string(t, " of the samples");
	}
}

void cause_append_cpus(struct text *t, double used, double of)
{
	words_append_number(t, used);
	text_append_string(t, " of ");
	words_append_counted(t, of, "CPU");
}

bool causes_at_epochs(double at_epochs, double share)
{
	return at_epochs >= 0.5 * share && share > 0;
}

const struct cause *causes_get(const struct causes *c, enum bottleneck bottleneck)
{
	for (size_t i = 0; i < c->n; i++) {
		if (c->items[i].bottleneck == bottleneck) {
			return &c->items[i];
		}
	}
	return NULL;
}
