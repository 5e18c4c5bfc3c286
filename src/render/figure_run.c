// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Three panels of a run, taken from those of the report.

#include "render/figure_run.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/analysis.h"
#include "base/cleanup.h"
#include "render/panels.h"

#define BUCKETS_MOST 400 // of a line: what a column of a paper can show
#define SPREAD_LEAST 8 // readings in a bucket, on average, for a shade to mean something

// A line of a panel of the report, and what it is called here.
struct part {
	const char *panel;
	const char *line;
	const char *name;
	const char *several; // one of several devices: "device 2"
	bool instead; // only where none before it is there
};

enum strip { STRIP_MEMORY, STRIP_TRAFFIC, STRIP_UTILIZATION, N_STRIPS };

#define PARTS 4

struct strip_spec {
	const char *label;
	const char *unit;
	struct part parts[PARTS];
};

static const struct strip_spec strips[N_STRIPS] = {
	[STRIP_MEMORY] = {"memory", "By",
		{
			{"Memory", "job", "host", NULL, false},
			{"Memory", "job (PSS)", "host (PSS)", NULL, true},
			{"Memory", "sum of resident", "host (sum of resident)", NULL, true},
			{"Memory", "GPU", "device", "device", false},
		}},
	[STRIP_TRAFFIC] = {"PCIe", "By/s",
		{
			{"PCIe", "host to device", "to the device", "to device", false},
			{"PCIe", "device to host", "from the device", "from device", false},
		}},
	[STRIP_UTILIZATION] = {"utilisation", "1",
		{
			{"CPU", "job", "CPU (sum over cores)", NULL, false},
			{"GPU", "a kernel ran", "GPU", "GPU", false},
		}},
};

// Where there is no GPU nothing goes over PCIe: what the job reads has the place.
static const struct strip_spec reads = {"reads", "By/s",
	{
		{"Job's files", "asked for", "by read calls", NULL, false},
		{"Job's files", "from storage", "from storage", NULL, false},
	}};

struct figure_page *figure_runs_new(size_t n_runs)
{
	struct figure_page *page = figure_new(NULL, n_runs);
	for (size_t i = 0; page && i < n_runs * N_STRIPS; i++) {
		struct figure_panel *panel = figure_add_panel(page, NULL);
		bool last = i / n_runs == N_STRIPS - 1;
		if (panel) {
			figure_axis_set(panel, &panel->x, last ? "time" : "", "s");
			panel->x.minimum = 0;
		}
	}
	if (page) {
		page->share_x = true;
		page->panel_height_cm = 2.6;
	}
	return page;
}

static size_t count_lines(const struct panel_list *panels, const struct part *part)
{
	size_t n = 0;
	for (size_t i = 0; i < panels->n; i++) {
		const struct panel *panel = &panels->items[i];
		for (size_t j = 0; j < panel->n; j++) {
			n += strcmp(panel->spec->title, part->panel) == 0 &&
			     strcmp(panel->lines[j].spec->label, part->line) == 0;
		}
	}
	return n;
}

// At a job's end its CPU time is settled: what processes that were too short to be seen had used is
// booked at once, as a rate that no machine has. It is no utilisation of that moment.
static void drop_settlement(struct buckets *buckets, double cpus)
{
	double most = cpus * 1.2 + 0.2; // ticks are not exact
	size_t n = 0;
	for (size_t i = 0; i < buckets->n; i++) {
		struct bucket *bucket = &buckets->items[i];
		if (!(bucket_mean(bucket) > most)) {
			bucket->maximum = fminf(bucket->maximum, (float)most);
			buckets->items[n++] = *bucket;
		}
	}
	buckets->n = n;
}

static int collect(const struct analysis *a, struct panel_list *ret, struct error *e)
{
	int r = panels_collect(a, ret, e);
	double cpus = a->overview.host_cpus;
	for (size_t i = 0; r == 0 && cpus > 0 && i < ret->n; i++) {
		struct panel *panel = &ret->items[i];
		for (size_t j = 0; strcmp(panel->spec->title, "CPU") == 0 && j < panel->n; j++) {
			drop_settlement(&panel->lines[j].buckets, cpus);
		}
	}
	return r;
}

