// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// strain advise --from.

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/installation.h"
#include "base/text.h"
#include "base/words.h"
#include "cmd/advise.h"
#include "cmd/command.h"
#include "machine/cpus.h"
#include "probe/dataset.h"
#include "probe/probe.h"
#include "probe/replay.h"
#include "runfile/reader.h"
#include "show/json.h"
#include "show/table.h"
#include "study/catalogue.h"

enum { RUNS_MOST = 64, CASES_MOST = N_WHAT_IF + 2, OPTIONS_MOST = REPLAY_OPTIONS + 10 };

#define RUN_NS (30 * NS_PER_S) // of --verify, without --limit
// The same of a run with a page cache of its own: LONGER times what is expected.
#define RUN_NS_MOST (900 * NS_PER_S)
#define LONGER 1.5
// Epochs after which the page cache under a limit is as it stays. After one, it is that of an epoch
// in which no page was used twice; the kernel keeps these longer.
#define WARM_EPOCHS 2
// Share of the data that may stay in memory when it is dropped; and that the files found must have.
#define COLD_CACHED_MAX 0.05
#define FOUND_LEAST 0.8
// CPUs that other programs use: more make a verifying run less certain.
#define OTHERS_WORTH 0.2

// A case, and what --verify measured.
struct checked {
	struct what_if_case c;
	bool together; // all changes
	struct estimate measured; // samples/s; NAN: it did not run
	double others; // CPUs that other programs used meanwhile, of those of the job; NAN
	double hit; // share of the bytes that the run found in the page cache; NAN: not known
	double error; // of the prediction, relative
	char *missing; // why it was not measured
};

struct asked {
	const struct what_if_options *o;
	struct observation *seen; // [n]
	char **names; // [n] of their files
	size_t n;
	char *first; // path of the first run
	struct what_if what;
	struct checked cases[CASES_MOST]; // the first: as recorded
	size_t n_cases;
	struct probe_overlay overlay; // of --verify
	bool started; // the runs of --verify
	struct dataset dataset; // that the first of them read
	char *dataset_missing; // why it is not known; NULL: it is
};

// Runs --------------------------------------------------------------------------------------------

// Of the runs that `strain advise` keeps, some are under a limit, or with other settings.
static bool is_comparable(const char *path)
{
	static const char *const others[] = {"setting", "verify", "converge"};
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	if (!isdigit((unsigned char)name[0]) || !isdigit((unsigned char)name[1]) ||
		name[2] != '-') {
		return true;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(others); i++) {
		size_t length = strlen(others[i]);
		if (strncmp(name + 3, others[i], length) == 0 &&
			strcmp(name + 3 + length, ".strain") == 0) {
			return false;
		}
	}
	return true;
}

// Reads a run. One without a rate is left out, and said. False: out of memory.
static bool add_run(struct asked *a, const char *path)
{
	struct error e = {0};
	struct observation *o = &a->seen[a->n];
	if (observation_read(path, o, &e) < 0) {
		command_note("excluded: %s", e.text);
	} else if (!(o->rate.value > 0)) {
		command_note("excluded: %s: %s", path,
			o->rate_missing ? o->rate_missing : "the job does not count its samples");
	} else {
		a->names[a->n] = strdup(path);
		a->first = a->n == 0 ? strdup(path) : a->first;
		return a->names[a->n++] && a->first;
	}
	observation_done(o);
	return true;
}

// The runs of a file, of a folder or of a sweep, oldest first. Returns an exit status.
static int add_runs(struct asked *a, char *path)
{
	const struct catalogue_options options = {.job_only = true};
	struct catalogue found;
	struct error e = {0};
	int status = STATUS_OK;
	if (catalogue_read_with(&path, 1, &options, &found, &e) < 0) {
		return command_fail("%s", e.text);
	}
	for (size_t i = 0; i < found.n_unreadable; i++) {
		command_note("excluded: %s", found.unreadable[i]);
	}
	for (size_t i = found.n; i-- > 0 && status == STATUS_OK;) {
		const char *run = found.runs[i].path;
		if (a->n == RUNS_MOST) {
			status = command_fail("%s: expected at most %d runs", path, RUNS_MOST);
		} else if (is_comparable(run) && !add_run(a, run)) {
			status = command_fail("out of memory");
		}
	}
	catalogue_done(&found);
	return status;
}

