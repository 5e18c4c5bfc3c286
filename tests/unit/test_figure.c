// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "show/figure.h"

struct place {
	char directory[64];
	char *path; // PATH as it was
};

static int make_place(void **state)
{
	struct place *place = calloc(1, sizeof(*place));
	assert_non_null(place);
	snprintf(place->directory, sizeof(place->directory), "/tmp/strain-figure-XXXXXX");
	assert_non_null(mkdtemp(place->directory));
	place->path = strdup(getenv("PATH"));
	assert_int_equal(chdir(place->directory), 0);
	*state = place;
	return 0;
}

static int remove_place(void **state)
{
	struct place *place = *state;
	static const char *const files[] = {"x.svg", "x.pdf", "x.png", "gnuplot", "kept/x.gp",
		"kept/x.dat", "kept/x.svg", "x.svg.expected"};
	for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
		unlink(files[i]);
	}
	rmdir("kept");
	setenv("PATH", place->path, 1);
	// what is still there would be a file that nobody may leave behind
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(rmdir(place->directory), 0);
	free(place->path);
	free(place);
	return 0;
}

static bool is_installed(const char *program)
{
	char command[64];
	snprintf(command, sizeof(command), "command -v %s >/dev/null 2>&1", program);
	return system(command) == 0;
}

static struct figure_page *small_figure(void)
{
	struct figure_page *page = figure_new("Epochs", 1);
	struct figure_panel *panel = figure_add_panel(page, "cnn");
	figure_axis_set(panel, &panel->x, "batch size", NULL);
	figure_axis_set(panel, &panel->y, "epoch", "s");
	struct figure_series *series = figure_add_series(panel, LOOK_BARS, "PyTorch");
	figure_add_interval(series, figure_axis_name(panel, &panel->x, "32"), 40, 38, 42);
	figure_add_point(series, figure_axis_name(panel, &panel->x, "64"), 20);
	struct figure_series *other = figure_add_series(panel, LOOK_BARS, "oneDNN");
	figure_add_point(other, figure_axis_name(panel, &panel->x, "32"), 30);
	figure_add_point(other, figure_axis_name(panel, &panel->x, "64"), NAN);
	figure_add_note(page, "Two machines.");
	return page;
}

static struct figure_page *hostile_figure(void)
{
	static const char hostile[] =
		"it's `touch pwned` %d %s @LINE $y \\ \"q\" <b>&_{a}^2\n\x1b[2J\xff";
	struct figure_page *page = figure_new(hostile, 1);
	struct figure_panel *panel = figure_add_panel(page, hostile);
	figure_axis_set(panel, &panel->x, hostile, hostile);
	figure_axis_set(panel, &panel->y, hostile, hostile);
	struct figure_series *series = figure_add_series(panel, LOOK_BARS, hostile);
	figure_add_point(series, figure_axis_name(panel, &panel->x, hostile), 1);
	series = figure_add_series(panel, LOOK_HEAT, hostile);
	figure_add_cell(series, 0, 0, 1, hostile);
	figure_add_vertical(panel, 0.2, hostile);
	figure_say(panel, "%s", hostile);
	figure_add_note(page, "%s", hostile);
	return page;
}

static bool text_has(const struct text *t, const char *line)
{
	return t->data && strstr(t->data, line);
}

static void read_file(const char *path, struct text *ret)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	assert_non_null(file);
	char piece[4096];
	size_t n;
	while ((n = fread(piece, 1, sizeof(piece), file)) > 0) {
		text_append(ret, piece, n);
	}
}

