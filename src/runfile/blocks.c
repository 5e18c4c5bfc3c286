// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A SELECT over blocks, decoded one after the other. Damaged blocks are counted and skipped.

#include "runfile/blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "runfile/database.h"

// Clock cache -------------------------------------------------------------------------------------
//
// Reading clocks.

// The header is checked first against the counts made when the run was opened.
static int decode_clock(sqlite3_stmt *statement, struct block *ret, struct error *e)
{
	const void *payload = sqlite3_column_blob(statement, 1);
	size_t length = (size_t)sqlite3_column_bytes(statement, 1);
	struct block header = {0};
	int r = block_decode_header(payload, length, &header, e);
	if (r == 0 && header.n_rows != sqlite3_column_int64(statement, 2)) {
		r = error_set(
			e, EBADMSG, "damaged block: the clock has a different number of rows");
	}
	block_done(&header);
	return r < 0 ? r
	             : block_decode(payload, length, (enum codec)sqlite3_column_int(statement, 0),
			       ret, e);
}

static int load(struct clock_cache *cache, int64_t id, struct error *e)
{
	block_done(&cache->clock);
	cache->id = 0;
	sqlite3_bind_int64(cache->statement, 1, id);
	int r = sqlite3_step(cache->statement) == SQLITE_ROW
	                ? decode_clock(cache->statement, &cache->clock, e)
	                : error_set(e, EBADMSG, "damaged block: the clock is missing");
	sqlite3_reset(cache->statement);
	if (r == 0) {
		cache->id = id;
	}
	return r;
}

int clock_cache_get(struct clock_cache *cache, sqlite3 *database, int64_t id,
	const struct block **ret, struct error *e)
{
	static const char sql[] = "SELECT codec, payload, rows FROM clock WHERE id = ?1";
	if (id == 0) {
		*ret = NULL;
		return 0;
	}
	if (!cache->statement &&
		sqlite3_prepare_v2(database, sql, -1, &cache->statement, NULL) != SQLITE_OK) {
		return error_set(e, EBADMSG, "damaged block: there are no clocks");
	}
	int r = id == cache->id ? 0 : load(cache, id, e);
	if (r == 0) {
		*ret = &cache->clock;
	}
	return r;
}

void clock_cache_done(struct clock_cache *cache)
{
	sqlite3_finalize(cache->statement);
	block_done(&cache->clock);
	*cache = (struct clock_cache){0};
}

// Metric rows -------------------------------------------------------------------------------------
//
// The table of metrics in memory, sorted.

// A recorder writes some hundred. A forged file may have any number; beyond this they stay in the
// file.
#define ROWS_MAX 8192

static void row_done(struct metric_entry *row)
{
	free(row->name);
	free(row->kind);
	free(row->source);
}

void metric_rows_done(struct metric_rows *rows)
{
	for (size_t i = 0; i < rows->n; i++) {
		row_done(&rows->items[i]);
	}
	free(rows->items);
	*rows = (struct metric_rows){0};
}

static char *text_of(sqlite3_stmt *statement, int column)
{
	const char *text = (const char *)sqlite3_column_text(statement, column);
	return strdup(text ? text : "");
}

static int add_row(struct metric_rows *rows, sqlite3_stmt *statement)
{
	void *items = rows->items;
	if (rows->n == ROWS_MAX) {
		return -EFBIG;
	}
	if (array_reserve(&items, &rows->capacity, rows->n + 1, sizeof(*rows->items)) < 0) {
		return -ENOMEM;
	}
	rows->items = items;
	struct metric_entry row = {.name = text_of(statement, 1),
		.kind = text_of(statement, 2),
		.source = text_of(statement, 3),
		.scale = sqlite3_column_double(statement, 4),
		.id = (uint32_t)sqlite3_column_int64(statement, 0)};
	if (!row.name || !row.kind || !row.source) {
		row_done(&row);
		return -ENOMEM;
	}
	rows->items[rows->n++] = row;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct metric_entry *one = a, *other = b;
	int order = strcmp(one->name, other->name);
	return order ? order : (one->id > other->id) - (one->id < other->id);
}

int metric_rows_load(sqlite3 *database, struct metric_rows *ret)
{
	static const char sql[] = "SELECT id, name, entity_kind, source, scale FROM metric";
	struct metric_rows rows = {0};
	sqlite3_stmt *statement = NULL;
	int r = 0, result = sqlite3_prepare_v2(database, sql, -1, &statement, NULL);
	while (r == 0 && result == SQLITE_OK && (result = sqlite3_step(statement)) == SQLITE_ROW) {
		r = add_row(&rows, statement);
		result = SQLITE_OK;
	}
	if (r == 0 && result != SQLITE_DONE) {
		r = database_errno(database, result);
	}
	sqlite3_finalize(statement);
	if (r < 0) {
		metric_rows_done(&rows);
		return r;
	}
	if (rows.n > 0) {
		qsort(rows.items, rows.n, sizeof(*rows.items), compare);
	}
	*ret = rows;
	return 0;
}

