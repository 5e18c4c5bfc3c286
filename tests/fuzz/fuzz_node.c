// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The file through which recorders of one job share readings: any header and slot, and any rows
// that another recorder may write.

#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "record/sample/feed.h"
#include "record/sample/node.h"
#include "record/sample/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { COLUMNS = 2, HEADER_BYTES = 4096, SLOT_BYTES = 64 * 1024, ROWS_MOST = 64 };

static const size_t columns[] = {COLUMNS};
static const struct metric metrics[COLUMNS] = {
	{"test.counter", METRIC_COUNTER, "1", 1, "A counter."},
	{"test.gauge", METRIC_GAUGE, "1", 1, "A gauge."},
};

static int read_nothing(void *state, struct sink *sink, uint64_t now_ns)
{
	(void)state;
	(void)sink;
	(void)now_ns;
	return 0;
}

static const struct group group = {
	"disk", ENTITY_DISK, metrics, COLUMNS, NS_PER_S, read_nothing, SHARED};

static struct node *reads, *takes;
static int file = -1;
static char folder[64];

static int open_file(void)
{
	char path[512] = "", below[128];
	snprintf(below, sizeof(below), "%s/strain-%u", folder, (unsigned)geteuid());
	DIR *names = opendir(below);
	struct dirent *entry;
	while (names && (entry = readdir(names))) {
		if (entry->d_name[0] != '.') {
			snprintf(path, sizeof(path), "%s/%s", below, entry->d_name);
		}
	}
	if (names) {
		closedir(names);
	}
	return open(path, O_RDWR | O_CLOEXEC);
}

static void leave(void)
{
	char below[128];
	close(file);
	node_leave(reads);
	node_leave(takes);
	snprintf(below, sizeof(below), "%s/strain-%u", folder, (unsigned)geteuid());
	rmdir(below);
	rmdir(folder);
}

static void start(void)
{
	struct node_config config = {folder, "fuzz", "reads", columns, 1, 1};
	snprintf(folder, sizeof(folder), "/tmp/strain-fuzz-node-XXXXXX");
	if (!mkdtemp(folder) || node_join(&config, &reads, NULL) < 0 ||
		node_join(&config, &takes, NULL) < 0 || (file = open_file()) < 0) {
		abort();
	}
	atexit(leave);
}

static void take(struct sink *sink, uint64_t now_ns)
{
	struct node_rows rows = {0};
	uint64_t foreign;
	char name[64];
	node_reader(takes, name, sizeof(name));
	if (node_take(takes, 0, now_ns, NS_PER_S, &rows) == NODE_NEW) {
		(void)sink_put_rows(sink, &group, &rows, &foreign);
	}
	node_rows_done(&rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint64_t now_ns = NS_PER_S;
	struct registry registry = {0};
	struct feed *feed = NULL;
	struct sink *sink = NULL;
	if (!reads) {
		start();
	}
	now_ns += NS_PER_S;
	if (registry_add(&registry, "test", &group) < 0 || feed_new((size_t)1 << 20, &feed) < 0 ||
		sink_new(&registry, feed, 0, &sink) < 0) {
		abort();
	}
	int64_t id = sink_entity(
		sink, &(struct sink_entity){.kind = ENTITY_DISK, .key = "8:0", .name = "sda"});
	struct stream *stream = sink_stream(sink, id, &group);
	stream_row(stream, now_ns / 2, (const int64_t[COLUMNS]){7, 8});
	// the file as it is
	size_t bytes = size < SLOT_BYTES ? size : SLOT_BYTES;
	(void)!pwrite(file, data, bytes, HEADER_BYTES);
	(void)!pwrite(file, data, bytes < HEADER_BYTES ? bytes : HEADER_BYTES, 0);
	take(sink, now_ns);
	// rows as another recorder writes them
	struct node_rows rows = {0};
	node_rows_begin(&rows, COLUMNS);
	for (size_t i = 0; i < ROWS_MOST && (i + 1) * 32 <= size; i++) {
		int64_t row[2 + COLUMNS];
		memcpy(row, data + i * 32, sizeof(row));
		node_rows_add(&rows, row[0], (uint64_t)row[1], row + 2);
	}
	node_share(reads, 0, now_ns, &rows);
	node_rows_done(&rows);
	take(sink, now_ns);
	sink_free(sink);
	feed_free(feed);
	registry_done(&registry);
	return 0;
}
