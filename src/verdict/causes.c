// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The table of causes, their order, and the confidence in the first. Thresholds are in
// thresholds.h.

#include "verdict/causes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/words.h"
#include "verdict/advice.h"
#include "verdict/cause_kinds.h"
#include "verdict/thresholds.h"

// Names of bottlenecks that are judged without phases (verdict.c) and have no row.
static const struct cause_kind kind_unknown = {.name = "unknown"}, kind_failed = {.name = "failed"},
			       kind_cpu = {.name = "cpu"}, kind_gpu = {.name = "gpu"},
			       kind_gpu_fault = {.name = "gpu-fault"},
			       kind_one_thread = {.name = "one-thread"},
			       kind_idle = {.name = "idle"};

static const struct cause_kind *const kinds[N_BOTTLENECKS] = {
	[BOTTLENECK_UNKNOWN] = &kind_unknown,
	[BOTTLENECK_FAILED] = &kind_failed,
	[BOTTLENECK_CPU] = &kind_cpu,
	[BOTTLENECK_ONE_THREAD] = &kind_one_thread,
	[BOTTLENECK_GPU] = &kind_gpu,
	[BOTTLENECK_GPU_FAULT] = &kind_gpu_fault,
	[BOTTLENECK_IDLE] = &kind_idle,
	// Judged in this order: a row may use what the rows above found.
	[BOTTLENECK_CPU_QUOTA] = &cause_quota,
	[BOTTLENECK_THREADS] = &cause_threads,
	[BOTTLENECK_CONTENTION] = &cause_contention,
	[BOTTLENECK_STORAGE] = &cause_storage,
	[BOTTLENECK_MEMORY] = &cause_memory,
	[BOTTLENECK_INPUT] = &cause_input,
	[BOTTLENECK_INPUT_SLEEP] = &cause_input_sleep,
	[BOTTLENECK_INPUT_LOCK] = &cause_input_lock,
	[BOTTLENECK_INPUT_NETWORK] = &cause_input_network,
	[BOTTLENECK_INPUT_BLOCKED] = &cause_input_blocked,
	[BOTTLENECK_PYTHON_THREADS] = &cause_python_threads,
	[BOTTLENECK_CHILDREN] = &cause_children,
	[BOTTLENECK_ENVIRONMENT] = &cause_environment,
	[BOTTLENECK_GENERATION] = &cause_generation,
	[BOTTLENECK_BLOCKED] = &cause_blocked,
	[BOTTLENECK_ALLOCATION] = &cause_allocation,
	[BOTTLENECK_OPTIMIZER] = &cause_optimizer,
	[BOTTLENECK_HOST] = &cause_host,
	[BOTTLENECK_GPU_UNUSED] = &cause_gpu_unused,
	[BOTTLENECK_GPU_SHARED] = &cause_gpu_shared,
	[BOTTLENECK_COMPUTE] = &cause_compute,
	[BOTTLENECK_GPU_THROTTLED] = &cause_gpu_throttled,
	[BOTTLENECK_TRANSFER] = &cause_transfer,
	[BOTTLENECK_NOT_KNOWN] = &cause_not_known,
	[BOTTLENECK_NETWORK] = &cause_network,
	[BOTTLENECK_RANKS] = &cause_ranks,
	[BOTTLENECK_VALIDATION] = &cause_validation,
	[BOTTLENECK_CHECKPOINT] = &cause_checkpoint,
	[BOTTLENECK_BETWEEN] = &cause_between,
	[BOTTLENECK_COMPILE] = &cause_compile,
	[BOTTLENECK_STARTUP] = &cause_startup,
	[BOTTLENECK_LEAK] = &cause_leak,
};

const struct cause_kind *cause_kind(enum bottleneck bottleneck)
{
	return kinds[bottleneck];
}

const char *bottleneck_name(enum bottleneck bottleneck)
{
	return kinds[bottleneck]->name;
}

// Finding -----------------------------------------------------------------------------------------

// The interval has the width of that of the phase in which the cause shows.
static struct estimate around(double value, const struct facts *f, enum phase_id shows_in)
{
	struct estimate e = {value, NAN, NAN};
	if (shows_in == N_KNOWN_PHASES) {
		return e;
	}
	struct estimate of = f->share[shows_in];
	if (isfinite(of.low) && isfinite(of.value)) {
		e.low = fmax(0, value - (of.value - of.low));
		e.high = fmin(1, value + (of.high - of.value));
	}
	return e;
}

