// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What the sources of GPUs that read a driver's files have in common: the numbers of sysfs, and how
// they become rows, gaps and reasons.

#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/parse.h"
#include "machine/file.h"
#include "record/sample/source.h"

// Files -------------------------------------------------------------------------------------------

// A file that has no value this time.
#define GPU_FILES_GAP (-EAGAIN)

// The number that is all of a text.
bool gpu_files_number_of(struct cursor text, int64_t *ret);
// The number in a file that is opened for this reading.
bool gpu_files_number(int root_fd, const char *path, int64_t *ret);
// The number in an open file, from least to most. Returns 0, GPU_FILES_GAP, or -errno if there will
// be no value any more.
int gpu_files_read(struct host_file *f, int64_t least, int64_t most, int64_t *ret);

// NULL: it cannot be listed. The caller closes it.
DIR *gpu_files_directory(int root_fd, const char *path);

// The generation and the lanes of a PCI device's link: the present ones ("current"), or the highest
// ("max"). False: unknown; then at least one is 0.
bool gpu_files_link(int root_fd, const char *folder, const char *which, int64_t *ret_generation,
	int64_t *ret_width);

// The folder of a device's sensors, "FOLDER/hwmon/hwmon3", of the name; NULL: the first. False:
// there is none.
bool gpu_files_hwmon(int root_fd, const char *folder, const char *name, char *to, size_t size);
// "HWMON/temp2_input", where temp2_label is "junction". False: there is no such label.
bool gpu_files_labelled(int root_fd, const char *hwmon, const char *kind, const char *label,
	const char *ending, char *to, size_t size);

// Rows --------------------------------------------------------------------------------------------

#define GPU_ROWS_GROUPS_MAX 12u
#define GPU_ROWS_METRICS_MAX 6u // a group

// The rows of one GPU, in the groups of its source. Initialise the first four, the rest with zeros.
struct gpu_rows {
	const struct group *groups; // [n_groups]
	size_t n_groups;
	int64_t entity;
	struct sink *sink; // outlives the source
	bool lost;
	uint8_t never[GPU_ROWS_GROUPS_MAX]; // a bit per metric that is unavailable in this run
	uint8_t told[GPU_ROWS_GROUPS_MAX]; // a bit per metric that had a value
	unsigned reads[GPU_ROWS_GROUPS_MAX]; // rows
	struct stream *streams[GPU_ROWS_GROUPS_MAX];
};

// A reading of a group. A value that is VALUE_MISSING is a gap.
struct gpu_rows_reading {
	int64_t value[GPU_ROWS_METRICS_MAX];
};

struct gpu_rows_reading gpu_rows_nothing(void);

// Whether the metric may have a value; whether any of the group may.
bool gpu_rows_wants(const struct gpu_rows *r, size_t group, size_t metric);
bool gpu_rows_wants_any(const struct gpu_rows *r, size_t group);
// Marks a metric, or all of a group, as unavailable from now on. The first reason stays.
void gpu_rows_never(struct gpu_rows *r, size_t group, size_t metric, const char *reason);
void gpu_rows_never_group(struct gpu_rows *r, size_t group, const char *reason);
void gpu_rows_put(
	struct gpu_rows *r, size_t group, uint64_t now_ns, const struct gpu_rows_reading *reading);
// At the end: marks the metrics of a group that was read a few times and never had a value. Of a
// group that another recorder read for this one, nothing is known.
void gpu_rows_say_gaps(struct gpu_rows *r, size_t group, const char *reason);
// The GPU has gone. model, uuid: for the event.
void gpu_rows_lose(
	struct gpu_rows *r, uint64_t now_ns, unsigned index, const char *model, const char *uuid);
