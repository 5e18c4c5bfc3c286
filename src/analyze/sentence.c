// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// One function for each cause: what a person would say.

#include "analyze/sentence.h"

#include <math.h>
#include <stdlib.h>

#include "analyze/causes.h"
#include "analyze/words.h"
#include "base/cleanup.h"

static void append_share(struct text *t, const struct cause *cause)
{
	words_append_percent(t, cause->share.value);
	text_append_string(t, " of each iteration");
}

static void append_cpus(struct text *t, double used, double of)
{
	words_append_number(t, used);
	text_append_string(t, " of ");
	words_append_counted(t, of, "CPU");
}

static void say_input(struct text *t, const struct facts *f, const struct cause *cause)
{
	const struct worker_facts *w = &f->workers;
	if (w->n == 0) {
		text_append_string(
			t, "input-bound: the training process prepares batches itself, ");
		append_share(t, cause);
		return;
	}
	if (w->slowest >= 1.5) {
		text_append_string(t, "input-bound: each iteration waits ");
		words_append_percent(t, facts_share(f, PHASE_DATA));
		text_format(t, " of its time; loader worker %d takes ", w->slowest_number);
		words_append_number(t, w->slowest);
		text_append_string(t, " times as long as others");
		return;
	}
	text_append_string(t, "input-bound (preparation on the CPU): each iteration waits ");
	words_append_percent(t, facts_share(f, PHASE_DATA));
	text_format(t, " of its time for %u loader worker%s", w->n, w->n == 1 ? "" : "s");
	if (isfinite(w->cpus)) {
		text_append_string(t, " (");
		append_cpus(t, w->cpus, f->cpus);
		text_append_string(t, ")");
	}
}

static void say_storage(struct text *t, const struct facts *f, const struct cause *cause)
{
	text_append_string(t, "storage-bound: waiting for reads takes ");
	append_share(t, cause);
	text_append_string(t, "; ");
	words_append_bytes(t, f->storage.read_rate);
	text_append_string(t, "/s come from storage");
}

static void say_memory(struct text *t, const struct facts *f, const struct cause *cause)
{
	text_append_string(t, "memory too small: ");
	if (f->storage.refault_rate > 0) {
		text_append_string(t, "files leave the page cache and are read again, ");
	} else {
		text_append_string(t, "waiting for memory takes ");
	}
	append_share(t, cause);
	if (f->memory.limited) {
		text_append_string(t, " (limit ");
		words_append_bytes(t, f->memory.limit_bytes);
		text_append_string(t, ")");
	}
}

static void say_transfer(struct text *t, const struct facts *f, const struct cause *cause)
{
	text_append_string(t, "transfer-bound: copies from host to device take ");
	append_share(t, cause);
	if (isfinite(f->gpu.to_device_rate) && isfinite(f->gpu.link_rate)) {
		text_append_string(t, " (");
		words_append_bytes_of(t, f->gpu.to_device_rate, f->gpu.link_rate);
		text_append_string(t, "/s)");
	}
}

static void say_contention(struct text *t, const struct facts *f, const struct cause *cause)
{
	enum lack lack = causes_lack(f);
	if (lack == LACK_NOBODY) {
		// Other programs may have been on all that it may use.
		bool certain = !(f->cpus_used + f->host_others_cpus >= f->cpus);
		text_append_string(t, "lacks CPUs: it was ready without one while others of ");
		words_append_counted(t, certain ? f->cpus : f->host_cpus, "CPU");
		text_append_string(t, " were idle, ");
	} else if (lack == LACK_OTHERS) {
		text_append_string(t, "shares its CPUs: other programs used ");
		append_cpus(t, f->host_others_cpus, f->host_cpus);
		text_append_string(t, ", which costs ");
	} else if (f->workers.n > 0) {
		text_append_string(t, "CPU-bound: preparation and training share ");
		words_append_counted(t, f->cpus, "CPU");
		text_append_string(t, ", which costs ");
	} else {
		text_append_string(t, "CPU-bound: there was work for more than ");
		words_append_counted(t, f->cpus, "CPU");
		text_append_string(t, ", which costs ");
	}
	append_share(t, cause);
}

static void say_quota(struct text *t, const struct facts *f, const struct cause *cause)
{
	text_append_string(t, "held back by its CPU quota of ");
	words_append_counted(t, f->cpus, "CPU");
	text_append_string(t, ", which costs ");
	append_share(t, cause);
}

