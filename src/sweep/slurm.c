// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Runs trials through Slurm.
//
// A trial completes itself (slurm_trial.h), so that the sweep only has to submit, to look for run
// files, and to find out what happened to trials that ended without one. What it must remember is
// in the ledger (slurm_ledger.h).

#include "sweep/slurm.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/text.h"
#include "study/digest.h"
#include "sweep/slurm_client.h"
#include "sweep/slurm_ledger.h"
#include "sweep/slurm_text.h"
#include "sweep/template.h"

#define POLL_NS (10 * NS_PER_S) // between two commands that ask Slurm
#define SOON_NS NS_PER_S // after a submission
#define LOOK_NS (250 * NS_PER_MS) // between two looks at the folder
#define LOOK_SHARE 20 // at most this part of the time
#define OLDEST_VERSION 1711 // the first that reports OUT_OF_MEMORY

enum {
	ATTEMPTS = 4, // the first, and three after a failure that is not the trial's
	ARRAY_MOST = 1000, // tasks; MaxArraySize is 1001 by default
	BLAMED_MOST = 16, // nodes
	BROKEN_AT = 2, // trials that a node failed
	SILENCE_S = 60, // a recorder writes about once a second
	TASKS_MOST = 1000000,
	IN_SLURM_MOST = 2000, // trials at a time: Slurm is shared, and has a MaxJobCount
};

struct batch { // an array
	char token[SLURM_TOKEN_SIZE];
	uint64_t job; // 0: not known whether it was submitted
	bool cancelled; // by a sweep
	bool listed; // in this answer of squeue
	bool asked; // scontrol has been asked in this round
	struct slurm_answer about; // its answer
	size_t *tasks; // [n_tasks] owned: the trial of each task, from 1; SIZE_MAX: none
	size_t n_tasks;
	size_t tasks_capacity;
};

enum flight_state { FLIGHT_NONE, FLIGHT_SUBMITTED, FLIGHT_FAILED };

struct flight { // a trial
	enum flight_state state;
	struct slurm_ticket ticket;
	enum slurm_state slurm; // at the last look
	bool listed; // in this answer of squeue
	uint32_t attempts; // so far
};

// A node on which trials ended that could not say why, or that failed under them.
struct blamed {
	char name[64];
	unsigned failures;
};

struct slurm {
	struct sweep *sweep;
	const struct slurm_watch *watch;
	struct error *e;
	int ledger;
	char *program; // strain
	char *directory; // of the sweep, absolute
	uint64_t array_most;
	struct flight *flights; // [trials.n]
	size_t n_submitted;
	size_t n_failed;
	char *why_failed; // of the first
	struct batch *batches;
	size_t n_batches;
	size_t batches_capacity;
	uint64_t polled_ns; // the last time; 0: not yet
	uint64_t next_poll_ns;
	uint64_t next_look_ns;
	uint64_t next_submit_ns;
	struct blamed blamed[BLAMED_MOST];
	size_t n_blamed;
	bool complained; // that Slurm does not answer
	bool told_held; // that somebody must release a trial
};

static void say(const struct slurm *s, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void say(const struct slurm *s, const char *format, ...)
{
	char line[1024];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	s->watch->say(s->watch->context, line);
}

// Nodes ----------------------------------------------------------------------------------------

// A node that fails every trial at once takes one after the other, since it is always free.
static void blame_node(struct slurm *s, const char *name)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	struct blamed *node = s->blamed, *end = s->blamed + s->n_blamed;
	while (node < end && strcmp(node->name, name) != 0) {
		node++;
	}
	bool room = node < s->blamed + BLAMED_MOST && strlen(name) < sizeof(node->name);
	if (*name == '\0' || name[strspn(name, plain)] || !room) {
		return;
	}
	if (node == end) {
		*node = (struct blamed){.failures = 0};
		memcpy(node->name, name, strlen(name));
		s->n_blamed++;
	}
	if (++node->failures == BROKEN_AT) {
		say(s, "%s failed %d trials; excluding it from further submissions (--exclude=%s)",
			name, BROKEN_AT, name);
	}
}

static void append_broken_nodes(struct text *t, const struct slurm *s)
{
	for (size_t i = 0; i < s->n_blamed; i++) {
		if (s->blamed[i].failures >= BROKEN_AT) {
			text_format(t, "%s%s", t->length > 0 ? "," : "", s->blamed[i].name);
		}
	}
}

static bool has_broken_nodes(const struct slurm *s)
{
	_cleanup_text_ struct text nodes = {0};
	append_broken_nodes(&nodes, s);
	return nodes.length > 0;
}

static struct slurm_counts count(const struct slurm *s)
{
	struct slurm_counts counts = {0};
	for (size_t i = 0; i < s->sweep->trials.n; i++) {
		const struct flight *f = &s->flights[i];
		if (f->state == FLIGHT_SUBMITTED) {
			counts.waiting += f->slurm == SLURM_WAITING;
			counts.running += f->slurm == SLURM_RUNNING;
			counts.submitted += f->slurm != SLURM_WAITING && f->slurm != SLURM_RUNNING;
		} else {
			counts.to_submit += !s->sweep->done[i] && f->state == FLIGHT_NONE;
		}
	}
	return counts;
}

static void tick(const struct slurm *s)
{
	const struct slurm_counts counts = count(s);
	s->watch->tick(s->watch->context, &counts);
}

// Commands ----------------------------------------------------------------------------------------

// Once for each time that Slurm does not answer.
static void complain(struct slurm *s, const struct error *e)
{
	if (!s->complained) {
		say(s, "%s; trying again every 10 s (trials in Slurm go on)", e->text);
	}
	s->complained = true;
}

static void answered(struct slurm *s)
{
	if (s->complained) {
		say(s, "Slurm answers again");
	}
	s->complained = false;
}

