// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// io.stat (Documentation/admin-guide/cgroup-v2.rst).

#include "record/host/iostat.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "record/host/file.h"

bool iostat_next(struct cursor *text, struct iostat_line *ret)
{
	struct iostat_line found = {0};
	const struct {
		const char *key;
		int64_t *value;
	} keys[] = {
		{"rbytes=", &found.read_bytes},
		{"wbytes=", &found.write_bytes},
		{"rios=", &found.reads},
		{"wios=", &found.writes},
	};
	struct cursor line, word;
	do {
		if (!cursor_line(text, &line)) {
			return false;
		}
	} while (!cursor_word(&line, &found.device));
	while (cursor_word(&line, &word)) {
		for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
			struct cursor value = word;
			int64_t number;
			if (cursor_literal(&value, keys[i].key) && cursor_i64(&value, &number) &&
				number >= 0) {
				*keys[i].value = number;
			}
		}
	}
	*ret = found;
	return true;
}

static bool is_stacked(int root_fd, struct cursor device)
{
	struct cursor c = device;
	if (cursor_literal(&c, "7:")) {
		return true; // loop devices name no slaves
	}
	char path[64];
	int length = (int)(device.end - device.at);
	snprintf(path, sizeof(path), "sys/dev/block/%.*s/slaves", length < 32 ? length : 32,
		device.at);
	return host_has_entries(root_fd, path);
}

bool iostat_counts(struct iostat_disks *known, int root_fd, struct cursor device)
{
	for (size_t i = 0; i < known->n; i++) {
		if (cursor_is(device, known->disks[i].number)) {
			return known->disks[i].counts;
		}
	}
	size_t length = (size_t)(device.end - device.at);
	bool counts = !is_stacked(root_fd, device);
	if (known->n < IOSTAT_MAX_DISKS && length < sizeof(known->disks->number)) {
		memcpy(known->disks[known->n].number, device.at, length);
		known->disks[known->n++].counts = counts;
	}
	return counts;
}