static int read_runs(struct asked *a)
{
	int status = STATUS_OK;
	a->seen = calloc(RUNS_MOST, sizeof(*a->seen));
	a->names = calloc(RUNS_MOST, sizeof(*a->names));
	if (!a->seen || !a->names) {
		return command_fail("out of memory");
	}
	for (size_t i = 0; i < a->o->n_runs && status == STATUS_OK; i++) {
		status = add_runs(a, a->o->runs[i]);
	}
	if (status == STATUS_OK && a->n == 0) {
		status = command_fail("no run has the time of an iteration");
	}
	return status;
}

// Cases -------------------------------------------------------------------------------------------

static void add_case(struct asked *a, const struct what_if_values *values, bool together)
{
	a->cases[a->n_cases++] = (struct checked){.c = what_if_predict(&a->what, values),
		.together = together,
		.measured = {NAN, NAN, NAN},
		.others = NAN,
		.hit = NAN,
		.error = NAN};
}

// Each change alone, and all together; without any, each resource doubled.
static void list_cases(struct asked *a)
{
	struct what_if_values none = what_if_unchanged(), recorded = what_if_recorded(&a->what);
	size_t asked = 0;
	add_case(a, &none, false);
	for (enum what_if_kind i = 0; i < N_WHAT_IF; i++) {
		asked += isfinite(a->o->wanted.of[i]);
	}
	for (enum what_if_kind i = 0; i < N_WHAT_IF; i++) {
		struct what_if_values one = none;
		one.of[i] = asked > 0 ? a->o->wanted.of[i] : 2 * recorded.of[i];
		if (isfinite(one.of[i])) {
			add_case(a, &one, false);
		}
	}
	if (asked > 1) {
		add_case(a, &a->o->wanted, true);
	}
}

// Verification ------------------------------------------------------------------------------------

// Why this machine cannot stand for the other; NULL: it can.
static const char *find_obstacle(const struct asked *a, const struct what_if_case *c)
{
	const double *of = c->values.of;
	struct what_if_values recorded = what_if_recorded(&a->what);
	struct cpus allowed;
	if (isfinite(of[WHAT_IF_GPU_SPEED]) || isfinite(of[WHAT_IF_CPU_SPEED])) {
		return "this machine cannot change the speed of its processors";
	}
	if (isfinite(of[WHAT_IF_CPUS]) &&
		(cpus_of_self(&allowed) < 0 || of[WHAT_IF_CPUS] > cpus_count(&allowed))) {
		return "this machine has fewer CPUs";
	}
	if (isfinite(of[WHAT_IF_MEMORY]) && !(of[WHAT_IF_MEMORY] <= recorded.of[WHAT_IF_MEMORY])) {
		return "only less memory can be tried";
	}
	return c->too_small ? c->note : NULL;
}

// Replaces the value of an option of `strain run`, or adds it.
static void set_option(const char **options, size_t *n, const char *name, const char *value)
{
	for (size_t i = 0; i + 1 < *n; i += 2) {
		if (strcmp(options[i], name) == 0) {
			options[i + 1] = value;
			return;
		}
	}
	options[(*n)++] = name;
	options[(*n)++] = value;
}

// What starts the runs.
struct starter {
	char *strain; // path of the program
	struct replay replay;
	const struct probe_overlay *overlay;
	struct dataset_finder finder; // for the first run; no setting: not made
};

// Whether a run of this case must fill a page cache of its own. Pages that earlier runs read are
// charged to the cgroups of those runs: a limit of memory does not apply to them.
static bool needs_own_cache(const struct asked *a, const struct what_if_case *c)
{
	return isfinite(c->values.of[WHAT_IF_MEMORY]) && isfinite(a->what.data);
}

static bool any_needs_own_cache(const struct asked *a)
{
	bool any = false;
	for (size_t i = 1; i < a->n_cases; i++) {
		any = any ||
		      (needs_own_cache(a, &a->cases[i].c) && !find_obstacle(a, &a->cases[i].c));
	}
	return any;
}