// Batches -----------------------------------------------------------------------------------------

static struct batch *find_batch(struct slurm *s, const char *token)
{
	for (size_t i = 0; i < s->n_batches; i++) {
		if (strcmp(s->batches[i].token, token) == 0) {
			return &s->batches[i];
		}
	}
	return NULL;
}

static struct batch *add_batch(struct slurm *s, const char *token)
{
	struct batch *found = find_batch(s, token);
	if (found || array_reserve((void **)&s->batches, &s->batches_capacity, s->n_batches + 1,
			     sizeof(*s->batches)) < 0) {
		return found;
	}
	struct batch *batch = &s->batches[s->n_batches++];
	*batch = (struct batch){
		.job = slurm_ledger_job(s->ledger, token),
		.cancelled = slurm_ledger_is_cancelled(s->ledger, token),
	};
	memcpy(batch->token, token, sizeof(batch->token));
	return batch;
}

static int note_task(struct batch *batch, uint32_t task, size_t index)
{
	if (task > TASKS_MOST || array_reserve((void **)&batch->tasks, &batch->tasks_capacity,
					 task + 1, sizeof(*batch->tasks)) < 0) {
		return -ENOMEM;
	}
	while (batch->n_tasks <= task) {
		batch->tasks[batch->n_tasks++] = SIZE_MAX;
	}
	batch->tasks[task] = index;
	return 0;
}

static void batch_done(struct batch *batch)
{
	slurm_answer_done(&batch->about);
	free(batch->tasks);
	*batch = (struct batch){0};
}

// "cnn-0123456789abcdef": the beginning is for people who look at the queue.
static void append_job_name(struct text *t, const struct slurm *s, const char *token)
{
	enum { STEM_MOST = 40 };
	const char *stem = s->sweep->stem;
	for (size_t i = 0; i < STEM_MOST && stem[i]; i++) {
		char c = stem[i];
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		             (c >= '0' && c <= '9') || c == '.' || c == '_';
		text_append(t, plain ? &c : "_", 1);
	}
	text_format(t, "-%s", token);
}

static size_t n_flying(const struct slurm *s, const char *token)
{
	size_t n = 0;
	for (size_t i = 0; i < s->sweep->trials.n; i++) {
		n += s->flights[i].state == FLIGHT_SUBMITTED &&
		     strcmp(s->flights[i].ticket.token, token) == 0;
	}
	return n;
}

// Forgets arrays of which all trials have landed.
static void forget_batches(struct slurm *s)
{
	size_t kept = 0;
	for (size_t i = 0; i < s->n_batches; i++) {
		if (n_flying(s, s->batches[i].token) > 0) {
			s->batches[kept++] = s->batches[i];
		} else {
			slurm_ledger_forget(s->ledger, s->batches[i].token);
			batch_done(&s->batches[i]);
		}
	}
	s->n_batches = kept;
}

// Trials ------------------------------------------------------------------------------------------

static void land(struct slurm *s, struct flight *f, enum flight_state state)
{
	slurm_ledger_remove(s->ledger, &f->ticket);
	s->n_submitted -= f->state == FLIGHT_SUBMITTED;
	f->state = state;
	f->slurm = SLURM_UNKNOWN;
}

static void take_result(struct slurm *s, size_t index, const struct attempt *attempt)
{
	s->sweep->done[index] = true;
	s->sweep->n_done++;
	s->watch->result(s->watch->context, index, attempt);
}

// A trial that completed itself.
static int read_result(struct slurm *s, size_t index)
{
	struct digest digest;
	_cleanup_free_ char *path = sweep_path(s->sweep, s->sweep->trials.order[index], SWEEP_RUN);
	struct attempt attempt = {
		.outcome = OUTCOME_UNKNOWN, .epoch_seconds = NAN, .samples_per_second = NAN};
	struct error why = {0};
	int result = path ? digest_read(path, false, &digest, &why) : -ENOMEM;
	if (result == 0) {
		attempt.outcome = digest.outcome;
		attempt.outcome_text = strdup(digest.outcome_text);
		attempt.seconds = isfinite(digest.recorded_s) ? digest.recorded_s : 0;
		attempt.epoch_seconds = digest.measures[MEASURE_EPOCH];
		attempt.samples_per_second = digest.measures[MEASURE_SAMPLES_PER_SECOND];
		digest_done(&digest);
	} else {
		attempt.outcome_text = strdup(why.text);
	}
	if (!attempt.outcome_text) {
		return error_errno(s->e, ENOMEM, "a trial");
	}
	take_result(s, index, &attempt);
	attempt_done(&attempt);
	return 0;
}

static int land_if_complete(struct slurm *s, size_t index, bool *ret)
{
	struct flight *f = &s->flights[index];
	*ret = sweep_is_complete(s->sweep, f->ticket.trial);
	if (!*ret) {
		return 0;
	}
	land(s, f, FLIGHT_NONE);
	return read_result(s, index);
}

static int look(struct slurm *s)
{
	uint64_t before_ns = clock_monotonic_ns();
	if (before_ns < s->next_look_ns) {
		return 0;
	}
	int result = sweep_check_place(s->sweep, s->e);
	for (size_t i = 0; i < s->sweep->trials.n && result == 0; i++) {
		bool complete;
		if (s->flights[i].state == FLIGHT_SUBMITTED) {
			result = land_if_complete(s, i, &complete);
		}
	}
	forget_batches(s);
	uint64_t now_ns = clock_monotonic_ns(), pause_ns = (now_ns - before_ns) * LOOK_SHARE;
	s->next_look_ns = now_ns + (pause_ns > LOOK_NS ? pause_ns : LOOK_NS);
	return result;
}

// Ends without an outcome -------------------------------------------------------------------------

