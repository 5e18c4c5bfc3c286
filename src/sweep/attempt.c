// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Runs a trial from start to end.

#include "sweep/attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/launch_status.h"
#include "base/secret.h"
#include "base/text.h"
#include "base/words.h"
#include "run/analysis.h"
#include "run/measures.h"
#include "runfile/amend.h"
#include "runfile/reader.h"
#include "study/digest.h"
#include "sweep/execution.h"
#include "sweep/plan.h"
#include "sweep/template.h"
#include "verdict/verdict.h"

// Decides when a trial can end: applies the plan's stop rules to the run file while it is recorded.

enum stop_reason { STOP_NOT, STOP_EPOCHS, STOP_SECONDS, STOP_STEP_ERROR, STOP_TIMEOUT };

struct stop_watch {
	const struct plan *plan;
	const char *run; // path of the run file
	uint64_t start_ns; // CLOCK_MONOTONIC
	uint64_t next_epochs_ns; // time of the next check
	uint64_t next_steps_ns;
	uint64_t epochs; // epochs done at the last check
	double step_error; // relative error at the last check; NAN: not known
};

// Stop --------------------------------------------------------------------------------------------
//
// Stop rules.

#define STOP_LOOK_MS 250
// Examining the run file uses the job's machine: at most 1/LOOK_SHARE of the time.
#define LOOK_SHARE 40
#define STEPS_SOONEST_NS NS_PER_S
#define STEPS_LEAST 24 // batches prefetched at the start are then few

static void stop_watch_start(struct stop_watch *w, const struct plan *plan, const char *run)
{
	uint64_t now_ns = clock_monotonic_ns();
	*w = (struct stop_watch){
		.plan = plan,
		.run = run,
		.start_ns = now_ns,
		.next_epochs_ns = now_ns + STOP_LOOK_MS * NS_PER_MS,
		.next_steps_ns = now_ns + STEPS_SOONEST_NS,
		.step_error = NAN,
	};
}

static uint64_t count_epochs(const char *path)
{
	struct reader *reader = NULL;
	struct epoch_list epochs = {0};
	struct error e = {0};
	uint64_t n = 0;
	if (reader_open(path, &reader, &e) < 0) {
		return 0; // the file may not exist yet
	}
	if (epoch_list_load(reader, &epochs, &e) == 0) {
		for (size_t i = 0; i < epochs.n; i++) {
			n += !epochs.items[i].open;
		}
		epoch_list_done(&epochs);
	}
	reader_free(reader);
	return n;
}

// Half of the 95 % interval over the mean of the iterations.
static double find_step_error(const char *path)
{
	struct reader *reader = NULL;
	struct analysis a;
	struct error e = {0};
	double ratio = NAN;
	if (reader_open(path, &reader, &e) < 0) {
		return NAN;
	}
	if (analysis_load(reader, &a, &e) == 0) {
		const struct estimate *length = &a.phases.length_s;
		if (a.phases.steady >= STEPS_LEAST) {
			ratio = (length->high - length->low) / 2 / length->value;
		}
		analysis_done(&a);
	}
	reader_free(reader);
	return ratio;
}

static uint64_t next_look(uint64_t before_ns, uint64_t soonest_ns)
{
	uint64_t now_ns = clock_monotonic_ns(), pause_ns = (now_ns - before_ns) * LOOK_SHARE;
	return now_ns + (pause_ns > soonest_ns ? pause_ns : soonest_ns);
}

// The first rule that is met now. Cheap if no check is due.
static enum stop_reason stop_watch_look(struct stop_watch *w)
{
	const struct plan_stop *stop = &w->plan->stop;
	uint64_t now_ns = clock_monotonic_ns();
	double passed_s = (double)(now_ns - w->start_ns) / 1e9;
	if (stop->seconds > 0 && passed_s >= stop->seconds) {
		return STOP_SECONDS;
	}
	if (w->plan->timeout_s > 0 && passed_s >= w->plan->timeout_s) {
		return STOP_TIMEOUT;
	}
	if (stop->epochs > 0 && now_ns >= w->next_epochs_ns) {
		w->epochs = count_epochs(w->run);
		w->next_epochs_ns = next_look(now_ns, STOP_LOOK_MS * NS_PER_MS);
		if (w->epochs >= stop->epochs) {
			return STOP_EPOCHS;
		}
	}
	if (stop->step_error > 0 && now_ns >= w->next_steps_ns) {
		w->step_error = find_step_error(w->run);
		w->next_steps_ns = next_look(now_ns, STEPS_SOONEST_NS);
		if (w->step_error <= stop->step_error) {
			return STOP_STEP_ERROR;
		}
	}
	return STOP_NOT;
}

