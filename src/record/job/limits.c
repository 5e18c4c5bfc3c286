// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Limits of the job: the table of them, CPUs and memory.
//
// One that is larger than what strain itself may use is refused like one that cannot be set: the
// job would run under another limit than the run says.

#include "record/job/limits.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/text.h"
#include "record/host/cgroupfs.h"
#include "record/host/file.h"
#include "record/host/keyed.h"
#include "record/job/cgroup.h"
#include "record/job/cgroup_directory.h"
#include "record/job/limits_set.h"

// ---- what is asked for

static bool is_number(const char *text)
{
	return *text && strspn(text, "0123456789") == strlen(text);
}

static int read_cpus(struct limits_wanted *w, const char *text, struct error *e)
{
	static const char expected[] = "expected a number of CPUs (2) or a list of them (0-1,4)";
	int64_t count = 0;
	struct cpus cpus = {0};
	if (is_number(text)) {
		if (parse_integer(text, 1, CPUS_MAX, &count, NULL) < 0) {
			return error_set(
				e, ERANGE, "expected 1 to %d CPUs, found '%s'", CPUS_MAX, text);
		}
	} else if (strchr(text, '\n') || !cpus_parse(cursor_of(text, strlen(text)), &cpus)) {
		return error_set(e, EINVAL, "%s, found '%s'", expected, text);
	}
	w->cpu_count = (unsigned)count;
	w->cpus = cpus;
	return 0;
}

static int read_memory(struct limits_wanted *w, const char *text, struct error *e)
{
	uint64_t bytes;
	int rc = parse_size(text, &bytes, e);
	if (rc == 0 && bytes < LIMIT_MEMORY_MIN) {
		rc = error_set(e, ERANGE, "expected at least 1MiB, found '%s'", text);
	}
	if (rc == 0) {
		w->memory_bytes = bytes;
	}
	return rc;
}

static int read_rate(struct limits_wanted *w, const char *text, struct error *e)
{
	uint64_t rate = 0;
	if (strcmp(text, "unlimited") != 0) {
		int rc = parse_rate(text, &rate, NULL);
		if (rc < 0) {
			return error_set(e, -rc,
				"expected a rate such as 100MB/s, or unlimited, found '%s'", text);
		}
		if (rate < LIMIT_RATE_MIN) {
			return error_set(e, ERANGE, "expected at least 4KiB/s, found '%s'", text);
		}
	}
	w->read_bytes_per_s = rate;
	return 0;
}

static int read_gpus(struct limits_wanted *w, const char *text, struct error *e)
{
	int64_t count = 0;
	char *list = NULL;
	if (is_number(text)) {
		if (parse_integer(text, 0, LIMIT_GPUS_MAX, &count, NULL) < 0) {
			return error_set(e, ERANGE, "expected 0 to %d cards, found '%s'",
				LIMIT_GPUS_MAX, text);
		}
	} else {
		int rc = limits_read_gpu_list(text, &list, e);
		if (rc < 0) {
			return rc;
		}
	}
	free(w->gpu_list);
	w->gpu_list = list;
	w->gpu_count = (unsigned)count;
	return 0;
}

// ---- CPUs

static int check_quota(const struct limits_place *place, unsigned n, struct error *e)
{
	struct cgroup_places places = {0};
	_cleanup_free_ char *directory = NULL;
	double quota;
	int rc = 0;
	if (cgroup_places_find(place->root_fd, "self", &places, NULL) == 0 &&
		cgroup_cpu_quota(place->root_fd, &places, &quota, &directory) == 0 &&
		n > ceil(quota)) {
		rc = error_set(e, ERANGE, "expected at most %g CPUs, the quota of /%s, found %u",
			quota, directory ? directory : "", n);
	}
	cgroup_places_done(&places);
	return rc;
}

