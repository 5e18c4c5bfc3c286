// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A function for each cause. A gain is what the cause's share promises, or what the model of
// workers and CPUs says; where neither is known there is none.

#include "analyze/advice.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/words.h"
#include "base/cleanup.h"

#define WITHIN 1.01 // of the best
#define MEMORY_KEPT 0.9 // of a limit: what advice may fill
#define LITTLE 1.03 // times faster: not worth trying
#define IDLE 0.5 // CPUs: what one more thread could use
#define QUICK_BATCH_S 0.002 // to prepare: handing one over from a worker takes a part of that

struct book {
	const struct facts *f;
	struct verdict *verdict;
	int r;
};

// Takes both texts.
static void suggest(struct book *b, struct estimate gain, struct text *action, struct text *basis)
{
	struct verdict *v = b->verdict;
	struct suggestion *grown = realloc(v->suggestions, (v->n_suggestions + 1) * sizeof(*grown));
	text_append_string(basis, "");
	struct suggestion made = {gain, text_steal(action), text_steal(basis)};
	v->suggestions = grown ? grown : v->suggestions;
	if (!grown || !made.action || !made.basis) {
		free(made.action);
		free(made.basis);
		b->r = -ENOMEM;
		return;
	}
	// Two causes can call for the same.
	for (size_t i = 0; i < v->n_suggestions; i++) {
		if (strcmp(grown[i].action, made.action) == 0) {
			free(made.action);
			free(made.basis);
			return;
		}
	}
	grown[v->n_suggestions++] = made;
}

static void suggest_plain(
	struct book *b, struct estimate gain, const char *action, const char *basis)
{
	struct text what = {0}, why = {0};
	text_append_string(&what, action);
	text_append_string(&why, basis);
	suggest(b, gain, &what, &why);
}

// What is left when a share of the time is gone.
static struct estimate gain_of(struct estimate share, double part)
{
	return (struct estimate){
		1 / fmax(0.02, 1 - part * share.value),
		1 / fmax(0.02, 1 - part * share.low),
		1 / fmax(0.02, 1 - part * share.high),
	};
}

static const struct estimate no_gain = {NAN, NAN, NAN};

// Workers ----------------------------------------------------------------------------------------

// CPU time of an iteration, as a share of its length, of the training process without preparing,
// and of preparing.
static void cpu_times(const struct facts *f, double *ret_main, double *ret_prepare)
{
	*ret_main = f->main_cpus;
	*ret_prepare = f->workers.cpus;
	if (f->workers.n == 0) {
		double waits = facts_share(f, PHASE_DATA);
		double queued = isfinite(f->main_queued) ? f->main_queued : 0;
		double blocked = fmin(waits, fmax(0, 1 - f->main_cpus - queued));
		*ret_prepare = waits - blocked;
		*ret_main = f->main_cpus - *ret_prepare;
	}
}

double advice_length_with(const struct facts *f, unsigned workers, double cpus)
{
	double main, prepare, waits = facts_share(f, PHASE_DATA);
	cpu_times(f, &main, &prepare);
	double blocked = f->workers.n == 0              ? waits - prepare
	                 : isfinite(f->workers.blocked) ? f->workers.blocked
	                                                : 0;
	// Run-queue waits go as CPUs come: the last term has them.
	double queued = isfinite(f->main_queued) ? f->main_queued : 0;
	double computing = fmax(0.05, 1 - waits - queued);
	if (workers == 0) {
		return computing + prepare + blocked;
	}
	double input = (prepare + blocked) / workers;
	return fmax(fmax(computing, input), f->ranks.n * (main + prepare) / cpus);
}

// So many workers that what each needs still fits.
static unsigned workers_that_fit(const struct facts *f)
{
	const struct memory_facts *m = &f->memory;
	unsigned n = f->workers.n, most = (unsigned)fmin(256, fmax(1, ceil(f->cpus)));
	double processes = n + 1.0;
	double each = m->peak_bytes / processes;
	if (isfinite(each) && isfinite(m->limit_bytes)) {
		double room = MEMORY_KEPT * m->limit_bytes - m->peak_bytes;
		most = (unsigned)fmin(most, n + fmax(0, floor(room / each)));
	}
	if (n > 0 && m->shared_bytes > 0 && isfinite(m->shared_limit_bytes)) {
		double each_shares = m->shared_bytes / n;
		most = (unsigned)fmin(
			most, fmax(n, floor(MEMORY_KEPT * m->shared_limit_bytes / each_shares)));
	}
	return most;
}

