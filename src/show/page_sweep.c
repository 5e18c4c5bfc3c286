// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Runs in columns, so that thousands of them take a few megabytes, and details of single runs.

#include "show/page_sweep.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/secret.h"
#include "base/text.h"
#include "run/analysis.h"
#include "show/buckets.h"
#include "show/page.h"
#include "show/page_run.h"
#include "show/panels.h"
#include "study/catalogue.h"
#include "study/kept_advice.h"
#include "sweep/plan_of_runs.h"
#include "verdict/verdict.h"

// The strings of a page, each once.
struct page_strings {
	json_t *list;
	json_t *places; // index of each string
};

// Shared by all runs of a page.
struct page_sweep_room {
	struct page_strings *strings;
	json_t *line_kinds; // kinds of lines found so far
	size_t epochs; // upper bound per run
	size_t output_bytes; // per successful run
	size_t failed_output_bytes; // per other run
	size_t points; // per line
};

// Sweep run ---------------------------------------------------------------------------------------
//
// A run in a few kilobytes: strings that many runs share are indexes into a list, lines are coarse,
// and of long texts only the end is stored.

#define MOST_STRING 2000 // bytes per string
#define MOST_LINES 3 // per panel
#define MOST_EVIDENCE 24

// Strings -----------------------------------------------------------------------------------------

static int page_strings_init(struct page_strings *strings)
{
	*strings = (struct page_strings){.list = json_array(), .places = json_object()};
	return strings->list && strings->places ? 0 : -1;
}

static void page_strings_done(struct page_strings *strings)
{
	json_decref(strings->list);
	json_decref(strings->places);
	*strings = (struct page_strings){0};
}

// Cuts between characters, and replaces invalid UTF-8.
static json_t *string_of(const char *string)
{
	size_t length = strnlen(string, MOST_STRING + 1);
	if (length <= MOST_STRING) {
		return page_run_string(string);
	}
	length = MOST_STRING;
	while (length > MOST_STRING - 4 && ((unsigned char)string[length] & 0xc0) == 0x80) {
		length--;
	}
	return page_run_format("%.*s…", (int)length, string);
}

// Returns the index of the string in the list; -1 for NULL. Very long strings are cut.
static json_t *page_strings_add(struct page_strings *strings, const char *string)
{
	json_t *made = string ? string_of(string) : NULL;
	const char *key = json_string_value(made);
	if (!key) {
		json_decref(made);
		return json_integer(-1);
	}
	json_t *place = json_object_get(strings->places, key);
	if (!place) {
		place = json_integer((json_int_t)json_array_size(strings->list));
		json_object_set_new(strings->places, key, place);
		json_array_append(strings->list, made);
	}
	json_decref(made);
	return json_incref(place);
}

static void append(json_t *list, struct page_strings *strings, const char *string)
{
	json_array_append_new(list, page_strings_add(strings, string));
}

static const char *unless_empty(const char *string)
{
	return string && *string ? string : NULL;
}

// Parts of a run ----------------------------------------------------------------------------------

static void set_verdict(json_t *json, const struct verdict *v, struct page_strings *strings)
{
	json_t *evidence = json_array();
	for (size_t i = 0; i < v->n_evidence && i < MOST_EVIDENCE; i++) {
		append(evidence, strings, v->evidence[i].what);
		append(evidence, strings, v->evidence[i].value);
	}
	json_object_set_new(json, "headline", page_strings_add(strings, unless_empty(v->headline)));
	json_object_set_new(json, "shares", page_strings_add(strings, unless_empty(v->shares)));
	json_object_set_new(json, "next", page_strings_add(strings, unless_empty(v->next)));
	json_object_set_new(json, "evidence", evidence);
}

static json_t *limits_json(struct reader *r, struct page_strings *strings)
{
	static const char *const keys[] = {
		"limit_cpus", "limit_memory", "limit_disk_read", "limit_gpus"};
	static const char *const names[] = {"cpus", "memory", "disk_read", "gpus"};
	json_t *json = json_array();
	for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
		const char *how = reader_run(r, keys[i]);
		if (how) {
			append(json, strings, names[i]);
			append(json, strings, how);
		}
	}
	return json;
}

