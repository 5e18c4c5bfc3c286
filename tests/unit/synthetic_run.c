// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A synthetic run: tables of metrics with a shape for each, computed tick by tick.

#include "synthetic_marks.h"
#include "synthetic_run.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "runfile/writer.h"

enum { MAX_METRICS = 10, ROWS_PER_BLOCK = 1000, N_EPOCHS = 3 };

// The behaviour of a metric. A counter grows by `level` per second, a gauge is at `level`. `input`
// and `compute` are factors for the two halves of an epoch; `noise` is relative.
struct shape {
	struct metric metric;
	double level;
	double input;
	double compute;
	double noise;
	double step; // resolution of the kernel's counter
};

struct synthetic_group {
	const char *source;
	enum entity_kind kind;
	unsigned ticks; // ticks between readings; 0: it can never be read
	const struct shape *shapes; // terminated by a shape without name
};

#define COUNTER(name, unit, scale, help)                \
	{                                               \
		name, METRIC_COUNTER, unit, scale, help \
	}
#define GAUGE(name, unit, scale, help)                \
	{                                             \
		name, METRIC_GAUGE, unit, scale, help \
	}

static const struct shape process_cpu[] = {
	{COUNTER("process.cpu.time", "s", 1e-6, "CPU time."), 800000, 1, 0.6, 0.05, 1},
	{{0}, 0, 0, 0, 0, 0},
};
static const struct shape process_stat[] = {
	{COUNTER("strain.cpu.time.user", "s", 1e-6, "CPU time in user mode."), 700000, 1, 0.6, 0,
		10000},
	{COUNTER("strain.cpu.time.system", "s", 1e-6, "CPU time in the kernel."), 100000, 1, 0.6, 0,
		10000},
	{COUNTER("strain.cpu.wait", "s", 1e-6, "Time ready to run, waiting."), 20000, 1, 1, 0.5, 1},
	{COUNTER("process.paging.faults.minor", "{fault}", 1, "Faults without I/O."), 300, 1, 0.2,
		0.5, 1},
	{COUNTER("process.paging.faults.major", "{fault}", 1, "Faults with I/O."), 0.5, 1, 0, 0, 1},
	{COUNTER("process.context_switches.voluntary", "{switch}", 1, "Waits."), 200, 1, 1, 0.3, 1},
	{COUNTER("process.context_switches.involuntary", "{switch}", 1, "Preemptions."), 20, 1, 1,
		0.3, 1},
	{GAUGE("process.thread.count", "{thread}", 1, "Threads."), 6, 1, 1, 0, 1},
	{{0}, 0, 0, 0, 0, 0},
};
static const struct shape process_memory[] = {
	{GAUGE("process.memory.usage", "By", 1, "Resident memory."), 900e6, 1, 1.05, 0.001, 4096},
	{{0}, 0, 0, 0, 0, 0},
};
static const struct shape process_pss[] = {
	{GAUGE("strain.memory.pss", "By", 1, "Proportional memory."), 450e6, 1, 1.05, 0.001, 1024},
	{GAUGE("strain.memory.anonymous", "By", 1, "Anonymous memory."), 400e6, 1, 1.05, 0.001,
		1024},
	{GAUGE("strain.memory.file", "By", 1, "Mapped files."), 40e6, 1, 1, 0, 1024},
	{GAUGE("strain.memory.shmem", "By", 1, "Shared memory."), 10e6, 1, 1, 0.01, 1024},
	{{0}, 0, 0, 0, 0, 0},
};
static const struct shape process_io[] = {
	{COUNTER("process.disk.io.read", "By", 1, "Bytes from storage."), 8e6, 1, 0.1, 0.2, 4096},
	{COUNTER("process.disk.io.write", "By", 1, "Bytes to storage."), 2e4, 1, 1, 0.5, 4096},
	{COUNTER("strain.io.read", "By", 1, "Bytes asked for."), 30e6, 1, 0.5, 0.2, 1},
	{COUNTER("strain.io.write", "By", 1, "Bytes written."), 2e4, 1, 1, 0.5, 1},
	{{0}, 0, 0, 0, 0, 0},
};
static const struct shape host_cpu[] = {
	{COUNTER("system.cpu.time.user", "s", 1e-6, "CPU time in user mode."), 2.0e6, 1, 0.6, 0,
		10000},
	{COUNTER("system.cpu.time.nice", "s", 1e-6, "CPU time of niced processes."), 0, 1, 1, 0,
		10000},
	{COUNTER("system.cpu.time.system", "s", 1e-6, "CPU time in the kernel."), 0.3e6, 1, 0.6, 0,
		10000},
	{COUNTER("system.cpu.time.idle", "s", 1e-6, "Idle time."), 1.4e6, 1, 1.9, 0, 10000},
	{COUNTER("system.cpu.time.iowait", "s", 1e-6, "Idle with I/O."), 0.25e6, 1, 0.1, 0, 10000},
	{COUNTER("system.cpu.time.irq", "s", 1e-6, "Interrupts."), 0, 1, 1, 0, 10000},
	{COUNTER("system.cpu.time.softirq", "s", 1e-6, "Soft interrupts."), 0.02e6, 1, 1, 0, 10000},
	{COUNTER("system.cpu.time.steal", "s", 1e-6, "Stolen time."), 0, 1, 1, 0, 10000},
	{{0}, 0, 0, 0, 0, 0},
};
static const struct shape host_memory[] = {
	{GAUGE("system.memory.usage.used", "By", 1, "Memory in use."), 3.2e9, 1, 1.03, 0.002, 1024},
	{GAUGE("system.memory.usage.free", "By", 1, "Free memory."), 8e9, 1, 0.97, 0.002, 1024},
	{GAUGE("system.memory.usage.cached", "By", 1, "Page cache."), 4e9, 1, 1, 0.001, 1024},
	{GAUGE("system.memory.usage.buffers", "By", 1, "Buffers."), 2e8, 1, 1, 0, 1024},
	{GAUGE("system.memory.limit", "By", 1, "Memory of the host."), 16777216000, 1, 1, 0, 1024},
	{{0}, 0, 0, 0, 0, 0},
};
static const struct shape host_pressure[] = {
	{COUNTER("strain.pressure.cpu.some", "s", 1e-6, "Some task waits for a CPU."), 90000, 1,
		0.3, 0.3, 1},
	{COUNTER("strain.pressure.memory.some", "s", 1e-6, "Some task waits for memory."), 0, 1, 1,
		0, 1},
	{COUNTER("strain.pressure.memory.full", "s", 1e-6, "All tasks wait for memory."), 0, 1, 1,
		0, 1},
	{COUNTER("strain.pressure.io.some", "s", 1e-6, "Some task waits for I/O."), 60000, 1, 0.1,
		0.3, 1},
	{COUNTER("strain.pressure.io.full", "s", 1e-6, "All tasks wait for I/O."), 40000, 1, 0.1,
		0.3, 1},
	{{0}, 0, 0, 0, 0, 0},
};
static const struct shape disk_io[] = {
	{COUNTER("system.disk.io.read", "By", 1, "Bytes read."), 24e6, 1, 0.1, 0.2, 512},
	{COUNTER("system.disk.io.write", "By", 1, "Bytes written."), 1e5, 1, 1, 0.5, 512},
	{COUNTER("system.disk.operations.read", "{operation}", 1, "Reads."), 180, 1, 0.1, 0.2, 1},
	{COUNTER("system.disk.operations.write", "{operation}", 1, "Writes."), 4, 1, 1, 0.5, 1},
	{COUNTER("strain.disk.busy_time", "s", 1e-6, "Time with requests."), 300000, 1, 0.1, 0.2,
		1000},
	{COUNTER("strain.disk.queue_time", "s", 1e-6, "Time of requests, summed."), 500000, 1, 0.1,
		0.3, 1000},
	{{0}, 0, 0, 0, 0, 0},
};
static const struct shape network_io[] = {
	{COUNTER("system.network.io.receive", "By", 1, "Bytes received."), 12000, 1, 1, 0.9, 1},
	{COUNTER("system.network.io.transmit", "By", 1, "Bytes sent."), 3000, 1, 1, 0.9, 1},
	{COUNTER("system.network.packets.receive", "{packet}", 1, "Packets received."), 20, 1, 1,
		0.9, 1},
	{COUNTER("system.network.packets.transmit", "{packet}", 1, "Packets sent."), 10, 1, 1, 0.9,
		1},
	{{0}, 0, 0, 0, 0, 0},
};
static const struct shape gpu_state[] = {
	{GAUGE("hw.gpu.utilization", "1", 0.01, "A kernel was resident."), 45, 0.5, 2, 0.1, 1},
	{GAUGE("hw.gpu.memory.usage", "By", 1, "Memory in use."), 5.1e9, 1, 1, 0, 1048576},
	{GAUGE("hw.gpu.memory.limit", "By", 1, "Memory of the device."), 17179869184, 1, 1, 0,
		1048576},
	{COUNTER("strain.gpu.pcie.host_to_device", "By", 1, "Host to device."), 90e6, 0.5, 1.5, 0.2,
		1},
	{COUNTER("strain.gpu.pcie.device_to_host", "By", 1, "Device to host."), 2e6, 0.5, 1.5, 0.2,
		1},
	{GAUGE("hw.power", "W", 0.001, "Power drawn."), 120000, 0.7, 1.6, 0.05, 1},
	{COUNTER("hw.energy", "J", 0.001, "Energy used."), 120000, 0.7, 1.6, 0.05, 1},
	{GAUGE("hw.temperature", "Cel", 1, "Temperature of the die."), 58, 0.97, 1.05, 0, 1},
	{GAUGE("strain.gpu.clock.sm", "Hz", 1e6, "Clock of the multiprocessors."), 1410, 1, 1, 0,
		15},
	{{0}, 0, 0, 0, 0, 0},
};
static const struct shape gpu_activity[] = {
	{GAUGE("strain.gpu.sm.activity", "1", 0.001, "Multiprocessors with a warp."), 0, 1, 1, 0,
		1},
	{{0}, 0, 0, 0, 0, 0},
};
static const struct shape recorder_ticks[] = {
	{COUNTER("process.cpu.time", "s", 1e-6, "CPU time."), 4000, 1, 1, 0.2, 1},
	{GAUGE("process.memory.usage", "By", 1, "Resident memory."), 9e6, 1, 1, 0, 4096},
	{COUNTER("strain.recorder.ticks.due", "{tick}", 1, "Ticks that were due."), 100, 1, 1, 0,
		1},
	{COUNTER("strain.recorder.ticks.late", "{tick}", 1, "Late by more than a tick."), 0.05, 1,
		1, 0, 1},
	{COUNTER("strain.recorder.ticks.missed", "{tick}", 1, "Left out."), 0.02, 1, 1, 0, 1},
	{{0}, 0, 0, 0, 0, 0},
};

