// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Replays spans from one cursor for each kind, in order of start. The cursors are merged, so that
// no span is sorted or kept.

#include "run/timeline.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/parse.h"
#include "run/histogram.h"
#include "run/query.h"
#include "runfile/database.h"
#include "runfile/reader.h"
#include "runfile/spans_table.h"

// --- the first pass: which threads iterate, which of them are main, and how many iterations were
// warm-up

// Columns of the queries below.
enum {
	COLUMN_START,
	COLUMN_END,
	COLUMN_THREAD,
	COLUMN_ATTRIBUTES,
	COLUMN_NUMBER,
	COLUMN_SAMPLES,
	COLUMN_NAME,
};

// The index of spans by kind and start gives this order without sorting.
#define FIRST_PASS_ROWS(kind)                                                                \
	"SELECT start_ns, end_ns, thread, attributes, number, samples, name FROM span WHERE" \
	" kind = '" kind "' AND start_ns >= 0 AND end_ns > start_ns ORDER BY start_ns, id"
#define FIRST_PASS_ITERATIONS FIRST_PASS_ROWS("iteration")
#define FIRST_PASS_PHASES FIRST_PASS_ROWS("phase")
#define FIRST_PASS_OWN FIRST_PASS_ROWS("user")
#define REPLAYED_NONE SIZE_MAX

struct first_pass_key {
	int64_t entity;
	int64_t pid;
	int64_t thread;
};

struct head {
	double seconds;
	int64_t end_ns;
	bool compiled;
};

// A compilation on a thread.
struct compilation {
	struct first_pass_key key;
	int64_t start_ns;
	int64_t end_ns;
};

struct first_pass_thread {
	struct first_pass_key key;
	size_t replayed; // 0: a main thread; REPLAYED_NONE: none yet
	bool leads; // the run's epochs are on this thread
	uint64_t spans; // iterations; phases if the run has no iterations
	uint64_t whole; // iterations that were not cut
	int64_t first_ns;
	int64_t last_ns;
	uint64_t warm_up;
	uint64_t compiling; // uncut iterations of which a compilation takes half
	int64_t compiling_ns; // that it takes of them
	uint64_t compiled; // those of them after the warm-up
	uint64_t compiled_last; // place of the last one among `whole`, from 1; 0: none
	bool compiles_rarely;
	struct histogram lengths;
	struct head *head; // [n_head], the first iterations
	size_t n_head;
	size_t head_capacity;
};

struct first_pass {
	struct first_pass_thread **threads; // sorted by key
	size_t n;
	size_t capacity;
	struct first_pass_thread *recent;
	struct span_pass pass; // progress
	struct first_pass_thread *main; // the first main thread; NULL: none
	struct compilation *compilations; // in order of start
	size_t n_compilations;
	size_t compilations_capacity;
	uint64_t whole; // uncut iterations of main threads
	uint64_t warm_up;
	uint64_t compiled;
	int64_t warm_until_ns; // end of the first main thread's
};

static void first_pass_done(struct first_pass *s);
static int first_pass_thread(
	struct first_pass *s, sqlite3_stmt *row, struct first_pass_thread **ret);

// Span pass ---------------------------------------------------------------------------------------
//
// Progress is estimated from time, since iterations take about the same work.

#define SPANS_A_PART 1000
#define PARTS_MAX 100000 // upper bound, even if a file claims more

uint64_t span_pass_parts(struct reader *r)
{
	// In files of schema 1.0, spans are rows with ascending ids.
	static const char *const queries[] = {
		"SELECT sum(rows) FROM main.span_block", "SELECT max(id) FROM main.span"};
	int64_t spans = 0;
	for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]) && spans == 0; i++) {
		_cleanup_statement_ sqlite3_stmt *statement = NULL;
		if (sqlite3_prepare_v2(reader_database(r), queries[i], -1, &statement, NULL) ==
				SQLITE_OK &&
			sqlite3_step(statement) == SQLITE_ROW) {
			spans = sqlite3_column_int64(statement, 0);
		}
	}
	int64_t parts = spans / SPANS_A_PART;
	return parts < 0 ? 0 : parts < PARTS_MAX ? (uint64_t)parts : PARTS_MAX;
}

static void span_pass_start(struct span_pass *pass, struct reader *r, uint64_t parts)
{
	*pass = (struct span_pass){.reader = r, .end_ns = reader_end_ns(r), .parts = parts};
}

static void tell(struct span_pass *pass, uint64_t parts)
{
	for (; pass->told < parts; pass->told++) {
		reader_progress(pass->reader);
	}
}

// Reports the progress up to the start of a span. Cheap.
static void span_pass_at(struct span_pass *pass, int64_t start_ns)
{
	if (start_ns > 0 && start_ns < pass->end_ns) {
		tell(pass,
			(uint64_t)((double)pass->parts * (double)start_ns / (double)pass->end_ns));
	}
}

