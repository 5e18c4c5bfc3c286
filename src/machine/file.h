// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Kernel text files, kept open and read whole with one pread. Paths are relative to the root of the
// machine, so that a captured tree reads like a live one.

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

// Opens root_fd/path (no leading slash). -errno with the path in the text.
int host_file_open(struct host_file *f, int root_fd, const char *path, struct error *e);
// Reads from the start into a buffer of its own that grows as needed (up to 1 MiB). The view lives
// until the next read. 0 or -errno.
int host_file_read(struct host_file *f, struct cursor *ret);
// The same for a file whose lines can be longer than a kilobyte (mountinfo), where a short reading
// does not mean the end. One more system call.
int host_file_read_to_end(struct host_file *f, struct cursor *ret);
void host_file_close(struct host_file *f);

// One pread of at most size bytes. 0 or -errno; -ENODATA where there was nothing.
int file_pread(int fd, char *buffer, size_t size, struct cursor *ret);

// Opens, reads at most size bytes and closes again.
int file_read_once(int root_fd, const char *path, char *buffer, size_t size, struct cursor *ret,
	struct error *e);

// Whether the directory is there and holds anything.
bool file_has_entries(int root_fd, const char *path);

// Keyed -------------------------------------------------------------------------------------------
//
// Kernel text with one name and number a line: "MemTotal:  24684096 kB", "anon 4096", "rchar: 12".

// What a number is where the kernel did not tell it: the same integer as VALUE_MISSING, so that it
// passes through a source untouched.
#define KEYED_ABSENT INT64_MIN

// Takes the next line that has a name. value begins behind the name and its colon and ends with the
// line. False at the end of the text.
bool file_next_key(struct cursor *text, struct cursor *ret_key, struct cursor *ret_value);

// The number that value begins with; "kB" behind it makes bytes of it. KEYED_ABSENT where there is
// none or it passes 63 bits.
int64_t file_key_number(struct cursor value);

// Finds the numbers of n names, in one pass and fastest where the names stand in the text's order.
// values[i] is KEYED_ABSENT for what the text lacks; of a name that comes twice the first counts.
// Returns how many were found.
size_t file_keys_parse(struct cursor text, const char *const *keys, size_t n, int64_t *values);
