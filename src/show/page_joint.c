// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Type Run of web/src/contract.ts, with its part `job`, from a job of several runs. Times are those
// of the machines' clocks, less how far each is ahead of the first rank's.

#include "show/page_joint.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/words.h"
#include "run/outcome.h"
#include "show/buckets.h"
#include "show/joint_show.h"
#include "show/page.h"
#include "show/page_run.h"
#include "study/joint.h"

#define LANES_MOST 64 // ranks drawn; of more, those that failed and those that wait least
#define PANELS_MOST 8 // hosts with a panel of their own
#define CELLS_MOST 480 // of a lane
#define POINTS_MOST 1000 // of a line
#define ROWS_MOST 1024 // of the table
#define LENGTH_MOST_S (100 * 365 * 86400.0) // of the axis: more is damage
#define HUE_ALL 0
#define HUE_SLOWEST 1
#define HUE_WORK 2

// Time --------------------------------------------------------------------------------------------

// The axis of all ranks.
struct axis {
	const struct joint *j;
	double *ahead_s; // [n] owned; of a rank's clock
	double start_s; // since 1970, by the first rank's clock
	double length_s;
	size_t unaligned; // ranks whose clock could not be compared
};

// The runs of a host whose clock could not be compared start with those of the first host.
static double guess_ahead(const struct joint *j, const struct joint_rank *r)
{
	int64_t own = r->run->start_utc_ns, first = j->ranks[0].run->start_utc_ns;
	for (size_t i = 0; i < j->n; i++) {
		const struct joint_rank *other = &j->ranks[i];
		int64_t start = other->run->start_utc_ns;
		if (strcmp(other->host, r->host) == 0) {
			own = start < own ? start : own;
		} else if (strcmp(other->host, j->ranks[0].host) == 0) {
			first = start < first ? start : first;
		}
	}
	return (double)own / 1e9 - (double)first / 1e9;
}

static int fill_ahead(struct axis *axis)
{
	const struct joint *j = axis->j;
	axis->ahead_s = calloc(j->n, sizeof(*axis->ahead_s));
	for (size_t i = 0; axis->ahead_s && i < j->n; i++) {
		const struct joint_rank *r = &j->ranks[i];
		size_t same = 0; // the first rank of this host
		while (strcmp(j->ranks[same].host, r->host) != 0) {
			same++;
		}
		axis->ahead_s[i] = isfinite(r->clock_s) ? r->clock_s
		                   : same < i           ? axis->ahead_s[same]
		                                        : guess_ahead(j, r);
		axis->unaligned += !isfinite(r->clock_s);
	}
	return axis->ahead_s ? 0 : -ENOMEM;
}

static double start_of(const struct axis *axis, const struct joint_rank *r)
{
	return (double)r->run->start_utc_ns / 1e9 - axis->ahead_s[r - axis->j->ranks];
}

// Whole nanoseconds first: seconds since 1970 have no microseconds in a double.
static double place_of(const struct axis *axis, const struct joint_rank *r, int64_t utc_ns)
{
	int64_t since;
	if (__builtin_sub_overflow(utc_ns, r->run->start_utc_ns, &since)) {
		return NAN;
	}
	return start_of(axis, r) - axis->start_s + (double)since / 1e9;
}

static int find_axis(const struct joint *j, struct axis *ret)
{
	*ret = (struct axis){.j = j, .start_s = INFINITY};
	int rc = fill_ahead(ret);
	for (size_t i = 0; rc == 0 && i < j->n; i++) {
		ret->start_s = fmin(ret->start_s, start_of(ret, &j->ranks[i]));
	}
	for (size_t i = 0; rc == 0 && i < j->n; i++) {
		const struct joint_rank *r = &j->ranks[i];
		double seconds = r->run->measures[MEASURE_DURATION];
		double last = r->n_steps > 0 ? place_of(ret, r, r->steps[r->n_steps - 1].end_utc_ns)
		                             : NAN;
		ret->length_s = fmax(ret->length_s, fmin(last, LENGTH_MOST_S)); // NAN is ignored
		last = start_of(ret, r) - ret->start_s + seconds;
		ret->length_s = fmax(ret->length_s, fmin(last, LENGTH_MOST_S));
	}
	return rc;
}

static double own_of(const struct joint_step *s)
{
	return s->length - (isfinite(s->waits) ? s->waits : 0);
}

// Lanes -------------------------------------------------------------------------------------------

