// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Reads a run file, finished or still being recorded, whole or damaged. Never trusts a byte of it.

#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "runfile/codec.h"

struct reader;

enum run_state {
	RUN_FINISHED, // has an end
	RUN_LIVE, // its recorder lives (from another host: was written within 30 s)
	RUN_CUT_OFF, // nobody saw its end (closed later, or not yet)
};

// Opens read-only and changes nothing: a run that was cut off stays as it is (run_close). Errors,
// each one line with the path: not there, a directory, empty, not a run, another schema than a
// run's, more of something than any run has, from a newer major schema, not a database any more. A
// damaged block costs that block: see reader_damage.
int reader_open(const char *path, struct reader **ret, struct error *e);
void reader_free(struct reader *r);
static inline void reader_close(struct reader **r)
{
	reader_free(*r);
}
#define _cleanup_reader_ __attribute__((cleanup(reader_close)))

const char *reader_path(const struct reader *r);
enum run_state reader_state(const struct reader *r);
// Whether run_close would find something to do: it was cut off and has no end, or its log is still
// beside it.
bool reader_is_unclosed(const struct reader *r);
// A notice worth a line to the user (newer minor schema, truncated, damaged blocks so far, cut
// off), or NULL. Lives until the next call.
const char *reader_notice(struct reader *r);
// Value of a key of table `run`, or NULL. Lives as long as the reader.
const char *reader_run(struct reader *r, const char *key);
int64_t reader_run_i64(struct reader *r, const char *key, int64_t otherwise);
// Value of a label, or NULL. Lives as long as the reader.
const char *reader_label(struct reader *r, const char *name);
// End of the run, or the last time recorded so far; ns since the start.
int64_t reader_end_ns(struct reader *r);
// Why only a part of a finished run was recorded, for people ("the disk was full"), or NULL. Lives
// as long as the reader.
const char *reader_partial(struct reader *r);
// The end of what was recorded: of a part the last time in it, else reader_end_ns.
int64_t reader_recorded_ns(struct reader *r);
// The connection, for queries over metadata; read-only, with the virtual table `samples`
// registered.
sqlite3 *reader_database(struct reader *r);
// Whether its schema has tables of CPU samples, of those by phase, and of looks at lines.
bool reader_has_samples(struct reader *r);
bool reader_has_phase_samples(struct reader *r);
bool reader_has_lines(struct reader *r);

// One decoded series, in the metric's unit. Arrays are owned by the series.
struct series {
	size_t n;
	int64_t *t_us; // since the run's start; never falls
	double *values; // NAN where missing; the mean of a bucket where the run was thinned
	double *minimum; // the bucket's; the same array as values where nothing was thinned
	double *maximum;
};
void series_done(struct series *s);

// All samples of (entity, metric) with t in [from_us, to_us]; INT64_MIN and INT64_MAX for no bound.
// An empty series where there is none. Damaged blocks are skipped and counted.
int reader_series(struct reader *r, int64_t entity, const char *metric, int64_t from_us,
	int64_t to_us, struct series *ret, struct error *e);

// Walks every block of an entity in order of time; `each` returns 0 to go on. Damaged ones are
// skipped.
int reader_blocks(struct reader *r, int64_t entity,
	int (*each)(void *context, int64_t entity, const struct block *b), void *context,
	struct error *e);

// Until reader_release all queries see the file as it is now, and lock it once instead of each: for
// a finished run, and not for long, since who wants to write into it waits.
void reader_hold(struct reader *r);
void reader_release(struct reader *r);

// Calls `progressed` after each block that is read from now on; NULL: no more.
void reader_watch(struct reader *r, void (*progressed)(void *context), void *context);
// A block was read, or something else that takes about as long.
void reader_progress(const struct reader *r);

// Whether something of the file is lost: it is truncated or damaged, or a block so far was.
bool reader_is_damaged(const struct reader *r);
// Blocks that could not be decoded so far.
uint64_t reader_damage(const struct reader *r);
