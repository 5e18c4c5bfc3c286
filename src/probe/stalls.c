// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Rates, and stalls as ratios of rates.

#include "probe/stalls.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/installation.h"
#include "base/parse.h"
#include "base/text.h"
#include "machine/procfs.h"

#define NORMAL_95 1.96 // quantile of a normal distribution for 95 %

const char *stalls_probe_name(enum probe_kind kind)
{
	static const char *const names[N_STALL_RUNS] = {
		[PROBE_WARM] = "warm", [PROBE_COMPUTE] = "compute", [PROBE_COLD] = "cold"};
	return names[kind];
}

static double error_of(const struct estimate *e)
{
	return (e->high - e->low) / 2 / e->value;
}

// 1 - slow / fast, with relative errors of the ratio added as squares (first order). It is negative
// if the run that should be slower was faster: that is noise, and equal noise is to be expected in
// the other direction.
static struct estimate stall_between(const struct probe_rate *slow, const struct probe_rate *fast)
{
	struct estimate none = {NAN, NAN, NAN};
	double ratio = slow->rate.value / fast->rate.value;
	if (slow->of_samples != fast->of_samples || !(ratio > 0) || !isfinite(ratio)) {
		return none;
	}
	double half = ratio * hypot(error_of(&slow->rate), error_of(&fast->rate));
	return (struct estimate){
		.value = 1 - ratio,
		.low = isfinite(half) ? 1 - ratio - half : NAN,
		.high = isfinite(half) ? fmin(1 - ratio + half, 1) : NAN,
	};
}

// Whether the run that should be slower was faster by more than its own noise.
static bool is_impossible(const struct estimate *stall)
{
	return stall->high < 0;
}

static void widen(struct estimate *stall, double deviation)
{
	double half = hypot(stall->value - stall->low, NORMAL_95 * deviation);
	stall->low = stall->value - half;
	stall->high = fmin(stall->value + half, 1);
}

// A run does not show other load on the machine, which slows all of it down. If there is evidence
// of such load, its size counts as one standard deviation between runs, for both stalls.
static void allow_for_contention(struct stalls *s)
{
	double deviation = fmax(is_impossible(&s->prep) ? -s->prep.value : 0,
		is_impossible(&s->fetch) ? -s->fetch.value : 0);
	if (deviation > 0) {
		widen(&s->prep, deviation);
		widen(&s->fetch, deviation);
	}
	s->contention = deviation > 0;
}

void stalls_compute(const struct probe_rate rates[N_STALL_RUNS], struct stalls *ret)
{
	ret->prep = stall_between(&rates[PROBE_WARM], &rates[PROBE_COMPUTE]);
	ret->fetch = stall_between(&rates[PROBE_COLD], &rates[PROBE_WARM]);
	allow_for_contention(ret);
}

bool stall_is_sure(const struct estimate *stall)
{
	return stall->low > 0;
}

double stall_noise(const struct estimate *stall)
{
	return stall->value - stall->low;
}

// The runs ----------------------------------------------------------------------------------------

// A run that fetched at most this share of its reads from storage was warm.
#define WARM_FETCHED_MAX 0.02
// Share of the dataset that may be cached at the start of a cold run.
#define COLD_CACHED_MAX 0.05
// Share of the dataset that may be cached again during a cold run, before it is dropped again.
#define COOL_AGAIN 0.05
// Share of the free memory that the dataset may use.
#define ROOM 0.8

struct making {
	const struct stall_config *config;
	struct stall_runs *runs;
	char *strain;
	void (*look)(void *context, const pid_t *pids, size_t n); // for the next run
	void *look_context;
	struct dataset_finder finder;
};

