// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Builds the verdict. With phases, the causes decide (causes.h). The rules here come before them (a
// job that failed), or decide without phases. Each rule looks at the overview and either recognises
// its bottleneck or does not; the first one in the table that does decides. Thresholds are at the
// point where more of a resource would change little. None of the rules can see inside an
// iteration, so their confidence is at most medium.

#include "verdict/verdict.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/parse.h"
#include "base/words.h"
#include "run/analysis.h"
#include "run/measures.h"
#include "run/names.h"
#include "verdict/advice.h"
#include "verdict/cause_kinds.h"
#include "verdict/causes.h"
#include "verdict/facts.h"
#include "run/unit.h"
#include "run/gpu_facts.h"
#include "run/growth.h"
#include "verdict/thresholds.h"
#include "verdict/evidence.h"
#include "verdict/tried.h"

// Lines -------------------------------------------------------------------------------------------
//
// The lines at the end of a run.

#define COLUMNS 120
#define INDENT 8 // "strain: "
#define HANGING (INDENT + 2) // what goes on in the next line
#define OUTPUT_LINES 3

static void append_line(struct text *out, const char *prefix, const struct text *line)
{
	if (line->length > 0) {
		text_append_string(out, prefix);
		words_append_folded(out, line->data, HANGING, HANGING, COLUMNS);
		text_append(out, "\n", 1);
	}
}

// A line of the job's output.
static void append_quote(struct text *out, const char *prefix, const struct text *line)
{
	text_append_string(out, prefix);
	words_append_elided(out, line->data ? line->data : "", COLUMNS - INDENT);
	text_append(out, "\n", 1);
}

// Appends the rate that compare and sweep use, not one computed from an epoch's whole time.
static void append_rate(struct text *t, const struct analysis *a)
{
	const char *why = NULL;
	char number[32];
	double rate = measures[MEASURE_SAMPLES_PER_SECOND].compute(a, &why);
	double tokens = measures[MEASURE_TOKENS_PER_SECOND].compute(a, &why);
	if (!(rate > 0)) {
		return;
	}
	text_count(number, sizeof(number), (uint64_t)llround(rate));
	text_format(t, ", %s %s/s", number, unit_of_samples(a->tables.reader));
	if (tokens >= 1) {
		text_count(number, sizeof(number), (uint64_t)llround(tokens));
		text_format(t, ", %s tokens/s", number);
	}
	text_append_string(t, a->phases.steady > 0 ? " in iterations" : "");
}

// Appends epochs or the duration, and the rate. False: reported above.
static bool append_epochs(struct text *t, const struct analysis *a)
{
	size_t n = 0;
	for (size_t i = 0; i < a->tables.epochs.n; i++) {
		n += !a->tables.epochs.items[i].open;
	}
	if (n == 0 && a->overview.partial) {
		return false;
	}
	if (n == 0) {
		text_append_string(t, "ran ");
		words_append_seconds(t, a->overview.duration_s);
	} else {
		words_append_counted(t, (double)n, "epoch");
		text_append_string(t, " of ");
		words_append_seconds(t, epoch_typical_seconds(&a->tables.epochs));
	}
	append_rate(t, a);
	return true;
}

// Appends what the job printed about its last epoch: "loss 0.218".
static void append_points(struct text *t, const struct analysis *a)
{
	enum { SHOWN = 2 };
	const struct epoch *last = a->tables.epochs.n
	                                   ? &a->tables.epochs.items[a->tables.epochs.n - 1]
	                                   : NULL;
	for (size_t i = 0; last && i < last->n_points && i < SHOWN; i++) {
		text_append_string(t, ", ");
		words_append_elided(t, last->points[i].name, 16);
		text_format(t, " %.3g", last->points[i].value);
	}
}

// Appends the figures of the job's GPUs.
static void append_gpus(struct text *t, const struct analysis *a)
{
	const struct overview *o = &a->overview;
	const struct gpu_figures *fullest = NULL;
	double lowest = INFINITY, highest = -INFINITY;
	for (size_t i = 0; i < o->n_gpus; i++) {
		const struct gpu_figures *gpu = &o->gpus[i];
		if (gpu_owner(a, i) != GPU_OF_JOB) {
			continue;
		}
		if (isfinite(gpu->memory_peak_bytes) &&
			(!fullest || gpu->memory_peak_bytes > fullest->memory_peak_bytes)) {
			fullest = gpu;
		}
		lowest = fmin(lowest, gpu->busy); // fmin and fmax ignore NAN
		highest = fmax(highest, gpu->busy);
	}
	if (fullest) {
		text_append_string(t, ", GPU memory ");
		words_append_bytes_of(t, fullest->memory_peak_bytes, fullest->memory_bytes);
	}
	if (isfinite(highest)) {
		text_append_string(t, ", GPU busy ");
		words_append_percent(t, lowest);
	}
	if (isfinite(highest) && highest > lowest) {
		text_append_string(t, " to ");
		words_append_percent(t, highest);
	}
}

static void append_figures(struct text *t, const struct analysis *a)
{
	const struct overview *o = &a->overview;
	if (append_epochs(t, a)) {
		append_points(t, a);
		if (a->stops.total_s > 0) {
			text_append_string(t, ", stopped for ");
			words_append_seconds(t, a->stops.total_s);
		}
		text_append_string(t, "; ");
	}
	if (isfinite(o->cpu_seconds) && (o->n_gpus == 0 || o->cpu_inexact)) {
		text_append_string(t, "CPU time ");
		words_append_seconds(t, o->cpu_seconds);
		text_append_string(t, o->cpu_inexact ? " (inexact), " : ", ");
	}
	if (isfinite(o->memory.peak_bytes)) {
		text_append_string(t, "peak host memory ");
		overview_append_memory(t, &o->memory, NAN);
		text_format(t, " (%s)", o->memory.kind);
	} else {
		text_append_string(t, "host memory not measured");
	}
	append_gpus(t, a);
}