static void note_failed(struct slurm *s, size_t index, const char *why)
{
	_cleanup_free_ char *name = sweep_trial_name(s->sweep->trials.order[index]);
	_cleanup_text_ struct text line = {0};
	text_format(&line, "trial %s: %s", name ? name : "", why);
	say(s, "%s", line.data ? line.data : "");
	s->n_failed++;
	if (!s->why_failed) {
		s->why_failed = text_steal(&line);
	}
}

// The task of a trial from `scontrol show job`, which is asked once for each array and round.
// Returns 0, also if there is no answer; or -EINTR.
static int ask_about(const struct slurm *s, struct batch *batch, const struct flight *f,
	enum slurm_state state, struct slurm_job *ret)
{
	*ret = (struct slurm_job){.state = state, .exit_status = -1};
	if (state == SLURM_GONE || !batch || batch->job == 0) {
		return 0;
	}
	if (!batch->asked) {
		static const char *const words[] = {"scontrol", "--oneliner", "show", "job"};
		struct slurm_command w = {.interrupts = s->watch->interrupts};
		slurm_command_add_words(&w, words, ARRAY_LENGTH(words));
		slurm_command_add(&w, "%" PRIu64, batch->job);
		slurm_answer_done(&batch->about);
		if (slurm_client_run(&w, "", 0, &batch->about, NULL) == -EINTR) {
			return -EINTR;
		}
		batch->asked = true;
	}
	struct slurm_job job;
	if (slurm_text_find_job(batch->about.output.data ? batch->about.output.data : "",
		    batch->about.output.length, f->ticket.task, &job) &&
		job.state == state) {
		*ret = job;
	}
	return 0;
}

// The last line that is strain's or Slurm's.
static void append_last_words(struct text *why, const struct text *output)
{
	struct cursor line;
	if (output->data && outcome_last_lines(output->data, 1, &line) == 1) {
		text_append_string(why, ": ");
		text_append_printable(why, line.at, (size_t)(line.end - line.at));
	}
}

// Its task may complete it all the same, even now: while Slurm was asked, or on a node that Slurm
// took for dead. It does not once its ticket is gone, and what it has completed is not replaced.
static int complete_lost(struct slurm *s, size_t index, enum outcome outcome, const char *why)
{
	struct attempt attempt;
	bool complete;
	slurm_ledger_remove(s->ledger, &s->flights[index].ticket);
	sweep_refresh(s->sweep);
	int result = land_if_complete(s, index, &complete);
	if (result < 0 || complete) {
		return result;
	}
	result = attempt_complete(s->sweep, index, outcome, why, &attempt, s->e);
	if (result == -EEXIST) {
		sweep_remove_run(s->sweep, s->flights[index].ticket.trial);
		return land_if_complete(s, index, &complete);
	}
	if (result < 0) {
		return result;
	}
	land(s, &s->flights[index], FLIGHT_NONE);
	take_result(s, index, &attempt);
	attempt_done(&attempt);
	return 0;
}

// A trial whose task will not run any more, without a run: decides what becomes of it.
static int settle(struct slurm *s, size_t index, enum slurm_state state)
{
	struct flight *f = &s->flights[index];
	struct batch *batch = find_batch(s, f->ticket.token);
	bool complete, requeue = !s->sweep->plan.slurm.no_requeue;
	sweep_refresh(s->sweep);
	int result = land_if_complete(s, index, &complete);
	if (result < 0 || complete) {
		return result;
	}
	// Slurm forgets tasks that were cancelled while they waited, but not their array. It also
	// forgets tasks that failed before they took their tickets: these were seen to wait only if
	// both happened between two answers.
	if (state == SLURM_GONE && batch && batch->listed && f->slurm == SLURM_WAITING &&
		slurm_ledger_revoke(s->ledger, &f->ticket)) {
		state = SLURM_CANCELLED;
	}
	// A controller that was restarted may have forgotten a job that runs.
	if (state == SLURM_GONE && sweep_silence(s->sweep, f->ticket.trial) < SILENCE_S) {
		return 0;
	}
	if (batch && batch->cancelled) {
		sweep_remove_trial(s->sweep, f->ticket.trial);
		land(s, f, FLIGHT_NONE);
		return 0;
	}
	_cleanup_text_ struct text output = {0}, why = {0};
	struct slurm_job job;
	if (ask_about(s, batch, f, state, &job) < 0) {
		return 0; // at the next look
	}
	slurm_ledger_read_output(s->ledger, &f->ticket, &output);
	text_append(&output, "", 0);
	enum outcome outcome = slurm_text_judge(
		&job, output.data ? output.data : "", output.length, &why);
	bool again = outcome == N_OUTCOMES || outcome == OUTCOME_PREEMPTED ||
	             outcome == OUTCOME_NODE_FAILURE;
	if (outcome == N_OUTCOMES || outcome == OUTCOME_NODE_FAILURE) {
		blame_node(s, job.node);
	}
	if (outcome != N_OUTCOMES && !(again && requeue && f->attempts < ATTEMPTS)) {
		return complete_lost(s, index, outcome, why.data ? why.data : "");
	}
	if (outcome == N_OUTCOMES) {
		append_last_words(&why, &output);
	}
	bool give_up = f->attempts >= ATTEMPTS;
	land(s, f, give_up ? FLIGHT_FAILED : FLIGHT_NONE);
	sweep_remove_trial(s->sweep, f->ticket.trial);
	if (give_up) {
		note_failed(s, index, why.data ? why.data : "");
	} else {
		_cleanup_free_ char *name = sweep_trial_name(f->ticket.trial);
		say(s, "%s: %s; it runs again", name ? name : "", why.data ? why.data : "");
	}
	return 0;
}

// The queue ---------------------------------------------------------------------------------------

