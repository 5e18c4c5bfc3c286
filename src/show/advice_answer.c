// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Writes the answer of `strain advise`.

#include "show/advice_answer.h"

#include <inttypes.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/secret.h"
#include "base/text.h"
#include "base/words.h"
#include "probe/placeholders.h"
#include "show/json.h"
#include "show/table.h"

#define VALIDATION_LEAST 0.01 // of an epoch: less is not printed
#define VALIDATION_MORE 1.1 // times the memory of training: it needs the peak
#define READS_LEAST 1e5 // bytes per second from storage: less is not printed
#define WHOLE_EPOCH 0.9 // of its samples: its last and first iterations are not counted
#define WIDTH 100 // of sentences, if the terminal's is not known
#define INDENT "               " // below the word that begins a paragraph

static const char *const limit_words[N_ADVICE_LIMITS] = {
	[ADVICE_LIMIT_REQUESTED] = "--memory",
	[ADVICE_LIMIT_CGROUP] = "the cgroup's limit",
	[ADVICE_LIMIT_ADDRESS_SPACE] = "ulimit -v",
	[ADVICE_LIMIT_GPU] = "GPU memory",
	[ADVICE_LIMIT_MACHINE] = "memory available on this machine",
};

// Files have the whole table.
static struct table_style style_of(FILE *out)
{
	return out == stdout ? table_style_for(out) : (struct table_style){0};
}

// The table of now and advised --------------------------------------------------------------------

enum { ROW_WHAT, ROW_NOW, ROW_ADVISED, ROW_NOTE, N_ROW };

static const struct column row_columns[N_ROW] = {
	[ROW_WHAT] = {"setting", "", COLUMN_LABEL, 0},
	[ROW_NOW] = {"now", "NOW", COLUMN_LABEL, 0},
	[ROW_ADVISED] = {"advised", "ADVISED", COLUMN_LABEL, 0},
	[ROW_NOTE] = {"note", "", COLUMN_LABEL, 1},
};

// "2,077", "77.1"
static void append_number(struct text *t, double value)
{
	char digits[32];
	if (value >= 100 && value < 1e15) {
		text_append_string(t, text_count(digits, sizeof(digits), (uint64_t)(value + 0.5)));
	} else if (isfinite(value)) {
		text_format(t, "%.3g", value);
	}
}

// Of an interval in parentheses.
static const char *mark_of(double low, double high)
{
	return words_is_wide(low, high) ? "; too wide to be useful" : "";
}

static void put_row(struct table *table, const char *what, const struct text *now,
	const struct text *advised, const struct text *note)
{
	if (table_row(table) < 0) {
		return;
	}
	table_text(table, ROW_WHAT, what);
	table_text(table, ROW_NOW, now->data);
	table_text(table, ROW_ADVISED, advised->data);
	table_text(table, ROW_NOTE, note->data ? note->data : "");
}

static void put_integers(struct table *table, const char *what, int64_t now, int64_t advised)
{
	_cleanup_text_ struct text left = {0}, right = {0}, note = {0};
	if (now >= 0) {
		text_format(&left, "%" PRId64, now);
	}
	if (advised >= 0) {
		text_format(&right, "%" PRId64, advised);
	}
	put_row(table, what, &left, &right, &note);
}

static void put_rate(struct table *table, const struct advice *a)
{
	_cleanup_text_ struct text now = {0}, advised = {0}, note = {0};
	append_number(&now, a->now->seen.rate.value);
	if (a->again) {
		text_append_string(&now, " and ");
		append_number(&now, a->again->seen.rate.value);
	}
	if (a->measured && !a->keep) {
		append_number(&advised, a->measured->seen.rate.value);
		text_format(&note, "%.2f times", a->gain.value);
		if (isfinite(a->gain.low) && isfinite(a->gain.high)) {
			text_format(&note, " (%.2f to %.2f%s)", a->gain.low, a->gain.high,
				mark_of(a->gain.low, a->gain.high));
		}
		text_append_string(&note, "; predicted ");
		append_number(&note, a->predicted.rate.value);
	} else if (a->keep) {
		append_number(&advised, advice_present_rate(a).value);
	} else if (a->batch_size > 0) {
		append_number(&advised, a->predicted.rate.value);
		text_append_string(&note, "predicted, not tried (");
		append_number(&note, a->predicted.rate.low);
		text_append_string(&note, " to ");
		append_number(&note, a->predicted.rate.high);
		text_format(&note, "%s)", mark_of(a->predicted.rate.low, a->predicted.rate.high));
	}
	put_row(table, "samples/s", &now, &advised, &note);
}

// Bytes of what is limited, as the run of the advised configuration measured it.
static double advised_bytes(const struct advice *a)
{
	if (!a->measured) {
		return NAN;
	}
	switch (a->limit_kind) {
	case ADVICE_LIMIT_GPU:
		return observation_gpu_needed(&a->measured->seen);
	case ADVICE_LIMIT_ADDRESS_SPACE:
		return a->measured->virtual_bytes;
	default:
		return observation_held(&a->measured->seen);
	}
}

static void put_memory(struct table *table, const struct advice *a)
{
	_cleanup_text_ struct text now = {0}, advised = {0}, note = {0};
	char bytes[32];
	double measured = a->keep ? a->now_bytes : advised_bytes(a);
	double shown = isfinite(measured) ? measured : a->bytes_predicted;
	if (isfinite(a->now_bytes)) {
		text_append_string(&now, text_bytes(bytes, sizeof(bytes), a->now_bytes));
	}
	if (isfinite(shown)) {
		text_append_string(&advised, text_bytes(bytes, sizeof(bytes), shown));
	}
	text_format(&note, "of %s (%s)", text_bytes(bytes, sizeof(bytes), a->limit_bytes),
		limit_words[a->limit_kind]);
	put_row(table, "memory", &now, &advised, &note);
}

static int64_t present_batch(const struct advice *a)
{
	return a->now->seen.batch_size > 0 ? a->now->seen.batch_size
	                                   : a->now->seen.loader_batch_size;
}

static void put_advised_settings(struct table *table, const struct advice *a)
{
	_cleanup_text_ struct text none = {0}, advised = {0}, note = {0};
	if (a->settings.n > 0) {
		setting_append(&advised, &a->settings);
		text_format(&note, "alone %.2f times (%.2f to %.2f%s)", a->settings_gain.value,
			a->settings_gain.low, a->settings_gain.high,
			mark_of(a->settings_gain.low, a->settings_gain.high));
		put_row(table, "settings", &none, &advised, &note);
	}
}

static void print_settings(FILE *out, const struct advice *a)
{
	struct table *table = NULL;
	struct table_style style = style_of(out);
	if (table_new(row_columns, N_ROW, &table) < 0) {
		return;
	}
	put_integers(table, "batch_size", present_batch(a), a->batch_size);
	if (a->now->seen.workers >= 0 || a->workers >= 0) { // a job with a loader
		put_integers(table, "workers", a->now->seen.workers, a->workers);
	}
	put_advised_settings(table, a);
	put_rate(table, a);
	put_memory(table, a);
	table_print(table, out, &style);
	table_free(table);
}

// Paragraphs --------------------------------------------------------------------------------------

static void print_leak(FILE *out, const struct advice *a)
{
	double leak = a->now->seen.leak_per_iteration;
	char bytes[32];
	if (leak > 0) {
		fprintf(out,
			"memory grows   by %s in each iteration (a leak, or a cache that fills)",
			text_bytes(bytes, sizeof(bytes), leak));
		if (isfinite(a->lasts)) {
			double samples = a->lasts * (double)present_batch(a);
			double epochs = samples / a->now->seen.epoch_samples;
			fprintf(out,
				": at this rate the limit is reached after about %.0f "
				"iterations",
				a->lasts);
			if (epochs >= 0.1) {
				fprintf(out, " (%.2g epochs)", epochs);
			}
		}
		fputc('\n', out);
		if (a->reserve_bytes > a->validation_bytes) {
			fprintf(out,
				INDENT "memory below is that after one epoch: %s more than at its "
				       "beginning; if it grows further, no batch size fits for "
				       "long\n",
				text_bytes(bytes, sizeof(bytes),
					a->reserve_bytes - a->validation_bytes));
		}
	}
	if (a->validation_bytes > 0) {
		fprintf(out,
			"validation     keeps memory for each batch: a full pass needs %s more "
			"than the shortened passes of the probes; this is added below\n",
			text_bytes(bytes, sizeof(bytes), a->validation_bytes));
	}
}

