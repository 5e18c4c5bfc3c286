// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The kernel counts its kills in the cgroup of the victim: in the job's own, else in the one that
// the job shares. The limit that was to blame can be one of any cgroup above: that cgroup counts
// how often it was at its limit, and where that has not moved the machine itself had no memory
// left.

#include "record/source/out_of_memory.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "record/host/keyed.h"
#include "record/source/sink.h"
#include "trace/codec.h"

static bool open_in(struct host_file *f, int root_fd, const char *directory, const char *name)
{
	char path[PATH_MAX];
	return snprintf(path, sizeof(path), "%s/%s", directory, name) < (int)sizeof(path) &&
	       host_file_open(f, root_fd, path, NULL) == 0;
}

// The number behind a key, or of a file that holds nothing else.
static int64_t read_value(struct host_file *f, const char *key)
{
	struct cursor text;
	int64_t number;
	if (f->fd < 0 || host_file_read(f, &text) < 0) {
		return VALUE_MISSING;
	}
	if (key) {
		return keyed_parse(text, &key, 1, &number) == 1 ? number : VALUE_MISSING;
	}
	return cursor_i64(&text, &number) ? number : VALUE_MISSING;
}

static int64_t read_kills(struct out_of_memory *o)
{
	return read_value(&o->kills_file, "oom_kill");
}

int64_t out_of_memory_limit_hits(struct out_of_memory *o)
{
	return read_value(&o->hits_file, o->hits_key);
}

void out_of_memory_open(struct out_of_memory *o, int root_fd, const char *directory, int version,
	const struct cgroup_places *places)
{
	const struct cgroup_place *place = cgroup_place_of(places, CGROUP_MEMORY);
	*o = (struct out_of_memory){.kills_file = HOST_FILE_CLOSED,
		.hits_file = HOST_FILE_CLOSED,
		.shared = !directory,
		.hits_key = place->version == 2 ? "max" : NULL};
	if (!directory) {
		directory = place->path;
		version = place->version;
	}
	if (directory) {
		(void)open_in(&o->kills_file, root_fd, directory,
			version == 2 ? "memory.events" : "memory.oom_control");
	}
	if (cgroup_memory_limit(root_fd, places, &o->limit_bytes, &o->limit_directory) == 0 &&
		o->limit_directory) {
		(void)open_in(&o->hits_file, root_fd, o->limit_directory,
			place->version == 2 ? "memory.events" : "memory.failcnt");
	}
	o->kills = read_kills(o);
	o->hits = out_of_memory_limit_hits(o);
}

void out_of_memory_close(struct out_of_memory *o)
{
	host_file_close(&o->kills_file);
	host_file_close(&o->hits_file);
	free(o->limit_directory);
	o->limit_directory = NULL;
}

static void append_why(struct out_of_memory *o, struct text *t)
{
	int64_t hits = out_of_memory_limit_hits(o);
	char limit[32];
	if (hits == VALUE_MISSING || o->hits == VALUE_MISSING) {
		text_append_string(t, " for lack of memory");
	} else if (hits == o->hits) {
		text_append_string(t, ": the machine's memory was used up");
	} else {
		double bytes = (double)o->limit_bytes;
		text_format(t, " at the limit of %s, set by /%s",
			text_bytes_beside(limit, sizeof(limit), bytes, bytes), o->limit_directory);
	}
}

static void say_kills(
	struct out_of_memory *o, struct sink *sink, int64_t job, uint64_t now_ns, int64_t kills)
{
	struct text text = {0};
	if (o->shared) {
		text_format(&text,
			"the kernel killed %lld process%s in the cgroup that the "
			"job shares",
			(long long)kills, kills > 1 ? "es" : "");
	} else {
		text_format(
			&text, "the kernel killed %lld of the job's processes", (long long)kills);
	}
	append_why(o, &text);
	sink_event(sink, now_ns, o->shared ? "oom_kill_nearby" : "oom_kill", job, "%s",
		text.data ? text.data : "out of memory");
	text_done(&text);
}

int64_t out_of_memory_kills(
	struct out_of_memory *o, struct sink *sink, int64_t job, uint64_t now_ns)
{
	int64_t kills = read_kills(o);
	if (kills != VALUE_MISSING && o->kills != VALUE_MISSING && kills > o->kills) {
		say_kills(o, sink, job, now_ns, kills - o->kills);
	}
	o->kills = kills != VALUE_MISSING ? kills : o->kills;
	return kills;
}