// The time until the next check is due, at most 250 ms.
static int stop_watch_due_ms(const struct stop_watch *w)
{
	double passed_s = (double)(clock_monotonic_ns() - w->start_ns) / 1e9,
	       due_s = STOP_LOOK_MS / 1e3;
	if (w->plan->stop.seconds > 0) {
		due_s = fmin(due_s, w->plan->stop.seconds - passed_s);
	}
	if (w->plan->timeout_s > 0) {
		due_s = fmin(due_s, w->plan->timeout_s - passed_s);
	}
	return due_s > 0 ? (int)ceil(due_s * 1e3) : 0;
}

// Appends "stopped after 3 epochs".
static void stop_watch_append_reason(
	struct text *t, const struct stop_watch *w, enum stop_reason reason)
{
	switch (reason) {
	case STOP_EPOCHS:
		text_format(t, "stopped after %" PRIu64 " epoch%s", w->epochs,
			w->epochs == 1 ? "" : "s");
		break;
	case STOP_SECONDS:
		text_append_string(t, "stopped after ");
		words_append_seconds(t, w->plan->stop.seconds);
		break;
	case STOP_STEP_ERROR:
		text_append_string(t, "stopped when its step was known to within ");
		words_append_percent(t, w->step_error);
		break;
	case STOP_TIMEOUT:
		text_append_string(t, "not done after ");
		words_append_seconds(t, w->plan->timeout_s);
		break;
	default:
		break;
	}
}

// Attempt -----------------------------------------------------------------------------------------

enum { OUTPUT_BYTES = 4096, LOOK_MS = 50 };

struct running {
	const struct sweep *sweep;
	struct trial_place place;
	const struct attempt_watch *watch;
	struct execution *execution;
	struct stop_watch stop;
	char *run; // path until it is complete
	char *final_run;
	char *log; // name in the sweep's folder
	enum stop_reason reason;
	bool interrupted;
	int interrupts_before; // interrupts when it was told to end
	bool again; // second attempt, since its recorder was killed in the first
	bool lost; // its processes ended without completing it
	int status; // of strain-record, as waitpid returns it; -errno: not started
	struct error *e;
};

// Arguments ---------------------------------------------------------------------------------------

struct words {
	char **items;
	size_t n;
	size_t capacity;
	bool failed;
};

static void add_word(struct words *w, char *word)
{
	if (!word ||
		array_reserve((void **)&w->items, &w->capacity, w->n + 2, sizeof(char *)) < 0) {
		free(word);
		w->failed = true;
		return;
	}
	w->items[w->n++] = word;
	w->items[w->n] = NULL;
}

