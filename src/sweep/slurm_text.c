// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Reads the output of Slurm's commands.

#include "sweep/slurm_text.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"

// States ------------------------------------------------------------------------------------------

static const struct {
	const char *word;
	enum slurm_state state;
} states[] = {
	{"PENDING", SLURM_WAITING},
	{"CONFIGURING", SLURM_WAITING},
	{"REQUEUED", SLURM_WAITING},
	{"REQUEUE_FED", SLURM_WAITING},
	{"REQUEUE_HOLD", SLURM_WAITING},
	{"RESV_DEL_HOLD", SLURM_WAITING},
	{"SPECIAL_EXIT", SLURM_WAITING},
	{"RUNNING", SLURM_RUNNING},
	{"RESIZING", SLURM_RUNNING},
	{"SIGNALING", SLURM_RUNNING},
	{"STAGE_OUT", SLURM_RUNNING},
	{"STOPPED", SLURM_RUNNING},
	{"SUSPENDED", SLURM_RUNNING},
	{"COMPLETING", SLURM_RUNNING}, // epilogs run, processes may
	{"COMPLETED", SLURM_COMPLETED},
	{"FAILED", SLURM_FAILED},
	{"LAUNCH_FAILED", SLURM_NODE_FAIL},
	{"RECONFIG_FAIL", SLURM_NODE_FAIL},
	{"BOOT_FAIL", SLURM_NODE_FAIL},
	{"NODE_FAIL", SLURM_NODE_FAIL},
	{"OUT_OF_MEMORY", SLURM_OUT_OF_MEMORY},
	{"TIMEOUT", SLURM_TIMEOUT},
	{"DEADLINE", SLURM_TIMEOUT},
	{"CANCELLED", SLURM_CANCELLED},
	{"REVOKED", SLURM_CANCELLED},
	{"PREEMPTED", SLURM_PREEMPTED},
};

enum slurm_state slurm_state_of(const char *word, size_t length)
{
	const char *blank = memchr(word, ' ', length);
	length = blank ? (size_t)(blank - word) : length;
	for (size_t i = 0; i < ARRAY_LENGTH(states); i++) {
		if (strlen(states[i].word) == length && memcmp(states[i].word, word, length) == 0) {
			return states[i].state;
		}
	}
	return SLURM_UNKNOWN;
}

// A word that is new is no reason to take a job for ended.
bool slurm_state_is_final(enum slurm_state state)
{
	return state >= SLURM_COMPLETED;
}

// Small outputs -----------------------------------------------------------------------------------

bool slurm_text_job(const char *data, size_t size, uint64_t *ret)
{
	struct cursor c = cursor_of(data, size);
	uint64_t job;
	bool found = cursor_u64(&c, &job) && job > 0 &&
	             (c.at == c.end || *c.at == '\n' || *c.at == ';');
	*ret = found ? job : *ret;
	return found;
}

char *slurm_text_setting(const char *data, size_t size, const char *key)
{
	struct cursor c = cursor_of(data, size), line, word;
	while (cursor_line(&c, &line)) {
		if (cursor_word(&line, &word) && cursor_is(word, key) &&
			(cursor_skip_blanks(&line), cursor_literal(&line, "="))) {
			cursor_skip_blanks(&line);
			return strndup(line.at, (size_t)(line.end - line.at));
		}
	}
	return NULL;
}

unsigned slurm_text_version(const char *version)
{
	struct cursor c = cursor_of(version, strlen(version));
	uint64_t major, minor;
	bool is_one = cursor_u64(&c, &major) && cursor_literal(&c, ".") && cursor_u64(&c, &minor) &&
	              major < 100 && minor < 100;
	return is_one ? (unsigned)(major * 100 + minor) : 0;
}

// The queue ---------------------------------------------------------------------------------------

// Takes the field up to the next '|', and skips that. False: there is none.
static bool take_field(struct cursor *c, struct cursor *ret)
{
	const char *bar = memchr(c->at, '|', (size_t)(c->end - c->at));
	if (!bar) {
		return false;
	}
	*ret = (struct cursor){c->at, bar};
	c->at = bar + 1;
	return true;
}

static bool whole_number(struct cursor c, uint64_t most, uint64_t *ret)
{
	return cursor_u64(&c, ret) && c.at == c.end && *ret <= most;
}

