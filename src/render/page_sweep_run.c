// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A run in a few kilobytes: strings that many runs share are places in a list, lines are coarse,
// and of long things only the end is there.

#include "render/page_sweep_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis.h"
#include "analyze/catalogue.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "render/coarse.h"
#include "render/page_facts.h"
#include "render/panels.h"

#define MOST_STRING 2000 // bytes of one
#define MOST_LINES 3 // of a panel
#define MOST_EVIDENCE 24

// Strings ---------------------------------------------------------------------------------------

int page_strings_init(struct page_strings *strings)
{
	*strings = (struct page_strings){.list = json_array(), .places = json_object()};
	return strings->list && strings->places ? 0 : -1;
}

void page_strings_done(struct page_strings *strings)
{
	json_decref(strings->list);
	json_decref(strings->places);
	*strings = (struct page_strings){0};
}

// Cut where a character ends; what is no UTF-8 is replaced.
static json_t *string_of(const char *string)
{
	size_t length = strnlen(string, MOST_STRING + 1);
	if (length <= MOST_STRING) {
		return page_string(string);
	}
	length = MOST_STRING;
	while (length > MOST_STRING - 4 && ((unsigned char)string[length] & 0xc0) == 0x80) {
		length--;
	}
	return page_format("%.*s…", (int)length, string);
}

json_t *page_strings_add(struct page_strings *strings, const char *string)
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

// Parts of a run --------------------------------------------------------------------------------

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

// Times as exact as a person wants them: a page holds very many.
static json_t *short_number(double value)
{
	if (!isfinite(value) || value == 0) {
		return page_number(value);
	}
	double unit = pow(10, floor(log10(fabs(value))) - 5);
	return page_number(round(value / unit) * unit);
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

// The end of what the job printed, from a whole line where one begins there.
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

// Lines -----------------------------------------------------------------------------------------

// What a run is looked at by first; of disks only where nothing is known of its own files.
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
	json_object_set_new(kind, "panel", page_string(panel->spec->title));
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
	if (!coarse_append(&data, &line->buckets, seconds, room->points, &most) || data.failed) {
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
	struct error damage = {0}; // that the file is damaged is said beside
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

// A run -----------------------------------------------------------------------------------------

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

static void set_analysis(json_t *json, const struct analysis *a, const struct catalogue_run *run,
	struct page_sweep_room *room)
{
	bool good = outcome_is_success(run->outcome);
	set_verdict(json, &a->verdict, room->strings);
	json_object_set_new(json, "limits", limits_json(a->reader, room->strings));
	set_epochs(json, &a->epochs, room->epochs);
	set_output(json, &a->events, good ? room->output_bytes : room->failed_output_bytes);
	json_object_set_new(json, "lines", lines_json(a, room));
}

json_t *page_sweep_run(
	const struct catalogue_run *run, const char *report, struct page_sweep_room *room)
{
	json_t *json = json_object();
	if (!json) {
		return NULL;
	}
	set_nothing(json);
	json_object_set_new(json, "report", page_string(report));
	struct reader *reader = NULL;
	struct analysis analysis;
	struct error gone = {0}; // its row says what the catalogue knew
	if (reader_open(run->path, &reader, &gone) == 0) {
		bool finished = reader_state(reader) == RUN_FINISHED; // nobody writes into it
		if (finished) {
			reader_hold(reader);
		}
		if (analysis_load_brief(reader, &analysis, &gone) == 0) {
			set_analysis(json, &analysis, run, room);
			analysis_done(&analysis);
		}
		if (finished) {
			reader_release(reader);
		}
		reader_free(reader);
	}
	return json;
}