static void add_format(struct words *w, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void add_format(struct words *w, const char *format, ...)
{
	char *word = NULL;
	va_list arguments;
	va_start(arguments, format);
	int length = vasprintf(&word, format, arguments);
	va_end(arguments);
	add_word(w, length < 0 ? NULL : word);
}

// Calls `each` with each label of a trial; `each` returns whether to continue.
static bool each_label(const struct running *r,
	bool (*each)(void *context, const char *name, const char *value), void *context)
{
	const struct plan *plan = &r->sweep->plan;
	char trial[16], repeat[16];
	bool more = true;
	snprintf(trial, sizeof(trial), "%u", r->place.configuration);
	snprintf(repeat, sizeof(repeat), "%u", r->place.repeat);
	for (size_t f = 0; f < plan->n_factors && more; f++) {
		more = each(context, plan->factors[f].name,
			trials_value(&r->sweep->trials, r->place.configuration, f));
	}
	for (size_t i = 0; i < plan->labels.n && more; i++) {
		more = each(context, plan->labels.items[i].name, plan->labels.items[i].value);
	}
	return more && each(context, "sweep", r->sweep->stem) && each(context, "trial", trial) &&
	       each(context, "repeat", repeat);
}

static bool add_label(void *context, const char *name, const char *value)
{
	struct words *w = context;
	add_format(w, "--label=%s=%s", name, value);
	return !w->failed;
}

static void add_limits(struct words *w, const struct running *r)
{
	static const struct {
		const char *name;
		const char *option;
		bool of_slurm; // Slurm was asked for it
	} limits[] = {
		{"cpus", "--cpus", true},
		{"memory", "--memory", true},
		{"disk_read", "--disk-read", false},
		{"gpus", "--gpus", true},
	};
	bool slurm = strcmp(r->sweep->plan.executor, PLAN_SLURM) == 0;
	for (size_t i = 0; i < ARRAY_LENGTH(limits); i++) {
		const char *value = trials_value_of(
			&r->sweep->trials, r->place.configuration, limits[i].name);
		if (value && strcmp(value, "unlimited") != 0 && !(slurm && limits[i].of_slurm)) {
			add_format(w, "%s=%s", limits[i].option, value);
		}
	}
}

static char **make_arguments(const struct running *r)
{
	struct words w = {0};
	char **command = trials_command(&r->sweep->trials, r->place.configuration);
	add_format(&w, "run");
	add_format(&w, "--output=%s", r->run);
	add_format(&w, "--no-verdict");
	add_format(&w, "--supervised");
	add_format(&w, "--epoch-pattern=%s",
		r->sweep->plan.epoch_pattern ? r->sweep->plan.epoch_pattern : "auto");
	each_label(r, add_label, &w);
	add_limits(&w, r);
	add_format(&w, "--");
	for (size_t i = 0; command && command[i]; i++) {
		add_word(&w, command[i]); // now owned by w
	}
	if (w.failed || !command) {
		free(command);
		template_free_words(w.items);
		return NULL;
	}
	free(command);
	return w.items;
}

// Creates the log. An existing file of that name is not the sweep's.
static int make_log(const struct running *r)
{
	unlinkat(r->sweep->folder, r->log, 0);
	return sweep_create_file(r->sweep, r->log);
}

static int start(struct running *r)
{
	char **arguments = make_arguments(r);
	char **environment = trials_environment(&r->sweep->trials, r->place.configuration);
	_cleanup_close_ int output = make_log(r);
	int result = -ENOMEM;
	if (output < 0) {
		result = error_errno(r->e, -output, "%s/%s", r->sweep->directory, r->log);
	} else if (arguments && environment) {
		const struct execution_request request = {
			.arguments = arguments,
			.environment = environment,
			.run = r->run,
			.mark = r->sweep->mark,
			.output = output,
			.grace_s = r->sweep->plan.grace_s,
		};
		result = execution_start(&request, &r->execution, r->e);
	} else {
		error_errno(r->e, ENOMEM, "a trial");
	}
	template_free_words(arguments);
	template_free_words(environment);
	return result;
}

// While it runs -----------------------------------------------------------------------------------

// A second Ctrl-C ends the trial at once.
static bool is_hurried(const struct running *r)
{
	return *r->watch->interrupts > (r->interrupts_before > 1 ? r->interrupts_before : 1);
}

static void end_job(struct running *r)
{
	r->interrupts_before = *r->watch->interrupts;
	execution_end(r->execution, false);
	while (!execution_wait(r->execution, LOOK_MS, &r->status)) {
		if (is_hurried(r)) {
			execution_end(r->execution, true);
		}
		r->interrupted = r->interrupted || *r->watch->interrupts > 0;
	}
}

static void append_process(struct text *t, pid_t pid)
{
	char path[32], name[32];
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, name, sizeof(name));
	text_format(t, "%s%d (", t->length > 0 ? ", " : "", (int)pid);
	text_append_printable(t, name, n > 1 ? (size_t)n - 1 : 0); // without the newline at its end
	text_append_string(t, ")");
}