// -1: not known.
static int64_t present_workers(const struct advice *a)
{
	return a->now ? a->now->seen.workers : -1;
}

// Those of the job: more or fewer need more or less memory.
static void print_with_workers(FILE *out, const struct advice *a)
{
	int64_t workers = present_workers(a);
	if (workers == 0) {
		fputs(" without workers", out);
	} else if (workers > 0) {
		fprintf(out, " with %" PRId64 " worker%s", workers, workers == 1 ? "" : "s");
	}
}

// Whether a smaller batch size than that which ran is answered.
static bool is_below_run(const struct advice *a)
{
	return a->verified_batch > 0 && a->largest.value < (double)a->verified_batch;
}

// What ran, after the answer where that is smaller.
static void print_ran(FILE *out, const struct advice *a)
{
	if (is_below_run(a)) {
		fprintf(out,
			"%.0f fits with 90 %% probability, %.0f with 98 %%; %" PRId64 " ran once",
			a->largest.value, a->largest.low, a->verified_batch);
	} else {
		fprintf(out, "%" PRId64 " ran", a->verified_batch);
	}
}

// What was verified, if anything, and where the line meets the limit.
static void print_found(FILE *out, const struct advice *a)
{
	char bytes[32];
	text_bytes(bytes, sizeof(bytes), a->limit_bytes);
	if (a->verified_batch < 1) {
		fprintf(out, "%.0f", a->largest.low);
		if (a->largest.high > a->largest.low) {
			fprintf(out, " to %.0f", a->largest.high);
		}
	} else if (a->verified == ADVICE_UNDER_LIMIT) {
		print_ran(out, a);
		fprintf(out, " under the limit of %s", bytes);
	} else {
		print_ran(out, a);
		fprintf(out, ", and its peak stayed below %s", bytes);
	}
	print_with_workers(out, a);
	if (a->verified_batch < 1) {
		fprintf(out, ", not verified%s", mark_of(a->largest.low, a->largest.high));
		if (!isfinite(a->now->seen.epoch_samples)) {
			fputs("; the number of samples in the data is unknown", out);
		}
	}
	if (a->verified_batch > 0 && a->verified_long) {
		if (a->verified_epoch < WHOLE_EPOCH) {
			fprintf(out, ", also for %s of a full-length epoch",
				text_percent(bytes, sizeof(bytes), a->verified_epoch));
		} else {
			fprintf(out, ", also %swith full-length epochs",
				isfinite(a->verified_epoch) ? "" : "for some seconds ");
		}
	}
	if (a->verified_missing) {
		fprintf(out, "; %s", a->verified_missing);
	}
	if (a->failed_batch > 0) {
		fprintf(out, "; %" PRId64 " did not fit", a->failed_batch);
	} else if (a->verified_batch > 0 && a->largest.high > a->largest.value) {
		bool wide = words_is_wide(a->largest.value, a->largest.high);
		fprintf(out, "; up to %.0f %s", a->largest.high,
			wide              ? "may fit, but this interval is too wide to be useful"
			: is_below_run(a) ? "may fit"
					  : "should fit");
	}
	if (a->largest_open && !a->whole_epoch) {
		fputs("; larger ones may fit, because memory does not grow with the batch size up "
		      "to this one",
			out);
	}
	if (a->whole_epoch) {
		fputs("; this is a whole epoch", out);
	}
	fputc('\n', out);
}

// Whether samples differ in size, and if so, what that says of the largest batch.
static void print_sizes(FILE *out, const struct advice *a)
{
	const struct sample_sizes *s = &a->now->seen.sizes, *unchosen = &a->now->seen.unchosen;
	if (s->looked > 0) {
		fprintf(out,
			INDENT "samples differ in size: the largest has %.3g times the elements of "
			       "the median one; each run began with a batch of the largest of ",
			s->largest / s->median);
		if (s->of > s->looked) {
			fprintf(out,
				"%" PRId64 " of %" PRId64
				" samples: a larger one may need more memory\n",
				s->looked, s->of);
		} else {
			fprintf(out, "%s%" PRId64 " samples\n", s->of < 0 ? "" : "all ", s->looked);
		}
	} else if (unchosen->looked > 0) {
		fprintf(out,
			INDENT "batches differ in size: the largest of %" PRId64
			       " had %.3g times the elements per sample "
			       "of the median one; a larger one may need more memory\n",
			unchosen->looked, unchosen->largest / unchosen->median);
	}
}

static void print_line(FILE *out, const struct advice *a)
{
	char intercept[32], slope[32];
	const struct memory_model *m = &a->memory;
	fputs(INDENT "memory: ", out);
	if (m->intercept > 0) {
		fprintf(out, "%s + ", text_bytes(intercept, sizeof(intercept), m->intercept));
	}
	fprintf(out, "%s per sample, from %zu runs with batch sizes %.0f to %.0f",
		text_bytes(slope, sizeof(slope), m->slope), m->used, m->batch_min, m->batch_max);
	if (m->left_out > 0) {
		fprintf(out, " (excluding %zu smaller, not on this line)", m->left_out);
	}
	fputc('\n', out);
	if (!a->pinned && a->limit_kind != ADVICE_LIMIT_GPU) {
		fputs(INDENT
			"with the default allocator the peak varies by a few per cent from run to "
			"run, so that a batch that ran once may fail; MALLOC_MMAP_THRESHOLD_=65536 "
			"makes it reproducible, and often lower\n",
			out);
	}
}

// Validation may have a batch size of its own, which no probe changes.
static void print_validation(FILE *out, const struct advice *a)
{
	char validation[32], training[32];
	double most = a->now->seen.validation_peak, other = a->now->seen.training_peak;
	bool host = a->limit_kind != ADVICE_LIMIT_GPU &&
	            a->limit_kind != ADVICE_LIMIT_ADDRESS_SPACE;
	if (host && most > VALIDATION_MORE * other) {
		fprintf(out,
			INDENT "the peak is in validation: %s of the processes' own memory, in "
			       "training %s; "
			       "use smaller batches in the validation loader\n",
			text_bytes(validation, sizeof(validation), most),
			text_bytes(training, sizeof(training), other));
	}
}

static void print_largest(FILE *out, const struct advice *a)
{
	char bytes[32], least[32];
	fprintf(out, "largest batch  ");
	if (a->largest_missing) {
		fprintf(out, "not known: %s\n", a->largest_missing);
	} else if (a->nothing_fits) {
		fprintf(out, "nothing fits in %s: a batch size of 1 needs %s\n",
			text_bytes(bytes, sizeof(bytes), a->limit_bytes),
			text_bytes(least, sizeof(least), memory_model_bytes(&a->memory, 1).value));
		print_validation(out, a);
	} else {
		print_found(out, a);
	}
	if (a->has_memory && !a->memory.flat) {
		print_line(out, a);
	}
	print_sizes(out, a);
}

static void print_workers(FILE *out, const struct advice *a)
{
	char own[32], shared[32];
	if (a->workers_missing) {
		fprintf(out, "workers        unchanged: %s\n", a->workers_missing);
	}
	if (!isfinite(a->worker_bytes)) {
		return;
	}
	fprintf(out, "per worker     %s", text_bytes(own, sizeof(own), a->worker_bytes));
	double batches = a->worker_shared * (double)present_batch(a);
	if (batches > 0) {
		fprintf(out, ", and %s in /dev/shm at the present batch size",
			text_bytes(shared, sizeof(shared), batches));
	}
	fputc('\n', out);
	if (a->worker_copies > 0) {
		fprintf(out,
			INDENT
			"together, the workers keep %s of old copies of the training "
			"process's pages (parameters, optimizer state); without workers, none\n",
			text_bytes(own, sizeof(own), a->worker_copies));
	}
}

