// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The sentences of a verdict.

#include "verdict/sentence.h"

#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/words.h"
#include "verdict/cause_kinds.h"
#include "verdict/thresholds.h"

void sentence_append_headline(struct text *t, const struct facts *f, const struct cause *cause)
{
	cause_kind(cause->bottleneck)->say(t, f, cause);
}

// Appends a cause that holds in part: "storage 21 % (18 to 24)".
static void append_part(struct text *t, const struct cause *cause)
{
	text_append_string(t, cause_kind(cause->bottleneck)->part);
	if (!isfinite(cause->share.value)) {
		return;
	}
	text_append_string(t, " ");
	words_append_percent(t, cause->share.value);
	if (cause->share.high - cause->share.low >= 0.015) {
		text_format(t, " (%.0f to %.0f)", 100 * cause->share.low, 100 * cause->share.high);
	}
}

void sentence_append_second(struct text *t, const struct facts *f, const struct causes *c)
{
	bool compute = c->n > 0 && c->items[0].bottleneck == BOTTLENECK_COMPUTE;
	for (size_t i = 1; i < c->n && compute; i++) {
		const struct cause *cause = &c->items[i];
		const struct cause_kind *kind = cause_kind(cause->bottleneck);
		if (cause->share.value >= SECOND && !(cause->share.low < WORTH) &&
			!kind->first_only && kind->grounds(f) != GROUNDS_EXCLUSION) {
			text_format(t, "; next cause: %s, ", kind->part);
			words_append_percent(t, cause->share.value);
			return;
		}
	}
}

void sentence_append_parts(struct text *t, const struct verdict *v)
{
	const char *comma = "";
	for (size_t i = 1; i < v->n_causes && v->bottleneck == v->causes[0].bottleneck; i++) {
		if (v->causes[i].bottleneck != BOTTLENECK_COMPUTE) { // the purpose of an iteration
			text_append_string(t, comma);
			append_part(t, &v->causes[i]);
			comma = ", ";
		}
	}
}

void sentence_append_shares(struct text *t, const struct facts *f)
{
	static const enum phase_id order[] = {PHASE_DATA, PHASE_TRANSFER, PHASE_FORWARD,
		PHASE_BACKWARD, PHASE_STEP, PHASE_COMMUNICATION, PHASE_OPTIMIZER, PHASE_OTHER};
	double widest = 0;
	char count[32];
	if (!f->parts) {
		return;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(order); i++) {
		const struct estimate *share = &f->share[order[i]];
		if (share->value >= 0.005) {
			text_format(t, "%s%s ", t->length ? ", " : "", phase_id_name(order[i]));
			words_append_percent(t, share->value);
			widest = fmax(widest, (share->high - share->low) / 2);
		}
	}
	text_append_string(t, widest > 0 ? " (+-" : " (");
	if (widest > 0) {
		words_append_percent(t, widest);
		text_append_string(t, ", ");
	}
	text_format(t, "%s iterations)", text_count(count, sizeof(count), f->steady));
}

void sentence_append_surer(struct text *t, const struct facts *f, const struct causes *c)
{
	const char *comma = "";
	if (!f->parts) {
		text_append_string(t, f->iterations ? "phases of its iterations"
						    : "its iterations and their phases");
		text_append_string(t, " (docs/markers.md)");
		return;
	}
	if (f->steady < ENOUGH) {
		text_format(t, "at least %d steady iterations (this run has %llu)", ENOUGH,
			(unsigned long long)f->steady);
		comma = "; ";
	}
	if (f->lost) {
		text_format(t, "%sa run without lost marks", comma);
		comma = "; ";
	}
	if (f->workers.n > 0 && !f->workers.marked && facts_share(f, PHASE_DATA) > 0.1) {
		text_format(t, "%smarks of the batches that loader workers prepare", comma);
		comma = "; ";
	}
	bool closely = c->n > 1 && c->items[1].weight >= RIVAL * c->items[0].weight &&
	               c->items[1].bottleneck != BOTTLENECK_COMPUTE;
	if (closely) {
		text_format(t, "%sa run with one of the two leading causes removed", comma);
	}
}

void sentence_append_gain(struct text *t, const struct suggestion *s)
{
	if (s->kind == GAIN_UNKNOWN || !isfinite(s->gain.value)) {
		return;
	}
	text_append_string(t, s->kind == GAIN_AT_MOST ? "at most " : "about ");
	text_format(t, "%.*f times faster", s->gain.value < 9.95 ? 1 : 0, s->gain.value);
}
