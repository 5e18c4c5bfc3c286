// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Chooses, makes and judges the probes of advice.

#include "probe/advice.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/installation.h"
#include "base/parse.h"
#include "base/secret.h"
#include "base/text.h"
#include "machine/machine.h"
#include "machine/procfs.h"
#include "probe/batch_search.h"
#include "probe/placeholders.h"
#include "probe/probe.h"
#include "run/outcome.h"
#include "strain/marker.h"

// PyTorch reserves whole segments.
#define CAP_SLACK 1.02
// Iterations of a pass in probes of the line, and in those that verify.
#define LINE_ITERATIONS 6
#define VERIFY_ITERATIONS 10
// At least so many where more take too long: the optimizer's state and most workspaces are there.
#define VERIFY_LEAST 4
#define VERIFY_SECONDS 4.0 // of these iterations, if memory is regular
// The first pass of a probe that measures a rate lasts at least this long.
#define RATE_SECONDS 4.0
// So many seconds after the first iteration, the rate is used even if its interval is wide: on a
// machine whose load changes, more iterations do not narrow it.
#define ENOUGH_SECONDS 12.0
// A larger probe is made if the answer is this far beyond the largest batch size probed.
#define REACH 8
// A job waits for its batches if that takes this share of an iteration.
#define WAITS 0.03
// Workers may not be worth their cost if preparation takes less than this share of computing.
#define LIGHT 0.2
// Copies of the workers below this share of the job's memory are noise.
#define WORTH_COPIES 0.02
// Configurations within this share of the best rate are equal: the smallest is advised.
#define EQUAL 0.01
// A change is advised if it promises at least this gain.
#define GAIN_MIN 1.03
// A gain without an interval (too few iterations) is one from here, if they took that long.
#define GAIN_UNSURE 1.25
#define GAIN_SECONDS 2.0
// The model of throughput rests on rates with a relative error of at most this.
#define SURE 0.06
// After a run that did not fit, memory is measured at this share of its batch size if that is so
// many times the largest batch size probed.
#define NEARER 0.75
#define NEARER_LEAST 1.25
// Of the batches that an iteration accumulates, so many have a backward pass of their own that was
// marked, at least.
#define PASSES 0.7
// Where memory does not grow with the batch size: the next one, and how often.
#define CLIMB 4
#define CLIMBS_MAX 2
// A run under the limit that needs less than this share of it would have passed with any of the
// memory that equal runs need.
#define FAR_BELOW 0.85
// Seconds of iterations of the run that confirms; and an error of the rate that ends it no sooner.
#define LASTING_SECONDS 15.0
#define LASTING_ERROR 1e-9
// The hooks look for the largest samples for so long, at most.
#define LOOK_SECONDS "2.0"
// A batch size that failed after it had fitted is followed by one of this share of it.
#define BELOW_FAILED 0.92
// Where equal runs need different memory: what the largest batch size, and the lower end of its
// interval, pass with this probability.
#define PASSES_MOST 0.9
#define PASSES_NEARLY_ALL 0.98
// How sure the line is of the mean of runs that last, relative; and a line that did not agree with
// them.
#define LINE_DOUBT 0.03
#define LINE_DOUBT_BENT 0.15
// The answer is not below this share of a batch size that ran; the lower end may be.
#define PASSES_LEAST 0.75
#define BATCH_MOST PLACEHOLDER_BATCH_MOST
#define WORKERS_MOST 64
#define START_SECONDS 8 // of a job, roughly, before its first iteration

enum { CONFIRMS_MAX = 4 };
// Runs with larger sizes where memory is flat, the search, and one that measures memory nearer.
enum { VERIFIES = CLIMBS_MAX + BATCH_SEARCH_RUNS_MAX + 1 };
enum { ADVISED_MAX = 3, SETTINGS_TRIED = 2 };
enum { IRREGULAR_POINTS = 4 }; // of the line

static const char *const step_names[N_ADVICE_STEPS] = {
	[ADVICE_NOW] = "now",
	[ADVICE_SETTING] = "setting",
	[ADVICE_LINE] = "line",
	[ADVICE_WORKERS] = "workers",
	[ADVICE_VERIFY] = "verify",
	[ADVICE_ADVISED] = "advised",
	[ADVICE_AGAIN] = "again",
	[ADVICE_REQUEST] = "request",
	[ADVICE_CONVERGE] = "converge",
};

static const char *const limit_names[N_ADVICE_LIMITS] = {
	[ADVICE_LIMIT_REQUESTED] = "requested",
	[ADVICE_LIMIT_CGROUP] = "cgroup",
	[ADVICE_LIMIT_ADDRESS_SPACE] = "address space",
	[ADVICE_LIMIT_GPU] = "gpu",
	[ADVICE_LIMIT_MACHINE] = "machine",
};

const char *advice_step_name(enum advice_step step)
{
	return step_names[step];
}

const char *advice_limit_name(enum advice_limit limit)
{
	return limit_names[limit];
}

const char *advice_verified_name(enum advice_verified verified)
{
	static const char *const names[] = {[ADVICE_NOT_VERIFIED] = "no",
		[ADVICE_MEASURED] = "measured",
		[ADVICE_UNDER_LIMIT] = "limit"};
	return names[verified];
}

bool advice_gained(const struct estimate *gain)
{
	return gain->value >= OBSERVATION_GAIN_MIN && gain->low > 1;
}

// The state of the work ---------------------------------------------------------------------------

// Stages that make probes, in their order.
enum stage {
	STAGE_NOW,
	STAGE_SETTINGS,
	STAGE_LINE,
	STAGE_VERIFY,
	STAGE_WORKERS,
	STAGE_ADVISED,
	STAGE_AGAIN,
	STAGE_ALLOCATOR,
	STAGE_REQUEST,
	N_STAGES,
};

struct work {
	const struct advice_config *config;
	struct advice *a;
	char *strain;
	uint64_t start_ns;
	bool shorten; // the job runs with shortened epochs
	bool cannot_limit; // a memory limit could not be set
	double virtual_bytes; // of the probe that runs
	uint64_t gpu_cap; // of a rank's allocator, for --gpu-memory; 0: none
	bool out_of_memory; // no memory of our own
	enum stage stage; // that made the last probe
	size_t stage_from; // probes made before it
	double too_long_s; // a probe with a larger batch size would take so long; 0: none was left
	                   // out
};

