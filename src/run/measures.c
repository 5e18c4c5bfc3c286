// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Each measure is computed from parts of the analysis.

#include "run/measures.h"

#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/words.h"
#include "run/allocation.h"
#include "run/analysis.h"
#include "run/names.h"
#include "run/gpu_facts.h"
#include "run/unit.h"

static double known(double value, const char *otherwise, const char **ret_why)
{
	if (!isfinite(value)) {
		*ret_why = otherwise;
		return NAN;
	}
	return value;
}

// --- time

static const char no_duration[] = "the duration of the run is not known";

static double duration(const struct analysis *a, const char **ret_why)
{
	return known(a->overview.duration_s, no_duration, ret_why);
}

// The index of the first epoch with a known start, list->n at most. If lines end epochs, the first
// epoch also holds everything before it.
static size_t first_epoch(const struct epoch_list *list)
{
	return list->first_with_start ? 1 : 0;
}

// Total length of the epochs that ended, starting at the first with a known start.
static double epochs_length(const struct epoch_list *list, size_t *ret_n)
{
	double seconds = 0;
	*ret_n = 0;
	for (size_t i = first_epoch(list); i < list->n; i++) {
		const struct epoch *epoch = &list->items[i];
		if (!epoch->open) {
			seconds += epoch_length_s(epoch);
			(*ret_n)++;
		}
	}
	return seconds;
}

static const char *why_no_epoch(const struct epoch_list *list)
{
	return list->n == 0 ? "the run has no epochs: no marks, and no line matched --epoch-pattern"
	       : first_epoch(list) == 0
	               ? "no epoch was completed"
	               : "only the first epoch was completed, and the line at its end does not "
	                 "tell when it began";
}

// The start of training. If lines only end epochs, it is the start of the first iteration.
static int64_t training_start_ns(const struct analysis *a)
{
	const struct epoch_list *list = &a->tables.epochs;
	if (!list->first_with_start) {
		return list->n > 0 ? list->items[0].start_ns : -1;
	}
	return a->phases.n_iterations > 0 ? a->phases.iterations[0].start_ns : -1;
}

static double training(const struct analysis *a, const char **ret_why)
{
	int64_t start_ns = training_start_ns(a), end_ns = -1;
	for (size_t i = 0; i < a->tables.epochs.n; i++) {
		end_ns = a->tables.epochs.items[i].open ? end_ns : a->tables.epochs.items[i].end_ns;
	}
	if (end_ns < 0) {
		*ret_why = a->tables.epochs.n ? "no epoch was completed"
		                              : why_no_epoch(&a->tables.epochs);
		return NAN;
	}
	return known(start_ns >= 0 && start_ns < end_ns ? (double)(end_ns - start_ns) / 1e9 : NAN,
		"the lines mark the ends of epochs, so the start of the first one is not known",
		ret_why);
}

static double epoch(const struct analysis *a, const char **ret_why)
{
	size_t n;
	double seconds = epochs_length(&a->tables.epochs, &n);
	return known(n ? seconds / (double)n : NAN, why_no_epoch(&a->tables.epochs), ret_why);
}

static double first_epoch_seconds(const struct analysis *a, const char **ret_why)
{
	const struct epoch_list *list = &a->tables.epochs;
	if (list->n > 0 && list->first_with_start) {
		*ret_why = "the lines mark the ends of epochs, so the start of the first one is "
			   "not known";
		return NAN;
	}
	bool ended = list->n > 0 && !list->items[0].open;
	return known(ended ? epoch_length_s(&list->items[0]) : NAN, why_no_epoch(list), ret_why);
}

static double epochs(const struct analysis *a, const char **ret_why)
{
	double n = 0;
	for (size_t i = 0; i < a->tables.epochs.n; i++) {
		n += !a->tables.epochs.items[i].open;
	}
	return known(a->tables.epochs.n ? n : NAN, why_no_epoch(&a->tables.epochs), ret_why);
}

// --- iterations

static const char *why_no_iterations(const struct analysis *a)
{
	const struct phases *p = &a->phases;
	return p->missing          ? p->missing
	       : p->steady == 0    ? "no steady iterations"
	       : p->phases_missing ? p->phases_missing
	                           : "not known";
}

static double startup(const struct analysis *a, const char **ret_why)
{
	return known(
		a->phases.total > 0 ? a->phases.startup_s : NAN, why_no_iterations(a), ret_why);
}

static double iterations(const struct analysis *a, const char **ret_why)
{
	return known(
		a->phases.total > 0 ? (double)a->phases.total : NAN, why_no_iterations(a), ret_why);
}

