// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Whole disks as listed in /sys/block, including those that appear while the job runs.

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "machine/file.h"
#include "machine/procfs.h"
#include "record/sample/source.h"

enum {
	DISK_READ,
	DISK_WRITE,
	DISK_READS,
	DISK_WRITES,
	DISK_READ_TIME,
	DISK_WRITE_TIME,
	DISK_BUSY,
	DISK_QUEUE,
	DISK_IN_FLIGHT,
	DISK_DISCARDED,
	DISK_FLUSHES,
	N_DISK,
};
static const struct metric disk_metrics[N_DISK] = {
	[DISK_READ] = {"system.disk.io.read", METRIC_COUNTER, "By", 512,
		"Bytes read from the disk by all processes (/proc/diskstats)."},
	[DISK_WRITE] = {"system.disk.io.write", METRIC_COUNTER, "By", 512,
		"Bytes written to the disk by all processes (/proc/diskstats)."},
	[DISK_READS] = {"system.disk.operations.read", METRIC_COUNTER, "{operation}", 1,
		"Completed reads, after merging of neighbouring requests (/proc/diskstats)."},
	[DISK_WRITES] = {"system.disk.operations.write", METRIC_COUNTER, "{operation}", 1,
		"Completed writes, after merging of neighbouring requests (/proc/diskstats)."},
	[DISK_READ_TIME] = {"system.disk.operation_time.read", METRIC_COUNTER, "s", 0.001,
		"Time spent on reads; overlapping reads count separately (/proc/diskstats). "
		"Divided by system.disk.operations.read it is the mean latency."},
	[DISK_WRITE_TIME] = {"system.disk.operation_time.write", METRIC_COUNTER, "s", 0.001,
		"Time spent on writes; overlapping writes count separately (/proc/diskstats)."},
	[DISK_BUSY] = {"strain.disk.busy_time", METRIC_COUNTER, "s", 0.001,
		"Time with at least one request in flight. A disk that serves several requests "
		"at once is not saturated at 100 % (/proc/diskstats: io_ticks)."},
	[DISK_QUEUE] = {"strain.disk.queue_time", METRIC_COUNTER, "s", 0.001,
		"Time in flight, summed over requests: its rate is the mean queue length "
		"(/proc/diskstats: time_in_queue)."},
	[DISK_IN_FLIGHT] = {"strain.disk.in_flight", METRIC_GAUGE, "{operation}", 1,
		"Requests currently in flight (/proc/diskstats)."},
	[DISK_DISCARDED] = {"strain.disk.discarded", METRIC_COUNTER, "By", 512,
		"Bytes discarded (trimmed) (/proc/diskstats, Linux 4.18)."},
	[DISK_FLUSHES] = {"strain.disk.flushes", METRIC_COUNTER, "{operation}", 1,
		"Completed flushes of the disk's write cache (/proc/diskstats, Linux 5.5)."},
};

static int read_disks(void *state, struct sink *sink, uint64_t now_ns);

static const struct group groups[] = {
	{"io", ENTITY_DISK, disk_metrics, N_DISK, 100 * NS_PER_MS, read_disks, SHARED},
};

// Milliseconds that the kernel prints with 32 bits; we count on beyond that.
enum { WRAP_READ_TIME, WRAP_WRITE_TIME, WRAP_BUSY, WRAP_QUEUE, N_WRAPS };

struct disk {
	char name[40];
	bool ignored; // a partition or a loop device: remembered, so that /sys is read once
	bool present;
	bool seen; // in this reading
	int64_t entity; // 0: none yet
	struct stream *stream;
	int64_t last_ms[N_WRAPS];
	int64_t total_ms[N_WRAPS];
};

struct disk_source {
	int root_fd;
	int64_t host;
	struct host_file diskstats;
	struct disk *disks;
	size_t n_disks, capacity;
};

// Reads the first line of sys/block/DISK/FILE.
static bool read_attribute(int root_fd, const char *disk, const char *file, char *to, size_t size)
{
	char path[128];
	snprintf(path, sizeof(path), "sys/block/%s/%s", disk, file);
	return file_read_line(root_fd, path, to, size);
}

// Keeps the choice in brackets of "none [mq-deadline] kyber".
static void keep_chosen(char *choices)
{
	char *open = strchr(choices, '['), *close = open ? strchr(open, ']') : NULL;
	if (close) {
		memmove(choices, open + 1, (size_t)(close - open - 1));
		choices[close - open - 1] = '\0';
	}
}

