// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The whole machine: CPU time by mode, memory by use, paging.

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "machine/file.h"
#include "machine/procfs.h"
#include "record/sample/source.h"
#include "record/source/keyed.h"

// Pressure ----------------------------------------------------------------------------------------
//
// Pressure (PSI): the time that the machine's tasks waited for CPU, memory and storage.

enum { SOME, FULL, N_EACH };
static const struct metric pressure_cpu_metrics[N_EACH] = {
	[SOME] = {"strain.pressure.cpu.some", METRIC_COUNTER, "s", 1e-6,
		"Time in which at least one task of the machine was ready to run but had no "
		"CPU (/proc/pressure/cpu)."},
	[FULL] = {"strain.pressure.cpu.full", METRIC_COUNTER, "s", 1e-6,
		"Time in which no task could run for lack of a CPU: always 0 for a whole "
		"machine, because some task has the CPU (/proc/pressure/cpu, Linux 5.13)."},
};
static const struct metric pressure_memory_metrics[N_EACH] = {
	[SOME] = {"strain.pressure.memory.some", METRIC_COUNTER, "s", 1e-6,
		"Time in which at least one task waited for memory: reclaim, swap, refaults of "
		"the page cache (/proc/pressure/memory)."},
	[FULL] = {"strain.pressure.memory.full", METRIC_COUNTER, "s", 1e-6,
		"Time in which all non-idle tasks waited for memory at once "
		"(/proc/pressure/memory)."},
};
static const struct metric io_metrics[N_EACH] = {
	[SOME] = {"strain.pressure.io.some", METRIC_COUNTER, "s", 1e-6,
		"Time in which at least one task waited for storage (/proc/pressure/io)."},
	[FULL] = {"strain.pressure.io.full", METRIC_COUNTER, "s", 1e-6,
		"Time in which all non-idle tasks waited for storage at once "
		"(/proc/pressure/io)."},
};

static int read_cpu_pressure(void *state, struct sink *sink, uint64_t now_ns);
static int read_memory_pressure(void *state, struct sink *sink, uint64_t now_ns);
static int read_io_pressure(void *state, struct sink *sink, uint64_t now_ns);

enum { PRESSURE_CPU, PRESSURE_MEMORY, PRESSURE_IO, N_PRESSURE_GROUPS };
static const struct group pressure_groups[N_PRESSURE_GROUPS] = {
	[PRESSURE_CPU] = {"cpu", ENTITY_HOST, pressure_cpu_metrics, N_EACH, 100 * NS_PER_MS,
		read_cpu_pressure, SHARED},
	[PRESSURE_MEMORY] = {"memory", ENTITY_HOST, pressure_memory_metrics, N_EACH,
		100 * NS_PER_MS, read_memory_pressure, SHARED},
	[PRESSURE_IO] = {"io", ENTITY_HOST, io_metrics, N_EACH, 100 * NS_PER_MS, read_io_pressure,
		SHARED},
};

static const char *const pressure_paths[N_PRESSURE_GROUPS] = {
	[PRESSURE_CPU] = "proc/pressure/cpu",
	[PRESSURE_MEMORY] = "proc/pressure/memory",
	[PRESSURE_IO] = "proc/pressure/io",
};

struct pressure_source {
	struct host_file files[N_PRESSURE_GROUPS];
	struct stream *streams[N_PRESSURE_GROUPS];
	int64_t host;
};

// Opens and reads once, because only reading shows that pressure is switched off.
static int try_file(struct pressure_source *s, int root_fd, int group)
{
	struct cursor text = {0};
	struct pressure p;
	int r = host_file_open(&s->files[group], root_fd, pressure_paths[group], NULL);
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
		return -ENOENT; // reported when the source was opened
	}
	int r = host_file_read(&s->files[group], &text);
	r = r < 0 ? r : pressure_parse(text, &p);
	if (r < 0) {
		sink_missing_group(sink, s->host, &pressure_groups[group], pressure_reason(-r));
		return r;
	}
	if (!s->streams[group]) {
		s->streams[group] = sink_stream(sink, s->host, &pressure_groups[group]);
		if (p.full_us == KEYED_ABSENT) {
			sink_missing(sink, s->host, &pressure_groups[group], FULL,
				"this kernel does not report it; needs Linux 5.13");
		}
	}
	const int64_t values[N_EACH] = {[SOME] = p.some_us, [FULL] = p.full_us};
	stream_row(s->streams[group], now_ns, values);
	return 0;
}

