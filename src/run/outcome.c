// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Infers the outcome of a job.
//
// Messages of frameworks that ran out of memory are kept in a table, each with the kind of memory.
// A job that failed and printed one of them ran out of memory, even if other lines follow: the
// interpreter, and the program that started it, print more after the message.
//
// The same is true of a Python job that crashed. The reason is the end of the last traceback, and
// under torchrun that of the rank which torchrun's report names.

#include "run/outcome.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/text.h"
#include "run/query.h"

enum {
	LINE_SHOWN = 200, // bytes of an output line that are quoted
	OUTPUT_LOOKED_AT = 64 * 1024,
	RANK_PREFIX = 64, // longest prefix of a rank's lines, in bytes: "[rank1]: "
	SHELL_SIGNAL = 128, // a shell adds this to the signal that ended its command
};

static const char *const words[N_OUTCOMES] = {
	[OUTCOME_SUCCESS] = "success",
	[OUTCOME_STOPPED] = "stopped",
	[OUTCOME_OUT_OF_MEMORY] = "out_of_memory",
	[OUTCOME_TIME_LIMIT] = "time_limit",
	[OUTCOME_CRASH] = "crash",
	[OUTCOME_INTERRUPTED] = "interrupted",
	[OUTCOME_SKIPPED] = "skipped",
	[OUTCOME_REFUSED] = "refused",
	[OUTCOME_CANCELLED] = "cancelled",
	[OUTCOME_PREEMPTED] = "preempted",
	[OUTCOME_NODE_FAILURE] = "node_failure",
	[OUTCOME_CUT_OFF] = "cut_off",
	[OUTCOME_LIVE] = "live",
	[OUTCOME_UNKNOWN] = "unknown",
};

const char *outcome_word(enum outcome outcome)
{
	return words[outcome];
}

bool outcome_parse(const char *word, enum outcome *ret)
{
	for (size_t i = 0; i < N_OUTCOMES; i++) {
		if (strcmp(word, words[i]) == 0) {
			*ret = (enum outcome)i;
			return true;
		}
	}
	return false;
}

void outcome_append_shown(struct text *t, enum outcome outcome)
{
	for (const char *c = words[outcome]; *c; c++) {
		text_append(t, *c == '_' ? " " : c, 1);
	}
}

void outcome_append_words(struct text *t)
{
	for (size_t i = 0; i < N_OUTCOMES; i++) {
		text_format(t, "%s%s", i == 0 ? "" : i + 1 < N_OUTCOMES ? ", " : " or ", words[i]);
	}
}

bool outcome_is_success(enum outcome outcome)
{
	return outcome == OUTCOME_SUCCESS || outcome == OUTCOME_STOPPED;
}

// ---- lines of output

static const char *find(struct cursor text, const char *word)
{
	return memmem(text.at, (size_t)(text.end - text.at), word, strlen(word));
}

static struct cursor end_of_output(const struct outcome_evidence *evidence)
{
	bool any = evidence->output != NULL; // NULL + 0 is undefined
	struct cursor output = cursor_of(
		any ? evidence->output : "", any ? evidence->output_length : 0);
	if (output.end - output.at > OUTPUT_LOOKED_AT) {
		output.at = output.end - OUTPUT_LOOKED_AT;
	}
	return output;
}

static bool ends_line(char c)
{
	return c == '\n' || c == '\r'; // progress bars end their lines with \r
}

static struct cursor line_around(struct cursor output, const char *at)
{
	struct cursor line = {at, at};
	while (line.at > output.at && !ends_line(line.at[-1])) {
		line.at--;
	}
	while (line.end < output.end && !ends_line(*line.end)) {
		line.end++;
	}
	return line;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || ends_line(c);
}

static const char *without_blanks(const char *at, const char *end)
{
	while (end > at && is_blank(end[-1])) {
		end--;
	}
	return end;
}

static bool line_begins(struct cursor line, const char *text)
{
	size_t length = strlen(text);
	return (size_t)(line.end - line.at) >= length && memcmp(line.at, text, length) == 0;
}

