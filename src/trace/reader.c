// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Reading runs.

#include "trace/reader.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/parse.h"
#include "base/text.h"
#include "trace/bounds.h"
#include "trace/database.h"
#include "trace/metric.h"
#include "trace/reader_internal.h"
#include "trace/samples.h"
#include "trace/schema_check.h"
#include "trace/spans_table.h"
#include "trace/store.h"

const char *pairs_get(const struct pairs *pairs, const char *name)
{
	for (size_t i = 0; i < pairs->n; i++) {
		if (strcmp(pairs->items[i].name, name) == 0) {
			return pairs->items[i].value;
		}
	}
	return NULL;
}

static void pairs_done(struct pairs *pairs)
{
	for (size_t i = 0; i < pairs->n; i++) {
		free(pairs->items[i].name);
		free(pairs->items[i].value);
	}
	free(pairs->items);
	*pairs = (struct pairs){0};
}

static int pairs_add(struct pairs *pairs, const unsigned char *name, const unsigned char *value)
{
	void *items = pairs->items;
	pairs->bytes += strlen(name ? (const char *)name : "") +
	                strlen(value ? (const char *)value : "");
	if (pairs->n >= RUN_KEYS_MAX || pairs->bytes > RUN_KEYS_BYTES_MAX) {
		return SQLITE_TOOBIG;
	}
	struct pair pair = {
		strdup(name ? (const char *)name : ""), strdup(value ? (const char *)value : "")};
	if (!pair.name || !pair.value ||
		array_reserve(&items, &pairs->capacity, pairs->n + 1, sizeof(pair)) < 0) {
		free(pair.name);
		free(pair.value);
		return SQLITE_NOMEM;
	}
	pairs->items = items;
	pairs->items[pairs->n++] = pair;
	return SQLITE_OK;
}

static int pairs_load(struct pairs *pairs, sqlite3 *database, const char *sql)
{
	sqlite3_stmt *statement = NULL;
	int result = sqlite3_prepare_v2(database, sql, -1, &statement, NULL);
	while (result == SQLITE_OK && (result = sqlite3_step(statement)) == SQLITE_ROW) {
		result = pairs_add(pairs, sqlite3_column_text(statement, 0),
			sqlite3_column_text(statement, 1));
	}
	sqlite3_finalize(statement);
	return result == SQLITE_DONE ? SQLITE_OK : result;
}

// Adds to what the opening found, for the notice.
static void note_trouble(struct reader *r, const char *text)
{
	size_t length = strlen(r->trouble);
	snprintf(
		r->trouble + length, sizeof(r->trouble) - length, "%s%s", length ? "; " : "", text);
}

// The first bytes of every SQLite database.
struct database_header {
	char magic[16];
	uint8_t rest[84];
};

static uint32_t header_number(const struct database_header *header, size_t offset)
{
	const uint8_t *at = header->rest + offset - sizeof(header->magic);
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

// What SQLite would not say as clearly. *ret_missing: bytes that the header promises and that are
// not there.
static int check_file(const char *path, uint64_t *ret_missing, struct error *e)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0) {
		return error_errno(e, errno, "%s", path);
	}
	if (!S_ISREG(st.st_mode)) {
		int code = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
		return error_set(e, code, "%s: expected a run file, found %s", path,
			code == EISDIR ? "a directory" : "no regular file");
	}
	struct database_header header = {0};
	ssize_t n = pread(fd, &header, sizeof(header), 0);
	if (n <= 0) {
		return error_set(e, EBADMSG, "%s: expected a run file, found an empty file", path);
	}
	if (memcmp(header.magic, "SQLite format 3", sizeof(header.magic)) != 0) {
		return error_set(e, EBADMSG, "%s: not a run file", path);
	}
	if (n < (ssize_t)sizeof(header)) {
		return error_set(e, EBADMSG, "%s: truncated: only %zd bytes are left", path, n);
	}
	uint64_t page = header_number(&header, 16) >> 16;
	uint64_t expected = (page == 1 ? 65536 : page) * header_number(&header, 28);
	uint64_t found = (uint64_t)st.st_size;
	if (found > RUN_BYTES_MAX) {
		return error_set(e, EFBIG, "%s: expected a run of at most %u GiB, found %llu GiB",
			path, (unsigned)(RUN_BYTES_MAX >> 30), (unsigned long long)(found >> 30));
	}
	*ret_missing = expected > found ? expected - found : 0;
	return 0;
}

