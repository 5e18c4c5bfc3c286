// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What compact.c (merging) and thin.c (keeping the size) share.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/writer_internal.h"

// A block that may be written anew. Listed before any is, because a SELECT that runs while its
// table changes may meet its own results.
struct candidate {
	int64_t id;
	int64_t t_first;
	int64_t t_last;
	int64_t rows;
	int codec;
};

struct candidates {
	struct candidate *items; // [n]
	size_t n;
	size_t capacity;
};

// Runs a bound statement that gives id, t_first, t_last, rows and codec; replaces the list.
int candidates_load(struct candidates *list, sqlite3 *database, sqlite3_stmt *statement);
void candidates_done(struct candidates *list);

// The block's source, owned by the caller, and (where wanted) its rows. -EBADMSG where it is
// damaged.
int candidate_decode(struct writer *w, const struct candidate *candidate, bool wanted,
	char **ret_source, struct block *ret);

// Deletes the clocks to which no block refers any more.
int delete_clocks(struct writer *w);

// Thins the oldest blocks until the file keeps max_bytes, or nothing is left to thin.
int thin(struct writer *w, int64_t now_ns);