// Kept iterations are every first, second, fourth, ...: each stands for the time since the one
// before, unless that is longer than a few of them (validation, a checkpoint).
static double typical_spacing(const struct joint_rank *r)
{
	if (r->n_steps < 2) {
		return r->n_steps ? r->steps[0].length : 0;
	}
	double all = (double)(r->steps[r->n_steps - 1].end_utc_ns - r->steps[0].end_utc_ns) / 1e9;
	return all / (double)(r->n_steps - 1);
}

// Sets the length of buckets so that each has a step, and a lane not too many.
static void choose_width(const struct joint *j, const struct axis *axis, struct buckets *ret)
{
	double spacing = 0;
	for (size_t i = 0; i < j->n; i++) {
		spacing = fmax(spacing, typical_spacing(&j->ranks[i]));
	}
	double width_s = BUCKET_SHORTEST_US / 1e6;
	ret->doublings = 0;
	while (width_s < spacing || axis->length_s / width_s > CELLS_MOST) {
		width_s *= 2;
		ret->doublings++;
	}
}

// The cells of a lane: time of own work, and time of iterations, in seconds.
struct cells {
	double own[2 * CELLS_MOST + 2];
	double all[2 * CELLS_MOST + 2];
};

static void add_stretch(struct cells *c, double width_s, double from, double to, double share)
{
	for (double at = fmax(0, from); at < to;) {
		size_t cell = (size_t)(at / width_s);
		if (cell >= ARRAY_LENGTH(c->all)) {
			return;
		}
		double until = fmin(to, (double)(cell + 1) * width_s);
		if (until <= at) { // rounding
			until = at + width_s / 1024;
		}
		c->all[cell] += until - at;
		c->own[cell] += share * (until - at);
		at = until;
	}
}

// Shares of own work. The weight of a cell is 0 where the rank is in no iteration.
static int fill_lane(const struct joint_rank *r, const struct axis *axis, struct buckets *b)
{
	_cleanup_free_ struct cells *c = calloc(1, sizeof(*c));
	double width_s = buckets_width_s(b), spacing = typical_spacing(r);
	if (!c) {
		return -ENOMEM;
	}
	double before = -INFINITY;
	for (size_t i = 0; i < r->n_steps; i++) {
		const struct joint_step *s = &r->steps[i];
		double end = place_of(axis, r, s->end_utc_ns);
		double from = end - before < 2 * spacing ? before : end - s->length;
		double share = s->length > 0 ? own_of(s) / s->length : 1;
		if (isfinite(end)) {
			add_stretch(c, width_s, fmax(from, before), end, fmin(1, fmax(0, share)));
			before = fmax(before, end);
		}
	}
	for (size_t i = 0; i < ARRAY_LENGTH(c->all); i++) {
		int rc = c->all[i] > 0
		                 ? buckets_add(b, (int64_t)((double)i * width_s * 1e6 + 1),
					   c->own[i] / c->all[i] * fmin(1, c->all[i] / width_s), 0,
					   1, width_s)
		                 : 0;
		if (rc < 0) {
			return rc;
		}
	}
	return 0;
}

static json_t *series_json(
	const char *label, const char *help, unsigned hue, const struct buckets *b)
{
	struct packed packed = {0};
	json_t *json = buckets_pack(b, &packed) < 0 ? NULL
	                                            : page_run_series(label, help, hue, b, &packed);
	text_done(&packed.base64);
	return json;
}

static json_t *lane_json(const struct joint *j, const struct joint_rank *r, const struct axis *axis)
{
	_cleanup_text_ struct text label = {0};
	struct buckets b;
	buckets_init(&b, ARRAY_LENGTH(((struct cells *)NULL)->all));
	choose_width(j, axis, &b);
	text_format(&label, "rank %d", r->number);
	json_t *json = fill_lane(r, axis, &b) < 0
	                       ? NULL
	                       : series_json(label.data ? label.data : "", "from marks of the job",
					 r->rank.slowest ? HUE_SLOWEST : HUE_WORK, &b);
	buckets_done(&b);
	return json;
}

