// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// From blocks to lines: one pass over the blocks of each entity that has a line.

#include "show/panels.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "run/analysis.h"

// Panel table -------------------------------------------------------------------------------------
//
// Groups metrics into panels. In every panel blue is the job, orange a device, green memory and
// caches, grey the rest of the machine.

enum { JOB_HUE, DEVICE_HUE, CACHE_HUE, FOURTH_HUE, FIFTH_HUE, SIXTH_HUE, SEVENTH_HUE, HOST_HUE };

#define TRAFFIC true

// /proc/stat counts in steps of 10 ms for each CPU; the kernel updates pressure every 2 s.
#define HOST_CPU_WINDOW_MS 250
#define PRESSURE_HOLD_MS 4000
#define IO_WINDOW_MS 100
#define SHARE_WINDOW_MS 1000
#define SHARE_HOLD_MS 10000

#define PRESSURE(text, where, name, colour)                                                       \
	{                                                                                         \
		.label = (text), .kind = (where), .value = LINE_RATE, .metrics = {name},          \
		.hue = (colour), .hold_ms = PRESSURE_HOLD_MS, .fallback = (where) == ENTITY_HOST, \
	}
#define BYTES(text, where, name, colour)                                                 \
	{                                                                                \
		.label = (text), .kind = (where), .value = LINE_RATE, .metrics = {name}, \
		.hue = (colour), .window_ms = IO_WINDOW_MS                               \
	}
#define GAUGE(text, where, name, colour)                                             \
	{                                                                            \
		.label = (text), .kind = (where), .metrics = {name}, .hue = (colour) \
	}
