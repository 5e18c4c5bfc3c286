// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Files of GPUs' drivers.

#include "record/source/gpu_files.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "record/source/gpu_metrics.h"

// Files -------------------------------------------------------------------------------------------

bool gpu_files_number_of(struct cursor text, int64_t *ret)
{
	if (!cursor_i64(&text, ret)) {
		return false;
	}
	while (text.at < text.end && (*text.at == '\n' || *text.at == ' ' || *text.at == '\0')) {
		text.at++;
	}
	return text.at == text.end;
}

bool gpu_files_number(int root_fd, const char *path, int64_t *ret)
{
	char buffer[64];
	struct cursor text;
	return file_read_once(root_fd, path, buffer, sizeof(buffer), &text, NULL) == 0 &&
	       gpu_files_number_of(text, ret);
}

int gpu_files_read(struct host_file *f, int64_t least, int64_t most, int64_t *ret)
{
	struct cursor text;
	int64_t value = 0;
	int r = f->fd < 0 ? -ENOENT : host_file_read(f, &text);
	if (r < 0) {
		// While the GPU is reset or sleeps: EBUSY and EPERM, or the reverse on older
		// kernels.
		bool passes = r == -EPERM || r == -EBUSY || r == -EAGAIN || r == -EINTR ||
		              r == -ENODATA || r == -ETIME || r == -ETIMEDOUT || r == -EIO;
		return passes ? GPU_FILES_GAP : r;
	}
	if (!gpu_files_number_of(text, &value) || value < least || value > most) {
		return GPU_FILES_GAP;
	}
	*ret = value;
	return 0;
}

DIR *gpu_files_directory(int root_fd, const char *path)
{
	int fd = openat(root_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	if (fd >= 0 && !directory) {
		close(fd);
	}
	return directory;
}

// "16.0 GT/s PCIe" is generation 4.
static int64_t generation_of(const char *speed)
{
	static const char *const speeds[] = {"2.5 ", "5", "8", "16", "32", "64"};
	for (size_t i = ARRAY_LENGTH(speeds); i-- > 0;) {
		size_t length = strlen(speeds[i]);
		if (strncmp(speed, speeds[i], length) == 0 &&
			(i == 0 || speed[length] == '.' || speed[length] == ' ')) {
			return (int64_t)i + 1;
		}
	}
	return 0;
}

bool gpu_files_link(int root_fd, const char *folder, const char *which, int64_t *ret_generation,
	int64_t *ret_width)
{
	char path[160], line[48];
	snprintf(path, sizeof(path), "%s/%s_link_speed", folder, which);
	*ret_generation = file_read_line(root_fd, path, line, sizeof(line)) ? generation_of(line)
	                                                                    : 0;
	snprintf(path, sizeof(path), "%s/%s_link_width", folder, which);
	bool read = gpu_files_number(root_fd, path, ret_width) && *ret_width >= 1 &&
	            *ret_width <= 32;
	*ret_width = read ? *ret_width : 0;
	return *ret_generation > 0 && *ret_width > 0;
}

bool gpu_files_hwmon(int root_fd, const char *folder, const char *name, char *to, size_t size)
{
	char path[96], line[16];
	snprintf(path, sizeof(path), "%s/hwmon", folder);
	_cleanup_closedir_ DIR *list = gpu_files_directory(root_fd, path);
	const struct dirent *item;
	while (list && (item = readdir(list))) {
		if (strncmp(item->d_name, "hwmon", strlen("hwmon")) != 0 ||
			strlen(item->d_name) >= 16) {
			continue;
		}
		snprintf(path, sizeof(path), "%s/hwmon/%.16s/name", folder, item->d_name);
		if (!name || (file_read_line(root_fd, path, line, sizeof(line)) &&
				     strcmp(line, name) == 0)) {
			snprintf(to, size, "%s/hwmon/%.16s", folder, item->d_name);
			return true;
		}
	}
	return false;
}

bool gpu_files_labelled(int root_fd, const char *hwmon, const char *kind, const char *label,
	const char *ending, char *to, size_t size)
{
	char line[32];
	for (unsigned i = 1; i <= 8; i++) {
		snprintf(to, size, "%s/%s%u_label", hwmon, kind, i);
		if (file_read_line(root_fd, to, line, sizeof(line)) && strcmp(line, label) == 0) {
			snprintf(to, size, "%s/%s%u_%s", hwmon, kind, i, ending);
			return true;
		}
	}
	return false;
}

// Rows --------------------------------------------------------------------------------------------

static_assert(
	N_JOB <= GPU_ROWS_METRICS_MAX && N_ERRORS <= GPU_ROWS_METRICS_MAX, "a row holds them");

#define GAP_READS 3u // without a value, until it is said that there is none

struct gpu_rows_reading gpu_rows_nothing(void)
{
	struct gpu_rows_reading nothing;
	for (size_t i = 0; i < GPU_ROWS_METRICS_MAX; i++) {
		nothing.value[i] = VALUE_MISSING;
	}
	return nothing;
}

bool gpu_rows_wants(const struct gpu_rows *r, size_t group, size_t metric)
{
	return !(r->never[group] & 1u << metric);
}

bool gpu_rows_wants_any(const struct gpu_rows *r, size_t group)
{
	unsigned all = (1u << r->groups[group].n_metrics) - 1;
	return !r->lost && (r->never[group] & all) != all;
}

void gpu_rows_never(struct gpu_rows *r, size_t group, size_t metric, const char *reason)
{
	if (gpu_rows_wants(r, group, metric)) {
		r->never[group] |= (uint8_t)(1u << metric);
		sink_missing(r->sink, r->entity, &r->groups[group], metric, reason);
	}
}

void gpu_rows_never_group(struct gpu_rows *r, size_t group, const char *reason)
{
	for (size_t i = 0; i < r->groups[group].n_metrics; i++) {
		gpu_rows_never(r, group, i, reason);
	}
}

void gpu_rows_put(
	struct gpu_rows *r, size_t group, uint64_t now_ns, const struct gpu_rows_reading *reading)
{
	if (!r->streams[group]) {
		r->streams[group] = sink_stream(r->sink, r->entity, &r->groups[group]);
	}
	for (size_t i = 0; i < r->groups[group].n_metrics; i++) {
		r->told[group] |= (uint8_t)((reading->value[i] != VALUE_MISSING) << i);
	}
	r->reads[group]++;
	stream_row(r->streams[group], now_ns, reading->value);
}

void gpu_rows_say_gaps(struct gpu_rows *r, size_t group, const char *reason)
{
	for (size_t i = 0; i < r->groups[group].n_metrics && r->reads[group] >= GAP_READS; i++) {
		if (!(r->told[group] & 1u << i)) {
			gpu_rows_never(r, group, i, reason);
		}
	}
}

void gpu_rows_lose(
	struct gpu_rows *r, uint64_t now_ns, unsigned index, const char *model, const char *uuid)
{
	static const char reason[] = "the driver removed it";
	r->lost = true;
	sink_event(r->sink, now_ns, "gpu_lost", r->entity, "GPU %u (%s, %s): %s", index, model,
		uuid, reason);
	for (size_t group = 0; group < r->n_groups; group++) {
		stream_close(take_pointer(r->streams[group]));
		if (r->groups[group].entity_kind == ENTITY_GPU) {
			sink_missing_group(r->sink, r->entity, &r->groups[group], reason);
		}
	}
	sink_entity_end(r->sink, r->entity, now_ns, NULL);
}