unsigned advice_workers(const struct facts *f)
{
	unsigned most = workers_that_fit(f), fewest = f->workers.n;
	double best = advice_length_with(f, f->workers.n, f->cpus);
	for (unsigned n = 1; n <= most; n++) {
		best = fmin(best, advice_length_with(f, n, f->cpus));
	}
	for (unsigned n = most; n >= 1 && isfinite(best); n--) {
		fewest = advice_length_with(f, n, f->cpus) <= best * WITHIN ? n : fewest;
	}
	return fewest;
}

static void append_loader(struct text *t, const struct facts *f)
{
	if (f->loader_at && *f->loader_at) {
		words_append_place(t, f->loader_at, 40);
		text_append_string(t, "  ");
	}
}

// CPUs that nobody uses.
static double idle_cpus(const struct facts *f)
{
	double others = isfinite(f->others_cpus) ? f->others_cpus : 0;
	return fmax(0, f->cpus - f->cpus_used - others);
}

static void append_idle(struct text *t, const struct facts *f)
{
	double idle = idle_cpus(f);
	if (idle < 0.05) {
		text_append_string(t, "no CPU is idle");
		return;
	}
	words_append_number(t, idle);
	text_append_string(t, " of ");
	words_append_counted(t, f->cpus, "CPU");
	text_append_string(t, " idle");
}

static void append_prepare_cost(struct text *t, const struct facts *f)
{
	double main, prepare;
	cpu_times(f, &main, &prepare);
	double per_sample = prepare * f->length_s.value / f->samples;
	// Threads of a pipeline prepare while others compute: what they take is not known.
	if (per_sample > 0 && !f->pipeline) {
		text_append_string(t, "a sample takes ");
		words_append_seconds(t, per_sample);
		text_append_string(t, " of CPU to prepare; ");
	}
	append_idle(t, f);
}

// From what the model says of now to what it says of then; the interval is that of the wait.
static struct estimate workers_gain(const struct facts *f, unsigned workers)
{
	// Both by the model: what it does not know of is in both.
	double now = advice_length_with(f, f->workers.n, f->cpus);
	double then = advice_length_with(f, workers, f->cpus);
	struct estimate gain = {now / then, NAN, NAN}, waits = f->share[PHASE_DATA];
	if (isfinite(waits.low)) {
		double width = fmax(0.05, waits.high - waits.low);
		gain.low = fmax(1, gain.value * (1 - width));
		gain.high = gain.value * (1 + width);
	}
	return gain;
}

static bool advise_workers(struct book *b)
{
	const struct facts *f = b->f;
	unsigned workers = advice_workers(f);
	struct estimate gain = workers_gain(f, workers);
	bool quick = f->workers.n == 0 &&
	             facts_share(f, PHASE_DATA) * f->length_s.value < QUICK_BATCH_S;
	if (quick || workers <= f->workers.n || !(gain.value >= LITTLE)) {
		return false;
	}
	struct text action = {0}, basis = {0};
	append_loader(&action, f);
	// PyTorch's word, where PyTorch's hook told of the loader.
	text_format(&action, "%s %u -> %u", action.length > 0 ? "num_workers" : "loader workers",
		f->workers.n, workers);
	append_prepare_cost(&basis, f);
	suggest(b, gain, &action, &basis);
	return true;
}

// Causes -----------------------------------------------------------------------------------------

// What each epoch makes anew: iterators, a pipeline, workers.
static void advise_epochs(struct book *b, double share)
{
	const struct facts *f = b->f;
	const struct estimate all = {share, NAN, NAN};
	struct text action = {0};
	if (f->workers.restart) {
		append_loader(&action, f);
		text_append_string(&action, "persistent_workers=True");
	} else {
		text_append_string(&action, "one input pipeline for all epochs");
		text_append_string(
			&action, f->pipeline ? " (dataset.repeat(), steps_per_epoch)" : "");
	}
	struct text basis = {0};
	text_append_string(&basis, "the first iterations of epochs take it; at most so much");
	suggest(b, gain_of(all, 1), &action, &basis);
}

static void advise_pipeline(struct book *b, const struct cause *cause)
{
	struct text basis = {0};
	append_idle(&basis, b->f);
	text_append_string(&basis, "; at most so much");
	struct text action = {0};
	text_append_string(&action, "batches prepared ahead, by more threads (tf.data: prefetch, "
				    "num_parallel_calls)");
	suggest(b, gain_of(cause->share, 1), &action, &basis);
}

