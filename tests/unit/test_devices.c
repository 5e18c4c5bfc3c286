// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What the machine's own files say, and sources on a machine that changes while they read it: a
// made up root whose files are written anew between readings.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "machine/cgroupfs.h"
#include "machine/procfs.h"
#include "machine/machine.h"
#include "machine/cgroup.h"
#include "record/sample/feed.h"
#include "record/sample/source.h"

extern const struct source source_disk;
extern const struct source source_network;
extern const struct source source_cgroup;
extern const struct source source_pressure;

static struct cursor view(const char *text)
{
	return cursor_of(text, strlen(text));
}

// Parsers ---------------------------------------------------------------------------------------

static void test_stat_of_the_machine(void **state)
{
	(void)state;
	struct system_stat stat;
	assert_int_equal(
		system_stat_parse(view("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 9 9 9 9\nintr 5 0\n"
				       "ctxt 77\nprocesses 88\nprocs_running 2\n"
				       "procs_blocked 1\n"),
			&stat),
		0);
	assert_int_equal(stat.ticks[CPU_USER], 1);
	assert_int_equal(stat.ticks[CPU_IOWAIT], 5);
	assert_int_equal(stat.ticks[CPU_STEAL], 8);
	assert_int_equal(stat.context_switches, 77);
	assert_int_equal(stat.processes, 88);
	assert_int_equal(stat.running, 2);
	assert_int_equal(stat.blocked, 1);
	// Linux 2.4 had four modes: what is not there is absent.
	assert_int_equal(system_stat_parse(view("cpu  1 2 3 4\n"), &stat), 0);
	assert_true(stat.ticks[CPU_IOWAIT] == KEYED_ABSENT);
	assert_true(stat.context_switches == KEYED_ABSENT);
	assert_int_equal(system_stat_parse(view("cpu  1 2 3\n"), &stat), -EBADMSG);
	assert_int_equal(system_stat_parse(view("cpu0 1 2 3 4\n"), &stat), -EBADMSG);
}

static void test_lines_of_disks_and_interfaces(void **state)
{
	(void)state;
	struct disk_line disk;
	assert_int_equal(disk_line_parse(view(" 8 0 sda 1 2 3 4 5 6 7 8 9 10 11"), &disk), 0);
	assert_true(cursor_is(disk.name, "sda"));
	assert_int_equal(disk.read_sectors, 3);
	assert_int_equal(disk.write_ms, 8);
	assert_int_equal(disk.queue_ms, 11);
	assert_true(disk.discard_sectors == KEYED_ABSENT);
	assert_int_equal(
		disk_line_parse(view("8 0 sda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17"), &disk),
		0);
	assert_int_equal(disk.discard_sectors, 14);
	assert_int_equal(disk.flushes, 16);
	assert_int_equal(disk_line_parse(view("8 1 sda1 1 2 3 4"), &disk), -EBADMSG);
	struct interface_line interface;
	assert_int_equal(interface_line_parse(
				 view("  eth0:1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16"), &interface),
		0);
	assert_true(cursor_is(interface.name, "eth0"));
	assert_int_equal(interface.receive_bytes, 1);
	assert_int_equal(interface.receive_dropped, 4);
	assert_int_equal(interface.transmit_bytes, 9);
	assert_int_equal(interface.transmit_dropped, 12);
	assert_int_equal(interface_line_parse(view("eth0: 1 2 3"), &interface), -EBADMSG);
	assert_int_equal(interface_line_parse(view(" face |bytes packets"), &interface), -EBADMSG);
}

static void test_pressure(void **state)
{
	(void)state;
	struct pressure p;
	assert_int_equal(
		pressure_parse(view("some avg10=1.00 total=12\nfull avg10=0.00 total=3\n"), &p), 0);
	assert_int_equal(p.some_us, 12);
	assert_int_equal(p.full_us, 3);
	assert_int_equal(pressure_parse(view("some avg10=1.00 total=12\n"), &p), 0);
	assert_true(p.full_us == KEYED_ABSENT);
	assert_int_equal(pressure_parse(view("some avg10=1.00 total=\n"), &p), -EBADMSG);
	assert_int_equal(pressure_parse(view(""), &p), -EBADMSG);
	assert_non_null(strstr(pressure_reason(EOPNOTSUPP), "psi=1"));
	assert_non_null(strstr(pressure_reason(ENOENT), "psi=1"));
}

