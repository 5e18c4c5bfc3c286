// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Matches ends of spans with their beginnings. If marks were dropped, the depth in each mark shows
// which spans lost theirs.

#include "record/mark/spans.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "record/mark/phase_log.h"
#include "record/sample/feed.h"

#define SPANS_PER_S 2000u
// The job's duration is unknown in advance. The remaining number of spans is spent so that it would
// suffice for twice the time passed so far plus this time. After this time, fewer iterations are
// kept the longer the job runs, but always some.
#define PACE_FROM_S 600.0
#define SPANS_AT_ONCE 20000u
// Libraries mark thousands of ranges a second by NVTX (XLA: each pass of its compiler). They leave
// so many of the available spans, and this share of all, to iterations and phases.
#define NVTX_LEAVES 5000.0
#define NVTX_SHARE 0.5
// An iteration is kept or dropped as a whole: half of its phases would misrepresent the rest. An
// iteration is kept only if this many spans are available, and may borrow the spans that it needs
// beyond them.
#define ITERATION_SPANS 32
#define BORROWED_MOST 1000
// Share of the queue to the run file. There must always be space to record the processes
// themselves.
#define QUEUE_SHARE_BYTES ((size_t)4 << 20)
#define EPOCHS_MAX 100000u
#define EARLY_MAX 64
#define STACK_MAX (STRAIN_RING_DEPTH + 1)

struct open_span {
	int64_t id; // 0: none
	const char *name;
	int64_t start_ns; // since the run's start
	int64_t number;
	int64_t samples;
	unsigned depth;
};

struct marked_epoch {
	int64_t id;
	int64_t number;
	int64_t start_ns;
	int64_t end_ns; // INT64_MAX while it is open
	int64_t samples; // -1 until an iteration reports some
	const char *how; // reason of its end; NULL: regular
	bool settled; // written to the run file
};

// Samples of an epoch that another rank has begun but the leader, as far as its marks were read,
// has not: the marks of each thread are read up to a different time.
struct early_samples {
	int64_t number; // of the epoch
	int64_t at_ns; // in the middle of its first iteration
	int64_t samples;
};

struct spans {
	struct feed *feed;
	struct phase_log *log; // NULL: not needed
	int64_t n_threads; // number of threads so far
	uint64_t start_ns;
	uint64_t max_spans;
	uint64_t kept;
	uint64_t dropped;
	double allowance; // spans that may be kept at present
	uint64_t allowance_ns; // time of that value
	_Atomic unsigned *epochs_seen;
	struct marked_thread *leader; // the thread whose epochs are the job's
	struct marked_epoch *epochs;
	size_t n_epochs;
	size_t epochs_capacity;
	size_t first_of_leader; // earlier epochs are not its
	struct early_samples early[EARLY_MAX];
	size_t n_early;
	size_t unsettled; // earlier epochs are settled
};

struct marked_thread {
	struct spans *spans;
	uint32_t tid;
	int64_t entity;
	uint32_t pid;
	bool nvtx;
	bool leads;
	bool iterated; // it has marked an iteration
	struct open_span epoch; // its own epoch
	struct open_span iteration;
	bool skips; // the iteration and its contents are not kept
	uint64_t lost; // marks missing in the iteration, although it is kept
	struct open_span stack[STACK_MAX];
	size_t n_stack;
	int64_t last_ns; // of its last mark
	struct phase_writer log;
	int phase; // its phase in the log
	int64_t phase_ns; // start of that phase's span
};

int spans_new(struct feed *feed, uint64_t start_ns, uint64_t max_spans, _Atomic unsigned *epochs,
	struct spans **ret)
{
	struct spans *s = calloc(1, sizeof(*s));
	if (!s) {
		return -ENOMEM;
	}
	s->feed = feed;
	s->start_ns = start_ns;
	s->max_spans = max_spans;
	s->allowance = SPANS_AT_ONCE;
	s->allowance_ns = start_ns;
	s->epochs_seen = epochs;
	*ret = s;
	return 0;
}

void spans_log_phases(struct spans *s, struct phase_log *log)
{
	s->log = log;
}

void spans_free(struct spans *s)
{
	if (s) {
		free(s->epochs);
		free(s);
	}
}

