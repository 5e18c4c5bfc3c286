// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The end of the job's output, in a bounded buffer.

#include "record/tail.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/secret.h"

void tail_open(struct tail *t, int fd)
{
	struct stat st;
	*t = (struct tail){.file = -1};
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		t->file = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		t->from = lseek(fd, 0, SEEK_CUR);
	}
}

void tail_close(struct tail *t)
{
	if (t->file >= 0) {
		close(t->file);
	}
	t->file = -1;
}

void tail_add(struct tail *t, const char *data, size_t length)
{
	if (length > sizeof(t->bytes)) {
		data += length - sizeof(t->bytes);
		length = sizeof(t->bytes);
		t->cut = true;
	}
	size_t room = sizeof(t->bytes) - length;
	if (t->kept > room) {
		memmove(t->bytes, t->bytes + t->kept - room, room);
		t->kept = room;
		t->cut = true;
	}
	memcpy(t->bytes + t->kept, data, length);
	t->kept += length;
}

void tail_tear(struct tail *t)
{
	t->kept = 0;
	t->cut = true;
}

// A file that was truncated since is read from its beginning.
static void read_file(struct tail *t)
{
	struct stat st;
	if (fstat(t->file, &st) < 0) {
		return;
	}
	off_t from = t->from > 0 && t->from <= st.st_size ? t->from : 0;
	t->cut = st.st_size - from > (off_t)sizeof(t->bytes);
	from = t->cut ? st.st_size - (off_t)sizeof(t->bytes) : from;
	ssize_t n = pread(t->file, t->bytes, sizeof(t->bytes), from);
	t->kept = n > 0 ? (size_t)n : 0;
}

void tail_append(struct tail *t, struct text *ret)
{
	if (t->file >= 0) {
		read_file(t);
	}
	secret_append_end(ret, t->bytes, t->kept, t->cut);
}
