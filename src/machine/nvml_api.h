// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The part of NVML's binary interface that strain uses, declared from its public reference, so that
// the build needs no CUDA. Names are ours; numbers, order and sizes are NVIDIA's and never change
// within a version of a function.

#pragma once

#include <assert.h>
#include <stdint.h>

struct nvml_device; // a handle, the library's
struct nvml_gpm_sample; // likewise
struct nvml_event_set; // likewise

// What every call answers.
enum nvml_result {
	NVML_OK = 0,
	NVML_UNINITIALIZED = 1,
	NVML_INVALID_ARGUMENT = 2,
	NVML_NOT_SUPPORTED = 3,
	NVML_NO_PERMISSION = 4,
	NVML_NOT_FOUND = 6,
	NVML_INSUFFICIENT_SIZE = 7,
	NVML_INSUFFICIENT_POWER = 8,
	NVML_DRIVER_NOT_LOADED = 9,
	NVML_TIMEOUT = 10,
	NVML_IRQ_ISSUE = 11,
	NVML_LIBRARY_NOT_FOUND = 12,
	NVML_FUNCTION_NOT_FOUND = 13,
	NVML_CORRUPTED_INFOROM = 14,
	NVML_GPU_IS_LOST = 15,
	NVML_RESET_REQUIRED = 16,
	NVML_OPERATING_SYSTEM = 17,
	NVML_VERSION_MISMATCH = 18, // of driver and library
	NVML_IN_USE = 19,
	NVML_MEMORY = 20,
	NVML_NO_DATA = 21,
	NVML_VGPU_ECC = 22,
	NVML_INSUFFICIENT_RESOURCES = 23,
	NVML_FREQUENCY_NOT_SUPPORTED = 24,
	NVML_ARGUMENT_VERSION = 25, // of a struct
	NVML_DEPRECATED = 26,
	NVML_NOT_READY = 27,
	NVML_GPU_NOT_FOUND = 28,
	NVML_INVALID_STATE = 29,
	NVML_UNKNOWN = 999,
};

// A versioned struct's first member: its size and the version of its layout.
#define NVML_VERSION_WORD(type, version) ((uint32_t)sizeof(type) | (uint32_t)(version) << 24)

enum nvml_clock {
	NVML_CLOCK_SM = 1,
	NVML_CLOCK_MEMORY = 2,
};

enum nvml_direction {
	NVML_TRANSMIT = 0, // from the GPU
	NVML_RECEIVE = 1, // to the GPU
};

enum nvml_sampling {
	NVML_SAMPLES_POWER = 0,
	NVML_SAMPLES_GPU = 1,
	NVML_SAMPLES_MEMORY = 2,
};

// Fields of nvmlDeviceGetFieldValues.
enum nvml_field_id {
	NVML_FIELD_ECC_CORRECTED = 3, // since the driver was loaded
	NVML_FIELD_ECC_UNCORRECTED = 4,
	NVML_FIELD_PAGES_RETIRED_SINGLE = 29,
	NVML_FIELD_PAGES_RETIRED_DOUBLE = 30,
	NVML_FIELD_MEMORY_TEMPERATURE = 82,
	NVML_FIELD_ENERGY = 83, // mJ
	NVML_FIELD_PCIE_REPLAYS = 94,
	NVML_FIELD_NVLINK_TRANSMIT = 138, // data without protocol, KiB
	NVML_FIELD_NVLINK_RECEIVE = 139,
	NVML_FIELD_ROWS_REMAPPED_CORRECTABLE = 142,
	NVML_FIELD_ROWS_REMAPPED_UNCORRECTABLE = 143,
	NVML_FIELD_POWER_INSTANT = 186, // mW
	NVML_FIELD_PCIE_TRANSMIT = 197, // bytes; may wrap
	NVML_FIELD_PCIE_RECEIVE = 198,
};

#define NVML_SCOPE_ALL_LINKS UINT32_MAX

enum nvml_gpm_id {
	NVML_GPM_SM_ACTIVITY = 2, // all but the traffic in percent
	NVML_GPM_SM_OCCUPANCY = 3,
	NVML_GPM_INTEGER = 4,
	NVML_GPM_TENSOR = 5,
	NVML_GPM_DRAM = 10,
	NVML_GPM_FP64 = 11,
	NVML_GPM_FP32 = 12,
	NVML_GPM_FP16 = 13,
	NVML_GPM_PCIE_TRANSMIT = 20, // MiB/s
	NVML_GPM_PCIE_RECEIVE = 21,
	NVML_GPM_NVLINK_RECEIVE = 60,
	NVML_GPM_NVLINK_TRANSMIT = 61,
};

