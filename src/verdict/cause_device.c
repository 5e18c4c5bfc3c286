// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Causes in the steps themselves: computing, the host's calls around it, the optimizer, and time
// that nothing explains.

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/words.h"
#include "verdict/advice.h"
#include "verdict/cause_kinds.h"
#include "verdict/thresholds.h"

// For torch.compile.
#define KEEP_GRAPHS                                                                  \
	"mark the dimension that varies as dynamic (torch._dynamo.mark_dynamic, or " \
	"torch.compile(dynamic=True)), and keep other arguments the same from call to call"

// Gpu ---------------------------------------------------------------------------------------------
//
// The job's GPUs as causes: not used, shared with other programs, slowed by heat. Also texts for a
// GPU that computes or is faulty. gpu_facts.c decides which GPUs are the job's.

static enum grounds grounds_driver(const struct facts *f)
{
	(void)f;
	return GROUNDS_DIRECT; // the driver reports it for this GPU and these processes
}

// Whether the job uses a GPU and its load is known.
static bool gpu_known(const struct facts *f)
{
	return f->gpu.used && isfinite(f->gpu.busy);
}

// Unused ------------------------------------------------------------------------------------------

static struct judgement device_computing(const struct facts *f, const struct causes *found);

static struct judgement judge_unused(const struct facts *f, const struct causes *found)
{
	struct judgement judgement = device_computing(f, found);
	judgement.share = f->gpu.unused ? judgement.share : 0;
	return judgement;
}

static void say_unused(struct text *t, const struct facts *f, const struct cause *cause)
{
	text_append_string(t, f->gpu.n > 1 ? "GPUs unused" : "the GPU is unused");
	text_append_string(t, ": the CPU spends ");
	cause_append_share(t, cause);
	text_append_string(t, " computing");
}

static void advise_unused(struct advice_builder *b, const struct cause *cause)
{
	(void)cause;
	advice_suggest_unknown(b,
		b->f->python ? "move model and batches to the GPU (.to(\"cuda\"))"
			     : "compute on the GPU",
		"no process of the job uses the GPUs that it has access to");
}

// Shared ------------------------------------------------------------------------------------------

// Other programs have a cost only if the GPU has hardly any idle time; then at most the time in
// which it works for them.
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
	text_format(t, "contention for GPU %d: other programs use it ", f->gpu.shared_index);
	words_append_percent(t, f->gpu.others_busy);
	text_append_string(t, " of the time");
	if (isfinite(f->gpu.job_busy)) {
		text_append_string(t, ", the job ");
		words_append_percent(t, f->gpu.job_busy);
	}
}

static void advise_shared(struct advice_builder *b, const struct cause *cause)
{
	static const char *const actions[N_GPU_VENDORS] = {
		[GPU_NVIDIA] = "use a dedicated GPU (CUDA_VISIBLE_DEVICES, the scheduler's --gpus)",
		[GPU_AMD] = "use a dedicated GPU (HIP_VISIBLE_DEVICES, the scheduler's --gpus)",
		[GPU_INTEL] = "use a dedicated GPU (ZE_AFFINITY_MASK, the scheduler's --gpus)",
	};
	advice_suggest_plain_at_most(b, cause->share.value, actions[b->f->gpu.vendor],
		"the GPU would serve only the job");
}

// Slowed ------------------------------------------------------------------------------------------

static struct judgement judge_throttled(const struct facts *f, const struct causes *found)
{
	(void)found;
	bool works = f->gpu.used && f->gpu.busy >= GPU_BUSY;
	return (struct judgement){
		works ? known_or_zero(gpu_facts_throttled(&f->gpu)) : 0, N_KNOWN_PHASES};
}

static void say_throttled(struct text *t, const struct facts *f, const struct cause *cause)
{
	(void)cause;
	text_format(t, "GPU throttled: %s lowered the clock of GPU %d for ",
		gpu_slowing_words(f->gpu.slowing), f->gpu.index);
	words_append_percent(t, f->gpu.slowed);
	text_append_string(t, " of the time, which costs ");
	words_append_percent(t, f->gpu.throttled);
	text_append_string(t, " of it");
}

// " (nvidia-smi -q)": the command that shows more, with NVIDIA's options. Intel's drivers have
// none.
static void append_tool(struct text *t, const struct gpu_facts *g, const char *options)
{
	if (g->vendor == GPU_NVIDIA) {
		text_format(t, " (nvidia-smi %s)", options);
	} else if (g->vendor == GPU_AMD) {
		text_append_string(t, " (amd-smi metric)");
	}
}

static void advise_throttled(struct advice_builder *b, const struct cause *cause)
{
	static const struct {
		const char *action, *options;
	} actions[N_GPU_SLOWINGS + 1] = {
		[GPU_SLOWED_HEAT] = {"improve the cooling", "-q -d TEMPERATURE,PERFORMANCE"},
		[GPU_SLOWED_BRAKE] = {"check the machine's power supply, which signals a power "
				      "brake",
			"-q -d POWER,PERFORMANCE"},
		[GPU_SLOWED_HARDWARE] = {"check the cooling and the power supply",
			"-q -d TEMPERATURE,POWER,PERFORMANCE"},
		[GPU_SLOWED_GROUP] = {"find the GPU that holds back this one's group, or use a GPU "
				      "outside of it",
			"-q -d PERFORMANCE"},
		[N_GPU_SLOWINGS] = {"check the cooling and the power supply",
			"-q -d TEMPERATURE,POWER,PERFORMANCE"},
	};
	const struct gpu_facts *g = &b->f->gpu;
	struct text action = {0}, basis = {0};
	text_append_string(&action, actions[g->slowing].action);
	append_tool(&action, g, actions[g->slowing].options);
	text_append_string(&basis, "the GPU would run at its highest clock");
	advice_suggest_at_most(b, cause->share.value, &action, &basis);
}

// Computing on one --------------------------------------------------------------------------------

// Share of the time in which the GPU works for the job, if that is known.
static double gpu_computing(const struct facts *f)
{
	return fmax(0, f->gpu.busy - shared_share(f));
}

// Whether the GPU multiplies single precision in its ordinary cores, and not in its tensor cores.
static bool gpu_lacks_tensors(const struct gpu_facts *g)
{
	return isfinite(g->fp32_activity)
	               ? g->fp32_activity >= ARITHMETIC && g->tensor_activity < TENSOR_FEW
	               : g->tensor_activity < TENSOR_IDLE;
}

// Whether arithmetic is what its kernels do most of the time; where that is not known, all that is
// no traffic of memory counts.
static bool gpu_calculates(const struct gpu_facts *g)
{
	return !isfinite(g->fp32_activity) || g->tensor_activity >= TENSOR_BUSY ||
	       g->fp32_activity >= ARITHMETIC || g->fp64_activity >= DOUBLES;
}

// Appends " (limited by memory bandwidth), at its power cap (clock 12 % below the highest)";
// nothing if nothing is known.
static void gpu_append_use(struct text *t, const struct gpu_facts *g)
{
	if (g->dram_activity >= DRAM_BOUND) {
		text_append_string(t, " (limited by memory bandwidth)");
	} else if (g->sm_activity < SM_FEW) {
		text_append_string(t, ", but ");
		words_append_percent(t, 1 - g->sm_activity);
		text_append_string(t, " of its multiprocessors are idle");
	} else if (isfinite(g->dram_activity) && gpu_calculates(g)) {
		text_append_string(t, " (by arithmetic");
		text_append_string(t, gpu_lacks_tensors(g) ? ", without tensor cores)" : ")");
	}
	if (g->capped >= CAPPED && g->capped_lost >= CAPPED_WORTH) {
		text_append_string(t, ", at its power cap (clock ");
		words_append_percent(t, g->capped_lost);
		text_append_string(t, " below the highest)");
	}
	if (g->set_lost >= SET_WORTH) {
		text_append_string(t, ", with its clock limited by a setting to ");
		words_append_number(t, g->set_hz / 1e6);
		text_append_string(t, " of ");
		words_append_number(t, g->highest_hz / 1e6);
		text_append_string(t, " MHz");
	}
}

// A larger batch does not fit a GPU whose memory is nearly in use, unless the framework takes all.
static bool gpu_memory_full(const struct gpu_facts *g)
{
	return !g->reserves && g->memory_peak_bytes >= MEMORY_FULL * g->memory_bytes;
}

// How to use a busy GPU better.
const char *cause_gpu_better_use(const struct gpu_facts *g, bool pytorch)
{
	if (g->dram_activity >= DRAM_BOUND) {
		return pytorch ? "use mixed precision or torch.compile, to reduce memory traffic"
		               : "use mixed precision or fused kernels, to reduce memory traffic";
	}
	if (g->sm_activity < SM_FEW) {
		return gpu_memory_full(g) ? (pytorch ? "use torch.compile or CUDA graphs: the "
						       "kernels are too small"
						     : "fuse operations: the kernels are too small")
		       : pytorch ? "use a larger batch, torch.compile or CUDA graphs: the kernels "
		                   "are too small"
		                 : "use a larger batch: the kernels are too small";
	}
	if (g->fp64_activity >= DOUBLES) {
		return "use single precision (float32): the GPU computes in double precision";
	}
	if (gpu_lacks_tensors(g)) {
		return pytorch ? "use mixed precision, or "
		                 "torch.set_float32_matmul_precision(\"high\") "
		                 "(TF32): the tensor cores are idle"
		               : "use mixed precision: the tensor cores are idle";
	}
	if (g->tensor_activity >= TENSOR_BUSY) {
		return "use a faster GPU, or less arithmetic: its tensor cores are in use";
	}
	if (pytorch && !gpu_calculates(g)) {
		return gpu_memory_full(g)
		               ? "use torch.compile (fewer, larger kernels) or a faster GPU"
		               : "use torch.compile (fewer, larger kernels), a larger batch or a "
		                 "faster GPU";
	}
	return gpu_memory_full(g) ? "use mixed precision or a faster GPU"
	                          : "use mixed precision, a larger batch or a faster GPU";
}

// Without phases ----------------------------------------------------------------------------------

static unsigned own_gpus(const struct gpu_facts *g)
{
	return g->n_used > 0 ? g->n_used : g->known ? 0 : g->n;
}

void cause_append_gpu_bound(struct text *t, const struct gpu_facts *g)
{
	unsigned n = own_gpus(g);
	text_append_string(t, "GPU-bound: ");
	text_append_string(t, n > 1 ? "the busiest of " : "the GPU");
	if (n > 1) {
		text_format(t, "%u GPUs", n);
	}
	text_append_string(t, " was busy ");
	words_append_percent(t, g->busy);
	text_append_string(t, " of the time");
	gpu_append_use(t, g);
}