// The end of what the job wrote: what strain has written to the same file (a warning before the job
// began, the verdict of another recording within it) is none of it. Those lines begin with
// "strain: ", and go on indented.
static const char *without_own(const char *at, const char *end)
{
	static const char indent[] = "        ";
	for (end = without_blanks(at, end); end > at;) {
		struct cursor output = {at, end};
		struct cursor line = line_around(output, end);
		while (line.at > at && line_begins(line, indent)) {
			line = line_around(output, without_blanks(at, line.at));
		}
		if (!line_begins(line, "strain: ")) {
			break;
		}
		end = without_blanks(at, line.at);
	}
	return end;
}

// The last line of the job that is not blank.
static struct cursor last_line(const struct outcome_evidence *evidence)
{
	struct cursor output = end_of_output(evidence);
	output.end = without_own(output.at, output.end);
	return line_around(output, output.end);
}

static void append_line(struct text *t, const char *before, struct cursor line)
{
	while (line.at < line.end && is_blank(*line.at)) {
		line.at++;
	}
	size_t length = (size_t)(line.end - line.at);
	if (length == 0) {
		return;
	}
	bool cut = length > LINE_SHOWN;
	length = cut ? LINE_SHOWN : length;
	while (cut && length > 0 && ((unsigned char)line.at[length] & 0xc0) == 0x80) {
		length--; // do not cut a UTF-8 character
	}
	text_append_string(t, before);
	text_append_printable(t, line.at, length);
	text_append_string(t, cut ? "..." : "");
}

// ---- messages of programs that ran out of memory

#define DEVICE "out of device memory"
#define HOST "out of host memory"

struct message {
	const char *word;
	const char *also; // must be in the same line; NULL: no condition
	const char *where;
};

// The first match counts: "OutOfMemoryError" contains "MemoryError".
static const struct message messages[] = {
	{"CUDA out of memory", NULL, DEVICE}, // PyTorch
	{"HIP out of memory", NULL, DEVICE},
	{"XPU out of memory", NULL, DEVICE},
	{"MPS backend out of memory", NULL, DEVICE},
	{"CUDA error: out of memory", NULL, DEVICE},
	{"CUDA_ERROR_OUT_OF_MEMORY", NULL, DEVICE},
	{"cudaErrorMemoryAllocation", NULL, DEVICE},
	{"hipErrorOutOfMemory", NULL, DEVICE},
	{"CUBLAS_STATUS_ALLOC_FAILED", NULL, DEVICE},
	{"CUDNN_STATUS_ALLOC_FAILED", NULL, DEVICE},
	{"OOM when allocating tensor", "device:CPU", HOST}, // TensorFlow
	{"OOM when allocating tensor", "by allocator cpu", HOST},
	{"OOM when allocating tensor", NULL, DEVICE},
	{"Allocator (GPU_", "ran out of memory", DEVICE},
	{"RESOURCE_EXHAUSTED: Out of memory allocating", NULL, HOST}, // JAX, XLA on CPUs
	{"RESOURCE_EXHAUSTED: Out of memory", NULL, DEVICE},
	{"java.lang.OutOfMemoryError", NULL, HOST},
	{"OutOfMemoryError", NULL, DEVICE},
	{"DefaultCPUAllocator", "memory", HOST},
	// PyTorch's loader: a full /dev/shm counts as host memory
	{"out of shared memory", NULL, HOST},
	{"MemoryError", NULL, HOST}, // Python, NumPy
	{"std::bad_alloc", NULL, HOST},
	{"dnnl_out_of_memory", NULL, HOST},
	{"an't allocate memory", NULL, HOST},
	{"annot allocate memory", NULL, HOST},
};

// Whether a line is source code quoted in a traceback, after its location. Messages in it were not
// printed by the program.
static bool is_source(struct cursor output, struct cursor line)
{
	if (line.at - output.at < 2) {
		return false;
	}
	struct cursor before = line_around(output, line.at - 1);
	return find(before, " File \"") && find(before, "\", line ");
}

// Finds the last line with the message that is not such source code. False: there is none.
static bool find_line(
	const struct outcome_evidence *evidence, const struct message *message, struct cursor *ret)
{
	const struct cursor output = end_of_output(evidence);
	struct cursor rest = output;
	bool found = false;
	for (const char *at; (at = find(rest, message->word)); rest.at = at + 1) {
		struct cursor line = line_around(output, at);
		if ((!message->also || find(line, message->also)) && !is_source(output, line)) {
			*ret = line;
			found = true;
		}
	}
	return found;
}