static void say_threads(struct text *t, const struct facts *f, const struct cause *cause)
{
	text_append_string(t, "too many threads: those that compute spin beside ");
	if (f->workers.n > 0) {
		text_format(t, "%u loader worker%s", f->workers.n, f->workers.n == 1 ? "" : "s");
	} else {
		text_append_string(t, "others");
	}
	text_append_string(t, " on ");
	words_append_counted(t, f->cpus, "CPU");
	text_append_string(t, "; that costs ");
	append_share(t, cause);
}

static void say_compute(struct text *t, const struct facts *f, const struct cause *cause)
{
	text_append_string(t, "compute-bound: the ");
	text_append_string(t, f->gpu.used ? "GPU" : "training process");
	text_append_string(t, " computes ");
	append_share(t, cause);
	if (f->gpu.used) {
		bool memory = f->gpu.dram_activity >= 0.6, known = isfinite(f->gpu.dram_activity);
		text_append_string(t, memory  ? " (limited by memory bandwidth)"
				      : known ? " (by arithmetic)"
					      : "");
	} else if (isfinite(f->main_cpus)) {
		text_append_string(t, " (");
		append_cpus(t, f->main_cpus, f->cpus);
		text_append_string(t, ")");
	}
}

static void say_launch(struct text *t, const struct facts *f, const struct cause *cause)
{
	double other = facts_share(f, PHASE_OTHER), handing = causes_handing_over(f);
	if (f->gpu.used) {
		text_append_string(t, "host-bound: the GPU waits for the host to give it work, ");
		append_share(t, cause);
	} else if (handing >= 0.5 * cause->share.value) {
		text_append_string(t, "host-bound: batches that were ready are handed over for ");
		append_share(t, cause);
	} else if (causes_at_epochs(f->other_at_epochs, cause->share.value)) {
		text_append_string(t, "host-bound: the start of each epoch, in no phase, takes ");
		words_append_percent(t, f->other_at_epochs);
		text_append_string(t, " of the iterations' time");
	} else if (other >= 0.5 * cause->share.value) {
		text_append_string(t, "host-bound: the script's own time, in no phase, is ");
		append_share(t, cause);
	} else {
		text_append_string(t, "host-bound: steps of ");
		words_append_seconds(t, f->compute_s);
		text_append_string(t, ", in which calls cost as much as arithmetic");
	}
}

static void say_ranks(struct text *t, const struct facts *f, const struct cause *cause)
{
	const struct rank_facts *r = &f->ranks;
	text_append_string(t, "waits for other ranks, ");
	append_share(t, cause);
	if (r->waits_most - r->waits_least >= 0.1) {
		text_format(t, ": rank %d of %u is slower than the others", r->slowest, r->n);
	}
}

static void say_validation(struct text *t, const struct facts *f, const struct cause *cause)
{
	text_append_string(t, "validation takes ");
	words_append_percent(t, cause->share.value);
	text_append_string(t, " of training: ");
	words_append_seconds(t, f->validation_s);
	text_append_string(t, " of ");
	words_append_seconds(t, f->training_s);
}

static void say_checkpoint(struct text *t, const struct facts *f, const struct cause *cause)
{
	text_append_string(t, "saving checkpoints takes ");
	words_append_percent(t, cause->share.value);
	text_append_string(t, " of training: ");
	words_append_seconds(t, f->checkpoint_s);
	text_append_string(t, " of ");
	words_append_seconds(t, f->training_s);
}

static void say_startup(struct text *t, const struct facts *f, const struct cause *cause)
{
	text_append_string(t, "start-up takes ");
	words_append_percent(t, cause->share.value);
	text_append_string(t, " of the run: ");
	words_append_seconds(t, f->startup_s);
	text_append_string(t, " before the first iteration");
}

static void say_gpu_unused(struct text *t, const struct facts *f, const struct cause *cause)
{
	text_append_string(t, f->gpu.n > 1 ? "GPUs unused" : "the GPU is unused");
	text_append_string(t, ": the CPU computes ");
	append_share(t, cause);
}