static int choose_cpus(const struct limits_wanted *w, const struct limits_place *place,
	struct cpus *ret, struct error *e)
{
	struct cpus allowed;
	_cleanup_text_ struct text list = {0};
	int rc = cpus_of_self(&allowed);
	if (rc < 0) {
		return error_errno(e, -rc, "cannot tell which CPUs may be used");
	}
	cpus_append(&list, &allowed);
	int outside = cpus_first_outside(&w->cpus, &allowed);
	if (w->cpu_count > cpus_count(&allowed)) {
		return error_set(e, ERANGE,
			"expected at most %u, the CPUs that strain may use here (%s), found %u",
			cpus_count(&allowed), list.data ? list.data : "", w->cpu_count);
	}
	if (w->cpu_count == 0 && outside >= 0) {
		return error_set(e, ERANGE, "expected CPUs that strain may use here (%s), found %d",
			list.data ? list.data : "", outside);
	}
	if (w->cpu_count > 0) {
		cpus_choose(place->root_fd, &allowed, w->cpu_count, ret);
	} else {
		*ret = w->cpus;
	}
	return check_quota(place, cpus_count(ret), e);
}

// v1 wants the memory nodes, too; they stay those of the cgroup above.
static int copy_memory_nodes(const struct limits_place *place, const char *directory)
{
	_cleanup_free_ char *parent = strdup(directory);
	char buffer[1024];
	struct cursor text;
	int rc = parent ? 0 : -ENOMEM;
	if (rc == 0) {
		*strrchr(parent, '/') = '\0';
		rc = cgroup_read(place->root_fd, parent, "cpuset.mems", buffer, sizeof(buffer) - 1,
			&text, NULL);
	}
	if (rc < 0) {
		return rc;
	}
	buffer[text.end - text.at] = '\0';
	return cgroup_directory_write(place->root_fd, directory, "cpuset.mems", buffer);
}

static bool set_cpuset(const struct limits_place *place, const char *list)
{
	struct job_cgroup *cgroup = place->cgroup;
	if (!cgroup || job_cgroup_add(place->root_fd, CGROUP_CPUSET, cgroup, NULL) < 0) {
		return false;
	}
	return cgroup_directory_write(place->root_fd, cgroup->cpuset, "cpuset.cpus", list) == 0 &&
	       (cgroup->version == 2 || copy_memory_nodes(place, cgroup->cpuset) == 0);
}

static int set_cpus(const struct limits_wanted *w, const struct limits_place *place,
	struct limits *l, struct error *e)
{
	_cleanup_text_ struct text list = {0}, how = {0};
	int rc = choose_cpus(w, place, &l->cpus, e);
	if (rc < 0) {
		return rc;
	}
	cpus_append(&list, &l->cpus);
	if (list.failed) {
		return error_errno(e, ENOMEM, "cannot limit CPUs");
	}
	l->affinity = !set_cpuset(place, list.data);
	l->in_cgroup = l->in_cgroup || !l->affinity;
	if (l->affinity && place->cgroup) {
		job_cgroup_drop_cpuset(place->cgroup);
	}
	text_format(&how, "%u (%s %s)", cpus_count(&l->cpus), l->affinity ? "affinity" : "cpuset",
		list.data);
	l->set[LIMIT_CPUS] = text_steal(&how);
	return 0;
}

// ---- memory

static bool read_meminfo(int root_fd, const char *key, int64_t *ret_bytes)
{
	char buffer[4096];
	struct cursor text;
	return host_read_once(root_fd, "proc/meminfo", buffer, sizeof(buffer), &text, NULL) == 0 &&
	       keyed_parse(text, &key, 1, ret_bytes) == 1;
}

// The least of the machine's memory and what the cgroups above allow.
static uint64_t memory_available(const struct limits_place *place, char **ret_directory)
{
	struct cgroup_places places = {0};
	int64_t total;
	uint64_t limit, most = UINT64_MAX;
	if (read_meminfo(place->root_fd, "MemTotal", &total) && total > 0) {
		most = (uint64_t)total;
	}
	if (cgroup_places_find(place->root_fd, "self", &places, NULL) == 0) {
		_cleanup_free_ char *directory = NULL;
		if (cgroup_memory_limit(place->root_fd, &places, &limit, &directory) == 0 &&
			limit < most) {
			most = limit;
			*ret_directory = take_pointer(directory);
		}
		cgroup_places_done(&places);
	}
	return most;
}