static void test_lists_of_cpus(void **state)
{
	(void)state;
	assert_int_equal(procfs_list_count(view("0-3,8,10-11\n")), 7);
	assert_int_equal(procfs_list_count(view("5")), 1);
	assert_int_equal(procfs_list_count(view("")), 0);
	assert_int_equal(procfs_list_count(view("3-1")), 0);
	assert_int_equal(procfs_list_count(view("0-99999999999")), 0);
}

static void test_io_of_a_cgroup(void **state)
{
	(void)state;
	struct cursor text = view(
		"\n259:0 rbytes=10 wbytes=20 rios=3 wios=4 dbytes=5 dios=6\n8:0 \n");
	struct iostat_line line;
	assert_true(procfs_next_iostat(&text, &line));
	assert_true(cursor_is(line.device, "259:0"));
	assert_int_equal(line.read_bytes, 10);
	assert_int_equal(line.write_bytes, 20);
	assert_int_equal(line.reads, 3);
	assert_int_equal(line.writes, 4);
	assert_true(procfs_next_iostat(&text, &line));
	assert_int_equal(line.read_bytes, 0);
	assert_false(procfs_next_iostat(&text, &line));
}

static void expect_place(const char *cgroups, const char *mounts, enum cgroup_controller c,
	int version, const char *path)
{
	struct cgroup_places places;
	cgroup_places_parse(view(cgroups), view(mounts), &places);
	const struct cgroup_place *place = cgroup_place_of(&places, c);
	assert_int_equal(place->version, version);
	if (version) {
		assert_string_equal(place->path, path);
	}
	cgroup_places_done(&places);
}

static void test_places_of_cgroups(void **state)
{
	(void)state;
	static const char v2[] = "30 23 0:26 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n";
	static const char v1[] = "33 25 0:28 / /cgroup/memory rw - cgroup cgroup rw,memory\n"
				 "34 25 0:29 / /cgroup/cpu,cpuacct rw - cgroup x rw,cpu,cpuacct\n";
	expect_place("0::/a/b\n", v2, CGROUP_MEMORY, 2, "sys/fs/cgroup/a/b");
	expect_place("0::/\n", v2, CGROUP_MEMORY, 2, "sys/fs/cgroup");
	expect_place("4:memory:/j\n3:cpu,cpuacct:/k\n", v1, CGROUP_MEMORY, 1, "cgroup/memory/j");
	expect_place("4:memory:/j\n3:cpu,cpuacct:/k\n", v1, CGROUP_CPU, 1, "cgroup/cpu,cpuacct/k");
	expect_place("4:memory:/j\n", v1, CGROUP_IO, 0, NULL);
	expect_place("4:memory:/j\n", "", CGROUP_MEMORY, 0, NULL);
	// A container with the host's names, whose own cgroup is what is mounted.
	expect_place("0::/docker/77/x\n",
		"30 23 0:26 /docker/77 /sys/fs/cgroup rw - cgroup2 c rw\n", CGROUP_CPU, 2,
		"sys/fs/cgroup/x");
	expect_place("0::/docker/88\n", "30 23 0:26 /docker/77 /sys/fs/cgroup rw - cgroup2 c rw\n",
		CGROUP_CPU, 2, "sys/fs/cgroup");
	// Names from outside of a cgroup namespace lead nowhere.
	expect_place("0::/../../x\n", v2, CGROUP_CPU, 0, NULL);
	// Blanks are escaped.
	expect_place("0::/a\n", "30 23 0:26 / /sys/a\\040b rw - cgroup2 c rw\n", CGROUP_CPU, 2,
		"sys/a b/a");
}

