// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The output formats of pivots.

#include "show/pivot_write.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/words.h"
#include "show/csv.h"
#include "show/json.h"

static int pivot_write_text(
	const struct grid_list *list, FILE *stream, const struct table_style *style);
static int pivot_write_markdown(const struct grid_list *list, FILE *stream);
static int pivot_write_latex(const struct grid_list *list, FILE *stream);
static int pivot_write_csv(const struct pivot *p, FILE *stream);
static int pivot_write_json(const struct pivot *p, FILE *stream);
static void grid_list_done(struct grid_list *list);

// Grid --------------------------------------------------------------------------------------------
//
// The layout of pivots.

#define FOREIGN_COLUMNS 48 // for a unit that comes from a run
#define SURE 0.5 // half an interval of a ratio's logarithm; up to this, +- describes it

// --- numbers

struct scale {
	double divisor;
	const char *unit; // "" if the title has it
};

struct prefix {
	double from; // for numbers whose largest is at least this
	struct scale scale;
};

// The last one is the smallest, for everything below.
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
		                   : (value->measure == N_MEASURES ||
					     value->kind == MEASURE_KIND_MONEY) &&
		                                   value->unit[0] != '{'
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

// The number of decimals for a mean and the half of its interval: two significant digits of the
// half. Negative if the last significant digit is in the tens or above; the mean keeps a digit.
static int decimals_for(double value, double half)
{
	if (!(half > 0)) {
		double shown = fabs(value);
		return shown >= 99.95 || shown == 0 ? 0 : 2 - magnitude(shown);
	}
	int decimals = 1 - magnitude(half);
	decimals -= half * pow(10, decimals) >= 99.5; // 0.996 is shown as 1.0
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
	for (size_t i = 0; i < whole; i++) { // groups of thousands
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
		: fabs(against - 1) < 0.0995    ? 3 // a value near 1 must not be shown as 1
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

// The name of the comparison of a value with the baseline.
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

// Appends "time of an epoch, s (speed-up)".
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

// Maps a position in the grid to a value, a row and a column of the pivot.
struct view {
	const struct pivot *p;
	bool values_down;
	bool values_across;
	size_t value; // if values are neither rows nor columns
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

// --- notes below the grid

static char *interval_words(const struct pivot *p)
{
	struct text t = {0};
	if (p->most == 0) {
		return strdup("");
	}
	text_append_string(&t, p->fewest == p->most ? "" : "mean of ");
	if (p->most == 1) {
		text_append_string(&t, "single runs: no intervals; the noise is unknown");
	} else if (p->fewest == p->most) {
		text_format(&t, "mean of %zu runs each", p->most);
	} else {
		text_format(&t, "%zu to %zu runs", p->fewest, p->most);
	}
	if (p->most > 1) {
		text_append_string(&t, "; +- is its 95 % interval (Student's t)");
	}
	return text_steal(&t);
}

// Appends "speed-up: how many times as fast as batch_size=32 (the plan's baseline); ratio: how
// many times as much".
static void append_meaning(struct text *t, const struct pivot *p)
{
	static const char *const meanings[] = {
		"ratio: how many times as much", "speed-up: how many times as fast"};
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
		text_append_string(t, first ? "" : "; ");
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

// Appends "1.45 +-0.10" or "1.4 (95 %: 0.8 to 2.6)".
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

// Returns "after is 1.45 +-0.10 times as fast as before, by the time of an epoch".
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
	text_append_string(&t, ", by ");
	text_append_string(&t, p->values[ranking->value].title);
	text_append_string(&t, !tested ? " (single runs have no interval: this may be noise)"
			       : !sure && ranking->n == 1 ? ": within noise"
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
			"; * is significant (" STATISTICS_TEST
			" over %zu comparison%s, %.0f %% level)",
			p->n_tests, p->n_tests > 1 ? "s" : "", 100 * STATISTICS_LEVEL);
	} else {
		text_append_string(&t, "; not tested: a test needs at least two runs of each");
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

// Returns 0 or -ENOMEM.
static int grid_list_build(const struct pivot *p, struct grid_list *ret)
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

static void grid_list_done(struct grid_list *list)
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

// Write -------------------------------------------------------------------------------------------

static const struct {
	const char *name;
	const char *ending;
} formats[N_PIVOT_FORMATS] = {
	[PIVOT_TEXT] = {"text", ".txt"},
	[PIVOT_MARKDOWN] = {"markdown", ".md"},
	[PIVOT_LATEX] = {"latex", ".tex"},
	[PIVOT_CSV] = {"csv", ".csv"},
	[PIVOT_JSON] = {"json", ".json"},
};

const char *pivot_format_name(enum pivot_format format)
{
	return formats[format].name;
}

bool pivot_format_parse(const char *name, enum pivot_format *ret)
{
	for (size_t i = 0; i < N_PIVOT_FORMATS; i++) {
		if (strcmp(name, formats[i].name) == 0) {
			*ret = (enum pivot_format)i;
			return true;
		}
	}
	return false;
}

bool pivot_format_of(const char *path, enum pivot_format *ret)
{
	size_t length = strlen(path);
	for (size_t i = 0; i < N_PIVOT_FORMATS; i++) {
		size_t n = strlen(formats[i].ending);
		if (length > n && strcasecmp(path + length - n, formats[i].ending) == 0) {
			*ret = (enum pivot_format)i;
			return true;
		}
	}
	return false;
}

int pivot_write(const struct pivot *p, enum pivot_format format, FILE *stream,
	const struct table_style *style)
{
	struct grid_list list = {0};
	if (format == PIVOT_CSV || format == PIVOT_JSON) {
		return format == PIVOT_CSV ? pivot_write_csv(p, stream)
		                           : pivot_write_json(p, stream);
	}
	int r = grid_list_build(p, &list);
	if (r == 0) {
		r = format == PIVOT_TEXT    ? pivot_write_text(&list, stream, style)
		    : format == PIVOT_LATEX ? pivot_write_latex(&list, stream)
		                            : pivot_write_markdown(&list, stream);
	}
	grid_list_done(&list);
	return r < 0 ? r : fflush(stream) == EOF || ferror(stream) ? -(errno ? errno : EIO) : 0;
}

// Text --------------------------------------------------------------------------------------------
//
// Pivots in the terminal. Within a column, decimal points and intervals are aligned. Columns that
// do not fit follow below, with the same row headings.

#define GAP 2 // between columns

// Widths of the parts of a column's cells.
struct widths {
	size_t fraction; // with the point
	size_t half;
	size_t against;
	bool marked; // at least one is significant
	size_t tail;
};

static size_t wider(size_t a, size_t b)
{
	return a > b ? a : b;
}

static const char *fraction_of(const struct grid_cell *cell)
{
	const char *point = cell->number && !cell->is_words ? strchr(cell->number, '.') : NULL;
	return point ? point : "";
}

static void append_tail(struct text *t, const struct grid_cell *cell)
{
	if (cell->failed) {
		text_append_string(t, ", ");
		text_append_string(t, cell->failed);
	}
	if (cell->note) {
		text_format(t, " [%zu]", cell->note);
	}
}

static size_t tail_width(const struct grid_cell *cell)
{
	_cleanup_text_ struct text tail = {0};
	append_tail(&tail, cell);
	return cell->is_words ? 0 : tail.length;
}

static struct widths measure(const struct grid *g, size_t column)
{
	struct widths w = {0};
	for (size_t r = 0; r < g->n_rows; r++) {
		const struct grid_cell *cell = &g->cells[r * g->n_columns + column];
		w.fraction = wider(w.fraction, strlen(fraction_of(cell)));
		w.half = wider(w.half, cell->half ? strlen(cell->half) : 0);
		w.against = wider(w.against, cell->against ? strlen(cell->against) : 0);
		w.marked = w.marked || cell->beyond_noise;
		w.tail = wider(w.tail, tail_width(cell));
	}
	return w;
}

static void append_number(struct text *t, const struct grid_cell *cell, const struct widths *w)
{
	text_append_string(t, cell->number);
	text_format(t, "%*s", (int)(w->fraction - strlen(fraction_of(cell))), "");
	if (w->half) {
		text_format(t, "%s%-*s", cell->half ? " +-" : "   ", (int)w->half,
			cell->half ? cell->half : "");
	}
	if (w->against) {
		text_format(t, "  %*s%s%s", (int)w->against, cell->against ? cell->against : "",
			cell->against ? "x" : " ", cell->beyond_noise ? "*" : "");
	}
	struct text tail = {0};
	append_tail(&tail, cell);
	size_t unmarked = w->marked && !cell->beyond_noise;
	text_append_string(t, tail.data ? tail.data : "");
	text_format(t, "%*s", (int)(w->tail - tail.length + unmarked), "");
	text_done(&tail);
}

// The text of a cell, owned by the caller.
static char *cell_text(const struct grid_cell *cell, const struct widths *w)
{
	struct text t = {0};
	if (cell->number && cell->is_words) {
		text_append_string(&t, cell->number);
		append_tail(&t, cell);
	} else if (cell->number) {
		append_number(&t, cell, w);
	}
	return text_steal(&t);
}

// A grid as strings, with the width of each column.
struct sheet {
	const struct grid *g;
	char **cells; // [n_rows * n_columns]
	size_t *columns; // widths
	size_t heads; // total width of the heading columns
};

static void sheet_done(struct sheet *s)
{
	for (size_t i = 0; s->cells && i < s->g->n_rows * s->g->n_columns; i++) {
		free(s->cells[i]);
	}
	free(s->cells);
	free(s->columns);
}

static size_t head_width(const struct grid *g, size_t head)
{
	size_t width = words_columns(g->head_titles[head]);
	for (size_t r = 0; r < g->n_rows; r++) {
		width = wider(width, words_columns(g->heads[r * g->n_heads + head]));
	}
	return width;
}

static int sheet_fill(struct sheet *s)
{
	const struct grid *g = s->g;
	s->cells = calloc(g->n_rows * g->n_columns + 1, sizeof(*s->cells));
	s->columns = calloc(g->n_columns + 1, sizeof(*s->columns));
	if (!s->cells || !s->columns) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < g->n_heads; i++) {
		s->heads += head_width(g, i) + GAP;
	}
	for (size_t c = 0; c < g->n_columns; c++) {
		struct widths w = measure(g, c);
		s->columns[c] = words_columns(g->titles[c]);
		for (size_t r = 0; r < g->n_rows; r++) {
			size_t at = r * g->n_columns + c;
			s->cells[at] = cell_text(&g->cells[at], &w);
			if (!s->cells[at]) {
				return -ENOMEM;
			}
			s->columns[c] = wider(s->columns[c], words_columns(s->cells[at]));
		}
	}
	return 0;
}

// The number of columns that fit, starting at `from`; at least one.
static size_t columns_that_fit(const struct sheet *s, size_t from, size_t width)
{
	size_t used = s->heads + s->columns[from], n = 1;
	while (from + n < s->g->n_columns &&
		(width == 0 || used + GAP + s->columns[from + n] <= width)) {
		used += GAP + s->columns[from + n++];
	}
	return n;
}

static int print_part(
	const struct sheet *s, size_t from, size_t n, FILE *stream, const struct table_style *style)
{
	const struct grid *g = s->g;
	_cleanup_free_ struct column *columns = calloc(g->n_heads + n, sizeof(*columns));
	struct table *t = NULL;
	if (!columns) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < g->n_heads; i++) {
		columns[i] = (struct column){NULL, g->head_titles[i],
			g->head_is_number[i] ? COLUMN_NUMBER : COLUMN_LABEL, 0};
	}
	for (size_t i = 0; i < n; i++) {
		columns[g->n_heads + i] = (struct column){
			NULL, g->titles[from + i], COLUMN_NUMBER, 0};
	}
	int r = table_new(columns, g->n_heads + n, &t);
	for (size_t row = 0; row < g->n_rows && r == 0; row++) {
		r = table_row(t);
		for (size_t i = 0; i < g->n_heads && r == 0; i++) {
			table_text(t, i, g->heads[row * g->n_heads + i]);
		}
		for (size_t i = 0; i < n && r == 0; i++) {
			table_text(t, g->n_heads + i, s->cells[row * g->n_columns + from + i]);
		}
	}
	struct table_style all = *style;
	all.all_columns = true;
	r = r < 0 ? r : table_print(t, stream, &all);
	table_free(t);
	return r;
}

static int print_grid(const struct grid *g, FILE *stream, const struct table_style *style)
{
	struct sheet s = {.g = g};
	int r = sheet_fill(&s);
	if (*g->caption) {
		fprintf(stream, style->colour ? "\033[1m%s\033[0m\n" : "%s\n", g->caption);
	}
	for (size_t from = 0; r == 0 && from < g->n_columns;) {
		size_t n = columns_that_fit(&s, from, style->width);
		fputs(from ? "\n" : "", stream);
		r = print_part(&s, from, n, stream, style);
		from += n;
	}
	sheet_done(&s);
	return r;
}

// Prints a note, wrapped at blanks.
static void print_below(
	FILE *stream, const struct table_style *style, const char *mark, const char *words)
{
	_cleanup_text_ struct text folded = {0};
	size_t indent = strlen(mark);
	words_append_folded(&folded, words, indent, indent, style->width ? style->width : SIZE_MAX);
	fprintf(stream, "%s%s\n", mark, folded.data ? folded.data : "");
}

static int pivot_write_text(
	const struct grid_list *list, FILE *stream, const struct table_style *style)
{
	int r = 0;
	for (size_t i = 0; i < list->n && r == 0; i++) {
		fputs(i ? "\n" : "", stream);
		r = print_grid(&list->grids[i], stream, style);
	}
	fputs(*list->interval || *list->baseline || list->n_notes || *list->closing ? "\n" : "",
		stream);
	if (*list->interval) {
		print_below(stream, style, "", list->interval);
	}
	if (*list->baseline) {
		print_below(stream, style, "", list->baseline);
	}
	for (size_t i = 0; i < list->n_notes; i++) {
		char mark[32];
		snprintf(mark, sizeof(mark), "[%zu] ", i + 1);
		print_below(stream, style, mark, list->notes[i]);
	}
	if (*list->closing) {
		fputc('\n', stream);
		print_below(stream, style, "", list->closing);
	}
	return r;
}

// Markup ------------------------------------------------------------------------------------------
//
// Pivots as Markdown (tables with pipes, as on GitHub) and as LaTeX (booktabs). Labels of runs are
// escaped, so that none acts as markup.

// --- Markdown

static void append_markdown(struct text *t, const char *string)
{
	for (const char *c = string; *c; c++) {
		if (strncmp(c, "+-", 2) == 0) {
			text_append_string(t, "\u00b1");
			c++;
			continue;
		}
		if (*c == '<' || *c == '>') {
			text_append_string(t, *c == '<' ? "&lt;" : "&gt;");
			continue;
		}
		text_append(t, "\\", strchr("\\`*_[]|&$~#", *c) != NULL);
		text_append(t, c, 1);
	}
}

static void append_markdown_cell(struct text *t, const struct grid_cell *cell)
{
	text_append_string(t, " ");
	append_markdown(t, cell->number ? cell->number : "");
	if (cell->half) {
		text_append_string(t, " \u00b1 ");
		text_append_string(t, cell->half);
	}
	if (cell->against) {
		text_format(t, " (%s\u00d7%s)", cell->against, cell->beyond_noise ? "\\*" : "");
	}
	if (cell->failed) {
		text_append_string(t, ", ");
		text_append_string(t, cell->failed);
	}
	if (cell->note) {
		text_format(t, " <sup>%zu</sup>", cell->note);
	}
	text_append_string(t, " |");
}

static void append_markdown_grid(struct text *t, const struct grid *g)
{
	if (*g->caption) {
		text_append_string(t, "**");
		append_markdown(t, g->caption);
		text_append_string(t, "**\n\n");
	}
	text_append_string(t, "|");
	for (size_t i = 0; i < g->n_heads + g->n_columns; i++) {
		text_append_string(t, " ");
		append_markdown(t, i < g->n_heads ? g->head_titles[i] : g->titles[i - g->n_heads]);
		text_append_string(t, " |");
	}
	text_append_string(t, "\n|");
	for (size_t i = 0; i < g->n_heads + g->n_columns; i++) {
		bool left = i < g->n_heads && !g->head_is_number[i];
		text_append_string(t, left ? " --- |" : " ---: |");
	}
	text_append_string(t, "\n");
	for (size_t r = 0; r < g->n_rows; r++) {
		text_append_string(t, "|");
		for (size_t i = 0; i < g->n_heads; i++) {
			text_append_string(t, " ");
			append_markdown(t, g->heads[r * g->n_heads + i]);
			text_append_string(t, " |");
		}
		for (size_t c = 0; c < g->n_columns; c++) {
			append_markdown_cell(t, &g->cells[r * g->n_columns + c]);
		}
		text_append_string(t, "\n");
	}
}

static int put(struct text *t, FILE *stream)
{
	if (t->failed) {
		return -ENOMEM;
	}
	size_t n = t->length ? fwrite(t->data, 1, t->length, stream) : 0;
	return n == t->length ? 0 : -(errno ? errno : EIO);
}

static int pivot_write_markdown(const struct grid_list *list, FILE *stream)
{
	_cleanup_text_ struct text t = {0};
	for (size_t i = 0; i < list->n; i++) {
		text_append_string(&t, i ? "\n" : "");
		append_markdown_grid(&t, &list->grids[i]);
	}
	const char *const below[] = {list->interval, list->baseline};
	for (size_t i = 0; i < ARRAY_LENGTH(below); i++) {
		if (*below[i]) {
			text_append_string(&t, "\n");
			append_markdown(&t, below[i]);
			text_append_string(&t, "\n");
		}
	}
	for (size_t i = 0; i < list->n_notes; i++) {
		text_format(&t, "\n<sup>%zu</sup> ", i + 1);
		append_markdown(&t, list->notes[i]);
		text_append_string(&t, "\n");
	}
	if (*list->closing) {
		text_append_string(&t, "\n");
		append_markdown(&t, list->closing);
		text_append_string(&t, "\n");
	}
	return put(&t, stream);
}

// --- LaTeX

static void append_latex(struct text *t, const char *string)
{
	static const struct {
		char character;
		const char *written;
	} special[] = {
		{'\\', "\\textbackslash{}"},
		{'{', "\\{"},
		{'}', "\\}"},
		{'$', "\\$"},
		{'&', "\\&"},
		{'#', "\\#"},
		{'_', "\\_"},
		{'%', "\\%"},
		{'~', "\\textasciitilde{}"},
		{'^', "\\textasciicircum{}"},
		{'<', "\\textless{}"},
		{'>', "\\textgreater{}"},
		{'"', "\\char34{}"}, // \textquotedbl needs another font encoding
		{'|', "\\textbar{}"},
	};
	static const char *const ligatures[] = {"--", "``", "''", "?`", "!`", ",,"};
	for (const char *c = string; *c; c++) {
		size_t i = 0;
		while (i < ARRAY_LENGTH(special) && special[i].character != *c) {
			i++;
		}
		if (i < ARRAY_LENGTH(special)) {
			text_append_string(t, special[i].written);
		} else {
			text_append(t, c, 1);
		}
		for (i = 0; i < ARRAY_LENGTH(ligatures); i++) {
			text_append_string(t, strncmp(c, ligatures[i], 2) == 0 ? "{}" : "");
		}
	}
}

// Appends a number with its sign.
static void append_latex_number(struct text *t, const char *number)
{
	bool negative = *number == '-' && number[1];
	text_append_string(t, negative ? "$-$" : "");
	text_append_string(t, number + negative);
}

static void append_latex_cell(struct text *t, const struct grid_cell *cell)
{
	text_append_string(t, " & ");
	if (!cell->number) {
		return;
	}
	if (cell->is_words) {
		append_latex(t, strcmp(cell->number, "-") == 0 ? "--" : cell->number);
	} else {
		append_latex_number(t, cell->number);
	}
	if (cell->half) {
		text_format(t, " $\\pm$ %s", cell->half);
	}
	if (cell->against) {
		text_format(t, " (%s$\\times$%s)", cell->against, cell->beyond_noise ? "*" : "");
	}
	if (cell->failed) {
		text_append_string(t, ", ");
		append_latex(t, cell->failed);
	}
	if (cell->note) {
		text_format(t, "\\textsuperscript{%zu}", cell->note);
	}
}

static bool same_key(const struct pivot_axis *axis, size_t a, size_t b, size_t n_labels)
{
	for (size_t i = 0; i < n_labels; i++) {
		if (run_table_compare(pivot_key(axis, a, i), pivot_key(axis, b, i)) != 0) {
			return false;
		}
	}
	return true;
}

static void append_latex_key(struct text *t, const char *key)
{
	struct text printable = {0};
	text_append_printable(&printable, key ? key : "--", key ? strlen(key) : 2);
	append_latex(t, printable.data ? printable.data : "");
	text_done(&printable);
}

// LaTeX takes a bracket or a star after the end of a row for an argument; {} prevents that.
static void append_latex_head(struct text *t, const char *cell, bool first)
{
	bool argument = *cell == '[' || *cell == '*';
	text_append_string(t, !first ? " & " : argument ? "    {}" : "    ");
	append_latex(t, cell);
}

// A line of headings for each label of the columns. Equal neighbours share a heading.
static void append_latex_level(struct text *t, const struct grid *g, size_t level)
{
	const struct pivot_axis *axis = g->column_axis;
	struct text rules = {0};
	bool last = level + 1 == axis->n_labels;
	for (size_t i = 0; i < g->n_heads; i++) {
		append_latex_head(t, last ? g->head_titles[i] : "", i == 0);
	}
	for (size_t from = 0, to; from < g->n_columns; from = to) {
		for (to = from + 1; to < g->n_columns && same_key(axis, from, to, level + 1);
			to++) {
		}
		text_append_string(t, " & ");
		if (to - from > 1) {
			text_format(t, "\\multicolumn{%zu}{c}{", to - from);
			text_format(&rules, " \\cmidrule(lr){%zu-%zu}", g->n_heads + from + 1,
				g->n_heads + to);
		}
		append_latex_key(t, pivot_key(axis, from, level));
		text_append_string(t, to - from > 1 ? "}" : "");
	}
	text_append_string(t, " \\\\\n");
	if (rules.data && !last) {
		text_format(t, "   %s\n", rules.data);
	}
	text_done(&rules);
}

static void append_latex_titles(struct text *t, const struct grid *g)
{
	if (g->column_axis && g->column_axis->n_labels > 1) {
		for (size_t i = 0; i < g->column_axis->n_labels; i++) {
			append_latex_level(t, g, i);
		}
		return;
	}
	for (size_t i = 0; i < g->n_heads; i++) {
		append_latex_head(t, g->head_titles[i], i == 0);
	}
	for (size_t c = 0; c < g->n_columns; c++) {
		text_append_string(t, " & ");
		append_latex(t, g->titles[c]);
	}
	text_append_string(t, " \\\\\n");
}

// Appends a note, with +- as the LaTeX sign; nothing for "".
static void append_latex_line(struct text *t, const char *line)
{
	text_append_string(t, *line ? "\n  \\par\\footnotesize " : "");
	while (*line) {
		const char *mark = strstr(line, "+-");
		size_t length = mark ? (size_t)(mark - line) : strlen(line);
		_cleanup_free_ char *before = strndup(line, length);
		append_latex(t, before ? before : "");
		text_append_string(t, mark ? "$\\pm$" : "");
		line += length + (mark ? 2 : 0);
	}
}

static void append_latex_below(struct text *t, const struct grid_list *list)
{
	append_latex_line(t, list->interval);
	append_latex_line(t, list->baseline);
	for (size_t i = 0; i < list->n_notes; i++) {
		text_format(t, "\n  \\par\\footnotesize\\textsuperscript{%zu}~", i + 1);
		append_latex(t, list->notes[i]);
	}
	append_latex_line(t, list->closing);
	text_append_string(t, "\n");
}

static void append_latex_grid(struct text *t, const struct grid *g, const struct grid_list *list)
{
	text_append_string(t, "\\begin{table}\n  \\centering\n");
	if (*g->caption) {
		text_append_string(t, "  \\caption{");
		append_latex(t, g->caption);
		text_append_string(t, "}\n");
	}
	text_append_string(t, "  \\begin{tabular}{");
	for (size_t i = 0; i < g->n_heads + g->n_columns; i++) {
		text_append_string(t, i < g->n_heads && !g->head_is_number[i] ? "l" : "r");
	}
	text_append_string(t, "}\n    \\toprule\n");
	append_latex_titles(t, g);
	text_append_string(t, "    \\midrule\n");
	for (size_t r = 0; r < g->n_rows; r++) {
		for (size_t i = 0; i < g->n_heads; i++) {
			append_latex_head(t, g->heads[r * g->n_heads + i], i == 0);
		}
		for (size_t c = 0; c < g->n_columns; c++) {
			append_latex_cell(t, &g->cells[r * g->n_columns + c]);
		}
		text_append_string(t, " \\\\\n");
	}
	text_append_string(t, "    \\bottomrule\n  \\end{tabular}\n");
	append_latex_below(t, list);
	text_append_string(t, "\\end{table}\n");
}

static int pivot_write_latex(const struct grid_list *list, FILE *stream)
{
	_cleanup_text_ struct text t = {0};
	text_append_string(&t, "% needs \\usepackage{booktabs}\n");
	for (size_t i = 0; i < list->n; i++) {
		append_latex_grid(&t, &list->grids[i], list);
	}
	return put(&t, stream);
}

// Data --------------------------------------------------------------------------------------------
//
// Pivots for programs: a record for each cell with runs, numbers in base units.

struct place {
	const struct pivot *p;
	size_t row;
	size_t column;
	size_t value;
	const struct pivot_cell *cell;
};

// Calls `each` for every cell with runs.
static void each_cell(const struct pivot *p, void (*each)(void *context, const struct place *place),
	void *context)
{
	for (size_t row = 0; row < p->rows.n; row++) {
		for (size_t column = 0; column < p->columns.n; column++) {
			for (size_t v = 0; v < p->n_values; v++) {
				const struct pivot_cell *cell = pivot_at(p, row, column, v);
				if (cell->n_runs > 0) {
					each(context, &(struct place){p, row, column, v, cell});
				}
			}
		}
	}
}

static double low_of(const struct repeats *r)
{
	return r->mean - r->half;
}

static double high_of(const struct repeats *r)
{
	return r->mean + r->half;
}

static const char *note_of(const struct place *place)
{
	return place->cell->note ? place->p->notes[place->cell->note - 1] : NULL;
}

static bool is_speed(const struct place *place)
{
	return measure_is_speed(place->p->values[place->value].measure);
}

static double speed_up_of(const struct place *place)
{
	return is_speed(place) ? place->cell->against : NAN;
}

static double ratio_of(const struct place *place)
{
	return is_speed(place) ? NAN : place->cell->against;
}

// --- CSV

static void append_labels(struct text *t, const struct pivot_axis *axis, size_t key, bool names)
{
	for (size_t i = 0; i < axis->n_labels; i++) {
		csv_append_text(t, names ? axis->labels[i] : pivot_key(axis, key, i));
		text_append_string(t, ",");
	}
}

static void append_record(void *context, const struct place *place)
{
	struct text *t = context;
	const struct pivot_value *value = &place->p->values[place->value];
	const struct pivot_cell *cell = place->cell;
	struct text failures = {0};
	pivot_append_failures(&failures, cell);
	append_labels(t, &place->p->rows, place->row, false);
	append_labels(t, &place->p->columns, place->column, false);
	csv_append_text(t, value->name);
	text_append_string(t, ",");
	csv_append_text(t, value->unit);
	text_format(t, ",%zu,%zu,", cell->n_runs, cell->repeats.n);
	const double numbers[] = {cell->repeats.mean, low_of(&cell->repeats),
		high_of(&cell->repeats), cell->repeats.deviation, speed_up_of(place),
		ratio_of(place), cell->probability};
	for (size_t i = 0; i < ARRAY_LENGTH(numbers); i++) {
		csv_append_number(t, numbers[i]);
		text_append_string(t, ",");
	}
	text_append_string(t, isnan(cell->probability) ? "," : cell->beyond_noise ? "1," : "0,");
	text_append_string(t, !place->p->baseline ? "" : cell->is_baseline ? "1" : "0");
	const char *const words[] = {cell->words, failures.data, note_of(place)};
	for (size_t i = 0; i < ARRAY_LENGTH(words); i++) {
		text_append_string(t, ",");
		csv_append_text(t, words[i]);
	}
	text_append_string(t, "\n");
	text_done(&failures);
}

static int pivot_write_csv(const struct pivot *p, FILE *stream)
{
	_cleanup_text_ struct text t = {0};
	append_labels(&t, &p->rows, 0, true);
	append_labels(&t, &p->columns, 0, true);
	text_append_string(&t, "measure,unit,runs,n,mean,low,high,deviation,speed_up,"
			       "ratio,probability,beyond_noise,is_baseline,words,failed,note\n");
	each_cell(p, append_record, &t);
	if (t.failed) {
		return -ENOMEM;
	}
	csv_print(t.data, t.length, stream);
	return fflush(stream) == 0 && !ferror(stream) ? 0 : -(errno ? errno : EIO);
}

// --- JSON

static void put_labels(json_t *labels, const struct pivot_axis *axis, size_t key)
{
	for (size_t i = 0; i < axis->n_labels; i++) {
		struct text name = {0};
		text_append_utf8(&name, axis->labels[i], strlen(axis->labels[i]));
		json_object_set_new(labels, name.data ? name.data : "",
			json_from_text(pivot_key(axis, key, i)));
		text_done(&name);
	}
}

static json_t *outcomes_json(const struct pivot_cell *cell)
{
	json_t *outcomes = json_object();
	for (size_t i = 0; i < N_OUTCOMES; i++) {
		if (cell->outcomes[i]) {
			json_object_set_new(outcomes, outcome_word((enum outcome)i),
				json_integer((json_int_t)cell->outcomes[i]));
		}
	}
	return outcomes;
}

static void add_object(void *context, const struct place *place)
{
	const struct pivot_cell *cell = place->cell;
	const struct repeats *r = &cell->repeats;
	const struct pivot_value *value = &place->p->values[place->value];
	json_t *object = json_object(), *labels = json_object();
	put_labels(labels, &place->p->rows, place->row);
	put_labels(labels, &place->p->columns, place->column);
	json_object_set_new(object, "labels", labels);
	json_object_set_new(object, "measure", json_from_text(value->name));
	json_object_set_new(object, "runs", json_integer((json_int_t)cell->n_runs));
	json_object_set_new(object, "outcomes", outcomes_json(cell));
	if (value->kind == MEASURE_KIND_WORDS) {
		json_object_set_new(object, "words", json_from_text(cell->words));
	} else {
		const struct {
			const char *name;
			double number;
		} numbers[] = {{"mean", r->mean}, {"low", low_of(r)}, {"high", high_of(r)},
			{"deviation", r->deviation}, {"speed_up", speed_up_of(place)},
			{"ratio", ratio_of(place)}, {"probability", cell->probability}};
		json_object_set_new(object, "n", json_integer((json_int_t)r->n));
		for (size_t i = 0; i < ARRAY_LENGTH(numbers); i++) {
			json_object_set_new(
				object, numbers[i].name, json_from_number(numbers[i].number));
		}
		json_object_set_new(object, "beyond_noise",
			isnan(cell->probability) ? json_null() : json_boolean(cell->beyond_noise));
		json_object_set_new(object, "is_baseline", json_boolean(cell->is_baseline));
	}
	json_object_set_new(object, "note", json_from_text(note_of(place)));
	json_array_append_new(context, object);
}

static json_t *names_json(const struct pivot_axis *axis)
{
	json_t *names = json_array();
	for (size_t i = 0; i < axis->n_labels; i++) {
		json_array_append_new(names, json_from_text(axis->labels[i]));
	}
	return names;
}

static json_t *values_json(const struct pivot *p)
{
	static const char *const better[] = {
		[BETTER_NEITHER] = NULL, [BETTER_LESS] = "less", [BETTER_MORE] = "more"};
	json_t *values = json_array();
	for (size_t i = 0; i < p->n_values; i++) {
		const struct pivot_value *value = &p->values[i];
		json_t *object = json_object();
		json_object_set_new(object, "name", json_from_text(value->name));
		json_object_set_new(object, "title", json_from_text(value->title));
		json_object_set_new(object, "unit", json_from_text(value->unit));
		json_object_set_new(object, "better", json_from_text(better[value->better]));
		json_array_append_new(values, object);
	}
	return values;
}

// By the labels of the columns, with all digits.
static json_t *ranking_json(const struct pivot *p)
{
	const struct pivot_ranking *ranking = &p->ranking;
	if (ranking->n == 0) {
		return json_null();
	}
	json_t *json = json_object(), *fastest = json_object(), *others = json_array();
	put_labels(fastest, &p->columns, ranking->fastest);
	json_object_set_new(json, "measure", json_from_text(p->values[ranking->value].name));
	json_object_set_new(json, "fastest", fastest);
	for (size_t i = 0; i < ranking->n; i++) {
		const struct pivot_ratio *ratio = &ranking->others[i];
		json_t *object = json_object(), *than = json_object();
		put_labels(than, &p->columns, ratio->column);
		json_object_set_new(object, "than", than);
		json_object_set_new(object, "times", json_from_number(ratio->times));
		json_object_set_new(
			object, "low", json_from_number(ratio->times / exp(ratio->half)));
		json_object_set_new(
			object, "high", json_from_number(ratio->times * exp(ratio->half)));
		json_array_append_new(others, object);
	}
	json_object_set_new(json, "times_as_fast", others);
	return json;
}

static json_t *warnings_json(const struct pivot *p)
{
	json_t *warnings = json_array();
	for (size_t i = 0; i < p->n_warnings; i++) {
		json_array_append_new(warnings, json_from_text(p->warnings[i]));
	}
	return warnings;
}

static int pivot_write_json(const struct pivot *p, FILE *stream)
{
	json_t *json = json_object(), *cells = json_array();
	each_cell(p, add_object, cells);
	json_object_set_new(json, "rows", names_json(&p->rows));
	json_object_set_new(json, "columns", names_json(&p->columns));
	json_object_set_new(json, "measures", values_json(p));
	json_object_set_new(json, "baseline", json_from_text(p->baseline));
	json_object_set_new(json, "baseline_from", json_from_text(p->baseline_from));
	json_object_set_new(json, "test", json_from_text(p->n_tests ? STATISTICS_TEST : NULL));
	json_object_set_new(json, "tests", json_integer((json_int_t)p->n_tests));
	json_object_set_new(json, "level", json_from_number(STATISTICS_LEVEL));
	json_object_set_new(json, "unranked", json_from_text(p->unranked));
	json_object_set_new(json, "ranking", ranking_json(p));
	json_object_set_new(json, "warnings", warnings_json(p));
	json_object_set_new(json, "cells", cells);
	return json_write(json, stream);
}
