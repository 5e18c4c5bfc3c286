// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A list of runs: its lines, their order, and its table.

#include "show/run_list.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "run/overview.h"
#include "show/json.h"
#include "show/run_json.h"
#include "show/table.h"
#include "study/catalogue.h"
#include "study/comparison.h"
#include "study/joint.h"
#include "study/pivot.h"
#include "study/run_table.h"
#include "study/selection.h"

// A line of the list: a run; the runs of a folder: a sweep, or an answer of `strain advise`; or the
// ranks of a job that each have a run.
struct listed {
	const struct digest *run; // or the first one of the folder or the job
	const struct digest **runs; // [n_runs] owned, of a folder or a job; NULL: a run
	size_t n_runs;
	char *job; // owned; the job's name; NULL: no job
	int64_t start_utc_ns; // 0: not known
	double duration_s;
	size_t place; // keeps the order of equal lines
};

// --- the table, for people and as JSON

enum {
	LS_RUN,
	LS_PATH,
	LS_START,
	LS_START_S,
	LS_OUTCOME,
	LS_STATE,
	LS_STATUS,
	LS_SIGNAL,
	LS_WORD,
	LS_WORDS,
	LS_TRIALS,
	LS_DURATION,
	LS_RECORDED,
	LS_PARTIAL,
	LS_CPUS,
	LS_CPU_SECONDS,
	LS_MEMORY,
	LS_MEMORY_KIND,
	LS_MEASURE,
	LS_LABELS,
	N_LS_COLUMNS,
};

static const struct column all_columns[N_LS_COLUMNS] = {
	[LS_RUN] = {"name", "RUN", COLUMN_LABEL, 0},
	[LS_PATH] = {"path", NULL, COLUMN_TEXT, 0},
	[LS_START] = {NULL, "START", COLUMN_LABEL, 4},
	[LS_START_S] = {"start_utc_s", NULL, COLUMN_NUMBER, 0},
	[LS_OUTCOME] = {NULL, "STATE", COLUMN_LABEL, 0},
	[LS_STATE] = {"state", NULL, COLUMN_LABEL, 0},
	[LS_STATUS] = {"exit_status", NULL, COLUMN_WHOLE, 0},
	[LS_SIGNAL] = {"exit_signal", NULL, COLUMN_WHOLE, 0},
	[LS_WORD] = {"outcome", NULL, COLUMN_LABEL, 0},
	[LS_WORDS] = {"outcome_text", NULL, COLUMN_TEXT, 0},
	[LS_TRIALS] = {"trials", NULL, COLUMN_WHOLE, 0},
	[LS_DURATION] = {"duration_s", "TIME", COLUMN_SECONDS, 0},
	[LS_RECORDED] = {"recorded_s", NULL, COLUMN_SECONDS, 0},
	[LS_PARTIAL] = {"partial", NULL, COLUMN_TEXT, 0},
	[LS_CPUS] = {"cpus_used", "CPUS", COLUMN_NUMBER, 2},
	[LS_CPU_SECONDS] = {"cpu_seconds", NULL, COLUMN_SECONDS, 0},
	[LS_MEMORY] = {"memory_peak_bytes", "MEMORY", COLUMN_BYTES, 3},
	[LS_MEMORY_KIND] = {"memory_kind", NULL, COLUMN_TEXT, 0},
	[LS_MEASURE] = {NULL, NULL, COLUMN_NUMBER, 0}, // the sort key
	[LS_LABELS] = {NULL, "LABELS", COLUMN_TEXT, 1},
};

static const enum column_kind kinds[] = {
	[MEASURE_KIND_SECONDS] = COLUMN_SECONDS,
	[MEASURE_KIND_BYTES] = COLUMN_BYTES,
	[MEASURE_KIND_PERCENT] = COLUMN_RATIO,
	[MEASURE_KIND_RATE] = COLUMN_NUMBER,
	[MEASURE_KIND_COUNT] = COLUMN_WHOLE,
	[MEASURE_KIND_NUMBER] = COLUMN_NUMBER,
	[MEASURE_KIND_WATTS] = COLUMN_NUMBER,
	[MEASURE_KIND_JOULES] = COLUMN_NUMBER,
	[MEASURE_KIND_MONEY] = COLUMN_NUMBER,
	[MEASURE_KIND_WORDS] = COLUMN_LABEL,
};

