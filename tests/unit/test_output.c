// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "record/output/output.h"

struct seen {
	unsigned n;
	struct output_match last;
};

static void count(void *context, const struct output_match *match)
{
	struct seen *seen = context;
	seen->n++;
	seen->last = *match;
}

struct stream {
	struct output_pattern *pattern;
	struct output_stream *stream;
	struct seen seen;
};

static struct stream open_stream(const char *pattern)
{
	struct stream s = {0};
	struct error e = {0};
	assert_int_equal(output_pattern_new(pattern, &s.pattern, &e), 0);
	assert_int_equal(output_stream_new(s.pattern, &s.stream), 0);
	return s;
}

static void feed(struct stream *s, const char *text, size_t length)
{
	output_stream_feed(s->stream, text, length, count, &s->seen);
}

static void feed_text(struct stream *s, const char *text)
{
	feed(s, text, strlen(text));
}

static void close_stream(struct stream *s)
{
	output_stream_free(s->stream);
	output_pattern_free(s->pattern);
}

static void test_lines_in_pieces(void **state)
{
	(void)state;
	struct stream s = open_stream("^epoch (?<epoch>\\d+)$");
	feed_text(&s, "epo");
	feed_text(&s, "ch 1");
	assert_int_equal(s.seen.n, 0);
	feed_text(&s, "2\nepoch 13\n\nsomething\nepoch");
	assert_int_equal(s.seen.n, 2);
	assert_int_equal(s.seen.last.number, 13);
	feed_text(&s, " 14\r\n");
	assert_int_equal(s.seen.n, 3);
	assert_int_equal(s.seen.last.number, 14);
	close_stream(&s);
}

static void test_progress_bars_end_lines_with_carriage_returns(void **state)
{
	(void)state;
	struct stream s = open_stream("(\\d+)%");
	feed_text(&s, "\r 10% \r 20% \r 30% ");
	assert_int_equal(s.seen.n, 2);
	feed_text(&s, "\n");
	assert_int_equal(s.seen.n, 3);
	close_stream(&s);
}

static void test_groups_become_numbers(void **state)
{
	(void)state;
	struct stream s = open_stream("Epoch (?<epoch>\\d+)/\\d+ loss=(?<loss>\\S+) "
				      "acc=(?<acc>\\S+)(?: lr=(?<lr>\\S+))?");
	feed_text(&s, "Epoch 3/10 loss=1.5e-2 acc=nan\n");
	assert_int_equal(s.seen.n, 1);
	assert_int_equal(s.seen.last.number, 3);
	assert_int_equal(s.seen.last.n_points, 2);
	assert_string_equal(s.seen.last.points[0].name, "acc");
	assert_true(isnan(s.seen.last.points[0].value));
	assert_string_equal(s.seen.last.points[1].name, "loss");
	assert_true(s.seen.last.points[1].value == 1.5e-2);
	feed_text(&s, "Epoch 3/10 loss=-Inf acc=nano\n");
	assert_int_equal(s.seen.last.n_points, 1);
	assert_true(s.seen.last.points[0].value == -INFINITY);
	feed_text(&s, "Epoch 4/10 loss=-1 acc=.5 lr=1e999\n");
	assert_int_equal(s.seen.last.n_points, 2);
	feed_text(&s, "Epoch 99999999999999999999/10 loss=0x10 acc=1.2.3\n");
	assert_int_equal(s.seen.last.number, -1);
	assert_int_equal(s.seen.last.n_points, 0);
	close_stream(&s);
}

static void test_another_name_may_number_epochs(void **state)
{
	(void)state;
	struct stream s = open_stream("(?<step>\\d+) of (?<train_epoch>\\d+) (?<last_epoch>\\d+)");
	feed_text(&s, "5 of 6 7\n");
	assert_int_equal(s.seen.last.number, 6);
	assert_int_equal(s.seen.last.n_points, 2);
	close_stream(&s);
}

