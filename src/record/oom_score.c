// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The kernel kills the process with the largest sum of its memory and a share of the limit,
// oom_score_adj thousandths. A share of a large limit is more than any process of a job with many
// of them has: the recorder would be the first to go and the job's process the next. So the raise
// is a size, ten times what a recorder takes. A process that is larger has filled the memory, with
// or without a recorder; where none is, the recorder goes, and the job may live.

#include "record/oom_score.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "record/host/cgroupfs.h"

#define PREFERRED_BYTES (UINT64_C(128) << 20)

enum { RAISE_MOST = 300, SCORE_MAX = 1000 };

unsigned oom_score_raise_under(uint64_t memory_bytes)
{
	uint64_t unit = memory_bytes / SCORE_MAX;
	uint64_t raise = unit > 0 ? (PREFERRED_BYTES + unit - 1) / unit : RAISE_MOST;
	return raise < RAISE_MOST ? (unsigned)raise : RAISE_MOST;
}

// The tightest of what both, recorder and job, are under.
static uint64_t memory_limit(void)
{
	_cleanup_close_ int root_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct sysinfo machine;
	struct cgroup_places places;
	uint64_t of_cgroup;
	uint64_t limit = sysinfo(&machine) == 0 ? machine.totalram * machine.mem_unit : 0;
	if (root_fd < 0 || cgroup_places_find(root_fd, "self", &places, NULL) < 0) {
		return limit;
	}
	if (cgroup_memory_limit(root_fd, &places, &of_cgroup, NULL) == 0 &&
		(limit == 0 || of_cgroup < limit)) {
		limit = of_cgroup;
	}
	cgroup_places_done(&places);
	return limit;
}

void oom_score_raise(void)
{
	_cleanup_close_ int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	char text[16] = "";
	int64_t score;
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0) {
		return;
	}
	text[strcspn(text, "\n")] = '\0';
	if (parse_integer(text, -SCORE_MAX, SCORE_MAX, &score, NULL) < 0) {
		return;
	}
	score += oom_score_raise_under(memory_limit());
	score = score < SCORE_MAX ? score : SCORE_MAX;
	int length = snprintf(text, sizeof(text), "%" PRId64, score);
	(void)!pwrite(fd, text, (size_t)length, 0);
}
