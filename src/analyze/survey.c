// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The first look at a run's spans.

#include "analyze/survey.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/phases.h"
#include "analyze/query.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/parse.h"
#include "trace/reader.h"

#define WINDOW 5 // iterations whose median is looked at

// Threads ---------------------------------------------------------------------------------------

// The recorder writes {"process":12} or {"pid":4242}: not worth a parser for each of millions.
static bool number_of(const char *attributes, const char *name, int64_t *ret)
{
	const char *at = strstr(attributes, name);
	if (!at) {
		return false;
	}
	at += strlen(name);
	struct cursor c = cursor_of(at, strlen(at));
	return cursor_i64(&c, ret);
}

static struct survey_key key_of_row(sqlite3_stmt *row)
{
	struct survey_key key = {.thread = sqlite3_column_int64(row, COLUMN_THREAD)};
	const char *attributes = (const char *)sqlite3_column_text(row, COLUMN_ATTRIBUTES);
	if (attributes && !number_of(attributes, "\"process\":", &key.entity)) {
		number_of(attributes, "\"pid\":", &key.pid);
	}
	return key;
}

bool survey_is_cut(sqlite3_stmt *row)
{
	const char *attributes = (const char *)sqlite3_column_text(row, COLUMN_ATTRIBUTES);
	return attributes && (strstr(attributes, "\"end\":") || strstr(attributes, "\"lost\":"));
}

static int key_compare(const struct survey_key *a, const struct survey_key *b)
{
	return a->entity != b->entity ? (a->entity > b->entity) - (a->entity < b->entity)
	       : a->pid != b->pid     ? (a->pid > b->pid) - (a->pid < b->pid)
	                              : (a->thread > b->thread) - (a->thread < b->thread);
}

static size_t place_of(const struct survey *s, const struct survey_key *key)
{
	size_t low = 0, high = s->n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (key_compare(&s->threads[middle]->key, key) < 0) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low;
}

static int thread_insert(struct survey *s, size_t place, const struct survey_key *key)
{
	void *threads = s->threads;
	struct survey_thread *thread = calloc(1, sizeof(*thread));
	if (!thread || array_reserve(&threads, &s->capacity, s->n + 1,
			       sizeof(struct survey_thread *)) < 0) {
		free(thread);
		return -ENOMEM;
	}
	s->threads = threads;
	*thread = (struct survey_thread){.key = *key, .lane = LANE_NONE, .first_ns = INT64_MAX};
	memmove(s->threads + place + 1, s->threads + place,
		(s->n - place) * sizeof(struct survey_thread *));
	s->threads[place] = thread;
	s->n++;
	return 0;
}

int survey_thread(struct survey *s, sqlite3_stmt *row, struct survey_thread **ret)
{
	struct survey_key key = key_of_row(row);
	if (s->recent && key_compare(&s->recent->key, &key) == 0) {
		*ret = s->recent;
		return 0;
	}
	size_t place = place_of(s, &key);
	if (place == s->n || key_compare(&s->threads[place]->key, &key) != 0) {
		if (s->n == THREADS_MAX) {
			*ret = NULL;
			return 0;
		}
		int r = thread_insert(s, place, &key);
		if (r < 0) {
			return r;
		}
	}
	s->recent = s->threads[place];
	*ret = s->recent;
	return 0;
}

// Rows ------------------------------------------------------------------------------------------

static void thread_saw(struct survey_thread *thread, sqlite3_stmt *row)
{
	int64_t start_ns = sqlite3_column_int64(row, COLUMN_START);
	int64_t end_ns = sqlite3_column_int64(row, COLUMN_END);
	thread->spans++;
	thread->first_ns = start_ns < thread->first_ns ? start_ns : thread->first_ns;
	thread->last_ns = end_ns > thread->last_ns ? end_ns : thread->last_ns;
}

static int saw_iteration(void *context, sqlite3_stmt *row)
{
	struct survey *s = context;
	struct survey_thread *thread = NULL;
	int r = survey_thread(s, row, &thread);
	span_pass_at(&s->pass, sqlite3_column_int64(row, COLUMN_START));
	if (r < 0 || !thread) {
		return r;
	}
	thread_saw(thread, row);
	if (survey_is_cut(row)) {
		return 0;
	}
	double seconds = (double)(sqlite3_column_int64(row, COLUMN_END) -
				  sqlite3_column_int64(row, COLUMN_START)) /
	                 1e9;
	void *head = thread->head;
	thread->whole++;
	histogram_add(&thread->lengths, seconds, 1);
	if (thread->n_head < WARM_UP_MAX + WINDOW) {
		r = array_reserve(
			&head, &thread->head_capacity, thread->n_head + 1, sizeof(*thread->head));
		thread->head = head;
		if (r == 0) {
			thread->head[thread->n_head++] = seconds;
		}
	}
	return r;
}

static int saw_phase(void *context, sqlite3_stmt *row)
{
	struct survey_thread *thread = NULL;
	const char *name = (const char *)sqlite3_column_text(row, COLUMN_NAME);
	if (name && strcmp(name, "prepare") == 0) {
		return 0;
	}
	int r = survey_thread(context, row, &thread);
	if (r == 0 && thread) {
		thread_saw(thread, row);
	}
	return r;
}