// In a cgroup namespace with the mounts from outside of it: the cgroup is somewhere below them, not
// what they show.
static void test_places_in_a_cgroup_namespace(void **state)
{
	(void)state;
	static const char outside[] = "33 25 0:28 /../.. /sys/fs/cgroup/memory rw - cgroup cgroup "
				      "rw,memory\n";
	static const char both[] =
		"33 25 0:28 /../.. /sys/fs/cgroup/memory rw - cgroup c rw,memory\n"
		"40 25 0:28 / /sys/own rw - cgroup cgroup rw,memory\n"
		"41 25 0:28 /.. /sys/above rw - cgroup cgroup rw,memory\n";
	struct cgroup_places places;
	expect_place("4:memory:/\n", outside, CGROUP_MEMORY, 0, NULL);
	expect_place("4:memory:/a\n", both, CGROUP_MEMORY, 1, "sys/own/a");
	cgroup_places_parse(view("4:memory:/\n"), view(outside), &places);
	assert_true(cgroup_places_hidden(&places));
	cgroup_places_done(&places);
	cgroup_places_parse(view("4:memory:/\n"), view(both), &places);
	assert_false(cgroup_places_hidden(&places));
	cgroup_places_done(&places);
	// Of mounts that fit, the last is on top; one that the name is below fits best.
	expect_place("0::/job/x\n",
		"30 23 0:26 /job /a rw - cgroup2 c rw\n31 23 0:26 /job /b rw - cgroup2 c rw\n"
		"32 23 0:26 /other /c rw - cgroup2 c rw\n",
		CGROUP_CPU, 2, "b/x");
}

// A machine that changes ------------------------------------------------------------------------

struct run {
	char root[64];
	struct registry registry;
	struct feed *feed;
	struct sink *sink;
	struct source_context context;
	void *source;
	// What the last reading gave.
	size_t entities, ended, missing, rows;
	char event[512];
	int64_t last[64]; // of the last row
};

