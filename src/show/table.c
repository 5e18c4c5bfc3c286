// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Tables of cells, printed through libsmartcols or converted to JSON.

#include "show/table.h"

#include <errno.h>
#include <libsmartcols.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/parse.h"
#include "base/words.h"
#include "show/json.h"

#define GAP "  " // between columns
#define TEXT_MINIMUM 16 // a column of text is not shortened below this
#define PROSE_MINIMUM 10

struct cell {
	char *text; // owned; NULL: a number
	double number; // NAN: missing
	int64_t integer; // if is_integer; `number` is then approximately the same
	bool is_integer;
	bool is_boolean; // `number` is 0 or 1
	bool is_known; // also if `number` is not finite
};

struct table {
	const struct column *columns;
	size_t n_columns;
	char **titles; // [n_columns], owned; NULL: that of the column; NULL: no other titles
	struct cell *cells; // [n_rows * n_columns]
	size_t n_rows;
	size_t capacity; // cells
	bool failed;
};

int table_new(const struct column *columns, size_t n_columns, struct table **ret)
{
	struct table *t = calloc(1, sizeof(*t));
	if (!t) {
		return -ENOMEM;
	}
	t->columns = columns;
	t->n_columns = n_columns;
	*ret = t;
	return 0;
}

void table_free(struct table *t)
{
	if (!t) {
		return;
	}
	for (size_t i = 0; i < t->n_rows * t->n_columns; i++) {
		free(t->cells[i].text);
	}
	for (size_t i = 0; t->titles && i < t->n_columns; i++) {
		free(t->titles[i]);
	}
	free(t->titles);
	free(t->cells);
	free(t);
}

void table_set_title(struct table *t, size_t column, const char *title)
{
	if (!t->titles) {
		t->titles = calloc(t->n_columns, sizeof(*t->titles));
	}
	char *copy = t->titles ? strdup(title) : NULL;
	if (!copy) {
		t->failed = true;
		return;
	}
	free(t->titles[column]);
	t->titles[column] = copy;
}

int table_row(struct table *t)
{
	void *cells = t->cells;
	size_t used = t->n_rows * t->n_columns;
	int r = array_reserve(&cells, &t->capacity, used + t->n_columns, sizeof(*t->cells));
	t->cells = cells;
	if (r < 0) {
		t->failed = true;
		return r;
	}
	for (size_t i = 0; i < t->n_columns; i++) {
		t->cells[used + i] = (struct cell){.number = NAN};
	}
	t->n_rows++;
	return 0;
}

size_t table_rows(const struct table *t)
{
	return t->n_rows;
}

static struct cell *last_row_cell(struct table *t, size_t column)
{
	return t->failed || t->n_rows == 0 ? NULL
	                                   : &t->cells[(t->n_rows - 1) * t->n_columns + column];
}

void table_text(struct table *t, size_t column, const char *text)
{
	struct cell *cell = last_row_cell(t, column);
	if (cell && text) {
		free(cell->text);
		cell->text = strdup(text);
		t->failed = t->failed || !cell->text;
	}
}

void table_wide(struct table *t, size_t column, double low, double high)
{
	_cleanup_text_ struct text mark = {0};
	words_append_wide(&mark, low, high);
	table_text(t, column, mark.data);
}

void table_number(struct table *t, size_t column, double value)
{
	struct cell *cell = last_row_cell(t, column);
	if (cell) {
		cell->number = value;
	}
}

void table_any_number(struct table *t, size_t column, double value)
{
	struct cell *cell = last_row_cell(t, column);
	if (cell) {
		cell->number = value;
		cell->is_known = true;
	}
}

void table_boolean(struct table *t, size_t column, bool value)
{
	struct cell *cell = last_row_cell(t, column);
	if (cell) {
		cell->number = value;
		cell->is_boolean = true;
	}
}