// ---- Python and torchrun

#define TRACEBACK "Traceback (most recent call last):"
#define ELASTIC "torch.distributed.elastic." // exceptions of torchrun itself

// Reads the next line, without its end. False at the end of the text.
static bool next_line(struct cursor *rest, struct cursor *ret)
{
	if (rest->at >= rest->end) {
		return false;
	}
	ret->at = ret->end = rest->at;
	while (ret->end < rest->end && !ends_line(*ret->end)) {
		ret->end++;
	}
	rest->at = ret->end + (ret->end < rest->end);
	return true;
}

static bool begins_with(struct cursor text, const char *start, size_t length)
{
	return (size_t)(text.end - text.at) >= length && memcmp(text.at, start, length) == 0;
}

// The prefix of each line of a traceback if lines are labelled: "[rank1]: ", "0: ".
static struct cursor traceback_prefix(struct cursor output, const char *at)
{
	// precedes the traceback of a loader worker that torch forwards
	static const char original[] = "Original ";
	struct cursor prefix = {line_around(output, at).at, at};
	size_t length = sizeof(original) - 1;
	if (prefix.end - prefix.at >= (ptrdiff_t)length &&
		memcmp(prefix.end - length, original, length) == 0) {
		prefix.end -= length;
	}
	return prefix;
}

// Finds the line that ends a traceback, "ValueError: no": the first that is not indented. Lines of
// others, without the prefix, may be between.
static bool traceback_end(struct cursor output, const char *at, struct cursor *ret)
{
	struct cursor prefix = traceback_prefix(output, at);
	struct cursor rest = {at + strlen(TRACEBACK), output.end}, line;
	size_t length = (size_t)(prefix.end - prefix.at);
	next_line(&rest, &line); // the rest of the first line
	while (length <= RANK_PREFIX && next_line(&rest, &line)) {
		if (!begins_with(line, prefix.at, length)) {
			continue;
		}
		line.at += length;
		if (line.at < line.end && !is_blank(*line.at)) {
			*ret = line;
			return true;
		}
	}
	return false;
}

// The exception of the last traceback of the job itself, not torchrun's.
static bool find_exception(struct cursor output, struct cursor *ret)
{
	struct cursor rest = output, line;
	bool found = false;
	for (const char *at; (at = find(rest, TRACEBACK)); rest.at = at + 1) {
		if (traceback_end(output, at, &line) &&
			!begins_with(line, ELASTIC, strlen(ELASTIC))) {
			*ret = line;
			found = true;
		}
	}
	return found;
}

// Reads a number from torchrun's report: "  rank      : 1 (local_rank: 1)".
static bool report_number(struct cursor report, const char *name, int64_t *ret)
{
	struct cursor line;
	size_t length = strlen(name);
	while (next_line(&report, &line)) {
		while (line.at < line.end && is_blank(*line.at)) {
			line.at++;
		}
		if (!begins_with(line, name, length)) {
			continue;
		}
		line.at += length;
		cursor_skip_blanks(&line);
		if (cursor_literal(&line, ":")) {
			cursor_skip_blanks(&line);
			return cursor_i64(&line, ret);
		}
	}
	return false;
}

static void append_signal(struct text *t, int64_t number)
{
	const char *name = number > 0 && number < NSIG ? sigabbrev_np((int)number) : NULL;
	if (name) {
		text_format(t, "SIG%s", name);
	} else {
		text_format(t, "signal %" PRId64, number);
	}
}

// Appends which rank failed first and how, from the report at the end of torchrun's output.
static bool append_rank(struct text *t, struct cursor output)
{
	const char *at = find(output, "Root Cause (first observed failure):");
	struct cursor report = {at, output.end};
	int64_t rank, status;
	if (!at || !report_number(report, "rank", &rank) ||
		!report_number(report, "exitcode", &status) || status <= -NSIG || status > 255) {
		return false;
	}
	text_format(t, "rank %" PRId64, rank);
	if (status < 0) {
		text_append_string(t, " was terminated by ");
		append_signal(t, -status);
	} else {
		text_format(t, " failed with exit status %" PRId64, status);
	}
	return true;
}

