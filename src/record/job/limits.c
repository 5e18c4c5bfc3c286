// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Limits of the job: their table, CPUs and memory.
//
// A limit larger than strain's own is rejected like one that cannot be set: the job would run under
// another limit than the run says.

#include "record/job/limits.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/text.h"
#include "machine/cgroup.h"
#include "machine/cgroupfs.h"
#include "machine/file.h"
#include "machine/nvml.h"
#include "machine/procfs.h"
#include "runfile/database.h"

// Disk --------------------------------------------------------------------------------------------
//
// Limits the rate at which the job reads from each disk.
//
// All whole disks are limited, because the location of a job's data is unknown: everything on top
// of them (partitions, device mapper, RAID, overlay) reads from them in the end. The kernel counts
// a read at every layer, so limiting the layers, too, would only cost time. Loop devices are
// limited themselves: before Linux 5.12 their reads from files were not charged to any cgroup.

#define FUSE_MAGIC 0x65735546
#define THROTTLE_V1 "blkio.throttle.read_bps_device"
#define THROTTLE_V2 "io.max"

enum { NAMED = 6 };

struct disk {
	char name[64];
	uint64_t major, minor;
};

struct disks {
	struct disk *items;
	size_t n, capacity;
};

// ---- disks

static bool read_field(int root_fd, const char *name, const char *field, char *buffer, size_t size,
	struct cursor *ret)
{
	char path[160];
	snprintf(path, sizeof(path), "sys/block/%s/%s", name, field);
	return file_read_once(root_fd, path, buffer, size, ret, NULL) == 0;
}

static bool has_number(int root_fd, const char *name, const char *field)
{
	char buffer[32];
	struct cursor text;
	uint64_t number;
	return read_field(root_fd, name, field, buffer, sizeof(buffer), &text) &&
	       cursor_u64(&text, &number) && number > 0;
}

// Memory that appears as a disk.
static bool is_memory(const char *name)
{
	return strncmp(name, "ram", 3) == 0 || strncmp(name, "zram", 4) == 0;
}

static bool is_stacked(int root_fd, const char *name)
{
	char path[128];
	snprintf(path, sizeof(path), "sys/block/%s/slaves", name);
	return file_has_entries(root_fd, path);
}

static bool read_disk(int root_fd, const char *name, struct disk *ret)
{
	char buffer[32];
	struct cursor text;
	if (strlen(name) >= sizeof(ret->name) || is_memory(name) ||
		!has_number(root_fd, name, "size") || has_number(root_fd, name, "hidden") ||
		is_stacked(root_fd, name) ||
		!read_field(root_fd, name, "dev", buffer, sizeof(buffer), &text)) {
		return false;
	}
	memcpy(ret->name, name, strlen(name) + 1);
	return cursor_u64(&text, &ret->major) && cursor_literal(&text, ":") &&
	       cursor_u64(&text, &ret->minor);
}

static int compare_disks(const void *left, const void *right)
{
	const struct disk *a = left, *b = right;
	bool a_loop = strncmp(a->name, "loop", 4) == 0, b_loop = strncmp(b->name, "loop", 4) == 0;
	return a_loop != b_loop ? a_loop - b_loop : strcmp(a->name, b->name);
}

