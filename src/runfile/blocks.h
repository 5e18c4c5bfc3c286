// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Iteration over the blocks of a run file, for the reader and the table `samples`.

#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "runfile/codec.h"

// Clock cache -------------------------------------------------------------------------------------
//
// Clocks: times that several blocks share.

// The last clock read: blocks are read in order of time, and those of a minute share clocks.
struct clock_cache {
	sqlite3_stmt *statement;
	int64_t id; // 0: none
	struct block clock;
};

// The clock with this id (0: *ret is NULL). -EBADMSG: missing or damaged. Lives until the next
// call.
int clock_cache_get(struct clock_cache *cache, sqlite3 *database, int64_t id,
	const struct block **ret, struct error *e);
void clock_cache_done(struct clock_cache *cache);

// Metric rows -------------------------------------------------------------------------------------
//
// The table of metrics in memory. In the file it has no index, and a verdict reads hundreds of
// series by name: looking each up takes longer than reading the blocks of a short run.

struct metric_entry {
	char *name;
	char *kind; // of entities
	char *source;
	double scale;
	uint32_t id;
};

struct metric_rows {
	struct metric_entry *items; // [n], in order of name and id
	size_t n;
	size_t capacity;
};

// Loads all rows. -errno: none are loaded.
int metric_rows_load(sqlite3 *database, struct metric_rows *ret);
void metric_rows_done(struct metric_rows *rows);

// The rows with this name, one for each kind of entity: the first, and their number. NULL: none.
const struct metric_entry *metric_rows_find(
	const struct metric_rows *rows, const char *name, size_t *ret_n);
// Whether all rows have the same source.
bool metric_rows_have_one_source(const struct metric_entry *rows, size_t n);

// Blocks ------------------------------------------------------------------------------------------

// The longest time that a block covers (docs/format.md), which bounds searches by time.
#define BLOCK_MAX_SPAN_NS INT64_C(3600000000000)

// The distinct blocks that could not be decoded.
struct damage {
	int64_t *ids; // [n], sorted
	size_t n;
	size_t capacity;
};
void damage_done(struct damage *damage);
void damage_add(struct damage *damage, int64_t id);

// Prepared statements, reused by the next query once this one is done: preparing them takes longer
// than reading the blocks of a short run.
struct block_statements {
	sqlite3_stmt *metrics;
	sqlite3_stmt *blocks;
	sqlite3_stmt *known_blocks;
};
void block_statements_done(struct block_statements *kept);

// Selects blocks: those that may hold such rows are decoded, with all their rows.
struct block_query {
	int64_t entity; // 0 for all
	const char *metric; // name; NULL for all
	int64_t from_us; // INT64_MIN and INT64_MAX: no bound
	int64_t to_us;
	struct block_statements *kept; // NULL: prepare them; only with entity and metric
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
	bool kept; // the statement is borrowed
	struct clock_cache clocks;
	int64_t entity; // of the last block returned
};

// In order of entity and time. The query's text need not outlive the call.
int block_scan_start(struct block_scan *scan, sqlite3 *database, const struct block_query *query,
	struct damage *damage, struct error *e);
// 1 and a block, owned by the caller, with the query's columns only; 0 at the end; -errno.
int block_scan_next(struct block_scan *scan, struct block *ret, struct error *e);
void block_scan_done(struct block_scan *scan);
