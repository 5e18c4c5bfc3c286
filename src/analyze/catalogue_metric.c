// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Figures of metrics, run by run.

#include "analyze/catalogue_metric.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analyze/catalogue_entry.h"
#include "analyze/catalogue_index.h"
#include "analyze/query.h"
#include "analyze/summary.h"
#include "base/cleanup.h"
#include "trace/reader.h"

// Kinds of entities, the one that is meant first where several have the metric.
static const char *const kinds[] = {"job", "host", "gpu", "disk", "network", "recorder"};

struct asked {
	char *metric; // owned
	enum figure figure;
};

static int parse_name(const char *name, struct asked *ret, struct error *e)
{
	const char *colon = strrchr(name, ':');
	for (size_t i = 0; colon && i < N_FIGURES; i++) {
		if (strcmp(colon + 1, figure_name((enum figure)i)) == 0) {
			*ret = (struct asked){
				strndup(name, (size_t)(colon - name)), (enum figure)i};
			return ret->metric ? 0 : error_errno(e, ENOMEM, "%s", name);
		}
	}
	return error_set(e, EINVAL,
		"'%s': expected METRIC:AGGREGATE, of total, mean, p50, p95 and max", name);
}

// What the entities of one kind have.
struct gathered {
	size_t n;
	double sum;
	double largest;
	char unit[48];
};

static size_t kind_of(const char *kind)
{
	size_t i = 0;
	while (i < ARRAY_LENGTH(kinds) && (!kind || strcmp(kinds[i], kind) != 0)) {
		i++;
	}
	return i;
}

// A counter's rates are per second: seconds per second are a number.
static void take_unit(char *ret, size_t size, const char *unit, bool is_rate)
{
	bool seconds = strcmp(unit, "s") == 0;
	snprintf(ret, size, "%s%s", is_rate && seconds ? "1" : unit,
		is_rate && !seconds ? "/s" : "");
}

static void gather(sqlite3_stmt *row, enum figure figure, struct gathered *all)
{
	size_t kind = kind_of((const char *)sqlite3_column_text(row, 0));
	const char *unit = (const char *)sqlite3_column_text(row, 1);
	const char *sort = (const char *)sqlite3_column_text(row, 2);
	double value = sqlite3_column_double(row, 3);
	if (kind == ARRAY_LENGTH(kinds) || !isfinite(value)) {
		return;
	}
	struct gathered *g = &all[kind];
	bool is_rate = sort && strcmp(sort, "counter") == 0 && figure != FIGURE_TOTAL;
	take_unit(g->unit, sizeof(g->unit), unit ? unit : "", is_rate);
	g->sum += value;
	g->largest = g->n++ == 0 || value > g->largest ? value : g->largest;
}

// Why there is none, by the numbers that the index keeps.
enum { WHY_NONE_MISSING, WHY_NO_METRIC, WHY_NO_SUMMARY, WHY_UNREADABLE, N_WHYS };
static const char *const whys[N_WHYS] = {
	[WHY_NO_METRIC] = "the run's summary has no such metric",
	[WHY_NO_SUMMARY] = "the run has no summary",
	[WHY_UNREADABLE] = "the run cannot be read any more",
};

static struct catalogue_figure take_figure(const struct gathered *all, enum figure figure)
{
	struct catalogue_figure found = {.value = NAN, .reason = WHY_NO_METRIC};
	for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
		if (all[i].n > 0) {
			found.value = figure == FIGURE_TOTAL ? all[i].sum
			              : figure == FIGURE_MAX ? all[i].largest
			                                     : all[i].sum / (double)all[i].n;
			found.reason = WHY_NONE_MISSING;
			snprintf(found.unit, sizeof(found.unit), "%s", all[i].unit);
			break;
		}
	}
	return found;
}