static void say_left(const struct running *r)
{
	_cleanup_text_ struct text processes = {0};
	pid_t pids[4];
	size_t n = execution_left(r->execution, pids, ARRAY_LENGTH(pids));
	if (n == 0 || !r->watch->left) {
		return;
	}
	for (size_t i = 0; i < n && i < ARRAY_LENGTH(pids); i++) {
		append_process(&processes, pids[i]);
	}
	if (n > ARRAY_LENGTH(pids)) {
		text_format(&processes, " and %zu more", n - ARRAY_LENGTH(pids));
	}
	r->watch->left(r->watch->context, processes.data ? processes.data : "");
}

static void wait_left(struct running *r)
{
	while (!execution_wait_left(r->execution, LOOK_MS)) {
		if (is_hurried(r)) {
			execution_end(r->execution, true);
		}
	}
}

static void watch_job(struct running *r)
{
	while (!execution_wait(r->execution, stop_watch_due_ms(&r->stop), &r->status)) {
		r->interrupted = *r->watch->interrupts > 0;
		r->reason = r->interrupted ? STOP_NOT : stop_watch_look(&r->stop);
		if (r->interrupted || r->reason != STOP_NOT) {
			end_job(r);
			return;
		}
		if (r->watch->tick) {
			r->watch->tick(r->watch->context);
		}
	}
	// If a signal arrived as the job ended, it was meant for the sweep; the trial is complete.
}

// Output of the job -------------------------------------------------------------------------------

// The end of the log, valid UTF-8, from the start of a line.
static char *read_tail(const struct running *r)
{
	char buffer[OUTPUT_BYTES];
	struct stat status;
	struct text tail = {0};
	_cleanup_close_ int fd = sweep_open_file(r->sweep, r->log);
	off_t from = 0;
	ssize_t n = 0;
	if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
		from = status.st_size > OUTPUT_BYTES ? status.st_size - OUTPUT_BYTES : 0;
		n = pread(fd, buffer, OUTPUT_BYTES, from);
	}
	secret_append_end(&tail, buffer, n > 0 ? (size_t)n : 0, from > 0);
	return text_steal(&tail);
}

// Appends the last line that is not blank, without "strain: ".
static void append_last_line(struct text *t, const char *output)
{
	size_t end = strlen(output);
	while (end > 0 && strchr("\n\r \t", output[end - 1])) {
		end--;
	}
	size_t from = end;
	while (from > 0 && output[from - 1] != '\n') {
		from--;
	}
	const char *line = output + from;
	size_t length = end - from, own = strlen("strain: ");
	if (length > own && strncmp(line, "strain: ", own) == 0) {
		line += own;
		length -= own;
	}
	text_append_printable(t, line, length > 300 ? 300 : length);
}

// Its end -----------------------------------------------------------------------------------------

static int set_outcome(struct attempt *a, enum outcome outcome, struct text *text)
{
	free(a->outcome_text);
	a->outcome = outcome;
	a->outcome_text = text_steal(text);
	return a->outcome_text ? 0 : -ENOMEM;
}

static const char *find_event(const struct analysis *a, const char *kind)
{
	for (size_t i = 0; i < a->tables.events.n; i++) {
		if (strcmp(a->tables.events.items[i].kind, kind) == 0) {
			return a->tables.events.items[i].text;
		}
	}
	return NULL;
}

// -ENODATA: the job succeeded, but part of it was not recorded, so its figures are wrong.
static int check_recording(const struct running *r, const struct analysis *a, enum outcome outcome)
{
	const char *died = find_event(a, "recorder_died");
	return died && outcome_is_success(outcome) ? error_set(r->e, ENODATA, "%s", died) : 0;
}

