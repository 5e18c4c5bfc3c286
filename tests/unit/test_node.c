// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Readings that the recorders of a job on a machine have in common: who reads, what the others
// take, and what happens when the one that reads stops, dies, or the file is damaged.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "record/sample/feed.h"
#include "record/sample/node.h"
#include "record/sample/source.h"

static const size_t columns[] = {2, 3};
static char folder[64];

static struct node *join_as(const char *run, const char *job, uint64_t version)
{
	struct node *n = NULL;
	struct error e = {0};
	const struct node_config config = {folder, job, run, columns, 2, version};
	assert_int_equal(node_join(&config, &n, &e), 0);
	return n;
}

static struct node *join(const char *run)
{
	return join_as(run, "42.0", 7);
}

static void share(struct node *n, uint64_t t_ns, int64_t value)
{
	struct node_rows rows = {0};
	const int64_t values[] = {value, value + 1};
	node_rows_begin(&rows, 2);
	node_rows_add(&rows, 11, t_ns, values);
	node_rows_add(&rows, 12, t_ns, values);
	node_share(n, 0, t_ns, &rows);
	node_rows_done(&rows);
}

static unsigned files(void)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/strain-%u", folder, (unsigned)geteuid());
	DIR *d = opendir(path);
	unsigned n = 0;
	for (struct dirent *entry = d ? readdir(d) : NULL; entry; entry = readdir(d)) {
		n += entry->d_name[0] != '.';
	}
	if (d) {
		closedir(d);
	}
	return n;
}

static int file_of(void)
{
	char path[128], name[512] = "";
	snprintf(path, sizeof(path), "%s/strain-%u", folder, (unsigned)geteuid());
	DIR *d = opendir(path);
	assert_non_null(d);
	for (struct dirent *entry = readdir(d); entry; entry = readdir(d)) {
		if (entry->d_name[0] != '.') {
			snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		}
	}
	closedir(d);
	int fd = open(name, O_RDWR);
	assert_true(fd >= 0);
	return fd;
}

static void one_reads_and_the_next_takes_over(void **state)
{
	(void)state;
	struct node *first = join("a.strain"), *second = join("b\033[2J.strain");
	struct node *third = join("c.strain");
	char name[256];
	assert_true(node_reads(first));
	assert_true(node_has_others(first));
	assert_false(node_reads(second));
	assert_false(node_elect(second));
	node_reader(second, name, sizeof(name));
	assert_string_equal(name, "a.strain");
	node_stop_reading(first); // it still writes its run
	assert_false(node_reads(first));
	assert_true(node_elect(second));
	assert_false(node_elect(first));
	node_leave(first);
	assert_int_equal(files(), 1); // the others still use it
	assert_false(node_elect(second)); // only once
	assert_false(node_elect(third));
	node_reader(third, name, sizeof(name));
	assert_null(strchr(name, '\033'));
	node_leave(second);
	assert_false(node_has_others(third));
	node_leave(third);
	assert_int_equal(files(), 0);
}

static void jobs_and_versions_are_apart(void **state)
{
	(void)state;
	struct node *one = join_as("a", "1", 7), *two = join_as("b", "2", 7);
	struct node *three = join_as("c", "1", 8);
	assert_true(node_reads(one) && node_reads(two) && node_reads(three));
	node_leave(one);
	node_leave(two);
	node_leave(three);
	assert_int_equal(files(), 0);
}

