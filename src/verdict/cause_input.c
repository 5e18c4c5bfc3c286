// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Batches that are not ready: preparation on the CPU, reads, and blocked workers.

#include <math.h>

#include "base/cleanup.h"
#include "base/words.h"
#include "verdict/advice.h"
#include "verdict/cause_kinds.h"
#include "verdict/thresholds.h"

// Waits outside the process that can delay a batch.
static const enum wait_kind preparing_kinds[] = {WAIT_STORAGE, WAIT_FSYNC, WAIT_NETWORK, WAIT_PIPE,
	WAIT_LOCK, WAIT_SLEEP, WAIT_CHILD, WAIT_GIL};

// The model ---------------------------------------------------------------------------------------

// Share of the time in which a training thread that prepares its own batches waits for something
// outside the process. NAN if it is not known in which phase the waits were.
static double waits_for_batches(const struct facts *f)
{
	double sum = 0;
	for (size_t i = 0; i < ARRAY_LENGTH(preparing_kinds); i++) {
		sum += known_or_zero(f->waits.in_data[preparing_kinds[i]]);
	}
	return f->waits.placed >= LOOKS_ENOUGH ? sum : NAN;
}

struct preparing cause_batches_preparing(const struct facts *f)
{
	const struct worker_facts *w = &f->workers;
	struct preparing p = {
		known_or_zero(w->cpus), known_or_zero(w->queued), known_or_zero(w->blocked)};
	if (w->n == 0) {
		// The training thread prepares. If samples do not show its waits, blocked time is
		// the time in which it neither computed nor waited for a CPU. Other threads of the
		// process use CPUs, too, so the thread's own clock is better.
		double seen = waits_for_batches(f);
		double cpus = isfinite(f->code.cpus) ? f->code.cpus : f->main_cpus;
		double waits = facts_share(f, PHASE_DATA);
		p.blocked = fmin(waits, fmax(0, 1 - cpus - known_or_zero(f->main_queued)));
		p.blocked = isfinite(seen) ? fmin(waits, seen) : known_or_zero(p.blocked);
		p.cpu = waits - p.blocked;
	}
	double sum = p.cpu + p.queued + p.blocked;
	return sum > 0 ? (struct preparing){p.cpu / sum, p.queued / sum, p.blocked / sum}
	               : (struct preparing){1, 0, 0};
}

double cause_batches_blocked(const struct facts *f)
{
	return facts_share(f, PHASE_DATA) * cause_batches_preparing(f).blocked;
}

// Workers that are idle most of the time, and of which none is slow.
static bool workers_idle(const struct facts *f)
{
	const struct worker_facts *w = &f->workers;
	return w->n > 0 && w->busiest < WORKERS_IDLE && !(w->slowest >= SLOW_WORKER);
}

// Some batches take so much longer than the others that training waits for them, while most are
// ready. Workers that are too few are waited for at least once in a round of all of them.
static double late_batches(const struct facts *f)
{
	double most = f->workers.n > 0 ? fmin(FEW_LATE, 0.5 / f->workers.n) : 0;
	return f->long_waits.each <= most ? known_or_zero(f->long_waits.share) : 0;
}

// Handing a batch over takes time, too. At the start of an epoch there is no batch to hand over
// yet.
double causes_handing_over(const struct facts *f)
{
	double others = known_or_zero(f->data_at_epochs) + late_batches(f);
	return workers_idle(f) ? fmax(0, facts_share(f, PHASE_DATA) - others) : 0;
}

double cause_batches_waiting(const struct facts *f)
{
	return facts_share(f, PHASE_DATA) - causes_handing_over(f);
}

// If the iteration waits for its batch, the workers need all of it.
double cause_batches_need(const struct facts *f, bool queued, double blocked_part)
{
	struct preparing p = cause_batches_preparing(f);
	double kept = p.cpu + (queued ? p.queued : 0) + blocked_part * p.blocked;
	if (cause_batches_waiting(f) > JITTER) {
		return f->workers.n > 0 ? kept : 0;
	}
	double busy = known_or_zero(f->workers.preparing) / fmax(1, f->workers.n);
	return fmin(1, busy) * kept;
}

