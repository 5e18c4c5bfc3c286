// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Reads this machine's NVIDIA GPUs with the NVML source, as the recorder would, prints what it saw
// and what the readings cost, and checks what must hold on any card:
//
//   real_card [SECONDS] [-- COMMAND [ARGUMENT]...]
//
// COMMAND is a load; its process is then the job. Exit status 0, 1 where a check failed, 77 where
// there is no GPU.

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "machine/tree.h"
#include "record/sample/feed.h"
#include "record/sample/source.h"

extern const struct source source_nvml;

#define SKIPPED 77
#define JOB_ENTITY 2
#define MAX_GROUPS 16
#define MAX_SERIES 2048

// What came of one metric for one entity.
struct series {
	int64_t entity;
	const struct metric *metric;
	uint64_t rows;
	uint64_t gaps;
	int64_t first;
	int64_t last;
	int64_t minimum;
	int64_t maximum;
	bool fell;
	char reason[200];
};

struct cost {
	uint64_t readings;
	uint64_t total_ns;
	uint64_t longest_ns;
	uint64_t due_ns;
	bool ended;
};

static struct {
	pid_t job;
	struct registry registry;
	struct feed *feed;
	struct sink *sink;
	struct series series[MAX_SERIES];
	size_t n_series;
	struct cost costs[MAX_GROUPS];
	unsigned failures;
} check;

// The job's tree, as far as the source asks: one process.
int64_t tree_entity_of(struct tree *tree, pid_t pid)
{
	(void)tree;
	return check.job > 0 && pid == check.job ? JOB_ENTITY : 0;
}

int tree_snapshot(struct tree *tree, struct tree_member **items, size_t *n, size_t *capacity)
{
	(void)tree;
	void *grown = *items;
	if (array_reserve(&grown, capacity, 1, sizeof(**items)) < 0) {
		return -ENOMEM;
	}
	*items = grown;
	(*items)[0] = (struct tree_member){.pid = check.job, .entity = JOB_ENTITY};
	*n = check.job > 0;
	return 0;
}

static const struct metric *metric_of(uint32_t id)
{
	for (size_t i = 0; i < check.registry.n_rows; i++) {
		const struct registry_row *row = &check.registry.rows[i];
		for (size_t j = 0; j < row->group->n_metrics; j++) {
			if (row->ids[j] == id) {
				return &row->group->metrics[j];
			}
		}
	}
	return NULL;
}

static struct series *series_of(int64_t entity, uint32_t metric_id)
{
	const struct metric *metric = metric_of(metric_id);
	for (size_t i = 0; i < check.n_series; i++) {
		if (check.series[i].entity == entity && check.series[i].metric == metric) {
			return &check.series[i];
		}
	}
	if (check.n_series == MAX_SERIES) {
		return &check.series[MAX_SERIES - 1];
	}
	check.series[check.n_series] = (struct series){.entity = entity, .metric = metric};
	return &check.series[check.n_series++];
}

static void add_value(struct series *s, int64_t value)
{
	if (value == VALUE_MISSING) {
		s->gaps++;
		return;
	}
	s->fell = s->fell || (s->rows > 0 && value < s->last);
	s->first = s->rows ? s->first : value;
	s->minimum = s->rows && s->minimum < value ? s->minimum : value;
	s->maximum = s->rows && s->maximum > value ? s->maximum : value;
	s->last = value;
	s->rows++;
}

static void take_item(const struct item *item)
{
	switch (item->kind) {
	case ITEM_BLOCK:
		for (uint32_t c = 0; c < item->block.n_columns; c++) {
			struct series *s = series_of(item->entity, item->block.metric_ids[c]);
			for (uint32_t i = 0; i < item->block.n_rows; i++) {
				add_value(s, item->block.columns[c][i]);
			}
		}
		break;
	case ITEM_MISSING: {
		struct series *s = series_of(item->entity, item->metric);
		snprintf(s->reason, sizeof(s->reason), "%s", item->text);
		break;
	}
	case ITEM_ENTITY:
		printf("entity %d: %s\n  %s\n", (int)item->entity, item->name,
			item->text ? item->text : "");
		break;
	case ITEM_EVENT:
		printf("event %s: %s\n", item->event, item->text);
		break;
	default:
		break;
	}
}