// Only a reason or a name can contain '|', and only the last '|' parts these two: a name of ours
// has none.
static bool read_queued(struct cursor line, struct slurm_queued *ret)
{
	struct cursor job, task, state, nodes;
	uint64_t number, index = 0;
	if (!take_field(&line, &job) || !take_field(&line, &task) || !take_field(&line, &state) ||
		!take_field(&line, &nodes) || !whole_number(job, UINT64_MAX, &number) ||
		(!cursor_is(task, "N/A") && !whole_number(task, UINT32_MAX, &index))) {
		return false;
	}
	const char *bar = memrchr(line.at, '|', (size_t)(line.end - line.at));
	if (!bar) {
		return false;
	}
	*ret = (struct slurm_queued){
		.job = number,
		.task = (uint32_t)index,
		.state = slurm_state_of(state.at, (size_t)(state.end - state.at)),
		.reason = line.at,
		.reason_length = (size_t)(bar - line.at),
		.name = bar + 1,
		.name_length = (size_t)(line.end - bar - 1),
	};
	return true;
}

size_t slurm_text_queue(const char *data, size_t size,
	void (*each)(void *context, const struct slurm_queued *line), void *context)
{
	struct cursor c = cursor_of(data, size), line;
	struct slurm_queued queued;
	size_t others = 0;
	while (cursor_line(&c, &line)) {
		if (read_queued(line, &queued)) {
			each(context, &queued);
		} else {
			others++;
		}
	}
	return others;
}

// A job -------------------------------------------------------------------------------------------

// Finds "KEY=" at the start of a word, and sets *ret to the value, up to the next blank. The first
// one counts: a later one may be part of a comment or a path, which may contain anything. All keys
// read here precede those.
static bool find_value(struct cursor line, const char *key, struct cursor *ret)
{
	struct cursor word;
	size_t length = strlen(key);
	while (cursor_word(&line, &word)) {
		if ((size_t)(word.end - word.at) > length && memcmp(word.at, key, length) == 0 &&
			word.at[length] == '=') {
			*ret = (struct cursor){word.at + length + 1, word.end};
			return true;
		}
	}
	return false;
}

// Without the name of the job, which precedes the user. (The names of a sweep's jobs have no
// blanks.)
static struct cursor after_name(struct cursor line)
{
	static const char user[] = " UserId=";
	const char *at = memmem(line.at, (size_t)(line.end - line.at), user, sizeof(user) - 1);
	return at ? (struct cursor){at + 1, line.end} : line;
}

static void copy_printable(char *buffer, size_t size, struct cursor value)
{
	_cleanup_text_ struct text t = {0};
	text_append_printable(&t, value.at, (size_t)(value.end - value.at));
	size_t length = t.data && !t.failed ? t.length : 0;
	if (length >= size) { // do not cut a UTF-8 character
		for (length = size - 1;
			length > 0 && ((unsigned char)t.data[length] & 0xc0) == 0x80;) {
			length--;
		}
	}
	if (length > 0) {
		memcpy(buffer, t.data, length);
	}
	buffer[length] = '\0';
}

static void read_exit(struct cursor value, struct slurm_job *ret)
{
	uint64_t status, number;
	if (cursor_u64(&value, &status) && cursor_literal(&value, ":") &&
		cursor_u64(&value, &number) && status <= 255 && number < NSIG) {
		ret->exit_status = (int)status;
		ret->exit_signal = (int)number;
	}
}

static bool is_task(struct cursor line, uint32_t task)
{
	// These two precede the name.
	static const char name[] = " JobName=";
	const char *end = memmem(line.at, (size_t)(line.end - line.at), name, sizeof(name) - 1);
	struct cursor value;
	uint64_t index;
	line.end = end ? end : line.end;
	bool has = find_value(line, "ArrayTaskId", &value);
	return task == 0 ? !has || cursor_is(value, "0")
	                 : has && whole_number(value, UINT32_MAX, &index) && index == task;
}