// The part of an iteration that remains if batches are always ready.
static double without_data(const struct facts *f)
{
	return 1 - cause_batches_waiting(f);
}

// The part of an iteration that is saved if a part of the blocked time is removed.
static double lost_to_blocking(const struct facts *f, double part)
{
	struct preparing p = cause_batches_preparing(f);
	double waits = cause_batches_waiting(f);
	if (waits <= JITTER || p.blocked < BLOCKED || part <= 0) {
		return 0;
	}
	if (f->workers.n == 0) {
		return waits * p.blocked * part;
	}
	return 1 - fmax(without_data(f), cause_batches_need(f, true, 1 - part));
}

// Blocked preparation -----------------------------------------------------------------------------

static bool reads_storage(const struct facts *f)
{
	return f->storage.read_rate >= READS_WAITED_FOR &&
	       f->storage.read_rate >= FROM_STORAGE * known_or_zero(f->storage.asked_rate);
}

static const struct wait_facts *preparing_waits(const struct facts *f)
{
	return f->workers.n > 0 ? &f->worker_waits : &f->waits;
}

// For a training thread: its waits while it prepares, if these are known.
static const double *preparing_shares(const struct facts *f)
{
	bool placed = f->workers.n == 0 && f->waits.placed >= LOOKS_ENOUGH;
	return placed ? f->waits.in_data : preparing_waits(f)->share;
}

// The part of the blocked time in these kinds of waits; NAN with too few samples. A training thread
// that prepares its own batches also waits for threads of its process while it computes; those
// waits are not counted.
static double blocked_in(const struct facts *f, const enum wait_kind *kinds, size_t n)
{
	const double *shares = preparing_shares(f);
	double all = 0, in = 0;
	for (size_t i = 0; i < ARRAY_LENGTH(preparing_kinds); i++) {
		all += known_or_zero(shares[preparing_kinds[i]]);
	}
	for (size_t i = 0; i < n; i++) {
		in += known_or_zero(shares[kinds[i]]);
	}
	if (preparing_waits(f)->looks < LOOKS_ENOUGH) {
		return NAN;
	}
	return all >= WORTH ? in / all : 0;
}

// With too few samples to distinguish waits, reads alone do not prove that a thread waits for them:
// a job that sleeps reads, too. Pressure does.
static double blocked_in_storage(const struct facts *f)
{
	static const enum wait_kind kinds[] = {WAIT_STORAGE, WAIT_FSYNC};
	double seen = blocked_in(f, kinds, ARRAY_LENGTH(kinds));
	bool pressed = reads_storage(f) && f->storage.stalled >= STORAGE_SEEN;
	return isfinite(seen) ? seen : pressed ? 1 : 0;
}

static double blocked_in_one(const struct facts *f, enum wait_kind kind)
{
	return known_or_zero(blocked_in(f, &kind, 1));
}

// The mean number of processes that wait at pipes while they prepare. Workers that do not prepare
// wait there for their next batch.
static double waits_for_answers(const struct facts *f)
{
	const struct worker_facts *w = &f->workers;
	if (preparing_waits(f)->looks < LOOKS_ENOUGH) {
		return 0;
	}
	return w->n == 0 ? known_or_zero(preparing_shares(f)[WAIT_PIPE])
	                 : f->worker_waits.left_out * w->n - (w->n - known_or_zero(w->preparing));
}

// Whether preparation waits for another process of the job, which works meanwhile: one that serves
// the data (multiprocessing.Manager), or from which it is read.
static bool asks_a_process(const struct facts *f)
{
	double waits = waits_for_answers(f);
	return waits >= WORTH && cause_batches_preparing(f).blocked >= BLOCKED &&
	       f->servers_cpus >= MOST * waits;
}

bool cause_batches_at_a_lock(const struct facts *f)
{
	return cause_batches_preparing(f).blocked >= BLOCKED &&
	       blocked_in_one(f, WAIT_LOCK) >= MOST;
}

