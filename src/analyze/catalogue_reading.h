// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Reads the runs that the index does not know, by as many threads as there are CPUs.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "analyze/catalogue.h"
#include "analyze/catalogue_entry.h"
#include "base/error.h"

struct catalogue_index;

struct catalogue_file {
	char *path; // owned
	char *sweep; // owned; NULL: no trial
	size_t found_by; // as of the run
	struct file_identity identity;
	bool is_there; // identity is known
	bool is_double; // another one is the same file
	struct catalogue_entry entry; // owned; data NULL: not known yet, or not readable
	char *error; // owned; why not
	bool out_of_memory;
};

void catalogue_file_done(struct catalogue_file *file);

// Gives every file that has none an entry or an error, and the index what it can keep. -ENOMEM.
int catalogue_reading(struct catalogue_file *files, size_t n,
	const struct catalogue_options *options, struct catalogue_index *index, size_t *ret_read,
	struct error *e);
