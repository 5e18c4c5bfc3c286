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

static bool was_stranger(const struct gpu *g, uint32_t pid)
{
	for (size_t i = 0; i < g->n_strangers; i++) {
		if (g->strangers[i] == pid) {
			return true;
		}
	}
	return g->n_strangers == GPU_MAX_STRANGERS;
}

// A process of the job that has just begun, or just ended, is in the driver's list and not in the
// tree. So who is no process of the job is another program's only when it was there before, too.
// False where there is one that is new.
static bool know_strangers(
	struct gpu_source *s, struct gpu *g, const struct nvml_process *list, size_t n)
{
	uint32_t pids[GPU_MAX_STRANGERS];
	size_t kept = 0;
	bool known = true;
	for (size_t i = 0; i < n; i++) {
		if (job_process(s, list[i].pid)) {
			continue;
		}
		known = known && was_stranger(g, list[i].pid);
		if (kept < GPU_MAX_STRANGERS) {
			pids[kept++] = list[i].pid;
		}
	}
	memcpy(g->strangers, pids, kept * sizeof(*pids));
	g->n_strangers = kept;
	return known;
}

// What one GPU's list says: what of it is the job's, and what is not. Host's pids in a container
// tell nothing of others.
static void take_list(struct gpu_source *s, const struct nvml_process *list, size_t n, bool others,
	struct gpu_reading *r)
{
	int64_t memory[2] = {0, 0}, count[2] = {0, 0}; // of the job, of others
	for (size_t i = 0; i < n; i++) {
		struct gpu_process *p = job_process(s, list[i].pid);
		bool known = list[i].memory_bytes <= INT64_MAX / NVML_MAX_GPUS &&
		             !(s->nested && list[i].memory_bytes == 0);
		int64_t bytes = known ? (int64_t)list[i].memory_bytes : VALUE_MISSING;
		if (p) {
			p->listed = true;
			p->memory = add_known(p->memory, bytes);
		}
		memory[!p] = add_known(memory[!p], bytes);
		count[!p]++;
	}
	s->ever_matched = s->ever_matched || count[0] > 0;
	bool blind = s->nested && !s->ever_matched;
	static const size_t metrics[2][2] = {
		{JOB_MEMORY, JOB_PROCESSES}, {JOB_OTHER_MEMORY, JOB_OTHER_PROCESSES}};
	for (size_t i = 0; i < 2; i++) {
		bool told = i == 0 ? !blind : others;
		r->result[metrics[i][0]] = told && memory[i] != VALUE_MISSING ? NVML_OK : GPU_QUIET;
		r->value[metrics[i][0]] = memory[i];
		r->result[metrics[i][1]] = told ? NVML_OK : GPU_QUIET;
		r->value[metrics[i][1]] = count[i];
	}
	bool memoryless = memory[0] == VALUE_MISSING || memory[1] == VALUE_MISSING;
	r->why = s->nested    ? nested_reason
	         : memoryless ? "the driver does not tell how much memory a process holds"
	                      : "it was read too seldom to tell whose a process is";
}

// The mean of a process's samples, per cent; -1: it has none.
static int64_t mean_of(const struct nvml_process_sample *samples, size_t n, uint32_t pid)
{
	uint64_t sum = 0, count = 0;
	for (size_t i = 0; i < n; i++) {
		if (samples[i].pid == pid && samples[i].sm_percent <= 100) {
			sum += samples[i].sm_percent;
			count++;
		}
	}
	return count > 0 ? (int64_t)(sum / count) : -1;
}

// Samples of one GPU, of those in its list. The driver leaves out who did nothing: 0. In a
// container who has none may be there under another pid: not known.
static void add_samples(struct gpu_source *s, const struct nvml_process *list, size_t n_list,
	const struct nvml_process_sample *samples, size_t n, bool others, struct gpu_reading *r)
{
	int64_t sums[2] = {0, 0}; // of the job, of others
	bool known = true;
	for (size_t i = 0; i < n_list; i++) {
		struct gpu_process *p = job_process(s, list[i].pid);
		int64_t mean = mean_of(samples, n, list[i].pid);
		if (p && (mean >= 0 || !s->nested)) {
			p->utilization = (p->utilization == VALUE_MISSING ? 0 : p->utilization) +
			                 (mean >= 0 ? mean : 0);
		}
		known = known && (!p || mean >= 0 || !s->nested);
		sums[!p] += mean >= 0 ? mean : 0;
	}
	bool blind = s->nested && (!s->ever_matched || !known);
	r->result[JOB_UTILIZATION] = blind ? GPU_QUIET : NVML_OK;
	r->value[JOB_UTILIZATION] = sums[0] < 100 ? sums[0] : 100;
	r->result[JOB_OTHER_UTILIZATION] = others ? NVML_OK : GPU_QUIET;
	r->value[JOB_OTHER_UTILIZATION] = sums[1] < 100 ? sums[1] : 100;
}