static void say(const struct work *w, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void say(const struct work *w, const char *format, ...)
{
	char line[400];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	w->config->say(line);
}

static char *format(const char *text, ...) __attribute__((format(printf, 1, 2)));

static char *format(const char *text, ...)
{
	char *result = NULL;
	va_list arguments;
	va_start(arguments, text);
	if (vasprintf(&result, text, arguments) < 0) {
		result = NULL;
	}
	va_end(arguments);
	return result;
}

static double seconds_spent(const struct work *w)
{
	return (double)(clock_monotonic_ns() - w->start_ns) / 1e9;
}

// Probes still to make.
struct left {
	unsigned least, most;
};

static struct left probes_left(const struct work *w);

// The probes that are usually left: of those that depend on what the others find, a quarter. Of
// jobs with largest batches of 50 to 500, 0.16 to 0.37 of them were made.
static unsigned usually_left(const struct left *left)
{
	return left->least + (left->most - left->least + 2) / 4;
}

// The time of the probes that are left: usually, at the mean pace so far; and of the most, at that
// of the slowest, until --time.
static void append_time_left(struct text *t, const struct work *w, const struct left *left)
{
	const struct advice *a = w->a;
	double slowest = 0, spent = seconds_spent(w);
	double until = fmax(0, (double)w->config->time_ns / 1e9 - spent);
	double comparing = 2 * (double)w->config->converge_ns / 1e9;
	char about[32], most[32];
	for (size_t i = 0; i < a->n; i++) {
		slowest = fmax(slowest, a->probes[i].seconds);
	}
	double at_most = fmin(left->most * slowest, until + slowest);
	double usual = fmin(usually_left(left) * spent / (double)a->n, at_most);
	text_seconds(about, sizeof(about), usual + comparing);
	text_seconds(most, sizeof(most), at_most + comparing);
	text_format(t, "about %s left", about);
	if (left->least < left->most) {
		text_format(t, ", at most %s", most);
	}
}

// Says which probe comes next, and how many may follow.
static void say_probe(struct work *w, enum stage stage, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void say_probe(struct work *w, enum stage stage, const char *format, ...)
{
	char what[200];
	size_t n = w->a->n;
	_cleanup_text_ struct text time = {0};
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(what, sizeof(what), format, arguments);
	va_end(arguments);
	if (stage > w->stage) {
		w->stage = stage;
		w->stage_from = n;
	}
	if (n == 0) {
		say(w, "probe 1: %s", what);
		return;
	}
	struct left left = probes_left(w);
	append_time_left(&time, w, &left);
	say(w, "probe %zu of %s%zu, %s: %s", n + 1, left.most > left.least ? "about " : "",
		n + usually_left(&left), time.data ? time.data : "", what);
}

static double seconds_left(const struct work *w)
{
	return (double)w->config->time_ns / 1e9 - seconds_spent(w);
}

// Whether a probe of about so many seconds may start that the answer can do without.
static bool has_time(struct work *w, double seconds)
{
	struct advice *a = w->a;
	a->interrupted = a->interrupted || *w->config->interrupted;
	return !a->interrupted && !a->out_of_time && seconds <= seconds_left(w) &&
	       a->n < ADVICE_PROBES_MAX;
}

// The same of one that it needs: without it, the time ran out.
static bool goes_on(struct work *w, double seconds)
{
	w->a->interrupted = w->a->interrupted || *w->config->interrupted;
	if (!w->a->interrupted && seconds > seconds_left(w)) {
		w->a->out_of_time = true;
	}
	return has_time(w, seconds);
}

// A probe -----------------------------------------------------------------------------------------

// The highest peak of a process's address space.
static void look_at_address_space(void *context, const pid_t *pids, size_t n)
{
	struct work *w = context;
	for (size_t i = 0; i < n; i++) {
		char path[48];
		struct proc_status status;
		snprintf(path, sizeof(path), "/proc/%d/status", (int)pids[i]);
		if (proc_status_read(AT_FDCWD, path, &status) == 0 &&
			status.peak_virtual_bytes > 0) {
			w->virtual_bytes = fmax(
				w->virtual_bytes, (double)status.peak_virtual_bytes);
		}
	}
}

struct wish { // what a probe should run
	enum advice_step step;
	int64_t batch_size, workers; // -1: the script's own
	uint64_t limit_bytes; // 0: none
	unsigned iterations; // of each pass
	double seconds; // of the first pass
	const struct setting_list *settings; // NULL: the advised ones
	double learning_rate; // 0: the script's own
	double cpus; // 0: as configured
	double lasting; // seconds of iterations, with epochs of full length; 0: shortened ones
	bool whole; // epochs of full length, until the time of a run that compares convergence
};

static const struct setting_list *settings_of(const struct work *w, const struct wish *wish)
{
	return wish->settings ? wish->settings : &w->a->settings;
}

static bool is_variable(const struct setting *s)
{
	return s->kind == SETTING_ENVIRONMENT;
}

// "STRAIN_SET=batch_size=64 was=32 num_workers=2 at=train.py:42"; NULL: nothing is set.
static char *loader_setting(const struct work *w, const struct wish *wish)
{
	const struct advice_probe *now = w->a->now;
	_cleanup_text_ struct text set = {0};
	double unused;
	// A loader with a batch sampler has none that could be set.
	bool batch = wish->batch_size > 0 && now && now->seen.loader_batch_size > 0 &&
	             !placeholders_has(w->config->command, PLACEHOLDER_BATCH_SIZE, &unused);
	bool workers = wish->workers >= 0 &&
	               !placeholders_has(w->config->command, PLACEHOLDER_WORKERS, &unused);
	const struct setting_list *settings = settings_of(w, wish);
	size_t of_loader = 0;
	for (size_t i = 0; i < settings->n; i++) {
		of_loader += !is_variable(&settings->items[i]);
	}
	if (!now || !(batch || workers || of_loader > 0)) {
		return NULL;
	}
	text_append_string(&set, "STRAIN_SET=");
	if (batch) {
		text_format(&set, "batch_size=%" PRId64 " was=%" PRId64 " ", wish->batch_size,
			now->seen.loader_batch_size);
	}
	if (workers) {
		text_format(&set, "num_workers=%" PRId64 " ", wish->workers);
	}
	for (size_t i = 0; i < settings->n; i++) {
		const struct setting *s = &settings->items[i];
		if (!is_variable(s)) {
			text_format(&set, "%s=%s ", setting_kind_name(s->kind), s->value);
		}
	}
	if (now->seen.loader_at) {
		text_format(&set, "at=%s", now->seen.loader_at);
	}
	return text_steal(&set);
}

static char *probe_path(const struct work *w, const char *name, const char *ending)
{
	return format("%s/%02zu-%s%s", w->config->folder, w->a->n + 1, name, ending);
}

#define LINE_BYTES 200

// The last line of a file, printable and without secrets; "": it has none.
static void read_last_line(const char *path, struct text *ret)
{
	char end[4 * LINE_BYTES];
	_cleanup_text_ struct text masked = {0};
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
	off_t from = size > (off_t)sizeof(end) ? size - (off_t)sizeof(end) : 0;
	ssize_t n = fd < 0 ? 0 : pread(fd, end, sizeof(end), from);
	secret_append_end(&masked, end, n > 0 ? (size_t)n : 0, from > 0);
	size_t length = masked.data ? masked.length : 0;
	while (length > 0 && strchr(" \t\r\n", masked.data[length - 1])) {
		length--;
	}
	size_t start = length;
	while (start > 0 && masked.data[start - 1] != '\n' && length - start < LINE_BYTES) {
		start--;
	}
	text_append_printable(ret, masked.data ? masked.data + start : "", length - start);
}

// Whether a job that failed said that memory ran out. Its output is not in the run.
static bool said_out_of_memory(int status, const char *path)
{
	char end[16 * 1024];
	_cleanup_free_ char *text = NULL;
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
	ssize_t n = size <= 0 ? 0
	                      : pread(fd, end, sizeof(end),
					size > (off_t)sizeof(end) ? size - (off_t)sizeof(end) : 0);
	enum outcome outcome = OUTCOME_UNKNOWN;
	const struct outcome_evidence evidence = {.state = RUN_FINISHED,
		.status = status,
		.output = end,
		.output_length = n > 0 ? (size_t)n : 0};
	return outcome_judge(&evidence, &outcome, &text) == 0 && outcome == OUTCOME_OUT_OF_MEMORY;
}

// Why a job failed. All output of the first probe's is printed.
static char *why_it_failed(int status, enum advice_step step, const char *output)
{
	_cleanup_text_ struct text line = {0};
	if (step != ADVICE_NOW) {
		read_last_line(output, &line);
	}
	const char *said = line.data ? line.data : "";
	const char *colon = *said ? ": " : "";
	return WIFSIGNALED(status) ? format("the job was killed by signal %d", WTERMSIG(status))
	                           : format("the job failed with exit status %d%s%s",
					     WEXITSTATUS(status), colon, said);
}

static void take_end(
	struct work *w, const struct probe *probe, struct advice_probe *p, const char *output)
{
	p->seconds = probe->seconds;
	p->virtual_bytes = w->virtual_bytes > 0 ? w->virtual_bytes : NAN;
	w->a->interrupted = w->a->interrupted || probe->end == PROBE_INTERRUPTED;
	p->failed = probe->end == PROBE_JOB_FAILED;
	p->cut = probe->end == PROBE_TIME;
	if (p->failed) {
		p->status = probe->status;
		p->reason = why_it_failed(p->status, p->step, output);
	}
}

// The batch size that the job was given; -1: not known.
static int64_t given_batch(const struct work *w, const struct advice_probe *p)
{
	double otherwise;
	if (p->batch_size > 0) {
		return p->batch_size;
	}
	if (placeholders_has(w->config->command, PLACEHOLDER_BATCH_SIZE, &otherwise)) {
		return isfinite(otherwise) ? (int64_t)otherwise : PLACEHOLDER_BATCH_DEFAULT;
	}
	return p->seen.loader_batch_size;
}

// A job may accumulate the gradients of several batches in an iteration: as many in each run, or
// as the loader's batch size says.
static void divide_iterations(const struct work *w, struct advice_probe *p)
{
	int64_t given = given_batch(w, p), samples = p->seen.batch_size;
	int64_t before = w->a->now ? w->a->now->seen.accumulated : 0;
	// An epoch has no more batches than these, and the last one may be smaller.
	int64_t fewer = given > 0 ? (samples + given - 1) / given : 0;
	if (before > 1 && samples < before * given && fewer > 1 &&
		p->seen.passes >= PASSES * (double)fewer &&
		p->seen.passes <= (double)fewer / PASSES) {
		observation_divide(&p->seen, fewer);
		p->seen.batch_size = given;
		return;
	}
	if (given < 1 || samples <= given || samples % given != 0) {
		return;
	}
	int64_t batches = samples / given;
	if (p->seen.passes < PASSES * (double)batches) { // another loader has larger batches
		return;
	}
	if (before == 0 || batches == before || p->seen.loader_batch_size == given) {
		observation_divide(&p->seen, batches);
	}
}

// How `strain run` is called for a wish. Both lists end with NULL.
struct call {
	const char *options[10 + 2 * ADVICE_LABELS_MAX];
	const char *environment[5 + SETTINGS_MAX];
	char limit[40], cpus[16];
	char *set, *shorten, *cap; // owned
	char **command; // owned
};

static void call_done(struct call *c)
{
	free(c->set);
	free(c->shorten);
	free(c->cap);
	placeholders_free(c->command);
}

static void list_options(const struct work *w, const struct wish *wish, struct call *c)
{
	const struct advice_config *config = w->config;
	size_t n = 0;
	c->options[n++] = "--no-verdict";
	c->options[n++] = "--interval";
	c->options[n++] = "10ms";
	for (size_t i = 0; i < config->n_labels; i++) {
		c->options[n++] = "--label";
		c->options[n++] = config->labels[i];
	}
	bool host = w->a->limit_kind != ADVICE_LIMIT_GPU || wish->step == ADVICE_REQUEST;
	if (wish->limit_bytes > 0 && host) {
		snprintf(c->limit, sizeof(c->limit), "%" PRIu64, wish->limit_bytes);
		c->options[n++] = "--memory";
		c->options[n++] = c->limit;
	}
	if (wish->cpus > 0 || config->cpus > 0) {
		snprintf(c->cpus, sizeof(c->cpus), "%.0f",
			wish->cpus > 0 ? wish->cpus : config->cpus);
		c->options[n++] = "--cpus";
		c->options[n++] = c->cpus;
	}
	if (wish->whole) {
		c->options[n++] = "--epoch-pattern";
		c->options[n++] = config->pattern ? config->pattern : curve_pattern;
	}
}

static void list_environment(const struct work *w, const struct wish *wish, struct call *c)
{
	const struct setting_list *settings = settings_of(w, wish);
	size_t n = 0;
	for (size_t i = 0; i < settings->n; i++) {
		if (is_variable(&settings->items[i])) {
			c->environment[n++] = settings->items[i].value;
		}
	}
	if (w->shorten && !wish->whole && !(wish->lasting > 0)) {
		c->environment[n++] = c->shorten;
	}
	if (!wish->whole && w->shorten) {
		// More of the largest samples than the job has would change a rate.
		c->environment[n++] = wish->seconds > 0 ? "STRAIN_LONGEST=" LOOK_SECONDS
		                                        : "STRAIN_LONGEST=" LOOK_SECONDS " again";
	}
	if (c->set) {
		c->environment[n++] = c->set;
	}
	if (c->cap) {
		c->environment[n++] = c->cap;
	}
}

// False: out of memory.
static bool prepare_call(const struct work *w, const struct wish *wish, struct call *ret)
{
	const struct placeholder_values values = {
		wish->batch_size, wish->workers, wish->learning_rate};
	*ret = (struct call){.set = loader_setting(w, wish),
		.shorten = format("STRAIN_SHORT=%u %.1f", wish->iterations, wish->seconds),
		.command = placeholders_fill(w->config->command, &values)};
	bool caps = wish->limit_bytes > 0 && w->gpu_cap > 0;
	if (caps) {
		ret->cap = format("STRAIN_GPU_MEMORY=%" PRIu64, w->gpu_cap);
	}
	list_options(w, wish, ret);
	list_environment(w, wish, ret);
	return ret->shorten && ret->command && (ret->cap || !caps);
}

// Runs the command of a wish, and reads what its run says. Returns 0, also if the job failed;
// -errno if nothing was recorded.
static int record(struct work *w, const struct wish *wish, struct advice_probe *p, char *output,
	struct error *e)
{
	const struct advice_config *config = w->config;
	const bool rated = wish->seconds > 0;
	struct call call;
	struct probe probe;
	if (!prepare_call(w, wish, &call)) {
		call_done(&call);
		return error_set(e, ENOMEM, "out of memory");
	}
	w->virtual_bytes = 0;
	int r = probe_run(&(struct probe_config){.strain = w->strain,
				  .command = call.command,
				  .run = p->run,
				  .output = output,
				  .overlay = config->overlay,
				  .options = call.options,
				  .environment = call.environment,
				  .error = wish->whole         ? 0
	                                   : wish->lasting > 0 ? LASTING_ERROR
	                                   : rated             ? config->error
	                                                       : 1,
				  .seconds = rated ? RATE_SECONDS / 2 : 0.001,
				  .epochs = wish->lasting > 0 ? 0 : 2,
				  .enough = wish->whole         ? 0
	                                    : wish->lasting > 0 ? wish->lasting
	                                                        : ENOUGH_SECONDS,
				  .limit_ns = wish->whole ? config->converge_ns : config->limit_ns,
				  .look = look_at_address_space,
				  .context = w,
				  .interrupted = config->interrupted},
		&probe, e);
	call_done(&call);
	if (r == 0) {
		take_end(w, &probe, p, output);
		probe_note_end(&probe, p->run);
		r = observation_read(p->run, &p->seen, e);
		if (r == 0) {
			p->seen.out_of_memory = p->seen.out_of_memory ||
			                        (p->failed &&
							said_out_of_memory(p->status, output));
			divide_iterations(w, p);
			observation_count_kept(&p->seen);
			p->lasted = wish->lasting > 0 && !p->cut;
		}
		probe_done(&probe);
	}
	return r;
}

// Makes a probe and appends it to the answer. *ret is NULL if nothing was recorded.
static int make(struct work *w, const struct wish *wish, struct advice_probe **ret, struct error *e)
{
	*ret = NULL;
	if (w->a->n == ADVICE_PROBES_MAX) {
		return error_set(e, E2BIG, "too many runs");
	}
	struct advice_probe *p = &w->a->probes[w->a->n];
	*p = (struct advice_probe){.step = wish->step,
		.batch_size = wish->batch_size,
		.workers = wish->workers,
		.limit_bytes = wish->limit_bytes,
		.settings = *settings_of(w, wish),
		.gain = {NAN, NAN, NAN},
		.virtual_bytes = NAN,
		.run = probe_path(w, advice_step_name(wish->step), ".strain")};
	_cleanup_free_ char *output = probe_path(w, advice_step_name(wish->step), ".out");
	if (!p->run || !output) {
		free(p->run);
		return error_set(e, ENOMEM, "out of memory");
	}
	int r = record(w, wish, p, output, e);
	w->a->seconds = seconds_spent(w);
	if (r < 0 || p->failed || p->seen.iterations == 0) {
		free(w->a->failed_output);
		w->a->failed_output = take_pointer(output);
	}
	if (r < 0) {
		observation_done(&p->seen);
		free(p->run);
		free(p->reason);
		*p = (struct advice_probe){0};
		return r;
	}
	w->a->n++;
	*ret = p;
	return 0;
}

// The same. If nothing was recorded, because the limit of memory could not be set, the job runs
// without one.
static int make_limited(
	struct work *w, struct wish *wish, struct advice_probe **ret, struct error *e)
{
	int r = make(w, wish, ret, e);
	if (r != -ENODATA || wish->limit_bytes == 0 || w->a->interrupted) {
		return r;
	}
	_cleanup_text_ struct text why = {0};
	if (w->a->failed_output) {
		read_last_line(w->a->failed_output, &why);
	}
	say(w, "cannot limit memory here: measuring the peak instead (%s)",
		why.length > 0 ? why.data : e->text);
	free(w->a->failed_output);
	w->a->failed_output = NULL;
	w->cannot_limit = true;
	wish->limit_bytes = 0;
	return make(w, wish, ret, e);
}

// Limits ------------------------------------------------------------------------------------------

// Bytes of memory available on this machine; NAN: not known.
static double memory_available(void)
{
	uint64_t bytes;
	return procfs_meminfo(AT_FDCWD, "MemAvailable", &bytes) == 0 ? (double)bytes : NAN;
}

static int refuse_limit(const struct advice *a, uint64_t wanted, struct error *e)
{
	char asked[32], limit[32];
	text_bytes(asked, sizeof(asked), (double)wanted);
	text_bytes(limit, sizeof(limit), a->limit_bytes);
	return error_set(e, EINVAL,
		"--memory: expected at most the limit of %s that applies here "
		"(%s), found %s",
		limit, a->limit_kind == ADVICE_LIMIT_CGROUP ? "cgroup" : "address space, RLIMIT_AS",
		asked);
}

// The limit of memory that applies to the job: the requested one, else the tightest.
static int find_limit(struct work *w, struct error *e)
{
	struct advice *a = w->a;
	struct machine machine = {0};
	struct rlimit space;
	_cleanup_close_ int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root >= 0) {
		machine_read(root, &machine);
	}
	a->limit_kind = ADVICE_LIMIT_MACHINE;
	a->limit_bytes = memory_available();
	if (machine.memory_limit_bytes > 0 &&
		!((double)machine.memory_limit_bytes > a->limit_bytes)) {
		a->limit_kind = ADVICE_LIMIT_CGROUP;
		a->limit_bytes = (double)machine.memory_limit_bytes;
	}
	if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY &&
		!((double)space.rlim_cur > a->limit_bytes)) {
		a->limit_kind = ADVICE_LIMIT_ADDRESS_SPACE;
		a->limit_bytes = (double)space.rlim_cur;
	}
	if (w->config->memory_bytes > 0) {
		if (a->limit_kind != ADVICE_LIMIT_MACHINE &&
			(double)w->config->memory_bytes > a->limit_bytes) {
			return refuse_limit(a, w->config->memory_bytes, e);
		}
		a->limit_kind = ADVICE_LIMIT_REQUESTED;
		a->limit_bytes = (double)w->config->memory_bytes;
	}
	double cpus = machine.cpus_allowed;
	cpus = machine.cpu_quota > 0 && machine.cpu_quota < cpus ? floor(machine.cpu_quota) : cpus;
	a->cpus = w->config->cpus > 0 ? w->config->cpus : cpus >= 1 ? (unsigned)cpus : 1;
	return 0;
}

static double ranks_of(const struct observation *o)
{
	return fmax(1, (double)o->ranks);
}

// The same, of a job that uses a GPU. A cap is one of PyTorch's allocator: what the driver and
// libraries hold beside it (the context) is outside of the cap, and is the job's all the same.
static int find_limit_of_gpu(struct work *w, const struct observation *now, struct error *e)
{
	struct advice *a = w->a;
	const uint64_t wanted = w->config->gpu_memory_bytes;
	const double ranks = ranks_of(now);
	const bool each = (double)now->gpus == ranks; // a GPU of its own
	char asked[32], held[32];
	double beside = fmax(0, now->gpu - ranks * now->gpu_reserved); // 0: not known
	if (wanted > 0 && !(now->gpu > 0)) {
		return error_set(e, ENODATA,
			"--gpu-memory: expected a job that uses a GPU, found no process of it on "
			"one");
	}
	if (wanted > 0 && !each) {
		return error_set(e, ENOTSUP,
			"--gpu-memory: expected one GPU for each process that trains, found %u for "
			"%.0f",
			now->gpus, ranks);
	}
	if (wanted > 0 && !isfinite(now->gpu_reserved)) {
		return error_set(e, ENOTSUP,
			"--gpu-memory: expected PyTorch with strain's hooks, found none in the "
			"job");
	}
	if (!(now->gpu > 0)) {
		return 0;
	}
	a->limit_kind = ADVICE_LIMIT_GPU;
	a->limit_bytes = now->gpu_limit;
	if (each && ranks * now->gpu_cap + beside < a->limit_bytes) { // NAN is no cap
		a->limit_bytes = ranks * now->gpu_cap + beside;
	}
	if (wanted > 0 && (double)wanted <= beside / ranks) {
		text_bytes(asked, sizeof(asked), (double)wanted);
		text_bytes(held, sizeof(held), beside / ranks);
		return error_set(e, EINVAL,
			"--gpu-memory: expected more than the %s that the job holds outside of "
			"PyTorch's allocator, found %s",
			held, asked);
	}
	if (wanted > 0 && ranks * (double)wanted > a->limit_bytes) {
		text_bytes(asked, sizeof(asked), (double)wanted);
		text_bytes(held, sizeof(held), a->limit_bytes / ranks);
		return error_set(e, EINVAL,
			"--gpu-memory: expected at most the %s of GPU memory that the job may use, "
			"found %s",
			held, asked);
	}
	if (wanted > 0) {
		a->limit_bytes = ranks * (double)wanted;
		w->gpu_cap = wanted - (uint64_t)(beside / ranks);
	}
	return 0;
}

