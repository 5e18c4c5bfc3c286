// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Collects suggestions, decides the kinds of gains, and has the model of workers and CPUs. The
// advice for a cause is in its row (cause_kinds.h).

#include "verdict/advice.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/words.h"
#include "verdict/cause_kinds.h"
#include "verdict/thresholds.h"

// Suggestions -------------------------------------------------------------------------------------

// Takes both texts. Two causes can suggest the same action, which is kept once.
static void keep(struct advice_builder *b, struct suggestion made)
{
	struct verdict *v = b->verdict;
	struct suggestion *grown = realloc(v->suggestions, (v->n_suggestions + 1) * sizeof(*grown));
	v->suggestions = grown ? grown : v->suggestions;
	bool known = false;
	for (size_t i = 0; grown && made.action && i < v->n_suggestions; i++) {
		known |= strcmp(grown[i].action, made.action) == 0;
	}
	if (!grown || !made.action || !made.basis || known) {
		free(made.action);
		free(made.basis);
		b->r = known ? b->r : -ENOMEM;
		return;
	}
	grown[v->n_suggestions++] = made;
}

void advice_set(
	struct advice_builder *b, unsigned choice, enum setting_kind kind, const char *format, ...)
{
	char value[SETTING_VALUE_MAX];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(value, sizeof(value), format, arguments);
	va_end(arguments);
	setting_add(&b->settings, choice, kind, value);
}

// A large gain without direct evidence is not promised.
static enum gain_kind kind_of(
	const struct advice_builder *b, struct estimate gain, enum gain_kind kind)
{
	bool promised = isfinite(gain.value) && gain.value >= 1;
	return !promised || (gain.value > LARGE && !b->direct) ? GAIN_UNKNOWN : kind;
}

// Faster iterations do not shorten validation and checkpoints, as far as is known.
static struct estimate of_training(const struct advice_builder *b, struct estimate gain)
{
	double part = facts_iterations_share(b->f);
	if (!b->of_iterations) {
		return gain;
	}
	return (struct estimate){1 / (part / gain.value + 1 - part),
		1 / (part / gain.low + 1 - part), 1 / (part / gain.high + 1 - part)};
}

static void suggest(struct advice_builder *b, struct estimate gain, enum gain_kind kind,
	double hidden_bound, struct text *action, struct text *basis)
{
	gain = of_training(b, gain);
	kind = kind_of(b, gain, kind);
	text_append_string(basis, "");
	if (b->minor && kind == GAIN_UNKNOWN) { // not worth a line
		text_done(action);
		text_done(basis);
		b->settings.n = 0;
		return;
	}
	keep(b, (struct suggestion){
			.kind = kind,
			.gain = kind == GAIN_UNKNOWN ? advice_no_gain : gain,
			.hidden_bound = hidden_bound,
			.action = text_steal(action),
			.basis = text_steal(basis),
			.settings = b->settings,
		});
	b->settings.n = 0;
}

void advice_suggest(
	struct advice_builder *b, struct estimate gain, struct text *action, struct text *basis)
{
	suggest(b, gain, GAIN_ESTIMATED, NAN, action, basis);
}

// No change removes a cause altogether: for a cause with nearly all of the time, the bound says
// nothing.
void advice_suggest_at_most(
	struct advice_builder *b, double share, struct text *action, struct text *basis)
{
	const struct estimate all = {share, NAN, NAN};
	struct estimate bound = advice_gain_of(all, 1);
	if (share < BOUND_SAYS) {
		suggest(b, bound, GAIN_AT_MOST, NAN, action, basis);
	} else {
		double hidden_bound = b->direct ? of_training(b, bound).value : NAN;
		suggest(b, advice_no_gain, GAIN_UNKNOWN, hidden_bound, action, basis);
	}
}

void advice_suggest_plain_at_most(
	struct advice_builder *b, double share, const char *action, const char *basis)
{
	struct text what = {0}, why = {0};
	text_append_string(&what, action);
	text_append_string(&why, basis);
	advice_suggest_at_most(b, share, &what, &why);
}

void advice_suggest_unknown(struct advice_builder *b, const char *action, const char *basis)
{
	struct text what = {0}, why = {0};
	text_append_string(&what, action);
	text_append_string(&why, basis);
	suggest(b, advice_no_gain, GAIN_UNKNOWN, NAN, &what, &why);
}