static void say_gpu_throttled(struct text *t, const struct facts *f, const struct cause *cause)
{
	(void)cause;
	text_append_string(t, "throttled: heat or power held the GPU's clocks down ");
	words_append_percent(t, f->gpu.throttled);
	text_append_string(t, " of the time");
}

struct saying {
	const char *part; // a word for it where it holds in part
	void (*say)(struct text *t, const struct facts *f, const struct cause *cause);
};

static const struct saying sayings[N_BOTTLENECKS] = {
	[BOTTLENECK_INPUT] = {"preparation", say_input},
	[BOTTLENECK_STORAGE] = {"storage", say_storage},
	[BOTTLENECK_MEMORY] = {"memory too small", say_memory},
	[BOTTLENECK_TRANSFER] = {"host-to-device transfer", say_transfer},
	[BOTTLENECK_CONTENTION] = {"too few CPUs", say_contention},
	[BOTTLENECK_CPU_QUOTA] = {"CPU quota", say_quota},
	[BOTTLENECK_THREADS] = {"spinning threads", say_threads},
	[BOTTLENECK_COMPUTE] = {"computing", say_compute},
	[BOTTLENECK_LAUNCH] = {"the host", say_launch},
	[BOTTLENECK_RANKS] = {"other ranks", say_ranks},
	[BOTTLENECK_VALIDATION] = {"validation", say_validation},
	[BOTTLENECK_CHECKPOINT] = {"checkpoints", say_checkpoint},
	[BOTTLENECK_STARTUP] = {"start-up", say_startup},
	[BOTTLENECK_GPU_UNUSED] = {"a GPU that is not used", say_gpu_unused},
	[BOTTLENECK_GPU_THROTTLED] = {"throttled clocks", say_gpu_throttled},
};

void sentence_append_headline(struct text *t, const struct facts *f, const struct cause *cause)
{
	sayings[cause->bottleneck].say(t, f, cause);
}

// "storage 21 % (18 to 24)": a cause that holds in part.
static void append_part(struct text *t, const struct cause *cause)
{
	text_format(t, "%s ", sayings[cause->bottleneck].part);
	words_append_percent(t, cause->share.value);
	if (cause->share.high - cause->share.low >= 0.015) {
		text_format(t, " (%.0f to %.0f)", 100 * cause->share.low, 100 * cause->share.high);
	}
}

void sentence_append_parts(struct text *t, const struct verdict *v)
{
	const char *comma = "";
	for (size_t i = 1; i < v->n_causes && v->bottleneck == v->causes[0].bottleneck; i++) {
		if (v->causes[i].bottleneck != BOTTLENECK_COMPUTE) { // what an iteration is for
			text_append_string(t, comma);
			append_part(t, &v->causes[i]);
			comma = ", ";
		}
	}
}

void sentence_append_shares(struct text *t, const struct facts *f)
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
			text_format(t, "%s%s ", t->length ? ", " : "", phase_name(order[i]));
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
}

void sentence_append_surer(struct text *t, const struct facts *f, const struct causes *c)
{
	enum { ENOUGH = 30 };
	const char *comma = "";
	if (!f->parts) {
		text_append_string(t, f->iterations ? "phases of its iterations"
						    : "its iterations and their phases");
		text_append_string(t, " (docs/markers.md)");
		return;
	}
	if (f->steady < ENOUGH) {
		text_format(t, "more than %llu iterations", (unsigned long long)f->steady);
		comma = "; ";
	}
	if (f->lost) {
		text_format(t, "%sall marks: some were lost", comma);
		comma = "; ";
	}
	if (f->workers.n > 0 && !f->workers.marked && facts_share(f, PHASE_DATA) > 0.1) {
		text_format(t, "%smarks of what loader workers prepare", comma);
		comma = "; ";
	}
	bool closely = c->n > 1 && c->items[1].weight >= 0.6 * c->items[0].weight &&
	               c->items[1].bottleneck != BOTTLENECK_COMPUTE;
	if (closely) {
		text_format(t, "%sanother run without one of the two causes", comma);
	}
}

void sentence_append_gain(struct text *t, const struct estimate *gain)
{
	if (isfinite(gain->value)) {
		text_append_string(t, gain->value >= 20 ? "more than 20" : "about ");
		if (gain->value < 20) {
			text_format(t, "%.*f", gain->value < 9.95 ? 1 : 0, gain->value);
		}
		text_append_string(t, " times faster");
	}
}
