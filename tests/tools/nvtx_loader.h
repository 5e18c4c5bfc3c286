// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What NVTX's headers do in a program that includes them, without those headers: loads the library
// that NVTX_INJECTION64_PATH names and lets it fill in the functions. Where there is none, or it
// does not want to, all do nothing.

#pragma once

#include <stdbool.h>

#include "nvtx/interface.h"

struct nvtx_functions {
	void (*mark_event)(const struct nvtx_event *event);
	void (*mark_bytes)(const char *message);
	void (*mark_wide)(const wchar_t *message);
	uint64_t (*start_event)(const struct nvtx_event *event);
	uint64_t (*start_bytes)(const char *message);
	uint64_t (*start_wide)(const wchar_t *message);
	void (*end)(uint64_t id);
	int (*push_event)(const struct nvtx_event *event);
	int (*push_bytes)(const char *message);
	int (*push_wide)(const wchar_t *message);
	int (*pop)(void);
	void (*domain_mark)(uintptr_t domain, const struct nvtx_event *event);
	uint64_t (*domain_start)(uintptr_t domain, const struct nvtx_event *event);
	void (*domain_end)(uintptr_t domain, uint64_t id);
	int (*domain_push)(uintptr_t domain, const struct nvtx_event *event);
	int (*domain_pop)(uintptr_t domain);
	uintptr_t (*register_bytes)(uintptr_t domain, const char *string);
	uintptr_t (*register_wide)(uintptr_t domain, const wchar_t *string);
	uintptr_t (*create_bytes)(const char *name);
	uintptr_t (*create_wide)(const wchar_t *name);
	uint32_t tool_version; // that the library said
};

// One in a program: the functions of NVTX that hand out tables take no context. False: the
// functions do nothing.
bool nvtx_load(const struct nvtx_functions **ret);

// An event with a message of that kind, and an integer as payload where it is not negative.
struct nvtx_event nvtx_event_of(enum nvtx_message kind, uintptr_t message, int64_t payload);