static int find_disks(int root_fd, struct disks *disks, struct error *e)
{
	int fd = openat(root_fd, "sys/block", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	if (!directory) {
		int code = errno;
		if (fd >= 0) {
			close(fd);
		}
		return error_errno(e, code, "/sys/block");
	}
	int rc = 0;
	for (struct dirent *item; rc == 0 && (item = readdir(directory));) {
		struct disk disk;
		if (item->d_name[0] != '.' && read_disk(root_fd, item->d_name, &disk)) {
			rc = array_reserve((void **)&disks->items, &disks->capacity, disks->n + 1,
				sizeof(disk));
			if (rc == 0) {
				disks->items[disks->n++] = disk;
			}
		}
	}
	closedir(directory);
	if (rc < 0) {
		return error_errno(e, -rc, "/sys/block");
	}
	if (disks->n == 0) {
		return error_set(e, ENODEV, "no disk is in /sys/block");
	}
	qsort(disks->items, disks->n, sizeof(*disks->items), compare_disks);
	return 0;
}

// ---- existing limits

static bool is_one_of(const struct disks *disks, uint64_t major, uint64_t minor)
{
	for (size_t i = 0; i < disks->n; i++) {
		if (disks->items[i].major == major && disks->items[i].minor == minor) {
			return true;
		}
	}
	return false;
}

// "8:0 1048576" (v1), "8:0 rbps=1048576 wbps=max riops=max wiops=max" (v2).
static bool parse_line(struct cursor line, int version, const struct disks *disks, uint64_t *ret)
{
	uint64_t major, minor;
	struct cursor word;
	if (!cursor_u64(&line, &major) || !cursor_literal(&line, ":") ||
		!cursor_u64(&line, &minor) || !is_one_of(disks, major, minor)) {
		return false;
	}
	if (version == 1) {
		return cursor_u64(&line, ret);
	}
	while (cursor_word(&line, &word)) {
		if (cursor_literal(&word, "rbps=") && cursor_u64(&word, ret)) {
			return true;
		}
	}
	return false;
}

static uint64_t least_rate_of(
	int root_fd, const char *directory, int version, const struct disks *disks)
{
	_cleanup_free_ char *path = cgroup_directory_join(
		directory, version == 1 ? THROTTLE_V1 : THROTTLE_V2);
	struct host_file file = HOST_FILE_CLOSED;
	struct cursor text, line;
	uint64_t least = UINT64_MAX, rate;
	if (path && host_file_open(&file, root_fd, path, NULL) == 0 &&
		host_file_read(&file, &text) == 0) {
		while (cursor_line(&text, &line)) {
			if (parse_line(line, version, disks, &rate) && rate < least) {
				least = rate;
			}
		}
	}
	host_file_close(&file);
	return least;
}

// A tighter limit of a cgroup above would apply, too. v1 does not inherit limits: there the limit
// of strain's own cgroup is checked, which the job would otherwise escape.
static int check_above(const struct limits_place *place, const struct disks *disks, uint64_t wanted,
	struct error *e)
{
	struct cgroup_places places = {0};
	if (cgroup_places_find(place->root_fd, "self", &places, NULL) < 0) {
		return 0;
	}
	const struct cgroup_place *io = cgroup_place_of(&places, CGROUP_IO);
	_cleanup_free_ char *directory = io->version ? strdup(io->path) : NULL;
	int rc = 0;
	while (directory && rc == 0) {
		uint64_t rate = least_rate_of(place->root_fd, directory, io->version, disks);
		if (rate < wanted) {
			char most[32];
			text_bytes(most, sizeof(most), (double)rate);
			rc = error_set(e, ERANGE, "expected at most %s/s, the limit of /%s", most,
				directory);
		}
		char *slash = io->version == 2 ? strrchr(directory + io->mount_length, '/') : NULL;
		if (!slash) {
			break;
		}
		*slash = '\0';
	}
	cgroup_places_done(&places);
	return rc;
}

// Reads from another machine, or through another user's process, are not limited by our cgroup.
static int check_here_is_local(struct error *e)
{
	struct statfs fs;
	bool fuse = statfs(".", &fs) == 0 && (unsigned)fs.f_type == FUSE_MAGIC;
	if (!fuse && !database_is_on_network(".")) {
		return 0;
	}
	return error_set(e, EOPNOTSUPP,
		"the current directory is on a %s file system, whose reads cgroups cannot limit; "
		"use a directory on a local disk",
		fuse ? "FUSE" : "network");
}

// ---- setting

static int write_rates(
	const struct limits_place *place, const struct disks *disks, uint64_t rate, struct error *e)
{
	const struct job_cgroup *cgroup = place->cgroup;
	const char *file = cgroup->version == 1 ? THROTTLE_V1 : THROTTLE_V2;
	const char *format = cgroup->version == 1 ? "" : "rbps=";
	for (size_t i = 0; i < disks->n; i++) {
		const struct disk *disk = &disks->items[i];
		char line[96];
		snprintf(line, sizeof(line), "%" PRIu64 ":%" PRIu64 " %s%" PRIu64, disk->major,
			disk->minor, format, rate);
		int rc = cgroup_directory_write(place->root_fd, cgroup->block, file, line);
		if (rc < 0) {
			return error_errno(e, -rc, "/%s/%s: %s", cgroup->block, file, disk->name);
		}
	}
	return 0;
}

static char *describe(const struct limits_place *place, const struct disks *disks, uint64_t rate)
{
	struct text how = {0};
	text_format(&how, "%" PRIu64 " (cgroup %s", rate,
		place->cgroup->version == 1 ? "v1 blkio:" : "v2 io:");
	for (size_t i = 0; i < disks->n && i < NAMED; i++) {
		text_format(&how, "%s%s", i ? ", " : " ", disks->items[i].name);
	}
	if (disks->n > NAMED) {
		text_format(&how, " and %zu more", disks->n - NAMED);
	}
	text_append_string(&how, ")");
	return text_steal(&how);
}

static int set_rate(const struct limits_wanted *w, const struct limits_place *place,
	const struct disks *disks, struct limits *l, struct error *e)
{
	if (!place->cgroup) {
		return error_set(e, place->why_none->code, "no cgroup for the job: %s",
			place->why_none->text);
	}
	int rc = job_cgroup_add(place->root_fd, CGROUP_IO, place->cgroup, e);
	if (rc < 0) {
		return job_cgroup_add_hint(place->root_fd, place->cgroup, CGROUP_IO, e);
	}
	rc = check_here_is_local(e);
	rc = rc < 0 ? rc : write_rates(place, disks, w->read_bytes_per_s, e);
	if (rc == 0) {
		l->set[LIMIT_DISK_READ] = describe(place, disks, w->read_bytes_per_s);
		l->in_cgroup = true;
	}
	return rc;
}

static int limits_set_disk_read(const struct limits_wanted *wanted,
	const struct limits_place *place, struct limits *limits, struct error *e)
{
	const bool unlimited = wanted->read_bytes_per_s == 0;
	struct disks disks = {0};
	int rc = find_disks(place->root_fd, &disks, e);
	if (rc < 0 && unlimited) {
		rc = 0; // without disks nothing can be limited
	} else if (rc == 0) {
		rc = check_above(
			place, &disks, unlimited ? UINT64_MAX : wanted->read_bytes_per_s, e);
		rc = rc < 0 || unlimited ? rc : set_rate(wanted, place, &disks, limits, e);
	}
	if (rc == 0 && unlimited) {
		limits->set[LIMIT_DISK_READ] = strdup("unlimited");
	}
	free(disks.items);
	return rc;
}

// Gpus --------------------------------------------------------------------------------------------
//
// The GPUs that the job may use, set by CUDA_VISIBLE_DEVICES, which frameworks respect on NVIDIA's
// and AMD's GPUs. A job that sets it itself escapes the limit; without root there is no stronger
// way.

#define NO_CARD "-1" // ends the list for CUDA, HIP and ROCr alike; "" does not

enum { DRIVER_TIMEOUT_MS = 10000, CRASH_TRIES = 250 };

// ---- lists

static struct cursor take_entry(struct cursor *list)
{
	const char *comma = memchr(list->at, ',', (size_t)(list->end - list->at));
	struct cursor entry = {list->at, comma ? comma : list->end};
	list->at = comma ? comma + 1 : list->end;
	while (entry.at < entry.end && isspace((unsigned char)*entry.at)) {
		entry.at++;
	}
	while (entry.end > entry.at && isspace((unsigned char)entry.end[-1])) {
		entry.end--;
	}
	return entry;
}

static bool is_index(struct cursor entry, uint64_t *ret)
{
	return entry.at < entry.end && isdigit((unsigned char)*entry.at) &&
	       cursor_u64(&entry, ret) && entry.at == entry.end;
}

static bool is_instance(struct cursor entry)
{
	return cursor_literal(&entry, "MIG-") && entry.at < entry.end;
}

static bool is_uuid(struct cursor entry)
{
	return is_instance(entry) || (cursor_literal(&entry, "GPU-") && entry.at < entry.end);
}

static bool same(struct cursor a, struct cursor b)
{
	return a.end - a.at == b.end - b.at && memcmp(a.at, b.at, (size_t)(a.end - a.at)) == 0;
}

static bool is_twice(struct cursor list, struct cursor entry)
{
	unsigned n = 0;
	while (list.at < list.end) {
		n += same(take_entry(&list), entry);
	}
	return n > 1;
}

// Checks and copies a list of GPUs without blanks: "0,2", "GPU-8932f937", "3,".
static int limits_read_gpu_list(const char *text, char **ret, struct error *e)
{
	struct cursor list = cursor_of(text, strlen(text)), rest = list;
	bool good = list.at < list.end;
	while (good && rest.at < rest.end) {
		uint64_t index;
		struct cursor entry = take_entry(&rest);
		good = is_index(entry, &index) ? index < LIMIT_GPUS_MAX : is_uuid(entry);
		for (const char *c = entry.at; c < entry.end; c++) {
			good = good && (isalnum((unsigned char)*c) || strchr("-/", *c));
		}
		if (good && is_twice(list, entry)) {
			return error_set(e, EINVAL, "GPU %.*s appears twice in '%s'",
				(int)(entry.end - entry.at), entry.at, text);
		}
	}
	if (!good) {
		return error_set(e, EINVAL,
			"expected a number of GPUs (1), or a list of them by number or UUID "
			"(0,2), found '%s'",
			text);
	}
	*ret = strdup(text);
	return *ret ? 0 : error_errno(e, ENOMEM, "GPUs");
}

// ---- choosing

// Returns the only GPU whose UUID begins so; -1: none, or several.
static int find_card(const struct gpu_cards *cards, struct cursor uuid)
{
	int found = -1;
	for (unsigned i = 0; i < cards->n; i++) {
		size_t length = (size_t)(uuid.end - uuid.at);
		if (strncmp(cards->uuids[i], uuid.at, length) == 0) {
			found = found < 0 ? (int)i : INT32_MAX;
		}
	}
	return found == INT32_MAX ? -1 : found;
}

static bool names_card(const struct gpu_cards *cards, struct cursor entry)
{
	uint64_t index;
	return is_index(entry, &index) ? index < cards->n
	                               : is_instance(entry) || find_card(cards, entry) >= 0;
}

// The GPUs that strain itself may use: the entries of the variable up to the first that names no
// GPU; without the variable, all by number.
struct visible {
	struct cursor entries[LIMIT_GPUS_MAX];
	char numbers[LIMIT_GPUS_MAX][12];
	unsigned n;
};

static void list_visible(const struct gpu_cards *cards, const char *variable, struct visible *v)
{
	struct cursor rest = cursor_of(variable ? variable : "", variable ? strlen(variable) : 0);
	v->n = 0;
	while (variable && rest.at < rest.end && v->n < LIMIT_GPUS_MAX) {
		struct cursor entry = take_entry(&rest);
		if (!names_card(cards, entry)) {
			return;
		}
		v->entries[v->n++] = entry;
	}
	for (unsigned i = 0; !variable && i < cards->n; i++) {
		snprintf(v->numbers[i], sizeof(v->numbers[i]), "%u", i);
		v->entries[v->n++] = cursor_of(v->numbers[i], strlen(v->numbers[i]));
	}
}

// Finds the visible entry for a wanted one, by position or UUID. NULL if there is none.
static const struct cursor *find_visible(const struct gpu_cards *cards, const char *variable,
	const struct visible *v, const struct cursor *wanted)
{
	uint64_t index;
	if (is_index(*wanted, &index)) {
		return index < v->n ? &v->entries[index] : NULL;
	}
	if (!variable && names_card(cards, *wanted)) {
		return wanted;
	}
	for (unsigned i = 0; i < v->n; i++) {
		bool found = is_instance(*wanted)
		                     ? same(v->entries[i], *wanted)
		                     : is_uuid(v->entries[i]) && !is_instance(v->entries[i]) &&
		                               find_card(cards, *wanted) >= 0 &&
		                               find_card(cards, v->entries[i]) ==
		                                       find_card(cards, *wanted);
		if (found) {
			return &v->entries[i];
		}
	}
	return NULL;
}

static void append_entry(struct text *t, const struct cursor *entry)
{
	text_append_string(t, t->length ? "," : "");
	text_append(t, entry->at, (size_t)(entry->end - entry->at));
}

static int refuse_count(
	const char *variable, const struct visible *v, unsigned wanted, struct error *e)
{
	_cleanup_text_ struct text whose = {0};
	if (variable) {
		text_format(&whose, "those of CUDA_VISIBLE_DEVICES=");
		text_append_printable(&whose, variable, strlen(variable));
	} else {
		text_format(&whose, "all that this machine has");
	}
	return error_set(e, ENODEV, "expected at most %u GPU%s, %s, found %u", v->n,
		v->n == 1 ? "" : "s", whose.data ? whose.data : "", wanted);
}

int limits_choose_gpus(const struct limits_wanted *wanted, const struct gpu_cards *cards,
	const char *visible, char **ret, unsigned *ret_count, struct error *e)
{
	_cleanup_free_ struct visible *v = calloc(1, sizeof(*v));
	_cleanup_text_ struct text list = {0};
	unsigned n = 0;
	if (!v) {
		return error_errno(e, ENOMEM, "GPUs");
	}
	list_visible(cards, visible, v);
	if (!wanted->gpu_list && wanted->gpu_count > v->n) {
		return refuse_count(visible, v, wanted->gpu_count, e);
	}
	for (; !wanted->gpu_list && n < wanted->gpu_count; n++) {
		append_entry(&list, &v->entries[n]);
	}
	struct cursor rest = cursor_of(wanted->gpu_list ? wanted->gpu_list : "",
		wanted->gpu_list ? strlen(wanted->gpu_list) : 0);
	for (; rest.at < rest.end; n++) {
		struct cursor entry = take_entry(&rest);
		const struct cursor *found = find_visible(cards, visible, v, &entry);
		if (!found) {
			return error_set(e, ENODEV,
				"no GPU %.*s among the %u available to "
				"strain",
				(int)(entry.end - entry.at), entry.at, v->n);
		}
		append_entry(&list, found);
	}
	text_append_string(&list, n == 0 ? NO_CARD : "");
	*ret = text_steal(&list);
	*ret_count = n;
	return *ret ? 0 : error_errno(e, ENOMEM, "GPUs");
}

// ---- counting

struct answer {
	struct error error;
	struct gpu_cards cards;
};

static void ask_driver(struct answer *answer)
{
	struct nvml *n = NULL;
	struct nvml_device *device;
	if (nvml_open(NULL, &n, &answer->error) < 0) {
		return;
	}
	unsigned count = 0;
	int result = nvml_device_count(n, &count);
	if (result != 0) {
		error_set(&answer->error, EIO, "the driver did not report it: %s",
			nvml_reason(result));
	}
	answer->cards.n = count < LIMIT_GPUS_MAX ? count : LIMIT_GPUS_MAX;
	for (unsigned i = 0; i < answer->cards.n; i++) {
		if (nvml_device(n, i, &device) != 0 ||
			nvml_text(n, device, NVML_UUID, answer->cards.uuids[i], GPU_UUID_BYTES) !=
				0) {
			answer->cards.uuids[i][0] = '\0';
		}
	}
	nvml_close(n);
}

// Reads the helper's answer until the deadline. Returns true if it is complete.
static bool read_answer(int fd, struct answer *answer)
{
	uint64_t deadline = clock_monotonic_ns() + DRIVER_TIMEOUT_MS * NS_PER_MS;
	size_t have = 0;
	while (have < sizeof(*answer)) {
		uint64_t now = clock_monotonic_ns();
		struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
		if (now >= deadline ||
			poll(&poll_fd, 1, (int)((deadline - now) / NS_PER_MS) + 1) == 0) {
			return false;
		}
		ssize_t length = read(fd, (char *)answer + have, sizeof(*answer) - have);
		if (length == 0 || (length < 0 && errno != EINTR)) {
			return false;
		}
		have += length > 0 ? (size_t)length : 0;
	}
	return true;
}

// Runs in a separate process: a hanging driver must not block the launcher, and the job must not
// inherit what the library leaves behind.
static int ask_driver_aside(struct answer *ret, struct error *e)
{
	int fds[2];
	if (pipe2(fds, O_CLOEXEC) < 0) {
		return error_errno(e, errno, "pipe");
	}
	pid_t pid = fork();
	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL); // not a sanitizer's: a crash ends it as such
		struct answer *answer = calloc(1, sizeof(*answer));
		if (answer) {
			ask_driver(answer);
			(void)!write(fds[1], answer, sizeof(*answer));
		}
		_exit(0);
	}
	int code = errno;
	close(fds[1]);
	bool answered = pid > 0 && read_answer(fds[0], ret);
	close(fds[0]);
	if (pid < 0) {
		return error_errno(e, code, "fork");
	}
	int status = 0;
	// A crash closes the pipe before the process can be reaped.
	pid_t ended = answered ? pid : 0;
	for (int i = 0; ended == 0 && i < CRASH_TRIES; i++) {
		nanosleep(&(struct timespec){.tv_nsec = 2 * NS_PER_MS}, NULL);
		ended = waitpid(pid, &status, WNOHANG);
	}
	if (!answered && ended == pid && WIFSIGNALED(status)) {
		return error_set(
			e, EFAULT, "the driver's library crashed (signal %d)", WTERMSIG(status));
	}
	if (!answered && ended != 0) { // there is nobody to signal
		return error_set(e, EIO, "the driver's library ended the process that asked it");
	}
	if (!answered) {
		kill(pid, SIGKILL); // if it cannot die, the subreaper will reap it at some time
		waitpid(pid, NULL, WNOHANG);
		return error_set(e, ETIMEDOUT, "the driver did not answer within %d s",
			DRIVER_TIMEOUT_MS / 1000);
	}
	waitpid(pid, NULL, 0);
	return 0;
}