static const struct synthetic_group groups[] = {
	{"processes", ENTITY_PROCESS, 1, process_cpu},
	{"processes", ENTITY_PROCESS, 10, process_stat},
	{"processes", ENTITY_PROCESS, 1, process_memory},
	{"processes", ENTITY_PROCESS, 10, process_io},
	{"memory", ENTITY_PROCESS, 500, process_pss},
	{"cgroup", ENTITY_JOB, 1, process_cpu},
	{"cgroup", ENTITY_JOB, 10, process_stat},
	{"cgroup", ENTITY_JOB, 10, process_pss},
	{"processes", ENTITY_JOB, 10, process_io},
	{"host", ENTITY_HOST, 1, host_cpu},
	{"host", ENTITY_HOST, 10, host_memory},
	{"pressure", ENTITY_HOST, 10, host_pressure},
	{"disk", ENTITY_DISK, 10, disk_io},
	{"network", ENTITY_NETWORK, 10, network_io},
	{"nvml", ENTITY_GPU, 10, gpu_state},
	{"nvml", ENTITY_GPU, 0, gpu_activity},
	{"recorder", ENTITY_RECORDER, 100, recorder_ticks},
};

struct synthetic_subject {
	enum entity_kind kind;
	const char *key;
	const char *name;
	int64_t parent;
	double factor; // for all levels
	const char *attributes;
};

