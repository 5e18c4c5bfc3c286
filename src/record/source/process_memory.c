// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What of the job's memory is known without a cgroup: between which bounds its peak lies, and how
// much it held at each tick.
//
// At least. The kernel keeps the most that a process ever had resident (VmHWM): it is there for as
// long as the process lives, and once it has been reaped the launcher knows the largest of all
// (ru_maxrss). A fork begins with what its parent has and an exec does not forget it, so a figure
// that the launcher itself has had says nothing.
//
// At most. The sum of the marks of those that lived at the same time; and for what came after a
// process was last looked at, or in a process that nobody saw, the faults of pages that the
// launcher reaped beyond those that were seen. A fault maps one page, of a file up to 16
// (fault-around), of a huge page 512; huge pages are counted by the machine. A process that grew
// since it was looked at may have done so beside those that have left since, so these count with
// it.
//
// At each tick. A process's anonymous memory (statm: resident less shared) less the least that it
// has had: what it inherited from its parent is the parent's, or was dropped by an exec. No page is
// in this sum twice; what several processes map is in it once at most.

#include "record/source/process_internal.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "record/host/cgroupfs.h"
#include "record/host/keyed.h"
#include "record/host/procfs.h"
#include "record/job/cgroup.h"

#define PAGE_KIB 4
#define FAULT_AROUND_KIB (16 * PAGE_KIB)
#define HUGE_KIB 2048
// What a process has given back is worth a look at its mark: so much, and this part of all.
#define FELL_KIB 1024
#define FELL_SHARE 16
#define LOOK_AGAIN_NS (50 * NS_PER_MS)

// Huge pages that the machine has mapped so far. False where it does not tell.
static bool huge_faults(int root_fd, uint64_t *ret)
{
	static const char *const keys[] = {"thp_fault_alloc", "thp_file_mapped"};
	struct host_file file = HOST_FILE_CLOSED;
	struct cursor text;
	int64_t values[ARRAY_LENGTH(keys)];
	bool read = host_file_open(&file, root_fd, "proc/vmstat", NULL) == 0 &&
	            host_file_read(&file, &text) == 0;
	*ret = 0;
	if (read) {
		keyed_parse(text, keys, ARRAY_LENGTH(keys), values);
		for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
			*ret += values[i] > 0 ? (uint64_t)values[i] : 0; // absent: it has none
		}
	}
	host_file_close(&file);
	return read;
}

void process_memory_open(struct process_source *s, const struct source_context *context)
{
	struct peak *peak = &s->peak;
	*peak = (struct peak){.root_fd = context->root_fd,
		.reaper = context->reaper,
		.rose_from_kib = UINT64_MAX,
		.cgroup = HOST_FILE_CLOSED};
	peak->huge_known = huge_faults(context->root_fd, &peak->huge_base);
	if (context->cgroup && context->cgroup->memory) {
		peak->own_cgroup = strdup(context->cgroup->memory);
		peak->version = context->cgroup->version;
	}
}

void process_memory_close(struct process_source *s)
{
	host_file_close(&s->peak.cgroup);
	free(s->peak.own_cgroup);
}

void process_memory_joined(struct process_source *s, struct process *p)
{
	struct readings *r = p->readings;
	// Whoever has no parent in the job has inherited nothing that is another's of the job.
	r->least_kib = tree_find(s->tree, p->parent) ? UINT64_MAX : 0;
	r->left_at_statm_kib = r->left_at_status_kib = s->peak.left_kib;
}

void process_memory_left(struct process_source *s, const struct process *p)
{
	const struct readings *r = p->readings;
	s->peak.left_kib += r->high_kib;
	s->peak.alive_kib -= r->high_kib;
	s->peak.left_faults += r->high_faults;
}

