// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Every source. Within a lane they are read in this order.

#include <stddef.h>

#include "record/sample/source.h"

extern const struct source source_process;
extern const struct source source_memory;
extern const struct source source_cgroup;
extern const struct source source_pressure;
extern const struct source source_host;
extern const struct source source_disk;
extern const struct source source_energy;
extern const struct source source_network;
extern const struct source source_connections;
extern const struct source source_nvml;
extern const struct source source_amdgpu;
extern const struct source source_intelgpu;
extern const struct source source_waits;
extern const struct source source_threads;
extern const struct source source_profile;

const struct source *const source_list[] = {
	&source_process,
	&source_memory,
	&source_cgroup,
	&source_pressure,
	&source_host,
	&source_disk,
	&source_energy,
	&source_network,
	&source_connections,
	&source_nvml,
	&source_amdgpu,
	&source_intelgpu,
	&source_waits,
	&source_threads,
	&source_profile,
	NULL,
};
