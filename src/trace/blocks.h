// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Walking over the blocks of a run file: what the reader and the table `samples` share.

#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "trace/clock_cache.h"
#include "trace/codec.h"
#include "trace/metric_rows.h"

// No block covers more (docs/format.md): who looks for a time need not look further back.
#define BLOCK_MAX_SPAN_NS INT64_C(3600000000000)

// Blocks that could not be decoded, each once.
struct damage {
	int64_t *ids; // [n], sorted
	size_t n;
	size_t capacity;
};
void damage_done(struct damage *damage);
void damage_add(struct damage *damage, int64_t id);

// Statements that are kept from one query of an entity's metric to the next, which comes when that
// is done: to parse them takes longer than a short run's blocks.
struct block_statements {
	sqlite3_stmt *metrics;
	sqlite3_stmt *blocks;
	sqlite3_stmt *known_blocks;
};
void block_statements_done(struct block_statements *kept);

// What to walk over. Only blocks that can hold such rows are decoded; rows outside of the times
// still come with them.
struct block_query {
	int64_t entity; // 0 for all
	const char *metric; // name; NULL for all
	int64_t from_us; // INT64_MIN and INT64_MAX: no bound
	int64_t to_us;
	struct block_statements *kept; // NULL: parsed anew; only with entity and metric
	// The metric's rows, all of one source, where they are known; only with `kept`.
	const struct metric_entry *known;
	size_t n_known;
};

struct block_scan {
	sqlite3 *database;
	sqlite3_stmt *statement;
	struct damage *damage; // may be NULL
	uint32_t *metric_ids; // of the query's metric
	size_t n_metric_ids;
	bool all_metrics;
	bool kept; // the statement is not ours to finalize
	struct clock_cache clocks;
	int64_t entity; // of the block that was returned last
};

// In order of entity and time. The query's text need not outlive the call.
int block_scan_start(struct block_scan *scan, sqlite3 *database, const struct block_query *query,
	struct damage *damage, struct error *e);
// 1 and a block, owned by the caller, with the query's columns only; 0 at the end; -errno.
int block_scan_next(struct block_scan *scan, struct block *ret, struct error *e);
void block_scan_done(struct block_scan *scan);