static void put_start(struct table *t, int64_t start_utc_ns)
{
	char text[32];
	struct tm local;
	time_t seconds = start_utc_ns / 1000000000;
	if (start_utc_ns > 0 && localtime_r(&seconds, &local) &&
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M", &local) > 0) {
		table_text(t, LS_START, text);
		table_number(t, LS_START_S, (double)start_utc_ns / 1e9);
	}
}

// Whether the outcome adds to the exit status.
static bool tells_more(enum outcome outcome)
{
	return outcome == OUTCOME_STOPPED || outcome == OUTCOME_OUT_OF_MEMORY ||
	       outcome == OUTCOME_TIME_LIMIT || outcome == OUTCOME_SKIPPED ||
	       outcome == OUTCOME_REFUSED || outcome == OUTCOME_CANCELLED ||
	       outcome == OUTCOME_PREEMPTED || outcome == OUTCOME_NODE_FAILURE;
}

static void put_state(struct table *t, const struct digest *run)
{
	const struct overview o = {.state = run->state,
		.damaged = run->damaged,
		.exit_status = run->exit_status,
		.exit_signal = run->exit_signal};
	_cleanup_text_ struct text outcome = {0};
	if (tells_more(run->outcome)) {
		outcome_append_shown(&outcome, run->outcome);
		text_append_string(&outcome, run->damaged ? ", damaged" : "");
	} else {
		overview_append_outcome(&outcome, &o);
	}
	text_append_string(&outcome, *run->partial ? ", partial" : "");
	table_text(t, LS_OUTCOME, outcome.data);
	table_text(t, LS_STATE, overview_state(&o));
	table_number(t, LS_STATUS, o.exit_status >= 0 ? o.exit_status : NAN);
	table_number(t, LS_SIGNAL, o.exit_signal > 0 ? o.exit_signal : NAN);
	table_text(t, LS_WORD, outcome_word(run->outcome));
	table_text(t, LS_WORDS, *run->outcome_text ? run->outcome_text : NULL);
}

// Labels in the order that a narrow terminal needs: those in which runs differ, those that all
// share, those that sweeps and batch systems set.
enum label_rank { LABEL_DIFFERS, LABEL_SHARED, LABEL_AUTOMATIC, N_LABEL_RANKS };

enum { LABELS_RANKED = 64 };

struct ranked_label {
	const char *name;
	const char *value; // of the first run that has it
	size_t n; // runs that have it
	bool differs;
};

struct label_ranks {
	struct ranked_label items[LABELS_RANKED];
	size_t n;
	size_t n_runs;
};

static struct ranked_label *rank_find(struct label_ranks *ranks, const char *name)
{
	for (size_t i = 0; i < ranks->n; i++) {
		if (strcmp(ranks->items[i].name, name) == 0) {
			return &ranks->items[i];
		}
	}
	return NULL;
}

static void rank_labels(struct label_ranks *ranks, const struct run_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct digest *run = l->items[i].run;
		ranks->n_runs += !l->items[i].runs;
		for (size_t k = 0; !l->items[i].runs && k < run->n_labels; k++) {
			const struct run_label *label = &run->labels[k];
			struct ranked_label *item = rank_find(ranks, label->name);
			if (!item && ranks->n < LABELS_RANKED) {
				item = &ranks->items[ranks->n++];
				*item = (struct ranked_label){label->name, label->value, 0, false};
			}
			if (item) {
				item->n++;
				item->differs = item->differs ||
				                strcmp(item->value, label->value) != 0;
			}
		}
	}
}

static enum label_rank rank_of(struct label_ranks *ranks, const char *name)
{
	const struct ranked_label *item = rank_find(ranks, name);
	return comparison_label_is_automatic(name)                  ? LABEL_AUTOMATIC
	       : item && (item->differs || item->n < ranks->n_runs) ? LABEL_DIFFERS
	                                                            : LABEL_SHARED;
}