static int saw_epoch(void *context, sqlite3_stmt *row)
{
	struct survey_thread *thread = NULL;
	if (sqlite3_column_type(row, COLUMN_THREAD) == SQLITE_NULL) {
		return 0; // from a line of the output
	}
	int r = survey_thread(context, row, &thread);
	if (r == 0 && thread) {
		thread->leads = true;
	}
	return r;
}

// Main threads ----------------------------------------------------------------------------------

// Those that lead first, then those with the most spans, then the earliest, then whom the recorder
// saw: the same each time.
static int thread_compare(const void *left, const void *right)
{
	const struct survey_thread *a = *(struct survey_thread *const *)left;
	const struct survey_thread *b = *(struct survey_thread *const *)right;
	return a->leads != b->leads   ? b->leads - a->leads
	       : a->spans != b->spans ? (a->spans < b->spans) - (a->spans > b->spans)
	       : a->first_ns != b->first_ns
	               ? (a->first_ns > b->first_ns) - (a->first_ns < b->first_ns)
	       : !a->key.entity != !b->key.entity ? !a->key.entity - !b->key.entity
	                                          : key_compare(&a->key, &b->key);
}

static bool overlaps(const struct survey_thread *a, const struct survey_thread *b)
{
	return a->first_ns < b->last_ns && b->first_ns < a->last_ns;
}

// The best, and each further one that was there when none of the better ones was.
static int choose_main(struct survey *s)
{
	_cleanup_free_ struct survey_thread **order = calloc(
		s->n + 1, sizeof(struct survey_thread *));
	_cleanup_free_ struct survey_thread **chosen = calloc(
		s->n + 1, sizeof(struct survey_thread *));
	if (!order || !chosen) {
		return -ENOMEM;
	}
	if (s->n > 0) {
		memcpy(order, s->threads, s->n * sizeof(struct survey_thread *));
	}
	qsort(order, s->n, sizeof(struct survey_thread *), thread_compare);
	size_t n = 0;
	for (size_t i = 0; i < s->n; i++) {
		bool beside = order[i]->spans == 0;
		for (size_t k = 0; k < n && !beside; k++) {
			beside = overlaps(order[i], chosen[k]);
		}
		if (!beside) {
			chosen[n++] = order[i];
			order[i]->lane = 0;
			s->whole += order[i]->whole;
		}
	}
	s->main = n > 0 ? chosen[0] : NULL;
	return 0;
}

// Warm-up ---------------------------------------------------------------------------------------

static double median_of_window(const double *values)
{
	double sorted[WINDOW];
	for (size_t i = 0; i < WINDOW; i++) {
		size_t place = i;
		while (place > 0 && sorted[place - 1] > values[i]) {
			sorted[place] = sorted[place - 1];
			place--;
		}
		sorted[place] = values[i];
	}
	return sorted[WINDOW / 2];
}

static uint64_t warm_up_of(const struct survey_thread *thread)
{
	if (thread->whole < WINDOW) {
		return 0;
	}
	double median = histogram_quantile(&thread->lengths, 0.5);
	double low = fmin(histogram_quantile(&thread->lengths, 0.2), median * 0.9);
	double high = fmax(histogram_quantile(&thread->lengths, 0.8), median * 1.1);
	uint64_t most = thread->whole / 5;
	most = most < WARM_UP_MAX ? most : WARM_UP_MAX;
	for (size_t i = 1; i < most && i + WINDOW <= thread->n_head; i++) {
		double here = median_of_window(thread->head + i);
		if (here >= low && here <= high) {
			return i;
		}
	}
	return most;
}

static void count_warm_up(struct survey *s)
{
	for (size_t i = 0; i < s->n; i++) {
		struct survey_thread *thread = s->threads[i];
		thread->warm_up = warm_up_of(thread);
		s->warm_up += thread->lane == 0 ? thread->warm_up : 0;
		histogram_done(&thread->lengths);
		free(thread->head);
		thread->head = NULL;
		thread->n_head = thread->head_capacity = 0;
	}
}

static bool any_spans(const struct survey *s)
{
	for (size_t i = 0; i < s->n; i++) {
		if (s->threads[i]->spans > 0) {
			return true;
		}
	}
	return false;
}

int survey_read(struct survey *s, struct reader *r, struct error *e)
{
	*s = (struct survey){0};
	span_pass_start(&s->pass, r, span_pass_parts(r) / 4);
	int result = query_each(r,
		"SELECT start_ns, end_ns, thread, attributes FROM main.span WHERE kind = 'epoch'",
		saw_epoch, s, e);
	if (result == 0) {
		result = query_each(r, SURVEY_ITERATIONS, saw_iteration, s, e);
	}
	if (result == 0 && !any_spans(s)) {
		result = query_each(r, SURVEY_PHASES, saw_phase, s, e);
	}
	if (result != -ENOMEM && choose_main(s) < 0) {
		result = error_errno(e, ENOMEM, "%s", reader_path(r));
	}
	span_pass_end(&s->pass);
	count_warm_up(s);
	if (result == -ENOMEM) {
		survey_done(s);
	}
	return result;
}

void survey_done(struct survey *s)
{
	for (size_t i = 0; i < s->n; i++) {
		histogram_done(&s->threads[i]->lengths);
		free(s->threads[i]->head);
		free(s->threads[i]);
	}
	free(s->threads);
	*s = (struct survey){0};
}