// What the limit limits, as a probe measured it.
static double limited_bytes(const struct advice *a, const struct advice_probe *p)
{
	switch (a->limit_kind) {
	case ADVICE_LIMIT_GPU:
		return observation_gpu_needed(&p->seen);
	case ADVICE_LIMIT_ADDRESS_SPACE:
		return p->virtual_bytes;
	default:
		return observation_held(&p->seen);
	}
}

// Without a cgroup the job's kernel memory (page tables, sockets, shared pages' metadata) is not
// known. It counts against a cgroup's limit: 2 % of the rest in small PyTorch jobs.
#define KERNEL_SHARE 0.03

static bool limits_host(const struct advice *a)
{
	return a->limit_kind != ADVICE_LIMIT_GPU && a->limit_kind != ADVICE_LIMIT_ADDRESS_SPACE;
}

static bool misses_kernel_memory(const struct advice *a)
{
	return limits_host(a) && a->now && !isfinite(a->now->seen.kernel);
}

// Whether a batch size needs about the same memory in each run.
static bool is_regular(const struct advice *a)
{
	return a->pinned || a->limit_kind == ADVICE_LIMIT_GPU;
}

// The limit without its margin.
static double usable_bytes(const struct work *w)
{
	double share = misses_kernel_memory(w->a) ? KERNEL_SHARE : 0;
	return w->a->limit_bytes * (1 - w->config->margin) * (1 - share);
}

// A job that ran out of memory holds at least this share of its limit.
#define FULL 0.8
// The smallest batch surely does not fit if it needs so many times the limit.
#define FAR_ABOVE 1.5

// Whether an epoch has so few batches of the asked size that most iterations may be of its last,
// smaller one.
static bool has_few_batches(const struct advice_probe *p)
{
	double samples = p->seen.epoch_samples;
	return p->seen.loader_batch_size == p->batch_size && samples > 0 &&
	       samples < 3 * (double)p->batch_size;
}

// The batch size that a probe ran with.
static int64_t batch_of(const struct advice_probe *p)
{
	if (p->batch_size > 0 && has_few_batches(p)) {
		return p->batch_size;
	}
	return p->seen.batch_size > 0 ? p->seen.batch_size
	       : p->batch_size > 0    ? p->batch_size
	                              : p->seen.loader_batch_size;
}

// The median of a run's samples per iteration is exact to a per cent.
static bool has_batch(const struct advice_probe *p, int64_t batch)
{
	return 100 * llabs(batch_of(p) - batch) <= batch;
}

// A job that followed its batch size before may catch the failure, and go on with a smaller one.
static bool gave_way(const struct advice_probe *p)
{
	bool unset = p->seen.loader_set_missing && !p->seen.loader_set; // no hook set it
	return !unset &&
	       (p->step == ADVICE_VERIFY || p->step == ADVICE_ADVISED ||
		       p->step == ADVICE_REQUEST) &&
	       p->seen.batch_size > 0 && p->seen.batch_size < p->batch_size &&
	       !has_batch(p, p->batch_size) && !has_few_batches(p);
}

// Whether a probe failed for lack of memory. On a GPU an allocation fails, and the job ends with a
// message that names memory. In the address space, threads and libraries may find no room either,
// and their messages do not.
static bool ran_out(const struct advice *a, const struct advice_probe *p)
{
	if (gave_way(p)) {
		return true;
	}
	if (p->seen.killed || !p->failed) {
		return p->seen.killed;
	}
	bool ended = WIFEXITED(p->status) || WTERMSIG(p->status) == SIGABRT ||
	             WTERMSIG(p->status) == SIGSEGV;
	switch (a->limit_kind) {
	case ADVICE_LIMIT_GPU:
		return p->seen.out_of_memory;
	case ADVICE_LIMIT_ADDRESS_SPACE:
		return p->seen.out_of_memory || ended;
	default:
		return observation_held(&p->seen) >= FULL * a->limit_bytes;
	}
}

// Whether the limit applies to every probe.
static bool binds(const struct advice *a)
{
	return a->limit_kind != ADVICE_LIMIT_REQUESTED && a->limit_kind != ADVICE_LIMIT_MACHINE;
}

// The limit to set for a probe that must not exceed it; 0: none can or need be set.
static uint64_t limit_to_set(const struct work *w)
{
	const struct advice *a = w->a;
	if (a->limit_kind == ADVICE_LIMIT_GPU) {
		return w->gpu_cap;
	}
	bool sets = a->limit_kind == ADVICE_LIMIT_REQUESTED && !w->cannot_limit &&
	            a->reserve_bytes < a->limit_bytes;
	return sets ? (uint64_t)(a->limit_bytes - a->reserve_bytes) : 0;
}

// The same for a probe of a rate. A leak might reach it, which says nothing of a configuration.
static uint64_t limit_of_rate(const struct work *w)
{
	return w->a->now->seen.leak_per_iteration > 0 ? 0 : limit_to_set(w);
}

// Batch sizes -------------------------------------------------------------------------------------

static int64_t workers_of(const struct advice_probe *p)
{
	return p->seen.workers >= 0 ? p->seen.workers : p->workers;
}

// A number that people would choose: with two significant bits, at most `value`.
static int64_t round_batch(double value)
{
	int64_t step = 1;
	if (!(value >= 1)) {
		return 1;
	}
	value = fmin(value, BATCH_MOST);
	while (value / (double)step >= 8) {
		step *= 2;
	}
	return (int64_t)floor(value / (double)step) * step;
}

// The largest batch size that an epoch has: all its samples; without the last batch, which may have
// been smaller, where only the number of batches is known.
static double most_samples(const struct advice *a)
{
	const struct observation *now = &a->now->seen;
	double last = now->epoch_known ? 0 : (double)batch_of(a->now);
	double most = now->epoch_samples - last;
	return isfinite(most) ? fmax(most, (double)batch_of(a->now)) : BATCH_MOST;
}

// Of an epoch whose length is not known: as many as trained, in whichever epoch.
static double seen_samples(const struct advice *a)
{
	return (double)a->now->seen.iterations * (double)batch_of(a->now);
}

// The batch size for the second probe: four times the present one, if even memory in proportion to
// the batch size would fit; else as large as surely fits; else smaller than the present one. A
// limit that is only requested does not bind probes.
static int64_t second_batch(const struct work *w)
{
	const struct advice *a = w->a;
	double room = binds(a) ? usable_bytes(w) : 0.8 * memory_available();
	double now = (double)batch_of(a->now);
	double sure = now * 0.9 * room / limited_bytes(a, a->base);
	double wanted = fmin(4 * now, isfinite(sure) ? sure : 2 * now);
	wanted = fmin(wanted, most_samples(a));
	if (wanted >= 1.5 * now) {
		return round_batch(wanted);
	}
	int64_t half = round_batch(now / 2);
	return half < (int64_t)now ? half : (int64_t)now + 1;
}

// Seconds that a probe will take at a batch size, from those made.
static double expected_seconds(const struct work *w, double batch, unsigned iterations)
{
	const struct advice *a = w->a;
	const struct advice_probe *last = &a->probes[a->n - 1];
	struct rate_model m;
	struct observation seen[ADVICE_PROBES_MAX];
	size_t n = 0;
	for (size_t i = 0; i < a->n; i++) {
		if (!a->probes[i].failed && !a->probes[i].apart) {
			seen[n++] = a->probes[i].seen;
		}
	}
	if (rate_model_fit(seen, n, &m, NULL) < 0) {
		return last->seconds;
	}
	const struct rate_config at = rate_config_of(
		&m, batch, fmax(0, (double)workers_of(a->now)));
	double iteration = batch / rate_model_predict(&m, &at).rate.value;
	return START_SECONDS + (iterations + 8) * iteration; // two epochs and a validation
}

// Memory ------------------------------------------------------------------------------------------

static void find_reserve(struct advice *a)
{
	const struct observation *now = &a->now->seen;
	double grew = (double)now->iterations * now->leak_per_iteration;
	if (a->limit_kind == ADVICE_LIMIT_GPU) { // it is the host's memory that grows
		return;
	}
	double lasts = (a->limit_bytes - (a->now_bytes - grew)) / now->leak_per_iteration;
	a->lasts = isfinite(lasts) ? fmax(0, lasts) : NAN;
	double bytes = now->leak_per_iteration * now->epoch_samples / (double)batch_of(a->now);
	a->reserve_bytes = bytes > 0 && isfinite(bytes) ? bytes : 0;
	// A whole validation would exceed the peak by so much.
	double lower = fmax(0, now->training_peak - now->validation_peak); // 0: not known
	double more = now->validation_kept - lower;
	a->validation_bytes = fmax(0, more);
	a->reserve_bytes += a->validation_bytes;
}

// What is limited at the end of the first epoch, if it grows until then. Probes of few iterations
// do not show how much they grew: not less than the first one's in each.
static double grown_bytes(const struct advice *a, const struct advice_probe *p)
{
	double own = p->seen.leak_per_iteration, first = a->now->seen.leak_per_iteration;
	double iterations = (double)p->seen.iterations;
	double leaked = a->reserve_bytes - a->validation_bytes;
	double grew = own > 0 ? iterations * own : first > 0 ? fmin(iterations * first, leaked) : 0;
	return limited_bytes(a, p) + (a->reserve_bytes > 0 ? a->reserve_bytes - grew : 0);
}

static void add_point(struct work *w, const struct advice_probe *p)
{
	struct advice *a = w->a;
	double bytes = grown_bytes(a, p);
	if (a->n_points < MEMORY_POINTS_MAX && bytes > 0 && batch_of(p) > 0) {
		a->points[a->n_points++] = (struct memory_point){(double)batch_of(p), bytes, false};
	}
}

static bool fit_memory(struct work *w)
{
	struct advice *a = w->a;
	double deviation = is_regular(a) ? MEMORY_DEVIATION_PINNED : MEMORY_DEVIATION_DEFAULT;
	a->has_memory = memory_model_fit(a->points, a->n_points, deviation, &a->memory);
	if (a->has_memory) {
		a->largest = memory_model_largest(&a->memory, usable_bytes(w), most_samples(a));
	}
	return a->has_memory;
}

static void set_largest_missing(struct advice *a, char *reason)
{
	free(a->largest_missing);
	a->largest_missing = reason;
	a->largest = (struct estimate){NAN, NAN, NAN};
}

static void set_unverified(struct advice *a, const char *text, ...)
	__attribute__((format(printf, 2, 3)));

static void set_unverified(struct advice *a, const char *text, ...)
{
	va_list arguments;
	free(a->verified_missing);
	va_start(arguments, text);
	if (vasprintf(&a->verified_missing, text, arguments) < 0) {
		a->verified_missing = NULL;
	}
	va_end(arguments);
}

// Whether a probe ran with the batch size that it was given. If not, says why the answer is
// missing.
static bool follows(struct work *w, const struct advice_probe *p)
{
	struct advice *a = w->a;
	if (p->failed || p->batch_size < 0 || has_batch(p, p->batch_size) || has_few_batches(p)) {
		return true;
	}
	if (a->verified_batch > 0) { // smaller ones were followed
		set_unverified(a, "%" PRId64 " requested, iterations had %" PRId64 " samples",
			p->batch_size, batch_of(p));
		return false;
	}
	set_largest_missing(a, p->seen.loader_set_missing
				       ? format("the hook could not change the batch size: %s",
						 p->seen.loader_set_missing)
				       : format("the job ignores the requested batch size: %" PRId64
						" requested, iterations have %" PRId64 " samples",
						 p->batch_size, batch_of(p)));
	return false;
}

// The estimate of the thesis, from two probes and without a check.
static void find_thesis(struct advice *a)
{
	if (a->n_points >= 2 && a->n >= 2) {
		a->thesis_seconds = a->base->seconds + a->probes[a->n - 1].seconds;
		const struct memory_point *one = &a->points[0], *two = &a->points[1];
		double slope = (two->bytes - one->bytes) / (two->batch - one->batch);
		double intercept = one->bytes - slope * one->batch;
		a->thesis_batch = slope > 0 ? floor((a->limit_bytes - intercept) / slope) : NAN;
	}
}

// Makes a probe of the line. Returns 1 if it gave a point, 0 if not, -errno.
static int probe_line(struct work *w, int64_t batch, bool rated, struct error *e)
{
	struct advice_probe *p;
	struct error why = {0};
	const struct wish wish = {.step = ADVICE_LINE,
		.batch_size = batch,
		.workers = -1,
		.iterations = LINE_ITERATIONS,
		.seconds = rated ? RATE_SECONDS : 0};
	say_probe(
		w, STAGE_LINE, "memory%s at batch size %" PRId64, rated ? " and rate" : "", batch);
	int r = make(w, &wish, &p, &why);
	if (r == -ENOMEM) {
		return error_set(e, ENOMEM, "out of memory");
	}
	if (r < 0 && !w->a->has_memory && !w->a->interrupted) {
		set_largest_missing(w->a, format("the probe with batch size %" PRId64 " failed: %s",
						  batch, why.text));
	}
	if (r < 0 || w->a->interrupted) {
		return 0;
	}
	if (ran_out(w->a, p) && binds(w->a)) {
		w->a->failed_batch = batch;
		return 0;
	}
	if (p->failed) {
		bool hooked = !w->a->placeholders;
		set_largest_missing(w->a,
			format("the probe with batch size %" PRId64 " failed: %s%s", batch,
				p->reason ? p->reason : "",
				hooked ? " (if the script also uses its batch size elsewhere, put "
					 "{batch_size} into the command)"
				       : ""));
		return 0;
	}
	if (!follows(w, p)) {
		return 0;
	}
	add_point(w, p);
	return 1;
}

// The batch size of another point, far from those measured; 0: the line needs none. Where memory
// has not grown so far, something else than the batches sets the peak (the optimizer, the workers'
// copies of what the training process has changed), and the batches will exceed it.
static int64_t further_batch(const struct advice *a)
{
	double measured = a->memory.batch_max;
	double reach = a->memory.flat ? CLIMB * measured : fmin(a->largest.value / 2, 6 * measured);
	bool needed = a->memory.flat || a->largest.value > REACH * measured;
	int64_t batch = round_batch(fmin(reach, most_samples(a)));
	return needed && (double)batch > measured ? batch : 0;
}