static void span_pass_end(struct span_pass *pass)
{
	tell(pass, pass->parts);
}

// Survey ------------------------------------------------------------------------------------------
//
// Reads the iterations, to find the main threads and the warm-up.

#define WINDOW 5 // iterations per median

// Threads -----------------------------------------------------------------------------------------

// The recorder writes {"process":12} or {"pid":4242}; a JSON parser would cost too much for each of
// millions.
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

static struct first_pass_key key_of_row(sqlite3_stmt *row)
{
	struct first_pass_key key = {.thread = sqlite3_column_int64(row, COLUMN_THREAD)};
	const char *attributes = (const char *)sqlite3_column_text(row, COLUMN_ATTRIBUTES);
	if (attributes && !number_of(attributes, "\"process\":", &key.entity)) {
		number_of(attributes, "\"pid\":", &key.pid);
	}
	return key;
}

// Whether an iteration did not end properly or lost some of its spans.
static bool first_pass_is_cut(sqlite3_stmt *row)
{
	const char *attributes = (const char *)sqlite3_column_text(row, COLUMN_ATTRIBUTES);
	return attributes && (strstr(attributes, "\"end\":") || strstr(attributes, "\"lost\":"));
}

static int key_compare(const struct first_pass_key *a, const struct first_pass_key *b)
{
	return a->entity != b->entity ? (a->entity > b->entity) - (a->entity < b->entity)
	       : a->pid != b->pid     ? (a->pid > b->pid) - (a->pid < b->pid)
	                              : (a->thread > b->thread) - (a->thread < b->thread);
}

static size_t place_of(const struct first_pass *s, const struct first_pass_key *key)
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

static int thread_insert(struct first_pass *s, size_t place, const struct first_pass_key *key)
{
	void *threads = s->threads;
	struct first_pass_thread *thread = calloc(1, sizeof(*thread));
	if (!thread || array_reserve(&threads, &s->capacity, s->n + 1,
			       sizeof(struct first_pass_thread *)) < 0) {
		free(thread);
		return -ENOMEM;
	}
	s->threads = threads;
	*thread = (struct first_pass_thread){
		.key = *key, .replayed = REPLAYED_NONE, .first_ns = INT64_MAX};
	memmove(s->threads + place + 1, s->threads + place,
		(s->n - place) * sizeof(struct first_pass_thread *));
	s->threads[place] = thread;
	s->n++;
	return 0;
}

