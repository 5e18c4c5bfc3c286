// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Time in which a process was stopped, from looks at its state some 100 ms apart. A tracer stops
// its program at every system call, for microseconds: a stop counts where two looks in a row met it
// and the process has not run in between. Its edges are between two looks, on average in the
// middle.

#include "record/source/process_internal.h"

#include "base/clock.h"

#define RAN 50 // more than one part in this many of the time: it ran

void process_stopped_look(struct stopped *s, bool is, uint64_t cpu_ns, uint64_t now_ns)
{
	uint64_t since_ns = s->seen_ns > 0 && now_ns > s->seen_ns ? now_ns - s->seen_ns : 0;
	uint64_t ran_ns = cpu_ns > s->cpu_ns ? cpu_ns - s->cpu_ns : 0;
	bool whole = is && s->is && ran_ns <= since_ns / RAN;
	if (whole) {
		s->ns += since_ns + s->edge_ns;
	} else if (s->counted) {
		s->ns += since_ns / 2;
	}
	s->edge_ns = is && !s->is ? since_ns / 2 : 0;
	s->counted = whole;
	s->is = is;
	s->seen_ns = now_ns;
	s->cpu_ns = cpu_ns;
}

int process_read_job_stopped(void *state, struct sink *sink, uint64_t now_ns)
{
	struct process_source *s = state;
	const int64_t values[N_JOB_STOPPED] = {
		[JOB_STOPPED] = (int64_t)(s->stopped.ns / NS_PER_US)};
	if (!s->job_stopped_stream && s->job) {
		s->job_stopped_stream = sink_stream(
			sink, s->job, &process_groups[GROUP_JOB_STOPPED]);
	}
	stream_row(s->job_stopped_stream, now_ns, values);
	return 0;
}