// Appends as many as fit of "GPU power (not supported by this driver)" ...
static void append_missing(struct text *t, const struct analysis *a, size_t columns)
{
	size_t shown = 0, rest = 0;
	for (size_t i = 0; i < a->tables.missing.n; i++) {
		_cleanup_text_ struct text item = {0};
		if (a->tables.missing.items[i].broke_off) {
			continue; // it was measured before
		}
		text_append_string(&item, shown ? ", " : "; not measured: ");
		if (!missing_list_append_subjects(
			    &item, &a->tables.metrics, &a->tables.missing, i)) {
			continue;
		}
		text_append_string(&item, " (");
		missing_list_append_reason(&item, &a->tables.missing.items[i]);
		text_append_string(&item, ")");
		// Room for " and 12 more".
		bool fits = rest == 0 && item.data &&
		            words_columns(t->data) + words_columns(item.data) + 12 <= columns;
		if (fits) {
			text_append(t, item.data, item.length);
		}
		shown += fits;
		rest += !fits;
	}
	if (rest > 0) {
		text_format(t, shown ? " and %zu more" : "; %zu kinds of data not measured", rest);
	}
}

// What starting and ending cost is no share of a run as short as this.
#define SHORT_RUN_S 2.0

static void append_recording(struct text *t, const struct analysis *a)
{
	const struct recording_figures *recording = &a->overview.recording;
	if (a->overview.recorded_s < SHORT_RUN_S && isfinite(recording->cpu_share)) {
		text_append_string(t, "recording took ");
		words_append_seconds(t, recording->cpu_share * a->overview.recorded_s);
		text_append_string(t, " of CPU time");
	} else if (isfinite(recording->cpu_share)) {
		text_append_string(t, "recording cost ");
		words_append_percent(t, recording->cpu_share);
		text_append_string(t, " of one CPU");
	} else {
		text_append_string(t, "recording cost unknown");
	}
	append_missing(t, a, COLUMNS - INDENT);
}

// Complete commands, to be copied.
static void append_commands(struct text *out, const char *indent, const char *path)
{
	text_format(out, "%sstrain show ", indent);
	text_append_word(out, path);
	text_format(out, "\n%sstrain report ", indent);
	text_append_word(out, path);
	text_append_string(out, " -o report.html\n");
}

// Appends the last output lines of a failed job, if they are known.
static void append_output(struct text *out, const char *prefix, const struct analysis *a)
{
	const char *output = a->overview.outcome.output;
	struct cursor lines[OUTPUT_LINES];
	bool fault = a->verdict->bottleneck == BOTTLENECK_GPU_FAULT &&
	             a->overview.outcome.outcome == OUTCOME_CRASH;
	bool failed = (a->verdict->bottleneck == BOTTLENECK_FAILED || fault) && output;
	size_t n = failed ? outcome_last_lines(output, OUTPUT_LINES, lines) : 0;
	for (size_t i = 0; i < n; i++) {
		_cleanup_text_ struct text line = {0};
		text_append_string(&line, "| ");
		text_append(&line, lines[i].at, (size_t)(lines[i].end - lines[i].at));
		append_quote(out, prefix, &line);
	}
}

void verdict_lines(const struct analysis *a, struct text *out)
{
	static const char indent[] = "        ";
	struct text line = {0};
	// A failure comes first, then what was not recorded, then the rest.
	bool failed = a->verdict->bottleneck == BOTTLENECK_FAILED;
	if (a->overview.partial && !failed) {
		overview_append_recorded(&line, &a->overview);
		append_line(out, "strain: ", &line);
		text_clear(&line);
	}
	text_append_string(&line, a->verdict->headline);
	append_line(out, a->overview.partial && !failed ? indent : "strain: ", &line);
	append_output(out, indent, a);
	if (a->overview.partial && failed) {
		text_clear(&line);
		overview_append_recorded(&line, &a->overview);
		append_line(out, indent, &line);
	}
	text_clear(&line);
	growth_append_warning(&line, &a->growth);
	append_line(out, indent, &line);
	text_clear(&line);
	growth_append_warning(&line, &a->gpu_growth);
	append_line(out, indent, &line);
	text_clear(&line);
	text_append_string(&line, a->verdict->next);
	append_line(out, indent, &line);
	text_clear(&line);
	text_append_string(&line, a->verdict->marking);
	append_line(out, indent, &line);
	text_clear(&line);
	append_figures(&line, a);
	append_line(out, indent, &line);
	text_clear(&line);
	append_recording(&line, a);
	append_line(out, indent, &line);
	append_commands(out, indent, reader_path(a->tables.reader));
	text_done(&line);
}

// Verdict -----------------------------------------------------------------------------------------

#define TOO_SHORT_S 1.0
#define FAR_MORE 1.5 // times the gain of the first suggestion
#define WAITED 0.10 // share of the time, waiting for a CPU that others had
#define ONE_THREAD_SHARE 0.6 // of the job's CPU time
#define ONE_THREAD_MOST 1.03 // CPUs: with more, there are several threads
#define IDLE 0.15
// CPUs: a job that wants a CPU gets more than this, however many others want one
#define ASLEEP 0.02

#define STORAGE_WAITED 0.05 // share of the time of a process
// Bytes a second from and to storage that matter if the processes were not seen to wait for them,
// and if it is not known whether they wait.
#define MUCH_MOVED 2e6
#define SOME_MOVED 1e5

