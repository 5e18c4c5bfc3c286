// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Reconstructs a command from the keys of a run.

#include "probe/replay.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/text.h"
#include "base/trust.h"
#include "runfile/reader.h"

enum { COMMAND_BYTES_MAX = 1 << 20, ARGUMENTS_MAX = 4096 };

#define MASKED "***"
#define NO_UTF8 "\xef\xbf\xbd" // stands for bytes that a run cannot store

int replay_allowed(const char *path, struct error *e)
{
	int r = trust_way(path, e);
	_cleanup_close_ int fd = r < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	if (r == 0 && fd < 0) {
		r = error_errno(e, errno, "%s", path);
	}
	return r < 0 ? r : trust_own(fd, path, e);
}

static int take_argument(struct replay *r, size_t i, const char *argument, struct error *e)
{
	if (!argument) {
		return error_set(e, EBADMSG, "its command is damaged");
	}
	if (strstr(argument, MASKED)) {
		return error_set(e, ENODATA, "a secret in its command was not recorded");
	}
	if (strstr(argument, NO_UTF8)) {
		return error_set(e, ENODATA, "bytes of its command were not recorded");
	}
	r->command[i] = strdup(argument);
	return r->command[i] ? 0 : error_set(e, ENOMEM, "out of memory");
}

static int read_command(struct reader *reader, struct replay *r, struct error *e)
{
	const char *text = reader_run(reader, "command");
	size_t length = text ? strnlen(text, COMMAND_BYTES_MAX + 1) : 0;
	json_t *list = length > 0 && length <= COMMAND_BYTES_MAX
	                       ? json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL)
	                       : NULL;
	size_t n = json_array_size(list);
	int result = 0;
	if (n == 0 || n > ARGUMENTS_MAX) {
		result = error_set(e, ENODATA, "its command was not recorded");
	}
	r->command = calloc(n + 1, sizeof(*r->command));
	if (result == 0 && !r->command) {
		result = error_set(e, ENOMEM, "out of memory");
	}
	for (size_t i = 0; i < n && result == 0; i++) {
		result = take_argument(r, i, json_string_value(json_array_get(list, i)), e);
	}
	json_decref(list);
	return result;
}

// A single rank would wait for the others.
static int check_ranks(struct reader *reader, struct error *e)
{
	static const char *const sizes[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
	for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
		const char *label = reader_label(reader, sizes[i]);
		uint64_t size;
		struct cursor at = cursor_of(label ? label : "", label ? strlen(label) : 0);
		if (cursor_u64(&at, &size) && size > 1) {
			return error_set(e, ENOTSUP, "it is one rank of %" PRIu64, size);
		}
	}
	return 0;
}

static int add(char **list, size_t most, const char *text, size_t length)
{
	size_t n = 0;
	while (n < most && list[n]) {
		n++;
	}
	list[n] = n < most ? strndup(text, length) : NULL;
	return list[n] ? 0 : -ENOMEM;
}

// The value of a limit is "2 (cpuset 0-1)": the number is what was asked for.
static int read_options(struct reader *reader, struct replay *r)
{
	static const struct {
		const char *key;
		const char *option;
	} known[] = {{"limit_cpus", "--cpus"}, {"limit_memory", "--memory"},
		{"limit_disk_read", "--disk-read"}, {"limit_gpus", "--gpus"}};
	int result = 0;
	for (size_t i = 0; i < ARRAY_LENGTH(known) && result == 0; i++) {
		const char *value = reader_run(reader, known[i].key);
		if (value) {
			result = add(r->options, REPLAY_OPTIONS, known[i].option,
				strlen(known[i].option));
			result = result < 0 ? result
			                    : add(r->options, REPLAY_OPTIONS, value,
						      strcspn(value, " "));
		}
	}
	const char *pattern = reader_run(reader, "epoch_pattern");
	if (pattern && *pattern && result == 0) {
		result = add(
			r->options, REPLAY_OPTIONS, "--epoch-pattern", strlen("--epoch-pattern"));
		result = result < 0 ? result
		                    : add(r->options, REPLAY_OPTIONS, pattern, strlen(pattern));
	}
	return result;
}

// The run records these two variables, and whether they were not set.
static int read_environment(struct reader *reader, struct replay *r)
{
	static const struct {
		const char *key;
		const char *variable;
	} known[] = {
		{"omp_num_threads", "OMP_NUM_THREADS"}, {"omp_wait_policy", "OMP_WAIT_POLICY"}};
	int result = 0;
	for (size_t i = 0; i < ARRAY_LENGTH(known) && result == 0; i++) {
		const char *value = reader_run(reader, known[i].key);
		_cleanup_text_ struct text pair = {0};
		text_format(
			&pair, "%s%s%s", known[i].variable, value ? "=" : "", value ? value : "");
		result = pair.failed
		                 ? -ENOMEM
		                 : add(r->environment, REPLAY_VARIABLES, pair.data, pair.length);
	}
	return result;
}

int replay_read(struct reader *reader, struct replay *ret, struct error *e)
{
	*ret = (struct replay){0};
	if (reader_run(reader, "attached_pid")) {
		return error_set(e, ENOTSUP, "it recorded a running process (--pid)");
	}
	int result = check_ranks(reader, e);
	result = result < 0 ? result : read_command(reader, ret, e);
	if (result < 0) {
		return result;
	}
	const char *directory = reader_run(reader, "directory");
	if (!directory || *directory != '/' || strstr(directory, NO_UTF8)) {
		return error_set(e, ENODATA, "its directory was not recorded");
	}
	ret->directory = strdup(directory);
	result = ret->directory ? read_options(reader, ret) : -ENOMEM;
	result = result < 0 ? result : read_environment(reader, ret);
	return result < 0 ? error_set(e, -result, "out of memory") : 0;
}

static void free_all(char **list)
{
	for (size_t i = 0; list && list[i]; i++) {
		free(list[i]);
	}
}

void replay_done(struct replay *r)
{
	free_all(r->command);
	free_all(r->options);
	free_all(r->environment);
	free(r->command);
	free(r->directory);
	*r = (struct replay){0};
}
