// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What the kernel's drivers i915 and xe say of an open descriptor of a GPU: /proc/PID/fdinfo/FD.
// Source: the kernel's Documentation/gpu/drm-usage-stats.rst.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// Kinds of engines.
enum {
	ENGINE_RENDER,
	ENGINE_COPY,
	ENGINE_VIDEO,
	ENGINE_ENHANCE,
	ENGINE_COMPUTE,
	ENGINE_OTHER,
	N_ENGINES
};

// VALUE_MISSING: it does not say it, or not in a form that is known.
struct gpu_fdinfo {
	bool silent; // drivers before Linux 5.19 say nothing
	int64_t id; // of the client, which several descriptors and processes may have
	int64_t busy[N_ENGINES]; // i915: ns; xe: ticks of the GPU's clock
	int64_t total[N_ENGINES]; // that clock; i915: VALUE_MISSING
	int64_t capacity[N_ENGINES]; // engines of the kind
	bool has_local; // it has memory of the GPU's own in its list
	int64_t local_bytes, system_bytes; // resident
};

// Returns 0; -EBADMSG: it is no client of the GPU at the place "0000:03:00.0"; -errno if it cannot
// be read. Of a suspended GPU, reading it wakes the GPU (xe).
int gpu_fdinfo_read(int root_fd, pid_t pid, unsigned fd, const char *driver, const char *place,
	struct gpu_fdinfo *ret);