#define NEXT_COLUMNS 112 // width of the line after a run

const char *confidence_name(enum confidence confidence)
{
	static const char *const names[] = {
		[CONFIDENCE_NONE] = "no",
		[CONFIDENCE_LOW] = "low",
		[CONFIDENCE_MEDIUM] = "medium",
		[CONFIDENCE_HIGH] = "high",
	};
	return names[confidence];
}

const char *gain_kind_name(enum gain_kind kind)
{
	static const char *const names[] = {
		[GAIN_UNKNOWN] = "unknown",
		[GAIN_AT_MOST] = "at most",
		[GAIN_ESTIMATED] = "estimated",
	};
	return names[kind];
}

// The result of a rule: each appends text and returns its confidence; CONFIDENCE_NONE: the rule
// does not apply.
struct opinion {
	const struct facts *facts;
	struct text headline;
	struct text next;
	size_t action_at; // offset in `next` of what to try, after its heading; 0: nothing
};

// Starts the text of what to try in `next`.
static struct text *propose(struct opinion *opinion)
{
	text_append_string(&opinion->next, "to try: ");
	opinion->action_at = opinion->next.length;
	return &opinion->next;
}

static const struct event_row *find_event(const struct analysis *a, const char *kind)
{
	for (size_t i = 0; i < a->tables.events.n; i++) {
		if (strcmp(a->tables.events.items[i].kind, kind) == 0) {
			return &a->tables.events.items[i];
		}
	}
	return NULL;
}

static void append_cpus_used(struct text *t, const struct overview *o)
{
	words_append_number(t, o->cpus_used);
	text_append_string(t, " of ");
	words_append_counted(t, o->cpus, "CPU");
}

static double role_cpus(const struct analysis *a, enum role role)
{
	double seconds = 0;
	for (size_t i = 0; i < a->processes.n; i++) {
		const struct process_row *row = &a->processes.items[i];
		if (row->role == role && isfinite(row->cpu_seconds)) {
			seconds += row->cpu_seconds;
		}
	}
	return seconds / a->overview.running_s;
}

// Appends " (loader workers 1.2, main 0.7)" if there are loader workers.
static void append_cpu_split(struct text *t, const struct analysis *a)
{
	double loaders = role_cpus(a, ROLE_LOADER);
	if (loaders > 0) {
		text_append_string(t, " (loader workers ");
		words_append_number(t, loaders);
		text_append_string(t, ", training ");
		words_append_number(t, role_cpus(a, ROLE_MAIN) + role_cpus(a, ROLE_RANK));
		text_append_string(t, ")");
	}
}

static bool was_killed(const struct analysis *a)
{
	bool killed = a->overview.exit_signal == SIGKILL;
	for (size_t i = 0; i < a->processes.n; i++) {
		killed = killed || a->processes.items[i].exit_signal == SIGKILL;
	}
	return killed;
}

// The confidence that the kernel killed a process of the job for lack of memory. It counts victims
// by cgroup: if the job has no cgroup of its own, the victim may be another process in its cgroup
// or on the host.
static enum confidence out_of_memory(const struct analysis *a, int64_t job)
{
	const struct entity *host = entity_first(&a->tables.entities, ENTITY_HOST);
	if (find_event(a, "oom_kill") ||
		tables_figure(&a->tables, job, NAME_OOM_KILLS, FIGURE_TOTAL) > 0) {
		return CONFIDENCE_HIGH;
	}
	if (a->overview.stopped) {
		return CONFIDENCE_NONE; // it was killed by a stop rule
	}
	if (find_event(a, "oom_kill_nearby") && (was_killed(a) || a->overview.exit_status > 0)) {
		return CONFIDENCE_MEDIUM;
	}
	// When memory runs out, the recorder is killed first, since it can be spared.
	if (find_event(a, "recorder_died") && a->overview.exit_signal == SIGKILL) {
		return CONFIDENCE_LOW;
	}
	bool own = isfinite(tables_figure(&a->tables, job, NAME_OOM_KILLS, FIGURE_TOTAL));
	bool anybody = host &&
	               tables_figure(&a->tables, host->id, NAME_HOST_OOM_KILLS, FIGURE_TOTAL) > 0;
	return !own && anybody && was_killed(a) ? CONFIDENCE_LOW : CONFIDENCE_NONE;
}

// Whether the recorder saw, when the kernel killed, that the limit had been reached. A job that is
// killed within a second of its start may have no later count of that.
static bool was_killed_at_limit(const struct analysis *a)
{
	for (size_t i = 0; i < a->tables.events.n; i++) {
		const struct event_row *event = &a->tables.events.items[i];
		if (strncmp(event->kind, "oom_kill", strlen("oom_kill")) == 0 && event->text &&
			strstr(event->text, " at the limit of ")) {
			return true;
		}
	}
	return false;
}

static enum confidence judge_out_of_memory(const struct analysis *a, struct opinion *opinion)
{
	const struct overview *o = &a->overview;
	const struct entity *job = entity_first(&a->tables.entities, ENTITY_JOB);
	int64_t id = job ? job->id : 0;
	enum confidence confidence = out_of_memory(a, id);
	if (confidence == CONFIDENCE_NONE) {
		return confidence;
	}
	text_format(&opinion->headline, "out of memory%s: the kernel killed ",
		confidence == CONFIDENCE_LOW ? " (probably)" : "");
	text_append_string(
		&opinion->headline, o->exit_signal == SIGKILL ? "the job" : "a process of the job");
	text_append_string(propose(opinion), "use a smaller batch or fewer loader workers");
	// If the limit was never reached, the machine had no memory left.
	if (tables_figure(&a->tables, id, NAME_MEMORY_LIMIT_HITS, FIGURE_TOTAL) == 0 &&
		!was_killed_at_limit(a)) {
		text_append_string(&opinion->headline, " when the machine ran out of memory");
	} else if (o->memory_limit_is_cgroup) {
		text_append_string(&opinion->headline, " at its limit of ");
		words_append_limit(&opinion->headline, o->memory_limit_bytes);
		text_append_string(&opinion->next,
			a->tables.reader && reader_run(a->tables.reader, "limit_memory")
				? ", or raise the limit (--memory)"
				: ", or raise the limit (docker run --memory, sbatch --mem)");
	}
	text_append_string(&opinion->headline, " after ");
	words_append_seconds(&opinion->headline, o->duration_s);
	return confidence;
}