bool cause_append_gpu_fault(struct text *t, const struct gpu_facts *g)
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
	.part = "an unused GPU",
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
	.part = "clock throttling",
	.of_device = true,
	.judge = judge_throttled,
	.grounds = grounds_driver,
	.say = say_throttled,
	.advise = advise_throttled,
};

// Device ------------------------------------------------------------------------------------------

static double step_share(const struct facts *f)
{
	return facts_share(f, PHASE_FORWARD) + facts_share(f, PHASE_BACKWARD) +
	       facts_share(f, PHASE_OPTIMIZER) + facts_share(f, PHASE_STEP);
}

static enum phase_id largest_step_phase(const struct facts *f)
{
	static const enum phase_id phases[] = {
		PHASE_FORWARD, PHASE_BACKWARD, PHASE_OPTIMIZER, PHASE_STEP};
	enum phase_id largest = PHASE_FORWARD;
	for (size_t i = 0; i < ARRAY_LENGTH(phases); i++) {
		largest = facts_share(f, phases[i]) > facts_share(f, largest) ? phases[i] : largest;
	}
	return largest;
}

// Share of the time in which the training thread runs a class of code, by samples.
static double leader_in(const struct facts *f, enum code_class class)
{
	return cause_code(&f->code, class) * fmin(1, known_or_zero(f->code.cpus));
}

// Share of the time in which the training thread does arithmetic.
static double leader_computes(const struct facts *f)
{
	return leader_in(f, CODE_KERNELS) + leader_in(f, CODE_FRAMEWORK) +
	       leader_in(f, CODE_COPYING);
}

// Time in which the training thread itself prepares batches: that is input.
static double prepares_itself(const struct facts *f)
{
	return f->workers.n == 0 ? facts_share(f, PHASE_DATA) : 0;
}

static double found_share(const struct causes *found, enum bottleneck bottleneck)
{
	const struct cause *cause = causes_get(found, bottleneck);
	return cause ? cause->share.value : 0;
}

// Time of the training thread that other rows have already taken.
static double taken(const struct causes *found)
{
	static const enum bottleneck rows[] = {
		BOTTLENECK_CHILDREN, BOTTLENECK_PYTHON_THREADS, BOTTLENECK_BLOCKED};
	double sum = 0;
	for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
		const struct cause *cause = causes_get(found, rows[i]);
		sum += cause ? cause->share.value : 0;
	}
	return sum;
}

// The optimizer -----------------------------------------------------------------------------------

// On a CPU, the update of weights is a fraction of the step that multiplies them. If it is more,
// there are many small tensors, or arithmetic that is repeated for each.
static struct judgement judge_optimizer(const struct facts *f, const struct causes *found)
{
	(void)found;
	double share = f->gpu.used ? 0 : facts_share(f, PHASE_OPTIMIZER);
	bool heavy = share >= OPTIMIZER_HEAVY * (1 - facts_share(f, PHASE_DATA));
	bool computes = share < facts_share(f, PHASE_FORWARD) + facts_share(f, PHASE_BACKWARD);
	// Dispatching its operations one by one is the host's work.
	bool dispatches = f->eager_tape && cause_code(&f->code, CODE_INTERPRETER) >= MOST;
	return (struct judgement){heavy && !computes && !dispatches ? share : 0, PHASE_OPTIMIZER};
}

static enum grounds grounds_optimizer(const struct facts *f)
{
	(void)f;
	return GROUNDS_DIRECT; // the phase itself is the cause
}

static bool is_worth_naming(const struct line_place *line);

static void say_optimizer(struct text *t, const struct facts *f, const struct cause *cause)
{
	text_append_string(t, "optimizer-bound: updating the weights takes ");
	cause_append_share(t, cause);
	if (is_worth_naming(&f->lines.optimizer)) {
		text_append_string(t, ", mostly in ");
		words_append_place(t, f->lines.optimizer.place, 60);
	}
}

// An optimizer of the script's own.
static void advise_own_optimizer(struct advice_builder *b, const struct cause *cause)
{
	const struct line_place *line = &b->f->lines.optimizer;
	struct text action = {0}, basis = {0};
	text_append_string(&action, "call ");
	words_append_place(&action, line->place, 60);
	text_append_string(&action, " less often (not in each step), or make it faster");
	words_append_percent(&basis, line->share);
	text_append_string(
		&basis, " of the samples of lines in the optimizer are in this function");
	advice_suggest_at_most(b, cause->share.value * line->share, &action, &basis);
}

static bool advise_embeddings(struct advice_builder *b);

static void advise_optimizer(struct advice_builder *b, const struct cause *cause)
{
	bool pytorch = b->f->framework == FRAMEWORK_PYTORCH;
	if (advise_embeddings(b)) {
		return;
	}
	if (is_worth_naming(&b->f->lines.optimizer)) {
		advise_own_optimizer(b, cause);
		return;
	}
	advice_suggest_unknown(b,
		pytorch ? "use foreach=True or fused=True, fewer and larger parameters, or a "
			  "simpler optimizer"
			: "use fewer and larger parameters, or a simpler optimizer",
		"the weight update takes longer than forward and backward pass");
}

// The host ----------------------------------------------------------------------------------------

static double interprets(const struct facts *f);

// Time of the training thread in forward and backward passes that mostly consist of short
// operations, however long they are: a loop over time steps.
static double short_in_steps(const struct facts *f)
{
	bool known = f->python && f->framework == FRAMEWORK_PYTORCH && !f->gpu.used &&
	             cause_sampled(&f->code) && f->calls_of_steps >= MOST_CALLS;
	double leader = leader_in(f, CODE_FRAMEWORK) + leader_in(f, CODE_ALLOCATION) +
	                leader_in(f, CODE_COPYING);
	return known ? fmin(leader, known_or_zero(f->calls_in_steps)) : 0;
}

// Steps are so short that calls cost as much as arithmetic. A batch that the training thread
// assembles in less time than a step consists of calls, too. Samples, if there are any, show it
// directly.
static double calls_share(const struct facts *f)
{
	double step = step_share(f), data = prepares_itself(f);
	double calls = step + (data < step ? data : 0);
	bool small = calls * f->length_s.value < SHORT_STEP_S &&
	             cause_computing_threads(f) < PARALLEL;
	bool arithmetic = cause_sampled(&f->code) && cause_code(&f->code, CODE_KERNELS) >= MOST;
	calls = small && !arithmetic && facts_share(f, PHASE_OTHER) < step ? calls : 0;
	double shorts = short_in_steps(f);
	double with_python = shorts + fmin(interprets(f), known_or_zero(f->python_in_steps));
	return shorts > 0 ? fmax(calls, fmin(step, with_python)) : calls;
}

// Interpreter time of the training thread, without preparing batches.
static double interprets(const struct facts *f)
{
	double python = leader_in(f, CODE_INTERPRETER) + leader_in(f, CODE_COLLECTION);
	double sampled = cause_sampled(&f->code) ? python - prepares_itself(f) : 0;
	return fmax(sampled, known_or_zero(f->collections.in_step));
}

// Time of the training thread of a Python job in NumPy outside of all phases.
static double computes_arrays(const struct facts *f)
{
	bool known = f->python && f->framework != FRAMEWORK_UNKNOWN && cause_sampled(&f->code);
	return known ? fmin(leader_in(f, CODE_FRAMEWORK), known_or_zero(f->arrays_in_other)) : 0;
}

// The same in libraries that are not the framework's (a database, a parser, a codec, NumPy), with
// what the kernel does there, in proportion: page faults of their arrays, reads of their files. In
// phases, they may be layers of the model.
static double calls_libraries(const struct facts *f)
{
	bool known = f->python && f->framework != FRAMEWORK_UNKNOWN && cause_sampled(&f->code);
	double leader = leader_in(f, CODE_OTHER) + leader_in(f, CODE_DECODING);
	double native = known ? fmin(leader, known_or_zero(f->native_in_other)) : 0;
	double own = native + computes_arrays(f), kernel = own * known_or_zero(f->kernel_in_other);
	double most = fmax(own, facts_share(f, PHASE_OTHER));
	return fmin(own + fmin(kernel, leader_in(f, CODE_SYSTEM)), most);
}

// Time of the training thread of a Python job in short operations of the framework, outside of all
// phases: it is the cost of calling them one by one. On a GPU, the framework may wait for it there.
static double calls_operations(const struct facts *f)
{
	bool known = f->python && f->framework == FRAMEWORK_PYTORCH && !f->gpu.used &&
	             cause_sampled(&f->code);
	double leader = leader_in(f, CODE_FRAMEWORK) + leader_in(f, CODE_ALLOCATION) +
	                leader_in(f, CODE_COPYING);
	return known ? fmin(leader, known_or_zero(f->calls_in_other)) : 0;
}

// Its Python code outside of all phases.
static double python_outside(const struct facts *f)
{
	double leader = leader_in(f, CODE_INTERPRETER) + leader_in(f, CODE_COLLECTION);
	return fmin(leader, known_or_zero(f->python_in_other));
}

// Short operations and the Python code that calls them, if it does little else: a loop over
// elements of tensors.
static double loops_over_elements(const struct facts *f)
{
	double calls = calls_operations(f), python = python_outside(f);
	return calls >= WORTH && calls >= python ? calls + python : 0;
}

// Its Python code while it takes a batch.
static double python_of_batches(const struct facts *f)
{
	double leader = leader_in(f, CODE_INTERPRETER) + leader_in(f, CODE_COLLECTION);
	return fmin(leader, known_or_zero(f->python_in_data));
}

// The interpreter's time that is not spent on receiving batches.
static double interprets_in_steps(const struct facts *f)
{
	return causes_handing_over(f) >= WORTH ? fmax(0, interprets(f) - python_of_batches(f))
	                                       : interprets(f);
}

// Whether receiving batches is mostly Python code: it builds their objects, or chooses samples.
static bool receives_in_python(const struct facts *f)
{
	double handed = causes_handing_over(f);
	return handed >= WORTH && python_of_batches(f) >= MOST * handed;
}

// The part of it that is garbage collection. Samples show it only in a Python with symbols, but
// also if it takes less than 2 ms.
static double collects(const struct facts *f)
{
	double seen = fmax(leader_in(f, CODE_COLLECTION), known_or_zero(f->collections.in_step));
	return fmin(interprets(f), seen);
}

// What short calls of Model.predict in a loop cost beside computing: each makes a data set,
// callbacks and an iterator anew.
static double predicts(const struct facts *f)
{
	const struct named_facts *calls = &f->named[NAMED_KERAS_PREDICT];
	double overhead = fmin(1, PREDICT_OVERHEAD_S / calls->mean_s);
	return calls->per_iteration >= PREDICTS_OFTEN ? fmin(1, calls->share) * overhead : 0;
}

