// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The template of a source: the entropy available from the kernel. It is compiled and tested, but
// not in the list of sources. To write your own, copy this file, and
//
//   1. define the metrics, a row each. Documentation, tooltips and doctor use only these rows. The
//      name is OpenTelemetry's if there is one, else strain.*; the help is one sentence: what is
//      counted, its trap, its file.
//   2. put metrics that are read together, at one rate, about one kind of entity, into one group.
//   3. write read, open and close. Numbers after names in a kernel file need no parser: keyed.h
//      reads them from rows, as in host.c.
//   4. add it to list.c, and its file to meson.build.
//
// docs/architecture.md says where a source's rows go from here.

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "machine/file.h"
#include "record/sample/source.h"

// Values are integers; `scale` converts them to the unit. Choose it so that consecutive readings
// differ by little: microseconds rather than nanoseconds, KiB rather than bytes of memory.
enum { ENTROPY, N_ENTROPY };
static const struct metric entropy_metrics[N_ENTROPY] = {
	[ENTROPY] = {"strain.null.entropy", METRIC_GAUGE, "bit", 1,
		"Bits of entropy of the kernel's random numbers: 256 since Linux 5.18 "
		"(/proc/sys/kernel/random/entropy_avail)."},
};

static int read_entropy(void *state, struct sink *sink, uint64_t now_ns);

// Choose the interval by the cost of a reading: one of microseconds can be read ten times a second;
// one that asks a driver or takes a lock of the job needs a lane of its own and a longer interval.
// SHARED: it is the same for all recorders of a machine, so that one can read for the
// others.
static const struct group groups[] = {
	{"entropy", ENTITY_HOST, entropy_metrics, N_ENTROPY, NS_PER_S, read_entropy, SHARED},
};

// The state of the source: open files, streams, last values. Nothing is global, so that two
// recorders can be in one process.
struct null_source {
	struct host_file file;
	int64_t host;
	struct stream *stream;
};

static int read_entropy(void *state, struct sink *sink, uint64_t now_ns)
{
	struct null_source *s = state;
	struct cursor text;
	int64_t bits;
	int r = host_file_read(&s->file, &text);
	if (r < 0) {
		// It will never work again: report the reason once, and let the sampler drop the
		// group.
		sink_missing_group(sink, s->host, &groups[0], strerrordesc_np(-r));
		return r;
	}
	// It failed this time only: the row has a missing value. Never write 0 for an unknown
	// value.
	if (!cursor_i64(&text, &bits)) {
		bits = VALUE_MISSING;
	}
	// A stream has the rows of one entity. A source of many entities (disks, GPUs) keeps one
	// for each, and announces an entity with sink_entity when it appears.
	if (!s->stream) {
		s->stream = sink_stream(sink, s->host, &groups[0]);
	}
	const int64_t values[N_ENTROPY] = {[ENTROPY] = bits};
	stream_row(s->stream, now_ns, values);
	return 0;
}

static void null_close(void *state)
{
	struct null_source *s = state;
	if (s) {
		host_file_close(&s->file);
		free(s); // the sink owns the streams
	}
}

// All permanent failures should occur here, with a reason that helps the user: doctor prints it,
// and the run file stores it. Paths are relative to the machine's root, so that the source can be
// tested on a captured tree (tests/hosts).
static int null_open(
	const struct source_context *context, struct sink *sink, void **ret_state, struct error *e)
{
	(void)sink;
	struct null_source *s = calloc(1, sizeof(*s));
	if (!s) {
		return error_errno(e, ENOMEM, "null");
	}
	s->host = context->host;
	s->file = HOST_FILE_CLOSED;
	int r = host_file_open(
		&s->file, context->root_fd, "proc/sys/kernel/random/entropy_avail", e);
	if (r < 0) {
		null_close(s);
		return r;
	}
	*ret_state = s;
	return 0;
}

const struct source source_null = {
	.name = "null",
	.help = "the template for new sources",
	.lane = LANE_TICK,
	.groups = groups,
	.n_groups = ARRAY_LENGTH(groups),
	.open = null_open,
	.close = null_close,
};