// Blocked time that has its own row.
static double blocked_known(const struct facts *f)
{
	return fmin(1, blocked_in_storage(f) + blocked_in_one(f, WAIT_SLEEP) +
			       blocked_in_one(f, WAIT_LOCK) + blocked_in_one(f, WAIT_NETWORK) +
			       blocked_in_one(f, WAIT_CHILD) + blocked_in_one(f, WAIT_GIL));
}

static struct judgement judge_blocked_in(const struct facts *f, enum wait_kind kind)
{
	return (struct judgement){lost_to_blocking(f, blocked_in_one(f, kind)), PHASE_DATA};
}

static struct judgement judge_sleep(const struct facts *f, const struct causes *found)
{
	(void)found;
	return judge_blocked_in(f, WAIT_SLEEP);
}

static struct judgement judge_lock(const struct facts *f, const struct causes *found)
{
	(void)found;
	return judge_blocked_in(f, WAIT_LOCK);
}

static struct judgement judge_network(const struct facts *f, const struct causes *found)
{
	(void)found;
	return judge_blocked_in(f, WAIT_NETWORK);
}

// A training thread that prepares its own batches, and never waits outside the process, waits for
// threads of its process: a framework's pipeline, or computing that runs at the same time.
static bool waits_for_its_own(const struct facts *f)
{
	double found = blocked_in(f, preparing_kinds, ARRAY_LENGTH(preparing_kinds));
	return f->workers.n == 0 && isfinite(found) && found <= 0;
}

static struct judgement judge_blocked(const struct facts *f, const struct causes *found)
{
	(void)found;
	double rest = waits_for_its_own(f) ? 0 : 1 - blocked_known(f);
	return (struct judgement){lost_to_blocking(f, rest), PHASE_DATA};
}

static enum grounds grounds_looked(const struct facts *f)
{
	(void)f;
	return GROUNDS_DIRECT; // samples of waits found it
}

static enum grounds grounds_blocked(const struct facts *f)
{
	return asks_a_process(f) ? GROUNDS_DIRECT : GROUNDS_INDIRECT;
}

// Storage and memory ------------------------------------------------------------------------------

static bool thrashes(const struct facts *f)
{
	double dropped = known_or_zero(f->storage.refault_rate);
	return f->memory.stalled >= MEMORY_STALLED ||
	       (f->memory.limited && dropped > 0 && dropped >= REFAULTS * f->storage.read_rate);
}

static struct judgement judge_storage(const struct facts *f, const struct causes *found)
{
	(void)found;
	double share = thrashes(f) ? 0 : lost_to_blocking(f, blocked_in_storage(f));
	return (struct judgement){share, PHASE_DATA};
}

static struct judgement judge_memory(const struct facts *f, const struct causes *found)
{
	(void)found;
	double share = thrashes(f) ? lost_to_blocking(f, blocked_in_storage(f)) : 0;
	if (f->memory.stalled >= MEMORY_STALLED) {
		share = fmax(share, f->memory.stalled);
	}
	return (struct judgement){share, PHASE_DATA};
}

// Bytes come from the disk while a task waits for it. Pressure of the host alone may come from
// others.
static enum grounds grounds_storage(const struct facts *f)
{
	bool looked = preparing_waits(f)->looks >= LOOKS_ENOUGH;
	bool stalled = f->storage.stalled >= STORAGE_SEEN;
	return reads_storage(f) && (looked || stalled) ? GROUNDS_DIRECT : GROUNDS_INDIRECT;
}

// Preparation -------------------------------------------------------------------------------------

// Without preparation only the blocked time remains.
static struct judgement judge_input(const struct facts *f, const struct causes *found)
{
	(void)found;
	double waits = cause_batches_waiting(f), blocked = cause_batches_preparing(f).blocked;
	bool counts = blocked >= BLOCKED || reads_storage(f);
	double rest = counts ? blocked : 0;
	if (waits <= JITTER) {
		return (struct judgement){0, PHASE_DATA};
	}
	double share = f->workers.n > 0 ? 1 - fmax(without_data(f), rest) : waits * (1 - rest);
	return (struct judgement){share, PHASE_DATA};
}