// A cause on the host costs at most the time in which the device has no work.
static double most_of_device(const struct facts *f, const struct cause_kind *kind)
{
	bool bounded = f->gpu.used && isfinite(f->gpu.busy) && !kind->of_device;
	return bounded ? fmax(0, 1 - f->gpu.busy) : 1;
}

// The share of start-up, which is of the run, counts half: a longer run has less of it.
static double weight_of(const struct facts *f, const struct cause_kind *kind, double share)
{
	return kind->of == OF_ITERATIONS ? share * facts_iterations_share(f)
	       : kind->of == OF_RUN      ? share / 2
	                                 : share;
}

static void judge(const struct facts *f, enum bottleneck bottleneck, struct causes *c)
{
	const struct cause_kind *kind = kinds[bottleneck];
	struct judgement judged = kind->judge(f, c);
	double share = judged.share;
	if (kind->of == OF_ITERATIONS) {
		share = fmin(share, most_of_device(f, kind));
	}
	struct estimate whole = around(fmin(1, share), f, judged.shows_in);
	bool perhaps_none = whole.low <= 0 && share < SMALL;
	if (share >= WORTH && !perhaps_none && c->n < CAUSES_MAX) {
		c->items[c->n++] = (struct cause){
			.bottleneck = bottleneck,
			.share = whole,
			.weight = weight_of(f, kind, share),
		};
	}
}

// Causes that a quota explains are ranked after it; a setting of the job (threads) is ranked before
// a larger machine.
static void weigh(struct causes *c)
{
	const struct cause *quota = causes_get(c, BOTTLENECK_CPU_QUOTA);
	double rest = quota ? 1 - quota->share.value : 1;
	bool threads = causes_get(c, BOTTLENECK_THREADS) != NULL;
	for (size_t i = 0; i < c->n; i++) {
		struct cause *cause = &c->items[i];
		bool starved = kinds[cause->bottleneck]->of == OF_ITERATIONS;
		cause->weight *= starved && cause->bottleneck != BOTTLENECK_CPU_QUOTA ? rest : 1;
		if (threads && cause->bottleneck == BOTTLENECK_CONTENTION) {
			cause->weight *= NOT_FIRST;
		}
	}
}

// Whether the share may be nothing, by its interval: it occurred in a few iterations only.
static bool is_unproven(const struct cause *cause)
{
	return cause->share.low < WORTH;
}

// Computing, with its calls, is the purpose of the job. It is first only if no proven cause that
// could be removed has at least two fifths of its time.
static double claim(const struct cause *cause)
{
	bool compute = cause->bottleneck == BOTTLENECK_COMPUTE ||
	               (cause->bottleneck == BOTTLENECK_HOST && cause->share.value < HOST_FIRST);
	double part = !compute && is_unproven(cause) ? cause->share.low / cause->share.value : 1;
	return cause->weight * part * (compute ? NOT_FIRST : 1);
}

static int cause_compare(const void *left, const void *right)
{
	double a = claim(left), b = claim(right);
	return (a < b) - (a > b);
}

void causes_find(const struct facts *f, struct causes *ret)
{
	*ret = (struct causes){.n = 0};
	for (size_t i = 0; f->parts && i < N_BOTTLENECKS; i++) {
		if (kinds[i]->judge) {
			judge(f, (enum bottleneck)i, ret);
		}
	}
	weigh(ret);
	qsort(ret->items, ret->n, sizeof(*ret->items), cause_compare);
	if (f->parts && (f->growth.leak || f->gpu_growth.leak) && ret->n < CAUSES_MAX) {
		const struct estimate none = {NAN, NAN, NAN}; // it costs memory, not time
		ret->items[ret->n++] = (struct cause){BOTTLENECK_LEAK, none, 0};
	}
}

// Confidence --------------------------------------------------------------------------------------

static bool has_rival(const struct causes *c)
{
	for (size_t i = 1; i < c->n; i++) { // computing accompanies every cause
		if (c->items[i].bottleneck != BOTTLENECK_COMPUTE) {
			return claim(&c->items[i]) >= RIVAL * claim(&c->items[0]);
		}
	}
	return false;
}