// Times with as many digits as people need: a page has very many.
static json_t *short_number(double value)
{
	if (!isfinite(value) || value == 0) {
		return page_run_number(value);
	}
	double unit = pow(10, floor(log10(fabs(value))) - 5);
	return page_run_number(round(value / unit) * unit);
}

static void set_epochs(json_t *json, const struct epoch_list *epochs, size_t most)
{
	json_t *list = json_array();
	size_t n = epochs->n < most ? epochs->n : most;
	for (size_t i = 0; i < n; i++) {
		const struct epoch *epoch = &epochs->items[i];
		json_array_append_new(list, json_integer((json_int_t)epoch->number));
		json_array_append_new(list, short_number(epoch_seconds(epochs, i)));
	}
	json_object_set_new(json, "epochs", list);
	json_object_set_new(json, "first_epoch_with_start", json_boolean(epochs->first_with_start));
	json_object_set_new(json, "epochs_left_out", json_integer((json_int_t)(epochs->n - n)));
}

// Sets the end of the job's output, from the start of a line if there is one.
static void set_output(json_t *json, const struct event_list *events, size_t most)
{
	const char *output = NULL;
	for (size_t i = 0; i < events->n; i++) {
		if (strcmp(events->items[i].kind, "output") == 0) {
			output = events->items[i].text;
		}
	}
	size_t length = output ? strlen(output) : 0, left = length > most ? length - most : 0;
	if (left > 0) {
		const char *line = memchr(output + left, '\n', most / 2);
		left = line ? (size_t)(line + 1 - output) : left;
		while ((((unsigned char)output[left]) & 0xc0) == 0x80) {
			left++;
		}
	}
	_cleanup_text_ struct text text = {0};
	text_append_utf8(&text, output ? output + left : "", length - left);
	json_object_set_new(
		json, "output", length > 0 && text.data ? json_string(text.data) : json_null());
	json_object_set_new(json, "output_left_out", json_integer((json_int_t)left));
}

// Lines -------------------------------------------------------------------------------------------

// The lines of most interest; those of disks only if the job's own reads and writes are not known.
static const struct {
	const char *panel;
	const char *label;
} wanted_lines[] = {
	{"Memory", "job"},
	{"Memory", "sum of resident"},
	{"Memory", "GPU"},
	{"CPU", "job"},
	{"GPU", "a kernel ran"},
	{"Job's files", "asked for"},
	{"Job's files", "from storage"},
	{"Disk", "read"},
	{"Disk", "written"},
};

static bool has_panel(const struct panel_list *panels, const char *title)
{
	for (size_t i = 0; i < panels->n; i++) {
		if (strcmp(panels->items[i].spec->title, title) == 0) {
			return true;
		}
	}
	return false;
}

static bool line_wanted(
	const struct panel_list *panels, const struct panel *panel, const struct line *line)
{
	const char *title = panel->spec->title;
	if (strcmp(title, "Disk") == 0 && has_panel(panels, "Job's files")) {
		return false;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(wanted_lines); i++) {
		if (strcmp(wanted_lines[i].panel, title) == 0 &&
			strcmp(wanted_lines[i].label, line->spec->label) == 0) {
			return true;
		}
	}
	return false;
}

static json_t *line_kind(const struct panel *panel, const struct line *line)
{
	json_t *kind = json_object();
	json_object_set_new(kind, "panel", page_run_string(panel->spec->title));
	json_object_set_new(kind, "label", string_of(line->label ? line->label : ""));
	json_object_set_new(kind, "unit", json_string(panel->spec->unit));
	json_object_set_new(kind, "hue", json_integer((json_int_t)line->hue));
	return kind;
}

static size_t kind_place(json_t *kinds, json_t *kind)
{
	size_t i = 0;
	while (i < json_array_size(kinds) && !json_equal(json_array_get(kinds, i), kind)) {
		i++;
	}
	if (i == json_array_size(kinds)) {
		json_array_append(kinds, kind);
	}
	return i;
}