// The phase shows that training waits; CPU time shows that workers compute meanwhile.
static enum grounds grounds_input(const struct facts *f)
{
	const struct worker_facts *w = &f->workers;
	// The loader's settings say that its workers are started anew, so the wait is for their
	// first batches.
	bool anew = w->restart && causes_at_epochs(f->data_at_epochs, facts_share(f, PHASE_DATA));
	bool busy = w->n == 0 ? f->main_cpus >= 0.7
	                      : w->cpus >= 0.5 * w->n || w->slowest >= SLOW_WORKER;
	bool late = late_batches(f) >= MOST * facts_share(f, PHASE_DATA);
	return busy || anew || late || asks_a_process(f) ? GROUNDS_DIRECT : GROUNDS_INDIRECT;
}

// The share of an iteration that is saved if no garbage is collected while batches are prepared. It
// makes batches late, if workers do it.
static double lost_to_collections(const struct facts *f)
{
	const struct collection_facts *c = &f->collections;
	double of_preparing = known_or_zero(c->of_preparing);
	if (f->workers.n == 0) {
		return known_or_zero(c->in_data);
	}
	return workers_idle(f) ? fmin(late_batches(f), of_preparing)
	                       : 1 - fmax(without_data(f), 1 - of_preparing);
}

// Words -------------------------------------------------------------------------------------------

static void append_workers(struct text *t, const struct facts *f)
{
	text_format(t, "%u loader worker%s", f->workers.n, f->workers.n == 1 ? "" : "s");
}

static void append_wait(struct text *t, const struct facts *f)
{
	text_append_string(t, "each iteration spends ");
	words_append_percent(t, facts_share(f, PHASE_DATA));
	text_append_string(t, " of its time waiting");
}

static bool are_late(const struct facts *f, const struct cause *cause)
{
	return late_batches(f) >= MOST * cause->share.value;
}

static void append_late(struct text *t, const struct facts *f)
{
	text_format(t, "one batch in %.0f is late, by ", 1 / f->long_waits.each);
	words_append_seconds(t, f->long_waits.mean_s);
	text_append_string(t, " on average; waiting for late batches takes ");
	words_append_percent(t, f->long_waits.share);
	text_append_string(t, " of iteration time");
}

static void append_collections_of_workers(struct text *t, const struct facts *f)
{
	if (f->collections.of_preparing >= WORTH) {
		text_append_string(t, "; Python's garbage collection takes ");
		words_append_percent(t, f->collections.of_preparing);
		text_append_string(t, " of the workers' time");
	}
}

// Threads of a pipeline that run Python are seen while they do.
static const struct line_place *prepares_in(const struct facts *f)
{
	return f->pipeline && *f->thread_lines.data.place ? &f->thread_lines.data : &f->lines.data;
}

// Validation prepares batches, too: at most all of it is saved as well.
void cause_advise_less_preparation(struct advice_builder *b, double share)
{
	const struct facts *f = b->f;
	bool of_iterations = b->of_iterations;
	struct text action = {0}, basis = {0};
	const struct line_place *line = f->workers.n > 0 ? &f->worker_lines.data : prepares_in(f);
	bool python = cause_has_line(prepares_in(f), 1);
	text_append_string(&action, "reduce preprocessing");
	if (cause_has_line(line, 1)) {
		text_append_string(&action, " (");
		words_append_percent(&action, line->share);
		cause_append_line(&action, " of it in ", line, 1);
		text_append_string(&action, ")");
	}
	text_append_string(&action, ": ");
	text_append_string(&action,
		f->pipeline && !python
			? "map whole batches where the operations allow it (batch() before map()), "
			: "");
	text_append_string(&action, "decode, scale or cache the data beforehand");
	text_append_string(
		&action, f->pipeline && python ? ", or use TensorFlow's operations" : "");
	advice_append_prepare_cost(&basis, f);
	if (of_iterations) {
		share = facts_iterations_share(f) * share +
		        known_or_zero(f->validation_s) / f->training_s;
		b->of_iterations = false;
	}
	advice_suggest_at_most(b, share, &action, &basis);
	b->of_iterations = of_iterations;
}

