// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Trials of advice: in a run, in a verdict, and as text.
//
//   [{"settings": [{"environment": "OMP_NUM_THREADS=1"}, {"num_workers": "2"}],
//     "promised": [1.5, 1.3, 1.7], "at_most": true, "gain": [1.48, 1.41, 1.55], "probes": 3,
//     "missing": "..."}]

#include "verdict/tried.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum { JSON_BYTES_MAX = 64 << 10, MISSING_BYTES_MAX = 500 };

#define GAIN_MOST 1e6 // a larger gain is not credible

static const struct estimate no_estimate = {NAN, NAN, NAN};

// In a run ----------------------------------------------------------------------------------------

static bool is_gain(double value)
{
	return value > 0 && value <= GAIN_MOST;
}

static struct estimate read_estimate(const json_t *json)
{
	struct estimate e = {
		json_number_value(json_array_get(json, 0)),
		json_number_value(json_array_get(json, 1)),
		json_number_value(json_array_get(json, 2)),
	};
	if (!is_gain(e.value)) {
		return no_estimate;
	}
	bool interval = is_gain(e.low) && is_gain(e.high) && e.low <= e.value && e.value <= e.high;
	e.low = interval ? e.low : NAN;
	e.high = interval ? e.high : NAN;
	return e;
}

static bool read_settings(const json_t *json, struct setting_list *ret)
{
	size_t i;
	json_t *one, *value;
	const char *name;
	json_array_foreach(json, i, one)
	{
		json_object_foreach(one, name, value)
		{
			const char *text = json_string_value(value);
			if (!text || !setting_add(ret, 0, setting_kind_of(name), text)) {
				return false;
			}
		}
	}
	return ret->n > 0;
}

// False: not a valid trial.
static bool read_one(const json_t *json, struct tried *ret)
{
	*ret = (struct tried){
		.promised = read_estimate(json_object_get(json, "promised")),
		.at_most = json_is_true(json_object_get(json, "at_most")),
		.gain = read_estimate(json_object_get(json, "gain")),
	};
	json_int_t probes = json_integer_value(json_object_get(json, "probes"));
	ret->probes = probes > 0 && probes <= INT32_MAX ? (unsigned)probes : 0;
	return read_settings(json_object_get(json, "settings"), &ret->settings);
}

// The reason is printed, so it is cut to one line without control characters.
static char *read_missing(const json_t *json)
{
	const char *missing = json_string_value(json_object_get(json, "missing"));
	struct text printable = {0};
	if (missing) {
		text_append_printable(&printable, missing, strnlen(missing, MISSING_BYTES_MAX));
	}
	return text_steal(&printable);
}

int tried_read(const char *json, struct tried_list *ret)
{
	*ret = (struct tried_list){0};
	size_t length = json ? strnlen(json, JSON_BYTES_MAX + 1) : 0, i;
	json_t *list = length > 0 && length <= JSON_BYTES_MAX ? json_loadb(json, length, 0, NULL)
	                                                      : NULL;
	json_t *item;
	int r = 0;
	json_array_foreach(list, i, item)
	{
		struct tried tried;
		if (r < 0 || i >= TRIED_MAX || !read_one(item, &tried)) {
			continue;
		}
		if (!isfinite(tried.gain.value)) {
			tried.missing = read_missing(item);
			r = tried.missing ? 0 : -ENOMEM;
		}
		r = r < 0 ? r : tried_add(ret, &tried);
		free(tried.missing);
	}
	json_decref(list);
	if (r < 0) {
		tried_done(ret);
	}
	return r;
}

static void append_estimate(struct text *t, const char *name, const struct estimate *e)
{
	if (isfinite(e->value)) {
		text_format(t, ",\"%s\":[%.4g", name, e->value);
		if (isfinite(e->low) && isfinite(e->high)) {
			text_format(t, ",%.4g,%.4g", e->low, e->high);
		}
		text_append_string(t, "]");
	}
}

static void append_one(struct text *t, const struct tried *tried)
{
	text_append_string(t, "{\"settings\":[");
	for (size_t i = 0; i < tried->settings.n; i++) {
		const struct setting *setting = &tried->settings.items[i];
		text_format(t, "%s{\"%s\":", i > 0 ? "," : "", setting_kind_name(setting->kind));
		text_append_json_string(t, setting->value);
		text_append_string(t, "}");
	}
	text_append_string(t, "]");
	append_estimate(t, "promised", &tried->promised);
	text_append_string(t, tried->at_most ? ",\"at_most\":true" : "");
	append_estimate(t, "gain", &tried->gain);
	text_format(t, ",\"probes\":%u", tried->probes);
	if (tried->missing) {
		text_append_string(t, ",\"missing\":");
		text_append_json(t, tried->missing, strnlen(tried->missing, MISSING_BYTES_MAX));
	}
	text_append_string(t, "}");
}

void tried_append_json(struct text *t, const struct tried_list *list)
{
	size_t first = list->n > TRIED_MAX ? list->n - TRIED_MAX : 0;
	text_append_string(t, "[");
	for (size_t i = first; i < list->n; i++) {
		text_append_string(t, i > first ? "," : "");
		append_one(t, &list->items[i]);
	}
	text_append_string(t, "]");
}

// A list ------------------------------------------------------------------------------------------

