// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Pressure (PSI): how long the machine's tasks waited for CPU, memory and storage.

#include "record/source/source.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "record/host/file.h"
#include "record/host/pressure.h"

enum { SOME, FULL, N_EACH };
static const struct metric cpu_metrics[N_EACH] = {
	[SOME] = {"strain.pressure.cpu.some", METRIC_COUNTER, "s", 1e-6,
		"Time that at least one task of the machine was ready to run and had no CPU "
		"(/proc/pressure/cpu)."},
	[FULL] = {"strain.pressure.cpu.full", METRIC_COUNTER, "s", 1e-6,
		"Time that no task could run for want of a CPU: always 0 for a whole machine, "
		"where "
		"somebody holds the CPU (/proc/pressure/cpu, Linux 5.13)."},
};
static const struct metric memory_metrics[N_EACH] = {
	[SOME] = {"strain.pressure.memory.some", METRIC_COUNTER, "s", 1e-6,
		"Time that at least one task waited for memory: reclaim, swap, refaults of the "
		"page "
		"cache (/proc/pressure/memory)."},
	[FULL] = {"strain.pressure.memory.full", METRIC_COUNTER, "s", 1e-6,
		"Time that all tasks which were not idle waited for memory at once "
		"(/proc/pressure/memory)."},
};
static const struct metric io_metrics[N_EACH] = {
	[SOME] = {"strain.pressure.io.some", METRIC_COUNTER, "s", 1e-6,
		"Time that at least one task waited for storage (/proc/pressure/io)."},
	[FULL] = {"strain.pressure.io.full", METRIC_COUNTER, "s", 1e-6,
		"Time that all tasks which were not idle waited for storage at once "
		"(/proc/pressure/io)."},
};

static int read_cpu(void *state, struct sink *sink, uint64_t now_ns);
static int read_memory(void *state, struct sink *sink, uint64_t now_ns);
static int read_io(void *state, struct sink *sink, uint64_t now_ns);

enum { GROUP_CPU, GROUP_MEMORY, GROUP_IO, N_GROUPS };
static const struct group groups[N_GROUPS] = {
	[GROUP_CPU] = {"cpu", ENTITY_HOST, cpu_metrics, N_EACH, 100 * NS_PER_MS, read_cpu},
	[GROUP_MEMORY] = {"memory", ENTITY_HOST, memory_metrics, N_EACH, 100 * NS_PER_MS,
		read_memory},
	[GROUP_IO] = {"io", ENTITY_HOST, io_metrics, N_EACH, 100 * NS_PER_MS, read_io},
};

static const char *const paths[N_GROUPS] = {
	[GROUP_CPU] = "proc/pressure/cpu",
	[GROUP_MEMORY] = "proc/pressure/memory",
	[GROUP_IO] = "proc/pressure/io",
};

struct pressure_source {
	struct host_file files[N_GROUPS];
	struct stream *streams[N_GROUPS];
	int64_t host;
};

// Opens and reads once: where pressure is switched off only reading says so.
static int try_file(struct pressure_source *s, int root_fd, int group)
{
	struct cursor text = {0};
	struct pressure p;
	int r = host_file_open(&s->files[group], root_fd, paths[group], NULL);
	if (r == 0) {
		r = host_file_read(&s->files[group], &text);
	}
	return r < 0 ? r : pressure_parse(text, &p);
}

static int read_group(struct pressure_source *s, struct sink *sink, int group, uint64_t now_ns)
{
	struct cursor text;
	struct pressure p;
	if (s->files[group].fd < 0) {
		return -ENOENT; // said when the source was opened
	}
	int r = host_file_read(&s->files[group], &text);
	r = r < 0 ? r : pressure_parse(text, &p);
	if (r < 0) {
		sink_missing_group(sink, s->host, &groups[group], pressure_reason(-r));
		return r;
	}
	if (!s->streams[group]) {
		s->streams[group] = sink_stream(sink, s->host, &groups[group]);
		if (p.full_us == KEYED_ABSENT) {
			sink_missing(sink, s->host, &groups[group], FULL,
				"this kernel does not tell it; Linux 5.13 does");
		}
	}
	const int64_t values[N_EACH] = {[SOME] = p.some_us, [FULL] = p.full_us};
	stream_row(s->streams[group], now_ns, values);
	return 0;
}

static int read_cpu(void *state, struct sink *sink, uint64_t now_ns)
{
	return read_group(state, sink, GROUP_CPU, now_ns);
}

static int read_memory(void *state, struct sink *sink, uint64_t now_ns)
{
	return read_group(state, sink, GROUP_MEMORY, now_ns);
}

static int read_io(void *state, struct sink *sink, uint64_t now_ns)
{
	return read_group(state, sink, GROUP_IO, now_ns);
}

static void pressure_close(void *state)
{
	struct pressure_source *s = state;
	for (size_t i = 0; s && i < N_GROUPS; i++) {
		host_file_close(&s->files[i]);
	}
	free(s);
}

static int pressure_open(
	const struct source_context *context, struct sink *sink, void **ret_state, struct error *e)
{
	struct pressure_source *s = calloc(1, sizeof(*s));
	if (!s) {
		return error_errno(e, ENOMEM, "pressure");
	}
	s->host = context->host;
	unsigned opened = 0;
	int failed = 0;
	for (int i = 0; i < N_GROUPS; i++) {
		s->files[i] = HOST_FILE_CLOSED;
		int r = try_file(s, context->root_fd, i);
		if (r < 0) {
			host_file_close(&s->files[i]);
			sink_missing_group(sink, s->host, &groups[i], pressure_reason(-r));
			failed = r;
		} else {
			opened++;
		}
	}
	if (opened == 0) {
		pressure_close(s);
		return error_set(e, -failed, "%s", pressure_reason(-failed));
	}
	*ret_state = s;
	return 0;
}

const struct source source_pressure = {
	.name = "pressure",
	.help = "how long tasks waited for CPU, memory and storage",
	.lane = LANE_TICK,
	.groups = groups,
	.n_groups = N_GROUPS,
	.open = pressure_open,
	.close = pressure_close,
};
