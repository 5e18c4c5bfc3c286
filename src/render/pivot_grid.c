// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Laying pivots out.

#include "render/pivot_grid.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/words.h"
#include "base/cleanup.h"

#define FOREIGN_COLUMNS 48 // of words that a run brings
#define SURE 0.5 // half an interval of a ratio's logarithm, up to which +- says it

// --- numbers

struct scale {
	double divisor;
	const char *unit; // "" where the title says it
};

struct prefix {
	double from; // the largest number is at least this
	struct scale scale;
};

// The smallest comes last, and takes what is left.
static const struct prefix seconds[] = {
	{0.9995, {1, "s"}}, {0.9995e-3, {1e-3, "ms"}}, {0, {1e-6, "us"}}};
static const struct prefix bytes[] = {{1e12, {1e12, "TB"}}, {1e9, {1e9, "GB"}}, {1e6, {1e6, "MB"}},
	{1e3, {1e3, "kB"}}, {0, {1, "B"}}};
static const struct prefix binary_bytes[] = {{0x1p40, {0x1p40, "TiB"}}, {0x1p30, {0x1p30, "GiB"}},
	{0x1p20, {0x1p20, "MiB"}}, {0x1p10, {0x1p10, "KiB"}}, {0, {1, "B"}}};
static const struct prefix joules[] = {{1e6, {1e6, "MJ"}}, {1e3, {1e3, "kJ"}}, {0, {1, "J"}}};

static const struct prefix byte_rates[] = {{1e12, {1e12, "TB/s"}}, {1e9, {1e9, "GB/s"}},
	{1e6, {1e6, "MB/s"}}, {1e3, {1e3, "kB/s"}}, {0, {1, "B/s"}}};

static bool is_byte_rate(const struct pivot_value *value)
{
	return value->unit && strcmp(value->unit, "By/s") == 0;
}

static struct scale scale_for(const struct pivot_value *value, double largest, bool binary)
{
	const struct prefix *prefixes = value->kind == MEASURE_KIND_SECONDS ? seconds
	                                : value->kind == MEASURE_KIND_BYTES
	                                        ? (binary ? binary_bytes : bytes)
	                                : value->kind == MEASURE_KIND_JOULES ? joules
	                                : is_byte_rate(value)                ? byte_rates
	                                                                     : NULL;
	if (!prefixes) {
		const char *unit = value->kind == MEASURE_KIND_PERCENT ? "%"
		                   : value->kind == MEASURE_KIND_WATTS ? "W"
		                   : value->measure == N_MEASURES && value->unit[0] != '{'
		                           ? value->unit
		                           : "";
		return (struct scale){1, strcmp(unit, "1") == 0 ? "" : unit};
	}
	while (prefixes->from > 0 && largest < prefixes->from) {
		prefixes++;
	}
	return largest > 0 || value->kind != MEASURE_KIND_SECONDS ? prefixes->scale
	                                                          : (struct scale){1, "s"};
}

static int max_of(int a, int b)
{
	return a > b ? a : b;
}

static int magnitude(double value)
{
	return value != 0 ? (int)floor(log10(fabs(value))) : 0;
}

// Digits behind the point, by which a mean and the half of its interval are shown alike: two digits
// of the half count. Negative where tens are the last that counts; the mean keeps a digit.
static int decimals_for(double value, double half)
{
	if (!(half > 0)) {
		double shown = fabs(value);
		return shown >= 99.95 || shown == 0 ? 0 : 2 - magnitude(shown);
	}
	int decimals = 1 - magnitude(half);
	decimals -= half * pow(10, decimals) >= 99.5; // 0.996 is 1.0
	return value != 0 && decimals < 0 ? max_of(decimals, -magnitude(value)) : decimals;
}

static void append_fixed(struct text *t, double value, int decimals)
{
	char plain[64];
	double last = decimals < 0 ? pow(10, -decimals) : 1;
	value = decimals < 0 && fabs(value) < 1e15 ? round(value / last) * last : value;
	decimals = decimals < 0 ? 0 : decimals > 9 ? 9 : decimals;
	snprintf(plain, sizeof(plain), fabs(value) < 1e15 ? "%.*f" : "%.*e", decimals, value);
	size_t sign = plain[0] == '-', whole = strspn(plain + sign, "0123456789");
	text_append(t, plain, sign);
	for (size_t i = 0; i < whole; i++) { // thousands apart
		text_append(t, plain + sign + i, 1);
		text_append_string(
			t, whole > 4 && i + 1 < whole && (whole - i - 1) % 3 == 0 ? "," : "");
	}
	text_append_string(t, plain + sign + whole);
}

