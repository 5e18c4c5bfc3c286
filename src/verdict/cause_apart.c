// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Causes outside a rank's own iterations: other ranks, validation, checkpoints, start-up, and
// memory that grows.

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/words.h"
#include "verdict/advice.h"
#include "verdict/cause_kinds.h"
#include "run/growth.h"
#include "verdict/thresholds.h"

// The phase or the wait itself was measured.
static enum grounds grounds_measured(const struct facts *f)
{
	(void)f;
	return GROUNDS_DIRECT;
}

// Ranks -------------------------------------------------------------------------------------------

// Whether the other ranks of the job are in other runs.
static bool is_alone(const struct facts *f)
{
	return f->ranks.n == 1 && f->ranks.world > 1;
}

// Of such a rank that computes on CPUs: the time in which its steps sleep and none of its threads
// runs or is ready. It exchanges gradients in them, and waits for the others there.
static double asleep_alone(const struct facts *f)
{
	static const enum wait_kind kinds[] = {WAIT_OTHER, WAIT_NETWORK, WAIT_LOCK};
	double asleep = 0;
	if (!is_alone(f) || f->gpu.used || f->waits.placed < LOOKS_ENOUGH ||
		!isfinite(f->main_cpus)) {
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
		asleep += known_or_zero(f->waits.in_step[kinds[i]]);
	}
	double idle = 1 - f->main_cpus - known_or_zero(f->main_queued);
	return fmax(0, fmin(asleep, idle));
}

// Of ranks that compute on CPUs, in one run: the time in which a rank's steps sleep while its other
// threads mostly run in the kernel. These pass on data (gloo's); what they compute themselves is no
// exchange.
static double asleep_while_sending(const struct facts *f)
{
	const struct code_facts *threads = &f->code_threads;
	if (f->ranks.n < 2 || f->gpu.used || f->framework != FRAMEWORK_PYTORCH ||
		f->waits.placed < LOOKS_ENOUGH || threads->samples < SAMPLES_ENOUGH ||
		!(threads->share[CODE_SYSTEM] >= MOST) || !isfinite(threads->cpus)) {
		return 0;
	}
	double asleep = known_or_zero(f->waits.in_step[WAIT_OTHER]) +
	                known_or_zero(f->waits.in_step[WAIT_NETWORK]);
	double sends = asleep - threads->cpus * (1 - threads->share[CODE_SYSTEM]);
	bool team = cause_sleeping_team(f) > 0; // page faults, too, are the kernel's
	return team ? 0 : fmax(0, fmin(sends, facts_share(f, PHASE_BACKWARD)));
}

// What a rank waits, for others or for the network between them.
static struct judgement judge_exchange(const struct facts *f)
{
	double own = facts_share(f, PHASE_COMMUNICATION);
	double most = f->ranks.n > 1 ? fmax(own, known_or_zero(f->ranks.waits_most)) : own;
	double asleep = own >= WORTH ? 0 : fmax(asleep_alone(f), asleep_while_sending(f));
	bool backward = f->ranks.inferred || asleep > most;
	return (struct judgement){
		fmax(most, asleep), backward ? PHASE_BACKWARD : PHASE_COMMUNICATION};
}

// Whether the exchange itself takes that time, and no rank waits for a slower one.
static bool exchanges(const struct facts *f)
{
	return asleep_while_sending(f) >= MOST * judge_exchange(f).share;
}

// The time that a rank surely waits while its data are on their way: as far as both do not fit into
// an iteration one after the other.
static double sure_overlap(double busy, double waits)
{
	return fmax(0, busy + waits - 1);
}

// Whether some ranks of the job are not in this run. Where the launcher started tasks that each
// have several ranks (torchrun on each node), the world is the number of tasks.
static bool has_ranks_elsewhere(const struct facts *f)
{
	const struct rank_facts *r = &f->ranks;
	bool several = r->n > 1 || facts_share(f, PHASE_COMMUNICATION) > 0;
	return r->world > 0 ? r->world > 1 && r->world != r->n : several;
}

