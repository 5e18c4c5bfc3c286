// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The recorder's own cost.

#include "record/own_cost.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "machine/file.h"
#include "machine/procfs.h"
#include "record/sample/feed.h"
#include "record/sample/source.h"

#define SOURCES_MAX 32u

enum {
	SELF_CPU,
	SELF_MEMORY,
	SELF_DUE,
	SELF_LATE,
	SELF_MISSED,
	SELF_INTERVAL,
	SELF_QUEUE,
	SELF_LOST,
	N_SELF
};
static const struct metric own_cost_metrics[N_SELF] = {
	[SELF_CPU] = {"process.cpu.time", METRIC_COUNTER, "s", 1e-6,
		"CPU time of all threads of the recorder."},
	[SELF_MEMORY] = {"process.memory.usage", METRIC_GAUGE, "By", 1024,
		"Resident memory of the recorder (statm)."},
	[SELF_DUE] = {"strain.recorder.ticks.due", METRIC_COUNTER, "{tick}", 1,
		"Ticks that were due."},
	[SELF_LATE] = {"strain.recorder.ticks.late", METRIC_COUNTER, "{tick}", 1,
		"Ticks that were more than one interval late."},
	[SELF_MISSED] = {"strain.recorder.ticks.missed", METRIC_COUNTER, "{tick}", 1,
		"Ticks skipped because the previous one was still running."},
	[SELF_INTERVAL] = {"strain.recorder.interval", METRIC_GAUGE, "s", 1e-6,
		"Interval between ticks, including any lengthening to stay within --overhead."},
	[SELF_QUEUE] = {"strain.recorder.queue", METRIC_GAUGE, "By", 1,
		"Readings waiting to be written."},
	[SELF_LOST] = {"strain.recorder.lost", METRIC_COUNTER, "{row}", 1,
		"Rows dropped because the queue was full: writing was too slow."},
};

static const struct group own_cost_group = {
	"self", ENTITY_RECORDER, own_cost_metrics, N_SELF, NS_PER_S, NULL, SHARED_NOT};

struct self {
	struct group groups[2]; // own_cost_group, and the time spent in each source
	struct metric times[SOURCES_MAX];
	char names[SOURCES_MAX][64];
	struct stream *streams[2];
	int64_t entity;
	int statm_fd;
	int64_t kib_per_page;
};

int own_cost_new(struct registry *registry, struct self **ret)
{
	struct self *self = calloc(1, sizeof(*self));
	if (!self) {
		return -ENOMEM;
	}
	size_t n = 0;
	for (; n < SOURCES_MAX && source_list[n]; n++) {
		snprintf(self->names[n], sizeof(self->names[n]), "strain.recorder.time.%s",
			source_list[n]->name);
		self->times[n] = (struct metric){self->names[n], METRIC_COUNTER, "s", 1e-6,
			"Time spent reading this source, including waits."};
	}
	self->groups[0] = own_cost_group;
	self->groups[1] = (struct group){
		"times", ENTITY_RECORDER, self->times, n, NS_PER_S, NULL, SHARED_NOT};
	self->kib_per_page = sysconf(_SC_PAGESIZE) / 1024;
	self->statm_fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	if (registry_add(registry, "recorder", &self->groups[0]) < 0 ||
		registry_add(registry, "recorder", &self->groups[1]) < 0) {
		own_cost_free(self);
		return -ENOMEM;
	}
	*ret = self;
	return 0;
}

void own_cost_free(struct self *self)
{
	if (self && self->statm_fd >= 0) {
		close(self->statm_fd);
	}
	free(self);
}

const struct group *own_cost_groups(const struct self *self, size_t *ret_n)
{
	*ret_n = ARRAY_LENGTH(self->groups);
	return self->groups;
}

int64_t own_cost_announce(struct self *self, struct sink *sink, uint64_t now_ns)
{
	char key[32];
	snprintf(key, sizeof(key), "%d", (int)getpid());
	self->entity = sink_entity(sink, &(struct sink_entity){.kind = ENTITY_RECORDER,
						 .key = key,
						 .name = "strain-record",
						 .first_ns = now_ns});
	for (size_t i = 0; i < ARRAY_LENGTH(self->groups); i++) {
		self->streams[i] = sink_stream(sink, self->entity, &self->groups[i]);
	}
	return self->entity;
}

static int64_t resident_kib(const struct self *self)
{
	char buffer[128];
	struct cursor text;
	struct proc_statm statm;
	if (self->statm_fd < 0 || file_pread(self->statm_fd, buffer, sizeof(buffer), &text) < 0 ||
		proc_statm_parse(text, &statm) < 0) {
		return VALUE_MISSING;
	}
	return (int64_t)statm.resident_pages * self->kib_per_page;
}

uint64_t own_cost_read(struct self *self, const struct sampler *sampler, struct feed *feed,
	double slow, uint64_t interval_ns, uint64_t now_ns)
{
	uint64_t cpu_ns = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
	struct sampler_ticks ticks = sampler_ticks(sampler);
	const int64_t values[N_SELF] = {
		[SELF_CPU] = (int64_t)(cpu_ns / NS_PER_US),
		[SELF_MEMORY] = resident_kib(self),
		[SELF_DUE] = (int64_t)ticks.due,
		[SELF_LATE] = (int64_t)ticks.late,
		[SELF_MISSED] = (int64_t)ticks.missed,
		[SELF_INTERVAL] = (int64_t)((double)interval_ns * slow / 1e3),
		[SELF_QUEUE] = (int64_t)feed_bytes(feed),
		[SELF_LOST] = (int64_t)feed_lost_rows(feed),
	};
	int64_t times[SOURCES_MAX];
	for (size_t i = 0; i < self->groups[1].n_metrics; i++) {
		times[i] = (int64_t)(sampler_source_ns(sampler, i) / NS_PER_US);
	}
	stream_row(self->streams[0], now_ns, values);
	stream_row(self->streams[1], now_ns, times);
	return cpu_ns;
}