static void test_the_script_of_a_figure(void **state)
{
	(void)state;
	struct figure_page *page = small_figure();
	_cleanup_text_ struct text script = {0}, data = {0};
	assert_int_equal(figure_script(page, FORMAT_PDF, "x.dat", "x.pdf", &script, &data), 0);
	assert_true(
		text_has(&script, "\nformat = 'pdf'\nrows = 1\ncolumns = 1\ncolumn_width = 8.8"));
	assert_true(text_has(&script, "\nlines_of_notes = 1\nhas_title = 1\n"));
	assert_true(text_has(&script, "\noutput = 'x.pdf'\n"));
	assert_true(text_has(&script, "\ndata = 'x.dat'\n"));
	assert_true(text_has(&script, "\nset multiplot layout rows, columns")); // of the template
	assert_true(text_has(&script, "\nset xrange [-0.5:1.5]\n"));
	assert_true(text_has(&script, "\nset xtics ('32' 0, '64' 1)\n"));
	assert_true(text_has(&script, "\nset yrange [0:44.52]\n")); // 6 % above 42
	assert_true(text_has(&script, "\nset ylabel 'epoch (s)'\n"));
	assert_true(text_has(&script, "\nset label 'Two machines.' at @NOTES\n"));
	assert_true(text_has(&script, "data index 0 @BARS @FILL1 title 'PyTorch'"));
	assert_true(text_has(&script, "data index 0 @INTERVAL"));
	assert_true(text_has(&script, "data index 1 @BARS @FILL2"));
	assert_false(text_has(&script, "data index 1 @INTERVAL")); // it has no interval
	assert_string_equal(data.data, "# index 0: panel 1, PyTorch\n"
				       "# x: batch size; y: epoch (s); columns: x, y, low, high, "
				       "width\n"
				       "-0.2 40 38 42 0.368\n"
				       "0.8 20 NaN NaN 0.368\n"
				       "\n\n# index 1: panel 1, oneDNN\n"
				       "# x: batch size; y: epoch (s); columns: x, y, low, high, "
				       "width\n"
				       "0.2 30 NaN NaN 0.368\n"
				       "1.2 NaN NaN NaN 0.368\n");
	figure_free(page);
}

static void test_units_by_the_largest_value(void **state)
{
	(void)state;
	static const struct {
		const char *unit;
		double value;
		const char *label, *shown;
	} cases[] = {
		{"By", 3.2e9, "'memory (GB)'", "1 3.2 "},
		{"By/s", 4.5e6, "'memory (MB/s)'", "1 4.5 "},
		{"1", 0.83, "'memory (%)'", "1 83 "},
		{"s", 0.012, "'memory (ms)'", "1 12 "},
		{"s", 14400, "'memory (h)'", "1 4 "},
		{"{cpu}", 2, "'memory'", "1 2 "},
		{"images/s", 740, "'memory (images/s)'", "1 740 "},
		{"images/s", 123456, "'memory (thousands of images/s)'", "1 123.456 "},
		{"", 123456789, "'memory (millions)'", "1 123.4568 "},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct figure_page *page = figure_new(NULL, 1);
		struct figure_panel *panel = figure_add_panel(page, "");
		figure_axis_set(panel, &panel->y, "memory", cases[i].unit);
		figure_add_point(figure_add_series(panel, LOOK_LINE, ""), 1, cases[i].value);
		_cleanup_text_ struct text script = {0}, data = {0};
		assert_int_equal(figure_script(page, FORMAT_SVG, "d", NULL, &script, &data), 0);
		assert_true(text_has(&script, cases[i].label));
		assert_true(text_has(&data, cases[i].shown));
		figure_free(page);
	}
}