// Whether something was observed that only this cause does.
static bool causes_direct(const struct facts *f, enum bottleneck bottleneck)
{
	return kinds[bottleneck]->grounds && kinds[bottleneck]->grounds(f) == GROUNDS_DIRECT;
}

enum confidence causes_confidence(const struct facts *f, const struct causes *c)
{
	if (c->n == 0 || f->steady < FEW) {
		return CONFIDENCE_LOW;
	}
	const struct cause *first = &c->items[0];
	enum grounds grounds = kinds[first->bottleneck]->grounds(f);
	bool narrow = !(first->share.high - first->share.low > WIDE);
	bool sure = f->steady >= ENOUGH && !f->lost && narrow && !has_rival(c) &&
	            first->weight >= CERTAIN;
	bool weak = grounds == GROUNDS_EXCLUSION || is_unproven(first);
	return weak                                ? CONFIDENCE_LOW
	       : sure && grounds == GROUNDS_DIRECT ? CONFIDENCE_HIGH
	                                           : CONFIDENCE_MEDIUM;
}

// Advice ------------------------------------------------------------------------------------------

static int suggestion_compare(const void *left, const void *right)
{
	const struct suggestion *one = left, *other = right;
	double a = fmax(1, advice_rank(one)), b = fmax(1, advice_rank(other));
	// Estimates come before bounds: an estimate can be reached, a bound perhaps never.
	int order = (one->kind != GAIN_ESTIMATED) - (other->kind != GAIN_ESTIMATED);
	return order ? order : (a < b) - (a > b);
}

static void advise(struct advice_builder *b, const struct cause *cause, bool first_of_all)
{
	const struct cause_kind *kind = cause_kind(cause->bottleneck);
	bool beside = kind->first_only && !first_of_all;
	struct verdict *v = b->verdict;
	size_t first = v->n_suggestions;
	b->cause = cause->bottleneck;
	b->direct = causes_direct(b->f, cause->bottleneck);
	b->of_iterations = kind->of == OF_ITERATIONS;
	b->minor = !first_of_all && cause->share.value < CERTAIN;
	void (*give)(struct advice_builder *, const struct cause *) = beside ? kind->advise_beside
	                                                                     : kind->advise;
	if (b->r == 0 && give) {
		give(b, cause);
	}
	if (v->n_suggestions > first + 1) {
		qsort(v->suggestions + first, v->n_suggestions - first, sizeof(*v->suggestions),
			suggestion_compare);
	}
}

// Moves the suggestions from `from` on that promise more than all before them to the front.
static void put_larger_first(struct verdict *v, size_t from)
{
	double most = 1;
	size_t front = 0;
	for (size_t i = 0; i < from; i++) {
		most = fmax(most, advice_rank(&v->suggestions[i]));
	}
	for (size_t i = from; i < v->n_suggestions; i++) {
		struct suggestion moved = v->suggestions[i];
		if (advice_rank(&moved) > most) {
			memmove(&v->suggestions[front + 1], &v->suggestions[front],
				(i - front) * sizeof(moved));
			v->suggestions[front++] = moved;
		}
	}
}

// Work that grows from iteration to iteration, in whatever phase: the shares of causes do not show
// it. Within a single epoch, other programs may have slowed the job more and more.
static void advise_trend(struct advice_builder *b, const struct causes *c)
{
	const struct trend *trend = &b->f->trend;
	struct text action = {0}, basis = {0};
	bool others = !trend->in_epochs && causes_get(c, BOTTLENECK_CONTENTION);
	bool queued = b->f->gpu.used; // how long iterations take there, the host does not see
	if (!(trend->share >= WORTH) || c->n == 0 || others || queued) {
		return;
	}
	b->cause = c->items[0].bottleneck;
	b->of_iterations = b->direct = true;
	text_append_string(&action,
		trend->over_epochs
			? "find the work that grows from epoch to epoch (hooks or callbacks that "
			  "each epoch registers once more, a list that is not emptied), unless "
			  "samples become longer"
			: "find the work that grows with the number of iterations (a metric over "
			  "all outputs so far, a list that is searched), unless samples become "
			  "longer");
	text_append_string(&basis, "without waits for data, an iteration takes ");
	words_append_seconds(&basis, trend->first_s);
	text_format(&basis, " in the first quarter of %s and ",
		trend->over_epochs ? "the epochs"
		: trend->numbered  ? (trend->in_epochs ? "each epoch" : "the epoch")
				   : (trend->in_epochs ? "each stretch of the run" : "the run"));
	words_append_seconds(&basis, trend->last_s);
	text_append_string(&basis, " in the last");
	const struct estimate longer = {trend->share, NAN, NAN};
	advice_suggest(b, advice_gain_of(longer, 1), &action, &basis);
}