static void files_of_killed_recorders_are_removed(void **state)
{
	(void)state;
	char path[128];
	struct node *lives = join_as("a", "1", 7);
	snprintf(path, sizeof(path), "%s/strain-%u/job-killed", folder, (unsigned)geteuid());
	int fd = open(path, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(files(), 2);
	struct node *one = join_as("b", "2", 7);
	assert_int_equal(files(), 2); // those of the two that live
	assert_int_equal(access(path, F_OK), -1);
	node_leave(one);
	node_leave(lives);
	assert_int_equal(files(), 0);
}

static void a_reading_is_taken_once(void **state)
{
	(void)state;
	struct node *reads = join("a"), *takes = join("b");
	struct node_rows rows = {0};
	const uint64_t second = NS_PER_S;
	assert_int_equal(node_take(takes, 0, 10 * second, second, &rows), NODE_OVERDUE);
	share(reads, 10 * second, 5);
	assert_int_equal(node_take(takes, 0, 10 * second + 1, second, &rows), NODE_NEW);
	assert_int_equal(rows.n, 2);
	assert_int_equal(rows.cells[0], 11);
	assert_int_equal(rows.cells[1], 10 * second);
	assert_int_equal(rows.cells[3], 6);
	assert_int_equal(rows.cells[4], 12);
	assert_int_equal(node_take(takes, 0, 10 * second + 2, second, &rows), NODE_KNOWN);
	// within the two seconds in which it must be replaced
	assert_int_equal(node_take(takes, 0, 12 * second, second, &rows), NODE_OVERDUE);
	share(reads, 12 * second, 6);
	assert_int_equal(node_take(takes, 0, 12 * second, second, &rows), NODE_NEW);
	assert_int_equal(node_take(takes, 1, 12 * second, second, &rows), NODE_OVERDUE);
	node_rows_done(&rows);
	node_leave(reads);
	node_leave(takes);
}

// Damage makes recorders read for themselves.
static void damage_is_overdue(void **state)
{
	(void)state;
	struct node *reads = join("a"), *takes = join("b");
	struct node_rows rows = {0};
	int fd = file_of();
	const uint64_t t = 10 * NS_PER_S;
	for (unsigned at = 0; at < 64; at++) { // any byte of the slot
		share(reads, t + at, 5);
		unsigned char byte;
		assert_int_equal(pread(fd, &byte, 1, 4096 + at), 1);
		byte ^= 0x81;
		assert_int_equal(pwrite(fd, &byte, 1, 4096 + at), 1);
		assert_int_equal(node_take(takes, 0, t + at, NS_PER_S, &rows), NODE_OVERDUE);
	}
	struct node_rows later = {0};
	node_rows_begin(&later, 2);
	node_rows_add(&later, 11, t * 1000, (const int64_t[]){1, 2}); // would hide all later ones
	node_share(reads, 0, t, &later);
	node_rows_done(&later);
	assert_int_equal(node_take(takes, 0, t, NS_PER_S, &rows), NODE_OVERDUE);
	share(reads, t + NS_PER_S * 3600, 5); // a time to come
	assert_int_equal(node_take(takes, 0, t, NS_PER_S, &rows), NODE_OVERDUE);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(node_take(takes, 0, t, NS_PER_S, &rows), NODE_OVERDUE);
	char name[64];
	node_reader(takes, name, sizeof(name));
	assert_string_equal(name, "");
	share(reads, t, 5);
	assert_int_equal(node_take(takes, 0, t, NS_PER_S, &rows), NODE_NEW);
	close(fd);
	node_rows_done(&rows);
	node_leave(reads);
	node_leave(takes);
}

static void a_folder_of_others_is_not_used(void **state)
{
	(void)state;
	char path[128];
	struct node *n = NULL;
	struct error e = {0};
	snprintf(path, sizeof(path), "%s/strain-%u", folder, (unsigned)geteuid());
	rmdir(path);
	const struct node_config config = {folder, "1", "a", columns, 2, 7};
	assert_int_equal(symlink("/tmp", path), 0);
	assert_true(node_join(&config, &n, &e) < 0);
	assert_null(n);
	assert_true(strstr(e.text, path) != NULL);
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chmod(path, 0777), 0);
	assert_true(node_join(&config, &n, &e) < 0);
	rmdir(path);
}

// Rows --------------------------------------------------------------------------------------------

static int read_nothing(void *state, struct sink *sink, uint64_t now_ns)
{
	(void)state;
	(void)sink;
	(void)now_ns;
	return 0;
}