static void add_line(json_t *lines, const struct panel *panel, const struct line *line,
	double seconds, struct page_sweep_room *room)
{
	_cleanup_text_ struct text data = {0};
	double most = 0;
	if (!buckets_append_coarse(&data, &line->buckets, seconds, room->points, &most) ||
		data.failed) {
		return;
	}
	json_t *kind = line_kind(panel, line);
	json_array_append_new(lines, json_integer((json_int_t)kind_place(room->line_kinds, kind)));
	json_array_append_new(lines, short_number(most));
	json_array_append_new(lines, json_string(data.data));
	json_decref(kind);
}

static json_t *lines_json(const struct analysis *a, struct page_sweep_room *room)
{
	json_t *json = json_array();
	struct panel_list panels;
	struct error damage = {0}; // damage is reported next to it
	if (panels_collect(a, &panels, &damage) < 0) {
		return json;
	}
	for (size_t i = 0; i < panels.n; i++) {
		const struct panel *panel = &panels.items[i];
		size_t left = MOST_LINES;
		for (size_t j = 0; j < panel->n && left > 0; j++) {
			if (line_wanted(&panels, panel, &panel->lines[j])) {
				add_line(json, panel, &panel->lines[j], a->overview.end_s, room);
				left--;
			}
		}
	}
	panels_done(&panels);
	return json;
}

// A run -------------------------------------------------------------------------------------------

static void set_nothing(json_t *json)
{
	static const char *const places[] = {"headline", "shares", "next"};
	static const char *const lists[] = {"evidence", "limits", "epochs", "lines"};
	for (size_t i = 0; i < ARRAY_LENGTH(places); i++) {
		json_object_set_new(json, places[i], json_integer(-1));
	}
	for (size_t i = 0; i < ARRAY_LENGTH(lists); i++) {
		json_object_set_new(json, lists[i], json_array());
	}
	json_object_set_new(json, "first_epoch_with_start", json_false());
	json_object_set_new(json, "epochs_left_out", json_integer(0));
	json_object_set_new(json, "output", json_null());
	json_object_set_new(json, "output_left_out", json_integer(0));
}

static void set_analysis(json_t *json, const struct analysis *a, const struct digest *run,
	struct page_sweep_room *room)
{
	bool good = outcome_is_success(run->outcome);
	set_verdict(json, a->verdict, room->strings);
	json_object_set_new(json, "limits", limits_json(a->tables.reader, room->strings));
	set_epochs(json, &a->tables.epochs, room->epochs);
	set_output(json, &a->tables.events, good ? room->output_bytes : room->failed_output_bytes);
	json_object_set_new(json, "lines", lines_json(a, room));
}

// NULL: out of memory. Unreadable parts of the run are left out.
static json_t *page_sweep_run(
	const struct digest *run, const char *report, struct page_sweep_room *room)
{
	json_t *json = json_object();
	if (!json) {
		return NULL;
	}
	set_nothing(json);
	json_object_set_new(json, "report", page_run_string(report));
	struct reader *reader = NULL;
	struct analysis analysis;
	struct error gone = {0}; // its row shows what the catalogue knew
	if (reader_open(run->path, &reader, &gone) == 0) {
		// nothing writes to it any more
		bool finished = reader_state(reader) == RUN_FINISHED;
		if (finished) {
			reader_hold(reader);
		}
		struct verdict verdict;
		if (analysis_load_brief(reader, &analysis, &gone) == 0 &&
			verdict_judge(&analysis, &verdict, &gone) == 0) {
			set_analysis(json, &analysis, run, room);
			verdict_done(&verdict);
			analysis_done(&analysis);
		}
		if (finished) {
			reader_release(reader);
		}
		reader_free(reader);
	}
	return json;
}

// Sweep -------------------------------------------------------------------------------------------

#ifdef STRAIN_PAGES
#include "sweep_template.h"
#else
static const unsigned char sweep_before[1], sweep_after[1];
#endif

#define MOST_LABELS 500 // columns
#define MOST_PLAN ((size_t)64 << 10)

// A page of 2,000 runs stays below 5 MB: all runs share these, with bounds per run.
#define LINE_BYTES ((size_t)1800000)
#define OUTPUT_BYTES ((size_t)900000)
#define EPOCH_NUMBERS ((size_t)40000)
#define LINES_OF_A_RUN 6 // as many as most runs have

