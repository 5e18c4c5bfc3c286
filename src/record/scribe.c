// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Writes the feed to the run file once a second.

#include "record/scribe.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/array.h"
#include "base/clock.h"
#include "record/mark/hooks.h"
#include "record/sample/feed.h"

// Epochs ------------------------------------------------------------------------------------------
//
// Whether a matching line marks the end of an epoch.

bool scribe_epochs_end_at_lines(const struct epoch_line *lines, size_t n, int64_t end_ns)
{
	if (n == 0) {
		return false;
	}
	int64_t before = lines[0].t_ns, after = end_ns - lines[n - 1].t_ns;
	if (n == 1) {
		return before > after; // one line: it ends the longer part
	}
	// A line at the beginning of the last epoch is followed by about one epoch; a line at its
	// end by short cleanup work. Epochs differ in length, and their mean is less affected by a
	// slow first epoch than any single one.
	int64_t mean = (lines[n - 1].t_ns - lines[0].t_ns) / (int64_t)(n - 1);
	return after < mean / 2 && before > after;
}

// Scribe ------------------------------------------------------------------------------------------

#define COMMIT_INTERVAL_NS NS_PER_S
#define COMPACT_INTERVAL_NS (120 * NS_PER_S)
#define COMPACT_SOONEST_NS (5 * NS_PER_S) // if the file reaches its limit earlier
// Blocks are complete up to this time before now: lanes pass on their rows once a second.
#define COMPACT_LAG_NS ((int64_t)(3 * NS_PER_S))
// When the hooks' reports are first read; then every two seconds, since whoever watches a short run
// needs them soon; after two minutes at twice the time, and so on. A run that is cut off, or viewed
// while live, then has the reports so far.
#define HOOKS_FIRST_NS NS_PER_S
#define HOOKS_EVERY_NS (2 * NS_PER_S)
#define HOOKS_SOON_NS (120 * NS_PER_S)
// More epochs than this mean that the pattern matches every iteration. Further ones do not become
// spans.
#define EPOCHS_MAX 100000u
#define POINTS_MAX 1000000u

struct scribe {
	struct writer *writer;
	struct feed *feed;
	uint64_t start_ns;
	uint64_t compact_ns;
	int hooks; // the directory of their reports; -1: none
	uint64_t hooks_ns; // when the reports are next read
	pthread_t thread;
	_Atomic bool stop;
	struct epoch_line *epochs;
	size_t n_epochs;
	size_t epochs_capacity;
	size_t n_points;
	// Marks are more precise than lines: after the first marked epoch, lines begin no more
	// epochs.
	bool marked;
};

static int write_entity(struct scribe *s, const struct item *item)
{
	return writer_put_entity(s->writer, &(struct writer_entity){
						    .id = item->entity,
						    .kind = item->entity_kind,
						    .key = item->key,
						    .name = item->name,
						    .parent = item->parent,
						    .first_ns = item->t_ns,
						    .last_ns = item->last_ns,
						    .attributes = item->text,
					    });
}

static int write_entity_end(struct scribe *s, const struct item *item)
{
	return writer_end_entity(s->writer, item->entity, item->last_ns, item->text);
}

static int write_block(struct scribe *s, const struct item *item)
{
	return writer_put_block(s->writer, item->entity, item->source, &item->block);
}

static int write_missing(struct scribe *s, const struct item *item)
{
	return writer_put_missing(
		s->writer, item->entity, item->metric, item->t_ns, item->last_ns, item->text);
}

static int write_event(struct scribe *s, const struct item *item)
{
	return writer_put_event(s->writer, item->t_ns, item->event, item->entity, item->text);
}

// Reported once, when a pattern matches too often to mean epochs.
static int too_many(struct scribe *s, const struct item *item)
{
	return writer_put_event(s->writer, item->t_ns, "lost", 0,
		"the pattern matches too many lines; further matches are dropped");
}

static void drop_epochs(struct scribe *s)
{
	for (size_t i = 0; i < s->n_epochs && i < EPOCHS_MAX; i++) {
		writer_drop_span(s->writer, s->epochs[i].span);
	}
	s->n_epochs = 0;
}

