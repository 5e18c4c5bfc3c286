// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// NVIDIA's management library, opened at run time. What it says is checked like any other input:
// counts are bounded, texts ended, layouts of structs found out.
//
// Calls serialise in the driver, and any of them may block: for 20 ms by design (PCIe throughput),
// for seconds while a GPU fails, for ever when the driver hangs. So one thread owns a struct nvml
// and does nothing else; nobody may wait for that thread without a limit.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "machine/nvml_api.h"

#define NVML_LIBRARY "libnvidia-ml.so.1"
// More GPUs, processes, samples or fields than this are not believed.
#define NVML_MAX_GPUS 128u
#define NVML_MAX_PROCESSES 512u
#define NVML_MAX_SAMPLES 1024u
#define NVML_MAX_FIELDS 16u

struct nvml;

// Loads and initialises the library at `path` (NULL: NVML_LIBRARY, where the loader finds it). The
// error says why not and, after "; ", what would make it so. Where no GPU is there: -ENODEV.
int nvml_open(const char *path, struct nvml **ret, struct error *e);
// Shuts the library down. Accepts NULL.
void nvml_close(struct nvml *n);

// A result as a phrase that tells why a value is missing: "not supported by this GPU".
const char *nvml_reason(int result);

// What a result means for the next reading.
enum nvml_outcome {
	NVML_READ, // the value is there
	NVML_NOT_NOW, // ask again
	NVML_NEVER, // will not be told in this run
	NVML_LOST, // the GPU itself is gone
};
enum nvml_outcome nvml_outcome(int result);

// All calls below return an enum nvml_result, NVML_FUNCTION_NOT_FOUND where this library has no
// such call; *ret is meaningful after NVML_OK only.

// Texts always end, and never past `size`.
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
	NVML_PCIE_GENERATION, // of the link as it is now: it falls when idle
	NVML_PCIE_WIDTH,
	NVML_PCIE_GENERATION_MAX, // with this GPU in this slot
	NVML_PCIE_WIDTH_MAX,
	NVML_CORES,
	NVML_MEMORY_BUS_BITS,
	N_NVML_NUMBERS,
};
int nvml_number(struct nvml *n, struct nvml_device *d, enum nvml_number which, uint32_t *ret);

// Clocks in MHz; `clock` is an enum nvml_clock.
int nvml_clock(struct nvml *n, struct nvml_device *d, unsigned clock, uint32_t *ret);
int nvml_clock_max(struct nvml *n, struct nvml_device *d, unsigned clock, uint32_t *ret);
// That was set for applications (nvidia-smi -ac); the default where nobody set any.
int nvml_clock_application(struct nvml *n, struct nvml_device *d, unsigned clock, uint32_t *ret);
int nvml_clock_reasons(struct nvml *n, struct nvml_device *d, uint64_t *ret);
int nvml_celsius(struct nvml *n, struct nvml_device *d, int32_t *ret);
int nvml_utilization(struct nvml *n, struct nvml_device *d, struct nvml_utilization *ret);
// Where the library has only the first layout, `reserved` is NVML_NOT_AVAILABLE and within `used`.
int nvml_memory(struct nvml *n, struct nvml_device *d, struct nvml_memory_v2 *ret);
int nvml_compute_capability(struct nvml *n, struct nvml_device *d, int *ret_major, int *ret_minor);
// Whether the GPU is divided into instances.
int nvml_mig(struct nvml *n, struct nvml_device *d, bool *ret);
// The instances of a divided GPU that are given to this machine or container: their handles, at
// most `capacity`. An instance has a UUID, memory and processes of its own.
int nvml_instances(struct nvml *n, struct nvml_device *d, struct nvml_device **instances,
	size_t capacity, size_t *ret_n);

// Blocks about 20 ms, during which it measures. kB/s.
int nvml_pcie_throughput(
	struct nvml *n, struct nvml_device *d, enum nvml_direction direction, uint32_t *ret);

// Reads up to NVML_MAX_FIELDS fields at once: id and scope are set by the caller; each has a result
// of its own.
int nvml_fields(struct nvml *n, struct nvml_device *d, struct nvml_field *fields, size_t n_fields);
// A field's value, whatever its type; false where that is no integer of 63 bits.
bool nvml_field_value(const struct nvml_field *f, int64_t *ret);

// The driver's own buffer of samples newer than last_us, of unsigned values.
int nvml_samples(struct nvml *n, struct nvml_device *d, enum nvml_sampling which, uint64_t last_us,
	struct nvml_sample *samples, size_t capacity, size_t *ret_n);

struct nvml_process {
	uint32_t pid; // of the host, or (newer drivers) of the caller's pid namespace
	uint64_t memory_bytes; // NVML_NOT_AVAILABLE where unknown
};
// Processes with a compute, graphics or MPS context, each once. `capacity` entries are enough
// where it is NVML_MAX_PROCESSES.
int nvml_processes(struct nvml *n, struct nvml_device *d, struct nvml_process *processes,
	size_t capacity, size_t *ret_n);
// Busy processes since last_us. NVML_NOT_FOUND: none, or none that the driver tells.
int nvml_process_samples(struct nvml *n, struct nvml_device *d, uint64_t last_us,
	struct nvml_process_sample *samples, size_t capacity, size_t *ret_n);

// Errors that the driver logs, with a number ("Xid"), for those who wait for them from now on.
int nvml_xids_new(struct nvml *n, struct nvml_event_set **ret);
void nvml_xids_free(struct nvml *n, struct nvml_event_set *set); // accepts NULL
int nvml_xids_watch(struct nvml *n, struct nvml_device *d, struct nvml_event_set *set);
// The next one, without waiting: NVML_TIMEOUT where there is none.
int nvml_xids_next(struct nvml *n, struct nvml_event_set *set, struct nvml_device **ret_device,
	uint64_t *ret_xid);

// GPM: two samples, at least 100 ms apart, and what happened between them. Supported: NVML_OK,
// NVML_NOT_SUPPORTED where the GPU has none, else what the driver answers.
int nvml_gpm_supported(struct nvml *n, struct nvml_device *d);
int nvml_gpm_new(struct nvml *n, struct nvml_gpm_sample **ret);
void nvml_gpm_free(struct nvml *n, struct nvml_gpm_sample *sample); // accepts NULL
int nvml_gpm_read(struct nvml *n, struct nvml_device *d, struct nvml_gpm_sample *sample);
int nvml_gpm_metrics(struct nvml *n, struct nvml_gpm_request *request);
