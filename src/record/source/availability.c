// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Opens and reads sources as the recorder does, keeping the feed's items in memory.

#include "record/source/availability.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "record/sample/feed.h"
#include "record/sample/source.h"

#define FEED_MAX_BYTES ((size_t)64 << 20)
// Without persistence mode, a driver takes seconds for each GPU.
#define DRIVER_NS (30 * NS_PER_S)
#define ROUNDS 3
#define ROUND_NS (11 * NS_PER_S) // longer than any group's interval

enum { HOST = 1, JOB, RECORDER, FIXED_ENTITIES = RECORDER };

struct entity {
	int64_t id;
	char *name;
};

// A value or reason from a source, while they are collected.
struct reading {
	const struct group *group;
	size_t metric;
	int64_t entity;
	int64_t value;
	char *reason; // owned
};

struct result {
	struct reading *readings;
	size_t n_readings, capacity;
};

struct availability {
	struct registry registry;
	struct feed *feed;
	struct entity *entities;
	size_t n_entities, entities_capacity;
	struct result *kept; // [n]
	struct availability_result *results; // [n]
	size_t n;
};

static const char *entity_name(const struct availability *p, int64_t id)
{
	static const char *const fixed[] = {"", "host", "job", "recorder"};
	if (id >= 0 && id <= FIXED_ENTITIES) {
		return fixed[id];
	}
	for (size_t i = 0; i < p->n_entities; i++) {
		if (p->entities[i].id == id) {
			return p->entities[i].name;
		}
	}
	return "?";
}

static int note_entity(struct availability *p, const struct item *item)
{
	for (size_t i = 0; i < p->n_entities; i++) {
		if (p->entities[i].id == item->entity) {
			return 0;
		}
	}
	void *entities = p->entities;
	int r = array_reserve(
		&entities, &p->entities_capacity, p->n_entities + 1, sizeof(*p->entities));
	p->entities = entities;
	char *name = r < 0 ? NULL : strdup(item->name ? item->name : "");
	if (!name) {
		return -ENOMEM;
	}
	p->entities[p->n_entities++] = (struct entity){item->entity, name};
	return 0;
}

// Finds the group of a metric's id, and the metric's index in it.
static bool find_metric(const struct availability *p, uint32_t id, const struct group **ret_group,
	size_t *ret_metric)
{
	for (size_t i = 0; i < p->registry.n_rows; i++) {
		const struct registry_row *row = &p->registry.rows[i];
		for (size_t m = 0; m < row->group->n_metrics; m++) {
			if (row->ids[m] == id) {
				*ret_group = row->group;
				*ret_metric = m;
				return true;
			}
		}
	}
	return false;
}

// A value replaces a reason and an older value; a reason replaces nothing.
static int note(struct availability *p, struct result *kept, uint32_t metric_id, int64_t entity,
	int64_t value, const char *reason)
{
	struct reading new = {.entity = entity, .value = value};
	if (!find_metric(p, metric_id, &new.group, &new.metric)) {
		return 0;
	}
	for (size_t i = 0; i < kept->n_readings; i++) {
		struct reading *old = &kept->readings[i];
		if (old->group == new.group && old->metric == new.metric && old->entity == entity) {
			if (value != VALUE_MISSING) {
				old->value = value;
			} else if (reason && !old->reason) {
				old->reason = strdup(reason);
				return old->reason ? 0 : -ENOMEM;
			}
			return 0;
		}
	}
	void *readings = kept->readings;
	int r = array_reserve(&readings, &kept->capacity, kept->n_readings + 1, sizeof(new));
	kept->readings = readings;
	if (r < 0 || (reason && !(new.reason = strdup(reason)))) {
		return -ENOMEM;
	}
	kept->readings[kept->n_readings++] = new;
	return 0;
}

static int note_item(struct availability *p, struct result *kept, const struct item *item)
{
	if (item->kind == ITEM_ENTITY) {
		return note_entity(p, item);
	}
	if (item->kind == ITEM_MISSING) {
		return note(p, kept, item->metric, item->entity, VALUE_MISSING, item->text);
	}
	int r = 0;
	if (item->kind == ITEM_BLOCK && item->block.n_rows > 0) {
		const struct block *b = &item->block;
		for (size_t i = 0; i < b->n_columns && r == 0; i++) {
			r = note(p, kept, b->metric_ids[i], item->entity,
				b->columns[i][b->n_rows - 1], NULL);
		}
	}
	return r;
}

