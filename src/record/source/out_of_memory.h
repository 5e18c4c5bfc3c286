// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Whom the kernel killed for lack of memory, and whether the memory limit was why.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "record/host/cgroupfs.h"
#include "record/host/file.h"

struct sink;

struct out_of_memory {
	struct host_file kills_file;
	struct host_file hits_file; // of the directory that sets the limit; closed: none does
	const char *hits_key; // in hits_file; NULL: it holds the number alone
	char *limit_directory; // under the machine's root without leading slash
	uint64_t limit_bytes;
	int64_t kills, hits; // when last asked, when opened; VALUE_MISSING
	bool shared; // the kills are those of a cgroup that others share
};

// Begins to watch the limit of `places`, and the kills in `directory` (the job's own cgroup of this
// version), or, where that is NULL, in the cgroup that the job shares. What cannot be opened is
// VALUE_MISSING for ever.
void out_of_memory_open(struct out_of_memory *o, int root_fd, const char *directory, int version,
	const struct cgroup_places *places);
void out_of_memory_close(struct out_of_memory *o);

// How many were killed in the watched cgroup since it was made. An event says so where they have
// become more: "oom_kill", or, where others share it, "oom_kill_nearby".
int64_t out_of_memory_kills(
	struct out_of_memory *o, struct sink *sink, int64_t job, uint64_t now_ns);
// How often memory was at the limit.
int64_t out_of_memory_limit_hits(struct out_of_memory *o);