void advice_suggest_no_collections(struct advice_builder *b, double share)
{
	const struct collection_facts *c = &b->f->collections;
	struct text action = {0}, basis = {0};
	text_append_string(&action,
		c->per_iteration >= COLLECTS_ITSELF ? "do not call gc.collect() in each step"
		: isfinite(c->per_iteration) || isfinite(c->of_preparing)
			? "call gc.freeze() after building the dataset"
			: "do not call gc.collect() in each step; call gc.freeze() "
			  "after building the dataset");
	text_append_string(&basis, "each garbage collection of Python visits all live objects");
	if (isfinite(c->mean_s)) {
		text_append_string(&basis, ", which takes ");
		words_append_seconds(&basis, c->mean_s);
	}
	if (c->per_iteration >= COLLECTS_ITSELF) { // all of this share is saved
		const struct estimate all = {share, NAN, NAN};
		advice_suggest(b, advice_gain_of(all, 1), &action, &basis);
	} else { // of objects that are made later, some are visited still
		advice_suggest_at_most(b, share, &action, &basis);
	}
}

struct estimate advice_gain_of(struct estimate share, double part)
{
	return (struct estimate){
		1 / fmax(0.02, 1 - part * share.value),
		1 / fmax(0.02, 1 - part * share.low),
		1 / fmax(0.02, 1 - part * share.high),
	};
}

const struct estimate advice_no_gain = {NAN, NAN, NAN};

double advice_rank(const struct suggestion *s)
{
	return isfinite(s->gain.value) ? s->gain.value : s->hidden_bound;
}

// Workers -----------------------------------------------------------------------------------------

// CPU time per iteration as a share of its length: of the training process without preparation, and
// of preparation.
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

// The time to start further workers, per iteration. By default each epoch starts its workers anew.
static double starting(const struct facts *f, unsigned workers)
{
	double further = workers > f->workers.n ? workers - f->workers.n : 0;
	double first = f->workers.n == 0 ? WORKERS_START_S : 0;
	double epoch_s = f->epoch_iterations * f->length_s.value;
	bool anew = f->workers.n == 0 || f->workers.restart;
	return anew && epoch_s > 0 ? (first + further * WORKER_START_S) / epoch_s : 0;
}

double advice_length_with(const struct facts *f, unsigned workers, double cpus)
{
	double main, prepare, waits = facts_share(f, PHASE_DATA);
	cpu_times(f, &main, &prepare);
	if (!isfinite(main) || !isfinite(prepare)) {
		return NAN;
	}
	double blocked = f->workers.n == 0              ? waits - prepare
	                 : isfinite(f->workers.blocked) ? f->workers.blocked
	                                                : 0;
	// Run-queue waits depend on the number of CPUs: the last term includes them.
	double queued = isfinite(f->main_queued) ? f->main_queued : 0;
	double computing = fmax(0.05, 1 - waits - queued);
	if (workers == 0) {
		return computing + prepare + blocked;
	}
	double sent = f->workers.n == 0 ? HAND_OVER_S / f->length_s.value : 0;
	double taken = f->workers.n == 0 ? TAKE_OVER_S / f->length_s.value : 0;
	double input = (prepare + blocked + sent) / workers;
	double work = f->ranks.n * (main + prepare + sent + taken) / cpus;
	return fmax(fmax(computing + taken, input), work) + starting(f, workers);
}