// ---- rules

// A rule appends the line and returns the outcome, or N_OUTCOMES if it does not apply.
typedef enum outcome outcome_rule(const struct outcome_evidence *evidence, struct text *t);

static bool has_status(const struct outcome_evidence *e)
{
	return e->status >= 0 && e->status <= INT32_MAX &&
	       (WIFEXITED((int)e->status) || WIFSIGNALED((int)e->status));
}

static int exit_status_of(const struct outcome_evidence *e)
{
	return WIFEXITED((int)e->status) ? WEXITSTATUS((int)e->status) : -1;
}

// The signal that ended the job, also if only the status of its shell shows it.
static int signal_of(const struct outcome_evidence *e)
{
	int status = exit_status_of(e);
	if (status < 0) {
		return WTERMSIG((int)e->status);
	}
	return status > SHELL_SIGNAL && status - SHELL_SIGNAL < NSIG ? status - SHELL_SIGNAL : 0;
}

static enum outcome judge_recorded(const struct outcome_evidence *e, struct text *t)
{
	enum outcome outcome;
	if (!e->word || !outcome_parse(e->word, &outcome)) {
		return N_OUTCOMES;
	}
	if (e->text) {
		text_append_printable(t, e->text, strlen(e->text));
	}
	return outcome;
}

static enum outcome judge_state(const struct outcome_evidence *e, struct text *t)
{
	if (e->state == RUN_LIVE) {
		text_append_string(t, "still running");
		return OUTCOME_LIVE;
	}
	if (e->state == RUN_CUT_OFF) {
		text_append_string(t, "cut off: the end was not recorded");
		return OUTCOME_CUT_OFF;
	}
	if (!has_status(e)) {
		text_append_string(t, "ended; the exit status is not known");
		return OUTCOME_UNKNOWN;
	}
	return N_OUTCOMES;
}

static enum outcome judge_status(const struct outcome_evidence *e, struct text *t)
{
	if (exit_status_of(e) == EXIT_SKIPPED) {
		append_line(t, "", last_line(e));
		if (t->length == 0) {
			text_format(t, "exit status %d", EXIT_SKIPPED);
		}
		return OUTCOME_SKIPPED;
	}
	return exit_status_of(e) == 0 ? OUTCOME_SUCCESS : N_OUTCOMES;
}

// The text of the event says whether a limit or the machine was the cause (record/source/cgroup.c).
static enum outcome judge_kill(const struct outcome_evidence *e, struct text *t)
{
	bool nearby = !e->kill && e->kill_nearby && signal_of(e) == SIGKILL;
	const char *kill = nearby ? e->kill_nearby : e->kill;
	if (!kill) {
		return N_OUTCOMES;
	}
	text_format(t, "%s%s: ", strstr(kill, " at the limit of ") ? "cgroup out of memory" : HOST,
		nearby ? " (probably)" : "");
	text_append_printable(t, kill, strlen(kill));
	return OUTCOME_OUT_OF_MEMORY;
}

static enum outcome judge_message(const struct outcome_evidence *e, struct text *t)
{
	struct cursor line;
	for (size_t i = 0; i < ARRAY_LENGTH(messages); i++) {
		if (find_line(e, &messages[i], &line)) {
			text_append_string(t, messages[i].where);
			append_line(t, ": ", line);
			return OUTCOME_OUT_OF_MEMORY;
		}
	}
	return N_OUTCOMES;
}

// torchrun turns a signal sent to it into an exception: "SignalException: Process 7 got signal:
// 15".
static int torchrun_signal(const struct outcome_evidence *e)
{
	static const struct message sent = {
		ELASTIC "multiprocessing.api.SignalException", " got signal: ", NULL};
	struct cursor line;
	int64_t number;
	if (!find_line(e, &sent, &line)) {
		return 0;
	}
	line.at = find(line, sent.also) + strlen(sent.also);
	return cursor_i64(&line, &number) && number > 0 && number < NSIG ? (int)number : 0;
}