void grid_append_number(struct text *t, double value, double half)
{
	append_fixed(t, value,
		value == floor(value) && !(half > 0) && fabs(value) < 1e9
			? 0
			: decimals_for(value, half));
}

static char *number_text(double value, double half)
{
	struct text t = {0};
	grid_append_number(&t, value, half);
	return text_steal(&t);
}

void grid_append_half(struct text *t, double value, double half)
{
	append_fixed(t, half, half > 0 ? decimals_for(value, half) : 0);
}

static char *half_text(double value, double half)
{
	struct text t = {0};
	grid_append_half(&t, value, half);
	return text_steal(&t);
}

void grid_append_against(struct text *t, double against)
{
	double size = fabs(against);
	append_fixed(t, against,
		size >= 99.95                   ? 0
		: size >= 9.995                 ? 1
		: fabs(against - 1) < 0.0995    ? 3 // what is close to 1 is not 1
		: size >= 0.0995 || size == 0.0 ? 2
						: 1 - magnitude(size));
}

static char *against_text(double against)
{
	struct text t = {0};
	grid_append_against(&t, against);
	return text_steal(&t);
}

// --- cells

static char *printable(const char *string)
{
	struct text t = {0};
	text_append_printable(&t, string, strlen(string));
	return text_steal(&t);
}

static char *failures_text(const struct pivot_cell *cell)
{
	struct text t = {0};
	pivot_append_failures(&t, cell);
	return text_steal(&t);
}

static char *words_text(const struct pivot_cell *cell)
{
	struct text t = {0};
	if (cell->words_are_foreign) {
		words_append_elided(&t, cell->words, FOREIGN_COLUMNS);
	} else {
		text_append_printable(&t, cell->words, strlen(cell->words));
	}
	for (size_t i = 0; t.data && i < t.length && !cell->words_are_foreign; i++) {
		t.data[i] = t.data[i] == '_' ? ' ' : t.data[i];
	}
	text_append_string(&t, cell->words_differ ? ", ..." : "");
	return text_steal(&t);
}

static int number_cell(
	struct grid_cell *out, const struct pivot_cell *cell, const struct scale *scale)
{
	const struct repeats *r = &cell->repeats;
	out->number = number_text(r->mean / scale->divisor, r->half / scale->divisor);
	out->half = isfinite(r->half)
	                    ? half_text(r->mean / scale->divisor, r->half / scale->divisor)
	                    : NULL;
	out->against = isfinite(cell->against) ? against_text(cell->against) : NULL;
	out->beyond_noise = cell->beyond_noise;
	out->failed = pivot_failed(cell) ? failures_text(cell) : NULL;
	return out->number && (out->half || !isfinite(r->half)) &&
	                       (out->against || !isfinite(cell->against)) &&
	                       (out->failed || !pivot_failed(cell))
	               ? 0
	               : -ENOMEM;
}

static int fill_cell(
	struct grid_cell *out, const struct pivot_cell *cell, const struct scale *scale)
{
	if (cell->n_runs == 0) {
		return 0;
	}
	out->note = cell->note;
	if (cell->repeats.n > 0) {
		return number_cell(out, cell, scale);
	}
	out->is_words = true;
	bool all_failed = pivot_failed(cell) == cell->n_runs;
	out->number = cell->words  ? words_text(cell)
	              : all_failed ? failures_text(cell)
	                           : strdup("-");
	return out->number ? 0 : -ENOMEM;
}

// --- titles

// Which of the two numbers stands behind those of a value.
static const char *against_word(const struct pivot_value *value)
{
	return measure_is_speed(value->measure) ? "speed-up" : "ratio";
}

static bool is_compared(const struct pivot *p, size_t value)
{
	for (size_t i = 0; i < p->rows.n * p->columns.n; i++) {
		if (isfinite(p->cells[i * p->n_values + value].against)) {
			return true;
		}
	}
	return false;
}