static void put_labels(struct table *t, const struct digest *run, struct label_ranks *ranks)
{
	struct text labels = {0};
	for (int rank = 0; rank < N_LABEL_RANKS; rank++) {
		for (size_t i = 0; i < run->n_labels; i++) {
			const struct run_label *label = &run->labels[i];
			if ((int)rank_of(ranks, label->name) == rank) {
				text_append_string(&labels, labels.length ? " " : "");
				text_append_string(&labels, label->name);
				text_append_string(&labels, "=");
				text_append_string(&labels, label->value);
			}
		}
	}
	table_text(t, LS_LABELS, labels.data);
	text_done(&labels);
}

static void put_measure(struct table *t, const struct digest *run, enum measure_id measure)
{
	if (measure == MEASURE_OUTCOME || measure == MEASURE_VERDICT) {
		table_text(t, LS_MEASURE,
			measure == MEASURE_OUTCOME ? outcome_word(run->outcome) : run->verdict);
	} else if (measure < N_MEASURES) {
		bool percent = measures[measure].kind == MEASURE_KIND_PERCENT;
		table_number(t, LS_MEASURE, run->measures[measure] / (percent ? 100 : 1));
	}
}

static void put_run(struct table *t, const struct digest *run, enum measure_id measure,
	struct label_ranks *ranks)
{
	table_text(t, LS_RUN, run->name);
	table_text(t, LS_PATH, run->path);
	put_start(t, run->start_utc_ns);
	put_state(t, run);
	table_number(t, LS_DURATION, run->measures[MEASURE_DURATION]);
	table_number(t, LS_RECORDED, run->recorded_s);
	table_text(t, LS_PARTIAL, *run->partial ? run->partial : NULL);
	table_number(t, LS_CPUS, run->measures[MEASURE_CPUS_USED]);
	table_number(t, LS_CPU_SECONDS, run->measures[MEASURE_CPU_SECONDS]);
	table_number(t, LS_MEMORY, run->measures[MEASURE_HOST_MEMORY_PEAK]);
	table_text(t, LS_MEMORY_KIND, *run->memory_kind ? run->memory_kind : NULL);
	put_measure(t, run, measure);
	put_labels(t, run, ranks);
}

// Appends the values of a label of the trials: "batch_size=32,64,128 workers=0..8".
static void append_values(struct text *t, const struct listed *l, const char *label)
{
	enum { SHOWN = 4 };
	_cleanup_free_ const char **values = calloc(l->n_runs, sizeof(*values));
	size_t n = 0;
	for (size_t i = 0; values && i < l->n_runs; i++) {
		const char *value = digest_label(l->runs[i], label);
		size_t k = 0;
		while (value && k < n && run_table_compare(values[k], value) < 0) {
			k++;
		}
		if (!value || (k < n && run_table_compare(values[k], value) == 0)) {
			continue;
		}
		memmove(&values[k + 1], &values[k], (n++ - k) * sizeof(*values));
		values[k] = value;
	}
	text_format(t, "%s%s=", t->length ? " " : "", label);
	for (size_t i = 0; i < n && n <= SHOWN; i++) {
		text_format(t, "%s%s", i ? "," : "", values[i]);
	}
	if (n > SHOWN) {
		text_format(t, "%s..%s", values[0], values[n - 1]);
	}
}

static bool all_share(const struct listed *l, const char *label)
{
	const char *first = digest_label(l->runs[0], label);
	for (size_t i = 1; i < l->n_runs; i++) {
		if (run_table_compare(digest_label(l->runs[i], label), first) != 0) {
			return false;
		}
	}
	return true;
}

// The folder of a line that is not a run.
static const char *folder_of(const struct digest *run)
{
	return run->sweep_directory ? run->sweep_directory : run->advice_directory;
}

// what: "trial"
static void append_outcomes(struct text *state, const struct listed *l, const char *what)
{
	struct pivot_cell cell = {.n_runs = l->n_runs};
	_cleanup_text_ struct text failures = {0};
	for (size_t i = 0; i < l->n_runs; i++) {
		cell.outcomes[l->runs[i]->outcome]++;
	}
	text_format(state, "%zu %s%s", l->n_runs, what, l->n_runs > 1 ? "s" : "");
	pivot_append_failures(&failures, &cell);
	if (failures.length > 0) {
		text_format(state, ": %s", failures.data);
	}
}