static int drain(struct availability *p, struct sink *sink, struct result *kept)
{
	int r = 0;
	sink_flush(sink);
	for (struct item *item = feed_take(p->feed, 0), *next; item; item = next) {
		next = item->next;
		r = r < 0 ? r : note_item(p, kept, item);
		item_free(item);
	}
	return r;
}

static void read_groups(
	const struct source *source, void *state, struct sink *sink, uint64_t start_ns)
{
	bool gone[64] = {false};
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (size_t g = 0; g < source->n_groups; g++) {
			if (g < ARRAY_LENGTH(gone) && !gone[g]) {
				gone[g] = source->groups[g].read(
						  state, sink, start_ns + round * ROUND_NS) < 0;
			}
		}
	}
}

// If a source does not open, each of its metrics gets its reason.
static int note_failure(struct availability *p, struct result *kept, const struct source *source,
	const char *reason)
{
	for (size_t g = 0; g < source->n_groups; g++) {
		const struct registry_row *row = registry_find(&p->registry, &source->groups[g]);
		for (size_t m = 0; row && m < source->groups[g].n_metrics; m++) {
			int r = note(p, kept, row->ids[m], 0, VALUE_MISSING, reason);
			if (r < 0) {
				return r;
			}
		}
	}
	return 0;
}

// Opens, reads and closes a source in this process, which is a child.
static void try_in_child(const struct source_context *context, const struct source *source)
{
	struct registry registry = {0};
	struct feed *feed = NULL;
	struct sink *sink = NULL;
	void *state = NULL;
	struct error e;
	signal(SIGSEGV, SIG_DFL); // not a sanitizer's: a crash ends it as such
	// If it hangs for ever, nobody waits for the end of our output.
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		descriptors_null(fd);
	}
	int r = feed_new(FEED_MAX_BYTES, &feed);
	r = r < 0 ? r : sink_new(&registry, feed, context->start_ns, &sink);
	for (size_t g = 0; g < source->n_groups && r == 0; g++) {
		r = registry_add(&registry, source->name, &source->groups[g]);
	}
	if (r == 0 && source->open(context, sink, &state, &e) == 0) {
		read_groups(source, state, sink, context->start_ns);
		source->close(state);
	}
	_exit(0);
}

// A driver's library can hang or crash, and most likely does where somebody asks what is wrong: a
// child tries it first. Returns 0, or -errno with the reason why it must not be asked here.
static int try_driver(
	const struct source_context *context, const struct source *source, struct error *e)
{
	if (source->lane != LANE_DEVICE || context->captured) {
		return 0;
	}
	signal(SIGCHLD, SIG_DFL); // else its status is lost
	pid_t child = fork();
	if (child < 0) {
		return 0;
	}
	if (child == 0) {
		try_in_child(context, source);
	}
	uint64_t until_ns = clock_monotonic_ns() + DRIVER_NS;
	int status = 0;
	pid_t ended;
	while ((ended = waitpid(child, &status, WNOHANG)) == 0 && clock_monotonic_ns() < until_ns) {
		nanosleep(&(struct timespec){.tv_nsec = 5 * NS_PER_MS}, NULL);
	}
	if (ended == 0) {
		kill(child, SIGKILL); // it may sleep in the driver, and end later
		return error_set(e, ETIMEDOUT, "the driver did not answer within %d s",
			(int)(DRIVER_NS / NS_PER_S));
	}
	return ended == child && WIFSIGNALED(status)
	               ? error_set(e, EFAULT, "the driver's library crashed (signal %d)",
				 WTERMSIG(status))
	               : 0;
}

static int try_source(struct availability *p, const struct source_context *context,
	const struct source *source, struct result *kept, struct error *failed)
{
	struct sink *sink = NULL;
	void *state = NULL;
	int r = sink_new(&p->registry, p->feed, context->start_ns, &sink);
	if (r < 0) {
		return r;
	}
	registry_done(&p->registry); // of the source before: two may have the same metrics
	for (size_t g = 0; g < source->n_groups && r == 0; g++) {
		r = registry_add(&p->registry, source->name, &source->groups[g]);
	}
	if (r == 0 && try_driver(context, source, failed) == 0 &&
		source->open(context, sink, &state, failed) == 0) {
		*failed = (struct error){0};
		read_groups(source, state, sink, context->start_ns);
	}
	r = r < 0 ? r : drain(p, sink, kept);
	if (r == 0 && failed->code) {
		r = note_failure(p, kept, source, failed->text);
	}
	source->close(state);
	// The items produced by closing are ignored, but must be taken.
	struct result closing = {0};
	(void)drain(p, sink, &closing);
	for (size_t i = 0; i < closing.n_readings; i++) {
		free(closing.readings[i].reason);
	}
	free(closing.readings);
	sink_free(sink);
	return r;
}

