// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The job's processes, and the job as their sum: who comes and goes. How they are read stands in
// process_read.c, what is told of them in process_metrics.c.

#include "record/source/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "record/job/cgroup.h"
#include "record/job/exit_status.h"
#include "record/source/process_internal.h"

// Joining and leaving ---------------------------------------------------------------------------

static int process_joined(void *context, struct process *p)
{
	struct process_source *s = context;
	struct readings *r = calloc(1, sizeof(*r));
	if (!r) {
		return -ENOMEM;
	}
	r->io_file.fd = r->schedstat_file.fd = r->status_file.fd = -1;
	memset(r->io, 0, sizeof(r->io));
	char key[64], attributes[96];
	snprintf(key, sizeof(key), "%d:%llu", (int)p->pid, (unsigned long long)p->start_ticks);
	snprintf(attributes, sizeof(attributes), "{\"pid\":%d,\"parent_pid\":%d}", (int)p->pid,
		(int)p->parent);
	const struct process *parent = tree_find(s->tree, p->parent);
	p->entity = sink_entity(s->sink, &(struct sink_entity){
						 .kind = ENTITY_PROCESS,
						 .key = key,
						 .name = p->name,
						 .parent = parent ? parent->entity : s->job,
						 .first_ns = p->first_ns,
						 .attributes = attributes,
					 });
	p->readings = r;
	process_memory_joined(s, p);
	if (s->attached && p->first_ns < s->start_ns) {
		process_note_before(s, p);
	}
	return 0;
}

// How it ended, as JSON; NULL where nobody tells.
static const char *exit_attributes(const struct process *p, char *buffer, size_t size)
{
	int status = p->status;
	if (status < 0 && (p->pidfd < 0 || !exit_status_of(p->pidfd, &status))) {
		return NULL;
	}
	snprintf(buffer, size,
		WIFSIGNALED(status) ? "{\"exit_signal\":%d}" : "{\"exit_status\":%d}",
		WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	return buffer;
}

static void process_left(void *context, struct process *p)
{
	struct process_source *s = context;
	struct readings *r = p->readings;
	process_memory_left(s, p);
	tree_close(s->tree, &r->io_file.fd);
	tree_close(s->tree, &r->schedstat_file.fd);
	tree_close(s->tree, &r->status_file.fd);
	for (size_t i = 0; i < N_GROUPS; i++) {
		if (s->sink) {
			stream_close(r->streams[i]);
		}
	}
	if (s->sink) {
		char attributes[64];
		sink_entity_end(s->sink, p->entity, clock_monotonic_ns(),
			exit_attributes(p, attributes, sizeof(attributes)));
	}
	free(r);
}

// Opening ---------------------------------------------------------------------------------------

static bool delay_accounting_on(int root_fd)
{
	char buffer[16];
	struct cursor text;
	uint64_t on;
	return host_read_once(root_fd, "proc/sys/kernel/task_delayacct", buffer, sizeof(buffer),
		       &text, NULL) == 0 &&
	       cursor_u64(&text, &on) && on == 1;
}

static void open_cgroup(struct process_source *s, const struct source_context *context)
{
	const struct job_cgroup *cgroup = context->cgroup;
	if (!cgroup || !cgroup->cpu) {
		return;
	}
	char path[4200];
	s->cgroup_v2 = cgroup->version == 2;
	snprintf(path, sizeof(path), "%s/%s", cgroup->cpu,
		s->cgroup_v2 ? "cpu.stat" : "cpuacct.usage");
	if (host_file_open(&s->cgroup_cpu, context->root_fd, path, NULL) == 0 &&
		!process_cgroup_ns(s, &s->base_ns)) {
		host_file_close(&s->cgroup_cpu);
	}
}

static void open_reaper(struct process_source *s, pid_t reaper, int root_fd)
{
	char path[64];
	snprintf(path, sizeof(path), "proc/%d/io", (int)reaper);
	s->reaper_io_fd = reaper > 0 ? openat(root_fd, path, O_RDONLY | O_CLOEXEC) : -1;
	process_reaper_io(s, s->reaper_base);
}

static void process_source_close(void *state)
{
	struct process_source *s = state;
	if (!s) {
		return;
	}
	size_t n = 0;
	struct process *const *members = s->tree ? tree_members(s->tree, &n) : NULL;
	s->sink = NULL; // those who live on have no end, and the sink frees their streams
	for (size_t i = 0; i < n; i++) {
		process_left(s, members[i]);
		members[i]->readings = NULL;
	}
	if (s->tree) {
		tree_watch(s->tree, &(struct tree_watcher){0});
	}
	if (s->own_tree) {
		tree_free(s->tree);
	}
	if (s->reaper_io_fd >= 0) {
		close(s->reaper_io_fd);
	}
	host_file_close(&s->cgroup_cpu);
	process_memory_close(s);
	free(s);
}

// A thousandth of a tick, at most 10 us. Of a process that runs on another CPU the kernel tells
// what the scheduler last counted, which lags by up to a tick of its own (1 to 10 ms): microseconds
// are noise there, and noise was half of what a run file weighed.
static int64_t cpu_unit_us(uint64_t interval_ns)
{
	uint64_t unit_us = interval_ns / (1000 * NS_PER_US);
	return unit_us < 1 ? 1 : unit_us > 10 ? 10 : (int64_t)unit_us;
}

static int process_source_open(
	const struct source_context *context, struct sink *sink, void **ret_state, struct error *e)
{
	struct process_source *s = calloc(1, sizeof(*s));
	if (!s) {
		return error_set(e, ENOMEM, "out of memory");
	}
	*s = (struct process_source){
		.tree = context->tree,
		.own_tree = !context->tree,
		.captured = context->captured,
		.sink = sink,
		.job = context->job,
		.ns_per_tick = NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK),
		.kib_per_page = (uint64_t)sysconf(_SC_PAGESIZE) / 1024,
		.cpu_unit_us = cpu_unit_us(context->interval_ns),
		// Who asks for less than 10 ms looks for what is over in less than 50.
		.statm_steady_ns = context->interval_ns < 10 * NS_PER_MS ? 0 : 50 * NS_PER_MS,
		.cgroup_cpu = HOST_FILE_CLOSED,
		.peak = {.cgroup = HOST_FILE_CLOSED},
		.delay_accounting = delay_accounting_on(context->root_fd),
		.reaper_io_fd = -1,
		.attached = context->tree && context->reaper == 0,
		.start_ns = context->start_ns,
	};
	if (s->own_tree) {
		int r = tree_new(context->root_fd, context->captured, &s->tree, e);
		if (r < 0) {
			process_source_close(s);
			return r;
		}
		tree_start(s->tree, context->captured ? 1 : getpid(), 0, NULL);
	}
	tree_watch(s->tree, &(struct tree_watcher){
				    .context = s, .joined = process_joined, .left = process_left});
	process_memory_open(s, context);
	open_cgroup(s, context);
	open_reaper(s, context->reaper, context->root_fd);
	if (!s->delay_accounting) {
		sink_missing(sink, 0, &process_groups[GROUP_STAT], STAT_BLOCKED,
			"delay accounting is off; sysctl kernel.task_delayacct=1");
	}
	*ret_state = s;
	return 0;
}

const struct source source_process = {
	.name = "processes",
	.help = "the job's processes: CPU time, memory, storage, threads, faults",
	.lane = LANE_TICK,
	.groups = process_groups,
	.n_groups = N_GROUPS,
	.open = process_source_open,
	.close = process_source_close,
};