#define OTHERS_HOLD 0.1 // of a GPU's memory

// What to do after the device ran out of memory, which others may have held.
static void append_less_memory(const struct analysis *a, struct text *t)
{
	for (size_t i = 0; i < a->overview.n_gpus; i++) {
		const struct gpu_figures *gpu = &a->overview.gpus[i];
		double others = tables_figure(
			&a->tables, gpu->entity, NAME_GPU_OTHERS_MEMORY, FIGURE_MAX);
		if (gpu_owner(a, i) == GPU_OF_JOB && others >= OTHERS_HOLD * gpu->memory_bytes) {
			text_append_string(
				t, "use a GPU that no other program uses (others held up to ");
			words_append_bytes_of(t, others, gpu->memory_bytes);
			text_append_string(t, "), or a smaller batch");
			return;
		}
	}
	text_append_string(t, "use a smaller batch");
}

// A job that failed by itself. What limited it until then does not help to repair it. A job that
// was ended on purpose gets a verdict on its speed.
static enum confidence judge_failed(const struct analysis *a, struct opinion *opinion)
{
	const struct outcome_told *told = &a->overview.outcome;
	bool memory = told->outcome == OUTCOME_OUT_OF_MEMORY;
	if (!told->text || (told->outcome != OUTCOME_CRASH && !memory)) {
		return CONFIDENCE_NONE;
	}
	_cleanup_text_ struct text line = {0};
	text_append_string(&line, a->overview.attached ? "failed " : "failed after ");
	words_append_seconds(&line, a->overview.duration_s);
	text_append_string(&line, a->overview.attached ? " after recording began: " : ": ");
	text_append_string(&line, told->text);
	words_append_elided(&opinion->headline, line.data ? line.data : "", NEXT_COLUMNS);
	if (memory) {
		append_less_memory(a, propose(opinion));
	}
	return CONFIDENCE_HIGH;
}

static enum confidence judge_skipped(const struct analysis *a, struct opinion *opinion)
{
	const struct outcome_told *told = &a->overview.outcome;
	if (told->outcome != OUTCOME_SKIPPED) {
		return CONFIDENCE_NONE;
	}
	_cleanup_text_ struct text line = {0};
	text_format(
		&line, "skipped (exit status %d): %s", EXIT_SKIPPED, told->text ? told->text : "");
	words_append_elided(&opinion->headline, line.data ? line.data : "", NEXT_COLUMNS);
	return CONFIDENCE_HIGH;
}

static enum confidence judge_short(const struct analysis *a, struct opinion *opinion)
{
	const struct overview *o = &a->overview;
	if (o->running_s >= TOO_SHORT_S) {
		return CONFIDENCE_NONE;
	}
	text_append_string(&opinion->headline, o->partial ? "too short for a verdict: recorded "
							  : "too short for a verdict: ran for ");
	overview_append_running(&opinion->headline, o);
	return CONFIDENCE_LOW;
}

static enum confidence judge_gpu(const struct analysis *a, struct opinion *opinion)
{
	const struct gpu_facts *gpu = &opinion->facts->gpu;
	(void)a;
	if (!gpu->used || !(gpu->busy >= SATURATED)) {
		return CONFIDENCE_NONE;
	}
	cause_append_gpu_bound(&opinion->headline, gpu);
	text_append_string(propose(opinion),
		cause_gpu_better_use(gpu, opinion->facts->framework == FRAMEWORK_PYTORCH));
	text_append_string(&opinion->next,
		isfinite(gpu->sm_activity) ? "" : "; the efficiency of the GPU is not known");
	return CONFIDENCE_MEDIUM;
}

// The results of a faulty GPU cannot be trusted, however fast it was.
static enum confidence judge_gpu_fault(const struct analysis *a, struct opinion *opinion)
{
	const struct outcome_told *told = &a->overview.outcome;
	_cleanup_text_ struct text line = {0};
	if (!cause_append_gpu_fault(&line, &opinion->facts->gpu)) {
		return CONFIDENCE_NONE;
	}
	if (told->text && told->outcome == OUTCOME_CRASH) {
		text_append_string(&line, "; the job failed: ");
		text_append_string(&line, told->text);
	}
	words_append_elided(&opinion->headline, line.data ? line.data : "", NEXT_COLUMNS);
	const struct gpu_facts *gpu = &opinion->facts->gpu;
	static const char *const logged[N_GPU_VENDORS] = {
		[GPU_NVIDIA] = "its Xid", [GPU_AMD] = "amdgpu", [GPU_INTEL] = "i915 or xe"};
	static const char *const tools[N_GPU_VENDORS] = {
		[GPU_NVIDIA] = "nvidia-smi -q -d ECC,ROW_REMAPPER",
		[GPU_AMD] = "amd-smi metric --ecc",
		[GPU_INTEL] = "dmesg has its errors"};
	if (gpu->lost_index >= 0) {
		text_format(propose(opinion),
			"use another GPU; look for %s in dmesg, and check its power cables, its "
			"seat and its cooling before a restart of the machine",
			logged[gpu->vendor]);
	} else {
		text_format(propose(opinion), "use another GPU, or reset this one (%s)",
			tools[gpu->vendor]);
	}
	return CONFIDENCE_HIGH;
}