static void say(const struct making *m, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void say(const struct making *m, const char *format, ...)
{
	char line[256];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	m->config->say(line);
}

static char *path_in(const struct making *m, const char *name, const char *ending)
{
	struct text path = {0};
	text_format(&path, "%s/%s%s", m->config->folder, name, ending);
	return text_steal(&path);
}

static void set_missing(struct making *m, enum probe_kind kind, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void set_missing(struct making *m, enum probe_kind kind, const char *format, ...)
{
	char *reason = NULL;
	va_list arguments;
	va_start(arguments, format);
	if (vasprintf(&reason, format, arguments) < 0) {
		reason = NULL;
	}
	va_end(arguments);
	free(m->runs->missing[kind]);
	m->runs->missing[kind] = reason;
	m->runs->probes[kind].rate.rate = (struct estimate){NAN, NAN, NAN};
}

// The dataset -------------------------------------------------------------------------------------

// Drops the dataset again: a job that repeats a small dataset would cache it.
static void keep_cold(void *context, const pid_t *pids, size_t n)
{
	const struct dataset *dataset = context;
	struct error e = {0};
	(void)pids;
	(void)n;
	if (dataset_cached(dataset) > COOL_AGAIN) {
		dataset_cool(dataset, &e);
	}
}

static bool goes_on(void *context)
{
	const struct making *m = context;
	return *m->config->interrupted == 0;
}

// Memory available for new pages, in bytes.
static uint64_t memory_room(void)
{
	uint64_t bytes;
	return procfs_meminfo(AT_FDCWD, "MemAvailable", &bytes) == 0
	               ? (uint64_t)(ROOM * (double)bytes)
	               : UINT64_MAX; // not known: leave it to the kernel
}

// One run -----------------------------------------------------------------------------------------

static int run(struct making *m, enum probe_kind kind, const char *setting, struct error *e)
{
	const struct stall_config *config = m->config;
	const char *name = stalls_probe_name(kind);
	_cleanup_free_ char *path = path_in(m, name, ".strain");
	_cleanup_free_ char *output = path_in(m, name, ".out");
	const char *const environment[] = {setting, NULL};
	struct probe *probe = &m->runs->probes[kind];
	if (!path || !output) {
		return error_set(e, ENOMEM, "out of memory");
	}
	unlink(path);
	probe_done(probe);
	m->runs->cached[kind] = dataset_cached(&m->runs->dataset);
	int result = probe_run(&(struct probe_config){.strain = m->strain,
				       .command = config->command,
				       .run = path,
				       .output = output,
				       .overlay = config->overlay,
				       .environment = environment,
				       .error = config->error,
				       .limit_ns = config->limit_ns,
				       .look = m->look,
				       .context = m->look_context,
				       .interrupted = config->interrupted},
		probe, e);
	if (result < 0 || probe->end == PROBE_JOB_FAILED) {
		m->runs->failed_output = take_pointer(output);
		result = result < 0 ? error_prefix(e, "%s run", name)
		                    : error_set(e, ECHILD, "the job failed in the %s run", name);
	}
	if (result == 0 && probe->end == PROBE_INTERRUPTED) {
		result = error_set(e, EINTR, "interrupted");
	}
	if (result == 0 && !isfinite(probe->rate.rate.value)) {
		set_missing(m, kind, "%s", probe->no_rate ? probe->no_rate : "no iterations");
	}
	return result;
}

static void say_rate(const struct making *m, enum probe_kind kind)
{
	const struct probe *p = &m->runs->probes[kind];
	char seconds[32];
	if (isfinite(p->rate.rate.value)) {
		say(m, "%s: %.4g %s/s from %" PRIu64 " iterations in %s%s", stalls_probe_name(kind),
			p->rate.rate.value, p->rate.of_samples ? "samples" : "iterations",
			p->rate.iterations, text_seconds(seconds, sizeof(seconds), p->seconds),
			p->end == PROBE_TIME ? " (less certain than requested: time limit reached)"
					     : "");
	}
}

// The three runs ----------------------------------------------------------------------------------

// Whether the job fetched its data from storage.
static bool was_cold(const struct probe *p)
{
	return !(p->fetched <= WARM_FETCHED_MAX);
}

// Runs the unmodified job, to find the files that it reads; and once more if they were not in the
// page cache.
static int run_warm(struct making *m, struct error *e)
{
	struct stall_runs *runs = m->runs;
	struct dataset_finder *finder = &m->finder;
	say(m, "warm: the unmodified job; finding the files that it reads");
	int result = dataset_find_begin(m->config->folder, &runs->dataset, finder, e);
	if (result == 0) {
		m->look = dataset_find_look;
		m->look_context = finder;
		result = run(m, PROBE_WARM, finder->setting, e);
		m->look = NULL;
	}
	result = result == 0 ? dataset_find_end(finder, e) : result;
	dataset_find_done(finder);
	if (result < 0 || runs->dataset.n == 0 || !was_cold(&runs->probes[PROBE_WARM])) {
		return result;
	}
	result = dataset_warm(&runs->dataset, memory_room(), goes_on, m, e);
	if (result == -ENOSPC) {
		say(m, "%s: the warm run reads a part of it from storage", e->text);
		*e = (struct error){0};
		return 0;
	}
	if (result == 0) {
		say(m, "warm: repeated, with its data in the page cache");
		result = run(m, PROBE_WARM, NULL, e);
	}
	return result;
}

static int run_compute(struct making *m, struct error *e)
{
	const struct probe *warm = &m->runs->probes[PROBE_WARM];
	const struct probe *probe = &m->runs->probes[PROBE_COMPUTE];
	if (!warm->hooked) {
		set_missing(m, PROBE_COMPUTE,
			"prepared batches can be reused only if a hook was loaded: %s",
			warm->hooks_missing ? warm->hooks_missing : "no framework with hooks");
		return 0;
	}
	say(m, "compute: reusing the same batches");
	int result = run(m, PROBE_COMPUTE, "STRAIN_REPLAY=1", e);
	if (result == 0 && isfinite(probe->rate.rate.value) && !probe->replayed) {
		set_missing(m, PROBE_COMPUTE, "its loader cannot reuse batches");
	}
	return result;
}

static int run_cold(struct making *m, struct error *e)
{
	struct stall_runs *runs = m->runs;
	if (runs->dataset.n == 0) {
		set_missing(m, PROBE_COLD, "the job read no data files");
		return 0;
	}
	int result = dataset_cool(&runs->dataset, e);
	if (result < 0) {
		set_missing(m, PROBE_COLD, "%s", e->text);
		*e = (struct error){0};
		return 0;
	}
	double cached = dataset_cached(&runs->dataset);
	if (cached > COLD_CACHED_MAX) {
		set_missing(m, PROBE_COLD,
			"%.0f %% of its data remains in memory (a file system in memory, or mapped "
			"by another process)",
			cached * 100);
		return 0;
	}
	say(m, "cold: its data dropped from the page cache");
	m->look = keep_cold;
	m->look_context = &runs->dataset;
	return run(m, PROBE_COLD, NULL, e);
}

int stall_runs_make(const struct stall_config *config, struct stall_runs *ret, struct error *e)
{
	static int (*const makings[N_STALL_RUNS])(struct making * m, struct error * e) = {
		[PROBE_WARM] = run_warm, [PROBE_COMPUTE] = run_compute, [PROBE_COLD] = run_cold};
	struct making m = {
		.config = config, .runs = ret, .strain = installation_find("strain", X_OK, e)};
	*ret = (struct stall_runs){.cached = {NAN, NAN, NAN}};
	int result = m.strain ? 0 : -ENOENT;
	for (enum probe_kind kind = 0; kind < N_STALL_RUNS && result == 0; kind++) {
		result = makings[kind](&m, e);
		say_rate(&m, kind);
		if (result == 0 && kind == PROBE_WARM && ret->missing[kind]) {
			result = error_set(
				e, ENODATA, "no rate in the warm run: %s", ret->missing[kind]);
		}
	}
	struct probe_rate rates[N_STALL_RUNS];
	for (enum probe_kind kind = 0; kind < N_STALL_RUNS; kind++) {
		rates[kind] = ret->probes[kind].rate;
	}
	stalls_compute(rates, &ret->stalls);
	free(m.strain);
	return result;
}

void stall_runs_done(struct stall_runs *runs)
{
	for (enum probe_kind kind = 0; kind < N_STALL_RUNS; kind++) {
		probe_done(&runs->probes[kind]);
		free(runs->missing[kind]);
	}
	dataset_done(&runs->dataset);
	free(runs->failed_output);
	*runs = (struct stall_runs){0};
}