struct row {
	const struct digest *run;
	char *name; // unique
};

struct builder {
	const struct catalogue *catalogue;
	struct row *rows; // [catalogue->n], in order
	struct page_strings strings;
	json_t *json;
	size_t labels_left_out;
};

// Runs in order -----------------------------------------------------------------------------------

static int compare_rows(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	return strverscmp(x->run->path, y->run->path);
}

static bool name_taken(json_t *taken, const char *name)
{
	return json_object_get(taken, name) != NULL;
}

// The name of the file, with as many of its directories as needed to make it unique.
static char *unique_name(json_t *taken, const struct digest *run)
{
	_cleanup_text_ struct text name = {0};
	text_append_utf8(&name, run->name, strlen(run->name));
	if (!name.failed && name_taken(taken, name.data ? name.data : "")) {
		text_clear(&name);
		text_append_utf8(&name, run->path, strlen(run->path));
	}
	size_t length = name.length;
	for (unsigned i = 2; !name.failed && name_taken(taken, name.data); i++) {
		name.length = length;
		text_format(&name, " (%u)", i);
	}
	if (!name.failed) {
		json_object_set_new(taken, name.data ? name.data : "", json_true());
	}
	return text_steal(&name);
}

static int order_runs(struct builder *b)
{
	size_t n = b->catalogue->n;
	b->rows = calloc(n + 1, sizeof(*b->rows));
	json_t *taken = json_object();
	bool whole = b->rows && taken;
	for (size_t i = 0; whole && i < n; i++) {
		b->rows[i].run = &b->catalogue->runs[i];
	}
	if (whole) {
		qsort(b->rows, n, sizeof(*b->rows), compare_rows);
	}
	for (size_t i = 0; whole && i < n; i++) {
		b->rows[i].name = unique_name(taken, b->rows[i].run);
		whole = b->rows[i].name != NULL;
	}
	json_decref(taken);
	return whole ? 0 : -ENOMEM;
}

// Columns -----------------------------------------------------------------------------------------

// More digits would only enlarge the page. With fewer, the significance computed from repeats would
// differ from that of strain compare.
static json_t *twelve_digits(double value)
{
	if (!isfinite(value) || value == 0) {
		return page_run_number(value);
	}
	char text[32];
	snprintf(text, sizeof(text), "%.12g", value);
	double shorter = strtod(text, NULL);
	bool whole = fabs(shorter) < 1e15 && shorter == floor(shorter);
	return whole ? json_integer((json_int_t)shorter) : json_real(shorter);
}

static const char *notice_of(const struct digest *run)
{
	if (run->state == RUN_LIVE) {
		return "This run was still being recorded when the page was made.";
	}
	return run->damaged                    ? "This file is damaged; this is the readable part."
	       : run->partial && *run->partial ? run->partial
	                                       : NULL;
}

struct run_columns {
	json_t *names, *paths, *outcomes, *outcome_texts, *started, *durations, *commands, *hosts,
		*verdicts, *notices;
};

static void add_run_row(struct builder *b, struct run_columns *c, size_t i)
{
	const struct digest *run = b->rows[i].run;
	struct page_strings *s = &b->strings;
	double start = (double)run->start_utc_ns * 1e-9;
	json_array_append_new(c->names, page_run_string(b->rows[i].name));
	json_array_append_new(c->paths, page_run_string(run->path));
	json_array_append_new(c->outcomes, json_string(outcome_word(run->outcome)));
	json_array_append_new(
		c->outcome_texts, page_strings_add(s, unless_empty(run->outcome_text)));
	json_array_append_new(c->started,
		run->start_utc_ns > 0 ? json_integer((json_int_t)llrint(start)) : json_null());
	json_array_append_new(c->durations, twelve_digits(run->measures[MEASURE_DURATION]));
	json_array_append_new(c->commands, page_strings_add(s, unless_empty(run->command)));
	json_array_append_new(c->hosts, page_strings_add(s, unless_empty(run->host)));
	json_array_append_new(c->verdicts, page_strings_add(s, unless_empty(run->verdict)));
	json_array_append_new(c->notices, page_strings_add(s, notice_of(run)));
}