static enum confidence judge_memory(const struct analysis *a, struct opinion *opinion)
{
	const struct overview *o = &a->overview;
	double share = o->memory.peak_bytes / o->memory_limit_bytes;
	double stalled = o->pressure.full[PRESSURE_MEMORY];
	if (!(share >= MEMORY_NEAR) && !(stalled >= MEMORY_STALLED)) {
		return CONFIDENCE_NONE;
	}
	text_append_string(&opinion->headline, "memory near its limit: ");
	if (isfinite(share)) {
		overview_append_memory(&opinion->headline, &o->memory, o->memory_limit_bytes);
	}
	if (stalled >= MEMORY_STALLED) {
		text_append_string(&opinion->headline, isfinite(share) ? ", " : "");
		text_append_string(&opinion->headline, "all tasks stalled for memory ");
		words_append_percent(&opinion->headline, stalled);
		text_append_string(&opinion->headline, " of the time");
	}
	text_append_string(
		propose(opinion), "use a smaller batch, fewer loader workers or a larger limit");
	return stalled >= MEMORY_STALLED ? CONFIDENCE_MEDIUM : CONFIDENCE_LOW;
}

static enum confidence judge_quota(const struct analysis *a, struct opinion *opinion)
{
	const struct overview *o = &a->overview;
	if (!(o->throttled >= THROTTLED)) {
		return CONFIDENCE_NONE;
	}
	cause_append_quota(&opinion->headline, o->cpus);
	text_append_string(&opinion->headline, ", used up in ");
	words_append_percent(&opinion->headline, o->throttled);
	text_append_string(&opinion->headline, " of the periods");
	text_append_string(propose(opinion),
		"raise the quota, or use no more threads and loader workers than it allows");
	return CONFIDENCE_MEDIUM;
}

// What the processes of the job waited for, by samples of their first threads.
static const struct {
	const char *metric, *words;
	bool storage;
} waits[] = {
	{NAME_WAIT "storage", "waits for storage", true},
	{NAME_WAIT "fsync", "waits for fsync", true},
	{NAME_WAIT "network", "waits for the network", false},
	{NAME_WAIT "pipe", "waits at a pipe or in a poll", false},
	{NAME_WAIT "lock", "waits for a lock", false},
	{NAME_WAIT "gil", "waits for Python's lock (GIL)", false},
	{NAME_WAIT "sleep", "sleeps", false},
};

// Of a process: the share of its time that it waited so; NAN: too few samples.
static double waited_so(const struct analysis *a, const struct process_row *row, size_t wait)
{
	double looks = tables_figure(&a->tables, row->entity, NAME_WAIT "looks", FIGURE_TOTAL);
	double waited = tables_figure(&a->tables, row->entity, waits[wait].metric, FIGURE_TOTAL);
	return looks >= LOOKS_ENOUGH ? waited / looks : NAN;
}

// The largest part of its time that a process waited for storage; NAN: not known of any.
static double waited_for_storage(const struct analysis *a)
{
	double most = NAN;
	for (size_t i = 0; i < a->processes.n; i++) {
		double share = NAN;
		for (size_t k = 0; k < ARRAY_LENGTH(waits); k++) {
			share = waits[k].storage
			                ? words_sum(share, waited_so(a, &a->processes.items[i], k))
			                : share;
		}
		most = fmax(most, share); // fmax ignores NAN
	}
	return most;
}

// The pressure of the host is that of other programs, too. The job takes part if its processes were
// seen to wait for storage, or if it moves much (other threads wait unseen).
static bool takes_part(const struct analysis *a, double moved)
{
	double waited = waited_for_storage(a);
	double rate = moved / a->overview.running_s;
	return a->overview.pressure.of_job || waited >= STORAGE_WAITED ||
	       rate >= (isfinite(waited) ? MUCH_MOVED : SOME_MOVED);
}

static enum confidence judge_storage(const struct analysis *a, struct opinion *opinion)
{
	const struct overview *o = &a->overview;
	double stalled = o->pressure.some[PRESSURE_IO];
	double moved = words_sum(o->storage_read_bytes, o->storage_write_bytes);
	if (!(stalled >= STORAGE_STALLED) || o->cpus_used >= SATURATED * o->cpus || !(moved > 0) ||
		!takes_part(a, moved)) {
		return CONFIDENCE_NONE;
	}
	text_append_string(&opinion->headline, "storage-bound: I/O pressure ");
	words_append_percent(&opinion->headline, stalled);
	text_append_string(&opinion->headline, o->pressure.of_job ? "" : " on this host");
	text_append_string(&opinion->headline, "; the job read ");
	words_append_bytes(&opinion->headline, o->storage_read_bytes);
	text_append_string(&opinion->headline, " from disk, wrote ");
	words_append_bytes(&opinion->headline, o->storage_write_bytes);
	if (o->storage_read_bytes / o->running_s >=
		LIMIT_REACHED * overview_disk_read_limit(a->tables.reader)) {
		text_append_string(&opinion->headline, ", as fast as --disk-read allows");
		text_append_string(
			propose(opinion), "make the data fit the page cache, or raise --disk-read");
		return CONFIDENCE_HIGH;
	}
	text_append_string(propose(opinion),
		"make the data fit the page cache, use a faster disk or more loader workers");
	return o->pressure.of_job ? CONFIDENCE_MEDIUM : CONFIDENCE_LOW;
}

