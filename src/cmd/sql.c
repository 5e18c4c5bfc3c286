// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// strain sql: runs a query over the tables and decoded samples of a run. It cannot change the run,
// or access any other file.

#include <argp.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cmd/command.h"
#include "cmd/reading.h"
#include "runfile/database.h"
#include "show/query_write.h"

enum { OUTPUT_TABLE, OUTPUT_JSON, OUTPUT_CSV };

#define QUERY_BYTES (1 << 20)

struct sql_options {
	const char *run; // NULL: the newest
	const char *query; // NULL: from standard input
	int output;
};

// --- permissions of a query

static bool is_harmless_pragma(const char *name)
{
	static const char *const names[] = {"table_info", "table_xinfo", "table_list", "index_list",
		"index_info", "index_xinfo", "foreign_key_list", "database_list", "application_id",
		"user_version", "page_count", "page_size", "encoding", "compile_options",
		"function_list", "collation_list", "integrity_check", "quick_check"};
	for (size_t i = 0; name && i < ARRAY_LENGTH(names); i++) {
		if (strcasecmp(name, names[i]) == 0) {
			return true;
		}
	}
	return false;
}

static int authorize(void *context, int action, const char *first, const char *second,
	const char *database, const char *trigger)
{
	(void)context;
	(void)database;
	(void)trigger;
	switch (action) {
	case SQLITE_SELECT:
	case SQLITE_READ:
	case SQLITE_RECURSIVE:
		return SQLITE_OK;
	case SQLITE_FUNCTION:
		return strcasecmp(second, "load_extension") == 0 ? SQLITE_DENY : SQLITE_OK;
	case SQLITE_PRAGMA:
		// With a value it would be set; user_version and the like may only be read.
		return is_harmless_pragma(first) &&
		                       (!second || strstr(first, "_info") || strstr(first, "_list"))
		               ? SQLITE_OK
		               : SQLITE_DENY;
	default:
		return SQLITE_DENY;
	}
}

// --- the command

static int sql_failed(struct reader *reader, int status)
{
	// SQLite has no message if only our allocation failed.
	bool memory = status == SQLITE_NOMEM;
	const char *why = memory ? "out of memory" : sqlite3_errmsg(reader_database(reader));
	struct text shown = {0};
	text_append_printable(&shown, why, strlen(why));
	command_fail("sql: %s", shown.data ? shown.data : "out of memory");
	text_done(&shown);
	return STATUS_FAILURE;
}

// Whether another statement follows, valid or not.
static bool has_more(sqlite3 *database, const char *rest)
{
	sqlite3_stmt *statement = NULL;
	int status = sqlite3_prepare_v2(database, rest, -1, &statement, NULL);
	bool more = status != SQLITE_OK || statement;
	sqlite3_finalize(statement);
	return more;
}

static int print_table(sqlite3_stmt *statement)
{
	struct query_left_out left_out;
	int status = query_write_table(statement, stdout, &left_out);
	if (left_out.columns) {
		command_note(
			"only the first %d columns; --csv and --json print all", QUERY_COLUMNS_MAX);
	}
	if (left_out.rows) {
		command_note("only the first %d rows; --csv and --json print all", QUERY_ROWS_MAX);
	}
	return status;
}

static int run_statement(struct reader *reader, sqlite3_stmt *statement, int output)
{
	int status = output == OUTPUT_TABLE
	                     ? print_table(statement)
	                     : query_write_lines(statement, output == OUTPUT_JSON, stdout);
	fflush(stdout);
	return status == SQLITE_DONE || ferror(stdout) ? command_flush()
	                                               : sql_failed(reader, status);
}

// Runs the statements of `query` until one fails. several: false allows only one.
static int run_query(struct reader *reader, const char *query, int output, bool several)
{
	sqlite3 *database = reader_database(reader);
	const char *rest = query;
	size_t n = 0;
	for (; *rest; n++) {
		_cleanup_statement_ sqlite3_stmt *statement = NULL;
		int prepared = sqlite3_prepare_v2(database, rest, -1, &statement, &rest);
		if (prepared != SQLITE_OK) {
			return sql_failed(reader, prepared);
		}
		if (!statement) {
			break;
		}
		if (!several && has_more(database, rest)) {
			return command_fail("sql: expected one statement, found more");
		}
		int status = run_statement(reader, statement, output);
		if (status != STATUS_OK) {
			return status;
		}
	}
	return n > 0 ? STATUS_OK : command_fail("sql: expected one statement, found none");
}

