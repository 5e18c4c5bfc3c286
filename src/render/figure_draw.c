// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// gnuplot draws: script, data, picture and complaints are files in memory, so that whatever ends
// this program leaves nothing behind. The picture is written when it is whole.

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/whole_file.h"
#include "render/figure.h"

#define DATA_FD 3
#define FIRST_FD 10
#define LARGEST_PICTURE (256L << 20)

extern char **environ;

static int write_all(int fd, const char *data, size_t length)
{
	while (length > 0) {
		ssize_t n = write(fd, data, length);
		if (n < 0 && errno != EINTR) {
			return -errno;
		}
		data += n > 0 ? n : 0;
		length -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

// A file in memory that holds the text, to be read from its start. Not below FIRST_FD: those are
// gnuplot's. -errno.
static int memory_file(const char *name, const struct text *t)
{
	_cleanup_close_ int low = memfd_create(name, MFD_CLOEXEC);
	_cleanup_close_ int fd = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, FIRST_FD);
	if (fd < 0) {
		return -errno;
	}
	int r = t ? write_all(fd, t->data ? t->data : "", t->length) : 0;
	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0) {
		r = -errno;
	}
	return r < 0 ? r : take_fd(fd);
}

// Everything written to it, as text. 0 or -errno.
static int read_memory(int fd, struct text *ret)
{
	struct stat status;
	if (fstat(fd, &status) < 0 || lseek(fd, 0, SEEK_SET) < 0) {
		return -errno;
	}
	if (status.st_size > LARGEST_PICTURE) {
		return -EFBIG;
	}
	char piece[65536];
	for (;;) {
		ssize_t n = read(fd, piece, sizeof(piece));
		if (n <= 0) {
			return n < 0 ? -errno : ret->failed ? -ENOMEM : 0;
		}
		text_append(ret, piece, (size_t)n);
	}
}

struct drawing {
	int script, data, picture, said; // descriptors
};

// gnuplot reads no settings of the user's: a figure looks the same everywhere. 0 or a positive
// errno.
static int spawn_gnuplot(const struct drawing *d, pid_t *ret)
{
	posix_spawn_file_actions_t actions;
	int r = posix_spawn_file_actions_init(&actions);
	if (r != 0) {
		return r;
	}
	const struct {
		int from, to;
	} moves[] = {{d->script, 0}, {d->picture, 1}, {d->said, 2}, {d->data, DATA_FD}};
	for (size_t i = 0; r == 0 && i < ARRAY_LENGTH(moves); i++) {
		r = posix_spawn_file_actions_adddup2(&actions, moves[i].from, moves[i].to);
	}
	char name[] = "gnuplot", no_settings[] = "-d", from_stdin[] = "-";
	char *const arguments[] = {name, no_settings, from_stdin, NULL};
	r = r == 0 ? posix_spawnp(ret, "gnuplot", &actions, NULL, arguments, environ) : r;
	posix_spawn_file_actions_destroy(&actions);
	return r;
}

// The line in which gnuplot says what was wrong; "" where it said nothing.
static void append_complaint(struct text *t, const struct text *said)
{
	const char *line = said->data ? said->data : "";
	const char *best = line;
	size_t length = strcspn(line, "\n");
	while (*line) {
		size_t n = strcspn(line, "\n");
		if (memmem(line, n, "line ", 5) || memmem(line, n, "no terminal ", 12)) {
			best = line;
			length = n;
			break;
		}
		line += n + (line[n] == '\n');
	}
	length -= strspn(best, " \t") < length ? strspn(best, " \t") : 0;
	best += strspn(best, " \t");
	text_append_printable(t, best, length < 200 ? length : 200);
}

static int explain(int status, const struct text *said, struct error *e)
{
	_cleanup_text_ struct text complaint = {0};
	append_complaint(&complaint, said);
	const char *words = complaint.data ? complaint.data : "";
	if (strstr(words, "no terminal ")) {
		return error_set(
			e, ENOTSUP, "this gnuplot has %s (Debian's gnuplot-nox does)", words);
	}
	if (WIFSIGNALED(status)) {
		return error_set(e, EIO, "gnuplot was ended by signal %d", WTERMSIG(status));
	}
	return error_set(e, EIO, "gnuplot failed%s%s", *words ? ": " : "", words);
}