// A held trial waits until somebody releases it. Said once.
static void say_held(struct slurm *s, const struct slurm_queued *line)
{
	static const char held[] = "eld"; // "JobHeldUser", "launch failed requeued held"
	_cleanup_text_ struct text reason = {0};
	if (s->told_held || line->state != SLURM_WAITING ||
		!memmem(line->reason, line->reason_length, held, sizeof(held) - 1)) {
		return;
	}
	text_append_printable(&reason, line->reason, line->reason_length);
	say(s, "job %" PRIu64 "_%u is held in Slurm: %s (scontrol release %" PRIu64 "_%u)",
		line->job, line->task, reason.data ? reason.data : "", line->job, line->task);
	s->told_held = true;
}

static void note_line(void *context, const struct slurm_queued *line)
{
	struct slurm *s = context;
	size_t length = SLURM_TOKEN_SIZE - 1;
	if (line->name_length <= length) {
		return;
	}
	char token[SLURM_TOKEN_SIZE] = "";
	memcpy(token, line->name + line->name_length - length, length);
	struct batch *batch = find_batch(s, token);
	if (!batch) {
		return;
	}
	if (batch->job == 0) { // its submission was not answered
		batch->job = line->job;
		if (slurm_ledger_write_job(s->ledger, token, line->job) < 0) {
			say(s, "cannot write the id of job %" PRIu64, line->job);
		}
	}
	batch->listed = batch->listed || line->job == batch->job;
	size_t index = line->task < batch->n_tasks ? batch->tasks[line->task] : SIZE_MAX;
	struct flight *f = index < s->sweep->trials.n ? &s->flights[index] : NULL;
	if (f && f->state == FLIGHT_SUBMITTED && f->ticket.task == line->task &&
		line->job == batch->job && strcmp(f->ticket.token, token) == 0) {
		f->slurm = line->state;
		f->listed = true;
		say_held(s, line);
	}
}

// All jobs of this user with the names of our arrays, also those that have ended.
static int list_queue(struct slurm *s, struct slurm_answer *ret, struct error *e)
{
	static const char *const words[] = {"squeue", "--noheader", "--array", "--states=all"};
	struct slurm_command w = {.interrupts = s->watch->interrupts};
	_cleanup_text_ struct text names = {0};
	for (size_t i = 0; i < s->n_batches; i++) {
		text_append_string(&names, i > 0 ? "," : "");
		append_job_name(&names, s, s->batches[i].token);
	}
	slurm_command_add_words(&w, words, ARRAY_LENGTH(words));
	slurm_command_add(&w, "--user=%u", (unsigned)geteuid());
	slurm_command_add(&w, "--name=%s", names.data ? names.data : "");
	slurm_command_add(&w, "--format=%s", SLURM_QUEUE_FORMAT);
	w.failed = w.failed || names.failed;
	return slurm_client_run(&w, "", 0, ret, e);
}

// Takes back the trials of an array that Slurm does not have. Those that have begun were in an
// array that it has forgotten.
static void take_back(struct slurm *s, size_t index)
{
	struct flight *f = &s->flights[index];
	if (slurm_ledger_revoke(s->ledger, &f->ticket)) {
		f->attempts -= f->attempts > 0; // it did not run
		land(s, f, FLIGHT_NONE);
	}
}

static int settle_all(struct slurm *s)
{
	int result = 0;
	for (size_t i = 0; i < s->n_batches; i++) {
		s->batches[i].asked = false;
	}
	for (size_t i = 0; i < s->sweep->trials.n && result == 0; i++) {
		struct flight *f = &s->flights[i];
		const struct batch *batch = find_batch(s, f->ticket.token);
		if (f->state != FLIGHT_SUBMITTED) {
			continue;
		}
		if (!f->listed && batch && batch->job == 0) {
			take_back(s, i);
		}
		if (f->state == FLIGHT_SUBMITTED && !f->listed) {
			result = settle(s, i, SLURM_GONE);
		} else if (f->state == FLIGHT_SUBMITTED && slurm_state_is_final(f->slurm)) {
			result = settle(s, i, f->slurm);
		}
	}
	for (size_t i = 0; i < s->n_batches; i++) {
		slurm_answer_done(&s->batches[i].about);
	}
	forget_batches(s);
	return result;
}

// What the last answer said is too old for a conclusion.
static void forget_states(struct slurm *s)
{
	for (size_t i = 0; i < s->sweep->trials.n; i++) {
		s->flights[i].slurm = SLURM_UNKNOWN;
	}
}

static int poll_queue(struct slurm *s)
{
	_cleanup_slurm_answer_ struct slurm_answer answer = {0};
	struct error why = {0};
	if (s->n_submitted == 0 || clock_monotonic_ns() < s->next_poll_ns) {
		return 0;
	}
	for (size_t i = 0; i < s->sweep->trials.n; i++) {
		s->flights[i].listed = false;
	}
	for (size_t i = 0; i < s->n_batches; i++) {
		s->batches[i].listed = false;
	}
	int result = list_queue(s, &answer, &why);
	s->polled_ns = clock_monotonic_ns();
	s->next_poll_ns = s->polled_ns + POLL_NS;
	if (result < 0) {
		forget_states(s);
		if (result == -EINTR) {
			return 0;
		}
		complain(s, &why);
		return result == -ENOMEM ? error_errno(s->e, ENOMEM, "squeue") : 0;
	}
	size_t others = slurm_text_queue(
		answer.output.data ? answer.output.data : "", answer.output.length, note_line, s);
	if (others > 0) { // cut off, or not squeue: what is missing in it is not known to be gone
		forget_states(s);
		error_set(&why, EIO, "squeue printed %zu lines that are not jobs", others);
		complain(s, &why);
		return 0;
	}
	answered(s);
	return settle_all(s);
}

// Submission --------------------------------------------------------------------------------------