// In the order of certainty: a job beyond its memory is also "CANCELLED AT".
static const struct {
	const char *words;
	enum outcome outcome;
} slurm_messages[] = {
	{"xceeded memory limit", OUTCOME_OUT_OF_MEMORY}, // jobacct_gather, OverMemoryKill
	{"xceeded job memory limit", OUTCOME_OUT_OF_MEMORY},
	{"oom-kill event", OUTCOME_OUT_OF_MEMORY}, // task/cgroup
	{"oom_kill event", OUTCOME_OUT_OF_MEMORY},
	{" DUE TO TIME LIMIT ***", OUTCOME_TIME_LIMIT},
	{" DUE TO JOB DEADLINE ***", OUTCOME_TIME_LIMIT},
	{" DUE TO PREEMPTION ***", OUTCOME_PREEMPTED},
	{" DUE TO NODE FAILURE", OUTCOME_NODE_FAILURE},
	{" DUE TO JOB REQUEUE ***", N_OUTCOMES},
	{" DUE TO JOB NOT RUNNING ***", N_OUTCOMES},
	{" CANCELLED AT ", OUTCOME_CANCELLED},
};

// "slurmstepd: ", or, in a build with MULTIPLE_SLURMD (Debian's), "slurmstepd-NODE: ".
static bool is_of_slurmstepd(struct cursor line)
{
	return find(line, "slurmstepd: ") || find(line, "slurmstepd-");
}

enum outcome outcome_from_slurmstepd(const char *output, size_t length)
{
	for (size_t i = 0; i < ARRAY_LENGTH(slurm_messages); i++) {
		struct cursor rest = cursor_of(output, length);
		for (const char *at; (at = find(rest, slurm_messages[i].words)); rest.at = at + 1) {
			if (is_of_slurmstepd(line_around(cursor_of(output, length), at))) {
				return slurm_messages[i].outcome;
			}
		}
	}
	return N_OUTCOMES;
}

// Ended by Slurm, which sends SIGTERM and says why in the output of the job.
static enum outcome judge_slurm(const struct outcome_evidence *e, struct text *t)
{
	static const char *const why[N_OUTCOMES] = {
		[OUTCOME_OUT_OF_MEMORY] = HOST ": at the limit of Slurm",
		[OUTCOME_TIME_LIMIT] = "not done at the time limit of Slurm",
		[OUTCOME_CANCELLED] = "cancelled in Slurm",
		[OUTCOME_PREEMPTED] = "preempted by another job in Slurm",
		[OUTCOME_NODE_FAILURE] = "a node failed",
	};
	int number = signal_of(e) ? signal_of(e) : torchrun_signal(e);
	struct cursor output = end_of_output(e);
	enum outcome outcome = number == SIGTERM || number == SIGKILL
	                               ? outcome_from_slurmstepd(
						 output.at, (size_t)(output.end - output.at))
	                               : N_OUTCOMES;
	text_append_string(t, outcome < N_OUTCOMES ? why[outcome] : "");
	return outcome;
}

// Ended by a person, a scheduler or a machine that shuts down, not by the job itself.
static enum outcome judge_interrupted(const struct outcome_evidence *e, struct text *t)
{
	int number = signal_of(e) ? signal_of(e) : torchrun_signal(e);
	if (number != SIGINT && number != SIGTERM && number != SIGHUP) {
		return N_OUTCOMES;
	}
	text_format(t, "terminated by SIG%s", sigabbrev_np(number));
	return OUTCOME_INTERRUPTED;
}

// Appends the reason of the crash, if the output has one.
static void append_reason(struct text *t, const struct outcome_evidence *e)
{
	struct cursor output = end_of_output(e), line;
	_cleanup_text_ struct text rank = {0};
	bool torchrun = append_rank(&rank, output) && rank.data;
	if (torchrun) {
		text_format(t, ": %s", rank.data);
	}
	if (find_exception(output, &line)) {
		append_line(t, ": ", line);
	} else if (!torchrun) {
		append_line(t, ": ", last_line(e));
	}
}

static enum outcome judge_crash(const struct outcome_evidence *e, struct text *t)
{
	int status = exit_status_of(e), number = signal_of(e);
	const char *name = number ? sigabbrev_np(number) : NULL;
	if (number == SIGKILL) {
		text_append_string(t, "killed (SIGKILL)");
	} else if (name) {
		text_format(t, "terminated by SIG%s", name);
	} else if (status >= 0) {
		text_format(t, "exit status %d", status);
	} else {
		text_format(t, "terminated by signal %d", number);
	}
	if (name && status >= 0) {
		text_format(t, " (exit status %d)", status);
	}
	text_append_string(t, number == SIGKILL ? "; no sign that memory ran out" : "");
	append_reason(t, e);
	return OUTCOME_CRASH;
}