uint64_t spans_dropped(const struct spans *s)
{
	return s->dropped;
}

// Writing -----------------------------------------------------------------------------------------

// Number of spans per second that may be kept from now on.
static double pace_of(const struct spans *s, int64_t now_ns)
{
	double left = s->kept < s->max_spans ? (double)(s->max_spans - s->kept) : 0;
	return fmin(left / (2 * ((double)now_ns / 1e9 + PACE_FROM_S)), SPANS_PER_S);
}

static void update_allowance(struct spans *s, int64_t now_ns)
{
	uint64_t now = s->start_ns + (uint64_t)now_ns;
	if (now > s->allowance_ns) {
		s->allowance += (double)(now - s->allowance_ns) / 1e9 * pace_of(s, now_ns);
		s->allowance = s->allowance < SPANS_AT_ONCE ? s->allowance : SPANS_AT_ONCE;
		s->allowance_ns = now;
	}
}

// Whether another span of the thread may be kept, at now_ns since the run's start.
static bool is_allowed(struct marked_thread *thread, int64_t now_ns)
{
	struct spans *s = thread->spans;
	bool iterates = thread->iteration.id != 0;
	double least = iterates ? -BORROWED_MOST : thread->nvtx ? NVTX_LEAVES : 1.0;
	double most = (double)s->max_spans * (thread->nvtx ? NVTX_SHARE : 1);
	update_allowance(s, now_ns);
	bool allowed = (double)s->kept < most && s->allowance >= least &&
	               feed_bytes(s->feed) < QUEUE_SHARE_BYTES && !(iterates && thread->skips);
	s->kept += allowed;
	s->dropped += !allowed;
	s->allowance -= allowed;
	thread->lost += !allowed && iterates;
	return allowed;
}

static const char *kind_of_span(const struct marked_thread *thread, const char *name)
{
	bool is_phase = phase_log_of_name(name) != LOGGED_NONE || strcmp(name, "prepare") == 0;
	return is_phase && !thread->nvtx ? "phase" : "user";
}

static void write_attributes(
	const struct marked_thread *thread, const char *how, char *buffer, size_t size)
{
	const char *key = thread->entity ? "process" : "pid";
	int64_t who = thread->entity ? thread->entity : (int64_t)thread->pid;
	snprintf(buffer, size, "{\"%s\":%" PRId64 "%s%s%s%s}", key, who,
		thread->nvtx ? ",\"from\":\"nvtx\"" : "", how ? ",\"end\":\"" : "", how ? how : "",
		how ? "\"" : "");
}

static void put_span(const struct marked_thread *thread, const struct open_span *span,
	const char *kind, int64_t parent, int64_t end_ns, const char *how)
{
	char attributes[96];
	write_attributes(thread, how, attributes, sizeof(attributes));
	if (span == &thread->iteration && thread->lost > 0) {
		size_t length = strlen(attributes) - 1; // overwrites the brace
		snprintf(attributes + length, sizeof(attributes) - length, ",\"lost\":%" PRIu64 "}",
			thread->lost);
	}
	feed_put(thread->spans->feed, &(struct item){
					      .kind = ITEM_SPAN,
					      .name = span->name,
					      .text = kind,
					      .key = attributes,
					      .span = span->id,
					      .t_ns = span->start_ns,
					      .last_ns = end_ns,
					      .parent = parent,
					      .thread = thread->tid,
					      .number = span->number,
					      .samples = span->samples,
					      .value = NAN,
				      });
}

static int64_t run_time(const struct marked_thread *thread, uint64_t now_ns)
{
	return (int64_t)(now_ns - thread->spans->start_ns);
}

static struct open_span span_open(
	struct marked_thread *thread, const struct ring_mark *mark, const char *name)
{
	return (struct open_span){
		.id = feed_next_span(thread->spans->feed),
		.name = name,
		.start_ns = run_time(thread, mark->time_ns),
		.number = mark->number < 0 ? -1 : mark->number,
		.samples = mark->samples,
		.depth = mark->depth,
	};
}

// Spans of one's own ------------------------------------------------------------------------------

// Returns the parent of the span at this position of the stack.
static int64_t parent_at(const struct marked_thread *thread, size_t place)
{
	return place > 0              ? thread->stack[place - 1].id
	       : thread->iteration.id ? thread->iteration.id
	                              : thread->epoch.id;
}

