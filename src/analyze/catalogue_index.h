// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Where entries of the catalogue, and single figures of runs, are kept: an SQLite file in
// $XDG_CACHE_HOME/strain, else
// ~/.cache/strain. It may be deleted at any time and is never needed: where it cannot be read,
// nothing is found, where it cannot be written, nothing is kept. Several commands may use it at
// once. An entry counts only for the file that it was made of, and with a sum over its bytes.

#pragma once

#include <stdbool.h>

#include "analyze/catalogue_entry.h"

struct catalogue_index;

// NULL where there can be none.
struct catalogue_index *catalogue_index_open(void);
// Keeps what was put. NULL is accepted.
void catalogue_index_close(struct catalogue_index *index);
// Fills data and length, which the caller owns. job_only: an entry of the job alone is enough.
bool catalogue_index_find(struct catalogue_index *index, const struct file_identity *file,
	bool job_only, struct catalogue_entry *ret);
void catalogue_index_put(
	struct catalogue_index *index, const struct catalogue_entry *entry, bool job_only);

// What somebody found out about a run, by a name of his own: "strain.memory.pss:max".
struct catalogue_figure {
	double value; // NAN: missing
	uint8_t reason; // why, by numbers of his own
	char unit[48];
};

bool catalogue_index_find_figure(struct catalogue_index *index, const struct file_identity *file,
	const char *name, struct catalogue_figure *ret);
// Of a file that is lasting: file_identity_is_lasting.
void catalogue_index_put_figure(struct catalogue_index *index, const struct file_identity *file,
	const char *name, const struct catalogue_figure *figure);
