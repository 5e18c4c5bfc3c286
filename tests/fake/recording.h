// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A recording of one source of GPUs alone: NVML's on the fake library's clock, so that no test
// waits, or AMD's or Intel's on a tree of files.

#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>

#include "base/error.h"
#include "record/sample/feed.h"
#include "record/sample/source.h"

extern const struct source source_nvml;
extern const struct source source_amdgpu;
extern const struct source source_intelgpu;

// The job is this process, and another pid; the tree is the recording's own.
#define OWN_ENTITY 900
#define OTHER_PID 4242
#define OTHER_ENTITY 901
// How many of them a snapshot of the tree has: 1, or 2.
extern size_t recording_members;

struct row {
	int64_t entity;
	const struct metric *metric;
	int64_t t_us;
	int64_t value;
};

struct note {
	enum item_kind kind;
	int64_t entity;
	const struct metric *metric; // missing
	char kind_text[32]; // event
	char text[1500];
};

#define MAX_ROWS 60000
#define MAX_NOTES 20000

// A recording of the source alone.
struct recording {
	const struct source *source;
	char folder[64];
	int root_fd;
	bool captured; // rates are of the time that play() pretends
	struct registry registry;
	struct feed *feed;
	struct sink *sink;
	void *state;
	uint64_t start_ns;
	uint64_t now_ns;
	uint64_t due_ns[32]; // of each group
	bool ended[32];
	struct row *rows;
	size_t n_rows;
	struct note *notes;
	size_t n_notes;
	void (*advance)(unsigned ms);
	unsigned (*calls)(const char *function);
};

// Pid namespaces: the machine's own, and a container's.
#define HOST_PIDS "pid:[4026531836]"
#define OWN_PIDS "pid:[4026532999]"

// Loads the fake before anything asks for the library by name. False with a line on stderr.
bool fake_load(void);

// Whether the fake that is loaded is the old driver.
bool old_driver(void);
// Skips the test where it is.
void needs_new_driver(void);

// Two GPUs of which a job uses the first.
extern const char training[];

// Makes the machine that the source sees: its pid namespace, and what this process has open as
// descriptor 3 (NULL for nothing).
struct recording *recording_new(const char *namespace, const char *device);
// The same for another source, which recording_open opens without a script.
struct recording *recording_of(
	const struct source *source, const char *namespace, const char *device);
int recording_open(struct recording *r, const char *script, struct error *e);
// Both, with a script on a manual clock; the test fails where the source does not open.
struct recording *record(const char *namespace, const char *device, const char *script);
// The run has ended: closes the source, which may have something to say, and collects.
void recording_close(struct recording *r);
void recording_free(struct recording *r);
// Plays the sampler for a while, in steps of 10 ms, and collects.
void play(struct recording *r, unsigned ms);
// Takes what the sink has into rows and notes.
void collect(struct recording *r);

// GPUs get the ids after 10, in order.
int64_t gpu(unsigned index);
// Rows with a value.
size_t count_rows(const struct recording *r, int64_t entity, const char *metric);
// The last row, a gap too; the test fails where there is none.
struct row last_row(const struct recording *r, int64_t entity, const char *metric);
void check_value(const struct recording *r, int64_t entity, const char *metric, double expected);
const char *missing_reason(const struct recording *r, int64_t entity, const char *metric);
// The first of a kind, or NULL.
const struct note *event(const struct recording *r, const char *kind);
// The last attributes of an entity.
const char *attributes(const struct recording *r, int64_t entity);