static void test_long_lines_are_cut(void **state)
{
	(void)state;
	static char line[20000];
	memset(line, 'x', sizeof(line));
	struct stream s = open_stream("x$|late");
	feed(&s, line, sizeof(line));
	assert_int_equal(s.seen.n, 1);
	feed_text(&s, "late\n");
	assert_int_equal(s.seen.n, 1);
	feed_text(&s, "late\n");
	assert_int_equal(s.seen.n, 2);
	close_stream(&s);
}

static void test_a_line_of_exactly_the_limit_is_whole(void **state)
{
	(void)state;
	static char line[4096];
	memset(line, 'x', sizeof(line));
	struct stream s = open_stream("^x{4096}$");
	feed(&s, line, sizeof(line));
	assert_int_equal(s.seen.n, 0);
	feed_text(&s, "\n");
	assert_int_equal(s.seen.n, 1);
	close_stream(&s);
}

static void test_bytes_that_are_no_text(void **state)
{
	(void)state;
	struct stream s = open_stream("epoch (?<epoch>\\d+)");
	feed(&s, "\xff\xfe\0\x80 epoch 3 \xc3\n", 15);
	assert_int_equal(s.seen.n, 1);
	assert_int_equal(s.seen.last.number, 3);
	char all[256];
	for (int i = 0; i < 256; i++) {
		all[i] = (char)i;
	}
	feed(&s, all, sizeof(all));
	close_stream(&s);
}

struct hostile {
	const char *pattern;
	bool limited; // the others PCRE2 sees through
};

// Patterns that backtrack without end meet a limit, line after line, and it is counted.
static void test_patterns_without_end_are_limited(void **state)
{
	(void)state;
	static const struct hostile patterns[] = {{"^(a+)+$", true}, {"^(?:a|aa)+$", true},
		{"(a*)*b", false}, {"^(([a-z])+.)+[A-Z]([a-z])+$", false}, {"(.*)*z.*!q", false}};
	static char line[4096];
	memset(line, 'a', sizeof(line));
	line[sizeof(line) - 2] = '!';
	line[sizeof(line) - 1] = '\n';
	for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
		struct stream s = open_stream(patterns[i].pattern);
		for (unsigned n = 0; n < 20; n++) {
			feed(&s, line, sizeof(line));
		}
		assert_int_equal(s.seen.n, 0);
		assert_true(!patterns[i].limited || output_stream_limited(s.stream) == 20);
		close_stream(&s);
	}
}

// A pattern that needs a level of depth for each byte is no attack.
static void test_long_lines_match_innocent_patterns(void **state)
{
	(void)state;
	static char line[4096];
	memset(line, 'a', sizeof(line));
	line[sizeof(line) - 1] = '\n';
	struct stream s = open_stream("^(?:\\w|-)+$");
	feed(&s, line, sizeof(line));
	assert_int_equal(s.seen.n, 1);
	assert_int_equal(output_stream_limited(s.stream), 0);
	close_stream(&s);
}

static void test_a_bad_pattern_says_where(void **state)
{
	(void)state;
	struct output_pattern *pattern = NULL;
	struct error e = {0};
	assert_int_equal(output_pattern_new("epoch (\\d+", &pattern, &e), -22);
	assert_null(pattern);
	assert_string_equal(
		e.text, "pattern 'epoch (\\d+', at offset 10: missing closing parenthesis");
	assert_true(output_pattern_new("\xff", &pattern, &e) < 0);
	assert_true(output_pattern_new("(?<a>x)(?<a>y)", &pattern, &e) < 0);
}

static void test_an_empty_line_is_no_epoch(void **state)
{
	(void)state;
	struct stream s = open_stream("^$|x");
	feed_text(&s, "\n\r\n\n");
	assert_int_equal(s.seen.n, 0);
	feed_text(&s, "x\n");
	assert_int_equal(s.seen.n, 1);
	assert_int_equal(s.seen.last.number, -1);
	close_stream(&s);
}

