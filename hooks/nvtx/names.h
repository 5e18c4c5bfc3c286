// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: the strain authors
//
// The name of a range: its message, after its domain's name and a slash where it is not in the
// default domain. A number at the message's end ("step 17") is the range's number instead of a part
// of its name: a ring has room for a few hundred names.

#pragma once

#include <stdint.h>

#include "nvtx/interface.h"
#include "strain/marker.h"

struct range_name {
	const char *text; // NULL: it has none. Of the program, of the table, or buffer
	int64_t number; // -1: none
	char buffer[STRAIN_RING_NAME_BYTES];
};

// Handles of domains and of registered strings; 0 is the default domain, and no string. A handle
// that was never given out is taken for 0. Where their tables are full: a domain "(other)", and 0.
uintptr_t name_create_domain(const char *bytes, const wchar_t *wide);
uintptr_t name_register(uintptr_t domain, const char *bytes, const wchar_t *wide);

// The number is the event's payload where the message has none, and the payload is one. Either
// kind of message; name->text lives as long as both message and name.
void name_of_event(struct range_name *name, uintptr_t domain, const struct nvtx_event *event);
void name_of_message(struct range_name *name, const char *bytes, const wchar_t *wide);

// Whether the structure is as large as what will be read of it.
static inline int event_is_whole(const struct nvtx_event *event)
{
	return event && event->size >= sizeof(*event);
}
