// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Writes a new file and renames it, so that an interruption leaves the previous checkpoint.

#include "checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"

static int write_all(int fd, const void *data, size_t bytes)
{
	const char *at = data;
	while (bytes > 0) {
		ssize_t n = write(fd, at, bytes);
		if (n < 0 && errno != EINTR) {
			return -errno;
		}
		at += n > 0 ? n : 0;
		bytes -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int write_weights(int fd, struct network *network, uint64_t bytes)
{
	static const char zeros[1 << 16];
	struct tensor *tensor;
	uint64_t written = 0;
	int r = 0;
	for (size_t i = 0; r == 0 && (tensor = network_parameter(network, i)); i++) {
		size_t size = tensor->count * sizeof(*tensor->value);
		r = write_all(fd, tensor->value, size);
		written += size;
	}
	while (r == 0 && written < bytes) {
		uint64_t rest = bytes - written;
		size_t size = rest < sizeof(zeros) ? (size_t)rest : sizeof(zeros);
		r = write_all(fd, zeros, size);
		written += size;
	}
	return r < 0 ? r : fsync(fd) < 0 ? -errno : 0;
}

int checkpoint_write(const char *path, struct network *network, uint64_t bytes, struct error *e)
{
	char beside[4096];
	int length = snprintf(beside, sizeof(beside), "%s.new", path);
	if (length < 0 || (size_t)length >= sizeof(beside)) {
		return error_set(e, ENAMETOOLONG, "the checkpoint's name is too long");
	}
	_cleanup_close_ int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	int r = fd < 0 ? -errno : write_weights(fd, network, bytes);
	if (r == 0 && rename(beside, path) < 0) {
		r = -errno;
	}
	if (r < 0) {
		unlink(beside);
		return error_errno(e, -r, "cannot write the checkpoint %s", path);
	}
	return 0;
}