static void test_a_pattern_that_matches_every_line_is_refused(void **state)
{
	(void)state;
	static const char *const patterns[] = {"", "x*", "(?:epoch (?<epoch>\\d+))?", "^", ".*"};
	for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
		struct output_pattern *pattern = NULL;
		struct error e = {0};
		assert_int_equal(output_pattern_new(patterns[i], &pattern, &e), -22);
		assert_null(pattern);
		assert_non_null(strstr(e.text, "matches every line"));
	}
}

static void keep_match(void *context, const struct output_match *match)
{
	*(struct output_match *)context = *match;
}

static void test_usual_lines_count_up(void **state)
{
	(void)state;
	static const struct {
		const char *line;
		int64_t number; // -1: no epoch
	} lines[] = {
		{"Training for 10 epochs\n", -1},
		{"epochs: 10\n", -1},
		{"time per epoch: 1.5 s\n", -1},
		{"1 s per epoch 1 s\n", -1},
		{"3 epoch 7 is what comes first\n", -1},
		{"2026-11-22 01:02:03 INFO root: Epoch 1/10\r", 1},
		{"Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.3\n", -1},
		{"validation epoch 1: 0.4\n", -1},
		{"[epoch 2]\n", 2},
		{"best epoch: 1\n", -1},
		{"Epoch: [3][10/391]\n", 3},
		{"epoch 4  loss 0.31\n", 4},
		{"EPOCH=5\n", 5},
		{"\x1b[1mEpoch 6:  45%|####| 9/20\r", 6},
		{"megaepoch 7\n", -1},
		{"epoch 999999999999\n", -1},
		{"Epoch [7/10], Step [1/600]\n", 7},
	};
	struct output_pattern *pattern = NULL;
	struct output_stream *stream = NULL;
	struct output_count count = {0};
	assert_int_equal(output_pattern_new(OUTPUT_PATTERN_AUTO, &pattern, NULL), 0);
	assert_int_equal(output_stream_new(pattern, &stream), 0);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct output_match match = {.number = -1};
		int64_t first_ns, found = -1;
		output_stream_feed(
			stream, lines[i].line, strlen(lines[i].line), keep_match, &match);
		if (match.number >= 0) {
			enum output_told told = output_count_line(
				&count, &match, (int64_t)i, &first_ns);
			assert_int_not_equal(told, OUTPUT_TOLD_ANEW);
			found = told == OUTPUT_TOLD_NEXT ? match.number : -1;
		}
		if (found != lines[i].number) {
			print_error("%s", lines[i].line);
		}
		assert_int_equal(found, lines[i].number);
	}
	output_stream_free(stream);
	output_pattern_free(pattern);
}

// Numbers that lines tell, each with the line that it began at: "1@2 2@3".
static void tell(const char *text, char *ret, size_t size)
{
	struct output_pattern *pattern = NULL;
	struct output_stream *stream = NULL;
	struct output_count count = {0};
	size_t length = 0;
	assert_int_equal(output_pattern_new(OUTPUT_PATTERN_AUTO, &pattern, NULL), 0);
	assert_int_equal(output_stream_new(pattern, &stream), 0);
	*ret = '\0';
	int64_t line = 0;
	for (const char *at = text, *end; (end = strchr(at, '\n')); at = end + 1) {
		struct output_match match = {.number = -1};
		int64_t first_ns = -1;
		line++;
		output_stream_feed(stream, at, (size_t)(end + 1 - at), keep_match, &match);
		enum output_told told = match.number >= 0
		                                ? output_count_line(&count, &match, line, &first_ns)
		                                : OUTPUT_TOLD_NOTHING;
		if (told == OUTPUT_TOLD_ANEW) {
			length = (size_t)snprintf(
				ret, size, "%d@%d ", (int)match.number - 1, (int)first_ns);
		}
		if (told != OUTPUT_TOLD_NOTHING) {
			length += (size_t)snprintf(ret + length, size - length, "%d@%d ",
				(int)match.number, (int)line);
		}
		assert_true(length < size);
	}
	output_stream_free(stream);
	output_pattern_free(pattern);
}