static double step(const struct analysis *a, const char **ret_why)
{
	return known(a->phases.steady > 0 ? a->phases.p50_s : NAN, why_no_iterations(a), ret_why);
}

// The sum over all ranks, if the rate of each is known.
static double steady_rate(const struct phases *p)
{
	if (p->steady == 0 || p->n_ranks < 2) {
		return p->steady > 0 ? p->samples_per_s.value : NAN;
	}
	double rate = 0;
	for (size_t i = 0; i < p->n_ranks; i++) {
		rate += p->ranks[i].samples_per_s;
	}
	return rate;
}

// For runs without iterations: the samples that the job reported for ended epochs.
static double epochs_rate(const struct epoch_list *list)
{
	double samples = 0, seconds = 0;
	for (size_t i = first_epoch(list); i < list->n; i++) {
		const struct epoch *e = &list->items[i];
		if (!e->open && e->samples >= 0) {
			samples += (double)e->samples;
			seconds += epoch_length_s(e);
		}
	}
	return samples > 0 && seconds > 0 ? samples / seconds : NAN;
}

static double samples_per_second(const struct analysis *a, const char **ret_why)
{
	double rate = steady_rate(&a->phases);
	return known(isfinite(rate) ? rate : epochs_rate(&a->tables.epochs),
		a->phases.steady > 0 ? "the number of samples per iteration is not known"
				     : why_no_iterations(a),
		ret_why);
}

static double tokens_per_second(const struct analysis *a, const char **ret_why)
{
	double tokens = unit_tokens_per_sample(a->tables.reader);
	if (!isfinite(tokens)) {
		return known(NAN, unit_no_tokens, ret_why);
	}
	return tokens * samples_per_second(a, ret_why);
}

static double share(const struct analysis *a, enum phase_id phase, const char **ret_why)
{
	bool any = a->phases.steady > 0 && !a->phases.phases_missing;
	return known(any ? 100 * a->phases.items[phase].share.value : NAN, why_no_iterations(a),
		ret_why);
}

#define SHARE_OF(name, phase)                                                      \
	static double name##_share(const struct analysis *a, const char **ret_why) \
	{                                                                          \
		return share(a, phase, ret_why);                                   \
	}
SHARE_OF(data, PHASE_DATA)
SHARE_OF(transfer, PHASE_TRANSFER)
SHARE_OF(forward, PHASE_FORWARD)
SHARE_OF(backward, PHASE_BACKWARD)
SHARE_OF(optimizer, PHASE_OPTIMIZER)
SHARE_OF(communication, PHASE_COMMUNICATION)
SHARE_OF(step, PHASE_STEP)
SHARE_OF(other, PHASE_OTHER)
#undef SHARE_OF

// --- CPU and memory of the host

static const char no_cpu[] = "the job's CPU time was not measured";
static const char no_memory[] = "the job's memory was not measured";
static const char no_io[] = "the job's I/O was not measured";

static double cpu_seconds(const struct analysis *a, const char **ret_why)
{
	return known(a->overview.cpu_seconds, no_cpu, ret_why);
}

static double cpus_used(const struct analysis *a, const char **ret_why)
{
	return known(a->overview.cpus_used, no_cpu, ret_why);
}

static double cpu_utilization(const struct analysis *a, const char **ret_why)
{
	return known(100 * a->overview.cpus_used, no_cpu, ret_why);
}

static double host_memory_peak(const struct analysis *a, const char **ret_why)
{
	return known(a->overview.memory.peak_bytes, no_memory, ret_why);
}

static double host_memory_mean(const struct analysis *a, const char **ret_why)
{
	return known(a->overview.memory.mean_bytes, no_memory, ret_why);
}

static double read_bytes(const struct analysis *a, const char **ret_why)
{
	return known(a->overview.asked_bytes, no_io, ret_why);
}

static double disk_read_bytes(const struct analysis *a, const char **ret_why)
{
	return known(a->overview.storage_read_bytes, no_io, ret_why);
}

static double disk_write_bytes(const struct analysis *a, const char **ret_why)
{
	return known(a->overview.storage_write_bytes, no_io, ret_why);
}

// --- GPUs

