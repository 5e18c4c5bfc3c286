// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Where the library for NVTX is, and whether the job may have it.

#include "record/job/nvtx.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/part.h"
#include "base/trust.h"

static const char library[] = "libstrain-nvtx.so";

// By a run that this one is within.
static bool is_ours(const char *path)
{
	const char *slash = strrchr(path, '/');
	return strcmp(slash ? slash + 1 : path, library) == 0;
}

int nvtx_find(char **ret, struct error *e)
{
	const char *present = getenv(NVTX_VARIABLE);
	if (present && *present && !is_ours(present)) {
		return error_set(
			e, EEXIST, "%s was set already, to %.200s", NVTX_VARIABLE, present);
	}
	char *path = part_find(library, R_OK, e);
	if (!path) {
		return -ENOENT;
	}
	int result = trust_part(path, true, e);
	if (result < 0) {
		free(path);
		return result;
	}
	*ret = path;
	return 0;
}
