// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The job's GPUs as causes: not used, shared with other programs, slowed by heat; and what is said
// of one that computes, or is broken. What is the job's and what is not: gpu_facts.c.

#include <inttypes.h>
#include <math.h>

#include "analyze/cause_kinds.h"
#include "analyze/thresholds.h"
#include "analyze/words.h"
#include "base/cleanup.h"

static enum grounds grounds_driver(const struct facts *f)
{
	(void)f;
	return GROUNDS_DIRECT; // the driver says it, of this GPU and these processes
}

bool gpu_known(const struct facts *f)
{
	return f->gpu.used && isfinite(f->gpu.busy);
}

// Unused ------------------------------------------------------------------------------------------

static struct judgement judge_unused(const struct facts *f, const struct causes *found)
{
	struct judgement judgement = device_computing(f, found);
	judgement.share = f->gpu.unused ? judgement.share : 0;
	return judgement;
}

static void say_unused(struct text *t, const struct facts *f, const struct cause *cause)
{
	text_append_string(t, f->gpu.n > 1 ? "GPUs unused" : "the GPU is unused");
	text_append_string(t, ": the CPU computes ");
	cause_append_share(t, cause);
}

static void advise_unused(struct book *b, const struct cause *cause)
{
	(void)cause;
	advice_suggest_unknown(b,
		b->f->python ? "put model and batches on the GPU (.to(\"cuda\"))"
			     : "compute on the GPU",
		"no process of the job is on a GPU that it may use");
}

// Shared ------------------------------------------------------------------------------------------

// Others cost the job something where the GPU has hardly time left: then at most the time in which
// it works for them.
static double shared_share(const struct facts *f)
{
	double others = gpu_facts_shared(&f->gpu);
	bool full = f->gpu.used && f->gpu.busy >= GPU_BUSY;
	return full && others > 0 ? fmin(others, f->gpu.busy) : 0;
}

static struct judgement judge_shared(const struct facts *f, const struct causes *found)
{
	(void)found;
	return (struct judgement){shared_share(f), N_KNOWN_PHASES};
}

static void say_shared(struct text *t, const struct facts *f, const struct cause *cause)
{
	(void)cause;
	text_format(t, "shares GPU %d: processes of other programs use it ", f->gpu.shared_index);
	words_append_percent(t, f->gpu.others_busy);
	text_append_string(t, " of the time");
	if (isfinite(f->gpu.job_busy)) {
		text_append_string(t, ", the job ");
		words_append_percent(t, f->gpu.job_busy);
	}
}

static void advise_shared(struct book *b, const struct cause *cause)
{
	advice_suggest_plain_at_most(b, cause->share.value,
		"a GPU of its own (CUDA_VISIBLE_DEVICES, the scheduler's --gpus)",
		"the GPU would work for the job alone");
}

// Slowed ------------------------------------------------------------------------------------------

static struct judgement judge_throttled(const struct facts *f, const struct causes *found)
{
	(void)found;
	bool works = f->gpu.used && f->gpu.busy >= GPU_BUSY;
	return (struct judgement){
		works ? cause_known(gpu_facts_throttled(&f->gpu)) : 0, N_KNOWN_PHASES};
}

static void say_throttled(struct text *t, const struct facts *f, const struct cause *cause)
{
	(void)cause;
	text_format(t, "throttled: heat or a hardware slowdown held GPU %d's clock down ",
		f->gpu.index);
	words_append_percent(t, f->gpu.slowed);
	text_append_string(t, " of the time, which costs ");
	words_append_percent(t, f->gpu.throttled);
	text_append_string(t, " of it");
}

static void advise_throttled(struct book *b, const struct cause *cause)
{
	advice_suggest_plain_at_most(b, cause->share.value,
		"better cooling, a working power supply (nvidia-smi -q -d PERFORMANCE)",
		"the clock would be the highest");
}

// Computing on one
// ----------------------------------------------------------------------------------

