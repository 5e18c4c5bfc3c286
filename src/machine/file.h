// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Kernel text files, kept open and read whole with one pread. Paths are relative to the root of the
// machine, so that a captured tree is read like a live one.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/parse.h"

struct host_file {
	int fd; // -1 while closed
	char *buffer;
	size_t capacity;
};

#define HOST_FILE_CLOSED ((struct host_file){.fd = -1})

// Opens root_fd/path (no leading slash). Returns -errno with the path in the text.
int host_file_open(struct host_file *f, int root_fd, const char *path, struct error *e);
// Reads from the start into the file's own buffer, which grows as needed (up to 1 MiB). The view is
// valid until the next read. Returns 0 or -errno.
int host_file_read(struct host_file *f, struct cursor *ret);
// The same for a file with lines longer than a kilobyte (mountinfo), where a short read does not
// mean the end. Costs one more system call.
int host_file_read_to_end(struct host_file *f, struct cursor *ret);
void host_file_close(struct host_file *f);

// One pread of at most size bytes. Returns 0 or -errno; -ENODATA if there was nothing to read.
int file_pread(int fd, char *buffer, size_t size, struct cursor *ret);

// Opens, reads at most size bytes, and closes.
int file_read_once(int root_fd, const char *path, char *buffer, size_t size, struct cursor *ret,
	struct error *e);

// Copies the first line of a small file, without blanks around it and at most size - 1 bytes.
// Returns false if it cannot be read or is empty.
bool file_read_line(int root_fd, const char *path, char *to, size_t size);

// Returns a copy of a path in mountinfo, where blanks, newlines and backslashes are octal numbers;
// NULL: out of memory.
char *file_unescape(struct cursor c);

// Whether the directory exists and is not empty.
bool file_has_entries(int root_fd, const char *path);

// Keyed -------------------------------------------------------------------------------------------
//
// Kernel text with one name and number per line: "MemTotal:  24684096 kB", "anon 4096", "rchar:
// 12".

// A number that the kernel did not provide. The same integer as VALUE_MISSING, so that it passes
// through a source unchanged.
#define KEYED_ABSENT INT64_MIN

// Takes the next line that has a name. *ret_value begins after the name and its colon and ends with
// the line. Returns false at the end of the text.
bool file_next_key(struct cursor *text, struct cursor *ret_key, struct cursor *ret_value);

// Returns the number at the start of `value`, multiplied by 1024 if "kB" follows; KEYED_ABSENT if
// there is none or it exceeds 63 bits.
int64_t file_key_number(struct cursor value);

// Finds the numbers of n names in one pass, fastest if the names are in the order of the text.
// values[i] is KEYED_ABSENT for a name not in the text; the first of duplicate names counts.
// Returns the number of names found.
size_t file_keys_parse(struct cursor text, const char *const *keys, size_t n, int64_t *values);
