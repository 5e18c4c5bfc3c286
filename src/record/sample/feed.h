// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What the lanes have for the run file, on its way there: a queue with many writers and one reader.
// Its size is bounded; what does not fit is dropped and counted, never waited for.

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

// One thing to write. Times are ns since the run's start. Strings lie behind the item in the same
// allocation, or are NULL.
// As a key of what a line of output began: all that lines began before was none.
#define ITEM_KEY_ANEW "anew"

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

// max_bytes bounds the rows that wait or that the reader still holds; what is no row has a reserve
// of 1 MiB, of which those of the host, the job and the recorder may use a half. 0 or -ENOMEM.
int feed_new(size_t max_bytes, struct feed **ret);
void feed_free(struct feed *f);

// Copies the strings of `fields` behind a new item and puts it into the queue. fields->storage is
// taken over in any case. False where it had to be dropped (counted).
bool feed_put(struct feed *f, const struct item *fields);

// Everything that waits, in order, NULL where nothing does; the caller frees each with item_free
// before it calls again: until then they count against the bound. Waits at most timeout_ns for
// something to come; feed_wake ends the wait.
struct item *feed_take(struct feed *f, uint64_t timeout_ns);
void feed_wake(struct feed *f);
void item_free(struct item *item);

// An id for a span, unique in the run: spans can name their parent before it is written.
int64_t feed_next_span(struct feed *f);

size_t feed_bytes(struct feed *f);
// Rows dropped so far, and other items, which count as one.
uint64_t feed_lost_rows(struct feed *f);
