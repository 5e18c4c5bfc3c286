// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Numbers for metrics and entities.

#include "record/source/registry.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "record/source/source.h"

int registry_add(struct registry *r, const char *source, const struct group *group)
{
	void *rows = r->rows;
	uint32_t *ids = calloc(group->n_metrics ? group->n_metrics : 1, sizeof(*ids));
	if (!ids || array_reserve(&rows, &r->capacity, r->n_rows + 1, sizeof(*r->rows)) < 0) {
		free(ids);
		return -ENOMEM;
	}
	r->rows = rows;
	for (size_t i = 0; i < group->n_metrics; i++) {
		ids[i] = ++r->last_id;
	}
	r->rows[r->n_rows++] = (struct registry_row){.group = group, .source = source, .ids = ids};
	return 0;
}

const struct registry_row *registry_find(const struct registry *r, const struct group *group)
{
	for (size_t i = 0; i < r->n_rows; i++) {
		if (r->rows[i].group == group) {
			return &r->rows[i];
		}
	}
	return NULL;
}

void registry_done(struct registry *r)
{
	for (size_t i = 0; i < r->n_rows; i++) {
		free(r->rows[i].ids);
	}
	free(r->rows);
	r->rows = NULL;
	r->n_rows = r->capacity = 0;
}