static void close_top(struct marked_thread *thread, int64_t end_ns, const char *how)
{
	const struct open_span *span = &thread->stack[--thread->n_stack];
	if (is_allowed(thread, end_ns)) {
		put_span(thread, span, kind_of_span(thread, span->name),
			parent_at(thread, thread->n_stack), end_ns, how);
	}
}

static void take_begin(struct marked_thread *thread, const struct ring_mark *mark)
{
	while (thread->n_stack > 0 && thread->stack[thread->n_stack - 1].depth >= mark->depth) {
		close_top(thread, run_time(thread, mark->time_ns), "lost");
	}
	if (thread->n_stack < STACK_MAX) {
		thread->stack[thread->n_stack++] = span_open(thread, mark, mark->name);
	}
}

static void take_end(struct marked_thread *thread, const struct ring_mark *mark)
{
	int64_t end_ns = run_time(thread, mark->time_ns);
	while (thread->n_stack > 0 && thread->stack[thread->n_stack - 1].depth > mark->depth) {
		close_top(thread, end_ns, "lost");
	}
	// Otherwise its beginning was dropped.
	if (thread->n_stack > 0 && thread->stack[thread->n_stack - 1].depth == mark->depth) {
		close_top(thread, end_ns, NULL);
	}
}

// Returns the innermost span that was open when the span began and still is.
static int64_t parent_since(const struct marked_thread *thread, int64_t start_ns)
{
	for (size_t i = thread->n_stack; i > 0; i--) {
		if (thread->stack[i - 1].start_ns <= start_ns) {
			return thread->stack[i - 1].id;
		}
	}
	return thread->iteration.id && thread->iteration.start_ns <= start_ns ? thread->iteration.id
	       : thread->epoch.id && thread->epoch.start_ns <= start_ns       ? thread->epoch.id
	                                                                      : 0;
}

static void take_span(struct marked_thread *thread, const struct ring_mark *mark)
{
	int64_t end_ns = run_time(thread, mark->time_ns);
	if (is_allowed(thread, end_ns)) {
		struct open_span span = span_open(thread, mark, mark->name);
		span.start_ns = run_time(thread, mark->began_ns);
		put_span(thread, &span, kind_of_span(thread, span.name),
			parent_since(thread, span.start_ns), end_ns, NULL);
	}
}

static void take_point(struct marked_thread *thread, const struct ring_mark *mark)
{
	int64_t now_ns = run_time(thread, mark->time_ns);
	char attributes[96];
	if (!is_allowed(thread, now_ns)) {
		return;
	}
	write_attributes(thread, NULL, attributes, sizeof(attributes));
	feed_put(thread->spans->feed, &(struct item){
					      .kind = ITEM_SPAN,
					      .name = mark->name,
					      .text = "point",
					      .key = attributes,
					      .span = feed_next_span(thread->spans->feed),
					      .t_ns = now_ns,
					      .last_ns = now_ns,
					      .parent = parent_at(thread, thread->n_stack),
					      .thread = thread->tid,
					      .number = mark->number < 0 ? -1 : mark->number,
					      .samples = -1,
					      .value = mark->value,
				      });
}

// Epochs and iterations ---------------------------------------------------------------------------

// Returns the epoch that contains this time; NULL if there is none. Epochs are in order of time.
static struct marked_epoch *epoch_at(struct spans *s, int64_t at_ns)
{
	size_t low = 0, high = s->n_epochs;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (s->epochs[middle].start_ns <= at_ns) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low > 0 && at_ns < s->epochs[low - 1].end_ns ? &s->epochs[low - 1] : NULL;
}

static void epoch_add_samples(struct spans *s, struct marked_epoch *epoch, int64_t samples)
{
	int64_t sum = epoch->samples > 0 ? epoch->samples : 0;
	size_t i = (size_t)(epoch - s->epochs);
	epoch->samples = __builtin_add_overflow(sum, samples, &sum) ? INT64_MAX : sum;
	epoch->settled = false;
	s->unsettled = i < s->unsettled ? i : s->unsettled;
}