// A matching line ends the previous epoch and begins the next.
static int begin_epoch(struct scribe *s, const struct item *item)
{
	void *epochs = s->epochs;
	if (s->marked) {
		return 0;
	}
	if (item->key && strcmp(item->key, ITEM_KEY_ANEW) == 0) {
		drop_epochs(s);
	}
	if (s->n_epochs >= EPOCHS_MAX) {
		return s->n_epochs++ == EPOCHS_MAX ? too_many(s, item) : 0;
	}
	if (array_reserve(&epochs, &s->epochs_capacity, s->n_epochs + 1, sizeof(*s->epochs)) < 0) {
		return -ENOMEM;
	}
	s->epochs = epochs;
	if (s->n_epochs > 0) {
		writer_end_span(s->writer, s->epochs[s->n_epochs - 1].span, item->t_ns);
	}
	struct epoch_line *line = &s->epochs[s->n_epochs];
	*line = (struct epoch_line){.t_ns = item->t_ns, .number = item->number};
	int r = writer_put_span(s->writer,
		&(struct writer_span){
			.id = feed_next_span(s->feed),
			.name = "epoch",
			.kind = "epoch",
			.start_ns = item->t_ns,
			.end_ns = -1,
			.number = item->number >= 0 ? item->number : (int64_t)s->n_epochs + 1,
			.samples = -1,
			.value = NAN,
		},
		&line->span);
	s->n_epochs += r == 0;
	return r;
}

// The job marks epochs itself. Removes those begun by lines.
static void begin_marked_epoch(struct scribe *s)
{
	if (!s->marked) {
		drop_epochs(s);
	}
	s->marked = true;
}

static int write_mark(struct scribe *s, const struct item *item)
{
	if (strcmp(item->text, "epoch") == 0) {
		begin_marked_epoch(s);
	}
	return writer_put_span(s->writer,
		&(struct writer_span){
			.id = item->span,
			.name = item->name,
			.kind = item->text,
			.start_ns = item->t_ns,
			.end_ns = item->last_ns,
			.thread = item->thread,
			.parent = item->parent,
			.number = item->number,
			.samples = item->samples,
			.value = item->value,
			.attributes = item->key,
		},
		NULL);
}

static int write_span_end(struct scribe *s, const struct item *item)
{
	return writer_complete_span(s->writer, item->span, item->last_ns, item->samples, item->key);
}

static int write_span(struct scribe *s, const struct item *item)
{
	if (item->span) {
		return write_mark(s, item);
	}
	if (strcmp(item->text, "epoch") == 0) {
		return begin_epoch(s, item);
	}
	if (s->n_points++ >= POINTS_MAX) {
		return s->n_points == POINTS_MAX + 1 ? too_many(s, item) : 0;
	}
	return writer_put_span(s->writer,
		&(struct writer_span){
			.id = feed_next_span(s->feed),
			.name = item->name,
			.kind = item->text,
			.start_ns = item->t_ns,
			.end_ns = item->last_ns,
			.number = item->number,
			.samples = -1,
			.value = item->value,
		},
		NULL);
}

static int write_object(struct scribe *s, const struct item *item)
{
	return writer_put_profile_object(s->writer, item->number, item->name);
}

static int write_samples(struct scribe *s, const struct item *item)
{
	int r = 0;
	for (int64_t i = 0; i < item->samples && r == 0; i++) {
		r = writer_put_profile_sample(
			s->writer, &(struct writer_sample){
					   .entity = item->entity,
					   .leader = item->thread,
					   .from_ns = item->t_ns,
					   .to_ns = item->last_ns,
					   .object = item->number,
					   .address = item->storage[2 * i],
					   .samples = item->storage[2 * i + 1],
				   });
	}
	return r;
}

static int write_phase_samples(struct scribe *s, const struct item *item)
{
	int r = 0;
	for (int64_t i = 0; i < item->samples && r == 0; i++) {
		r = writer_put_phase_sample(s->writer, item->text,
			&(struct writer_sample){
				.entity = item->entity,
				.leader = item->thread,
				.object = item->number,
				.address = item->storage[2 * i],
				.samples = item->storage[2 * i + 1],
			});
	}
	return r;
}

static void write_item(struct scribe *s, const struct item *item)
{
	static int (*const writes[])(struct scribe * s, const struct item *item) = {
		[ITEM_ENTITY] = write_entity,
		[ITEM_ENTITY_END] = write_entity_end,
		[ITEM_BLOCK] = write_block,
		[ITEM_MISSING] = write_missing,
		[ITEM_EVENT] = write_event,
		[ITEM_SPAN] = write_span,
		[ITEM_SPAN_END] = write_span_end,
		[ITEM_OBJECT] = write_object,
		[ITEM_SAMPLES] = write_samples,
		[ITEM_PHASE_SAMPLES] = write_phase_samples,
	};
	// The writer remembers a failure (a full disk). The job's readings continue.
	writes[item->kind](s, item);
}