// "time of an epoch, s (speed-up)"
static char *value_title(const struct pivot *p, size_t index, const struct scale *scale)
{
	struct text t = {0};
	const struct pivot_value *value = &p->values[index];
	text_append_printable(&t, value->title, strlen(value->title));
	if (*scale->unit) {
		text_append_string(&t, ", ");
		text_append_printable(&t, scale->unit, strlen(scale->unit));
	}
	if (is_compared(p, index)) {
		text_format(&t, " (%s)", against_word(value));
	}
	return text_steal(&t);
}

static char *key_title(const struct pivot_axis *axis, size_t key)
{
	struct text t = {0};
	for (size_t i = 0; i < axis->n_labels; i++) {
		const char *value = pivot_key(axis, key, i);
		text_append_string(&t, i ? " " : "");
		text_append_printable(&t, value ? value : "-", value ? strlen(value) : 1);
	}
	return text_steal(&t);
}

// Which value, row and column of the pivot a place of a grid shows.
struct view {
	const struct pivot *p;
	bool values_down;
	bool values_across;
	size_t value; // where they are neither
};

static const struct pivot_cell *cell_of(const struct view *view, size_t row, size_t column)
{
	return view->values_down     ? pivot_at(view->p, 0, column, row)
	       : view->values_across ? pivot_at(view->p, row, 0, column)
	                             : pivot_at(view->p, row, column, view->value);
}

static size_t value_of(const struct view *view, size_t row, size_t column)
{
	return view->values_down ? row : view->values_across ? column : view->value;
}

static struct scale value_scale(const struct pivot *p, size_t value)
{
	double largest = 0;
	for (size_t row = 0; row < p->rows.n; row++) {
		for (size_t column = 0; column < p->columns.n; column++) {
			double mean = pivot_at(p, row, column, value)->repeats.mean;
			largest = fmax(largest, fabs(mean));
		}
	}
	return scale_for(&p->values[value], largest, p->binary_sizes);
}

static bool fill_titles(struct grid *g, const struct view *view, const struct scale *scales)
{
	const struct pivot *p = view->p;
	bool fine = true;
	for (size_t i = 0; i < g->n_heads; i++) {
		g->head_titles[i] = view->values_down ? strdup("") : printable(p->rows.labels[i]);
		fine = fine && g->head_titles[i];
	}
	for (size_t c = 0; c < g->n_columns; c++) {
		g->titles[c] = view->values_across        ? value_title(p, c, &scales[c])
		               : p->columns.n_labels == 0 ? strdup(p->most > 1 ? "mean" : "")
		                                          : key_title(&p->columns, c);
		fine = fine && g->titles[c];
	}
	for (size_t r = 0; r < g->n_rows; r++) {
		for (size_t i = 0; i < g->n_heads; i++) {
			const char *key = view->values_down ? NULL : pivot_key(&p->rows, r, i);
			char **head = &g->heads[r * g->n_heads + i];
			*head = view->values_down ? value_title(p, r, &scales[r])
			                          : printable(key ? key : "-");
			fine = fine && *head;
		}
	}
	return fine;
}

static bool is_number(const char *string)
{
	char *end;
	strtod(string, &end);
	return end != string && !*end;
}

static void tell_numbers(struct grid *g)
{
	for (size_t i = 0; i < g->n_heads; i++) {
		g->head_is_number[i] = true;
		for (size_t r = 0; r < g->n_rows; r++) {
			const char *head = g->heads[r * g->n_heads + i];
			g->head_is_number[i] = g->head_is_number[i] &&
			                       (is_number(head) || strcmp(head, "-") == 0);
		}
	}
}

static char *caption_of(const struct view *view, const struct scale *scales)
{
	struct text t = {0};
	const struct pivot *p = view->p;
	if (!view->values_across && !view->values_down) {
		_cleanup_free_ char *title = value_title(p, view->value, &scales[view->value]);
		text_append_string(&t, title ? title : "");
	}
	if (!view->values_across && p->columns.n_labels > 0) {
		text_append_string(&t, t.length ? ", by " : "columns: ");
		for (size_t i = 0; i < p->columns.n_labels; i++) {
			const char *label = p->columns.labels[i];
			text_append_string(&t, i ? ", " : "");
			text_append_printable(&t, label, strlen(label));
		}
	}
	return text_steal(&t);
}