static outcome_rule *const rules[] = {
	judge_recorded,
	judge_state,
	judge_status,
	judge_kill,
	judge_message,
	judge_slurm,
	judge_interrupted,
	judge_crash,
};

int outcome_judge(const struct outcome_evidence *evidence, enum outcome *ret, char **ret_text)
{
	struct text text = {0};
	enum outcome outcome = N_OUTCOMES;
	for (size_t i = 0; i < ARRAY_LENGTH(rules) && outcome == N_OUTCOMES; i++) {
		outcome = rules[i](evidence, &text);
	}
	char *line = text_steal(&text);
	if (!line) {
		return -ENOMEM;
	}
	*ret = outcome;
	*ret_text = line;
	return 0;
}

// ---- a run

struct found {
	char *texts[3];
	size_t output_length;
};

enum { FOUND_KILL, FOUND_KILL_NEARBY, FOUND_OUTPUT };

// Events come in order of time: the last of each kind is kept.
static int take_event(void *context, sqlite3_stmt *row)
{
	struct found *found = context;
	int which = sqlite3_column_int(row, 0);
	char *text = query_text(row, 1);
	if (!text) {
		return -ENOMEM;
	}
	free(found->texts[which]);
	found->texts[which] = text;
	if (which == FOUND_OUTPUT) {
		found->output_length = strlen(text);
	}
	return 0;
}

int outcome_tell(struct reader *r, struct outcome_told *ret, struct error *e)
{
	struct found found = {0};
	int rc = query_each(r,
		"SELECT CASE kind WHEN 'oom_kill' THEN 0 WHEN 'oom_kill_nearby' THEN 1 ELSE 2 END,"
		" text FROM event WHERE kind IN ('oom_kill', 'oom_kill_nearby', 'output')"
		" ORDER BY t_ns, id",
		take_event, &found, e);
	if (rc == 0) {
		const struct outcome_evidence evidence = {
			.word = reader_run(r, "outcome"),
			.text = reader_run(r, "outcome_text"),
			.state = reader_state(r),
			.status = reader_run_i64(r, "status", -1),
			.kill = found.texts[FOUND_KILL],
			.kill_nearby = found.texts[FOUND_KILL_NEARBY],
			.output = found.texts[FOUND_OUTPUT] ? found.texts[FOUND_OUTPUT] : "",
			.output_length = found.output_length,
		};
		rc = outcome_judge(&evidence, &ret->outcome, &ret->text);
		rc = rc < 0 ? error_errno(e, -rc, "%s", reader_path(r)) : 0;
	}
	if (rc == 0) {
		ret->output = take_pointer(found.texts[FOUND_OUTPUT]);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(found.texts); i++) {
		free(found.texts[i]);
	}
	return rc;
}

void outcome_told_done(struct outcome_told *told)
{
	free(told->text);
	free(told->output);
	*told = (struct outcome_told){.outcome = OUTCOME_UNKNOWN};
}

int outcome_of(struct reader *r, enum outcome *ret, char **ret_text, struct error *e)
{
	struct outcome_told told;
	int rc = outcome_tell(r, &told, e);
	if (rc == 0) {
		*ret = told.outcome;
		*ret_text = take_pointer(told.text);
		outcome_told_done(&told);
	}
	return rc;
}

size_t outcome_last_lines(const char *output, size_t n, struct cursor *ret)
{
	const char *at = output, *end = without_own(output, output + strlen(output));
	size_t found = 0;
	while (found < n && end > at) {
		struct cursor line = {end, end};
		while (line.at > at && !ends_line(line.at[-1])) {
			line.at--;
		}
		end = line.at > at ? line.at - 1 : at;
		while (line.end > line.at && is_blank(line.end[-1])) {
			line.end--;
		}
		if (line.end > line.at) {
			memmove(ret + 1, ret, found++ * sizeof(*ret));
			ret[0] = line;
		}
	}
	return found;
}
