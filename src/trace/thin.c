// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Keeping the file under its limit: of the oldest readings only one row a tenth of a second is
// kept, then one a second, and so on where that is not enough. A gauge keeps its minimum, mean and
// maximum, so that no spike disappears; a counter its last value, from which every rate follows; a
// state its last value.

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "trace/blocks.h"
#include "trace/compact.h"
#include "trace/stretch.h"

#define FIRST_BUCKET_US INT64_C(100000)
#define FIRST_WINDOW_NS INT64_C(60000000000)
static int64_t bucket_us(int level)
{
	int64_t us = FIRST_BUCKET_US;
	while (level-- > 0) {
		us *= 10;
	}
	return us;
}

// How much is thinned in one step: about as many rows at every level.
static int64_t window_ns(int level)
{
	int64_t ns = FIRST_WINDOW_NS;
	while (level-- > 0 && ns < BLOCK_MAX_SPAN_NS) {
		ns *= 10;
	}
	return ns < BLOCK_MAX_SPAN_NS ? ns : BLOCK_MAX_SPAN_NS;
}

static uint64_t used_bytes(struct writer *w)
{
	int64_t pages = store_number(w->database, "PRAGMA page_count", 0) -
	                store_number(w->database, "PRAGMA freelist_count", 0);
	return (uint64_t)pages * (uint64_t)store_number(w->database, "PRAGMA page_size", 4096);
}

// What the file will take once the newest blocks are merged too, as far as that can be told: until
// then they are ten times as large, and count for nothing.
static uint64_t merged_bytes(struct writer *w)
{
	uint64_t used = used_bytes(w);
	char newest[128];
	snprintf(newest, sizeof(newest),
		"SELECT count(*) FROM (SELECT 1 FROM block WHERE id > %lld AND codec = %d LIMIT 1)",
		(long long)w->merged_id, CODEC_PLAIN);
	// The whole table is looked through, so not where the answer is of no interest.
	if (used <= w->max_bytes / 2 || store_number(w->database, newest, 0) == 0) {
		return used;
	}
	// A row and its places in two indexes take about a hundred bytes.
	int64_t merged = store_number(w->database,
		"SELECT (SELECT coalesce(sum(length(payload) + 100), 0) FROM block WHERE codec = 2)"
		" + (SELECT coalesce(sum(length(payload) + 50), 0) FROM clock WHERE codec = 2)"
		" + (SELECT coalesce(sum(length(payload) + length(words)), 0) FROM span_block)",
		0);
	return merged >= 0 && (uint64_t)merged < used ? (uint64_t)merged : used;
}

static bool is_gauge(struct writer *w, uint32_t metric)
{
	sqlite3_stmt *statement = writer_statement(w, SELECT_METRIC_KIND);
	if (!statement) {
		return false;
	}
	sqlite3_bind_int64(statement, 1, metric);
	const char *kind = sqlite3_step(statement) == SQLITE_ROW
	                           ? (const char *)sqlite3_column_text(statement, 0)
	                           : NULL;
	bool gauge = kind && strcmp(kind, metric_kind_name(METRIC_GAUGE)) == 0;
	sqlite3_reset(statement);
	return gauge;
}

// One column of the thinned block: which column it is made of, and how.
struct recipe {
	uint32_t column;
	enum aggregate aggregate;
};

static uint32_t make_recipes(struct writer *w, const struct block *b, struct recipe *recipes)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < b->n_columns; i++) {
		enum aggregate aggregate = b->aggregates ? b->aggregates[i] : AGGREGATE_NONE;
		bool split = aggregate == AGGREGATE_NONE && is_gauge(w, b->metric_ids[i]);
		enum aggregate last = split ? AGGREGATE_MAXIMUM : aggregate;
		for (enum aggregate a = split ? AGGREGATE_MINIMUM : aggregate; a <= last; a++) {
			if (n == BLOCK_MAX_COLUMNS) {
				return 0;
			}
			recipes[n++] = (struct recipe){i, a};
		}
	}
	return n;
}

// One value for the rows [from, to) of a column.
static int64_t aggregate_rows(
	const int64_t *values, uint32_t from, uint32_t to, enum aggregate aggregate)
{
	int64_t minimum = INT64_MAX, maximum = VALUE_MISSING, last = VALUE_MISSING;
	double sum = 0;
	uint32_t n = 0;
	for (uint32_t i = from; i < to; i++) {
		if (values[i] == VALUE_MISSING) {
			continue;
		}
		last = values[i];
		minimum = last < minimum ? last : minimum;
		maximum = last > maximum ? last : maximum;
		sum += (double)last;
		n++;
	}
	if (n == 0 || aggregate == AGGREGATE_NONE) {
		return last;
	}
	if (aggregate != AGGREGATE_MEAN) {
		return aggregate == AGGREGATE_MINIMUM ? minimum : maximum;
	}
	// Rounded, a mean of values near 2^63 could pass them; it never lies outside of its bounds.
	double mean = sum / n;
	return mean <= (double)minimum   ? minimum
	       : mean >= (double)maximum ? maximum
	                                 : (int64_t)mean;
}