// A panel of the chosen ranks of a host; host NULL: of all.
static int add_lanes(json_t *panels, const struct joint *j, const struct joint_rank *const *shown,
	size_t n, const char *host, const struct axis *axis)
{
	_cleanup_text_ struct text title = {0};
	text_append_string(&title, host && *host ? "Ranks on " : "Ranks");
	if (host) {
		text_append_printable(&title, host, strlen(host));
	}
	json_t *panel = page_run_panel("lanes", title.data ? title.data : "Ranks", "1",
		j->waits == WAITS_UNKNOWN
			? "Share of time in which each rank is in an iteration (darker is more)."
			: "Share of time in which each rank works and does not wait for the "
			  "others (darker is more).");
	json_t *series = json_array();
	int r = 0;
	for (size_t i = 0; i < n && r == 0; i++) {
		if (host && strcmp(shown[i]->host, host) != 0) {
			continue;
		}
		json_t *lane = shown[i]->n_steps > 0 ? lane_json(j, shown[i], axis) : NULL;
		r = lane ? json_array_append_new(series, lane)
		         : (shown[i]->n_steps > 0 ? -ENOMEM : 0);
	}
	json_object_set_new(panel, "verb", json_string("work"));
	bool any = json_array_size(series) > 0;
	json_object_set_new(panel, "series", series);
	if (any) {
		json_array_append_new(panels, panel);
	} else {
		json_decref(panel);
	}
	return r;
}

static int add_all_lanes(json_t *panels, const struct joint *j,
	const struct joint_rank *const *shown, size_t n, const struct axis *axis)
{
	if (j->n_hosts > PANELS_MOST || j->n_hosts < 2) {
		return add_lanes(panels, j, shown, n, NULL, axis);
	}
	int r = 0;
	for (size_t i = 0; i < n && r == 0; i++) {
		bool first = true;
		for (size_t k = 0; k < i; k++) {
			first = first && strcmp(shown[k]->host, shown[i]->host) != 0;
		}
		r = first ? add_lanes(panels, j, shown, n, shown[i]->host, axis) : 0;
	}
	return r;
}

// Lines -------------------------------------------------------------------------------------------

static int compare_doubles(const void *left, const void *right)
{
	const double *a = left, *b = right;
	return (*a > *b) - (*a < *b);
}

// The values of an iteration: of the slowest rank, and of the others, sorted.
struct across {
	double t_s;
	double slowest; // NAN: there is none
	double *others; // [n]
	size_t n;
};

// Calls `take` for each iteration that all ranks have which got so far, at least two. Returns 0 or
// what take returned.
static int each_common(const struct joint *j, const struct axis *axis,
	double (*value)(const struct joint_step *),
	int (*take)(void *context, const struct across *a), void *context)
{
	_cleanup_free_ size_t *at = calloc(j->n + 1, sizeof(*at));
	_cleanup_free_ double *others = calloc(j->n + 1, sizeof(*others));
	int result = at && others ? 0 : -ENOMEM;
	const struct joint_rank *first = &j->ranks[0]; // with the most iterations
	for (size_t r = 1; r < j->n; r++) {
		first = j->ranks[r].n_steps > first->n_steps ? &j->ranks[r] : first;
	}
	for (size_t i = 0; result == 0 && i < first->n_steps; i++) {
		int64_t number = first->steps[i].number;
		struct across a = {.slowest = NAN, .others = others};
		size_t present = 0, wanted = 0;
		for (size_t r = 0; r < j->n; r++) {
			const struct joint_rank *rank = &j->ranks[r];
			while (at[r] < rank->n_steps && rank->steps[at[r]].number < number) {
				at[r]++;
			}
			wanted += at[r] < rank->n_steps;
			if (at[r] >= rank->n_steps || rank->steps[at[r]].number != number) {
				continue;
			}
			present++;
			const struct joint_step *step = &rank->steps[at[r]];
			if (r == j->slowest) {
				a.slowest = value(step);
			} else {
				others[a.n++] = value(step);
			}
		}
		a.t_s = place_of(axis, first, first->steps[i].end_utc_ns);
		if (present == wanted && present > 1 && a.n > 0 && isfinite(a.t_s)) {
			qsort(others, a.n, sizeof(*others), compare_doubles);
			result = take(context, &a);
		}
	}
	return result;
}

struct lines {
	struct buckets slowest, others;
};

static int take_lines(void *context, const struct across *a)
{
	struct lines *l = context;
	int64_t t_us = (int64_t)(a->t_s * 1e6);
	double median = a->others[a->n / 2];
	int r = isfinite(a->slowest)
	                ? buckets_add(&l->slowest, t_us, a->slowest, a->slowest, a->slowest, 1)
	                : 0;
	return r < 0 ? r
	             : buckets_add(&l->others, t_us, median, a->others[0], a->others[a->n - 1], 1);
}

static double length_of(const struct joint_step *s)
{
	return s->length;
}