// A rank that waits while its data are on their way to another machine waits for the network. Of
// the overlap of the two only bounds are known: the middle. With a GPU, what a rank waits is not
// known, but a link that is always busy limits it.
static struct judgement judge_network(const struct facts *f, const struct causes *found)
{
	(void)found;
	struct judgement waits = judge_exchange(f);
	double busy = has_ranks_elsewhere(f) ? known_or_zero(f->network.busy) : 0;
	double share = (sure_overlap(busy, waits.share) + fmin(busy, waits.share)) / 2;
	bool full = f->gpu.used && busy >= NETWORK_FULL;
	return (struct judgement){full ? fmax(share, busy) : share, waits.shows_in};
}

static enum grounds grounds_network(const struct facts *f)
{
	double waits = judge_exchange(f).share, busy = known_or_zero(f->network.busy);
	double surely = sure_overlap(busy, waits);
	return surely > 0 && surely >= fmin(busy, waits) / 2 ? GROUNDS_DIRECT : GROUNDS_INDIRECT;
}

static struct judgement judge_ranks(const struct facts *f, const struct causes *found)
{
	const struct cause *network = causes_get(found, BOTTLENECK_NETWORK);
	struct judgement waits = judge_exchange(f);
	waits.share = fmax(0, waits.share - (network ? network->share.value : 0));
	return waits;
}

// "12.1 MB/s to 10.0.0.2, round trip 15 ms".
static void append_network(struct text *t, const struct network_facts *n)
{
	char seconds[32];
	words_append_bytes(t, n->busy_rate);
	text_append_string(t, "/s to ");
	text_append_printable(t, n->peer ? n->peer : "?", n->peer ? strlen(n->peer) : 1);
	if (isfinite(n->round_trip_s)) {
		text_format(t, ", round trip %s",
			text_seconds(seconds, sizeof(seconds), n->round_trip_s));
	}
}

static void say_network(struct text *t, const struct facts *f, const struct cause *cause)
{
	text_append_string(t, "waiting for the network between ranks takes ");
	cause_append_share(t, cause);
	text_append_string(t, ": ");
	append_network(t, &f->network);
}

void cause_advise_synced(struct advice_builder *b, double share)
{
	double passes = b->f->backward_synced;
	bool several = b->f->ranks.n > 1 || b->f->ranks.world > 1;
	struct text action = {0}, basis = {0};
	if (!(passes >= 2) || !several) {
		return;
	}
	text_append_string(&action,
		"exchange gradients once for each step: run all but the last of "
		"its passes (forward and backward) in the model's no_sync()");
	text_format(&basis,
		"DistributedDataParallel exchanges them in each of %.0f passes of a step", passes);
	// On CPUs, the copies to and from its buffers are in backward, too, which computes twice as
	// much as forward.
	double beyond = facts_share(b->f, PHASE_BACKWARD) - 2 * facts_share(b->f, PHASE_FORWARD);
	bool known = isfinite(share) && facts_share(b->f, PHASE_FORWARD) > 0;
	share = known && !b->f->gpu.used ? fmax(share, beyond) : share;
	advice_suggest_at_most(b, share * (passes - 1) / passes, &action, &basis);
}