static bool has_word(const char *list, const char *word)
{
	size_t length = strlen(word);
	for (const char *at = list; (at = strstr(at, word)); at += length) {
		if ((at == list || at[-1] == ' ') && (at[length] == ' ' || !at[length])) {
			return true;
		}
	}
	return false;
}

// Settings that help to find errors or to repeat results, and were left on (strain_debug.py). What
// they cost was not measured: an LSTM cell that is called from Python took 8 times as long with
// anomaly detection.
static void advise_debugging(struct advice_builder *b, const struct causes *c)
{
	static const struct {
		const char *name, *action, *basis;
	} settings[] = {
		{"detect_anomaly",
			"turn anomaly detection off (torch.autograd.set_detect_anomaly(), or "
			"detect_anomaly of Lightning's Trainer)",
			"it was on in the first backward passes: each operation of forward keeps "
			"its Python stack, and each gradient is searched for NaN"},
		{"profiler", "turn the profiler off (torch.profiler), or give it a schedule",
			"it was on in the first backward passes: it records every operation"},
		{"onednn_off", "turn oneDNN on (torch.backends.mkldnn)",
			"it was off in the first backward passes: convolutions and other layers "
			"have slower functions"},
		{"instruction_set",
			"unset the variable that limits instructions (ATEN_CPU_CAPABILITY, "
			"DNNL_MAX_CPU_ISA, OPENBLAS_CORETYPE, MKL_ENABLE_INSTRUCTIONS)",
			"with it, a library uses instructions of old processors only"},
		{"op_determinism",
			"turn off tf.config.experimental.enable_op_determinism(), if results need "
			"not be the same to the bit",
			"with it, tf.data prepares one sample at a time, and some operations have "
			"slower functions"},
		{"data_debug", "turn off tf.data.experimental.enable_debug_mode()",
			"with it, tf.data calls its functions from Python, one sample at a time"},
		{"check_numerics", "turn off tf.debugging.enable_check_numerics()",
			"with it, the output of each operation is searched for NaN and infinity"},
		{"launch_blocking", "unset CUDA_LAUNCH_BLOCKING",
			"with it, the host waits for each kernel of the GPU"},
		{"disable_jit", "turn jax_disable_jit off",
			"with it, no function is compiled: operations are dispatched one by one"},
		{"debug_nans", "turn jax_debug_nans off",
			"with it, each compiled call is waited for, and its results are searched "
			"for NaN"},
		{"debug_infs", "turn jax_debug_infs off",
			"with it, each compiled call is waited for, and its results are searched "
			"for infinity"},
	};
	const char *list = b->f->debug_settings;
	if (!list || c->n == 0) {
		return;
	}
	b->cause = c->items[0].bottleneck;
	for (size_t i = 0; i < ARRAY_LENGTH(settings); i++) {
		if (has_word(list, settings[i].name)) {
			advice_suggest_unknown(b, settings[i].action, settings[i].basis);
		}
	}
}

// Sorted by cause, and the largest gain first within a cause. Advice of causes that are advised
// only if they are first (computing, start-up), or in part otherwise, remains last, unless a
// suggestion promises more than all others (put_larger_first).
int causes_advise(const struct facts *f, const struct causes *c, struct verdict *ret)
{
	struct advice_builder builder = {.f = f, .found = c, .verdict = ret};
	advise_trend(&builder, c);
	bool in_steps = facts_share(f, PHASE_FORWARD) + facts_share(f, PHASE_BACKWARD) +
	                        facts_share(f, PHASE_STEP) >=
	                MOST;
	if (in_steps) {
		advise_debugging(&builder, c);
	}
	for (size_t i = 0; i < c->n; i++) {
		if (!cause_kind(c->items[i].bottleneck)->first_only) {
			advise(&builder, &c->items[i], i == 0);
		}
	}
	size_t from = ret->n_suggestions;
	for (size_t i = 0; i < c->n; i++) {
		if (cause_kind(c->items[i].bottleneck)->first_only) {
			advise(&builder, &c->items[i], i == 0);
		}
	}
	put_larger_first(ret, from);
	if (!in_steps) {
		builder.minor = false;
		advise_debugging(&builder, c);
	}
	return builder.r;
}

