// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A log is a ring of changes in order of time. Phases that the hooks mark only after a step has
// ended (forward, backward, optimizer) are inserted at their time.

#include "record/mark/phase_log.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"

enum {
	PROCESSES = 16,
	CHANGES_FIRST = 256,
	CHANGES_MOST = 32768, // per process: a second and a half of steps of 0.5 ms
	CHANGES_ALL = 65536, // 1.5 MiB
	SPLICED_MOST = 1024, // changes within one inserted span
};
// Younger changes are kept as long as more may be inserted before them.
#define ASKED_NS ((int64_t)(4 * NS_PER_S))
// For a process that never marked, the answer is final after this time, when its first mark would
// have been read: rings are found within 0.2 s, their owners within 0.5 s.
#define UNMARKED_NS ((int64_t)(NS_PER_S + NS_PER_S / 2))
// Between iterations, a hook may report later that one had begun (a loop without a loader).
#define AFTERWARDS_NS ((int64_t)(30 * NS_PER_S))

struct change {
	int64_t from_ns;
	int64_t began_ns; // start of the span to which it belongs
	int8_t phase;
};

struct process {
	int64_t entity; // 0: free
	int64_t thread; // 0: it has ended
	bool iterates;
	struct change *changes; // a ring
	size_t capacity, first, n;
	size_t *all; // capacity of all processes
	int64_t forgotten_ns; // times before it are no longer known
	int64_t iteration_ns; // start of the open iteration; -1: none
	int64_t marked_ns, read_ns;
};

struct phase_log {
	pthread_mutex_t mutex;
	bool any; // it iterates
	size_t all;
	struct process processes[PROCESSES];
	struct change pieces[SPLICED_MOST + 1];
};

static const struct {
	const char *name;
	bool apart;
} phases[] = {
	[LOGGED_NONE] = {"", false},
	[LOGGED_OTHER] = {"other", false},
	[LOGGED_DATA] = {"data", false},
	{"transfer", false},
	{"forward", false},
	{"backward", false},
	{"optimizer", false},
	{"communication", false},
	{"step", false},
	{"validation", true},
	{"checkpoint", true},
	{"import", true},
};

int phase_log_new(struct phase_log **ret)
{
	struct phase_log *log = calloc(1, sizeof(*log));
	if (!log) {
		return -ENOMEM;
	}
	pthread_mutex_init(&log->mutex, NULL);
	*ret = log;
	return 0;
}

void phase_log_free(struct phase_log *log)
{
	if (log) {
		for (size_t i = 0; i < PROCESSES; i++) {
			free(log->processes[i].changes);
		}
		pthread_mutex_destroy(&log->mutex);
		free(log);
	}
}

int phase_log_of_name(const char *name)
{
	for (size_t i = LOGGED_DATA; i < ARRAY_LENGTH(phases); i++) {
		if (strcmp(name, phases[i].name) == 0) {
			return (int)i;
		}
	}
	return LOGGED_NONE;
}

bool phase_log_stands_apart(int phase)
{
	return phase >= 0 && phases[phase].apart;
}

const char *phase_log_name(int phase)
{
	return phase >= 0 && (size_t)phase < ARRAY_LENGTH(phases) ? phases[phase].name : NULL;
}

// Changes -----------------------------------------------------------------------------------------

static struct change *change_at(const struct process *p, size_t i)
{
	return &p->changes[(p->first + i) % p->capacity];
}

static bool grow(struct process *p)
{
	size_t capacity = p->capacity ? 2 * p->capacity : CHANGES_FIRST;
	if (capacity > CHANGES_MOST || *p->all + capacity - p->capacity > CHANGES_ALL) {
		return false;
	}
	struct change *changes = calloc(capacity, sizeof(*changes));
	if (!changes) {
		return false;
	}
	*p->all += capacity - p->capacity;
	for (size_t i = 0; i < p->n; i++) {
		changes[i] = *change_at(p, i);
	}
	free(p->changes);
	p->changes = changes;
	p->capacity = capacity;
	p->first = 0;
	return true;
}