// The mean as a line; where many readings share a point, the least and the greatest as a shade
// behind it.
static void draw_line(
	struct figure_panel *panel, struct buckets *buckets, const char *name, int style)
{
	while (buckets->n > BUCKETS_MOST) {
		buckets_coarsen(buckets);
	}
	struct figure_series *shade = NULL;
	if (buckets->samples > buckets->n * SPREAD_LEAST) {
		shade = figure_add_series(panel, LOOK_BAND, NULL);
	}
	struct figure_series *line = figure_add_series(panel, LOOK_LINE, name);
	if (line) {
		line->style = style;
	}
	if (shade) {
		shade->style = style;
	}
	double width = buckets_width_s(buckets);
	for (size_t i = 0; i < buckets->n; i++) {
		const struct bucket *bucket = &buckets->items[i];
		double x = ((double)bucket->index + 0.5) * width, mean = bucket_mean(bucket);
		bool there = isfinite(mean);
		figure_add_point(line, x, mean);
		figure_add_interval(shade, x, mean, there ? (double)bucket->minimum : NAN,
			there ? (double)bucket->maximum : NAN);
	}
}

// Draws every line of the part, under a name of its own or the part's. Returns how many there were.
static size_t draw_part(struct figure_panel *into, struct panel_list *panels,
	const struct part *part, const char *own_name, int *style)
{
	size_t several = count_lines(panels, part), n = 0;
	for (size_t i = 0; i < panels->n; i++) {
		struct panel *panel = &panels->items[i];
		for (size_t j = 0; j < panel->n; j++) {
			struct line *line = &panel->lines[j];
			if (strcmp(panel->spec->title, part->panel) != 0 ||
				strcmp(line->spec->label, part->line) != 0) {
				continue;
			}
			char name[128];
			if (several > 1 && part->several) {
				snprintf(name, sizeof(name), "%s%s%s %zu", own_name ? own_name : "",
					own_name ? ", " : "", part->several, n);
			} else {
				snprintf(
					name, sizeof(name), "%s", own_name ? own_name : part->name);
			}
			draw_line(into, &line->buckets, name, (*style)++);
			n++;
		}
	}
	return n;
}

static size_t draw_strip(
	struct figure_panel *panel, struct panel_list *panels, const struct strip_spec *strip)
{
	size_t n = 0;
	int style = 0;
	for (size_t i = 0; i < PARTS && strip->parts[i].panel; i++) {
		if (!strip->parts[i].instead || n == 0) {
			n += draw_part(panel, panels, &strip->parts[i], NULL, &style);
		}
	}
	if (panel) {
		figure_axis_set(panel, &panel->y, strip->label, strip->unit);
	}
	return n;
}

static bool has_part(const struct panel_list *panels, const struct part *part)
{
	return count_lines(panels, part) > 0;
}

static bool has_gpu(const struct analysis *a)
{
	return entity_first(&a->entities, ENTITY_GPU) != NULL;
}

// Why nothing of a GPU was measured, as the run says it: the reason that the most metrics have.
static void append_gpu_reason(struct text *t, const struct analysis *a)
{
	const struct missing_group *found = NULL;
	for (size_t i = 0; i < a->missing.n; i++) {
		const struct missing_group *group = &a->missing.items[i];
		bool more = !found || group->n_metrics > found->n_metrics;
		if (strcmp(group->kind, "gpu") == 0 && more) {
			found = group;
		}
	}
	if (found) {
		missing_append_reason(t, found);
	} else {
		text_append_string(t, has_gpu(a) ? "no reading" : "the run saw none");
	}
}

static void say_gpu(struct figure_panel *panel, const struct analysis *a, const char *what)
{
	_cleanup_text_ struct text reason = {0};
	append_gpu_reason(&reason, a);
	figure_say(panel, "%s: %s", what, reason.data ? reason.data : "");
}

static bool is_idle(const struct panel_list *panels, const char *title)
{
	return panels->idle.data && strstr(panels->idle.data, title);
}

