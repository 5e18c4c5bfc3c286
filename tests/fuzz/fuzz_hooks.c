// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Fuzzes what is read of the hooks' files in the marker directory, and put into a run: two
// processes said the two halves of the input.

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/mark/hooks.h"
#include "runfile/writer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
	char folder[40];
	int fd; // of the folder
	struct writer *writer;
} place; // one run for all inputs: making one takes longer than reading these files

static void remove_place(void)
{
	static const char *const names[] = {
		"hook-1", "hook-2", "a.strain", "a.strain-wal", "a.strain-shm", "a.strain-journal"};
	char path[96];
	writer_free(place.writer);
	close(place.fd);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", place.folder, names[i]);
		unlink(path);
	}
	rmdir(place.folder);
}

static void make_place(void)
{
	const char *memory = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	struct error e = {0};
	char run[64];
	snprintf(place.folder, sizeof(place.folder), "%s/strain-fuzz-hooks-XXXXXX", memory);
	if (!mkdtemp(place.folder)) {
		abort();
	}
	place.fd = open(place.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(run, sizeof(run), "%s/a.strain", place.folder);
	if (writer_create(run, &(struct writer_options){0}, &place.writer, &e) < 0) {
		abort();
	}
	atexit(remove_place);
}

static void write_file(const char *name, const uint8_t *data, size_t size)
{
	char path[96];
	snprintf(path, sizeof(path), "%s/%s", place.folder, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size) {
		abort();
	}
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error e = {0};
	if (!place.writer) {
		make_place();
	}
	write_file("hook-1", data, size / 2);
	write_file("hook-2", data + size / 2, size - size / 2);
	hooks_put(hooks_read(place.fd), place.writer);
	if (writer_commit(place.writer, &e) < 0) {
		abort(); // whatever they said, it can be written
	}
	return 0;
}