static int check_identity(struct reader *r, struct error *e)
{
	sqlite3_int64 version = store_number(r->database, "PRAGMA user_version", -1);
	sqlite3_int64 major = version / 1000, minor = version % 1000;
	if (store_number(r->database, "PRAGMA application_id", -1) != STORE_APPLICATION_ID ||
		major < 1) {
		return error_set(e, EBADMSG, "%s: not a run file but another database", r->path);
	}
	if (major > STORE_VERSION_MAJOR) {
		return error_set(e, EPROTONOSUPPORT,
			"%s: its schema is %lld.%lld, this strain reads up to %d: a newer strain "
			"is needed",
			r->path, (long long)major, (long long)minor, STORE_VERSION_MAJOR);
	}
	if (minor > STORE_VERSION_MINOR) {
		char text[96];
		snprintf(text, sizeof(text),
			"written by a newer strain (schema %lld.%lld): what it added is not shown",
			(long long)major, (long long)minor);
		note_trouble(r, text);
	}
	return 0;
}

// How large a run may be: see bounds.h.
static const struct {
	const char *sql;
	int64_t most;
	const char *what;
} bounds[] = {
	{"SELECT count(*) FROM run", RUN_KEYS_MAX, "keys"},
	{"SELECT count(*) FROM label", RUN_KEYS_MAX, "labels"},
	{"SELECT count(*) FROM entity", RUN_ENTITIES_MAX, "entities"},
	{"SELECT count(*) FROM metric", RUN_METRICS_MAX, "metrics"},
	{"SELECT count(*) FROM missing", RUN_MISSING_MAX, "missing values"},
	{"SELECT count(*) FROM event", RUN_EVENTS_MAX, "events"},
	{"SELECT count(*) FROM summary", RUN_SUMMARY_MAX, "rows of its summary"},
	{"SELECT count(*) FROM main.span", RUN_SPANS_MAX, "spans"},
	// What a block holds is compared with what its row says when it is decoded.
	{"SELECT sum(min(max(rows, 0), 1048576)) FROM span_block", RUN_SPANS_MAX,
		"spans in blocks"},
	{"SELECT sum(min(max(rows, 0), 1048576)) FROM clock", RUN_ROWS_MAX, "rows of clocks"},
	{"SELECT sum(min(max(rows, 0), 1048576)) FROM block", RUN_ROWS_MAX, "rows of samples"},
	{"SELECT max(n) FROM (SELECT sum(min(max(rows, 0), 1048576)) AS n FROM block"
	 " GROUP BY entity, source)",
		RUN_STREAM_ROWS_MAX, "rows of samples of one entity"},
};

// What has to be decoded to read all blocks once. INT64_MAX for what is not known.
static int64_t count_values(sqlite3 *database)
{
	static const char sql[] = "SELECT payload, (SELECT rows FROM clock WHERE id = block.clock)"
				  " FROM block";
	sqlite3_stmt *statement = NULL;
	int64_t n = 0;
	int result = sqlite3_prepare_v2(database, sql, -1, &statement, NULL);
	while (result == SQLITE_OK && (result = sqlite3_step(statement)) == SQLITE_ROW) {
		struct block header = {0};
		const void *payload = sqlite3_column_blob(statement, 0);
		size_t length = (size_t)sqlite3_column_bytes(statement, 0);
		int r = block_decode_header(payload, length, &header, NULL);
		int64_t clock = sqlite3_column_int64(statement, 1);
		if (r == 0) {
			n += (int64_t)header.n_rows * (header.n_columns + 1);
			n += clock > 0 && clock <= BLOCK_MAX_ROWS ? clock : 0;
		}
		block_done(&header);
		result = r == -ENOMEM ? SQLITE_NOMEM : SQLITE_OK;
	}
	sqlite3_finalize(statement);
	return result == SQLITE_DONE ? n : INT64_MAX;
}

