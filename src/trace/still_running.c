// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A job's processes, by pid and start time.

#include "trace/still_running.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/parse.h"
#include "base/process.h"
#include "trace/reader_internal.h"
#include "trace/store.h"

// NULL: it cannot be read, or its pids mean nothing here.
static sqlite3 *open_ours(const char *path)
{
	sqlite3 *database = NULL;
	if (reader_open_database(path, &database, NULL) < 0) {
		return NULL;
	}
	char boot_id[64] = "";
	sqlite3_stmt *row = NULL;
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	bool known = file && fgets(boot_id, sizeof(boot_id), file), ours = false;
	boot_id[strcspn(boot_id, "\n")] = '\0';
	if (file) {
		fclose(file);
	}
	if (known &&
		sqlite3_prepare_v2(database, "SELECT value FROM run WHERE key = 'boot_id'", -1,
			&row, NULL) == SQLITE_OK &&
		sqlite3_step(row) == SQLITE_ROW) {
		const char *theirs = (const char *)sqlite3_column_text(row, 0);
		ours = theirs && strcmp(theirs, boot_id) == 0;
	}
	sqlite3_finalize(row);
	if (!ours) {
		sqlite3_close(database);
		return NULL;
	}
	return database;
}

// "PID:START"
static pid_t living(const char *key)
{
	struct cursor c = cursor_of(key, strlen(key));
	uint64_t pid, start;
	bool there = cursor_u64(&c, &pid) && cursor_literal(&c, ":") && cursor_u64(&c, &start) &&
	             pid > 1 && pid <= INT32_MAX && start > 0 &&
	             process_start_ticks((int64_t)pid) == start;
	return there ? (pid_t)pid : 0;
}

size_t still_running_signal(const char *path, int signal_number)
{
	sqlite3 *database = open_ours(path);
	sqlite3_stmt *row = NULL;
	size_t n = 0;
	if (database &&
		sqlite3_prepare_v2(database, "SELECT key FROM entity WHERE kind = 'process'", -1,
			&row, NULL) == SQLITE_OK) {
		while (sqlite3_step(row) == SQLITE_ROW) {
			const char *key = (const char *)sqlite3_column_text(row, 0);
			pid_t pid = key ? living(key) : 0;
			if (pid > 0 && kill(pid, signal_number) == 0) {
				n++;
			}
		}
	}
	sqlite3_finalize(row);
	sqlite3_close(database);
	return n;
}

pid_t still_running_recorder(const char *path)
{
	sqlite3 *database = open_ours(path);
	if (!database) {
		return 0;
	}
	sqlite3_int64 pid = store_number(
		database, "SELECT CAST(value AS INTEGER) FROM run WHERE key = 'recorder_pid'", 0);
	sqlite3_int64 start = store_number(database,
		"SELECT CAST(value AS INTEGER) FROM run WHERE key = 'recorder_start_ticks'", 0);
	sqlite3_close(database);
	bool there = pid > 1 && pid <= INT32_MAX && start > 0 &&
	             process_start_ticks(pid) == (uint64_t)start;
	return there ? (pid_t)pid : 0;
}

bool still_running_is_of(const char *path, pid_t recorder)
{
	char name[32];
	struct stat file, other;
	snprintf(name, sizeof(name), "/proc/%d/fd", (int)recorder);
	DIR *folder = stat(path, &file) == 0 ? opendir(name) : NULL;
	bool found = false;
	for (struct dirent *entry; folder && !found && (entry = readdir(folder));) {
		found = fstatat(dirfd(folder), entry->d_name, &other, 0) == 0 &&
		        other.st_dev == file.st_dev && other.st_ino == file.st_ino;
	}
	if (folder) {
		closedir(folder);
	}
	return found;
}