static int check_memory(const struct limits_place *place, uint64_t bytes, struct error *e)
{
	_cleanup_free_ char *directory = NULL;
	char found[32], most[32];
	uint64_t available = memory_available(place, &directory);
	if (bytes <= available) {
		return 0;
	}
	text_bytes_beside(found, sizeof(found), (double)bytes, (double)bytes);
	text_bytes_beside(most, sizeof(most), (double)available, (double)bytes);
	return error_set(e, ERANGE, "expected at most %s, %s%s, found %s (%" PRIu64 ")", most,
		directory ? "the limit of /" : "all that this machine has",
		directory ? directory : "", found, bytes);
}

static uint64_t page_bytes(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

// The kernel rounds to whole pages.
static int check_written(
	const struct limits_place *place, const char *name, uint64_t bytes, struct error *e)
{
	char buffer[64];
	struct cursor text;
	uint64_t found = 0;
	int rc = cgroup_read(
		place->root_fd, place->cgroup->memory, name, buffer, sizeof(buffer), &text, e);
	if (rc == 0 &&
		(!cursor_u64(&text, &found) || found > bytes || found + page_bytes() <= bytes)) {
		rc = error_set(e, EIO, "/%s/%s: expected %" PRIu64 ", found %" PRIu64,
			place->cgroup->memory, name, bytes, found);
	}
	return rc;
}

static bool has_swap(int root_fd)
{
	int64_t total;
	return read_meminfo(root_fd, "SwapTotal", &total) && total > 0;
}

static int write_memory(
	const struct limits_place *place, uint64_t bytes, const char **ret_swap, struct error *e)
{
	static const char *const limits[] = {"memory.limit_in_bytes", "memory.max"};
	const struct job_cgroup *cgroup = place->cgroup;
	const char *limit = limits[cgroup->version - 1];
	char number[24], more[24];
	snprintf(number, sizeof(number), "%" PRIu64, bytes);
	snprintf(more, sizeof(more), "%" PRIu64, bytes + page_bytes());
	int rc = cgroup_directory_write(place->root_fd, cgroup->memory, limit, number);
	if (rc < 0) {
		return error_errno(e, -rc, "/%s/%s", cgroup->memory, limit);
	}
	// What does not fit must not go to swap, else nothing is limited but the speed. v1 limits
	// both together; a page more than memory alone, because at a limit that is the same no
	// failure is counted (seen with Linux 6.18), and nobody could tell what killed the job.
	int swap = cgroup->version == 2 ? cgroup_directory_write(place->root_fd, cgroup->memory,
						  "memory.swap.max", "0")
	                                : cgroup_directory_write(place->root_fd, cgroup->memory,
						  "memory.memsw.limit_in_bytes", more);
	if (swap == -ENOENT && cgroup->version == 1) {
		(void)cgroup_directory_write(
			place->root_fd, cgroup->memory, "memory.swappiness", "0");
	} else if (swap < 0 && swap != -ENOENT) {
		return error_errno(e, -swap, "/%s: cannot limit swap", cgroup->memory);
	}
	*ret_swap = swap < 0 && has_swap(place->root_fd) ? "; swap is not counted here" : "";
	return check_written(place, limit, bytes, e);
}

// Why there is no cgroup that could limit memory.
static int refuse_memory(const struct limits_place *place, struct error *e)
{
	const struct job_cgroup *cgroup = place->cgroup;
	const char *reason = cgroup ? cgroup->memory_reason : place->why_none->text;
	if (!cgroup) {
		return error_set(e, place->why_none->code, "no cgroup for the job: %s", reason);
	}
	error_set(e, reason ? cgroup->memory_code : ENOENT, "%s%s",
		reason ? reason : "the memory controller is not handed down to /",
		reason ? "" : cgroup->procs);
	return job_cgroup_add_hint(place->root_fd, cgroup, CGROUP_MEMORY, e);
}

static int set_memory(const struct limits_wanted *w, const struct limits_place *place,
	struct limits *l, struct error *e)
{
	const char *swap = "";
	if (!place->cgroup || !place->cgroup->memory) {
		return refuse_memory(place, e);
	}
	int rc = check_memory(place, w->memory_bytes, e);
	rc = rc < 0 ? rc : write_memory(place, w->memory_bytes, &swap, e);
	if (rc < 0) {
		return rc;
	}
	struct text how = {0};
	text_format(&how, "%" PRIu64 " (cgroup v%d memory%s)", w->memory_bytes,
		place->cgroup->version, swap);
	l->set[LIMIT_MEMORY] = text_steal(&how);
	l->memory_bytes = w->memory_bytes;
	l->in_cgroup = true;
	return 0;
}

// ---- all

static const struct {
	const char *option;
	const char *key;
	int (*read)(struct limits_wanted *wanted, const char *text, struct error *e);
	int (*set)(const struct limits_wanted *wanted, const struct limits_place *place,
		struct limits *limits, struct error *e);
} table[N_LIMITS] = {
	[LIMIT_CPUS] = {"--cpus", "limit_cpus", read_cpus, set_cpus},
	[LIMIT_MEMORY] = {"--memory", "limit_memory", read_memory, set_memory},
	[LIMIT_DISK_READ] = {"--disk-read", "limit_disk_read", read_rate, limits_set_disk_read},
	[LIMIT_GPUS] = {"--gpus", "limit_gpus", read_gpus, limits_set_gpus},
};

const char *limit_option(enum limit limit)
{
	return table[limit].option;
}

const char *limit_key(enum limit limit)
{
	return table[limit].key;
}

int limits_read(struct limits_wanted *wanted, enum limit limit, const char *text, struct error *e)
{
	if (table[limit].read(wanted, text, e) < 0) {
		return error_prefix(e, "%s", table[limit].option);
	}
	wanted->wanted[limit] = true;
	return 0;
}

bool limits_any(const struct limits_wanted *wanted)
{
	bool any = false;
	for (size_t i = 0; i < N_LIMITS; i++) {
		any = any || wanted->wanted[i];
	}
	return any;
}

void limits_wanted_done(struct limits_wanted *wanted)
{
	free(wanted->gpu_list);
	*wanted = (struct limits_wanted){0};
}

int limits_set(const struct limits_wanted *wanted, const struct limits_place *place,
	struct limits *ret, struct error *e)
{
	struct limits limits = {0};
	for (size_t i = 0; i < N_LIMITS; i++) {
		if (!wanted->wanted[i]) {
			continue;
		}
		int rc = table[i].set(wanted, place, &limits, e);
		if (rc == 0 && !limits.set[i]) {
			rc = error_errno(e, ENOMEM, "cannot set it");
		}
		if (rc < 0) {
			limits_done(&limits);
			return error_prefix(e, "%s", table[i].option);
		}
	}
	*ret = limits;
	return 0;
}

int limits_enter(const struct limits *limits)
{
	return limits->affinity && sched_setaffinity(
					   0, sizeof(limits->cpus.words), limits->cpus.words) < 0
	               ? -errno
	               : 0;
}

void limits_set_environment(const struct limits *limits)
{
	if (!limits->gpus) {
		return;
	}
	setenv("CUDA_VISIBLE_DEVICES", limits->gpus, 1);
	if (limits->gpus_of_hip) {
		setenv("HIP_VISIBLE_DEVICES", limits->gpus, 1);
	}
	if (strcmp(limits->gpus, "-1") == 0) {
		setenv("ROCR_VISIBLE_DEVICES", limits->gpus, 1);
	}
}

void limits_done(struct limits *limits)
{
	for (size_t i = 0; i < N_LIMITS; i++) {
		free(limits->set[i]);
	}
	free(limits->gpus);
	*limits = (struct limits){0};
}