static void advise_network(struct advice_builder *b, const struct cause *cause)
{
	const struct network_facts *n = &b->f->network;
	cause_advise_synced(b, cause->share.value);
	struct text less = {0}, fewer = {0}, basis = {0}, sent = {0};
	text_append_string(&less, "send gradients with 16 bits, if they have 32");
	if (b->f->framework == FRAMEWORK_PYTORCH) {
		text_append_string(&less,
			": DistributedDataParallel's "
			"register_comm_hook(None, default_hooks.fp16_compress_hook)");
	}
	words_append_bytes(&sent, n->sent_rate * b->f->length_s.value);
	text_append_string(&sent, " sent in an iteration, at ");
	append_network(&sent, n);
	if (b->f->gpu.used) { // it may overlap with computing
		advice_suggest_at_most(b, cause->share.value / 2, &less, &sent);
	} else {
		advice_suggest(b, advice_gain_of(cause->share, 0.5), &less, &sent);
	}
	text_append_string(&fewer, "exchange less often: larger batches, or several in no_sync(); "
				   "or a faster network");
	text_append_string(&basis, "data is in transit to another machine ");
	words_append_percent(&basis, n->busy);
	text_append_string(&basis, " of the time");
	advice_suggest_at_most(b, cause->share.value, &fewer, &basis);
}

static bool is_imbalanced(const struct rank_facts *r)
{
	return r->waits_most - r->waits_least >= fmax(IMBALANCE, r->scatter);
}

static enum grounds grounds_ranks(const struct facts *f)
{
	bool seen = is_imbalanced(&f->ranks);
	return seen && !f->ranks.inferred ? GROUNDS_DIRECT : GROUNDS_INDIRECT;
}

// ": it waits for the network 59 % of the time"; ": its data phase takes 25 ms longer".
static void append_why_slower(struct text *t, const struct rank_facts *r)
{
	static const char *const waits[WAIT_OTHER] = {
		[WAIT_STORAGE] = "waits for files",
		[WAIT_FSYNC] = "waits for fsync",
		[WAIT_NETWORK] = "waits for the network",
		[WAIT_PIPE] = "waits for another process (a pipe, a local socket)",
		[WAIT_LOCK] = "waits for a lock",
		[WAIT_GIL] = "waits for another Python thread (GIL)",
		[WAIT_SLEEP] = "sleeps",
		[WAIT_CHILD] = "waits for processes that it starts",
	};
	if (r->slow_wait > 0) {
		text_format(t, ": it %s ", waits[r->slow_wait_kind]);
		words_append_percent(t, r->slow_wait);
		text_append_string(t, " of the time");
	} else if (r->slow_phase_s > 0) {
		bool other = r->slow_phase == PHASE_OTHER;
		text_format(t, ": its %s%s takes ",
			other ? "time outside phases" : phase_id_name((enum phase_id)r->slow_phase),
			other ? "" : " phase");
		words_append_seconds(t, r->slow_phase_s);
		text_append_string(t, " longer");
	}
}

static void say_ranks(struct text *t, const struct facts *f, const struct cause *cause)
{
	const struct rank_facts *r = &f->ranks;
	text_append_string(t, !is_imbalanced(r) && exchanges(f)
				      ? "exchanging gradients with other ranks takes "
				      : "waiting for other ranks takes ");
	cause_append_share(t, cause);
	if (is_imbalanced(r)) {
		text_format(t, ": rank %d of %u is slower than the others", r->slowest, r->n);
		append_why_slower(t, r);
	} else if (is_alone(f)) {
		text_format(t, ": this run contains only one of %" PRId64 " ranks", r->world);
	} else if (!f->gpu.used) { // else the loop may wait for the device there
		cause_append_main_line(t, f);
	}
}

static void advise_ranks(struct advice_builder *b, const struct cause *cause)
{
	const struct rank_facts *r = &b->f->ranks;
	struct text action = {0}, basis = {0};
	if (!is_imbalanced(r)) {
		cause_advise_synced(b, cause->share.value);
	}
	if (is_imbalanced(r)) {
		bool elsewhere = r->slow_wait > 0 && r->slow_wait_kind <= WAIT_PIPE;
		text_format(&action,
			elsewhere ? "in rank %d, move the operation that waits to a background "
				    "thread, or run it less often"
				  : "give rank %d the same amount of work and resources as the "
				    "others",
			r->slowest);
		text_append_string(&basis, "it waits for the others ");
		words_append_percent(&basis, r->waits_least);
		text_append_string(&basis, " of its iteration time, another rank ");
		words_append_percent(&basis, r->waits_most);
	} else if (is_alone(b->f)) {
		text_append_string(&action,
			"find the rank that the others wait for: strain show DIR joins the runs of "
			"all ranks");
		text_format(&basis, "this run contains only one of %" PRId64 " ranks", r->world);
	} else {
		text_append_string(
			&action, "use larger batches, fewer synchronisations or a faster network");
		text_append_string(&basis, "all ranks wait equally");
	}
	advice_suggest_at_most(b, cause->share.value, &action, &basis);
}

