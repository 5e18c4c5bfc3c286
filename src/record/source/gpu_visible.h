// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The GPUs that a process may use, from its environment: CUDA_VISIBLE_DEVICES and
// CUDA_DEVICE_ORDER, or ROCR_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/parse.h"

enum gpu_visible {
	GPU_HIDDEN,
	GPU_VISIBLE,
	GPU_VISIBLE_UNKNOWN, // the list does not determine it
};

#define GPU_MAX_INSTANCES 8u // of a divided GPU; CUDA allows seven

struct gpu_identity {
	const char *uuid; // "GPU-8932f937-..."
	const char *name; // of the model
	bool mig; // divided into instances
	const char *instances[GPU_MAX_INSTANCES]; // their UUIDs, "MIG-6f5e...", if known
	size_t n_instances;
};

// Fills ret[n] for the GPUs in NVML's order. list: the value of CUDA_VISIBLE_DEVICES, NULL if not
// set; order: that of CUDA_DEVICE_ORDER, or NULL. CUDA's rules: the first entry that names no GPU
// ends the list; a UUID may be abbreviated if it matches only one GPU. An index counts in NVML's
// order if all models are equal or the order is PCI_BUS_ID. Otherwise CUDA lists the fastest first,
// which cannot be determined here.
void gpu_visible(const char *list, const char *order, const struct gpu_identity *gpus, size_t n,
	enum gpu_visible *ret);
// Returns the instance of a divided GPU that the list lets a process use: the only instance, or the
// only one named. -1: none, several, or not determined by the list.
int gpu_visible_instance(const char *list, const struct gpu_identity *gpu);
// The same for AMD's GPUs in the order of ROCm, which is that of the driver's nodes. rocr: the
// value of ROCR_VISIBLE_DEVICES; hip: of HIP_VISIBLE_DEVICES, or if that is empty or not set, cuda:
// of CUDA_VISIBLE_DEVICES, whose indices count those that rocr leaves, in its order; NULL if not
// set. An empty ROCR_VISIBLE_DEVICES leaves none, empty others all. Sources: amd_filter_device.cpp
// of ROCr, rocdevice.cpp of HIP.
void gpu_visible_hip(const char *rocr, const char *hip, const char *cuda,
	const struct gpu_identity *gpus, size_t n, enum gpu_visible *ret);

struct tree;
struct tree_member;

// The environments of the job's processes, each read once, and again after it had time to execute a
// program in another one (env, a shell).
struct gpu_environs {
	struct tree_member *members; // scratch
	size_t capacity;
	int64_t last_entity, last_again; // those up to these were read once, again
	int64_t before; // the first of both when the second was last moved
	uint64_t again_ns; // when that was
};

// Calls take() for the environment of each process that is due, some of them if there are many.
// take() returns whether it has the variables that it looks for: a process without them proves
// nothing, since it may be a shell that sets them for its children as well as a process that sees
// every GPU. Returns whether any had them.
bool gpu_environs_read(struct gpu_environs *e, struct tree *tree, int root_fd, uint64_t now_ns,
	bool (*take)(void *context, struct cursor environment), void *context);
void gpu_environs_done(struct gpu_environs *e);