static void append_folder_labels(struct text *labels, const struct listed *l)
{
	for (int shared = 0; shared < 2; shared++) { // labels that differ come first
		for (size_t i = 0; i < l->run->n_labels; i++) {
			const char *label = l->run->labels[i].name;
			if (!comparison_label_is_automatic(label) &&
				all_share(l, label) == shared) {
				append_values(labels, l, label);
			}
		}
	}
}

static void append_measure(
	struct text *t, const char *before, const struct digest *run, enum measure_id measure)
{
	if (isfinite(run->measures[measure])) {
		text_format(
			t, "%s%s%.0f", t->length > 0 ? ", " : "", before, run->measures[measure]);
	}
}

// The labels that the user gave, and the answer: "model=alexnet, largest batch 450, ...". The
// others of the first run are those of the answer's present configuration.
static void append_answer(struct text *t, const struct listed *l)
{
	static const char *const own[] = {"step", "batch_size", "workers"};
	for (size_t i = 0; i < l->run->n_labels; i++) {
		const struct run_label *label = &l->run->labels[i];
		bool given = !comparison_label_is_automatic(label->name);
		for (size_t k = 0; k < ARRAY_LENGTH(own); k++) {
			given = given && strcmp(label->name, own[k]) != 0;
		}
		if (given) {
			text_format(
				t, "%s%s=%s", t->length > 0 ? ", " : "", label->name, label->value);
		}
	}
	if (l->run->measures[MEASURE_LARGEST_BATCH] == 0) {
		text_append_string(t, t->length > 0 ? ", no batch fits" : "no batch fits");
	} else {
		append_measure(t, "largest batch ", l->run, MEASURE_LARGEST_BATCH);
	}
	append_measure(t, "advised batch size ", l->run, MEASURE_ADVISED_BATCH_SIZE);
	append_measure(t, "workers ", l->run, MEASURE_ADVISED_WORKERS);
}

// Of the ranks of a job together; of a folder, NAN.
static double measure_of(const struct listed *l, enum measure_id measure)
{
	double sum = l->job ? 0 : NAN;
	for (size_t i = 0; i < l->n_runs && l->job; i++) {
		sum += l->runs[i]->measures[measure];
	}
	return l->runs ? sum : l->run->measures[measure];
}

// The labels that all ranks have: "batch_size=32".
static void append_shared_labels(struct text *labels, const struct listed *l)
{
	for (size_t i = 0; i < l->run->n_labels; i++) {
		const char *label = l->run->labels[i].name;
		bool rank = strcmp(label, "RANK") == 0 || strcmp(label, "WORLD_SIZE") == 0 ||
		            strcmp(label, "LOCAL_WORLD_SIZE") == 0 || strcmp(label, "job") == 0;
		if (!rank && !comparison_label_is_automatic(label) && all_share(l, label)) {
			append_values(labels, l, label);
		}
	}
}

// CPUs and memory of all ranks together, if they are known of each.
static void put_job(struct table *t, const struct listed *l)
{
	_cleanup_text_ struct text state = {0}, labels = {0}, name = {0};
	size_t live = 0;
	for (size_t i = 0; i < l->n_runs; i++) {
		live += l->runs[i]->state == RUN_LIVE;
	}
	text_format(&name, "job %s", l->job);
	append_outcomes(&state, l, "run");
	if (live > 0) {
		text_format(&state, ", %zu live", live);
	}
	append_shared_labels(&labels, l);
	table_text(t, LS_RUN, name.data);
	put_start(t, l->start_utc_ns);
	table_text(t, LS_OUTCOME, state.data);
	table_text(t, LS_STATE, "job");
	table_number(t, LS_DURATION, l->duration_s);
	table_number(t, LS_CPUS, measure_of(l, MEASURE_CPUS_USED));
	table_number(t, LS_CPU_SECONDS, measure_of(l, MEASURE_CPU_SECONDS));
	table_number(t, LS_MEMORY, measure_of(l, MEASURE_HOST_MEMORY_PEAK));
	table_text(t, LS_LABELS, labels.data);
}