const struct metric_entry *metric_rows_find(
	const struct metric_rows *rows, const char *name, size_t *ret_n)
{
	size_t low = 0, high = rows->n, n = 0;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (strcmp(rows->items[middle].name, name) < 0) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	while (low + n < rows->n && strcmp(rows->items[low + n].name, name) == 0) {
		n++;
	}
	*ret_n = n;
	return n > 0 ? &rows->items[low] : NULL;
}

bool metric_rows_have_one_source(const struct metric_entry *rows, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		if (strcmp(rows[i].source, rows[0].source) != 0) {
			return false;
		}
	}
	return true;
}

// Blocks ------------------------------------------------------------------------------------------

// Number of damaged blocks whose ids are kept. More ids would tell nothing new.
#define DAMAGE_MAX 65536

void damage_done(struct damage *damage)
{
	free(damage->ids);
	*damage = (struct damage){0};
}

void damage_add(struct damage *damage, int64_t id)
{
	size_t low = 0, high = damage->n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (damage->ids[middle] < id) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	if ((low < damage->n && damage->ids[low] == id) || damage->n >= DAMAGE_MAX) {
		return;
	}
	void *ids = damage->ids;
	if (array_reserve(&ids, &damage->capacity, damage->n + 1, sizeof(*damage->ids)) < 0) {
		return;
	}
	damage->ids = ids;
	memmove(damage->ids + low + 1, damage->ids + low, (damage->n - low) * sizeof(*damage->ids));
	damage->ids[low] = id;
	damage->n++;
}

void block_statements_done(struct block_statements *kept)
{
	sqlite3_finalize(kept->metrics);
	sqlite3_finalize(kept->blocks);
	sqlite3_finalize(kept->known_blocks);
	*kept = (struct block_statements){0};
}

// If `kept` is given, the statement is stored there for the next call.
static int prepare(sqlite3 *database, const char *sql, sqlite3_stmt **kept, sqlite3_stmt **ret)
{
	int result = kept && *kept ? SQLITE_OK : sqlite3_prepare_v2(database, sql, -1, ret, NULL);
	if (kept && *kept) {
		*ret = *kept;
	} else if (kept && result == SQLITE_OK) {
		*kept = *ret;
	}
	return result;
}

static void put_back(sqlite3_stmt *statement, bool kept)
{
	if (kept) {
		sqlite3_reset(statement);
		sqlite3_clear_bindings(statement);
	} else {
		sqlite3_finalize(statement);
	}
}

// A metric name has one id for each kind of entity.
static int find_metrics(
	struct block_scan *scan, const char *name, sqlite3_stmt **kept, struct error *e)
{
	static const char sql[] = "SELECT id FROM metric WHERE name = ?1";
	sqlite3_stmt *statement = NULL;
	size_t capacity = 0;
	int result = prepare(scan->database, sql, kept, &statement);
	if (result == SQLITE_OK) {
		sqlite3_bind_text(statement, 1, name, -1, SQLITE_TRANSIENT);
		while ((result = sqlite3_step(statement)) == SQLITE_ROW) {
			void *ids = scan->metric_ids;
			if (array_reserve(&ids, &capacity, scan->n_metric_ids + 1,
				    sizeof(*scan->metric_ids)) < 0) {
				result = SQLITE_NOMEM;
				break;
			}
			scan->metric_ids = ids;
			scan->metric_ids[scan->n_metric_ids++] = (uint32_t)sqlite3_column_int64(
				statement, 0);
		}
	}
	int r = result == SQLITE_DONE
	                ? 0
	                : database_error(scan->database, result, e, "cannot read the metrics");
	put_back(statement, kept && *kept);
	return r;
}

static int take_metrics(struct block_scan *scan, const struct block_query *query, struct error *e)
{
	scan->metric_ids = calloc(query->n_known, sizeof(*scan->metric_ids));
	if (!scan->metric_ids) {
		return error_errno(e, ENOMEM, "cannot read the metrics");
	}
	for (size_t i = 0; i < query->n_known; i++) {
		scan->metric_ids[scan->n_metric_ids++] = query->known[i].id;
	}
	return 0;
}

// The index that SQLite uses depends on the query.
static const char *query_sql(const struct block_query *query)
{
#define BLOCKS                                                      \
	"SELECT id, entity, codec, payload, clock, rows FROM block" \
	" WHERE t_first BETWEEN ?2 AND ?3 AND t_last >= ?4"
#define IN_ORDER " ORDER BY entity, t_first, id"
#define WITH_SOURCE " AND source IN (SELECT source FROM metric WHERE name = ?5)"
#define WITH_KIND                                                                           \
	" AND entity IN (SELECT e.id FROM entity e JOIN metric m ON m.entity_kind = e.kind" \
	" WHERE m.name = ?5)"
	if (query->known) {
		return BLOCKS " AND entity = ?1 AND source = ?5" IN_ORDER;
	}
	if (query->entity) {
		return query->metric ? BLOCKS " AND entity = ?1" WITH_SOURCE IN_ORDER
		                     : BLOCKS " AND entity = ?1" IN_ORDER;
	}
	return query->metric ? BLOCKS WITH_SOURCE WITH_KIND IN_ORDER : BLOCKS IN_ORDER;
#undef BLOCKS
#undef IN_ORDER
#undef WITH_SOURCE
#undef WITH_KIND
}