struct nvml_utilization {
	uint32_t gpu_percent;
	uint32_t memory_percent;
};

// Before version 2: what is used has the reserved in it.
struct nvml_memory_v1 {
	uint64_t total;
	uint64_t free;
	uint64_t used;
};

struct nvml_memory_v2 {
	uint32_t version;
	uint64_t total;
	uint64_t reserved;
	uint64_t free;
	uint64_t used;
};

struct nvml_pci {
	char bus_id_legacy[16];
	uint32_t domain;
	uint32_t bus;
	uint32_t device;
	uint32_t device_id;
	uint32_t subsystem_id;
	char bus_id[32];
};

enum nvml_value_type {
	NVML_VALUE_DOUBLE = 0,
	NVML_VALUE_U32 = 1,
	NVML_VALUE_ULONG = 2,
	NVML_VALUE_U64 = 3,
	NVML_VALUE_I64 = 4,
	NVML_VALUE_I32 = 5,
	NVML_VALUE_U16 = 6,
};

union nvml_value {
	double number;
	int32_t i32;
	uint32_t u32;
	unsigned long ulong;
	uint64_t u64;
	int64_t i64;
	uint16_t u16;
};

struct nvml_field {
	uint32_t id; // enum nvml_field_id
	uint32_t scope;
	int64_t t_us; // since 1970
	int64_t latency_us;
	uint32_t type; // enum nvml_value_type
	uint32_t result; // enum nvml_result, of this field
	union nvml_value value;
};

struct nvml_sample {
	uint64_t t_us;
	union nvml_value value;
};

struct nvml_process_sample {
	uint32_t pid;
	uint64_t t_us;
	uint32_t sm_percent;
	uint32_t memory_percent;
	uint32_t encoder_percent;
	uint32_t decoder_percent;
};

#define NVML_EVENT_XID UINT64_C(8) // errors that the driver logs as "Xid"

struct nvml_event {
	struct nvml_device *device;
	uint64_t type;
	uint64_t data; // an Xid's number
	uint32_t gpu_instance;
	uint32_t compute_instance;
};

struct nvml_temperature {
	uint32_t version;
	uint32_t sensor; // 0: the GPU
	int32_t celsius;
};

struct nvml_gpm_support {
	uint32_t version; // 1, not a version word
	uint32_t supported;
};

struct nvml_gpm_metric {
	uint32_t id; // enum nvml_gpm_id
	uint32_t result;
	double value;
	char *names[3]; // the library's
};

// Libraries differ in how many metrics they know, and so in the size of the array; only the first n
// are looked at.
#define NVML_GPM_MAX 333u

struct nvml_gpm_request {
	uint32_t version; // 1, not a version word
	uint32_t n;
	struct nvml_gpm_sample *before;
	struct nvml_gpm_sample *after;
	struct nvml_gpm_metric metrics[NVML_GPM_MAX];
};

// A running process's entry has grown twice, the second time under the same function name
// (drivers 535.43 to 535.98): 16, 24 and 32 bytes.
struct nvml_process_entry {
	uint32_t pid;
	uint64_t memory_bytes; // NVML_NOT_AVAILABLE where the driver does not know
	uint32_t gpu_instance;
	uint32_t compute_instance;
	uint64_t protected_bytes;
};
#define NVML_PROCESS_ENTRY_V1 16u
#define NVML_PROCESS_ENTRY_V2 24u
#define NVML_PROCESS_ENTRY_V3 32u
#define NVML_NOT_AVAILABLE UINT64_MAX

static_assert(sizeof(struct nvml_memory_v1) == 24, "as the library has it");
static_assert(sizeof(struct nvml_memory_v2) == 40, "as the library has it");
static_assert(sizeof(struct nvml_pci) == 68, "as the library has it");
static_assert(sizeof(struct nvml_field) == 40, "as the library has it");
static_assert(sizeof(struct nvml_sample) == 16, "as the library has it");
static_assert(sizeof(struct nvml_process_sample) == 32, "as the library has it");
static_assert(sizeof(struct nvml_event) == 32, "as the library has it");
static_assert(sizeof(struct nvml_temperature) == 12, "as the library has it");
static_assert(sizeof(struct nvml_gpm_metric) == 40, "as the library has it");
static_assert(sizeof(struct nvml_process_entry) == NVML_PROCESS_ENTRY_V3, "as the library has it");