static json_t *runs_json(struct builder *b)
{
	struct run_columns columns;
	const struct {
		const char *name;
		json_t **column;
	} table[] = {
		{"names", &columns.names},
		{"paths", &columns.paths},
		{"outcomes", &columns.outcomes},
		{"outcome_texts", &columns.outcome_texts},
		{"started", &columns.started},
		{"durations", &columns.durations},
		{"commands", &columns.commands},
		{"hosts", &columns.hosts},
		{"verdicts", &columns.verdicts},
		{"notices", &columns.notices},
	};
	json_t *json = json_object();
	for (size_t i = 0; i < ARRAY_LENGTH(table); i++) {
		*table[i].column = json_array();
		json_object_set_new(json, table[i].name, *table[i].column);
	}
	for (size_t i = 0; i < b->catalogue->n; i++) {
		add_run_row(b, &columns, i);
	}
	return json;
}

// The values of one label, -1 if a run has none; NULL if there are too many labels.
static json_t *label_column(struct builder *b, json_t *labels, json_t *places, const char *name)
{
	json_t *known = page_strings_add(&b->strings, name);
	char key[24];
	snprintf(key, sizeof(key), "%lld", (long long)json_integer_value(known));
	json_t *values = json_object_get(places, key);
	if (!values && json_array_size(labels) < MOST_LABELS) {
		json_t *label = json_object();
		values = json_array();
		for (size_t i = 0; i < b->catalogue->n; i++) {
			json_array_append_new(values, json_integer(-1));
		}
		json_object_set(label, "name",
			json_array_get(b->strings.list, (size_t)json_integer_value(known)));
		json_object_set_new(label, "values", values);
		json_array_append_new(labels, label);
		json_object_set(places, key, values);
	}
	json_decref(known);
	return values;
}

static bool label_used(const struct builder *b, const char *name)
{
	for (size_t i = 0; i < b->catalogue->n; i++) {
		const struct digest *run = b->rows[i].run;
		for (size_t j = 0; j < run->n_labels; j++) {
			if (strcmp(run->labels[j].name, name) == 0) {
				return true;
			}
		}
	}
	return false;
}

static json_t *labels_json(struct builder *b, const struct plan *plan)
{
	json_t *labels = json_array(), *places = json_object();
	for (size_t i = 0; i < plan->n_factors; i++) { // in the plan's order
		if (label_used(b, plan->factors[i].name)) {
			label_column(b, labels, places, plan->factors[i].name);
		}
	}
	for (size_t i = 0; i < b->catalogue->n; i++) {
		const struct digest *run = b->rows[i].run;
		for (size_t j = 0; j < run->n_labels; j++) {
			json_t *values = label_column(b, labels, places, run->labels[j].name);
			json_t *value = page_strings_add(&b->strings, run->labels[j].value);
			b->labels_left_out += values == NULL;
			json_array_set_new(values, i, value);
		}
	}
	json_decref(places);
	return labels;
}

// If all items are equal, reduces the list to one.
static json_t *shortened(json_t *list)
{
	size_t i = 1, n = json_array_size(list);
	while (i < n && json_equal(json_array_get(list, i), json_array_get(list, 0))) {
		i++;
	}
	if (i < n || n < 2) {
		return list;
	}
	json_t *one = json_array();
	json_array_append(one, json_array_get(list, 0));
	json_decref(list);
	return one;
}

// UCUM, or the currency of the price list.
static const char *unit_of(const struct builder *b, const struct measure *measure)
{
	const char *currency = b->catalogue->n > 0 ? b->catalogue->runs[0].currency : NULL;
	return measure->kind == MEASURE_KIND_MONEY && currency ? currency : measure->unit;
}