static void draw_traffic(
	struct figure_panel *panel, const struct analysis *a, struct panel_list *panels)
{
	if (draw_strip(panel, panels, &strips[STRIP_TRAFFIC]) > 0) {
		return;
	}
	if (has_gpu(a) && is_idle(panels, "PCIe")) {
		figure_say(panel, "nothing went over PCIe");
		return;
	}
	if (has_gpu(a)) {
		say_gpu(panel, a, "PCIe");
		return;
	}
	bool moved = draw_strip(panel, panels, &reads) > 0;
	say_gpu(panel, a, "no PCIe without a GPU");
	if (!moved && is_idle(panels, "Job's files")) {
		figure_say(panel, "and the job read nothing by read calls");
	}
}

static void add_epochs(struct figure_page *page, size_t column, const struct analysis *a)
{
	for (size_t strip = 0; strip < N_STRIPS; strip++) {
		struct figure_panel *panel = page->panels[strip * page->columns + column];
		for (size_t i = 0; i < a->epochs.n; i++) {
			figure_add_vertical(panel, (double)a->epochs.items[i].start_ns * 1e-9,
				strip == 0 ? "epoch starts" : NULL);
		}
	}
}

int figure_runs_add(struct figure_page *page, size_t column, const struct analysis *a,
	const char *title, struct error *e)
{
	struct panel_list panels;
	if (page->failed || page->n_panels != page->columns * N_STRIPS) {
		return error_errno(e, ENOMEM, "cannot make the figure");
	}
	int r = collect(a, &panels, e);
	if (r < 0) {
		return r;
	}
	struct figure_panel *memory = page->panels[column];
	struct figure_panel *utilization = page->panels[2 * page->columns + column];
	figure_title_panel(memory, title);
	bool device = has_part(&panels, &strips[STRIP_MEMORY].parts[PARTS - 1]);
	if (draw_strip(memory, &panels, &strips[STRIP_MEMORY]) == 0) {
		figure_say(memory, "no reading of memory");
	} else if (!device) {
		say_gpu(memory, a, "no memory of a device");
	}
	draw_traffic(page->panels[page->columns + column], a, &panels);
	bool gpu = has_part(&panels, &strips[STRIP_UTILIZATION].parts[1]);
	if (draw_strip(utilization, &panels, &strips[STRIP_UTILIZATION]) == 0) {
		figure_say(utilization, "no reading of CPU or GPU");
	} else if (!gpu) {
		say_gpu(utilization, a, "no GPU");
	}
	add_epochs(page, column, a);
	panels_done(&panels);
	return page->failed ? error_errno(e, ENOMEM, "cannot make the figure") : 0;
}

// The first part of a strip that the run has, as one line. False where there is none.
static bool draw_first(struct figure_panel *panel, struct panel_list *panels,
	const struct part *parts, size_t n_parts, const char *name, int style)
{
	for (size_t i = 0; i < n_parts; i++) {
		int used = style;
		if (has_part(panels, &parts[i])) {
			return draw_part(panel, panels, &parts[i], name, &used) > 0;
		}
	}
	return false;
}

static void draw_gpu(struct figure_panel *panel, const struct analysis *a,
	struct panel_list *panels, const char *name, int style)
{
	const struct part *parts = strips[STRIP_UTILIZATION].parts;
	bool first = panel && panel->n_series == 0;
	if (!draw_first(panel, panels, &parts[1], 1, name, style)) {
		draw_first(panel, panels, &parts[0], 1, name, style);
		if (first) {
			say_gpu(panel, a, "CPU (sum over cores), no GPU");
		}
	}
}

int figure_run_lines(const struct figure_line_panels *into, const struct analysis *a,
	const char *name, int style, struct error *e)
{
	struct panel_list panels;
	int r = collect(a, &panels, e);
	if (r < 0) {
		return r;
	}
	const struct part *memory = strips[STRIP_MEMORY].parts;
	bool first = into->device && into->device->n_series == 0 && !into->device->said;
	if (into->host) {
		draw_first(into->host, &panels, memory, PARTS - 1, name, style);
	}
	if (into->device &&
		!draw_first(into->device, &panels, &memory[PARTS - 1], 1, name, style) && first) {
		say_gpu(into->device, a, "no memory of a device");
	}
	if (into->gpu) {
		draw_gpu(into->gpu, a, &panels, name, style);
	}
	panels_done(&panels);
	return 0;
}