static const char *resource_of(const struct slurm *s, size_t configuration, const char *name)
{
	const char *value = trials_value_of(&s->sweep->trials, configuration, name);
	return value && strcmp(value, "unlimited") != 0 ? value : NULL;
}

// The options of sbatch for what a configuration needs.
static void add_resources(struct slurm_command *w, const struct slurm *s, size_t configuration)
{
	const char *cpus = resource_of(s, configuration, "cpus"),
		   *memory = resource_of(s, configuration, "memory"),
		   *gpus = resource_of(s, configuration, "gpus"),
		   *type = resource_of(s, configuration, "gpu_type");
	uint64_t bytes;
	if (cpus) {
		slurm_command_add(w, "--cpus-per-task=%s", cpus);
	}
	if (memory && parse_size(memory, &bytes, NULL) == 0) {
		slurm_command_add(w, "--mem=%" PRIu64 "M", (bytes + (1 << 20) - 1) >> 20);
	}
	if (gpus && strcmp(gpus, "0") != 0) {
		bool any = !type || strcmp(type, "any") == 0;
		slurm_command_add(w, "--gres=gpu:%s%s%s", any ? "" : type, any ? "" : ":", gpus);
	}
}

static char *resources_text(const struct slurm *s, size_t index)
{
	struct slurm_command w = {0};
	struct text t = {0};
	add_resources(&w, s, s->sweep->trials.order[index].configuration);
	for (size_t i = 0; i < w.n_words; i++) {
		text_format(&t, "%s ", w.words[i]);
	}
	t.failed = t.failed || w.failed;
	slurm_command_done(&w);
	return text_steal(&t);
}

static double time_limit(const struct plan *plan)
{
	enum { MARGIN_S = 120 }; // to start, to be analysed
	return plan->slurm.time_s > 0 ? plan->slurm.time_s
	       : plan->timeout_s > 0  ? plan->timeout_s + plan->grace_s + MARGIN_S
	                              : 0;
}

static void add_options(
	struct slurm_command *w, const struct slurm *s, const char *token, size_t first, size_t n)
{
	static const char *const always[] = {
		"--open-mode=append", "--input=/dev/null", "--export=ALL"};
	const struct plan_slurm *slurm = &s->sweep->plan.slurm;
	_cleanup_text_ struct text name = {0};
	append_job_name(&name, s, token);
	slurm_command_add(w, "sbatch");
	slurm_command_add(w, "--parsable");
	slurm_command_add(w, "--job-name=%s", name.data ? name.data : "");
	if (slurm->parallel > 0) {
		slurm_command_add(w, "--array=1-%zu%%%" PRIu64, n, slurm->parallel);
	} else {
		slurm_command_add(w, "--array=1-%zu", n);
	}
	slurm_command_add(w, "--output=%s/" SLURM_LEDGER "/%s-%%a.out", s->directory, token);
	slurm_command_add_words(w, always, ARRAY_LENGTH(always));
	slurm_command_add(w, "%s", slurm->no_requeue ? "--no-requeue" : "--requeue");
	add_resources(w, s, s->sweep->trials.order[first].configuration);
	if (time_limit(&s->sweep->plan) > 0) {
		slurm_command_add(w, "--time=%.0f", ceil(time_limit(&s->sweep->plan) / 60));
	}
	if (slurm->partition) {
		slurm_command_add(w, "--partition=%s", slurm->partition);
	}
	_cleanup_text_ struct text broken = {0};
	append_broken_nodes(&broken, s);
	if (broken.length > 0) { // the plan's own option comes after it and takes its place
		slurm_command_add(w, "--exclude=%s", broken.data ? broken.data : "");
	}
	for (size_t i = 0; i < slurm->n_options; i++) {
		slurm_command_add(w, "%s", slurm->options[i]);
	}
	w->failed = w->failed || name.failed;
}

// '/a b/c'
static void append_quoted(struct text *t, const char *word)
{
	text_append_string(t, "'");
	for (; *word; word++) {
		text_append_string(t, *word == '\'' ? "'\\''" : "");
		text_append(t, word, *word == '\'' ? 0 : 1);
	}
	text_append_string(t, "'");
}

// The script of an array: each task runs the trial whose ticket has its index.
static void append_script(
	struct text *t, const struct slurm *s, const size_t *indices, size_t n, const char *token)
{
	text_append_string(t, "#!/bin/sh\n# Trials of a sweep of strain.\nset --");
	for (size_t i = 0; i < n; i++) {
		const struct slurm_ticket *ticket = &s->flights[indices[i]].ticket;
		text_format(t, "%s%04u-%u.%u", i % 8 == 0 ? " \\\n" : " ",
			ticket->trial.configuration, ticket->trial.repeat, ticket->attempt);
	}
	text_append_string(t, "\nshift $((SLURM_ARRAY_TASK_ID - 1))\nexec ");
	append_quoted(t, s->program);
	text_format(t, " sweep --slurm-trial=\"$1.%s.$SLURM_ARRAY_TASK_ID\" ", token);
	append_quoted(t, s->directory);
	text_append_string(t, "\n");
}

// Whether a failure of sbatch says that nothing was submitted, and will not be the next time
// either.
static bool is_final_refusal(const char *complaint)
{
	static const char *const passing[] = {"nable to contact", "imed out", "onnection",
		"emporar", "try again", "ry again later", "MaxJobCount", "not responding",
		"ommunication", "ransport", "in standby", "lurmdbd", "configuration source",
		"Zero Bytes were transmitted", "Protocol authentication error",
		"Required partition not available", "Unexpected message received"};
	for (size_t i = 0; i < ARRAY_LENGTH(passing); i++) {
		if (strstr(complaint, passing[i])) {
			return false;
		}
	}
	return strstr(complaint, "submission failed") || strstr(complaint, "nrecognized option") ||
	       strstr(complaint, "nvalid");
}