static void write_waiting(struct scribe *s, uint64_t timeout_ns)
{
	struct item *item = feed_take(s->feed, timeout_ns);
	while (item) {
		struct item *next = item->next;
		write_item(s, item);
		item_free(item);
		item = next;
	}
	writer_commit(s->writer, NULL);
}

static void listen_to_hooks(struct scribe *s, uint64_t now_ns)
{
	if (s->hooks >= 0 && now_ns >= s->hooks_ns) {
		hooks_put_so_far(s->hooks, s->writer);
		uint64_t since_ns = now_ns - s->start_ns;
		s->hooks_ns = now_ns + (since_ns < HOOKS_FIRST_NS * 3     ? HOOKS_FIRST_NS
					       : since_ns < HOOKS_SOON_NS ? HOOKS_EVERY_NS
									  : since_ns);
	}
}

static void *scribe_main(void *context)
{
	struct scribe *s = context;
	prctl(PR_SET_NAME, "strain-scribe");
	while (!atomic_load(&s->stop)) {
		write_waiting(s, COMMIT_INTERVAL_NS);
		uint64_t now_ns = clock_monotonic_ns();
		listen_to_hooks(s, now_ns);
		bool soon = now_ns + COMPACT_INTERVAL_NS >= s->compact_ns + COMPACT_SOONEST_NS;
		if (now_ns >= s->compact_ns || (soon && writer_is_over_limit(s->writer))) {
			writer_compact(
				s->writer, (int64_t)(now_ns - s->start_ns) - COMPACT_LAG_NS, NULL);
			s->compact_ns = now_ns + COMPACT_INTERVAL_NS;
		}
	}
	write_waiting(s, 0);
	return NULL;
}

int scribe_start(struct writer *writer, struct feed *feed, uint64_t start_ns, int hooks,
	struct scribe **ret, struct error *e)
{
	struct scribe *s = calloc(1, sizeof(*s));
	if (!s) {
		return error_set(e, ENOMEM, "out of memory");
	}
	s->writer = writer;
	s->feed = feed;
	s->start_ns = start_ns;
	s->hooks = hooks;
	s->hooks_ns = start_ns + HOOKS_FIRST_NS;
	s->compact_ns = clock_monotonic_ns() + COMPACT_INTERVAL_NS;
	int r = pthread_create(&s->thread, NULL, scribe_main, s);
	if (r != 0) {
		free(s);
		return error_errno(e, r, "cannot start a thread");
	}
	*ret = s;
	return 0;
}

// If lines mark the ends of epochs, each epoch moves to the time before its line; the first began
// with the job.
static void settle_epochs(struct scribe *s, int64_t end_ns)
{
	s->n_epochs = s->n_epochs < EPOCHS_MAX ? s->n_epochs : EPOCHS_MAX;
	if (s->n_epochs == 0) {
		return;
	}
	if (!scribe_epochs_end_at_lines(s->epochs, s->n_epochs, end_ns)) {
		writer_end_span(s->writer, s->epochs[s->n_epochs - 1].span, end_ns);
		return;
	}
	int64_t from_ns = 0;
	for (size_t i = 0; i < s->n_epochs; i++) {
		writer_move_span(s->writer, s->epochs[i].span, from_ns, s->epochs[i].t_ns);
		from_ns = s->epochs[i].t_ns;
	}
	writer_put_run(s->writer, "epochs",
		"the lines mark the ends of epochs; the first epoch "
		"begins with the job");
}

void scribe_stop(struct scribe *s, int64_t end_ns)
{
	if (!s) {
		return;
	}
	atomic_store(&s->stop, true);
	feed_wake(s->feed);
	pthread_join(s->thread, NULL);
	if (s->marked) {
		writer_adopt_points(s->writer);
	}
	if (s->marked || s->n_epochs > 0) {
		writer_put_run(s->writer, "epochs_from", s->marked ? "marks" : "output");
	}
	settle_epochs(s, end_ns);
	free(s->epochs);
	free(s);
}
