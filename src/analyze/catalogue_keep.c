// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Entries on their way into the index.

#include "analyze/catalogue_keep.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "analyze/catalogue_index.h"
#include "base/array.h"

void catalogue_keep_add(
	struct catalogue_keep *keep, struct catalogue_entry *entry, const char *path)
{
	struct stat status;
	struct catalogue_entry taken = *entry;
	*entry = (struct catalogue_entry){0};
	if (!taken.data || stat(path, &status) < 0 ||
		array_reserve((void **)&keep->items, &keep->capacity, keep->n + 1,
			sizeof(*keep->items)) < 0) {
		free(taken.data);
		return;
	}
	taken.file = file_identity_of(&status);
	taken.lasting = true;
	keep->items[keep->n++] = taken;
}

void catalogue_keep_flush(struct catalogue_keep *keep)
{
	struct catalogue_index *index = keep->n > 0 ? catalogue_index_open() : NULL;
	for (size_t i = 0; i < keep->n; i++) {
		catalogue_index_put(index, &keep->items[i], false);
		free(keep->items[i].data);
	}
	catalogue_index_close(index);
	free(keep->items);
	*keep = (struct catalogue_keep){0};
}
