// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Three panels of a run, taken from those of the report.

#include "show/figure_run.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "run/analysis.h"
#include "run/overview.h"
#include "show/panels.h"

#define BUCKETS_MOST 240 // of a line: what a column of a paper can show
#define SPREAD_LEAST 1.5 // readings in a bucket, on average: from here on some share one
#define MEMORY_BUCKETS 8192

// A line of a panel of the report, and what it is called here.
struct part {
	const char *panel;
	const char *line;
	const char *name;
	const char *several; // one of several devices: "device 2"
};

enum strip { STRIP_MEMORY, STRIP_TRAFFIC, STRIP_UTILIZATION, N_STRIPS };

#define PARTS 2

struct strip_spec {
	const char *label;
	const char *unit;
	struct part parts[PARTS];
};

// The host's memory stands before the memory strip's parts: it is no line of the report.
static const struct strip_spec strips[N_STRIPS] = {
	[STRIP_MEMORY] = {"memory", "By", {{"Memory", "GPU", "device", "device"}}},
	[STRIP_TRAFFIC] = {"PCIe", "By/s",
		{
			{"PCIe", "host to device", "to the device", "to device"},
			{"PCIe", "device to host", "from the device", "from device"},
		}},
	[STRIP_UTILIZATION] = {"utilisation", "1",
		{
			{"CPU", "job", "CPU (sum over cores)", NULL},
			{"GPU", "a kernel ran", "GPU", "GPU"},
		}},
};

// Where there is no GPU nothing goes over PCIe: what the job reads has the place.
static const struct strip_spec reads = {"reads", "By/s",
	{
		{"Job's files", "asked for", "by read calls", NULL},
		{"Job's files", "from storage", "from storage", NULL},
	}};