static enum confidence judge_cpu(const struct analysis *a, struct opinion *opinion)
{
	const struct overview *o = &a->overview;
	if (!(o->cpus_used >= SATURATED * o->cpus)) {
		return CONFIDENCE_NONE;
	}
	const struct gpu_facts *gpu = &opinion->facts->gpu;
	text_append_string(&opinion->headline, "CPU-bound: the job used ");
	append_cpus_used(&opinion->headline, o);
	append_cpu_split(&opinion->headline, a);
	if (gpu->used && isfinite(gpu->busy)) {
		text_append_string(&opinion->headline, ", GPU busy ");
		words_append_percent(&opinion->headline, gpu->busy);
	}
	if (o->pressure.some[PRESSURE_CPU] >= CPU_STALLED) {
		text_append_string(propose(opinion),
			"use fewer threads or "
			"OMP_WAIT_POLICY=passive; tasks waited for a CPU ");
		words_append_percent(&opinion->next, o->pressure.some[PRESSURE_CPU]);
		text_append_string(&opinion->next, " of the time");
	} else {
		text_append_string(
			propose(opinion), "use more CPUs, or reduce the work per sample");
	}
	return CONFIDENCE_MEDIUM;
}

static enum confidence tell_contention(
	const struct overview *o, struct opinion *opinion, double waited_s, enum confidence sure)
{
	double others = o->host_cpus_used - o->cpus_used, host = o->host_cpus;
	if (!(o->host_cpus_used >= SATURATED * host && others >= 0.25 * host)) {
		return CONFIDENCE_NONE;
	}
	text_append_string(&opinion->headline, "CPU contention");
	text_append_string(&opinion->headline, sure == CONFIDENCE_LOW ? " (probably)" : "");
	text_append_string(&opinion->headline, ": the job used ");
	append_cpus_used(&opinion->headline, o);
	if (waited_s >= WAITED * o->running_s) {
		text_append_string(&opinion->headline, " and waited ");
		words_append_seconds(&opinion->headline, waited_s);
		text_append_string(&opinion->headline, " for a CPU");
	}
	text_append_string(&opinion->headline, "; other programs used ");
	words_append_number(&opinion->headline, others);
	text_append_string(propose(opinion),
		"record the job again on an idle machine: contention hides other bottlenecks");
	return sure;
}

// Others use the CPUs that the job needs. A leader that sleeps until its threads are done does not
// notice that they lack CPUs; the pressure of the job shows it.
static enum confidence judge_contention(const struct analysis *a, struct opinion *opinion)
{
	const struct overview *o = &a->overview;
	bool stalled = o->pressure.of_job && o->pressure.some[PRESSURE_CPU] >= CPU_STALLED;
	return stalled || o->cpu_wait_seconds >= WAITED * o->running_s
	               ? tell_contention(o, opinion, o->cpu_wait_seconds, CONFIDENCE_MEDIUM)
	               : CONFIDENCE_NONE;
}

// By the host's pressure. All waiting tasks may belong to others, so this rule comes after those
// about the job.
static enum confidence judge_starved(const struct analysis *a, struct opinion *opinion)
{
	const struct overview *o = &a->overview;
	return o->pressure.some[PRESSURE_CPU] >= CPU_STALLED && o->cpus_used >= ASLEEP
	               ? tell_contention(o, opinion, NAN, CONFIDENCE_LOW)
	               : CONFIDENCE_NONE;
}

// One process keeps one CPU busy and has most of the job's CPU time: the others wait for it. That
// only one of its threads is busy is a guess.
static bool is_one_thread(const struct overview *o, const struct process_row *row)
{
	return row->cpu_share >= SATURATED && row->cpu_share <= ONE_THREAD_MOST &&
	       row->cpu_seconds >= ONE_THREAD_SHARE * o->cpu_seconds;
}

// What the busy thread should do. Loaders and batches are a framework's.
static void propose_for_one_thread(struct opinion *opinion, bool alone)
{
	const struct facts *f = opinion->facts;
	struct text *t = propose(opinion);
	const struct line_place *line = f->lines.n_tops > 0 ? &f->lines.tops[0] : NULL;
	if (f->lines.looks >= LOOKS_ENOUGH && line && line->share - line->error >= LINE_MAIN) {
		text_append_string(t, "make ");
		words_append_place(t, line->place, 60);
		text_append_string(t, " faster (");
		words_append_percent(t, line->share);
		text_append_string(t, " of the samples of lines are in it), or divide its work "
				      "among threads or processes");
	} else if (f->framework == FRAMEWORK_UNKNOWN) {
		text_append_string(t, f->python
					      ? "find the lines that take the time (strain run "
						"--lines), and make them faster, or divide "
						"their work among threads or processes"
					      : "use more threads (OMP_NUM_THREADS) or processes");
	} else {
		text_append_string(
			t, alone ? "use loader workers, more threads (OMP_NUM_THREADS) "
				   "or a larger batch"
				 : "use more threads (OMP_NUM_THREADS) or a larger batch");
	}
}

static enum confidence judge_one_thread(const struct analysis *a, struct opinion *opinion)
{
	const struct overview *o = &a->overview;
	size_t i = 0;
	while (i < a->processes.n && !is_one_thread(o, &a->processes.items[i])) {
		i++;
	}
	if (!(o->cpus >= 2) || !(o->cpus_used >= SATURATED) || i == a->processes.n) {
		return CONFIDENCE_NONE;
	}
	bool alone = a->processes.items[i].cpu_seconds >= SATURATED * o->cpu_seconds;
	text_append_string(&opinion->headline, "probably limited by a single thread: ");
	text_append_string(&opinion->headline, a->processes.items[i].label);
	text_append_string(&opinion->headline, " kept one of ");
	words_append_number(&opinion->headline, o->cpus);
	text_append_string(&opinion->headline, " CPUs busy");
	if (!alone) {
		text_append_string(&opinion->headline, "; all other processes used ");
		words_append_number(&opinion->headline,
			o->cpus_used - a->processes.items[i].cpu_seconds / o->running_s);
	}
	propose_for_one_thread(opinion, alone);
	return CONFIDENCE_LOW;
}