// Validation and checkpoints ----------------------------------------------------------------------

// Loader workers that start for each validation, where those of training also start for each epoch
// and keep it waiting: one setting is against both, so that the cause is the input.
static bool starts_are_input(const struct facts *f, const struct causes *found)
{
	const struct cause *input = causes_get(found, BOTTLENECK_INPUT);
	return input && f->workers.restart &&
	       causes_at_epochs(f->data_at_epochs, input->share.value);
}

static double validates(const struct facts *f, const struct causes *found)
{
	return known_or_zero(f->validation_s) -
	       (starts_are_input(f, found) ? known_or_zero(f->validation_starting_s) : 0);
}

static struct judgement judge_validation(const struct facts *f, const struct causes *found)
{
	return (struct judgement){validates(f, found) / f->training_s, N_KNOWN_PHASES};
}

// Share of the time in which the training thread waits for fsync. Many short waits end before a
// look at one is complete. If nearly all others find fsync, it has all time in which the thread
// neither runs nor is ready.
double cause_synced(const struct facts *f)
{
	double share = known_or_zero(f->waits.share[WAIT_FSYNC]), all = 0;
	for (size_t i = 0; i < N_WAITS; i++) {
		all += known_or_zero(f->waits.share[i]);
	}
	double asleep = 1 - f->code.cpus - known_or_zero(f->main_queued);
	bool only = share >= WORTH && share >= NEARLY_ALL * all && !f->gpu.used;
	share = only && asleep > share ? asleep : share;
	return f->waits.looks >= LOOKS_ENOUGH ? share : 0;
}

static double saved(const struct facts *f)
{
	return known_or_zero(f->checkpoint_s) / f->training_s;
}

// Hooks mark saving as a phase; a script's own fsync is found by samples of waits.
static struct judgement judge_checkpoint(const struct facts *f, const struct causes *found)
{
	(void)found;
	return (struct judgement){fmax(saved(f), cause_synced(f)), N_KNOWN_PHASES};
}

// What marks or looks found themselves, of the share that looks are scaled to.
static enum grounds grounds_checkpoint(const struct facts *f)
{
	double seen = fmax(saved(f), known_or_zero(f->waits.share[WAIT_FSYNC]));
	return seen >= MOST * fmax(saved(f), cause_synced(f)) ? GROUNDS_DIRECT : GROUNDS_INDIRECT;
}

static void append_of_training(struct text *t, const struct facts *f, double share, double seconds)
{
	words_append_percent(t, share);
	text_append_string(t, " of training");
	if (seconds >= 0.5 * share * f->training_s) {
		text_append_string(t, ": ");
		words_append_seconds(t, seconds);
		text_append_string(t, " of ");
		words_append_seconds(t, f->training_s);
	}
}

static void say_validation(struct text *t, const struct facts *f, const struct cause *cause)
{
	text_append_string(t, "validation takes ");
	append_of_training(t, f, cause->share.value, cause->share.value * f->training_s);
	if (f->validates_alone >= 0) {
		text_format(t, ", on rank %d only", f->validates_alone);
	}
}