static void write_text(struct run *r, const char *path, const char *text)
{
	char full[512];
	snprintf(full, sizeof(full), "%s/%s", r->root, path);
	for (char *slash = full + strlen(r->root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		(void)mkdir(full, 0755);
		*slash = '/';
	}
	// The same inode, as the kernel's: sources keep their files open.
	_cleanup_close_ int fd = open(full, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static int set_up(void **state)
{
	struct run *r = calloc(1, sizeof(*r));
	snprintf(r->root, sizeof(r->root), "/tmp/strain-root-XXXXXX");
	assert_non_null(mkdtemp(r->root));
	r->context = (struct source_context){
		.root_fd = open(r->root, O_PATH | O_DIRECTORY | O_CLOEXEC),
		.captured = true,
		.host = 1,
		.job = 2,
		.start_ns = clock_monotonic_ns(),
	};
	r->registry.last_entity = 2;
	assert_int_equal(feed_new((size_t)1 << 20, &r->feed), 0);
	assert_int_equal(sink_new(&r->registry, r->feed, r->context.start_ns, &r->sink), 0);
	*state = r;
	return 0;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
	(void)status;
	(void)kind;
	(void)walk;
	return remove(path);
}

static int tear_down(void **state)
{
	struct run *r = *state;
	sink_free(r->sink);
	feed_free(r->feed);
	registry_done(&r->registry);
	close(r->context.root_fd);
	nftw(r->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(r);
	return 0;
}

static void drain(struct run *r)
{
	r->entities = r->ended = r->missing = r->rows = 0;
	r->event[0] = '\0';
	sink_flush(r->sink);
	for (struct item *item = feed_take(r->feed, 0), *next; item; item = next) {
		next = item->next;
		r->entities += item->kind == ITEM_ENTITY;
		r->ended += item->kind == ITEM_ENTITY_END;
		r->missing += item->kind == ITEM_MISSING;
		if (item->kind == ITEM_EVENT) {
			snprintf(r->event, sizeof(r->event), "%s: %s", item->event, item->text);
		}
		if (item->kind == ITEM_BLOCK) {
			r->rows += item->block.n_rows;
			for (size_t i = 0; i < item->block.n_columns; i++) {
				r->last[i] = item->block.columns[i][item->block.n_rows - 1];
			}
		}
		item_free(item);
	}
}

static void open_source(struct run *r, const struct source *source)
{
	struct error e = {0};
	for (size_t g = 0; g < source->n_groups; g++) {
		assert_int_equal(registry_add(&r->registry, source->name, &source->groups[g]), 0);
	}
	if (source->open(&r->context, r->sink, &r->source, &e) < 0) {
		fail_msg("%s", e.text);
	}
	drain(r);
}

static void read_group(struct run *r, const struct source *source, size_t group)
{
	assert_int_equal(source->groups[group].read(r->source, r->sink, clock_monotonic_ns()), 0);
	drain(r);
}

static void test_disks_come_and_go(void **state)
{
	enum { READ, WRITE, BUSY = 6 };
	struct run *r = *state;
	write_text(r, "sys/block/sda/size", "100\n");
	write_text(r, "sys/block/loop0/size", "100\n");
	write_text(r, "proc/diskstats",
		"8 0 sda 1 0 8 1 1 0 16 1 0 4294967000 7\n8 1 sda1 1 0 8 1 1 0 16 1 0 5 7\n"
		"7 0 loop0 9 0 9 9 9 0 9 9 9 9 9\n");
	open_source(r, &source_disk);
	assert_int_equal(r->entities, 1); // no partition, no loop device
	assert_int_equal(r->rows, 1);
	assert_int_equal(r->last[READ], 8);
	assert_int_equal(r->last[WRITE], 16);
	assert_int_equal(r->last[BUSY], 4294967000);

	// The milliseconds wrap at 32 bits; the count goes on.
	write_text(r, "proc/diskstats", "8 0 sda 1 0 9 1 1 0 17 1 0 704 7\n");
	read_group(r, &source_disk, 0);
	assert_int_equal(r->last[READ], 9);
	assert_int_equal(r->last[BUSY], 4294968000);

	write_text(r, "sys/block/sdb/size", "100\n");
	write_text(r, "proc/diskstats",
		"8 0 sda 1 0 9 1 1 0 17 1 0 704 7\n8 16 sdb 1 0 5 1 1 0 6 1 0 7 8\n");
	read_group(r, &source_disk, 0);
	assert_int_equal(r->entities, 1);
	assert_int_equal(r->rows, 2);

	write_text(r, "proc/diskstats", "8 0 sda 1 0 9 1 1 0 17 1 0 704 7\n");
	read_group(r, &source_disk, 0);
	assert_int_equal(r->ended, 1);
	assert_int_equal(r->rows, 1);

	// It comes back from zero under its name: no jump.
	write_text(r, "proc/diskstats",
		"8 16 sdb 0 0 1 0 0 0 0 0 0 2 3\n8 0 sda 1 0 9 1 1 0 17 1 0 704 7\n");
	read_group(r, &source_disk, 0);
	assert_int_equal(r->entities, 1);
	assert_int_equal(r->rows, 2);
	read_group(r, &source_disk, 0);
	assert_int_equal(r->entities, 0);
	source_disk.close(r->source);
}

static void test_broken_lines_are_skipped(void **state)
{
	struct run *r = *state;
	write_text(r, "sys/block/sda/size", "100\n");
	write_text(r, "proc/diskstats", "rubbish\n8 0 sda 1 0\n\n8 0 sda 1 0 8 1 1 0 16 1 0 3 7");
	open_source(r, &source_disk);
	assert_int_equal(r->rows, 1);
	assert_int_equal(r->last[0], 8);
	source_disk.close(r->source);
}

#define INTERFACES_HEAD "Inter-|   Receive  |  Transmit\n face |bytes packets\n"

static void test_interfaces_appear_with_their_first_packet(void **state)
{
	struct run *r = *state;
	write_text(r, "proc/net/dev",
		INTERFACES_HEAD "    lo: 9 9 0 0 0 0 0 0 9 9 0 0 0 0 0 0\n"
				"  eth0: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n");
	open_source(r, &source_network);
	assert_int_equal(r->entities, 0);
	write_text(r, "proc/net/dev", INTERFACES_HEAD "  eth0: 1 2 3 4 0 0 0 0 5 6 7 8 0 0 0 0\n");
	read_group(r, &source_network, 0);
	assert_int_equal(r->entities, 1);
	assert_int_equal(r->rows, 1);
	assert_int_equal(r->last[0], 1);
	assert_int_equal(r->last[1], 5);
	write_text(r, "proc/net/dev", INTERFACES_HEAD);
	read_group(r, &source_network, 0);
	assert_int_equal(r->ended, 1);
	source_network.close(r->source);
}

// Where pressure is switched off a file may open and only reading it fail; a directory does that,
// too. What can be read is.
static void test_pressure_that_opens_and_cannot_be_read(void **state)
{
	enum { GROUP_CPU_PRESSURE, GROUP_MEMORY_PRESSURE, GROUP_IO_PRESSURE };
	struct run *r = *state;
	struct error e = {0};
	void *opened = NULL;
	write_text(r, "proc/pressure/cpu/none", "");
	write_text(r, "proc/pressure/memory/none", "");
	write_text(r, "proc/pressure/io", "some avg10=0.00 total=12\nfull avg10=0.00 total=3\n");
	open_source(r, &source_pressure);
	assert_int_equal(r->missing, 4);
	assert_int_equal(source_pressure.groups[GROUP_CPU_PRESSURE].read(
				 r->source, r->sink, clock_monotonic_ns()),
		-ENOENT);
	read_group(r, &source_pressure, GROUP_IO_PRESSURE);
	assert_int_equal(r->last[0], 12);
	assert_int_equal(r->last[1], 3);
	source_pressure.close(r->source);
	// None of them: the source is not there, and says why.
	write_text(r, "proc/pressure/io", "rubbish\n");
	assert_true(source_pressure.open(&r->context, r->sink, &opened, &e) < 0);
	assert_true(strlen(e.text) > 0);
}

// A v2 machine: the container /c, in it our cgroup /c/j, in that the job's own.
#define CONTAINER "sys/fs/cgroup/c/"
#define OWN "sys/fs/cgroup/c/j/strain-1/"

enum { GROUP_CPU, GROUP_THROTTLE, GROUP_LIMIT, GROUP_MEMORY };

static void write_machine(struct run *r)
{
	write_text(r, "proc/self/cgroup", "0::/c/j\n");
	write_text(r, "proc/self/mountinfo",
		"30 23 0:26 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n");
	write_text(r, CONTAINER "memory.max", "1048576\n");
	write_text(r, CONTAINER "memory.events", "low 0\nhigh 0\nmax 7\noom 0\noom_kill 0\n");
	write_text(r, CONTAINER "cpu.max", "max 100000\n");
	write_text(r, CONTAINER "j/memory.max", "2097152\n");
	write_text(r, CONTAINER "j/memory.events", "max 0\noom 0\noom_kill 5\n");
	write_text(r, CONTAINER "j/cpu.max", "150000 100000\n");
	write_text(r, CONTAINER "j/cpu.stat",
		"usage_usec 1\nnr_periods 10\nnr_throttled 2\n"
		"throttled_usec 300\n");
	write_text(r, OWN "memory.max", "max\n");
	write_text(r, OWN "memory.stat", "anon 4096\nfile 8192\nshmem 4096\n");
	write_text(r, OWN "memory.current", "16384\n");
	write_text(r, OWN "memory.events", "max 0\noom 0\noom_kill 0\n");
	write_text(r, OWN "cpu.stat", "usage_usec 5\n");
	write_text(r, OWN "cpu.max", "max 100000\n");
}

static char own_directory[] = "sys/fs/cgroup/c/j/strain-1";
static const struct job_cgroup own_cgroup = {
	.version = 2, .cpu = own_directory, .memory = own_directory, .procs = own_directory};

static void test_an_oom_kill_is_an_event(void **state)
{
	enum { USAGE, ANONYMOUS, FILE_PAGES, OOM = 8 };
	struct run *r = *state;
	write_machine(r);
	r->context.cgroup = &own_cgroup;
	open_source(r, &source_cgroup);
	read_group(r, &source_cgroup, GROUP_MEMORY);
	assert_string_equal(r->event, "");
	assert_int_equal(r->last[USAGE], 16);
	assert_int_equal(r->last[ANONYMOUS], 4);
	assert_int_equal(r->last[FILE_PAGES], 4);
	assert_int_equal(r->last[OOM], 0);
	// The machine's memory ended: no limit was reached.
	write_text(r, OWN "memory.events", "max 0\noom 0\noom_kill 2\n");
	read_group(r, &source_cgroup, GROUP_MEMORY);
	assert_string_equal(r->event, "oom_kill: the kernel killed 2 of the job's processes: the "
				      "machine's memory was used up");
	assert_int_equal(r->last[OOM], 2);
	read_group(r, &source_cgroup, GROUP_MEMORY);
	assert_string_equal(r->event, "");
	// The container's limit, which is lower than our own cgroup's.
	write_text(r, CONTAINER "memory.events", "low 0\nhigh 0\nmax 9\noom 1\noom_kill 3\n");
	write_text(r, OWN "memory.events", "max 0\noom 0\noom_kill 3\n");
	read_group(r, &source_cgroup, GROUP_MEMORY);
	assert_string_equal(r->event, "oom_kill: the kernel killed 1 of the job's processes at the "
				      "limit of 1.0 MiB, set by /sys/fs/cgroup/c");
	source_cgroup.close(r->source);

	// Others in a cgroup above use up its limit, which is not the tightest.
	write_text(r, "sys/fs/cgroup/memory.max", "8388608\n");
	write_text(r, "sys/fs/cgroup/memory.events", "low 0\nhigh 0\nmax 20\noom 1\noom_kill 3\n");
	open_source(r, &source_cgroup);
	read_group(r, &source_cgroup, GROUP_MEMORY);
	write_text(r, "sys/fs/cgroup/memory.events", "low 0\nhigh 0\nmax 21\noom 2\noom_kill 4\n");
	write_text(r, OWN "memory.events", "max 0\noom 0\noom_kill 4\n");
	read_group(r, &source_cgroup, GROUP_MEMORY);
	assert_string_equal(r->event, "oom_kill: the kernel killed 1 of the job's processes at the "
				      "limit of 8.0 MiB, set by /sys/fs/cgroup");
	source_cgroup.close(r->source);
}

// A step of Slurm's on a v1 machine, whose limits of memory, and of memory and swap, are the same.
#define STEP "sys/fs/cgroup/memory/slurm/step/"

static void test_an_oom_kill_at_a_limit_of_memory_and_swap(void **state)
{
	static char directory[] = STEP "task";
	static const struct job_cgroup task = {.version = 1, .memory = directory};
	struct run *r = *state;
	write_text(r, "proc/self/cgroup", "4:memory:/slurm/step/task\n");
	write_text(r, "proc/self/mountinfo",
		"35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
	write_text(r, STEP "memory.limit_in_bytes", "104857600\n");
	write_text(r, STEP "memory.failcnt", "0\n");
	write_text(r, STEP "memory.memsw.limit_in_bytes", "104857600\n");
	write_text(r, STEP "memory.memsw.max_usage_in_bytes", "52428800\n");
	write_text(r, STEP "task/memory.limit_in_bytes", "9223372036854771712\n");
	write_text(r, STEP "task/memory.oom_control", "under_oom 0\noom_kill 0\n");
	write_text(r, STEP "task/memory.usage_in_bytes", "4096\n");
	write_text(r, STEP "task/memory.stat", "rss 4096\ncache 0\n");
	r->context.cgroup = &task;
	open_source(r, &source_cgroup);
	read_group(r, &source_cgroup, GROUP_MEMORY);
	assert_string_equal(r->event, "");
	// Half of it was used: the machine's memory ended.
	write_text(r, STEP "task/memory.oom_control", "under_oom 0\noom_kill 1\n");
	read_group(r, &source_cgroup, GROUP_MEMORY);
	assert_non_null(strstr(r->event, "the machine's memory was used up"));
	// The limit was reached, and no count of it changed.
	write_text(r, STEP "memory.memsw.max_usage_in_bytes", "104853504\n");
	write_text(r, STEP "task/memory.oom_control", "under_oom 0\noom_kill 2\n");
	read_group(r, &source_cgroup, GROUP_MEMORY);
	assert_non_null(strstr(r->event, "set by /sys/fs/cgroup/memory/slurm/step"));
	source_cgroup.close(r->source);
}

// v2 hands controllers down only from where no process is: the recorder has stepped aside, into a
// cgroup beside the job's.
static void test_the_limit_of_the_job_beside_the_recorder(void **state)
{
	enum { CPUS, BYTES, HITS };
	struct run *r = *state;
	write_machine(r);
	write_text(r, "proc/self/cgroup", "0::/c/j/strain-1-leaf\n");
	write_text(r, CONTAINER "j/strain-1-leaf/memory.max", "max\n");
	write_text(r, CONTAINER "j/strain-1-leaf/cpu.max", "max 100000\n");
	write_text(r, OWN "memory.max", "524288\n");
	write_text(r, OWN "cpu.max", "50000 100000\n");
	r->context.cgroup = &own_cgroup;
	open_source(r, &source_cgroup);
	read_group(r, &source_cgroup, GROUP_LIMIT);
	assert_int_equal(r->last[CPUS], 500);
	assert_int_equal(r->last[BYTES], 512);
	write_text(r, OWN "memory.events", "max 4\noom 1\noom_kill 1\n");
	read_group(r, &source_cgroup, GROUP_MEMORY);
	assert_string_equal(r->event, "oom_kill: the kernel killed 1 of the job's processes at the "
				      "limit of 524 kB, set by /sys/fs/cgroup/c/j/strain-1");
	source_cgroup.close(r->source);
}

static void test_a_kill_in_a_shared_cgroup_is_another_event(void **state)
{
	struct run *r = *state;
	write_machine(r);
	open_source(r, &source_cgroup);
	read_group(r, &source_cgroup, GROUP_MEMORY);
	assert_string_equal(r->event, ""); // the five before were not ours
	assert_int_equal(r->rows, 0);
	write_text(r, CONTAINER "memory.events", "low 0\nhigh 0\nmax 9\noom 1\noom_kill 1\n");
	write_text(r, CONTAINER "j/memory.events", "max 0\noom 0\noom_kill 6\n");
	read_group(r, &source_cgroup, GROUP_MEMORY);
	assert_string_equal(r->event,
		"oom_kill_nearby: the kernel killed 1 process in the cgroup that the job shares at "
		"the limit of 1.0 MiB, set by /sys/fs/cgroup/c");
	source_cgroup.close(r->source);
}

static void test_the_tightest_limit_counts(void **state)
{
	enum { CPUS, BYTES, HITS };
	enum { PERIODS, THROTTLED, TIME };
	struct run *r = *state;
	write_machine(r);
	r->context.cgroup = &own_cgroup;
	open_source(r, &source_cgroup);
	read_group(r, &source_cgroup, GROUP_LIMIT);
	assert_int_equal(r->missing, 0);
	assert_int_equal(r->last[CPUS], 1500);
	assert_int_equal(r->last[BYTES], 1024);
	assert_int_equal(r->last[HITS], 7);
	read_group(r, &source_cgroup, GROUP_THROTTLE);
	assert_int_equal(r->last[PERIODS], 10);
	assert_int_equal(r->last[THROTTLED], 2);
	assert_int_equal(r->last[TIME], 300);
	source_cgroup.close(r->source);
}

static void test_without_a_limit_none_is_claimed(void **state)
{
	struct run *r = *state;
	write_machine(r);
	write_text(r, CONTAINER "memory.max", "max\n");
	write_text(r, CONTAINER "j/memory.max", "max\n");
	write_text(r, CONTAINER "j/cpu.max", "max 100000\n");
	r->context.cgroup = &own_cgroup;
	open_source(r, &source_cgroup);
	assert_int_equal(
		source_cgroup.groups[GROUP_THROTTLE].read(r->source, r->sink, clock_monotonic_ns()),
		-ENOENT);
	read_group(r, &source_cgroup, GROUP_LIMIT);
	assert_int_equal(r->missing, 4);
	write_text(r, OWN "memory.events", "max 0\noom 0\noom_kill 1\n");
	read_group(r, &source_cgroup, GROUP_MEMORY);
	assert_string_equal(r->event,
		"oom_kill: the kernel killed 1 of the job's processes for lack of memory");
	source_cgroup.close(r->source);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stat_of_the_machine),
		cmocka_unit_test(test_lines_of_disks_and_interfaces),
		cmocka_unit_test(test_pressure),
		cmocka_unit_test(test_lists_of_cpus),
		cmocka_unit_test(test_io_of_a_cgroup),
		cmocka_unit_test(test_places_of_cgroups),
		cmocka_unit_test(test_places_in_a_cgroup_namespace),
		cmocka_unit_test_setup_teardown(test_disks_come_and_go, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_broken_lines_are_skipped, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_interfaces_appear_with_their_first_packet, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_pressure_that_opens_and_cannot_be_read, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_an_oom_kill_is_an_event, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_an_oom_kill_at_a_limit_of_memory_and_swap, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_the_limit_of_the_job_beside_the_recorder, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_kill_in_a_shared_cgroup_is_another_event, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_tightest_limit_counts, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_without_a_limit_none_is_claimed, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