static const struct panel_spec panel_table[] = {
	{"Memory", "By",
		"Host memory of the job, with each shared page counted once, and memory of its "
		"devices.",
		0, 0, false, {LIMIT_MEMORY, LIMIT_GPU_MEMORY},
		{
			{.label = "job",
				.kind = ENTITY_JOB,
				.metrics = {"strain.memory.anonymous", "strain.memory.shmem"},
				.hue = JOB_HUE},
			GAUGE("job (PSS)", ENTITY_JOB, "strain.memory.pss", FIFTH_HUE),
			{.label = "sum of resident",
				.kind = ENTITY_JOB,
				.metrics = {"strain.memory.rss_sum"},
				.hue = HOST_HUE,
				.fallback = true},
			GAUGE("GPU", ENTITY_GPU, "hw.gpu.memory.usage", DEVICE_HUE),
			GAUGE("GPU, this job", ENTITY_GPU, "strain.gpu.job.memory.usage",
				FOURTH_HUE),
			GAUGE("job's page cache", ENTITY_JOB, "strain.memory.file", CACHE_HUE),
		}},
	{"CPU", "{cpu}", "CPUs in use.", 0, 0, false, {LIMIT_CPUS},
		{
			{.label = "job",
				.kind = ENTITY_JOB,
				.value = LINE_RATE,
				.metrics = {"process.cpu.time"},
				.hue = JOB_HUE},
			{.label = "whole host",
				.kind = ENTITY_HOST,
				.value = LINE_RATE,
				.metrics = {"system.cpu.time.user", "system.cpu.time.nice",
					"system.cpu.time.system", "system.cpu.time.irq",
					"system.cpu.time.softirq", "system.cpu.time.steal"},
				.hue = HOST_HUE,
				.window_ms = HOST_CPU_WINDOW_MS},
			{.label = "throttled by the quota",
				.kind = ENTITY_JOB,
				.value = LINE_RATE,
				.metrics = {"strain.cgroup.cpu.throttled_time"},
				.hue = FOURTH_HUE,
				.window_ms = SHARE_WINDOW_MS},
		}},
	{"GPU", "1", "Share of time with a kernel on the device, and how busy it kept the device.",
		1, 1, false, {LIMIT_NONE},
		{
			GAUGE("a kernel ran", ENTITY_GPU, "hw.gpu.utilization", DEVICE_HUE),
			GAUGE("SMs active", ENTITY_GPU, "strain.gpu.sm.activity", FOURTH_HUE),
			GAUGE("its memory active", ENTITY_GPU, "strain.gpu.dram.activity",
				CACHE_HUE),
		}},
	{"PCIe", "By/s", "Bytes between host and device.", 0, 0, TRAFFIC, {LIMIT_NONE},
		{
			BYTES("host to device", ENTITY_GPU, "strain.gpu.pcie.host_to_device",
				JOB_HUE),
			BYTES("device to host", ENTITY_GPU, "strain.gpu.pcie.device_to_host",
				DEVICE_HUE),
		}},
	{"Job's files", "By/s",
		"Bytes that the job read through system calls, and the part read from storage.", 0,
		0, TRAFFIC, {LIMIT_NONE},
		{
			BYTES("asked for", ENTITY_JOB, "strain.io.read", JOB_HUE),
			BYTES("from storage", ENTITY_JOB, "process.disk.io.read", DEVICE_HUE),
			BYTES("to storage", ENTITY_JOB, "process.disk.io.write", FOURTH_HUE),
		}},
	{"Page cache", "1",
		"Share of the job's reads that did not come from storage (without reads through "
		"memory maps).",
		1, 1, false, {LIMIT_NONE},
		{
			{.label = "share of reads",
				.kind = ENTITY_JOB,
				.value = LINE_SHARE,
				.metrics = {"process.disk.io.read"},
				.of = "strain.io.read",
				.hue = CACHE_HUE,
				.window_ms = SHARE_WINDOW_MS,
				.hold_ms = SHARE_HOLD_MS},
		}},
	{"Disk", "By/s", "Bytes moved by the disks, for all programs.", 0, 0, TRAFFIC, {LIMIT_NONE},
		{
			BYTES("read", ENTITY_DISK, "system.disk.io.read", JOB_HUE),
			BYTES("written", ENTITY_DISK, "system.disk.io.write", DEVICE_HUE),
		}},
	{"Network", "By/s", "Bytes through the host's network interfaces.", 0, 0, TRAFFIC,
		{LIMIT_NONE},
		{
			BYTES("received", ENTITY_NETWORK, "system.network.io.receive", JOB_HUE),
			BYTES("sent", ENTITY_NETWORK, "system.network.io.transmit", DEVICE_HUE),
		}},
	{"To other machines", "1",
		"Share of time in which data of the job was in transit to another machine "
		"(TCP).",
		0.05, 1, TRAFFIC, {LIMIT_NONE},
		{
			{.label = "in transit to",
				.kind = ENTITY_NETWORK,
				.value = LINE_RATE,
				.metrics = {"strain.tcp.busy_time"},
				.of_peers = true,
				.hue = JOB_HUE,
				.window_ms = SHARE_WINDOW_MS},
		}},
	{"Pressure", "1", "Share of time in which a task waited for the resource (PSI, some).",
		0.05, 1, false, {LIMIT_NONE},
		{
			PRESSURE("cpu", ENTITY_JOB, "strain.cgroup.pressure.cpu.some", JOB_HUE),
			PRESSURE("memory", ENTITY_JOB, "strain.cgroup.pressure.memory.some",
				CACHE_HUE),
			PRESSURE("io", ENTITY_JOB, "strain.cgroup.pressure.io.some", DEVICE_HUE),
			PRESSURE("cpu, host", ENTITY_HOST, "strain.pressure.cpu.some", JOB_HUE),
			PRESSURE("memory, host", ENTITY_HOST, "strain.pressure.memory.some",
				CACHE_HUE),
			PRESSURE("io, host", ENTITY_HOST, "strain.pressure.io.some", DEVICE_HUE),
		}},
	{"Processes", "{process}", "Number of processes of the job.", 0, 0, false, {LIMIT_NONE},
		{
			GAUGE("processes", ENTITY_JOB, "strain.process.count", JOB_HUE),
			GAUGE("threads", ENTITY_JOB, "process.thread.count", HOST_HUE),
		}},
	{"GPU power", "W", "Power drawn by the device.", 0, 0, false, {LIMIT_NONE},
		{
			GAUGE("power", ENTITY_GPU, "hw.power", DEVICE_HUE),
		}},
};
static const size_t panel_table_length = ARRAY_LENGTH(panel_table);