static const struct compiler {
	enum named spans;
	const char *remedy;
} compilers[] = {
	{NAMED_JAX_COMPILE, "keep shapes and static arguments the same from call to call: pad "
			    "batches to a few sizes, and pass numbers as arrays"},
	{NAMED_TF_TRACE, "pass tensors instead of Python numbers to functions of tf.function, and "
			 "keep shapes the same (or reduce_retracing=True)"},
	{NAMED_TORCH_COMPILE, KEEP_GRAPHS},
};

static const struct compiler *compiler_of(const struct facts *f)
{
	const struct compiler *most = compilers;
	for (size_t i = 1; i < ARRAY_LENGTH(compilers); i++) {
		bool more = f->named[compilers[i].spans].share > f->named[most->spans].share;
		most = more ? &compilers[i] : most;
	}
	return most;
}

// Functions that are compiled or traced again and again: some are late in any job.
static double compiles(const struct facts *f)
{
	double share = 0;
	for (size_t i = 0; i < ARRAY_LENGTH(compilers); i++) {
		const struct named_facts *named = &f->named[compilers[i].spans];
		double often = fmin(COMPILED_OFTEN, COMPILED_MANY / (double)f->steady);
		share += named->iterations >= often ? named->share : 0;
	}
	return fmin(1, share);
}

// Code that is compiled anew for each of several shapes, and then used: iterations that only use it
// show nothing of that. What is compiled all the time is the host's.
static struct judgement judge_compile(const struct facts *f, const struct causes *found)
{
	(void)found;
	double share = f->compiling_s / f->training_s;
	bool anew = f->compiling >= COMPILING_ANEW && compiles(f) < WORTH && share >= COMPILING;
	return (struct judgement){anew ? fmin(1, share) : 0, N_KNOWN_PHASES};
}

static enum grounds grounds_compile(const struct facts *f)
{
	(void)f;
	return GROUNDS_DIRECT; // spans of the compiler
}

static void say_compile(struct text *t, const struct facts *f, const struct cause *cause)
{
	text_append_string(t, "recompiling functions takes ");
	words_append_percent(t, cause->share.value);
	text_append_string(t, " of training: ");
	words_append_seconds(t, f->compiling_s);
	text_format(t, ", in %.0f iterations", f->compiling);
}

// The first compilation is needed, and takes as long as the others.
static void advise_compile(struct advice_builder *b, const struct cause *cause)
{
	const struct facts *f = b->f;
	struct text action = {0}, basis = {0};
	text_append_string(&action, "pad batches to one size, or to few; ");
	text_append_string(&action, f->framework == FRAMEWORK_PYTORCH
					    ? KEEP_GRAPHS
					    : "keep shapes and static arguments the same");
	text_append_string(&action, "; or do not compile in a run as short as this");
	text_format(&basis, "%.0f iterations compile code for themselves and for later ones",
		f->compiling);
	advice_suggest_at_most(
		b, cause->share.value * (f->compiling - 1) / f->compiling, &action, &basis);
}

// Operations of JAX that the script dispatches one by one after the compiled gradients: what the
// training thread does there but for NumPy, other libraries and the compiled function.
static double dispatches(const struct facts *f)
{
	bool known = f->uncompiled && !f->gpu.used && cause_sampled(&f->code);
	double used = fmin(1, known_or_zero(f->code.cpus)) - step_share(f) - calls_libraries(f);
	return known ? fmax(0, fmin(used, facts_share(f, PHASE_OTHER))) : 0;
}

// Share of the time in which the link to the GPU is at work while the GPU has none, at least:
// copies may overlap with computing. 0: it is not busy.
static double link_takes(const struct facts *f)
{
	double used = gpu_known(f) ? f->gpu.to_device_rate / f->gpu.link_rate : NAN;
	return used >= LINK_BUSY ? fmax(0, fmin(1, used) - f->gpu.busy) : 0;
}

static double transfers(const struct facts *f)
{
	return fmax(facts_share(f, PHASE_TRANSFER), link_takes(f));
}

// Time of the host in which the device has no work. On a GPU, all time in which it is idle and the
// job does not wait for a batch.
static struct judgement judge_host(const struct facts *f, const struct causes *found)
{
	if (gpu_known(f)) {
		double waits = facts_share(f, PHASE_DATA) + transfers(f) +
		               facts_share(f, PHASE_COMMUNICATION);
		double named = found_share(found, BOTTLENECK_ENVIRONMENT) +
		               found_share(found, BOTTLENECK_GENERATION) * (1 - f->gpu.busy);
		return (struct judgement){
			fmax(0, 1 - waits - f->gpu.busy - named - taken(found)), PHASE_OTHER};
	}
	// Spinning threads occupy the CPU on which a batch would be handed over.
	bool spins = causes_get(found, BOTTLENECK_THREADS) && !cause_threads_sleep(f);
	double share = spins ? 0 : causes_handing_over(f);
	share += fmax(interprets_in_steps(f), calls_share(f) - taken(found));
	double outside = calls_libraries(f) + calls_operations(f);
	if (causes_at_epochs(f->other_at_epochs, facts_share(f, PHASE_OTHER))) {
		double starts = known_or_zero(f->other_at_epochs);
		share += starts;
		outside = fmax(0, fmin(outside, facts_share(f, PHASE_OTHER) - starts));
	}
	share += outside;
	share = fmax(share, fmax(dispatches(f), fmax(predicts(f), compiles(f))));
	// The Python code of environments and of generation is a cause of its own. How much of what
	// was seen belongs to it is not known: as much as of the time.
	double rest = 1 - found_share(found, BOTTLENECK_ENVIRONMENT) -
	              found_share(found, BOTTLENECK_GENERATION);
	return (struct judgement){fmin(1, share) * fmax(0, rest), PHASE_OTHER};
}

static enum grounds grounds_host(const struct facts *f)
{
	bool seen = interprets(f) + calls_libraries(f) >= WORTH;
	bool handed = causes_handing_over(f) >= WORTH;
	// By spans. A compiler that has found all shapes may be done.
	bool goes_on = compiles(f) >= WORTH &&
	               f->named[compiler_of(f)->spans].since < LATE_PART * (double)f->steady;
	bool named = goes_on || predicts(f) >= WORTH;
	return seen || handed || named ? GROUNDS_DIRECT : GROUNDS_INDIRECT;
}

// What part a cause outside of all phases has of the time there.
static double outside_part(const struct facts *f, double share)
{
	return share / facts_share(f, PHASE_OTHER);
}

static bool is_main_line_python(const struct facts *f);

// Whether most of the time in which the GPU waits for the host may be outside of all phases.
static bool is_outside_steps(const struct facts *f, double share)
{
	return facts_share(f, PHASE_OTHER) >= 0.5 * share;
}

static void append_forward_line(struct text *t, const struct line_place *line);

// What the host does while the GPU waits for it.
static void say_gpu_waits(struct text *t, const struct facts *f, const struct cause *cause)
{
	double share = cause->share.value;
	text_append_string(t, "host-bound: the GPU waits for work from the host, which takes ");
	cause_append_share(t, cause);
	if (f->reads >= READS_MANY) {
		text_format(t, "; each step reads at least %.0f results from the GPU", f->reads);
		if (f->reads_at) {
			text_append_string(t, ", most at ");
			words_append_place(t, f->reads_at, 60);
		}
		return;
	}
	if (is_outside_steps(f, share)) {
		double part = outside_part(f, fmin(share, facts_share(f, PHASE_OTHER)));
		cause_append_line(t, ", mostly in ", &f->lines.outside, part);
	} else {
		append_forward_line(t, &f->lines.forward);
	}
}

// "0.9 times per iteration"
static void append_times(struct text *t, const struct named_facts *named)
{
	words_append_number(t, named->per_iteration);
	text_append_string(t, " times per iteration");
}

static void say_compiling(struct text *t, const struct facts *f, double share)
{
	const struct named_facts *named = &f->named[compiler_of(f)->spans];
	text_append_string(t, "host-bound: recompiling functions takes ");
	words_append_percent(t, share);
	text_append_string(t, " of each iteration (");
	append_times(t, named);
	if (named->since >= LATE_PART * (double)f->steady) {
		text_format(t, ", none in the last %.0f", named->since);
	}
	text_append_string(t, ")");
}

// Work that spans of the hooks name. Returns false if there is none, or it takes less. On a GPU,
// the share of the cause is the time in which the GPU is idle, which is less than these take.
static bool say_named(struct text *t, const struct facts *f, double share)
{
	if (compiles(f) >= MOST * share) {
		say_compiling(t, f, fmin(share, compiles(f)));
	} else if (predicts(f) >= MOST * share) {
		text_append_string(t, "host-bound: short calls of Model.predict take ");
		words_append_percent(t, fmin(share, predicts(f)));
		text_append_string(t, " of each iteration (");
		append_times(t, &f->named[NAMED_KERAS_PREDICT]);
		text_append_string(t, ")");
	} else if (dispatches(f) >= MOST * share) {
		text_append_string(t, "host-bound: operations that are not compiled take ");
		words_append_percent(t, dispatches(f));
		text_append_string(t, " of each iteration");
		cause_append_line(
			t, ", mostly in ", &f->lines.outside, outside_part(f, dispatches(f)));
	} else {
		return false;
	}
	return true;
}

// Keras without a compiled step: the interpreter hands over each operation.
static bool runs_eagerly(const struct facts *f, double share)
{
	return (f->eager || f->eager_tape) && !f->gpu.used &&
	       interprets_in_steps(f) >= MOST * share;
}

static void append_interpreter(struct text *t, const struct facts *f, double share)
{
	words_append_percent(t, fmin(share, interprets_in_steps(f)));
	text_append_string(t, " of each iteration");
}

// The interpreter's time, or with it that of what it calls: the share of the cause is of all of it.
static void append_python(struct text *t, const struct facts *f, const struct cause *cause)
{
	bool operations = calls_operations(f) >= WORTH, libraries = calls_libraries(f) >= WORTH;
	text_append_string(t, "host-bound: ");
	if (!operations && !libraries) {
		text_append_string(t, "the Python interpreter takes ");
		append_interpreter(t, f, cause->share.value);
		return;
	}
	text_format(t, "Python and the %s that it calls take ",
		!libraries   ? "short operations"
		: operations ? "libraries and short operations"
			     : "libraries");
	cause_append_share(t, cause);
}