static const struct metric metrics[] = {
	{"test.counter", METRIC_COUNTER, "1", 1, "A counter."},
	{"test.gauge", METRIC_GAUGE, "1", 1, "A gauge."},
};
static const struct group of_disks = {
	"disk", ENTITY_DISK, metrics, 2, NS_PER_S, read_nothing, SHARED};
static const struct group of_host = {
	"host", ENTITY_HOST, metrics, 2, NS_PER_S, read_nothing, SHARED};

struct recording {
	struct registry registry;
	struct feed *feed;
	struct sink *sink;
	struct stream *disks[2], *host;
};

static void record(struct recording *r, unsigned n_disks)
{
	static const char *const keys[] = {"8:0", "8:16"};
	*r = (struct recording){0};
	assert_int_equal(registry_add(&r->registry, "test", &of_disks), 0);
	assert_int_equal(registry_add(&r->registry, "test", &of_host), 0);
	assert_int_equal(feed_new((size_t)1 << 20, &r->feed), 0);
	assert_int_equal(sink_new(&r->registry, r->feed, 0, &r->sink), 0);
	for (unsigned i = 0; i < n_disks; i++) {
		// other ids than in another recorder
		int64_t id = sink_entity(r->sink,
			&(struct sink_entity){
				.kind = ENTITY_DISK, .key = keys[n_disks - 1 - i], .name = "disk"});
		r->disks[n_disks - 1 - i] = sink_stream(r->sink, id, &of_disks);
	}
	r->host = sink_stream(r->sink, 1, &of_host);
}

static void put(struct stream *stream, uint64_t t_ns, int64_t counter, int64_t gauge)
{
	stream_row(stream, t_ns, (const int64_t[]){counter, gauge});
}

// The values that reached the feed, of the group with the first metric, of one column.
static size_t take_column(struct recording *r, size_t column, uint32_t first_metric, int64_t *ret)
{
	size_t n = 0;
	sink_flush(r->sink);
	struct item *item = feed_take(r->feed, 0);
	for (struct item *at = item; at; at = at->next) {
		for (uint32_t i = 0; at->kind == ITEM_BLOCK && i < at->block.n_rows; i++) {
			if (at->block.metric_ids[0] == first_metric) {
				ret[n++] = at->block.columns[column][i];
			}
		}
	}
	while (item) {
		struct item *next = item->next;
		item_free(item);
		item = next;
	}
	return n;
}

static void done(struct recording *r)
{
	sink_free(r->sink);
	feed_free(r->feed);
	registry_done(&r->registry);
}

static void rows_of_others_are_as_read(void **state)
{
	(void)state;
	struct recording one, other;
	struct node_rows rows = {0};
	uint64_t foreign;
	int64_t values[16];
	record(&one, 1);
	record(&other, 1);
	put(one.host, 1000000, 100, 1);
	sink_collect(other.sink, &of_host, &rows);
	put(other.host, 2000000, 130, 2);
	put(other.disks[0], 2000000, 1, 1); // another group: not collected
	sink_collect_end(other.sink);
	put(other.host, 2500000, 140, 2);
	assert_int_equal(rows.n, 1);
	assert_true(sink_put_rows(one.sink, &of_host, &rows, &foreign));
	assert_true(sink_put_rows(one.sink, &of_host, &rows, &foreign)); // older: no row
	put(one.host, 1500000, 120, 3); // so is one of its own, of a driver's buffer
	put(one.host, 3000000, 129, 4); // idle time went back by a tick
	put(one.host, 4000000, 20, 5); // a device that was reset
	assert_int_equal(take_column(&one, 0, 3, values), 4);
	const int64_t counters[] = {100, 130, 130, 20};
	assert_memory_equal(values, counters, sizeof(counters));
	done(&one);
	done(&other);
	node_rows_done(&rows);
}