// Does the work of `strain finish`.
static int finish_analysed(const struct running *r, struct analysis *a, struct attempt *ret)
{
	const char *why;
	int result = find_event(a, "disk_full") ? error_errno(r->e, ENOSPC, "%s", r->run) : 0;
	if (result == 0 && !ret->outcome_text) {
		result = outcome_of(a->tables.reader, &ret->outcome, &ret->outcome_text, r->e);
	}
	result = result < 0 ? result : check_recording(r, a, ret->outcome);
	result = result < 0
	                 ? result
	                 : digest_store(r->run, a, ret->outcome, ret->outcome_text, NULL, 0, r->e);
	if (result == 0 && !r->lost && reader_state(a->tables.reader) != RUN_FINISHED) {
		result = error_set(r->e, EIO, "the recorder was killed");
	}
	if (result < 0) {
		return result;
	}
	bool ended = outcome_is_success(ret->outcome) || ret->outcome == OUTCOME_TIME_LIMIT;
	ret->missed_epochs = ended && r->sweep->plan.stop.epochs > 0 && a->tables.epochs.n == 0;
	if (r->lost) {
		ret->seconds = isfinite(a->overview.recorded_s) ? a->overview.recorded_s : 0;
	}
	ret->epoch_seconds = measures[MEASURE_EPOCH].compute(a, &why);
	ret->samples_per_second = measures[MEASURE_SAMPLES_PER_SECOND].compute(a, &why);
	snprintf(ret->samples_unit, sizeof(ret->samples_unit), "%s",
		unit_of_samples(a->tables.reader));
	return 0;
}

static int finish_run(const struct running *r, struct attempt *ret)
{
	struct reader *reader = NULL;
	struct analysis a;
	int result = reader_open(r->run, &reader, r->e);
	if (result < 0) {
		return result;
	}
	reader_hold(reader);
	struct verdict verdict;
	result = analysis_load(reader, &a, r->e);
	result = result < 0 ? result : verdict_judge(&a, &verdict, r->e);
	reader_release(reader);
	if (result == 0) {
		result = finish_analysed(r, &a, ret);
		verdict_done(&verdict);
		analysis_done(&a);
	}
	reader_free(reader);
	return result;
}

// output NULL: the run already has it.
static int write_outcome(const struct running *r, const struct attempt *a, const char *output)
{
	const struct amendment items[] = {
		{AMEND_KEY, "outcome", outcome_word(a->outcome)},
		{AMEND_KEY, "outcome_text", a->outcome_text},
		{AMEND_EVENT, "output", output},
	};
	return amend_run(r->run, items, ARRAY_LENGTH(items) - !output, r->e);
}

// An end by the sweep itself takes precedence over what the run shows.
static int judge_stopped(const struct running *r, struct attempt *ret)
{
	struct text why = {0};
	stop_watch_append_reason(&why, &r->stop, r->reason);
	return set_outcome(
		ret, r->reason == STOP_TIMEOUT ? OUTCOME_TIME_LIMIT : OUTCOME_STOPPED, &why);
}

// Before the analysis, writes to the file what the verdict needs: that the sweep ended the job, or
// the last output of a failed job.
static int complete_recorded(const struct running *r, struct attempt *ret, const char *output)
{
	const struct amendment event = {AMEND_EVENT, "output", output};
	int result = 0;
	if (r->reason != STOP_NOT) {
		result = judge_stopped(r, ret);
		result = result < 0 ? result : write_outcome(r, ret, output);
		return result < 0 ? result : finish_run(r, ret);
	}
	bool failed = r->status != 0;
	result = failed ? amend_run(r->run, &event, 1, r->e) : 0;
	result = result < 0 ? result : finish_run(r, ret);
	if (result < 0) {
		return result;
	}
	const struct amendment items[] = {
		{AMEND_KEY, "outcome", outcome_word(ret->outcome)},
		{AMEND_KEY, "outcome_text", ret->outcome_text},
		event,
	};
	return amend_run(r->run, items, ARRAY_LENGTH(items) - failed, r->e);
}

// The recorder was killed in the second attempt, too: the partial run is kept, with outcome
// `unknown`.
static int complete_unseen(const struct running *r, struct attempt *ret, const char *output)
{
	struct text why = {0};
	text_format(&why, "%s, as in the previous attempt", r->e->text);
	int result = set_outcome(ret, OUTCOME_UNKNOWN, &why);
	result = result < 0 ? result : write_outcome(r, ret, r->reason == STOP_NOT ? output : NULL);
	return result < 0 ? result : finish_run(r, ret);
}

static bool add_pair(void *context, const char *name, const char *value)
{
	struct words *w = context;
	add_word(w, strdup(name));
	add_word(w, strdup(value));
	return !w->failed;
}