// Bytes cost whoever sends a file something, values nothing: see bounds.h.
static int check_density(struct reader *r, struct error *e)
{
	// No block has more columns: a run of few rows need not be looked through.
	static_assert(BLOCK_MAX_COLUMNS + 1 == 257 && BLOCK_MAX_ROWS == 1048576, "as in the SQL");
	static const char most[] =
		"SELECT sum(min(max(rows, 0), 1048576) * 257 +"
		" ifnull((SELECT min(max(rows, 0), 1048576) FROM clock WHERE id = block.clock), 0))"
		" FROM block";
	int64_t pages = store_number(r->database, "PRAGMA page_count", 0) -
	                store_number(r->database, "PRAGMA freelist_count", 0);
	int64_t bytes = pages * store_number(r->database, "PRAGMA page_size", 0);
	int64_t limit = bytes < (int64_t)RUN_BYTES_MAX ? bytes * RUN_VALUES_PER_BYTE : INT64_MAX;
	limit = limit > RUN_VALUES_MIN ? limit : RUN_VALUES_MIN;
	if (store_number(r->database, most, 0) <= limit || count_values(r->database) <= limit) {
		return 0;
	}
	return error_set(e, EFBIG,
		"%s: more than %lld values of samples in %lld bytes, which no run has", r->path,
		(long long)limit, (long long)bytes);
}

static int check_bounds(struct reader *r, struct error *e)
{
	for (size_t i = 0; i < ARRAY_LENGTH(bounds); i++) {
		sqlite3_int64 found = store_number(r->database, bounds[i].sql, 0);
		if (found > bounds[i].most) {
			return error_set(e, EFBIG, "%s: %lld %s, more than the %lld of any run",
				r->path, (long long)found, bounds[i].what,
				(long long)bounds[i].most);
		}
	}
	return check_density(r, e);
}

static int load_pairs(struct reader *r)
{
	pairs_done(&r->run);
	pairs_done(&r->labels);
	int result = pairs_load(&r->run, r->database, "SELECT key, value FROM run");
	return result == SQLITE_OK
	               ? pairs_load(&r->labels, r->database, "SELECT name, value FROM label")
	               : result;
}

static enum run_state find_state(const struct reader *r)
{
	const char *state = pairs_get(&r->run, "state");
	if (pairs_get(&r->run, "end_ns")) {
		return state && strcmp(state, "cut_off") == 0 ? RUN_CUT_OFF : RUN_FINISHED;
	}
	return recorder_is_alive(r->path, &r->run) ? RUN_LIVE : RUN_CUT_OFF;
}

// With the indexes: an entry that leads nowhere makes SQLite give up a whole query.
static bool is_whole(sqlite3 *database)
{
	sqlite3_stmt *statement = NULL;
	bool whole = sqlite3_prepare_v2(database, "PRAGMA integrity_check(1)", -1, &statement,
			     NULL) == SQLITE_OK &&
	             sqlite3_step(statement) == SQLITE_ROW &&
	             strcmp((const char *)sqlite3_column_text(statement, 0), "ok") == 0;
	sqlite3_finalize(statement);
	return whole;
}

static bool is_readable(sqlite3 *database)
{
	return store_exec(database, "SELECT name FROM sqlite_master") == SQLITE_OK;
}

static void note_truncated(struct reader *r, uint64_t missing_bytes)
{
	char text[128], bytes[32];
	snprintf(text, sizeof(text), "truncated: %s at its end are missing; the rest is read",
		text_bytes(bytes, sizeof(bytes), (double)missing_bytes));
	note_trouble(r, text);
	r->incomplete = true;
}

static int open_salvaged(struct reader *r, uint64_t missing_bytes, struct error *e)
{
	uint64_t rows = 0;
	database_close(r->database);
	r->database = NULL;
	int code = salvage_database(r->path, &r->database, &rows, e);
	code = code < 0 ? code : check_bounds(r, e);
	if (code < 0) {
		return code;
	}
	const char *what = missing_bytes ? "truncated" : "damaged";
	if (rows == 0 || load_pairs(r) != SQLITE_OK || r->run.n == 0) {
		return error_set(e, EBADMSG, "%s: %s: nothing of a run can be read", r->path, what);
	}
	if (missing_bytes) {
		note_truncated(r, missing_bytes);
	} else {
		note_trouble(r, "damaged: what can still be read is read");
		r->incomplete = true;
	}
	return 0;
}

static bool is_damage(int code)
{
	return code == -EBADMSG || code == -EIO;
}