// The line of memory, from two batch sizes or more.
static int find_line(struct work *w, struct error *e)
{
	struct advice *a = w->a;
	if (batch_of(a->now) < 1) {
		set_largest_missing(
			a, format("the number of samples in an iteration is unknown; mark it "
				  "(strain_iteration, docs/markers.md)"));
		return 0;
	}
	int64_t second = second_batch(w);
	add_point(w, a->base);
	if (!goes_on(w, a->now->seconds)) {
		return 0;
	}
	int r = probe_line(w, second, true, e);
	if (r == 0 && a->failed_batch == second && second > batch_of(a->now)) {
		r = probe_line(w, batch_of(a->now) / 2 > 0 ? batch_of(a->now) / 2 : 1, true, e);
	}
	if (r <= 0) {
		return r;
	}
	find_thesis(a);
	for (int i = 0; i < 2 && fit_memory(w); i++) {
		int64_t third = further_batch(a);
		if (third < 1) {
			break;
		}
		double seconds = expected_seconds(w, (double)third, LINE_ITERATIONS);
		if (seconds * 1e9 > (double)w->config->limit_ns) {
			w->too_long_s = seconds;
			break;
		}
		if (!has_time(w, seconds) || probe_line(w, third, false, e) <= 0) {
			break;
		}
	}
	// glibc's own peaks vary from run to run: measure sizes again.
	for (int i = 0; !is_regular(a) && a->n_points < IRREGULAR_POINTS; i++) {
		if (!goes_on(w, a->now->seconds)) {
			break;
		}
		r = probe_line(w, i % 2 == 0 ? second : batch_of(a->now), false, e);
		if (r <= 0) {
			break;
		}
	}
	fit_memory(w);
	return r < 0 ? r : 0;
}

// Runs the largest batch under the limit. Returns 1 if it fits, 0 if not, -ENODATA if that is not
// known.
static int verify(
	struct work *w, int64_t batch, unsigned iterations, double lasting, struct error *e)
{
	struct advice *a = w->a;
	struct advice_probe *p;
	bool limits = limit_to_set(w) > 0;
	struct error why = {0};
	struct wish wish = {.step = ADVICE_VERIFY,
		.batch_size = batch,
		.workers = -1,
		.limit_bytes = limit_to_set(w),
		.lasting = lasting,
		.iterations = iterations};
	char limit[32];
	text_bytes(limit, sizeof(limit), a->limit_bytes);
	say_probe(w, STAGE_VERIFY, "batch size %" PRId64 "%s%s", batch,
		limits || binds(a) ? " under a limit of " : ", to measure its memory",
		limits || binds(a) ? limit : "");
	int r = make_limited(w, &wish, &p, &why);
	limits = wish.limit_bytes > 0;
	if (r == -ENOMEM) {
		return error_set(e, ENOMEM, "out of memory");
	}
	if (r < 0 && !a->interrupted) {
		set_unverified(
			a, "the run with batch size %" PRId64 " failed: %s", batch, why.text);
	}
	if (r < 0 || a->interrupted || (!p->failed && p->seen.iterations == 0)) {
		return -ENODATA;
	}
	if (ran_out(a, p)) { // a job may go on without a process that was killed
		return 0;
	}
	if (p->failed) {
		set_unverified(a, "the run with batch size %" PRId64 " failed: %s", batch,
			p->reason ? p->reason : "");
		return -ENODATA;
	}
	if (!follows(w, p)) {
		return -ENODATA;
	}
	double bytes = grown_bytes(a, p);
	// A cap that did not apply (a script that sets its own by another way) is no limit.
	bool caps = w->gpu_cap > 0;
	limits = limits && !(caps && p->seen.gpu_reserved > CAP_SLACK * (double)w->gpu_cap);
	bool under = limits || (binds(a) && !caps);
	if (isfinite(bytes) && (!under || a->limit_kind == ADVICE_LIMIT_ADDRESS_SPACE)) {
		add_point(w, p);
	} else if (isfinite(bytes) && bytes < (is_regular(a) ? 0.97 : FAR_BELOW) * a->limit_bytes) {
		// Far enough below the limit that reclaim changed nothing. If memory is irregular,
		// those that pass close to it are those that happened to need less.
		add_point(w, p);
	}
	if (!under && !isfinite(bytes)) {
		set_unverified(a,
			"the memory of the run with batch size %" PRId64 " was not measured",
			batch);
		return -ENODATA;
	}
	if (!under && bytes > usable_bytes(w)) {
		return 0;
	}
	a->verified = under ? ADVICE_UNDER_LIMIT : ADVICE_MEASURED;
	return 1;
}

// The largest batch size of the line whose memory is below the limit, with its margin; 0: none.
static double largest_below(const struct work *w)
{
	const struct advice *a = w->a;
	double largest = 0, most = usable_bytes(w);
	for (size_t i = 0; i < a->n_points; i++) {
		const struct memory_point *p = &a->points[i];
		largest = p->bytes < most ? fmax(largest, p->batch) : largest;
	}
	return largest;
}

static void clear_missing(struct advice *a)
{
	free(a->largest_missing);
	a->largest_missing = NULL;
}

// Measures memory nearer to a batch size that did not fit, where it may lie on another line (larger
// workspaces; workers that collect cycles). Returns 1 if the line changed, 0 if not, -ENOMEM.
static int probe_nearer(struct work *w, struct error *e)
{
	struct advice *a = w->a;
	double before = a->largest.value;
	int64_t batch = (int64_t)(NEARER * (double)a->failed_batch);
	double seconds = expected_seconds(w, (double)batch, LINE_ITERATIONS);
	// A limit that applies to every probe would make this one a verification.
	if (binds(a) || (double)batch < NEARER_LEAST * a->memory.batch_max ||
		!has_time(w, seconds) || seconds * 1e9 > (double)w->config->limit_ns) {
		return 0;
	}
	int r = probe_line(w, batch, false, e);
	if (r <= 0 || !fit_memory(w)) {
		return r < 0 ? r : 0;
	}
	return a->largest.value < 0.96 * before;
}

// Runs a batch size under the limit, if there is time, and learns from it. lasting: as in struct
// wish. Returns as verify().
static int verify_in_time(struct work *w, int64_t batch, double lasting, struct error *e)
{
	struct advice *a = w->a;
	unsigned iterations = VERIFY_ITERATIONS;
	char took[32];
	double limit = (double)w->config->limit_ns / 1e9;
	double seconds = lasting + expected_seconds(w, (double)batch, iterations);
	double computing = seconds - lasting - expected_seconds(w, (double)batch, 0);
	if (seconds > limit || (is_regular(a) && computing > VERIFY_SECONDS)) {
		iterations = VERIFY_LEAST;
		seconds = lasting + expected_seconds(w, (double)batch, iterations);
	}
	if (seconds > limit) {
		set_unverified(a,
			"a run with batch size %" PRId64 " would take about %s: raise --limit",
			batch, text_seconds(took, sizeof(took), seconds));
		return -ENODATA;
	}
	// The probes of the rate are short, and come later.
	if (!has_time(w, seconds + 2 * a->now->seconds)) {
		if (!a->interrupted && seconds_left(w) > 0) {
			set_unverified(a,
				"a run with batch size %" PRId64
				" would take about %s: raise --time",
				batch, text_seconds(took, sizeof(took), seconds));
		}
		return -ENODATA;
	}
	int r = verify(w, batch, iterations, lasting, e);
	if (r < 0 || a->largest_missing) {
		return r < 0 ? r : -ENODATA;
	}
	if (r == 1) {
		a->verified_batch = batch;
		const struct observation *o = &a->probes[a->n - 1].seen;
		a->verified_long = a->probes[a->n - 1].lasted;
		double share = (double)o->iterations * (double)batch / o->epoch_samples;
		a->verified_epoch = share > 1 ? 1 : share; // NAN stays
	} else {
		a->failed_batch = batch;
	}
	fit_memory(w);
	return r;
}

// How long a run of a batch size should last. Irregular memory grows for a while (seen: by 5 to 8 %
// in the sixth of 17-step epochs), so that runs also have epochs of full length, which end with a
// smaller batch. 0: it need not, or there is no time for that.
static double lasting_seconds(struct work *w, int64_t batch)
{
	const struct observation *now = &w->a->now->seen;
	// Where samples differ in size, the allocator's memory differs from batch to batch.
	bool differ = now->sizes.looked > 0 || now->unchosen.looked > 0;
	double lasting = differ ? 2 * LASTING_SECONDS : LASTING_SECONDS;
	double seconds = lasting + expected_seconds(w, (double)batch, VERIFY_LEAST);
	bool can = seconds <= (double)w->config->limit_ns / 1e9 &&
	           has_time(w, seconds + 2 * w->a->now->seconds);
	return is_regular(w->a) || !can ? 0 : lasting;
}

// The search and what it calls: its runs are probes, what they say is in the answer.
struct search {
	struct work *w;
	struct error *e;
};

// The largest batch size by what was measured next to the limit, also under it: pinned memory is
// the same there, because nothing that counts can be reclaimed.
static struct estimate largest_between(const struct work *w)
{
	const struct advice *a = w->a;
	struct memory_point points[ADVICE_PROBES_MAX];
	size_t n = 0;
	for (const struct advice_probe *p = a->base; p < a->probes + a->n; p++) {
		bool counts = p->step == ADVICE_NOW || p->step == ADVICE_LINE ||
		              p->step == ADVICE_VERIFY;
		double bytes = grown_bytes(a, p);
		if (counts && !p->apart && !p->failed && !ran_out(a, p) && bytes > 0 &&
			batch_of(p) > 0) {
			points[n++] = (struct memory_point){(double)batch_of(p), bytes, false};
		}
	}
	return memory_point_largest(points, n, usable_bytes(w), MEMORY_DEVIATION_PINNED);
}

static void tell_search(const struct work *w, struct batch_search *s)
{
	const struct advice *a = w->a;
	double between = a->pinned ? largest_between(w).value : NAN;
	s->between = between < BATCH_MOST ? (int64_t)between : 0;
	s->line = a->largest;
	s->measured = (int64_t)largest_below(w);
	s->fits = a->verified_batch > 0 ? a->verified_batch : 0;
	s->fails = a->failed_batch > 0 ? a->failed_batch : 0;
}

static int search_verify(struct batch_search *s, int64_t batch, void *context)
{
	const struct search *search = context;
	int r = verify_in_time(search->w, batch, lasting_seconds(search->w, batch), search->e);
	tell_search(search->w, s);
	return r;
}

static int search_nearer(struct batch_search *s, void *context)
{
	const struct search *search = context;
	struct advice *a = search->w->a;
	int r = probe_nearer(search->w, search->e);
	if (r >= 0 && a->largest_missing) { // a run too many: what was known before stays
		clear_missing(a);
		fit_memory(search->w);
	}
	tell_search(search->w, s);
	return r;
}

// Narrows the answer by runs under the limit. Returns 0 or -ENOMEM.
static int narrow_largest(struct work *w, bool *ret_bent, struct error *e)
{
	struct search search = {w, e};
	const struct batch_search_calls calls = {search_verify, search_nearer, &search};
	struct batch_search s = {.regular = is_regular(w->a), .pinned = w->a->pinned};
	tell_search(w, &s);
	int r = batch_search_run(&s, &calls);
	*ret_bent = s.bent;
	return r;
}

// With irregular memory, a batch size that fitted for a short time must also fit for a longer one;
// otherwise one below it is tried.
static int confirm_largest(struct work *w, struct error *e)
{
	struct advice *a = w->a;
	int64_t batch = a->verified_batch;
	for (int i = 0; i < CONFIRMS_MAX && !is_regular(a) && batch > 0 && !a->verified_long; i++) {
		int r = verify_in_time(w, batch, LASTING_SECONDS, e);
		if (r < 0) {
			return r == -ENODATA ? 0 : r;
		}
		if (r == 0) {
			batch = (int64_t)(BELOW_FAILED * (double)batch);
			a->verified_batch = -1;
			a->verified = ADVICE_NOT_VERIFIED;
		}
	}
	return 0;
}

// Where memory does not grow with the batch size: runs the largest one that was measured under the
// limit, and one beyond. Returns 0 or -ENOMEM.
static int climb(struct work *w, struct error *e)
{
	struct advice *a = w->a;
	int64_t batch = (int64_t)a->memory.batch_max;
	for (int i = 0; i < CLIMBS_MAX && a->memory.flat && batch > a->verified_batch; i++) {
		int r = verify_in_time(w, batch, 0, e);
		if (r <= 0) {
			return r == -ENODATA ? 0 : r;
		}
		batch = round_batch(fmin(CLIMB * (double)batch, most_samples(a)));
	}
	return 0;
}

// Memory did not grow with the batch size in any run: the largest that ran is a lower bound.
static void set_open_ended(struct work *w)
{
	struct advice *a = w->a;
	double most = fmax(a->memory.batch_max, (double)a->verified_batch);
	if (a->verified_batch > 0) {
		double batch = (double)a->verified_batch;
		a->largest = (struct estimate){batch, batch, NAN};
		a->largest_open = true;
		a->whole_epoch = batch >= floor(most_samples(a));
		return;
	}
	char longer[80] = "";
	if (w->too_long_s > 0) {
		snprintf(longer, sizeof(longer), "; a larger one takes about %.0f s: raise --limit",
			w->too_long_s);
	}
	set_largest_missing(
		a, format("memory does not grow with the batch size between %.0f and %.0f%s",
			   a->memory.batch_min, most, longer));
}

// The runs that say what passes: those that lasted, if one that passed did.
static size_t list_trials(const struct advice *a, struct memory_trial *ret)
{
	size_t n = 0;
	for (const struct advice_probe *p = a->probes; p < a->probes + a->n; p++) {
		bool passed = !p->failed && !ran_out(a, p) && (p->lasted || !a->verified_long);
		if (p->step == ADVICE_VERIFY && batch_of(p) > 0 && (passed || ran_out(a, p))) {
			int64_t batch = p->batch_size > 0 ? p->batch_size : batch_of(p);
			ret[n++] = (struct memory_trial){(double)batch, passed};
		}
	}
	return n;
}