// Whether it is on top of other block devices (device mapper, RAID), which count its bytes again.
static bool is_stacked(int root_fd, const char *disk)
{
	char path[128];
	snprintf(path, sizeof(path), "sys/block/%s/slaves", disk);
	return file_has_entries(root_fd, path);
}

static char *describe(int root_fd, const char *disk)
{
	struct text t = {0};
	char value[128];
	uint64_t number;
	text_format(&t, "{\"stacked\":%s", is_stacked(root_fd, disk) ? "true" : "false");
	if (read_attribute(root_fd, disk, "queue/rotational", value, sizeof(value))) {
		text_format(&t, ",\"rotational\":%s", value[0] == '1' ? "true" : "false");
	}
	struct cursor c = cursor_of(value, 0);
	if (read_attribute(root_fd, disk, "size", value, sizeof(value))) {
		c = cursor_of(value, strlen(value));
	}
	if (cursor_u64(&c, &number) && number < UINT64_MAX / 512) {
		text_format(&t, ",\"size_bytes\":%llu", (unsigned long long)number * 512);
	}
	if (read_attribute(root_fd, disk, "queue/scheduler", value, sizeof(value))) {
		keep_chosen(value);
		text_append_string(&t, ",\"scheduler\":");
		text_append_json_string(&t, value);
	}
	if (read_attribute(root_fd, disk, "device/model", value, sizeof(value))) {
		text_append_string(&t, ",\"model\":");
		text_append_json_string(&t, value);
	}
	text_append_string(&t, "}");
	return text_steal(&t);
}

static bool is_whole_disk(int root_fd, const char *name)
{
	static const char *const others[] = {"loop", "ram", "zram", "fd", "sr"};
	for (size_t i = 0; i < ARRAY_LENGTH(others); i++) {
		struct cursor c = cursor_of(name, strlen(name));
		uint64_t number;
		if (cursor_literal(&c, others[i]) && cursor_u64(&c, &number) && c.at == c.end) {
			return false;
		}
	}
	char path[128];
	snprintf(path, sizeof(path), "sys/block/%s", name);
	return faccessat(root_fd, path, F_OK, 0) == 0;
}

static struct disk *add_disk(struct disk_source *s, const char *name)
{
	void *disks = s->disks;
	if (array_reserve(&disks, &s->capacity, s->n_disks + 1, sizeof(*s->disks)) < 0) {
		return NULL;
	}
	s->disks = disks;
	struct disk *d = &s->disks[s->n_disks++];
	*d = (struct disk){.ignored = !is_whole_disk(s->root_fd, name)};
	snprintf(d->name, sizeof(d->name), "%s", name);
	return d;
}

// Finds the disk of a line. The kernel keeps their order, so the search begins after the last one.
static struct disk *find_disk(struct disk_source *s, struct cursor name, size_t expected)
{
	for (size_t i = 0; i < s->n_disks; i++) {
		struct disk *d = &s->disks[(expected + i) % s->n_disks];
		if (cursor_is(name, d->name)) {
			return d;
		}
	}
	char copy[sizeof(s->disks->name)];
	size_t length = (size_t)(name.end - name.at);
	if (length >= sizeof(copy) || memchr(name.at, '\0', length)) {
		return NULL;
	}
	for (size_t i = 0; i < length; i++) {
		copy[i] = name.at[i] == '/' ? '!' : name.at[i]; // /sys writes cciss/c0d0 with '!'
	}
	copy[length] = '\0';
	return add_disk(s, copy);
}

static void disk_appeared(struct disk_source *s, struct disk *d, struct sink *sink, uint64_t now_ns)
{
	_cleanup_free_ char *attributes = describe(s->root_fd, d->name);
	const struct sink_entity entity = {
		.kind = ENTITY_DISK,
		.key = d->name,
		.name = d->name,
		.parent = s->host,
		.first_ns = now_ns,
		.attributes = attributes,
	};
	// A disk that returns under its old name continues as the same entity.
	if (d->entity) {
		sink_entity_update(sink, d->entity, &entity);
	} else {
		d->entity = sink_entity(sink, &entity);
	}
	d->stream = sink_stream(sink, d->entity, &groups[0]);
	d->present = true;
	for (size_t i = 0; i < N_WRAPS; i++) {
		d->last_ms[i] = -1;
	}
}