// The database, its identity and its keys; a private copy of what is left where it is damaged.
static int open_checked(struct reader *r, struct error *e)
{
	uint64_t missing = 0;
	int code = check_file(r->path, &missing, e);
	if (code < 0) {
		return code;
	}
	code = reader_open_unchecked(r->path, &r->database, e);
	if (code < 0) {
		return is_damage(code) ? open_salvaged(r, missing, e) : code;
	}
	code = check_identity(r, e);
	if (code < 0) {
		return code;
	}
	struct error why = {0};
	if (schema_check(r->database, &why) < 0) {
		// One that SQLite cannot read is damaged; one that it can is another's.
		return is_readable(r->database)
		               ? error_set(e, EBADMSG, "%s: not a run file: %s", r->path, why.text)
		               : open_salvaged(r, missing, e);
	}
	// Before anything is asked: pages that refer to each other are endless.
	if (!is_whole(r->database)) {
		return open_salvaged(r, missing, e);
	}
	code = check_bounds(r, e);
	if (code < 0) {
		return code;
	}
	int result = load_pairs(r);
	if (result == SQLITE_TOOBIG) {
		return error_set(e, EFBIG, "%s: more keys and labels than any run has", r->path);
	}
	if (result != SQLITE_OK) {
		return open_salvaged(r, missing, e);
	}
	database_bound_statements(r->database, INT64_MAX);
	r->state = find_state(r);
	// What is missing of the last page SQLite takes for zeros; what a WAL holds is not missing.
	if (missing && !reader_has_sibling(r->path, "-wal")) {
		note_truncated(r, missing);
	}
	return 0;
}

static void note_cut_off(struct reader *r)
{
	char text[96], duration[32];
	snprintf(text, sizeof(text), "cut off: nothing was recorded after %s",
		text_seconds(duration, sizeof(duration), (double)reader_end_ns(r) / 1e9));
	note_trouble(r, text);
}

// What a query asks beside the tables of the file: decoded samples, all spans, our own views.
static int make_tables(struct reader *r, struct error *e)
{
	bool locked = store_number(r->database, "PRAGMA query_only", 0) == 1;
	store_exec(r->database, "PRAGMA query_only = OFF");
	bool made = samples_register(r->database, &r->damage) == 0 &&
	            spans_table_make(r->database, &r->damage) == 0 &&
	            schema_make_views(r->database) == SQLITE_OK;
	if (locked) {
		store_exec(r->database, "PRAGMA query_only = ON");
	}
	return made ? 0 : error_errno(e, ENOMEM, "%s", r->path);
}

static int open_run(struct reader *r, struct error *e)
{
	int code = open_checked(r, e);
	if (code < 0) {
		return code;
	}
	r->state = find_state(r);
	if (r->state == RUN_CUT_OFF) {
		note_cut_off(r);
	}
	return make_tables(r, e);
}

int reader_open(const char *path, struct reader **ret, struct error *e)
{
	struct reader *r = calloc(1, sizeof(*r));
	if (!r || !(r->path = strdup(path))) {
		reader_free(r);
		return error_errno(e, ENOMEM, "%s", path);
	}
	int code = open_run(r, e);
	if (code < 0) {
		reader_free(r);
		return code;
	}
	*ret = r;
	return 0;
}

void reader_free(struct reader *r)
{
	if (r) {
		free(r->part);
		sqlite3_finalize(r->scale);
		sqlite3_finalize(r->kind);
		metric_rows_done(&r->metrics);
		block_statements_done(&r->statements);
		database_close(r->database);
		pairs_done(&r->run);
		pairs_done(&r->labels);
		damage_done(&r->damage);
		free(r->path);
		free(r);
	}
}

const char *reader_path(const struct reader *r)
{
	return r->path;
}

enum run_state reader_state(const struct reader *r)
{
	return r->state;
}

bool reader_is_unclosed(const struct reader *r)
{
	bool finished = r->state == RUN_FINISHED || pairs_get(&r->run, "end_ns");
	return finished ? store_number(r->database,
				  "SELECT journal_mode = 'wal' FROM pragma_journal_mode", 0) == 1
	                : r->state == RUN_CUT_OFF && recorder_has_ended(&r->run);
}

void reader_watch(struct reader *r, void (*progressed)(void *context), void *context)
{
	r->progressed = progressed;
	r->progress_context = context;
}

void reader_progress(const struct reader *r)
{
	if (r->progressed) {
		r->progressed(r->progress_context);
	}
}

bool reader_is_damaged(const struct reader *r)
{
	return r->incomplete || r->damage.n > 0;
}

uint64_t reader_damage(const struct reader *r)
{
	return r->damage.n;
}

const char *reader_notice(struct reader *r)
{
	char blocks[64] = "";
	if (r->damage.n) {
		snprintf(blocks, sizeof(blocks), "%s%zu damaged block%s left out",
			r->trouble[0] ? "; " : "", r->damage.n, r->damage.n == 1 ? "" : "s");
	}
	snprintf(r->notice, sizeof(r->notice), "%s%s", r->trouble, blocks);
	return r->notice[0] ? r->notice : NULL;
}