// A panel of a duration of iterations: the slowest rank, and the median of the others with their
// range.
static int add_lines(json_t *panels, const struct joint *j, const struct axis *axis,
	const char *title, const char *help, double (*value)(const struct joint_step *))
{
	struct lines lines;
	_cleanup_text_ struct text name = {0};
	buckets_init(&lines.slowest, POINTS_MOST);
	buckets_init(&lines.others, POINTS_MOST);
	int r = each_common(j, axis, value, take_lines, &lines);
	if (r == 0 && lines.others.n > 0) {
		json_t *panel = page_run_panel("lines", title, "s", help);
		json_t *series = json_array();
		bool one = j->slowest < j->n && lines.slowest.n > 0;
		json_array_append_new(series,
			series_json(one ? "median of the others" : "median of all ranks",
				"of iterations that all ranks have which got so far; the range is "
				"that of the ranks",
				HUE_ALL, &lines.others));
		if (one) {
			text_format(&name, "rank %d", j->ranks[j->slowest].number);
			json_array_append_new(series, series_json(name.data ? name.data : "",
							      "the rank that the others wait for",
							      HUE_SLOWEST, &lines.slowest));
		}
		json_object_set_new(panel, "series", series);
		json_array_append_new(panels, panel);
	}
	buckets_done(&lines.slowest);
	buckets_done(&lines.others);
	return r;
}

static int make_panels(const struct joint *j, const struct axis *axis, json_t *panels)
{
	_cleanup_free_ const struct joint_rank **shown = NULL;
	int n = joint_show_worst(j, LANES_MOST, &shown);
	int r = n < 0 ? n : add_all_lanes(panels, j, shown, (size_t)n, axis);
	if (r == 0 && j->waits != WAITS_UNKNOWN) {
		r = add_lines(panels, j, axis, "Own work of an iteration",
			"Length of an iteration without the waits for other ranks. The rank with "
			"the most own work keeps the others waiting.",
			own_of);
	}
	return r < 0 ? r
	             : add_lines(panels, j, axis, "Iterations",
			       "Length of the iterations that all ranks recorded.", length_of);
}

// The table ---------------------------------------------------------------------------------------

static json_t *rank_json(const struct joint_rank *r)
{
	json_t *json = json_object();
	_cleanup_text_ struct text name = {0};
	text_format(&name, "rank %d", r->number);
	json_object_set_new(json, "name", page_run_string(name.data));
	json_object_set_new(json, "leads", json_false());
	json_object_set_new(json, "slowest", json_boolean(r->rank.slowest));
	json_object_set_new(
		json, "iterations", json_integer((json_int_t)(r->rank.iterations & INT64_MAX)));
	json_object_set_new(json, "p50", page_run_number(r->rank.p50_s));
	json_object_set_new(json, "rate", page_run_number(r->rank.samples_per_s));
	json_object_set_new(json, "waits", page_run_number(r->rank.waits));
	json_object_set_new(json, "phases", page_run_rank_phases(NULL, &r->rank));
	json_object_set_new(json, "number", json_integer(r->number));
	json_object_set_new(json, "host", page_run_string(r->host));
	json_object_set_new(json, "run", page_run_string(r->run->name));
	json_object_set_new(json, "own", page_run_number(phases_rank_own(&r->rank)));
	json_object_set_new(json, "latest", page_run_number(r->latest));
	json_object_set_new(json, "cpus", page_run_number(r->cpus_used));
	json_object_set_new(json, "cpu_wait", page_run_number(r->cpu_wait_share));
	json_object_set_new(json, "memory", page_run_number(r->memory_bytes));
	json_object_set_new(json, "verdict", page_run_string(r->run->verdict));
	json_object_set_new(json, "headline", page_run_string(r->run->headline));
	json_object_set_new(json, "note", page_run_string(joint_show_note(r)));
	return json;
}

static json_t *job_json(const struct joint *j)
{
	json_t *json = json_object(), *ranks = json_array();
	_cleanup_free_ const struct joint_rank **shown = NULL;
	int n = joint_show_worst(j, ROWS_MOST, &shown);
	for (int i = 0; i < n; i++) {
		json_array_append_new(ranks, rank_json(shown[i]));
	}
	json_object_set_new(json, "ranks", ranks);
	json_object_set_new(json, "ranks_left_out",
		json_integer(n > 0 && (size_t)n < j->n ? (json_int_t)(j->n - (size_t)n) : 0));
	json_object_set_new(json, "unit", page_run_string(joint_show_unit(j)));
	return json;
}

