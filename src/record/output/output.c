// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// --epoch-pattern: matches lines of the job's output against a pattern, within limits.

#include "record/output/output.h"

#define PCRE2_CODE_UNIT_WIDTH 8

#include <errno.h>
#include <math.h>
#include <pcre2.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

enum {
	LINE_BYTES = 4096,
	// Steps, not time: matching a line of 4 KiB against a pattern that backtracks without end
	// takes about a millisecond up to this limit.
	MATCH_LIMIT = 100000,
	// A harmless (?:\w|-)+ needs a level for each byte of the line.
	DEPTH_LIMIT = 5 * LINE_BYTES,
	HEAP_LIMIT_KIB = 4096,
	STACK_FIRST_BYTES = 32 * 1024,
	STACK_LIMIT_BYTES = 1024 * 1024,
	POINTS = sizeof((struct output_match){0}.points) / sizeof(struct output_point),
};

// Not "epochs: 10", "start_epoch=0", nor "per epoch: 1.5 s". An m before it may end a colour
// sequence.
static const char usual_lines[] =
	"(?i)(?:(?<![\\w.-])|(?<=[0-9]m))epoch[\\W_]{0,4}(?<epoch>\\d{1,6})"
	"(?!\\d|[.,]\\d|\\s*(?:ms|s|sec|secs|seconds?|min|minutes?|%)(?!\\w))";

struct named_group {
	char *name; // owned
	uint32_t number;
};

struct output_pattern {
	pcre2_code *code;
	pcre2_match_context *limits;
	pcre2_jit_stack *stack; // NULL without JIT
	struct named_group *groups; // [n_groups]
	size_t n_groups;
	size_t epoch; // index of the group with the epoch's number; n_groups: none
};

struct output_stream {
	const struct output_pattern *pattern; // not owned
	pcre2_match_data *match;
	uint64_t limited;
	size_t length;
	bool cut; // the rest of an overlong line is ignored
	char line[LINE_BYTES];
};

static bool ends_in_epoch(const char *name)
{
	size_t length = strlen(name);
	return length >= 5 && strcmp(name + length - 5, "epoch") == 0;
}

static int read_groups(struct output_pattern *p)
{
	uint32_t count = 0, size = 0;
	PCRE2_SPTR table = NULL;
	pcre2_pattern_info(p->code, PCRE2_INFO_NAMECOUNT, &count);
	pcre2_pattern_info(p->code, PCRE2_INFO_NAMEENTRYSIZE, &size);
	pcre2_pattern_info(p->code, PCRE2_INFO_NAMETABLE, &table);
	p->groups = calloc(count ? count : 1, sizeof(*p->groups));
	if (!p->groups) {
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++, table += size) {
		struct named_group *group = &p->groups[i];
		group->number = (uint32_t)table[0] << 8 | table[1];
		group->name = strdup((const char *)table + 2);
		if (!group->name) {
			return -ENOMEM;
		}
		p->n_groups++;
	}
	return 0;
}

// Chooses the group named `epoch`; else the first in the pattern whose name ends in "epoch" (the
// table is sorted by name).
static void choose_epoch(struct output_pattern *p)
{
	p->epoch = p->n_groups;
	for (size_t i = 0; i < p->n_groups; i++) {
		const struct named_group *group = &p->groups[i];
		if (strcmp(group->name, "epoch") == 0) {
			p->epoch = i;
			return;
		}
		if (ends_in_epoch(group->name) &&
			(p->epoch == p->n_groups || group->number < p->groups[p->epoch].number)) {
			p->epoch = i;
		}
	}
}

static int compile(struct output_pattern *p, const char *pattern, struct error *e)
{
	int code;
	PCRE2_SIZE offset;
	p->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
		PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C, &code, &offset,
		NULL);
	if (!p->code) {
		PCRE2_UCHAR message[200];
		pcre2_get_error_message(code, message, sizeof(message));
		return error_set(e, EINVAL, "pattern '%s', at offset %zu: %s", pattern,
			(size_t)offset, (const char *)message);
	}
	pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE); // optional: slower without
	p->limits = pcre2_match_context_create(NULL);
	if (!p->limits) {
		return error_errno(e, ENOMEM, "pattern '%s'", pattern);
	}
	pcre2_set_match_limit(p->limits, MATCH_LIMIT);
	pcre2_set_depth_limit(p->limits, DEPTH_LIMIT);
	pcre2_set_heap_limit(p->limits, HEAP_LIMIT_KIB);
	p->stack = pcre2_jit_stack_create(STACK_FIRST_BYTES, STACK_LIMIT_BYTES, NULL);
	if (p->stack) {
		pcre2_jit_stack_assign(p->limits, NULL, p->stack);
	}
	return 0;
}