static json_t *measure_json(struct builder *b, size_t id)
{
	static const int ways[] = {[BETTER_NEITHER] = 0, [BETTER_LESS] = -1, [BETTER_MORE] = 1};
	const struct measure *measure = &measures[id];
	json_t *json = json_object(), *values = json_array(), *reasons = json_array();
	json_object_set_new(json, "name", json_string(measure->name));
	json_object_set_new(json, "unit", json_string(unit_of(b, measure)));
	json_object_set_new(json, "help", json_string(measure->help));
	json_object_set_new(json, "better", json_integer(ways[measure->better]));
	json_object_set_new(json, "speed", json_boolean(measure_is_speed(id)));
	for (size_t i = 0; i < b->catalogue->n; i++) {
		const struct digest *run = b->rows[i].run;
		json_array_append_new(values, twelve_digits(run->measures[id]));
		json_array_append_new(reasons, page_strings_add(&b->strings, run->reasons[id]));
	}
	json_object_set_new(json, "values", values);
	json_object_set_new(json, "reasons", shortened(reasons));
	return json;
}

// Whether the measure is of no use for these runs: only folders of `strain advise` have answers,
// and costs need a price list.
static bool is_left_out(const struct builder *b, enum measure_id id)
{
	bool any = !measure_is_of_advice(id) && !measure_is_priced(id);
	for (size_t i = 0; i < b->catalogue->n && !any; i++) {
		any = isfinite(b->rows[i].run->measures[id]);
	}
	return !any;
}

static json_t *measures_json(struct builder *b)
{
	json_t *json = json_array();
	for (size_t id = 0; id < N_MEASURES; id++) {
		if (measures[id].kind != MEASURE_KIND_WORDS &&
			!is_left_out(b, (enum measure_id)id)) {
			json_array_append_new(json, measure_json(b, id));
		}
	}
	return json;
}

// Runs one by one ---------------------------------------------------------------------------------

static size_t share_of(size_t all, size_t n, size_t least, size_t most)
{
	size_t share = all / (n > 0 ? n : 1);
	return share < least ? least : share > most ? most : share;
}

static struct page_sweep_room room_for(struct builder *b, json_t *line_kinds)
{
	size_t n = b->catalogue->n, failed = 0;
	for (size_t i = 0; i < n; i++) {
		failed += !outcome_is_success(b->rows[i].run->outcome);
	}
	size_t points = share_of(LINE_BYTES, n, 0, SIZE_MAX) * 3 / 8 / LINES_OF_A_RUN;
	return (struct page_sweep_room){
		.strings = &b->strings,
		.line_kinds = line_kinds,
		.epochs = share_of(EPOCH_NUMBERS, n, 8, 200),
		.output_bytes = share_of(OUTPUT_BYTES / 3, n - failed, 160, 4096),
		.failed_output_bytes = share_of(OUTPUT_BYTES * 2 / 3, failed, 300, 4096),
		.points = points < 30    ? 30
	                  : points > 120 ? 120
	                                 : points,
	};
}

// The path of a run as a page in directory `from` links to it; NULL: not possible.
static char *beside(const char *run_path, const char *from)
{
	_cleanup_text_ struct text report = {0};
	size_t length = strlen(run_path), ending = strlen(".strain");
	bool named = length > ending && strcmp(run_path + length - ending, ".strain") == 0;
	text_format(&report, "%.*s.html", (int)(named ? length - ending : length), run_path);
	struct stat status;
	_cleanup_free_ char *real = report.failed ? NULL : realpath(report.data, NULL);
	if (!real || stat(real, &status) < 0 || !S_ISREG(status.st_mode)) {
		return NULL;
	}
	size_t same = 0;
	for (size_t i = 0; from[i] && from[i] == real[i]; i++) {
		same = from[i] == '/' ? i + 1 : same;
	}
	struct text link = {0};
	text_append_string(&link, "./");
	for (const char *rest = from + same; (rest = strchr(rest, '/')); rest++) {
		text_append_string(&link, "../");
	}
	for (const char *c = real + same; *c; c++) {
		bool plain = strchr("/-_.~", *c) || (*c >= '0' && *c <= '9') ||
		             (*c >= 'A' && *c <= 'Z') || (*c >= 'a' && *c <= 'z');
		text_format(&link, plain ? "%c" : "%%%02X", (unsigned char)*c);
	}
	return text_steal(&link);
}