double gpu_computing(const struct facts *f)
{
	return fmax(0, f->gpu.busy - shared_share(f));
}

void gpu_append_use(struct text *t, const struct gpu_facts *g)
{
	if (g->dram_activity >= DRAM_BOUND) {
		text_append_string(t, " (limited by memory bandwidth)");
	} else if (g->sm_activity < SM_FEW) {
		text_append_string(t, ", but ");
		words_append_percent(t, 1 - g->sm_activity);
		text_append_string(t, " of its multiprocessors are idle");
	} else if (isfinite(g->dram_activity)) {
		text_append_string(t, " (by arithmetic)");
	}
	if (g->capped >= CAPPED && g->capped_lost >= CAPPED_WORTH) {
		text_append_string(t, ", at its power cap (clock ");
		words_append_percent(t, g->capped_lost);
		text_append_string(t, " below the highest)");
	}
}

// What use of a busy GPU would be better.
const char *gpu_better_use(const struct gpu_facts *g, bool pytorch)
{
	if (g->dram_activity >= DRAM_BOUND) {
		return pytorch ? "mixed precision, torch.compile: fewer bytes to and from memory"
		               : "mixed precision, fused kernels: fewer bytes to and from memory";
	}
	if (g->sm_activity < SM_FEW) {
		return pytorch ? "a larger batch, torch.compile or CUDA graphs: larger kernels"
		               : "a larger batch: larger kernels";
	}
	if (g->tensor_activity < TENSOR_IDLE) {
		return "mixed precision: the tensor cores are idle";
	}
	return "mixed precision, a larger batch, a faster GPU";
}

// Without phases
// ------------------------------------------------------------------------------------

static unsigned own_gpus(const struct gpu_facts *g)
{
	return g->n_used > 0 ? g->n_used : g->known ? 0 : g->n;
}

void gpu_append_bound(struct text *t, const struct gpu_facts *g)
{
	unsigned n = own_gpus(g);
	text_append_string(t, "GPU-bound: ");
	text_append_string(t, n > 1 ? "the busiest of " : "the GPU");
	if (n > 1) {
		text_format(t, "%u GPUs", n);
	}
	text_append_string(t, " had work ");
	words_append_percent(t, g->busy);
	text_append_string(t, " of the time");
	gpu_append_use(t, g);
}

bool gpu_append_fault(struct text *t, const struct gpu_facts *g)
{
	double uncorrected = g->errors[GPU_ERROR_UNCORRECTED];
	if (g->lost_index >= 0) {
		text_format(t, "GPU %d was lost after ", g->lost_index);
		words_append_seconds(t, g->lost_at_s);
	} else if (uncorrected > 0) {
		text_format(t, "GPU %d reported ", g->errors_index);
		words_append_counted(t, uncorrected, "uncorrected ECC error");
	} else if (g->xid != 0) {
		text_format(t, "GPU %d reported a fault (Xid %" PRIu64 ")", g->xid_index, g->xid);
	}
	return gpu_facts_fault(g);
}

// Rows --------------------------------------------------------------------------------------------

const struct cause_kind cause_gpu_unused = {
	.name = "gpu-unused",
	.part = "a GPU that is not used",
	.of_device = true,
	.judge = judge_unused,
	.grounds = grounds_driver,
	.say = say_unused,
	.advise = advise_unused,
};

const struct cause_kind cause_gpu_shared = {
	.name = "gpu-shared",
	.part = "other programs on the GPU",
	.of_device = true,
	.judge = judge_shared,
	.grounds = grounds_driver,
	.say = say_shared,
	.advise = advise_shared,
};

const struct cause_kind cause_gpu_throttled = {
	.name = "gpu-throttled",
	.part = "throttled clocks",
	.of_device = true,
	.judge = judge_throttled,
	.grounds = grounds_driver,
	.say = say_throttled,
	.advise = advise_throttled,
};