static void put_folder(struct table *t, const struct listed *l)
{
	struct text state = {0}, labels = {0}, name = {0};
	const char *folder = folder_of(l->run), *slash = strrchr(folder, '/');
	if (l->run->sweep_directory) {
		append_outcomes(&state, l, "trial");
		append_folder_labels(&labels, l);
	} else {
		text_format(&state, "%zu probe%s", l->n_runs, l->n_runs > 1 ? "s" : "");
		append_answer(&labels, l);
	}
	text_format(&name, "%s/", slash ? slash + 1 : folder);
	table_text(t, LS_RUN, name.data);
	table_text(t, LS_PATH, folder);
	put_start(t, l->start_utc_ns);
	table_text(t, LS_OUTCOME, state.data);
	table_text(t, LS_STATE, l->run->sweep_directory ? "sweep" : "advice");
	table_number(t, LS_TRIALS, (double)l->n_runs);
	table_number(t, LS_DURATION, l->duration_s);
	table_text(t, LS_LABELS, labels.data);
	text_done(&state);
	text_done(&labels);
	text_done(&name);
}

static int list_table(const struct run_list *l, const struct column *columns,
	enum measure_id measure, struct table **ret)
{
	struct label_ranks ranks = {.n = 0};
	int r = table_new(columns, N_LS_COLUMNS, ret);
	rank_labels(&ranks, l);
	for (size_t i = 0; i < l->n && r == 0; i++) {
		r = table_row(*ret);
		if (r == 0 && l->items[i].job) {
			put_job(*ret, &l->items[i]);
		} else if (r == 0 && l->items[i].runs) {
			put_folder(*ret, &l->items[i]);
		} else if (r == 0) {
			put_run(*ret, l->items[i].run, measure, &ranks);
		}
	}
	return r;
}

// Those of an answer of `strain advise`.
static json_t *answer_json(const struct digest *run)
{
	json_t *object = json_object();
	for (size_t i = 0; i < N_MEASURES; i++) {
		if (measure_is_of_advice((enum measure_id)i)) {
			json_object_set_new(
				object, measures[i].name, json_from_number(run->measures[i]));
		}
	}
	return object;
}

static json_t *measures_json(const struct digest *run)
{
	json_t *object = json_object();
	for (size_t i = 0; i < N_MEASURES; i++) {
		if (measures[i].kind != MEASURE_KIND_WORDS &&
			!measure_is_of_advice((enum measure_id)i) &&
			(run->currency || !measure_is_priced((enum measure_id)i)) &&
			(!run->job_only || measures[i].job_only)) {
			json_object_set_new(
				object, measures[i].name, json_from_number(run->measures[i]));
		}
	}
	if (run->currency) {
		json_object_set_new(object, "currency", json_from_text(run->currency));
	}
	json_object_set_new(object, "verdict", json_from_text(*run->verdict ? run->verdict : NULL));
	return object;
}

static json_t *outcomes_json(const struct listed *l)
{
	json_t *object = json_object();
	for (size_t i = 0; i < l->n_runs; i++) {
		const char *word = outcome_word(l->runs[i]->outcome);
		json_int_t n = json_integer_value(json_object_get(object, word));
		json_object_set_new(object, word, json_integer(n + 1));
	}
	return object;
}

static int print_json(const struct run_list *l, const struct table *t, FILE *stream)
{
	json_t *rows = table_to_json(t);
	for (size_t i = 0; rows && i < l->n; i++) {
		json_t *row = json_array_get(rows, i);
		const struct digest *run = l->items[i].run;
		if (l->items[i].runs) {
			json_object_set_new(row, "outcomes", outcomes_json(&l->items[i]));
		}
		if (l->items[i].runs && run->sweep_directory) {
			continue;
		}
		json_object_set_new(row, "labels", run_json_labels(run->labels, run->n_labels));
		json_object_set_new(
			row, "measures", l->items[i].runs ? answer_json(run) : measures_json(run));
	}
	return json_write(rows, stream);
}

int run_list_print(const struct run_list *l, enum measure_id measure, bool json, FILE *stream)
{
	struct table *t = NULL;
	struct table_style style = table_style_for(stream);
	struct column columns[N_LS_COLUMNS];
	char title[64] = "";
	memcpy(columns, all_columns, sizeof(columns));
	if (measure < N_MEASURES) {
		const char *name = measures[measure].name;
		for (size_t i = 0; name[i] && i + 1 < sizeof(title); i++) {
			title[i] = (char)toupper((unsigned char)name[i]);
			title[i + 1] = '\0';
		}
		columns[LS_MEASURE].title = title;
		columns[LS_MEASURE].kind = kinds[measures[measure].kind];
	}
	int r = list_table(l, columns, measure, &t);
	if (r == 0) {
		r = json ? print_json(l, t, stream) : table_print(t, stream, &style);
	}
	table_free(t);
	return r;
}