// Whether sbatch refused an array that has more tasks than this cluster or user may have.
static bool is_too_many(const char *complaint)
{
	static const char *const words[] = {"submit limit", "MaxSubmit", "job array specification"};
	for (size_t i = 0; i < ARRAY_LENGTH(words); i++) {
		if (strstr(complaint, words[i])) {
			return true;
		}
	}
	return false;
}

// Whether sbatch refused because no node is left that fits.
static bool is_no_node(const char *complaint)
{
	return strstr(complaint, "node configuration is not available") ||
	       strstr(complaint, "Node count specification invalid") ||
	       strstr(complaint, "nvalid node name");
}

static int write_tickets(struct slurm *s, const size_t *indices, size_t n, const char *token)
{
	int result = 0;
	for (size_t i = 0; i < n && result == 0; i++) {
		struct flight *f = &s->flights[indices[i]];
		f->ticket = (struct slurm_ticket){
			.trial = s->sweep->trials.order[indices[i]],
			.attempt = f->attempts + 1,
			.task = (uint32_t)i + 1,
		};
		memcpy(f->ticket.token, token, SLURM_TOKEN_SIZE);
		result = slurm_ledger_write(s->ledger, &f->ticket);
		if (result == 0) {
			f->attempts++;
			f->state = FLIGHT_SUBMITTED;
			f->slurm = SLURM_UNKNOWN;
			s->n_submitted++;
			result = note_task(find_batch(s, token), f->ticket.task, indices[i]);
		}
	}
	return result < 0 ? result : slurm_ledger_sync(s->ledger);
}

static void take_back_batch(struct slurm *s, const char *token)
{
	for (size_t i = 0; i < s->sweep->trials.n; i++) {
		if (s->flights[i].state == FLIGHT_SUBMITTED &&
			strcmp(s->flights[i].ticket.token, token) == 0) {
			take_back(s, i);
		}
	}
	forget_batches(s);
}

// Tasks that are cancelled while they wait are known to be only if they were seen to wait.
static void poll_soon(struct slurm *s)
{
	uint64_t soon_ns = s->polled_ns + SOON_NS;
	s->next_poll_ns = soon_ns < s->next_poll_ns ? soon_ns : s->next_poll_ns;
}

// After a failure of sbatch the array may be in Slurm all the same: the queue tells.
static int submit_batch(struct slurm *s, const size_t *indices, size_t n)
{
	char token[SLURM_TOKEN_SIZE];
	_cleanup_text_ struct text script = {0};
	_cleanup_slurm_answer_ struct slurm_answer answer = {0};
	struct slurm_command w = {0};
	struct error why = {0};
	uint64_t job;
	int result = slurm_ledger_new_token(token);
	if (result < 0 || !add_batch(s, token)) {
		return error_errno(s->e, result < 0 ? -result : ENOMEM, "Slurm");
	}
	result = write_tickets(s, indices, n, token);
	if (result < 0) {
		take_back_batch(s, token);
		return error_errno(s->e, -result, "%s/" SLURM_LEDGER, s->sweep->directory);
	}
	setenv("STRAIN_SITE", "off", 1); // a site that records all jobs need not record these
	append_script(&script, s, indices, n, token);
	add_options(&w, s, token, indices[0], n);
	w.failed = w.failed || script.failed;
	result = slurm_client_run(&w, script.data ? script.data : "", script.length, &answer, &why);
	if (result == 0 && slurm_text_job(answer.output.data ? answer.output.data : "",
				   answer.output.length, &job)) {
		answered(s);
		poll_soon(s);
		find_batch(s, token)->job = job;
		result = slurm_ledger_write_job(s->ledger, token, job);
		return result < 0
		               ? error_errno(s->e, -result, "%s/" SLURM_LEDGER, s->sweep->directory)
		               : 0;
	}
	if (result == 0) {
		result = error_set(&why, EIO, "sbatch did not print a job id");
	}
	const char *complaint = answer.complaint.data ? answer.complaint.data : "";
	bool too_many = result == -EIO && is_too_many(complaint);
	if (too_many) {
		take_back_batch(s, token);
		s->array_most = n > 1 ? n / 2 : 1;
		if (n > 1) {
			return 0; // at once, in smaller arrays
		}
	}
	if (result == -EIO && has_broken_nodes(s) && is_no_node(complaint)) {
		take_back_batch(s, token);
		s->n_blamed = 0;
		say(s, "Slurm has no other nodes for these trials; retrying the excluded ones");
		return 0; // at once
	}
	// One more may be submitted when one of the sweep's own has ended.
	bool wait = too_many && s->n_submitted > 0;
	if (result == -ENOENT || result == -ENOMEM ||
		(result == -EIO && !wait && (too_many || is_final_refusal(complaint)))) {
		take_back_batch(s, token);
		return error_set(s->e, -result, "%s", why.text);
	}
	complain(s, &why);
	s->next_submit_ns = clock_monotonic_ns() + POLL_NS;
	s->next_poll_ns = s->next_submit_ns; // the array may arrive late
	return 0;
}

// One array, of the next trials that need the same resources.
static int submit(struct slurm *s)
{
	size_t n = 0, most = s->array_most;
	_cleanup_free_ size_t *indices = calloc(most, sizeof(*indices));
	_cleanup_free_ char *resources = NULL;
	if (!indices) {
		return error_errno(s->e, ENOMEM, "Slurm");
	}
	if (s->n_submitted >= IN_SLURM_MOST || clock_monotonic_ns() < s->next_submit_ns) {
		return 0;
	}
	for (size_t i = 0; i < s->sweep->trials.n && n < most; i++) {
		if (s->sweep->done[i] || s->flights[i].state != FLIGHT_NONE) {
			continue;
		}
		_cleanup_free_ char *needed = resources_text(s, i);
		if (!needed) {
			return error_errno(s->e, ENOMEM, "Slurm");
		}
		if (!resources) {
			resources = take_pointer(needed);
		} else if (strcmp(resources, needed) != 0) {
			continue;
		}
		indices[n++] = i;
	}
	return n > 0 ? submit_batch(s, indices, n) : 0;
}

