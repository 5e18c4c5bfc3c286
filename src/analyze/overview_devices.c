// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// GPUs, disks and network interfaces in figures.

#include "analyze/overview_devices.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analyze/analysis.h"
#include "analyze/names.h"

static size_t count_kind(const struct analysis *a, enum entity_kind kind)
{
	size_t n = 0;
	for (size_t i = 0; i < a->entities.n; i++) {
		n += a->entities.items[i].kind == kind;
	}
	return n;
}

static struct gpu_figures gpu_of(const struct analysis *a, const struct entity *entity)
{
	int64_t id = entity->id;
	double limit = analysis_figure(a, id, NAME_GPU_MEMORY_LIMIT, FIGURE_MAX);
	double power = analysis_figure(a, id, NAME_GPU_ENERGY, FIGURE_MEAN);
	return (struct gpu_figures){
		.entity = id,
		.name = entity->name,
		.memory_peak_bytes = analysis_figure(a, id, NAME_GPU_MEMORY, FIGURE_MAX),
		.memory_bytes = isfinite(limit) ? limit : entity_number(entity, "memory_bytes"),
		.busy = analysis_figure(a, id, NAME_GPU_BUSY, FIGURE_MEAN),
		.busy_p95 = analysis_figure(a, id, NAME_GPU_BUSY, FIGURE_P95),
		.power_watts = isfinite(power)
	                               ? power
	                               : analysis_figure(a, id, NAME_GPU_POWER, FIGURE_MEAN),
		.energy_joules = analysis_figure(a, id, NAME_GPU_ENERGY, FIGURE_TOTAL),
		.to_device_bytes_per_s = analysis_figure(a, id, NAME_GPU_RECEIVED, FIGURE_MEAN),
		.from_device_bytes_per_s = analysis_figure(a, id, NAME_GPU_SENT, FIGURE_MEAN),
	};
}

struct device_names {
	enum entity_kind kind;
	const char *in;
	const char *out;
	const char *busy; // NULL for none
};

static int devices_build(const struct analysis *a, const struct device_names *names,
	struct device_figures **ret, size_t *ret_n)
{
	struct device_figures *devices = calloc(count_kind(a, names->kind) + 1, sizeof(*devices));
	if (!devices) {
		return -ENOMEM;
	}
	size_t n = 0;
	for (size_t i = 0; i < a->entities.n; i++) {
		const struct entity *entity = &a->entities.items[i];
		struct device_figures device = {
			.entity = entity->id,
			.name = entity->name,
			.in_bytes = analysis_figure(a, entity->id, names->in, FIGURE_TOTAL),
			.out_bytes = analysis_figure(a, entity->id, names->out, FIGURE_TOTAL),
			.busy = names->busy
		                        ? analysis_figure(a, entity->id, names->busy, FIGURE_MEAN)
		                        : NAN,
		};
		if (entity->kind == names->kind && (device.in_bytes > 0 || device.out_bytes > 0)) {
			devices[n++] = device;
		}
	}
	*ret = devices;
	*ret_n = n;
	return 0;
}

static int gpus_build(const struct analysis *a, struct overview *ret)
{
	ret->gpus = calloc(count_kind(a, ENTITY_GPU) + 1, sizeof(*ret->gpus));
	if (!ret->gpus) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < a->entities.n; i++) {
		if (a->entities.items[i].kind == ENTITY_GPU) {
			ret->gpus[ret->n_gpus++] = gpu_of(a, &a->entities.items[i]);
		}
	}
	return 0;
}

int overview_devices_build(const struct analysis *a, struct overview *ret)
{
	static const struct device_names disk = {
		ENTITY_DISK, NAME_DISK_READ, NAME_DISK_WRITE, NAME_DISK_BUSY};
	static const struct device_names network = {
		ENTITY_NETWORK, NAME_NETWORK_RECEIVED, NAME_NETWORK_SENT, NULL};
	int r = gpus_build(a, ret);
	r = r < 0 ? r : devices_build(a, &disk, &ret->disks, &ret->n_disks);
	return r < 0 ? r : devices_build(a, &network, &ret->networks, &ret->n_networks);
}