// A mark of a process: left_at_kib is what had left when it was looked at before.
static void note_high(
	struct process_source *s, struct readings *r, uint64_t kib, uint64_t left_at_kib)
{
	struct peak *peak = &s->peak;
	if (kib <= r->high_kib) {
		return;
	}
	peak->alive_kib += kib - r->high_kib;
	r->high_kib = kib;
	peak->largest_kib = kib > peak->largest_kib ? kib : peak->largest_kib;
	peak->rose_from_kib = left_at_kib < peak->rose_from_kib ? left_at_kib : peak->rose_from_kib;
}

void process_memory_seen(struct process_source *s, struct process *p, int64_t resident_kib,
	int64_t shared_kib, uint64_t now_ns)
{
	struct readings *r = p->readings;
	uint64_t before_kib = r->rss_kib;
	uint64_t resident = resident_kib > 0 ? (uint64_t)resident_kib : 0;
	r->own_kib = 0;
	if (resident > 0 && shared_kib >= 0 && resident_kib >= shared_kib) {
		uint64_t anonymous = resident - (uint64_t)shared_kib;
		r->least_kib = anonymous < r->least_kib ? anonymous : r->least_kib;
		r->own_kib = anonymous - r->least_kib;
	}
	note_high(s, r, resident, r->left_at_statm_kib);
	r->left_at_statm_kib = s->peak.left_kib;
	bool fell = resident + FELL_KIB < before_kib &&
	            resident < before_kib - before_kib / FELL_SHARE;
	bool young = r->status_ns == 0 && now_ns >= p->first_ns + LOOK_AGAIN_NS;
	r->look = r->look || fell || young;
}

bool process_memory_looks(const struct process *p, uint64_t now_ns)
{
	const struct readings *r = p->readings;
	return r->look && now_ns >= r->status_ns + LOOK_AGAIN_NS;
}

void process_memory_looked(
	struct process_source *s, struct process *p, int64_t high_bytes, uint64_t faults)
{
	struct readings *r = p->readings;
	r->look = false;
	// What it had before the run is not the job's peak: until it has more, readings tell.
	if (s->attached && p->first_ns < s->start_ns && r->before_bytes == 0) {
		r->before_bytes = high_bytes;
	}
	if (high_bytes > r->before_bytes) {
		note_high(s, r, (uint64_t)high_bytes / 1024, r->left_at_status_kib);
		r->left_at_status_kib = s->peak.left_kib;
		r->high_faults = faults;
	}
}

void process_memory_round(struct process_source *s)
{
	struct peak *peak = &s->peak;
	if (peak->rose_from_kib == UINT64_MAX) {
		return;
	}
	uint64_t sum_kib = peak->alive_kib + peak->left_kib - peak->rose_from_kib;
	peak->most_kib = sum_kib > peak->most_kib ? sum_kib : peak->most_kib;
	peak->rose_from_kib = UINT64_MAX;
}

// The most that the launcher ever had; UINT64_MAX where that is not known.
static uint64_t launcher_kib(const struct peak *peak)
{
	char path[64], buffer[4096];
	struct cursor text;
	struct proc_status status;
	snprintf(path, sizeof(path), "proc/%d/status", (int)peak->reaper);
	bool known = peak->reaper > 0 &&
	             host_read_once(peak->root_fd, path, buffer, sizeof(buffer), &text, NULL) ==
	                     0 &&
	             proc_status_parse(text, &status) == 0 && status.peak_resident_bytes >= 0;
	return known ? (uint64_t)status.peak_resident_bytes / 1024 : UINT64_MAX;
}

// What may have been touched and was not seen, by the faults of all that was reaped.
static bool unseen_kib(const struct process_source *s, uint64_t all_faults, uint64_t *ret)
{
	const struct peak *peak = &s->peak;
	uint64_t faults = all_faults > peak->left_faults ? all_faults - peak->left_faults : 0;
	uint64_t huge;
	if (!peak->huge_known || !huge_faults(peak->root_fd, &huge)) {
		return false;
	}
	huge = huge > peak->huge_base ? huge - peak->huge_base : 0;
	huge = huge < faults ? huge : faults;
	*ret = faults * FAULT_AROUND_KIB + huge * HUGE_KIB;
	return true;
}