static void say_input(struct text *t, const struct facts *f, const struct cause *cause)
{
	const struct worker_facts *w = &f->workers;
	if (f->pipeline && causes_at_epochs(f->data_at_epochs, cause->share.value)) {
		text_append_string(t, "input-bound: every epoch restarts the input pipeline; "
				      "waiting for the first batches takes ");
		words_append_percent(t, f->data_at_epochs);
		text_append_string(t, " of iteration time");
		return;
	}
	if (w->n == 0) {
		text_append_string(t, "input-bound: the training process prepares the batches "
				      "itself, which takes ");
		cause_append_share(t, cause);
		cause_append_line(t, ", mostly in ", prepares_in(f), 1);
		if (lost_to_collections(f) >= MOST * cause->share.value) {
			text_append_string(t, "; Python's garbage collection takes ");
			words_append_percent(t, f->collections.in_data);
		}
		return;
	}
	if (w->restart && causes_at_epochs(f->data_at_epochs, cause->share.value)) {
		if (w->n == 1) {
			text_append_string(t, "input-bound: every epoch restarts the loader "
					      "worker; waiting for its first batch takes ");
		} else {
			text_format(t,
				"input-bound: every epoch restarts the %u loader workers; "
				"waiting for their first batches takes ",
				w->n);
		}
		words_append_percent(t, f->data_at_epochs);
		text_append_string(t, " of iteration time");
		return;
	}
	if (are_late(f, cause)) {
		text_append_string(t, "input-bound: ");
		append_late(t, f);
		append_collections_of_workers(t, f);
		return;
	}
	if (w->slowest >= SLOW_WORKER) {
		text_append_string(t, "input-bound: ");
		append_wait(t, f);
		text_format(t, "; loader worker %d takes ", w->slowest_number);
		words_append_number(t, w->slowest);
		text_append_string(t, " times as long as the others");
		return;
	}
	text_append_string(
		t, asks_a_process(f)
			   ? "input-bound (data loading requests data from another process): "
			   : "input-bound (CPU preprocessing): ");
	append_wait(t, f);
	text_append_string(t, " for ");
	append_workers(t, f);
	if (isfinite(w->cpus)) {
		text_append_string(t, " (");
		cause_append_cpus(t, w->cpus, f->cpus);
		text_append_string(t, ")");
	}
	cause_append_line(t, ", mostly in ", &f->worker_lines.data, 1);
}

static void say_blocked_on(
	struct text *t, const struct facts *f, const struct cause *cause, const char *what)
{
	text_append_string(t, "input-bound (");
	text_append_string(t, what);
	text_append_string(t, "): ");
	if (are_late(f, cause)) {
		append_late(t, f);
		return;
	}
	append_wait(t, f);
	if (f->workers.n > 0) {
		text_append_string(t, " for ");
		append_workers(t, f);
	} else {
		text_append_string(t, " for its batch");
	}
}

static void say_sleep(struct text *t, const struct facts *f, const struct cause *cause)
{
	say_blocked_on(t, f, cause, "sleep in data loading");
}

static void say_lock(struct text *t, const struct facts *f, const struct cause *cause)
{
	say_blocked_on(t, f, cause,
		f->workers.n > 1 ? "workers wait for a lock" : "data loading waits for a lock");
}

static void say_network(struct text *t, const struct facts *f, const struct cause *cause)
{
	say_blocked_on(t, f, cause, "data loading waits for the network");
}

static void say_blocked(struct text *t, const struct facts *f, const struct cause *cause)
{
	say_blocked_on(t, f, cause,
		asks_a_process(f) ? "data loading requests data from another process"
				  : "data loading is blocked");
}

static bool reads_at_limit(const struct facts *f)
{
	return f->storage.read_rate >= LIMIT_REACHED * f->storage.read_limit;
}