enum {
	CPUS_CPUS,
	CPUS_RATE,
	CPUS_LOW,
	CPUS_HIGH,
	CPUS_BATCH,
	CPUS_WORKERS,
	CPUS_BOUND,
	CPUS_NOTE,
	N_CPUS
};

static const struct column cpus_columns[N_CPUS] = {
	[CPUS_CPUS] = {"cpus", "CPUS", COLUMN_WHOLE, 0},
	[CPUS_RATE] = {"rate", "SAMPLES/S", COLUMN_NUMBER, 0},
	[CPUS_LOW] = {"rate_low", "FROM", COLUMN_NUMBER, 1},
	[CPUS_HIGH] = {"rate_high", "TO (90 %)", COLUMN_NUMBER, 1},
	[CPUS_BATCH] = {"batch_size", "BATCH SIZE", COLUMN_WHOLE, 0},
	[CPUS_WORKERS] = {"workers", "WORKERS", COLUMN_WHOLE, 0},
	[CPUS_BOUND] = {"limited_by", "LIMITED BY", COLUMN_LABEL, 2},
	[CPUS_NOTE] = {NULL, "", COLUMN_LABEL, 0},
};

static struct table *cpus_table(const struct advice *a)
{
	struct table *table = NULL;
	if (table_new(cpus_columns, N_CPUS, &table) < 0) {
		return NULL;
	}
	for (size_t i = 0; i < a->n_by_cpus && table_row(table) == 0; i++) {
		const struct rate_prediction *at = &a->by_cpus[i].at;
		table_number(table, CPUS_CPUS, a->by_cpus_cpus[i]);
		table_number(table, CPUS_RATE, at->rate.value);
		table_number(table, CPUS_LOW, at->rate.low);
		table_number(table, CPUS_HIGH, at->rate.high);
		table_number(table, CPUS_BATCH, (double)a->by_cpus[i].batch_size);
		int64_t workers = a->by_cpus[i].workers;
		table_number(table, CPUS_WORKERS, workers >= 0 ? (double)workers : NAN);
		table_text(table, CPUS_BOUND, rate_bound_name(at->bound));
		table_wide(table, CPUS_NOTE, at->rate.low, at->rate.high);
	}
	return table;
}

enum {
	BATCH_SIZE,
	BATCH_WORKERS,
	BATCH_RATE,
	BATCH_LOW,
	BATCH_HIGH,
	BATCH_MEMORY,
	BATCH_NOTE,
	N_BATCH
};

static const struct column batch_columns[N_BATCH] = {
	[BATCH_SIZE] = {"batch_size", "BATCH SIZE", COLUMN_WHOLE, 0},
	[BATCH_WORKERS] = {"workers", "WORKERS", COLUMN_WHOLE, 0},
	[BATCH_RATE] = {"rate", "SAMPLES/S", COLUMN_NUMBER, 0},
	[BATCH_LOW] = {"rate_low", "FROM", COLUMN_NUMBER, 1},
	[BATCH_HIGH] = {"rate_high", "TO (90 %)", COLUMN_NUMBER, 1},
	[BATCH_MEMORY] = {"memory", "MEMORY", COLUMN_BYTES, 0},
	[BATCH_NOTE] = {NULL, "", COLUMN_LABEL, 0},
};

static struct table *batch_table(const struct advice *a)
{
	struct table *table = NULL;
	if (table_new(batch_columns, N_BATCH, &table) < 0) {
		return NULL;
	}
	for (size_t i = 0; i < a->n_by_batch && table_row(table) == 0; i++) {
		const struct advice_choice *c = &a->by_batch[i];
		table_number(table, BATCH_SIZE, (double)c->batch_size);
		table_number(table, BATCH_WORKERS, c->workers >= 0 ? (double)c->workers : NAN);
		table_number(table, BATCH_RATE, c->at.rate.value);
		table_number(table, BATCH_LOW, c->at.rate.low);
		table_number(table, BATCH_HIGH, c->at.rate.high);
		table_number(table, BATCH_MEMORY, a->by_batch_bytes[i]);
		table_wide(table, BATCH_NOTE, c->at.rate.low, c->at.rate.high);
	}
	return table;
}

static void print_batches(FILE *out, const struct advice *a)
{
	struct table *table = batch_table(a);
	struct table_style style = style_of(out);
	if (table && a->n_by_batch > 1) {
		fputc('\n', out);
		table_print(table, out, &style);
	}
	table_free(table);
}

static void print_cpus(FILE *out, const struct advice *a)
{
	struct table *table = cpus_table(a);
	struct table_style style = style_of(out);
	if (table && a->n_by_cpus > 1) {
		fputc('\n', out);
		table_print(table, out, &style);
		if (a->by_cpus_cpus[a->n_by_cpus - 1] > a->cpus) {
			fprintf(out, "more than %u CPUs: extrapolated beyond the observed range\n",
				a->cpus);
		}
	}
	table_free(table);
}

// The advised command line, with the variables of advised settings before it.
enum {
	CURVE_AT,
	CURVE_BATCH,
	CURVE_LEARNING_RATE,
	CURVE_SAMPLES,
	CURVE_SECONDS,
	CURVE_LOSS,
	CURVE_ACCURACY,
	N_CURVE
};

static const struct column curve_columns[N_CURVE] = {
	[CURVE_AT] = {"at_equal", "AT EQUAL", COLUMN_LABEL, 0},
	[CURVE_BATCH] = {"batch_size", "BATCH SIZE", COLUMN_WHOLE, 0},
	[CURVE_LEARNING_RATE] = {"learning_rate", "LEARNING RATE", COLUMN_NUMBER, 2},
	[CURVE_SAMPLES] = {"samples", "SAMPLES", COLUMN_WHOLE, 0},
	[CURVE_SECONDS] = {"seconds", "TIME", COLUMN_SECONDS, 0},
	[CURVE_LOSS] = {"loss", "LOSS", COLUMN_NUMBER, 0},
	[CURVE_ACCURACY] = {"accuracy", "ACCURACY", COLUMN_NUMBER, 0},
};

static void put_curve_point(struct table *table, const char *at, const struct advice_curve *c,
	const struct curve_point *p)
{
	if (!p || table_row(table) < 0) {
		return;
	}
	table_text(table, CURVE_AT, at);
	table_number(table, CURVE_BATCH, (double)c->probe->seen.batch_size);
	table_number(table, CURVE_LEARNING_RATE, c->learning_rate > 0 ? c->learning_rate : NAN);
	table_number(table, CURVE_SAMPLES, p->samples);
	table_number(table, CURVE_SECONDS, p->seconds);
	table_number(table, CURVE_LOSS, p->loss);
	table_number(table, CURVE_ACCURACY, p->accuracy);
}

// The present and the advised configuration after equal samples, and after equal time. NULL: there
// are no curves.
static struct table *curves_table(const struct advice *a)
{
	const struct advice_curve *now = &a->curves[0], *advised = &a->curves[1];
	struct table *table = NULL;
	if (!now->probe || !advised->probe || now->curve.n == 0 || advised->curve.n == 0 ||
		table_new(curve_columns, N_CURVE, &table) < 0) {
		return NULL;
	}
	const struct curve_point *one = &now->curve.points[now->curve.n - 1];
	const struct curve_point *other = &advised->curve.points[advised->curve.n - 1];
	double samples = fmin(one->samples, other->samples);
	double seconds = fmin(one->seconds, other->seconds);
	put_curve_point(table, "samples", now, curve_at_samples(&now->curve, samples));
	put_curve_point(table, "samples", advised, curve_at_samples(&advised->curve, samples));
	put_curve_point(table, "time", now, curve_at_seconds(&now->curve, seconds));
	put_curve_point(table, "time", advised, curve_at_seconds(&advised->curve, seconds));
	return table;
}