// The time of the epochs of such a run, of which the first reads everything from storage, in
// seconds; without that reading if the speed of storage is not known.
static double epochs_seconds(const struct asked *a, const struct what_if_case *c)
{
	double storage = isfinite(c->values.of[WHAT_IF_DISK_READ]) ? c->values.of[WHAT_IF_DISK_READ]
	                                                           : a->what.model.storage_rate;
	double startup = a->what.base.startup >= 0 ? a->what.base.startup : 0;
	double reading = isfinite(storage) ? a->what.data / storage : 0;
	double later = isfinite(c->epoch.high) ? c->epoch.high : a->what.base.epoch;
	return startup + fmax(reading, later) + WARM_EPOCHS * later;
}

// The time that a run may take.
static uint64_t limit_of(const struct asked *a, const struct what_if_case *c)
{
	if (a->o->limit_ns > 0 || !needs_own_cache(a, c)) {
		return a->o->limit_ns > 0 ? a->o->limit_ns : RUN_NS;
	}
	bool known = isfinite(c->values.of[WHAT_IF_DISK_READ]) ||
	             isfinite(a->what.model.storage_rate);
	double limit_ns = known ? LONGER * epochs_seconds(a, c) * 1e9 : (double)RUN_NS_MOST;
	return limit_ns <= (double)RUN_NS       ? RUN_NS
	       : limit_ns < (double)RUN_NS_MOST ? (uint64_t)limit_ns
	                                        : RUN_NS_MOST;
}

// Drops the data from the page cache. Returns 0, or -errno with the reason why the run would not
// show what the limit does.
static int empty_cache(const struct asked *a, const struct what_if_case *c, struct error *e)
{
	char seconds[32], found[32], read[32];
	double bytes = (double)a->dataset.bytes;
	if (a->dataset_missing) {
		return error_set(e, ENODATA, "%s", a->dataset_missing);
	}
	if (bytes < FOUND_LEAST * a->what.data || a->dataset.too_many) {
		return error_set(e, ENODATA,
			"of %s that it reads in an epoch, files of %s were found: the others would "
			"stay in the page cache",
			text_bytes(read, sizeof(read), a->what.data),
			text_bytes(found, sizeof(found), bytes));
	}
	double needed = epochs_seconds(a, c);
	if (needed * 1e9 > (double)limit_of(a, c)) {
		return error_set(e, ETIME, "the %d epochs that it needs take about %s: set --limit",
			WARM_EPOCHS + 1, text_seconds(seconds, sizeof(seconds), needed));
	}
	int r = dataset_cool(&a->dataset, e);
	double cached = r < 0 ? 0 : dataset_cached(&a->dataset);
	if (cached > COLD_CACHED_MAX) {
		r = error_set(e, EBUSY,
			"%.0f %% of its data remains in memory (a file system in memory, or mapped "
			"by another process)",
			cached * 100);
	}
	return r;
}

// The variables of the run and, for the first one, where its hooks list the files that it reads.
static void set_environment(const struct starter *starter, size_t at, const char **ret)
{
	size_t n = 0;
	while (starter->replay.environment[n]) {
		ret[n] = starter->replay.environment[n];
		n++;
	}
	if (at == 0 && starter->finder.setting) {
		ret[n++] = starter->finder.setting;
	}
	ret[n] = NULL;
}