static void say_storage(struct text *t, const struct facts *f, const struct cause *cause)
{
	text_append_string(t, "storage-bound: waiting for reads takes ");
	cause_append_share(t, cause);
	if (f->storage.read_rate > 0) {
		text_append_string(t, "; ");
		words_append_bytes(t, f->storage.read_rate);
		text_append_string(t, "/s is read from storage");
		text_append_string(t, reads_at_limit(f) ? ", as fast as --disk-read allows" : "");
	}
}

static void say_memory(struct text *t, const struct facts *f, const struct cause *cause)
{
	text_append_string(t, "not enough memory: ");
	if (f->storage.refault_rate > 0) {
		text_append_string(t, "re-reading files evicted from the page cache takes ");
	} else {
		text_append_string(t, "waiting for memory takes ");
	}
	cause_append_share(t, cause);
	if (f->memory.limited) {
		text_append_string(t, " (limit ");
		words_append_bytes(t, f->memory.limit_bytes);
		text_append_string(t, ")");
	}
}

// Advice ------------------------------------------------------------------------------------------

static void advise_pipeline(struct advice_builder *b, const struct cause *cause)
{
	const struct pipeline_facts *stages = &b->f->stages;
	bool python = cause_has_line(prepares_in(b->f), 1);
	struct text action = {0}, basis = {0};
	if (!python && stages->known && stages->ahead && stages->parallel && !stages->each) {
		return; // it has all of this
	}
	advice_append_idle(&basis, b->f);
	if (python) { // one thread at a time executes Python
		text_append_string(&action, "prepare in several processes (as "
					    "keras.utils.PyDataset does with "
					    "use_multiprocessing)");
	} else if (!stages->known) {
		text_append_string(&action, "prefetch batches with more threads (tf.data: "
					    "prefetch, num_parallel_calls)");
	} else if (!stages->ahead || !stages->parallel) {
		text_format(&action, "prefetch batches with more threads (%s%s%s)",
			stages->ahead ? "" : "Dataset.prefetch()",
			stages->ahead || stages->parallel ? "" : ", ",
			stages->parallel ? "" : "map(num_parallel_calls=...)");
	} else {
		text_append_string(&action, "make batches before the costly map, and map whole "
					    "batches (tf.io.parse_example() instead of "
					    "parse_single_example())");
		text_append_string(&basis,
			"; the pipeline prefetches and maps in parallel, but one "
			"sample at a time");
	}
	advice_suggest_at_most(b, cause->share.value, &action, &basis);
}

// CPUs that threads of the process use, at least, while it waits for batches: in the rest of the
// time all of them use no more than the CPUs that other programs leave. 0: not known.
static double cpus_while_waiting(const struct facts *f)
{
	double waits = facts_share(f, PHASE_DATA);
	double others = isfinite(f->threads.others_cpus) ? f->threads.others_cpus
	                                                 : f->code_threads.cpus;
	double left = fmax(0, f->cpus - known_or_zero(f->others_cpus));
	double least = (others - (1 - waits) * left) / waits;
	return waits > 0 && least > 0 ? fmin(least, f->cpus) : 0;
}

// Making a pipeline anew uses few CPUs; filling its buffers with samples does.
static void advise_pipeline_at_epochs(struct advice_builder *b, double share)
{
	double cpus = cpus_while_waiting(b->f);
	if (cpus < PIPELINE_FILLS) {
		advice_suggest_at_epochs(b, b->f->data_at_epochs);
		if (share - b->f->data_at_epochs < WORTH) {
			return;
		}
		advice_suggest_plain_at_most(b, share,
			"keep prepared samples for the next epoch, if they fit in memory "
			"(Dataset.cache() after the costly map)",
			"later batches are late, too: each epoch prepares all samples again");
		return;
	}
	struct text action = {0}, basis = {0};
	text_append_string(&action,
		"keep one iterator for all epochs (Dataset.repeat()), shuffle before the costly "
		"map, or keep prepared samples (Dataset.cache() after that map)");
	text_append_string(&basis, "the pipeline's threads use at least ");
	words_append_counted(&basis, cpus, "CPU");
	text_append_string(&basis, " while an epoch starts");
	advice_suggest_at_most(b, b->f->data_at_epochs, &action, &basis);
}

