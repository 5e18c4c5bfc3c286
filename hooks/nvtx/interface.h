// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: the strain authors
//
// The parts of NVTX version 3 that a tool needs: its constants and the memory layout of its
// structs.
//
// At its first call, a program that includes NVTX's headers loads the library named by
// NVTX_INJECTION64_PATH and calls its InitializeInjectionNvtx2 with a function that returns tables.
// The callback tables contain the addresses of the program's own function pointers; a tool stores
// the addresses of its functions there. Each library of a program that uses NVTX may have its own
// tables, and calls once.

#pragma once

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

enum { NVTX_INTERFACE_VERSION = 3 };

enum nvtx_table { NVTX_TABLE_CALLBACKS = 1, NVTX_TABLE_VERSION = 3 };

enum nvtx_module { NVTX_MODULE_CORE = 1, NVTX_MODULE_CORE2 = 5 };

// Indices in the table of module CORE. A: the message is a byte string; W: a wide string; Ex: it is
// in a struct nvtx_event.
enum nvtx_core {
	NVTX_MARK_EX = 1,
	NVTX_MARK_A = 2,
	NVTX_MARK_W = 3,
	NVTX_START_EX = 4,
	NVTX_START_A = 5,
	NVTX_START_W = 6,
	NVTX_END = 7,
	NVTX_PUSH_EX = 8,
	NVTX_PUSH_A = 9,
	NVTX_PUSH_W = 10,
	NVTX_POP = 11,
	NVTX_CORE_SIZE = 16
};

// Indices in the table of module CORE2: the same within a domain.
enum nvtx_core2 {
	NVTX_DOMAIN_MARK_EX = 1,
	NVTX_DOMAIN_START_EX = 2,
	NVTX_DOMAIN_END = 3,
	NVTX_DOMAIN_PUSH_EX = 4,
	NVTX_DOMAIN_POP = 5,
	NVTX_DOMAIN_REGISTER_A = 10,
	NVTX_DOMAIN_REGISTER_W = 11,
	NVTX_DOMAIN_CREATE_A = 12,
	NVTX_DOMAIN_CREATE_W = 13,
	NVTX_CORE2_SIZE = 16
};

typedef void (*nvtx_function)(void); // any of them; cast before calling

struct nvtx_callbacks {
	size_t size; // of the structure
	// Returns 1 if the module exists. *table: addresses of function pointers; some are NULL.
	int (*get_module)(enum nvtx_module module, nvtx_function ***table, unsigned int *size);
};

struct nvtx_version {
	size_t size;
	uint32_t version;
	uint32_t unused;
	void (*set_tool_version)(uint32_t version);
};

typedef const void *(*nvtx_get_table)(uint32_t table);

enum nvtx_payload {
	NVTX_PAYLOAD_NONE = 0,
	NVTX_PAYLOAD_UINT64 = 1,
	NVTX_PAYLOAD_INT64 = 2,
	NVTX_PAYLOAD_DOUBLE = 3,
	NVTX_PAYLOAD_UINT32 = 4,
	NVTX_PAYLOAD_INT32 = 5,
	NVTX_PAYLOAD_FLOAT = 6
};

enum nvtx_message {
	NVTX_MESSAGE_NONE = 0,
	NVTX_MESSAGE_BYTES = 1,
	NVTX_MESSAGE_WIDE = 2,
	NVTX_MESSAGE_REGISTERED = 3
};

struct nvtx_event {
	uint16_t version;
	uint16_t size; // as the program knows the struct
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type;
	int32_t unused;
	union {
		uint64_t uint64;
		int64_t int64;
		double real;
		uint32_t uint32;
		int32_t int32;
		float single;
	} payload;
	int32_t message_type;
	union {
		const char *bytes;
		const wchar_t *wide;
		uintptr_t registered; // handle returned by a register call
	} message;
};

// Result of push and pop if the depth is not tracked.
enum { NVTX_NOT_TRACKED = -2 };
