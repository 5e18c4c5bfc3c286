// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The reader's state, shared by reader.c and index.c, which opens many files.

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
	struct metric_rows metrics; // between reader_hold and reader_release, for reader_series;
	                            // empty: not loaded
	sqlite3_stmt *kind; // kept by reader_series
	void (*progressed)(void *context); // NULL: no progress wanted
	void *progress_context;
	enum run_state state;
	bool part_known; // whether the two fields below are known
	char *part; // why only a part was recorded; NULL: everything was
	int64_t part_end_ns;
	bool incomplete; // the file is truncated or damaged
	char trouble[256]; // a problem found while opening; "": none
	char notice[400]; // trouble and damage together
};

// Opens the file at `path` for reading by any way that works: beside its writer, on a read-only
// disk, from a private copy. The connection was tested. Returns -EBADMSG if it is not an SQLite
// database or has another schema than a run. Its pages may still be damaged.
int reader_open_database(const char *path, sqlite3 **ret, struct error *e);
// The same for any schema. The caller must check the schema before it queries anything.
int reader_open_unchecked(const char *path, sqlite3 **ret, struct error *e);