const char *reader_run(struct reader *r, const char *key)
{
	return pairs_get(&r->run, key);
}

int64_t reader_run_i64(struct reader *r, const char *key, int64_t otherwise)
{
	const char *text = pairs_get(&r->run, key);
	int64_t value;
	return text && parse_integer(text, INT64_MIN, INT64_MAX, &value, NULL) == 0 ? value
	                                                                            : otherwise;
}

const char *reader_label(struct reader *r, const char *name)
{
	return pairs_get(&r->labels, name);
}

void reader_hold(struct reader *r)
{
	r->held = store_exec(r->database, "BEGIN") == SQLITE_OK;
}

void reader_release(struct reader *r)
{
	metric_rows_done(&r->metrics); // others may add some from now on
	r->held = r->metrics_tried = false;
	(void)store_exec(r->database, "COMMIT");
}

bool reader_has_samples(struct reader *r)
{
	return schema_has_table(r->database, "profile_sample");
}

bool reader_has_lines(struct reader *r)
{
	return schema_has_table(r->database, "line_sample");
}

bool reader_has_phase_samples(struct reader *r)
{
	return schema_has_table(r->database, "phase_sample");
}

sqlite3 *reader_database(struct reader *r)
{
	return r->database;
}

// The blocks that began last are not the ones that end last where some rows are apart.
static const char last_block[] = "SELECT max((SELECT max(t_last) FROM (SELECT t_last FROM block"
				 " WHERE entity = e.id ORDER BY t_first DESC LIMIT 32)))"
				 " FROM entity e";

int64_t last_recorded_ns(sqlite3 *database)
{
	// Each by an index or from the end: a run can hold millions of spans.
	static const char *const queries[] = {
		last_block,
		"SELECT t_ns FROM event ORDER BY id DESC LIMIT 1",
		"SELECT max(start_ns, ifnull(end_ns, 0)) FROM main.span ORDER BY id DESC LIMIT 1",
		"SELECT last_ns FROM span_block ORDER BY id DESC LIMIT 1",
	};
	int64_t last = 0;
	for (size_t i = 0; i < ARRAY_LENGTH(queries); i++) {
		int64_t t = store_number(database, queries[i], 0);
		last = t > last ? t : last;
	}
	return last;
}

int64_t reader_end_ns(struct reader *r)
{
	int64_t end = reader_run_i64(r, "end_ns", -1);
	return end >= 0 ? end : last_recorded_ns(r->database);
}

// The first event after which nothing was recorded: "recorder was killed (signal 9); nothing ...".
static void find_part(struct reader *r)
{
	sqlite3_stmt *row = NULL;
	r->part_known = true;
	if (r->state != RUN_FINISHED ||
		sqlite3_prepare_v2(r->database,
			"SELECT t_ns, kind = 'disk_full', text FROM event WHERE kind IN "
			"('disk_full',"
			" 'recorder_died') ORDER BY t_ns, id LIMIT 1",
			-1, &row, NULL) != SQLITE_OK ||
		sqlite3_step(row) != SQLITE_ROW) {
		sqlite3_finalize(row);
		return;
	}
	// Of what comes second a batch may have been lost: samples tell how far it goes.
	int64_t last_ns = store_number(r->database, last_block, 0);
	int64_t event_ns = sqlite3_column_int64(row, 0), end_ns = reader_end_ns(r);
	last_ns = last_ns < event_ns ? last_ns : event_ns;
	r->part_end_ns = last_ns < 0 ? 0 : last_ns < end_ns ? last_ns : end_ns;
	const char *text = (const char *)sqlite3_column_text(row, 2);
	_cleanup_text_ struct text why = {0};
	text_append_string(&why, "the ");
	if (sqlite3_column_int(row, 1) || !text) {
		text_append_string(&why, "disk was full");
	} else {
		text_append_printable(&why, text, strcspn(text, ";"));
	}
	r->part = text_steal(&why);
	sqlite3_finalize(row);
}

const char *reader_partial(struct reader *r)
{
	if (!r->part_known) {
		find_part(r);
	}
	return r->part;
}

int64_t reader_recorded_ns(struct reader *r)
{
	return reader_partial(r) ? r->part_end_ns : reader_end_ns(r);
}