// Indexed by enum synthetic_entity.
static const struct synthetic_subject subjects[] = {
	{ENTITY_HOST, "node1", "node1", 0, 1,
		"{\"cpus\":4,\"numa_nodes\":1,\"memory_bytes\":16777216000,"
		"\"model\":\"Example CPU\"}"},
	{ENTITY_JOB, "job", "train.py", SYNTHETIC_HOST, 2.4, "{}"},
	{ENTITY_PROCESS, "4242:100", "python3", SYNTHETIC_JOB, 1,
		"{\"pid\":4242,\"command\":[\"python3\",\"train.py\",\"--workers\",\"2\"],"
		"\"exit_status\":0}"},
	{ENTITY_PROCESS, "4250:130", "pt_data_worker", SYNTHETIC_MAIN, 0.7,
		"{\"pid\":4250,\"command\":[\"python3\",\"train.py\",\"--workers\",\"2\"],"
		"\"exit_status\":0}"},
	{ENTITY_PROCESS, "4251:131", "<b>worker</b>", SYNTHETIC_MAIN, 0.7,
		"{\"pid\":4251,\"command\":[\"python3\",\"<script>alert(1)</script>\"],"
		"\"exit_status\":0}"},
	{ENTITY_GPU, "GPU-5bd1e4a2-0000-0000-0000-000000000000", "Example GPU 16GB", SYNTHETIC_HOST,
		1,
		"{\"index\":0,\"memory_bytes\":17179869184,\"pcie_generation\":3,"
		"\"pcie_width\":16}"},
	{ENTITY_DISK, "nvme0n1", "nvme0n1", SYNTHETIC_HOST, 1, "{}"},
	{ENTITY_NETWORK, "eth0", "eth0", SYNTHETIC_HOST, 1, "{}"},
	{ENTITY_RECORDER, "recorder", "strain-record", SYNTHETIC_HOST, 1, "{\"pid\":4243}"},
};

