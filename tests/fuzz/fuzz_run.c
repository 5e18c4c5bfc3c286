// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The run reader. An input that begins as an SQLite database is a run file; any other is a list of
// changes to a small run: five bytes each, three of the place, two to put there. Whatever opens is
// read whole.

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit/synthetic_run.h"
#include "base/cleanup.h"
#include "runfile/findings.h"
#include "runfile/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool right)
{
	if (!right) {
		abort();
	}
}

// Beside the other processes of the fuzzer; in memory where there is a place for that.
static void make_path(char *path, size_t size)
{
	const char *directory = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	snprintf(path, size, "%s/strain-fuzz-%d.strain", directory, (int)getpid());
}

static uint8_t *make_base(const char *path, size_t *ret_size)
{
	struct synthetic_run run = {.seconds = 1, .interval_ns = 20000000};
	struct stat st;
	check(synthetic_run_write(path, &run, NULL) == 0 && stat(path, &st) == 0);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t *bytes = calloc(1, (size_t)st.st_size);
	check(bytes && read(fd, bytes, (size_t)st.st_size) == st.st_size);
	unlink(path);
	*ret_size = (size_t)st.st_size;
	return bytes;
}

static void write_file(const char *path, const uint8_t *data, size_t size)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	check(fd >= 0 && write(fd, data, size) == (ssize_t)size);
}

static void write_changed(const char *path, const uint8_t *data, size_t size)
{
	static uint8_t *base; // made once: the fuzzer runs this thousands of times a second
	static size_t base_size;
	if (!base) {
		base = make_base(path, &base_size);
	}
	_cleanup_free_ uint8_t *bytes = calloc(1, base_size);
	check(bytes);
	memcpy(bytes, base, base_size);
	for (size_t i = 0; i + 5 <= size; i += 5) {
		size_t at = (size_t)data[i] << 16 | (size_t)data[i + 1] << 8 | data[i + 2];
		at %= base_size - 1;
		bytes[at] = data[i + 3];
		bytes[at + 1] = data[i + 4];
	}
	write_file(path, bytes, base_size);
}

static int count_rows(void *context, int64_t entity, const struct block *b)
{
	(void)entity;
	check(b->n_rows > 0 && b->t[b->n_rows - 1] >= b->t[0]);
	*(uint64_t *)context += b->n_rows;
	return 0;
}

static void read_all(struct reader *r)
{
	struct series s;
	uint64_t rows = 0;
	reader_notice(r);
	reader_end_ns(r);
	reader_run(r, "command");
	reader_label(r, "batch_size");
	for (int64_t entity = 1; entity <= SYNTHETIC_RECORDER; entity++) {
		reader_blocks(r, entity, count_rows, &rows, NULL);
	}
	if (reader_series(r, 3, "process.memory.usage", 100000, INT64_MAX, &s, NULL) == 0) {
		series_done(&s);
	}
	sqlite3_exec(reader_database(r),
		"SELECT sum(value) FROM samples WHERE metric = 'process.cpu.time' AND t < 0.5",
		NULL, NULL, NULL);
	reader_notice(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[64];
	struct reader *r = NULL;
	struct error e = {0};
	make_path(path, sizeof(path));
	if (size >= 6 && memcmp(data, "SQLite", 6) == 0) {
		write_file(path, data, size);
	} else {
		write_changed(path, data, size);
	}
	struct findings findings;
	if (findings_read(path, &findings, NULL) == 0) {
		findings_done(&findings);
	}
	if (reader_open(path, &r, &e) == 0) {
		read_all(r);
		reader_free(r);
	} else {
		check(e.code && e.text[0] && !strchr(e.text, '\n'));
	}
	unlink(path);
	return 0;
}