// Panels ------------------------------------------------------------------------------------------

#define SEVERAL_HUE 1 // of the first of several devices
#define COUNTER_GAP_US 2000000 // no reading succeeded for this long
#define SHARE_LEAST_BYTES 65536.0 // a share of fewer bytes is meaningless
#define LINE_BUCKETS 65536 // 32 bytes each: the memory bound of a line

// Selection of lines ------------------------------------------------------------------------------

static struct panel *add_panel(
	struct panel_list *panels, const struct panel_spec *spec, const char *line)
{
	void *items = panels->items;
	if (array_reserve(&items, &panels->capacity, panels->n + 1, sizeof(*panels->items)) < 0) {
		return NULL;
	}
	panels->items = items;
	struct text title = {0};
	text_append_string(&title, spec->title);
	if (line) {
		text_format(&title, ", %s", line);
	}
	struct panel *panel = &panels->items[panels->n];
	*panel = (struct panel){.spec = spec, .title = text_steal(&title)};
	panels->n += panel->title != NULL;
	return panel->title ? panel : NULL;
}

// False: the run has no such metric.
static bool line_add_metric(
	struct line *line, const struct analysis *a, const char *name, size_t *index)
{
	const struct metric_row *metric = metric_list_find_name(
		&a->tables.metrics, line->spec->kind, name);
	if (!metric) {
		return false;
	}
	line->ids[*index] = metric->id;
	line->scales[*index] = metric->scale;
	line->help = *index == 0 ? metric_row_help(metric) : line->help;
	++*index;
	return true;
}

static bool line_find_metrics(struct line *line, const struct analysis *a)
{
	const struct line_spec *spec = line->spec;
	for (size_t i = 0; i < LINE_METRICS && spec->metrics[i]; i++) {
		if (!line_add_metric(line, a, spec->metrics[i], &line->n_ids)) {
			return false;
		}
	}
	return !spec->of || line_add_metric(line, a, spec->of, &line->n_ids);
}

// The label of one of several devices: its name, and the figure if the panel's title does not name
// it.
static char *device_label(const struct panel *panel, const struct line_spec *spec,
	const struct entity *entity, size_t number)
{
	struct text label = {0};
	if (spec->kind == ENTITY_GPU) {
		text_format(&label, "GPU %zu", number);
	} else {
		text_append_printable(&label, entity->name, strlen(entity->name));
	}
	if (!panel->one_spec && strcmp(spec->label, "GPU") != 0) {
		text_format(&label, ": %s", spec->label);
	}
	return text_steal(&label);
}

static int add_line(struct panel *panel, const struct analysis *a, const struct line_spec *spec,
	const struct entity *entity, size_t number, bool several)
{
	struct line line = {.spec = spec, .entity = entity->id};
	if (!line_find_metrics(&line, a)) {
		return 0;
	}
	void *lines = panel->lines;
	int r = array_reserve(&lines, &panel->capacity, panel->n + 1, sizeof(*panel->lines));
	panel->lines = lines;
	line.label = several || spec->of_peers ? device_label(panel, spec, entity, number)
	                                       : strdup(spec->label);
	if (r < 0 || !line.label) {
		free(line.label);
		return -ENOMEM;
	}
	// A device has the same colour in every panel.
	line.hue = several ? (unsigned)(SEVERAL_HUE + number) : spec->hue;
	buckets_init(&line.buckets, LINE_BUCKETS);
	panel->lines[panel->n++] = line;
	return 0;
}

static bool belongs_to(const struct entity *entity, const struct line_spec *spec)
{
	return entity->kind == spec->kind && entity_flag(entity, "peer") == spec->of_peers;
}

static size_t count_entities(const struct analysis *a, const struct line_spec *spec)
{
	size_t n = 0;
	for (size_t i = 0; i < a->tables.entities.n; i++) {
		n += belongs_to(&a->tables.entities.items[i], spec);
	}
	return n;
}