static int verify_case(const struct asked *a, size_t at, struct starter *starter,
	struct checked *ret, struct error *e)
{
	const struct replay *replay = &starter->replay;
	static const struct {
		enum what_if_kind kind;
		const char *option;
	} limited[] = {{WHAT_IF_CPUS, "--cpus"}, {WHAT_IF_MEMORY, "--memory"},
		{WHAT_IF_DISK_READ, "--disk-read"}};
	const char *options[OPTIONS_MOST] = {NULL};
	char values[ARRAY_LENGTH(limited)][40];
	size_t n = 0;
	for (size_t i = 0; replay->options[i]; i++) {
		options[n++] = replay->options[i];
	}
	for (size_t i = 0; i < ARRAY_LENGTH(limited); i++) {
		double value = ret->c.values.of[limited[i].kind];
		if (isfinite(value)) {
			snprintf(values[i], sizeof(values[i]), "%.0f%s", value,
				limited[i].kind == WHAT_IF_DISK_READ ? "B/s" : "");
			set_option(options, &n, limited[i].option, values[i]);
		}
	}
	options[n] = "--no-verdict";
	_cleanup_text_ struct text run = {0}, output = {0};
	text_format(&run, "%s/%02zu-what-if.strain", a->o->folder, at + 1);
	text_format(&output, "%s/%02zu-what-if.out", a->o->folder, at + 1);
	if (run.failed || output.failed) {
		return error_set(e, ENOMEM, "out of memory");
	}
	struct probe probe;
	const char *environment[REPLAY_VARIABLES + 2];
	set_environment(starter, at, environment);
	bool own_cache = needs_own_cache(a, &ret->c), finds = at == 0 && starter->finder.setting;
	if (own_cache && empty_cache(a, &ret->c, e) < 0) {
		return -e->code;
	}
	int r = probe_run(&(struct probe_config){.strain = starter->strain,
				  .command = a->o->command ? a->o->command : replay->command,
				  .directory = a->o->command ? NULL : replay->directory,
				  .overlay = starter->overlay,
				  .run = run.data,
				  .output = output.data,
				  .options = options,
				  .environment = environment,
				  .error = a->o->error,
				  .warm_epochs = own_cache ? WARM_EPOCHS : 0,
				  .limit_ns = limit_of(a, &ret->c),
				  .look = finds ? dataset_find_look : NULL,
				  .context = &starter->finder,
				  .interrupted = a->o->interrupted},
		&probe, e);
	if (r == 0) {
		struct observation seen;
		if (observation_read(run.data, &seen, NULL) == 0) {
			ret->others = seen.others_cpus;
		}
		observation_done(&seen);
		ret->measured = probe.rate.rate;
		if (own_cache && probe.end == PROBE_TIME && !isfinite(ret->measured.value)) {
			free(ret->missing);
			ret->missing = strdup(
				"the time limit ended it in its first epochs: set --limit");
		} else if (!isfinite(ret->measured.value)) {
			ret->missing = strdup(probe.no_rate ? probe.no_rate : "it has no rate");
		}
		ret->hit = isfinite(probe.fetched) ? fmin(1, fmax(0, 1 - probe.fetched)) : NAN;
		probe_done(&probe);
	}
	return r;
}

static void check_case(struct asked *a, size_t at, struct starter *starter)
{
	struct checked *k = &a->cases[at];
	struct error e = {0};
	if (verify_case(a, at, starter, k, &e) < 0) {
		k->missing = strdup(e.text);
	}
	if (at == 0 && starter->finder.setting && dataset_find_end(&starter->finder, &e) < 0) {
		a->dataset_missing = strdup(e.text);
	}
	// Storage is no slower on a busier machine.
	double before = k->c.at.bound == RATE_STORAGE
	                        ? 1
	                        : a->cases[0].measured.value / a->cases[0].c.at.rate.value;
	k->error = k->c.at.rate.value * before / k->measured.value - 1;
}

// Runs each case that this machine can stand for. The run as recorded comes first: the machine may
// be busier or quieter now, and the errors are relative to it. Those with a page cache of their own
// come last, because they leave the data out of the machine's.
static void verify_cases(struct asked *a, struct starter *starter)
{
	size_t runs = 0, n = 0;
	for (size_t i = 0; i < a->n_cases; i++) {
		const char *obstacle = i > 0 ? find_obstacle(a, &a->cases[i].c) : NULL;
		a->cases[i].missing = obstacle ? strdup(obstacle) : NULL;
		runs += !obstacle;
	}
	for (int own_cache = 0; own_cache < 2; own_cache++) {
		for (size_t i = 0; i < a->n_cases && !*a->o->interrupted; i++) {
			struct checked *k = &a->cases[i];
			if (k->missing || needs_own_cache(a, &k->c) != own_cache) {
				continue;
			}
			command_note("run %zu of %zu%s", ++n, runs,
				own_cache ? ": three epochs, of which two fill the page cache "
					    "under the limit"
					  : "");
			check_case(a, i, starter);
		}
	}
}

