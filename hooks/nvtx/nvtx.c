// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: the strain authors
//
// libstrain-nvtx.so turns a program's NVTX calls into spans and points of the run. It enters the
// job because `strain run` sets NVTX_INJECTION64_PATH. It never prints and never fails. Files:
// interface.h (NVTX's constants), names.c (domains, messages), ranges.c (open ranges).

#include <math.h>
#include <stdlib.h>

#include "nvtx/interface.h"
#include "nvtx/names.h"
#include "nvtx/ranges.h"

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(nvtx_get_table get_table);

// What programs call ------------------------------------------------------------------------------

static double value_of_payload(const struct nvtx_event *event)
{
	static const struct nvtx_event none = {.payload_type = NVTX_PAYLOAD_NONE};
	event = event_is_whole(event) ? event : &none;
	switch (event->payload_type) {
	case NVTX_PAYLOAD_UINT64:
		return (double)event->payload.uint64;
	case NVTX_PAYLOAD_INT64:
		return (double)event->payload.int64;
	case NVTX_PAYLOAD_DOUBLE:
		return event->payload.real;
	case NVTX_PAYLOAD_UINT32:
		return event->payload.uint32;
	case NVTX_PAYLOAD_INT32:
		return event->payload.int32;
	case NVTX_PAYLOAD_FLOAT:
		return (double)event->payload.single;
	default:
		return (double)NAN;
	}
}

static void on_domain_mark(uintptr_t domain, const struct nvtx_event *event)
{
	struct range_name name;
	name_of_event(&name, domain, event);
	range_mark(&name, value_of_payload(event));
}

static void on_mark_event(const struct nvtx_event *event)
{
	on_domain_mark(0, event);
}

static void on_mark_bytes(const char *message)
{
	struct range_name name;
	name_of_message(&name, message, NULL);
	range_mark(&name, (double)NAN);
}

static void on_mark_wide(const wchar_t *message)
{
	struct range_name name;
	name_of_message(&name, NULL, message);
	range_mark(&name, (double)NAN);
}

static uint64_t on_domain_start(uintptr_t domain, const struct nvtx_event *event)
{
	struct range_name name;
	name_of_event(&name, domain, event);
	return range_start(&name);
}

static uint64_t on_start_event(const struct nvtx_event *event)
{
	return on_domain_start(0, event);
}

static uint64_t on_start_bytes(const char *message)
{
	struct range_name name;
	name_of_message(&name, message, NULL);
	return range_start(&name);
}

static uint64_t on_start_wide(const wchar_t *message)
{
	struct range_name name;
	name_of_message(&name, NULL, message);
	return range_start(&name);
}

static void on_end(uint64_t id)
{
	range_end(id);
}

static void on_domain_end(uintptr_t domain, uint64_t id)
{
	(void)domain;
	range_end(id);
}

static int on_domain_push(uintptr_t domain, const struct nvtx_event *event)
{
	struct range_name name;
	name_of_event(&name, domain, event);
	return domain ? range_push_in(domain, &name) : range_push(&name);
}

static int on_push_event(const struct nvtx_event *event)
{
	return on_domain_push(0, event);
}

static int on_push_bytes(const char *message)
{
	struct range_name name;
	name_of_message(&name, message, NULL);
	return range_push(&name);
}

static int on_push_wide(const wchar_t *message)
{
	struct range_name name;
	name_of_message(&name, NULL, message);
	return range_push(&name);
}

static int on_pop(void)
{
	return range_pop();
}

static int on_domain_pop(uintptr_t domain)
{
	return domain ? range_pop_in(domain) : range_pop();
}

static uintptr_t on_register_bytes(uintptr_t domain, const char *string)
{
	return name_register(domain, string, NULL);
}

static uintptr_t on_register_wide(uintptr_t domain, const wchar_t *string)
{
	return name_register(domain, NULL, string);
}

static uintptr_t on_create_bytes(const char *string)
{
	return name_create_domain(string, NULL);
}

static uintptr_t on_create_wide(const wchar_t *string)
{
	return name_create_domain(NULL, string);
}

// Attaching ---------------------------------------------------------------------------------------

#define FUNCTION(name) ((nvtx_function)(name))

static const nvtx_function core_functions[NVTX_CORE_SIZE] = {
	[NVTX_MARK_EX] = FUNCTION(on_mark_event),
	[NVTX_MARK_A] = FUNCTION(on_mark_bytes),
	[NVTX_MARK_W] = FUNCTION(on_mark_wide),
	[NVTX_START_EX] = FUNCTION(on_start_event),
	[NVTX_START_A] = FUNCTION(on_start_bytes),
	[NVTX_START_W] = FUNCTION(on_start_wide),
	[NVTX_END] = FUNCTION(on_end),
	[NVTX_PUSH_EX] = FUNCTION(on_push_event),
	[NVTX_PUSH_A] = FUNCTION(on_push_bytes),
	[NVTX_PUSH_W] = FUNCTION(on_push_wide),
	[NVTX_POP] = FUNCTION(on_pop),
};

static const nvtx_function core2_functions[NVTX_CORE2_SIZE] = {
	[NVTX_DOMAIN_MARK_EX] = FUNCTION(on_domain_mark),
	[NVTX_DOMAIN_START_EX] = FUNCTION(on_domain_start),
	[NVTX_DOMAIN_END] = FUNCTION(on_domain_end),
	[NVTX_DOMAIN_PUSH_EX] = FUNCTION(on_domain_push),
	[NVTX_DOMAIN_POP] = FUNCTION(on_domain_pop),
	[NVTX_DOMAIN_REGISTER_A] = FUNCTION(on_register_bytes),
	[NVTX_DOMAIN_REGISTER_W] = FUNCTION(on_register_wide),
	[NVTX_DOMAIN_CREATE_A] = FUNCTION(on_create_bytes),
	[NVTX_DOMAIN_CREATE_W] = FUNCTION(on_create_wide),
};

// Returns whether the program has such a module.
static int attach(const struct nvtx_callbacks *callbacks, enum nvtx_module module,
	const nvtx_function *functions, unsigned int max)
{
	nvtx_function **table = NULL;
	unsigned int size = 0;
	if (callbacks->get_module(module, &table, &size) != 1 || !table) {
		return 0;
	}
	for (unsigned int i = 0; i < size && i < max; i++) {
		if (table[i] && functions[i]) {
			*table[i] = functions[i];
		}
	}
	return 1;
}

// NVTX calls this once for each part of the program that uses it, before the first range. After a
// result of 0, NVTX does nothing and does not use this library.
int InitializeInjectionNvtx2(nvtx_get_table get_table)
{
	const char *directory = secure_getenv("STRAIN_MARKERS");
	if (!get_table || !directory || !*directory) {
		return 0;
	}
	const struct nvtx_callbacks *callbacks = get_table(NVTX_TABLE_CALLBACKS);
	const struct nvtx_version *version = get_table(NVTX_TABLE_VERSION);
	if (!callbacks || callbacks->size < sizeof(*callbacks) || !callbacks->get_module) {
		return 0;
	}
	strain_marker_set_origin("nvtx");
	int core = attach(callbacks, NVTX_MODULE_CORE, core_functions, NVTX_CORE_SIZE);
	int core2 = attach(callbacks, NVTX_MODULE_CORE2, core2_functions, NVTX_CORE2_SIZE);
	if (version && version->size >= sizeof(*version) && version->set_tool_version) {
		version->set_tool_version(NVTX_INTERFACE_VERSION);
	}
	return core || core2;
}