// Whether the command is Slurm's srun, whose tasks its daemons start: they are no descendants.
static bool is_srun(const char *command)
{
	size_t length = command ? strcspn(command, " ") : 0;
	size_t begin = length;
	while (begin > 0 && command[begin - 1] != '/') {
		begin--;
	}
	return length - begin == strlen("srun") &&
	       strncmp(command + begin, "srun", strlen("srun")) == 0;
}

static enum confidence judge_idle(const struct analysis *a, struct opinion *opinion)
{
	const struct overview *o = &a->overview;
	const struct gpu_facts *gpu = &opinion->facts->gpu;
	if (!(o->cpus_used < IDLE * o->cpus) || (gpu->used && gpu->busy >= IDLE)) {
		return CONFIDENCE_NONE;
	}
	if (is_srun(o->command)) {
		text_append_string(&opinion->headline,
			"the tasks of srun were not recorded: Slurm's daemons start them");
		text_append_string(propose(opinion), "srun strain run ...");
		return CONFIDENCE_HIGH;
	}
	text_append_string(&opinion->headline, "mostly idle: the job used ");
	append_cpus_used(&opinion->headline, o);
	// Of the process that did most: others may wait for its output.
	const struct process_row *busiest = NULL;
	double most = 0;
	size_t wait = 0;
	for (size_t i = 0; i < a->processes.n; i++) {
		const struct process_row *row = &a->processes.items[i];
		bool more = !busiest || row->cpu_seconds > busiest->cpu_seconds;
		busiest = isfinite(row->cpu_seconds) && more ? row : busiest;
	}
	for (size_t i = 0; busiest && i < ARRAY_LENGTH(waits); i++) {
		double share = waited_so(a, busiest, i);
		wait = share > most ? i : wait;
		most = fmax(most, share);
	}
	if (!(most >= 0.5)) {
		text_append_string(&opinion->headline, "; its waits were not measured");
		return CONFIDENCE_LOW;
	}
	text_append_string(&opinion->headline, "; ");
	words_append_elided(&opinion->headline, busiest->label, 40);
	text_format(&opinion->headline, " %s ", waits[wait].words);
	words_append_percent(&opinion->headline, most);
	text_append_string(&opinion->headline, " of its time");
	return CONFIDENCE_MEDIUM;
}

static enum confidence judge_nothing(const struct analysis *a, struct opinion *opinion)
{
	const struct overview *o = &a->overview;
	if (!isfinite(o->cpus_used) || !isfinite(o->cpus)) {
		text_append_string(&opinion->headline,
			"bottleneck unknown: the job's CPU time was not measured");
		return CONFIDENCE_LOW;
	}
	const struct gpu_facts *gpu = &opinion->facts->gpu;
	text_append_string(&opinion->headline, "no resource is at its limit: the job used ");
	append_cpus_used(&opinion->headline, o);
	append_cpu_split(&opinion->headline, a);
	if (gpu->used && isfinite(gpu->busy)) {
		text_append_string(&opinion->headline, ", GPU busy ");
		words_append_percent(&opinion->headline, gpu->busy);
	}
	return CONFIDENCE_LOW;
}

struct rule {
	enum bottleneck bottleneck;
	enum confidence (*judge)(const struct analysis *a, struct opinion *opinion);
};

// Problems that phases cannot outweigh: nothing else is reported of such a job.
static const struct rule failures[] = {
	{BOTTLENECK_FAILED, judge_out_of_memory},
	{BOTTLENECK_GPU_FAULT, judge_gpu_fault},
	{BOTTLENECK_FAILED, judge_failed},
	{BOTTLENECK_UNKNOWN, judge_skipped},
	{BOTTLENECK_UNKNOWN, judge_short},
};

static const struct rule rules[] = {
	{BOTTLENECK_MEMORY, judge_memory},
	{BOTTLENECK_GPU, judge_gpu},
	{BOTTLENECK_CPU_QUOTA, judge_quota},
	{BOTTLENECK_STORAGE, judge_storage},
	{BOTTLENECK_CPU, judge_cpu},
	{BOTTLENECK_CONTENTION, judge_contention},
	{BOTTLENECK_ONE_THREAD, judge_one_thread},
	{BOTTLENECK_CONTENTION, judge_starved},
	{BOTTLENECK_IDLE, judge_idle},
	{BOTTLENECK_UNKNOWN, judge_nothing},
};

static bool has_python(const struct process_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		if (process_row_is_python(&list->items[i])) {
			return true;
		}
	}
	return false;
}

// How a run without iterations can get some, or epochs; "" if it cannot.
static const char *way_to_marks(const struct analysis *a)
{
	bool python = has_python(&a->processes),
	     marks = !a->tables.reader || !reader_run(a->tables.reader, "markers_missing");
	if (a->overview.attached) {
		return ""; // the output of an attached process cannot be read
	}
	if (a->tables.epochs.n > 0) {
		return python && marks ? "to mark iterations in the script: import strain; "
		                         "for batch in strain.iterations(loader):"
		                       : "";
	}
	if (a->overview.epoch_pattern) { // a live run may still get some
		return a->overview.state == RUN_LIVE
		               ? ""
		               : "no line of the searched output matched --epoch-pattern";
	}
	return !marks   ? "to mark epochs: --epoch-pattern REGEX"
	       : python ? "to mark epochs in the script: import strain; for epoch in "
	                  "strain.epochs(range(3)): (or --epoch-pattern REGEX)"
	                : "to mark epochs: --epoch-pattern REGEX, or strain mark epoch 1 in the "
	                  "script";
}