// The answer, if a batch size ran under the limit: that one. Where equal runs need different
// memory, the next run of it may fail: then a smaller one that nearly always passes.
static void take_what_ran(struct work *w, bool bent)
{
	struct advice *a = w->a;
	struct memory_trial trials[ADVICE_PROBES_MAX];
	double ran = (double)a->verified_batch, doubt = bent ? LINE_DOUBT_BENT : LINE_DOUBT;
	if (a->verified_batch < 1) {
		a->largest.high = fmax(a->largest.high, a->largest.value);
		return;
	}
	a->largest.low = a->largest.value = ran;
	a->largest.high = fmax(a->largest.high, ran);
	size_t n = list_trials(a, trials);
	double limit = usable_bytes(w);
	double most = memory_model_passes(&a->memory, limit, doubt, trials, n, PASSES_MOST);
	double nearly_all = memory_model_passes(
		&a->memory, limit, doubt, trials, n, PASSES_NEARLY_ALL);
	if (!is_regular(a) && isfinite(most) && isfinite(nearly_all)) {
		a->largest.value = fmin(ran, fmax(most, ceil(PASSES_LEAST * ran)));
		a->largest.low = fmin(ran, fmax(1, nearly_all));
	}
}

// The largest batch size that fits, by the line and by runs under the limit.
static int find_largest(struct work *w, struct error *e)
{
	struct advice *a = w->a;
	if (!a->has_memory || a->largest_missing) {
		return 0;
	}
	bool none = a->memory.flat || a->reserve_bytes >= usable_bytes(w);
	bool far = memory_model_bytes(&a->memory, 1).low > FAR_ABOVE * a->limit_bytes;
	if ((none && grown_bytes(a, a->now) > a->limit_bytes) || far) {
		a->largest = (struct estimate){0, 0, 0};
		a->nothing_fits = true;
		return 0;
	}
	int r = a->memory.flat ? climb(w, e) : 0;
	if (r < 0 || a->largest_missing) {
		return r;
	}
	if (a->memory.flat && a->failed_batch < 0) {
		set_open_ended(w);
		return 0;
	}
	bool bent = false;
	r = narrow_largest(w, &bent, e);
	r = r < 0 ? r : confirm_largest(w, e);
	if (r < 0 || a->largest_missing) {
		return r;
	}
	a->largest_estimate = a->largest.value;
	double beyond = a->pinned && !bent ? largest_between(w).high : NAN;
	if (isfinite(beyond)) {
		a->largest.high = fmax(a->largest.high, fmin(beyond, most_samples(a)));
	}
	if (a->failed_batch > 0 && a->failed_batch > a->verified_batch) {
		a->largest_estimate = fmin(a->largest_estimate, (double)a->failed_batch - 1);
		a->largest.high = fmin(a->largest.high, (double)a->failed_batch - 1);
		a->largest.value = fmin(a->largest.value, a->largest.high);
		a->largest.low = fmin(a->largest.low, a->largest.value);
	}
	if (bent) { // the line says little
		a->largest.low = fmin(a->largest.low, largest_below(w));
	}
	take_what_ran(w, bent);
	a->whole_epoch = a->largest.value >= floor(most_samples(a));
	a->nothing_fits = a->largest.value < 1;
	return 0;
}

// Rates -------------------------------------------------------------------------------------------

static bool is_sure(const struct estimate *rate)
{
	return rate->high - rate->low <= 2 * SURE * rate->value;
}

// The observations for the model of throughput: runs close to a limit may be slowed by it, and some
// measure memory only. Returns their number.
static size_t list_rated(const struct advice *a, bool sure, struct observation *ret)
{
	size_t n = 0;
	for (size_t i = 0; i < a->n; i++) {
		const struct advice_probe *p = &a->probes[i];
		bool instead = a->first_refuted && p == a->again;
		bool usable = !p->failed && (!p->apart || instead) &&
		              !(a->first_refuted && p == a->now) &&
		              (p->limit_bytes == 0 || p->step == ADVICE_ADVISED);
		bool asked = p->step == ADVICE_WORKERS || p->step == ADVICE_ADVISED; // for its rate
		if (usable && p->seen.iterations > 0 &&
			(!sure || asked || is_sure(&p->seen.rate))) {
			ret[n++] = p->seen;
		}
	}
	return n;
}

static bool has_two_sizes(const struct observation *seen, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		if (seen[i].batch_size != seen[0].batch_size) {
			return true;
		}
	}
	return false;
}

static bool fit_rate(struct work *w)
{
	struct advice *a = w->a;
	struct observation seen[ADVICE_PROBES_MAX];
	struct error why = {0};
	size_t n = list_rated(a, true, seen);
	if (!has_two_sizes(seen, n)) { // how the rate follows the batch size is worth more
		n = list_rated(a, false, seen);
	}
	a->has_rate = rate_model_fit(seen, n, &a->rate, &why) == 0;
	if (!a->has_rate && !a->rate_missing) {
		a->rate_missing = format("%s", why.text);
	}
	a->rate.cpus = a->cpus;
	if (a->has_rate) {
		struct observation base = a->base->seen;
		base.rate = a->again && a->base == a->now ? advice_present_rate(a) : base.rate;
		rate_model_anchor(&a->rate, &base);
	}
	return a->has_rate;
}

// Whether a probe ran with the workers that it was given. If not, says why: they stay as they are.
static bool follows_workers(struct advice *a, const struct advice_probe *p)
{
	if (p->failed || p->workers < 0 || p->seen.workers < 0 || p->seen.workers == p->workers) {
		return true;
	}
	if (!a->workers_missing) {
		a->workers_missing =
			p->seen.loader_set_missing
				? format("%s", p->seen.loader_set_missing)
				: format("%" PRId64 " were requested, but the loader has %" PRId64,
					  p->workers, p->seen.workers);
	}
	return false;
}

// Whether other programs took CPUs from a run.
static bool is_busy(const struct advice *a, const struct advice_probe *p)
{
	return p->seen.others_cpus >= ADVICE_BUSY * a->cpus;
}

// The number of workers of another run, to see what they cost and gain; -1: none is needed. One, if
// the job has none and waits; none, if it has some and preparation is light.
static int64_t other_workers(const struct work *w)
{
	const struct advice *a = w->a;
	const struct observation *now = &a->base->seen;
	double unused;
	bool possible = now->loader_at ||
	                placeholders_has(w->config->command, PLACEHOLDER_WORKERS, &unused);
	double prepare = now->prepare_cpu * (double)batch_of(a->now);
	if (!possible || workers_of(a->now) < 0) {
		return -1;
	}
	if (workers_of(a->now) == 0) {
		return now->wait > WAITS * now->iteration.value ? 1 : -1;
	}
	bool light = prepare <= LIGHT * now->compute && now->wait <= LIGHT * now->iteration.value;
	return light ? 0 : -1;
}

static int probe_workers(struct work *w, struct error *e)
{
	struct advice *a = w->a;
	struct error why = {0};
	struct advice_probe *p;
	int64_t workers = other_workers(w);
	if (workers < 0 || !goes_on(w, a->now->seconds)) {
		return 0;
	}
	const struct wish wish = {.step = ADVICE_WORKERS,
		.batch_size = batch_of(a->now),
		.workers = workers,
		.iterations = LINE_ITERATIONS,
		.seconds = RATE_SECONDS};
	const char *what = workers > 0 ? "one loader worker" : "no loader worker";
	say_probe(w, STAGE_WORKERS, "%s", what);
	int r = make(w, &wish, &p, &why);
	if (r == 0 && follows_workers(a, p) && is_busy(a, p) && goes_on(w, a->now->seconds)) {
		struct advice_probe *first = p;
		say_probe(w, STAGE_WORKERS, "%s again, because other programs are busy", what);
		r = make(w, &wish, &p, &why);
		if (r == 0 && p->seen.rate.value > 0 &&
			!p->failed) { // the less disturbed one counts
			bool second = p->seen.rate.value >= first->seen.rate.value;
			(second ? first : p)->apart = true;
		}
	}
	return r == -ENOMEM ? error_set(e, ENOMEM, "out of memory") : 0;
}

// Keeps what a worker needs at a batch size, in ascending order: by the run with most workers,
// since what one alone shares with nobody, several share; the most of several such runs.
static void add_worker_point(struct advice *a, double batch, double bytes, double workers)
{
	size_t at = 0;
	while (at < a->n_worker_points && a->worker_points[at].batch < batch) {
		at++;
	}
	struct worker_point *p = &a->worker_points[at];
	if (at < a->n_worker_points && p->batch == batch) {
		if (workers > p->workers) {
			*p = (struct worker_point){batch, bytes, workers};
		} else if (workers == p->workers) {
			p->bytes = fmax(p->bytes, bytes);
		}
	} else if (a->n_worker_points < ADVICE_PROBES_MAX && batch > 0) {
		memmove(p + 1, p, (a->n_worker_points - at) * sizeof(*p));
		*p = (struct worker_point){batch, bytes, workers};
		a->n_worker_points++;
	}
}

// What one more worker adds, without /dev/shm: between the batch sizes that ran, and beyond the
// largest by the growth before it. NAN: not seen.
static double worker_own(const struct advice *a, double batch)
{
	const struct worker_point *p = a->worker_points;
	size_t n = a->n_worker_points, right = 1;
	if (n == 0) {
		return NAN;
	}
	if (n == 1 || batch <= p[0].batch) {
		return p[0].bytes;
	}
	while (right < n - 1 && p[right].batch < batch) {
		right++;
	}
	double slope = (p[right].bytes - p[right - 1].bytes) /
	               (p[right].batch - p[right - 1].batch);
	slope = batch > p[right].batch ? fmax(0, slope) : slope;
	return p[right].bytes + slope * (batch - p[right].batch);
}

// That one more worker adds in each rank.
static double worker_bytes(const struct advice *a, double batch)
{
	double each = worker_own(a, batch) + a->worker_shared * batch;
	return isfinite(each) ? ranks_of(&a->now->seen) * each : 0;
}

// What a run without workers shows: that the first worker adds more than each further one. It keeps
// the pages of the training process that existed when it was forked, while that writes new ones
// (parameters, optimizer state); all workers of an epoch share them.
static void find_worker_copies(struct advice *a, const struct advice_probe *without)
{
	double batch = (double)batch_of(without), now = fmax(0, (double)workers_of(a->now));
	double line = memory_model_bytes(&a->memory, batch).value;
	double each = worker_bytes(a, batch), least = WORTH_COPIES * line;
	double copies = line - grown_bytes(a, without) - now * each;
	bool known = isfinite(copies) && isfinite(worker_own(a, batch)) &&
	             memory_model_covers(&a->memory, batch);
	a->worker_copies = !known ? NAN : copies > least ? copies : 0;
}

// What the first worker adds to the job's memory: its own, and what find_worker_copies() tells
// apart, which makes this an upper bound for the others.
static void find_worker_bytes(struct work *w)
{
	struct advice *a = w->a;
	for (size_t i = 0; i < a->n; i++) {
		const struct advice_probe *p = &a->probes[i];
		double ranks = ranks_of(&p->seen), batch = (double)batch_of(p);
		double workers = (double)workers_of(p) * ranks; // of all ranks
		if (p->failed || p->apart || !(workers > 0)) {
			continue;
		}
		double shared = isfinite(p->seen.shared) ? p->seen.shared : 0;
		// Each process that marks has a ring of its own there.
		double batches = shared - (workers + ranks) * (double)STRAIN_RING_BYTES;
		double own = p->seen.worker;
		if (p->step == ADVICE_WORKERS && a->has_memory && limits_host(a)) {
			double more = observation_held(&p->seen) - shared -
			              memory_model_bytes(&a->memory, batch).value;
			own = fmax(more / workers, isfinite(own) ? own : 0);
		}
		a->worker_shared = fmax(0, batches) / workers / batch;
		if (isfinite(own)) {
			add_worker_point(a, batch, own, workers);
		}
	}
	a->worker_bytes = worker_own(a, (double)batch_of(a->now));
	for (size_t i = 0; i < a->n; i++) {
		const struct advice_probe *p = &a->probes[i];
		if (!p->failed && !p->apart && p->step == ADVICE_WORKERS && workers_of(p) == 0 &&
			a->has_memory && limits_host(a)) {
			find_worker_copies(a, p);
		}
	}
}

// Workers that fit in host memory beside the training process.
static void find_thesis_workers(struct advice *a)
{
	double present = fmax(0, (double)workers_of(a->now)), batch = (double)batch_of(a->now);
	double each = worker_bytes(a, batch);
	double alone = observation_held(&a->now->seen) - present * each;
	double host = a->limit_kind == ADVICE_LIMIT_GPU ? memory_available() : a->limit_bytes;
	if (each > 0) {
		a->thesis_workers = floor(fmax(0, host - alone) / each);
	}
}

// What is limited at a batch size with so many workers; NAN: not known.
static struct estimate bytes_at(const struct advice *a, double batch, double workers)
{
	double now = fmax(0, (double)workers_of(a->now));
	bool host = limits_host(a);
	double more = host ? (workers - now) * worker_bytes(a, batch) : 0;
	more -= host && workers < 1 && now > 0 && a->worker_copies > 0 ? a->worker_copies : 0;
	if (!a->has_memory) {
		return (struct estimate){NAN, NAN, NAN};
	}
	struct estimate line = memory_model_bytes(&a->memory, batch);
	return (struct estimate){line.value + more, line.low + more, line.high + more};
}

// The same, as the answer says it: not known if that of workers is not.
static double bytes_known_at(const struct advice *a, double batch, double workers)
{
	bool more = workers > fmax(0, (double)workers_of(a->now));
	bool known = !more || isfinite(a->worker_bytes);
	return known && memory_model_covers(&a->memory, batch) ? bytes_at(a, batch, workers).value
	                                                       : NAN;
}

static bool can_set(const struct work *w, bool workers)
{
	const struct observation *now = &w->a->now->seen;
	double unused;
	bool batch = (now->loader_at || now->fit_at) && now->loader_batch_size > 0;
	if (workers && w->a->workers_missing) {
		return false;
	}
	return placeholders_has(w->config->command,
		       workers ? PLACEHOLDER_WORKERS : PLACEHOLDER_BATCH_SIZE, &unused) ||
	       (workers ? now->loader_at && now->workers >= 0 : batch);
}

// Whether other batch sizes can be chosen: it is known whether they fit.
static bool can_choose_batch(const struct work *w)
{
	const struct advice *a = w->a;
	return can_set(w, false) && a->has_memory && (!a->largest_missing || a->memory.flat);
}

// The largest batch size that leaves an epoch its steps; NAN: its length is not known.
static double epoch_most(const struct advice *a)
{
	// An epoch whose length is not known may have no more samples than were seen.
	double epoch = a->now->seen.epoch_samples;
	double samples = isfinite(epoch) ? epoch : seen_samples(a);
	double most = floor(samples / (ADVICE_EPOCH_STEPS * (double)a->now->seen.accumulated));
	return isfinite(most) ? fmax((double)batch_of(a->now), most) : NAN;
}