static void say_host(struct text *t, const struct facts *f, const struct cause *cause)
{
	double share = cause->share.value;
	if (say_named(t, f, share)) {
		return;
	}
	if (runs_eagerly(f, share)) {
		text_append_string(t, f->eager_tape
					      ? "host-bound: the step is not compiled (tf.function)"
					      : "host-bound: Keras runs eagerly (run_eagerly)");
		text_append_string(t, ", one operation at a time; the Python interpreter takes ");
		append_interpreter(t, f, share);
	} else if (f->gpu.used && !(collects(f) >= MOST * share)) {
		say_gpu_waits(t, f, cause);
	} else if (causes_handing_over(f) >= 0.5 * share &&
		   !(interprets_in_steps(f) >= 0.5 * share)) {
		text_append_string(
			t, "host-bound: receiving batches that are already prepared takes ");
		cause_append_share(t, cause);
	} else if (causes_at_epochs(f->other_at_epochs, share)) {
		text_append_string(t, "host-bound: the start of each epoch, outside all phases, "
				      "takes ");
		words_append_percent(t, f->other_at_epochs);
		text_append_string(t, " of iteration time");
	} else if (collects(f) >= MOST * share) {
		text_append_string(t, "host-bound: Python's garbage collection takes ");
		words_append_percent(t, collects(f));
		text_append_string(t, " of each iteration");
	} else if (calls_libraries(f) >= 0.5 * share) {
		text_append_string(t, "host-bound: libraries outside the framework take ");
		words_append_percent(t, calls_libraries(f));
		text_append_string(t, " of each iteration");
		if (*f->native) {
			text_append_string(t, ", mostly ");
			words_append_place(t, f->native, 48);
		}
		cause_append_line(
			t, ", called in ", &f->lines.outside, outside_part(f, calls_libraries(f)));
	} else if (loops_over_elements(f) >= 0.5 * share) {
		text_append_string(t, "host-bound: Python and the short operations that it calls "
				      "outside all phases take ");
		words_append_percent(t, loops_over_elements(f));
		text_append_string(t, " of each iteration");
		cause_append_line(t, ", mostly in ", &f->lines.outside,
			outside_part(f, loops_over_elements(f)));
	} else if (interprets_in_steps(f) >= 0.5 * share &&
		   interprets_in_steps(f) > calls_share(f)) {
		append_python(t, f, cause);
		if (python_outside(f) >= MOST * cause->share.value) {
			cause_append_line(t, ", mostly in ", &f->lines.outside,
				outside_part(f, python_outside(f)));
		} else if (is_main_line_python(f)) {
			cause_append_main_line(t, f);
		}
	} else if (!(calls_share(f) > 0)) {
		text_append_string(
			t, "host-bound: Python and libraries outside the framework take ");
		cause_append_share(t, cause);
	} else if (short_in_steps(f) > 0 && step_share(f) * f->length_s.value >= SHORT_STEP_S) {
		text_append_string(t, "host-bound: Python and the many short operations of forward "
				      "and backward passes take ");
		cause_append_share(t, cause);
	} else {
		text_append_string(t, "host-bound: a step takes only ");
		words_append_seconds(t, f->compute_s);
		text_append_string(t, ", and call overhead costs as much of it as arithmetic");
	}
}

static void advise_handing_over(struct advice_builder *b, const struct cause *cause)
{
	const struct facts *f = b->f;
	struct text action = {0}, basis = {0};
	if (f->batch_tensors >= MANY_TENSORS) {
		text_append_string(&action,
			"combine the tensors of a batch in the collate function "
			"(stacked, or concatenated with their lengths)");
		text_format(&basis,
			"a batch has %s%.0f tensors, and workers send each tensor separately, in "
			"its own shared-memory segment",
			f->batch_tensors >= COUNTED_TENSORS ? "at least " : "", f->batch_tensors);
		advice_suggest_at_most(b, cause->share.value, &action, &basis);
		return;
	}
	if (receives_in_python(f)) { // a larger batch takes as long for each sample
		text_append_string(&action, "return tensors or NumPy arrays from dataset and "
					    "collate function, only what the step uses; or use "
					    "a faster sampler");
		text_append_string(&basis, "Python code of the training process builds the objects "
					   "of each batch, or chooses its samples, which takes ");
		words_append_percent(&basis, python_of_batches(f));
		text_append_string(&basis, " of each iteration");
		advice_suggest_at_most(b, cause->share.value, &action, &basis);
		return;
	}
	text_append_string(&action, "use a larger batch, so that workers hand over fewer batches");
	text_append_string(&basis, "workers are busy only ");
	words_append_percent(&basis, fmin(1, f->workers.preparing / f->workers.n));
	text_append_string(&basis, " of the time");
	advice_suggest_at_most(b, cause->share.value, &action, &basis);
}

// The lines of a script that take the time are only known with `strain run --lines`.
static void advise_lines(struct advice_builder *b)
{
	const struct facts *f = b->f;
	if (f->python && f->lines.looks < LOOKS_ENOUGH &&
		interprets(f) + calls_libraries(f) >= WORTH) {
		advice_suggest_unknown(b, "find the responsible lines with strain run --lines",
			interprets(f) >= calls_libraries(f)
				? "the time is spent in Python code of the script"
				: "the script calls this code");
	}
}

// Arithmetic outside phases: as samples find it there, or more of it than fits into the phases of
// steps, which may have waited for a CPU.
static double computes_elsewhere(const struct facts *f)
{
	double computes = leader_computes(f) - calls_operations(f) - computes_arrays(f);
	double rest = fmax(0, computes - step_share(f) - prepares_itself(f));
	double there = known_or_zero(f->arithmetic_in_other) - calls_operations(f);
	return fmin(fmax(rest, fmin(there, computes)), facts_share(f, PHASE_OTHER));
}

// What code outside of all phases costs at most, of which samples show this share: all that is no
// arithmetic there may belong to it, page faults and allocation, too. Waits there, and
// environments, are causes of their own.
static double outside_at_most(const struct advice_builder *b, double share)
{
	double other = facts_share(b->f, PHASE_OTHER) -
	               found_share(b->found, BOTTLENECK_ENVIRONMENT);
	double waits = found_share(b->found, BOTTLENECK_BLOCKED);
	other = fmax(0, other);
	return fmin(other, fmax(share, other - computes_elsewhere(b->f) - waits));
}

// Vectorised, the same result takes a few operations.
static void advise_loops(struct advice_builder *b)
{
	const struct facts *f = b->f;
	struct text action = {0}, basis = {0};
	text_append_string(&action,
		"call fewer, larger operations outside all phases: on whole tensors "
		"instead of a Python loop over elements (t[i], .item()), or on "
		"Python numbers (t.tolist())");
	text_append_string(&basis, "Python takes ");
	words_append_percent(&basis, python_outside(f));
	text_append_string(&basis, " of each iteration there, PyTorch operations too short to "
				   "compute much take ");
	words_append_percent(&basis, calls_operations(f));
	if (*f->lines.outside.place) {
		text_append_string(&basis, "; ");
		words_append_percent(&basis, f->lines.outside.share);
		text_append_string(&basis, " of the samples there are in ");
		words_append_place(&basis, f->lines.outside.place, 60);
	}
	double loops = loops_over_elements(f) + calls_libraries(f);
	advice_suggest_at_most(b, outside_at_most(b, loops), &action, &basis);
	advise_lines(b);
}

// Steps of many short operations: fewer of them, or each with more samples.
static void advise_short_steps(struct advice_builder *b, const struct cause *cause)
{
	const struct facts *f = b->f;
	struct text action = {0}, basis = {0};
	text_append_string(&action,
		"call fewer, larger operations in the model and its loss: on stacked tensors, or "
		"nn.LSTM instead of a loop over time steps; or use a larger batch");
	text_append_string(&action, f->compiled ? "" : ", or torch.compile");
	text_append_string(&basis, "PyTorch operations too short to compute much have ");
	words_append_percent(&basis, f->calls_of_steps);
	text_append_string(&basis, " of the samples of forward and backward passes");
	// Larger operations share all that is no matrix product.
	double most = step_share(f) - leader_in(f, CODE_KERNELS);
	advice_suggest_at_most(b, fmax(cause->share.value, most), &action, &basis);
	advise_lines(b);
}

static bool is_main_line_python(const struct facts *f)
{
	const struct line_place *top = cause_main_line(f);
	return top && !*top->phase && interprets_in_steps(f) >= MOST * top->share;
}

// Python code of the script itself.
static void advise_main_line(struct advice_builder *b)
{
	const struct facts *f = b->f;
	const struct line_place *top = cause_main_line(f);
	struct text action = {0}, basis = {0};
	text_append_string(&action, "vectorise ");
	words_append_place(&action, top->place, 60);
	text_append_string(&action, ", move it into loader workers, or call it less often");
	words_append_percent(&basis, top->share);
	text_append_string(&basis, " of the samples of lines are there; the interpreter takes ");
	words_append_percent(&basis, interprets_in_steps(f));
	text_append_string(&basis, " of each iteration");
	double most = fmax(cause_function_at_most(top), interprets_in_steps(f));
	advice_suggest_at_most(b, most, &action, &basis);
}

static bool advise_outside_function(struct advice_builder *b, double share);

static void advise_reads(struct advice_builder *b, double most)
{
	const struct facts *f = b->f;
	struct text action = {0}, basis = {0};
	text_append_string(&action,
		"read results from the GPU less often (.item(), bool(), .cpu() of a tensor), or "
		"many at once (torch.stack)");
	text_format(&basis, "each step reads at least %.0f", f->reads);
	if (f->reads_at) {
		text_append_string(&basis, ", most at ");
		words_append_place(&basis, f->reads_at, 60);
	}
	text_append_string(
		&basis, "; each read waits for the GPU, which then waits for the next operation");
	advice_suggest_at_most(b, most, &action, &basis);
}

