// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Writes a run file. Not thread-safe: one thread owns a writer. All memory use is bounded.
//
// Every put joins the open batch; writer_commit makes the batch survive a crash of this process. On
// file systems without WAL (network file systems) commits are 10 s apart, and a batch that meets
// SQLITE_BUSY is kept and retried. On ENOSPC the reserve holds a last event, and all later puts
// return -ENOSPC: what was committed stays readable.

#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/beneath.h"
#include "base/error.h"
#include "runfile/codec.h"
#include "runfile/metric.h"
#include "runfile/span_rows.h"
#include "runfile/writer_internal.h"

struct writer;

struct writer_options {
	bool replace; // an existing regular file is replaced (--force); else -EEXIST
	uint64_t max_bytes; // --max-size; 0 for no limit
	const char *vfs; // SQLite's name of a VFS; NULL: its default (tests: one without WAL)
	// Called as soon as the file exists; may be NULL.
	void (*made)(void *context, struct beneath_file file);
	void *context;
};

// Creates the file (mode 0600), its schema, its reserve. Errors: -EEXIST, -EISDIR, -EACCES, -EROFS,
// -ENOSPC, ... with a text that names the path.
int writer_create(const char *path, const struct writer_options *options, struct writer **ret,
	struct error *e);

// Opens a run file that another process has written, to close it or to add to it. The file and
// those beside it must belong to one user, and its schema must be that of a run.
int writer_open(const char *path, struct writer **ret, struct error *e);

// The connection, for statements of other modules. Lives as long as the writer.
sqlite3 *writer_database(struct writer *w);

// False: the file system does not support WAL, and commits are 10 s apart.
bool writer_uses_wal(const struct writer *w);

// All puts: 0 or -errno. Text is copied. Times are ns since the run's start.
int writer_put_run(struct writer *w, const char *key, const char *value);
// Removes keys that match a GLOB pattern: "loader_*".
int writer_clear_run(struct writer *w, const char *pattern);
int writer_put_label(struct writer *w, const char *name, const char *value);
int writer_put_metric(struct writer *w, uint32_t id, const struct metric *metric,
	enum entity_kind entity_kind, const char *source);

struct writer_entity {
	int64_t id;
	enum entity_kind kind;
	const char *key;
	const char *name;
	int64_t parent; // 0 for none
	int64_t first_ns;
	int64_t last_ns; // -1 while it exists
	const char *attributes; // JSON object, or NULL for {}
};
// Inserts the entity, or updates all columns of the one with this id, except that an ended one
// stays ended and attributes are merged.
int writer_put_entity(struct writer *w, const struct writer_entity *entity);
// The entity has ended. attributes (a JSON object, or NULL) are merged.
int writer_end_entity(struct writer *w, int64_t id, int64_t last_ns, const char *attributes);
// Calls `take` with name and command line (a JSON array; NULL: not known) of each process whose
// name or program matches a GLOB pattern, in order of appearance, until it returns false.
int writer_each_command(struct writer *w, const char *pattern,
	bool (*take)(void *context, const char *name, const char *command), void *context);
int writer_put_missing(struct writer *w, int64_t entity, uint32_t metric, int64_t from_ns,
	int64_t to_ns, const char *reason); // entity 0: all of the kind; to_ns -1: to the end
int writer_put_block(struct writer *w, int64_t entity, const char *source, const struct block *b);

int writer_put_span(struct writer *w, const struct writer_span *span, int64_t *ret_id);
// samples -1: not known. attributes (a JSON object, or NULL) are merged.
int writer_complete_span(
	struct writer *w, int64_t id, int64_t end_ns, int64_t samples, const char *attributes);
// Assigns points with a number but no parent (from lines of output) to the epoch with that number:
// a line printed at the end of an epoch is read when the next one has begun.
int writer_adopt_points(struct writer *w);
int writer_drop_span(struct writer *w, int64_t id);
int writer_end_span(struct writer *w, int64_t id, int64_t end_ns);
int writer_move_span(struct writer *w, int64_t id, int64_t start_ns, int64_t end_ns);
int writer_put_event(struct writer *w, int64_t t_ns, const char *kind, int64_t entity,
	const char *text); // entity 0 for none

struct writer_sample { // of CPU time
	int64_t entity;
	bool leader; // of the process's first thread
	int64_t from_ns;
	int64_t to_ns;
	int64_t object;
	int64_t address; // -1: of many
	int64_t samples;
};
int writer_put_profile_object(struct writer *w, int64_t id, const char *path);
int writer_put_profile_sample(struct writer *w, const struct writer_sample *sample);
// A sample by the phase of the training thread (NULL: not known), without times.
int writer_put_phase_sample(
	struct writer *w, const char *phase, const struct writer_sample *sample);
// A line in which a thread was. phase NULL: not known.
struct writer_line {
	int64_t entity;
	const char *phase;
	const char *file;
	int64_t line;
	const char *function;
	int64_t samples;
};
int writer_put_line_sample(struct writer *w, const struct writer_line *line);
int writer_put_profile_symbol(struct writer *w, int64_t object, int64_t address, const char *name);

// Commits everything put so far. Cheap if nothing was put. -ENOSPC once the disk was full.
int writer_commit(struct writer *w, struct error *e);

// Merges the small blocks of finished minutes into CODEC_ZSTD blocks, in one transaction, and keeps
// the file under max_bytes by thinning the oldest blocks to 100 ms, then 1 s (minimum, mean,
// maximum; an event reports it). Called every other minute, or if writer_is_over_limit; now_ns is
// the time up to which blocks are complete.
int writer_compact(struct writer *w, int64_t now_ns, struct error *e);

// Whether file and log have exceeded max_bytes since the last compaction.
bool writer_is_over_limit(struct writer *w);

// Compacts everything, writes run keys end_ns and status, checkpoints, leaves DELETE mode: one
// file. status: a wait status as waitpid gives it, or -1 for unknown.
int writer_finish(struct writer *w, int64_t end_ns, int status, struct error *e);

// The same for a run whose writer was killed: the key `state` is "cut_off" instead of "finished",
// and there is no status.
int writer_finish_cut_off(struct writer *w, int64_t end_ns, struct error *e);

uint64_t writer_file_bytes(const struct writer *w);

// Commits if possible, and frees. Accepts NULL. A run without writer_finish stays "being recorded".
void writer_free(struct writer *w);
// Frees, and removes the file, unless its name refers to another file by now.
void writer_discard(struct writer *w);

// Compact -----------------------------------------------------------------------------------------
//
// Merging small blocks into large ones, and keeping the file under its limit.

// A block to rewrite. All are listed first: a SELECT over a table that changes may return its own
// results.
struct candidate {
	int64_t id;
	int64_t t_first;
	int64_t t_last;
	int64_t rows;
	int codec;
};

struct candidates {
	struct candidate *items; // [n]
	size_t n;
	size_t capacity;
};

// Deletes the clocks to which no block refers any more.
int writer_delete_clocks(struct writer *w);
