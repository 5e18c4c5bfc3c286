// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The newest run of a directory, by what the index knows of starts.

#include <math.h>

#include "analyze/catalogue.h"
#include "analyze/catalogue_index.h"
#include "trace/index.h"

#define START "start_utc_ns" // no METRIC:AGGREGATE is called so

static bool find(void *context, const char *path, const struct stat *status, int64_t *ret_ns)
{
	(void)path;
	const struct file_identity file = file_identity_of(status);
	struct catalogue_figure figure;
	if (!catalogue_index_find_figure(context, &file, START, &figure) ||
		!(figure.value > 0 && figure.value < 9e18)) {
		return false;
	}
	*ret_ns = (int64_t)figure.value;
	return true;
}

// Also of runs that are still recorded: when they began is all that is told.
static void found(void *context, const char *path, const struct stat *status, int64_t start_ns)
{
	const struct file_identity file = file_identity_of(status);
	if (file_identity_is_lasting(path, &file)) {
		const struct catalogue_figure figure = {.value = (double)start_ns, .unit = "ns"};
		catalogue_index_put_figure(context, &file, START, &figure);
	}
}

int catalogue_newest(size_t back, char **ret_path, struct error *e)
{
	struct catalogue_index *index = catalogue_index_open();
	const struct run_starts starts = {.find = find, .found = found, .context = index};
	int r = run_newest(index ? &starts : NULL, back, ret_path, e);
	catalogue_index_close(index);
	return r;
}
