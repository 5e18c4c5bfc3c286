// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A recording of the NVML source alone.

#include "recording.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "machine/nvml.h"
#include "machine/tree.h"

// Loaded first, the fake is what its name means from then on: nobody needs LD_LIBRARY_PATH, to
// which Meson adds folders of its own.
bool fake_load(void)
{
	char path[512];
	const char *folder = getenv("FAKE_NVML_FOLDER"), *age = getenv("FAKE_NVML_AGE");
	snprintf(path, sizeof(path), "%s/%s/%s", folder ? folder : ".", age ? age : "full",
		NVML_LIBRARY);
	if (!dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
		fprintf(stderr, "%s\n", dlerror());
		return false;
	}
	return true;
}

bool old_driver(void)
{
	const char *age = getenv("FAKE_NVML_AGE");
	return age && strcmp(age, "old") == 0;
}

void needs_new_driver(void)
{
	if (old_driver()) {
		print_message("what it tests is not in the old driver\n");
		skip();
	}
}

const char training[] = "gpus 2\n"
			"gpu * name Fake H100\n"
			"gpu * memory.total 85000000000\n"
			"gpu * memory.reserved 600000000\n"
			"gpu 0 memory.used 5000000000\n"
			"at 1000 gpu 0 memory.used 7000000000\n"
			"gpu 1 memory.used 0\n"
			"gpu * utilization.gpu 0\n"
			"at 500 gpu 0 utilization.gpu 34\n"
			"gpu * utilization.memory 12\n"
			"gpu * sample.period 167\n"
			"gpu * clock.sm 1980\n"
			"gpu * clock.memory 2619\n"
			"gpu * clock.sm.max 1980\n"
			"gpu * clock.memory.max 2619\n"
			"gpu * memory.bus 5120\n"
			"gpu * cores 16896\n"
			"gpu * capability 90\n"
			"gpu * pcie.generation 1\n"
			"gpu * pcie.width 16\n"
			"gpu * pcie.generation.max 5\n"
			"gpu * pcie.width.max 16\n"
			"gpu * reasons 0\n"
			"at 1500 gpu 0 reasons 4\n"
			"gpu * power 320000\n"
			"gpu * power.instant 321000\n"
			"gpu * energy ramp:1000000:321000\n"
			"gpu * power.limit 700000\n"
			"gpu * temperature 54\n"
			"gpu 0 pcie.receive ramp:4000000000:30000000000\n"
			"gpu 0 pcie.transmit ramp:0:200000000\n"
			"gpu 1 pcie.receive 0\n"
			"gpu 1 pcie.transmit 0\n"
			"gpu * ecc.corrected 3\n"
			"gpu * ecc.uncorrected 0\n"
			"gpu * rows.correctable 1\n"
			"gpu * rows.uncorrectable 2\n"
			"gpu * replays 0\n"
			"gpu * gpm 1\n"
			"gpu * gpm.2 31.5\n"
			"gpu * gpm.10 18\n"
			"gpu * gpm.5 error:3\n"
			"gpu 0 processes self:1000000:30 77:5000:50\n"
			"gpu 1 processes self:500000:20 4242:300:1\n";

size_t recording_members = 1;

// What the source asks of the job's tree: here the job is this process, and pid 4242.
int64_t tree_entity_of(struct tree *tree, pid_t pid)
{
	(void)tree;
	return pid == getpid() ? OWN_ENTITY : pid == OTHER_PID ? OTHER_ENTITY : 0;
}

