// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Prints docs/metrics.md from the tables of the sources. Fails where the tables contradict
// themselves: a name twice in one group, or one name with two kinds or units.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/own_cost.h"
#include "record/sample/source.h"
#include "runfile/metric.h"

struct place {
	const struct source *source;
	const struct group *group;
	const struct metric *metric;
};

static const char introduction[] =
	"# Metrics\n\n`make docs` generates this page from the tables in `src/record/source/`: "
	"change those, not this page.\n\nA **counter** only grows, and is stored as it was "
	"read; compute a rate from the difference of\ntwo readings. A **gauge** is a current "
	"value. A **state** is a code or a set of bits, which the\ndescription explains. Units "
	"are those of [UCUM](https://ucum.org): `s`, `By` (bytes), `1` (a\nratio), `{fault}` "
	"(a number of faults). Names that do not begin with `strain.` are those of "
	"the\nOpenTelemetry semantic conventions.\n\nA tick is every 20 or 50 ms, or as set by "
	"`--interval`; an interval of 1 s or more applies to all\nsources. `--overhead` may "
	"lengthen all intervals. A metric that cannot be read is missing, with the\nreason. "
	"`strain doctor` reports which metrics this machine has.\n";

static void print_interval(uint64_t interval_ns)
{
	if (interval_ns == 0) {
		printf("every tick");
	} else if (interval_ns < 1000000000) {
		printf("every %g ms", (double)interval_ns / 1e6);
	} else {
		printf("every %g s", (double)interval_ns / 1e9);
	}
}

// A cell of a Markdown table must not contain a bar.
static void print_cell(const char *text)
{
	for (; *text; text++) {
		if (*text == '|') {
			fputs("\\|", stdout);
		} else {
			putchar(*text);
		}
	}
}

// The source that has the metrics in its own group, before the given one; NULL: none.
static const struct source *earlier_source(const struct source *own, const struct metric *metrics)
{
	for (const struct source *const *source = source_list; *source != own && *source;
		source++) {
		for (size_t i = 0; i < (*source)->n_groups; i++) {
			if ((*source)->groups[i].metrics == metrics) {
				return *source;
			}
		}
	}
	return NULL;
}

static void print_group(const struct source *source, const struct group *group)
{
	printf("\n### %s, of each %s, ", group->name, entity_kind_name(group->entity_kind));
	print_interval(group->interval_ns);
	const struct source *earlier = earlier_source(source, group->metrics);
	if (earlier) {
		printf("\n\nThe same metrics as in [%s](#%s).\n", earlier->name, earlier->name);
		return;
	}
	printf("\n\n| metric | kind | unit | description |\n| --- | --- | --- | --- |\n");
	for (size_t i = 0; i < group->n_metrics; i++) {
		const struct metric *m = &group->metrics[i];
		printf("| `%s` | %s | `%s` | ", m->name, metric_kind_name(m->kind), m->unit);
		print_cell(m->help);
		printf(" |\n");
	}
}

static void print_source(const struct source *source)
{
	printf("\n## %s\n\n%s\n", source->name, source->help);
	for (size_t i = 0; i < source->n_groups; i++) {
		print_group(source, &source->groups[i]);
	}
}

// Calls check with each metric of each source; the sum of what it returns.
static int each_metric(
	int (*check)(const struct place *place, const void *argument), const void *argument)
{
	int found = 0;
	for (const struct source *const *source = source_list; *source; source++) {
		for (size_t g = 0; g < (*source)->n_groups; g++) {
			const struct group *group = &(*source)->groups[g];
			for (size_t i = 0; i < group->n_metrics; i++) {
				struct place place = {*source, group, &group->metrics[i]};
				found += check(&place, argument);
			}
		}
	}
	return found;
}

static int contradicts(const struct place *other, const void *argument)
{
	const struct place *place = argument;
	const struct metric *a = place->metric, *b = other->metric;
	if (b >= a || strcmp(a->name, b->name) != 0) {
		return 0; // each pair once
	}
	if (place->group == other->group) {
		fprintf(stderr, "source %s, group %s: %s appears twice\n", place->source->name,
			place->group->name, a->name);
		return 1;
	}
	if (a->kind != b->kind || strcmp(a->unit, b->unit) != 0) {
		fprintf(stderr, "%s: %s in %s of source %s, %s in %s of source %s\n", a->name,
			metric_kind_name(a->kind), a->unit, place->source->name,
			metric_kind_name(b->kind), b->unit, other->source->name);
		return 1;
	}
	return 0;
}

static int check_metric(const struct place *place, const void *argument)
{
	(void)argument;
	const struct metric *m = place->metric;
	int found = 0;
	if (!m->name || !m->unit || !m->help || m->scale == 0) {
		fprintf(stderr, "source %s, group %s: %s lacks its name, unit, scale or help\n",
			place->source->name, place->group->name, m->name ? m->name : "a metric");
		return 1;
	}
	return found + each_metric(contradicts, place);
}

// The recorder is measured like anything else, but is no source.
static int print_recorder(void)
{
	struct registry registry = {0};
	struct self *self;
	if (own_cost_new(&registry, &self) < 0) {
		return -1;
	}
	size_t n;
	const struct group *groups = own_cost_groups(self, &n);
	struct source recorder = {
		.name = "recorder", .help = "cost of recording", .groups = groups, .n_groups = n};
	print_source(&recorder);
	own_cost_free(self);
	registry_done(&registry);
	return 0;
}

int main(void)
{
	if (each_metric(check_metric, NULL) > 0) {
		return EXIT_FAILURE;
	}
	fputs(introduction, stdout);
	for (const struct source *const *source = source_list; *source; source++) {
		print_source(*source);
	}
	if (print_recorder() < 0) {
		return EXIT_FAILURE;
	}
	return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