// The rows of one group of an entity since the last block.
struct synthetic_stream {
	const struct synthetic_group *group;
	const struct synthetic_subject *subject;
	int64_t entity;
	uint32_t first_metric;
	uint32_t n_metrics;
	uint32_t n_rows;
	double totals[MAX_METRICS];
	int64_t t[ROWS_PER_BLOCK];
	int64_t values[MAX_METRICS][ROWS_PER_BLOCK];
};

struct synthesis {
	const struct synthetic_run *run;
	struct writer *writer;
	uint64_t interval_ns;
	int64_t end_ns;
	uint64_t random;
	uint32_t group_metrics[ARRAY_LENGTH(groups)]; // id of each group's first metric
	struct synthetic_stream *streams;
	size_t n_streams;
};

static double next_uniform(struct synthesis *s)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return (double)(s->random >> 11) / 9007199254740992.0;
}

static int64_t epoch_start_ns(const struct synthesis *s, int epoch)
{
	return (int64_t)((double)s->end_ns * (0.1 + 0.8 * epoch / N_EPOCHS));
}

// The factor of a metric at a time: small outside epochs, else that of the half of the epoch.
static double load_at(const struct synthesis *s, const struct shape *shape, int64_t t_ns)
{
	double at = ((double)t_ns / (double)s->end_ns - 0.1) / 0.8 * N_EPOCHS;
	bool gauge = shape->metric.kind == METRIC_GAUGE;
	if (at < 0 || at >= N_EPOCHS) {
		return gauge ? fmin(shape->input, shape->compute) : 0.1 * shape->input;
	}
	return at - floor(at) < 0.5 ? shape->input : shape->compute;
}