static int64_t count_on(struct disk *d, int which, int64_t ms)
{
	int64_t last = d->last_ms[which];
	d->last_ms[which] = ms;
	if (ms == KEYED_ABSENT) {
		return VALUE_MISSING;
	}
	if (last < 0 && d->total_ms[which] == 0) {
		d->total_ms[which] = ms;
	} else if (last >= 0) {
		bool wrapped = ms < last && last <= UINT32_MAX;
		d->total_ms[which] += wrapped     ? ms + ((int64_t)1 << 32) - last
		                      : ms > last ? ms - last
		                                  : 0;
	}
	return d->total_ms[which];
}

static void put_row(
	struct disk *d, const struct disk_line *line, struct sink *sink, uint64_t now_ns)
{
	const int64_t values[N_DISK] = {
		[DISK_READ] = line->read_sectors,
		[DISK_WRITE] = line->write_sectors,
		[DISK_READS] = line->reads,
		[DISK_WRITES] = line->writes,
		[DISK_READ_TIME] = count_on(d, WRAP_READ_TIME, line->read_ms),
		[DISK_WRITE_TIME] = count_on(d, WRAP_WRITE_TIME, line->write_ms),
		[DISK_BUSY] = count_on(d, WRAP_BUSY, line->busy_ms),
		[DISK_QUEUE] = count_on(d, WRAP_QUEUE, line->queue_ms),
		[DISK_IN_FLIGHT] = line->in_flight,
		[DISK_DISCARDED] = line->discard_sectors,
		[DISK_FLUSHES] = line->flushes,
	};
	if (line->discard_sectors == KEYED_ABSENT) {
		sink_missing(sink, 0, &groups[0], DISK_DISCARDED,
			"this kernel does not count it; needs Linux 4.18");
	}
	if (line->flushes == KEYED_ABSENT) {
		sink_missing(sink, 0, &groups[0], DISK_FLUSHES,
			"this kernel does not count it; needs Linux 5.5");
	}
	stream_row(d->stream, now_ns, values);
}

static int read_disks(void *state, struct sink *sink, uint64_t now_ns)
{
	struct disk_source *s = state;
	struct cursor text, line;
	int r = host_file_read(&s->diskstats, &text);
	if (r < 0) {
		sink_missing_group(sink, 0, &groups[0], strerrordesc_np(-r));
		return r;
	}
	size_t expected = 0;
	while (cursor_line(&text, &line)) {
		struct disk_line values;
		struct disk *d = disk_line_parse(line, &values) < 0
		                         ? NULL
		                         : find_disk(s, values.name, expected);
		if (!d) {
			continue;
		}
		expected = (size_t)(d - s->disks) + 1;
		d->seen = true;
		if (!d->ignored) {
			if (!d->present) {
				disk_appeared(s, d, sink, now_ns);
			}
			put_row(d, &values, sink, now_ns);
		}
	}
	for (size_t i = 0; i < s->n_disks; i++) {
		struct disk *d = &s->disks[i];
		if (d->present && !d->seen) {
			sink_entity_end(sink, d->entity, now_ns, NULL);
			stream_close(take_pointer(d->stream));
			d->present = false;
		}
		d->seen = false;
	}
	return 0;
}

static void disk_close(void *state)
{
	struct disk_source *s = state;
	if (s) {
		host_file_close(&s->diskstats);
		free(s->disks);
		free(s);
	}
}

static int disk_open(
	const struct source_context *context, struct sink *sink, void **ret_state, struct error *e)
{
	struct disk_source *s = calloc(1, sizeof(*s));
	if (!s) {
		return error_errno(e, ENOMEM, "disks");
	}
	s->root_fd = context->root_fd;
	s->host = context->host;
	s->diskstats = HOST_FILE_CLOSED;
	int r = host_file_open(&s->diskstats, context->root_fd, "proc/diskstats", e);
	if (r == 0) {
		// Existing disks are announced before the job starts.
		r = read_disks(s, sink, clock_monotonic_ns());
		if (r < 0) {
			error_errno(e, -r, "/proc/diskstats");
		}
	}
	bool any = false;
	for (size_t i = 0; i < s->n_disks; i++) {
		any |= s->disks[i].present;
	}
	if (r == 0 && !any && faccessat(s->root_fd, "sys/block", F_OK, 0) < 0) {
		r = error_errno(e, errno, "/sys/block, which tells disks from partitions");
	}
	if (r < 0) {
		disk_close(s);
		return r;
	}
	*ret_state = s;
	return 0;
}

const struct source source_disk = {
	.name = "disks",
	.help = "traffic and queues of the disks, by all processes",
	.lane = LANE_TICK,
	.groups = groups,
	.n_groups = ARRAY_LENGTH(groups),
	.open = disk_open,
	.close = disk_close,
};