static void say_checkpoint(struct text *t, const struct facts *f, const struct cause *cause)
{
	bool marked = saved(f) >= MOST * cause->share.value;
	text_append_string(
		t, marked ? "saving checkpoints takes " : "flushing files to disk (fsync) takes ");
	append_of_training(t, f, cause->share.value, f->checkpoint_s);
	if (!marked) {
		cause_append_line(t, ", mostly in ", &f->lines.outside,
			cause->share.value / facts_share(f, PHASE_OTHER));
	}
}

// For a cause that takes much of the training time: suggests doing it 5 to 100 times less often, so
// that it falls below WORTH.
static void suggest_rarely(
	struct advice_builder *b, const struct cause *cause, const char *what, const char *instead)
{
	static const unsigned times[] = {5, 10, 20, 50, 100};
	double share = cause->share.value, rest = 1 - share;
	struct text action = {0}, basis = {0};
	size_t i = 0;
	if (!(share >= FAR_TOO_OFTEN)) {
		return;
	}
	while (i + 1 < ARRAY_LENGTH(times) && share / times[i] > WORTH * rest) {
		i++;
	}
	text_format(&action, "%s %u times less often, or %s", what, times[i], instead);
	text_append_string(&basis, "it would then take ");
	words_append_percent(&basis, share / times[i] / (rest + share / times[i]));
	text_append_string(&basis, " of training");
	advice_suggest(b, advice_gain_of(cause->share, 1 - 1. / times[i]), &action, &basis);
}

static void advise_starts(struct advice_builder *b)
{
	const struct facts *f = b->f;
	double seconds = known_or_zero(f->validation_starting_s);
	struct text action = {0}, basis = {0};
	if (starts_are_input(f, b->found) || seconds / f->training_s < WORTH) {
		return;
	}
	text_append_string(&action, "persistent_workers=True for the loader of validation");
	text_append_string(&basis, "its workers start for each validation, which waits ");
	words_append_seconds(&basis, seconds);
	text_append_string(&basis, " for their first batches in all");
	advice_suggest_at_most(b, seconds / f->training_s, &action, &basis);
}

static void advise_validation(struct advice_builder *b, const struct cause *cause)
{
	advise_starts(b);
	suggest_rarely(b, cause, "validate", "on fewer samples");
	struct text action = {0}, basis = {0};
	bool alone = b->f->validates_alone >= 0;
	text_append_string(&action, alone ? "validate half as often, or on all ranks, each a part"
					  : "validate half as often");
	text_append_string(&basis, "saves half of this time");
	text_append_string(&basis, alone ? " (two ranks or more); the others wait meanwhile" : "");
	advice_suggest(b, advice_gain_of(cause->share, 0.5), &action, &basis);
}

// The function that waits for fsync: the one with the most samples outside of all phases, if not
// all of these waits fit into the rest of the time there. NULL: not known.
static const struct line_place *syncing_function(const struct facts *f)
{
	const struct line_place *top = cause_outside_function(f);
	double synced = cause_synced(f), other = facts_share(f, PHASE_OTHER);
	if (!top || f->framework != FRAMEWORK_PYTORCH || synced > other || top->share < synced) {
		return NULL;
	}
	double rest = fmax(0, other - fmax(0, top->share - top->error));
	return synced - rest >= SYNCED_THERE * synced ? top : NULL;
}

// Commits take CPU time, too. Many rows in one transaction save nearly all of both.
static void advise_commits(
	struct advice_builder *b, const struct cause *cause, const struct line_place *function)
{
	struct text action = {0}, basis = {0};
	text_append_string(&action, "write and commit less often in ");
	words_append_place(&action, function->place, 60);
	text_append_string(&action, " (many rows per transaction), or in a background thread");
	words_append_percent(&basis, function->share);
	text_append_string(
		&basis, " of the samples of lines are in this function; waits for fsync take ");
	words_append_percent(&basis, cause->share.value);
	text_append_string(&basis, " of the time");
	double most = fmin(cause_function_at_most(function), facts_share(b->f, PHASE_OTHER));
	advice_suggest_at_most(b, most, &action, &basis);
}

