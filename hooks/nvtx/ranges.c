// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: the strain authors
//
// Open ranges: a stack per thread, and a table for all of them.

#include "nvtx/ranges.h"

#include <string.h>

enum { STACK_MAX = 64, STARTED_MAX = 1024, STARTED_TRIED = 64 };

// Default domain ----------------------------------------------------------------------------------

int range_push(const struct range_name *name)
{
	struct strain_marker *marker = strain_marker_here();
	if (!marker) {
		return NVTX_NOT_TRACKED;
	}
	uint32_t depth = marker->depth++;
	if (depth < STRAIN_RING_DEPTH) {
		uint32_t index = strain_marker_name(marker, name->text);
		strain_marker_put(marker, STRAIN_MARK_BEGIN, depth, index, name->number, 0);
	}
	return (int)depth;
}

int range_pop(void)
{
	struct strain_marker *marker = strain_marker_here();
	if (!marker || marker->depth == 0) {
		return NVTX_NOT_TRACKED;
	}
	strain_marker_end(marker);
	return (int)marker->depth;
}

static void put_span(struct strain_marker *marker, uint32_t name, int64_t number, uint64_t began_ns)
{
	strain_marker_put(
		marker, STRAIN_MARK_SPAN, strain_marker_depth(marker), name, number, began_ns);
}

// Other domains -----------------------------------------------------------------------------------

struct pushed_range {
	uintptr_t domain;
	uint64_t began_ns;
	int64_t number;
	uint32_t name; // index in this thread's ring
};

struct pushed_ranges {
	uint64_t generation; // of the process: after a fork the ranges are the parent's
	size_t n;
	size_t beyond; // number of ranges beyond the stack's capacity
	struct pushed_range at[STACK_MAX];
};

static __thread struct pushed_ranges pushed_ranges;

static struct pushed_ranges *own_pushed(const struct strain_marker *marker)
{
	struct pushed_ranges *own = &pushed_ranges;
	if (own->generation != marker->generation) {
		own->generation = marker->generation;
		own->n = own->beyond = 0;
	}
	return own;
}

static int count_in(const struct pushed_ranges *own, uintptr_t domain)
{
	int count = 0;
	for (size_t i = 0; i < own->n; i++) {
		count += own->at[i].domain == domain;
	}
	return count;
}

int range_push_in(uintptr_t domain, const struct range_name *name)
{
	struct strain_marker *marker = strain_marker_here();
	if (!marker) {
		return NVTX_NOT_TRACKED;
	}
	struct pushed_ranges *own = own_pushed(marker);
	int level = count_in(own, domain);
	if (own->n == STACK_MAX) {
		own->beyond++;
		return level;
	}
	own->at[own->n++] = (struct pushed_range){.domain = domain,
		.number = name->number,
		.name = strain_marker_name(marker, name->text),
		.began_ns = strain_marker_now_ns()};
	return level;
}

int range_pop_in(uintptr_t domain)
{
	struct strain_marker *marker = strain_marker_here();
	if (!marker) {
		return NVTX_NOT_TRACKED;
	}
	struct pushed_ranges *own = own_pushed(marker);
	if (own->beyond > 0) {
		own->beyond--;
		return count_in(own, domain);
	}
	size_t i = own->n;
	while (i > 0 && own->at[i - 1].domain != domain) {
		i--;
	}
	if (i == 0) {
		return NVTX_NOT_TRACKED;
	}
	const struct pushed_range range = own->at[i - 1];
	memmove(&own->at[i - 1], &own->at[i], (own->n-- - i) * sizeof(range));
	put_span(marker, range.name, range.number, range.began_ns);
	return count_in(own, domain);
}

// Started and ended -------------------------------------------------------------------------------

// An id is a counter in the high bits and the index in the table below it, so that an outdated id
// does not match.
enum { ID_FREE = 0, ID_TAKEN = 1, ID_FIRST_COUNT = 1 };

struct started_range {
	uint64_t id;
	uint64_t generation;
	uint64_t began_ns;
	int64_t number;
	char name[STRAIN_RING_NAME_BYTES]; // text, because rings of other threads have other tables
};

static struct started_range started[STARTED_MAX];
static uint64_t started_count = ID_FIRST_COUNT;

// Claims a slot for this thread: a free one, or one left open by the parent of a fork.
static int take_place(struct started_range *range, uint64_t generation)
{
	uint64_t id = __atomic_load_n(&range->id, __ATOMIC_RELAXED);
	if (id == ID_TAKEN || (id != ID_FREE && __atomic_load_n(&range->generation,
							__ATOMIC_RELAXED) == generation)) {
		return 0;
	}
	return __atomic_compare_exchange_n(
		&range->id, &id, ID_TAKEN, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

uint64_t range_start(const struct range_name *name)
{
	struct strain_marker *marker = strain_marker_here();
	if (!marker) {
		return 0;
	}
	uint64_t count = __atomic_fetch_add(&started_count, 1, __ATOMIC_RELAXED);
	for (uint64_t i = count; i < count + STARTED_TRIED; i++) {
		struct started_range *range = &started[i % STARTED_MAX];
		if (!take_place(range, marker->generation)) {
			continue;
		}
		const char *text = name->text ? name->text : "";
		size_t length = strnlen(text, sizeof(range->name) - 1);
		memcpy(range->name, text, length);
		range->name[length] = '\0';
		range->number = name->number;
		range->began_ns = strain_marker_now_ns();
		__atomic_store_n(&range->generation, marker->generation, __ATOMIC_RELAXED);
		uint64_t id = count * STARTED_MAX + i % STARTED_MAX;
		__atomic_store_n(&range->id, id, __ATOMIC_RELEASE);
		return id;
	}
	struct strain_ring *ring = marker->ring;
	__atomic_store_n(&ring->dropped, ring->dropped + 1, __ATOMIC_RELAXED);
	return 0;
}

void range_end(uint64_t id)
{
	struct started_range *range = &started[id % STARTED_MAX];
	struct strain_marker *marker = strain_marker_here();
	uint64_t expected = id;
	if (!marker || id < STARTED_MAX ||
		!__atomic_compare_exchange_n(
			&range->id, &expected, ID_TAKEN, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
		return;
	}
	if (range->generation == marker->generation) {
		uint32_t name = strain_marker_name(marker, range->name);
		put_span(marker, name, range->number, range->began_ns);
	}
	__atomic_store_n(&range->id, (uint64_t)ID_FREE, __ATOMIC_RELEASE);
}

// Points ------------------------------------------------------------------------------------------

void range_mark(const struct range_name *name, double value)
{
	struct strain_marker *marker = strain_marker_here();
	uint64_t bits;
	if (marker) {
		memcpy(&bits, &value, sizeof(bits));
		strain_marker_put(marker, STRAIN_MARK_POINT, strain_marker_depth(marker),
			strain_marker_name(marker, name->text), name->number, bits);
	}
}