// The head ----------------------------------------------------------------------------------------

// The first sentence is the title, the others the text.
static json_t *verdict_json(const struct joint *j)
{
	_cleanup_text_ struct text said = {0};
	json_t *json = json_object(), *text = json_array();
	bool first = true;
	if (joint_show_append(&said, j) < 0 || !said.data) {
		json_decref(json);
		json_decref(text);
		return json_null();
	}
	for (char *line = said.data, *end; *line; line = end + 1) {
		end = strchr(line, '\n');
		if (!end) {
			break;
		}
		*end = '\0';
		if (first) {
			json_object_set_new(json, "title", page_run_string(line));
		} else {
			json_array_append_new(text, page_run_string(line));
		}
		first = false;
	}
	json_object_set_new(json, "text", text);
	json_object_set_new(json, "evidence", json_array());
	json_object_set_new(json, "advice", json_array());
	if (first) {
		json_decref(json);
		return json_null();
	}
	return json;
}

static void add_chip(json_t *chips, const char *before, const char *text)
{
	if (text && *text) {
		json_array_append_new(chips, page_run_format("%s%s", before, text));
	}
}

static json_t *chips_json(const struct joint *j)
{
	json_t *chips = json_array();
	char counted[64];
	snprintf(counted, sizeof(counted), "%zu rank%s", j->n, j->n == 1 ? "" : "s");
	add_chip(chips, "", counted);
	snprintf(counted, sizeof(counted), "%zu host%s", j->n_hosts, j->n_hosts == 1 ? "" : "s");
	add_chip(chips, "", counted);
	snprintf(counted, sizeof(counted), "%zu runs", j->n_runs);
	add_chip(chips, "", counted);
	add_chip(chips, "named by ", j->named_by);
	return chips;
}

static void add_tile(json_t *tiles, const char *label, struct text *value, const char *of)
{
	if (value->data && value->length > 0) {
		json_t *tile = json_object();
		json_object_set_new(tile, "value", page_run_string(value->data));
		json_object_set_new(tile, "of", page_run_string(of));
		json_object_set_new(tile, "label", json_string(label));
		json_array_append_new(tiles, tile);
	}
	text_done(value);
}

// Lost to waiting: the mean of all ranks, weighted by the time of their iterations.
static double waits_of_all(const struct joint *j)
{
	double waits = 0, all = 0;
	for (size_t i = 0; i < j->n; i++) {
		const struct phase_rank *r = &j->ranks[i].rank;
		if (isfinite(r->waits) && r->iteration_s > 0) {
			waits += r->waits * r->iteration_s;
			all += r->iteration_s;
		}
	}
	return all > 0 ? waits / all : NAN;
}

static json_t *tiles_json(const struct joint *j)
{
	json_t *tiles = json_array();
	struct text value = {0};
	_cleanup_text_ struct text per = {0};
	text_format(&per, "%s/s", joint_show_unit(j));
	if (isfinite(j->samples_per_s)) {
		words_append_number(&value, j->samples_per_s);
		add_tile(tiles, "of all ranks", &value, per.data);
	}
	double waits = waits_of_all(j);
	bool link = j->slowest < j->n && j->reason == REASON_LINK; // all ranks wait for it
	if (isfinite(waits) && !link) {
		words_append_percent(&value, waits);
		add_tile(tiles, "lost to waiting for other ranks", &value, NULL);
	}
	if (j->slowest < j->n) {
		const struct joint_rank *r = &j->ranks[j->slowest];
		text_format(&value, "rank %d", r->number);
		add_tile(tiles, "keeps the others waiting", &value, NULL);
		if (link) {
			words_append_percent(&value, r->link.busy);
			add_tile(tiles, "of the time its data is in transit", &value, NULL);
		} else {
			words_append_seconds(&value, phases_rank_own(&r->rank));
			add_tile(tiles, "its own work in an iteration", &value, NULL);
		}
	}
	return tiles;
}