static void advise_checkpoint(struct advice_builder *b, const struct cause *cause)
{
	const struct line_place *function = syncing_function(b->f);
	struct text action = {0}, basis = {0};
	bool marked = saved(b->f) >= MOST * cause->share.value;
	if (!marked && function) {
		advise_commits(b, cause, function);
		return;
	}
	if (marked) {
		suggest_rarely(b, cause, "save checkpoints", "in a background thread");
	}
	text_append_string(&action,
		marked ? "save checkpoints half as often, or in a background thread"
		       : "write and commit half as often (several rows per transaction), or in a "
			 "background thread");
	text_append_string(&basis, "saves half of this time");
	advice_suggest(b, advice_gain_of(cause->share, 0.5), &action, &basis);
}

// Between iterations ------------------------------------------------------------------------------

// Time that is in no iteration and no phase: a metric over a whole epoch, a report, a rollout.
// Where loader workers start for each epoch, their end is a part of it.
static struct judgement judge_between(const struct facts *f, const struct causes *found)
{
	(void)found;
	bool ends = f->workers.restart && !cause_outside_function(f);
	double share = known_or_zero(f->between_s) / f->training_s;
	return (struct judgement){ends ? 0 : share, N_KNOWN_PHASES};
}

static bool predicts_between(const struct facts *f)
{
	return f->predicts_between >= PREDICTS_MANY &&
	       f->predicts_between_s < PREDICTS_BRIEF_S * f->predicts_between &&
	       f->predicts_between_s >= MOST * f->between_s;
}

// The function that most of this time is in. NULL: not known.
static const struct line_place *between_function(const struct facts *f, double share)
{
	const struct line_place *top = cause_outside_function(f);
	return top && top->share >= MOST * share ? top : NULL;
}

static const char *between_what(const struct facts *f)
{
	return f->between_epochs >= MOST ? "epochs" : "iterations";
}

static void say_between(struct text *t, const struct facts *f, const struct cause *cause)
{
	const struct line_place *function = between_function(f, cause->share.value);
	text_format(t, "work between %s takes ", between_what(f));
	append_of_training(t, f, cause->share.value, f->between_s);
	if (function) {
		text_append_string(t, ", mostly in ");
		words_append_place(t, function->place, 60);
	} else if (predicts_between(f)) {
		text_append_string(t, ", mostly in calls of predict()");
	}
}

static void advise_predicts_between(struct advice_builder *b)
{
	const struct facts *f = b->f;
	struct text action = {0}, basis = {0};
	text_append_string(&action,
		"call predict() once with all samples, or model(x, training=False) for one");
	words_append_number(&basis, f->predicts_between);
	text_format(&basis, " calls of predict() between %s take ", between_what(f));
	words_append_seconds(&basis, f->predicts_between_s);
	text_append_string(&basis, ": each makes a data set, an iterator and callbacks");
	advice_suggest_at_most(b, f->predicts_between_s / f->training_s, &action, &basis);
}

static void advise_between(struct advice_builder *b, const struct cause *cause)
{
	const struct line_place *function = between_function(b->f, cause->share.value);
	struct text action = {0}, basis = {0};
	if (predicts_between(b->f)) {
		advise_predicts_between(b);
	}
	if (!function) {
		text_format(&action, "find out what runs between %s, and run it less often",
			between_what(b->f));
		text_append_string(
			&basis, b->f->python ? "to mark it: import strain; with strain.phase(...):"
					     : "to mark it: strain_begin(), strain_end() "
					       "(docs/markers.md)");
		advice_suggest(b, advice_no_gain, &action, &basis);
		return;
	}
	text_append_string(&action, "call ");
	words_append_place(&action, function->place, 60);
	text_append_string(
		&action, " less often, on fewer samples, or make it faster (on whole arrays)");
	words_append_percent(&basis, function->share);
	text_append_string(&basis,
		" of the samples of lines are in this function, outside modules, backward and "
		"optimizer");
	advice_suggest_at_most(
		b, fmin(cause->share.value, cause_function_at_most(function)), &action, &basis);
}

