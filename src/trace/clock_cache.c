// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Reading clocks.

#include "trace/clock_cache.h"

#include <errno.h>

static int load(struct clock_cache *cache, int64_t id, struct error *e)
{
	block_done(&cache->clock);
	cache->id = 0;
	sqlite3_bind_int64(cache->statement, 1, id);
	int r = sqlite3_step(cache->statement) == SQLITE_ROW
	                ? block_decode(sqlite3_column_blob(cache->statement, 1),
				  (size_t)sqlite3_column_bytes(cache->statement, 1),
				  (enum codec)sqlite3_column_int(cache->statement, 0),
				  &cache->clock, e)
	                : error_set(e, EBADMSG, "damaged block: its clock is not there");
	if (r == 0 && cache->clock.n_rows != sqlite3_column_int64(cache->statement, 2)) {
		block_done(&cache->clock);
		r = error_set(e, EBADMSG, "damaged block: its clock says another number of rows");
	}
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
