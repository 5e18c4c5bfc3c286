// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Which limits `strain run` can give its job here: each is set on a cgroup in which nobody is.

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/doctor_checks.h"
#include "record/job/limits.h"

// An amount that no machine is without.
static const struct {
	const char *name;
	const char *least;
} checks[N_LIMITS] = {
	[LIMIT_CPUS] = {"limit cpus", "1"},
	[LIMIT_MEMORY] = {"limit memory", "1MiB"},
	[LIMIT_DISK_READ] = {"limit disk read", "4KiB/s"},
	[LIMIT_GPUS] = {"limit gpus", "1"},
};

// "1 (cpuset 0)" without the amount, which nobody asked for.
static void append_how(struct doctor_check *check, enum limit limit, const char *set)
{
	const char *open = strchr(set, '('), *close = open ? strrchr(open, ')') : NULL;
	size_t length = close ? (size_t)(close - open) - 1 : 0;
	if (limit == LIMIT_CPUS || limit == LIMIT_GPUS) {
		const char *end = close ? memchr(open, limit == LIMIT_CPUS ? ' ' : '=', length)
		                        : NULL;
		length = end ? (size_t)(end - open) - 1 : length;
	}
	snprintf(check->detail, sizeof(check->detail), "%s can be set: %.*s", limit_option(limit),
		(int)length, open ? open + 1 : "");
}

static void try_limit(enum limit limit, const struct limits_place *place, struct doctor_check *ret)
{
	struct limits_wanted wanted = {0};
	struct limits limits = {0};
	struct error e = {0};
	*ret = (struct doctor_check){.name = checks[limit].name, .state = DOCTOR_AVAILABLE};
	int rc = limits_read(&wanted, limit, checks[limit].least, &e);
	rc = rc < 0 ? rc : limits_set(&wanted, place, &limits, &e);
	if (rc == 0) {
		append_how(ret, limit, limits.set[limit]);
	} else {
		bool none = limit == LIMIT_GPUS; // that one can always be set
		ret->state = none ? DOCTOR_PARTLY : DOCTOR_MISSING;
		snprintf(ret->detail, sizeof(ret->detail), "%s%s%s", limit_option(limit),
			none ? " 0 only" : "", e.text + strlen(limit_option(limit)));
	}
	limits_done(&limits);
	limits_wanted_done(&wanted);
}

void doctor_check_limits(
	struct job_cgroup *cgroup, const struct error *why, struct doctor_check *ret)
{
	_cleanup_close_ int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const struct limits_place place = {root_fd, cgroup, why};
	for (size_t i = 0; i < N_LIMITS; i++) {
		try_limit((enum limit)i, &place, &ret[i]);
	}
}