// Adds a line for each entity of the row's kind.
static int add_lines(struct panel *panel, const struct analysis *a, const struct line_spec *spec)
{
	size_t number = 0, n = count_entities(a, spec);
	for (size_t i = 0; i < a->tables.entities.n; i++) {
		const struct entity *entity = &a->tables.entities.items[i];
		if (!belongs_to(entity, spec)) {
			continue;
		}
		if (number >= PANEL_MOST_LINES) {
			panel->left_out++;
			continue;
		}
		int r = add_line(panel, a, spec, entity, number++, n > 1);
		if (r < 0) {
			return r;
		}
	}
	return 0;
}

static size_t count_specs(const struct panel_spec *spec)
{
	size_t n = 0;
	while (n < PANEL_LINES && spec->lines[n].label) {
		n++;
	}
	return n;
}

// Several devices with several lines each would be unreadable: each figure then gets its own panel.
static int plan_panel(
	struct panel_list *panels, const struct analysis *a, const struct panel_spec *spec)
{
	size_t n = count_specs(spec);
	bool split = n > 1 && spec->lines[0].kind == spec->lines[n - 1].kind &&
	             count_entities(a, &spec->lines[0]) > 1;
	struct panel *panel = split ? NULL : add_panel(panels, spec, NULL);
	for (size_t i = 0; i < n; i++) {
		panel = split ? add_panel(panels, spec, spec->lines[i].label) : panel;
		if (panel) {
			panel->one_spec = split || n == 1;
		}
		int r = panel ? add_lines(panel, a, &spec->lines[i]) : -ENOMEM;
		if (r < 0) {
			return r;
		}
	}
	return 0;
}

// From readings to buckets ------------------------------------------------------------------------

static int line_put(struct line *line, const struct panel_list *panels, int64_t t_us, double value,
	double minimum, double maximum, double weight)
{
	int r = buckets_add(&line->buckets, t_us, value, minimum, maximum, weight);
	return r < 0 ? r
	             : buckets_add_detail(line->details, panels->windows, panels->n_windows, t_us,
			       value, minimum, maximum, weight);
}

static void line_set_base(struct line *line, int64_t t_us, double value, double of)
{
	line->based = true;
	line->base_us = t_us;
	line->base_value = value;
	line->base_of = of;
}

// Whether the growth since the base is too little, or over too short a time, for a value.
static bool line_waits(const struct line *line, int64_t passed_us, double grown, double of_grown)
{
	const struct line_spec *spec = line->spec;
	if (passed_us <= 0 || passed_us < (int64_t)spec->window_ms * 1000) {
		return true;
	}
	bool little = spec->of ? of_grown < SHARE_LEAST_BYTES : grown <= 0;
	return little && passed_us < (int64_t)spec->hold_ms * 1000;
}

// Adds a reading of one or two counters. The growth since the base is drawn at the middle of the
// time.
static int line_add_counter(
	struct line *line, const struct panel_list *panels, int64_t t_us, double value, double of)
{
	double grown = value - line->base_value, of_grown = of - line->base_of;
	int64_t passed_us = t_us - line->base_us;
	if (!isfinite(value) || !isfinite(of)) {
		// A counter loses nothing by one failed reading; a long failure is a gap.
		if (!line->based || passed_us < COUNTER_GAP_US) {
			return 0;
		}
		line->based = false;
		return line_put(line, panels, t_us, NAN, NAN, NAN, 1);
	}
	if (!line->based || grown < 0 || of_grown < 0) {
		line_set_base(line, t_us, value, of);
		return 0;
	}
	if (line_waits(line, passed_us, grown, of_grown)) {
		return 0;
	}
	double weight = (double)passed_us * 1e-6, result = grown / weight;
	if (line->spec->value == LINE_SHARE) {
		weight = of_grown;
		result = of_grown < SHARE_LEAST_BYTES ? NAN : fmax(0, 1 - grown / of_grown);
	}
	int64_t middle_us = line->base_us + passed_us / 2;
	line_set_base(line, t_us, value, of);
	return line_put(line, panels, middle_us, result, result, result, weight);
}