// How the job of the first run is started.
static int find_start(const struct asked *a, struct replay *ret, struct error *e)
{
	struct reader *reader = NULL;
	int r = replay_allowed(a->first, e);
	r = r < 0 ? r : reader_open(a->first, &reader, e);
	r = r < 0 ? r : replay_read(reader, ret, e);
	reader_free(reader);
	return r;
}

static int verify(struct asked *a)
{
	struct starter starter = {.finder = {.fd = -1}};
	struct error e = {0};
	int status = STATUS_OK;
	starter.strain = installation_find("strain", X_OK, &e);
	if (!starter.strain) {
		status = command_fail("%s", e.text);
	} else if (!a->o->command && find_start(a, &starter.replay, &e) < 0) {
		_cleanup_text_ struct text word = {0};
		text_append_path(&word, a->o->runs[0]);
		status = command_fail("%s: cannot restart its job: %s", a->first, e.text);
		command_detail("        enter the command: strain advise --from %s --verify -- "
			       "COMMAND...",
			word.data ? word.data : "");
	} else if (!advise_overlay_find(a->o->command ? NULL : starter.replay.directory,
			   a->o->folder, a->o->in_place, &a->overlay)) {
		status = STATUS_FAILURE;
	} else {
		a->started = true;
		starter.overlay = &a->overlay;
		// Not in the folder of the runs, which the overlay may hide from the job.
		const char *temporary = secure_getenv("TMPDIR");
		if (any_needs_own_cache(a)) {
			bool absolute = temporary && *temporary == '/';
			if (dataset_find_begin(absolute ? temporary : "/tmp", &a->dataset,
				    &starter.finder, &e) < 0) {
				a->dataset_missing = strdup(e.text);
			}
		}
		verify_cases(a, &starter);
	}
	dataset_find_done(&starter.finder);
	replay_done(&starter.replay);
	free(starter.strain);
	return status;
}

// Output ------------------------------------------------------------------------------------------

enum {
	CASE_CHANGE,
	CASE_RATE,
	CASE_LOW,
	CASE_HIGH,
	CASE_GAIN,
	CASE_EPOCH,
	CASE_BOUND,
	CASE_MEASURED,
	CASE_ERROR,
	CASE_NOTE,
	N_CASE
};

static const struct column case_columns[N_CASE] = {
	[CASE_CHANGE] = {"change", "", COLUMN_LABEL, 0},
	[CASE_RATE] = {"rate", "SAMPLES/S", COLUMN_NUMBER, 0},
	[CASE_LOW] = {"rate_low", "FROM", COLUMN_NUMBER, 2},
	[CASE_HIGH] = {"rate_high", "TO (90 %)", COLUMN_NUMBER, 2},
	[CASE_GAIN] = {"gain", "SPEED-UP", COLUMN_NUMBER, 0},
	[CASE_EPOCH] = {"epoch_s", "EPOCH", COLUMN_SECONDS, 0},
	[CASE_BOUND] = {"limited_by", "LIMITED BY", COLUMN_LABEL, 0},
	[CASE_MEASURED] = {"measured", "MEASURED", COLUMN_NUMBER, 0},
	[CASE_ERROR] = {"error", "ERROR", COLUMN_RATIO, 0},
	[CASE_NOTE] = {"note", "", COLUMN_PROSE, 0},
};

static void append_value(struct text *t, enum what_if_kind kind, double value)
{
	char bytes[32];
	switch (kind) {
	case WHAT_IF_CPUS:
		text_format(t, "%.3g", value);
		break;
	case WHAT_IF_MEMORY:
		text_append_string(t, text_bytes(bytes, sizeof(bytes), value));
		break;
	case WHAT_IF_DISK_READ:
		text_format(t, "%s/s", text_bytes(bytes, sizeof(bytes), value));
		break;
	default:
		text_format(t, "%.3gx", value);
		break;
	}
}

