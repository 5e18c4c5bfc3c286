// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Sets of CPUs.

#include "machine/cpus.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "machine/file.h"

enum { NODES_MAX = 1024 };

static bool cpus_has(const struct cpus *cpus, unsigned cpu)
{
	return cpu < CPUS_MAX && CPU_ISSET_S(cpu, sizeof(cpus->words), cpus->words);
}

void cpus_add(struct cpus *cpus, unsigned cpu)
{
	if (cpu < CPUS_MAX) {
		CPU_SET_S(cpu, sizeof(cpus->words), cpus->words);
	}
}

unsigned cpus_count(const struct cpus *cpus)
{
	return (unsigned)CPU_COUNT_S(sizeof(cpus->words), cpus->words);
}

int cpus_first_outside(const struct cpus *cpus, const struct cpus *among)
{
	for (unsigned cpu = 0; cpu < CPUS_MAX; cpu++) {
		if (cpus_has(cpus, cpu) && !cpus_has(among, cpu)) {
			return (int)cpu;
		}
	}
	return -1;
}

bool cpus_parse(struct cursor list, struct cpus *ret)
{
	struct cpus cpus = {0};
	uint64_t first, last;
	do {
		if (list.at == list.end || *list.at < '0' || *list.at > '9' ||
			!cursor_u64(&list, &first)) {
			return false;
		}
		last = first;
		if (cursor_literal(&list, "-") &&
			(list.at == list.end || *list.at < '0' || *list.at > '9' ||
				!cursor_u64(&list, &last))) {
			return false;
		}
		if (last < first || last >= CPUS_MAX) {
			return false;
		}
		for (uint64_t cpu = first; cpu <= last; cpu++) {
			cpus_add(&cpus, (unsigned)cpu);
		}
	} while (cursor_literal(&list, ",") && list.at < list.end && *list.at != '\n');
	(void)cursor_literal(&list, "\n");
	if (list.at != list.end) {
		return false;
	}
	*ret = cpus;
	return true;
}

void cpus_append(struct text *t, const struct cpus *cpus)
{
	const char *comma = "";
	for (unsigned cpu = 0; cpu < CPUS_MAX; cpu++) {
		unsigned last = cpu;
		if (!cpus_has(cpus, cpu)) {
			continue;
		}
		while (cpus_has(cpus, last + 1)) {
			last++;
		}
		text_format(t, last > cpu ? "%s%u-%u" : "%s%u", comma, cpu, last);
		comma = ",";
		cpu = last;
	}
}

int cpus_of(pid_t pid, struct cpus *ret)
{
	struct cpus cpus = {0};
	if (sched_getaffinity(pid, sizeof(cpus.words), cpus.words) < 0) {
		return -errno;
	}
	*ret = cpus;
	return 0;
}

int cpus_of_self(struct cpus *ret)
{
	return cpus_of(0, ret);
}

// ---- choosing

struct candidate {
	unsigned cpu;
	unsigned node;
	unsigned rank; // among the available CPUs of its core
};

struct node {
	unsigned number;
	struct cpus cpus;
	unsigned cores; // with an available CPU
	unsigned place; // position in the order in which nodes are used
};

static bool read_cpus(int root_fd, const char *path, struct cpus *ret)
{
	char buffer[4096];
	struct cursor text;
	return file_read_once(root_fd, path, buffer, sizeof(buffer), &text, NULL) == 0 &&
	       text.end < buffer + sizeof(buffer) && cpus_parse(text, ret);
}

// Returns the number of CPUs of the same core before this one; 0 if the topology is unknown.
static unsigned rank_of(int root_fd, const struct cpus *from, unsigned cpu)
{
	static const char *const names[] = {
		"core_cpus_list", "thread_siblings_list"}; // newer, older
	struct cpus core;
	unsigned rank = 0;
	bool known = false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !known; i++) {
		char path[96];
		snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%u/topology/%s", cpu,
			names[i]);
		known = read_cpus(root_fd, path, &core);
	}
	for (unsigned other = 0; known && other < cpu; other++) {
		rank += cpus_has(&core, other) && cpus_has(from, other);
	}
	return rank;
}