static int wait_for(pid_t pid, int *status)
{
	while (waitpid(pid, status, 0) < 0) {
		if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

static int run_gnuplot(const struct drawing *d, struct text *picture, struct error *e)
{
	pid_t pid;
	int status = 0, r = spawn_gnuplot(d, &pid);
	if (r == ENOENT) {
		return error_set(
			e, ENOENT, "gnuplot is not installed (Debian: apt install gnuplot-nox)");
	}
	if (r != 0) {
		return error_errno(e, r, "cannot start gnuplot");
	}
	r = wait_for(pid, &status);
	_cleanup_text_ struct text said = {0};
	r = r < 0 ? r : read_memory(d->said, &said);
	r = r < 0 ? r : read_memory(d->picture, picture);
	if (r < 0) {
		return error_errno(e, -r, "cannot read what gnuplot wrote");
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || picture->length == 0) {
		return explain(status, &said, e);
	}
	return 0;
}

static int draw(const struct figure_page *page, enum figure_format format, struct text *picture,
	struct error *e)
{
	static const char data_path[] = "/proc/self/fd/3";
	_cleanup_text_ struct text script = {0}, data = {0};
	int r = figure_script(page, format, data_path, NULL, &script, &data);
	if (r < 0) {
		return error_errno(e, -r, "cannot make the figure's script");
	}
	_cleanup_close_ int script_fd = memory_file("script", &script);
	_cleanup_close_ int data_fd = memory_file("data", &data);
	_cleanup_close_ int picture_fd = memory_file("picture", NULL);
	_cleanup_close_ int said_fd = memory_file("said", NULL);
	if (script_fd < 0 || data_fd < 0 || picture_fd < 0 || said_fd < 0) {
		return error_set(e, ENOMEM, "cannot make the figure's files in memory");
	}
	struct drawing d = {script_fd, data_fd, picture_fd, said_fd};
	return run_gnuplot(&d, picture, e);
}

static int write_whole(const char *path, const struct text *content, struct error *e)
{
	return whole_file_write(path, content->data ? content->data : "", content->length, e);
}

// The output's name without folder and ending: "time" of "paper/time.pdf".
static void append_stem(struct text *t, const char *path)
{
	const char *name = strrchr(path, '/');
	name = name ? name + 1 : path;
	const char *end = strrchr(name, '.');
	text_append(t, name, end && end > name ? (size_t)(end - name) : strlen(name));
}

static int keep_file(
	const char *directory, const char *name, const struct text *content, struct error *e)
{
	_cleanup_text_ struct text path = {0};
	text_format(&path, "%s/%s", directory, name);
	return path.failed ? error_errno(e, ENOMEM, "cannot keep the script")
	                   : write_whole(path.data, content, e);
}

static int keep_script(const struct figure_page *page, enum figure_format format, const char *path,
	const char *directory, struct error *e)
{
	_cleanup_text_ struct text stem = {0}, data_name = {0}, script_name = {0};
	_cleanup_text_ struct text script = {0}, data = {0};
	append_stem(&stem, path);
	text_format(&script_name, "%s.gp", stem.data ? stem.data : "");
	text_format(&data_name, "%s.dat", stem.data ? stem.data : "");
	const char *output = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	int r = stem.failed || script_name.failed || data_name.failed
	                ? -ENOMEM
	                : figure_script(page, format, data_name.data, output, &script, &data);
	if (r < 0) {
		return error_errno(e, -r, "cannot keep the script");
	}
	if (mkdir(directory, 0700) < 0 && errno != EEXIST) {
		return error_errno(e, errno, "cannot make %s", directory);
	}
	r = keep_file(directory, script_name.data, &script, e);
	return r < 0 ? r : keep_file(directory, data_name.data, &data, e);
}

int figure_write(const struct figure_page *page, const char *path, const char *keep_directory,
	struct error *e)
{
	enum figure_format format;
	if (!page) {
		return error_errno(e, ENOMEM, "cannot make the figure");
	}
	if (!figure_format_of(path, &format)) {
		return error_set(
			e, EINVAL, "%s: a figure's name ends with .pdf, .svg or .png", path);
	}
	int r = keep_directory ? keep_script(page, format, path, keep_directory, e) : 0;
	_cleanup_text_ struct text picture = {0};
	r = r < 0 ? r : draw(page, format, &picture, e);
	if (r < 0) {
		return error_prefix(e, "cannot draw %s", path);
	}
	return write_whole(path, &picture, e);
}