static void test_settings_are_no_epoch(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		const char *told;
	} jobs[] = {
		{"Namespace(lr=0.1, start_epoch=0, epochs=5)\nEpoch 1/5\nEpoch 2/5\n", "1@2 2@3 "},
		{"last_epoch=0\nsteps_per_epoch=1\n--epoch 1\ntrainer.epoch: 0\n", ""},
		{"start_epoch=0\nEpoch: [0][0/9]\nEpoch: [0][5/9]\nEpoch: [1][0/9]\n", "0@2 1@4 "},
		{"Namespace(epoch=0, epochs=3)\nEpoch: [0]\nEpoch: [1]\nEpoch: [2]\n",
			"0@2 1@3 2@4 "},
		{"Namespace(epoch=0, epochs=3)\nEpoch 1/3\nEpoch 2/3\nEpoch 3/3\n", "1@2 2@3 3@4 "},
		{"checkpoint every epoch: 1\nEpoch 1/3\nEpoch 1/3 ends\nEpoch 2/3\nEpoch 3/3\n",
			"1@2 2@4 3@5 "},
		{"checkpoint every epoch: 1\nEpoch: [0]\nEpoch: [1]\nEpoch: [2]\n", "0@2 1@3 2@4 "},
		// Lines of another form within the first epoch do not begin it.
		{"Epoch 1/2\nTrain Epoch: 1 [0/9]\nepoch 1: loss 1\nEpoch 2/2\n", "1@1 2@4 "},
		{"Epoch: [0]\nepoch 1 is next\nEpoch: [1]\nEpoch: [2]\n", "0@1 1@3 2@4 "},
		// Of many forms: each number once.
		{"Epoch: [0]\nnow epoch 1\nthen epoch 2\nlast: epoch 3\n", "0@1 1@2 2@3 3@4 "},
		{"10:01 epoch 1\n10:02 epoch 1\n10:03 epoch 2\n", "1@1 2@3 "},
	};
	for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
		char told[100];
		tell(jobs[i].text, told, sizeof(told));
		assert_string_equal(told, jobs[i].told);
	}
}

// Where bytes are missing, neither what was before nor what follows is a line.
static void test_no_line_where_bytes_are_missing(void **state)
{
	(void)state;
	struct stream s = open_stream("epoch (?<epoch>\\d+)$");
	feed_text(&s, "epoch 1");
	output_stream_reset(s.stream);
	feed_text(&s, "epoch 2\n");
	assert_int_equal(s.seen.n, 0);
	feed_text(&s, "epoch 3\n");
	assert_int_equal(s.seen.n, 1);
	assert_int_equal(s.seen.last.number, 3);
	close_stream(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines_in_pieces),
		cmocka_unit_test(test_progress_bars_end_lines_with_carriage_returns),
		cmocka_unit_test(test_groups_become_numbers),
		cmocka_unit_test(test_another_name_may_number_epochs),
		cmocka_unit_test(test_long_lines_are_cut),
		cmocka_unit_test(test_a_line_of_exactly_the_limit_is_whole),
		cmocka_unit_test(test_bytes_that_are_no_text),
		cmocka_unit_test(test_patterns_without_end_are_limited),
		cmocka_unit_test(test_long_lines_match_innocent_patterns),
		cmocka_unit_test(test_a_bad_pattern_says_where),
		cmocka_unit_test(test_an_empty_line_is_no_epoch),
		cmocka_unit_test(test_a_pattern_that_matches_every_line_is_refused),
		cmocka_unit_test(test_usual_lines_count_up),
		cmocka_unit_test(test_settings_are_no_epoch),
		cmocka_unit_test(test_no_line_where_bytes_are_missing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