static const char *why_no_gpu(const struct analysis *a)
{
	for (size_t i = 0; i < a->tables.missing.n; i++) {
		const struct missing_group *group = &a->tables.missing.items[i];
		if (a->overview.n_gpus == 0 && strcmp(group->kind, "gpu") == 0 &&
			group->to_the_end) {
			return group->reason;
		}
	}
	for (size_t i = 0; i < a->overview.n_gpus; i++) {
		if (gpu_owner(a, i) == GPU_OF_JOB) {
			return "the GPU driver did not report it";
		}
	}
	return a->overview.n_gpus == 0 ? "no GPU was recorded" : "the job used no GPU";
}

// A figure over the GPUs of the job, as mean of those that have it, or as sum, which is not known
// if that of one is not. Other GPUs would dilute it.
static double over_gpus(const struct analysis *a, double (*figure)(const struct gpu_figures *gpu),
	bool mean, const char **ret_why)
{
	double sum = NAN;
	size_t n = 0;
	for (size_t i = 0; i < a->overview.n_gpus; i++) {
		double value = figure(&a->overview.gpus[i]);
		bool has = isfinite(value);
		if (gpu_owner(a, i) == GPU_OF_JOB && (has || !mean)) {
			sum = n > 0 ? sum + value : value;
			n++;
		}
	}
	return known(mean && n ? sum / (double)n : sum, why_no_gpu(a), ret_why);
}

static double gpu_busy(const struct gpu_figures *gpu)
{
	return 100 * gpu->busy;
}

static double gpu_filled(const struct gpu_figures *gpu)
{
	return gpu->memory_bytes > 0 ? 100 * gpu->memory_peak_bytes / gpu->memory_bytes : NAN;
}

static double gpu_memory(const struct gpu_figures *gpu)
{
	return gpu->memory_peak_bytes;
}

static double gpu_watts(const struct gpu_figures *gpu)
{
	return gpu->power_watts;
}

static double gpu_joules(const struct gpu_figures *gpu)
{
	return gpu->energy_joules;
}

static double gpu_utilization(const struct analysis *a, const char **ret_why)
{
	return over_gpus(a, gpu_busy, true, ret_why);
}

static double gpu_memory_utilization(const struct analysis *a, const char **ret_why)
{
	return over_gpus(a, gpu_filled, true, ret_why);
}

static double device_memory_peak(const struct analysis *a, const char **ret_why)
{
	return over_gpus(a, gpu_memory, false, ret_why);
}

static double gpu_power(const struct analysis *a, const char **ret_why)
{
	return over_gpus(a, gpu_watts, false, ret_why);
}

static double gpu_energy(const struct analysis *a, const char **ret_why)
{
	return over_gpus(a, gpu_joules, false, ret_why);
}

size_t measure_each_gpu(
	const struct analysis *a, enum measure_id measure, double *ret_values, size_t most)
{
	double (*figure)(
		const struct gpu_figures *gpu) = measure == MEASURE_GPU_UTILIZATION ? gpu_busy
	                                         : measure == MEASURE_GPU_MEMORY_UTILIZATION
	                                                 ? gpu_filled
	                                                 : NULL;
	size_t n = 0;
	for (size_t i = 0; figure && i < a->overview.n_gpus && n < most; i++) {
		if (gpu_owner(a, i) == GPU_OF_JOB) {
			ret_values[n++] = figure(&a->overview.gpus[i]);
		}
	}
	return n;
}

// --- the recording

static double recorder_cpu(const struct analysis *a, const char **ret_why)
{
	return known(100 * a->overview.recording.cpu_share,
		"the cost of recording was not measured", ret_why);
}

// --- energy

static const char *why_no_host_energy(const struct analysis *a)
{
	const struct missing_list *missing = &a->tables.missing;
	for (size_t i = 0; i < missing->n; i++) {
		for (size_t k = 0; k < missing->items[i].n_metrics; k++) {
			if (strcmp(missing->items[i].kind, "host") == 0 &&
				strcmp(missing->items[i].metrics[k], NAME_HOST_ENERGY) == 0) {
				return missing->items[i].reason;
			}
		}
	}
	return "the energy of the machine was not recorded";
}

// The machine's processors and memory: by all programs.
static double host_energy(const struct analysis *a, const char **ret_why)
{
	return known(tables_figure(&a->tables, tables_first(&a->tables, ENTITY_HOST),
			     NAME_HOST_ENERGY, FIGURE_TOTAL),
		why_no_host_energy(a), ret_why);
}

// GPUs that the machine is known not to have use none.
static double energy(const struct analysis *a, const char **ret_why)
{
	struct allocation allocation;
	double host = host_energy(a, ret_why);
	allocation_find(a, &allocation);
	if (isnan(host) || allocation.of[ALLOCATED_GPUS].amount == 0) {
		return host;
	}
	return host + gpu_energy(a, ret_why); // NAN with its reason
}