// Finds, among the leader's last epochs, the one that has this number in another rank; NULL if
// there is none yet.
static struct marked_epoch *epoch_numbered(struct spans *s, int64_t number)
{
	size_t last = s->n_epochs > EARLY_MAX ? s->n_epochs - EARLY_MAX : 0;
	last = last > s->first_of_leader ? last : s->first_of_leader;
	for (size_t i = s->n_epochs; i > last; i--) {
		if (s->epochs[i - 1].number == number) {
			return &s->epochs[i - 1];
		}
	}
	return NULL;
}

// The leader has no such epoch. Its samples count for the leader's epoch at that time.
static void early_settle_first(struct spans *s)
{
	struct marked_epoch *epoch = epoch_at(s, s->early[0].at_ns);
	if (epoch) {
		epoch_add_samples(s, epoch, s->early[0].samples);
	}
	memmove(s->early, s->early + 1, --s->n_early * sizeof(s->early[0]));
}

static void early_add(struct spans *s, int64_t number, int64_t at_ns, int64_t samples)
{
	for (size_t i = 0; i < s->n_early; i++) {
		struct early_samples *early = &s->early[i];
		if (early->number == number) {
			int64_t sum = early->samples;
			early->samples = __builtin_add_overflow(sum, samples, &sum) ? INT64_MAX
			                                                            : sum;
			return;
		}
	}
	if (s->n_early == EARLY_MAX) {
		early_settle_first(s);
	}
	s->early[s->n_early++] = (struct early_samples){number, at_ns, samples};
}

// The leader began an epoch that other ranks may have begun earlier.
static void early_take(struct spans *s, struct marked_epoch *epoch)
{
	size_t i = 0;
	while (i < s->n_early && s->early[i].number != epoch->number) {
		i++;
	}
	if (i < s->n_early) {
		epoch_add_samples(s, epoch, s->early[i].samples);
		s->early[i] = s->early[--s->n_early];
	}
}

// Ranks go through their epochs at different times, so the number identifies the epoch. A thread
// that marks no epochs is in the leader's epoch at the middle of the iteration.
static void iteration_count(
	struct marked_thread *thread, const struct open_span *span, int64_t end_ns)
{
	struct spans *s = thread->spans;
	int64_t middle_ns = span->start_ns + (end_ns - span->start_ns) / 2;
	bool numbered = thread->epoch.id && thread->epoch.number >= 0;
	struct marked_epoch *epoch = thread->epoch.id && thread->leads ? &s->epochs[s->n_epochs - 1]
	                             : numbered ? epoch_numbered(s, thread->epoch.number)
	                                        : epoch_at(s, middle_ns);
	if (epoch) {
		epoch_add_samples(s, epoch, span->samples);
	} else if (numbered) {
		early_add(s, thread->epoch.number, middle_ns, span->samples);
	}
}

static void close_iteration(struct marked_thread *thread, int64_t end_ns, const char *how)
{
	struct open_span *span = &thread->iteration;
	if (span->id == 0) {
		return;
	}
	if (span->samples > 0 && !how) {
		iteration_count(thread, span, end_ns);
	}
	if (is_allowed(thread, end_ns)) {
		put_span(thread, span, "iteration", thread->epoch.id, end_ns, how);
	}
	span->id = 0;
}

static void close_epoch(struct marked_thread *thread, int64_t end_ns, const char *how)
{
	struct spans *s = thread->spans;
	struct open_span *span = &thread->epoch;
	if (span->id && thread->leads) {
		struct marked_epoch *epoch = &s->epochs[s->n_epochs - 1];
		epoch->end_ns = end_ns;
		epoch->how = how;
		epoch->settled = false;
		s->unsettled = s->unsettled < s->n_epochs ? s->unsettled : s->n_epochs - 1;
		atomic_fetch_add(s->epochs_seen, 1);
	} else if (span->id && is_allowed(thread, end_ns)) {
		put_span(thread, span, "user", 0, end_ns, how);
	}
	span->id = 0;
}

