// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The files of amdgpu and kfd: a machine with one GPU, of which the input replaces files. Its first
// byte is the number of files that it replaces before the source opens; the others are replaced
// between two readings. A replacement is a byte for the file, one for the length, and the contents.

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"
#include "machine/tree.h"
#include "record/sample/feed.h"
#include "record/sample/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

extern const struct source source_amdgpu;

#define NODE "sys/class/kfd/kfd/topology/nodes/0"
#define PROCESS "sys/class/kfd/kfd/proc/77"
#define CARD "sys/bus/pci/devices/0000:03:00.0"

static const char table[288] = {0x20, 0x01, 1, 4, [24] = 9};

static const struct {
	const char *path, *text;
	size_t length; // 0: of the text
} files[] = {
	{NODE "/gpu_id", "5001\n", 0},
	{NODE "/properties",
		"location_id 768\ndomain 0\nmax_engine_clk_fcompute 1700\ngfx_target_version "
		"90010\n",
		0},
	{CARD "/gpu_busy_percent", "34\n", 0},
	{CARD "/mem_busy_percent", "12\n", 0},
	{CARD "/mem_info_vram_total", "68702699520\n", 0},
	{CARD "/mem_info_vram_used", "9000000000\n", 0},
	{CARD "/gpu_metrics", table, sizeof(table)},
	{CARD "/unique_id", "1234567890abcd03\n", 0},
	{CARD "/product_name", "Instinct MI210\n", 0},
	{CARD "/vendor", "0x1002\n", 0},
	{CARD "/device", "0x740f\n", 0},
	{CARD "/revision", "0x02\n", 0},
	{CARD "/current_link_speed", "16.0 GT/s PCIe\n", 0},
	{CARD "/current_link_width", "16\n", 0},
	{CARD "/max_link_speed", "16.0 GT/s PCIe\n", 0},
	{CARD "/max_link_width", "16\n", 0},
	{CARD "/pcie_replay_count", "3\n", 0},
	{CARD "/power/runtime_status", "active\n", 0},
	{CARD "/ras/umc_err_count", "ue: 0\nce: 3\n", 0},
	{CARD "/hwmon/hwmon1/power1_average", "250000000\n", 0},
	{CARD "/hwmon/hwmon1/power1_cap", "300000000\n", 0},
	{CARD "/hwmon/hwmon1/temp2_label", "junction\n", 0},
	{CARD "/hwmon/hwmon1/temp2_input", "61000\n", 0},
	{CARD "/hwmon/hwmon1/freq1_label", "sclk\n", 0},
	{CARD "/hwmon/hwmon1/freq1_input", "1400000000\n", 0},
	{CARD "/hwmon/hwmon1/in1_label", "vddgfx\n", 0},
	{"proc/loadavg", "0.00 0.00 0.00 1/100 77\n", 0},
	{PROCESS "/vram_5001", "8000000000\n", 0},
	{PROCESS "/queues/0/gpuid", "5001\n", 0},
	{"usr/share/libdrm/amdgpu.ids", "740F,\t02,\tAMD Instinct MI210\n", 0},
};

static char folder[64];
static int root_fd = -1;

static void leave(void)
{
	char command[96];
	snprintf(command, sizeof(command), "rm -r %s", folder);
	(void)!system(command);
}

static void make_folders(const char *path)
{
	char name[128];
	for (const char *slash = path; (slash = strchr(slash, '/')); slash++) {
		snprintf(name, sizeof(name), "%.*s", (int)(slash - path), path);
		if (mkdirat(root_fd, name, 0755) < 0 && errno != EEXIST) {
			abort();
		}
	}
}

static void start(void)
{
	snprintf(folder, sizeof(folder), "/tmp/strain-fuzz-amdgpu-XXXXXX");
	if (!mkdtemp(folder) || (root_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0) {
		abort();
	}
	atexit(leave);
	for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
		make_folders(files[i].path);
	}
}

// In place, as the kernel's files change under an open descriptor.
static void put(size_t i, const void *text, size_t length)
{
	_cleanup_close_ int fd = openat(
		root_fd, files[i].path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, text, length) != (ssize_t)length) {
		abort();
	}
}

static void put_defaults(void)
{
	for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
		size_t length = files[i].length ? files[i].length : strlen(files[i].text);
		put(i, files[i].text, length);
	}
}

// Returns what is left of the input.
static struct cursor replace(struct cursor input, size_t n)
{
	for (; n > 0 && input.end - input.at >= 2; n--) {
		size_t i = (unsigned char)input.at[0] % ARRAY_LENGTH(files);
		size_t length = (unsigned char)input.at[1],
		       left = (size_t)(input.end - input.at) - 2;
		length = length < left ? length : left;
		put(i, input.at + 2, length);
		input.at += 2 + length;
	}
	return input;
}

static void read_groups(void *source, struct sink *sink)
{
	for (size_t i = 0; i < source_amdgpu.n_groups; i++) {
		(void)source_amdgpu.groups[i].read(source, sink, clock_monotonic_ns());
	}
}

// No metric of these groups can be negative.
static void check_items(struct feed *feed)
{
	for (struct item *item = feed_take(feed, 0), *next; item; item = next) {
		next = item->next;
		for (size_t i = 0; item->kind == ITEM_BLOCK && i < item->block.n_columns; i++) {
			for (size_t row = 0; row < item->block.n_rows; row++) {
				int64_t value = item->block.columns[i][row];
				if (value < 0 && value != VALUE_MISSING) {
					abort();
				}
			}
		}
		item_free(item);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct registry registry = {0};
	struct feed *feed = NULL;
	struct sink *sink = NULL;
	struct tree *tree = NULL;
	struct error e = {0};
	void *source = NULL;
	if (root_fd < 0) {
		start();
	}
	put_defaults();
	for (size_t i = 0; i < source_amdgpu.n_groups; i++) {
		if (registry_add(&registry, "amdgpu", &source_amdgpu.groups[i]) < 0) {
			abort();
		}
	}
	registry.last_entity = 3;
	if (feed_new((size_t)1 << 20, &feed) < 0 || sink_new(&registry, feed, 0, &sink) < 0 ||
		tree_new(root_fd, true, &tree, &e) < 0) {
		abort();
	}
	struct source_context context = {
		.root_fd = root_fd, .captured = true, .tree = tree, .host = 1};
	size_t before = size > 0 ? data[0] % 8 : 0;
	struct cursor rest = cursor_of((const char *)data + (size > 0), size - (size > 0));
	rest = replace(rest, before);
	(void)source_amdgpu.absent(root_fd);
	if (source_amdgpu.open(&context, sink, &source, &e) == 0) {
		read_groups(source, sink);
		(void)replace(rest, 8);
		read_groups(source, sink);
		source_amdgpu.close(source);
	}
	sink_flush(sink);
	check_items(feed);
	sink_free(sink);
	feed_free(feed);
	tree_free(tree);
	registry_done(&registry);
	return 0;
}