static void collect(void)
{
	sink_flush(check.sink);
	for (struct item *item = feed_take(check.feed, 0), *next; item; item = next) {
		next = item->next;
		take_item(item);
		item_free(item);
	}
}

static void read_due(void *state)
{
	for (size_t i = 0; i < source_nvml.n_groups; i++) {
		const struct group *group = &source_nvml.groups[i];
		struct cost *cost = &check.costs[i];
		uint64_t now = clock_monotonic_ns();
		if (cost->ended || now < cost->due_ns) {
			continue;
		}
		cost->ended = group->read(state, check.sink, now) < 0;
		uint64_t took = clock_monotonic_ns() - now;
		cost->due_ns = now + group->interval_ns;
		cost->readings++;
		cost->total_ns += took;
		cost->longest_ns = took > cost->longest_ns ? took : cost->longest_ns;
	}
}

static void run(void *state, double seconds)
{
	uint64_t end = clock_monotonic_ns() + (uint64_t)(seconds * 1e9);
	while (clock_monotonic_ns() < end) {
		read_due(state);
		collect();
		usleep(5000);
	}
}

static void print_costs(void)
{
	printf("\n%-16s %9s %12s %12s %12s\n", "group", "readings", "mean us", "longest us",
		"% of a core");
	for (size_t i = 0; i < source_nvml.n_groups; i++) {
		const struct cost *cost = &check.costs[i];
		double mean = cost->readings ? (double)cost->total_ns / (double)cost->readings : 0;
		printf("%-16s %9llu %12.1f %12.1f %12.3f%s\n", source_nvml.groups[i].name,
			(unsigned long long)cost->readings, mean / 1e3,
			(double)cost->longest_ns / 1e3,
			100 * mean / (double)source_nvml.groups[i].interval_ns,
			cost->ended ? " (ended: nothing to read)" : "");
	}
}

static void print_series(void)
{
	printf("\n%6s %-34s %6s %5s %14s %14s %14s\n", "entity", "metric", "rows", "gaps",
		"minimum", "maximum", "last");
	for (size_t i = 0; i < check.n_series; i++) {
		const struct series *s = &check.series[i];
		double scale = s->metric->scale;
		printf("%6d %-34s ", (int)s->entity, s->metric->name);
		if (s->rows > 0) {
			printf("%6llu %5llu %14.6g %14.6g %14.6g %s", (unsigned long long)s->rows,
				(unsigned long long)s->gaps, (double)s->minimum * scale,
				(double)s->maximum * scale, (double)s->last * scale,
				s->metric->unit);
		}
		printf("%s%s\n", s->reason[0] ? " missing: " : "", s->reason);
	}
}

static void expect(bool holds, const struct series *s, const char *what)
{
	if (!holds) {
		check.failures++;
		printf("FAILED: %s of entity %d: %s\n", s->metric->name, (int)s->entity, what);
	}
}

static const struct series *find(int64_t entity, const char *name)
{
	for (size_t i = 0; i < check.n_series; i++) {
		if (check.series[i].entity == entity &&
			strcmp(check.series[i].metric->name, name) == 0) {
			return check.series[i].rows ? &check.series[i] : NULL;
		}
	}
	return NULL;
}

static void check_power(const struct series *energy, double seconds)
{
	const struct series *power = find(energy->entity, "hw.power");
	double joules = (double)(energy->last - energy->first) * energy->metric->scale;
	if (power) {
		double lowest = (double)power->minimum * power->metric->scale * seconds;
		double highest = (double)power->maximum * power->metric->scale * seconds;
		printf("\nentity %d: %.1f J by the energy counter; power says %.1f to %.1f J\n",
			(int)energy->entity, joules, lowest, highest);
		expect(joules >= 0.3 * lowest && joules <= 3 * highest, energy,
			"energy and power contradict each other");
	}
}