// The first thread that marks an epoch provides the job's epochs.
static bool may_lead(struct marked_thread *thread, int64_t start_ns)
{
	struct spans *s = thread->spans;
	void *epochs = s->epochs;
	if ((s->leader && s->leader != thread) || s->n_epochs >= EPOCHS_MAX ||
		(s->n_epochs > 0 && start_ns < s->epochs[s->n_epochs - 1].end_ns) ||
		array_reserve(&epochs, &s->epochs_capacity, s->n_epochs + 1, sizeof(*s->epochs)) <
			0) {
		return false;
	}
	s->epochs = epochs;
	s->first_of_leader = s->leader == thread ? s->first_of_leader : s->n_epochs;
	s->leader = thread;
	return true;
}

static void take_epoch(struct marked_thread *thread, const struct ring_mark *mark)
{
	struct spans *s = thread->spans;
	int64_t start_ns = run_time(thread, mark->time_ns);
	close_iteration(thread, start_ns, NULL);
	close_epoch(thread, start_ns, NULL);
	thread->epoch = span_open(thread, mark, "epoch");
	thread->leads = may_lead(thread, start_ns);
	if (thread->leads) {
		s->epochs[s->n_epochs++] = (struct marked_epoch){.id = thread->epoch.id,
			.number = thread->epoch.number,
			.start_ns = start_ns,
			.end_ns = INT64_MAX,
			.samples = -1,
			.settled = true};
		s->unsettled = s->unsettled == s->n_epochs - 1 ? s->n_epochs : s->unsettled;
		atomic_fetch_add(s->epochs_seen, 1);
		put_span(thread, &thread->epoch, "epoch", 0, -1, NULL);
		early_take(s, &s->epochs[s->n_epochs - 1]);
	}
}

static void take_epoch_end(struct marked_thread *thread, const struct ring_mark *mark)
{
	close_iteration(thread, run_time(thread, mark->time_ns), NULL);
	close_epoch(thread, run_time(thread, mark->time_ns), NULL);
}

static void take_iteration(struct marked_thread *thread, const struct ring_mark *mark)
{
	int64_t start_ns = run_time(thread, mark->time_ns);
	close_iteration(thread, start_ns, NULL);
	update_allowance(thread->spans, start_ns);
	thread->iteration = span_open(thread, mark, "iteration");
	thread->skips = thread->spans->allowance < ITERATION_SPANS;
	thread->iterated = true;
	thread->lost = 0;
}

static void take_iteration_end(struct marked_thread *thread, const struct ring_mark *mark)
{
	if (mark->number == 0) {
		thread->iteration.id = 0;
	}
	if (mark->samples >= 0) {
		thread->iteration.samples = mark->samples;
	}
	close_iteration(thread, run_time(thread, mark->time_ns), NULL);
}

// The epoch's attributes name its thread from the start; only the reason of its end is new.
void spans_settle(struct spans *s)
{
	for (size_t i = s->unsettled; i < s->n_epochs; i++) {
		struct marked_epoch *epoch = &s->epochs[i];
		char attributes[32];
		if (epoch->settled) {
			continue;
		}
		snprintf(attributes, sizeof(attributes), "{\"end\":\"%s\"}",
			epoch->how ? epoch->how : "");
		feed_put(
			s->feed, &(struct item){
					 .kind = ITEM_SPAN_END,
					 .key = epoch->how ? attributes : NULL,
					 .span = epoch->id,
					 .last_ns = epoch->end_ns == INT64_MAX ? -1 : epoch->end_ns,
					 .samples = epoch->samples,
				 });
		epoch->settled = true;
	}
	s->unsettled = s->n_epochs;
}

// Phases ------------------------------------------------------------------------------------------

// If the thread prepares batches itself, that is the data phase of its iterations.
static int phase_of_span(const struct marked_thread *thread, const char *name)
{
	bool prepares = strcmp(name, "prepare") == 0;
	return thread->nvtx                                 ? LOGGED_NONE
	       : prepares && thread->iteration.start_ns > 0 ? LOGGED_DATA
	                                                    : phase_log_of_name(name);
}

static void log_phase(struct marked_thread *thread)
{
	int phase = thread->iteration.id ? LOGGED_OTHER : LOGGED_NONE;
	int64_t began_ns = 0;
	for (size_t i = 0; i < thread->n_stack && !phase_log_stands_apart(phase); i++) {
		const struct open_span *span = &thread->stack[i];
		int found = phase_of_span(thread, span->name);
		began_ns = found ? span->start_ns : began_ns;
		phase = found ? found : phase;
	}
	if (phase != thread->phase || began_ns != thread->phase_ns) {
		phase_log_change(&thread->log, thread->last_ns, began_ns, phase);
		thread->phase = phase;
		thread->phase_ns = began_ns;
	}
}

