// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Which cards the job may use: by CUDA_VISIBLE_DEVICES, which frameworks on NVIDIA's and AMD's
// cards follow. A job that sets it itself escapes; there is no stronger way without root.

#include "record/job/limits_set.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "record/host/file.h"
#include "record/host/nvml.h"

#define NO_CARD "-1" // ends the list: CUDA, HIP and ROCr agree; "" they do not

enum { DRIVER_TIMEOUT_MS = 10000 };

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

int limits_read_gpu_list(const char *text, char **ret, struct error *e)
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
			return error_set(e, EINVAL, "card %.*s is there twice in '%s'",
				(int)(entry.end - entry.at), entry.at, text);
		}
	}
	if (!good) {
		return error_set(e, EINVAL,
			"expected a number of cards (1), or a list of them by number or UUID "
			"(0,2), found '%s'",
			text);
	}
	*ret = strdup(text);
	return *ret ? 0 : error_errno(e, ENOMEM, "cards");
}

// ---- choosing

// The one card whose UUID begins so; -1: none, or several.
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

// The cards that strain itself may use: the entries of the variable up to the first that names
// none, else all by number.
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

// The visible entry that a wanted one means: by its place, or by its UUID. NULL where there is
// none.
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
	return error_set(e, ENODEV, "expected at most %u card%s, %s, found %u", v->n,
		v->n == 1 ? "" : "s", whose.data ? whose.data : "", wanted);
}

int limits_choose_gpus(const struct limits_wanted *wanted, const struct gpu_cards *cards,
	const char *visible, char **ret, unsigned *ret_count, struct error *e)
{
	_cleanup_free_ struct visible *v = calloc(1, sizeof(*v));
	_cleanup_text_ struct text list = {0};
	unsigned n = 0;
	if (!v) {
		return error_errno(e, ENOMEM, "cards");
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
				"there is no card %.*s among the %u that strain may use here",
				(int)(entry.end - entry.at), entry.at, v->n);
		}
		append_entry(&list, found);
	}
	text_append_string(&list, n == 0 ? NO_CARD : "");
	*ret = text_steal(&list);
	*ret_count = n;
	return *ret ? 0 : error_errno(e, ENOMEM, "cards");
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
		error_set(&answer->error, EIO, "the driver does not tell: %s", nvml_reason(result));
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

// Takes what the helper writes, up to the deadline. True: all of it.
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

// In a process of its own: a driver that hangs must not hang the launcher, and what the library
// leaves behind is no business of the job's.
static int ask_driver_aside(struct answer *ret, struct error *e)
{
	int fds[2];
	if (pipe2(fds, O_CLOEXEC) < 0) {
		return error_errno(e, errno, "pipe");
	}
	pid_t pid = fork();
	if (pid == 0) {
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
	if (!answered) {
		kill(pid, SIGKILL); // one that cannot die is the subreaper's to reap, some day
		waitpid(pid, NULL, WNOHANG);
		return error_set(e, ETIMEDOUT, "the driver did not answer within %d s",
			DRIVER_TIMEOUT_MS / 1000);
	}
	waitpid(pid, NULL, 0);
	return 0;
}

// AMD's compute devices: nodes of the topology that have a gpu_id.
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
		     host_read_once(root_fd, path, buffer, sizeof(buffer), &text, NULL) == 0 &&
		     cursor_u64(&text, &id) && id > 0;
	}
	closedir(directory);
	return n < LIMIT_GPUS_MAX ? n : LIMIT_GPUS_MAX;
}

static int find_cards(int root_fd, struct gpu_cards *ret, struct error *e)
{
	_cleanup_free_ struct answer *answer = calloc(1, sizeof(*answer));
	if (!answer) {
		return error_errno(e, ENOMEM, "cards");
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
	                            : error_set(e, ENODEV, "the driver knows of no card");
}

// ---- setting

int limits_set_gpus(const struct limits_wanted *wanted, const struct limits_place *place,
	struct limits *limits, struct error *e)
{
	_cleanup_free_ struct gpu_cards *cards = calloc(1, sizeof(*cards));
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	unsigned n = 0;
	int rc = cards ? 0 : error_errno(e, ENOMEM, "cards");
	if (rc == 0 && (wanted->gpu_list || wanted->gpu_count > 0)) {
		rc = find_cards(place->root_fd, cards, e);
		rc = rc < 0 ? error_prefix(e, "no card can be given to the job") : 0;
	}
	if (cards && cards->hip && getenv("HIP_VISIBLE_DEVICES")) {
		visible = getenv("HIP_VISIBLE_DEVICES"); // HIP prefers its own
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