// The largest number of workers whose needs fit.
static unsigned workers_that_fit(const struct facts *f)
{
	const struct memory_facts *m = &f->memory;
	// Workers that compute need a CPU each; blocked ones wait at the same time.
	bool blocked = cause_batches_preparing(f).blocked >= BLOCKED;
	unsigned n = f->workers.n;
	unsigned most = blocked ? WORKERS_MOST : (unsigned)fmin(256, fmax(1, ceil(f->cpus)));
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

// CPUs of the job that nobody uses.
double advice_idle_cpus(const struct facts *f)
{
	double others = isfinite(f->others_cpus) ? f->others_cpus : 0;
	return fmax(0, f->cpus - f->cpus_used - others);
}

void advice_append_idle(struct text *t, const struct facts *f)
{
	double idle = advice_idle_cpus(f);
	if (idle < 0.05) {
		text_append_string(t, "no CPU is idle");
		return;
	}
	words_append_number(t, idle);
	text_append_string(t, " of ");
	words_append_counted(t, f->cpus, "CPU");
	text_append_string(t, " idle");
}

void advice_append_prepare_cost(struct text *t, const struct facts *f)
{
	double main, prepare;
	cpu_times(f, &main, &prepare);
	double per_sample = prepare * f->length_s.value / f->samples;
	// The threads of a pipeline prepare while others compute, so their share of CPU time is not
	// known.
	if (per_sample > 0 && !f->pipeline) {
		text_append_string(t, "preparing a sample takes ");
		words_append_seconds(t, per_sample);
		text_append_string(t, " of CPU time; ");
	}
	advice_append_idle(t, f);
}

// The modelled gain of a change in workers; its interval is that of the wait for data.
static struct estimate workers_gain(const struct facts *f, unsigned workers)
{
	// Both lengths come from the model, so that its omissions are in both.
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

// Spinning threads occupy the CPUs on which a worker would prepare. With fewer of them, a step
// takes longer by what they computed, and less by the spinning of its own thread; then there is
// room for workers.
//
//   K(t) = K - spinning of the training thread - u + n u / t
//
// for t of n threads, where u is the useful computing of one of the other threads, as a share of an
// iteration.
static double step_with_threads(const struct facts *f, double threads)
{
	const struct code_facts *others = &f->code_threads;
	double n = fmax(2, isfinite(f->omp_threads) ? f->omp_threads : f->cpus);
	double useful = (1 - others->share[CODE_SPINNING]) * others->cpus / (n - 1);
	double queued = known_or_zero(f->main_queued);
	double spins = cause_code(&f->code, CODE_SPINNING) * fmin(1, f->code.cpus);
	double step = 1 - facts_share(f, PHASE_DATA) - queued - spins - useful;
	return fmax(0.05, step + n * useful / threads);
}

static double length_with_threads(const struct facts *f, unsigned workers, double threads)
{
	double main, prepare;
	cpu_times(f, &main, &prepare);
	bool has = f->workers.n > 0;
	double blocked = has ? known_or_zero(f->workers.blocked)
	                     : fmax(0, facts_share(f, PHASE_DATA) - prepare);
	double sent = has ? 0 : HAND_OVER_S / f->length_s.value;
	double taken = has ? 0 : TAKE_OVER_S / f->length_s.value;
	double step = step_with_threads(f, threads) + taken;
	double input = (prepare + fmax(0, blocked) + sent) / workers;
	double work = step_with_threads(f, 1) + prepare + sent + taken;
	return fmax(fmax(step, input), work / f->cpus) + starting(f, workers);
}

double advice_length_with_threads(const struct facts *f, double threads)
{
	const struct code_facts *others = &f->code_threads;
	if (!cause_sampled(others) || !cause_sampled(&f->code) || !isfinite(others->cpus)) {
		return NAN;
	}
	return f->workers.n > 0 ? length_with_threads(f, f->workers.n, threads)
	                        : step_with_threads(f, threads) + facts_share(f, PHASE_DATA);
}

// Suggests more workers with fewer threads, if removing spinning threads makes room for workers.
// False if that gains little more than workers alone.
static bool advise_workers_and_threads(struct advice_builder *b, double alone)
{
	const struct facts *f = b->f;
	bool spins = cause_sampled(&f->code_threads) && cause_sampled(&f->code) &&
	             cause_spinning_cpus(f) >= SPINNING_CPUS;
	unsigned best_workers = 0, best_threads = 0;
	double best = 1 / fmax(LITTLE, alone * LITTLE);
	if (!spins || cause_batches_at_a_lock(f) || !f->openmp || f->omp_threads == 1 ||
		f->ranks.n > 1 || advice_idle_cpus(f) >= IDLE_CPUS || !f->loader_at ||
		!*f->loader_at) {
		return false;
	}
	for (unsigned workers = f->workers.n + 1; workers <= f->cpus; workers++) {
		double threads = fmax(1, floor(f->cpus) - workers);
		double length = length_with_threads(f, workers, threads);
		if (length * (best_workers ? WITHIN : 1) < best) {
			best = length;
			best_workers = workers;
			best_threads = (unsigned)threads;
		}
	}
	if (best_workers == 0) {
		return false;
	}
	struct text action = {0}, basis = {0};
	append_loader(&action, f);
	text_format(&action, "%s %u -> %u with OMP_NUM_THREADS=%u", f->loader_words->workers,
		f->workers.n, best_workers, best_threads);
	text_append_string(&basis, "spinning threads use ");
	words_append_number(&basis, cause_spinning_cpus(f));
	text_append_string(&basis, " CPUs that workers could use");
	advice_set(b, 0, SETTING_WORKERS, "%u", best_workers);
	advice_set(b, 0, SETTING_ENVIRONMENT, "OMP_NUM_THREADS=%u", best_threads);
	advice_suggest(b, (struct estimate){1 / best, NAN, NAN}, &action, &basis);
	return true;
}

void advice_suggest_workers(struct advice_builder *b)
{
	const struct facts *f = b->f;
	unsigned workers = advice_workers(f);
	struct estimate gain = workers_gain(f, workers);
	double alone = workers > f->workers.n && gain.value >= 1 ? gain.value : 1;
	if (advise_workers_and_threads(b, alone)) {
		return;
	}
	bool quick = f->workers.n == 0 &&
	             facts_share(f, PHASE_DATA) * f->length_s.value < QUICK_BATCH_S;
	if (quick || cause_batches_at_a_lock(f) || workers <= f->workers.n ||
		!(gain.value >= LITTLE)) {
		return;
	}
	struct text action = {0}, basis = {0};
	append_loader(&action, f);
	// Uses the library's name for the setting if PyTorch's hook reported the loader.
	if (f->framework == FRAMEWORK_JAX && f->workers.n == 0) {
		text_format(&action, "prepare batches in %u process%s beside the training process",
			workers, workers == 1 ? "" : "es");
	} else {
		text_format(&action, "%s %u -> %u",
			action.length > 0 ? f->loader_words->workers : "loader workers",
			f->workers.n, workers);
	}
	advice_append_prepare_cost(&basis, f);
	if (!f->pipeline && f->loader_at && *f->loader_at) {
		advice_set(b, 0, SETTING_WORKERS, "%u", workers);
	}
	advice_suggest(b, gain, &action, &basis);
}

// What each epoch starts anew: iterators, a pipeline, workers.
void advice_suggest_at_epochs(struct advice_builder *b, double share)
{
	const struct facts *f = b->f;
	bool of_iterations = b->of_iterations;
	struct text action = {0}, basis = {0};
	if (f->workers.restart) {
		append_loader(&action, f);
		const char *word = f->loader_words->persistent;
		text_format(&action, "%s=True",
			word ? word : "its DataLoader needs persistent_workers");
		advice_set(b, 0, SETTING_PERSISTENT, "1");
		// Workers also end before validation and checkpoints, which are between two epochs;
		// and those of validation start anew, too.
		double more_s = known_or_zero(f->between_s) +
		                known_or_zero(f->validation_starting_s);
		share = facts_iterations_share(f) * share + fmax(0, more_s / f->training_s);
		b->of_iterations = false;
	} else {
		text_append_string(&action, "use one input pipeline for all epochs");
		text_append_string(
			&action, f->pipeline ? " (dataset.repeat(), steps_per_epoch)" : "");
	}
	text_append_string(&basis, "this time is spent in the first iterations of each epoch");
	if (f->workers.restart &&
		known_or_zero(f->validation_starting_s) / f->training_s >= WORTH) {
		text_append_string(&basis, ", and of each validation");
	}
	advice_suggest_at_most(b, share, &action, &basis);
	b->of_iterations = of_iterations;
}

void advice_append_gain(struct text *t, const struct suggestion *s)
{
	if (s->kind == GAIN_UNKNOWN || !isfinite(s->gain.value)) {
		return;
	}
	text_append_string(t, s->kind == GAIN_AT_MOST ? "at most " : "about ");
	text_format(t, "%.*f times as fast", s->gain.value < 9.95 ? 1 : 0, s->gain.value);
}
