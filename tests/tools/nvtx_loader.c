// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The program's side of NVTX.

#include "nvtx_loader.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

// Whatever its arguments were.
static long do_nothing(void)
{
	return 0;
}

static struct nvtx_functions functions;

#define PLACE(member) ((nvtx_function *)(void *)&functions.member)

static nvtx_function *core[NVTX_CORE_SIZE + 1] = {
	[NVTX_MARK_EX] = PLACE(mark_event),
	[NVTX_MARK_A] = PLACE(mark_bytes),
	[NVTX_MARK_W] = PLACE(mark_wide),
	[NVTX_START_EX] = PLACE(start_event),
	[NVTX_START_A] = PLACE(start_bytes),
	[NVTX_START_W] = PLACE(start_wide),
	[NVTX_END] = PLACE(end),
	[NVTX_PUSH_EX] = PLACE(push_event),
	[NVTX_PUSH_A] = PLACE(push_bytes),
	[NVTX_PUSH_W] = PLACE(push_wide),
	[NVTX_POP] = PLACE(pop),
};

static nvtx_function *core2[NVTX_CORE2_SIZE + 1] = {
	[NVTX_DOMAIN_MARK_EX] = PLACE(domain_mark),
	[NVTX_DOMAIN_START_EX] = PLACE(domain_start),
	[NVTX_DOMAIN_END] = PLACE(domain_end),
	[NVTX_DOMAIN_PUSH_EX] = PLACE(domain_push),
	[NVTX_DOMAIN_POP] = PLACE(domain_pop),
	[NVTX_DOMAIN_REGISTER_A] = PLACE(register_bytes),
	[NVTX_DOMAIN_REGISTER_W] = PLACE(register_wide),
	[NVTX_DOMAIN_CREATE_A] = PLACE(create_bytes),
	[NVTX_DOMAIN_CREATE_W] = PLACE(create_wide),
};

static int get_module(enum nvtx_module module, nvtx_function ***table, unsigned int *size)
{
	bool is_core = module == NVTX_MODULE_CORE;
	if (!is_core && module != NVTX_MODULE_CORE2) {
		return 0;
	}
	*table = is_core ? core : core2;
	*size = is_core ? NVTX_CORE_SIZE : NVTX_CORE2_SIZE;
	return 1;
}

static void set_tool_version(uint32_t version)
{
	functions.tool_version = version;
}

static const void *get_table(uint32_t table)
{
	static const struct nvtx_callbacks callbacks = {sizeof(callbacks), get_module};
	static const struct nvtx_version version = {
		sizeof(version), NVTX_INTERFACE_VERSION, 0, set_tool_version};
	return table == NVTX_TABLE_CALLBACKS ? (const void *)&callbacks
	       : table == NVTX_TABLE_VERSION ? (const void *)&version
	                                     : NULL;
}

static void put_nothing(nvtx_function *place)
{
	if (place) {
		*place = (nvtx_function)do_nothing;
	}
}

bool nvtx_load(const struct nvtx_functions **ret)
{
	for (size_t i = 0; i < NVTX_CORE_SIZE; i++) {
		put_nothing(core[i]);
		put_nothing(core2[i]);
	}
	*ret = &functions;
	const char *path = getenv("NVTX_INJECTION64_PATH");
	void *library = path ? dlopen(path, RTLD_LAZY) : NULL;
	int (*initialize)(nvtx_get_table) = NULL;
	if (library) {
		void *symbol = dlsym(library, "InitializeInjectionNvtx2");
		memcpy(&initialize, &symbol, sizeof(symbol));
	}
	if (initialize && initialize(get_table) != 0) {
		return true;
	}
	if (library) {
		dlclose(library);
	}
	return false;
}

struct nvtx_event nvtx_event_of(enum nvtx_message kind, uintptr_t message, int64_t payload)
{
	return (struct nvtx_event){
		.version = NVTX_INTERFACE_VERSION,
		.size = sizeof(struct nvtx_event),
		.payload_type = payload < 0 ? NVTX_PAYLOAD_NONE : NVTX_PAYLOAD_INT64,
		.payload.int64 = payload,
		.message_type = kind,
		.message.registered = message,
	};
}