// Start -------------------------------------------------------------------------------------------

// Start-up counts half: in a longer run its share is smaller.
static struct judgement judge_startup(const struct facts *f, const struct causes *found)
{
	(void)found;
	double share = f->startup_s / f->duration_s;
	return (struct judgement){share >= STARTUP ? share : 0, N_KNOWN_PHASES};
}

static void say_startup(struct text *t, const struct facts *f, const struct cause *cause)
{
	text_append_string(t, "start-up takes ");
	words_append_percent(t, cause->share.value);
	text_append_string(t, " of the run: ");
	words_append_seconds(t, f->startup_s);
	text_append_string(t, " before the first iteration");
}

static void advise_startup(struct advice_builder *b, const struct cause *cause)
{
	(void)cause;
	advice_suggest_unknown(b, "do more work per run: start-up happens once",
		"time before the first iteration");
}

// Growth ------------------------------------------------------------------------------------------

// A leak costs memory, and time only at the very end, so it has no share: causes_find() puts it
// last.
static struct judgement judge_leak(const struct facts *f, const struct causes *found)
{
	(void)f;
	(void)found;
	return (struct judgement){0, N_KNOWN_PHASES};
}

static void say_leak(struct text *t, const struct facts *f, const struct cause *cause)
{
	(void)cause;
	growth_append_warning(t, f->growth.leak ? &f->growth : &f->gpu_growth);
}

static void advise_leak(struct advice_builder *b, const struct cause *cause)
{
	(void)cause;
	advice_suggest_unknown(b,
		"do not keep results of earlier iterations (store loss.item() instead of loss; do "
		"not let lists grow)",
		b->f->growth.leak
			? "unreclaimable memory grew from the first iterations to the last"
			: "memory of the GPU grew from the first iterations to the last; a part "
			  "may be the framework's cache");
}

// Rows --------------------------------------------------------------------------------------------

const struct cause_kind cause_network = {
	.name = "network",
	.part = "the network between ranks",
	.of_device = true, // NCCL's kernels wait on the device
	.judge = judge_network,
	.grounds = grounds_network,
	.say = say_network,
	.advise = advise_network,
};

const struct cause_kind cause_ranks = {
	.name = "ranks",
	.part = "other ranks",
	.judge = judge_ranks,
	.grounds = grounds_ranks,
	.say = say_ranks,
	.advise = advise_ranks,
};

const struct cause_kind cause_validation = {
	.name = "validation",
	.part = "validation",
	.of = OF_TRAINING,
	.judge = judge_validation,
	.grounds = grounds_measured,
	.say = say_validation,
	.advise = advise_validation,
};

const struct cause_kind cause_between = {
	.name = "between",
	.part = "work between iterations",
	.of = OF_TRAINING,
	.judge = judge_between,
	.grounds = grounds_measured,
	.say = say_between,
	.advise = advise_between,
};

const struct cause_kind cause_checkpoint = {
	.name = "checkpoint",
	.part = "checkpoints and fsync",
	.of = OF_TRAINING,
	.judge = judge_checkpoint,
	.grounds = grounds_checkpoint,
	.say = say_checkpoint,
	.advise = advise_checkpoint,
};

const struct cause_kind cause_startup = {
	.name = "start-up",
	.part = "start-up",
	.of = OF_RUN,
	.first_only = true,
	.judge = judge_startup,
	.grounds = grounds_measured,
	.say = say_startup,
	.advise = advise_startup,
};

const struct cause_kind cause_leak = {
	.name = "leak",
	.part = "growing memory",
	.of = OF_RUN,
	.judge = judge_leak,
	.grounds = grounds_measured,
	.say = say_leak,
	.advise = advise_leak,
};