bool slurm_text_find_job(const char *data, size_t size, uint32_t task, struct slurm_job *ret)
{
	struct cursor c = cursor_of(data, size), line, value;
	while (cursor_line(&c, &line)) {
		if (!cursor_literal(&(struct cursor){line.at, line.end}, "JobId=") ||
			!is_task(line, task)) {
			continue;
		}
		struct slurm_job job = {.exit_status = -1};
		uint64_t restarts;
		line = after_name(line);
		if (find_value(line, "JobState", &value)) {
			job.state = slurm_state_of(value.at, (size_t)(value.end - value.at));
		}
		if (find_value(line, "ExitCode", &value)) {
			read_exit(value, &job);
		}
		if (find_value(line, "Reason", &value)) {
			copy_printable(job.reason, sizeof(job.reason), value);
		}
		if (find_value(line, "BatchHost", &value)) {
			copy_printable(job.node, sizeof(job.node), value);
		}
		if (find_value(line, "Restarts", &value) &&
			whole_number(value, 1000000, &restarts)) {
			job.restarts = (unsigned)restarts;
		}
		*ret = job;
		return true;
	}
	return false;
}

// The end of a trial ------------------------------------------------------------------------------

static const struct {
	enum outcome outcome;
	const char *why;
} judgements[] = {
	[SLURM_UNKNOWN] = {N_OUTCOMES, "it ended without an outcome"},
	[SLURM_WAITING] = {N_OUTCOMES, "it waits in Slurm"},
	[SLURM_RUNNING] = {N_OUTCOMES, "it runs in Slurm"},
	[SLURM_COMPLETED] = {N_OUTCOMES, "its job ended without an outcome"},
	[SLURM_FAILED] = {N_OUTCOMES, "its job failed"},
	[SLURM_OUT_OF_MEMORY] = {OUTCOME_OUT_OF_MEMORY,
		"out of host memory: at the limit of Slurm"},
	[SLURM_TIMEOUT] = {OUTCOME_TIME_LIMIT, "not done at the time limit of Slurm"},
	[SLURM_CANCELLED] = {OUTCOME_CANCELLED, "cancelled in Slurm"},
	[SLURM_PREEMPTED] = {OUTCOME_PREEMPTED, "preempted by another job in Slurm"},
	[SLURM_NODE_FAIL] = {OUTCOME_NODE_FAILURE, "its node failed"},
	[SLURM_GONE] = {N_OUTCOMES, "Slurm does not know its job any more"},
};

enum outcome slurm_text_judge(
	const struct slurm_job *job, const char *output, size_t output_size, struct text *why)
{
	static const enum slurm_state by_outcome[N_OUTCOMES] = {
		[OUTCOME_OUT_OF_MEMORY] = SLURM_OUT_OF_MEMORY,
		[OUTCOME_TIME_LIMIT] = SLURM_TIMEOUT,
		[OUTCOME_CANCELLED] = SLURM_CANCELLED,
		[OUTCOME_PREEMPTED] = SLURM_PREEMPTED,
		[OUTCOME_NODE_FAILURE] = SLURM_NODE_FAIL,
	};
	enum slurm_state state = job->state;
	enum outcome written = outcome_from_slurmstepd(output, output_size);
	// Of an earlier start of the job, which Slurm then put back into the queue: the output is
	// appended to.
	if (state == SLURM_CANCELLED &&
		(written == OUTCOME_PREEMPTED || written == OUTCOME_NODE_FAILURE)) {
		written = N_OUTCOMES;
	}
	// With OverMemoryKill, the state is FAILED or CANCELLED: slurmstepd cancels the job.
	bool more = state == SLURM_FAILED || state == SLURM_CANCELLED || state == SLURM_GONE ||
	            state == SLURM_UNKNOWN;
	state = more && written != N_OUTCOMES ? by_outcome[written] : state;
	text_append_string(why, judgements[state].why);
	if (state == SLURM_NODE_FAIL && *job->node) {
		text_format(why, ": %s", job->node);
	} else if (state == SLURM_FAILED && job->exit_signal > 0) {
		text_format(why, ": killed by signal %d", job->exit_signal);
	} else if (state == SLURM_FAILED && job->exit_status > 0) {
		text_format(why, ": exit status %d", job->exit_status);
	}
	if (state == SLURM_FAILED && *job->reason && strcmp(job->reason, "None") != 0) {
		text_format(why, " (%s)", job->reason);
	}
	return judgements[state].outcome;
}
