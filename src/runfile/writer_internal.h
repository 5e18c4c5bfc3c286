// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The writer's state, shared by writer.c (puts, commits, compaction), writer_file.c (creating and
// closing) and amend.c.

#pragma once

#include <sys/types.h>

#include "base/text.h"
#include "runfile/blocks.h"
#include "runfile/database.h"
#include "runfile/span_rows.h"
#include "runfile/writer.h"

enum statement {
	PUT_RUN,
	CLEAR_RUN,
	PUT_LABEL,
	PUT_METRIC,
	PUT_ENTITY,
	END_ENTITY,
	PUT_MISSING,
	PUT_BLOCK,
	PUT_CLOCK,
	DELETE_CLOCKS, // to which no block refers
	PUT_SPAN,
	END_SPAN,
	COMPLETE_SPAN,
	DROP_SPAN,
	EACH_COMMAND,
	ADOPT_POINTS,
	MOVE_SPAN,
	PUT_SPANS,
	SELECT_SPANS, // words, payload
	SELECT_SPANS_UNMERGED, // as candidates
	DELETE_SPANS,
	PUT_EVENT,
	PUT_PROFILE_OBJECT,
	PUT_PROFILE_SAMPLE,
	PUT_LINE_SAMPLE,
	PUT_PHASE_SAMPLE,
	PUT_PROFILE_SYMBOL,
	DELETE_BLOCK,
	SELECT_BLOCK, // source, payload, clock
	SELECT_CANDIDATES, // (writer.h) of an entity, that begin from ?2 on and end before ?3
	SELECT_ENDED,
	SELECT_UNMERGED, // entities of plain blocks after id ?1 that end before ?2, as candidates
	SELECT_ENTITIES, // as candidates
	SELECT_METRIC_KIND,
	UPDATE_EVENT,
	N_STATEMENTS,
};

// Buckets of 100 ms, 1 s, ... 10,000 s.
#define THIN_LEVELS 6

// The clocks written in one pass of compaction. All metrics read at the same ticks have the same
// times, which would be a third of a run if each stream stored its own.
#define BOOK_CLOCKS 8

struct book_entry {
	int64_t id;
	struct block clock; // owned: t only
};

struct clock_book {
	struct book_entry entries[BOOK_CLOCKS];
	unsigned n;
	unsigned oldest; // the next to be replaced by a new one
};

struct writer {
	sqlite3 *database;
	char *path;
	sqlite3_stmt *statements[N_STATEMENTS]; // prepared at first use, kept
	struct encoder *encoder;
	struct span_rows spans; // for the next block of spans
	struct text scratch; // for converting text to valid UTF-8 before it is bound
	uint64_t max_bytes;
	uint64_t committed_ns; // CLOCK_MONOTONIC of the last commit
	int64_t last_ns; // the latest time put
	struct clock_book clocks; // of the current compaction
	struct clock_cache clock_cache;
	int64_t merged_id; // blocks up to this id are merged
	int64_t thinned_ns[THIN_LEVELS]; // time up to which each level has thinned
	int64_t thin_events[THIN_LEVELS]; // ids of the events that record this; 0: none yet
	int reserve; // unlinked file that holds disk space for the last event; -1: spent
	bool wal;
	bool full; // the disk was full: nothing more is written
	bool displaced; // the file was removed or replaced: nothing more is written
	int held; // the file, opened before SQLite opens it and closed after SQLite has
	bool claimed; // we own the journal beside it
	dev_t device; // of the file, when it was opened
	ino_t inode;
};

// Commits now, regardless of the journal mode's interval.
int writer_commit_now(struct writer *w, struct error *e);
// Whether the path is missing or names another file by now. SQLite names the files beside the run
// by path, so that writing or removing them would affect that other run.
bool writer_is_displaced(struct writer *w);
// Leaves WAL mode if no other process has the file open, so that it becomes a single file that can
// be opened anywhere. With a reader beside it, the file stays in WAL mode, complete and readable;
// run_close settles it.
void writer_settle(struct writer *w);

void clock_book_done(struct clock_book *book);