static void append(struct process *p, struct change change)
{
	struct change *last = p->n > 0 ? change_at(p, p->n - 1) : NULL;
	if (last && change.from_ns < last->from_ns) {
		change.from_ns = last->from_ns;
	}
	if (last && (last->phase == change.phase && change.phase <= LOGGED_OTHER)) {
		return;
	}
	if (p->n == p->capacity) {
		bool young = p->n == 0 || change.from_ns - change_at(p, 0)->from_ns < ASKED_NS;
		bool more = young && grow(p);
		if (!more && p->capacity == 0) {
			return;
		}
		if (!more) {
			p->first = (p->first + 1) % p->capacity;
			p->n--;
			p->forgotten_ns = change_at(p, 0)->from_ns;
		}
	}
	p->n++;
	*change_at(p, p->n - 1) = change;
}

// Returns the change that results from a change within a span. A span without a phase withdraws an
// iteration.
static struct change covered(struct change change, struct change span)
{
	bool named = change.phase > LOGGED_OTHER;
	bool inner = named && change.began_ns >= span.from_ns &&
	             !phase_log_stands_apart(span.phase);
	struct change ret = {change.from_ns, span.from_ns, span.phase};
	return change.phase == LOGGED_UNKNOWN || phase_log_stands_apart(change.phase) || inner
	               ? change
	       : span.phase == LOGGED_NONE && change.phase != LOGGED_OTHER ? change
	                                                                   : ret;
}

// Inserts a span that began before changes already in the log.
static void put_in(struct phase_log *log, struct process *p, struct change span, int64_t to_ns)
{
	struct change *pieces = log->pieces;
	size_t n = 0;
	while (n < SPLICED_MOST && n < p->n &&
		change_at(p, p->n - 1 - n)->from_ns >= span.from_ns) {
		n++;
	}
	bool has_before = n < SPLICED_MOST && n < p->n;
	pieces[0] = has_before ? *change_at(p, p->n - 1 - n) : (struct change){0};
	pieces[0].from_ns = span.from_ns;
	for (size_t i = 0; i < n; i++) {
		pieces[i + 1] = *change_at(p, p->n - n + i);
	}
	p->n -= n;
	for (size_t i = n == SPLICED_MOST; i <= n; i++) {
		int64_t end_ns = i < n ? pieces[i + 1].from_ns : INT64_MAX;
		struct change after = pieces[i];
		if (pieces[i].from_ns >= to_ns) {
			append(p, after);
		} else if (end_ns > pieces[i].from_ns) {
			append(p, covered(pieces[i], span));
			after.from_ns = to_ns;
			if (end_ns > to_ns) {
				append(p, after);
			}
		}
	}
}

// Processes ---------------------------------------------------------------------------------------

static struct process *process_find(struct phase_log *log, int64_t entity)
{
	for (size_t i = 0; i < PROCESSES; i++) {
		if (log->processes[i].entity == entity) {
			return &log->processes[i];
		}
	}
	return NULL;
}

static void process_begin(struct process *p, const struct phase_writer *w)
{
	w->log->all -= p->capacity;
	free(p->changes);
	*p = (struct process){
		.entity = w->entity, .thread = w->thread, .all = &w->log->all, .iteration_ns = -1};
}

// Returns a free slot, or that of a process whose thread has ended; NULL if all are in use.
static struct process *process_add(struct phase_log *log, const struct phase_writer *w)
{
	struct process *best = process_find(log, 0);
	for (size_t i = 0; i < PROCESSES && !best; i++) {
		best = log->processes[i].thread == 0 ? &log->processes[i] : NULL;
	}
	if (best) {
		process_begin(best, w);
	}
	return best;
}

// Returns the process that the thread may write; NULL if another thread of the process iterates.
static struct process *writable(const struct phase_writer *w, bool iterates)
{
	struct process *p = process_find(w->log, w->entity);
	if (!p) {
		p = process_add(w->log, w);
	} else if (p->thread == 0) {
		p->thread = w->thread;
	} else if (p->thread != w->thread && !p->iterates && iterates) {
		process_begin(p, w);
	}
	return p && p->thread == w->thread ? p : NULL;
}

static struct process *lock(const struct phase_writer *w, bool iterates)
{
	if (!w->log || w->entity == 0) {
		return NULL;
	}
	pthread_mutex_lock(&w->log->mutex);
	struct process *p = writable(w, iterates);
	if (!p) {
		pthread_mutex_unlock(&w->log->mutex);
	}
	return p;
}