// Batch sizes to choose from: powers of two and those halfway between, and the present one.
static size_t list_batches(const struct work *w, int64_t *ret, size_t most)
{
	const struct advice *a = w->a;
	double largest = isfinite(a->largest.low) ? a->largest.low : 4 * a->rate.batch_max;
	int64_t now = batch_of(a->now);
	if (a->largest_open || a->worker_copies > 0) { // fits() decides
		largest = fmax(largest, CLIMB * a->rate.batch_max);
	}
	largest = fmin(largest, epoch_most(a));
	size_t n = 0;
	ret[n++] = now;
	bool changes = can_choose_batch(w);
	for (int64_t size = 1; changes && size <= BATCH_MOST && n + 2 < most; size *= 2) {
		const int64_t sizes[] = {size, size + size / 2};
		for (size_t i = 0; i < (size > 1 ? 2 : 1); i++) {
			// The model says little about smaller ones than were seen.
			if (sizes[i] != now && (double)sizes[i] >= a->rate.batch_min &&
				(double)sizes[i] <= largest &&
				(double)sizes[i] <= REACH * a->rate.batch_max) {
				ret[n++] = sizes[i];
			}
		}
	}
	return n;
}

// Whether a configuration surely fits. The largest batch size was found with the present workers:
// larger ones may fit without any, if these need much for themselves.
static bool fits(const struct work *w, int64_t batch, int64_t workers)
{
	const struct advice *a = w->a;
	// As large as what nearly always passes, where equal runs need different memory.
	bool beyond = a->verified_batch > 0 && (double)batch > a->largest.low && !a->largest_open;
	if (beyond && !(workers == 0 && a->worker_copies > 0)) {
		return false;
	}
	double growth = is_regular(a) ? 0 : MEMORY_GROWTH_LASTING;
	double high = bytes_at(a, (double)batch, fmax(0, (double)workers)).high * (1 + growth);
	return !isfinite(high) || high <= usable_bytes(w);
}

static bool is_smaller(const struct advice_choice *one, const struct advice_choice *other)
{
	return other->batch_size < 0 || one->batch_size < other->batch_size ||
	       (one->batch_size == other->batch_size && one->workers < other->workers);
}

// The configurations to choose from.
struct choices {
	int64_t batches[64];
	size_t n;
	int64_t first, last; // workers
};

static void list_choices(const struct work *w, unsigned cpus, struct choices *ret)
{
	const struct advice *a = w->a;
	int64_t now = workers_of(a->now);
	int64_t each = (int64_t)fmax(1, (double)cpus / ranks_of(&a->now->seen));
	bool sets = can_set(w, true) && now >= 0;
	ret->n = list_batches(w, ret->batches, ARRAY_LENGTH(ret->batches));
	ret->first = ret->last = now; // -1: not known, and left alone
	if (sets) {
		ret->first = 0;
		ret->last = a->rate.prepare_known ? each : 0;
		ret->last = ret->last > WORKERS_MOST ? WORKERS_MOST : ret->last;
		ret->last = a->cpus == cpus && now > ret->last ? now : ret->last;
	}
}

static struct rate_prediction predict(
	const struct work *w, int64_t batch, int64_t workers, unsigned cpus)
{
	struct rate_config at = rate_config_of(
		&w->a->rate, (double)batch, fmax(0, (double)workers));
	at.cpus = cpus;
	return rate_model_predict(&w->a->rate, &at);
}

// The smallest batch size and the fewest workers within EQUAL of the best rate on so many CPUs,
// with batch sizes from `least` to `most`. batch_size is -1 if there is none.
static struct advice_choice choose(const struct work *w, unsigned cpus, int64_t least, int64_t most)
{
	const struct advice *a = w->a;
	struct advice_choice best = {.batch_size = -1}, chosen = {.batch_size = -1};
	struct choices all;
	list_choices(w, cpus, &all);
	size_t n_workers = (size_t)(all.last - all.first + 1);
	size_t n = all.n * n_workers;
	if (n == 0 || n_workers == 0) {
		return chosen;
	}
	for (size_t i = 0; i < 2 * n; i++) { // first the best, then the smallest
		bool second = i >= n;
		size_t at = i % n;
		struct advice_choice c = {all.batches[at / n_workers],
			all.first + (int64_t)(at % n_workers), {.extrapolated = false}};
		bool present = c.batch_size == batch_of(a->now) && c.workers == workers_of(a->now);
		if (c.batch_size < least || c.batch_size > most ||
			!(present || fits(w, c.batch_size, c.workers))) {
			continue;
		}
		c.at = predict(w, c.batch_size, c.workers, cpus);
		double rate = c.at.rate.value;
		if (!second && (best.batch_size < 0 || rate > best.at.rate.value)) {
			best = c;
		}
		if (second && rate >= (1 - EQUAL) * best.at.rate.value && is_smaller(&c, &chosen)) {
			chosen = c;
		}
	}
	return chosen;
}

// The fewest workers within EQUAL of the best rate for a batch size that fits, within reach of the
// model. batch_size is -1 if it does not.
static struct advice_choice choose_workers(const struct work *w, int64_t batch)
{
	const struct advice *a = w->a;
	struct advice_choice best = {.batch_size = -1};
	struct choices all;
	list_choices(w, a->cpus, &all);
	if (batch != batch_of(a->now) &&
		(!a->has_memory || (double)batch > REACH * a->rate.batch_max)) {
		return best;
	}
	for (int64_t k = all.last; k >= all.first; k--) {
		struct advice_choice c = {batch, k, predict(w, batch, k, a->cpus)};
		bool present = batch == batch_of(a->now) && k == workers_of(a->now);
		if ((present || fits(w, batch, k)) &&
			(best.batch_size < 0 ||
				c.at.rate.value >= (1 - EQUAL) * best.at.rate.value)) {
			best = c;
		}
	}
	return best;
}

// Replaces what the models say of a configuration by what its last run showed. Returns that run's
// memory; NAN: it did not run.
static double take_seen(const struct advice *a, struct advice_choice *c)
{
	double bytes = NAN;
	for (size_t i = 0; i < a->n; i++) {
		const struct advice_probe *p = &a->probes[i];
		bool same = batch_of(p) == c->batch_size &&
		            (workers_of(p) == c->workers || workers_of(p) < 0);
		bool counts = p->step == ADVICE_ADVISED || p == a->base; // with the settings
		if (same && counts && !p->failed && !p->seen.killed && p->seen.rate.value > 0 &&
			(!p->apart || p == a->base)) {
			c->at.rate = p == a->now ? advice_present_rate(a) : p->seen.rate;
			bytes = grown_bytes(a, p);
		}
	}
	return bytes;
}

// What more and fewer CPUs, and other batch sizes, would bring.
static void fill_tables(struct work *w)
{
	struct advice *a = w->a;
	for (unsigned cpus = 1; cpus <= 2 * a->cpus && a->n_by_cpus < ADVICE_CPUS_MAX; cpus *= 2) {
		struct advice_choice c = choose(w, cpus, 1, BATCH_MOST);
		if (c.batch_size > 0) {
			if (cpus == a->cpus) {
				(void)take_seen(a, &c);
			}
			a->by_cpus_cpus[a->n_by_cpus] = cpus;
			a->by_cpus[a->n_by_cpus++] = c;
		}
	}
	int64_t batch = batch_of(a->now);
	double most = fmax((double)batch, most_samples(a));
	for (; (double)batch <= most && a->n_by_batch < ADVICE_BATCHES_MAX; batch *= 2) {
		struct advice_choice c = choose_workers(w, batch);
		if (c.batch_size < 0) {
			break;
		}
		double bytes = take_seen(a, &c);
		a->by_batch_bytes[a->n_by_batch] = isfinite(bytes)
		                                           ? bytes
		                                           : bytes_known_at(a, (double)batch,
								     fmax(0, (double)c.workers));
		a->by_batch[a->n_by_batch++] = c;
	}
}

// The advised configuration -----------------------------------------------------------------------

static void set_advised(struct work *w, int64_t batch_size, int64_t workers)
{
	struct advice *a = w->a;
	const struct rate_config at = rate_config_of(
		&a->rate, (double)batch_size, fmax(0, (double)workers));
	a->batch_size = batch_size;
	a->workers = workers;
	a->predicted = rate_model_predict(&a->rate, &at);
	a->bytes_predicted = bytes_known_at(a, (double)batch_size, fmax(0, (double)workers));
}

static void keep_present(struct work *w)
{
	struct advice *a = w->a;
	set_advised(w, batch_of(a->now), workers_of(a->now));
	a->keep = a->settings.n == 0;
	if (!a->keep) { // with settings that gained
		a->measured = a->base;
		a->gain = a->settings_gain;
	}
}

// "batch size 64 with 2 workers"; -1 workers: not known.
static void append_configuration(struct text *t, int64_t batch, int64_t workers)
{
	text_format(t, "batch size %" PRId64, batch);
	if (workers >= 0) {
		text_format(t, " with %" PRId64 " worker%s", workers, workers == 1 ? "" : "s");
	}
}

// Runs the advised configuration under the limit. Returns the probe; NULL: nothing was recorded.
static struct advice_probe *try_advised(struct work *w)
{
	struct advice *a = w->a;
	struct advice_probe *p;
	struct error why = {0};
	struct wish wish = {.step = ADVICE_ADVISED,
		.batch_size = a->batch_size,
		.workers = a->workers,
		.limit_bytes = limit_of_rate(w),
		.iterations = LINE_ITERATIONS,
		.seconds = RATE_SECONDS};
	_cleanup_text_ struct text what = {0};
	append_configuration(&what, a->batch_size, a->workers);
	say_probe(w, STAGE_ADVISED, "the advised configuration, %s", what.data ? what.data : "");
	(void)make_limited(w, &wish, &p, &why);
	return p;
}

static struct estimate ratio(const struct estimate *after, const struct estimate *before)
{
	return (struct estimate){
		after->value / before->value, after->low / before->high, after->high / before->low};
}

// Whether a gain is one by its interval; without an interval, by its size.
static bool is_clear(const struct estimate *gain)
{
	return isfinite(gain->low) ? gain->low > 1 : gain->value >= GAIN_UNSURE;
}

// The rate that configurations are compared with: of all runs of the present one.
static struct estimate base_rate(const struct advice *a)
{
	return a->base == a->now ? advice_present_rate(a) : a->base->seen.rate;
}

// Whether a configuration trains faster than the present one, beyond doubt or noise.
static bool gains(const struct advice *a, const struct advice_probe *p)
{
	struct estimate base = base_rate(a), gain = ratio(&p->seen.rate, &base);
	double seconds = (double)p->seen.iterations * p->seen.iteration.value;
	bool enough = isfinite(gain.low) || seconds >= GAIN_SECONDS;
	return gain.value >= 1 + EQUAL && enough && is_clear(&gain);
}

// A configuration that should have fitted did not: its workers need more than was seen, or its
// batch size is too large.
static void learn_failure(struct work *w, const struct advice_choice *failed, int64_t *most)
{
	struct advice *a = w->a;
	double workers = (double)(failed->workers - fmax(0, (double)workers_of(a->now)));
	double ranks = ranks_of(&a->now->seen);
	if (workers > 0 && a->has_memory) {
		double line = memory_model_bytes(&a->memory, (double)failed->batch_size).value;
		double batch = (double)failed->batch_size, before = worker_own(a, batch);
		double least = 1.05 * (usable_bytes(w) - line) / workers / ranks;
		// Whatever runs with fewer workers showed before.
		add_worker_point(
			a, batch, isfinite(before) ? fmax(1.1 * before, least) : least, INFINITY);
		a->worker_bytes = worker_own(a, (double)batch_of(a->now));
	} else {
		*most = failed->batch_size * 3 / 4;
	}
}

// The best configuration that ran, with what was predicted before.
struct best {
	const struct advice_probe *probe; // NULL: none gained anything
	int64_t batch_size, workers;
	struct rate_prediction predicted;
	double bytes_predicted;
};

static void take_best(struct work *w, const struct best *best)
{
	struct advice *a = w->a;
	if (!best->probe) {
		keep_present(w);
		return;
	}
	a->batch_size = best->batch_size;
	a->workers = best->workers;
	a->predicted = best->predicted;
	a->bytes_predicted = best->bytes_predicted;
	a->measured = best->probe;
	a->gain = ratio(&best->probe->seen.rate, &a->now->seen.rate);
	a->refuted = false;
	a->did_not_fit = false;
	a->unclear_gain = (struct estimate){NAN, NAN, NAN};
	free(a->advised_missing);
	a->advised_missing = NULL;
}

// Looks at a run of the advised configuration. Returns whether another one should run.
static bool learn(struct work *w, const struct advice_choice *c, const struct advice_probe *p,
	struct best *best, int64_t *most)
{
	struct advice *a = w->a;
	if (p->failed || p->seen.killed || gave_way(p)) {
		if (ran_out(a, p)) {
			a->did_not_fit = true;
			learn_failure(w, c, most);
			return true;
		}
		_cleanup_text_ struct text what = {0};
		append_configuration(&what, c->batch_size, c->workers);
		free(a->advised_missing);
		a->advised_missing = format("the run of %s failed: %s",
			what.data ? what.data : "it", p->reason ? p->reason : "");
		*most = c->batch_size > batch_of(a->now) ? c->batch_size / 2 : 0;
		return *most > 0;
	}
	if (!follows_workers(a, p)) {
		return fit_rate(w); // without other numbers of workers
	}
	bool gained = gains(a, p);
	double least = best->probe ? best->probe->seen.rate.value : 0;
	bool fewer = best->probe && c->batch_size == best->batch_size && c->workers < best->workers;
	if (gained && p->seen.rate.value > (fewer ? 1 - EQUAL : 1) * least) {
		*best = (struct best){
			p, c->batch_size, c->workers, a->predicted, a->bytes_predicted};
	}
	a->refuted = a->refuted || !gained;
	struct estimate base = base_rate(a), gain = ratio(&p->seen.rate, &base);
	if (!gained && gain.value >= 1 + EQUAL) {
		a->unclear_gain = gain;
	}
	return fit_rate(w); // with this run
}

// Whether a run has shown this configuration, or nothing better than it is to be expected.
static bool is_settled(
	const struct advice *a, const struct advice_choice *c, const struct best *best)
{
	double fastest = best->probe ? best->probe->seen.rate.value : base_rate(a).value;
	bool fewer = best->probe && c->batch_size == best->batch_size && c->workers < best->workers;
	double least = fewer ? 1 - EQUAL : GAIN_MIN;
	if (c->batch_size < 0 || !(c->at.rate.value >= least * fastest)) {
		return true;
	}
	for (size_t i = 0; i < a->n; i++) {
		const struct advice_probe *p = &a->probes[i];
		bool same = batch_of(p) == c->batch_size && workers_of(p) == c->workers;
		if (same && (p->step == ADVICE_ADVISED || p->step == ADVICE_NOW)) {
			return true;
		}
	}
	return false;
}

