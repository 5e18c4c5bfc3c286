// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Kernel text files under a root.

#include "machine/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"

// Keyed -------------------------------------------------------------------------------------------
//
// Lines with a name and a number.

bool file_next_key(struct cursor *text, struct cursor *ret_key, struct cursor *ret_value)
{
	struct cursor line;
	while (cursor_line(text, &line)) {
		const char *at = line.at;
		while (at < line.end && *at != ':' && *at != ' ' && *at != '\t') {
			at++;
		}
		if (at > line.at) {
			*ret_key = (struct cursor){line.at, at};
			*ret_value = (struct cursor){at + (at < line.end && *at == ':'), line.end};
			return true;
		}
	}
	return false;
}

int64_t file_key_number(struct cursor value)
{
	int64_t number;
	if (!cursor_i64(&value, &number)) {
		return KEYED_ABSENT;
	}
	cursor_skip_blanks(&value);
	if (cursor_literal(&value, "kB") && __builtin_mul_overflow(number, 1024, &number)) {
		return KEYED_ABSENT;
	}
	return number;
}

size_t file_keys_parse(struct cursor text, const char *const *keys, size_t n, int64_t *values)
{
	for (size_t i = 0; i < n; i++) {
		values[i] = KEYED_ABSENT;
	}
	size_t found = 0, expected = 0;
	struct cursor key, value;
	while (found < n && file_next_key(&text, &key, &value)) {
		for (size_t i = 0; i < n; i++) {
			size_t at = expected + i < n ? expected + i : expected + i - n;
			if (*keys[at] == *key.at && cursor_is(key, keys[at])) {
				if (values[at] == KEYED_ABSENT) {
					values[at] = file_key_number(value);
					found += values[at] != KEYED_ABSENT;
				}
				expected = at + 1 < n ? at + 1 : 0;
				break;
			}
		}
	}
	return found;
}

// File --------------------------------------------------------------------------------------------

#define HOST_FILE_MAX_BYTES ((size_t)1 << 20)
#define SEQ_FILE_SURELY_WHOLE 3072u

int host_file_open(struct host_file *f, int root_fd, const char *path, struct error *e)
{
	int fd = openat(root_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0) {
		return error_errno(e, errno, "/%s", path);
	}
	*f = (struct host_file){.fd = fd};
	return 0;
}

// libc's pread is a cancellation point, and handling that takes time.
static ssize_t pread_bare(int fd, void *buffer, size_t size, off_t offset)
{
	return syscall(SYS_pread64, fd, buffer, size, offset);
}

// Reads until nothing is left, or until a short read of less than `surely_whole` bytes, after
// which nothing can follow.
static int read_from_start(struct host_file *f, size_t surely_whole, struct cursor *ret)
{
	size_t length = 0;
	for (;;) {
		void *buffer = f->buffer;
		if (length == f->capacity &&
			array_reserve(&buffer, &f->capacity, length ? length * 2 : 2048, 1) < 0) {
			return -ENOMEM;
		}
		f->buffer = buffer;
		size_t wanted = f->capacity - length;
		ssize_t n = pread_bare(f->fd, f->buffer + length, wanted, (off_t)length);
		if (n < 0) {
			return -errno;
		}
		length += (size_t)n;
		bool whole = n == 0 || ((size_t)n < wanted && (size_t)n < surely_whole);
		if (whole || length >= HOST_FILE_MAX_BYTES) {
			*ret = cursor_of(f->buffer, length);
			return 0;
		}
	}
}

int host_file_read(struct host_file *f, struct cursor *ret)
{
	// seq_file returns about a page at a time: after a short read close to a page's size more
	// may follow. A read well below that is complete and needs no second call.
	return read_from_start(f, SEQ_FILE_SURELY_WHOLE, ret);
}

int host_file_read_to_end(struct host_file *f, struct cursor *ret)
{
	return read_from_start(f, 0, ret);
}

void host_file_close(struct host_file *f)
{
	if (f->fd >= 0) {
		close(f->fd);
	}
	free(f->buffer);
	*f = HOST_FILE_CLOSED;
}

int file_pread(int fd, char *buffer, size_t size, struct cursor *ret)
{
	ssize_t n = pread_bare(fd, buffer, size, 0);
	if (n <= 0) {
		return n < 0 ? -errno : -ENODATA;
	}
	*ret = cursor_of(buffer, (size_t)n);
	return 0;
}

int file_read_once(int root_fd, const char *path, char *buffer, size_t size, struct cursor *ret,
	struct error *e)
{
	_cleanup_close_ int fd = openat(
		root_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0) {
		return error_errno(e, errno, "/%s", path);
	}
	int r = file_pread(fd, buffer, size, ret);
	return r < 0 ? error_errno(e, -r, "/%s", path) : 0;
}

bool file_read_line(int root_fd, const char *path, char *to, size_t size)
{
	char buffer[256];
	struct cursor text, line;
	if (file_read_once(root_fd, path, buffer, sizeof(buffer), &text, NULL) < 0 ||
		!cursor_line(&text, &line)) {
		return false;
	}
	cursor_skip_blanks(&line);
	while (line.end > line.at && line.end[-1] == ' ') {
		line.end--;
	}
	size_t length = (size_t)(line.end - line.at);
	length = length < size ? length : size - 1;
	memcpy(to, line.at, length);
	to[length] = '\0';
	return length > 0;
}

char *file_unescape(struct cursor c)
{
	char *copy = strndup(c.at, (size_t)(c.end - c.at));
	char *to = copy;
	for (const char *from = copy; from && *from; to++) {
		if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] >= '0' &&
			from[2] <= '7' && from[3] >= '0' && from[3] <= '7') {
			*to = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
			from += 4;
		} else {
			*to = *from++;
		}
	}
	if (to) {
		*to = '\0';
	}
	return copy;
}

bool file_has_entries(int root_fd, const char *path)
{
	int fd = openat(root_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	bool any = false;
	for (struct dirent *item; directory && !any && (item = readdir(directory));) {
		any = item->d_name[0] != '.';
	}
	if (directory) {
		closedir(directory);
	} else if (fd >= 0) {
		close(fd);
	}
	return any;
}