static int64_t next_value(
	struct synthesis *s, struct synthetic_stream *stream, uint32_t i, int64_t t_ns)
{
	const struct shape *shape = &stream->group->shapes[i];
	double noise = 1 + shape->noise * (2 * next_uniform(s) - 1);
	double value = shape->level * stream->subject->factor * load_at(s, shape, t_ns) * noise;
	if (shape->metric.kind == METRIC_COUNTER) {
		double interval_s = (double)s->interval_ns * stream->group->ticks / 1e9;
		stream->totals[i] += value * interval_s;
		value = stream->totals[i];
	}
	return (int64_t)(floor(value / shape->step) * shape->step);
}

static int flush_stream(struct synthesis *s, struct synthetic_stream *stream)
{
	uint32_t ids[MAX_METRICS];
	int64_t *columns[MAX_METRICS];
	for (uint32_t i = 0; i < stream->n_metrics; i++) {
		ids[i] = stream->first_metric + i;
		columns[i] = stream->values[i];
	}
	struct block b = {stream->n_rows, stream->n_metrics, ids, NULL, stream->t, columns};
	stream->n_rows = 0;
	return writer_put_block(s->writer, stream->entity, stream->group->source, &b);
}

static int append_row(struct synthesis *s, struct synthetic_stream *stream, int64_t t_ns)
{
	uint32_t row = stream->n_rows++;
	stream->t[row] = t_ns / 1000;
	for (uint32_t i = 0; i < stream->n_metrics; i++) {
		int64_t value = next_value(s, stream, i, t_ns);
		// Loader workers end before the run, and I/O cannot be read from time to time.
		bool missing = stream->group->shapes == process_io && next_uniform(s) > 0.99;
		stream->values[i][row] = missing ? VALUE_MISSING : value;
	}
	return stream->n_rows == ROWS_PER_BLOCK ? flush_stream(s, stream) : 0;
}

static bool is_there(const struct synthesis *s, const struct synthetic_stream *stream, int64_t t_ns)
{
	bool worker = stream->entity == SYNTHETIC_WORKER_1 || stream->entity == SYNTHETIC_WORKER_2;
	return !worker || (t_ns >= epoch_start_ns(s, 0) / 2 && t_ns < epoch_start_ns(s, N_EPOCHS));
}

static int tick(struct synthesis *s, uint64_t number)
{
	// Ticks are slightly late, like those of a timer.
	int64_t t_ns = (int64_t)(number * s->interval_ns + (uint64_t)(next_uniform(s) * 120000));
	int r = 0;
	for (size_t i = 0; r == 0 && i < s->n_streams; i++) {
		struct synthetic_stream *stream = &s->streams[i];
		if (number % stream->group->ticks == 0 && is_there(s, stream, t_ns)) {
			r = append_row(s, stream, t_ns);
		}
	}
	return r;
}

static int flush_all(struct synthesis *s)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < s->n_streams; i++) {
		r = flush_stream(s, &s->streams[i]);
	}
	return r;
}

static int put_metrics(struct synthesis *s)
{
	uint32_t id = 1;
	for (size_t g = 0; g < ARRAY_LENGTH(groups); g++) {
		s->group_metrics[g] = id;
		for (const struct shape *m = groups[g].shapes; m->metric.name; m++) {
			int r = writer_put_metric(
				s->writer, id++, &m->metric, groups[g].kind, groups[g].source);
			if (r < 0) {
				return r;
			}
		}
	}
	return 0;
}

