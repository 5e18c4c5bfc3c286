// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A figure in memory.

#include "show/figure.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "base/whole_file.h"
#include "base/words.h"

// Figure ------------------------------------------------------------------------------------------

#define LONGEST_NAME 28 // of a place on an axis, in letters

bool figure_format_of(const char *path, enum figure_format *ret)
{
	static const char *const endings[] = {
		[FORMAT_SVG] = ".svg", [FORMAT_PDF] = ".pdf", [FORMAT_PNG] = ".png"};
	size_t length = strlen(path);
	for (size_t i = 0; i < ARRAY_LENGTH(endings); i++) {
		size_t n = strlen(endings[i]);
		if (length > n && strcasecmp(path + length - n, endings[i]) == 0) {
			*ret = (enum figure_format)i;
			return true;
		}
	}
	return false;
}

// Text as a figure can show it: on one line, valid UTF-8.
static char *copy_text(struct figure_page *page, const char *string)
{
	struct text copy = {0};
	string = string ? string : "";
	text_append_printable(&copy, string, strlen(string));
	char *copied = text_steal(&copy);
	page->failed = page->failed || !copied;
	return copied;
}

static void set_text(struct figure_page *page, char **into, const char *string)
{
	free(*into);
	*into = copy_text(page, string);
}

// Room for one more; false, and the page knows, where there is none.
static bool make_room(
	struct figure_page *page, void **items, size_t *capacity, size_t n, size_t size)
{
	int r = array_reserve(items, capacity, n + 1, size);
	page->failed = page->failed || r < 0;
	return r == 0;
}

struct figure_page *figure_new(const char *title, size_t columns)
{
	struct figure_page *page = calloc(1, sizeof(*page));
	if (page) {
		page->columns = columns > 0 ? columns : 1;
		page->title = copy_text(page, title);
	}
	return page;
}

static void series_free(struct figure_series *series)
{
	for (size_t i = 0; i < series->n; i++) {
		free(series->points[i].words);
	}
	free(series->points);
	free(series->name);
	free(series);
}

static void axis_done(struct figure_axis *axis)
{
	for (size_t i = 0; i < axis->n_names; i++) {
		free(axis->names[i]);
	}
	free(axis->names);
	free(axis->label);
	free(axis->unit);
}

static void panel_free(struct figure_panel *panel)
{
	for (size_t i = 0; i < panel->n_series; i++) {
		series_free(panel->series[i]);
	}
	axis_done(&panel->x);
	axis_done(&panel->y);
	axis_done(&panel->z);
	free(panel->series);
	free(panel->verticals);
	free(panel->verticals_name);
	free(panel->said);
	free(panel->title);
	free(panel);
}

void figure_free(struct figure_page *page)
{
	if (!page) {
		return;
	}
	for (size_t i = 0; i < page->n_panels; i++) {
		panel_free(page->panels[i]);
	}
	for (size_t i = 0; i < page->n_notes; i++) {
		free(page->notes[i]);
	}
	free(page->panels);
	free(page->notes);
	free(page->title);
	free(page);
}

struct figure_panel *figure_add_panel(struct figure_page *page, const char *title)
{
	if (!page) {
		return NULL;
	}
	void *items = page->panels;
	bool there = make_room(
		page, &items, &page->panels_capacity, page->n_panels, sizeof(void *));
	page->panels = items;
	struct figure_panel *panel = there ? calloc(1, sizeof(*panel)) : NULL;
	if (!panel) {
		page->failed = true;
		return NULL;
	}
	panel->page = page;
	panel->title = copy_text(page, title);
	struct figure_axis *axes[] = {&panel->x, &panel->y, &panel->z};
	for (size_t i = 0; i < ARRAY_LENGTH(axes); i++) {
		axes[i]->minimum = axes[i]->maximum = NAN;
	}
	page->panels[page->n_panels++] = panel;
	return panel;
}

void figure_title_page(struct figure_page *page, const char *title)
{
	if (page) {
		set_text(page, &page->title, title);
	}
}

void figure_title_panel(struct figure_panel *panel, const char *title)
{
	if (panel) {
		set_text(panel->page, &panel->title, title);
	}
}

void figure_axis_set(
	struct figure_panel *panel, struct figure_axis *axis, const char *label, const char *unit)
{
	if (panel) {
		set_text(panel->page, &axis->label, label);
		set_text(panel->page, &axis->unit, unit);
	}
}