// --- order

typedef int run_order(const struct listed *a, const struct listed *b);

static int order_numbers(double a, double b) // descending, unknown last
{
	if (isfinite(a) != isfinite(b)) {
		return isfinite(a) ? -1 : 1;
	}
	return isfinite(a) ? (a < b) - (a > b) : 0;
}

static const char *name_of(const struct listed *l)
{
	return l->job ? l->job : l->runs ? folder_of(l->run) : l->run->name;
}

static int by_start(const struct listed *a, const struct listed *b)
{
	return (a->start_utc_ns < b->start_utc_ns) - (a->start_utc_ns > b->start_utc_ns);
}

static int by_duration(const struct listed *a, const struct listed *b)
{
	return order_numbers(a->duration_s, b->duration_s);
}

static int by_name(const struct listed *a, const struct listed *b)
{
	return strcmp(name_of(a), name_of(b));
}

static int by_cpu(const struct listed *a, const struct listed *b)
{
	return order_numbers(measure_of(a, MEASURE_CPUS_USED), measure_of(b, MEASURE_CPUS_USED));
}

static int by_memory(const struct listed *a, const struct listed *b)
{
	return order_numbers(
		measure_of(a, MEASURE_HOST_MEMORY_PEAK), measure_of(b, MEASURE_HOST_MEMORY_PEAK));
}

static const struct {
	const char *name;
	run_order *compare;
} orders[] = {
	{"start", by_start},
	{"duration", by_duration},
	{"name", by_name},
	{"cpu", by_cpu},
	{"memory", by_memory},
};

static const char *label_of(const struct listed *l, const char *label)
{
	return l->runs ? NULL : digest_label(l->run, label);
}

static int by_measure(const struct listed *a, const struct listed *b, enum measure_id measure)
{
	if (a->runs || b->runs) {
		return !!a->runs - !!b->runs;
	}
	return measure == MEASURE_OUTCOME ? (int)a->run->outcome - (int)b->run->outcome
	       : measure == MEASURE_VERDICT
	               ? strcmp(a->run->verdict, b->run->verdict)
	               : order_numbers(a->run->measures[measure], b->run->measures[measure]);
}

static run_order *order_by(const char *key)
{
	for (size_t i = 0; i < ARRAY_LENGTH(orders); i++) {
		if (strcmp(orders[i].name, key) == 0) {
			return orders[i].compare;
		}
	}
	return NULL;
}

static bool any_has_label(const struct run_list *l, const char *label)
{
	for (size_t i = 0; i < l->n; i++) {
		if (label_of(&l->items[i], label)) {
			return true;
		}
	}
	return false;
}

bool run_list_is_key(const struct run_list *l, const char *key)
{
	return l->n == 0 || order_by(key) || measure_by_name(key) < N_MEASURES ||
	       any_has_label(l, key);
}

bool run_list_folds(const char *key)
{
	return order_by(key);
}

enum measure_id run_list_measure(const char *key)
{
	return order_by(key) ? N_MEASURES : measure_by_name(key);
}

struct order {
	const char *key;
	run_order *compare; // NULL: by a measure, or a label
	enum measure_id measure;
	bool reverse;
};

static int compare_listed(const void *left, const void *right, void *context)
{
	const struct order *order = context;
	const struct listed *a = left, *b = right;
	int r = order->compare ? order->compare(a, b)
	        : order->measure < N_MEASURES
	                ? by_measure(a, b, order->measure)
	                : run_table_compare(label_of(a, order->key), label_of(b, order->key));
	if (r == 0) {
		return (a->place > b->place) - (a->place < b->place);
	}
	return order->reverse ? -r : r;
}

void run_list_sort(struct run_list *l, const char *key, bool reverse)
{
	struct order order = {key, order_by(key), run_list_measure(key), reverse};
	if (l->n > 0) {
		qsort_r(l->items, l->n, sizeof(*l->items), compare_listed, &order);
	}
}