static void judge_by(const struct analysis *a, const struct rule *table, size_t n,
	struct opinion *opinion, struct verdict *ret)
{
	for (size_t i = 0; i < n && !ret->confidence; i++) {
		ret->confidence = table[i].judge(a, opinion);
		ret->bottleneck = table[i].bottleneck;
	}
}

static void judge_by_causes(
	const struct facts *f, const struct causes *c, struct opinion *opinion, struct verdict *ret)
{
	if (!ret->confidence && c->n > 0) {
		ret->confidence = causes_confidence(f, c);
		ret->bottleneck = c->items[0].bottleneck;
		causes_append_headline(&opinion->headline, f, &c->items[0]);
		causes_append_second(&opinion->headline, f, c);
	}
}

// The suggestion that promises by far the most, if that is not the first one, which may be easier.
// NULL: there is none, or the gain of the first is not known.
static const struct suggestion *largest(const struct verdict *v)
{
	const struct suggestion *most = &v->suggestions[0];
	for (size_t i = 1; i < v->n_suggestions; i++) {
		const struct suggestion *s = &v->suggestions[i];
		most = advice_rank(s) > advice_rank(most) ? s : most;
	}
	return advice_rank(most) >= FAR_MORE * v->suggestions[0].gain.value ? most : NULL;
}

// Sets `next` to the first thing to try: "train.py:42  num_workers 2 -> 4: about 1.9 times as
// fast".
static void append_first(struct opinion *opinion, const struct verdict *v)
{
	const struct suggestion *first = v->n_suggestions ? &v->suggestions[0] : NULL;
	if (first && opinion->next.length == 0) {
		struct text *t = propose(opinion);
		text_append_string(t, first->action);
		if (first->tried) {
			text_append_string(t, ": ");
			tried_append(t, first->tried);
		} else if (first->gain.value >= 1.05) {
			text_append_string(t, ": ");
			advice_append_gain(t, first);
		}
		const struct suggestion *most = first->tried ? NULL : largest(v);
		if (most) {
			text_format(t, "; or %s", most->action);
			text_append_string(t, isfinite(most->gain.value) ? ": " : "");
			advice_append_gain(t, most);
		}
	}
}

static int keep_causes(const struct causes *c, struct verdict *ret)
{
	ret->causes = calloc(c->n + 1, sizeof(*ret->causes));
	if (!ret->causes) {
		return -ENOMEM;
	}
	memcpy(ret->causes, c->items, c->n * sizeof(*ret->causes));
	ret->n_causes = c->n;
	return 0;
}

int verdict_build(const struct analysis *a, struct verdict *ret)
{
	*ret = (struct verdict){0};
	struct facts facts;
	struct opinion opinion = {.facts = &facts};
	struct causes causes;
	_cleanup_text_ struct text shares = {0}, needed = {0};
	facts_gather(a, &facts);
	causes_find(&facts, &causes);
	judge_by(a, failures, ARRAY_LENGTH(failures), &opinion, ret);
	bool whole = !ret->confidence;
	if (!whole) {
		causes.n = 0;
	}
	judge_by_causes(&facts, &causes, &opinion, ret);
	judge_by(a, rules, ARRAY_LENGTH(rules), &opinion, ret);
	int r = keep_causes(&causes, ret);
	if (r == 0 && a->tables.reader) {
		r = tried_read(reader_run(a->tables.reader, "tried"), &ret->tried);
	}
	if (r == 0 && whole) {
		r = causes_advise(&facts, &causes, ret);
		r = r < 0 ? r : tried_apply(ret);
		causes_append_needed(&needed, &facts, &causes);
		append_first(&opinion, ret);
	}
	causes_append_shares(&shares, &facts);
	memory_breakdown_find(a, &ret->memory);
	ret->marking = strdup(whole && !facts.iterations ? way_to_marks(a) : "");
	ret->headline = text_steal(&opinion.headline);
	ret->next = text_steal(&opinion.next);
	ret->action = ret->next && opinion.action_at > 0 ? ret->next + opinion.action_at : NULL;
	ret->shares = text_steal(&shares);
	ret->needed = text_steal(&needed);
	bool complete = r == 0 && ret->headline && ret->next && ret->shares && ret->needed &&
	                ret->marking;
	r = complete ? evidence_build(a, &facts, ret) : -ENOMEM;
	if (r < 0) {
		verdict_done(ret);
	}
	return r;
}

static void free_suggestions(struct suggestion *suggestions, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(suggestions[i].action);
		free(suggestions[i].basis);
	}
	free(suggestions);
}

int verdict_judge(struct analysis *a, struct verdict *ret, struct error *e)
{
	int r = verdict_build(a, ret);
	if (r < 0) {
		error_errno(e, -r, "%s", reader_path(a->tables.reader));
		analysis_done(a);
		return r;
	}
	a->verdict = ret;
	return 0;
}

void verdict_done(struct verdict *v)
{
	for (size_t i = 0; i < v->n_evidence; i++) {
		free(v->evidence[i].what);
		free(v->evidence[i].value);
	}
	free(v->evidence);
	free_suggestions(v->suggestions, v->n_suggestions);
	free_suggestions(v->in_vain, v->n_in_vain);
	tried_done(&v->tried);
	free(v->causes);
	free(v->headline);
	free(v->shares);
	free(v->next);
	free(v->marking);
	free(v->needed);
	*v = (struct verdict){0};
}