// --- allocated against used

static double allocated(const struct analysis *a, enum allocated_kind kind, const char **ret_why)
{
	struct allocation all;
	allocation_find(a, &all);
	return known(all.of[kind].amount, all.of[kind].why, ret_why);
}

static double hours_allocated(
	const struct analysis *a, enum allocated_kind kind, double unit, const char **ret_why)
{
	struct allocation all;
	allocation_find(a, &all);
	return known(allocated_held(&all, kind) / unit,
		isfinite(all.of[kind].amount) ? no_duration : all.of[kind].why, ret_why);
}

static double idle_hours(
	const struct analysis *a, enum allocated_kind kind, double unit, const char **ret_why)
{
	struct allocation all;
	const char *why;
	allocation_find(a, &all);
	double idle = allocated_idle(&all, kind, &why);
	return known(idle / unit, why, ret_why);
}

#define SECONDS_PER_HOUR 3600.0
#define ALLOCATION_OF(name, hours, kind, unit)                                          \
	static double name##_allocated(const struct analysis *a, const char **ret_why)  \
	{                                                                               \
		return allocated(a, kind, ret_why);                                     \
	}                                                                               \
	static double hours##_allocated(const struct analysis *a, const char **ret_why) \
	{                                                                               \
		return hours_allocated(a, kind, SECONDS_PER_HOUR * (unit), ret_why);    \
	}                                                                               \
	static double idle_##hours(const struct analysis *a, const char **ret_why)      \
	{                                                                               \
		return idle_hours(a, kind, SECONDS_PER_HOUR * (unit), ret_why);         \
	}
ALLOCATION_OF(cpus, cpu_hours, ALLOCATED_CPUS, 1)
ALLOCATION_OF(memory, gb_hours, ALLOCATED_MEMORY, 1e9)
ALLOCATION_OF(gpus, gpu_hours, ALLOCATED_GPUS, 1)
#undef ALLOCATION_OF

// --- the table