static void print_curves(FILE *out, const struct advice *a)
{
	struct table *table = curves_table(a);
	struct table_style style = style_of(out);
	if (table) {
		fputc('\n', out);
		table_print(table, out, &style);
	} else if (a->curves_missing) {
		fprintf(out, "convergence    not compared: %s\n", a->curves_missing);
	}
	table_free(table);
}

static void append_command(
	struct text *t, const struct advice *a, const struct advice_config *config)
{
	const struct placeholder_values values = {
		a->batch_size, a->workers, a->curves[1].learning_rate};
	char **command = placeholders_fill(config->command, &values);
	for (size_t i = 0; i < a->settings.n; i++) {
		if (a->settings.items[i].kind == SETTING_ENVIRONMENT) {
			text_format(t, "%s ", a->settings.items[i].value);
		}
	}
	for (char **word = command; word && *word; word++) {
		text_append_string(t, word == command ? "" : " ");
		text_append_word(t, *word);
	}
	placeholders_free(command);
}

static bool has_placeholder(const struct advice_config *config, enum placeholder which)
{
	double unused;
	return placeholders_has(config->command, which, &unused);
}

// "batch_size=64, num_workers=2, pin_memory=True", in the words of the library that creates the
// loader, without what the command sets.
static void append_loader(
	struct text *t, const struct advice *a, const struct advice_config *config)
{
	const struct loader_words *words = a->now->seen.loader_words;
	if (!has_placeholder(config, PLACEHOLDER_BATCH_SIZE)) {
		text_format(t, "%s=%" PRId64, words->batch_size, a->batch_size);
	}
	if (!has_placeholder(config, PLACEHOLDER_WORKERS) && a->workers >= 0) {
		text_format(
			t, "%s%s=%" PRId64, t->length > 0 ? ", " : "", words->workers, a->workers);
	}
	for (size_t i = 0; i < a->settings.n; i++) {
		const struct setting *s = &a->settings.items[i];
		bool flag = s->kind == SETTING_PIN || s->kind == SETTING_PERSISTENT;
		const char *word = setting_word(words, s->kind);
		if (word && s->kind != SETTING_ENVIRONMENT && s->kind != SETTING_FLUSH_DENORMAL) {
			text_format(t, "%s%s=%s", t->length > 0 ? ", " : "", word,
				!flag                        ? s->value
				: strcmp(s->value, "1") == 0 ? "True"
							     : "False");
		}
	}
}

// Whether the script must change, because its command does not set all that is advised.
static bool changes_script(const struct advice *a, const struct advice_config *config)
{
	bool changes = (a->batch_size != present_batch(a) &&
			       !has_placeholder(config, PLACEHOLDER_BATCH_SIZE)) ||
	               (a->workers != a->now->seen.workers &&
			       !has_placeholder(config, PLACEHOLDER_WORKERS));
	for (size_t i = 0; i < a->settings.n; i++) {
		changes = changes || a->settings.items[i].kind != SETTING_ENVIRONMENT;
	}
	return changes;
}

// What the run with another number of workers showed.
static void print_other_workers(FILE *out, const struct advice *a)
{
	for (size_t i = 0; i < a->n; i++) {
		const struct advice_probe *p = &a->probes[i];
		_cleanup_text_ struct text rate = {0};
		if (p->step == ADVICE_WORKERS && !p->apart && !p->failed &&
			p->seen.rate.value > 0 && p->seen.workers >= 0) {
			append_number(&rate, p->seen.rate.value);
			fprintf(out, "; with %" PRId64 " worker%s the job trained %s samples/s",
				p->seen.workers, p->seen.workers == 1 ? "" : "s",
				rate.data ? rate.data : "");
		}
	}
}

// Of which others the rate was predicted; why not of all.
static void print_compared(FILE *out, const struct advice *a)
{
	const char *early = a->interrupted   ? "interrupted"
	                    : a->out_of_time ? "the time ran out"
	                                     : NULL;
	const char *keep = "advice         keep the present configuration: ";
	if (a->compared_batches) {
		fprintf(out, "%sno other configuration is predicted to be 3 %% faster", keep);
		if (a->compared_most < a->largest.value) {
			fprintf(out,
				" (up to %.0f: larger ones leave fewer than %d steps in an epoch)",
				a->compared_most, ADVICE_EPOCH_STEPS);
		}
		print_other_workers(out, a);
		fputc('\n', out);
	} else if (a->compared_workers) {
		fprintf(out, "%sno other number of workers is predicted to be 3 %% faster%s%s%s",
			keep, early ? "; " : "", early ? early : "",
			early ? " before other batch sizes were predicted" : "");
		print_other_workers(out, a);
		fputc('\n', out);
	} else if (early) {
		fprintf(out, "advice         none: %s before other configurations were predicted\n",
			early);
	} else {
		fprintf(out, "%sthe model cannot predict other configurations\n", keep);
	}
}

// "1.20 times, 0.93 to 1.50"
static void append_gain(struct text *t, const struct estimate *gain)
{
	text_format(t, "%.2f times", gain->value);
	if (isfinite(gain->low) && isfinite(gain->high)) {
		text_format(t, ", %.2f to %.2f%s", gain->low, gain->high,
			mark_of(gain->low, gain->high));
	}
}

// Why the present configuration is kept.
static void print_kept(FILE *out, const struct advice *a)
{
	if (a->now_bytes > a->limit_bytes) {
		char now[32], limit[32];
		fprintf(out,
			"advice         the present configuration does not fit: it uses %s of "
			"%s\n",
			text_bytes(now, sizeof(now), a->now_bytes),
			text_bytes(limit, sizeof(limit), a->limit_bytes));
		return;
	}
	const char *why = a->advised_missing ? a->advised_missing
	                  : a->did_not_fit && a->refuted
	                          ? "other configurations were no faster when tried, or did not fit"
	                  : a->did_not_fit ? "faster configurations did not fit when tried"
	                  : a->refuted     ? "the most promising one was no faster when tried"
	                                   : NULL;
	if (isfinite(a->unclear_gain.value)) {
		_cleanup_text_ struct text gain = {0};
		append_gain(&gain, &a->unclear_gain);
		fprintf(out,
			"advice         keep the present configuration: the most promising one "
			"was not clearly faster (%s)\n",
			gain.data ? gain.data : "");
	} else if (why) {
		fprintf(out, "advice         keep the present configuration: %s\n", why);
	} else {
		print_compared(out, a);
	}
}

// What to change in the script, which no option sets, after `head`. Nothing if the command sets it.
static void print_change(
	FILE *out, const char *head, const struct advice *a, const struct advice_config *config)
{
	_cleanup_text_ struct text loader = {0};
	if (a->keep || !changes_script(a, config)) {
		return;
	}
	append_loader(&loader, a, config);
	for (size_t i = 0; i < a->settings.n; i++) {
		const struct setting_list one = {.items = {a->settings.items[i]}, .n = 1};
		if (one.items[0].kind == SETTING_FLUSH_DENORMAL) {
			_cleanup_text_ struct text call = {0};
			setting_append(&call, &one);
			fprintf(out, "%s%s\n", head, call.data ? call.data : "");
		}
	}
	if (a->now->seen.loader_at && loader.length > 0) {
		fprintf(out, "%s%s: %s(%s)\n", head, a->now->seen.loader_at,
			a->now->seen.loader_words->call, loader.data ? loader.data : "");
	} else if (a->now->seen.fit_at && a->batch_size != present_batch(a)) {
		fprintf(out,
			"%s%s: batch_size=%" PRId64 " in fit(), or in batch() of the data set\n",
			head, a->now->seen.fit_at, a->batch_size);
	}
}

