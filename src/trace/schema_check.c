// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The texts in sqlite_schema against those in schema.sql. SQLite keeps a statement as it was typed,
// and the embedded text has neither comments nor anything else that differs between builds.

#include "trace/schema_check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "trace/store.h"

#define STATEMENTS_MAX 32
// Tables that older versions do not have.
static const struct {
	const char *statement; // how it begins
	sqlite3_int64 first; // PRAGMA user_version that has it
} additions[] = {
	{"CREATE TABLE span_block ", 1001},
	{"CREATE TABLE profile_", 1002},
	{"CREATE TABLE phase_sample ", 1003},
	{"CREATE TABLE line_sample ", 1003},
};
#define VIEW "CREATE VIEW "

struct statement {
	const char *text;
	size_t length;
};

// The statements of schema.sql, without their semicolons.
static size_t split_schema(struct statement ret[STATEMENTS_MAX])
{
	size_t n = 0;
	for (const char *at = schema_sql + strspn(schema_sql, " \t\n");
		*at && n < STATEMENTS_MAX;) {
		size_t length = strcspn(at, ";");
		ret[n++] = (struct statement){at, length};
		at += length;
		at += strspn(at, "; \t\n");
	}
	return n;
}

static bool begins_with(const struct statement *s, const char *text)
{
	return s->length >= strlen(text) && memcmp(s->text, text, strlen(text)) == 0;
}

// The word after this many others.
static struct statement word_of(const struct statement *s, unsigned skip)
{
	const char *at = s->text, *end = s->text + s->length;
	for (; skip > 0; skip--) {
		const char *space = memchr(at, ' ', (size_t)(end - at));
		at = space ? space + 1 : end;
	}
	const char *space = memchr(at, ' ', (size_t)(end - at));
	return (struct statement){at, (size_t)((space ? space : end) - at)};
}

static bool is_word(const struct statement *word, const char *text, bool any_case)
{
	return strlen(text) == word->length &&
	       (any_case ? sqlite3_strnicmp(word->text, text, (int)word->length)
			 : memcmp(word->text, text, word->length)) == 0;
}

// A row of sqlite_schema. NULL stands for "".
struct entry {
	const char *type;
	const char *name;
	const char *table;
	const char *sql;
	size_t sql_length;
};

static const char *text_at(sqlite3_stmt *row, int column)
{
	const char *text = (const char *)sqlite3_column_text(row, column);
	return text ? text : "";
}

static struct entry entry_of(sqlite3_stmt *row)
{
	return (struct entry){text_at(row, 0), text_at(row, 1), text_at(row, 2), text_at(row, 3),
		(size_t)sqlite3_column_bytes(row, 3)};
}

// Of an index, the word behind "ON" names the table.
static bool is_of(const struct entry *entry, const struct statement *s)
{
	struct statement type = word_of(s, 1), name = word_of(s, 2),
			 table = word_of(s, begins_with(s, "CREATE INDEX ") ? 4 : 2);
	return entry->sql_length == s->length && memcmp(entry->sql, s->text, s->length) == 0 &&
	       is_word(&type, entry->type, true) && is_word(&name, entry->name, false) &&
	       is_word(&table, entry->table, false);
}

// SQLite's own index of UNIQUE, of which it keeps no text.
static bool is_automatic(const struct entry *entry)
{
	return strcmp(entry->type, "index") == 0 && entry->sql_length == 0 &&
	       strcmp(entry->name, "sqlite_autoindex_entity_1") == 0 &&
	       strcmp(entry->table, "entity") == 0;
}

static size_t find(const struct entry *entry, const struct statement *statements, size_t n)
{
	size_t i = 0;
	while (i < n && !is_of(entry, &statements[i])) {
		i++;
	}
	return i;
}

static bool names_ours(const char *name, const struct statement *statements, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct statement word = word_of(&statements[i], 2);
		if (is_word(&word, name, true)) {
			return true;
		}
	}
	return false;
}

// What a newer minor version may add: an ordinary table, an index of such.
static bool is_addition(const struct entry *entry, const struct statement *statements, size_t n)
{
	return (strcmp(entry->type, "table") == 0 || strcmp(entry->type, "index") == 0) &&
	       sqlite3_strnicmp(entry->sql, "CREATE VIRTUAL", 14) != 0 &&
	       !names_ours(entry->name, statements, n) && !names_ours(entry->table, statements, n);
}

