// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What a quota takes is known from two clocks. The cgroup's throttled time is summed over CPUs on
// which some thread was ready and held back. What threads wait for a CPU (schedstat's run delay)
// has that in it before Linux 6.18, not since (seen on 6.18: 7 ms beside 2.0 s throttled), and of a
// process only its leader's is read. So the larger of both is what was asked for beyond what was
// used, and more may have been: several threads that wait on one CPU count once.

#include "analyze/quota_facts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis.h"
#include "analyze/facts.h"
#include "analyze/names.h"
#include "analyze/rate.h"
#include "analyze/words.h"
#include "base/cleanup.h"

struct reading {
	double value;
	double length_us; // until the next
};

static int reading_compare(const void *left, const void *right)
{
	double a = ((const struct reading *)left)->value;
	double b = ((const struct reading *)right)->value;
	return (a > b) - (a < b);
}

// The median over time; exact, where a figure's percentile is within 0.4 %.
static double series_median(const struct series *s, int64_t end_us)
{
	_cleanup_free_ struct reading *readings = calloc(s->n + 1, sizeof(*readings));
	double all_us = 0, passed_us = 0;
	size_t n = 0;
	for (size_t i = 0; readings && i < s->n; i++) {
		int64_t until_us = i + 1 < s->n ? s->t_us[i + 1] : end_us;
		double length_us = fmax(1, (double)(until_us - s->t_us[i]));
		if (isfinite(s->values[i])) {
			readings[n++] = (struct reading){s->values[i], length_us};
			all_us += length_us;
		}
	}
	if (n > 0) {
		qsort(readings, n, sizeof(*readings), reading_compare);
	}
	for (size_t i = 0; i < n; i++) {
		passed_us += readings[i].length_us;
		if (2 * passed_us >= all_us) {
			return readings[i].value;
		}
	}
	return NAN;
}

double quota_cpus(const struct analysis *a)
{
	const struct entity *job = entity_first(&a->entities, ENTITY_JOB);
	struct series s = {0};
	if (!a->reader || !job ||
		reader_series(a->reader, job->id, NAME_CPU_LIMIT, INT64_MIN, INT64_MAX, &s, NULL) <
			0) {
		return NAN;
	}
	double median = series_median(&s, reader_recorded_ns(a->reader) / 1000);
	series_done(&s);
	return median;
}

// The end of the path of the cgroup that sets it, as the last event about it has it.
static const char *find_where(const struct analysis *a)
{
	static const char before[] = " by cgroup /";
	const char *where = NULL;
	for (size_t i = 0; i < a->events.n; i++) {
		const struct event_row *event = &a->events.items[i];
		const char *path = strcmp(event->kind, "cpu_quota") == 0
		                           ? strstr(event->text, before)
		                           : NULL;
		where = path ? path + strlen(before) : where;
	}
	const char *slash = where ? strrchr(where, '/') : NULL;
	while (slash && slash > where && slash[-1] != '/') {
		slash--; // the last two names: one alone is often "0" or "task"
	}
	return slash ? slash : where;
}

// CPUs that processes of the job were ready for and did not have.
static double queued_cpus(const struct analysis *a, const struct stretch *stretch)
{
	double sum = NAN;
	for (size_t i = 0; i < a->processes.n; i++) {
		sum = words_sum(
			sum, rate_over(a, a->processes.items[i].entity, NAME_CPU_WAIT, stretch));
	}
	return sum;
}

void quota_facts_fill(const struct analysis *a, const struct stretch *stretch, struct facts *ret)
{
	struct quota_facts *q = &ret->quota;
	const struct entity *entity = entity_first(&a->entities, ENTITY_JOB);
	int64_t job = entity ? entity->id : 0;
	q->cpus = quota_cpus(a);
	if (!isfinite(q->cpus)) {
		return;
	}
	q->own = analysis_figure(a, job, NAME_CPU_LIMIT_INSIDE, FIGURE_P50) >= 0.5;
	q->where = find_where(a);
	double periods = rate_over(a, job, NAME_PERIODS, stretch);
	double throttled = rate_over(a, job, NAME_PERIODS_THROTTLED, stretch);
	q->used_up = periods > 0 ? fmin(1, throttled / periods) : a->overview.throttled;
	q->throttled_cpu_s = analysis_figure(a, job, NAME_THROTTLED_TIME, FIGURE_TOTAL);
	q->throttled_cpus = rate_over(a, job, NAME_THROTTLED_TIME, stretch);
	q->queued_cpus = queued_cpus(a, stretch);
	q->used_cpus = ret->cpus_used;
	double asked = fmax(q->throttled_cpus, q->queued_cpus); // passes over what is not known
	q->needed_cpus = fmin(q->used_cpus + asked, fmax(ret->host_cpus, q->used_cpus));
}