static void advise_slow_worker(struct advice_builder *b, const struct cause *cause)
{
	const struct worker_facts *w = &b->f->workers;
	struct text action = {0}, basis = {0};
	text_format(&action, "find out why loader worker %d is slow", w->slowest_number);
	text_append_string(&basis, "it takes ");
	words_append_number(&basis, w->slowest);
	text_append_string(&basis, " times as long per batch as the others");
	advice_suggest_at_most(b, cause->share.value, &action, &basis);
}

// Late batches are hidden by as many others as are consumed meanwhile: by so many more than the
// present ones, which the waits that remain exceed.
static void advise_late(struct advice_builder *b)
{
	const struct facts *f = b->f;
	double usual_s = f->length_s.value * (1 - facts_share(f, PHASE_DATA));
	double now = f->prefetch > 0 ? f->prefetch : PREFETCH_DEFAULT;
	double ahead = now + ceil(f->long_waits.mean_s / usual_s / f->workers.n);
	struct text action = {0}, basis = {0};
	if (ahead <= AHEAD_MOST && f->framework == FRAMEWORK_PYTORCH && f->loader_words->prefetch) {
		text_format(&action, "%s=%.0f", f->loader_words->prefetch, ahead);
		advice_set(b, 0, SETTING_PREFETCH, "%.0f", ahead);
	} else {
		text_append_string(
			&action, "prepare more batches ahead, or find the cause of the late ones");
	}
	text_append_string(&basis, "a late batch delays all later ones, even those that are ready");
	advice_suggest_at_most(b, late_batches(f), &action, &basis);
}

static void advise_own_data(struct advice_builder *b, const struct cause *cause)
{
	struct text action = {0}, basis = {0};
	text_append_string(&action,
		"keep the data where it is prepared (read before workers are forked, in shared "
		"memory or in files), instead of asking another process for it (such as "
		"multiprocessing.Manager)");
	text_append_string(&basis, "data loading waits at pipes while other processes of "
				   "the job use ");
	cause_append_cpus(&basis, b->f->servers_cpus, b->f->cpus);
	advice_suggest_at_most(b, cause->share.value, &action, &basis);
}

static void advise_input(struct advice_builder *b, const struct cause *cause)
{
	const struct facts *f = b->f;
	if (asks_a_process(f)) {
		advise_own_data(b, cause);
	}
	if (asks_a_process(f) && f->workers.n > 0) { // more workers would ask it, too
		cause_advise_less_preparation(b, cause->share.value);
		return;
	}
	bool at_epochs = causes_at_epochs(f->data_at_epochs, cause->share.value);
	if (at_epochs && f->workers.restart) {
		advice_suggest_at_epochs(b, f->data_at_epochs);
		return;
	}
	if (at_epochs && f->pipeline) {
		advise_pipeline_at_epochs(b, cause->share.value);
		return;
	}
	bool collects = lost_to_collections(f) >= WORTH;
	bool mostly = lost_to_collections(f) >= MOST * cause->share.value;
	if (collects && mostly) {
		advice_suggest_no_collections(b, lost_to_collections(f));
	}
	if (f->workers.slowest >= SLOW_WORKER) {
		advise_slow_worker(b, cause);
	}
	if (are_late(f, cause)) {
		if (!mostly) {
			advise_late(b);
		}
	} else if (!f->pipeline) {
		advice_suggest_workers(b);
	} else if (advice_idle_cpus(f) >= IDLE_CPUS) { // for more threads
		advise_pipeline(b, cause);
	}
	cause_advise_less_preparation(b, cause->share.value);
	if (collects && !mostly) {
		advice_suggest_no_collections(b, lost_to_collections(f));
	}
}

