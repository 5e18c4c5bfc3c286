// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: the strain authors
//
// The name of a range: its message, preceded by its domain's name and a slash unless the domain is
// the default one. A number at the end of the message ("step 17") becomes the range's number rather
// than part of its name, because a ring has space for only a few hundred names.

#pragma once

#include <stdint.h>

#include "nvtx/interface.h"
#include "strain/marker.h"

struct range_name {
	const char *text; // NULL: none. Owned by the program, by the table, or in `buffer`
	int64_t number; // -1: none
	char buffer[STRAIN_RING_NAME_BYTES];
};

// Handles of domains and registered strings; 0 is the default domain, and no string. Invalid
// handles are treated as 0. If the tables are full, the results are a domain "(other)", and 0.
uintptr_t name_create_domain(const char *bytes, const wchar_t *wide);
uintptr_t name_register(uintptr_t domain, const char *bytes, const wchar_t *wide);

// The number is the event's payload if that is a number and the message has none. Accepts both
// kinds of message. name->text is valid as long as both message and name.
void name_of_event(struct range_name *name, uintptr_t domain, const struct nvtx_event *event);
void name_of_message(struct range_name *name, const char *bytes, const wchar_t *wide);

// Whether the struct is large enough for all fields that are read.
static inline int event_is_whole(const struct nvtx_event *event)
{
	return event && event->size >= sizeof(*event);
}