static int fill_grid(struct grid *g, const struct view *view, const struct scale *scales)
{
	const struct pivot *p = view->p;
	g->n_heads = view->values_down ? 1 : p->rows.n_labels;
	g->n_rows = view->values_down ? p->n_values : p->rows.n;
	g->n_columns = view->values_across ? p->n_values : p->columns.n;
	g->column_axis = view->values_across ? NULL : &p->columns;
	g->head_titles = calloc(g->n_heads + 1, sizeof(*g->head_titles));
	g->head_is_number = calloc(g->n_heads + 1, sizeof(*g->head_is_number));
	g->titles = calloc(g->n_columns + 1, sizeof(*g->titles));
	g->heads = calloc(g->n_rows * g->n_heads + 1, sizeof(*g->heads));
	g->cells = calloc(g->n_rows * g->n_columns + 1, sizeof(*g->cells));
	g->caption = caption_of(view, scales);
	if (!g->head_titles || !g->head_is_number || !g->titles || !g->heads || !g->cells ||
		!g->caption || !fill_titles(g, view, scales)) {
		return -ENOMEM;
	}
	tell_numbers(g);
	int r = 0;
	for (size_t i = 0; i < g->n_rows * g->n_columns && r == 0; i++) {
		size_t row = i / g->n_columns, column = i % g->n_columns;
		r = fill_cell(&g->cells[i], cell_of(view, row, column),
			&scales[value_of(view, row, column)]);
	}
	return r;
}

// --- what is said below

static char *interval_words(const struct pivot *p)
{
	struct text t = {0};
	if (p->most == 0) {
		return strdup("");
	}
	text_append_string(&t, p->fewest == p->most ? "" : "mean of ");
	if (p->most == 1) {
		text_append_string(&t, "one run each: no interval, and what is noise is not known");
	} else if (p->fewest == p->most) {
		text_format(&t, "mean of %zu runs each", p->most);
	} else {
		text_format(&t, "%zu to %zu runs", p->fewest, p->most);
	}
	if (p->most > 1 && statistics_has_distributions()) {
		text_append_string(&t, "; +- is its 95 % interval (Student's t)");
	} else if (p->most > 1) {
		text_append_string(&t, "; intervals and tests need a build with GSL");
	}
	return text_steal(&t);
}

// "speed-up: times as fast as batch_size=32 (the plan's baseline), ratio: times as much"
static void append_meaning(struct text *t, const struct pivot *p)
{
	static const char *const meanings[] = {"ratio: times as much", "speed-up: times as fast"};
	bool first = true;
	for (size_t speed = 2; speed-- > 0;) {
		size_t v = 0;
		while (v < p->n_values &&
			!(is_compared(p, v) && measure_is_speed(p->values[v].measure) == speed)) {
			v++;
		}
		if (v == p->n_values) {
			continue;
		}
		text_append_string(t, first ? "" : ", ");
		text_append_string(t, meanings[speed]);
		if (first) {
			text_append_string(t, " as ");
			text_append_printable(t, p->baseline, strlen(p->baseline));
			if (p->baseline_from) {
				text_format(t, " (%s)", p->baseline_from);
			}
		}
		first = false;
	}
}

// "1.45 +-0.10", "1.4 (95 %: 0.8 to 2.6)"
static void append_ratio(struct text *t, const struct pivot_ratio *ratio)
{
	double half = ratio->times * sinh(ratio->half);
	if (!isfinite(ratio->half)) {
		grid_append_against(t, ratio->times);
	} else if (ratio->half <= SURE) {
		grid_append_number(t, ratio->times, half);
		text_append_string(t, " +-");
		grid_append_half(t, ratio->times, half);
	} else {
		grid_append_against(t, ratio->times);
		text_append_string(t, " (95 %: ");
		grid_append_against(t, ratio->times / exp(ratio->half));
		text_append_string(t, " to ");
		grid_append_against(t, ratio->times * exp(ratio->half));
		text_append_string(t, ")");
	}
	text_append_string(t, " times as fast as ");
}

static void append_key(struct text *t, const struct pivot_axis *axis, size_t key)
{
	_cleanup_free_ char *title = key_title(axis, key);
	text_append_string(t, title ? title : "");
}