static int put_entities(struct synthesis *s)
{
	for (size_t i = 0; i < ARRAY_LENGTH(subjects); i++) {
		int64_t id = (int64_t)i + 1;
		bool worker = id == SYNTHETIC_WORKER_1 || id == SYNTHETIC_WORKER_2;
		struct writer_entity entity = {
			.id = id,
			.kind = subjects[i].kind,
			.key = subjects[i].key,
			.name = subjects[i].name,
			.parent = subjects[i].parent,
			.first_ns = worker ? epoch_start_ns(s, 0) / 2 : 0,
			.last_ns = worker ? epoch_start_ns(s, N_EPOCHS) : -1,
			.attributes = subjects[i].attributes,
		};
		int r = writer_put_entity(s->writer, &entity);
		if (r < 0) {
			return r;
		}
	}
	return 0;
}

static int make_streams(struct synthesis *s)
{
	s->streams = calloc(ARRAY_LENGTH(subjects) * ARRAY_LENGTH(groups), sizeof(*s->streams));
	for (size_t i = 0; s->streams && i < ARRAY_LENGTH(subjects); i++) {
		for (size_t g = 0; g < ARRAY_LENGTH(groups); g++) {
			if (groups[g].kind != subjects[i].kind || groups[g].ticks == 0) {
				continue;
			}
			struct synthetic_stream *stream = &s->streams[s->n_streams++];
			stream->group = &groups[g];
			stream->subject = &subjects[i];
			stream->entity = (int64_t)i + 1;
			stream->first_metric = s->group_metrics[g];
			while (groups[g].shapes[stream->n_metrics].metric.name) {
				stream->n_metrics++;
			}
		}
	}
	return s->streams ? 0 : -ENOMEM;
}

static int put_spans(struct synthesis *s)
{
	int r = 0;
	for (int epoch = 0; r == 0 && epoch < N_EPOCHS; epoch++) {
		int64_t end_ns = epoch_start_ns(s, epoch + 1), id = 0;
		struct writer_span span = {"epoch", "epoch", epoch_start_ns(s, epoch), end_ns, 0, 0,
			epoch + 1, 30000, NAN, NULL, 0};
		struct writer_span loss = {"loss", "point", end_ns, end_ns, 0, 0, epoch + 1, -1,
			2.3 / (epoch + 1), NULL, 0};
		r = writer_put_span(s->writer, &span, &id);
		if (r == 0) {
			loss.parent = id;
			r = writer_put_span(s->writer, &loss, NULL);
		}
	}
	return r;
}

static int put_marks(struct synthesis *s)
{
	int r = 0;
	for (int epoch = 0; r == 0 && epoch < N_EPOCHS && s->run->iterations > 0; epoch++) {
		r = synthetic_marks_write(s->writer,
			&(struct synthetic_marks){.epoch = epoch,
				.start_ns = epoch_start_ns(s, epoch),
				.end_ns = epoch_start_ns(s, epoch + 1),
				.iterations = s->run->iterations / N_EPOCHS +
		                              (epoch < (int)(s->run->iterations % N_EPOCHS)),
				.workers = s->run->workers,
				.own = s->run->own,
				.ranks = s->run->ranks});
	}
	return r;
}

