// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Reads a run file, finished or being recorded, intact or damaged. Everything in it is untrusted.

#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "runfile/codec.h"

struct reader;

enum run_state {
	RUN_FINISHED, // has an end
	RUN_LIVE, // its recorder is alive (from another host: written within 30 s)
	RUN_CUT_OFF, // its end was not recorded
};

// Opens a run and changes nothing (amend_close closes one that was cut off). Errors, each one line
// with the path: it does not exist, is a directory, is empty, is not a run, has another schema,
// exceeds a bound, has a newer major schema, or is damaged beyond reading. Damaged blocks are
// skipped: see reader_damage.
int reader_open(const char *path, struct reader **ret, struct error *e);
void reader_free(struct reader *r);
static inline void reader_close(struct reader **r)
{
	reader_free(*r);
}
#define _cleanup_reader_ __attribute__((cleanup(reader_close)))

const char *reader_path(const struct reader *r);
enum run_state reader_state(const struct reader *r);
// Whether amend_close has something to do: the run was cut off and has no end, or its log still
// exists.
bool reader_is_unclosed(const struct reader *r);
// A line for the user (newer minor schema, truncated, damaged blocks so far, cut off), or NULL.
// Lives until the next call.
const char *reader_notice(struct reader *r);
// Value of a key of table `run`, or NULL. Lives as long as the reader.
const char *reader_run(struct reader *r, const char *key);
int64_t reader_run_i64(struct reader *r, const char *key, int64_t otherwise);
// Value of a label, or NULL. Lives as long as the reader.
const char *reader_label(struct reader *r, const char *name);
// End of the run, or the last time recorded so far; ns since the start.
int64_t reader_end_ns(struct reader *r);
// Why only a part of a finished run was recorded ("the disk was full"), or NULL. Lives as long as
// the reader.
const char *reader_partial(struct reader *r);
// The last time in a run of which a part was recorded, else reader_end_ns.
int64_t reader_recorded_ns(struct reader *r);
// The connection, for queries over metadata; read-only, with the virtual table `samples`
// registered.
sqlite3 *reader_database(struct reader *r);
// Whether the schema has tables of CPU samples, of samples by phase, and of lines.
bool reader_has_samples(struct reader *r);
bool reader_has_phase_samples(struct reader *r);
bool reader_has_lines(struct reader *r);

// One decoded series, in the metric's unit. Arrays are owned by the series.
struct series {
	size_t n;
	int64_t *t_us; // since the run's start; never falls
	double *values; // NAN: missing; the mean of a bucket in a thinned run
	double *minimum; // of the bucket; the array `values` itself if nothing was thinned
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

// Until reader_release, all queries see the present state of the file under one lock. For finished
// runs and for a short time: writers have to wait.
void reader_hold(struct reader *r);
void reader_release(struct reader *r);

// Calls `progressed` after each block read; NULL: stop calling.
void reader_watch(struct reader *r, void (*progressed)(void *context), void *context);
// Reports progress: call it after work that takes about as long as reading a block.
void reader_progress(const struct reader *r);

// Whether part of the file is lost: it is truncated or damaged, or a block read so far was.
bool reader_is_damaged(const struct reader *r);
// The number of blocks that could not be decoded so far.
uint64_t reader_damage(const struct reader *r);
