// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The queue from the lanes to the run file, with many writers and one reader. Its size is bounded;
// items that do not fit are dropped and counted, and writers never wait.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runfile/codec.h"
#include "runfile/metric.h"

struct feed;

enum item_kind {
	ITEM_ENTITY, // announced, changed or gone
	ITEM_ENTITY_END, // only last_ns and attributes count
	ITEM_BLOCK,
	ITEM_MISSING,
	ITEM_EVENT,
	ITEM_SPAN, // an epoch begins, or a point; of marks (span is set): any span
	ITEM_SPAN_END, // span, last_ns, samples; attributes are added
	ITEM_OBJECT, // of samples: number is its id, name its path
	ITEM_SAMPLES, // of the object `number`: `samples` pairs of address and count in storage;
	              // thread is 1 for the leader's
	ITEM_PHASE_SAMPLES, // the same of the phase `text`
};

// A key of an epoch begun by a line of output: all earlier ones begun by lines were wrong.
#define ITEM_KEY_ANEW "anew"

// One item to write. Times are ns since the run's start. Strings are in the same allocation after
// the item, or NULL.
struct item {
	struct item *next;
	enum item_kind kind;
	size_t bytes; // what it counts against the queue's bound
	int64_t entity;
	int64_t t_ns; // entity: first_ns; event, span: when
	int64_t last_ns; // entity end, span end; -1 while open
	int64_t parent; // entity; span
	int64_t span; // its id, from feed_next_span; 0: a line of output
	int64_t thread; // span: 0 for none
	int64_t number; // span
	int64_t samples; // span of marks: -1 for none
	double value; // span: of a point
	enum entity_kind entity_kind; // entity; block: of its rows
	uint32_t metric; // missing
	const char *source; // block: static text
	const char *key; // entity; span: attributes
	const char *name; // entity; span
	const char *text; // entity: attributes; missing: reason; event: text; span: kind
	const char *event; // event: kind
	struct block block; // arrays owned through `storage`, metric_ids by the registry
	int64_t *storage;
};

// max_bytes bounds the rows that are queued or still held by the reader. Other items have a reserve
// of 1 MiB, half of which may be used by rows of the host, the job and the recorder. Returns 0 or
// -ENOMEM.
int feed_new(size_t max_bytes, struct feed **ret);
void feed_free(struct feed *f);

// Copies the strings of `fields` into a new item and queues it. Takes ownership of fields->storage
// in any case. Returns false if the item had to be dropped (counted).
bool feed_put(struct feed *f, const struct item *fields);

// Returns all queued items in order, NULL if there are none. The caller frees each with item_free
// before the next call: until then they count against the bound. Waits up to timeout_ns for an
// item; feed_wake ends the wait.
struct item *feed_take(struct feed *f, uint64_t timeout_ns);
void feed_wake(struct feed *f);
void item_free(struct item *item);

// An id for a span, unique in the run: spans can name their parent before it is written.
int64_t feed_next_span(struct feed *f);

size_t feed_bytes(struct feed *f);
// Number of dropped rows, and of other dropped items, each of which counts as one.
uint64_t feed_lost_rows(struct feed *f);