static void advise_input(struct book *b, const struct cause *cause)
{
	const struct facts *f = b->f;
	if (causes_at_epochs(f->data_at_epochs, cause->share.value) &&
		(f->pipeline || f->workers.restart)) {
		advise_epochs(b, f->data_at_epochs);
		return;
	}
	if (f->workers.slowest >= 1.5) {
		struct text action = {0}, basis = {0};
		text_format(&action, "find out why loader worker %d is slow",
			f->workers.slowest_number);
		text_append_string(&basis, "it takes ");
		words_append_number(&basis, f->workers.slowest);
		text_append_string(&basis, " times as long for a batch as the others");
		suggest(b, gain_of(cause->share, 1), &action, &basis);
	}
	if (f->pipeline) {
		advise_pipeline(b, cause);
	} else {
		advise_workers(b);
	}
	struct text action = {0}, basis = {0};
	text_append_string(&action, "less preparation: data decoded, scaled or cached beforehand");
	append_prepare_cost(&basis, f);
	text_append_string(&basis, "; at most so much");
	suggest(b, gain_of(cause->share, 1), &action, &basis);
}

static void advise_storage(struct book *b, const struct cause *cause)
{
	const struct facts *f = b->f;
	struct text basis = {0};
	double room = f->memory.limit_bytes - f->memory.peak_bytes;
	words_append_bytes(&basis, room);
	text_append_string(&basis, " of memory are free; ");
	words_append_bytes(&basis, f->storage.read_rate);
	text_append_string(&basis, "/s come from storage");
	struct text action = {0};
	text_append_string(
		&action, "the dataset in memory (page cache, /dev/shm), or a faster disk");
	suggest(b, gain_of(cause->share, 1), &action, &basis);
	if (cause->share.value >= 0.1) {
		advise_workers(b);
	}
}

static void advise_memory(struct book *b, const struct cause *cause)
{
	const struct facts *f = b->f;
	struct text basis = {0};
	words_append_bytes(&basis, f->storage.refault_rate);
	text_append_string(&basis, "/s are read again that the page cache had just dropped");
	struct text action = {0};
	text_append_string(
		&action, f->memory.limited ? "a larger memory limit, or a smaller dataset at a time"
					   : "more memory, or a smaller dataset at a time");
	suggest(b, gain_of(cause->share, 1), &action, &basis);
}

static void advise_transfer(struct book *b, const struct cause *cause)
{
	suggest_plain(b, gain_of(cause->share, 1),
		"pin_memory=True, .to(device, non_blocking=True)",
		"copies would go on while the device computes; at most so much");
}

static void advise_contention(struct book *b, const struct cause *cause)
{
	const struct facts *f = b->f;
	struct text action = {0}, basis = {0};
	double needed = causes_needed_cpus(f);
	enum lack lack = causes_lack(f);
	if (lack == LACK_NOBODY) {
		text_append_string(&action, "a wider CPU affinity (taskset, numactl, cpuset)");
		text_append_string(&basis, "it was ready without a CPU ");
		words_append_percent(&basis, f->main_queued);
		text_append_string(&basis, " of the time while others were idle");
	} else if (lack == LACK_OTHERS) {
		text_append_string(&action, "a machine, or CPUs, of its own");
		text_append_string(&basis, "other programs used ");
		words_append_number(&basis, f->host_others_cpus);
		text_append_string(&basis, f->cpus < f->host_cpus ? " of the machine's " : " of ");
		words_append_counted(&basis, f->host_cpus, "CPU");
	} else {
		text_append_string(&action, "more CPUs (");
		words_append_number(&action, fmax(ceil(needed), floor(f->cpus) + 1));
		text_append_string(&action, " would all be used)");
		text_append_string(&basis, "the job may use ");
		words_append_counted(&basis, f->cpus, "CPU");
		text_append_string(&basis, " and on average had work for ");
		words_append_number(&basis, needed);
	}
	suggest(b, gain_of(cause->share, 1), &action, &basis);
}

static void advise_threads(struct book *b, const struct cause *cause)
{
	const struct facts *f = b->f;
	struct text action = {0}, basis = {0};
	double busy = f->workers.cpus + f->workers.queued;
	double free_cpus = (f->cpus - (isfinite(busy) ? busy : 0)) / f->ranks.n;
	// To wake a thread that sleeps takes time too: fewer gain more than passive ones.
	text_format(&action, "OMP_NUM_THREADS=%.0f", fmax(1, floor(free_cpus)));
	text_append_string(&action, ", or OMP_WAIT_POLICY=passive");
	text_append_string(&basis, "a step takes ");
	words_append_seconds(&basis, f->compute_s);
	text_append_string(&basis, ", undisturbed ");
	words_append_seconds(&basis, f->undisturbed_s);
	suggest(b, gain_of(cause->share, 1), &action, &basis);
}