// The three columns of a metric in a block; they are the same if the run was not thinned.
struct metric_columns {
	const int64_t *mean, *minimum, *maximum;
};

static struct metric_columns find_columns(const struct block *b, uint32_t metric)
{
	struct metric_columns found = {0};
	for (uint32_t i = 0; i < b->n_columns; i++) {
		if (b->metric_ids[i] != metric) {
			continue;
		}
		switch (b->aggregates ? b->aggregates[i] : AGGREGATE_NONE) {
		case AGGREGATE_MINIMUM:
			found.minimum = b->columns[i];
			break;
		case AGGREGATE_MAXIMUM:
			found.maximum = b->columns[i];
			break;
		default:
			found.mean = b->columns[i];
		}
	}
	// A thinned counter keeps its last value, which is its maximum.
	found.mean = found.mean ? found.mean : found.maximum;
	found.minimum = found.minimum ? found.minimum : found.mean;
	found.maximum = found.maximum ? found.maximum : found.mean;
	return found;
}

static double value_at(const int64_t *column, uint32_t row, double scale)
{
	return column[row] == VALUE_MISSING ? NAN : (double)column[row] * scale;
}

struct line_columns {
	struct metric_columns items[LINE_METRICS + 1];
};

static int line_add_row(struct line *line, const struct panel_list *panels,
	const struct line_columns *columns, int64_t t_us, uint32_t row)
{
	double mean = 0, minimum = 0, maximum = 0;
	size_t n = line->n_ids - (line->spec->of != NULL);
	for (size_t i = 0; i < n; i++) {
		const struct metric_columns *c = &columns->items[i];
		mean += value_at(c->mean, row, line->scales[i]);
		minimum += value_at(c->minimum, row, line->scales[i]);
		maximum += value_at(c->maximum, row, line->scales[i]);
	}
	if (line->spec->value == LINE_GAUGE) {
		return line_put(line, panels, t_us, mean, minimum, maximum, 1);
	}
	double of = line->spec->of ? value_at(columns->items[n].maximum, row, line->scales[n]) : 0;
	return line_add_counter(line, panels, t_us, maximum, of);
}

static int line_add_block(struct line *line, const struct panel_list *panels, const struct block *b)
{
	struct line_columns columns;
	for (size_t i = 0; i < line->n_ids; i++) {
		columns.items[i] = find_columns(b, line->ids[i]);
		if (!columns.items[i].mean) {
			return 0;
		}
	}
	for (uint32_t row = 0; row < b->n_rows; row++) {
		int r = line_add_row(line, panels, &columns, b->t[row], row);
		if (r < 0) {
			return r;
		}
	}
	return 0;
}

static int add_block(void *context, int64_t entity, const struct block *b)
{
	struct panel_list *panels = context;
	for (size_t i = 0; i < panels->n; i++) {
		struct panel *panel = &panels->items[i];
		for (size_t j = 0; j < panel->n; j++) {
			int r = panel->lines[j].entity == entity
			                ? line_add_block(&panel->lines[j], panels, b)
			                : 0;
			if (r < 0) {
				return r;
			}
		}
	}
	return 0;
}

static bool has_line(const struct panel_list *panels, int64_t entity)
{
	for (size_t i = 0; i < panels->n; i++) {
		for (size_t j = 0; j < panels->items[i].n; j++) {
			if (panels->items[i].lines[j].entity == entity) {
				return true;
			}
		}
	}
	return false;
}

// Selection by readings ---------------------------------------------------------------------------

static void line_done(struct line *line)
{
	free(line->label);
	buckets_done(&line->buckets);
	text_done(&line->packed.base64);
	buckets_details_done(line->details, DETAILS_MAX);
}

static void panel_done(struct panel *panel)
{
	for (size_t i = 0; i < panel->n; i++) {
		line_done(&panel->lines[i]);
	}
	free(panel->lines);
	free(panel->title);
}