void table_integer(struct table *t, size_t column, int64_t value)
{
	struct cell *cell = last_row_cell(t, column);
	if (cell) {
		cell->number = (double)value;
		cell->integer = value;
		cell->is_integer = true;
	}
}

// --- for people

struct table_style table_style_for(FILE *stream)
{
	struct table_style style = {0};
	struct winsize size;
	const char *columns = getenv("COLUMNS"), *no_colour = getenv("NO_COLOR");
	int64_t width;
	bool terminal = isatty(fileno(stream));
	if (columns && parse_integer(columns, 20, 1000, &width, NULL) == 0) {
		style.width = (unsigned)width;
	} else if (terminal && ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col >= 20) {
		style.width = size.ws_col;
	}
	style.colour = terminal && !(no_colour && *no_colour);
	return style;
}

static void append_integer(struct text *t, int64_t value)
{
	char buffer[32];
	uint64_t size = value < 0 ? -(uint64_t)value : (uint64_t)value;
	text_append_string(t, value < 0 ? "-" : "");
	text_append_string(t, text_count(buffer, sizeof(buffer), size));
}

static void append_plain_number(struct text *t, double value, bool whole)
{
	char buffer[32];
	if ((whole || fabs(value) >= 999.5) && fabs(value) < 1e15) {
		text_append_string(t, value < 0 ? "-" : "");
		text_append_string(
			t, text_count(buffer, sizeof(buffer), (uint64_t)llround(fabs(value))));
	} else {
		text_format(t, "%.3g", value);
	}
}

static void append_quantity(struct text *t, enum column_kind kind, double value)
{
	char buffer[48];
	switch (kind) {
	case COLUMN_BYTES:
	case COLUMN_BYTES_PER_SECOND:
		text_append_string(t, text_bytes(buffer, sizeof(buffer), value));
		text_append_string(t, kind == COLUMN_BYTES ? "" : "/s");
		break;
	case COLUMN_BINARY_BYTES:
		text_append_string(
			t, text_bytes_beside(buffer, sizeof(buffer), value, TEXT_BINARY));
		break;
	case COLUMN_SECONDS:
		text_append_string(t, text_seconds(buffer, sizeof(buffer), value));
		break;
	case COLUMN_RATIO:
		text_append_string(t, text_percent(buffer, sizeof(buffer), value));
		break;
	default:
		append_plain_number(t, value, kind == COLUMN_WHOLE);
	}
}

static bool is_text(enum column_kind kind)
{
	return kind == COLUMN_TEXT || kind == COLUMN_LABEL || kind == COLUMN_PROSE;
}

// The least width of a column.
static size_t least_width(enum column_kind kind)
{
	return kind == COLUMN_TEXT ? TEXT_MINIMUM : kind == COLUMN_PROSE ? PROSE_MINIMUM : SIZE_MAX;
}

// The text of a cell for people, owned by the caller.
static char *cell_shown(const struct table *t, size_t row, size_t column)
{
	const struct cell *cell = &t->cells[row * t->n_columns + column];
	struct text shown = {0};
	if (cell->text) {
		text_append_printable(&shown, cell->text, strlen(cell->text));
	} else if (cell->is_integer) {
		append_integer(&shown, cell->integer);
	} else if (isfinite(cell->number)) {
		append_quantity(&shown, t->columns[column].kind, cell->number);
	} else if (cell->is_known) {
		text_format(&shown, "%g", cell->number);
	} else if (!is_text(t->columns[column].kind)) {
		text_append(&shown, "-", 1);
	}
	return text_steal(&shown);
}

struct layout {
	char **shown; // [n_rows * n_columns]
	size_t *widths; // [n_columns]; 0: not shown
	char **titles; // [n_columns], printable; NULL: not shown
};

static void layout_done(struct layout *l, const struct table *t)
{
	for (size_t i = 0; l->shown && i < t->n_rows * t->n_columns; i++) {
		free(l->shown[i]);
	}
	for (size_t c = 0; l->titles && c < t->n_columns; c++) {
		free(l->titles[c]);
	}
	free(l->shown);
	free(l->widths);
	free(l->titles);
}

