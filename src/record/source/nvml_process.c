// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Which of the job's processes use which GPU, and how much of it.
//
// NVML knows processes by the host's pids. In a container with pids of its own, older drivers tell
// the host's pids, newer ones (550) list translated pids, without their memory, and still sample
// utilisation under the host's. So there a pid counts only if that process of the job holds a
// descriptor of /dev/nvidia*, and what does not fit is missing, with this as the reason.

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "record/job/tree.h"
#include "record/source/nvml_gpu.h"

#define UNMATCHED_READINGS 10u
#define MAX_DESCRIPTORS 4096u

static const char nested_reason[] =
	"the driver tells the host's process ids, and this container has its own; start it with "
	"the host's (docker --pid=host)";

static void cleanup_closedir(DIR **directory)
{
	if (*directory) {
		closedir(*directory);
	}
}

static bool holds_gpu(int root_fd, pid_t pid)
{
	static const char prefix[] = "/dev/nvidia";
	char path[48], target[64];
	snprintf(path, sizeof(path), "proc/%d/fd", (int)pid);
	_cleanup_close_ int fd = openat(root_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(cleanup_closedir) DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
	if (!directory) {
		return false;
	}
	int directory_fd = take_fd(fd);
	const struct dirent *entry;
	for (unsigned i = 0; i < MAX_DESCRIPTORS && (entry = readdir(directory)); i++) {
		ssize_t n = readlinkat(directory_fd, entry->d_name, target, sizeof(target));
		if (n >= (ssize_t)sizeof(prefix) - 1 &&
			memcmp(target, prefix, sizeof(prefix) - 1) == 0) {
			return true;
		}
	}
	return false;
}

static struct gpu_process *find_process(struct gpu_source *s, int64_t entity)
{
	for (size_t i = 0; i < s->n_processes; i++) {
		if (s->processes[i].entity == entity) {
			return &s->processes[i];
		}
	}
	return NULL;
}

// The job's process behind a pid that NVML told; NULL where it is none.
static struct gpu_process *job_process(struct gpu_source *s, uint32_t pid)
{
	int64_t entity = pid <= INT32_MAX ? tree_entity_of(s->tree, (pid_t)pid) : 0;
	if (entity == 0) {
		return NULL;
	}
	struct gpu_process *known = find_process(s, entity);
	if (known || (s->nested && !holds_gpu(s->root_fd, (pid_t)pid))) {
		return known;
	}
	void *items = s->processes;
	if (array_reserve(&items, &s->processes_capacity, s->n_processes + 1,
		    sizeof(*s->processes)) < 0) {
		return NULL;
	}
	s->processes = items;
	s->processes[s->n_processes] = (struct gpu_process){
		.entity = entity, .pid = (pid_t)pid, .utilization = VALUE_MISSING};
	return &s->processes[s->n_processes++];
}

static int64_t add_known(int64_t sum, int64_t value)
{
	return sum == VALUE_MISSING || value == VALUE_MISSING ? VALUE_MISSING : sum + value;
}

// What one GPU's list says. Sums of the job's share go to *r.
static void take_list(
	struct gpu_source *s, const struct nvml_process *list, size_t n, struct gpu_reading *r)
{
	int64_t memory = 0, count = 0;
	for (size_t i = 0; i < n; i++) {
		struct gpu_process *p = job_process(s, list[i].pid);
		if (!p) {
			continue;
		}
		bool known = list[i].memory_bytes <= INT64_MAX / NVML_MAX_GPUS &&
		             !(s->nested && list[i].memory_bytes == 0);
		int64_t bytes = known ? (int64_t)list[i].memory_bytes : VALUE_MISSING;
		p->listed = true;
		p->memory = add_known(p->memory, bytes);
		memory = add_known(memory, bytes);
		count++;
	}
	s->ever_matched = s->ever_matched || count > 0;
	bool blind = s->nested && !s->ever_matched;
	r->result[JOB_MEMORY] = blind || memory == VALUE_MISSING ? GPU_QUIET : NVML_OK;
	r->value[JOB_MEMORY] = memory;
	r->result[JOB_PROCESSES] = blind ? GPU_QUIET : NVML_OK;
	r->value[JOB_PROCESSES] = count;
}

// The mean of a process's samples on one GPU is added to what it does on the others.
static void add_samples(
	struct gpu_process *p, const struct nvml_process_sample *samples, size_t n, bool nested)
{
	uint64_t sum = 0, count = 0;
	for (size_t i = 0; i < n; i++) {
		if (samples[i].pid == (uint32_t)p->pid && samples[i].sm_percent <= 100) {
			sum += samples[i].sm_percent;
			count++;
		}
	}
	// The driver leaves out who did nothing; in a container it may be under another pid.
	if (count > 0 || !nested) {
		int64_t mean = count > 0 ? (int64_t)(sum / count) : 0;
		p->utilization = (p->utilization == VALUE_MISSING ? 0 : p->utilization) + mean;
	}
}

static void read_samples(struct gpu_source *s, struct gpu *g, struct sink *sink, uint64_t now_ns)
{
	struct nvml_process_sample samples[NVML_MAX_SAMPLES];
	size_t n = 0;
	uint64_t now_us = (clock_realtime_ns() - clock_monotonic_ns() + now_ns) / NS_PER_US;
	// A clock that was set back would hide samples until it is there again.
	uint64_t last_us = g->process_last_us > now_us + 2000000 ? 0 : g->process_last_us;
	int result = nvml_process_samples(
		s->nvml, g->handle, last_us, samples, NVML_MAX_SAMPLES, &n);
	if (!gpu_alive(sink, g, now_ns, result)) {
		return;
	}
	if (nvml_outcome(result) == NVML_NEVER) {
		g->never[GPU_PROCESS] |= 1u << PROCESS_UTILIZATION;
		sink_missing(sink, 0, &nvml_groups[GPU_PROCESS], PROCESS_UTILIZATION,
			nvml_reason(result));
	}
	if (result != NVML_OK) {
		return;
	}
	for (size_t i = 0; i < n; i++) {
		if (samples[i].t_us > g->process_last_us) {
			g->process_last_us = samples[i].t_us;
		}
	}
	for (size_t i = 0; i < s->n_processes; i++) {
		if (s->processes[i].listed) {
			add_samples(&s->processes[i], samples, n, s->nested);
		}
	}
}

// Reads one GPU. False where its list is not known this time.
static bool read_gpu(struct gpu_source *s, struct gpu *g, struct sink *sink, uint64_t now_ns,
	const char **ret_reason)
{
	struct nvml_process list[NVML_MAX_PROCESSES];
	size_t n = 0;
	int result = nvml_processes(s->nvml, g->handle, list, NVML_MAX_PROCESSES, &n);
	struct gpu_reading r = {.result = {result, result}};
	if (result == NVML_OK) {
		take_list(s, list, n, &r);
	} else {
		*ret_reason = nvml_reason(result);
	}
	gpu_row(sink, g, GPU_JOB, now_ns, &r);
	if (result == NVML_OK && gpu_wants(g, GPU_PROCESS, PROCESS_UTILIZATION)) {
		read_samples(s, g, sink, now_ns);
	}
	return result == NVML_OK;
}

static void put_process(struct gpu_process *p, struct sink *sink, uint64_t now_ns)
{
	const int64_t values[N_PROCESS] = {
		[PROCESS_MEMORY] = p->memory, [PROCESS_UTILIZATION] = p->utilization};
	if (!p->stream) {
		p->stream = sink_stream(sink, p->entity, &nvml_groups[GPU_PROCESS]);
	}
	stream_row(p->stream, now_ns, values);
}

static void put_processes(struct gpu_source *s, struct sink *sink, uint64_t now_ns, bool whole)
{
	for (size_t i = 0; i < s->n_processes;) {
		struct gpu_process *p = &s->processes[i];
		p->memory = whole ? p->memory : VALUE_MISSING;
		if (p->listed || !whole) {
			put_process(p, sink, now_ns);
			i++;
			continue;
		}
		// It is in no list any more: gone, or it holds nothing.
		if (tree_entity_of(s->tree, p->pid) == p->entity) {
			put_process(p, sink, now_ns);
		}
		stream_close(p->stream);
		*p = s->processes[--s->n_processes];
	}
}

static void say_unmatched(struct gpu_source *s, struct sink *sink)
{
	if (!s->nested || s->ever_matched || ++s->readings_unmatched != UNMATCHED_READINGS) {
		return;
	}
	sink_missing_group(sink, 0, &nvml_groups[GPU_PROCESS], nested_reason);
	sink_missing_group(sink, 0, &nvml_groups[GPU_JOB], nested_reason);
}

int gpu_read_processes(struct gpu_source *s, struct sink *sink, uint64_t now_ns)
{
	const char *reason = "the GPU is lost";
	bool whole = true, any = false;
	for (size_t i = 0; i < s->n_processes; i++) {
		s->processes[i].listed = false;
		s->processes[i].memory = 0;
		s->processes[i].utilization = VALUE_MISSING;
	}
	for (size_t i = 0; i < s->n_gpus; i++) {
		struct gpu *g = &s->gpus[i];
		if (gpu_wants_any(g, GPU_JOB)) {
			whole = read_gpu(s, g, sink, now_ns, &reason) && whole;
			any = any || gpu_wants_any(g, GPU_JOB);
		}
	}
	if (!any) {
		sink_missing_group(sink, 0, &nvml_groups[GPU_PROCESS], reason);
		return -ENODEV;
	}
	put_processes(s, sink, now_ns, whole);
	say_unmatched(s, sink);
	gpu_visible_from_job(s, sink);
	return 0;
}