// The directory that contains the page, with a final slash; NULL: the page is not a file.
static char *directory_of(const char *output)
{
	if (!output) {
		return NULL;
	}
	_cleanup_text_ struct text directory = {0};
	const char *slash = strrchr(output, '/');
	text_append(&directory, slash ? output : "./", slash ? (size_t)(slash + 1 - output) : 2);
	char *real = directory.failed ? NULL : realpath(directory.data, NULL);
	struct text ended = {0};
	text_format(&ended, "%s%s", real ? real : "", real && real[1] ? "/" : "");
	bool known = real != NULL;
	free(real);
	char *found = text_steal(&ended);
	if (!known) {
		free(found);
		return NULL;
	}
	return found;
}

static json_t *details_json(
	struct builder *b, const struct page_sweep *sweep, struct page_sweep_room *room)
{
	json_t *json = json_array();
	_cleanup_free_ char *from = directory_of(sweep->output);
	for (size_t i = 0; i < b->catalogue->n; i++) {
		_cleanup_free_ char *report = from ? beside(b->rows[i].run->path, from) : NULL;
		json_t *run = page_sweep_run(b->rows[i].run, report, room);
		if (json_array_append_new(json, run) < 0) {
			json_decref(json);
			return NULL;
		}
		if (sweep->progressed) {
			sweep->progressed(sweep->context, i + 1, b->catalogue->n);
		}
	}
	return json;
}

// The head ----------------------------------------------------------------------------------------

static json_t *machines_json(const struct builder *b)
{
	json_t *json = json_array(), *seen = json_object();
	for (size_t i = 0; i < b->catalogue->n; i++) {
		json_t *host = page_run_string(unless_empty(b->rows[i].run->host));
		const char *name = json_string_value(host);
		if (name && !json_object_get(seen, name)) {
			json_object_set_new(seen, name, json_true());
			json_array_append(json, host);
		}
		json_decref(host);
	}
	json_decref(seen);
	return json;
}

// Splits "PATH: why".
static json_t *unreadable_json(const struct catalogue *catalogue)
{
	json_t *json = json_array();
	for (size_t i = 0; i < catalogue->n_unreadable; i++) {
		const char *line = catalogue->unreadable[i], *colon = strstr(line, ": ");
		json_t *pair = json_array();
		json_array_append_new(
			pair, page_run_format("%.*s", colon ? (int)(colon - line) : 0, line));
		json_array_append_new(pair, page_run_string(colon ? colon + 2 : line));
		json_array_append_new(json, pair);
	}
	return json;
}

// --- the whole

// The name of the directory, without ".sweep" or ".advice"; for several, their number.
static char *name_of(char *const *paths, size_t n_paths)
{
	struct text name = {0};
	if (n_paths > 1) {
		text_format(&name, "%zu folders", n_paths);
		return text_steal(&name);
	}
	_cleanup_free_ char *real = realpath(paths[0], NULL);
	const char *whole = real ? real : paths[0], *slash = strrchr(whole, '/');
	const char *last = slash && slash[1] ? slash + 1 : whole;
	size_t length = strlen(last);
	static const char *const endings[] = {".sweep", ".advice"};
	for (size_t i = 0; i < ARRAY_LENGTH(endings); i++) {
		size_t n = strlen(endings[i]);
		bool ends = length > n && strcmp(last + length - n, endings[i]) == 0;
		length -= ends ? n : 0;
	}
	text_append(&name, last, length);
	return text_steal(&name);
}

// What `strain advise` printed of the answer in a directory. NULL: there is none, or it cannot be
// read, which is a notice of the catalogue.
static char *read_advice(const char *directory)
{
	struct kept_advice answer;
	struct text page = {0};
	if (kept_advice_read(directory, &answer, NULL) < 0) {
		return NULL;
	}
	for (size_t i = 0; i < answer.n_page; i++) {
		text_format(&page, "%s\n", answer.page[i]);
	}
	bool kept = answer.n_page > 0;
	kept_advice_done(&answer);
	return kept ? text_steal(&page) : NULL;
}

// Facts about a folder that its runs do not have. All text is escaped.
struct folder_facts {
	char *name; // of the page
	char *advice; // what `strain advise` printed of its answer; NULL: none
	struct plan_facts plan;
};