const struct measure measures[N_MEASURES] = {
	[MEASURE_DURATION] = {"duration_seconds", "duration", "s", MEASURE_KIND_SECONDS,
		BETTER_LESS, true, "From the start of the job to its end.", duration},
	[MEASURE_TRAINING] = {"training_seconds", "training time", "s", MEASURE_KIND_SECONDS,
		BETTER_LESS, false,
		"From the start of the first epoch to the end of the last complete epoch.",
		training},
	[MEASURE_EPOCH] = {"epoch_seconds", "epoch time", "s", MEASURE_KIND_SECONDS, BETTER_LESS,
		false, "Mean duration of the complete epochs.", epoch},
	[MEASURE_FIRST_EPOCH] = {"first_epoch_seconds", "first epoch time", "s",
		MEASURE_KIND_SECONDS, BETTER_LESS, false,
		"Duration of the first epoch, with cold caches.", first_epoch_seconds},
	[MEASURE_EPOCHS] = {"epochs_ended", "epochs", "{epoch}", MEASURE_KIND_COUNT, BETTER_NEITHER,
		false, "Number of complete epochs.", epochs},
	[MEASURE_STARTUP] = {"startup_seconds", "start-up", "s", MEASURE_KIND_SECONDS, BETTER_LESS,
		false, "From the start of the job to its first iteration.", startup},
	[MEASURE_SAMPLES_PER_SECOND] = {"samples_per_second", "samples per second", "{sample}/s",
		MEASURE_KIND_RATE, BETTER_MORE, false,
		"Samples trained per second of steady iterations, over all ranks; without "
		"iterations, of the complete epochs.",
		samples_per_second},
	[MEASURE_TOKENS_PER_SECOND] = {"tokens_per_second", "tokens per second", "{token}/s",
		MEASURE_KIND_RATE, BETTER_MORE, false,
		"samples_per_second in tokens, for text batches that contain their number of "
		"tokens (ntokens, nsentences).",
		tokens_per_second},
	[MEASURE_STEP] = {"step_seconds", "step time", "s", MEASURE_KIND_SECONDS, BETTER_LESS,
		false, "Median duration of steady iterations.", step},
	[MEASURE_ITERATIONS] = {"iterations", "iterations", "{iteration}", MEASURE_KIND_COUNT,
		BETTER_NEITHER, false, "Number of recorded iterations.", iterations},
	[MEASURE_CPU_SECONDS] = {"cpu_seconds", "CPU time", "s", MEASURE_KIND_SECONDS, BETTER_LESS,
		true, "CPU time of the whole job.", cpu_seconds},
	[MEASURE_CPUS_USED] = {"cpus_used", "CPUs used", "{cpu}", MEASURE_KIND_NUMBER,
		BETTER_NEITHER, true, "CPU time of the whole job divided by its duration.",
		cpus_used},
	[MEASURE_CPU_UTILIZATION] = {"cpu_utilization", "CPU utilisation", "%",
		MEASURE_KIND_PERCENT, BETTER_NEITHER, true,
		"CPU time divided by duration, in per cent of one CPU; above 100 if several CPUs "
		"are used.",
		cpu_utilization},
	[MEASURE_HOST_MEMORY_PEAK] = {"host_memory_peak", "host memory, peak", "By",
		MEASURE_KIND_BYTES, BETTER_LESS, true,
		"Peak host memory of the job. Pages shared by its processes count once.",
		host_memory_peak},
	[MEASURE_HOST_MEMORY_MEAN] = {"host_memory_mean", "host memory, mean", "By",
		MEASURE_KIND_BYTES, BETTER_LESS, true, "Mean host memory of the job.",
		host_memory_mean},
	[MEASURE_GPU_UTILIZATION] = {"gpu_utilization", "GPU utilisation", "%",
		MEASURE_KIND_PERCENT, BETTER_MORE, false,
		"Share of time with a kernel on the GPU, mean over the job's GPUs.",
		gpu_utilization},
	[MEASURE_GPU_MEMORY_UTILIZATION] = {"gpu_memory_utilization", "GPU memory in use", "%",
		MEASURE_KIND_PERCENT, BETTER_NEITHER, false,
		"Peak memory in use as a share of the memory of the GPU, mean over the job's GPUs.",
		gpu_memory_utilization},
	[MEASURE_DEVICE_MEMORY_PEAK] = {"device_memory_peak", "device memory, peak", "By",
		MEASURE_KIND_BYTES, BETTER_LESS, false,
		"Peak memory in use, summed over the job's GPUs.", device_memory_peak},
	[MEASURE_GPU_POWER] = {"gpu_power", "GPU power", "W", MEASURE_KIND_WATTS, BETTER_LESS,
		false, "Mean power, summed over the job's GPUs.", gpu_power},
	[MEASURE_GPU_ENERGY] = {"gpu_energy", "GPU energy", "J", MEASURE_KIND_JOULES, BETTER_LESS,
		false, "Energy of the job's GPUs during the run.", gpu_energy},
	[MEASURE_READ_BYTES] = {"read_bytes", "read", "By", MEASURE_KIND_BYTES, BETTER_NEITHER,
		true, "Bytes that the job read through system calls.", read_bytes},
	[MEASURE_DISK_READ_BYTES] = {"disk_read_bytes", "read from storage", "By",
		MEASURE_KIND_BYTES, BETTER_LESS, true,
		"Bytes read from storage, because they were not in the page cache.",
		disk_read_bytes},
	[MEASURE_DISK_WRITE_BYTES] = {"disk_write_bytes", "written to storage", "By",
		MEASURE_KIND_BYTES, BETTER_LESS, true, "Bytes written to storage.",
		disk_write_bytes},
	[MEASURE_DATA_SHARE] = {"data_share", "waiting for data", "%", MEASURE_KIND_PERCENT,
		BETTER_LESS, false,
		"Share of an iteration in which the training thread waits for its batch.",
		data_share},
	[MEASURE_TRANSFER_SHARE] = {"transfer_share", "transfer", "%", MEASURE_KIND_PERCENT,
		BETTER_LESS, false, "Share of an iteration spent copying to the device.",
		transfer_share},
	[MEASURE_FORWARD_SHARE] = {"forward_share", "forward", "%", MEASURE_KIND_PERCENT,
		BETTER_NEITHER, false, "Share of an iteration spent in the forward pass.",
		forward_share},
	[MEASURE_BACKWARD_SHARE] = {"backward_share", "backward", "%", MEASURE_KIND_PERCENT,
		BETTER_NEITHER, false, "Share of an iteration spent in the backward pass.",
		backward_share},
	[MEASURE_OPTIMIZER_SHARE] = {"optimizer_share", "optimizer", "%", MEASURE_KIND_PERCENT,
		BETTER_NEITHER, false, "Share of an iteration spent in the optimizer step.",
		optimizer_share},
	[MEASURE_COMMUNICATION_SHARE] = {"communication_share", "communication", "%",
		MEASURE_KIND_PERCENT, BETTER_LESS, false,
		"Share of an iteration spent waiting for other ranks, if it is marked.",
		communication_share},
	[MEASURE_STEP_SHARE] = {"step_share", "opaque step", "%", MEASURE_KIND_PERCENT,
		BETTER_NEITHER, false,
		"Share of an iteration spent in steps that cannot be divided into phases (JAX, "
		"Keras).",
		step_share},
	[MEASURE_OTHER_SHARE] = {"other_share", "other", "%", MEASURE_KIND_PERCENT, BETTER_LESS,
		false, "Share of an iteration outside all phases.", other_share},
	[MEASURE_RECORDER_CPU] = {"recorder_cpu", "cost of recording", "%", MEASURE_KIND_PERCENT,
		BETTER_LESS, false, "CPU time of the recorder, in per cent of one CPU.",
		recorder_cpu},
	[MEASURE_HOST_ENERGY] = {"host_energy", "host energy", "J", MEASURE_KIND_JOULES,
		BETTER_LESS, false,
		"Energy of the machine's processors and memory during the run, by all programs "
		"(RAPL).",
		host_energy},
	[MEASURE_ENERGY] = {"energy", "energy", "J", MEASURE_KIND_JOULES, BETTER_LESS, false,
		"host_energy plus gpu_energy. Excludes the rest of the machine (disks, fans, "
		"losses of its power supply).",
		energy},
	[MEASURE_CPUS_ALLOCATED] = {"cpus_allocated", "CPUs allocated", "{cpu}",
		MEASURE_KIND_NUMBER, BETTER_LESS, true,
		"CPUs that the job was allocated: the smallest of CPU affinity, quota, Slurm's "
		"share and the machine.",
		cpus_allocated},
	[MEASURE_CPU_HOURS_ALLOCATED] = {"cpu_hours_allocated", "CPU hours allocated", "h",
		MEASURE_KIND_NUMBER, BETTER_LESS, true, "cpus_allocated times duration.",
		cpu_hours_allocated},
	[MEASURE_IDLE_CPU_HOURS] = {"idle_cpu_hours", "CPU hours idle", "h", MEASURE_KIND_NUMBER,
		BETTER_LESS, true, "CPU hours allocated but not used, in the recorded time.",
		idle_cpu_hours},
	[MEASURE_MEMORY_ALLOCATED] = {"memory_allocated", "memory allocated", "By",
		MEASURE_KIND_BYTES, BETTER_LESS, true,
		"Host memory that the job was allocated: the smallest of the limit of its cgroup, "
		"Slurm's share and the machine.",
		memory_allocated},
	[MEASURE_GB_HOURS_ALLOCATED] = {"gb_hours_allocated", "GB hours allocated", "GBy.h",
		MEASURE_KIND_NUMBER, BETTER_LESS, true,
		"memory_allocated times duration, in 10^9 bytes.", gb_hours_allocated},
	[MEASURE_IDLE_GB_HOURS] = {"idle_gb_hours", "GB hours idle", "GBy.h", MEASURE_KIND_NUMBER,
		BETTER_LESS, true,
		"GB hours allocated but not used (host_memory_mean), in the recorded time.",
		idle_gb_hours},
	[MEASURE_GPUS_ALLOCATED] = {"gpus_allocated", "GPUs allocated", "{gpu}",
		MEASURE_KIND_NUMBER, BETTER_LESS, false,
		"GPUs that the job was allocated: the smaller of the number that it may use and "
		"Slurm's share.",
		gpus_allocated},
	[MEASURE_GPU_HOURS_ALLOCATED] = {"gpu_hours_allocated", "GPU hours allocated", "h",
		MEASURE_KIND_NUMBER, BETTER_LESS, false, "gpus_allocated times duration.",
		gpu_hours_allocated},
	[MEASURE_IDLE_GPU_HOURS] = {"idle_gpu_hours", "GPU hours idle", "h", MEASURE_KIND_NUMBER,
		BETTER_LESS, false,
		"GPU hours allocated while no kernel ran on the job's GPUs, in the recorded time.",
		idle_gpu_hours},
	[MEASURE_COST] = {"cost", "cost", "{money}", MEASURE_KIND_MONEY, BETTER_LESS, false,
		"--prices: cost of the resources that the job held, from its start to its end.",
		NULL},
	[MEASURE_IDLE_COST] = {"idle_cost", "idle cost", "{money}", MEASURE_KIND_MONEY, BETTER_LESS,
		false, "--prices: cost of the resources that the job held but did not use.", NULL},
	[MEASURE_COST_PER_EPOCH] = {"cost_per_epoch", "cost of an epoch", "{money}",
		MEASURE_KIND_MONEY, BETTER_LESS, false, "--prices: cost of epoch_seconds.", NULL},
	[MEASURE_COST_PER_MILLION_SAMPLES] = {"cost_per_million_samples",
		"cost of a million samples", "{money}", MEASURE_KIND_MONEY, BETTER_LESS, false,
		"--prices: cost of a million samples at samples_per_second.", NULL},
	[MEASURE_SAMPLES_PER_COST] = {"samples_per_cost", "samples per unit of cost",
		"{sample}/{money}", MEASURE_KIND_NUMBER, BETTER_MORE, false,
		"--prices: samples trained for one unit of the currency, at samples_per_second.",
		NULL},
	[MEASURE_COST_TO_LOSS] = {"cost_to_loss", "cost to validation", "{money}",
		MEASURE_KIND_MONEY, BETTER_LESS, false,
		"--prices, strain advise --validate: cost of validation_seconds, until "
		"validation_loss.",
		NULL},
	[MEASURE_LARGEST_BATCH] = {"largest_batch", "largest batch size", "{sample}",
		MEASURE_KIND_COUNT, BETTER_MORE, true,
		"strain advise: largest batch size that fits: the largest that ran; if runs of one "
		"size need different amounts of memory, the largest that passes in nine of ten "
		"runs; if none ran, the estimate.",
		NULL},
	[MEASURE_LARGEST_BATCH_LOW] = {"largest_batch_low", "largest batch size, low", "{sample}",
		MEASURE_KIND_COUNT, BETTER_MORE, true,
		"strain advise: lower end of the interval of largest_batch.", NULL},
	[MEASURE_LARGEST_BATCH_HIGH] = {"largest_batch_high", "largest batch size, high",
		"{sample}", MEASURE_KIND_COUNT, BETTER_MORE, true,
		"strain advise: upper end of the interval of largest_batch.", NULL},
	[MEASURE_LARGEST_BATCH_ESTIMATE] = {"largest_batch_estimate",
		"largest batch size, estimated", "{sample}", MEASURE_KIND_COUNT, BETTER_MORE, true,
		"strain advise: batch size at which the predicted memory reaches the limit.", NULL},
	[MEASURE_LARGEST_BATCH_VERIFIED] = {"largest_batch_verified", "largest batch size that ran",
		"{sample}", MEASURE_KIND_COUNT, BETTER_MORE, true,
		"strain advise: largest batch size that ran within the limit.", NULL},
	[MEASURE_LARGEST_BATCH_ERROR] = {"largest_batch_error", "error of the estimate", "%",
		MEASURE_KIND_PERCENT, BETTER_LESS, true,
		"strain advise: difference between largest_batch_estimate and "
		"largest_batch_verified, relative to the latter.",
		NULL},
	[MEASURE_LARGEST_BATCH_SECONDS] = {"largest_batch_seconds",
		"time to find the largest batch", "s", MEASURE_KIND_SECONDS, BETTER_LESS, true,
		"strain advise: duration of the runs that estimated and verified the largest "
		"batch size.",
		NULL},
	[MEASURE_LARGEST_BATCH_THESIS] = {"largest_batch_thesis",
		"largest batch size, Tripathi 2019", "{sample}", MEASURE_KIND_COUNT, BETTER_MORE,
		true,
		"strain advise: largest batch size by the rule of Tripathi 2019, not verified.",
		NULL},
	[MEASURE_WORKERS_THESIS] = {"workers_thesis", "workers that fit, Tripathi 2019", "{worker}",
		MEASURE_KIND_COUNT, BETTER_MORE, true,
		"strain advise: number of workers that fit in memory by the rule of Tripathi "
		"2019.",
		NULL},
	[MEASURE_SECONDS_THESIS] = {"seconds_thesis", "time of the estimate, Tripathi 2019", "s",
		MEASURE_KIND_SECONDS, BETTER_LESS, true,
		"strain advise: duration of the two runs that the rule of Tripathi 2019 needs.",
		NULL},
	[MEASURE_MEMORY_LIMIT] = {"memory_limit", "memory limit", "By", MEASURE_KIND_BYTES,
		BETTER_NEITHER, true,
		"strain advise: memory limit that the largest batch must fit.", NULL},
	[MEASURE_ADVISED_BATCH_SIZE] = {"advised_batch_size", "advised batch size", "{sample}",
		MEASURE_KIND_COUNT, BETTER_NEITHER, true, "strain advise: advised batch size.",
		NULL},
	[MEASURE_ADVISED_WORKERS] = {"advised_workers", "advised workers", "{worker}",
		MEASURE_KIND_COUNT, BETTER_NEITHER, true,
		"strain advise: advised number of loader workers.", NULL},
	[MEASURE_ADVISED_RATE] = {"advised_samples_per_second", "advised samples per second",
		"{sample}/s", MEASURE_KIND_RATE, BETTER_MORE, true,
		"strain advise: samples per second, measured with the advised configuration.",
		NULL},
	[MEASURE_ADVISED_GAIN] = {"advised_gain", "advised gain", "1", MEASURE_KIND_NUMBER,
		BETTER_MORE, true,
		"strain advise: samples per second of the advised configuration, divided by "
		"those of the present one.",
		NULL},
	[MEASURE_ADVISED_MEMORY] = {"advised_memory", "advised memory", "By", MEASURE_KIND_BYTES,
		BETTER_LESS, true,
		"strain advise: peak memory of the advised configuration, of the kind that is "
		"limited.",
		NULL},
	[MEASURE_ADVICE_SECONDS] = {"advice_seconds", "time of the advice", "s",
		MEASURE_KIND_SECONDS, BETTER_LESS, true, "strain advise: duration of all runs.",
		NULL},
	[MEASURE_VALIDATION_LOSS] = {"validation_loss", "validation loss", "1", MEASURE_KIND_NUMBER,
		BETTER_LESS, true,
		"strain advise --validate: validation loss of the present and the advised "
		"configuration after equal numbers of samples.",
		NULL},
	[MEASURE_VALIDATION_ACCURACY] = {"validation_accuracy", "validation accuracy", "1",
		MEASURE_KIND_NUMBER, BETTER_MORE, true,
		"strain advise --validate: validation accuracy at that point, as the job "
		"prints it.",
		NULL},
	[MEASURE_VALIDATION_SECONDS] = {"validation_seconds", "time to validation", "s",
		MEASURE_KIND_SECONDS, BETTER_LESS, true,
		"strain advise --validate: training time until that point.", NULL},
	[MEASURE_OUTCOME] = {"outcome", "outcome", "", MEASURE_KIND_WORDS, BETTER_NEITHER, true,
		"How the job ended: success, stopped, out_of_memory, ...", NULL},
	[MEASURE_VERDICT] = {"verdict", "verdict", "", MEASURE_KIND_WORDS, BETTER_NEITHER, false,
		"Bottleneck of the job: input, compute, cpu, gpu, ...", NULL},
};