// The groups of a source are in one array.
static int compare_readings(const void *a, const void *b)
{
	const struct reading *x = a, *y = b;
	if (x->group != y->group) {
		return x->group < y->group ? -1 : 1;
	}
	if (x->entity != y->entity) {
		return x->entity < y->entity ? -1 : 1;
	}
	return x->metric < y->metric ? -1 : x->metric > y->metric;
}

// Finds what was reported about a metric for all entities of its kind.
static const struct reading *find_general(const struct result *kept, const struct reading *wanted)
{
	for (size_t i = 0; i < kept->n_readings; i++) {
		const struct reading *r = &kept->readings[i];
		if (r->entity == 0 && r->group == wanted->group && r->metric == wanted->metric) {
			return r;
		}
	}
	return NULL;
}

static bool has_entities(const struct result *kept, const struct group *group)
{
	for (size_t i = 0; i < kept->n_readings; i++) {
		if (kept->readings[i].group == group && kept->readings[i].entity != 0) {
			return true;
		}
	}
	return false;
}

static int publish(struct availability *p, struct result *kept, struct availability_result *ret)
{
	ret->values = calloc(kept->n_readings + 1, sizeof(*ret->values));
	if (!ret->values) {
		return -ENOMEM;
	}
	if (kept->n_readings) {
		qsort(kept->readings, kept->n_readings, sizeof(*kept->readings), compare_readings);
	}
	for (size_t i = 0; i < kept->n_readings; i++) {
		const struct reading *r = &kept->readings[i];
		const struct reading *general = find_general(kept, r);
		if (r == general && has_entities(kept, r->group)) {
			continue; // each of them reports it
		}
		const char *reason = r->reason ? r->reason : general ? general->reason : NULL;
		ret->values[ret->n_values++] = (struct availability_value){
			.group = r->group,
			.metric = r->metric,
			.entity = entity_name(p, r->entity),
			.value = r->value,
			.reason = r->value == VALUE_MISSING ? reason : NULL,
		};
	}
	return 0;
}

int availability_run(const struct source_context *context, struct availability **ret)
{
	struct availability *p = calloc(1, sizeof(*p));
	if (!p) {
		return -ENOMEM;
	}
	size_t n = 0;
	while (source_list[n]) {
		n++;
	}
	p->registry.last_entity = FIXED_ENTITIES;
	p->kept = calloc(n, sizeof(*p->kept));
	p->results = calloc(n, sizeof(*p->results));
	int r = p->kept && p->results ? feed_new(FEED_MAX_BYTES, &p->feed) : -ENOMEM;
	struct source_context own = *context;
	own.host = HOST;
	own.job = JOB;
	own.recorder = RECORDER;
	own.start_ns = clock_monotonic_ns();
	for (size_t i = 0; i < n && r == 0; i++) {
		const struct source *source = source_list[i];
		if (!source->absent || !source->absent(own.root_fd)) {
			p->results[p->n].source = source;
			r = try_source(p, &own, source, &p->kept[p->n], &p->results[p->n].failed);
			p->n++;
		}
	}
	// Names point into the array of entities, which no longer grows.
	for (size_t i = 0; i < p->n && r == 0; i++) {
		r = publish(p, &p->kept[i], &p->results[i]);
	}
	if (r < 0) {
		availability_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

void availability_free(struct availability *p)
{
	if (!p) {
		return;
	}
	for (size_t i = 0; i < p->n; i++) {
		for (size_t k = 0; p->kept && k < p->kept[i].n_readings; k++) {
			free(p->kept[i].readings[k].reason);
		}
		if (p->kept) {
			free(p->kept[i].readings);
		}
		if (p->results) {
			free(p->results[i].values);
		}
	}
	for (size_t i = 0; i < p->n_entities; i++) {
		free(p->entities[i].name);
	}
	free(p->kept);
	free(p->results);
	free(p->entities);
	feed_free(p->feed);
	registry_done(&p->registry);
	free(p);
}

const struct availability_result *availability_results(const struct availability *p, size_t *ret_n)
{
	*ret_n = p->n;
	return p->results;
}