double figure_axis_name(struct figure_panel *panel, struct figure_axis *axis, const char *name)
{
	if (!panel) {
		return NAN;
	}
	_cleanup_text_ struct text elided = {0};
	words_append_elided(&elided, name ? name : "", LONGEST_NAME);
	_cleanup_free_ char *shown = copy_text(panel->page, elided.data);
	for (size_t i = 0; shown && i < axis->n_names; i++) {
		if (strcmp(axis->names[i], shown) == 0) {
			return (double)i;
		}
	}
	void *items = axis->names;
	bool there = make_room(
		panel->page, &items, &axis->capacity, axis->n_names, sizeof(*axis->names));
	axis->names = items;
	if (!there || !shown) {
		return NAN;
	}
	axis->names[axis->n_names] = take_pointer(shown);
	return (double)axis->n_names++;
}

struct figure_series *figure_add_series(
	struct figure_panel *panel, enum figure_look look, const char *name)
{
	if (!panel) {
		return NULL;
	}
	void *items = panel->series;
	bool there = make_room(
		panel->page, &items, &panel->series_capacity, panel->n_series, sizeof(void *));
	panel->series = items;
	struct figure_series *series = there ? calloc(1, sizeof(*series)) : NULL;
	if (!series) {
		panel->page->failed = true;
		return NULL;
	}
	*series = (struct figure_series){.look = look,
		.name = copy_text(panel->page, name),
		.style = (int)panel->n_series,
		.page = panel->page};
	panel->series[panel->n_series++] = series;
	return series;
}

static void add_point(struct figure_series *series, struct figure_point point)
{
	void *items = series->points;
	bool there = make_room(
		series->page, &items, &series->capacity, series->n, sizeof(*series->points));
	series->points = items;
	if (there) {
		series->points[series->n++] = point;
	} else {
		free(point.words);
	}
}

void figure_add_point(struct figure_series *series, double x, double y)
{
	figure_add_interval(series, x, y, NAN, NAN);
}

void figure_add_interval(struct figure_series *series, double x, double y, double low, double high)
{
	if (series) {
		add_point(series, (struct figure_point){x, y, low, high, NAN, NULL});
	}
}

void figure_add_words(struct figure_series *series, double x, const char *words)
{
	if (series) {
		char *copy = copy_text(series->page, words);
		add_point(series, (struct figure_point){x, NAN, NAN, NAN, NAN, copy});
	}
}

void figure_add_cell(struct figure_series *series, double x, double y, double z, const char *words)
{
	if (series) {
		char *copy = words ? copy_text(series->page, words) : NULL;
		add_point(series, (struct figure_point){x, y, NAN, NAN, z, copy});
	}
}

void figure_add_vertical(struct figure_panel *panel, double x, const char *name)
{
	if (!panel) {
		return;
	}
	void *items = panel->verticals;
	bool there = make_room(panel->page, &items, &panel->verticals_capacity, panel->n_verticals,
		sizeof(*panel->verticals));
	panel->verticals = items;
	if (there) {
		panel->verticals[panel->n_verticals++] = x;
		set_text(panel->page, &panel->verticals_name, name);
	}
}

__attribute__((format(printf, 3, 0))) static void format_text(
	struct figure_page *page, struct text *into, const char *format, va_list arguments)
{
	char line[512];
	vsnprintf(line, sizeof(line), format, arguments);
	text_append_printable(into, line, strlen(line));
	page->failed = page->failed || into->failed;
}

void figure_say(struct figure_panel *panel, const char *format, ...)
{
	if (!panel) {
		return;
	}
	struct text said = {0};
	if (panel->said) {
		text_format(&said, "%s\n", panel->said);
	}
	va_list arguments;
	va_start(arguments, format);
	format_text(panel->page, &said, format, arguments);
	va_end(arguments);
	free(panel->said);
	panel->said = text_steal(&said);
}

void figure_add_note(struct figure_page *page, const char *format, ...)
{
	void *items = page ? page->notes : NULL;
	if (!page || !make_room(page, &items, &page->notes_capacity, page->n_notes,
			     sizeof(*page->notes))) {
		return;
	}
	page->notes = items;
	struct text note = {0};
	va_list arguments;
	va_start(arguments, format);
	format_text(page, &note, format, arguments);
	va_end(arguments);
	page->notes[page->n_notes] = text_steal(&note);
	page->n_notes += page->notes[page->n_notes] != NULL;
}

// Draw --------------------------------------------------------------------------------------------
//
// gnuplot draws: script, data, picture and complaints are files in memory, so that whatever ends
// this program leaves nothing behind. The picture is written when it is whole.

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
		return error_set(e, EIO, "gnuplot was terminated by signal %d", WTERMSIG(status));
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