static void print_command(FILE *out, const struct advice *a, const struct advice_config *config)
{
	_cleanup_text_ struct text line = {0};
	append_command(&line, a, config);
	if (a->keep) {
		print_kept(out, a);
	} else {
		print_change(out, "change         ", a, config);
		if (!changes_script(a, config) || a->placeholders || a->settings.n > 0) {
			fprintf(out, "run            %s\n", line.data ? line.data : "");
		}
	}
	if (a->allocator.n > 0) {
		char bytes[32];
		_cleanup_text_ struct text words = {0};
		setting_append(&words, &a->allocator);
		fprintf(out,
			"allocator      %s: a further speed-up of %.2f (%.2f to %.2f%s), using %s "
			"of memory\n",
			words.data ? words.data : "", a->allocator_gain.value,
			a->allocator_gain.low, a->allocator_gain.high,
			mark_of(a->allocator_gain.low, a->allocator_gain.high),
			text_bytes(bytes, sizeof(bytes), a->allocator_bytes));
	}
	if (a->batch_size != present_batch(a)) {
		fputs(INDENT "a different batch size changes training: adapt the learning rate\n",
			out);
	}
}

// "1.8 s", "1.8 s and 0.6 s of validation": of an epoch.
static void append_epoch(struct text *t, const struct advice_request *r)
{
	char seconds[32];
	text_append_string(t, text_seconds(seconds, sizeof(seconds), r->epoch));
	if (r->validation >= VALIDATION_LEAST * r->epoch) {
		text_format(t, " and %s of validation",
			text_seconds(seconds, sizeof(seconds), r->validation));
	}
}

// What a run with settings showed that are not advised.
static void append_in_vain(struct text *t, const struct advice *a, const struct advice_probe *p)
{
	const struct estimate *gain = &p->gain;
	setting_append(t, &p->settings);
	if (p->failed || p->seen.killed) {
		text_format(t, ": %s",
			p->seen.killed ? "it ran out of memory"
			: p->reason    ? p->reason
				       : "it failed");
	} else if (!isfinite(gain->value)) {
		text_format(t, ": %s", a->interrupted ? "interrupted" : "no rate");
	} else if (advice_gained(gain)) {
		text_format(t, ": %.2f times, but %s", gain->value,
			p == a->allocator_tried ? "it needs too much memory"
						: "others gained more");
	} else if (gain->value > 1) {
		text_append_string(t, ": not clearly faster (");
		append_gain(t, gain);
		text_append_string(t, ")");
	} else {
		text_format(t, ": no faster (%.2f times)", gain->value);
	}
}

static void print_in_vain(FILE *out, const struct advice *a)
{
	const char *head = "tried          ";
	for (size_t i = 0; i < a->n; i++) {
		const struct advice_probe *p = &a->probes[i];
		_cleanup_text_ struct text line = {0};
		bool advised = p == a->allocator_tried ? a->allocator.n > 0 : p == a->base;
		if (p->step == ADVICE_SETTING && !advised) {
			append_in_vain(&line, a, p);
			fprintf(out, "%s%s\n", head, line.data ? line.data : "");
			head = INDENT;
		}
	}
}

// What to ask a scheduler for.
static void print_request(FILE *out, const struct advice *a)
{
	char bytes[32], limit[32];
	_cleanup_text_ struct text epoch = {0};
	const struct advice_request *r = &a->request;
	if (!isfinite(r->bytes)) {
		return;
	}
	fprintf(out, "request        %.0f CPU%s, %s of memory", r->cpus, r->cpus == 1 ? "" : "s",
		text_bytes(bytes, sizeof(bytes), r->bytes));
	if (r->bytes > a->limit_bytes && a->limit_kind != ADVICE_LIMIT_MACHINE &&
		a->limit_kind != ADVICE_LIMIT_GPU) {
		fprintf(out, ", more than the limit of %s",
			text_bytes(limit, sizeof(limit), a->limit_bytes));
	}
	if (a->now->seen.leak_per_iteration > 0) {
		fprintf(out, ", for %s only: memory grows with each iteration",
			a->reserve_bytes > a->validation_bytes ? "one epoch" : "a short job");
	}
	if (r->margin > REQUEST_MEMORY_MARGIN) {
		fprintf(out,
			" (%.2g times the peak, because the allocator's memory grows for a "
			"while where samples differ in size)",
			r->bytes / r->peak_bytes);
	}
	if (a->now->seen.epochs < 2 && !(a->now->seen.leak_per_iteration > 0)) {
		fputs("; a second epoch, which may need more, was not seen", out);
	}
	if (isfinite(r->epoch)) {
		append_epoch(&epoch, r);
		fprintf(out, "; an epoch takes %s", epoch.data ? epoch.data : "");
	}
	if (r->read >= READS_LEAST) {
		fprintf(out, "; it reads %s/s from storage",
			text_bytes(bytes, sizeof(bytes), r->read));
	}
	if (a->requested_missing) {
		fprintf(out, "; %s: %s",
			a->requested_failed ? "a run under it failed" : "not verified",
			a->requested_missing);
	} else if (a->requested) {
		fputs("; a run under it succeeded", out);
	}
	fputc('\n', out);
}

// Other programs that took CPU time from the job.
static void print_others(FILE *out, const struct advice *a)
{
	double least = INFINITY, most = 0;
	for (size_t i = 0; i < a->n; i++) {
		double others = a->probes[i].seen.others_cpus;
		if (isfinite(others)) {
			least = fmin(least, others);
			most = fmax(most, others);
		}
	}
	if (most >= ADVICE_BUSY * a->cpus) {
		fputs(INDENT "other programs used ", out);
		if (most - least >= 0.1) {
			fprintf(out, "%.1f to ", least);
		}
		fprintf(out,
			"%.1f of %u CPU%s during the runs: rates and CPU counts are less certain\n",
			most, a->cpus, a->cpus == 1 ? "" : "s");
	}
}

static void print_basis(FILE *out, const struct advice *a, const char *folder)
{
	char seconds[32];
	fprintf(out, "based on       %zu probe%s in %s (%s)", a->n, a->n == 1 ? "" : "s",
		text_seconds(seconds, sizeof(seconds), a->seconds), folder);
	const struct observation *now = &a->now->seen;
	const char *missing[4];
	size_t n = 0;
	if (!now->validated) {
		missing[n++] = "validation";
	}
	if (!now->saved) {
		missing[n++] = "checkpoint";
	}
	if (now->epochs < 2) {
		missing[n++] = "second epoch";
	}
	for (size_t i = 0; i < n; i++) {
		fprintf(out, "%s%s", i == 0 ? "; not observed: " : ", ", missing[i]);
	}
	fputc('\n', out);
	if (now->accumulated > 1) {
		fprintf(out,
			INDENT "the job accumulates %" PRId64
			       " batches per iteration; here each batch is an iteration\n",
			now->accumulated);
	}
	if (now->ranks > 1) {
		fprintf(out,
			INDENT "%" PRIu64 " ranks: batch size, workers and samples/s are those of "
			       "one, memory and CPUs those of all\n",
			now->ranks);
	}
	print_others(out, a);
	if (a->interrupted) {
		fputs(INDENT "interrupted: these are the results so far\n", out);
	} else if (a->out_of_time) {
		fputs(INDENT "the time ran out (--time): these are the results so far\n", out);
	}
}

// Whether a line is to be copied: a command, an edit of the script.
static bool is_copied(const char *line)
{
	return strncmp(line, "run ", strlen("run ")) == 0 ||
	       strncmp(line, "change ", strlen("change ")) == 0;
}

// Prints lines broken at blanks, each further one below the first one's text.
static void print_folded(FILE *out, char *lines)
{
	const size_t indent = strlen(INDENT);
	size_t width = style_of(out).width;
	for (char *line; (line = strsep(&lines, "\n")) && lines;) {
		_cleanup_text_ struct text folded = {0};
		bool whole = is_copied(line) || strlen(line) <= indent;
		if (!whole) {
			words_append_folded(
				&folded, line + indent, indent, indent, width ? width : WIDTH);
		}
		fprintf(out, "%.*s%s\n", whole ? -1 : (int)indent, line,
			folded.data ? folded.data : "");
	}
}