struct estimate advice_present_rate(const struct advice *a)
{
	const struct estimate *one = &a->now->seen.rate;
	const struct estimate *two = a->again ? &a->again->seen.rate : one;
	if (a->first_refuted) {
		return *two;
	}
	double value = (one->value + two->value) / 2;
	if (!isfinite(one->low) || !isfinite(two->low)) {
		return (struct estimate){value, NAN, NAN};
	}
	return (struct estimate){value, fmin(one->low, two->low), fmax(one->high, two->high)};
}

// The faster of its two runs over the slower one; 1: there was one.
static double differs_by(const struct advice *a)
{
	double one = a->now->seen.rate.value, two = a->again ? a->again->seen.rate.value : one;
	return fmax(one, two) / fmin(one, two);
}

// The same for a row of the tables that was filled before the second run.
static void take_again(const struct advice *a, struct advice_choice *c)
{
	bool present = c->batch_size == batch_of(a->now) && c->workers == workers_of(a->now);
	c->at.rate = present && a->base == a->now ? advice_present_rate(a) : c->at.rate;
}

static const struct setting_list no_settings = {0};

// Runs the present configuration once more. Returns 0 or -ENOMEM.
static int run_again(struct work *w, enum stage stage, const char *why_again, struct error *e)
{
	struct advice *a = w->a;
	struct advice_probe *p;
	struct error why = {0};
	if (a->again || !has_time(w, a->now->seconds)) {
		return 0;
	}
	const struct wish wish = {.step = ADVICE_AGAIN,
		.batch_size = -1,
		.workers = -1,
		.settings = &no_settings,
		.iterations = LINE_ITERATIONS,
		.seconds = RATE_SECONDS};
	say_probe(w, stage, "the unmodified job again, because %s", why_again);
	int r = make(w, &wish, &p, &why);
	if (r == -ENOMEM) {
		return error_set(e, ENOMEM, "out of memory");
	}
	if (r < 0) {
		return 0;
	}
	p->apart = true;
	if (!p->failed && !a->interrupted && p->seen.rate.value > 0) {
		a->again = p;
		for (size_t i = 0; i < a->n_by_batch; i++) {
			take_again(a, &a->by_batch[i]);
		}
		for (size_t i = 0; i < a->n_by_cpus; i++) {
			if (a->by_cpus_cpus[i] == a->cpus) {
				take_again(a, &a->by_cpus[i]);
			}
		}
	}
	return 0;
}

// The same where other programs took CPUs from it, or from the run that it is compared with: these
// may have been more in one than in the other.
static int run_again_if_busy(struct work *w, const struct advice_probe *other, struct error *e)
{
	bool busy = is_busy(w->a, w->a->now) || is_busy(w->a, other);
	return busy ? run_again(w, STAGE_AGAIN, "other programs are busy", e) : 0;
}

// The same where its rate contradicts what the other runs let expect: that of a machine whose CPUs
// are shared may have changed meanwhile, unseen, and all predictions are in proportion to it.
static int run_again_if_odd(struct work *w, struct error *e)
{
	struct advice *a = w->a;
	if (!fit_rate(w) || a->base != a->now) {
		return 0;
	}
	double expected = a->now->seen.rate.value / a->rate.scale;
	bool odd = a->rate.scale > ADVICE_ODD || a->rate.scale < 1 / ADVICE_ODD;
	int r = odd ? run_again(w, STAGE_WORKERS, "its rate does not fit the other runs", e) : 0;
	double second = a->again ? a->again->seen.rate.value / expected : NAN;
	a->first_refuted = odd && second < ADVICE_ODD && second > 1 / ADVICE_ODD;
	return r;
}

// Compares what is advised with both runs of the present configuration. Returns 0 or -ENOMEM.
static int compare_again(struct work *w, struct error *e)
{
	struct advice *a = w->a;
	bool compared = a->measured && !a->keep;
	int r = compared ? run_again_if_busy(w, a->measured, e) : 0;
	if (r < 0 || !compared || !a->again) {
		return r;
	}
	struct estimate before = advice_present_rate(a);
	a->gain = ratio(&a->measured->seen.rate, &before);
	if (a->settings.n > 0) {
		a->settings_gain = ratio(&a->base->seen.rate, &before);
	}
	if (a->gain.value < 1 + EQUAL || !is_clear(&a->gain)) { // it may have been chance
		a->unclear_gain = a->gain;
		a->gain = (struct estimate){NAN, NAN, NAN};
		if (a->settings.n > 0) {
			a->probes[a->base - a->probes].gain = a->settings_gain;
		}
		a->settings = no_settings;
		a->base = a->now;
		a->measured = NULL;
		a->refuted = true;
		keep_present(w);
	}
	return 0;
}

// A configuration that ran under the limit shows that its batch size fits, with as many workers:
// those hold memory.
static void take_verified(struct work *w)
{
	struct advice *a = w->a;
	const struct advice_probe *p = a->measured;
	if (!p || a->largest_missing || p->step != ADVICE_ADVISED || gave_way(p) ||
		workers_of(p) < workers_of(a->now) || !(p->limit_bytes > 0 || binds(a)) ||
		batch_of(p) <= a->verified_batch ||
		(a->verified_batch < 1 && (double)batch_of(p) < a->largest.low) || // says little
		(a->failed_batch > 0 && batch_of(p) >= a->failed_batch)) {
		return;
	}
	a->verified = ADVICE_UNDER_LIMIT;
	a->verified_long = false;
	a->verified_batch = batch_of(p);
	take_what_ran(w, false);
}

// Notes which other configurations have a predicted rate.
static void note_compared(struct work *w)
{
	struct choices all;
	list_choices(w, w->a->cpus, &all);
	w->a->compared_batches = can_choose_batch(w);
	w->a->compared_most = epoch_most(w->a);
	w->a->compared_workers = all.last > all.first;
}

// Chooses the configuration and runs it. If it fails for lack of memory or is slower than
// predicted, the models learn from it, and another one is chosen.
static void advise(struct work *w)
{
	struct advice *a = w->a;
	struct best best = {.probe = NULL};
	int64_t most = BATCH_MOST;
	find_worker_bytes(w);
	find_thesis_workers(a);
	if (!fit_rate(w)) {
		return;
	}
	note_compared(w);
	for (int i = 0; i < ADVISED_MAX; i++) {
		struct advice_choice c = choose(w, a->cpus, 1, most);
		if (is_settled(a, &c, &best)) {
			break;
		}
		set_advised(w, c.batch_size, c.workers);
		const struct advice_probe *p = goes_on(w, a->now->seconds) ? try_advised(w) : NULL;
		if (i == 0 && (!p || a->interrupted)) { // predicted, not tried
			fill_tables(w);
			return;
		}
		if (!p || a->interrupted || !learn(w, &c, p, &best, &most)) {
			break;
		}
	}
	take_best(w, &best);
	take_verified(w);
	fill_tables(w);
}

// What to ask for ---------------------------------------------------------------------------------

// What a run of the present configuration and its repeats held at most.
static double most_held(const struct advice *a)
{
	double held = observation_held(&a->now->seen);
	for (size_t i = 0; i < a->n; i++) {
		const struct advice_probe *other = &a->probes[i];
		bool same = other->limit_bytes == 0 && batch_of(other) == batch_of(a->now) &&
		            workers_of(other) == workers_of(a->now) && other->settings.n == 0;
		if (same && !other->failed) {
			held = fmax(held, observation_held(&other->seen));
		}
	}
	return held;
}

// Bytes of host memory that the advised configuration holds, with what the kernel needs for it;
// NAN: not known.
static double held_bytes(const struct advice *a, const struct advice_probe *p)
{
	bool predicted = p == a->now && !a->keep && limits_host(a);
	double grows = grown_bytes(a, p) - limited_bytes(a, p); // until the end of an epoch
	double held = p == a->now ? most_held(a) : observation_held(&p->seen);
	held = predicted ? a->bytes_predicted : held + (isfinite(grows) ? grows : 0);
	return held * (isfinite(p->seen.kernel) ? 1 : 1 + KERNEL_SHARE);
}

// Bytes per sample from storage: the most of all runs, since later ones find what the first read in
// the page cache.
static double find_stored(const struct advice *a)
{
	double stored = NAN;
	for (size_t i = 0; i < a->n; i++) {
		stored = fmax(stored, a->probes[i].seen.stored);
	}
	return stored;
}

// So many CPUs that the model predicts nearly the rate of all: what a run uses may be less than it
// needs, where other programs took CPUs from it, or where its processes take turns.
static double cpus_enough(const struct advice *a, double least)
{
	double workers = fmax(0, (double)a->workers);
	struct rate_config at = rate_config_of(&a->rate, (double)a->batch_size, workers);
	if (!a->has_rate || a->batch_size < 1) {
		return least;
	}
	at.cpus = a->cpus;
	double all = rate_model_predict(&a->rate, &at).rate.value;
	for (unsigned cpus = (unsigned)least; cpus < a->cpus; cpus++) {
		at.cpus = cpus;
		if (rate_model_predict(&a->rate, &at).rate.value >= REQUEST_RATE * all) {
			return cpus;
		}
	}
	return a->cpus;
}

static void find_request(struct work *w)
{
	struct advice *a = w->a;
	struct advice_request *r = &a->request;
	const struct advice_probe *p = a->keep || !a->measured ? a->now : a->measured;
	bool seen = a->keep || a->measured;
	double rate = p == a->now && seen ? advice_present_rate(a).value
	              : seen              ? p->seen.rate.value
	                                  : a->predicted.rate.value;
	double predicted = a->predicted.bounds[RATE_CPU] / a->rate.cpu_loss * a->cpus * rate /
	                   (double)a->batch_size;
	r->cpus_used = seen ? p->seen.cpus_used : predicted;
	r->cpus = isfinite(r->cpus_used)
	                  ? fmax(1, ceil(r->cpus_used * (1 + REQUEST_CPU_MARGIN) - 0.2))
	                  : a->cpus;
	r->cpus = cpus_enough(a, fmin(r->cpus, a->cpus));
	r->peak_bytes = held_bytes(a, p);
	a->now_bytes = limits_host(a) ? fmax(a->now_bytes, most_held(a)) : a->now_bytes;
	bool varied = !a->pinned &&
	              (a->now->seen.sizes.looked > 0 || a->now->seen.unchosen.looked > 0);
	r->margin = varied ? REQUEST_MEMORY_MARGIN_VARIED : REQUEST_MEMORY_MARGIN;
	r->bytes = r->peak_bytes * (1 + r->margin);
	bool given = a->limit_kind == ADVICE_LIMIT_REQUESTED ||
	             a->limit_kind == ADVICE_LIMIT_CGROUP;
	if (given && r->peak_bytes <= a->limit_bytes) {
		r->bytes = fmin(r->bytes, a->limit_bytes);
	}
	r->startup = p->seen.startup;
	r->epoch = a->now->seen.epoch_samples / rate;
	r->validation = isfinite(p->seen.validation) ? p->seen.validation : a->now->seen.validation;
	r->read = find_stored(a) * rate;
	if (w->config->epochs > 0) {
		double epoch = r->epoch + (isfinite(r->validation) ? r->validation : 0);
		r->seconds = ((double)w->config->epochs * epoch + r->startup) *
		             (1 + REQUEST_TIME_MARGIN);
	}
}

// Runs the advised configuration under what is to be asked for.
static int verify_request(struct work *w, struct error *e)
{
	struct advice *a = w->a;
	struct advice_probe *p;
	struct error why = {0};
	if (!w->config->verify || a->batch_size < 1 || !isfinite(a->request.bytes) ||
		!goes_on(w, a->now->seconds)) {
		return 0;
	}
	const struct wish wish = {.step = ADVICE_REQUEST,
		.batch_size = a->batch_size,
		.workers = a->workers,
		.limit_bytes = (uint64_t)a->request.bytes,
		.cpus = a->request.cpus,
		.iterations = LINE_ITERATIONS,
		.seconds = RATE_SECONDS};
	say_probe(w, STAGE_REQUEST, "the advised configuration under the limits to request");
	int r = make(w, &wish, &p, &why);
	if (r == -ENOMEM) {
		return error_set(e, ENOMEM, "out of memory");
	}
	if (r < 0) {
		_cleanup_text_ struct text line = {0};
		if (a->failed_output) {
			read_last_line(a->failed_output, &line);
		}
		a->requested_missing = format("%s", line.length > 0 ? line.data : why.text);
	} else if (p->failed || p->seen.killed || gave_way(p)) {
		a->requested_failed = true;
		a->requested_missing = format("%s", ran_out(a, p) ? "it ran out of memory"
						    : p->reason   ? p->reason
								  : "it failed");
	} else if (a->interrupted || p->seen.iterations == 0) {
		a->requested_missing = format("%s", a->interrupted ? "interrupted"
						    : p->cut
							    ? "no iterations until --limit ended it"
							    : "it had no iterations");
	}
	if (r == 0) {
		p->apart = true;
		a->requested = p;
	}
	return 0;
}

// Convergence -------------------------------------------------------------------------------------

// 0: the command has no placeholder for it.
static double learning_rate(const struct work *w, bool advised)
{
	const struct advice *a = w->a;
	double own = NAN, factor = (double)a->batch_size / (double)batch_of(a->now);
	if (!placeholders_has(w->config->command, PLACEHOLDER_LEARNING_RATE, &own) || !(own > 0)) {
		return 0;
	}
	if (!advised) {
		return own;
	}
	switch (w->config->scaling) {
	case ADVICE_SCALE_LINEAR:
		return own * factor;
	case ADVICE_SCALE_SQRT:
		return own * sqrt(factor);
	default:
		return own;
	}
}