// Start -------------------------------------------------------------------------------------------

static int check_configuration(struct slurm *s, const struct text *output)
{
	const char *data = output->data ? output->data : "";
	_cleanup_free_ char *version = slurm_text_setting(data, output->length, "SLURM_VERSION"),
			    *most = slurm_text_setting(data, output->length, "MaxArraySize");
	int64_t number;
	unsigned is = version ? slurm_text_version(version) : 0;
	_cleanup_text_ struct text shown = {0};
	text_append_printable(&shown, version ? version : "", version ? strlen(version) : 0);
	if (is < OLDEST_VERSION) {
		return error_set(s->e, EINVAL,
			"executor: slurm: expected Slurm %u.%02u or later, found '%.60s' (scontrol "
			"show config: SLURM_VERSION)",
			OLDEST_VERSION / 100, OLDEST_VERSION % 100, shown.data ? shown.data : "");
	}
	s->array_most = ARRAY_MOST;
	if (most && parse_integer(most, 0, INT32_MAX, &number, NULL) == 0) {
		if (number < 2) {
			return error_set(s->e, EINVAL,
				"executor: slurm: expected a Slurm with arrays of jobs, found "
				"MaxArraySize = %" PRId64,
				number);
		}
		s->array_most = (uint64_t)number - 1 < ARRAY_MOST ? (uint64_t)number - 1
		                                                  : ARRAY_MOST;
	}
	return 0;
}

// Waits, with looks at signals. False: interrupted.
static bool pause_for(const struct slurm *s, uint64_t ns)
{
	uint64_t until_ns = clock_monotonic_ns() + ns;
	while (*s->watch->interrupts == 0 && clock_monotonic_ns() < until_ns) {
		const struct timespec step = {.tv_nsec = (long)(50 * NS_PER_MS)};
		nanosleep(&step, NULL); // a signal ends it
		tick(s);
	}
	return *s->watch->interrupts == 0;
}

static int ask_configuration(struct slurm *s)
{
	for (;;) {
		_cleanup_slurm_answer_ struct slurm_answer answer = {0};
		static const char *const words[] = {"scontrol", "show", "config"};
		struct slurm_command w = {.interrupts = s->watch->interrupts};
		slurm_command_add_words(&w, words, ARRAY_LENGTH(words));
		struct error why = {0};
		int result = slurm_client_run(&w, "", 0, &answer, &why);
		if (result == 0) {
			answered(s);
			return check_configuration(s, &answer.output);
		}
		if (result == -ENOENT || result == -ENOMEM) {
			return error_set(s->e, -result, "%s", why.text);
		}
		if (result == -EINTR) {
			return error_set(s->e, EINTR, "interrupted");
		}
		complain(s, &why);
		if (!pause_for(s, POLL_NS)) {
			return error_set(s->e, EINTR, "interrupted");
		}
	}
}

static bool is_same_ticket(const struct slurm_ticket *a, const struct slurm_ticket *b)
{
	return a->trial.configuration == b->trial.configuration &&
	       a->trial.repeat == b->trial.repeat && a->attempt == b->attempt &&
	       a->task == b->task && strcmp(a->token, b->token) == 0;
}

static int take_ticket(void *context, const struct slurm_ticket *ticket)
{
	struct slurm *s = context;
	size_t index = 0;
	while (index < s->sweep->trials.n &&
		(s->sweep->trials.order[index].configuration != ticket->trial.configuration ||
			s->sweep->trials.order[index].repeat != ticket->trial.repeat)) {
		index++;
	}
	struct flight *f = index < s->sweep->trials.n ? &s->flights[index] : NULL;
	if (f && f->state == FLIGHT_SUBMITTED && is_same_ticket(&f->ticket, ticket)) {
		return 0; // listed again
	}
	if (!f || s->sweep->done[index] ||
		(f->state == FLIGHT_SUBMITTED && f->ticket.attempt >= ticket->attempt)) {
		slurm_ledger_remove(s->ledger, ticket);
		return 0;
	}
	if (f->state == FLIGHT_SUBMITTED) {
		land(s, f, FLIGHT_NONE);
	}
	*f = (struct flight){
		.state = FLIGHT_SUBMITTED, .ticket = *ticket, .attempts = ticket->attempt};
	s->n_submitted++;
	struct batch *batch = add_batch(s, ticket->token);
	return batch ? note_task(batch, ticket->task, index) : -ENOMEM;
}

static bool is_known(void *context, const char *token)
{
	return find_batch(context, token) != NULL;
}

// sbatch replaces % in the name of an output file, and a backslash turns that off.
static int check_directory(struct slurm *s)
{
	s->directory = realpath(s->sweep->directory, NULL);
	if (!s->directory) {
		return error_errno(s->e, errno, "%s", s->sweep->directory);
	}
	s->program = realpath("/proc/self/exe", NULL);
	if (!s->program) {
		return error_errno(s->e, errno, "/proc/self/exe");
	}
	return strpbrk(s->directory, "%\\\n")
	               ? error_set(s->e, EINVAL,
				 "%s: expected a folder without %%, \\ and newline in its "
				 "path for executor: slurm (-o DIR)",
				 s->directory)
	               : 0;
}