int tree_snapshot(struct tree *tree, struct tree_member **items, size_t *n, size_t *capacity)
{
	(void)tree;
	void *grown = *items;
	if (array_reserve(&grown, capacity, 2, sizeof(**items)) < 0) {
		return -ENOMEM;
	}
	*items = grown;
	(*items)[0] = (struct tree_member){.pid = getpid(), .entity = OWN_ENTITY};
	(*items)[1] = (struct tree_member){.pid = OTHER_PID, .entity = OTHER_ENTITY};
	*n = recording_members;
	return 0;
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

// A root with what the source looks at: its pid namespace, descriptors, environments.
static void make_root(struct recording *r, const char *namespace, const char *device)
{
	char path[160];
	snprintf(path, sizeof(path), "%s/proc", r->folder);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/proc/self", r->folder);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/proc/self/ns", r->folder);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/proc/self/ns/pid", r->folder);
	assert_int_equal(symlink(namespace, path), 0);
	snprintf(path, sizeof(path), "%s/proc/%d", r->folder, (int)getpid());
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/proc/%d/fd", r->folder, (int)getpid());
	mkdir(path, 0700);
	if (device) {
		snprintf(path, sizeof(path), "%s/proc/%d/fd/3", r->folder, (int)getpid());
		assert_int_equal(symlink(device, path), 0);
	}
	r->root_fd = open(r->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(r->root_fd >= 0);
}

struct recording *recording_new(const char *namespace, const char *device)
{
	return recording_of(&source_nvml, namespace, device);
}

struct recording *recording_of(
	const struct source *source, const char *namespace, const char *device)
{
	struct recording *r = calloc(1, sizeof(*r));
	r->rows = calloc(MAX_ROWS, sizeof(*r->rows));
	r->notes = calloc(MAX_NOTES, sizeof(*r->notes));
	r->source = source;
	snprintf(r->folder, sizeof(r->folder), "/tmp/strain-nvml-XXXXXX");
	assert_non_null(mkdtemp(r->folder));
	make_root(r, namespace, device);
	assert_int_equal(feed_new(64 << 20, &r->feed), 0);
	for (size_t i = 0; i < r->source->n_groups; i++) {
		assert_int_equal(
			registry_add(&r->registry, r->source->name, &r->source->groups[i]), 0);
	}
	return r;
}

static const struct metric *metric_of(const struct recording *r, uint32_t id)
{
	for (size_t i = 0; i < r->registry.n_rows; i++) {
		for (size_t j = 0; j < r->registry.rows[i].group->n_metrics; j++) {
			if (r->registry.rows[i].ids[j] == id) {
				return &r->registry.rows[i].group->metrics[j];
			}
		}
	}
	fail_msg("no metric %u", id);
	return NULL;
}

static void collect_block(struct recording *r, const struct item *item)
{
	for (uint32_t c = 0; c < item->block.n_columns; c++) {
		for (uint32_t i = 0; i < item->block.n_rows; i++) {
			assert_true(r->n_rows < MAX_ROWS);
			r->rows[r->n_rows++] = (struct row){
				.entity = item->entity,
				.metric = metric_of(r, item->block.metric_ids[c]),
				.t_us = item->block.t[i],
				.value = item->block.columns[c][i],
			};
		}
	}
}

void collect(struct recording *r)
{
	sink_flush(r->sink);
	for (struct item *item = feed_take(r->feed, 0), *next; item; item = next) {
		next = item->next;
		if (item->kind == ITEM_BLOCK) {
			collect_block(r, item);
		} else {
			assert_true(r->n_notes < MAX_NOTES);
			struct note *note = &r->notes[r->n_notes++];
			note->kind = item->kind;
			note->entity = item->entity;
			note->metric = item->kind == ITEM_MISSING ? metric_of(r, item->metric)
			                                          : NULL;
			snprintf(note->kind_text, sizeof(note->kind_text), "%s",
				item->kind == ITEM_EVENT ? item->event : "");
			snprintf(
				note->text, sizeof(note->text), "%s", item->text ? item->text : "");
		}
		item_free(item);
	}
}

int recording_open(struct recording *r, const char *script, struct error *e)
{
	char path[160];
	snprintf(path, sizeof(path), "%s/script", r->folder);
	if (script) {
		write_file(path, script);
		setenv("STRAIN_FAKE_NVML", path, 1);
	}
	r->start_ns = clock_monotonic_ns();
	r->now_ns = r->start_ns;
	assert_int_equal(sink_new(&r->registry, r->feed, r->start_ns, &r->sink), 0);
	struct source_context context = {.root_fd = r->root_fd,
		.captured = r->captured,
		.tree = (struct tree *)r, // never looked into
		.host = 1,
		.job = 2,
		.start_ns = r->start_ns};
	atomic_store(&r->registry.last_entity, 10);
	return r->source->open(&context, r->sink, &r->state, e);
}

struct recording *record(const char *namespace, const char *device, const char *script)
{
	struct recording *r = recording_new(namespace, device);
	struct error e = {0};
	char text[4096];
	snprintf(text, sizeof(text), "clock manual\n%s", script);
	if (recording_open(r, text, &e) < 0) {
		fail_msg("%s", e.text);
	}
	void *library = dlopen(NVML_LIBRARY, RTLD_NOW | RTLD_NOLOAD);
	assert_non_null(library);
	void *found = dlsym(library, "fake_nvml_advance");
	memcpy(&r->advance, &found, sizeof(found));
	found = dlsym(library, "fake_nvml_calls");
	memcpy(&r->calls, &found, sizeof(found));
	return r;
}

// Plays the sampler for a while, in steps of 10 ms.
void play(struct recording *r, unsigned ms)
{
	for (unsigned t = 0; t < ms; t += 10) {
		for (size_t i = 0; i < r->source->n_groups; i++) {
			const struct group *group = &r->source->groups[i];
			if (r->ended[i] || r->now_ns < r->due_ns[i]) {
				continue;
			}
			r->ended[i] = group->read(r->state, r->sink, r->now_ns) < 0;
			r->due_ns[i] = r->now_ns + group->interval_ns;
		}
		if (r->advance) {
			r->advance(10);
		}
		r->now_ns += 10 * NS_PER_MS;
	}
	collect(r);
}

static void remove_tree(const char *folder)
{
	char command[128];
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	if (system(command) != 0) {
		fail_msg("cannot remove %s", folder);
	}
}

void recording_close(struct recording *r)
{
	r->source->close(r->state);
	r->state = NULL;
	collect(r);
}

void recording_free(struct recording *r)
{
	r->source->close(r->state);
	sink_free(r->sink);
	feed_free(r->feed);
	registry_done(&r->registry);
	close(r->root_fd);
	remove_tree(r->folder);
	free(r->rows);
	free(r->notes);
	free(r);
}

int64_t gpu(unsigned index)
{
	return 11 + index;
}

size_t count_rows(const struct recording *r, int64_t entity, const char *metric)
{
	size_t n = 0;
	for (size_t i = 0; i < r->n_rows; i++) {
		n += r->rows[i].entity == entity && strcmp(r->rows[i].metric->name, metric) == 0 &&
		     r->rows[i].value != VALUE_MISSING;
	}
	return n;
}

struct row last_row(const struct recording *r, int64_t entity, const char *metric)
{
	for (size_t i = r->n_rows; i > 0; i--) {
		if (r->rows[i - 1].entity == entity &&
			strcmp(r->rows[i - 1].metric->name, metric) == 0) {
			return r->rows[i - 1];
		}
	}
	fail_msg("no row of %s for %d", metric, (int)entity);
	return (struct row){0};
}

void check_value(const struct recording *r, int64_t entity, const char *metric, double expected)
{
	struct row row = last_row(r, entity, metric);
	assert_true(row.value != VALUE_MISSING);
	assert_float_equal((double)row.value * row.metric->scale, expected, expected * 1e-9 + 1e-9);
}

const char *missing_reason(const struct recording *r, int64_t entity, const char *metric)
{
	for (size_t i = 0; i < r->n_notes; i++) {
		if (r->notes[i].kind == ITEM_MISSING && r->notes[i].entity == entity &&
			strcmp(r->notes[i].metric->name, metric) == 0) {
			return r->notes[i].text;
		}
	}
	return "(not said)";
}

const struct note *event(const struct recording *r, const char *kind)
{
	for (size_t i = 0; i < r->n_notes; i++) {
		if (r->notes[i].kind == ITEM_EVENT && strcmp(r->notes[i].kind_text, kind) == 0) {
			return &r->notes[i];
		}
	}
	return NULL;
}

const char *attributes(const struct recording *r, int64_t entity)
{
	for (size_t i = r->n_notes; i > 0; i--) {
		if (r->notes[i - 1].kind == ITEM_ENTITY && r->notes[i - 1].entity == entity) {
			return r->notes[i - 1].text;
		}
	}
	return "";
}