// Trains with one configuration for as long as is allowed, and reads how its loss fell.
static int converge(struct work *w, bool advised, struct error *e)
{
	struct advice *a = w->a;
	struct advice_curve *c = &a->curves[advised];
	static const struct setting_list none = {0};
	struct advice_probe *p;
	struct error why = {0};
	c->learning_rate = learning_rate(w, advised);
	const struct wish wish = {.step = ADVICE_CONVERGE,
		.batch_size = advised ? a->batch_size : -1,
		.workers = advised ? a->workers : -1,
		.settings = advised ? NULL : &none,
		.learning_rate = c->learning_rate,
		.whole = true};
	say(w, "convergence of the %s configuration, up to %.0f s", advised ? "advised" : "present",
		(double)w->config->converge_ns / 1e9);
	int r = make(w, &wish, &p, &why);
	if (r == -ENOMEM) {
		return error_set(e, ENOMEM, "out of memory");
	}
	if (r < 0 || p->failed) {
		a->curves_missing = format("the run failed: %s", r < 0       ? why.text
								 : p->reason ? p->reason
									     : "");
		return 0;
	}
	p->apart = true;
	c->probe = p;
	r = curve_read(p->run, &c->curve, e);
	if (r == 0 && c->curve.missing) {
		a->curves_missing = format("%s", c->curve.missing);
	}
	return r;
}

static int compare_convergence(struct work *w, struct error *e)
{
	struct advice *a = w->a;
	if (w->config->converge_ns == 0 || a->interrupted) {
		return 0;
	}
	if (a->keep || a->batch_size < 1 || a->batch_size == batch_of(a->now)) {
		a->curves_missing = format("the advice does not change the batch size");
		return 0;
	}
	int r = converge(w, false, e);
	return r < 0 || a->curves_missing || a->interrupted ? r : converge(w, true, e);
}

// Everything --------------------------------------------------------------------------------------

// The first probe. If the job fails with shortened epochs, it is tried without.
static int probe_now(struct work *w, struct error *e)
{
	struct advice *a = w->a;
	struct advice_probe *p;
	const struct wish wish = {.step = ADVICE_NOW,
		.batch_size = -1,
		.workers = -1,
		.iterations = LINE_ITERATIONS,
		.seconds = RATE_SECONDS};
	say_probe(w, STAGE_NOW, "the unmodified job");
	int r = make(w, &wish, &p, e);
	bool changed = r == 0 && (p->seen.shortened || p->seen.sizes.looked > 0);
	if (changed && p->failed && !a->interrupted) {
		_cleanup_text_ struct text line = {0};
		if (a->failed_output) {
			read_last_line(a->failed_output, &line);
		}
		say(w,
			"the job failed with shortened epochs: running it again with full-length "
			"epochs; its last line: %s",
			line.data ? line.data : "");
		w->shorten = false;
		r = make(w, &wish, &p, e);
	}
	if (r < 0) {
		return r;
	}
	if (a->interrupted) {
		return error_set(e, EINTR, "interrupted");
	}
	if (p->failed) {
		return error_set(e, ECHILD, "%s", p->reason ? p->reason : "the job failed");
	}
	if (p->seen.iterations == 0) {
		char seconds[32];
		text_seconds(seconds, sizeof(seconds), p->seconds);
		return error_set(e, ENODATA, "no iterations found%s%s%s: %s%s",
			p->cut ? " in " : "", p->cut ? seconds : "",
			p->cut ? ", until --limit interrupted the job" : "",
			p->seen.rate_missing ? p->seen.rate_missing : "the job marked none",
			p->seen.hooked ? "; the hooks saw no model being trained" : "");
	}
	a->now = a->base = p;
	a->now_bytes = NAN; // until it is known what is limited
	r = find_limit_of_gpu(w, &p->seen, e);
	if (r < 0) {
		return r;
	}
	a->now_bytes = limited_bytes(a, p);
	find_reserve(a);
	double unused;
	if (p->seen.iterable && !a->workers_missing &&
		!placeholders_has(w->config->command, PLACEHOLDER_WORKERS, &unused)) {
		a->workers_missing = format("its dataset is iterable: the script divides it among "
					    "workers"); // as hooks would say
	}
	return 0;
}

// Settings of the allocator change what memory the job needs: the largest batch is that of the
// job's own allocator.
static bool is_of_allocator(const struct setting_list *settings)
{
	for (size_t i = 0; i < settings->n; i++) {
		const char *value = settings->items[i].value;
		if (is_variable(&settings->items[i]) &&
			(strncmp(value, "MALLOC_", strlen("MALLOC_")) == 0 ||
				strncmp(value, "GLIBC_TUNABLES=", strlen("GLIBC_TUNABLES=")) == 0 ||
				strncmp(value, "LD_PRELOAD=", strlen("LD_PRELOAD=")) == 0)) {
			return true;
		}
	}
	return false;
}

// Runs a configuration with settings. *ret is NULL if it failed or was not made; else whether it
// was clearly faster than `before` is in *ret_faster.
static int try_setting(struct work *w, enum stage stage, const struct wish *wish,
	const struct estimate *before, struct advice_probe **ret, bool *ret_faster, struct error *e)
{
	_cleanup_text_ struct text words = {0};
	struct error why = {0};
	*ret = NULL;
	setting_append(&words, wish->settings);
	say_probe(w, stage, "%s", words.data ? words.data : "");
	if (make(w, wish, ret, &why) == -ENOMEM) {
		return error_set(e, ENOMEM, "out of memory");
	}
	if (!*ret) {
		return 0;
	}
	(*ret)->apart = true;
	if ((*ret)->failed || (*ret)->seen.killed || w->a->interrupted) {
		*ret = NULL;
		return 0;
	}
	(*ret)->gain = ratio(&(*ret)->seen.rate, before);
	*ret_faster = advice_gained(&(*ret)->gain);
	return 0;
}

// Runs the job with what its verdict advises to set, and keeps what makes it clearly faster: all
// later probes run with it.
static int try_settings(struct work *w, struct error *e)
{
	struct advice *a = w->a;
	const struct observation *now = &a->now->seen;
	for (size_t i = 0, tried = 0; i < now->n_settings && tried < SETTINGS_TRIED; i++) {
		struct advice_probe *p;
		bool faster = false;
		const struct wish wish = {.step = ADVICE_SETTING,
			.batch_size = -1,
			.workers = -1,
			.iterations = LINE_ITERATIONS,
			.seconds = RATE_SECONDS,
			.settings = &now->settings[i]};
		if (is_of_allocator(wish.settings)) {
			continue;
		}
		if (!goes_on(w, a->now->seconds)) {
			break;
		}
		tried++;
		int r = try_setting(w, STAGE_SETTINGS, &wish, &a->base->seen.rate, &p, &faster, e);
		if (r < 0) {
			return r;
		}
		if (p && faster) {
			for (size_t k = 0; k < a->n; k++) {
				a->probes[k].apart = true;
			}
			p->apart = false;
			a->base = p;
			a->settings = *wish.settings;
			a->settings_gain = ratio(&p->seen.rate, &now->rate);
		}
	}
	return 0;
}

// Advises settings of the allocator that were faster than the run before, if that was not chance.
static int take_allocator(struct work *w, const struct setting_list *settings,
	struct advice_probe *p, const struct advice_probe *before, struct error *e)
{
	struct advice *a = w->a;
	int r = run_again_if_busy(w, p, e);
	struct estimate present = advice_present_rate(a);
	const struct estimate *rate = before == a->now ? &present : &before->seen.rate;
	struct estimate gain = ratio(&p->seen.rate, rate);
	if (before != a->now) { // which ran once
		double differs = differs_by(a);
		gain.low /= differs;
		gain.high *= differs;
	}
	p->gain = gain;
	if (gain.low > 1) {
		a->allocator = *settings;
		a->allocator_gain = gain;
		a->allocator_bytes = limited_bytes(a, p);
	}
	return r;
}

// Runs the advised configuration with what the verdict advises to set of the allocator.
static int try_allocator(struct work *w, struct error *e)
{
	struct advice *a = w->a;
	const struct observation *now = &a->now->seen;
	for (size_t i = 0; i < now->n_settings; i++) {
		struct advice_probe *p;
		struct setting_list joined;
		bool faster = false;
		if (!is_of_allocator(&now->settings[i]) ||
			!setting_join(&a->settings, &now->settings[i], &joined)) {
			continue;
		}
		const struct advice_probe *before = a->measured ? a->measured : a->base;
		bool same = a->keep || !a->measured || a->batch_size < 1;
		const struct wish wish = {.step = ADVICE_SETTING,
			.batch_size = same ? -1 : a->batch_size,
			.workers = same ? -1 : a->workers,
			.limit_bytes = limit_of_rate(w),
			.iterations = LINE_ITERATIONS,
			.seconds = RATE_SECONDS,
			.settings = &joined};
		if (!goes_on(w, a->now->seconds)) {
			break;
		}
		size_t n = a->n;
		int r = try_setting(w, STAGE_ALLOCATOR, &wish, &before->seen.rate, &p, &faster, e);
		if (r < 0) {
			return r;
		}
		a->allocator_tried = a->n > n ? &a->probes[n] : NULL;
		if (p && faster && !(limited_bytes(a, p) > usable_bytes(w))) {
			r = take_allocator(w, &now->settings[i], p, before, e);
		}
		return r; // one allocator is enough
	}
	return 0;
}

// The probes of a whole stage. It makes fewer if a probe fails or takes too long.
static struct left probes_of(const struct work *w, enum stage stage)
{
	const struct observation *now = w->a->now ? &w->a->now->seen : NULL;
	bool regular = is_regular(w->a), line = now && can_set(w, false);
	unsigned of_allocator = 0, others = 0;
	for (size_t i = 0; now && i < now->n_settings; i++) {
		bool is = is_of_allocator(&now->settings[i]);
		of_allocator = is ? 1 : of_allocator;
		others += !is && others < SETTINGS_TRIED;
	}
	switch (stage) {
	case STAGE_SETTINGS:
		return (struct left){others, others};
	case STAGE_LINE: // a second size, or one below it; two further; or some again
		return line ? (struct left){regular ? 1 : 3, 4} : (struct left){0, 0};
	case STAGE_VERIFY:
		line = line && !w->a->largest_missing;
		return (struct left){0, line ? VERIFIES + (regular ? 0 : CONFIRMS_MAX) : 0};
	case STAGE_WORKERS:
		return now && other_workers(w) >= 0 ? (struct left){1, 1} : (struct left){0, 0};
	case STAGE_ADVISED:
		return (struct left){0, line || (now && can_set(w, true)) ? ADVISED_MAX : 0};
	case STAGE_AGAIN:
		return (struct left){0, w->a->again ? 0 : 1};
	case STAGE_ALLOCATOR:
		return (struct left){of_allocator, of_allocator * (w->a->again ? 1 : 2)};
	case STAGE_REQUEST:
		return w->config->verify ? (struct left){1, 1} : (struct left){0, 0};
	default:
		return (struct left){0, 0};
	}
}

// With the one that begins now.
static struct left probes_left(const struct work *w)
{
	struct left left = probes_of(w, w->stage);
	unsigned made = (unsigned)(w->a->n - w->stage_from);
	left.least = left.least > made + 1 ? left.least - made : 1;
	left.most = left.most > made + 1 ? left.most - made : 1;
	for (enum stage stage = w->stage + 1; stage < N_STAGES; stage++) {
		struct left more = probes_of(w, stage);
		left.least += more.least;
		left.most += more.most;
	}
	return left;
}

// Whether the batch size can be set; else says why not.
static bool can_follow(struct work *w)
{
	const struct observation *now = &w->a->now->seen;
	if (can_set(w, false)) {
		return true;
	}
	const char *at = now->loader_at ? now->loader_at : now->fit_at;
	set_largest_missing(w->a,
		at ? format("hooks cannot set the batch size of the data at %s; put "
			    "{batch_size} into the command",
			     at)
		   : format("the command has no placeholder, and the hooks saw no PyTorch loader "
			    "and no Keras fit; put {batch_size} into the command"));
	return false;
}

int advice_make(const struct advice_config *config, struct advice *ret, struct error *e)
{
	struct work w = {
		.config = config, .a = ret, .start_ns = clock_monotonic_ns(), .shorten = true};
	*ret = (struct advice){.largest = {NAN, NAN, NAN},
		.largest_estimate = NAN,
		.compared_most = NAN,
		.verified_batch = -1,
		.verified_epoch = NAN,
		.lasts = NAN,
		.failed_batch = -1,
		.batch_size = -1,
		.workers = -1,
		.bytes_predicted = NAN,
		.worker_bytes = NAN,
		.worker_copies = NAN,
		.request = {.cpus_used = NAN,
			.cpus = NAN,
			.peak_bytes = NAN,
			.bytes = NAN,
			.epoch = NAN,
			.validation = NAN,
			.read = NAN,
			.seconds = NAN,
			.startup = NAN},
		.thesis_batch = NAN,
		.thesis_workers = NAN,
		.thesis_seconds = NAN,
		.gain = {NAN, NAN, NAN},
		.unclear_gain = {NAN, NAN, NAN},
		.settings_gain = {NAN, NAN, NAN},
		.allocator_gain = {NAN, NAN, NAN},
		.allocator_bytes = NAN,
		.placeholders = placeholders_any(config->command),
		.pinned = getenv("MALLOC_MMAP_THRESHOLD_") != NULL};
	w.strain = installation_find("strain", X_OK, e);
	if (!w.strain) {
		return -ENOENT;
	}
	int r = find_limit(&w, e);
	r = r < 0 ? r : probe_now(&w, e);
	r = r < 0 ? r : try_settings(&w, e);
	if (r == 0 && can_follow(&w)) {
		r = find_line(&w, e);
		r = r < 0 ? r : find_largest(&w, e);
	}
	r = r < 0 ? r : ret->now ? probe_workers(&w, e) : 0;
	r = r < 0 ? r : ret->now ? run_again_if_odd(&w, e) : 0;
	if (r == 0 && ret->now) {
		advise(&w);
		r = compare_again(&w, e);
		r = r < 0 ? r : try_allocator(&w, e);
		find_request(&w);
		r = r < 0 ? r : verify_request(&w, e);
		r = r < 0 ? r : compare_convergence(&w, e);
	}
	if (ret->now && !ret->has_memory && !ret->largest_missing) {
		set_largest_missing(
			ret, format("%s", ret->interrupted ? "interrupted"
					  : ret->out_of_time
						  ? "no time was left"
						  : "the probe of another batch size failed"));
	}
	ret->seconds = seconds_spent(&w);
	free(w.strain);
	return r;
}

void advice_done(struct advice *a)
{
	for (size_t i = 0; i < a->n; i++) {
		observation_done(&a->probes[i].seen);
		free(a->probes[i].run);
		free(a->probes[i].reason);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(a->curves); i++) {
		curve_done(&a->curves[i].curve);
	}
	free(a->curves_missing);
	free(a->largest_missing);
	free(a->verified_missing);
	free(a->advised_missing);
	free(a->workers_missing);
	free(a->requested_missing);
	free(a->rate_missing);
	free(a->failed_output);
	*a = (struct advice){0};
}
