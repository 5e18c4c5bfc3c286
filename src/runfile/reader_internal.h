// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The reader's own state, for reader.c and for index.c, which looks at many files.

#pragma once

#include "runfile/blocks.h"
#include "runfile/reader.h"

struct pair {
	char *name;
	char *value;
};

struct pairs {
	struct pair *items; // [n]
	size_t n;
	size_t capacity;
	size_t bytes; // of names and values
};

struct reader {
	char *path;
	sqlite3 *database;
	struct pairs run;
	struct pairs labels;
	struct damage damage;
	sqlite3_stmt *scale; // kept by reader_series
	struct block_statements statements; // of reader_series
	bool held; // between reader_hold and reader_release
	bool metrics_tried;
	struct metric_rows metrics; // while it is held, for reader_series; empty: not loaded
	sqlite3_stmt *kind; // kept by reader_series
	void (*progressed)(void *context); // NULL: nobody asks
	void *progress_context;
	enum run_state state;
	bool part_known; // the two below
	char *part; // why only a part was recorded; NULL: all was
	int64_t part_end_ns;
	bool incomplete; // the file is truncated or damaged
	char trouble[256]; // what the opening found; "" for nothing
	char notice[400]; // trouble and damage together
};

// Opens the file at `path` for reading by whatever way there is: beside its writer, on a disk that
// cannot be written, in a private copy. The connection is known to work. -EBADMSG where SQLite
// finds no database in it, and where its schema is not a run's. Its pages may still be damaged.
int reader_open_database(const char *path, sqlite3 **ret, struct error *e);
// The same with any schema, which the caller has to check before it asks anything.
int reader_open_unchecked(const char *path, sqlite3 **ret, struct error *e);