// A column in which all values are missing is not shown to people.
static bool column_is_empty(const struct table *t, size_t column)
{
	for (size_t r = 0; r < t->n_rows; r++) {
		const struct cell *cell = &t->cells[r * t->n_columns + column];
		if (cell->text || cell->is_known || isfinite(cell->number)) {
			return false;
		}
	}
	return true;
}

static int layout_measure(struct layout *l, const struct table *t, bool all)
{
	l->shown = calloc(t->n_rows * t->n_columns + 1, sizeof(*l->shown));
	l->widths = calloc(t->n_columns + 1, sizeof(*l->widths));
	l->titles = calloc(t->n_columns + 1, sizeof(*l->titles));
	if (!l->shown || !l->widths || !l->titles) {
		return -ENOMEM;
	}
	for (size_t c = 0; c < t->n_columns; c++) {
		const char *other = t->titles ? t->titles[c] : NULL;
		const char *title = other ? other : t->columns[c].title;
		if (!title || (!all && column_is_empty(t, c))) {
			continue;
		}
		struct text printable = {0};
		text_append_printable(&printable, title, strlen(title));
		l->titles[c] = text_steal(&printable);
		if (!l->titles[c]) {
			return -ENOMEM;
		}
		l->widths[c] = words_columns(l->titles[c]);
		for (size_t r = 0; r < t->n_rows; r++) {
			char *shown = cell_shown(t, r, c);
			if (!shown) {
				return -ENOMEM;
			}
			l->shown[r * t->n_columns + c] = shown;
			size_t width = words_columns(shown);
			l->widths[c] = width > l->widths[c] ? width : l->widths[c];
		}
	}
	return 0;
}

// The least width of the table, with text shortened. Prose is wrapped only if no other column can
// be dropped.
static size_t layout_least(const struct layout *l, const struct table *t)
{
	size_t least = 0;
	for (size_t c = 0; c < t->n_columns; c++) {
		size_t width = l->widths[c];
		bool shortens = t->columns[c].kind == COLUMN_TEXT && width > TEXT_MINIMUM;
		least += width ? (shortens ? TEXT_MINIMUM : width) + strlen(GAP) : 0;
	}
	return least > strlen(GAP) ? least - strlen(GAP) : 0;
}

// Drops columns, the least important first, until the rest fits.
static void layout_fit(struct layout *l, const struct table *t, unsigned width)
{
	while (width && layout_least(l, t) > width) {
		size_t victim = t->n_columns;
		for (size_t c = 0; c < t->n_columns; c++) {
			if (l->widths[c] && t->columns[c].drop &&
				(victim == t->n_columns ||
					t->columns[c].drop > t->columns[victim].drop)) {
				victim = c;
			}
		}
		if (victim == t->n_columns) {
			return;
		}
		l->widths[victim] = 0;
	}
}

static size_t layout_width(const struct layout *l, const struct table *t)
{
	size_t width = 0;
	for (size_t c = 0; c < t->n_columns; c++) {
		width += l->widths[c] ? l->widths[c] + strlen(GAP) : 0;
	}
	return width > strlen(GAP) ? width - strlen(GAP) : 0;
}

static int layout_elide(struct layout *l, const struct table *t, size_t column)
{
	for (size_t r = 0; r < t->n_rows; r++) {
		char **shown = &l->shown[r * t->n_columns + column];
		struct text elided = {0};
		words_append_elided(&elided, *shown, l->widths[column]);
		char *shorter = text_steal(&elided);
		if (!shorter) {
			return -ENOMEM;
		}
		free(*shown);
		*shown = shorter;
	}
	return 0;
}