static void print_sentences(
	FILE *out, const struct advice *a, const struct advice_config *config, const char *folder)
{
	print_leak(out, a);
	print_largest(out, a);
	print_workers(out, a);
	if (!a->has_rate) {
		fprintf(out, "rate           not known: %s\n",
			a->rate_missing ? a->rate_missing : "");
	}
	if (a->batch_size > 0) {
		print_command(out, a, config);
	}
	print_in_vain(out, a);
	if (a->batch_size > 0) {
		print_request(out, a);
	}
	print_basis(out, a, folder);
}

void advice_answer_print(
	FILE *out, const struct advice *a, const struct advice_config *config, const char *folder)
{
	_cleanup_free_ char *sentences = NULL;
	size_t length = 0;
	FILE *memory = open_memstream(&sentences, &length);
	if (memory) {
		print_sentences(memory, a, config, folder);
	}
	if (a->now->seen.headline) {
		fprintf(out, "%s\n\n", a->now->seen.headline);
	} else if (a->has_rate && a->n_by_batch > 0) {
		static const char *const words[N_RATE_BOUNDS] = {
			[RATE_COMPUTE] = "computing",
			[RATE_PREPARE] = "data loading",
			[RATE_CPU] = "its CPUs",
			[RATE_STORAGE] = "storage",
		};
		fprintf(out, "the present configuration is limited by %s\n\n",
			words[a->by_batch[0].at.bound]);
	}
	print_settings(out, a);
	fputc('\n', out);
	if (memory && fclose(memory) == 0) {
		print_folded(out, sentences);
	}
	print_curves(out, a);
	print_batches(out, a);
	print_cpus(out, a);
}

// Requests ----------------------------------------------------------------------------------------

// How a peak was found, after it.
static const char *how_measured(const struct advice *a)
{
	return !isfinite(a->now->seen.kernel) ? " (estimated: the job had no cgroup)" : "";
}

static void print_sbatch(FILE *out, const struct advice *a)
{
	const struct advice_request *r = &a->request;
	_cleanup_text_ struct text epoch = {0};
	append_epoch(&epoch, r);
	const char *each = epoch.data ? epoch.data : "";
	fprintf(out, "#SBATCH --cpus-per-task=%.0f   # it uses %.2f CPUs\n", r->cpus, r->cpus_used);
	fprintf(out, "#SBATCH --mem=%.0fM   # peak %.0f MiB%s plus %.0f %%\n",
		ceil(r->bytes / 0x1p20), ceil(r->peak_bytes / 0x1p20), how_measured(a),
		(r->bytes / r->peak_bytes - 1) * 100);
	if (isfinite(r->seconds)) {
		double minutes = ceil(r->seconds / 60);
		fprintf(out, "#SBATCH --time=%.0f   # minutes: %s per epoch, plus %.0f %%\n",
			minutes, each, REQUEST_TIME_MARGIN * 100);
	} else if (isfinite(r->epoch)) {
		fprintf(out, "# --time: an epoch takes %s; set --epochs N for the total\n", each);
	} else {
		fputs("# --time: the samples of an epoch are not known\n", out);
	}
	if (isfinite(r->epoch) && !isfinite(r->validation)) {
		fputs("# --time: without validation, whose length is not known\n", out);
	}
}

// What the request is for, and what ran under it; as comments.
static void print_requested(FILE *out, const struct advice *a)
{
	bool ran = a->keep || a->measured;
	if (a->interrupted || a->out_of_time) {
		fprintf(out, "# %s: from the runs so far\n",
			a->interrupted ? "interrupted" : "the time ran out (--time)");
	}
	if (!ran) {
		fputs("# predicted, not tried\n", out);
	}
	if (a->batch_size != present_batch(a)) {
		fprintf(out,
			"# batch size %" PRId64 " instead of %" PRId64
			" changes training: adapt the learning rate\n",
			a->batch_size, present_batch(a));
	}
	if (a->now->seen.leak_per_iteration > 0) {
		fprintf(out, "# for %s only: memory grows with each iteration\n",
			a->reserve_bytes > a->validation_bytes ? "one epoch" : "a short job");
	}
	if (a->requested_missing) {
		fprintf(out, "# %s: %s\n",
			a->requested_failed ? "a run under this request failed" : "not verified",
			a->requested_missing);
	} else if (a->requested) {
		fputs("# it ran under this request", out);
		if (isfinite(a->requested->seen.rate.value)) {
			_cleanup_text_ struct text rate = {0};
			append_number(&rate, a->requested->seen.rate.value);
			fprintf(out, ": %s samples/s", rate.data ? rate.data : "");
		}
		fputc('\n', out);
	}
}

// The command and the variables of a container, as in a pod's description. Lists of JSON are YAML.
static void print_container(FILE *out, const struct advice *a, const struct advice_config *config)
{
	const struct placeholder_values values = {
		a->batch_size, a->workers, a->curves[1].learning_rate};
	char **command = placeholders_fill(config->command, &values);
	json_t *words = json_array(), *variables = json_array();
	for (char **word = command; word && *word; word++) {
		json_array_append_new(words, json_from_text(*word));
	}
	for (size_t i = 0; i < a->settings.n; i++) {
		const char *value = a->settings.items[i].value, *equals = strchr(value, '=');
		if (a->settings.items[i].kind == SETTING_ENVIRONMENT && equals) {
			json_array_append_new(
				variables, json_pack("{s:s%,s:s}", "name", value,
						   (size_t)(equals - value), "value", equals + 1));
		}
	}
	_cleanup_free_ char *list = json_dumps(words, JSON_ENCODE_ANY);
	_cleanup_free_ char *env = json_dumps(variables, JSON_ENCODE_ANY);
	fprintf(out, "command: %s\n", list ? list : "[]");
	if (json_array_size(variables) > 0) {
		fprintf(out, "env: %s\n", env ? env : "[]");
	}
	json_decref(words);
	json_decref(variables);
	placeholders_free(command);
}

int advice_answer_request(FILE *out, const struct advice *a, const struct advice_config *config,
	enum advise_request request, struct error *e)
{
	_cleanup_text_ struct text line = {0};
	const struct advice_request *r = &a->request;
	double mib = ceil(r->bytes / 0x1p20);
	if (a->batch_size < 1 || !isfinite(r->bytes)) {
		return error_set(e, ENODATA, "cannot print a resource request: %s",
			a->interrupted   ? "interrupted before the first probe ended"
			: a->out_of_time ? "the time ran out before the first probe ended (--time)"
			: a->batch_size < 1
				? (a->rate_missing ? a->rate_missing : "the rate is not known")
				: "the memory of the job is not known");
	}
	append_command(&line, a, config);
	const char *command = line.data ? line.data : "";
	switch (request) {
	case REQUEST_SBATCH:
		fputs("#!/bin/sh\n", out);
		print_sbatch(out, a);
		print_requested(out, a);
		print_change(out, "# change ", a, config);
		fprintf(out, "srun %s\n", command);
		break;
	case REQUEST_DOCKER:
		print_requested(out, a);
		print_change(out, "# change ", a, config);
		fprintf(out, "docker run --cpus=%.0f --memory=%.0fm --shm-size=%.0fm IMAGE %s\n",
			r->cpus, mib,
			ceil(a->worker_shared * (double)a->batch_size *
				fmax(0, (double)a->workers) * fmax(1, (double)a->now->seen.ranks) *
				2 / 0x1p20) +
				64,
			command);
		break;
	case REQUEST_KUBERNETES:
		print_requested(out, a);
		print_change(out, "# change ", a, config);
		print_container(out, a, config);
		fprintf(out,
			"resources:   # it uses %.2f CPUs and %.0f MiB%s\n  requests:\n    cpu: "
			"\"%.0f\"\n"
			"    memory: %.0fMi\n  limits:\n    memory: %.0fMi\n",
			r->cpus_used, ceil(r->peak_bytes / 0x1p20), how_measured(a), r->cpus, mib,
			mib);
		break;
	default:
		break;
	}
	return 0;
}