static bool matches(const struct output_pattern *p, const char *line)
{
	pcre2_match_data *match = pcre2_match_data_create_from_pattern(p->code, NULL);
	int rc = match ? pcre2_match(
				 p->code, (PCRE2_SPTR)line, strlen(line), 0, 0, match, p->limits)
	               : PCRE2_ERROR_NOMEMORY;
	pcre2_match_data_free(match);
	return rc > 0;
}

// Detects a pattern that matches the empty string everywhere: '', 'x*', '(epoch)?'. One that
// matches only an empty line, '^$', is allowed.
static int check_pattern(const struct output_pattern *p, const char *pattern, struct error *e)
{
	return matches(p, "") && matches(p, "\x01")
	               ? error_set(e, EINVAL, "pattern '%s' matches every line", pattern)
	               : 0;
}

int output_pattern_new(const char *pattern, struct output_pattern **ret, struct error *e)
{
	struct output_pattern *p = calloc(1, sizeof(*p));
	pattern = strcmp(pattern, OUTPUT_PATTERN_AUTO) == 0 ? usual_lines : pattern;
	int rc = p ? compile(p, pattern, e) : error_errno(e, ENOMEM, "pattern '%s'", pattern);
	rc = rc == 0 ? check_pattern(p, pattern, e) : rc;
	if (rc == 0 && read_groups(p) < 0) {
		rc = error_errno(e, ENOMEM, "pattern '%s'", pattern);
	}
	if (rc < 0) {
		output_pattern_free(p);
		return rc;
	}
	choose_epoch(p);
	*ret = p;
	return 0;
}

void output_pattern_free(struct output_pattern *p)
{
	if (!p) {
		return;
	}
	for (size_t i = 0; i < p->n_groups; i++) {
		free(p->groups[i].name);
	}
	free(p->groups);
	pcre2_match_context_free(p->limits);
	pcre2_jit_stack_free(p->stack);
	pcre2_code_free(p->code);
	free(p);
}

static const struct output_first *find_first(
	const struct output_count *c, int64_t number, uint32_t form)
{
	for (size_t i = 0; i < c->n_firsts; i++) {
		if (c->firsts[i].number == number && c->firsts[i].form == form) {
			return &c->firsts[i];
		}
	}
	return NULL;
}

static bool may_be_first(int64_t number)
{
	return number == 0 || number == 1;
}

enum output_told output_count_line(struct output_count *c, const struct output_match *match,
	int64_t t_ns, int64_t *ret_first_ns)
{
	int64_t number = match->number;
	bool next = c->begun ? number == c->last + 1 : may_be_first(number);
	const struct output_first *first = c->sure ? NULL : find_first(c, number - 1, match->form);
	bool anew = first && (first != c->firsts || !next);
	if (!c->sure && may_be_first(number) && c->n_firsts < ARRAY_LENGTH(c->firsts) &&
		!find_first(c, number, match->form)) {
		c->firsts[c->n_firsts++] = (struct output_first){number, t_ns, match->form};
	}
	c->sure = c->sure || first || (next && !may_be_first(number));
	if (!next && !anew) {
		return OUTPUT_TOLD_NOTHING;
	}
	c->begun = true;
	c->last = number;
	if (anew) {
		*ret_first_ns = first->t_ns;
	}
	return anew ? OUTPUT_TOLD_ANEW : OUTPUT_TOLD_NEXT;
}