static int64_t saturating_ns(int64_t us, int64_t more_ns)
{
	int64_t ns;
	if (__builtin_mul_overflow(us, 1000, &ns) || __builtin_add_overflow(ns, more_ns, &ns)) {
		return us < 0 ? INT64_MIN : INT64_MAX;
	}
	return ns;
}

int block_scan_start(struct block_scan *scan, sqlite3 *database, const struct block_query *query,
	struct damage *damage, struct error *e)
{
	struct block_statements *kept = query->entity && query->metric ? query->kept : NULL;
	*scan = (struct block_scan){
		.database = database, .damage = damage, .all_metrics = !query->metric};
	int r = query->known    ? take_metrics(scan, query, e)
	        : query->metric ? find_metrics(scan, query->metric, kept ? &kept->metrics : NULL, e)
	                        : 0;
	if (r == 0 && (scan->all_metrics || scan->n_metric_ids > 0)) {
		sqlite3_stmt **keep = !kept          ? NULL
		                      : query->known ? &kept->known_blocks
		                                     : &kept->blocks;
		int result = prepare(database, query_sql(query), keep, &scan->statement);
		scan->kept = kept && result == SQLITE_OK;
		r = result == SQLITE_OK ? 0
		                        : database_error(database, result, e, "cannot read blocks");
	}
	if (r < 0) {
		block_scan_done(scan);
		return r;
	}
	// Binding a parameter that a statement lacks is a harmless error.
	sqlite3_bind_int64(scan->statement, 1, query->entity);
	sqlite3_bind_int64(scan->statement, 2, saturating_ns(query->from_us, -BLOCK_MAX_SPAN_NS));
	sqlite3_bind_int64(scan->statement, 3, saturating_ns(query->to_us, 0));
	sqlite3_bind_int64(scan->statement, 4, saturating_ns(query->from_us, 0));
	const char *text = query->known ? query->known->source : query->metric;
	if (text) {
		sqlite3_bind_text(scan->statement, 5, text, -1, SQLITE_TRANSIENT);
	}
	return 0;
}

static bool holds_metric(const struct block_scan *scan, const struct block *header)
{
	for (uint32_t i = 0; i < header->n_columns; i++) {
		for (size_t j = 0; j < scan->n_metric_ids; j++) {
			if (header->metric_ids[i] == scan->metric_ids[j]) {
				return true;
			}
		}
	}
	return scan->all_metrics;
}

// Returns 1 and the block; 0 if it has none of the requested data; -EBADMSG; -ENOMEM.
static int decode_row(struct block_scan *scan, struct block *ret, struct error *e)
{
	const void *payload = sqlite3_column_blob(scan->statement, 3);
	size_t length = (size_t)sqlite3_column_bytes(scan->statement, 3);
	enum codec codec = sqlite3_column_int(scan->statement, 2);
	struct block header = {0};
	int r = block_decode_header(payload, length, &header, e);
	// The counts made when the run was opened are those of the rows.
	if (r == 0 && header.n_rows != sqlite3_column_int64(scan->statement, 5)) {
		r = error_set(e, EBADMSG,
			"damaged block: the table row gives a different number of rows");
	}
	if (r == 0) {
		r = holds_metric(scan, &header);
	}
	block_done(&header);
	const struct block *clock = NULL;
	if (r == 1) {
		int clock_result = clock_cache_get(&scan->clocks, scan->database,
			sqlite3_column_int64(scan->statement, 4), &clock, e);
		r = clock_result < 0 ? clock_result : r;
	}
	if (r == 1) {
		r = block_decode_metrics(payload, length, codec, clock, scan->metric_ids,
			scan->n_metric_ids, ret, e);
		r = r < 0 ? r : 1;
	}
	return r;
}

int block_scan_next(struct block_scan *scan, struct block *ret, struct error *e)
{
	int result = SQLITE_DONE;
	while (scan->statement && (result = sqlite3_step(scan->statement)) == SQLITE_ROW) {
		struct error decode_error = {0};
		int r = decode_row(scan, ret, &decode_error);
		if (r == 1) {
			scan->entity = sqlite3_column_int64(scan->statement, 1);
			return 1;
		}
		if (r == -EBADMSG && scan->damage) {
			damage_add(scan->damage, sqlite3_column_int64(scan->statement, 0));
		}
		if (r < 0 && r != -EBADMSG) {
			return error_set(e, -r, "%s", decode_error.text);
		}
	}
	return result == SQLITE_DONE
	               ? 0
	               : database_error(scan->database, result, e, "cannot read blocks");
}

void block_scan_done(struct block_scan *scan)
{
	put_back(scan->statement, scan->kept);
	clock_cache_done(&scan->clocks);
	free(scan->metric_ids);
	*scan = (struct block_scan){0};
}
