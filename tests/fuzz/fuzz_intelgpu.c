// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The files of i915 and xe: a machine with a GPU of each, of which the input replaces files. Its
// first byte is the number of files that it replaces before the source opens; the others are
// replaced between two readings. A replacement is a byte for the file, one for the length, and the
// contents.

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

extern const struct source source_intelgpu;

#define CARD "sys/bus/pci/devices/0000:03:00.0"
#define GT CARD "/tile0/gt0"
#define MEDIA CARD "/tile0/gt1"
#define HWMON CARD "/hwmon/hwmon5"
#define OTHER "sys/bus/pci/devices/0000:00:02.0"
#define OTHER_GT OTHER "/drm/card1/gt/gt0"
#define PROCESS "proc/77"

static const struct {
	const char *path, *text;
} files[] = {
	{CARD "/vendor", "0x8086\n"},
	{CARD "/device", "0xe20b\n"},
	{CARD "/class", "0x030000\n"},
	{CARD "/current_link_speed", "16.0 GT/s PCIe\n"},
	{CARD "/current_link_width", "8\n"},
	{CARD "/max_link_speed", "16.0 GT/s PCIe\n"},
	{CARD "/max_link_width", "8\n"},
	{CARD "/power/runtime_status", "active\n"},
	{CARD "/power/autosuspend_delay_ms", "1000\n"},
	{CARD "/drm/renderD128/dev", "226:128\n"},
	{GT "/gtidle/name", "gt0-rc\n"},
	{GT "/gtidle/idle_residency_ms", "5000000\n"},
	{GT "/freq0/act_freq", "2850\n"},
	{GT "/freq0/rp0_freq", "2850\n"},
	{GT "/freq0/throttle/reasons", "pl1 thermal\n"},
	{MEDIA "/gtidle/name", "gt1-mc\n"},
	{MEDIA "/gtidle/idle_residency_ms", "9000000\n"},
	{HWMON "/name", "xe\n"},
	{HWMON "/energy1_label", "card\n"},
	{HWMON "/energy1_input", "710520000000\n"},
	{HWMON "/power1_label", "card\n"},
	{HWMON "/power1_max", "190000000\n"},
	{HWMON "/temp2_label", "pkg\n"},
	{HWMON "/temp2_input", "60000\n"},
	{OTHER "/vendor", "0x8086\n"},
	{OTHER "/device", "0x4680\n"},
	{OTHER "/power/runtime_status", "active\n"},
	{OTHER_GT "/rc6_residency_ms", "4294967290\n"},
	{OTHER_GT "/rps_act_freq_mhz", "1450\n"},
	{OTHER_GT "/throttle_reason_status", "1\n"},
	{OTHER_GT "/throttle_reason_pl1", "1\n"},
	{"proc/loadavg", "0.00 0.00 0.00 1/100 77\n"},
	{PROCESS "/stat", "77 (python3) S 1 77 77 0 -1 4194560 100 0 0 0 100 10 0 0 20 0 1 0 1000 "
			  "1000000 500 "
			  "18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0\n"},
	{PROCESS "/fdinfo/5", "drm-driver:\txe\ndrm-client-id:\t31\ndrm-pdev:\t0000:03:00.0\n"
			      "drm-cycles-ccs:\t1000\ndrm-total-cycles-ccs:\t5000\n"
			      "drm-resident-vram0:\t2048 MiB\n"},
	{PROCESS "/fdinfo/6", "drm-driver:\ti915\ndrm-client-id:\t31\ndrm-pdev:\t0000:00:02.0\n"
			      "drm-engine-render:\t1000 ns\ndrm-engine-capacity-video:\t2\n"
			      "drm-resident-system0:\t640 MiB\n"},
};

static const char *const links[][2] = {
	{CARD "/driver", "../../drivers/xe"},
	{OTHER "/driver", "../../drivers/i915"},
	{"sys/class/drm/card0", "../../bus/pci/devices/0000:03:00.0/drm/card0"},
	{"sys/class/drm/card1", "../../bus/pci/devices/0000:00:02.0/drm/card1"},
	{PROCESS "/fd/5", "/dev/dri/renderD128"},
	{PROCESS "/fd/6", "/dev/dri/card1"},
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
	snprintf(folder, sizeof(folder), "/tmp/strain-fuzz-intelgpu-XXXXXX");
	if (!mkdtemp(folder) || (root_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0) {
		abort();
	}
	atexit(leave);
	for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
		make_folders(files[i].path);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(links); i++) {
		make_folders(links[i][0]);
		if (symlinkat(links[i][1], root_fd, links[i][0]) < 0) {
			abort();
		}
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
		put(i, files[i].text, strlen(files[i].text));
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

static int join(void *context, struct process *p)
{
	(void)context;
	p->entity = 2;
	return 0;
}

static void leave_tree(void *context, struct process *p)
{
	(void)context;
	(void)p;
}

static const struct tree_watcher watcher = {.joined = join, .left = leave_tree};

static void read_groups(void *source, struct sink *sink, uint64_t now_ns)
{
	for (size_t i = 0; i < source_intelgpu.n_groups; i++) {
		(void)source_intelgpu.groups[i].read(source, sink, now_ns);
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
	for (size_t i = 0; i < source_intelgpu.n_groups; i++) {
		if (registry_add(&registry, "intelgpu", &source_intelgpu.groups[i]) < 0) {
			abort();
		}
	}
	registry.last_entity = 3;
	if (feed_new((size_t)1 << 20, &feed) < 0 || sink_new(&registry, feed, 0, &sink) < 0 ||
		tree_new(root_fd, true, &tree, &e) < 0) {
		abort();
	}
	tree_watch(tree, &watcher);
	tree_start(tree, 77, 0, NULL);
	tree_update(tree, clock_monotonic_ns());
	struct source_context context = {
		.root_fd = root_fd, .captured = true, .tree = tree, .host = 1};
	size_t before = size > 0 ? data[0] % 8 : 0;
	struct cursor rest = cursor_of((const char *)data + (size > 0), size - (size > 0));
	rest = replace(rest, before);
	(void)source_intelgpu.absent(root_fd);
	if (source_intelgpu.open(&context, sink, &source, &e) == 0) {
		read_groups(source, sink, NS_PER_S);
		(void)replace(rest, 8);
		read_groups(source, sink, 2 * NS_PER_S);
		source_intelgpu.close(source);
	}
	sink_flush(sink);
	check_items(feed);
	sink_free(sink);
	feed_free(feed);
	tree_free(tree);
	registry_done(&registry);
	return 0;
}
