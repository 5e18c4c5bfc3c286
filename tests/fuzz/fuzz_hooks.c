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

#include "record/hooks.h"
#include "trace/writer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_file(const char *folder, const char *name, const uint8_t *data, size_t size)
{
	char path[96];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size) {
		abort();
	}
	close(fd);
}

static void remove_files(const char *folder)
{
	static const char *const names[] = {
		"hook-1", "hook-2", "a.strain", "a.strain-wal", "a.strain-shm", "a.strain-journal"};
	char path[96];
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		unlink(path);
	}
	rmdir(folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char folder[] = "/tmp/strain-fuzz-hooks-XXXXXX", run[64];
	struct writer *w = NULL;
	struct error e = {0};
	if (!mkdtemp(folder)) {
		abort();
	}
	write_file(folder, "hook-1", data, size / 2);
	write_file(folder, "hook-2", data + size / 2, size - size / 2);
	snprintf(run, sizeof(run), "%s/a.strain", folder);
	if (writer_create(run, &(struct writer_options){0}, &w, &e) < 0) {
		abort();
	}
	hooks_put(hooks_read(folder), w);
	if (writer_finish(w, 1, 0, &e) < 0) {
		abort(); // whatever they said, it can be written
	}
	writer_free(w);
	remove_files(folder);
	return 0;
}