// Writes a file without samples, with the outcome in `ret`.
static int write_unrecorded(const struct running *r, const struct attempt *ret, const char *output)
{
	struct words pairs = {0}; // name, value, ...
	bool complete = each_label(r, add_pair, &pairs);
	size_t n = pairs.n / 2;
	struct amendment *items = calloc(n + 1, sizeof(*items));
	int result = complete && items ? 0 : error_errno(r->e, ENOMEM, "a trial");
	for (size_t i = 0; i < n && result == 0; i++) {
		items[i] = (struct amendment){
			AMEND_LABEL, pairs.items[2 * i], pairs.items[2 * i + 1]};
	}
	result = result < 0 ? result : amend_write_empty(r->run, items, n, r->e);
	result = result < 0 ? result : write_outcome(r, ret, output);
	free(items);
	template_free_words(pairs.items);
	return result;
}

// Completes a trial whose job strain-record did not start.
static int complete_unstarted(const struct running *r, struct attempt *ret, const char *output)
{
	struct text why = {0};
	if (r->reason != STOP_NOT) { // stopped before there was a job
		int result = judge_stopped(r, ret);
		return result < 0 ? result : write_unrecorded(r, ret, output);
	}
	if (r->status < 0) {
		return error_errno(r->e, -r->status, "cannot start it");
	}
	int code = WIFEXITED(r->status) ? WEXITSTATUS(r->status) : -1;
	bool refused = code == LAUNCH_REFUSED;
	bool absent = code == LAUNCH_NOT_EXECUTABLE || code == LAUNCH_NOT_FOUND;
	append_last_line(&why, output);
	// the reason may be temporary: the trial is run when the sweep continues
	if (!refused && !absent) {
		int result = error_set(
			r->e, EIO, "%s", why.data && *why.data ? why.data : "nothing was recorded");
		text_done(&why);
		return result;
	}
	int result = set_outcome(ret, refused ? OUTCOME_REFUSED : OUTCOME_CRASH, &why);
	return result < 0 ? result : write_unrecorded(r, ret, output);
}

// Slurm starts a trial elsewhere if its node cannot be reached, where it may run on. Its files are
// then those of the other process.
static int check_ours(const struct running *r)
{
	bool ours = !r->watch || !r->watch->may_complete ||
	            r->watch->may_complete(r->watch->context);
	return ours ? 0 : error_set(r->e, ESTALE, "another process is running this trial");
}

// The last step: the new name makes the trial complete.
static int take_name(const struct running *r, struct attempt *ret)
{
	bool failed = !outcome_is_success(ret->outcome) && ret->outcome != OUTCOME_SKIPPED;
	if (check_ours(r) < 0) {
		return -r->e->code;
	}
	if (!failed) {
		unlinkat(r->sweep->folder, r->log, 0);
	}
	int result = amend_rename(r->run, r->final_run, r->e);
	if (result < 0) {
		return result;
	}
	ret->run = strdup(r->final_run);
	return ret->run ? 0 : error_errno(r->e, ENOMEM, "a trial");
}

static int complete(const struct running *r, struct attempt *ret)
{
	_cleanup_free_ char *output = read_tail(r);
	if (!output) {
		return error_errno(r->e, ENOMEM, "a trial");
	}
	if (sweep_check_place(r->sweep, r->e) < 0 || check_ours(r) < 0) {
		return -r->e->code;
	}
	bool recorded = access(r->run, F_OK) == 0;
	int result = recorded ? complete_recorded(r, ret, output)
	                      : complete_unstarted(r, ret, output);
	if (result == -ENODATA && r->again) {
		result = complete_unseen(r, ret, output);
	}
	return result < 0 ? result : take_name(r, ret);
}

// With an outcome that is known in another way than from the run.
static int complete_told(
	const struct running *r, enum outcome outcome, struct text *why, struct attempt *ret)
{
	_cleanup_free_ char *output = read_tail(r);
	int result = output ? set_outcome(ret, outcome, why) : -ENOMEM;
	if (result < 0) {
		return error_errno(r->e, ENOMEM, "a trial");
	}
	result = sweep_check_place(r->sweep, r->e);
	result = result < 0 ? result : check_ours(r);
	if (result < 0) {
		return result;
	}
	struct error damage = {0};
	bool recorded = access(r->run, F_OK) == 0 && amend_close(r->run, &damage) == 0 &&
	                write_outcome(r, ret, output) == 0 && finish_run(r, ret) == 0;
	if (!recorded) { // its end was lost with its machine
		sweep_remove_run(r->sweep, r->place);
		result = write_unrecorded(r, ret, output);
	}
	return result < 0 ? result : take_name(r, ret);
}

