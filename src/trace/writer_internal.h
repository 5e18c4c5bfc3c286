// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The writer as its two files see it: writer.c (puts, commits, the file), compact.c (blocks merged
// and thinned).

#pragma once

#include "base/text.h"
#include "trace/store.h"
#include "trace/writer.h"

enum statement {
	PUT_RUN,
	PUT_LABEL,
	PUT_METRIC,
	PUT_ENTITY,
	PUT_MISSING,
	PUT_BLOCK,
	PUT_SPAN,
	END_SPAN,
	PUT_EVENT,
	CLEAR_SUMMARY,
	PUT_SUMMARY,
	DELETE_BLOCK,
	N_STATEMENTS,
};

struct writer {
	sqlite3 *database;
	char *path;
	sqlite3_stmt *statements[N_STATEMENTS]; // prepared at first use, kept
	struct encoder *encoder;
	struct text scratch; // text made valid UTF-8 before it is bound
	uint64_t max_bytes;
	uint64_t committed_ns; // CLOCK_MONOTONIC of the last commit
	int64_t last_ns; // the latest time put
	int reserve; // unlinked file that holds disk space for the last event; -1: spent
	bool wal;
	bool full; // the disk was: nothing more is written
};

// Prepares (once) and resets a statement. NULL where that fails.
sqlite3_stmt *writer_statement(struct writer *w, enum statement which);
// Opens the batch where none is open. 0 or -errno.
int writer_begin(struct writer *w);
// Steps a bound statement and resets it. 0 or -errno.
int writer_step(struct writer *w, sqlite3_stmt *statement);
// Binds text as valid UTF-8, NULL as NULL.
void writer_bind_text(struct writer *w, sqlite3_stmt *statement, int index, const char *text);
// Commits now, whatever the journal mode's pace.
int writer_commit_now(struct writer *w, struct error *e);
// Inserts a block that is encoded already.
int writer_insert_block(struct writer *w, int64_t entity, const char *source, const struct block *b,
	enum codec codec);