// In words ----------------------------------------------------------------------------------------

void causes_append_headline(struct text *t, const struct facts *f, const struct cause *cause)
{
	cause_kind(cause->bottleneck)->say(t, f, cause);
}

// Appends a cause that holds in part: "storage 21 % (18 to 24)".
static void append_part(struct text *t, const struct cause *cause)
{
	text_append_string(t, cause_kind(cause->bottleneck)->part);
	if (!isfinite(cause->share.value)) {
		return;
	}
	text_append_string(t, " ");
	words_append_percent(t, cause->share.value);
	if (cause->share.high - cause->share.low >= 0.015) {
		text_format(t, " (%.0f to %.0f)", 100 * cause->share.low, 100 * cause->share.high);
	}
}

void causes_append_second(struct text *t, const struct facts *f, const struct causes *c)
{
	bool compute = c->n > 0 && c->items[0].bottleneck == BOTTLENECK_COMPUTE;
	for (size_t i = 1; i < c->n && compute; i++) {
		const struct cause *cause = &c->items[i];
		const struct cause_kind *kind = cause_kind(cause->bottleneck);
		if (cause->share.value >= SECOND && !(cause->share.low < WORTH) &&
			!kind->first_only && kind->grounds(f) != GROUNDS_EXCLUSION) {
			text_format(t, "; next cause: %s, ", kind->part);
			words_append_percent(t, cause->share.value);
			return;
		}
	}
}

void causes_append_parts(struct text *t, const struct verdict *v)
{
	const char *comma = "";
	for (size_t i = 1; i < v->n_causes && v->bottleneck == v->causes[0].bottleneck; i++) {
		if (v->causes[i].bottleneck != BOTTLENECK_COMPUTE) { // the purpose of an iteration
			text_append_string(t, comma);
			append_part(t, &v->causes[i]);
			comma = ", ";
		}
	}
}

void causes_append_shares(struct text *t, const struct facts *f)
{
	static const enum phase_id order[] = {PHASE_DATA, PHASE_TRANSFER, PHASE_FORWARD,
		PHASE_BACKWARD, PHASE_STEP, PHASE_COMMUNICATION, PHASE_OPTIMIZER, PHASE_OTHER};
	double widest = 0;
	char count[32];
	if (!f->parts) {
		return;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(order); i++) {
		const struct estimate *share = &f->share[order[i]];
		if (share->value >= 0.005) {
			text_format(t, "%s%s ", t->length ? ", " : "", phase_id_name(order[i]));
			words_append_percent(t, share->value);
			widest = fmax(widest, (share->high - share->low) / 2);
		}
	}
	text_append_string(t, widest > 0 ? " (+-" : " (");
	if (widest > 0) {
		words_append_percent(t, widest);
		text_append_string(t, ", ");
	}
	text_format(t, "%s iterations)", text_count(count, sizeof(count), f->steady));
	if (f->computing_in_data > 0) {
		text_append_string(t, "; step includes ");
		words_append_percent(t, f->computing_in_data);
		text_append_string(t, " that is marked as data: waits for the step's own results");
	}
}

void causes_append_needed(struct text *t, const struct facts *f, const struct causes *c)
{
	const char *comma = "";
	if (!f->parts) {
		text_append_string(t, f->iterations ? "phases of its iterations"
						    : "its iterations and their phases");
		text_append_string(t, " (docs/markers.md)");
		return;
	}
	if (f->steady < ENOUGH) {
		text_format(t, "at least %d steady iterations (this run has %llu)", ENOUGH,
			(unsigned long long)f->steady);
		comma = "; ";
	}
	if (f->lost) {
		text_format(t, "%sa run without lost marks", comma);
		comma = "; ";
	}
	if (f->workers.n > 0 && !f->workers.marked && facts_share(f, PHASE_DATA) > 0.1) {
		text_format(t, "%smarks of the batches that loader workers prepare", comma);
		comma = "; ";
	}
	bool closely = c->n > 1 && c->items[1].weight >= RIVAL * c->items[0].weight &&
	               c->items[1].bottleneck != BOTTLENECK_COMPUTE;
	if (closely) {
		text_format(t, "%sa run with one of the two leading causes removed", comma);
	}
}
