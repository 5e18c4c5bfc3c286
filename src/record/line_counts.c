// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Rows of one place add up here: a hook writes what it counted since the last time.

#include "record/line_counts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/beneath.h"
#include "base/cleanup.h"
#include "base/parse.h"
#include "base/text.h"
#include "trace/writer.h"

enum {
	FILES_MAX = 64,
	FILE_BYTES = 512 << 10, // as the hook writes at most
	ROWS_MAX = 2048, // of a process: the hook knows half as many places
	FIELDS = 5,
};
#define SAMPLES_MOST INT32_MAX // of a row

void line_process_done(struct line_process *process)
{
	free(process->counts);
	*process = (struct line_process){0};
}

void line_counts_done(struct line_counts *counts)
{
	for (size_t i = 0; i < counts->n; i++) {
		line_process_done(&counts->processes[i]);
	}
	free(counts->processes);
	*counts = (struct line_counts){0};
}

// A line
// -------------------------------------------------------------------------------------------

static bool take_number(struct cursor *at, int64_t least, int64_t most, int64_t *ret)
{
	return cursor_i64(at, ret) && *ret >= least && *ret <= most;
}

// Up to the next tab, or the end.
static struct cursor take_field(struct cursor *at)
{
	size_t length = (size_t)(at->end - at->at);
	const char *tab = memchr(at->at, '\t', length);
	struct cursor field = {at->at, tab ? tab : at->end};
	at->at = tab ? tab + 1 : at->end;
	return field;
}

// As text that can be shown. False where it does not fit.
static bool take_text(struct cursor field, char *ret, size_t size)
{
	_cleanup_text_ struct text utf8 = {0}, printable = {0};
	text_append_utf8(&utf8, field.at, (size_t)(field.end - field.at));
	text_append_printable(&printable, utf8.data ? utf8.data : "", utf8.length);
	if (utf8.failed || printable.failed || printable.length >= size) {
		return false;
	}
	memcpy(ret, printable.data ? printable.data : "", printable.length);
	ret[printable.length] = '\0';
	return true;
}

static bool take_count(struct cursor line, struct line_count *ret)
{
	struct cursor samples = take_field(&line), phase = take_field(&line);
	struct cursor number = take_field(&line), file = take_field(&line);
	struct cursor function = take_field(&line);
	return take_number(&samples, 1, SAMPLES_MOST, &ret->samples) && samples.at == samples.end &&
	       take_number(&number, 0, INT32_MAX, &ret->line) && number.at == number.end &&
	       take_text(phase, ret->phase, sizeof(ret->phase)) &&
	       take_text(file, ret->file, sizeof(ret->file)) && *ret->file &&
	       take_text(function, ret->function, sizeof(ret->function)) && line.at == line.end;
}

static int add_count(struct line_process *process, const struct line_count *count)
{
	for (size_t i = 0; i < process->n; i++) {
		struct line_count *row = &process->counts[i];
		if (row->line == count->line && strcmp(row->phase, count->phase) == 0 &&
			strcmp(row->file, count->file) == 0 &&
			strcmp(row->function, count->function) == 0) {
			int64_t sum = row->samples + count->samples;
			row->samples = sum < SAMPLES_MOST ? sum : SAMPLES_MOST;
			return 0;
		}
	}
	if (process->n == ROWS_MAX) {
		return 0;
	}
	int r = array_reserve((void **)&process->counts, &process->capacity, process->n + 1,
		sizeof(*process->counts));
	if (r == 0) {
		process->counts[process->n++] = *count;
	}
	return r;
}

// "process NAMESPACE CREATED_NS"
static void take_process(struct cursor line, struct identity_claim *ret)
{
	uint64_t name_space, at_ns;
	line.at += strlen("process ");
	if (cursor_u64(&line, &name_space) && line.at < line.end && *line.at == ' ') {
		line.at++;
		if (cursor_u64(&line, &at_ns) && line.at == line.end) {
			ret->pid_namespace = name_space;
			ret->at_ns = at_ns;
		}
	}
}

int line_counts_parse(const char *data, size_t length, struct line_process *ret)
{
	const char *end = data + length;
	int r = 0;
	for (const char *next; r == 0 && data < end; data = next + 1) {
		next = memchr(data, '\n', (size_t)(end - data));
		if (!next) {
			break; // it was being written
		}
		struct cursor line = {data, next};
		struct line_count count;
		if (next - data > 8 && memcmp(data, "process ", 8) == 0) {
			take_process(line, &ret->who);
		} else if (take_count(line, &count)) {
			r = add_count(ret, &count);
		}
	}
	return r;
}

// The directory -----------------------------------------------------------------------------------

static ssize_t read_regular(int directory, const char *name, char *buffer)
{
	struct stat status;
	_cleanup_close_ int fd = beneath_open(directory, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode)) {
		return -1;
	}
	return pread(fd, buffer, FILE_BYTES, 0);
}

static int take_file(struct line_counts *counts, int directory, const char *name, char *buffer)
{
	int64_t pid;
	if (parse_integer(name + strlen("lines-"), 1, INT32_MAX, &pid, NULL) < 0) {
		return 0;
	}
	ssize_t length = read_regular(directory, name, buffer);
	if (length <= 0) {
		return 0;
	}
	int r = array_reserve((void **)&counts->processes, &counts->capacity, counts->n + 1,
		sizeof(*counts->processes));
	if (r < 0) {
		return r;
	}
	struct line_process *process = &counts->processes[counts->n++];
	*process = (struct line_process){.who = {.inner_pid = (uint32_t)pid}};
	return line_counts_parse(buffer, (size_t)length, process);
}

int line_counts_read(int directory, struct line_counts *ret)
{
	*ret = (struct line_counts){0};
	int fd = directory < 0 ? -1 : openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		return 0;
	}
	_cleanup_free_ char *buffer = malloc(FILE_BYTES);
	DIR *listing = fdopendir(fd);
	if (!listing || !buffer) {
		if (listing) {
			closedir(listing);
		} else {
			close(fd);
		}
		return -ENOMEM;
	}
	int r = 0;
	unsigned files = 0;
	for (struct dirent *entry; r == 0 && (entry = readdir(listing)) && files < FILES_MAX;) {
		if (strncmp(entry->d_name, "lines-", strlen("lines-")) == 0) {
			files++;
			r = take_file(ret, dirfd(listing), entry->d_name, buffer);
		}
	}
	closedir(listing);
	return r;
}

void line_counts_put(const struct line_process *process, int64_t entity, struct writer *w)
{
	for (size_t i = 0; i < process->n; i++) {
		const struct line_count *count = &process->counts[i];
		writer_put_line_sample(w, &(struct writer_line){
						  .entity = entity,
						  .phase = *count->phase ? count->phase : NULL,
						  .file = count->file,
						  .line = count->line,
						  .function = count->function,
						  .samples = count->samples,
					  });
	}
}