static void test_axes_that_panels_share(void **state)
{
	(void)state;
	struct figure_page *page = figure_new(NULL, 2);
	page->share_x = page->share_y = true;
	for (int i = 0; i < 4; i++) {
		struct figure_panel *panel = figure_add_panel(page, "");
		figure_axis_set(panel, &panel->x, "time", "s");
		figure_axis_set(panel, &panel->y, "memory", "By");
		struct figure_series *series = figure_add_series(panel, LOOK_LINE, "");
		figure_add_point(series, 0, 100);
		figure_add_point(series, 10 * (i + 1), 1000 * (i + 1));
	}
	_cleanup_text_ struct text script = {0}, data = {0};
	assert_int_equal(figure_script(page, FORMAT_SVG, "d", NULL, &script, &data), 0);
	// the left column goes to 30 s, the right one to 40 s; the upper row to 2 kB
	static const struct {
		const char *panel, *x, *y;
	} expected[] = {
		{"# panel 1", "[0:30]\nset xtics step(30, x_most)\nset format x ''", "[0:2.12]\n"},
		{"# panel 2", "[0:40]\nset xtics step(40, x_most)\nset format x ''",
			"[0:2.12]\nset ytics step(2.12, y_most)\nset format y ''"},
		{"# panel 3", "[0:30]\n", "[0:4.24]\n"},
		{"# panel 4", "[0:40]\n",
			"[0:4.24]\nset ytics step(4.24, y_most)\nset format y ''"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(expected); i++) {
		const char *panel = strstr(script.data, expected[i].panel);
		assert_non_null(panel);
		const char *x = strstr(panel, "set xrange ") + strlen("set xrange ");
		const char *y = strstr(panel, "set yrange ") + strlen("set yrange ");
		assert_memory_equal(x, expected[i].x, strlen(expected[i].x));
		assert_memory_equal(y, expected[i].y, strlen(expected[i].y));
	}
	assert_true(text_has(&script, "\nshares_x = 1\nshares_y = 1\n"));
	figure_free(page);
}

static void test_many_lines_have_markers(void **state)
{
	(void)state;
	struct figure_page *page = figure_new(NULL, 1);
	struct figure_panel *panel = figure_add_panel(page, "");
	_cleanup_text_ struct text two = {0}, three = {0}, data = {0};
	for (int i = 0; i < 3; i++) {
		struct figure_series *series = figure_add_series(panel, LOOK_LINE, "line");
		for (int x = 0; x < 70; x++) {
			figure_add_point(series, x, i);
		}
		struct text *script = i == 1 ? &two : i == 2 ? &three : NULL;
		if (script) {
			assert_int_equal(
				figure_script(page, FORMAT_SVG, "d", NULL, script, &data), 0);
		}
	}
	assert_true(text_has(&two, "data index 0 @LINE lt 1"));
	assert_true(text_has(&three, "data index 0 @MARKED lt 1"));
	assert_true(text_has(&three, "\nMARKED = \"using 1:2 with linespoints ps 0.45 pn 7\"\n"));
	figure_free(page);
}

static void test_words_stand_where_a_bar_would(void **state)
{
	(void)state;
	struct figure_page *page = figure_new(NULL, 1);
	struct figure_panel *panel = figure_add_panel(page, "");
	_cleanup_text_ struct text script = {0}, data = {0};
	for (int i = 0; i < 2; i++) {
		struct figure_series *series = figure_add_series(panel, LOOK_BARS, "bar");
		figure_axis_name(panel, &panel->x, "32");
		figure_add_point(series, 0, 1);
		double x = figure_axis_name(panel, &panel->x, "64");
		if (i == 0) {
			figure_add_point(series, x, 1);
		} else {
			figure_add_words(series, x, "it's out of memory");
		}
	}
	assert_int_equal(figure_script(page, FORMAT_SVG, "d", NULL, &script, &data), 0);
	// the second of two bars, each 0.4 wide, at 1
	assert_true(text_has(&script, "set label 'it''s out of memory' at first 1.2, graph 0.02"));
	assert_true(text_has(&data, "\n1.2 NaN NaN NaN 0.368"));
	figure_free(page);
}

static void test_a_row_of_words_is_a_note(void **state)
{
	(void)state;
	struct figure_page *page = figure_new(NULL, 1);
	page->share_x = true;
	struct figure_panel *panels[2];
	for (int i = 0; i < 2; i++) {
		panels[i] = figure_add_panel(page, "");
		figure_axis_set(panels[i], &panels[i]->x, "time", NULL);
		figure_axis_set(panels[i], &panels[i]->y, i == 0 ? "host" : "device", NULL);
	}
	figure_add_point(figure_add_series(panels[0], LOOK_LINE, ""), 0, 1);
	figure_say(panels[1], "no device here");
	_cleanup_text_ struct text script = {0}, data = {0}, again = {0};
	assert_int_equal(figure_script(page, FORMAT_PDF, "d", NULL, &script, &data), 0);
	assert_true(text_has(&script, "\nrows = 1\n"));
	assert_true(text_has(&script, "\nlines_of_notes = 1\n"));
	assert_true(text_has(&script, "set label 'no device here' at @NOTES"));
	assert_true(text_has(&script, "set xlabel 'time'")); // of the panel above it
	assert_true(text_has(&script, "set ylabel 'host'"));
	assert_false(text_has(&script, "set ylabel 'device'"));
	// beside data the words are in the panel
	figure_add_point(figure_add_series(panels[1], LOOK_LINE, ""), 0, 1);
	assert_int_equal(figure_script(page, FORMAT_PDF, "d", NULL, &again, &data), 0);
	assert_true(text_has(&again, "\nrows = 2\n"));
	assert_true(text_has(&again, "\nlines_of_notes = 0\n"));
	assert_true(text_has(&again, "set label 'no device here' at graph"));
	assert_true(text_has(&again, "set ylabel 'device'"));
	figure_free(page);
}

static void test_thinning_keeps_peaks_and_gaps(void **state)
{
	(void)state;
	enum { N = 100000, COLUMNS = 100 };
	struct figure_point *points = calloc(N, sizeof(*points));
	assert_non_null(points);
	for (int i = 0; i < N; i++) {
		points[i] = (struct figure_point){i, sin(i * 0.01), NAN, NAN, NAN, NULL};
	}
	points[12345].y = 50;
	points[54321].y = -50;
	points[70000].y = NAN;
	struct figure_point *kept = NULL;
	size_t n = 0, gaps = 0;
	double least = 0, greatest = 0;
	assert_int_equal(figure_thin(points, N, COLUMNS, false, &kept, &n), 0);
	assert_true(n <= 4 * (COLUMNS + 3));
	for (size_t i = 0; i < n; i++) {
		least = fmin(least, kept[i].y);
		greatest = fmax(greatest, kept[i].y);
		gaps += isnan(kept[i].y);
		assert_true(i == 0 || kept[i].x > kept[i - 1].x);
	}
	assert_true(greatest == 50 && least == -50 && gaps == 1);
	assert_true(kept[0].x == 0 && kept[n - 1].x == N - 1);
	free(kept);
	free(points);
}

static void test_few_points_stay_as_they_are(void **state)
{
	(void)state;
	struct figure_point points[] = {{1, 2, NAN, NAN, NAN, NULL}, {1, 3, NAN, NAN, NAN, NULL},
		{2, NAN, NAN, NAN, NAN, NULL}, {4, 1, NAN, NAN, NAN, NULL}};
	struct figure_point *kept = NULL;
	size_t n = 0;
	assert_int_equal(figure_thin(points, 4, 10, true, &kept, &n), 0);
	assert_int_equal(n, 4);
	assert_true(kept[1].y == 3 && isnan(kept[2].y) && kept[3].x == 4);
	free(kept);
	assert_int_equal(figure_thin(NULL, 0, 10, false, &kept, &n), 0);
	assert_int_equal(n, 0);
	free(kept);
}

static void test_of_many_epochs_some_are_drawn_and_it_says_so(void **state)
{
	(void)state;
	struct figure_page *page = figure_new(NULL, 1);
	struct figure_panel *panel = figure_add_panel(page, "");
	for (int i = 0; i < 300; i++) {
		figure_add_vertical(panel, i, "epoch starts");
	}
	_cleanup_text_ struct text script = {0}, data = {0};
	assert_int_equal(figure_script(page, FORMAT_SVG, "d", NULL, &script, &data), 0);
	assert_true(text_has(&script, "title 'epoch starts (one in 10)'"));
	assert_true(text_has(&data, "\n280\n290\n"));
	assert_false(text_has(&data, "\n291\n"));
	figure_free(page);
}

static void test_hostile_texts_are_letters(void **state)
{
	(void)state;
	struct figure_page *page = hostile_figure();
	struct error e = {0};
	_cleanup_text_ struct text script = {0}, data = {0};
	assert_int_equal(figure_script(page, FORMAT_SVG, "d", NULL, &script, &data), 0);
	assert_true(text_has(&script, "'it''s `touch pwned` %d %s"));
	assert_true(text_has(&script, "set xtics ('it''s `touch pwned` %%d %%s"));
	assert_false(text_has(&script, "\x1b"));
	if (!is_installed("gnuplot")) {
		figure_free(page);
		print_message("gnuplot is not installed\n");
		return;
	}
	assert_int_equal(figure_write(page, "x.svg", NULL, &e), 0);
	_cleanup_text_ struct text svg = {0};
	read_file("x.svg", &svg);
	assert_true(text_has(&svg, "it's `touch pwned` %d %s @LINE $y \\ "));
	assert_true(text_has(&svg, "&lt;b>&amp;_{a}^2"));
	assert_false(text_has(&svg, "<b>"));
	assert_int_equal(access("pwned", F_OK), -1);
	figure_free(page);
}

static void test_a_kept_script_draws_the_same(void **state)
{
	(void)state;
	if (!is_installed("gnuplot")) {
		skip();
	}
	struct figure_page *page = small_figure();
	struct error e = {0};
	assert_int_equal(figure_write(page, "x.svg", "kept", &e), 0);
	assert_int_equal(system("cd kept && gnuplot x.gp"), 0);
	assert_int_equal(system("cmp -s x.svg kept/x.svg"), 0);
	_cleanup_text_ struct text svg = {0};
	read_file("x.svg", &svg);
	assert_true(text_has(&svg, ">PyTorch<") && text_has(&svg, ">epoch (s)<"));
	figure_free(page);
}

static void test_a_pdf_holds_its_words(void **state)
{
	(void)state;
	if (!is_installed("gnuplot") || !is_installed("pdftotext")) {
		skip();
	}
	struct figure_page *page = small_figure();
	struct error e = {0};
	assert_int_equal(figure_write(page, "x.pdf", NULL, &e), 0);
	assert_int_equal(system("pdftotext x.pdf - | grep -q PyTorch"), 0);
	assert_int_equal(figure_write(page, "x.png", NULL, &e), 0);
	_cleanup_text_ struct text png = {0};
	read_file("x.png", &png);
	assert_memory_equal(png.data, "\x89PNG", 4);
	figure_free(page);
}

static void assert_fails(int code, const char *words)
{
	struct figure_page *page = small_figure();
	struct error e = {0};
	assert_int_equal(figure_write(page, "x.svg", NULL, &e), -code);
	if (!strstr(e.text, words) || strchr(e.text, '\n')) {
		fail_msg("%s", e.text);
	}
	assert_int_equal(access("x.svg", F_OK), -1);
	figure_free(page);
}

static void write_program(const char *script)
{
	_cleanup_fclose_ FILE *file = fopen("gnuplot", "we");
	assert_non_null(file);
	fputs(script, file);
	assert_int_equal(chmod("gnuplot", 0700), 0);
}

static void test_without_gnuplot(void **state)
{
	struct place *place = *state;
	setenv("PATH", place->directory, 1);
	assert_fails(ENOENT,
		"cannot draw x.svg: gnuplot is not installed (Debian: apt install gnuplot-nox)");
	struct figure_page *page = small_figure();
	struct error e = {0};
	assert_int_equal(figure_write(page, "x.svg", "kept", &e), -ENOENT);
	assert_int_equal(access("kept/x.gp", R_OK), 0);
	assert_int_equal(access("kept/x.dat", R_OK), 0);
	figure_free(page);
}

static void test_a_gnuplot_that_fails(void **state)
{
	struct place *place = *state;
	_cleanup_free_ char *path = NULL;
	assert_true(asprintf(&path, "%s:%s", place->directory, place->path) > 0);
	setenv("PATH", path, 1);
	write_program("#!/bin/sh\necho '<svg>half'\necho >&2\necho '   line 3: no such thing' "
		      ">&2\nexit 1\n");
	assert_fails(EIO, "gnuplot failed: line 3: no such thing");
	write_program("#!/bin/sh\necho '<svg>half'\nkill -9 $$\n");
	assert_fails(EIO, "gnuplot was terminated by signal 9");
	write_program("#!/bin/sh\nexit 0\n");
	assert_fails(EIO, "gnuplot failed");
	write_program("#!/bin/sh\necho 'no terminal svg' >&2\n");
	assert_fails(ENOTSUP, "this gnuplot has no terminal svg");
}

static void test_places_that_cannot_be_written(void **state)
{
	(void)state;
	struct figure_page *page = small_figure();
	struct error e = {0};
	assert_int_equal(figure_write(page, "x.gif", NULL, &e), -EINVAL);
	assert_string_equal(e.text, "x.gif: a figure's name ends with .pdf, .svg or .png");
	assert_int_equal(figure_write(page, "x.svg", "none/kept", &e), -ENOENT);
	assert_string_equal(
		e.text, "cannot draw x.svg: cannot make none/kept: No such file or directory");
	if (is_installed("gnuplot")) {
		assert_int_equal(figure_write(page, "none/x.svg", NULL, &e), -ENOENT);
		assert_string_equal(e.text, "cannot write none/x.svg: No such file or directory");
	}
	figure_free(page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_script_of_a_figure),
		cmocka_unit_test(test_units_by_the_largest_value),
		cmocka_unit_test(test_axes_that_panels_share),
		cmocka_unit_test(test_many_lines_have_markers),
		cmocka_unit_test(test_words_stand_where_a_bar_would),
		cmocka_unit_test(test_a_row_of_words_is_a_note),
		cmocka_unit_test(test_thinning_keeps_peaks_and_gaps),
		cmocka_unit_test(test_few_points_stay_as_they_are),
		cmocka_unit_test(test_of_many_epochs_some_are_drawn_and_it_says_so),
		cmocka_unit_test_setup_teardown(
			test_hostile_texts_are_letters, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_a_kept_script_draws_the_same, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_a_pdf_holds_its_words, make_place, remove_place),
		cmocka_unit_test_setup_teardown(test_without_gnuplot, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_a_gnuplot_that_fails, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_places_that_cannot_be_written, make_place, remove_place),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