static int put_run_keys(struct synthesis *s)
{
	char pid[24], interval[24];
	snprintf(pid, sizeof(pid), "%lld",
		s->run->recorder_pid ? (long long)s->run->recorder_pid : 4194304LL);
	snprintf(interval, sizeof(interval), "%llu", (unsigned long long)s->interval_ns);
	const char *const keys[][2] = {
		{"version", STRAIN_VERSION},
		{"name", "train"},
		{"command", "[\"python3\",\"train.py\",\"--workers\",\"2\"]"},
		{"directory", "/srv/cnn"},
		{"hostname", "node1"},
		{"kernel", "6.1.0"},
		{"boot_id", "00000000-0000-0000-0000-000000000000"},
		{"start_utc_ns", "1795171331000000000"},
		{"start_monotonic_ns", "123456789000"},
		{"recorder_pid", pid},
		{"recorder_start_ticks", "1"},
		{"interval_ns", interval},
		{"overhead", "0.01"},
	};
	int r = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_LENGTH(keys); i++) {
		r = writer_put_run(s->writer, keys[i][0], keys[i][1]);
	}
	return r;
}

static int put_labels_and_troubles(struct synthesis *s)
{
	uint32_t unread = 0;
	for (size_t g = 0; g < ARRAY_LENGTH(groups); g++) {
		unread = groups[g].ticks == 0 ? s->group_metrics[g] : unread;
	}
	int r = writer_put_label(s->writer, "batch_size", "32");
	if (r == 0) {
		r = writer_put_label(s->writer, "workers", "2");
	}
	if (r == 0) {
		r = writer_put_missing(s->writer, SYNTHETIC_GPU, unread, 0, -1,
			"not supported by this device; Hopper and later have it");
	}
	if (r == 0) {
		r = writer_put_event(s->writer, s->end_ns / 3, "throttled", SYNTHETIC_GPU,
			"clocks lowered: power cap");
	}
	return r < 0 ? r
	             : writer_put_event(s->writer, s->end_ns / 2, "lost", SYNTHETIC_RECORDER,
			       "2 ticks left out");
}

static int put_metadata(struct synthesis *s)
{
	static int (*const steps[])(struct synthesis *) = {put_run_keys, put_metrics, put_entities,
		put_spans, put_marks, put_labels_and_troubles, make_streams};
	for (size_t i = 0; i < ARRAY_LENGTH(steps); i++) {
		int r = steps[i](s);
		if (r < 0) {
			return r;
		}
	}
	return 0;
}

static int put_samples(struct synthesis *s, struct error *e)
{
	uint64_t n_ticks = (uint64_t)s->end_ns / s->interval_ns;
	uint64_t per_second = NS_PER_S > s->interval_ns ? NS_PER_S / s->interval_ns : 1;
	for (uint64_t number = 0; number < n_ticks; number++) {
		int r = tick(s, number);
		if (r == 0 && number % per_second == per_second - 1) {
			r = flush_all(s);
			r = r < 0 ? r : writer_commit(s->writer, e);
		}
		if (r == 0 && number % (60 * per_second) == 60 * per_second - 1) {
			r = writer_compact(s->writer, (int64_t)(number * s->interval_ns), e);
		}
		if (r < 0) {
			return r;
		}
	}
	return flush_all(s);
}

static int synthesize(struct synthesis *s, struct error *e)
{
	int r = put_metadata(s);
	if (r == 0) {
		r = put_samples(s, e);
	}
	if (r == 0) {
		r = writer_commit(s->writer, e);
	}
	if (r == 0 && !s->run->unfinished) {
		r = writer_finish(s->writer, s->end_ns, 0, e);
	}
	return r;
}

int synthetic_run_write(const char *path, const struct synthetic_run *run, struct error *e)
{
	struct synthesis s = {
		.run = run,
		.interval_ns = run->interval_ns ? run->interval_ns : 10 * NS_PER_MS,
		.end_ns = (int64_t)(run->seconds * 1e9),
		.random = 88172645463325252,
	};
	struct writer_options options = {.replace = true, .max_bytes = run->max_bytes};
	int r = writer_create(path, &options, &s.writer, e);
	if (r < 0) {
		return r;
	}
	r = synthesize(&s, e);
	if (r < 0 && e && !e->code) {
		error_errno(e, -r, "cannot write the synthetic run %s", path);
	}
	writer_free(s.writer);
	free(s.streams);
	return r;
}