// "after is 1.45 +-0.10 times as fast as before, by the time of an epoch"
static char *closing_words(const struct pivot *p)
{
	enum { SHOWN = 5 };
	struct text t = {0};
	const struct pivot_ranking *ranking = &p->ranking;
	bool sure = true, tested = true;
	if (ranking->n == 0) {
		return strdup("");
	}
	append_key(&t, &p->columns, ranking->fastest);
	for (size_t i = 0; i < ranking->n && i < SHOWN; i++) {
		const struct pivot_ratio *ratio = &ranking->others[i];
		text_append_string(&t, i ? ", " : " is ");
		append_ratio(&t, ratio);
		append_key(&t, &p->columns, ratio->column);
		tested = tested && isfinite(ratio->half);
		bool beyond = ratio->times > exp(ratio->half);
		if (isfinite(ratio->half) && !beyond && ranking->n > 1) {
			text_append_string(&t, " (noise)");
		}
		sure = sure && beyond;
	}
	if (ranking->n > SHOWN) {
		text_format(&t, ", and faster than %zu more", ranking->n - SHOWN);
	}
	text_append_string(&t, ", by the ");
	text_append_string(&t, p->values[ranking->value].title);
	text_append_string(&t, !tested ? " (one run each has no interval: it may be noise)"
			       : !sure && ranking->n == 1 ? ": that is within noise"
							  : "");
	return text_steal(&t);
}

static char *baseline_words(const struct pivot *p)
{
	struct text t = {0};
	if (p->unranked) {
		text_append_string(&t, "not ranked: ");
		text_append_printable(&t, p->unranked, strlen(p->unranked));
		return text_steal(&t);
	}
	if (p->baseline) {
		append_meaning(&t, p);
	}
	if (t.length == 0) {
		return strdup("");
	}
	if (p->n_tests > 0) {
		text_format(&t,
			"; * is beyond noise (" STATISTICS_TEST
			" over %zu comparison%s, %.0f %% level)",
			p->n_tests, p->n_tests > 1 ? "s" : "", 100 * STATISTICS_LEVEL);
	} else {
		text_append_string(&t, "; none is tested: that takes at least two runs of both");
	}
	return text_steal(&t);
}

static int fill_words(struct grid_list *list, const struct pivot *p)
{
	list->interval = interval_words(p);
	list->baseline = baseline_words(p);
	list->closing = closing_words(p);
	list->notes = calloc(p->n_notes + 1, sizeof(*list->notes));
	if (!list->interval || !list->baseline || !list->closing || !list->notes) {
		return -ENOMEM;
	}
	for (; list->n_notes < p->n_notes; list->n_notes++) {
		list->notes[list->n_notes] = printable(p->notes[list->n_notes]);
		if (!list->notes[list->n_notes]) {
			return -ENOMEM;
		}
	}
	return 0;
}

int grid_list_build(const struct pivot *p, struct grid_list *ret)
{
	struct view view = {.p = p,
		.values_down = p->rows.n_labels == 0,
		.values_across = p->rows.n_labels > 0 && p->columns.n_labels == 0};
	size_t n = view.values_down || view.values_across ? 1 : p->n_values;
	_cleanup_free_ struct scale *scales = calloc(p->n_values + 1, sizeof(*scales));
	struct grid_list list = {.grids = calloc(n + 1, sizeof(*list.grids))};
	int r = scales && list.grids ? fill_words(&list, p) : -ENOMEM;
	for (size_t v = 0; r == 0 && v < p->n_values; v++) {
		scales[v] = value_scale(p, v);
	}
	while (r == 0 && list.n < n) {
		view.value = list.n++;
		r = fill_grid(&list.grids[view.value], &view, scales);
	}
	if (r < 0) {
		grid_list_done(&list);
		return r;
	}
	*ret = list;
	return 0;
}

static void free_strings(char **strings, size_t n)
{
	for (size_t i = 0; strings && i < n; i++) {
		free(strings[i]);
	}
	free(strings);
}

static void grid_done(struct grid *g)
{
	free(g->caption);
	free_strings(g->head_titles, g->n_heads);
	free(g->head_is_number);
	free_strings(g->titles, g->n_columns);
	free_strings(g->heads, g->n_rows * g->n_heads);
	for (size_t i = 0; g->cells && i < g->n_rows * g->n_columns; i++) {
		free(g->cells[i].number);
		free(g->cells[i].half);
		free(g->cells[i].against);
		free(g->cells[i].failed);
	}
	free(g->cells);
}

void grid_list_done(struct grid_list *list)
{
	for (size_t i = 0; list->grids && i < list->n; i++) {
		grid_done(&list->grids[i]);
	}
	free(list->grids);
	free_strings(list->notes, list->n_notes);
	free(list->interval);
	free(list->baseline);
	free(list->closing);
	*list = (struct grid_list){0};
}