static int read_cpu_pressure(void *state, struct sink *sink, uint64_t now_ns)
{
	return read_group(state, sink, PRESSURE_CPU, now_ns);
}

static int read_memory_pressure(void *state, struct sink *sink, uint64_t now_ns)
{
	return read_group(state, sink, PRESSURE_MEMORY, now_ns);
}

static int read_io_pressure(void *state, struct sink *sink, uint64_t now_ns)
{
	return read_group(state, sink, PRESSURE_IO, now_ns);
}

static void pressure_close(void *state)
{
	struct pressure_source *s = state;
	for (size_t i = 0; s && i < N_PRESSURE_GROUPS; i++) {
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
	for (int i = 0; i < N_PRESSURE_GROUPS; i++) {
		s->files[i] = HOST_FILE_CLOSED;
		int r = try_file(s, context->root_fd, i);
		if (r < 0) {
			host_file_close(&s->files[i]);
			sink_missing_group(sink, s->host, &pressure_groups[i], pressure_reason(-r));
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
	.help = "time that tasks waited for CPU, memory and storage",
	.lane = LANE_TICK,
	.groups = pressure_groups,
	.n_groups = N_PRESSURE_GROUPS,
	.open = pressure_open,
	.close = pressure_close,
};

// Host --------------------------------------------------------------------------------------------

#define CPU_TIME_HELP " (/proc/stat, in hundredths of a second, all CPUs together)."

enum {
	// the modes of enum cpu_mode come first
	CPU_SWITCHES = N_CPU_MODES,
	CPU_CREATED,
	CPU_RUNNING,
	CPU_BLOCKED,
	N_CPU,
};
static const struct metric cpu_metrics[N_CPU] = {
	[CPU_USER] = {"system.cpu.time.user", METRIC_COUNTER, "s", 0.01,
		"Time in user mode, including guests of virtual machines" CPU_TIME_HELP},
	[CPU_NICE] = {"system.cpu.time.nice", METRIC_COUNTER, "s", 0.01,
		"Time in user mode at a lowered priority" CPU_TIME_HELP},
	[CPU_SYSTEM] = {"system.cpu.time.system", METRIC_COUNTER, "s", 0.01,
		"Time in the kernel" CPU_TIME_HELP},
	[CPU_IDLE] = {"system.cpu.time.idle", METRIC_COUNTER, "s", 0.01, "Idle time" CPU_TIME_HELP},
	[CPU_IOWAIT] = {"system.cpu.time.iowait", METRIC_COUNTER, "s", 0.01,
		"Idle time while a thread of that CPU waited for storage. Only a hint, because "
		"such a thread belongs to no CPU; see strain.pressure.io.some" CPU_TIME_HELP},
	[CPU_IRQ] = {"system.cpu.time.irq", METRIC_COUNTER, "s", 0.01,
		"Time in interrupts" CPU_TIME_HELP},
	[CPU_SOFTIRQ] = {"system.cpu.time.softirq", METRIC_COUNTER, "s", 0.01,
		"Time in soft interrupts: network and storage completions, timers" CPU_TIME_HELP},
	[CPU_STEAL] = {"system.cpu.time.steal", METRIC_COUNTER, "s", 0.01,
		"Time in which this machine had work, but the hypervisor ran other "
		"guests" CPU_TIME_HELP},
	[CPU_SWITCHES] = {"strain.system.context_switches", METRIC_COUNTER, "{switch}", 1,
		"Context switches of the whole machine (/proc/stat: ctxt)."},
	[CPU_CREATED] = {"system.process.created", METRIC_COUNTER, "{process}", 1,
		"Processes and threads created on the whole machine (/proc/stat: processes)."},
	[CPU_RUNNING] = {"strain.system.running", METRIC_GAUGE, "{thread}", 1,
		"Threads that currently run or wait for a CPU (/proc/stat: procs_running)."},
	[CPU_BLOCKED] = {"strain.system.blocked", METRIC_GAUGE, "{thread}", 1,
		"Threads that currently wait for storage (/proc/stat: procs_blocked)."},
};

enum {
	MEMORY_USED,
	MEMORY_FREE,
	MEMORY_CACHED,
	MEMORY_BUFFERS,
	MEMORY_LIMIT,
	MEMORY_AVAILABLE,
	MEMORY_ANONYMOUS,
	MEMORY_SHARED,
	MEMORY_DIRTY,
	MEMORY_WRITEBACK,
	MEMORY_SWAP_USED,
	MEMORY_SWAP_FREE,
	N_MEMORY,
};
static const struct metric memory_metrics[N_MEMORY] = {
	[MEMORY_USED] = {"system.memory.usage.used", METRIC_GAUGE, "By", 1024,
		"Memory that is neither free, page cache nor buffers (/proc/meminfo). The four "
		"add up to system.memory.limit."},
	[MEMORY_FREE] = {"system.memory.usage.free", METRIC_GAUGE, "By", 1024,
		"Unused memory (/proc/meminfo: MemFree). See system.linux.memory.available for "
		"the memory that a job can still get."},
	[MEMORY_CACHED] = {"system.memory.usage.cached", METRIC_GAUGE, "By", 1024,
		"Page cache including shared memory, and reclaimable kernel caches "
		"(/proc/meminfo: Cached and SReclaimable)."},
	[MEMORY_BUFFERS] = {"system.memory.usage.buffers", METRIC_GAUGE, "By", 1024,
		"Page cache of block devices (/proc/meminfo: Buffers)."},
	[MEMORY_LIMIT] = {"system.memory.limit", METRIC_GAUGE, "By", 1024,
		"Memory that the kernel manages (/proc/meminfo: MemTotal)."},
	[MEMORY_AVAILABLE] = {"system.linux.memory.available", METRIC_GAUGE, "By", 1024,
		"Memory available without swapping, as estimated by the kernel (/proc/meminfo: "
		"MemAvailable)."},
	[MEMORY_ANONYMOUS] = {"strain.system.memory.anonymous", METRIC_GAUGE, "By", 1024,
		"Anonymous memory of processes: heaps and stacks (/proc/meminfo: AnonPages)."},
	[MEMORY_SHARED] = {"strain.system.memory.shared", METRIC_GAUGE, "By", 1024,
		"Shared memory and tmpfs, including /dev/shm (/proc/meminfo: Shmem). It is "
		"part of system.memory.usage.cached, but cannot be dropped."},
	[MEMORY_DIRTY] = {"strain.system.memory.dirty", METRIC_GAUGE, "By", 1024,
		"Page cache not yet written to storage (/proc/meminfo: Dirty)."},
	[MEMORY_WRITEBACK] = {"strain.system.memory.writeback", METRIC_GAUGE, "By", 1024,
		"Page cache being written to storage (/proc/meminfo: Writeback)."},
	[MEMORY_SWAP_USED] = {"system.paging.usage.used", METRIC_GAUGE, "By", 1024,
		"Swap in use (/proc/meminfo: SwapTotal less SwapFree)."},
	[MEMORY_SWAP_FREE] = {"system.paging.usage.free", METRIC_GAUGE, "By", 1024,
		"Free swap (/proc/meminfo: SwapFree)."},
};

enum { PAGING_FAULTS, PAGING_MAJOR, PAGING_IN, PAGING_OUT, PAGING_REFAULTS, PAGING_OOM, N_PAGING };
static const struct metric paging_metrics[N_PAGING] = {
	[PAGING_FAULTS] = {"strain.system.paging.faults", METRIC_COUNTER, "{fault}", 1,
		"Page faults of the whole machine, minor and major (/proc/vmstat: pgfault)."},
	[PAGING_MAJOR] = {"strain.system.paging.faults.major", METRIC_COUNTER, "{fault}", 1,
		"Page faults that read from storage (/proc/vmstat: pgmajfault)."},
	[PAGING_IN] = {"strain.system.paging.in", METRIC_COUNTER, "{page}", 1,
		"Pages read back from swap (/proc/vmstat: pswpin)."},
	[PAGING_OUT] = {"strain.system.paging.out", METRIC_COUNTER, "{page}", 1,
		"Pages written to swap (/proc/vmstat: pswpout)."},
	[PAGING_REFAULTS] = {"strain.system.paging.refaults", METRIC_COUNTER, "{page}", 1,
		"File pages read again soon after eviction from the page cache: the cache is "
		"too small for the working set (/proc/vmstat: workingset_refault_file)."},
	[PAGING_OOM] = {"strain.system.oom_kills", METRIC_COUNTER, "{kill}", 1,
		"Processes that the kernel killed for lack of memory (/proc/vmstat: oom_kill)."},
};

enum { LOAD_1M, LOAD_THREADS, N_LOAD };
static const struct metric load_metrics[N_LOAD] = {
	[LOAD_1M] = {"strain.system.load", METRIC_GAUGE, "{thread}", 0.01,
		"Load average of the last minute: threads that run, wait for a CPU or wait "
		"uninterruptibly (/proc/loadavg)."},
	[LOAD_THREADS] = {"strain.system.threads", METRIC_GAUGE, "{thread}", 1,
		"Threads on the whole machine (/proc/loadavg)."},
};

static int read_cpu(void *state, struct sink *sink, uint64_t now_ns);
static int read_memory(void *state, struct sink *sink, uint64_t now_ns);
static int read_paging(void *state, struct sink *sink, uint64_t now_ns);
static int read_load(void *state, struct sink *sink, uint64_t now_ns);

enum { GROUP_CPU, GROUP_MEMORY, GROUP_PAGING, GROUP_LOAD, N_GROUPS };
static const struct group groups[N_GROUPS] = {
	[GROUP_CPU] = {"cpu", ENTITY_HOST, cpu_metrics, N_CPU, 100 * NS_PER_MS, read_cpu, SHARED},
	[GROUP_MEMORY] = {"memory", ENTITY_HOST, memory_metrics, N_MEMORY, 100 * NS_PER_MS,
		read_memory, SHARED},
	[GROUP_PAGING] = {"paging", ENTITY_HOST, paging_metrics, N_PAGING, NS_PER_S, read_paging,
		SHARED},
	[GROUP_LOAD] = {"load", ENTITY_HOST, load_metrics, N_LOAD, NS_PER_S, read_load, SHARED},
};

static const struct keyed_row memory_rows[] = {
	{"MemTotal", KEYED_ADD, MEMORY_LIMIT},
	{"MemTotal", KEYED_ADD, MEMORY_USED},
	{"MemFree", KEYED_ADD, MEMORY_FREE},
	{"MemFree", KEYED_SUBTRACT, MEMORY_USED},
	{"MemAvailable", KEYED_ADD, MEMORY_AVAILABLE},
	{"Buffers", KEYED_ADD, MEMORY_BUFFERS},
	{"Buffers", KEYED_SUBTRACT, MEMORY_USED},
	{"Cached", KEYED_ADD, MEMORY_CACHED},
	{"Cached", KEYED_SUBTRACT, MEMORY_USED},
	{"SwapTotal", KEYED_ADD, MEMORY_SWAP_USED},
	{"SwapFree", KEYED_ADD, MEMORY_SWAP_FREE},
	{"SwapFree", KEYED_SUBTRACT, MEMORY_SWAP_USED},
	{"Dirty", KEYED_ADD, MEMORY_DIRTY},
	{"Writeback", KEYED_ADD, MEMORY_WRITEBACK},
	{"AnonPages", KEYED_ADD, MEMORY_ANONYMOUS},
	{"Shmem", KEYED_ADD, MEMORY_SHARED},
	{"SReclaimable", KEYED_ADD_KNOWN, MEMORY_CACHED},
	{"SReclaimable", KEYED_SUBTRACT_KNOWN, MEMORY_USED},
};
static const struct keyed_row paging_rows[] = {
	{"pgfault", KEYED_ADD, PAGING_FAULTS},
	{"pgmajfault", KEYED_ADD, PAGING_MAJOR},
	{"pswpin", KEYED_ADD, PAGING_IN},
	{"pswpout", KEYED_ADD, PAGING_OUT},
	{"workingset_refault_file", KEYED_ADD, PAGING_REFAULTS},
	{"oom_kill", KEYED_ADD, PAGING_OOM},
	// Before Linux 5.9, which counted only file pages under this name.
	{"workingset_refault", KEYED_ELSE, PAGING_REFAULTS},
};

// Files without rows have a format of their own (machine/procfs.h).
static const struct keyed_file files[N_GROUPS] = {
	[GROUP_CPU] = {.path = "proc/stat"},
	[GROUP_MEMORY] = {"proc/meminfo", memory_rows, ARRAY_LENGTH(memory_rows), KEYED_PLAIN},
	[GROUP_PAGING] = {"proc/vmstat", paging_rows, ARRAY_LENGTH(paging_rows), KEYED_PLAIN},
	[GROUP_LOAD] = {.path = "proc/loadavg"},
};

struct host_source {
	struct host_file files[N_GROUPS];
	struct stream *streams[N_GROUPS];
	int64_t host;
	int64_t ticks_per_second;
	int64_t last_ticks[N_CPU_MODES];
};

// Reads the file of a group. Returns -errno if it can never be read again, which was then reported.
static int read_text(struct host_source *s, struct sink *sink, int group, struct cursor *ret)
{
	if (s->files[group].fd < 0) {
		return -ENOENT; // reported when the source was opened
	}
	int r = host_file_read(&s->files[group], ret);
	if (r < 0) {
		struct error e = {0};
		error_errno(&e, -r, "/%s", files[group].path);
		sink_missing_group(sink, s->host, &groups[group], e.text);
	}
	return r;
}

// Reports once each value that the kernel lacks, and writes the row with the others.
static void put_row(
	struct host_source *s, struct sink *sink, int group, uint64_t now_ns, const int64_t *values)
{
	if (!s->streams[group]) {
		s->streams[group] = sink_stream(sink, s->host, &groups[group]);
		for (size_t i = 0; i < groups[group].n_metrics; i++) {
			if (values[i] == VALUE_MISSING) {
				struct error e = {0};
				error_set(&e, ENODATA, "/%s does not contain it on this kernel",
					files[group].path);
				sink_missing(sink, s->host, &groups[group], i, e.text);
			}
		}
	}
	stream_row(s->streams[group], now_ns, values);
}

static int read_broken(struct host_source *s, struct sink *sink, int group)
{
	struct error e = {0};
	int r = error_set(
		&e, EBADMSG, "/%s is not in the format of the Linux kernel", files[group].path);
	sink_missing_group(sink, s->host, &groups[group], e.text);
	return r;
}

static int read_cpu(void *state, struct sink *sink, uint64_t now_ns)
{
	struct host_source *s = state;
	struct cursor text;
	struct system_stat stat;
	int r = read_text(s, sink, GROUP_CPU, &text);
	if (r < 0) {
		return r;
	}
	if (system_stat_parse(text, &stat) < 0) {
		return read_broken(s, sink, GROUP_CPU);
	}
	int64_t values[N_CPU];
	for (size_t i = 0; i < N_CPU_MODES; i++) {
		// idle and iowait can decrease by a tick when a CPU goes to sleep.
		if (stat.ticks[i] > s->last_ticks[i]) {
			s->last_ticks[i] = stat.ticks[i];
		}
		values[i] = stat.ticks[i] == KEYED_ABSENT
		                    ? VALUE_MISSING
		                    : s->last_ticks[i] * 100 / s->ticks_per_second;
	}
	values[CPU_SWITCHES] = stat.context_switches;
	values[CPU_CREATED] = stat.processes;
	values[CPU_RUNNING] = stat.running;
	values[CPU_BLOCKED] = stat.blocked;
	put_row(s, sink, GROUP_CPU, now_ns, values);
	return 0;
}

// Reads a file of rows. Returns -errno if it can never be read again, which was then reported.
static int take_rows(struct host_source *s, struct sink *sink, int group, int64_t *values)
{
	struct cursor text;
	int r = read_text(s, sink, group, &text);
	for (size_t i = 0; i < groups[group].n_metrics; i++) {
		values[i] = VALUE_MISSING;
	}
	if (r == 0 && keyed_values(&files[group], text, groups[group].metrics, values) == 0) {
		r = read_broken(s, sink, group);
	}
	return r;
}

static int read_memory(void *state, struct sink *sink, uint64_t now_ns)
{
	int64_t values[N_MEMORY];
	int r = take_rows(state, sink, GROUP_MEMORY, values);
	if (r == 0 &&
		(values[MEMORY_LIMIT] == VALUE_MISSING || values[MEMORY_FREE] == VALUE_MISSING)) {
		r = read_broken(state, sink, GROUP_MEMORY);
	}
	if (r == 0) {
		put_row(state, sink, GROUP_MEMORY, now_ns, values);
	}
	return r;
}

static int read_paging(void *state, struct sink *sink, uint64_t now_ns)
{
	int64_t values[N_PAGING];
	int r = take_rows(state, sink, GROUP_PAGING, values);
	if (r == 0) {
		put_row(state, sink, GROUP_PAGING, now_ns, values);
	}
	return r;
}

static int read_load(void *state, struct sink *sink, uint64_t now_ns)
{
	struct host_source *s = state;
	struct cursor text;
	struct proc_loadavg load;
	int r = read_text(s, sink, GROUP_LOAD, &text);
	if (r < 0) {
		return r;
	}
	if (proc_loadavg_parse(text, &load) < 0) {
		return read_broken(s, sink, GROUP_LOAD);
	}
	const int64_t values[N_LOAD] = {
		[LOAD_1M] = load.load_hundredths[0],
		[LOAD_THREADS] = (int64_t)load.threads,
	};
	put_row(s, sink, GROUP_LOAD, now_ns, values);
	return 0;
}

static void host_close(void *state)
{
	struct host_source *s = state;
	for (size_t i = 0; s && i < N_GROUPS; i++) {
		host_file_close(&s->files[i]);
	}
	free(s);
}

static int host_open(
	const struct source_context *context, struct sink *sink, void **ret_state, struct error *e)
{
	struct host_source *s = calloc(1, sizeof(*s));
	if (!s) {
		return error_errno(e, ENOMEM, "host");
	}
	s->host = context->host;
	s->ticks_per_second = context->captured ? 100 : sysconf(_SC_CLK_TCK);
	unsigned opened = 0;
	for (size_t i = 0; i < N_GROUPS; i++) {
		struct error why = {0};
		s->files[i] = HOST_FILE_CLOSED;
		if (host_file_open(&s->files[i], context->root_fd, files[i].path, &why) == 0) {
			opened++;
		} else {
			sink_missing_group(sink, s->host, &groups[i], why.text);
			error_set(e, why.code, "%s", why.text);
		}
	}
	if (opened == 0) {
		host_close(s);
		return e ? -e->code : -ENOENT;
	}
	*ret_state = s;
	return 0;
}

const struct source source_host = {
	.name = "host",
	.help = "CPU and memory use of the machine",
	.lane = LANE_TICK,
	.groups = groups,
	.n_groups = N_GROUPS,
	.open = host_open,
	.close = host_close,
};
