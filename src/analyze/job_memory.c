// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What PSS has beyond the cgroup's memory is files that are mapped: libraries, which come when a
// job starts and stay. Without a cgroup the sum of what each process has of its own stands in for
// its memory; what PSS has beyond that is also what processes share. So it is that difference which
// is carried from reading to reading: a job of one process is met within 0.1 %, and memory that
// comes and goes between two readings is there.

#include "analyze/job_memory.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/names.h"
#include "base/cleanup.h"

// What is read of the job.
struct readings {
	struct series pss;
	struct series cgroup; // anonymous and shared; without one what each process has of its own
	bool own; // that is it
	struct series resident;
	double *beyond; // [pss.n] what PSS has beyond the cgroup's memory
};

static void readings_done(struct readings *r)
{
	series_done(&r->pss);
	series_done(&r->cgroup);
	series_done(&r->resident);
	free(r->beyond);
}

// Readings that are missing say nothing of memory.
static void drop_missing(struct series *s)
{
	size_t n = 0;
	for (size_t i = 0; i < s->n; i++) {
		if (isfinite(s->values[i])) {
			s->t_us[n] = s->t_us[i];
			s->values[n] = s->values[i];
			s->minimum[n] = s->minimum[i];
			s->maximum[n++] = s->maximum[i];
		}
	}
	s->n = n;
}

static int read_metric(struct reader *reader, int64_t job, const char *metric, struct series *ret)
{
	int r = reader_series(reader, job, metric, INT64_MIN, INT64_MAX, ret, NULL);
	if (r == 0) {
		drop_missing(ret);
	}
	return r == -ENOMEM ? r : 0; // what is damaged is not there
}

// Both parts are of one row.
static int read_cgroup(struct reader *reader, int64_t job, struct series *ret)
{
	struct series shared = {0};
	int r = read_metric(reader, job, NAME_ANONYMOUS, ret);
	r = r < 0 ? r : read_metric(reader, job, NAME_SHMEM, &shared);
	for (size_t i = 0, j = 0; r == 0 && i < ret->n; i++) {
		while (j < shared.n && shared.t_us[j] < ret->t_us[i]) {
			j++;
		}
		if (j < shared.n && shared.t_us[j] == ret->t_us[i]) {
			bool thinned = ret->maximum != ret->values;
			ret->values[i] += shared.values[j];
			ret->maximum[i] += thinned ? shared.maximum[j] : 0;
		}
	}
	series_done(&shared);
	return r;
}

// The value at a time, on the line between two readings; the nearest outside. `at` moves on.
static double value_at(const struct series *s, const double *values, int64_t t_us, size_t *at)
{
	while (*at + 1 < s->n && s->t_us[*at + 1] <= t_us) {
		++*at;
	}
	size_t i = *at;
	if (t_us <= s->t_us[i] || i + 1 == s->n) {
		return values[i];
	}
	double share = (double)(t_us - s->t_us[i]) / (double)(s->t_us[i + 1] - s->t_us[i]);
	return values[i] + share * (values[i + 1] - values[i]);
}

static bool held_any(const struct series *s)
{
	for (size_t i = 0; i < s->n; i++) {
		if (s->maximum[i] > 0) {
			return true;
		}
	}
	return false;
}

// Where there is no cgroup, what is known of processes at each tick.
static int read_held(struct reader *reader, int64_t job, struct readings *all)
{
	int r = read_cgroup(reader, job, &all->cgroup);
	if (r == 0 && !held_any(&all->cgroup)) {
		series_done(&all->cgroup);
		all->own = true;
		r = read_metric(reader, job, NAME_OWN_SUM, &all->cgroup);
	}
	return r;
}

static int find_beyond(struct readings *r)
{
	size_t at = 0;
	r->beyond = calloc(r->pss.n + 1, sizeof(*r->beyond));
	for (size_t i = 0; r->beyond && i < r->pss.n; i++) {
		double held = value_at(&r->cgroup, r->cgroup.values, r->pss.t_us[i], &at);
		r->beyond[i] = fmax(0, r->pss.values[i] - held);
	}
	return r->beyond ? 0 : -ENOMEM;
}

static void put(struct series *s, int64_t t_us, double value, double maximum)
{
	s->t_us[s->n] = t_us;
	s->values[s->n] = value;
	s->maximum[s->n++] = maximum;
}

static int reserve(struct series *s, size_t n)
{
	*s = (struct series){.t_us = calloc(n + 1, sizeof(*s->t_us)),
		.values = calloc(n + 1, sizeof(*s->values)),
		.maximum = calloc(n + 1, sizeof(*s->maximum))};
	s->minimum = s->values;
	return s->t_us && s->values && s->maximum ? 0 : -ENOMEM;
}

// Readings of both, by their time.
static int join(const struct readings *r, struct series *ret)
{
	int failed = reserve(ret, r->cgroup.n + r->pss.n);
	size_t at = 0, resident = 0, pss = 0;
	for (size_t i = 0; failed == 0 && i < r->cgroup.n; i++) {
		int64_t t_us = r->cgroup.t_us[i];
		for (; pss < r->pss.n && r->pss.t_us[pss] <= t_us; pss++) {
			put(ret, r->pss.t_us[pss], r->pss.values[pss], r->pss.maximum[pss]);
		}
		double beyond = value_at(&r->pss, r->beyond, t_us, &at);
		if (r->resident.n > 0) {
			double sum = value_at(&r->resident, r->resident.maximum, t_us, &resident);
			beyond = fmin(beyond, fmax(0, sum - r->cgroup.values[i]));
		}
		put(ret, t_us, r->cgroup.values[i] + beyond, r->cgroup.maximum[i] + beyond);
	}
	for (; failed == 0 && pss < r->pss.n; pss++) {
		put(ret, r->pss.t_us[pss], r->pss.values[pss], r->pss.maximum[pss]);
	}
	return failed;
}

static void take(struct job_memory *m, struct series *from, const char *kind, const char *metric)
{
	*m = (struct job_memory){*from, kind, metric};
	*from = (struct series){0};
}

int job_memory_read(struct reader *reader, int64_t job, struct job_memory *ret)
{
	struct readings all = {0};
	struct series joined = {0};
	*ret = (struct job_memory){0};
	int r = read_metric(reader, job, NAME_PSS, &all.pss);
	r = r < 0 ? r : read_held(reader, job, &all);
	r = r < 0 ? r : read_metric(reader, job, NAME_RESIDENT_SUM, &all.resident);
	bool pss = held_any(&all.pss), cgroup = held_any(&all.cgroup);
	if (r == 0 && pss && cgroup) {
		r = find_beyond(&all);
		r = r < 0 ? r : join(&all, &joined);
	}
	if (r < 0) {
		series_done(&joined);
	} else if (joined.n > 0) {
		take(ret, &joined, "PSS", NAME_PSS);
	} else if (pss) {
		take(ret, &all.pss, "PSS", NAME_PSS);
	} else if (cgroup) {
		take(ret, &all.cgroup, all.own ? "anonymous" : "anonymous and shared",
			all.own ? NAME_OWN_SUM : NAME_ANONYMOUS);
	} else if (held_any(&all.resident)) { // a job that was gone before either was read
		take(ret, &all.resident, "sum of resident", NAME_RESIDENT_SUM);
	}
	readings_done(&all);
	return r;
}

void job_memory_done(struct job_memory *m)
{
	series_done(&m->series);
	*m = (struct job_memory){0};
}