// Where a load was given, it is one process of the job, and no other's.
static void check_sharing(const struct series *processes)
{
	const struct series *others = find(processes->entity, "strain.gpu.others.processes");
	const struct series *ours = find(processes->entity, "strain.gpu.job.utilization");
	const struct series *theirs = find(processes->entity, "strain.gpu.others.utilization");
	expect(processes->maximum <= (check.job > 0), processes, "more processes than the job has");
	expect(others != NULL, processes, "other programs' processes are not known");
	if (check.job == 0) {
		expect(!ours || ours->maximum == 0, processes, "busy for a job that is not there");
	}
	if (theirs && others && others->maximum == 0) {
		expect(theirs->maximum == 0, theirs, "busy for nobody");
	}
}

static void check_series(const struct series *s, double seconds)
{
	bool ratio = strcmp(s->metric->unit, "1") == 0 && s->metric->kind == METRIC_GAUGE;
	expect(s->rows > 0 || s->gaps > 0 || s->reason[0], s, "neither a value nor a reason");
	if (s->rows == 0) {
		return;
	}
	if (s->metric->kind == METRIC_COUNTER) {
		expect(!s->fell, s, "a counter fell");
	}
	if (ratio) {
		expect(s->minimum >= 0 && (double)s->maximum * s->metric->scale <= 1.0001, s,
			"a ratio outside of 0 to 1");
	}
	if (strcmp(s->metric->name, "hw.gpu.memory.usage") == 0) {
		const struct series *limit = find(s->entity, "hw.gpu.memory.limit");
		expect(limit && s->maximum <= limit->last, s, "more than the GPU has");
	}
	if (strcmp(s->metric->name, "strain.gpu.job.processes") == 0) {
		check_sharing(s);
	}
	if (strcmp(s->metric->name, "hw.energy") == 0) {
		check_power(s, seconds);
	}
}

static void start_load(char **command)
{
	check.job = fork();
	if (check.job == 0) {
		execvp(command[0], command);
		perror(command[0]);
		_exit(127);
	}
}

static void stop_load(void)
{
	if (check.job > 0) {
		kill(check.job, SIGTERM);
		waitpid(check.job, NULL, 0);
	}
}

static int prepare(void)
{
	int r = feed_new((size_t)64 << 20, &check.feed);
	for (size_t i = 0; i < source_nvml.n_groups && r == 0; i++) {
		r = registry_add(&check.registry, source_nvml.name, &source_nvml.groups[i]);
	}
	atomic_store(&check.registry.last_entity, 10);
	return r;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 5;
	int root_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint64_t start_ns = clock_monotonic_ns();
	struct error e = {0};
	void *state = NULL;
	if (prepare() < 0 || sink_new(&check.registry, check.feed, start_ns, &check.sink) < 0) {
		return 1;
	}
	struct source_context context = {
		.root_fd = root_fd, .tree = (struct tree *)&check, .start_ns = start_ns};
	if (source_nvml.open(&context, check.sink, &state, &e) < 0) {
		printf("no GPU to test with: %s\n", e.text);
		return SKIPPED;
	}
	printf("opened in %.1f ms\n", (double)(clock_monotonic_ns() - start_ns) / 1e6);
	if (argc > 3 && strcmp(argv[2], "--") == 0) {
		start_load(argv + 3);
	}
	run(state, seconds);
	source_nvml.close(state); // tells why what is missing to the end is
	collect();
	print_series();
	print_costs();
	for (size_t i = 0; i < check.n_series; i++) {
		check_series(&check.series[i], seconds);
	}
	stop_load();
	sink_free(check.sink);
	feed_free(check.feed);
	registry_done(&check.registry);
	close(root_fd);
	printf("\n%u checks failed\n", check.failures);
	return check.failures ? 1 : 0;
}