// JSON --------------------------------------------------------------------------------------------

static json_t *whole(int64_t value)
{
	return value >= 0 ? json_integer((json_int_t)value) : json_null();
}

static json_t *number(double value)
{
	return json_from_number(value);
}

static json_t *largest_json(const struct advice *a)
{
	json_t *json = json_object();
	bool known = !a->largest_missing;
	json_object_set_new(json, "value", number(known ? a->largest.value : NAN));
	json_object_set_new(json, "low", number(known ? a->largest.low : NAN));
	json_object_set_new(json, "high", number(known ? a->largest.high : NAN));
	json_object_set_new(json, "verified", whole(a->verified_batch));
	json_object_set_new(json, "verified_long", json_boolean(a->verified_long));
	json_object_set_new(
		json, "verified_epoch", number(a->verified_long ? a->verified_epoch : NAN));
	json_object_set_new(json, "verified_by", json_string(advice_verified_name(a->verified)));
	json_object_set_new(json, "verified_missing", json_from_text(a->verified_missing));
	json_object_set_new(json, "failed", whole(a->failed_batch));
	json_object_set_new(json, "estimate", number(known ? a->largest_estimate : NAN));
	json_object_set_new(json, "nothing_fits", json_boolean(a->nothing_fits));
	json_object_set_new(json, "open", json_boolean(a->largest_open));
	json_object_set_new(json, "whole_epoch", json_boolean(a->whole_epoch));
	json_object_set_new(json, "workers", whole(present_workers(a)));
	json_object_set_new(json, "missing", json_from_text(a->largest_missing));
	return json;
}

static json_t *model_json(const struct advice *a)
{
	json_t *json = json_object();
	const struct memory_model *m = &a->memory;
	if (!a->has_memory) {
		json_decref(json);
		return json_null();
	}
	json_object_set_new(json, "bytes", number(m->intercept));
	json_object_set_new(json, "bytes_per_sample", number(m->slope));
	json_object_set_new(json, "deviation", number(m->deviation));
	json_object_set_new(json, "residual", number(m->residual));
	json_object_set_new(json, "points", json_integer((json_int_t)m->used));
	json_object_set_new(json, "excluded", json_integer((json_int_t)m->left_out));
	return json;
}

static json_t *sizes_json(const struct sample_sizes *s)
{
	json_t *json = json_object();
	if (s->looked <= 0) {
		json_decref(json);
		return json_null();
	}
	json_object_set_new(json, "looked", whole(s->looked));
	json_object_set_new(json, "of", whole(s->of));
	json_object_set_new(json, "median", number(s->median));
	json_object_set_new(json, "largest", number(s->largest));
	return json;
}

static json_t *memory_json(const struct advice *a)
{
	json_t *json = json_object();
	json_object_set_new(json, "limit", number(a->limit_bytes));
	json_object_set_new(json, "limit_kind", json_string(advice_limit_name(a->limit_kind)));
	json_object_set_new(json, "now", number(a->now_bytes));
	json_object_set_new(json, "predicted", number(a->bytes_predicted));
	json_object_set_new(json, "measured", number(a->keep ? a->now_bytes : advised_bytes(a)));
	json_object_set_new(json, "leak_per_iteration", number(a->now->seen.leak_per_iteration));
	json_object_set_new(json, "reserve", number(a->reserve_bytes));
	json_object_set_new(json, "reserve_of_validation", number(a->validation_bytes));
	json_object_set_new(json, "lasts_iterations", number(a->lasts));
	json_object_set_new(json, "validation_peak", number(a->now->seen.validation_peak));
	json_object_set_new(json, "training_peak", number(a->now->seen.training_peak));
	json_object_set_new(json, "worker", number(a->worker_bytes));
	json_object_set_new(json, "worker_copies", number(a->worker_copies));
	json_object_set_new(json, "sample_sizes", sizes_json(&a->now->seen.sizes));
	json_object_set_new(json, "batch_elements", sizes_json(&a->now->seen.unchosen));
	json_object_set_new(json, "line", model_json(a));
	return json;
}

static json_t *rate_json(const struct advice *a)
{
	json_t *json = json_object();
	bool known = a->batch_size > 0;
	json_object_set_new(json, "now", number(advice_present_rate(a).value));
	json_object_set_new(json, "predicted", number(known ? a->predicted.rate.value : NAN));
	json_object_set_new(json, "low", number(known ? a->predicted.rate.low : NAN));
	json_object_set_new(json, "high", number(known ? a->predicted.rate.high : NAN));
	json_object_set_new(json, "measured",
		number(a->keep        ? advice_present_rate(a).value
			: a->measured ? a->measured->seen.rate.value
				      : NAN));
	json_object_set_new(json, "gain", number(a->gain.value));
	json_object_set_new(json, "missing", json_from_text(a->rate_missing));
	return json;
}

// [{"batch_size": 16, "factor": 0.98}...]: computing over that of the line.
static json_t *deviation_json(const struct rate_model *m)
{
	json_t *list = json_array();
	for (size_t i = 0; i < m->n_knots; i++) {
		double batch = m->knots[i].batch;
		json_t *item = json_object();
		json_object_set_new(item, "batch_size", json_integer((json_int_t)batch));
		json_object_set_new(item, "factor", number(rate_model_deviation(m, batch)));
		json_array_append_new(list, item);
	}
	return list;
}

static json_t *parameters_json(const struct advice *a)
{
	json_t *json = json_object();
	const struct rate_model *m = &a->rate;
	if (!a->has_rate) {
		json_decref(json);
		return json_null();
	}
	json_object_set_new(json, "compute_per_iteration_s", number(m->a));
	json_object_set_new(json, "compute_per_sample_s", number(m->b));
	json_object_set_new(json, "compute_deviation", deviation_json(m));
	json_object_set_new(json, "prepare_per_sample_s", number(m->prepare_known ? m->p : NAN));
	json_object_set_new(json, "send_per_batch_s", number(m->send));
	json_object_set_new(json, "start_per_worker_s", number(m->starts ? m->start : NAN));
	json_object_set_new(json, "epoch_samples", number(m->epoch_samples));
	json_object_set_new(json, "main_cpu_per_iteration_s", number(m->c0));
	json_object_set_new(json, "main_cpu_per_sample_s", number(m->c1));
	json_object_set_new(json, "alone", number(m->alone));
	json_object_set_new(json, "cpu_loss", number(m->cpu_loss));
	json_object_set_new(json, "stored_bytes_per_sample", number(m->stored));
	return json;
}

// Threads of the training process: of OMP_NUM_THREADS if that is advised, else those that computed;
// -1: not known.
static int64_t advised_threads(const struct advice *a)
{
	static const char variable[] = "OMP_NUM_THREADS=";
	for (size_t i = 0; i < a->settings.n; i++) {
		const char *value = a->settings.items[i].value;
		if (strncmp(value, variable, strlen(variable)) == 0) {
			return strtol(value + strlen(variable), NULL, 10);
		}
	}
	double threads = a->base->seen.threads;
	return isfinite(threads) && threads < INT32_MAX ? (int64_t)fmax(1, round(threads)) : -1;
}