// Blocked workers need no CPU: more of them can wait at the same time.
static void advise_blocked(struct advice_builder *b, const struct cause *cause)
{
	if (asks_a_process(b->f)) {
		advise_own_data(b, cause);
		return;
	}
	if (are_late(b->f, cause)) {
		advise_late(b);
	} else if (!b->f->pipeline) {
		advice_suggest_workers(b);
	}
	struct text action = {0}, basis = {0};
	text_append_string(&action, "prefetch the data, or fetch it in larger chunks");
	text_append_string(&basis, "data loading is blocked for ");
	words_append_percent(&basis, cause_batches_preparing(b->f).blocked);
	text_append_string(&basis, " of its time");
	advice_suggest_at_most(b, cause->share.value, &action, &basis);
}

// Only one worker at a time holds the lock; more workers would wait for it, too.
static void advise_lock(struct advice_builder *b, const struct cause *cause)
{
	advice_suggest_plain_at_most(b, cause->share.value,
		"hold the lock for a shorter time, or give each worker its own file or connection",
		"workers wait for each other, and more workers would too");
}

static void advise_storage(struct advice_builder *b, const struct cause *cause)
{
	const struct facts *f = b->f;
	struct text action = {0}, basis = {0};
	double room = f->memory.limit_bytes - f->memory.peak_bytes;
	if (isfinite(room)) {
		words_append_bytes(&basis, fmax(0, room));
		text_append_string(&basis, " of memory is free; ");
	}
	if (isfinite(f->storage.read_rate)) {
		words_append_bytes(&basis, f->storage.read_rate);
		text_append_string(&basis, "/s is read from storage");
	} else {
		text_append_string(&basis, "data loading waits for reads");
	}
	text_append_string(&action, "keep the dataset in memory (page cache, /dev/shm), or ");
	text_append_string(&action, reads_at_limit(f) ? "raise --disk-read" : "use a faster disk");
	advice_suggest_at_most(b, cause->share.value, &action, &basis);
	if (cause->share.value >= 0.1) {
		advice_suggest_workers(b);
	}
}

static void advise_memory(struct advice_builder *b, const struct cause *cause)
{
	const struct facts *f = b->f;
	struct text action = {0}, basis = {0};
	words_append_bytes(&basis, f->storage.refault_rate);
	text_append_string(&basis, "/s is re-read after eviction from the page cache");
	text_append_string(
		&action, f->memory.limited ? "raise the memory limit, or process a smaller dataset "
					     "at a time"
					   : "add memory, or process a smaller dataset at a time");
	advice_suggest_at_most(b, cause->share.value, &action, &basis);
}

// Rows --------------------------------------------------------------------------------------------

const struct cause_kind cause_storage = {
	.name = "storage",
	.part = "storage",
	.judge = judge_storage,
	.grounds = grounds_storage,
	.say = say_storage,
	.advise = advise_storage,
};

const struct cause_kind cause_memory = {
	.name = "memory",
	.part = "lack of memory",
	.judge = judge_memory,
	.grounds = grounds_storage,
	.say = say_memory,
	.advise = advise_memory,
};

const struct cause_kind cause_input_sleep = {
	.name = "input-sleep",
	.part = "sleep in data loading",
	.judge = judge_sleep,
	.grounds = grounds_looked,
	.say = say_sleep,
	.advise = advise_blocked,
};

const struct cause_kind cause_input_lock = {
	.name = "input-lock",
	.part = "lock contention between workers",
	.judge = judge_lock,
	.grounds = grounds_looked,
	.say = say_lock,
	.advise = advise_lock,
};

const struct cause_kind cause_input_network = {
	.name = "input-network",
	.part = "network waits in data loading",
	.judge = judge_network,
	.grounds = grounds_looked,
	.say = say_network,
	.advise = advise_blocked,
};

const struct cause_kind cause_input_blocked = {
	.name = "input-blocked",
	.part = "blocked data loading",
	.judge = judge_blocked,
	.grounds = grounds_blocked,
	.say = say_blocked,
	.advise = advise_blocked,
};

const struct cause_kind cause_input = {
	.name = "input",
	.part = "preprocessing",
	.judge = judge_input,
	.grounds = grounds_input,
	.say = say_input,
	.advise = advise_input,
};
