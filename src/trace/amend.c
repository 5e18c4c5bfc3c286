// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Adding to a finished run.

#include "trace/amend.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/utsname.h>

#include "base/clock.h"
#include "trace/store.h"
#include "trace/writer_internal.h"

static int put(struct writer *w, const struct amendment *item, int64_t end_ns)
{
	switch (item->kind) {
	case AMEND_KEY:
		return writer_put_run(w, item->name, item->value);
	case AMEND_LABEL:
		return writer_put_label(w, item->name, item->value);
	default:
		return writer_put_event(w, end_ns, item->name, 0, item->value);
	}
}

// One batch: a writer commits by itself only in the mode that writes all the time.
static int put_all(struct writer *w, const struct amendment *items, size_t n, struct error *e)
{
	int64_t end_ns = store_number(
		w->database, "SELECT CAST(value AS INTEGER) FROM run WHERE key = 'end_ns'", 0);
	for (size_t i = 0; i < n; i++) {
		int result = put(w, &items[i], end_ns);
		if (result < 0) {
			return error_errno(e, -result, "%s: cannot add %s", w->path, items[i].name);
		}
	}
	return 0;
}

int run_amend(const char *path, const struct amendment *items, size_t n, struct error *e)
{
	struct writer *w = NULL;
	int result = writer_open(path, &w, e);
	if (result < 0) {
		return result;
	}
	result = put_all(w, items, n, e);
	if (result < 0 && !sqlite3_get_autocommit(w->database)) {
		store_exec(w->database, "ROLLBACK");
	}
	result = result < 0 ? result : writer_commit(w, e);
	writer_free(w);
	return result;
}

static int put_start(struct writer *w)
{
	char now[24];
	struct utsname names;
	snprintf(now, sizeof(now), "%" PRIu64, clock_realtime_ns());
	int result = writer_put_run(w, "start_utc_ns", now);
	result = result < 0 ? result : writer_put_run(w, "version", STRAIN_VERSION);
	if (result == 0 && uname(&names) == 0) {
		result = writer_put_run(w, "hostname", names.nodename);
	}
	return result;
}

int run_write_empty(const char *path, const struct amendment *items, size_t n, struct error *e)
{
	const struct writer_options options = {0};
	struct writer *w = NULL;
	int result = writer_create(path, &options, &w, e);
	if (result < 0) {
		return result;
	}
	result = put_start(w);
	if (result < 0) {
		error_errno(e, -result, "%s", path);
	}
	result = result < 0 ? result : put_all(w, items, n, e);
	result = result < 0 ? result : writer_finish(w, 0, -1, e);
	writer_free(w);
	if (result < 0) {
		remove(path);
	}
	return result;
}