static json_t *advised_json(const struct advice *a)
{
	json_t *json = json_object();
	_cleanup_text_ struct text settings = {0}, allocator = {0};
	if (a->settings.n > 0) {
		setting_append(&settings, &a->settings);
	}
	if (a->allocator.n > 0) {
		setting_append(&allocator, &a->allocator);
	}
	json_object_set_new(json, "batch_size", whole(a->batch_size));
	json_object_set_new(json, "workers", whole(a->workers));
	json_object_set_new(json, "threads", whole(advised_threads(a)));
	json_object_set_new(json, "settings", json_from_text(settings.data));
	json_object_set_new(json, "settings_gain", number(a->settings_gain.value));
	json_object_set_new(json, "allocator", json_from_text(allocator.data));
	json_object_set_new(json, "allocator_gain", number(a->allocator_gain.value));
	json_object_set_new(json, "keep", json_boolean(a->keep));
	json_object_set_new(json, "refuted", json_boolean(a->refuted));
	json_object_set_new(json, "did_not_fit", json_boolean(a->did_not_fit));
	json_object_set_new(json, "missing", json_from_text(a->advised_missing));
	json_object_set_new(json, "workers_missing", json_from_text(a->workers_missing));
	return json;
}

static json_t *probe_json(const struct advice_probe *p)
{
	json_t *json = json_object();
	const struct observation *o = &p->seen;
	const char *name = strrchr(p->run, '/');
	_cleanup_text_ struct text settings = {0};
	if (p->settings.n > 0) {
		setting_append(&settings, &p->settings);
	}
	json_object_set_new(json, "step", json_string(advice_step_name(p->step)));
	json_object_set_new(json, "with", json_from_text(settings.data));
	json_object_set_new(json, "gain", number(p->gain.value));
	json_object_set_new(json, "run", json_from_text(name ? name + 1 : p->run));
	json_object_set_new(
		json, "batch_size", whole(o->batch_size > 0 ? o->batch_size : p->batch_size));
	json_object_set_new(json, "accumulated", json_integer(o->accumulated));
	json_object_set_new(json, "workers", whole(o->workers >= 0 ? o->workers : p->workers));
	json_object_set_new(json, "limit",
		p->limit_bytes > 0 ? json_integer((json_int_t)p->limit_bytes) : json_null());
	json_object_set_new(json, "anonymous", number(o->anonymous));
	json_object_set_new(json, "shared", number(o->shared));
	json_object_set_new(json, "kernel", number(o->kernel));
	json_object_set_new(json, "page_cache", number(o->page_cache));
	json_object_set_new(json, "worker", number(o->worker));
	json_object_set_new(json, "gpu", number(o->gpu));
	json_object_set_new(json, "address_space", number(p->virtual_bytes));
	json_object_set_new(json, "rate", number(o->rate.value));
	json_object_set_new(json, "iteration_s", number(o->iteration.value));
	json_object_set_new(json, "data_wait_s", number(o->wait));
	json_object_set_new(json, "others_cpus", number(o->others_cpus));
	json_object_set_new(json, "ranks", json_integer((json_int_t)o->ranks));
	json_object_set_new(json, "iterations", json_integer((json_int_t)o->iterations));
	json_object_set_new(json, "epochs", json_integer((json_int_t)o->epochs));
	json_object_set_new(json, "validated", json_boolean(o->validated));
	json_object_set_new(json, "checkpoint", json_boolean(o->saved));
	json_object_set_new(json, "failed", json_boolean(p->failed));
	json_object_set_new(json, "out_of_memory", json_boolean(o->killed));
	json_object_set_new(json, "reason", json_from_text(p->reason));
	json_object_set_new(json, "seconds", number(p->seconds));
	return json;
}

static json_t *request_json(const struct advice *a)
{
	json_t *json = json_object();
	const struct advice_request *r = &a->request;
	bool ran = a->requested && !a->requested_missing;
	json_object_set_new(json, "cpus_used", number(r->cpus_used));
	json_object_set_new(json, "cpus", number(r->cpus));
	json_object_set_new(json, "peak_bytes", number(r->peak_bytes));
	json_object_set_new(json, "bytes", number(r->bytes));
	json_object_set_new(json, "epoch_s", number(r->epoch));
	json_object_set_new(json, "validation_s", number(r->validation));
	json_object_set_new(json, "read_bytes_per_s", number(r->read));
	json_object_set_new(json, "startup_s", number(r->startup));
	json_object_set_new(json, "seconds", number(r->seconds));
	json_object_set_new(json, "verified", json_boolean(ran));
	json_object_set_new(json, "measured", number(ran ? a->requested->seen.rate.value : NAN));
	json_object_set_new(json, "missing", json_from_text(a->requested_missing));
	return json;
}

static json_t *thesis_json(const struct advice *a)
{
	json_t *json = json_object();
	json_object_set_new(json, "largest_batch", number(a->thesis_batch));
	json_object_set_new(json, "workers_that_fit", number(a->thesis_workers));
	json_object_set_new(json, "seconds", number(a->thesis_seconds));
	return json;
}

void advice_answer_print_thesis(FILE *out, const struct advice *a)
{
	char seconds[32];
	fputs("\nTripathi 2019  ", out);
	if (isfinite(a->thesis_batch)) {
		fprintf(out, "largest batch %.0f, from a line through two runs (%s), not verified",
			a->thesis_batch, text_seconds(seconds, sizeof(seconds), a->thesis_seconds));
	} else {
		fputs("largest batch not known", out);
	}
	if (isfinite(a->thesis_workers)) {
		fprintf(out, "; %.0f workers fit in memory", a->thesis_workers);
	}
	fputc('\n', out);
}

json_t *advice_answer_page(
	const struct advice *a, const struct advice_config *config, const char *folder, bool thesis)
{
	_cleanup_free_ char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);
	if (!out) {
		return NULL;
	}
	advice_answer_print(out, a, config, folder);
	if (thesis) {
		advice_answer_print_thesis(out, a);
	}
	bool whole = fclose(out) == 0;
	_cleanup_text_ struct text masked = {0};
	secret_append_text(&masked, whole ? text : "", whole ? length : 0);
	json_t *lines = whole && !masked.failed ? json_array() : NULL;
	char *rest = masked.data;
	for (char *line; lines && rest && *rest && (line = strsep(&rest, "\n"));) {
		json_array_append_new(lines, json_from_text(line));
	}
	return lines;
}

json_t *advice_answer_json(const struct advice *a, const struct advice_config *config)
{
	json_t *json = json_object(), *runs = json_array(), *command = json_array();
	struct table *table = cpus_table(a), *batches = batch_table(a), *curves = curves_table(a);
	const struct placeholder_values values = {
		a->batch_size, a->workers, a->curves[1].learning_rate};
	char **words = placeholders_fill(config->command, &values);
	for (size_t i = 0; i < a->n; i++) {
		json_array_append_new(runs, probe_json(&a->probes[i]));
	}
	for (char **word = words; word && *word; word++) {
		json_array_append_new(command, json_from_text(*word));
	}
	placeholders_free(words);
	json_object_set_new(json, "verdict", json_from_text(a->now->seen.headline));
	json_object_set_new(json, "largest_batch", largest_json(a));
	json_object_set_new(json, "advised", advised_json(a));
	json_object_set_new(json, "rate", rate_json(a));
	json_object_set_new(json, "memory", memory_json(a));
	json_object_set_new(json, "rate_model", parameters_json(a));
	json_object_set_new(json, "thesis", thesis_json(a));
	json_object_set_new(json, "cpus", json_integer(a->cpus));
	json_object_set_new(json, "request", request_json(a));
	json_object_set_new(json, "by_cpus", table ? table_to_json(table) : json_null());
	json_object_set_new(json, "by_batch", batches ? table_to_json(batches) : json_null());
	json_object_set_new(json, "convergence", curves ? table_to_json(curves) : json_null());
	json_object_set_new(json, "convergence_missing", json_from_text(a->curves_missing));
	json_object_set_new(json, "command", command);
	json_object_set_new(json, "probes", json_integer((json_int_t)a->n));
	json_object_set_new(json, "runs", runs);
	json_object_set_new(json, "seconds", number(a->seconds));
	json_object_set_new(json, "complete", json_boolean(!a->interrupted && !a->out_of_time));
	table_free(table);
	table_free(batches);
	table_free(curves);
	return json;
}