static int64_t bucket_of(int64_t t, int64_t bucket)
{
	return t / bucket - (t % bucket < 0);
}

static void fill_rows(
	const struct block *b, const struct recipe *recipes, int64_t bucket, struct block *to)
{
	for (uint32_t from = 0, end; from < b->n_rows; from = end) {
		end = from + 1;
		while (end < b->n_rows &&
			bucket_of(b->t[end], bucket) == bucket_of(b->t[from], bucket)) {
			end++;
		}
		to->t[to->n_rows] = b->t[end - 1];
		for (uint32_t i = 0; i < to->n_columns; i++) {
			to->columns[i][to->n_rows] = aggregate_rows(
				b->columns[recipes[i].column], from, end, recipes[i].aggregate);
		}
		to->n_rows++;
	}
}

static int thin_block(struct writer *w, const struct block *b, int64_t bucket, struct block *ret)
{
	struct recipe recipes[BLOCK_MAX_COLUMNS];
	uint32_t n = make_recipes(w, b, recipes);
	if (n == 0) {
		return -E2BIG;
	}
	struct block to = {
		.n_columns = n,
		.metric_ids = calloc(n, sizeof(*to.metric_ids)),
		.aggregates = calloc(n, 1),
		.t = malloc((size_t)b->n_rows * (n + 1) * sizeof(*to.t)),
		.columns = calloc(n, sizeof(*to.columns)),
	};
	if (!to.metric_ids || !to.aggregates || !to.t || !to.columns) {
		block_done(&to);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++) {
		to.metric_ids[i] = b->metric_ids[recipes[i].column];
		to.aggregates[i] = (uint8_t)recipes[i].aggregate;
		to.columns[i] = to.t + (size_t)b->n_rows * (i + 1);
	}
	fill_rows(b, recipes, bucket, &to);
	*ret = to;
	return 0;
}

// Rows that are apart by nearly a bucket already gain nothing.
static bool is_dense(const struct candidate *c, int64_t bucket)
{
	int64_t buckets = (c->t_last - c->t_first) / 1000 / bucket + 1;
	return c->codec == CODEC_ZSTD && c->t_last >= c->t_first && c->rows >= 2 * buckets;
}

static int thin_candidate(struct stretches *s, const struct candidate *c, int64_t bucket)
{
	_cleanup_free_ char *source = NULL;
	struct block block = {0}, thinned = {0};
	bool dense = is_dense(c, bucket);
	int r = candidate_decode(s->writer, c, dense, &source, &block);
	if (r == 0 && dense) {
		r = thin_block(s->writer, &block, bucket, &thinned);
	}
	if (r == 0) {
		r = dense ? stretches_add(s, c->id, source, &thinned, true)
		          : stretches_flush(s, source);
	}
	block_done(&block);
	block_done(&thinned);
	return r == -EBADMSG || r == -E2BIG ? 0 : r;
}

static int thin_entity(struct writer *w, int64_t entity, int level, int64_t to_ns)
{
	struct candidates list = {0};
	sqlite3_stmt *statement = writer_statement(w, SELECT_ENDED);
	if (!statement) {
		return -ENOMEM;
	}
	sqlite3_bind_int64(statement, 1, entity);
	sqlite3_bind_int64(statement, 2, w->thinned_ns[level]);
	sqlite3_bind_int64(statement, 3, to_ns);
	sqlite3_bind_int64(statement, 4, BLOCK_MAX_SPAN_NS);
	int r = candidates_load(&list, w->database, statement);
	struct stretches s = {
		.writer = w, .entity = entity, .max_span_us = BLOCK_MAX_SPAN_NS / 1000};
	for (size_t i = 0; r == 0 && i < list.n; i++) {
		r = thin_candidate(&s, &list.items[i], bucket_us(level));
	}
	if (r == 0) {
		r = stretches_flush(&s, NULL);
	}
	stretches_done(&s);
	candidates_done(&list);
	return r;
}

static int thin_window(struct writer *w, int level, int64_t to_ns)
{
	sqlite3_stmt *statement = writer_statement(w, SELECT_ENTITIES);
	struct candidates entities = {0};
	int r = statement ? candidates_load(&entities, w->database, statement) : -ENOMEM;
	for (size_t i = 0; r == 0 && i < entities.n; i++) {
		r = thin_entity(w, entities.items[i].id, level, to_ns);
	}
	candidates_done(&entities);
	return r;
}

