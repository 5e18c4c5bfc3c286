// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The queue between the lanes and the run file.

#include "record/sample/feed.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mutex.h"

#define RESERVE_BYTES ((size_t)1 << 20) // for items other than rows of readings
#define TOTALS_BYTES (RESERVE_BYTES / 2) // part of it, for rows of single entities (totals)

struct feed {
	pthread_mutex_t mutex;
	pthread_cond_t arrived;
	struct item *first;
	struct item **last;
	size_t bytes; // of queued items
	size_t taken_bytes; // of the items last taken: the reader may still hold them
	size_t max_bytes;
	uint64_t lost_rows;
	bool woken;
	_Atomic int64_t spans;
};

int feed_new(size_t max_bytes, struct feed **ret)
{
	struct feed *f = calloc(1, sizeof(*f));
	if (!f) {
		return -ENOMEM;
	}
	pthread_condattr_t attributes;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	mutex_init_inheriting(&f->mutex);
	pthread_cond_init(&f->arrived, &attributes);
	pthread_condattr_destroy(&attributes);
	f->last = &f->first;
	f->max_bytes = max_bytes;
	*ret = f;
	return 0;
}

void feed_free(struct feed *f)
{
	if (!f) {
		return;
	}
	while (f->first) {
		struct item *next = f->first->next;
		item_free(f->first);
		f->first = next;
	}
	pthread_cond_destroy(&f->arrived);
	pthread_mutex_destroy(&f->mutex);
	free(f);
}

void item_free(struct item *item)
{
	free(item->storage);
	free(item);
}

// Copies the string at *field to `at` and makes the field point there. Returns the end of the copy.
static char *item_copy_string(const char **field, char *at)
{
	if (*field) {
		size_t size = strlen(*field) + 1;
		memcpy(at, *field, size);
		*field = at;
		at += size;
	}
	return at;
}

static struct item *item_new(const struct item *fields)
{
	size_t size = sizeof(*fields);
	const char *const strings[] = {fields->key, fields->name, fields->text, fields->event};
	for (size_t i = 0; i < 4; i++) {
		size += strings[i] ? strlen(strings[i]) + 1 : 0;
	}
	struct item *item = malloc(size);
	if (!item) {
		return NULL;
	}
	*item = *fields;
	char *at = (char *)(item + 1);
	at = item_copy_string(&item->key, at);
	at = item_copy_string(&item->name, at);
	at = item_copy_string(&item->text, at);
	item_copy_string(&item->event, at);
	size_t rows = fields->kind == ITEM_BLOCK ? fields->block.n_rows : 0;
	item->bytes = size + rows * (1 + fields->block.n_columns) * sizeof(int64_t);
	if (fields->kind == ITEM_SAMPLES) {
		item->bytes += 2 * (size_t)fields->samples * sizeof(int64_t);
	}
	return item;
}

// Rows can be dropped, those of processes first: they are the most, and the run's totals are not
// computed from them. Descriptions of entities must not be dropped, and are small.
static size_t limit_of(const struct feed *f, const struct item *fields)
{
	static const bool totals[N_ENTITY_KINDS] = {
		[ENTITY_HOST] = true, [ENTITY_JOB] = true, [ENTITY_RECORDER] = true};
	return fields->kind != ITEM_BLOCK    ? f->max_bytes + RESERVE_BYTES
	       : totals[fields->entity_kind] ? f->max_bytes + TOTALS_BYTES
	                                     : f->max_bytes;
}

bool feed_put(struct feed *f, const struct item *fields)
{
	struct item *item = item_new(fields);
	pthread_mutex_lock(&f->mutex);
	bool fits = item && f->taken_bytes + f->bytes + item->bytes <= limit_of(f, fields);
	if (fits) {
		item->next = NULL;
		*f->last = item;
		f->last = &item->next;
		f->bytes += item->bytes;
		if (f->bytes > f->max_bytes / 2 && !f->woken) {
			f->woken = true; // without waiting for the next second
			pthread_cond_signal(&f->arrived);
		}
	} else {
		f->lost_rows += fields->kind == ITEM_BLOCK ? fields->block.n_rows : 1;
	}
	pthread_mutex_unlock(&f->mutex);
	if (!fits) {
		free(fields->storage);
		free(item);
	}
	return fits;
}

struct item *feed_take(struct feed *f, uint64_t timeout_ns)
{
	uint64_t until = clock_monotonic_ns() + timeout_ns;
	struct timespec deadline = {
		.tv_sec = (time_t)(until / NS_PER_S), .tv_nsec = (long)(until % NS_PER_S)};
	pthread_mutex_lock(&f->mutex);
	f->taken_bytes = 0;
	// Items do not wake the reader: it takes them once a second, or after feed_wake.
	while (!f->woken && pthread_cond_timedwait(&f->arrived, &f->mutex, &deadline) == 0) {
	}
	f->woken = false;
	struct item *items = f->first;
	f->first = NULL;
	f->last = &f->first;
	f->taken_bytes = f->bytes;
	f->bytes = 0;
	pthread_mutex_unlock(&f->mutex);
	return items;
}

void feed_wake(struct feed *f)
{
	pthread_mutex_lock(&f->mutex);
	f->woken = true;
	pthread_cond_signal(&f->arrived);
	pthread_mutex_unlock(&f->mutex);
}

int64_t feed_next_span(struct feed *f)
{
	return atomic_fetch_add(&f->spans, 1) + 1;
}

size_t feed_bytes(struct feed *f)
{
	pthread_mutex_lock(&f->mutex);
	size_t bytes = f->bytes;
	pthread_mutex_unlock(&f->mutex);
	return bytes;
}

uint64_t feed_lost_rows(struct feed *f)
{
	pthread_mutex_lock(&f->mutex);
	uint64_t rows = f->lost_rows;
	pthread_mutex_unlock(&f->mutex);
	return rows;
}
