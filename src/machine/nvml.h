// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// NVIDIA's management library, opened at run time. Its results are checked like any other input:
// counts are bounded, strings terminated, struct layouts detected.
//
// Calls serialise in the driver, and any of them may block: for 20 ms by design (PCIe throughput),
// for seconds while a GPU fails, for ever when the driver hangs. Therefore one thread owns a struct
// nvml and does nothing else, and nobody may wait for that thread without a time limit.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "machine/nvml_api.h"

#define NVML_LIBRARY "libnvidia-ml.so.1"
// Upper bounds for GPUs, processes, samples and fields. Larger counts are rejected.
#define NVML_MAX_GPUS 128u
#define NVML_MAX_PROCESSES 512u
#define NVML_MAX_SAMPLES 1024u
#define NVML_MAX_FIELDS 16u

struct nvml;

// Loads and initialises the library at `path` (NULL: NVML_LIBRARY in the loader's search path). The
// error has the reason and, after "; ", the remedy. Returns -ENODEV if there is no GPU.
int nvml_open(const char *path, struct nvml **ret, struct error *e);
// Shuts the library down. Accepts NULL.
void nvml_close(struct nvml *n);

// A result as a phrase that explains a missing value: "not supported by this GPU".
const char *nvml_reason(int result);

// The consequence of a result for the next reading.
enum nvml_outcome {
	NVML_READ, // the value is valid
	NVML_NOT_NOW, // try again
	NVML_NEVER, // not available in this run
	NVML_LOST, // the GPU itself is gone
};
enum nvml_outcome nvml_outcome(int result);

// All calls below return an enum nvml_result, or NVML_FUNCTION_NOT_FOUND if this library lacks the
// call. *ret is valid only after NVML_OK.

// Strings are always terminated within `size` bytes.
int nvml_driver_version(struct nvml *n, char *buffer, size_t size);
int nvml_cuda_version(struct nvml *n, int *ret); // 12040 is 12.4
int nvml_device_count(struct nvml *n, unsigned *ret); // at most NVML_MAX_GPUS
int nvml_device(struct nvml *n, unsigned index, struct nvml_device **ret);

enum nvml_text {
	NVML_NAME,
	NVML_UUID,
	N_NVML_TEXTS,
};
int nvml_text(
	struct nvml *n, struct nvml_device *d, enum nvml_text which, char *buffer, size_t size);
int nvml_bus_id(struct nvml *n, struct nvml_device *d, char *buffer, size_t size);

enum nvml_number {
	NVML_POWER, // mW, averaged over a second on Ampere and later
	NVML_POWER_LIMIT, // mW, enforced
	NVML_PCIE_GENERATION, // of the link at present: it falls when idle
	NVML_PCIE_WIDTH,
	NVML_PCIE_GENERATION_MAX, // with this GPU in this slot
	NVML_PCIE_WIDTH_MAX,
	NVML_CORES,
	NVML_MEMORY_BUS_BITS,
	NVML_SM_CLOCK, // MHz
	NVML_MEMORY_CLOCK,
	NVML_SM_CLOCK_MAX,
	NVML_MEMORY_CLOCK_MAX,
	NVML_SM_CLOCK_APPLICATION, // set for applications (nvidia-smi -ac), or the default
	NVML_CLOCK_REASONS, // bits
	NVML_CELSIUS,
	N_NVML_NUMBERS,
};
// *ret is INT64_MIN if the number exceeds 63 bits.
int nvml_number(struct nvml *n, struct nvml_device *d, enum nvml_number which, int64_t *ret);

int nvml_utilization(struct nvml *n, struct nvml_device *d, struct nvml_utilization *ret);
// If the library has only the first layout, `reserved` is NVML_NOT_AVAILABLE and is part of `used`.
int nvml_memory(struct nvml *n, struct nvml_device *d, struct nvml_memory_v2 *ret);
int nvml_compute_capability(struct nvml *n, struct nvml_device *d, int *ret_major, int *ret_minor);
// Whether the GPU is divided into instances.
int nvml_mig(struct nvml *n, struct nvml_device *d, bool *ret);
// The handles of the MIG instances assigned to this machine or container, at most `capacity`. An
// instance has its own UUID, memory and processes.
int nvml_instances(struct nvml *n, struct nvml_device *d, struct nvml_device **instances,
	size_t capacity, size_t *ret_n);

// Measures for about 20 ms, during which it blocks. Returns kB/s.
int nvml_pcie_throughput(
	struct nvml *n, struct nvml_device *d, enum nvml_direction direction, uint32_t *ret);

// Reads up to NVML_MAX_FIELDS fields at once. The caller sets id and scope; each field has its own
// result.
int nvml_fields(struct nvml *n, struct nvml_device *d, struct nvml_field *fields, size_t n_fields);
// A field's value of any type; returns false if it is not an integer of 63 bits.
bool nvml_field_value(const struct nvml_field *f, int64_t *ret);

// Samples newer than last_us from the driver's own buffer, as unsigned values.
int nvml_samples(struct nvml *n, struct nvml_device *d, enum nvml_sampling which, uint64_t last_us,
	struct nvml_sample *samples, size_t capacity, size_t *ret_n);

struct nvml_process {
	uint32_t pid; // in the host's pid namespace or (newer drivers) the caller's
	uint64_t memory_bytes; // NVML_NOT_AVAILABLE where unknown
};
// Processes with a compute, graphics or MPS context, each once. A `capacity` of NVML_MAX_PROCESSES
// is enough.
int nvml_processes(struct nvml *n, struct nvml_device *d, struct nvml_process *processes,
	size_t capacity, size_t *ret_n);
// Busy processes since last_us. NVML_NOT_FOUND: none, or the driver reports none.
int nvml_process_samples(struct nvml *n, struct nvml_device *d, uint64_t last_us,
	struct nvml_process_sample *samples, size_t capacity, size_t *ret_n);

// Errors that the driver logs with a number ("Xid"). A set receives those that occur after it is
// created.
int nvml_xids_new(struct nvml *n, struct nvml_event_set **ret);
void nvml_xids_free(struct nvml *n, struct nvml_event_set *set); // accepts NULL
int nvml_xids_watch(struct nvml *n, struct nvml_device *d, struct nvml_event_set *set);
// Takes the next error without waiting: NVML_TIMEOUT if there is none.
int nvml_xids_next(struct nvml *n, struct nvml_event_set *set, struct nvml_device **ret_device,
	uint64_t *ret_xid);

// GPM measures the time between two samples, at least 100 ms apart. nvml_gpm_supported returns
// NVML_OK, NVML_NOT_SUPPORTED if the GPU lacks GPM, else the driver's result.
int nvml_gpm_supported(struct nvml *n, struct nvml_device *d);
int nvml_gpm_new(struct nvml *n, struct nvml_gpm_sample **ret);
void nvml_gpm_free(struct nvml *n, struct nvml_gpm_sample *sample); // accepts NULL
int nvml_gpm_read(struct nvml *n, struct nvml_device *d, struct nvml_gpm_sample *sample);
int nvml_gpm_metrics(struct nvml *n, struct nvml_gpm_request *request);