static int interrupted(struct running *r, struct attempt *ret)
{
	struct text why = {0};
	enum outcome outcome = r->watch->interrupted
	                               ? r->watch->interrupted(r->watch->context, &why)
	                               : N_OUTCOMES;
	if (outcome == N_OUTCOMES) {
		text_done(&why);
		return error_set(r->e, EINTR, "interrupted");
	}
	r->lost = true;
	return complete_told(r, outcome, &why, ret);
}

static int run(struct running *r, struct attempt *ret)
{
	int result = sweep_check_place(r->sweep, r->e);
	result = result < 0 ? result : start(r);
	if (result < 0) {
		return result;
	}
	stop_watch_start(&r->stop, &r->sweep->plan, r->run);
	watch_job(r);
	wait_left(r);
	// A scheduler signals the job, too, which may end of that while a stop rule is checked.
	if (r->watch->interrupted && *r->watch->interrupts > 0 && r->reason == STOP_NOT &&
		r->status != 0) {
		r->interrupted = true;
	}
	say_left(r);
	ret->seconds = (double)(clock_monotonic_ns() - r->stop.start_ns) / 1e9;
	execution_close(r->execution);
	return r->interrupted ? interrupted(r, ret) : complete(r, ret);
}

static struct running running_of(const struct sweep *sweep, size_t index, struct error *e)
{
	struct trial_place place = sweep->trials.order[index];
	return (struct running){
		.sweep = sweep,
		.place = place,
		.run = sweep_path(sweep, place, SWEEP_RUNNING),
		.final_run = sweep_path(sweep, place, SWEEP_RUN),
		.log = sweep_file_name(place, SWEEP_LOG),
		.e = e,
	};
}

static void running_done(struct running *r)
{
	free(r->run);
	free(r->final_run);
	free(r->log);
}

int attempt_run(const struct sweep *sweep, size_t index, const struct attempt_watch *watch,
	struct attempt *ret, struct error *e)
{
	struct error ignored = {0};
	struct running r = running_of(sweep, index, e ? e : &ignored);
	r.watch = watch;
	int result = -ENODATA;
	for (int i = 0; i < 2 && result == -ENODATA; i++) {
		*ret = (struct attempt){.epoch_seconds = NAN, .samples_per_second = NAN};
		r.reason = STOP_NOT;
		r.interrupts_before = 0;
		r.again = i > 0;
		result = r.run && r.final_run && r.log ? run(&r, ret)
		                                       : error_errno(r.e, ENOMEM, "a trial");
		if (result == -ENODATA) {
			result = check_ours(&r) < 0 ? -ESTALE : result;
		}
		if (result < 0) {
			if (!watch->interrupted || result == -ENODATA) {
				sweep_remove_trial(sweep, r.place);
			}
			attempt_done(ret);
		}
	}
	running_done(&r);
	return result;
}

int attempt_complete(const struct sweep *sweep, size_t index, enum outcome outcome, const char *why,
	struct attempt *ret, struct error *e)
{
	struct error ignored = {0};
	struct text line = {0};
	struct running r = running_of(sweep, index, e ? e : &ignored);
	r.lost = true;
	*ret = (struct attempt){.epoch_seconds = NAN, .samples_per_second = NAN};
	text_append_string(&line, why);
	int result = r.run && r.final_run && r.log ? complete_told(&r, outcome, &line, ret)
	                                           : error_errno(r.e, ENOMEM, "a trial");
	if (result < 0) {
		text_done(&line);
		attempt_done(ret);
	}
	running_done(&r);
	return result;
}

void attempt_done(struct attempt *a)
{
	free(a->outcome_text);
	free(a->run);
	*a = (struct attempt){0};
}