// The cgroup whose memory the job's is part of: its own, or the one that it was started in. What
// the root of all has had is not counted.
static void open_cgroup_peak(struct peak *peak, pid_t first, struct error *e)
{
	struct cgroup_places places = {0};
	char pid[16], path[PATH_MAX];
	const char *directory = peak->own_cgroup;
	int version = peak->version;
	snprintf(pid, sizeof(pid), "%d", (int)first);
	if (!directory && cgroup_places_find(peak->root_fd, pid, &places, NULL) == 0) {
		const struct cgroup_place *place = cgroup_place_of(&places, CGROUP_MEMORY);
		bool root = !place->version || strlen(place->path) <= place->mount_length;
		directory = root ? NULL : place->path;
		version = place->version;
	}
	const char *name = version == 2 ? "memory.peak" : "memory.max_usage_in_bytes";
	int length = snprintf(path, sizeof(path), "%s/%s", directory ? directory : "", name);
	int r = length < (int)sizeof(path) ? 0 : -ENAMETOOLONG;
	if (!directory) {
		error_set(e, ENOENT, "the job is in no cgroup that counts memory");
	} else if (r < 0 || (r = host_file_open(&peak->cgroup, peak->root_fd, path, NULL)) < 0) {
		error_set(e, -r, "%s: %s%s", name, strerrordesc_np(-r),
			version == 2 && r == -ENOENT ? " (needs Linux 5.19)" : "");
	}
	cgroup_places_done(&places);
	peak->cgroup_sought = true;
}

static int64_t cgroup_peak_kib(struct process_source *s, struct sink *sink)
{
	struct cursor text;
	uint64_t bytes;
	size_t n;
	struct process *const *members = tree_members(s->tree, &n);
	if (!s->peak.cgroup_sought && n > 0) {
		struct error e = {0};
		open_cgroup_peak(&s->peak, members[0]->pid, &e);
		if (s->peak.cgroup.fd < 0) {
			sink_missing(sink, s->job, &process_groups[GROUP_JOB_PEAK], JOB_PEAK_CGROUP,
				e.text);
		}
	}
	bool read = s->peak.cgroup.fd >= 0 && host_file_read(&s->peak.cgroup, &text) == 0 &&
	            cursor_u64(&text, &bytes) && bytes <= INT64_MAX;
	return read ? (int64_t)(bytes / 1024) : VALUE_MISSING;
}

int process_read_job_peak(void *state, struct sink *sink, uint64_t now_ns)
{
	struct process_source *s = state;
	struct peak *peak = &s->peak;
	const struct reaped *reaped = tree_reaped(s->tree);
	uint64_t reaped_kib = atomic_load(&reaped->peak_bytes) / 1024, unseen;
	if (reaped_kib > peak->largest_kib && reaped_kib > launcher_kib(peak)) {
		peak->largest_kib = reaped_kib;
	}
	int64_t values[N_JOB_PEAK] = {
		[JOB_PEAK_LARGEST] = peak->largest_kib > 0 ? (int64_t)peak->largest_kib
	                                                   : VALUE_MISSING,
		[JOB_PEAK_MOST] = VALUE_MISSING,
		[JOB_PEAK_CGROUP] = cgroup_peak_kib(s, sink),
	};
	if (atomic_load(&reaped->first) && unseen_kib(s, atomic_load(&reaped->faults), &unseen)) {
		uint64_t most_kib = peak->most_kib + unseen;
		most_kib = most_kib > peak->largest_kib ? most_kib : peak->largest_kib;
		values[JOB_PEAK_MOST] = (int64_t)most_kib;
	}
	if (!s->job_peak_stream && s->job) {
		s->job_peak_stream = sink_stream(sink, s->job, &process_groups[GROUP_JOB_PEAK]);
		if (peak->reaper == 0) {
			sink_missing(sink, s->job, &process_groups[GROUP_JOB_PEAK], JOB_PEAK_MOST,
				"strain did not start the job, and does not reap it");
		}
	}
	stream_row(s->job_peak_stream, now_ns, values);
	return 0;
}