static void folder_facts_read(const struct page_sweep *sweep, struct folder_facts *ret)
{
	*ret = (struct folder_facts){.name = name_of(sweep->paths, sweep->n_paths)};
	if (sweep->n_paths == 1) {
		ret->advice = read_advice(sweep->paths[0]);
		plan_facts_read(sweep->paths[0], &ret->plan);
	}
}

static void folder_facts_done(struct folder_facts *facts)
{
	free(facts->name);
	free(facts->advice);
	plan_facts_done(&facts->plan);
}

static json_t *baseline_json(const struct plan_pairs *baseline)
{
	json_t *json = json_array();
	for (size_t i = 0; i < baseline->n; i++) {
		json_t *pair = json_array();
		json_array_append_new(pair, page_run_string(baseline->items[i].name));
		json_array_append_new(pair, page_run_string(baseline->items[i].value));
		json_array_append_new(json, pair);
	}
	return json;
}

// Text of a user, such as a plan; NULL: null.
static json_t *lines_of_user(const char *lines)
{
	_cleanup_text_ struct text valid = {0}, text = {0};
	if (!lines) {
		return json_null();
	}
	text_append_utf8(&valid, lines, strnlen(lines, MOST_PLAN));
	secret_append_text(&text, valid.data ? valid.data : "", valid.length);
	return json_string(text.data ? text.data : "");
}

static int build(struct builder *b, const struct page_sweep *sweep)
{
	json_t *json = b->json, *line_kinds = json_array();
	struct page_sweep_room room = room_for(b, line_kinds);
	__attribute__((cleanup(folder_facts_done))) struct folder_facts facts;
	folder_facts_read(sweep, &facts);
	const struct plan *plan = &facts.plan.plan;
	json_object_set_new(json, "version", json_integer(1));
	json_object_set_new(json, "generator", json_string("strain " STRAIN_VERSION));
	json_object_set_new(json, "name", page_run_string(facts.name ? facts.name : ""));
	json_object_set_new(json, "command", page_run_string(facts.plan.command));
	json_object_set_new(json, "plan", lines_of_user(facts.plan.text));
	json_object_set_new(json, "advice", lines_of_user(facts.advice));
	json_object_set_new(json, "baseline", baseline_json(&plan->baseline));
	// strain advise shortens epochs.
	json_object_set_new(json, "measure",
		facts.advice ? json_string(measures[MEASURE_SAMPLES_PER_SECOND].name)
			     : json_null());
	json_object_set_new(json, "planned", json_integer((json_int_t)facts.plan.planned));
	json_object_set_new(json, "machines", machines_json(b));
	json_object_set_new(json, "unreadable", unreadable_json(b->catalogue));
	json_object_set_new(json, "runs", runs_json(b));
	json_object_set_new(json, "labels", labels_json(b, plan));
	json_object_set_new(json, "labels_left_out", json_integer((json_int_t)b->labels_left_out));
	json_object_set_new(json, "measures", measures_json(b));
	json_t *details = details_json(b, sweep, &room);
	json_object_set_new(json, "details", details);
	json_object_set_new(json, "line_kinds", line_kinds);
	json_object_set(json, "strings", b->strings.list);
	return details ? 0 : -ENOMEM;
}

int page_sweep_write(FILE *out, const struct page_sweep *sweep, const struct catalogue *catalogue,
	struct error *e)
{
	struct builder b = {.catalogue = catalogue, .json = json_object()};
	int r = b.json && page_strings_init(&b.strings) == 0 ? order_runs(&b) : -ENOMEM;
	r = r < 0 ? r : build(&b, sweep);
	if (r == 0) {
		fwrite(sweep_before, 1, sizeof(sweep_before), out);
		page_write_json(out, b.json);
		fwrite(sweep_after, 1, sizeof(sweep_after), out);
		errno = 0;
		if (fflush(out) != 0 || ferror(out)) {
			r = error_errno(e, errno ? errno : EIO, "cannot write the page");
		}
	} else {
		error_errno(e, ENOMEM, "cannot lay out the page");
	}
	json_decref(b.json);
	page_strings_done(&b.strings);
	for (size_t i = 0; b.rows && i < catalogue->n; i++) {
		free(b.rows[i].name);
	}
	free(b.rows);
	return r;
}