// Shortens text, the widest column first, until the table fits or all are at the minimum.
static int layout_shrink(struct layout *l, const struct table *t, size_t width)
{
	int r = 0;
	while (r == 0 && width && layout_width(l, t) > width) {
		size_t widest = t->n_columns;
		for (size_t c = 0; c < t->n_columns; c++) {
			if (l->widths[c] > least_width(t->columns[c].kind) &&
				(widest == t->n_columns || l->widths[c] > l->widths[widest])) {
				widest = c;
			}
		}
		if (widest == t->n_columns) {
			return 0;
		}
		size_t excess = layout_width(l, t) - width, now = l->widths[widest];
		size_t least = least_width(t->columns[widest].kind);
		l->widths[widest] = now - least > excess ? now - excess : least;
		r = t->columns[widest].kind == COLUMN_TEXT ? layout_elide(l, t, widest) : 0;
	}
	return r;
}

static int add_columns(struct libscols_table *out, const struct layout *l, const struct table *t,
	const struct table_style *style)
{
	for (size_t c = 0; c < t->n_columns; c++) {
		if (!l->widths[c]) {
			continue;
		}
		enum column_kind kind = t->columns[c].kind;
		int flags = is_text(kind) ? 0 : SCOLS_FL_RIGHT;
		struct libscols_column *column = scols_table_new_column(
			out, l->titles[c], (double)l->widths[c], flags);
		if (!column) {
			return -ENOMEM;
		}
		if (style->colour) {
			scols_cell_set_color(scols_column_get_header(column), "bold");
		}
	}
	return 0;
}

// Bytes of the first line of a wrapped text: up to a blank, if there is one.
static size_t line_length(const char *text, size_t width)
{
	size_t blank = 0, columns = 0, i = 0, word = words_unbroken(text);
	for (; text[i]; i++) {
		bool begins_character = ((unsigned char)text[i] & 0xc0) != 0x80;
		bool may_end = i == word;
		if (begins_character && columns++ == width) {
			return may_end || blank == 0 ? i : blank;
		}
		blank = may_end ? i : blank;
		word = may_end ? i + 1 + words_unbroken(text + i + 1) : word;
	}
	return i;
}

// Returns the next line of *text, owned by the caller, "" at the end; advances *text.
static char *next_line(const char **text, size_t width)
{
	size_t length = line_length(*text, width);
	char *line = strndup(*text, length);
	*text += length;
	*text += strspn(*text, " ");
	return line;
}

// Prints one line of a row: at[column] is the rest of a cell's text, and is advanced. *ret_more:
// the row needs another line.
static int add_line(struct libscols_table *out, const struct layout *l, const struct table *t,
	const char **at, bool *ret_more)
{
	struct libscols_line *line = scols_table_new_line(out, NULL);
	size_t shown = 0;
	*ret_more = false;
	for (size_t c = 0; line && c < t->n_columns; c++) {
		if (!l->widths[c]) {
			continue;
		}
		bool wraps = t->columns[c].kind == COLUMN_PROSE;
		_cleanup_free_ char *text = next_line(&at[c], wraps ? l->widths[c] : SIZE_MAX);
		if (!text || scols_line_set_data(line, shown++, text) != 0) {
			return -ENOMEM;
		}
		*ret_more = *ret_more || *at[c];
	}
	return line ? 0 : -ENOMEM;
}

static int add_rows(struct libscols_table *out, const struct layout *l, const struct table *t)
{
	_cleanup_free_ const char **at = calloc(t->n_columns + 1, sizeof(*at));
	int result = at ? 0 : -ENOMEM;
	for (size_t r = 0; r < t->n_rows && result == 0; r++) {
		for (size_t c = 0; c < t->n_columns; c++) {
			at[c] = l->shown[r * t->n_columns + c];
		}
		for (bool more = true; more && result == 0;) {
			result = add_line(out, l, t, at, &more);
		}
	}
	return result;
}