static void advise_allocations(struct advice_builder *b)
{
	const struct facts *f = b->f;
	struct text action = {0}, basis = {0};
	if (!(f->allocations >= ALLOCATIONS_MANY)) {
		return;
	}
	text_append_string(&action,
		"do not call torch.cuda.empty_cache() in the loop: PyTorch then keeps its cache of "
		"GPU memory; if sizes vary, set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
	text_format(&basis,
		"PyTorch asks the driver for memory %s%.3g times in each iteration, and frees it",
		f->allocations < 2 ? "about " : "", f->allocations);
	advice_suggest(b, advice_no_gain, &action, &basis);
}

// The host has work of its own between the steps.
static void advise_host_work(struct advice_builder *b, double most)
{
	const struct facts *f = b->f;
	struct text action = {0}, basis = {0};
	text_append_string(&action, "move ");
	words_append_place(&action, f->lines.outside.place, 60);
	text_append_string(&action,
		" out of the loop: run it ahead in another process (loader workers), on the GPU, "
		"on whole arrays, or less often");
	words_append_percent(&basis, f->lines.outside.share);
	text_append_string(&basis,
		" of the samples of lines outside forward, backward and optimizer are in this "
		"function, and the GPU is idle meanwhile");
	advice_suggest_at_most(b, most, &action, &basis);
}

// Returns false if nothing is known about what the host does.
static bool advise_gpu_waits(struct advice_builder *b, double share)
{
	const struct facts *f = b->f;
	bool outside = is_outside_steps(f, share);
	double most = outside ? fmin(share, facts_share(f, PHASE_OTHER)) : share;
	advise_allocations(b);
	if (f->reads >= READS_MANY) {
		advise_reads(b, most);
		return outside; // in the passes themselves, operations cost time, too
	}
	if (outside && collects(f) < MOST * share &&
		cause_has_line(&f->lines.outside, outside_part(f, most))) {
		advise_host_work(b, most);
		return true;
	}
	return false;
}

static void advise_compiling(struct advice_builder *b, double most)
{
	const struct compiler *compiler = compiler_of(b->f);
	const struct named_facts *named = &b->f->named[compiler->spans];
	struct text action = {0}, basis = {0};
	text_append_string(&action, compiler->remedy);
	text_append_string(&basis, "functions are compiled ");
	append_times(&basis, named);
	text_append_string(&basis, ", which takes ");
	words_append_seconds(&basis, named->mean_s);
	text_append_string(&basis, " each");
	advice_suggest_at_most(b, fmin(most, compiles(b->f)), &action, &basis);
}

// What the uncompiled function costs more is not known.
static void advise_compile_limit(struct advice_builder *b)
{
	const struct facts *f = b->f;
	struct text action = {0}, basis = {0};
	if (!f->compile_limit_at) {
		return;
	}
	text_append_string(&action, KEEP_GRAPHS);
	text_append_string(&basis, "torch.compile gave up on ");
	words_append_place(&basis, f->compile_limit_at, 60);
	if (f->compile_limit > 0) {
		text_format(&basis, " after %.0f graphs", f->compile_limit);
	}
	text_append_string(&basis, ": since then it has run uncompiled");
	advice_suggest(b, advice_no_gain, &action, &basis);
}

static void advise_predicting(struct advice_builder *b, double most)
{
	struct text action = {0}, basis = {0};
	text_append_string(&action, "call model(x, training=False) or predict_on_batch() instead "
				    "of predict() in the loop");
	text_append_string(&basis, "each call of predict() makes a data set, an iterator and "
				   "callbacks; a call takes ");
	words_append_seconds(&basis, b->f->named[NAMED_KERAS_PREDICT].mean_s);
	advice_suggest_at_most(b, fmin(most, predicts(b->f)), &action, &basis);
}

// Where the samples of a step go through the model one by one: an agent that acts in each of its
// environments, a loop over time. The code around the calls is in the same loop.
static void advise_model_calls(struct advice_builder *b)
{
	const struct facts *f = b->f;
	struct text action = {0}, basis = {0};
	double passes = fmax(1, known_or_zero(f->backward_calls));
	if (!(f->forward_calls >= MODEL_CALLS_MANY * passes) ||
		!(f->forward_call_s <= MODEL_CALL_BRIEF_S)) {
		return;
	}
	text_append_string(&action, "call the model on batches (several environments or samples at "
				    "once, whole sequences), "
				    "not in a loop");
	text_append_string(&basis, "it is called ");
	words_append_number(&basis, round(f->forward_calls));
	text_append_string(&basis, " times in each iteration, for ");
	words_append_seconds(&basis, f->forward_call_s);
	text_append_string(&basis, " each");
	advice_suggest_at_most(
		b, facts_share(f, PHASE_FORWARD) + facts_share(f, PHASE_OTHER), &action, &basis);
}

static void advise_host(struct advice_builder *b, const struct cause *cause)
{
	const struct facts *f = b->f;
	advise_model_calls(b);
	if (compiles(f) >= WORTH) {
		advise_compiling(b, cause->share.value);
	} else {
		advise_compile_limit(b);
	}
	if (predicts(f) >= WORTH) {
		advise_predicting(b, cause->share.value);
	}
	if (fmax(compiles(f), predicts(f)) >= MOST * cause->share.value) {
		return;
	}
	if (collects(f) >= WORTH) {
		advice_suggest_no_collections(b, collects(f));
	}
	if (runs_eagerly(f, cause->share.value)) {
		advice_suggest_unknown(b,
			f->eager_tape ? "compile the step: @tf.function on the function that has "
					"the tape and applies the gradients"
				      : "compile the step: remove run_eagerly=True, or "
					"tf.config.run_functions_eagerly(True)",
			"the interpreter dispatches every operation of a step individually");
	}
	if (f->uncompiled && is_outside_steps(f, cause->share.value)) {
		advice_suggest_plain_at_most(b, facts_share(f, PHASE_OTHER),
			"update the parameters in the jitted function that computes the gradients "
			"(jax.jit of the whole step)",
			"only the gradient function is compiled: the parameter update is "
			"dispatched one operation at a time");
		return;
	}
	if (f->gpu.used && advise_gpu_waits(b, cause->share.value)) {
		return;
	}
	if (causes_at_epochs(f->other_at_epochs, cause->share.value)) {
		advice_suggest_at_epochs(b, f->other_at_epochs);
	} else if (causes_handing_over(f) >= 0.5 * cause->share.value) {
		advise_handing_over(b, cause);
	} else if (calls_libraries(f) >= 0.5 * cause->share.value) {
		advice_suggest_plain_at_most(b, outside_at_most(b, calls_libraries(f)),
			"call NumPy and other libraries outside the framework less often in the "
			"training loop, or in a process that runs ahead",
			"the training thread calls these libraries between the phases of a step");
		advise_lines(b);
	} else if (loops_over_elements(f) >= 0.5 * cause->share.value) {
		advise_loops(b);
	} else if (short_in_steps(f) >= 0.5 * cause->share.value) {
		advise_short_steps(b, cause);
	} else if (interprets_in_steps(f) >= 0.5 * cause->share.value && is_main_line_python(f)) {
		advise_main_line(b);
	} else if (collects(f) < MOST * cause->share.value &&
		   !advise_outside_function(b, cause->share.value)) {
		// How this divides into cost per batch and cost per sample is not known.
		bool pytorch = f->framework == FRAMEWORK_PYTORCH, calls = calls_share(f) > 0;
		if (!calls) {
			advise_lines(b);
		}
		advice_suggest_unknown(b,
			f->framework == FRAMEWORK_JAX
				? "do more in each compiled call: a larger batch, jax.vmap instead "
				  "of a loop over samples, jax.lax.scan over steps"
			: !pytorch || f->compiled ? "use a larger batch"
			: f->gpu.used ? "use a larger batch, torch.compile or CUDA graphs"
				      : "use a larger batch, or torch.compile",
			"each call then processes more samples");
		if (calls) {
			advise_lines(b);
		}
	}
}

// Computing ---------------------------------------------------------------------------------------

static double computing_share(const struct facts *f, const struct causes *found)
{
	const struct cause *contention = causes_get(found, BOTTLENECK_CONTENTION);
	double step = step_share(f), launch = found_share(found, BOTTLENECK_HOST);
	double lost = contention ? fmax(known_or_zero(f->main_queued), cause_dilation(f)) : 0;
	double outside = predicts(f) + dispatches(f);
	double generates = found_share(found, BOTTLENECK_GENERATION);
	launch -= calls_operations(f) + calls_libraries(f) + outside; // which are in no step
	double computes = gpu_known(f) ? fmin(step, gpu_computing(f)) : launch > step ? 0 : step;
	// The undisturbed time of a step is computing, however long the thread lacks a CPU.
	double least = fmin(computes, known_or_zero(f->undisturbed_s) / f->length_s.value);
	computes = fmax(least, computes - lost);
	computes = fmax(0, computes - generates * (gpu_known(f) ? f->gpu.busy : 1));
	if (!gpu_known(f)) {
		outside += found_share(found, BOTTLENECK_ENVIRONMENT);
		computes += fmax(0, computes_elsewhere(f) - outside) - taken(found) -
		            interprets_in_steps(f) - short_in_steps(f) - compiles(f) -
		            found_share(found, BOTTLENECK_OPTIMIZER) -
		            found_share(found, BOTTLENECK_CPU_QUOTA);
	}
	return fmax(0, computes - (f->ranks.inferred ? known_or_zero(f->ranks.own) : 0));
}

// Share of an iteration spent computing, on any device.
static struct judgement device_computing(const struct facts *f, const struct causes *found)
{
	double computes = computing_share(f, found);
	const struct cause *threads = causes_get(found, BOTTLENECK_THREADS);
	if (!f->gpu.used && isfinite(f->main_cpus)) {
		// Computing on a CPU uses it: the rest of a step is a wait without a known cause.
		double most = f->main_cpus + known_or_zero(f->main_queued) + UNSEEN;
		computes = fmin(computes, most);
	}
	if (threads && isfinite(cause_spinning_cpus(f))) {
		double team = fmax(cause_sleeping_team(f), cause_crowded_team(f));
		computes = fmax(0, computes - fmax(leader_in(f, CODE_SPINNING), team));
	} else if (threads) {
		// The rest of a step is waiting for each other and for CPUs.
		computes = fmin(computes, f->undisturbed_s / f->length_s.value);
	}
	return (struct judgement){computes, largest_step_phase(f)};
}

static struct judgement judge_compute(const struct facts *f, const struct causes *found)
{
	struct judgement judgement = device_computing(f, found);
	judgement.share = f->gpu.unused ? 0 : judgement.share;
	return judgement;
}

static enum grounds grounds_compute(const struct facts *f)
{
	if (f->gpu.used && !isfinite(f->gpu.busy)) {
		return GROUNDS_EXCLUSION; // the steps take the time, the GPU's or the host's
	}
	if (f->gpu.used) {
		// Without a process of the job on it, its work may be that of others.
		bool own = f->gpu.n_used > 0 && f->gpu.busy >= GPU_BUSY;
		return own ? GROUNDS_DIRECT : GROUNDS_INDIRECT;
	}
	bool spins = cause_code(&f->code, CODE_SPINNING) >= 0.25;
	bool seen = cause_sampled(&f->code) && leader_computes(f) >= MOST * step_share(f) && !spins;
	return seen ? GROUNDS_DIRECT : GROUNDS_INDIRECT;
}

static double computes_beside_model(const struct facts *f);

// A line or two that have most of a phase, unless they are the loop's call.
static bool is_worth_naming(const struct line_place *line)
{
	return *line->place && !line->loop && line->share - line->error >= MOST;
}

static void append_line_of(struct text *t, const char *words, const struct line_place *line)
{
	if (is_worth_naming(line)) {
		text_append_string(t, words);
		words_append_place(t, line->place, 60);
	}
}

static void append_forward_line(struct text *t, const struct line_place *line)
{
	append_line_of(t, ", forward mostly in ", line);
}

// Whether most of forward has no gradients: frozen layers, a teacher. Without matrix products, it
// is something else that a module calls.
static bool is_without_gradients(const struct facts *f)
{
	double forward = facts_share(f, PHASE_FORWARD);
	return f->loader_at && forward >= MOST &&
	       facts_share(f, PHASE_BACKWARD) < BACKWARD_FEW * forward &&
	       cause_code(&f->code, CODE_KERNELS) >= MOST;
}

static void say_compute(struct text *t, const struct facts *f, const struct cause *cause)
{
	if (f->gpu.used && !isfinite(f->gpu.busy)) {
		text_append_string(
			t, "probably compute-bound: forward, backward and optimizer take ");
		cause_append_share(t, cause);
		text_append_string(t, "; how busy the GPU was is not known");
		return;
	}
	text_append_string(t, "compute-bound: the ");
	text_append_string(t, f->gpu.used ? "GPU" : "training process");
	text_append_string(t, " spends ");
	cause_append_share(t, cause);
	text_append_string(t, " computing");
	if (f->gpu.used) {
		gpu_append_use(t, &f->gpu);
	} else if (isfinite(f->main_cpus)) {
		text_append_string(t, " (");
		cause_append_cpus(t, f->main_cpus, f->cpus);
		text_append_string(t, ")");
	}
	double beside = computes_beside_model(f);
	if (beside > 0) {
		text_append_string(t, ", ");
		words_append_percent(t, beside);
		text_append_string(t, " outside modules, backward and optimizer");
		cause_append_line(t, ", mostly in ", &f->lines.outside, outside_part(f, beside));
	} else if (!f->gpu.used) {
		double forward = facts_share(f, PHASE_FORWARD);
		double backward = facts_share(f, PHASE_BACKWARD);
		if (forward >= FORWARD_WORTH) {
			append_forward_line(t, &f->lines.forward);
		}
		if (backward >= FORWARD_WORTH) {
			append_line_of(t, ", backward mostly in ", &f->lines.backward);
		}
	}
	if (f->padding >= PADDED_MOSTLY) {
		text_append_string(t, "; ");
		words_append_percent(t, f->padding);
		text_append_string(t, " of the tokens are padding");
	}
	if (is_without_gradients(f)) {
		text_append_string(t, "; most of forward is without gradients");
	}
}

// A torch.autograd.Function of the script's own computes a gradient for each argument, unless it
// asks which are needed.
static void advise_own_backward(struct advice_builder *b)
{
	const struct facts *f = b->f;
	const struct line_place *line = &f->lines.backward;
	struct text action = {0}, basis = {0};
	if (f->gpu.used || facts_share(f, PHASE_BACKWARD) < FORWARD_WORTH ||
		!is_worth_naming(line)) {
		return;
	}
	text_append_string(&action, "in ");
	words_append_place(&action, line->place, 60);
	text_append_string(
		&action, ", compute only the gradients that are needed (ctx.needs_input_grad)");
	words_append_percent(&basis, line->share);
	text_append_string(&basis, " of the samples of lines in backward are there");
	advice_suggest(b, advice_no_gain, &action, &basis);
}

// Share of the interpreter in steps, between operations, which are short if it is much: more
// threads would then sleep for each other more than they compute. Not the collector, which runs at
// any operation. 0 without samples.
static double between_operations(const struct facts *f)
{
	double interpreter = cause_sampled(&f->code) ? leader_in(f, CODE_INTERPRETER) : 0;
	double data = f->workers.n == 0 ? facts_share(f, PHASE_DATA) : 0;
	return interpreter * (1 - data);
}

static void advise_short_operations(struct advice_builder *b)
{
	const struct facts *f = b->f;
	struct text action = {0}, basis = {0};
	text_append_string(&action, "use a larger batch, faster CPUs, or a GPU");
	text_append_string(&basis, "the interpreter takes ");
	words_append_percent(&basis, between_operations(f));
	text_append_string(&basis, " of a step: its operations are too short for more threads");
	advice_suggest(b, advice_no_gain, &action, &basis);
}

// The gain of threads is not known: it depends on how much of a step can be parallel.
static void advise_one_thread(struct advice_builder *b)
{
	const struct facts *f = b->f;
	if (f->openmp && between_operations(f) >= SHORT_OPERATIONS) {
		advise_short_operations(b);
		return;
	}
	// Each rank has its part of the CPUs.
	double threads = fmin(
		round(1 + advice_idle_cpus(f) / f->ranks.n), floor(f->cpus / f->ranks.n));
	struct text action = {0}, basis = {0};
	if (threads >= 2 && f->openmp) {
		text_format(&action, "OMP_NUM_THREADS=%.0f, or ", threads);
		text_append_string(&action, "use faster CPUs, or a GPU");
		advice_set(b, 0, SETTING_ENVIRONMENT, "OMP_NUM_THREADS=%.0f", threads);
	} else {
		text_append_string(
			&action, "use faster CPUs, a GPU, or more threads on separate CPUs");
	}
	text_append_string(&basis, "the job computes with one thread; ");
	advice_append_idle(&basis, f);
	advice_suggest(b, advice_no_gain, &action, &basis);
}

// CPUs that the training process uses while it computes, without the time in which it waits for
// batches or starts an epoch.
static double cpus_while_computing(const struct facts *f)
{
	double other = known_or_zero(f->other_at_epochs);
	return f->main_cpus / fmax(0.05, 1 - facts_share(f, PHASE_DATA) - other);
}

// CPUs are idle although several threads compute: further threads would be idle, too.
static void advise_few_threads(struct advice_builder *b)
{
	const struct facts *f = b->f;
	struct text action = {0}, basis = {0};
	if (f->ranks.n > 1) {
		text_format(&basis, "the job's %u ranks keep ", f->ranks.n);
	} else if (f->main_threads >= 2) {
		text_format(&basis, "the job's %.0f threads keep ", f->main_threads);
	} else {
		text_append_string(&basis, "the job keeps ");
	}
	words_append_number(&basis, fmin(f->cpus, f->ranks.n * cpus_while_computing(f)));
	text_append_string(&basis, " of ");
	words_append_counted(&basis, f->cpus, "CPU");
	text_append_string(&basis, " busy; more CPUs would be idle");
	text_append_string(&action, "use faster CPUs, or a GPU");
	advice_suggest(b, advice_no_gain, &action, &basis);
}

// The gain depends on the share of linear layers in the model: a hundredth of the time of a
// convolutional network, nearly all of AlexNet's.
static void advise_blas(struct advice_builder *b)
{
	struct text action = {0}, basis = {0};
	text_append_string(&action, "use an optimised BLAS (Debian: libopenblas0-openmp)");
	text_append_string(&basis, "linear layers use the reference BLAS, which is many times "
				   "slower: ");
	words_append_place(&basis, b->f->reference_blas, 80);
	advice_suggest(b, advice_no_gain, &action, &basis);
}

// A part of these gradients may still be needed: those of layers between used ones. How much of
// backward the others take is not known.
static void advise_omitted(struct advice_builder *b)
{
	const struct facts *f = b->f;
	double all = f->parameters + f->parameters_omitted;
	double backward = facts_share(f, PHASE_BACKWARD);
	struct text action = {0}, basis = {0};
	if (!(f->parameters_omitted >= WORTH * all) || backward < WORTH) {
		return;
	}
	text_append_string(
		&action, "call requires_grad_(False) on parameters that are not trained");
	text_format(&basis, "optimizers update %.0f of the %.0f parameters that get gradients; ",
		f->parameters, all);
	text_append_string(&basis, "backward takes ");
	words_append_percent(&basis, backward);
	advice_suggest_at_most(b, backward, &action, &basis);
}

static void advise_without_gradients(struct advice_builder *b)
{
	const struct facts *f = b->f;
	struct text action = {0}, basis = {0};
	if (!is_without_gradients(f)) {
		return;
	}
	text_append_string(&action,
		"compute the outputs of layers without gradients (frozen ones, a teacher) once, "
		"and keep them, if their inputs are the same in each epoch");
	text_append_string(&basis, "backward takes ");
	words_append_percent(&basis, facts_share(f, PHASE_BACKWARD));
	text_append_string(&basis, " of an iteration, and forward ");
	words_append_percent(&basis, facts_share(f, PHASE_FORWARD));
	text_append_string(&basis, ": most of it has no gradients");
	advice_suggest_at_most(
		b, facts_share(f, PHASE_FORWARD) - facts_share(f, PHASE_BACKWARD), &action, &basis);
}

// How much of the graph the passes have in common is not known: all of it at most.
static void advise_repeated(struct advice_builder *b)
{
	const struct facts *f = b->f;
	double backward = facts_share(f, PHASE_BACKWARD);
	struct text action = {0}, basis = {0};
	if (!(f->backward_passes >= 2 && f->backward_kept >= f->backward_passes - 1) ||
		backward < WORTH) {
		return;
	}
	text_append_string(&action, "add the losses of a step, and call backward() once");
	text_format(&basis, "each step has %.0f backward passes, with retain_graph; they take ",
		f->backward_passes);
	words_append_percent(&basis, backward);
	double again = (f->backward_passes - 1) / f->backward_passes;
	advice_suggest_at_most(b, backward * again, &action, &basis);
}

// On a GPU, samples of the thread that trains are not those of the time of the computing.
static void advise_recomputed(struct advice_builder *b)
{
	const struct facts *f = b->f;
	double share = facts_share(f, PHASE_BACKWARD) * f->lines.recomputed;
	struct text action = {0}, basis = {0};
	if (!(share >= WORTH) || f->gpu.used) {
		return;
	}
	text_append_string(&action, "remove torch.utils.checkpoint, or checkpoint fewer "
				    "modules, if memory suffices for the activations");
	text_append_string(&basis, "backward recomputes forward passes: ");
	words_append_percent(&basis, share);
	text_append_string(&basis, " of each iteration");
	if (f->memory.peak_bytes > 0 && f->memory.limit_bytes > f->memory.peak_bytes) {
		text_append_string(&basis, "; the job used up to ");
		words_append_bytes_of_limit(&basis, f->memory.peak_bytes, f->memory.limit_bytes);
		text_append_string(&basis, " of memory");
	}
	advice_suggest_at_most(b, share, &action, &basis);
}

// A pass through a model for nothing takes as long as one whose gradients are used. Of the model
// that was called last, only its parameters' gradients are for nothing: half of that. Of another
// one, the kernel need not provide the memory for what its forward keeps.
static void advise_wasted(struct advice_builder *b)
{
	const struct facts *f = b->f;
	double backward = facts_share(f, PHASE_BACKWARD);
	double kernel = f->wasted_last ? 0 : leader_in(f, CODE_SYSTEM);
	double most = (backward + kernel) * f->backward_wasted * (f->wasted_last ? 0.5 : 1);
	struct text action = {0}, basis = {0};
	if (!(most >= WORTH)) {
		return;
	}
	if (!f->wasted_last) {
		text_append_string(&action, "use torch.no_grad() for the output of one model when "
					    "only another model is trained on it, or ");
	}
	text_append_string(
		&action, "call requires_grad_(False) on a model while others are trained");
	words_append_percent(&basis, f->backward_wasted);
	text_append_string(&basis,
		" of the backward passes through an optimizer's parameters are wasted: their "
		"gradients are zeroed before the optimizer uses them; backward takes ");
	words_append_percent(&basis, backward);
	advice_suggest_at_most(b, most, &action, &basis);
}

// What is saved is arithmetic without matrix products (filling and applying the gradient), and page
// faults of its memory. Returns whether there is something to save.
static bool advise_embeddings(struct advice_builder *b)
{
	const struct facts *f = b->f;
	double optimizer = facts_share(f, PHASE_OPTIMIZER);
	struct text action = {0}, basis = {0};
	if (!(f->embeddings > 0) || optimizer < UPDATES_HEAVY || f->gpu.used ||
		!cause_sampled(&f->code)) {
		return false;
	}
	text_append_string(&action, "use nn.Embedding(sparse=True), with SparseAdam or SGD");
	text_format(
		&basis, "embeddings have %.0f parameters, and dense gradients: ", f->embeddings);
	text_append_string(&basis, "a step updates all of them, not only those of its batch; the "
				   "optimizer takes ");
	words_append_percent(&basis, optimizer);
	// Of its CPU time: what it waits for a CPU is spread over all that it does.
	double rest = cause_code(&f->code, CODE_FRAMEWORK) + cause_code(&f->code, CODE_COPYING) +
	              cause_code(&f->code, CODE_SYSTEM);
	double most = fmin(rest, optimizer + facts_share(f, PHASE_BACKWARD));
	advice_suggest_at_most(b, fmax(most, optimizer), &action, &basis);
	return true;
}

// A matrix of zeros, such as the adjacency of a graph, is multiplied as if all were other numbers.
// How much of the products is by this one is not known.
static void advise_zeros(struct advice_builder *b)
{
	const struct facts *f = b->f;
	double products = cause_code(&f->code, CODE_KERNELS) * fmin(1, known_or_zero(f->code.cpus));
	struct text action = {0}, basis = {0};
	if (!(f->matrix_zeros >= ZEROS) || !cause_sampled(&f->code) || products < PRODUCTS_HEAVY) {
		return;
	}
	text_append_string(&action,
		"pass the input matrix, which is mostly zeros, as a sparse tensor (torch.sparse), "
		"or look up only the needed rows");
	text_append_string(&basis, "a dense matrix of ");
	words_append_number(&basis, f->matrix_elements);
	text_append_string(&basis, " elements is an input of the model, and only ");
	words_append_percent(&basis, fmax(1 - f->matrix_zeros, 1e-5));
	text_append_string(&basis, " of them are nonzero; matrix products take ");
	words_append_percent(&basis, products);
	text_append_string(&basis, " of the training thread's time");
	advice_suggest_at_most(b, products, &action, &basis);
}

// Whether what runs outside of all phases is beside the model. A script that calls no module
// computes its model there, too. On a GPU, the time of calls there is not that of the computing.
static bool marks_model(const struct facts *f)
{
	bool steps = facts_share(f, PHASE_FORWARD) >= WORTH && facts_share(f, PHASE_BACKWARD) > 0 &&
	             facts_share(f, PHASE_OPTIMIZER) > 0;
	// Not every backward pass is marked: not torch.autograd.grad() in a loop without a loader.
	bool marked = f->lines.in_backward <= facts_share(f, PHASE_BACKWARD) + BACKWARD_UNMARKED;
	return f->framework == FRAMEWORK_PYTORCH && steps && marked && !f->gpu.used;
}

static double computes_beside_model(const struct facts *f)
{
	double elsewhere = marks_model(f) ? computes_elsewhere(f) : 0;
	return elsewhere >= BESIDE_MODEL ? elsewhere : 0;
}

static void advise_beside_model(struct advice_builder *b)
{
	const struct facts *f = b->f;
	double share = computes_beside_model(f);
	struct text action = {0}, basis = {0};
	if (!(share > 0)) {
		return;
	}
	if (cause_has_line(&f->lines.outside, outside_part(f, share))) {
		text_append_string(&action, "run ");
		words_append_place(&action, f->lines.outside.place, 60);
	} else {
		text_append_string(&action, "run metrics, statistics and targets");
	}
	text_append_string(&action,
		" less often, or on fewer values; if it is a part of the loss, with "
		"fewer operations");
	text_append_string(&basis, "arithmetic outside modules, backward and optimizer takes ");
	words_append_percent(&basis, share);
	text_append_string(&basis, " of each iteration");
	// With it go the page faults of its tensors, and the code that calls it.
	double apart = calls_libraries(f) + loops_over_elements(f);
	advice_suggest_at_most(
		b, fmax(share, facts_share(f, PHASE_OTHER) - apart), &action, &basis);
}

static bool is_named(const struct advice_builder *b, const char *place)
{
	_cleanup_text_ struct text shown = {0};
	words_append_place(&shown, place, 60);
	bool named = false;
	for (size_t i = 0; shown.data && i < b->verdict->n_suggestions; i++) {
		const struct suggestion *s = &b->verdict->suggestions[i];
		named |= strstr(s->action, shown.data) || strstr(s->basis, shown.data);
	}
	return named;
}

// A function of the script outside of all phases, whatever it does there: it may compute, wait and
// call the kernel, each too little for a cause of its own. One that has most of the time is what
// the job is for, if no other cause holds. Returns whether it has most of this share of the time.
static bool advise_outside_function(struct advice_builder *b, double share)
{
	const struct line_place *top = cause_outside_function(b->f);
	const struct facts *f = b->f;
	// Of training: what runs before it is in the samples of lines, too.
	double apart = known_or_zero(f->validation_s) + known_or_zero(f->checkpoint_s) +
	               known_or_zero(f->between_s);
	double room = facts_share(f, PHASE_OTHER) + known_or_zero(apart / f->training_s);
	struct text action = {0}, basis = {0};
	if (!top || top->share - top->error < OUTSIDE_WORTH || top->share >= MOST ||
		top->share - 2 * top->error > room || !marks_model(f) || is_named(b, top->place)) {
		return false;
	}
	text_append_string(&action, "make ");
	words_append_place(&action, top->place, 60);
	text_append_string(&action, " faster, or call it less often");
	words_append_percent(&basis, top->share);
	text_append_string(&basis,
		" of the samples of lines are in this function, outside modules, "
		"backward and optimizer");
	advice_suggest_at_most(b, fmin(cause_function_at_most(top), room), &action, &basis);
	return top->share >= MOST * share;
}

static void advise_callbacks(struct advice_builder *b)
{
	const struct facts *f = b->f;
	struct text action = {0}, basis = {0};
	if (!(f->callbacks > 0)) {
		return;
	}
	text_append_string(&action, "run the module hooks");
	if (f->callback_at) {
		text_append_string(&action, " (");
		words_append_place(&action, f->callback_at, 60);
		text_append_string(&action, ")");
	}
	text_append_string(&action, " only in some steps");
	text_format(&basis,
		"%.0f hook functions of the script run in each forward and backward pass "
		"(register_forward_hook, register_hook); their cost was not measured",
		f->callbacks);
	advice_suggest(b, advice_no_gain, &action, &basis);
}

// Most layers take time in proportion to the elements of a batch, attention to their square. A
// model that packs its sequences computes nothing for them. length: of sequences with padding.
static double padded_part(
	const struct facts *f, const struct cause *cause, double padding, double length)
{
	double passes = facts_share(f, PHASE_FORWARD) + facts_share(f, PHASE_BACKWARD) +
	                facts_share(f, PHASE_STEP);
	double rest = 1 - padding, attention = length / ATTENTION_LENGTH;
	double left = isfinite(attention) ? rest * (1 + rest * attention) / (1 + attention)
	                                  : rest * rest;
	return fmin(cause->share.value, passes) * (1 - left);
}

static void advise_common_padding(struct advice_builder *b, const struct cause *cause)
{
	struct text action = {0}, basis = {0};
	text_append_string(
		&action, "pad each batch only to its longest sequence, not to a fixed length");
	words_append_percent(&basis, b->f->padding_common);
	text_append_string(&basis, " of the tokens in the examined batches are padding beyond "
				   "the longest sequence of each");
	double padding = b->f->padding_common;
	advice_suggest_at_most(
		b, padded_part(b->f, cause, padding, b->f->padded_length), &action, &basis);
}

static void advise_padding(struct advice_builder *b, const struct cause *cause)
{
	const struct facts *f = b->f;
	struct text action = {0}, basis = {0};
	bool fixed = f->padding_common >= PADDED;
	double rest = fixed ? (f->padding - f->padding_common) / (1 - f->padding_common)
	                    : f->padding;
	if (fixed) {
		advise_common_padding(b, cause);
	}
	if (!(rest >= PADDED)) {
		return;
	}
	text_append_string(&action, "batch sequences of similar length");
	text_append_string(
		&action, fixed ? "" : ", and pad each batch only to its longest sequence");
	text_append_string(&basis, "padding is ");
	words_append_percent(&basis, rest);
	text_append_string(&basis, " of the tokens in the examined batches");
	text_append_string(&basis, fixed ? ", up to the longest sequence of each" : "");
	double length = f->padded_length * (fixed ? 1 - f->padding_common : 1);
	advice_suggest_at_most(b, padded_part(f, cause, rest, length), &action, &basis);
}

// Nothing tells how many there are: a few are in most jobs (a softmax, Adam's averages).
static void advise_denormals(struct advice_builder *b)
{
	const struct facts *f = b->f;
	struct text action = {0}, basis = {0};
	if (!f->denormals || f->gpu.used ||
		!(leader_in(f, CODE_FRAMEWORK) >= DENORMAL_ARITHMETIC)) {
		return;
	}
	advice_set(b, 0, SETTING_FLUSH_DENORMAL, "1");
	text_append_string(&action, "torch.set_flush_denormal(True)");
	text_append_string(&basis,
		"in each step the training thread computes with denormal numbers (in float32 below "
		"1e-38), on which arithmetic takes many times longer; their number is unknown. "
		"Arithmetic outside of matrix kernels takes ");
	words_append_percent(&basis, leader_in(f, CODE_FRAMEWORK));
	advice_suggest(b, advice_no_gain, &action, &basis);
}

// The part of an iteration in which the training thread sorts (PyTorch's and the C++ library's
// functions). Models hardly do; metrics over ranks and quantiles do.
static double sorts(const struct facts *f)
{
	static const char *const names[] = {"introsort", "sort_kernel", "sort_stable", "merge_sort",
		"merge_adaptive", "radix_sort", "topk_kernel", "nth_element"};
	uint64_t samples = 0;
	for (size_t i = 0; i < CODE_TOPS; i++) {
		const struct code_top *top = &f->functions[i];
		bool sorting = false;
		for (size_t k = 0; k < ARRAY_LENGTH(names); k++) {
			sorting |= strstr(top->name, names[k]) != NULL;
		}
		samples += sorting ? top->samples : 0;
	}
	double part = f->code.samples > 0 ? (double)samples / (double)f->code.samples : 0;
	return part * fmin(1, known_or_zero(f->code.cpus));
}

// With the sorting go the copies that lead to it and the sums that follow: what all of it takes is
// not known, at most the line of the script that has most of forward.
static void advise_sorting(struct advice_builder *b)
{
	const struct facts *f = b->f;
	double share = sorts(f);
	struct text action = {0}, basis = {0};
	if (f->gpu.used || !(share >= SORTING)) {
		return;
	}
	text_append_string(&action, "sort less in each step: a metric that sorts (AUC, quantiles, "
				    "top-k) can be computed once an epoch, or on fewer values");
	text_append_string(&basis, "the training thread sorts for ");
	words_append_percent(&basis, share);
	text_append_string(&basis, " of the time");
	if (!is_worth_naming(&f->lines.forward)) {
		advice_suggest(b, advice_no_gain, &action, &basis);
		return;
	}
	text_append_string(&basis, "; ");
	words_append_percent(&basis, f->lines.forward.share);
	text_append_string(&basis, " of the samples of lines in forward are in ");
	words_append_place(&basis, f->lines.forward.place, 60);
	double line = f->lines.forward.share * facts_share(f, PHASE_FORWARD);
	advice_suggest_at_most(b, fmax(share, line), &action, &basis);
}

void cause_advise_precision(struct advice_builder *b)
{
	if (b->f->double_precision) {
		advice_suggest_unknown(b,
			b->f->framework == FRAMEWORK_JAX
				? "compute with float32, if its precision suffices: without "
				  "jax_enable_x64"
				: "compute with float32, if its precision suffices: the input or "
				  "the model is float64",
			"most samples of matrix kernels are in double-precision functions, which "
			"take twice as long (convolutions: several times as long)");
	}
}

// Computing that the result does not need, each with evidence of its own.
static void advise_unneeded(struct advice_builder *b, const struct cause *cause)
{
	advise_omitted(b);
	advise_without_gradients(b);
	advise_wasted(b);
	advise_repeated(b);
	advise_padding(b, cause);
	advise_embeddings(b);
	advise_zeros(b);
	cause_advise_precision(b);
}

static void advise_compute(struct advice_builder *b, const struct cause *cause)
{
	const struct facts *f = b->f;
	advise_beside_model(b);
	advise_compile_limit(b);
	advise_unneeded(b, cause);
	advise_recomputed(b);
	advise_callbacks(b);
	advise_own_backward(b);
	advise_denormals(b);
	advise_sorting(b);
	(void)advise_outside_function(b, cause->share.value);
	cause_advise_synced(b, NAN);
	double idle = advice_idle_cpus(f) / f->ranks.n + f->main_cpus - cpus_while_computing(f);
	if (!f->gpu.used && f->reference_blas) {
		advise_blas(b);
	}
	if (f->gpu.set_lost >= SET_WORTH) {
		advice_suggest_plain_at_most(b, fmin(f->gpu.set_lost, cause->share.value),
			"raise the limit of the GPU's clock (nvidia-smi -rac, or -rgc)",
			"the GPU would run at its highest clock");
	}
	if (f->gpu.used) {
		advice_suggest_unknown(b,
			cause_gpu_better_use(&f->gpu, f->framework == FRAMEWORK_PYTORCH),
			isfinite(f->gpu.busy) ? "the job waits for the GPU"
					      : "the steps take most of the time");
	} else if (f->one_thread && f->cpus >= 2) {
		advise_one_thread(b);
	} else if (idle >= IDLE_CPUS) {
		advise_few_threads(b);
	} else {
		advice_suggest_unknown(
			b, "use more or faster CPUs, or a GPU", "computation is the bottleneck");
	}
}

// Transfer ----------------------------------------------------------------------------------------

static struct judgement judge_transfer(const struct facts *f, const struct causes *found)
{
	(void)found;
	return (struct judgement){transfers(f), PHASE_TRANSFER};
}

static enum grounds grounds_transfer(const struct facts *f)
{
	// The phase may include waiting for the device, but not for one that is idle in most of it,
	// wherever it is busy.
	bool idle = gpu_known(f) && f->gpu.busy <= (1 - MOST) * facts_share(f, PHASE_TRANSFER);
	return idle || link_takes(f) > 0 ? GROUNDS_DIRECT : GROUNDS_INDIRECT;
}

static void say_transfer(struct text *t, const struct facts *f, const struct cause *cause)
{
	text_append_string(t, "transfer-bound: copies from host to device take ");
	cause_append_share(t, cause);
	if (isfinite(f->gpu.to_device_rate) && isfinite(f->gpu.link_rate)) {
		text_append_string(t, " (");
		words_append_bytes_of(t, f->gpu.to_device_rate, f->gpu.link_rate);
		text_append_string(t, "/s)");
	}
	if (gpu_facts_link_narrow(&f->gpu)) {
		text_append_string(t, "; the link of GPU ");
		text_format(t, "%d is slower than the GPU allows", f->gpu.link_index);
	}
}

static void advise_transfer(struct advice_builder *b, const struct cause *cause)
{
	if (gpu_facts_link_narrow(&b->f->gpu)) {
		struct text action = {0}, basis = {0};
		double faster = 1 - b->f->gpu.link_rate / b->f->gpu.link_best;
		text_append_string(
			&action, "find out why the GPU's link is slow: another slot or riser");
		append_tool(&action, &b->f->gpu, "-q");
		text_append_string(&basis, "it ran at ");
		words_append_bytes_of(&basis, b->f->gpu.link_rate, b->f->gpu.link_best);
		text_append_string(&basis, "/s that the GPU allows");
		advice_suggest_at_most(b, cause->share.value * faster, &action, &basis);
	}
	if (b->f->loader_at) {
		advice_set(b, 0, SETTING_PIN, "1");
	}
	advice_suggest_plain_at_most(b, cause->share.value,
		b->f->loader_at
			? "pin_memory=True, .to(device, non_blocking=True)"
			: "keep the data on the GPU if it fits; else copy from pinned memory "
			  "(pin_memory(), .to(device, non_blocking=True))",
		b->f->loader_at ? "copies would overlap with computation"
				: "copies would be needed once, or overlap with computation");
}

// Unexplained time --------------------------------------------------------------------------------

// Time of the training thread in no phase that neither samples of code nor samples of waits
// explain.
static struct judgement judge_not_known(const struct facts *f, const struct causes *found)
{
	double rest = facts_share(f, PHASE_OTHER) - taken(found) -
	              found_share(found, BOTTLENECK_ENVIRONMENT);
	if (gpu_known(f)) {
		return (struct judgement){0, PHASE_OTHER};
	}
	rest -= f->waits.in_step[WAIT_FSYNC] >= WORTH ? cause_synced(f) : 0;
	// A lack of CPUs has its part of this time.
	rest -= causes_get(found, BOTTLENECK_CONTENTION)
	                ? known_or_zero(f->main_queued) * facts_share(f, PHASE_OTHER)
	                : 0;
	rest -= computes_elsewhere(f) + found_share(found, BOTTLENECK_HOST) +
	        found_share(found, BOTTLENECK_ALLOCATION);
	return (struct judgement){fmax(0, rest), PHASE_OTHER};
}

static enum grounds grounds_not_known(const struct facts *f)
{
	(void)f;
	return GROUNDS_EXCLUSION;
}

static void say_not_known(struct text *t, const struct facts *f, const struct cause *cause)
{
	(void)f;
	text_append_string(t, "unknown: ");
	cause_append_share(t, cause);
	text_append_string(t, " is outside all phases, and no measurement explains it");
}

static void advise_not_known(struct advice_builder *b, const struct cause *cause)
{
	(void)cause;
	bool python = b->f->python;
	advice_suggest_unknown(b,
		python ? "mark the phases: import strain; with strain.phase(\"forward\"):"
		       : "mark the phases: strain_begin(\"forward\"), strain_end() "
			 "(docs/markers.md)",
		"phases show where the time is spent");
}

// Rows --------------------------------------------------------------------------------------------

const struct cause_kind cause_optimizer = {
	.name = "optimizer",
	.part = "the optimizer",
	.judge = judge_optimizer,
	.grounds = grounds_optimizer,
	.say = say_optimizer,
	.advise = advise_optimizer,
};

const struct cause_kind cause_host = {
	.name = "host",
	.part = "host overhead",
	.judge = judge_host,
	.grounds = grounds_host,
	.say = say_host,
	.advise = advise_host,
};

const struct cause_kind cause_compile = {
	.name = "compile",
	.part = "compilation",
	.of = OF_TRAINING,
	.judge = judge_compile,
	.grounds = grounds_compile,
	.say = say_compile,
	.advise = advise_compile,
};

const struct cause_kind cause_compute = {
	.name = "compute",
	.part = "computing",
	.of_device = true,
	.first_only = true,
	.judge = judge_compute,
	.grounds = grounds_compute,
	.say = say_compute,
	.advise = advise_compute,
	.advise_beside = advise_unneeded,
};

const struct cause_kind cause_transfer = {
	.name = "transfer",
	.part = "host-to-device transfer",
	.of_device = true,
	.judge = judge_transfer,
	.grounds = grounds_transfer,
	.say = say_transfer,
	.advise = advise_transfer,
};

const struct cause_kind cause_not_known = {
	.name = "not-known",
	.part = "time outside all phases",
	.judge = judge_not_known,
	.grounds = grounds_not_known,
	.say = say_not_known,
	.advise = advise_not_known,
};
