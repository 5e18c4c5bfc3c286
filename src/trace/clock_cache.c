// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Reading clocks.

#include "trace/clock_cache.h"

#include <errno.h>

// Its header says first whether it is what was counted when the run was opened.
static int decode_clock(sqlite3_stmt *statement, struct block *ret, struct error *e)
{
	const void *payload = sqlite3_column_blob(statement, 1);
	size_t length = (size_t)sqlite3_column_bytes(statement, 1);
	struct block header = {0};
	int r = block_decode_header(payload, length, &header, e);
	if (r == 0 && header.n_rows != sqlite3_column_int64(statement, 2)) {
		r = error_set(e, EBADMSG, "damaged block: its clock says another number of rows");
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
	                : error_set(e, EBADMSG, "damaged block: its clock is not there");
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