static void log_lost(struct marked_thread *thread, int64_t from_ns)
{
	phase_log_change(&thread->log, from_ns, from_ns, LOGGED_UNKNOWN);
	thread->phase = LOGGED_UNKNOWN;
}

// Logs what changed after the mark was taken.
static void log_mark(struct marked_thread *thread, const struct ring_mark *mark,
	const struct open_span *iteration)
{
	if (mark->kind == STRAIN_MARK_SPAN) {
		int phase = phase_of_span(thread, mark->name);
		if (phase != LOGGED_NONE) {
			phase_log_span(&thread->log, run_time(thread, mark->began_ns),
				thread->last_ns, phase);
		}
	} else if (mark->kind == STRAIN_MARK_ITERATION_END && mark->number == 0 && iteration->id) {
		phase_log_cancel(&thread->log, iteration->start_ns);
	}
	log_phase(thread);
	if (thread->iteration.id != iteration->id) {
		phase_log_iteration(&thread->log, thread->last_ns, thread->iteration.id != 0);
	}
}

// Threads -----------------------------------------------------------------------------------------

int marked_thread_new(struct spans *s, uint32_t tid, struct marked_thread **ret)
{
	struct marked_thread *thread = calloc(1, sizeof(*thread));
	if (!thread) {
		return -ENOMEM;
	}
	thread->spans = s;
	thread->tid = tid;
	thread->log = (struct phase_writer){s->log, 0, ++s->n_threads};
	*ret = thread;
	return 0;
}

void marked_thread_owner(
	struct marked_thread *thread, int64_t entity, const struct ring_owner *owner)
{
	thread->entity = entity;
	thread->pid = owner->pid;
	thread->nvtx = owner->nvtx;
	thread->log.entity = entity;
	if (thread->last_ns > 0) { // earlier marks had no known owner
		log_lost(thread, 0);
	}
}

void marked_thread_read(struct marked_thread *thread, uint64_t until_ns)
{
	phase_log_read(&thread->log, run_time(thread, until_ns));
}

int64_t marked_thread_trains(const struct marked_thread *thread)
{
	return thread->iterated ? thread->entity : 0;
}

void marked_thread_take(void *context, const struct ring_mark *mark)
{
	static void (*const takes[])(struct marked_thread *, const struct ring_mark *) = {
		[STRAIN_MARK_BEGIN] = take_begin,
		[STRAIN_MARK_END] = take_end,
		[STRAIN_MARK_POINT] = take_point,
		[STRAIN_MARK_EPOCH] = take_epoch,
		[STRAIN_MARK_EPOCH_END] = take_epoch_end,
		[STRAIN_MARK_ITERATION] = take_iteration,
		[STRAIN_MARK_SPAN] = take_span,
		[STRAIN_MARK_ITERATION_END] = take_iteration_end,
	};
	struct marked_thread *thread = context;
	const struct open_span iteration = thread->iteration;
	if (mark->gap) {
		log_lost(thread, thread->last_ns);
	}
	thread->last_ns = run_time(thread, mark->time_ns);
	// If marks were dropped in an iteration, neither its end nor the number of missing spans is
	// known.
	thread->lost += mark->gap && thread->iteration.id;
	takes[mark->kind](thread, mark);
	if (thread->log.log) {
		log_mark(thread, mark, &iteration);
	}
}

void marked_thread_end(struct marked_thread *thread, uint64_t now_ns, const char *how)
{
	int64_t end_ns = run_time(thread, now_ns);
	end_ns = end_ns > thread->last_ns ? end_ns : thread->last_ns; // clocks may differ slightly
	while (thread->n_stack > 0) {
		close_top(thread, end_ns, how);
	}
	close_iteration(thread, end_ns, how);
	close_epoch(thread, end_ns, how);
	phase_log_end(&thread->log, end_ns);
	if (thread->spans->leader == thread) {
		thread->spans->leader = NULL;
		while (thread->spans->n_early > 0) {
			early_settle_first(thread->spans);
		}
	}
	free(thread);
}