static struct catalogue_figure read_file(const char *path, const struct asked *asked)
{
	static const char sql[] =
		"SELECT s.entity_kind, s.unit, (SELECT kind FROM metric AS m WHERE m.name = "
		"s.metric AND m.entity_kind = s.entity_kind LIMIT 1), s.value FROM summary_by_name "
		"AS s WHERE s.metric = ?1 AND s.aggregate = ?2 AND s.epoch IS NULL LIMIT 10000";
	_cleanup_statement_ sqlite3_stmt *statement = NULL;
	struct gathered all[ARRAY_LENGTH(kinds)] = {0};
	struct reader *reader = NULL;
	if (reader_open(path, &reader, NULL) < 0) {
		return (struct catalogue_figure){.value = NAN, .reason = WHY_UNREADABLE};
	}
	int result = sqlite3_prepare_v2(reader_database(reader), sql, -1, &statement, NULL);
	if (result == SQLITE_OK) {
		sqlite3_bind_text(statement, 1, asked->metric, -1, SQLITE_STATIC);
		sqlite3_bind_text(statement, 2, figure_name(asked->figure), -1, SQLITE_STATIC);
		while (sqlite3_step(statement) == SQLITE_ROW) {
			gather(statement, asked->figure, all);
		}
	}
	sqlite3_finalize(take_pointer(statement));
	reader_free(reader);
	struct catalogue_figure found = take_figure(all, asked->figure);
	if (result != SQLITE_OK) {
		found.reason = WHY_NO_SUMMARY;
	}
	return found;
}

static struct catalogue_figure find_figure(struct catalogue_index *index,
	const struct catalogue_run *run, const struct asked *asked, const char *name)
{
	struct catalogue_figure figure;
	struct file_identity file = {0};
	struct stat status;
	bool is_there = stat(run->path, &status) == 0;
	if (is_there) {
		file = file_identity_of(&status);
	}
	if (is_there && catalogue_index_find_figure(index, &file, name, &figure) &&
		figure.reason < N_WHYS &&
		(figure.reason != WHY_NONE_MISSING) == isnan(figure.value)) {
		return figure;
	}
	figure = read_file(run->path, asked);
	if (is_there && figure.reason != WHY_UNREADABLE && run->state != RUN_LIVE &&
		file_identity_is_lasting(run->path, &file)) {
		catalogue_index_put_figure(index, &file, name, &figure);
	}
	return figure;
}

int catalogue_metric_read(const struct catalogue_run *const *runs, size_t n, const char *name,
	struct catalogue_metric *ret, struct error *e)
{
	struct asked asked = {0};
	int r = parse_name(name, &asked, e);
	if (r < 0) {
		return r;
	}
	_cleanup_free_ char *metric = asked.metric;
	struct catalogue_metric found = {.numbers = calloc(n + 1, sizeof(*found.numbers)),
		.reasons = calloc(n + 1, sizeof(*found.reasons))};
	size_t known = 0;
	struct catalogue_index *index = catalogue_index_open();
	for (size_t i = 0; found.numbers && found.reasons && i < n; i++) {
		struct catalogue_figure figure = find_figure(index, runs[i], &asked, name);
		found.numbers[i] = figure.value;
		found.reasons[i] = whys[figure.reason];
		if (figure.reason == WHY_NONE_MISSING) {
			snprintf(found.unit, sizeof(found.unit), "%s", figure.unit);
			known++;
		}
	}
	catalogue_index_close(index);
	if (!found.numbers || !found.reasons || known == 0) {
		catalogue_metric_done(&found);
		return known == 0 ? error_set(e, ENOENT,
					    "no run has a metric '%s' with such an aggregate "
					    "(docs/metrics.md lists them)",
					    metric)
		                  : error_errno(e, ENOMEM, "%s", name);
	}
	*ret = found;
	return 0;
}

void catalogue_metric_done(struct catalogue_metric *metric)
{
	free(metric->numbers);
	free(metric->reasons);
	*metric = (struct catalogue_metric){0};
}