// An array in another cluster would not be in the queue of this one.
static int check_clusters(const struct slurm *s)
{
	static const char *const variables[] = {"SLURM_CLUSTERS", "SBATCH_CLUSTERS"};
	for (size_t i = 0; i < ARRAY_LENGTH(variables); i++) {
		if (getenv(variables[i])) {
			return error_set(s->e, EINVAL,
				"executor: slurm: expected an environment without %s, because the "
				"sweep uses the local cluster (unset %s)",
				variables[i], variables[i]);
		}
	}
	return 0;
}

// The nodes read the plan from the folder, where secrets are left out.
static int check_plan(struct slurm *s)
{
	char start[sizeof(PLAN_MASKED)] = "";
	_cleanup_close_ int fd = sweep_open_file(s->sweep, "plan.yaml");
	ssize_t n = fd < 0 ? 0 : read(fd, start, sizeof(start) - 1);
	return n == (ssize_t)sizeof(start) - 1 && strcmp(start, PLAN_MASKED) == 0
	               ? error_set(s->e, EINVAL,
				 "executor: slurm: expected a plan without secrets, because nodes "
				 "read it from the folder of the sweep (set them in the "
				 "environment of strain sweep)")
	               : 0;
}

static int open_ledger(struct slurm *s)
{
	s->ledger = slurm_ledger_open(s->sweep->folder, s->sweep->directory, true, s->e);
	s->flights = calloc(s->sweep->trials.n + 1, sizeof(*s->flights));
	if (s->ledger < 0 || !s->flights) {
		return s->ledger < 0 ? s->ledger : error_errno(s->e, ENOMEM, "Slurm");
	}
	int result = slurm_ledger_list(s->ledger, take_ticket, s);
	if (result < 0) {
		return error_errno(s->e, -result, "%s/" SLURM_LEDGER, s->sweep->directory);
	}
	slurm_ledger_tidy(s->ledger, is_known, s);
	if (s->n_submitted > 0) {
		say(s, "waiting for %zu trials that were submitted earlier", s->n_submitted);
	}
	return 0;
}

// The end -----------------------------------------------------------------------------------------

// By name and user, since the id in the ledger may be that of an older Slurm's job.
static int cancel_array(struct slurm *s, const char *token)
{
	struct slurm_command w = {0};
	struct error why = {0};
	_cleanup_slurm_answer_ struct slurm_answer answer = {0};
	_cleanup_text_ struct text name = {0};
	append_job_name(&name, s, token);
	slurm_command_add(&w, "scancel");
	slurm_command_add(&w, "--quiet");
	slurm_command_add(&w, "--user=%u", (unsigned)geteuid());
	slurm_command_add(&w, "--name=%s", name.data ? name.data : "");
	w.failed = w.failed || name.failed;
	int result = slurm_client_run(&w, "", 0, &answer, &why);
	if (result < 0) {
		say(s, "%s", why.text);
	}
	return result;
}

static void cancel(struct slurm *s)
{
	int result = 0;
	for (size_t i = 0; i < s->n_batches; i++) {
		slurm_ledger_cancel(s->ledger, s->batches[i].token);
		s->batches[i].cancelled = true;
	}
	for (size_t i = 0; i < s->sweep->trials.n; i++) {
		if (s->flights[i].state == FLIGHT_SUBMITTED) {
			take_back(s, i); // what waits never begins, even if scancel fails
		}
	}
	for (size_t i = 0; i < s->n_batches && result == 0; i++) {
		result = cancel_array(s, s->batches[i].token);
	}
}

// Returns whether it goes on.
static bool go_on_after_interrupt(struct slurm *s)
{
	const struct slurm_counts counts = count(s);
	if (s->n_submitted == 0) {
		return false;
	}
	enum slurm_answer_to_interrupt answer = s->watch->ask(s->watch->context, &counts);
	if (answer == SLURM_CANCEL) {
		cancel(s);
	}
	return answer == SLURM_GO_ON;
}

static size_t n_open(const struct slurm *s)
{
	return s->sweep->trials.n - s->sweep->n_done - s->n_failed;
}

static int run(struct slurm *s)
{
	int result = 0;
	// Trials of a killed sweep may wait for an answer.
	s->next_poll_ns = clock_monotonic_ns() + (s->n_submitted > 0 ? 0 : POLL_NS);
	while (result == 0 && n_open(s) > 0) {
		if (*s->watch->interrupts > 0 && !go_on_after_interrupt(s)) {
			return error_set(s->e, EINTR, "interrupted");
		}
		result = look(s);
		result = result < 0 ? result : submit(s);
		result = result < 0 ? result : poll_queue(s);
		tick(s);
		const struct timespec step = {.tv_nsec = (long)(50 * NS_PER_MS)};
		if (result == 0 && n_open(s) > 0) {
			nanosleep(&step, NULL);
		}
	}
	return result < 0 || s->n_failed == 0
	               ? result
	               : error_set(s->e, EIO, "%zu trials have no outcome; the first: %.300s",
				 s->n_failed, s->why_failed ? s->why_failed : "");
}

int slurm_run(struct sweep *sweep, const struct slurm_watch *watch, struct error *e)
{
	struct error ignored = {0};
	struct slurm s = {.sweep = sweep, .watch = watch, .e = e ? e : &ignored, .ledger = -1};
	int result = check_directory(&s);
	result = result < 0 ? result : check_clusters(&s);
	result = result < 0 ? result : check_plan(&s);
	result = result < 0 ? result : open_ledger(&s);
	if (result == 0 && n_open(&s) > 0) {
		result = ask_configuration(&s);
		result = result < 0 ? result : run(&s);
	}
	if (s.ledger >= 0 && result == 0) {
		slurm_ledger_tidy(s.ledger, is_known, &s);
	}
	for (size_t i = 0; i < s.n_batches; i++) {
		batch_done(&s.batches[i]);
	}
	cleanup_close(&s.ledger);
	free(s.batches);
	free(s.flights);
	free(s.directory);
	free(s.program);
	free(s.why_failed);
	return result;
}