// How much threads gain is not known: what of a step can be split shows only when it is.
static void advise_one_thread(struct book *b)
{
	const struct facts *f = b->f;
	// Each rank has its part of the CPUs.
	double threads = fmin(round(1 + idle_cpus(f) / f->ranks.n), floor(f->cpus / f->ranks.n));
	struct text action = {0}, basis = {0};
	if (threads >= 2) {
		text_format(&action, "OMP_NUM_THREADS=%.0f, or ", threads);
		text_append_string(&action, "faster CPUs, a GPU");
	} else {
		text_append_string(
			&action, "faster CPUs, a GPU, or more threads on CPUs of its own");
	}
	text_append_string(&basis, "it computes with one thread; ");
	append_idle(&basis, f);
	text_append_string(&basis, "; what more gain is not known");
	suggest(b, no_gain, &action, &basis);
}

// CPUs that the training process uses while it computes: where it is, not waiting for batches, nor
// for what an epoch begins with.
static double computing_cpus(const struct facts *f)
{
	double other = isfinite(f->other_at_epochs) ? f->other_at_epochs : 0;
	return f->main_cpus / fmax(0.05, 1 - facts_share(f, PHASE_DATA) - other);
}

// CPUs are idle beside threads that compute: further ones would be, too.
static void advise_few_threads(struct book *b)
{
	const struct facts *f = b->f;
	struct text basis = {0};
	if (f->ranks.n > 1) {
		text_format(&basis, "its %u ranks keep ", f->ranks.n);
	} else if (f->main_threads >= 2) {
		text_format(&basis, "its %.0f threads keep ", f->main_threads);
	} else {
		text_append_string(&basis, "it keeps ");
	}
	words_append_number(&basis, fmin(f->cpus, f->ranks.n * computing_cpus(f)));
	text_append_string(&basis, " of ");
	words_append_counted(&basis, f->cpus, "CPU");
	text_append_string(&basis, " busy: more CPUs would be idle");
	struct text action = {0};
	text_append_string(&action, "faster CPUs, a GPU");
	suggest(b, no_gain, &action, &basis);
}

// How much it gains depends on how much of the model is linear layers: a hundredth of a
// convolutional network's time, nearly all of AlexNet's.
static void advise_blas(struct book *b)
{
	struct text action = {0}, basis = {0};
	text_append_string(&action, "an optimised BLAS (Debian: libopenblas0-openmp)");
	text_append_string(&basis, "linear layers run in the reference BLAS, many times "
				   "slower than need be: ");
	words_append_place(&basis, b->f->reference_blas, 80);
	suggest(b, no_gain, &action, &basis);
}

static void advise_compute(struct book *b, const struct cause *cause)
{
	const struct facts *f = b->f;
	(void)cause;
	if (!f->gpu.used && f->reference_blas) {
		advise_blas(b);
	}
	if (f->gpu.used) {
		suggest_plain(b, no_gain, "mixed precision, a larger batch, a faster GPU",
			"the GPU is what the job waits for");
	} else if (f->one_thread && f->cpus >= 2) {
		advise_one_thread(b);
	} else if (idle_cpus(f) / f->ranks.n + f->main_cpus - computing_cpus(f) >= IDLE) {
		advise_few_threads(b);
	} else {
		suggest_plain(b, no_gain, "more or faster CPUs, a GPU",
			"computing is what the job waits for");
	}
}

static void advise_launch(struct book *b, const struct cause *cause)
{
	const struct facts *f = b->f;
	bool script = facts_share(f, PHASE_OTHER) >= 0.5 * cause->share.value;
	if (causes_at_epochs(f->other_at_epochs, cause->share.value)) {
		advise_epochs(b, f->other_at_epochs);
	} else if (causes_handing_over(f) >= 0.5 * cause->share.value) {
		struct text action = {0}, basis = {0};
		text_append_string(&action, "a larger batch: fewer are handed over by the workers");
		text_append_string(&basis, "these prepare ");
		words_append_percent(&basis, fmin(1, f->workers.preparing / f->workers.n));
		text_append_string(&basis, " of the time; at most so much");
		suggest(b, gain_of(cause->share, 1), &action, &basis);
	} else if (script && !f->gpu.used) {
		suggest_plain(b, gain_of(cause->share, 1),
			"less work of the script itself in each step (logging, metrics, .item())",
			"time of the training thread in no phase; at most so much");
	} else {
		suggest_plain(b, gain_of(cause->share, 1),
			"a larger batch; torch.compile or CUDA graphs",
			"the same calls for more samples; at most so much");
	}
}