int delete_clocks(struct writer *w)
{
	sqlite3_stmt *statement = writer_statement(w, DELETE_CLOCKS);
	return statement ? writer_step(w, statement) : -ENOMEM;
}

// One event for each level, which moves on with it.
static int say_thinned(struct writer *w, int level)
{
	char text[160], limit[32], until[32], bucket[32];
	snprintf(text, sizeof(text),
		"the file reached its limit of %s: before %s only one row each %s is kept",
		text_bytes(limit, sizeof(limit), (double)w->max_bytes),
		text_seconds(until, sizeof(until), (double)w->thinned_ns[level] / 1e9),
		text_seconds(bucket, sizeof(bucket), (double)bucket_us(level) / 1e6));
	if (w->thin_events[level] == 0) {
		int r = writer_insert_event(w, w->last_ns, "thinned", 0, text);
		w->thin_events[level] = sqlite3_last_insert_rowid(w->database);
		return r;
	}
	sqlite3_stmt *statement = writer_statement(w, UPDATE_EVENT);
	if (!statement) {
		return -ENOMEM;
	}
	sqlite3_bind_int64(statement, 1, w->thin_events[level]);
	writer_bind_text(w, statement, 2, text);
	return writer_step(w, statement);
}

// The lowest level with a whole window to thin, or, where part_ns is given, at least as much; and
// up to when. A level follows the one before it. -1: none.
static int next_level(const struct writer *w, int n_levels, int64_t whole_from_ns, int64_t part_ns,
	int64_t *ret_to_ns)
{
	int64_t limit_ns = whole_from_ns;
	for (int level = 0; level < n_levels; level++) {
		int64_t there_ns = limit_ns - w->thinned_ns[level];
		int64_t least_ns = part_ns ? part_ns : window_ns(level);
		if (there_ns >= least_ns) {
			int64_t step_ns = there_ns < window_ns(level) ? there_ns : window_ns(level);
			*ret_to_ns = w->thinned_ns[level] + step_ns;
			return level;
		}
		limit_ns = w->thinned_ns[level];
	}
	return -1;
}

static int thin_step(struct writer *w, int level, int64_t to_ns)
{
	int r = thin_window(w, level, to_ns);
	r = r < 0 ? r : delete_clocks(w);
	// Ids of what was deleted can come again.
	clock_book_done(&w->clocks);
	clock_cache_done(&w->clock_cache);
	w->thinned_ns[level] = to_ns;
	return r < 0 ? r : say_thinned(w, level);
}

// How far thinning goes: what lies before the last whole_ns, by the first n_levels, in whole
// windows or (which leaves small blocks) also in parts of at least part_ns.
struct extent {
	int64_t whole_ns;
	int64_t part_ns; // 0: whole windows only
	int n_levels;
};

// Until a quarter of the limit is free.
static int thin_extent(struct writer *w, int64_t last_ns, const struct extent *extent)
{
	int64_t from_ns = last_ns - extent->whole_ns + 1, to_ns = 0;
	int r = 0;
	while (r == 0 && merged_bytes(w) > w->max_bytes - w->max_bytes / 4) {
		int level = next_level(w, extent->n_levels, from_ns, 0, &to_ns);
		if (level < 0 && extent->part_ns) {
			level = next_level(w, extent->n_levels, from_ns, extent->part_ns, &to_ns);
		}
		if (level < 0) {
			break;
		}
		r = thin_step(w, level, to_ns);
	}
	return r;
}

int thin(struct writer *w, int64_t now_ns)
{
	const int64_t s = INT64_C(1000000000);
	// A long run is thinned more and more the older it is, and its last minute stays whole. In
	// a fast run under a small limit not even that fits: then fewer seconds stay whole, before
	// of what was there before only rows far apart remain.
	const struct extent extents[] = {
		{60 * s, 0, THIN_LEVELS},
		{15 * s, 15 * s, 1},
		{4 * s, 4 * s, 1},
		{60 * s, 60 * s, 2},
		{4 * s, 4 * s, 2},
		{0, s, 2},
		{0, s, THIN_LEVELS},
	};
	int64_t last_ns = now_ns < w->last_ns ? now_ns : w->last_ns;
	int r = 0;
	// An eighth is left for the blocks to come, another so that this is seldom.
	for (size_t i = 0; r == 0 && i < ARRAY_LENGTH(extents) &&
			   merged_bytes(w) > w->max_bytes - w->max_bytes / 8;
		i++) {
		r = thin_extent(w, last_ns, &extents[i]);
	}
	return r;
}

bool writer_is_over_limit(struct writer *w)
{
	return w->max_bytes && used_bytes(w) > w->max_bytes;
}