struct figure_page *figure_run_new(size_t n_runs)
{
	struct figure_page *page = figure_new(NULL, n_runs);
	for (size_t i = 0; page && i < n_runs * N_STRIPS; i++) {
		struct figure_panel *panel = figure_add_panel(page, NULL);
		if (panel) {
			figure_axis_set(panel, &panel->x, "time", "s");
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
	if ((double)buckets->samples > (double)buckets->n * SPREAD_LEAST) {
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

// What tables have as the peak of the host's memory, over time. 1 where there is such a line, else
// 0; -ENOMEM.
static int draw_host_memory(
	struct figure_panel *into, const struct analysis *a, const char *own_name, int style)
{
	const struct entity *job = entity_first(&a->tables.entities, ENTITY_JOB);
	struct job_memory memory = {0};
	struct buckets buckets;
	int r = job ? job_memory_read(a->tables.reader, job->id, &memory) : 0;
	buckets_init(&buckets, MEMORY_BUCKETS);
	for (size_t i = 0; r == 0 && i < memory.series.n; i++) {
		r = buckets_add(&buckets, memory.series.t_us[i], memory.series.values[i],
			memory.series.minimum[i], memory.series.maximum[i], 1);
	}
	if (r == 0 && memory.kind) {
		bool whole = own_name || strcmp(memory.kind, "PSS") == 0;
		char name[64];
		snprintf(name, sizeof(name), "host%s%s%s", whole ? "" : " (",
			whole ? "" : memory.kind, whole ? "" : ")");
		draw_line(into, &buckets, own_name ? own_name : name, style);
		r = 1;
	}
	buckets_done(&buckets);
	job_memory_done(&memory);
	return r;
}

static size_t draw_strip(struct figure_panel *panel, struct panel_list *panels,
	const struct strip_spec *strip, int style)
{
	size_t n = 0;
	for (size_t i = 0; i < PARTS && strip->parts[i].panel; i++) {
		n += draw_part(panel, panels, &strip->parts[i], NULL, &style);
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
	return entity_first(&a->tables.entities, ENTITY_GPU) != NULL;
}

// Why nothing of a GPU was measured, as the run says it: the reason that the most metrics have.
static void append_gpu_reason(struct text *t, const struct analysis *a)
{
	const struct missing_group *found = NULL;
	for (size_t i = 0; i < a->tables.missing.n; i++) {
		const struct missing_group *group = &a->tables.missing.items[i];
		bool more = !found || group->n_metrics > found->n_metrics;
		if (strcmp(group->kind, "gpu") == 0 && more) {
			found = group;
		}
	}
	if (found) {
		missing_list_append_reason(t, found);
	} else {
		text_append_string(t, has_gpu(a) ? "no reading" : "no GPU in the run");
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
	if (draw_strip(panel, panels, &strips[STRIP_TRAFFIC], 0) > 0) {
		return;
	}
	if (has_gpu(a) && is_idle(panels, "PCIe")) {
		figure_say(panel, "no PCIe traffic");
		return;
	}
	if (has_gpu(a)) {
		say_gpu(panel, a, "PCIe");
		return;
	}
	bool moved = draw_strip(panel, panels, &reads, 0) > 0;
	say_gpu(panel, a, "no PCIe without a GPU");
	if (!moved && is_idle(panels, "Job's files")) {
		figure_say(panel, "and the job made no read calls");
	}
}

static void add_epochs(struct figure_page *page, size_t column, const struct analysis *a)
{
	for (size_t strip = 0; strip < N_STRIPS; strip++) {
		struct figure_panel *panel = page->panels[strip * page->columns + column];
		for (size_t i = 0; i < a->tables.epochs.n; i++) {
			figure_add_vertical(panel,
				(double)a->tables.epochs.items[i].start_ns * 1e-9,
				strip == 0 ? "epoch starts" : NULL);
		}
	}
}

static int draw_memory(
	struct figure_panel *panel, const struct analysis *a, struct panel_list *panels)
{
	int host = draw_host_memory(panel, a, NULL, 0);
	size_t devices = draw_strip(panel, panels, &strips[STRIP_MEMORY], host > 0);
	if (host == 0) {
		figure_say(panel, "no reading of the host's memory");
	}
	if (devices == 0) {
		say_gpu(panel, a, "no memory of a device");
	}
	return host < 0 ? host : 0;
}

static void draw_utilization(
	struct figure_panel *panel, const struct analysis *a, struct panel_list *panels)
{
	bool gpu = has_part(panels, &strips[STRIP_UTILIZATION].parts[1]);
	if (draw_strip(panel, panels, &strips[STRIP_UTILIZATION], 0) == 0) {
		figure_say(panel, "no reading of CPU or GPU");
	} else if (!gpu) {
		say_gpu(panel, a, "no GPU");
	}
}

int figure_run_add(struct figure_page *page, size_t column, const struct analysis *a,
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
	figure_title_panel(page->panels[column], title);
	r = draw_memory(page->panels[column], a, &panels);
	draw_traffic(page->panels[page->columns + column], a, &panels);
	draw_utilization(page->panels[2 * page->columns + column], a, &panels);
	add_epochs(page, column, a);
	panels_done(&panels);
	return r < 0 || page->failed ? error_errno(e, ENOMEM, "cannot make the figure") : 0;
}

// A part of a strip as one line. False where the run has none.
static bool draw_one(struct figure_panel *panel, struct panel_list *panels, const struct part *part,
	const char *name, int style)
{
	return has_part(panels, part) && draw_part(panel, panels, part, name, &style) > 0;
}

static void draw_gpu(struct figure_panel *panel, const struct analysis *a,
	struct panel_list *panels, const char *name, int style)
{
	const struct part *parts = strips[STRIP_UTILIZATION].parts;
	bool first = panel && panel->n_series == 0;
	if (!draw_one(panel, panels, &parts[1], name, style) &&
		draw_one(panel, panels, &parts[0], name, style) && first) {
		figure_axis_set(panel, &panel->y, "CPU utilisation", "1");
		say_gpu(panel, a, "CPU (sum over cores), no GPU");
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
	bool first = into->device && into->device->n_series == 0 && !into->device->said;
	if (into->host) {
		r = draw_host_memory(into->host, a, name, style);
	}
	if (into->device &&
		!draw_one(into->device, &panels, &strips[STRIP_MEMORY].parts[0], name, style) &&
		first) {
		say_gpu(into->device, a, "no memory of a device");
	}
	if (into->gpu) {
		draw_gpu(into->gpu, a, &panels, name, style);
	}
	panels_done(&panels);
	return r < 0 ? error_errno(e, ENOMEM, "cannot make the figure") : 0;
}
