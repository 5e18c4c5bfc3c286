// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The library's functions as they were found, for nvml.c and nvml_lists.c. NULL: not in this
// library.

#pragma once

#include "record/host/nvml.h"

struct nvml_calls {
	int (*init)(void);
	int (*shutdown)(void);
	int (*driver_version)(char *buffer, unsigned size);
	int (*cuda_version)(int *ret);
	int (*device_count)(unsigned *ret);
	int (*device)(unsigned index, struct nvml_device **ret);

	int (*texts[N_NVML_TEXTS])(struct nvml_device *d, char *buffer, unsigned size);
	int (*numbers[N_NVML_NUMBERS])(struct nvml_device *d, unsigned *ret);
	int (*pci)(struct nvml_device *d, struct nvml_pci *ret);
	int (*clock)(struct nvml_device *d, unsigned clock, unsigned *ret);
	int (*clock_max)(struct nvml_device *d, unsigned clock, unsigned *ret);
	int (*clock_application)(struct nvml_device *d, unsigned clock, unsigned *ret);
	int (*clock_reasons)(struct nvml_device *d, unsigned long long *ret);
	int (*temperature)(struct nvml_device *d, unsigned sensor, unsigned *ret);
	int (*temperature_versioned)(struct nvml_device *d, struct nvml_temperature *ret);
	int (*utilization)(struct nvml_device *d, struct nvml_utilization *ret);
	int (*memory)(struct nvml_device *d, struct nvml_memory_v1 *ret);
	int (*memory_v2)(struct nvml_device *d, struct nvml_memory_v2 *ret);
	int (*compute_capability)(struct nvml_device *d, int *ret_major, int *ret_minor);
	int (*mig)(struct nvml_device *d, unsigned *ret_current, unsigned *ret_pending);
	int (*instance_count)(struct nvml_device *d, unsigned *ret);
	int (*instance)(struct nvml_device *d, unsigned index, struct nvml_device **ret);
	int (*pcie_throughput)(struct nvml_device *d, unsigned direction, unsigned *ret);
	int (*fields)(struct nvml_device *d, int n, struct nvml_field *fields);

	int (*samples)(struct nvml_device *d, unsigned which, unsigned long long last_us,
		unsigned *ret_type, unsigned *n, struct nvml_sample *samples);
	int (*compute_processes)(struct nvml_device *d, unsigned *n, void *entries);
	int (*graphics_processes)(struct nvml_device *d, unsigned *n, void *entries);
	int (*mps_processes)(struct nvml_device *d, unsigned *n, void *entries);
	int (*process_samples)(struct nvml_device *d, struct nvml_process_sample *samples,
		unsigned *n, unsigned long long last_us);

	int (*event_set_new)(struct nvml_event_set **ret);
	int (*event_set_free)(struct nvml_event_set *set);
	int (*event_register)(
		struct nvml_device *d, unsigned long long types, struct nvml_event_set *set);
	int (*event_wait)(struct nvml_event_set *set, struct nvml_event *ret, unsigned ms);

	int (*gpm_support)(struct nvml_device *d, struct nvml_gpm_support *ret);
	int (*gpm_alloc)(struct nvml_gpm_sample **ret);
	int (*gpm_free)(struct nvml_gpm_sample *sample);
	int (*gpm_read)(struct nvml_device *d, struct nvml_gpm_sample *sample);
	int (*gpm_metrics)(struct nvml_gpm_request *request);
};

struct nvml {
	void *library;
	struct nvml_calls call;
};
