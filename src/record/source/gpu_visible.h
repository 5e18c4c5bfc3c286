// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The GPUs that a process may use, from its CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER.

#pragma once

#include <stdbool.h>
#include <stddef.h>

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