static bool is_younger(const struct statement *s, sqlite3_int64 version)
{
	for (size_t i = 0; i < ARRAY_LENGTH(additions); i++) {
		if (begins_with(s, additions[i].statement) && version < additions[i].first) {
			return true;
		}
	}
	return false;
}

static int refuse(const struct entry *entry, bool known, struct error *e)
{
	char name[41];
	snprintf(name, sizeof(name), "%s", entry->name);
	name[strcspn(name, "\n\r")] = '\0';
	bool vowel = strcmp(entry->type, "index") == 0;
	return error_set(e, EBADMSG, "its schema is not a run's: found %s %.10s, '%s', %s",
		vowel ? "an" : "a", entry->type, name,
		known ? "as no run has it" : "that no run has");
}

static int check_rows(sqlite3_stmt *row, sqlite3_int64 version, struct error *e)
{
	struct statement statements[STATEMENTS_MAX];
	bool seen[STATEMENTS_MAX] = {false};
	size_t n = split_schema(statements);
	int result;
	while ((result = sqlite3_step(row)) == SQLITE_ROW) {
		struct entry entry = entry_of(row);
		size_t i = find(&entry, statements, n);
		bool ours = i < n && !seen[i];
		if (!ours && !is_automatic(&entry) &&
			!(version > STORE_VERSION && is_addition(&entry, statements, n))) {
			return refuse(&entry, names_ours(entry.name, statements, n), e);
		}
		seen[i < n ? i : STATEMENTS_MAX - 1] = true;
	}
	for (size_t i = 0; i < n && result == SQLITE_DONE; i++) {
		if (!seen[i] && !is_younger(&statements[i], version)) {
			struct statement name = word_of(&statements[i], 2);
			return error_set(e, EBADMSG,
				"its schema is not a run's: found no '%.*s' as runs have it",
				(int)name.length, name.text);
		}
	}
	return result == SQLITE_DONE ? 0 : -EBADMSG;
}

int schema_check(sqlite3 *database, struct error *e)
{
	sqlite3_stmt *row = NULL;
	sqlite3_int64 version = store_number(database, "PRAGMA user_version", -1);
	int result = sqlite3_prepare_v2(
		database, "SELECT type, name, tbl_name, sql FROM sqlite_master", -1, &row, NULL);
	int r = result == SQLITE_OK ? check_rows(row, version, e) : -EBADMSG;
	if (r < 0 && e && !e->code) {
		store_error(database, result == SQLITE_OK ? SQLITE_CORRUPT : result, e,
			"its schema cannot be read");
	}
	sqlite3_finalize(row);
	return r;
}

bool schema_has_table(sqlite3 *database, const char *name)
{
	struct statement statements[STATEMENTS_MAX];
	size_t n = split_schema(statements), ours = 0, others = 0;
	sqlite3_stmt *row = NULL;
	if (sqlite3_prepare_v2(database,
		    "SELECT type, name, tbl_name, sql FROM sqlite_master"
		    " WHERE name = ?1 COLLATE NOCASE",
		    -1, &row, NULL) != SQLITE_OK) {
		return false;
	}
	sqlite3_bind_text(row, 1, name, -1, SQLITE_STATIC);
	while (sqlite3_step(row) == SQLITE_ROW) {
		struct entry entry = entry_of(row);
		bool found = strcmp(entry.type, "table") == 0 && find(&entry, statements, n) < n;
		ours += found;
		others += !found;
	}
	sqlite3_finalize(row);
	return ours == 1 && others == 0;
}

int schema_make_views(sqlite3 *database)
{
	struct statement statements[STATEMENTS_MAX];
	size_t n = split_schema(statements);
	int result = SQLITE_OK;
	for (size_t i = 0; i < n && result == SQLITE_OK; i++) {
		if (begins_with(&statements[i], VIEW)) {
			_cleanup_text_ struct text sql = {0};
			text_format(&sql, "CREATE TEMP VIEW %.*s",
				(int)(statements[i].length - strlen(VIEW)),
				statements[i].text + strlen(VIEW));
			result = sql.failed ? SQLITE_NOMEM : store_exec(database, sql.data);
		}
	}
	return result;
}
