// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A tree of names: a span is inside those of its thread that began before it and end after it.

#include "analyze/own_spans.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"

#define NODES_MAX 512
#define SLOTS 1024 // of the table of names; more than nodes
#define DEPTH_MAX 64
#define LANES_MAX (THREADS_MAX + 1)

struct node {
	char name[PHASE_NAME_MAX];
	size_t parent; // place in nodes; OWN_SPAN_NONE
	bool inside; // iterations
	uint64_t count;
	double total_s;
	struct histogram lengths; // seconds
	uint8_t lanes[LANES_MAX / 8 + 1]; // a bit for each thread that has it
};

// What a thread is in.
struct stack {
	struct {
		size_t node;
		int64_t end_ns;
	} items[DEPTH_MAX];
	size_t n;
};

struct own_gathering {
	struct node *nodes[NODES_MAX];
	size_t n;
	uint16_t slots[SLOTS]; // 1 + place in nodes; 0: free
	struct stack **stacks; // [n_stacks], by lane; NULL where it has no span
	size_t n_stacks;
	size_t stacks_capacity;
	uint64_t left_out;
};

int own_spans_new(struct own_gathering **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

void own_spans_free(struct own_gathering *own)
{
	if (!own) {
		return;
	}
	for (size_t i = 0; i < own->n; i++) {
		histogram_done(&own->nodes[i]->lengths);
		free(own->nodes[i]);
	}
	for (size_t i = 0; i < own->n_stacks; i++) {
		free(own->stacks[i]);
	}
	free(own->stacks);
	free(own);
}

// Threads ---------------------------------------------------------------------------------------

static struct stack *stack_of(struct own_gathering *own, size_t lane)
{
	void *stacks = own->stacks;
	if (array_reserve(&stacks, &own->stacks_capacity, lane + 1, sizeof(struct stack *)) < 0) {
		return NULL;
	}
	own->stacks = stacks;
	while (own->n_stacks <= lane) {
		own->stacks[own->n_stacks++] = NULL;
	}
	if (!own->stacks[lane]) {
		own->stacks[lane] = calloc(1, sizeof(struct stack));
	}
	return own->stacks[lane];
}

// Who holds a span that begins now: the last that began and has not ended when it does.
static size_t holder_of(struct stack *stack, const struct timeline_own *span)
{
	while (stack->n > 0 && stack->items[stack->n - 1].end_ns <= span->start_ns) {
		stack->n--;
	}
	for (size_t i = stack->n; i > 0; i--) {
		if (stack->items[i - 1].end_ns >= span->end_ns) {
			return stack->items[i - 1].node;
		}
	}
	return OWN_SPAN_NONE;
}

// Names -----------------------------------------------------------------------------------------

static bool is_node(
	const struct node *node, const char *name, size_t parent, const struct timeline_own *span)
{
	return node->parent == parent && node->inside == span->inside &&
	       strncmp(node->name, name, PHASE_NAME_MAX - 1) == 0;
}

static size_t first_slot(const char *name, size_t parent, bool inside)
{
	uint64_t hash = (uint64_t)parent * 2 + inside + 14695981039346656037u;
	for (size_t i = 0; i < PHASE_NAME_MAX - 1 && name[i]; i++) {
		hash = (hash ^ (unsigned char)name[i]) * 1099511628211u;
	}
	return (size_t)((hash ^ (hash >> 32)) % SLOTS);
}

// *ret is OWN_SPAN_NONE where there is no room for another name.
static int node_of(
	struct own_gathering *own, const struct timeline_own *span, size_t parent, size_t *ret)
{
	size_t slot = first_slot(span->name, parent, span->inside);
	*ret = OWN_SPAN_NONE;
	while (own->slots[slot]) {
		size_t at = (size_t)own->slots[slot] - 1;
		if (is_node(own->nodes[at], span->name, parent, span)) {
			*ret = at;
			return 0;
		}
		slot = (slot + 1) % SLOTS;
	}
	if (own->n == NODES_MAX) {
		return 0;
	}
	struct node *node = calloc(1, sizeof(*node));
	if (!node) {
		return -ENOMEM;
	}
	memcpy(node->name, span->name, strnlen(span->name, PHASE_NAME_MAX - 1));
	node->parent = parent;
	node->inside = span->inside;
	*ret = own->n;
	own->nodes[own->n++] = node;
	own->slots[slot] = (uint16_t)own->n;
	return 0;
}

int own_spans_add(struct own_gathering *own, const struct timeline_lane *lane,
	const struct timeline_own *span)
{
	struct stack *stack = lane->index < LANES_MAX ? stack_of(own, lane->index) : NULL;
	size_t at;
	if (!stack) {
		own->left_out++;
		return lane->index < LANES_MAX ? -ENOMEM : 0;
	}
	int r = node_of(own, span, holder_of(stack, span), &at);
	if (r < 0 || at == OWN_SPAN_NONE) {
		own->left_out += r == 0;
		return r;
	}
	struct node *node = own->nodes[at];
	double seconds = (double)(span->end_ns - span->start_ns) / 1e9;
	node->count++;
	node->total_s += seconds;
	node->lanes[lane->index / 8] |= (uint8_t)(1u << lane->index % 8);
	histogram_add(&node->lengths, seconds, 1);
	if (stack->n < DEPTH_MAX) {
		stack->items[stack->n].node = at;
		stack->items[stack->n++].end_ns = span->end_ns;
	}
	return 0;
}

// What comes out ----------------------------------------------------------------------------------

// Of how much time a node's is a share: of the iterations of its threads, or of all their time.
static double whole_seconds(const struct node *node, const struct phase_threads *threads,
	double run_s, size_t *ret_threads)
{
	double seconds = 0;
	*ret_threads = 0;
	for (size_t i = 0; i < LANES_MAX; i++) {
		if (node->lanes[i / 8] >> i % 8 & 1) {
			++*ret_threads;
			seconds += node->inside ? phase_threads_iterated_s(threads, i) : run_s;
		}
	}
	return seconds;
}

static void put_node(const struct node *node, const struct phase_threads *threads, double run_s,
	struct own_span *ret)
{
	double whole_s = whole_seconds(node, threads, run_s, &ret->threads);
	memcpy(ret->name, node->name, sizeof(ret->name));
	ret->inside = node->inside;
	ret->count = node->count;
	ret->total_s = node->total_s;
	ret->p50_s = histogram_quantile(&node->lengths, 0.5);
	ret->max_s = node->lengths.total > 0 ? node->lengths.largest : NAN;
	ret->share = whole_s > 0 ? node->total_s / whole_s : NAN;
}

// The child of `parent` that took the longest, of those not put yet; n: none.
static size_t next_child(const struct own_gathering *own, size_t parent, const bool *put)
{
	size_t found = own->n;
	for (size_t i = 0; i < own->n; i++) {
		if (own->nodes[i]->parent == parent && !put[i] &&
			(found == own->n || own->nodes[i]->total_s > own->nodes[found]->total_s)) {
			found = i;
		}
	}
	return found;
}

int own_spans_finish(const struct own_gathering *own, const struct phase_threads *threads,
	double run_s, struct phases *ret)
{
	bool put[NODES_MAX] = {false};
	size_t path[DEPTH_MAX + 2], places[DEPTH_MAX + 2], depth = 0; // of nodes, of what was put
	ret->own = calloc(own->n + 1, sizeof(*ret->own));
	if (!ret->own) {
		return -ENOMEM;
	}
	ret->own_left_out = own->left_out;
	path[0] = places[0] = OWN_SPAN_NONE;
	for (;;) {
		size_t child = next_child(own, path[depth], put);
		if (child == own->n) {
			if (depth-- == 0) {
				return 0;
			}
			continue;
		}
		struct own_span *span = &ret->own[ret->n_own];
		put_node(own->nodes[child], threads, run_s, span);
		span->parent = places[depth];
		span->depth = (unsigned)depth;
		put[child] = true;
		path[++depth] = child;
		places[depth] = ret->n_own++;
	}
}

static int compare_totals(const void *left, const void *right)
{
	const struct own_span *a = *(struct own_span *const *)left;
	const struct own_span *b = *(struct own_span *const *)right;
	return a->total_s != b->total_s ? (a->total_s < b->total_s) - (a->total_s > b->total_s)
	                                : (a > b) - (a < b);
}

int own_spans_longest(const struct phases *p, size_t limit, bool *shown)
{
	_cleanup_free_ const struct own_span **order = calloc(
		p->n_own + 1, sizeof(struct own_span *));
	if (!order) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < p->n_own; i++) {
		order[i] = &p->own[i];
	}
	qsort(order, p->n_own, sizeof(struct own_span *), compare_totals);
	for (size_t i = 0; i < p->n_own && i < limit; i++) {
		for (size_t at = (size_t)(order[i] - p->own); at != OWN_SPAN_NONE;
			at = p->own[at].parent) {
			shown[at] = true;
		}
	}
	return 0;
}
