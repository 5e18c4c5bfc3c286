// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Stop rules.

#include "experiment/stop.h"

#include <inttypes.h>
#include <math.h>

#include "analyze/analysis.h"
#include "analyze/words.h"
#include "base/clock.h"
#include "trace/reader.h"

#define LOOK_MS 250
// Looking costs the job's machine something: at most one part in this many of the time.
#define LOOK_SHARE 40
#define STEPS_SOONEST_NS NS_PER_S
#define STEPS_LEAST 24 // what was prefetched at the start is few of them

void stop_watch_start(struct stop_watch *w, const struct plan *plan, const char *run)
{
	uint64_t now_ns = clock_monotonic_ns();
	*w = (struct stop_watch){
		.plan = plan,
		.run = run,
		.start_ns = now_ns,
		.next_epochs_ns = now_ns + LOOK_MS * NS_PER_MS,
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
		return 0; // it may be there later
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

// Half of the 95 % interval over the mean.
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

enum stop_reason stop_watch_look(struct stop_watch *w)
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
		w->next_epochs_ns = next_look(now_ns, LOOK_MS * NS_PER_MS);
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

int stop_watch_due_ms(const struct stop_watch *w)
{
	double passed_s = (double)(clock_monotonic_ns() - w->start_ns) / 1e9, due_s = LOOK_MS / 1e3;
	if (w->plan->stop.seconds > 0) {
		due_s = fmin(due_s, w->plan->stop.seconds - passed_s);
	}
	if (w->plan->timeout_s > 0) {
		due_s = fmin(due_s, w->plan->timeout_s - passed_s);
	}
	return due_s > 0 ? (int)ceil(due_s * 1e3) : 0;
}

void stop_watch_append_reason(struct text *t, const struct stop_watch *w, enum stop_reason reason)
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
		text_append_string(t, "stopped when its step was known to ");
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