int tried_add(struct tried_list *list, const struct tried *tried)
{
	struct tried copy = *tried;
	copy.missing = tried->missing ? strdup(tried->missing) : NULL;
	size_t at = 0;
	while (at < list->n && !setting_same(&list->items[at].settings, &tried->settings)) {
		at++;
	}
	struct tried *grown = at < list->n ? list->items
	                                   : realloc(list->items, (list->n + 1) * sizeof(*grown));
	if (!grown || (tried->missing && !copy.missing)) {
		free(copy.missing);
		list->items = grown ? grown : list->items;
		return -ENOMEM;
	}
	list->items = grown;
	if (at < list->n) {
		free(grown[at].missing);
	} else {
		list->n++;
	}
	grown[at] = copy;
	return 0;
}

void tried_done(struct tried_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		free(list->items[i].missing);
	}
	free(list->items);
	*list = (struct tried_list){0};
}

const struct tried *tried_find(const struct tried_list *list, const struct setting_list *settings)
{
	for (size_t i = 0; i < list->n; i++) {
		if (setting_same(&list->items[i].settings, settings)) {
			return &list->items[i];
		}
	}
	return NULL;
}

bool tried_gained(const struct tried *tried)
{
	return tried->gain.low > 1;
}

bool tried_in_vain(const struct tried *tried)
{
	return tried->gain.low <= 1;
}

static void append_times(struct text *t, double times)
{
	text_format(t, "%.*f", times < 9.995 ? 2 : times < 99.95 ? 1 : 0, times);
}

static void append_interval(struct text *t, const struct estimate *gain)
{
	append_times(t, gain->value);
	text_append_string(t, "x");
	if (isfinite(gain->low) && isfinite(gain->high)) {
		text_append_string(t, " (");
		append_times(t, gain->low);
		text_append_string(t, " to ");
		append_times(t, gain->high);
		text_append_string(t, ")");
	}
}

void tried_append_result(struct text *t, const struct tried *tried)
{
	if (!isfinite(tried->gain.value)) {
		text_append_string(t, "not tried");
		if (tried->missing && *tried->missing) {
			text_append_string(t, ": ");
			text_append_string(t, tried->missing);
		}
		return;
	}
	text_append_string(t, tried_in_vain(tried) ? "no significant gain: " : "");
	append_interval(t, &tried->gain);
	if (isfinite(tried->promised.value)) {
		text_append_string(t, tried->at_most ? ", estimated at most " : ", estimated ");
		text_append_string(t, tried->promised.value >= 20 ? "more than " : "");
		text_format(t, "%.*fx", tried->promised.value < 9.95 ? 1 : 0,
			fmin(20, tried->promised.value));
	}
}

void tried_append(struct text *t, const struct tried *tried)
{
	text_append_string(t, isfinite(tried->gain.value) ? "measured: " : "");
	tried_append_result(t, tried);
}

// A verdict ---------------------------------------------------------------------------------------

// Attaches the best trial of its choices to a suggestion. Returns whether all choices were tried in
// vain.
static bool attach(struct suggestion *s, const struct tried_list *list)
{
	struct setting_list choice;
	size_t choices = 0, in_vain = 0;
	s->tried = NULL;
	for (unsigned i = 0; i <= UINT8_MAX; i++) {
		if (!setting_choose(&s->settings, i, &choice)) {
			continue;
		}
		const struct tried *tried = tried_find(list, &choice);
		choices++;
		in_vain += tried && tried_in_vain(tried);
		if (tried && isfinite(tried->gain.value) &&
			(!s->tried || tried->gain.value > s->tried->gain.value)) {
			s->tried = tried;
		}
	}
	if (s->tried && tried_in_vain(s->tried) && in_vain < choices) {
		s->tried = NULL; // another choice may gain
	}
	return choices > 0 && in_vain == choices;
}

// Advice that was tried and gained comes first, by gain; the rest keeps its order.
static bool comes_before(const struct suggestion *a, const struct suggestion *b)
{
	bool tried_a = a->tried && tried_gained(a->tried);
	bool tried_b = b->tried && tried_gained(b->tried);
	return tried_a && (!tried_b || a->tried->gain.value > b->tried->gain.value);
}

static void insert(struct suggestion *items, size_t n, struct suggestion inserted)
{
	while (n > 0 && comes_before(&inserted, &items[n - 1])) {
		items[n] = items[n - 1];
		n--;
	}
	items[n] = inserted;
}

int tried_apply(struct verdict *v)
{
	if (v->tried.n == 0 || v->n_suggestions == 0) {
		return 0;
	}
	v->in_vain = calloc(v->n_suggestions, sizeof(*v->in_vain));
	if (!v->in_vain) {
		return -ENOMEM;
	}
	size_t kept = 0;
	for (size_t i = 0; i < v->n_suggestions; i++) {
		struct suggestion suggestion = v->suggestions[i];
		if (attach(&suggestion, &v->tried)) {
			v->in_vain[v->n_in_vain++] = suggestion;
		} else {
			insert(v->suggestions, kept++, suggestion);
		}
	}
	v->n_suggestions = kept;
	return 0;
}

bool tried_is_told(const struct verdict *v, const struct tried *tried)
{
	for (size_t i = 0; i < v->n_suggestions; i++) {
		if (v->suggestions[i].tried == tried) {
			return true;
		}
	}
	return false;
}