int output_stream_new(struct output_pattern *p, struct output_stream **ret)
{
	struct output_stream *s = calloc(1, sizeof(*s));
	if (!s) {
		return -ENOMEM;
	}
	s->pattern = p;
	s->match = pcre2_match_data_create_from_pattern(p->code, NULL);
	if (!s->match) {
		free(s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

void output_stream_free(struct output_stream *s)
{
	if (s) {
		pcre2_match_data_free(s->match);
		free(s);
	}
}

// "nan", "-inf", "Infinity": what jobs print of training that diverged.
static bool is_not_finite(const char *text, double *ret)
{
	static const struct {
		const char *word;
		double value;
	} words[] = {{"nan", NAN}, {"inf", INFINITY}, {"infinity", INFINITY}};
	const char *at = text + (*text == '-' || *text == '+');
	for (size_t i = 0; i < ARRAY_LENGTH(words); i++) {
		if (strcasecmp(at, words[i].word) == 0) {
			*ret = *text == '-' ? -words[i].value : words[i].value;
			return true;
		}
	}
	return false;
}

// Parses a decimal number: "0.25", "1e-3", "12", "nan". Blanks around digits are ignored.
static bool read_number(const struct output_stream *s, uint32_t group, double *ret)
{
	const PCRE2_SIZE *where = pcre2_get_ovector_pointer(s->match);
	PCRE2_SIZE from = where[2 * group], to = where[2 * group + 1];
	char text[64], *end;
	if (from == PCRE2_UNSET || to <= from || to - from >= sizeof(text)) {
		return false;
	}
	memcpy(text, s->line + from, to - from);
	text[to - from] = '\0';
	if (is_not_finite(text, ret)) {
		return true;
	}
	if (strspn(text, "0123456789+-.eE \t") != to - from) {
		return false; // hexadecimal: not a number that a job prints as a result
	}
	*ret = strtod(text, &end);
	return end != text && end[strspn(end, " \t")] == '\0' && isfinite(*ret);
}

// FNV-1a over all characters but numbers and blanks, and over the text after the number.
static uint32_t form_of(const struct output_stream *s, size_t from, size_t to)
{
	uint32_t form = 2166136261u;
	for (size_t i = 0; i < from; i++) {
		unsigned char c = (unsigned char)s->line[i];
		if (c != ' ' && c != '\t' && (c < '0' || c > '9')) {
			form = (form ^ c) * 16777619u;
		}
	}
	unsigned char after = to < s->length ? (unsigned char)s->line[to] : '\n';
	return (form ^ after) * 16777619u;
}

static void read_match(const struct output_stream *s, struct output_match *match)
{
	const struct output_pattern *p = s->pattern;
	*match = (struct output_match){.number = -1};
	for (size_t i = 0; i < p->n_groups; i++) {
		double value;
		if (!read_number(s, p->groups[i].number, &value)) {
			continue;
		}
		if (i == p->epoch) {
			bool whole = value >= 0 && value < 1e15 && floor(value) == value;
			match->number = whole ? (int64_t)value : match->number;
			const PCRE2_SIZE *at = pcre2_get_ovector_pointer(s->match) +
			                       2 * p->groups[i].number;
			match->form = form_of(s, at[0], at[1]);
		} else if (match->n_points < POINTS) {
			match->points[match->n_points++] = (struct output_point){
				p->groups[i].name, value};
		}
	}
}

static void end_line(struct output_stream *s,
	void (*matched)(void *context, const struct output_match *match), void *context)
{
	int rc = s->length == 0 ? PCRE2_ERROR_NOMATCH
	                        : pcre2_match(s->pattern->code, (PCRE2_SPTR)s->line, s->length, 0,
					  0, s->match, s->pattern->limits);
	if (rc > 0) {
		struct output_match match;
		read_match(s, &match);
		matched(context, &match);
	} else if (rc != PCRE2_ERROR_NOMATCH) {
		s->limited++;
	}
	s->length = 0;
}

void output_stream_feed(struct output_stream *s, const char *data, size_t length,
	void (*matched)(void *context, const struct output_match *match), void *context)
{
	while (length > 0) {
		size_t part = 0;
		while (part < length && data[part] != '\n' && data[part] != '\r') {
			part++;
		}
		size_t room = LINE_BYTES - s->length;
		size_t taken = s->cut ? 0 : part < room ? part : room;
		memcpy(s->line + s->length, data, taken);
		s->length += taken;
		if (taken < part && !s->cut) {
			end_line(s, matched, context);
			s->cut = true;
		}
		if (part < length) {
			if (!s->cut) {
				end_line(s, matched, context);
			}
			s->cut = false;
			part++;
		}
		data += part;
		length -= part;
	}
}

void output_stream_reset(struct output_stream *s)
{
	s->length = 0;
	s->cut = true;
}

uint64_t output_stream_limited(const struct output_stream *s)
{
	return s ? s->limited : 0;
}