static void print_indented(const char *text, FILE *stream, const struct table_style *style)
{
	const char *lead = style->lead ? style->lead : "";
	while (*text) {
		size_t length = strcspn(text, "\n"), kept = length;
		while (kept > 0 && text[kept - 1] == ' ') {
			kept--; // blanks that pad the last column
		}
		int padding = (int)style->indent - (int)strlen(lead);
		fprintf(stream, style->colour && *lead ? "\033[1m%s\033[0m" : "%s", lead);
		fprintf(stream, "%*s%.*s\n", kept && padding > 0 ? padding : 0, "", (int)kept,
			text);
		text += length + (text[length] == '\n');
		lead = "";
	}
}

static int print_layout(const struct table *t, const struct layout *l, FILE *stream,
	const struct table_style *style)
{
	struct libscols_table *out = scols_new_table();
	if (!out) {
		return -ENOMEM;
	}
	scols_table_set_column_separator(out, GAP);
	scols_table_enable_noheadings(out, style->no_titles);
	scols_table_enable_colors(out, style->colour);
	scols_table_enable_noencoding(out, true); // the cells are printable
	scols_table_set_termforce(out, SCOLS_TERMFORCE_ALWAYS);
	scols_table_set_termwidth(out, 100000); // the layout has already set the widths
	_cleanup_free_ char *text = NULL;
	int r = add_columns(out, l, t, style);
	r = r < 0 ? r : add_rows(out, l, t);
	r = r < 0 ? r : scols_print_table_to_string(out, &text);
	scols_unref_table(out);
	if (r == 0 && text) {
		print_indented(text, stream, style);
	}
	return r;
}

// Reports every dropped column.
static void print_dropped(const struct table *t, const struct layout *l, FILE *stream,
	const struct table_style *style)
{
	_cleanup_text_ struct text said = {0};
	for (size_t c = 0; c < t->n_columns; c++) {
		if (l->shown[c] && !l->widths[c]) {
			text_append_string(&said, said.length ? ", " : "");
			text_append_string(&said, l->titles[c]);
		}
	}
	if (!said.data || style->no_titles) {
		return;
	}
	_cleanup_text_ struct text line = {0};
	text_format(&line, "not shown in %u columns: %s", style->width, said.data);
	for (const char *at = line.data ? line.data : ""; *at;) {
		_cleanup_free_ char *piece = next_line(&at, style->width - style->indent);
		fprintf(stream, "%*s%s\n", (int)style->indent, "", piece ? piece : "");
	}
}

int table_print(const struct table *t, FILE *stream, const struct table_style *style)
{
	if (t->failed || t->n_rows == 0) {
		return t->failed ? -ENOMEM : 0;
	}
	struct layout layout = {0};
	int r = layout_measure(&layout, t, style->all_columns);
	if (r == 0) {
		unsigned width = style->width ? style->width - style->indent : 0;
		layout_fit(&layout, t, width);
		r = layout_shrink(&layout, t, width);
	}
	if (r == 0) {
		r = print_layout(t, &layout, stream, style);
		print_dropped(t, &layout, stream, style);
	}
	layout_done(&layout, t);
	return r;
}

// --- for programs

static json_t *cell_json(const struct cell *cell)
{
	return cell->text         ? json_from_text(cell->text)
	       : cell->is_boolean ? json_boolean(cell->number > 0)
	       : cell->is_integer ? json_integer(cell->integer)
	                          : json_from_number(cell->number);
}

json_t *table_to_json(const struct table *t)
{
	json_t *rows = json_array();
	for (size_t r = 0; rows && r < t->n_rows; r++) {
		json_t *row = json_object();
		for (size_t c = 0; c < t->n_columns; c++) {
			const char *name = t->columns[c].name;
			if (name) {
				json_object_set_new(
					row, name, cell_json(&t->cells[r * t->n_columns + c]));
			}
		}
		json_array_append_new(rows, row);
	}
	if (t->failed) {
		json_decref(rows);
		rows = NULL;
	}
	return rows;
}