// A driver has no new sample of a GPU at each reading.
static void what_was_read_without_a_row_is_covered(void **state)
{
	(void)state;
	struct recording one, other;
	struct node_rows rows = {0};
	uint64_t foreign;
	int64_t values[16];
	record(&one, 2);
	record(&other, 2);
	for (unsigned i = 0; i < 2; i++) {
		put(one.disks[i], 1000000, 1, 1);
		put(other.disks[i], 1000000, 1, 1);
	}
	sink_collect(other.sink, &of_disks, &rows);
	put(other.disks[1], 2000000, 2, 2);
	sink_collect_end(other.sink);
	assert_true(sink_put_rows(one.sink, &of_disks, &rows, &foreign));
	assert_int_equal(foreign, 0);
	assert_int_equal(take_column(&one, 0, 1, values), 3);
	done(&one);
	done(&other);
	node_rows_done(&rows);
}

// Part of a GPU: what another recorder reads is another part.
static void an_entity_of_its_own_is_not_shared(void **state)
{
	(void)state;
	struct recording one, other;
	struct node_rows rows = {0};
	uint64_t foreign;
	record(&one, 0);
	record(&other, 1);
	int64_t id = sink_entity(
		one.sink, &(struct sink_entity){
				  .kind = ENTITY_DISK, .key = "8:0", .name = "disk", .own = true});
	put(sink_stream(one.sink, id, &of_disks), 1000000, 1, 1);
	sink_collect(other.sink, &of_disks, &rows);
	put(other.disks[0], 2000000, 1, 1);
	sink_collect_end(other.sink);
	assert_false(sink_put_rows(one.sink, &of_disks, &rows, &foreign));
	done(&one);
	done(&other);
	node_rows_done(&rows);
}

static void what_another_does_not_see_is_read_here(void **state)
{
	(void)state;
	struct recording one, other;
	struct node_rows rows = {0};
	uint64_t foreign = 0;
	int64_t values[16];
	record(&one, 2);
	record(&other, 1);
	put(one.disks[0], 1000000, 1, 1);
	put(one.disks[1], 1000000, 1, 1);
	sink_collect(other.sink, &of_disks, &rows);
	put(other.disks[0], 2000000, 1, 1);
	sink_collect_end(other.sink);
	assert_false(sink_put_rows(one.sink, &of_disks, &rows, &foreign));
	// and what only another sees is told
	sink_collect(one.sink, &of_disks, &rows);
	put(one.disks[0], 3000000, 1, 1);
	put(one.disks[1], 3000000, 1, 1);
	sink_collect_end(one.sink);
	put(other.disks[0], 2500000, 1, 1);
	assert_true(sink_put_rows(other.sink, &of_disks, &rows, &foreign));
	assert_true(foreign != 0);
	uint64_t before = foreign;
	sink_collect(one.sink, &of_disks, &rows);
	put(one.disks[0], 4000000, 1, 1);
	put(one.disks[1], 4000000, 1, 1);
	put(one.disks[1], 4500000, 1, 1); // twice in a reading: it is still the same disk
	sink_collect_end(one.sink);
	assert_true(sink_put_rows(other.sink, &of_disks, &rows, &foreign));
	assert_true(foreign == before);
	assert_int_equal(take_column(&other, 0, 1, values), 4);
	done(&one);
	done(&other);
	node_rows_done(&rows);
}

int main(void)
{
	snprintf(folder, sizeof(folder), "/tmp/strain-node-XXXXXX");
	assert_non_null(mkdtemp(folder));
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_reads_and_the_next_takes_over),
		cmocka_unit_test(jobs_and_versions_are_apart),
		cmocka_unit_test(files_of_killed_recorders_are_removed),
		cmocka_unit_test(a_reading_is_taken_once),
		cmocka_unit_test(damage_is_overdue),
		cmocka_unit_test(rows_of_others_are_as_read),
		cmocka_unit_test(what_was_read_without_a_row_is_covered),
		cmocka_unit_test(an_entity_of_its_own_is_not_shared),
		cmocka_unit_test(what_another_does_not_see_is_read_here),
		cmocka_unit_test(a_folder_of_others_is_not_used),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	char path[128];
	snprintf(path, sizeof(path), "%s/strain-%u", folder, (unsigned)geteuid());
	rmdir(path);
	rmdir(folder);
	return failed;
}