static void prepare_database(struct reader *reader)
{
	// Declares the table `samples` now, since a query has no permission to do so at its first
	// use.
	database_bound_statements(reader_database(reader), 0); // users may wait for their queries
	sqlite3_exec(reader_database(reader), "SELECT 1 FROM samples LIMIT 0", NULL, NULL, NULL);
	sqlite3_set_authorizer(reader_database(reader), authorize, NULL);
}

// --- interactive queries, and queries from a pipe

// An error does not end the session: the next query may be valid.
static int prompt(struct reader *reader, int output)
{
	_cleanup_text_ struct text query = {0};
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	command_detail("%s: tables run, label, entity, metric, samples, span, event, missing, "
		       "summary_by_name",
		reader_path(reader));
	command_detail("A query ends with ;  Ctrl-D ends the prompt.");
	command_prompt("strain> ");
	while (getline(&line, &size, stdin) >= 0 && query.length < QUERY_BYTES) {
		text_append_string(&query, line);
		bool blank = query.data && !query.data[strspn(query.data, " \t\r\n")];
		bool complete = query.data && sqlite3_complete(query.data);
		if (complete) {
			run_query(reader, query.data, output, true);
		}
		if (complete || blank) {
			text_clear(&query);
		}
		command_prompt(complete || blank ? "strain> " : "   ...> ");
	}
	command_detail("%s", "");
	return STATUS_OK;
}

// Reads all of standard input. Any status but STATUS_OK: the error was printed.
static int read_query(struct text *ret)
{
	char part[4096];
	for (size_t n; (n = fread(part, 1, sizeof(part), stdin)) > 0;) {
		text_append(ret, part, n);
		if (ret->length > QUERY_BYTES) {
			return command_fail("sql: expected a query of at most %d MiB on standard "
					    "input",
				QUERY_BYTES >> 20);
		}
	}
	if (ret->failed || ferror(stdin)) {
		return command_fail("sql: cannot read standard input: %s",
			ret->failed ? "out of memory" : strerrordesc_np(errno));
	}
	if (!ret->data || !ret->data[strspn(ret->data, " \t\r\n")]) {
		return command_usage("sql", "expected a query: strain sql \"SELECT * FROM run\"");
	}
	return STATUS_OK;
}

// Whether a single argument is a run: a query contains blanks, or characters that names of runs do
// not.
static bool is_run(const char *word)
{
	return access(word, F_OK) == 0 || !strpbrk(word, " \t\r\n(*;");
}

static const struct argp_option options[] = {
	{"json", 256, NULL, 0, "print one JSON array of rows", 0},
	{"csv", 257, NULL, 0, "print comma-separated values with a header", 0},
	{0},
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct sql_options *sql = state->input;
	switch (key) {
	case 256:
		sql->output = OUTPUT_JSON;
		return 0;
	case 257:
		sql->output = OUTPUT_CSV;
		return 0;
	case ARGP_KEY_ARG:
		if (sql->run) {
			reading_option_error(
				state, "expected a run and a query, also found '%s'", argument);
		}
		sql->run = sql->query;
		sql->query = argument;
		return 0;
	case ARGP_KEY_END:
		if (sql->query && !sql->run && is_run(sql->query)) {
			sql->run = sql->query;
			sql->query = NULL;
		}
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int command_sql(int argc, char **argv)
{
	static const struct argp argp = {options, parse, "[RUN] [QUERY]",
		"Query a run with SQL, read-only. Tables: run, label, entity, metric, missing, "
		"span, event, summary (with names: summary_by_name), and samples(entity, metric, "
		"t, value), which decodes the readings. Without QUERY, read queries from "
		"standard input, with a prompt in a terminal.\vExample:\n  strain sql \"SELECT "
		"metric, "
		"value FROM summary_by_name WHERE entity_kind = 'job' AND aggregate = 'max'\"",
		NULL, NULL, NULL};
	struct sql_options sql = {.output = OUTPUT_TABLE};
	reading_options(&argp, argc, argv, &sql);
	_cleanup_text_ struct text piped = {0};
	bool typed = !sql.query && isatty(STDIN_FILENO);
	int status = sql.query || typed ? STATUS_OK : read_query(&piped);
	_cleanup_reader_ struct reader *reader = status == STATUS_OK ? reading_open(sql.run) : NULL;
	if (!reader) {
		return status == STATUS_OK ? STATUS_FAILURE : status;
	}
	prepare_database(reader);
	status = sql.query ? run_query(reader, sql.query, sql.output, false)
	         : typed   ? prompt(reader, sql.output)
	                   : run_query(reader, piped.data, sql.output, sql.output == OUTPUT_TABLE);
	reading_damaged_blocks(reader);
	return status;
}