enum measure_id measure_by_name(const char *name)
{
	for (size_t i = 0; i < N_MEASURES; i++) {
		if (strcmp(measures[i].name, name) == 0) {
			return (enum measure_id)i;
		}
	}
	return N_MEASURES;
}

bool measure_is_of_advice(enum measure_id measure)
{
	return measure >= MEASURE_LARGEST_BATCH && measure <= MEASURE_VALIDATION_SECONDS;
}

bool measure_is_priced(enum measure_id measure)
{
	return measure >= MEASURE_COST && measure <= MEASURE_COST_TO_LOSS;
}

bool measure_is_speed(enum measure_id measure)
{
	// CPU time is not one of them: a job that needs half of it need not be faster.
	static const enum measure_id speeds[] = {MEASURE_DURATION, MEASURE_TRAINING, MEASURE_EPOCH,
		MEASURE_FIRST_EPOCH, MEASURE_STARTUP, MEASURE_SAMPLES_PER_SECOND, MEASURE_STEP};
	for (size_t i = 0; i < ARRAY_LENGTH(speeds); i++) {
		if (speeds[i] == measure) {
			return true;
		}
	}
	return false;
}

double measure_against(enum measure_id measure, double number, double baseline)
{
	bool is_time = measure_is_speed(measure) && measures[measure].better == BETTER_LESS;
	double times = is_time ? baseline / number : number / baseline;
	return number != 0 && baseline != 0 && isfinite(times) ? times : NAN;
}

void measures_compute(const struct analysis *a, bool job_only, double ret_values[static N_MEASURES],
	const char *ret_reasons[static N_MEASURES])
{
	for (size_t i = 0; i < N_MEASURES; i++) {
		const struct measure *measure = &measures[i];
		ret_values[i] = NAN;
		ret_reasons[i] = NULL;
		if (measure->compute && (measure->job_only || !job_only)) {
			ret_values[i] = measure->compute(a, &ret_reasons[i]);
		}
	}
}
