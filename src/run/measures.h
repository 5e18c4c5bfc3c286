// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Measures of a run: the numbers by which runs are compared, sorted and plotted. A new measure is a
// row of one table and a function.

#pragma once

#include <stdbool.h>
#include <stddef.h>

struct analysis;

enum measure_id {
	MEASURE_DURATION,
	MEASURE_TRAINING,
	MEASURE_EPOCH,
	MEASURE_FIRST_EPOCH,
	MEASURE_EPOCHS,
	MEASURE_STARTUP,
	MEASURE_SAMPLES_PER_SECOND,
	MEASURE_TOKENS_PER_SECOND,
	MEASURE_STEP,
	MEASURE_ITERATIONS,
	MEASURE_CPU_SECONDS,
	MEASURE_CPUS_USED,
	MEASURE_CPU_UTILIZATION,
	MEASURE_HOST_MEMORY_PEAK,
	MEASURE_HOST_MEMORY_MEAN,
	MEASURE_GPU_UTILIZATION,
	MEASURE_GPU_MEMORY_UTILIZATION,
	MEASURE_DEVICE_MEMORY_PEAK,
	MEASURE_GPU_POWER,
	MEASURE_GPU_ENERGY,
	MEASURE_READ_BYTES,
	MEASURE_DISK_READ_BYTES,
	MEASURE_DISK_WRITE_BYTES,
	MEASURE_DATA_SHARE,
	MEASURE_TRANSFER_SHARE,
	MEASURE_FORWARD_SHARE,
	MEASURE_BACKWARD_SHARE,
	MEASURE_OPTIMIZER_SHARE,
	MEASURE_COMMUNICATION_SHARE,
	MEASURE_STEP_SHARE,
	MEASURE_OTHER_SHARE,
	MEASURE_RECORDER_CPU,
	MEASURE_HOST_ENERGY,
	MEASURE_ENERGY,
	MEASURE_CPUS_ALLOCATED,
	MEASURE_CPU_HOURS_ALLOCATED,
	MEASURE_IDLE_CPU_HOURS,
	MEASURE_MEMORY_ALLOCATED,
	MEASURE_GB_HOURS_ALLOCATED,
	MEASURE_IDLE_GB_HOURS,
	MEASURE_GPUS_ALLOCATED,
	MEASURE_GPU_HOURS_ALLOCATED,
	MEASURE_IDLE_GPU_HOURS,
	MEASURE_COST, // from here to MEASURE_COST_TO_LOSS: measure_is_priced
	MEASURE_IDLE_COST,
	MEASURE_COST_PER_EPOCH,
	MEASURE_COST_PER_MILLION_SAMPLES,
	MEASURE_SAMPLES_PER_COST,
	MEASURE_COST_TO_LOSS,
	MEASURE_LARGEST_BATCH, // from here to MEASURE_VALIDATION_SECONDS: measure_is_of_advice
	MEASURE_LARGEST_BATCH_LOW,
	MEASURE_LARGEST_BATCH_HIGH,
	MEASURE_LARGEST_BATCH_ESTIMATE,
	MEASURE_LARGEST_BATCH_VERIFIED,
	MEASURE_LARGEST_BATCH_ERROR,
	MEASURE_LARGEST_BATCH_SECONDS,
	MEASURE_LARGEST_BATCH_THESIS,
	MEASURE_WORKERS_THESIS,
	MEASURE_SECONDS_THESIS,
	MEASURE_MEMORY_LIMIT,
	MEASURE_ADVISED_BATCH_SIZE,
	MEASURE_ADVISED_WORKERS,
	MEASURE_ADVISED_RATE,
	MEASURE_ADVISED_GAIN,
	MEASURE_ADVISED_MEMORY,
	MEASURE_ADVICE_SECONDS,
	MEASURE_VALIDATION_LOSS,
	MEASURE_VALIDATION_ACCURACY,
	MEASURE_VALIDATION_SECONDS,
	MEASURE_OUTCOME, // words: the number is always NAN
	MEASURE_VERDICT,
	N_MEASURES,
};

// The kind of its numbers, which decides their format. Percentages are 0 to 100 (of CPUs: 100 for
// each CPU).
enum measure_kind {
	MEASURE_KIND_SECONDS,
	MEASURE_KIND_BYTES,
	MEASURE_KIND_PERCENT,
	MEASURE_KIND_RATE, // samples per second
	MEASURE_KIND_COUNT, // whole numbers
	MEASURE_KIND_NUMBER,
	MEASURE_KIND_WATTS,
	MEASURE_KIND_JOULES,
	MEASURE_KIND_MONEY, // in the currency of the price list
	MEASURE_KIND_WORDS,
};

enum measure_better { BETTER_NEITHER, BETTER_LESS, BETTER_MORE };

struct measure {
	const char *name; // "epoch_seconds": for options and programs
	const char *title; // "time of an epoch": for people
	const char *unit; // "s", "By", "%", ... as UCUM writes it; "" of words
	enum measure_kind kind;
	enum measure_better better;
	bool job_only; // needs analysis_load_job only
	const char *help; // one sentence
	// Sets *ret_why if it returns NAN: one line, static or owned by the analysis. The text may
	// come from the run: escape it. NULL: words, or the run file does not have it
	// (measure_is_of_advice, measure_is_priced).
	double (*compute)(const struct analysis *a, const char **ret_why);
};

// Indexed by measure_id.
extern const struct measure measures[N_MEASURES];

// Returns N_MEASURES if there is no measure of that name.
enum measure_id measure_by_name(const char *name);

// Whether it is part of an answer of `strain advise`, which is beside the run
// (study/kept_advice.h). It does not depend on the outcome of the run.
bool measure_is_of_advice(enum measure_id measure);

// Whether it needs a price list (study/prices.h). It is never stored, because prices change.
bool measure_is_priced(enum measure_id measure);

// Whether it measures speed, as a time or a rate. Speeds are compared as speed-up (larger is
// better), other measures as ratio.
bool measure_is_speed(enum measure_id measure);
// The speed-up or ratio of a number over that of the baseline; NAN: not known.
double measure_against(enum measure_id measure, double number, double baseline);

// The values of each GPU that the job used, at most `most`, for measures that are a mean over GPUs.
// Returns their number; 0 for other measures.
size_t measure_each_gpu(
	const struct analysis *a, enum measure_id measure, double *ret_values, size_t most);

// Computes all measures. With job_only, computes only those marked so; the others are NAN without a
// reason. Reasons live as long as the analysis.
void measures_compute(const struct analysis *a, bool job_only, double ret_values[static N_MEASURES],
	const char *ret_reasons[static N_MEASURES]);