// Finds the thread of a row; NULL if there is no room for another. Returns 0 or -ENOMEM.
static int first_pass_thread(
	struct first_pass *s, sqlite3_stmt *row, struct first_pass_thread **ret)
{
	struct first_pass_key key = key_of_row(row);
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

// Rows --------------------------------------------------------------------------------------------

static void thread_saw(struct first_pass_thread *thread, sqlite3_stmt *row)
{
	int64_t start_ns = sqlite3_column_int64(row, COLUMN_START);
	int64_t end_ns = sqlite3_column_int64(row, COLUMN_END);
	thread->spans++;
	thread->first_ns = start_ns < thread->first_ns ? start_ns : thread->first_ns;
	thread->last_ns = end_ns > thread->last_ns ? end_ns : thread->last_ns;
}

enum named named_of_name(const char *name)
{
	static const char *const names[N_NAMED] = {[NAMED_JAX_COMPILE] = "jax.compile",
		[NAMED_TF_TRACE] = "tf.trace",
		[NAMED_TORCH_COMPILE] = "torch.compile",
		[NAMED_KERAS_PREDICT] = "keras.predict",
		[NAMED_ENVIRONMENT] = "environment",
		[NAMED_GENERATE] = "transformers.generate",
		[NAMED_LOADER_START] = "loader.start"};
	enum named named = 0;
	while (named < N_NAMED && strcmp(name, names[named]) != 0) {
		named++;
	}
	return named;
}

// Of a job that compiles more often than that, the first ones are known.
#define COMPILATIONS_KEPT 65536

static int saw_own(void *context, sqlite3_stmt *row)
{
	struct first_pass *s = context;
	const char *name = (const char *)sqlite3_column_text(row, COLUMN_NAME);
	if (!name || named_of_name(name) >= N_COMPILERS || s->n_compilations == COMPILATIONS_KEPT) {
		return 0;
	}
	void *all = s->compilations;
	int r = array_reserve(
		&all, &s->compilations_capacity, s->n_compilations + 1, sizeof(*s->compilations));
	s->compilations = all;
	if (r == 0) {
		s->compilations[s->n_compilations++] = (struct compilation){key_of_row(row),
			sqlite3_column_int64(row, COLUMN_START),
			sqlite3_column_int64(row, COLUMN_END)};
	}
	return r;
}

// The first compilation that starts at that time or later.
static size_t compilation_at(const struct first_pass *s, int64_t start_ns)
{
	size_t low = 0, high = s->n_compilations;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (s->compilations[middle].start_ns < start_ns) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low;
}

// The time that compilations take of an iteration. They may contain one another.
static int64_t compiled_ns(const struct first_pass *s, const struct first_pass_key *key,
	int64_t start_ns, int64_t end_ns)
{
	int64_t sum_ns = 0, covered_ns = start_ns;
	for (size_t i = compilation_at(s, start_ns);
		i < s->n_compilations && s->compilations[i].start_ns < end_ns; i++) {
		const struct compilation *one = &s->compilations[i];
		int64_t from_ns = one->start_ns > covered_ns ? one->start_ns : covered_ns;
		int64_t to_ns = one->end_ns < end_ns ? one->end_ns : end_ns;
		if (to_ns > from_ns && key_compare(&one->key, key) == 0) {
			sum_ns += to_ns - from_ns;
			covered_ns = to_ns;
		}
	}
	return sum_ns;
}

// Whether that is half of it.
static bool is_compiled(const struct first_pass *s, const struct first_pass_key *key,
	int64_t start_ns, int64_t end_ns)
{
	int64_t sum_ns = compiled_ns(s, key, start_ns, end_ns);
	return sum_ns >= (end_ns - start_ns) / 2 && sum_ns > 0;
}

static int saw_iteration(void *context, sqlite3_stmt *row)
{
	struct first_pass *s = context;
	struct first_pass_thread *thread = NULL;
	int r = first_pass_thread(s, row, &thread);
	span_pass_at(&s->pass, sqlite3_column_int64(row, COLUMN_START));
	if (r < 0 || !thread) {
		return r;
	}
	thread_saw(thread, row);
	if (first_pass_is_cut(row)) {
		return 0;
	}
	int64_t start_ns = sqlite3_column_int64(row, COLUMN_START);
	int64_t end_ns = sqlite3_column_int64(row, COLUMN_END);
	double seconds = (double)(end_ns - start_ns) / 1e9;
	bool compiled = is_compiled(s, &thread->key, start_ns, end_ns);
	void *head = thread->head;
	thread->whole++;
	thread->compiling += compiled;
	thread->compiling_ns += compiled ? compiled_ns(s, &thread->key, start_ns, end_ns) : 0;
	thread->compiled += compiled;
	thread->compiled_last = compiled ? thread->whole : thread->compiled_last;
	histogram_add(&thread->lengths, seconds, 1);
	if (thread->n_head < WARM_UP_MAX + WINDOW) {
		r = array_reserve(
			&head, &thread->head_capacity, thread->n_head + 1, sizeof(*thread->head));
		thread->head = head;
		if (r == 0) {
			thread->head[thread->n_head++] = (struct head){seconds, end_ns, compiled};
		}
	}
	return r;
}

static int saw_phase(void *context, sqlite3_stmt *row)
{
	struct first_pass_thread *thread = NULL;
	const char *name = (const char *)sqlite3_column_text(row, COLUMN_NAME);
	if (name && strcmp(name, "prepare") == 0) {
		return 0;
	}
	int r = first_pass_thread(context, row, &thread);
	if (r == 0 && thread) {
		thread_saw(thread, row);
	}
	return r;
}

static int saw_epoch(void *context, sqlite3_stmt *row)
{
	struct first_pass_thread *thread = NULL;
	if (sqlite3_column_type(row, COLUMN_THREAD) == SQLITE_NULL) {
		return 0; // from a line of the output
	}
	int r = first_pass_thread(context, row, &thread);
	if (r == 0 && thread) {
		thread->leads = true;
	}
	return r;
}

// Main threads ------------------------------------------------------------------------------------

// Orders threads: those with the run's epochs, then most spans, then earliest start, then those of
// processes that the recorder saw. The order is deterministic.
static int thread_compare(const void *left, const void *right)
{
	const struct first_pass_thread *a = *(struct first_pass_thread *const *)left;
	const struct first_pass_thread *b = *(struct first_pass_thread *const *)right;
	return a->leads != b->leads   ? b->leads - a->leads
	       : a->spans != b->spans ? (a->spans < b->spans) - (a->spans > b->spans)
	       : a->first_ns != b->first_ns
	               ? (a->first_ns > b->first_ns) - (a->first_ns < b->first_ns)
	       : !a->key.entity != !b->key.entity ? !a->key.entity - !b->key.entity
	                                          : key_compare(&a->key, &b->key);
}

static bool overlaps(const struct first_pass_thread *a, const struct first_pass_thread *b)
{
	return a->first_ns < b->last_ns && b->first_ns < a->last_ns;
}

// Chooses the best thread, and each further one that does not overlap a better one.
static int choose_main(struct first_pass *s)
{
	_cleanup_free_ struct first_pass_thread **order = calloc(
		s->n + 1, sizeof(struct first_pass_thread *));
	_cleanup_free_ struct first_pass_thread **chosen = calloc(
		s->n + 1, sizeof(struct first_pass_thread *));
	if (!order || !chosen) {
		return -ENOMEM;
	}
	if (s->n > 0) {
		memcpy(order, s->threads, s->n * sizeof(struct first_pass_thread *));
	}
	qsort(order, s->n, sizeof(struct first_pass_thread *), thread_compare);
	size_t n = 0;
	for (size_t i = 0; i < s->n; i++) {
		bool beside = order[i]->spans == 0;
		for (size_t k = 0; k < n && !beside; k++) {
			beside = overlaps(order[i], chosen[k]);
		}
		if (!beside) {
			chosen[n++] = order[i];
			order[i]->replayed = 0;
			s->whole += order[i]->whole;
		}
	}
	s->main = n > 0 ? chosen[0] : NULL;
	return 0;
}

// Warm-up -----------------------------------------------------------------------------------------

static double median_of_window(const struct head *values)
{
	double sorted[WINDOW];
	for (size_t i = 0; i < WINDOW; i++) {
		size_t place = i;
		while (place > 0 && sorted[place - 1] > values[i].seconds) {
			sorted[place] = sorted[place - 1];
			place--;
		}
		sorted[place] = values[i].seconds;
	}
	return sorted[WINDOW / 2];
}

static uint64_t warm_up_most(const struct first_pass_thread *thread)
{
	uint64_t fifth = thread->whole / 5;
	return fifth < WARM_UP_MAX ? fifth : WARM_UP_MAX;
}

static uint64_t warm_up_of(const struct first_pass_thread *thread)
{
	if (thread->whole < WINDOW) {
		return 0;
	}
	double median = histogram_quantile(&thread->lengths, 0.5);
	double low = fmin(histogram_quantile(&thread->lengths, 0.2), median * 0.9);
	double high = fmax(histogram_quantile(&thread->lengths, 0.8), median * 1.1);
	uint64_t most = warm_up_most(thread);
	for (size_t i = 1; i < most && i + WINDOW <= thread->n_head; i++) {
		double here = median_of_window(thread->head + i);
		if (here >= low && here <= high) {
			return i;
		}
	}
	return most;
}

// Counts compiled iterations after the warm-up. It ends later if one of few of them follows soon.
static void count_compiled(struct first_pass_thread *thread)
{
	uint64_t most = warm_up_most(thread), last = 0;
	for (size_t i = 0; i < most && i < thread->n_head; i++) {
		thread->compiled -= i < thread->warm_up && thread->head[i].compiled;
		last = thread->head[i].compiled ? i + 1 : last;
	}
	bool few = thread->compiled < COMPILED_MANY || thread->compiled_last <= thread->whole / 2;
	thread->compiles_rarely = few &&
	                          (double)thread->compiled < COMPILED_OFTEN * (double)thread->whole;
	if (thread->compiles_rarely && last > thread->warm_up) {
		for (size_t i = thread->warm_up; i < last; i++) {
			thread->compiled -= thread->head[i].compiled;
		}
		thread->warm_up = last;
	}
}

static void count_warm_up(struct first_pass *s)
{
	for (size_t i = 0; i < s->n; i++) {
		struct first_pass_thread *thread = s->threads[i];
		thread->warm_up = warm_up_of(thread);
		count_compiled(thread);
		bool leaves_out = thread->replayed == 0 && thread->compiles_rarely;
		s->compiled += leaves_out ? thread->compiled : 0;
		s->warm_up += thread->replayed == 0 ? thread->warm_up : 0;
		if (thread == s->main && thread->warm_up > 0) {
			s->warm_until_ns = thread->head[thread->warm_up - 1].end_ns;
		}
		histogram_done(&thread->lengths);
		free(thread->head);
		thread->head = NULL;
		thread->n_head = thread->head_capacity = 0;
	}
}

static bool any_spans(const struct first_pass *s)
{
	for (size_t i = 0; i < s->n; i++) {
		if (s->threads[i]->spans > 0) {
			return true;
		}
	}
	return false;
}

// Returns 0; -ENOMEM; -EBADMSG: the file is damaged, and everything before the damage is set.
static int first_pass_read(struct first_pass *s, struct reader *r, struct error *e)
{
	*s = (struct first_pass){0};
	span_pass_start(&s->pass, r, span_pass_parts(r) / 4);
	int result = query_each(r,
		"SELECT start_ns, end_ns, thread, attributes FROM main.span WHERE kind = 'epoch'",
		saw_epoch, s, e);
	if (result == 0) {
		result = query_each(r, FIRST_PASS_OWN, saw_own, s, e);
	}
	if (result == 0) {
		result = query_each(r, FIRST_PASS_ITERATIONS, saw_iteration, s, e);
	}
	if (result == 0 && !any_spans(s)) {
		result = query_each(r, FIRST_PASS_PHASES, saw_phase, s, e);
	}
	if (result != -ENOMEM && choose_main(s) < 0) {
		result = error_errno(e, ENOMEM, "%s", reader_path(r));
	}
	span_pass_end(&s->pass);
	count_warm_up(s);
	if (result == -ENOMEM) {
		first_pass_done(s);
	}
	return result;
}

static void first_pass_done(struct first_pass *s)
{
	for (size_t i = 0; i < s->n; i++) {
		histogram_done(&s->threads[i]->lengths);
		free(s->threads[i]->head);
		free(s->threads[i]);
	}
	free(s->threads);
	free(s->compilations);
	*s = (struct first_pass){0};
}

// Timeline ----------------------------------------------------------------------------------------

#define DEPTH_MAX 64

struct open_phase {
	int64_t end_ns;
	int phase;
};

struct replayed_thread {
	struct timeline_thread public;
	const struct first_pass_thread *thread; // of the last iteration
	int64_t cursor_ns; // time up to which pieces were delivered
	struct open_phase stack[DEPTH_MAX];
	size_t n_stack;
	ptrdiff_t apart; // index of the outermost phase in the stack that is apart; -1
	bool in_iteration;
	int64_t place;
	uint64_t place_in_thread;
	struct iteration iteration;
};

struct timeline {
	struct reader *reader;
	struct first_pass first_pass;
	struct replayed_thread **replayed;
	size_t n_replayed;
	size_t replayed_capacity;
	char names[PHASES_MAX][PHASE_NAME_MAX];
	size_t n_names;
	uint64_t left_out;
	const struct timeline_sink *sink;
};

static const struct {
	const char *name;
	bool apart;
} known_phases[N_KNOWN_PHASES] = {
	[PHASE_OTHER] = {"other", false},
	[PHASE_DATA] = {"data", false},
	[PHASE_TRANSFER] = {"transfer", false},
	[PHASE_FORWARD] = {"forward", false},
	[PHASE_BACKWARD] = {"backward", false},
	[PHASE_OPTIMIZER] = {"optimizer", false},
	[PHASE_COMMUNICATION] = {"communication", false},
	[PHASE_STEP] = {"step", false},
	[PHASE_VALIDATION] = {"validation", true},
	[PHASE_CHECKPOINT] = {"checkpoint", true},
	[PHASE_IMPORT] = {"import", true},
};

const char *phase_id_name(enum phase_id phase)
{
	return known_phases[phase].name;
}

bool phase_id_is_apart(enum phase_id phase)
{
	return phase < N_KNOWN_PHASES && known_phases[phase].apart;
}

// Names -------------------------------------------------------------------------------------------

// Spans of names beyond PHASES_MAX are in no phase.
static int phase_log_of_name(struct timeline *t, const char *name)
{
	for (size_t i = 0; i < t->n_names; i++) {
		if (strncmp(t->names[i], name, PHASE_NAME_MAX - 1) == 0) {
			return (int)i;
		}
	}
	if (t->n_names == PHASES_MAX) {
		return PHASE_OTHER;
	}
	memcpy(t->names[t->n_names], name, strnlen(name, PHASE_NAME_MAX - 1));
	return (int)t->n_names++;
}

// Lanes -------------------------------------------------------------------------------------------

static int replayed_add(
	struct timeline *t, const struct first_pass_thread *thread, struct replayed_thread **ret)
{
	void *all = t->replayed;
	struct replayed_thread *replayed = calloc(1, sizeof(*replayed));
	if (!replayed || array_reserve(&all, &t->replayed_capacity, t->n_replayed + 1,
				 sizeof(struct replayed_thread *)) < 0) {
		free(replayed);
		return -ENOMEM;
	}
	t->replayed = all;
	replayed->public.index = t->n_replayed;
	if (thread) {
		replayed->public.entity = thread->key.entity;
		replayed->public.pid = thread->key.pid;
		replayed->public.thread = thread->key.thread;
	}
	t->replayed[t->n_replayed++] = replayed;
	*ret = replayed;
	return 0;
}

static void replayed_reset(struct replayed_thread *replayed)
{
	replayed->thread = NULL;
	replayed->cursor_ns = replayed->public.index == 0 ? 0 : -1;
	replayed->n_stack = 0;
	replayed->apart = -1;
	replayed->in_iteration = false;
	replayed->place = 0;
	replayed->place_in_thread = 0;
}

// The thread of a row's thread; NULL if there is no room for another.
static int replayed_of_row(struct timeline *t, sqlite3_stmt *row, struct replayed_thread **ret,
	struct first_pass_thread **ret_thread)
{
	struct first_pass_thread *thread = NULL;
	int r = first_pass_thread(&t->first_pass, row, &thread);
	*ret = NULL;
	if (r < 0 || !thread) {
		t->left_out += r == 0;
		return r;
	}
	if (thread->replayed == REPLAYED_NONE) {
		struct replayed_thread *replayed = NULL;
		r = replayed_add(t, thread, &replayed);
		if (r < 0) {
			return r;
		}
		replayed_reset(replayed);
		thread->replayed = replayed->public.index;
	}
	*ret = t->replayed[thread->replayed];
	*ret_thread = thread;
	return 0;
}

static void iteration_finish(struct timeline *t, struct replayed_thread *replayed)
{
	replayed->in_iteration = false;
	if (t->sink->iteration) {
		t->sink->iteration(t->sink->context, &replayed->public, &replayed->iteration);
	}
}

// Drops phases that ended, and returns the phase of the thread at its cursor.
static int replayed_phase(struct replayed_thread *replayed)
{
	while (replayed->n_stack > 0 &&
		replayed->stack[replayed->n_stack - 1].end_ns <= replayed->cursor_ns) {
		replayed->n_stack--;
	}
	if (replayed->apart >= (ptrdiff_t)replayed->n_stack ||
		(replayed->apart >= 0 &&
			replayed->stack[replayed->apart].end_ns <= replayed->cursor_ns)) {
		replayed->apart = -1;
	}
	return replayed->apart >= 0     ? replayed->stack[replayed->apart].phase
	       : replayed->n_stack > 0  ? replayed->stack[replayed->n_stack - 1].phase
	       : replayed->in_iteration ? PHASE_OTHER
	                                : -1;
}

// The time until which the thread stays in that phase.
static int64_t replayed_stands_until(const struct replayed_thread *replayed, int64_t until_ns)
{
	if (replayed->n_stack > 0 && replayed->stack[replayed->n_stack - 1].end_ns < until_ns) {
		until_ns = replayed->stack[replayed->n_stack - 1].end_ns;
	}
	if (replayed->apart >= 0 && replayed->stack[replayed->apart].end_ns < until_ns) {
		until_ns = replayed->stack[replayed->apart].end_ns;
	}
	return replayed->in_iteration && replayed->iteration.end_ns < until_ns
	               ? replayed->iteration.end_ns
	               : until_ns;
}

// Delivers the pieces of a thread up to now.
static void replayed_advance(struct timeline *t, struct replayed_thread *replayed, int64_t now_ns)
{
	while (replayed->cursor_ns < now_ns) {
		int phase = replayed_phase(replayed);
		struct timeline_piece piece = {replayed->cursor_ns,
			replayed_stands_until(replayed, now_ns), phase, replayed->in_iteration};
		struct iteration *iteration = &replayed->iteration;
		if (replayed->in_iteration) {
			int64_t length_ns = piece.to_ns - piece.from_ns;
			iteration->phase_ns[phase] += length_ns;
			iteration->length_ns += phase_id_is_apart((enum phase_id)phase) ? 0
			                                                                : length_ns;
		}
		if (t->sink->piece) {
			t->sink->piece(t->sink->context, &replayed->public, &piece);
		}
		replayed->cursor_ns = piece.to_ns;
		if (replayed->in_iteration && iteration->end_ns <= replayed->cursor_ns) {
			iteration_finish(t, replayed);
		}
	}
}

static void replayed_goto(struct timeline *t, struct replayed_thread *replayed, int64_t now_ns)
{
	if (replayed->cursor_ns < 0) {
		replayed->cursor_ns = now_ns;
	}
	replayed_advance(t, replayed, now_ns);
}

// Rows --------------------------------------------------------------------------------------------

static int64_t known_or_less(sqlite3_stmt *row, int column)
{
	int64_t value = sqlite3_column_int64(row, column);
	return sqlite3_column_type(row, column) == SQLITE_NULL || value < 0 ? -1 : value;
}

static int take_iteration(struct timeline *t, sqlite3_stmt *row)
{
	struct replayed_thread *replayed;
	struct first_pass_thread *thread;
	int r = replayed_of_row(t, row, &replayed, &thread);
	if (r < 0 || !replayed) {
		return r;
	}
	int64_t start_ns = sqlite3_column_int64(row, COLUMN_START);
	int64_t end_ns = sqlite3_column_int64(row, COLUMN_END);
	replayed_goto(t, replayed, start_ns);
	if (replayed->in_iteration) { // the previous one ends here, whatever its own end is
		replayed->iteration.end_ns = start_ns;
		replayed->iteration.cut = true;
		iteration_finish(t, replayed);
	}
	if (replayed->thread != thread) {
		replayed->place_in_thread = 0;
		replayed->thread = thread;
	}
	bool warm_up = replayed->place_in_thread++ < thread->warm_up;
	replayed->in_iteration = true;
	replayed->iteration = (struct iteration){
		.start_ns = start_ns,
		.end_ns = end_ns,
		.number = known_or_less(row, COLUMN_NUMBER),
		.samples = known_or_less(row, COLUMN_SAMPLES),
		.epoch = -1,
		.place = replayed->place++,
		.warm_up = warm_up,
		.cut = first_pass_is_cut(row),
		.compiled = !warm_up && thread->compiles_rarely &&
	                    is_compiled(&t->first_pass, &thread->key, start_ns, end_ns),
	};
	return 0;
}

static void push_phase(
	struct timeline *t, struct replayed_thread *replayed, int phase, int64_t end_ns)
{
	replayed_phase(replayed); // drops phases that ended
	bool nested = replayed->n_stack > 0;
	if (replayed->n_stack == DEPTH_MAX) {
		t->left_out++;
		return;
	}
	if (replayed->apart < 0 && phase_id_is_apart((enum phase_id)phase)) {
		replayed->apart = (ptrdiff_t)replayed->n_stack;
	}
	replayed->stack[replayed->n_stack++] = (struct open_phase){end_ns, phase};
	if (t->sink->phase) {
		t->sink->phase(t->sink->context, &replayed->public, phase, nested);
	}
}

static int take_phase(struct timeline *t, sqlite3_stmt *row)
{
	struct replayed_thread *replayed;
	struct first_pass_thread *thread;
	int r = replayed_of_row(t, row, &replayed, &thread);
	if (r < 0 || !replayed) {
		return r;
	}
	const char *name = (const char *)sqlite3_column_text(row, COLUMN_NAME);
	int64_t start_ns = sqlite3_column_int64(row, COLUMN_START);
	int64_t end_ns = sqlite3_column_int64(row, COLUMN_END);
	bool prepares = name && strcmp(name, "prepare") == 0;
	if (prepares && t->sink->prepare) {
		r = t->sink->prepare(t->sink->context, &replayed->public, start_ns, end_ns,
			known_or_less(row, COLUMN_SAMPLES));
	}
	if (r == 0 && (!prepares || replayed->public.index == 0)) {
		replayed_goto(t, replayed, start_ns);
		push_phase(t, replayed,
			prepares ? PHASE_DATA : phase_log_of_name(t, name ? name : ""), end_ns);
	}
	return r;
}

// Threads other than main have their epochs among these.
static bool is_epoch(sqlite3_stmt *row, const char *name)
{
	const char *attributes = (const char *)sqlite3_column_text(row, COLUMN_ATTRIBUTES);
	return strcmp(name, "epoch") == 0 && known_or_less(row, COLUMN_NUMBER) >= 0 &&
	       !(attributes && strstr(attributes, "\"from\":"));
}

static int take_own(struct timeline *t, sqlite3_stmt *row)
{
	const char *name = (const char *)sqlite3_column_text(row, COLUMN_NAME);
	struct replayed_thread *replayed;
	struct first_pass_thread *thread;
	if (!name || is_epoch(row, name)) {
		return 0;
	}
	int r = replayed_of_row(t, row, &replayed, &thread);
	if (r < 0 || !replayed) {
		return r;
	}
	struct timeline_own span = {.name = name,
		.start_ns = sqlite3_column_int64(row, COLUMN_START),
		.end_ns = sqlite3_column_int64(row, COLUMN_END)};
	replayed_goto(t, replayed, span.start_ns);
	span.inside = replayed->in_iteration && span.end_ns <= replayed->iteration.end_ns;
	span.phase = replayed_phase(replayed);
	return t->sink->own(t->sink->context, &replayed->public, &span);
}

// A cursor for each kind. If spans start at the same time, the earlier kind comes first.
enum { CURSOR_ITERATIONS, CURSOR_PHASES, CURSOR_OWN, N_CURSORS };

struct cursors {
	sqlite3_stmt *rows[N_CURSORS]; // NULL: not needed
	int64_t start_ns[N_CURSORS]; // start of the next row; INT64_MAX at the end
	int status; // SQLITE_OK, or the result of a cursor that failed
};

static void cursors_done(struct cursors *c)
{
	for (size_t i = 0; i < N_CURSORS; i++) {
		sqlite3_finalize(c->rows[i]);
	}
}
#define _cleanup_cursors_ _cleanup_(cursors_done)

static void cursors_step(struct cursors *c, size_t i)
{
	int result = c->rows[i] ? sqlite3_step(c->rows[i]) : SQLITE_DONE;
	c->start_ns[i] = INT64_MAX;
	if (result == SQLITE_ROW) {
		c->start_ns[i] = sqlite3_column_int64(c->rows[i], COLUMN_START);
	} else if (result != SQLITE_DONE && c->status == SQLITE_OK) {
		c->status = result;
	}
}

static void cursors_open(struct cursors *c, const struct timeline *t)
{
	static const char *const queries[N_CURSORS] = {
		FIRST_PASS_ITERATIONS, FIRST_PASS_PHASES, FIRST_PASS_OWN};
	bool wants_own = t->sink->own && spans_table_may_have(reader_database(t->reader), "user");
	for (size_t i = 0; i < N_CURSORS && c->status == SQLITE_OK; i++) {
		if (i != CURSOR_OWN || wants_own) {
			c->status = sqlite3_prepare_v2(
				reader_database(t->reader), queries[i], -1, &c->rows[i], NULL);
		}
	}
	for (size_t i = 0; i < N_CURSORS; i++) {
		cursors_step(c, i);
	}
}

// Returns 0 or the -errno of a callback. If a cursor fails, the others continue.
static int walk_rows(struct timeline *t, struct cursors *c)
{
	static int (*const takes[N_CURSORS])(struct timeline * t, sqlite3_stmt * row) = {
		take_iteration, take_phase, take_own};
	struct span_pass pass;
	span_pass_start(&pass, t->reader, span_pass_parts(t->reader));
	for (;;) {
		size_t first = 0;
		for (size_t i = 1; i < N_CURSORS; i++) {
			first = c->start_ns[i] < c->start_ns[first] ? i : first;
		}
		if (c->start_ns[first] == INT64_MAX) {
			span_pass_end(&pass);
			return 0;
		}
		span_pass_at(&pass, c->start_ns[first]);
		int r = takes[first](t, c->rows[first]);
		if (r < 0) {
			return r;
		}
		cursors_step(c, first);
	}
}

// Ends whatever is open at the end, and delivers thread 0 up to the end of the run.
static void walk_end(struct timeline *t)
{
	for (size_t i = 0; i < t->n_replayed; i++) {
		struct replayed_thread *replayed = t->replayed[i];
		int64_t end_ns = replayed->in_iteration ? replayed->iteration.end_ns
		                                        : replayed->cursor_ns;
		for (size_t k = 0; k < replayed->n_stack; k++) {
			end_ns = replayed->stack[k].end_ns > end_ns ? replayed->stack[k].end_ns
			                                            : end_ns;
		}
		replayed_advance(t, replayed, end_ns);
	}
	if (t->replayed[0]->cursor_ns < reader_recorded_ns(t->reader)) {
		replayed_advance(t, t->replayed[0], reader_recorded_ns(t->reader));
	}
}

int timeline_walk(struct timeline *t, const struct timeline_sink *sink, struct error *e)
{
	_cleanup_cursors_ struct cursors cursors = {.status = SQLITE_OK};
	t->sink = sink;
	t->left_out = 0;
	for (size_t i = 0; i < t->n_replayed; i++) {
		replayed_reset(t->replayed[i]);
	}
	cursors_open(&cursors, t);
	int r = walk_rows(t, &cursors);
	if (r < 0) {
		return error_errno(e, -r, "%s", reader_path(t->reader));
	}
	walk_end(t);
	return cursors.status == SQLITE_OK ? 0
	       : cursors.status == SQLITE_NOMEM
	               ? error_errno(e, ENOMEM, "%s", reader_path(t->reader))
	               : error_set(e, EBADMSG, "%s: %s", reader_path(t->reader),
				 sqlite3_errmsg(reader_database(t->reader)));
}

// Opening -----------------------------------------------------------------------------------------

int timeline_open(struct reader *r, struct timeline **ret, struct error *e)
{
	struct timeline *t = calloc(1, sizeof(*t));
	struct replayed_thread *main_lane = NULL;
	if (!t || replayed_add(t, NULL, &main_lane) < 0) {
		timeline_free(t);
		return error_errno(e, ENOMEM, "%s", reader_path(r));
	}
	t->reader = r;
	for (size_t i = 0; i < N_KNOWN_PHASES; i++) {
		memcpy(t->names[i], known_phases[i].name, strlen(known_phases[i].name));
	}
	t->n_names = N_KNOWN_PHASES;
	int result = first_pass_read(&t->first_pass, r, e);
	if (result == -ENOMEM) {
		timeline_free(t);
		return result;
	}
	const struct first_pass_thread *first = t->first_pass.main;
	if (first) {
		main_lane->public.entity = first->key.entity;
		main_lane->public.pid = first->key.pid;
		main_lane->public.thread = first->key.thread;
	}
	*ret = t;
	return result;
}

void timeline_free(struct timeline *t)
{
	if (t) {
		for (size_t i = 0; i < t->n_replayed; i++) {
			free(t->replayed[i]);
		}
		free(t->replayed);
		first_pass_done(&t->first_pass);
		free(t);
	}
}

uint64_t timeline_iterations(const struct timeline *t)
{
	return t->first_pass.whole;
}

uint64_t timeline_warm_up(const struct timeline *t)
{
	return t->first_pass.warm_up;
}

uint64_t timeline_compiled(const struct timeline *t)
{
	return t->first_pass.compiled;
}

uint64_t timeline_compiling(const struct timeline *t, double *ret_s)
{
	const struct first_pass_thread *main = t->first_pass.main;
	*ret_s = main ? (double)main->compiling_ns / 1e9 : 0;
	return main ? main->compiling : 0;
}

int64_t timeline_warm_until_ns(const struct timeline *t)
{
	return t->first_pass.warm_until_ns;
}

uint64_t timeline_left_out(const struct timeline *t)
{
	return t->left_out;
}

size_t timeline_phases(const struct timeline *t)
{
	return t->n_names;
}

const char *timeline_phase_name(const struct timeline *t, size_t phase)
{
	return t->names[phase];
}