// "cpus 4 to 16"
static void append_change(struct text *t, const struct asked *a, const struct checked *k)
{
	static const char *const words[N_WHAT_IF] = {
		[WHAT_IF_CPUS] = "CPUs",
		[WHAT_IF_MEMORY] = "memory",
		[WHAT_IF_DISK_READ] = "storage",
		[WHAT_IF_GPU_SPEED] = "GPU speed",
		[WHAT_IF_CPU_SPEED] = "CPU speed",
	};
	struct what_if_values recorded = what_if_recorded(&a->what);
	for (enum what_if_kind i = 0; i < N_WHAT_IF && !k->together; i++) {
		double value = k->c.values.of[i];
		bool speed = i == WHAT_IF_GPU_SPEED || i == WHAT_IF_CPU_SPEED;
		if (!isfinite(value)) {
			continue;
		}
		text_format(t, "%s ", words[i]);
		if (isfinite(recorded.of[i]) && !speed) {
			append_value(t, i, recorded.of[i]);
			text_append_string(t, " to ");
		}
		append_value(t, i, value);
	}
	if (k->together) {
		text_append_string(t, "all together");
	} else if (t->length == 0) {
		text_append_string(t, "as recorded");
	}
}

static void append_note(struct text *t, const struct asked *a, const struct checked *k)
{
	if (k->c.at.extrapolated && isfinite(k->c.at.rate.value)) {
		text_append_string(t, "extrapolated beyond the observed range");
	}
	if (words_is_wide(k->c.at.rate.low, k->c.at.rate.high)) {
		text_append_string(t, t->length > 0 ? "; " : "");
		words_append_wide(t, k->c.at.rate.low, k->c.at.rate.high);
	}
	if (k->c.note) {
		text_format(t, "%s%s", t->length > 0 ? "; " : "", k->c.note);
	}
	if (k->missing && k->missing != k->c.note) {
		text_format(t, "%snot measured: %s", t->length > 0 ? "; " : "", k->missing);
	} else if (needs_own_cache(a, &k->c) && isfinite(k->hit)) {
		text_format(t, "%sthe page cache had %.0f %% of the bytes read, expected: %.0f %%",
			t->length > 0 ? "; " : "", 100 * k->hit, 100 * k->c.hit.value);
	}
}

static struct table *cases_table(const struct asked *a)
{
	struct table *table = NULL;
	if (table_new(case_columns, N_CASE, &table) < 0) {
		return NULL;
	}
	for (size_t i = 0; i < a->n_cases && table_row(table) == 0; i++) {
		const struct checked *k = &a->cases[i];
		_cleanup_text_ struct text change = {0}, note = {0};
		append_change(&change, a, k);
		append_note(&note, a, k);
		table_text(table, CASE_CHANGE, change.data);
		table_number(table, CASE_RATE, k->c.at.rate.value);
		table_number(table, CASE_LOW, k->c.at.rate.low);
		table_number(table, CASE_HIGH, k->c.at.rate.high);
		table_number(table, CASE_GAIN, k->c.gain.value);
		table_number(table, CASE_EPOCH, k->c.epoch.value);
		table_text(table, CASE_BOUND,
			isfinite(k->c.at.rate.value) ? rate_bound_name(k->c.at.bound) : NULL);
		table_number(table, CASE_MEASURED, k->measured.value);
		table_number(table, CASE_ERROR, i > 0 ? k->error : NAN);
		table_text(table, CASE_NOTE, note.data);
	}
	return table;
}

// Other programs that took CPU time from the verifying runs: their errors are not the model's
// alone.
static void print_others(const struct asked *a)
{
	double most = 0;
	for (size_t i = 0; i < a->n_cases; i++) {
		most = fmax(most, a->cases[i].others); // NAN does not count
	}
	if (most >= OTHERS_WORTH) {
		printf("other programs used %.1f CPUs during these runs: the errors are less "
		       "certain\n",
			most);
	}
}

static void print_cases(const struct asked *a)
{
	struct table *table = cases_table(a);
	struct table_style style = table_style_for(stdout);
	const struct observation *base = &a->what.base;
	char bytes[32];
	printf("%s: batch size %" PRId64, a->first,
		base->batch_size > 0 ? base->batch_size : base->loader_batch_size);
	if (base->workers >= 0) {
		printf(", %" PRId64 " worker%s", base->workers, base->workers == 1 ? "" : "s");
	}
	if (base->cpus > 0) {
		printf(", %.3g CPUs", base->cpus);
	}
	if (isfinite(a->what.data)) {
		printf(", reads %s per epoch", text_bytes(bytes, sizeof(bytes), a->what.data));
	}
	puts("\n");
	if (table) {
		table_print(table, stdout, &style);
	}
	table_free(table);
	printf("\nbased on %zu run%s; rates that were not measured are estimates", a->n,
		a->n == 1 ? "" : "s");
	if (a->what.between > 0) {
		char seconds[32];
		printf("; the %s per epoch outside iterations are assumed to stay the same",
			text_seconds(seconds, sizeof(seconds), a->what.between));
	} else if (isnan(a->what.between) && a->what.base.epoch_samples > 0) {
		printf("; no whole epoch was recorded, so EPOCH is the time of the iterations "
		       "alone");
	} else if (isnan(a->what.between)) {
		printf("; no whole epoch was recorded");
	}
	puts("");
	print_others(a);
}

