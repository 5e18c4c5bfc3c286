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

// Whether the pid in the run means something here: another pid namespace has other numbers.
static bool is_same_pid_namespace(const struct pairs *run)
{
	const char *theirs = pairs_get(run, "pid_namespace");
	char ours[64];
	ssize_t n = readlink("/proc/self/ns/pid", ours, sizeof(ours) - 1);
	if (!theirs || n < 0) {
		return true;
	}
	ours[n] = '\0';
	return strcmp(theirs, ours) == 0;
}

bool recorder_is_alive(const char *path, const struct pairs *run)
{
	const char *boot_id = pairs_get(run, "boot_id"), *hostname = pairs_get(run, "hostname");
	char our_boot_id[64], our_hostname[256] = "";
	gethostname(our_hostname, sizeof(our_hostname) - 1);
	bool same_boot = boot_id &&
	                 read_line("/proc/sys/kernel/random/boot_id", our_boot_id,
				 sizeof(our_boot_id)) &&
	                 strcmp(boot_id, our_boot_id) == 0;
	if (!same_boot && hostname && strcmp(hostname, our_hostname) == 0) {
		return false; // this machine, before it was booted
	}
	if (!same_boot || !is_same_pid_namespace(run)) {
		return was_written_recently(path);
	}
	int64_t pid = pairs_number(run, "recorder_pid");
	uint64_t ticks = (uint64_t)pairs_number(run, "recorder_start_ticks");
	return pid > 0 && ticks > 0 && process_start_ticks(pid) == ticks;
}