// A fallback line is only for a panel without any other line of the job.
static bool line_stays(const struct line *line, const struct panel *panel, size_t kept)
{
	if (line->buckets.samples == 0) {
		return false;
	}
	for (size_t i = 0; line->spec->fallback && i < kept; i++) {
		if (!panel->lines[i].spec->fallback) {
			return false;
		}
	}
	return true;
}

static bool nothing_moved(const struct panel *panel)
{
	for (size_t i = 0; i < panel->n; i++) {
		if (buckets_figures(&panel->lines[i].buckets).maximum > 0) {
			return false;
		}
	}
	return panel->spec->traffic;
}

static void drop_empty(struct panel_list *panels)
{
	size_t n = 0;
	for (size_t i = 0; i < panels->n; i++) {
		struct panel *panel = &panels->items[i];
		size_t kept = 0;
		for (size_t j = 0; j < panel->n; j++) {
			if (line_stays(&panel->lines[j], panel, kept)) {
				panel->lines[kept++] = panel->lines[j];
			} else {
				line_done(&panel->lines[j]);
			}
		}
		panel->n = kept;
		bool idle = kept > 0 && nothing_moved(panel);
		if (idle) {
			text_format(&panels->idle, "%s%s", panels->idle.length ? ", " : "",
				panel->title);
		}
		if (kept > 0 && !idle) {
			panels->items[n++] = *panel;
		} else {
			panel_done(panel);
		}
	}
	panels->n = n;
}

int panels_collect(const struct analysis *a, struct panel_list *ret, struct error *e)
{
	struct panel_list panels = {0};
	int r = 0;
	panels.n_windows = buckets_detail_windows(&a->phases, panels.windows);
	for (size_t i = 0; r == 0 && i < panel_table_length; i++) {
		r = plan_panel(&panels, a, &panel_table[i]);
	}
	if (r < 0) {
		error_errno(e, -r, "cannot plan the panels");
	}
	for (size_t i = 0; r == 0 && i < a->tables.entities.n; i++) {
		int64_t entity = a->tables.entities.items[i].id;
		if (has_line(&panels, entity)) {
			r = reader_blocks(a->tables.reader, entity, add_block, &panels, e);
		}
	}
	if (r < 0) {
		panels_done(&panels);
		return r;
	}
	drop_empty(&panels);
	*ret = panels;
	return 0;
}

static struct line *largest_line(struct panel_list *panels, size_t *total)
{
	struct line *largest = NULL;
	*total = 0;
	for (size_t i = 0; i < panels->n; i++) {
		for (size_t j = 0; j < panels->items[i].n; j++) {
			struct line *line = &panels->items[i].lines[j];
			size_t length = line->packed.base64.length;
			*total += length;
			if (!largest || length > largest->packed.base64.length) {
				largest = line;
			}
		}
	}
	return largest;
}

int panels_pack(struct panel_list *panels, size_t most)
{
	int r = 0;
	for (size_t i = 0; i < panels->n; i++) {
		for (size_t j = 0; r == 0 && j < panels->items[i].n; j++) {
			struct line *line = &panels->items[i].lines[j];
			r = buckets_pack(&line->buckets, &line->packed);
		}
	}
	size_t total;
	struct line *line = largest_line(panels, &total);
	while (r == 0 && line && total > most && line->buckets.n > 16) {
		buckets_coarsen(&line->buckets);
		r = buckets_pack(&line->buckets, &line->packed);
		line = largest_line(panels, &total);
	}
	for (size_t i = 0; i < panels->n; i++) {
		for (size_t j = 0; r == 0 && j < panels->items[i].n; j++) {
			struct line *packed = &panels->items[i].lines[j];
			r = buckets_pack_details(
				packed->details, panels->n_windows, &packed->buckets);
		}
	}
	return r;
}

void panels_done(struct panel_list *panels)
{
	for (size_t i = 0; i < panels->n; i++) {
		panel_done(&panels->items[i]);
	}
	text_done(&panels->idle);
	free(panels->items);
	*panels = (struct panel_list){0};
}
