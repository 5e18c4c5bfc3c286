// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Clocks: times that several blocks share.

#pragma once

#include <sqlite3.h>
#include <stdint.h>

#include "base/error.h"
#include "trace/codec.h"

// The clock that was read last: blocks come in order of time, those of one minute after another.
struct clock_cache {
	sqlite3_stmt *statement;
	int64_t id; // 0: none
	struct block clock;
};

// The clock of that id (0: *ret is NULL). -EBADMSG where it is not there or damaged. Lives until
// the next call.
int clock_cache_get(struct clock_cache *cache, sqlite3 *database, int64_t id,
	const struct block **ret, struct error *e);
void clock_cache_done(struct clock_cache *cache);