static size_t read_nodes(int root_fd, struct node *nodes)
{
	struct cpus online; // the list of nodes has the same format
	size_t n = 0;
	if (!read_cpus(root_fd, "sys/devices/system/node/online", &online)) {
		return 0;
	}
	for (unsigned number = 0; number < CPUS_MAX && n < NODES_MAX; number++) {
		char path[64];
		snprintf(path, sizeof(path), "sys/devices/system/node/node%u/cpulist", number);
		if (cpus_has(&online, number) && read_cpus(root_fd, path, &nodes[n].cpus)) {
			nodes[n++].number = number;
		}
	}
	return n;
}

static unsigned node_of(const struct node *nodes, size_t n, unsigned cpu)
{
	for (size_t i = 0; i < n; i++) {
		if (cpus_has(&nodes[i].cpus, cpu)) {
			return (unsigned)i;
		}
	}
	return 0;
}

// Whether node a is used before b: the smallest node that has enough cores, otherwise the one with
// the most.
static bool comes_before(const struct node *a, const struct node *b, unsigned wanted)
{
	bool a_fits = a->cores >= wanted, b_fits = b->cores >= wanted;
	if (a_fits != b_fits) {
		return a_fits;
	}
	if (a->cores != b->cores) {
		return a_fits ? a->cores < b->cores : a->cores > b->cores;
	}
	return a->number < b->number;
}

static void order_nodes(struct node *nodes, size_t n, unsigned wanted)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < n; k++) {
			nodes[i].place += k != i && comes_before(&nodes[k], &nodes[i], wanted);
		}
	}
}

static int compare_candidates(const void *left, const void *right)
{
	const struct candidate *a = left, *b = right;
	if (a->rank != b->rank) {
		return a->rank < b->rank ? -1 : 1;
	}
	if (a->node != b->node) {
		return a->node < b->node ? -1 : 1;
	}
	return a->cpu < b->cpu ? -1 : a->cpu > b->cpu;
}

// Takes the first n, ignoring cores and nodes.
static void take_first(const struct cpus *from, unsigned n, struct cpus *ret)
{
	*ret = (struct cpus){0};
	for (unsigned cpu = 0; cpu < CPUS_MAX && cpus_count(ret) < n; cpu++) {
		if (cpus_has(from, cpu)) {
			cpus_add(ret, cpu);
		}
	}
}

void cpus_choose(int root_fd, const struct cpus *from, unsigned n, struct cpus *ret)
{
	size_t n_candidates = 0, n_nodes;
	struct candidate *candidates = calloc(cpus_count(from) + 1, sizeof(*candidates));
	struct node *nodes = calloc(NODES_MAX, sizeof(*nodes));
	take_first(from, n, ret);
	if (candidates && nodes && cpus_count(from) > n) {
		n_nodes = read_nodes(root_fd, nodes);
		for (unsigned cpu = 0; cpu < CPUS_MAX; cpu++) {
			if (cpus_has(from, cpu)) {
				struct candidate *c = &candidates[n_candidates++];
				c->cpu = cpu;
				c->rank = rank_of(root_fd, from, cpu);
				c->node = node_of(nodes, n_nodes, cpu);
				nodes[c->node].cores += c->rank == 0;
			}
		}
		order_nodes(nodes, n_nodes, n);
		for (size_t i = 0; i < n_candidates; i++) {
			candidates[i].node = nodes[candidates[i].node].place;
		}
		qsort(candidates, n_candidates, sizeof(*candidates), compare_candidates);
		*ret = (struct cpus){0};
		for (size_t i = 0; i < n && i < n_candidates; i++) {
			cpus_add(ret, candidates[i].cpu);
		}
	}
	free(candidates);
	free(nodes);
}
