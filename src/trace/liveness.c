// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Whether the recorder of a run without an end still writes it.

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
#include "base/process.h"
#include "trace/reader_internal.h"

#define RECENT_S 30

// Reads a short file of /proc as one line. False where it cannot be read.
static bool read_line(const char *path, char *line, size_t size)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, line, size - 1);
	if (n < 0) {
		return false;
	}
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return true;
}

static bool was_written_recently(const char *path)
{
	static const char *const suffixes[] = {"", "-wal", "-journal"};
	int64_t now_s = (int64_t)(clock_realtime_ns() / NS_PER_S);
	for (size_t i = 0; i < ARRAY_LENGTH(suffixes); i++) {
		_cleanup_free_ char *name = NULL;
		struct stat st;
		if (asprintf(&name, "%s%s", path, suffixes[i]) >= 0 && stat(name, &st) == 0 &&
			now_s - st.st_mtim.tv_sec <= RECENT_S) {
			return true;
		}
	}
	return false;
}

static int64_t pairs_number(const struct pairs *pairs, const char *name)
{
	const char *text = pairs_get(pairs, name);
	int64_t number;
	return text && parse_integer(text, 0, INT64_MAX, &number, NULL) == 0 ? number : 0;
}

static enum process_answer find_recorder(const struct pairs *run)
{
	const char *boot_id = pairs_get(run, "boot_id"), *hostname = pairs_get(run, "hostname");
	char our_boot_id[64], our_hostname[256] = "";
	gethostname(our_hostname, sizeof(our_hostname) - 1);
	if (boot_id && hostname && strcmp(hostname, our_hostname) == 0 &&
		read_line("/proc/sys/kernel/random/boot_id", our_boot_id, sizeof(our_boot_id)) &&
		strcmp(boot_id, our_boot_id) != 0) {
		return PROCESS_NO; // this machine, before it was booted
	}
	const struct process_name recorder = {
		.pid = pairs_number(run, "recorder_pid"),
		.start_ticks = (uint64_t)pairs_number(run, "recorder_start_ticks"),
		.boot_id = boot_id,
		.pid_namespace = pairs_get(run, "pid_namespace"),
	};
	return process_find(&recorder, NULL);
}

bool recorder_is_alive(const char *path, const struct pairs *run)
{
	enum process_answer answer = find_recorder(run);
	return answer == PROCESS_YES ||
	       (answer == PROCESS_CANNOT_TELL && was_written_recently(path));
}

bool recorder_has_ended(const struct pairs *run)
{
	return find_recorder(run) == PROCESS_NO;
}