static void unlock(const struct phase_writer *w)
{
	pthread_mutex_unlock(&w->log->mutex);
}

// Writing -----------------------------------------------------------------------------------------

void phase_log_change(const struct phase_writer *w, int64_t at_ns, int64_t began_ns, int phase)
{
	struct process *p = lock(w, false);
	if (p) {
		append(p, (struct change){at_ns, began_ns, (int8_t)phase});
		p->marked_ns = at_ns;
		unlock(w);
	}
}

void phase_log_span(const struct phase_writer *w, int64_t from_ns, int64_t to_ns, int phase)
{
	struct process *p = lock(w, false);
	if (p) {
		if (to_ns > from_ns) {
			put_in(w->log, p, (struct change){from_ns, from_ns, (int8_t)phase}, to_ns);
		}
		p->marked_ns = to_ns;
		unlock(w);
	}
}

void phase_log_iteration(const struct phase_writer *w, int64_t at_ns, bool open)
{
	struct process *p = lock(w, true);
	if (p) {
		p->iteration_ns = open ? at_ns : -1;
		p->marked_ns = at_ns;
		p->iterates = true;
		w->log->any = true;
		unlock(w);
	}
}

void phase_log_cancel(const struct phase_writer *w, int64_t since_ns)
{
	struct process *p = lock(w, true);
	if (p) {
		put_in(w->log, p, (struct change){since_ns, since_ns, LOGGED_NONE}, INT64_MAX);
		p->iteration_ns = -1;
		unlock(w);
	}
}

void phase_log_read(const struct phase_writer *w, int64_t until_ns)
{
	if (!w->log || w->entity == 0) {
		return;
	}
	pthread_mutex_lock(&w->log->mutex);
	struct process *p = process_find(w->log, w->entity);
	if (p && p->thread == w->thread) {
		p->read_ns = until_ns;
	}
	pthread_mutex_unlock(&w->log->mutex);
}

void phase_log_end(const struct phase_writer *w, int64_t at_ns)
{
	if (!w->log || w->entity == 0) {
		return;
	}
	pthread_mutex_lock(&w->log->mutex);
	struct process *p = process_find(w->log, w->entity);
	if (p && p->thread == w->thread) {
		append(p, (struct change){at_ns, at_ns, LOGGED_NONE});
		p->thread = 0;
		p->iteration_ns = -1;
	}
	pthread_mutex_unlock(&w->log->mutex);
}

// Asking ------------------------------------------------------------------------------------------

static int phase_at(const struct process *p, int64_t at_ns)
{
	size_t low = 0, high = p->n;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (change_at(p, middle)->from_ns <= at_ns) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return at_ns < p->forgotten_ns ? LOGGED_UNKNOWN
	       : low > 0               ? change_at(p, low - 1)->phase
	                               : LOGGED_NONE;
}

// Returns the time up to which no further mark can change the log.
static int64_t settled(const struct process *p, int64_t now_ns)
{
	int64_t afterwards_ns = p->read_ns - AFTERWARDS_NS;
	return p->thread == 0                 ? now_ns
	       : p->iteration_ns >= 0         ? p->iteration_ns
	       : p->marked_ns > afterwards_ns ? p->marked_ns
	                                      : afterwards_ns;
}

bool phase_log_iterates(struct phase_log *log, int64_t entity)
{
	pthread_mutex_lock(&log->mutex);
	const struct process *p = entity ? process_find(log, entity) : NULL;
	bool iterates = entity ? p && p->iterates : log->any;
	pthread_mutex_unlock(&log->mutex);
	return iterates;
}

bool phase_log_at(struct phase_log *log, int64_t entity, int64_t at_ns, int64_t now_ns, bool final,
	int *ret_phase)
{
	pthread_mutex_lock(&log->mutex);
	const struct process *p = process_find(log, entity);
	int64_t until_ns = p ? settled(p, now_ns) : now_ns - UNMARKED_NS;
	bool known = final || at_ns < until_ns;
	*ret_phase = p && known ? phase_at(p, at_ns) : LOGGED_NONE;
	pthread_mutex_unlock(&log->mutex);
	return known;
}