static void read_samples(struct gpu_source *s, struct gpu *g, struct sink *sink, uint64_t now_ns,
	const struct nvml_process *list, size_t n_list, bool others, struct gpu_reading *r)
{
	struct nvml_process_sample samples[NVML_MAX_SAMPLES];
	size_t n = 0;
	uint64_t now_us = (clock_realtime_ns() - clock_monotonic_ns() + now_ns) / NS_PER_US;
	// A clock that was set back would hide samples until it is there again.
	uint64_t last_us = g->process_last_us > now_us + 2000000 ? 0 : g->process_last_us;
	int result = nvml_process_samples(
		s->nvml, g->handle, last_us, samples, NVML_MAX_SAMPLES, &n);
	// Nobody was busy, which is an answer.
	result = result == NVML_NOT_FOUND ? NVML_OK : result;
	r->result[JOB_UTILIZATION] = r->result[JOB_OTHER_UTILIZATION] = result;
	if (nvml_outcome(result) == NVML_NEVER) {
		sink_missing(sink, 0, &nvml_groups[GPU_PROCESS], PROCESS_UTILIZATION,
			g->mig && result == NVML_NOT_SUPPORTED
				? "not supported while the GPU is divided into instances (MIG)"
				: nvml_reason(result));
	}
	for (size_t i = 0; i < n; i++) {
		if (samples[i].t_us > g->process_last_us) {
			g->process_last_us = samples[i].t_us;
		}
	}
	if (result == NVML_OK) {
		add_samples(s, list, n_list, samples, n, others, r);
	}
}

// Reads one GPU. False where its list is not known this time.
static bool read_gpu(struct gpu_source *s, struct gpu *g, struct sink *sink, uint64_t now_ns,
	const char **ret_reason)
{
	struct nvml_process list[NVML_MAX_PROCESSES];
	size_t n = 0;
	struct nvml_device *part = gpu_part(g);
	int result = part ? nvml_processes(s->nvml, part, list, NVML_MAX_PROCESSES, &n) : GPU_QUIET;
	struct gpu_reading r = {.why = gpu_part_reason};
	for (size_t i = 0; i < N_JOB; i++) {
		r.result[i] = result;
	}
	if (result == NVML_OK) {
		bool others = know_strangers(s, g, list, n) && !s->nested;
		take_list(s, list, n, others, &r);
		if (gpu_wants(g, GPU_JOB, JOB_UTILIZATION)) {
			read_samples(s, g, sink, now_ns, list, n, others, &r);
		}
	} else {
		*ret_reason = part ? nvml_reason(result) : gpu_part_reason;
	}
	gpu_row(sink, g, GPU_JOB, now_ns, &r);
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

// At first the job's processes may not be on a GPU yet. At the end there are no further readings
// to wait for.
void gpu_say_unmatched(struct gpu_source *s, struct sink *sink, bool at_end)
{
	bool silent = !s->nested || s->ever_matched || !s->processes_read;
	if (silent || (!at_end && ++s->readings_unmatched < UNMATCHED_READINGS)) {
		return;
	}
	sink_missing_group(sink, 0, &nvml_groups[GPU_PROCESS], nested_reason);
	sink_missing_group(sink, 0, &nvml_groups[GPU_JOB], nested_reason);
}

static bool all_lost(const struct gpu_source *s)
{
	bool lost = true;
	for (size_t i = 0; i < s->n_gpus; i++) {
		lost = lost && s->gpus[i].lost;
	}
	return lost;
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
	// Which GPUs the job may use is known from its environment, too.
	gpu_visible_from_job(s, sink);
	if (!any) {
		sink_missing_group(sink, 0, &nvml_groups[GPU_PROCESS], reason);
		return all_lost(s) ? -ENODEV : 0;
	}
	s->processes_read = true;
	put_processes(s, sink, now_ns, whole);
	gpu_say_unmatched(s, sink, false);
	return 0;
}