static json_t *about_json(const struct joint *j, const struct axis *axis)
{
	json_t *about = json_object();
	size_t live = 0, failed = 0, cut_off = 0;
	for (size_t i = 0; i < j->n; i++) {
		const struct digest *run = j->ranks[i].run;
		live += run->state == RUN_LIVE;
		failed += run->state == RUN_FINISHED && !outcome_is_success(run->outcome);
		cut_off += run->state == RUN_CUT_OFF;
	}
	const char *plural = (failed > 0 ? failed : cut_off) == 1 ? "" : "s";
	json_object_set_new(about, "host",
		j->n_hosts == 1 ? page_run_string(j->ranks[0].host)
				: page_run_format("%zu hosts", j->n_hosts));
	json_object_set_new(about, "lasted", page_run_number(axis->length_s));
	json_object_set_new(about, "ended",
		failed > 0 ? page_run_format("%zu rank%s failed", failed, plural)
		: cut_off > 0
			? page_run_format("the end of %zu rank%s was not recorded", cut_off, plural)
			: json_string(live > 0 ? "live" : "success"));
	json_object_set_new(about, "versions", json_array());
	return about;
}

static json_t *notice_json(const struct joint *j)
{
	bool missing = j->world > 0 && (uint64_t)j->world > j->n;
	return missing ? page_run_format("%zu of %lld ranks %s a run here.", j->n,
				 (long long)j->world, j->n == 1 ? "has" : "have")
	               : json_null();
}

static void add_note(json_t *notes, const char *title, const char *text)
{
	json_t *note = json_object();
	json_object_set_new(note, "title", json_string(title));
	json_object_set_new(note, "text", json_string(text));
	json_array_append_new(notes, note);
}

static json_t *notes_json(const struct joint *j, const struct axis *axis)
{
	json_t *notes = json_array();
	size_t without = 0;
	for (size_t i = 0; i < j->n; i++) {
		without += j->ranks[i].n_steps == 0;
	}
	add_note(notes, "Ranks", "are from several runs; iterations are joined by their numbers.");
	if (axis->unaligned > 0) {
		add_note(notes, "Clocks",
			"of some hosts could not be compared, because their ranks do not wait for "
			"each "
			"other: their runs are drawn from the start of the first host's.");
	} else if (j->n_hosts > 1) {
		add_note(notes, "Clocks",
			"of the hosts are aligned by iterations that ended together.");
	}
	if (j->waits == WAITS_IN_BACKWARD || j->waits == WAITS_IN_FORWARD) {
		add_note(notes, "Waits",
			"are not marked: they are estimated from forward and backward passes.");
	}
	if (j->n > LANES_MOST) {
		add_note(notes, "Panels",
			"show the ranks that failed and those that wait least; the table has "
			"more.");
	}
	if (without > 0) {
		add_note(notes, "No lane", "is drawn for ranks that recorded no iterations.");
	}
	return notes;
}

static json_t *run_json(const struct joint *j)
{
	struct axis axis;
	json_t *json = json_object(), *panels = json_array();
	int r = find_axis(j, &axis);
	if (r < 0 || !json || !panels || make_panels(j, &axis, panels) < 0) {
		free(axis.ahead_s);
		json_decref(json);
		json_decref(panels);
		return NULL;
	}
	static const char *const empty[] = {"epochs", "epoch_columns", "epoch_rows", "events",
		"own_spans", "processes", "summary", "missing"};
	for (size_t i = 0; i < ARRAY_LENGTH(empty); i++) {
		json_object_set_new(json, empty[i], json_array());
	}
	json_object_set_new(json, "name", page_run_format("job %s", j->name));
	json_object_set_new(json, "command", page_run_string(j->ranks[0].run->command));
	json_object_set_new(json, "about", about_json(j, &axis));
	json_object_set_new(json, "started", page_run_number(axis.start_s));
	json_object_set_new(json, "duration", page_run_number(axis.length_s));
	json_object_set_new(json, "notice", notice_json(j));
	json_object_set_new(json, "chips", chips_json(j));
	json_object_set_new(json, "verdict", verdict_json(j));
	json_object_set_new(json, "tiles", tiles_json(j));
	json_object_set_new(json, "panels", panels);
	json_object_set_new(json, "iterations", json_null());
	json_object_set_new(json, "cpu_time", json_null());
	json_object_set_new(json, "processes_left_out", json_integer(0));
	json_object_set_new(json, "notes", notes_json(j, &axis));
	json_object_set_new(json, "job", job_json(j));
	free(axis.ahead_s);
	return json;
}

int page_joint_add(FILE *out, const struct joint *j, struct error *e)
{
	json_t *json = run_json(j);
	if (!json) {
		return error_errno(e, ENOMEM, "cannot lay out the page");
	}
	page_write_json(out, json);
	json_decref(json);
	return ferror(out) ? error_errno(e, EIO, "cannot write the page") : 0;
}