static void advise_ranks(struct book *b, const struct cause *cause)
{
	const struct rank_facts *r = &b->f->ranks;
	struct text action = {0}, basis = {0};
	if (r->waits_most - r->waits_least >= 0.1) {
		text_format(&action,
			"give rank %d as much to do as the others, and as much machine",
			r->slowest);
		text_append_string(&basis, "it waits ");
		words_append_percent(&basis, r->waits_least);
		text_append_string(&basis, " of its iterations, another ");
		words_append_percent(&basis, r->waits_most);
	} else {
		text_append_string(
			&action, "larger batches, fewer synchronisations, a faster network");
		text_append_string(&basis, "all ranks wait alike; at most so much");
	}
	suggest(b, gain_of(cause->share, 1), &action, &basis);
}

static void advise_validation(struct book *b, const struct cause *cause)
{
	suggest_plain(b, gain_of(cause->share, 0.5), "validate after every second epoch",
		"half of the time that it takes");
}

static void advise_checkpoint(struct book *b, const struct cause *cause)
{
	suggest_plain(b, gain_of(cause->share, 0.5), "save after every second epoch, or beside it",
		"half of the time that it takes");
}

static void advise_startup(struct book *b, const struct cause *cause)
{
	(void)cause;
	suggest_plain(b, no_gain, "more work in one run: the start counts once",
		"time before the first iteration");
}

static void advise_gpu_unused(struct book *b, const struct cause *cause)
{
	(void)cause;
	suggest_plain(b, no_gain, "put model and batches on the GPU (.to(\"cuda\"))",
		"the job has no memory on any GPU that it can see");
}

static void advise_gpu_throttled(struct book *b, const struct cause *cause)
{
	(void)cause;
	suggest_plain(b, no_gain, "better cooling, a higher power limit",
		"the clocks were held down meanwhile");
}

static int suggestion_compare(const void *left, const void *right)
{
	double a = ((const struct suggestion *)left)->gain.value;
	double b = ((const struct suggestion *)right)->gain.value;
	a = isfinite(a) ? a : 1;
	b = isfinite(b) ? b : 1;
	return (a < b) - (a > b);
}

int advice_build(const struct facts *f, const struct causes *c, struct verdict *ret)
{
	static void (*const advisers[N_BOTTLENECKS])(struct book *, const struct cause *) = {
		[BOTTLENECK_INPUT] = advise_input,
		[BOTTLENECK_STORAGE] = advise_storage,
		[BOTTLENECK_MEMORY] = advise_memory,
		[BOTTLENECK_TRANSFER] = advise_transfer,
		[BOTTLENECK_CONTENTION] = advise_contention,
		[BOTTLENECK_CPU_QUOTA] = advise_contention,
		[BOTTLENECK_THREADS] = advise_threads,
		[BOTTLENECK_COMPUTE] = advise_compute,
		[BOTTLENECK_LAUNCH] = advise_launch,
		[BOTTLENECK_RANKS] = advise_ranks,
		[BOTTLENECK_VALIDATION] = advise_validation,
		[BOTTLENECK_CHECKPOINT] = advise_checkpoint,
		[BOTTLENECK_STARTUP] = advise_startup,
		[BOTTLENECK_GPU_UNUSED] = advise_gpu_unused,
		[BOTTLENECK_GPU_THROTTLED] = advise_gpu_throttled,
	};
	struct book book = {f, ret, 0};
	size_t first = ret->n_suggestions;
	for (size_t i = 0; i < c->n && book.r == 0; i++) {
		// Some are worth advice only where they are the answer.
		bool told = i == 0 || (c->items[i].bottleneck != BOTTLENECK_COMPUTE &&
					      c->items[i].bottleneck != BOTTLENECK_STARTUP);
		if (told && advisers[c->items[i].bottleneck]) {
			advisers[c->items[i].bottleneck](&book, &c->items[i]);
		}
	}
	if (ret->n_suggestions > first + 1) {
		qsort(ret->suggestions + first, ret->n_suggestions - first,
			sizeof(*ret->suggestions), suggestion_compare);
	}
	return book.r;
}