static json_t *values_json(const struct what_if_values *values)
{
	json_t *json = json_object();
	for (enum what_if_kind i = 0; i < N_WHAT_IF; i++) {
		json_object_set_new(json, what_if_name(i), json_from_number(values->of[i]));
	}
	return json;
}

static json_t *answer_json(const struct asked *a)
{
	json_t *json = json_object(), *runs = json_array(), *cases = json_array();
	struct what_if_values recorded = what_if_recorded(&a->what);
	struct table *table = cases_table(a);
	json_t *rows = table ? table_to_json(table) : json_array();
	for (size_t i = 0; i < a->n; i++) {
		json_array_append_new(runs, json_from_text(a->names[i]));
	}
	for (size_t i = 0; i < a->n_cases && i < json_array_size(rows); i++) {
		const struct what_if_case *c = &a->cases[i].c;
		json_t *row = json_array_get(rows, i);
		json_object_set_new(row, "values", values_json(&c->values));
		json_object_set_new(row, "epoch_low_s", json_from_number(c->epoch.low));
		json_object_set_new(row, "epoch_high_s", json_from_number(c->epoch.high));
		json_object_set_new(row, "page_cache_ratio", json_from_number(c->hit.value));
		json_object_set_new(row, "page_cache_measured", json_from_number(a->cases[i].hit));
		json_object_set_new(row, "observed", json_boolean(!c->at.extrapolated));
		json_array_append(cases, row);
	}
	json_decref(rows);
	table_free(table);
	json_object_set_new(json, "runs", runs);
	json_object_set_new(json, "batch_size",
		json_integer(a->what.base.batch_size > 0 ? a->what.base.batch_size
							 : a->what.base.loader_batch_size));
	json_object_set_new(json, "workers",
		a->what.base.workers >= 0 ? json_integer(a->what.base.workers) : json_null());
	json_object_set_new(json, "recorded", values_json(&recorded));
	json_object_set_new(json, "epoch_bytes", json_from_number(a->what.data));
	json_object_set_new(json, "held_bytes", json_from_number(a->what.held));
	json_object_set_new(json, "cases", cases);
	advise_overlay_json(json, a->started ? &a->overlay : NULL);
	return json;
}

static void free_asked(struct asked *a)
{
	for (size_t i = 0; i < a->n; i++) {
		observation_done(&a->seen[i]);
		free(a->names[i]);
	}
	for (size_t i = 0; i < a->n_cases; i++) {
		free(a->cases[i].missing);
	}
	probe_overlay_done(&a->overlay);
	dataset_done(&a->dataset);
	free(a->dataset_missing);
	free(a->seen);
	free(a->names);
	free(a->first);
}

int advise_what_if(const struct what_if_options *o)
{
	struct asked a = {.o = o, .overlay = PROBE_OVERLAY_NONE};
	struct error e = {0};
	int status = read_runs(&a);
	if (status == STATUS_OK && what_if_begin(a.seen, a.n, &a.what, &e) < 0) {
		status = command_fail("%s", e.text);
	}
	if (status == STATUS_OK) {
		list_cases(&a);
		status = o->verify ? verify(&a) : STATUS_OK;
	}
	if (status == STATUS_OK && o->json) {
		status = json_write(answer_json(&a), stdout) < 0
		                 ? command_fail("cannot write: %s", strerrordesc_np(errno))
		                 : command_flush();
	} else if (status == STATUS_OK) {
		print_cases(&a);
		status = command_flush();
	}
	free_asked(&a);
	return status;
}