// Counts AMD's compute devices: nodes of the topology with a gpu_id.
static unsigned count_hip(int root_fd)
{
	static const char nodes[] = "sys/class/kfd/kfd/topology/nodes";
	int fd = openat(root_fd, nodes, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	unsigned n = 0;
	if (!directory) {
		if (fd >= 0) {
			close(fd);
		}
		return 0;
	}
	for (struct dirent *item; (item = readdir(directory));) {
		char path[320], buffer[32];
		struct cursor text;
		uint64_t id;
		snprintf(path, sizeof(path), "%s/%s/gpu_id", nodes, item->d_name);
		n += item->d_name[0] != '.' &&
		     file_read_once(root_fd, path, buffer, sizeof(buffer), &text, NULL) == 0 &&
		     cursor_u64(&text, &id) && id > 0;
	}
	closedir(directory);
	return n < LIMIT_GPUS_MAX ? n : LIMIT_GPUS_MAX;
}

static int find_cards(int root_fd, struct gpu_cards *ret, struct error *e)
{
	_cleanup_free_ struct answer *answer = calloc(1, sizeof(*answer));
	if (!answer) {
		return error_errno(e, ENOMEM, "GPUs");
	}
	int rc = ask_driver_aside(answer, e);
	if (rc == 0 && answer->error.code == 0 && answer->cards.n > 0) {
		*ret = answer->cards;
		return 0;
	}
	ret->n = count_hip(root_fd);
	ret->hip = ret->n > 0;
	if (ret->hip) {
		return 0;
	}
	return rc < 0               ? rc
	       : answer->error.code ? error_set(e, answer->error.code, "%s", answer->error.text)
	                            : error_set(e, ENODEV, "the driver found no GPU");
}

// ---- setting

static int limits_set_gpus(const struct limits_wanted *wanted, const struct limits_place *place,
	struct limits *limits, struct error *e)
{
	_cleanup_free_ struct gpu_cards *cards = calloc(1, sizeof(*cards));
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	unsigned n = 0;
	int rc = cards ? 0 : error_errno(e, ENOMEM, "GPUs");
	if (rc == 0 && (wanted->gpu_list || wanted->gpu_count > 0)) {
		rc = find_cards(place->root_fd, cards, e);
		rc = rc < 0 ? error_prefix(e, "no GPU can be given to the job") : 0;
	}
	if (cards && cards->hip && getenv("HIP_VISIBLE_DEVICES")) {
		visible = getenv("HIP_VISIBLE_DEVICES"); // HIP prefers its own variable
	}
	rc = rc < 0 ? rc : limits_choose_gpus(wanted, cards, visible, &limits->gpus, &n, e);
	if (rc < 0) {
		return rc;
	}
	limits->gpus_of_hip = n == 0 || cards->hip;
	struct text how = {0};
	text_format(&how, "%u (CUDA_VISIBLE_DEVICES=%s)", n, limits->gpus);
	limits->set[LIMIT_GPUS] = text_steal(&how);
	return 0;
}

// Limits ------------------------------------------------------------------------------------------

// ---- parsing

static bool is_number(const char *text)
{
	return *text && strspn(text, "0123456789") == strlen(text);
}

static int read_cpus(struct limits_wanted *w, const char *text, struct error *e)
{
	static const char expected[] = "expected a number of CPUs (2) or a list of them (0-1,4)";
	int64_t count = 0;
	struct cpus cpus = {0};
	if (is_number(text)) {
		if (parse_integer(text, 1, CPUS_MAX, &count, NULL) < 0) {
			return error_set(
				e, ERANGE, "expected 1 to %d CPUs, found '%s'", CPUS_MAX, text);
		}
	} else if (strchr(text, '\n') || !cpus_parse(cursor_of(text, strlen(text)), &cpus)) {
		return error_set(e, EINVAL, "%s, found '%s'", expected, text);
	}
	w->cpu_count = (unsigned)count;
	w->cpus = cpus;
	return 0;
}

static int read_memory(struct limits_wanted *w, const char *text, struct error *e)
{
	uint64_t bytes;
	int rc = parse_size(text, &bytes, e);
	if (rc == 0 && bytes < LIMIT_MEMORY_MIN) {
		rc = error_set(e, ERANGE, "expected at least 1MiB, found '%s'", text);
	}
	if (rc == 0) {
		w->memory_bytes = bytes;
	}
	return rc;
}

static int read_rate(struct limits_wanted *w, const char *text, struct error *e)
{
	uint64_t rate = 0;
	if (strcmp(text, "unlimited") != 0) {
		int rc = parse_rate(text, &rate, NULL);
		if (rc < 0) {
			return error_set(e, -rc,
				"expected a rate such as 100MB/s, or unlimited, found '%s'", text);
		}
		if (rate < LIMIT_RATE_MIN) {
			return error_set(e, ERANGE, "expected at least 4KiB/s, found '%s'", text);
		}
	}
	w->read_bytes_per_s = rate;
	return 0;
}

static int read_gpus(struct limits_wanted *w, const char *text, struct error *e)
{
	int64_t count = 0;
	char *list = NULL;
	if (is_number(text)) {
		if (parse_integer(text, 0, LIMIT_GPUS_MAX, &count, NULL) < 0) {
			return error_set(e, ERANGE, "expected 0 to %d GPUs, found '%s'",
				LIMIT_GPUS_MAX, text);
		}
	} else {
		int rc = limits_read_gpu_list(text, &list, e);
		if (rc < 0) {
			return rc;
		}
	}
	free(w->gpu_list);
	w->gpu_list = list;
	w->gpu_count = (unsigned)count;
	return 0;
}

// ---- CPUs

static int check_quota(int root_fd, unsigned n, struct error *e)
{
	struct cgroup_places places = {0};
	_cleanup_free_ char *directory = NULL;
	double quota;
	int rc = 0;
	if (cgroup_places_find(root_fd, "self", &places, NULL) == 0 &&
		cgroupfs_cpu_quota(root_fd, &places, &quota, &directory) == 0 && n > ceil(quota)) {
		rc = error_set(e, ERANGE, "expected at most %g CPUs, the quota of /%s, found %u",
			quota, directory ? directory : "", n);
	}
	cgroup_places_done(&places);
	return rc;
}

static int check_count(unsigned count, const struct cpus *allowed, struct error *e)
{
	_cleanup_text_ struct text list = {0};
	cpus_append(&list, allowed);
	return count > cpus_count(allowed)
	               ? error_set(e, ERANGE,
				 "expected at most %u, the CPUs available to strain (%s), found %u",
				 cpus_count(allowed), list.data ? list.data : "", count)
	               : 0;
}

static int find_allowed(struct cpus *ret, struct error *e)
{
	int rc = cpus_of_self(ret);
	return rc < 0 ? error_errno(e, -rc, "cannot determine the available CPUs") : 0;
}

int limits_check_cpus(unsigned count, int root_fd, struct error *e)
{
	struct cpus allowed;
	int rc = find_allowed(&allowed, e);
	rc = rc < 0 ? rc : check_count(count, &allowed, e);
	return rc < 0 ? rc : check_quota(root_fd, count, e);
}

static int choose_cpus(const struct limits_wanted *w, const struct limits_place *place,
	struct cpus *ret, struct error *e)
{
	struct cpus allowed;
	int rc = find_allowed(&allowed, e);
	rc = rc < 0 ? rc : check_count(w->cpu_count, &allowed, e);
	if (rc < 0) {
		return rc;
	}
	int outside = cpus_first_outside(&w->cpus, &allowed);
	if (w->cpu_count == 0 && outside >= 0) {
		_cleanup_text_ struct text list = {0};
		cpus_append(&list, &allowed);
		return error_set(e, ERANGE, "expected CPUs available to strain (%s), found %d",
			list.data ? list.data : "", outside);
	}
	if (w->cpu_count > 0) {
		cpus_choose(place->root_fd, &allowed, w->cpu_count, ret);
	} else {
		*ret = w->cpus;
	}
	return check_quota(place->root_fd, cpus_count(ret), e);
}

// v1 needs the memory nodes, too; they are copied from the cgroup above.
static int copy_memory_nodes(const struct limits_place *place, const char *directory)
{
	_cleanup_free_ char *parent = strdup(directory);
	char buffer[1024];
	struct cursor text;
	int rc = parent ? 0 : -ENOMEM;
	if (rc == 0) {
		*strrchr(parent, '/') = '\0';
		rc = cgroupfs_read(place->root_fd, parent, "cpuset.mems", buffer,
			sizeof(buffer) - 1, &text, NULL);
	}
	if (rc < 0) {
		return rc;
	}
	buffer[text.end - text.at] = '\0';
	return cgroup_directory_write(place->root_fd, directory, "cpuset.mems", buffer);
}

static bool set_cpuset(const struct limits_place *place, const char *list)
{
	struct job_cgroup *cgroup = place->cgroup;
	if (!cgroup || job_cgroup_add(place->root_fd, CGROUP_CPUSET, cgroup, NULL) < 0) {
		return false;
	}
	return cgroup_directory_write(place->root_fd, cgroup->cpuset, "cpuset.cpus", list) == 0 &&
	       (cgroup->version == 2 || copy_memory_nodes(place, cgroup->cpuset) == 0);
}

static int set_cpus(const struct limits_wanted *w, const struct limits_place *place,
	struct limits *l, struct error *e)
{
	_cleanup_text_ struct text list = {0}, how = {0};
	int rc = choose_cpus(w, place, &l->cpus, e);
	if (rc < 0) {
		return rc;
	}
	cpus_append(&list, &l->cpus);
	if (list.failed) {
		return error_errno(e, ENOMEM, "cannot limit CPUs");
	}
	l->affinity = !set_cpuset(place, list.data);
	l->in_cgroup = l->in_cgroup || !l->affinity;
	if (l->affinity && place->cgroup) {
		job_cgroup_drop_cpuset(place->cgroup);
	}
	text_format(&how, "%u (%s %s)", cpus_count(&l->cpus), l->affinity ? "affinity" : "cpuset",
		list.data);
	l->set[LIMIT_CPUS] = text_steal(&how);
	return 0;
}

// ---- memory

// The smaller of the machine's memory and the limits of the cgroups above.
static uint64_t memory_available(const struct limits_place *place, char **ret_directory)
{
	struct cgroup_places places = {0};
	uint64_t total, limit, most = UINT64_MAX;
	if (procfs_meminfo(place->root_fd, "MemTotal", &total) == 0 && total > 0) {
		most = total;
	}
	if (cgroup_places_find(place->root_fd, "self", &places, NULL) == 0) {
		_cleanup_free_ char *directory = NULL;
		if (cgroupfs_memory_limit(place->root_fd, &places, &limit, &directory) == 0 &&
			limit < most) {
			most = limit;
			*ret_directory = take_pointer(directory);
		}
		cgroup_places_done(&places);
	}
	return most;
}

static int check_memory(const struct limits_place *place, uint64_t bytes, struct error *e)
{
	_cleanup_free_ char *directory = NULL;
	char found[32], most[32];
	uint64_t available = memory_available(place, &directory);
	if (bytes <= available) {
		return 0;
	}
	text_bytes_beside(found, sizeof(found), (double)bytes, (double)bytes);
	text_bytes_beside(most, sizeof(most), (double)available, (double)bytes);
	return error_set(e, ERANGE, "expected at most %s, %s%s, found %s (%" PRIu64 ")", most,
		directory ? "the limit of /" : "all that this machine has",
		directory ? directory : "", found, bytes);
}

static uint64_t page_bytes(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

// Checks the value read back: the kernel rounds to whole pages.
static int check_written(
	const struct limits_place *place, const char *name, uint64_t bytes, struct error *e)
{
	char buffer[64];
	struct cursor text;
	uint64_t found = 0;
	int rc = cgroupfs_read(
		place->root_fd, place->cgroup->memory, name, buffer, sizeof(buffer), &text, e);
	if (rc == 0 &&
		(!cursor_u64(&text, &found) || found > bytes || found + page_bytes() <= bytes)) {
		rc = error_set(e, EIO, "/%s/%s: expected %" PRIu64 ", found %" PRIu64,
			place->cgroup->memory, name, bytes, found);
	}
	return rc;
}

static bool has_swap(int root_fd)
{
	uint64_t total;
	return procfs_meminfo(root_fd, "SwapTotal", &total) == 0 && total > 0;
}

static int write_memory(
	const struct limits_place *place, uint64_t bytes, const char **ret_swap, struct error *e)
{
	static const char *const limits[] = {"memory.limit_in_bytes", "memory.max"};
	const struct job_cgroup *cgroup = place->cgroup;
	const char *limit = limits[cgroup->version - 1];
	char number[24], more[24];
	snprintf(number, sizeof(number), "%" PRIu64, bytes);
	snprintf(more, sizeof(more), "%" PRIu64, bytes + page_bytes());
	int rc = cgroup_directory_write(place->root_fd, cgroup->memory, limit, number);
	if (rc < 0) {
		return error_errno(e, -rc, "/%s/%s", cgroup->memory, limit);
	}
	// Memory over the limit must not go to swap, or only the speed would be limited. v1 limits
	// memory and swap together. That limit is one page larger than the one for memory alone,
	// because at equal limits no failure is counted (observed with Linux 6.18), and the cause
	// of the job's death would be unknown.
	int swap = cgroup->version == 2 ? cgroup_directory_write(place->root_fd, cgroup->memory,
						  "memory.swap.max", "0")
	                                : cgroup_directory_write(place->root_fd, cgroup->memory,
						  "memory.memsw.limit_in_bytes", more);
	if (swap == -ENOENT && cgroup->version == 1) {
		(void)cgroup_directory_write(
			place->root_fd, cgroup->memory, "memory.swappiness", "0");
	} else if (swap < 0 && swap != -ENOENT) {
		return error_errno(e, -swap, "/%s: cannot limit swap", cgroup->memory);
	}
	*ret_swap = swap < 0 && has_swap(place->root_fd) ? "; swap is not counted here" : "";
	return check_written(place, limit, bytes, e);
}

// The reason why there is no cgroup to limit memory.
static int refuse_memory(const struct limits_place *place, struct error *e)
{
	const struct job_cgroup *cgroup = place->cgroup;
	const char *reason = cgroup ? cgroup->memory_reason : place->why_none->text;
	if (!cgroup) {
		return error_set(e, place->why_none->code, "no cgroup for the job: %s", reason);
	}
	error_set(e, reason ? cgroup->memory_code : ENOENT, "%s%s",
		reason ? reason : "the memory controller is not enabled for /",
		reason ? "" : cgroup->procs);
	return job_cgroup_add_hint(place->root_fd, cgroup, CGROUP_MEMORY, e);
}

static int set_memory(const struct limits_wanted *w, const struct limits_place *place,
	struct limits *l, struct error *e)
{
	const char *swap = "";
	if (!place->cgroup || !place->cgroup->memory) {
		return refuse_memory(place, e);
	}
	int rc = check_memory(place, w->memory_bytes, e);
	rc = rc < 0 ? rc : write_memory(place, w->memory_bytes, &swap, e);
	if (rc < 0) {
		return rc;
	}
	struct text how = {0};
	text_format(&how, "%" PRIu64 " (cgroup v%d memory%s)", w->memory_bytes,
		place->cgroup->version, swap);
	l->set[LIMIT_MEMORY] = text_steal(&how);
	l->memory_bytes = w->memory_bytes;
	l->in_cgroup = true;
	return 0;
}

// ---- all

static const struct {
	const char *option;
	const char *key;
	int (*read)(struct limits_wanted *wanted, const char *text, struct error *e);
	int (*set)(const struct limits_wanted *wanted, const struct limits_place *place,
		struct limits *limits, struct error *e);
} table[N_LIMITS] = {
	[LIMIT_CPUS] = {"--cpus", "limit_cpus", read_cpus, set_cpus},
	[LIMIT_MEMORY] = {"--memory", "limit_memory", read_memory, set_memory},
	[LIMIT_DISK_READ] = {"--disk-read", "limit_disk_read", read_rate, limits_set_disk_read},
	[LIMIT_GPUS] = {"--gpus", "limit_gpus", read_gpus, limits_set_gpus},
};

const char *limit_option(enum limit limit)
{
	return table[limit].option;
}

const char *limit_key(enum limit limit)
{
	return table[limit].key;
}

int limits_read(struct limits_wanted *wanted, enum limit limit, const char *text, struct error *e)
{
	if (table[limit].read(wanted, text, e) < 0) {
		return error_prefix(e, "%s", table[limit].option);
	}
	wanted->wanted[limit] = true;
	return 0;
}

bool limits_any(const struct limits_wanted *wanted)
{
	bool any = false;
	for (size_t i = 0; i < N_LIMITS; i++) {
		any = any || wanted->wanted[i];
	}
	return any;
}

void limits_wanted_done(struct limits_wanted *wanted)
{
	free(wanted->gpu_list);
	*wanted = (struct limits_wanted){0};
}

int limits_set(const struct limits_wanted *wanted, const struct limits_place *place,
	struct limits *ret, struct error *e)
{
	struct limits limits = {0};
	for (size_t i = 0; i < N_LIMITS; i++) {
		if (!wanted->wanted[i]) {
			continue;
		}
		int rc = table[i].set(wanted, place, &limits, e);
		if (rc == 0 && !limits.set[i]) {
			rc = error_errno(e, ENOMEM, "cannot set it");
		}
		if (rc < 0) {
			limits_done(&limits);
			return error_prefix(e, "%s", table[i].option);
		}
	}
	*ret = limits;
	return 0;
}

int limits_enter(const struct limits *limits)
{
	return limits->affinity && sched_setaffinity(
					   0, sizeof(limits->cpus.words), limits->cpus.words) < 0
	               ? -errno
	               : 0;
}

void limits_set_environment(const struct limits *limits)
{
	if (!limits->gpus) {
		return;
	}
	if (!getenv("CUDA_VISIBLE_DEVICES")) {
		// The numbers are NVML's; CUDA's own order begins with the fastest GPU.
		setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
	}
	setenv("CUDA_VISIBLE_DEVICES", limits->gpus, 1);
	if (limits->gpus_of_hip) {
		setenv("HIP_VISIBLE_DEVICES", limits->gpus, 1);
	}
	if (strcmp(limits->gpus, "-1") == 0) {
		setenv("ROCR_VISIBLE_DEVICES", limits->gpus, 1);
	}
}

void limits_done(struct limits *limits)
{
	for (size_t i = 0; i < N_LIMITS; i++) {
		free(limits->set[i]);
	}
	free(limits->gpus);
	*limits = (struct limits){0};
}
