// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The directory that STRAIN_MARKERS names.

#include "record/marker_directory.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "strain/marker.h"

enum { ROOM_RINGS = 4, OPEN_DIRECTORIES = 8 };

static int make_under(const char *parent, char **ret, struct error *e)
{
	struct statvfs room;
	char path[64];
	if (statvfs(parent, &room) < 0) {
		return error_errno(e, errno, "%s", parent);
	}
	if ((uint64_t)room.f_bavail * room.f_frsize < ROOM_RINGS * STRAIN_RING_BYTES) {
		return error_set(e, ENOSPC, "no room in %s", parent);
	}
	snprintf(path, sizeof(path), "%s/strain-%u-XXXXXX", parent, (unsigned)geteuid());
	if (!mkdtemp(path)) {
		return error_errno(e, errno, "%s", path);
	}
	*ret = strdup(path);
	return *ret ? 0 : error_set(e, ENOMEM, "out of memory");
}

int marker_directory_make(char **ret, struct error *e)
{
	struct error first = {0}, second = {0};
	if (make_under("/dev/shm", ret, &first) == 0 || make_under("/tmp", ret, &second) == 0) {
		return 0;
	}
	return error_set(e, second.code, "%.200s; %.200s", first.text, second.text);
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *place)
{
	(void)status;
	(void)kind;
	(void)place;
	remove(path);
	return 0; // on, whatever stays
}

void marker_directory_remove(const char *path)
{
	if (path) {
		nftw(path, remove_entry, OPEN_DIRECTORIES, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	}
}
