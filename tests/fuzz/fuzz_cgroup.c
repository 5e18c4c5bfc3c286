// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Key files of cgroups, io.stat, and, up to the first NUL, proc/PID/cgroup with mountinfo behind
// it.

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "machine/cgroupfs.h"
#include "machine/procfs.h"
#include "machine/file.h"
#include "machine/machine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void find_places(struct cursor cgroups, struct cursor mounts)
{
	struct cgroup_places places;
	cgroup_places_parse(cgroups, mounts, &places);
	for (int i = 0; i < N_CGROUP_CONTROLLERS; i++) {
		const struct cgroup_place *place = cgroup_place_of(&places, i);
		if (place->version && (!place->path || place->mount_length > strlen(place->path) ||
					      strstr(place->path + place->mount_length, "/.."))) {
			abort(); // nothing may lead out of the mount
		}
	}
	cgroup_places_done(&places);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const keys[] = {"anon", "file", "shmem", "usage_usec", "oom_kill"};
	struct cursor text = cursor_of((const char *)data, size);
	int64_t values[ARRAY_LENGTH(keys)];
	size_t found = file_keys_parse(text, keys, ARRAY_LENGTH(keys), values);
	for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
		found -= values[i] != KEYED_ABSENT;
	}
	if (found != 0) {
		abort(); // what was found has a number, what was not has none
	}
	struct cursor rest = text;
	struct iostat_line line;
	while (procfs_next_iostat(&rest, &line)) {
		if (line.read_bytes < 0 || line.writes < 0 || line.device.at >= line.device.end) {
			abort();
		}
	}
	(void)procfs_list_count(text);
	(void)cgroupfs_list_has(text, "memory");
	const char *nul = size ? memchr(text.at, '\0', size) : NULL;
	if (nul) {
		find_places((struct cursor){text.at, nul}, (struct cursor){nul + 1, text.end});
	}
	return 0;
}