// --- runs and folders

static const struct digest **runs_of(
	struct run_list *l, const struct digest *run, struct listed **ret)
{
	for (size_t i = l->n; i-- > 0;) {
		struct listed *item = &l->items[i];
		if (item->runs && !item->job && strcmp(folder_of(item->run), folder_of(run)) == 0) {
			*ret = item;
			return item->runs;
		}
	}
	return NULL;
}

static int add_to_folder(struct run_list *l, const struct digest *run, size_t room)
{
	struct listed *folder = NULL;
	if (!runs_of(l, run, &folder)) {
		const struct digest **runs = calloc(room, sizeof(void *));
		if (!runs) {
			return -ENOMEM;
		}
		folder = &l->items[l->n];
		*folder = (struct listed){.run = run, .runs = runs, .place = l->n++};
	}
	folder->runs[folder->n_runs++] = run;
	folder->run = run; // runs come newest first, so the oldest remains
	folder->start_utc_ns = run->start_utc_ns;
	double duration = run->measures[MEASURE_DURATION];
	folder->duration_s += isfinite(duration) ? duration : 0;
	return 0;
}

// The line of a job: from the first start to the last end of its ranks.
static int add_to_job(
	struct run_list *l, const struct digest *run, const char *name, size_t room, size_t *line)
{
	if (*line == JOINT_ALONE) {
		struct listed made = {.run = run,
			.runs = calloc(room, sizeof(void *)),
			.job = strdup(name),
			.place = l->n};
		if (!made.runs || !made.job) {
			free(made.runs);
			free(made.job);
			return -ENOMEM;
		}
		*line = l->n;
		l->items[l->n++] = made;
	}
	struct listed *job = &l->items[*line];
	double start = (double)run->start_utc_ns / 1e9, length = run->measures[MEASURE_DURATION];
	double from = (double)job->start_utc_ns / 1e9, end = from + job->duration_s;
	double last = start + (isfinite(length) ? length : 0);
	if (job->n_runs == 0) {
		from = start;
		end = last;
	}
	job->start_utc_ns = job->n_runs == 0 || run->start_utc_ns < job->start_utc_ns
	                            ? run->start_utc_ns
	                            : job->start_utc_ns;
	job->duration_s = fmax(end, last) - fmin(from, start);
	job->runs[job->n_runs++] = run;
	return 0;
}

static bool is_inside(const struct digest *run, const char *directory)
{
	size_t length = strlen(directory);
	while (length > 1 && directory[length - 1] == '/') {
		length--;
	}
	const char *folder = folder_of(run);
	return strncmp(folder, directory, length) == 0 &&
	       strspn(folder + length, "/") == strlen(folder + length);
}

int run_list_fill(struct run_list *l, const struct catalogue *c, const struct selection *selection,
	const char *directory, bool jobs)
{
	struct joint_groups groups = {0};
	_cleanup_free_ size_t *lines = calloc(c->n + 1, sizeof(*lines)); // of the jobs
	l->items = calloc(c->n + 1, sizeof(*l->items));
	int r = l->items && lines ? 0 : -ENOMEM;
	r = r == 0 && jobs ? joint_groups_find(c, &groups) : r;
	for (size_t i = 0; r == 0 && i < groups.n; i++) {
		lines[i] = JOINT_ALONE;
	}
	for (size_t i = 0; i < c->n && r == 0; i++) {
		const struct digest *run = &c->runs[i];
		if (!selection_has(selection, run)) {
			continue;
		}
		if (folder_of(run) && !is_inside(run, directory)) {
			r = add_to_folder(l, run, c->n - i);
			continue;
		}
		if (groups.of && groups.of[i] != JOINT_ALONE) {
			size_t job = groups.of[i];
			r = add_to_job(l, run, groups.names[job], groups.sizes[job], &lines[job]);
			continue;
		}
		l->items[l->n] = (struct listed){.run = run,
			.start_utc_ns = run->start_utc_ns,
			.duration_s = run->measures[MEASURE_DURATION],
			.place = l->n};
		l->n++;
	}
	joint_groups_done(&groups);
	return r;
}

void run_list_done(struct run_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->items[i].runs);
		free(l->items[i].job);
	}
	free(l->items);
}
