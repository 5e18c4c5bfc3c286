// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// When a trial has shown enough: the plan's stop rules, held against the run file that is still
// being recorded.

#pragma once

#include <stdint.h>

#include "base/text.h"
#include "experiment/plan.h"

enum stop_reason { STOP_NOT, STOP_EPOCHS, STOP_SECONDS, STOP_STEP_ERROR, STOP_TIMEOUT };

struct stop_watch {
	const struct plan *plan;
	const char *run; // path of the run file
	uint64_t start_ns; // CLOCK_MONOTONIC
	uint64_t next_epochs_ns; // when to look again
	uint64_t next_steps_ns;
	uint64_t epochs; // that were done when one looked last
	double step_error; // then; NAN: not known
};

void stop_watch_start(struct stop_watch *w, const struct plan *plan, const char *run);
// The first rule that is met now. Cheap where nothing is due.
enum stop_reason stop_watch_look(struct stop_watch *w);
// How long one may sleep before something is due; at most 250 ms.
int stop_watch_due_ms(const struct stop_watch *w);
// "stopped after 3 epochs"
void stop_watch_append_reason(struct text *t, const struct stop_watch *w, enum stop_reason reason);
