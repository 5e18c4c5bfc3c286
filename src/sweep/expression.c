// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Parses expressions by recursive descent into an array of parts, and evaluates them.

#include "sweep/expression.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/parse.h"

enum operator_id {
	OP_NUMBER,
	OP_TEXT,
	OP_NAME,
	OP_OR,
	OP_AND,
	OP_NOT,
	OP_EQUAL,
	OP_DIFFERENT,
	OP_AT_MOST,
	OP_AT_LEAST,
	OP_LESS,
	OP_MORE,
	OP_ADD,
	OP_SUBTRACT,
	OP_MULTIPLY,
	OP_DIVIDE,
	OP_REMAINDER,
	OP_NEGATE,
};

struct part {
	enum operator_id op;
	size_t at; // offset in the text, in bytes
	double number;
	char *text; // of OP_TEXT and OP_NAME; owned
	size_t left, right; // indices of the operands
};

struct expression {
	struct part *parts;
	size_t n;
	size_t capacity;
	size_t root;
};

struct parsing {
	struct expression *x;
	const char *text;
	size_t at;
	unsigned depth;
	size_t wrong_at;
	struct error *e;
};

#define NONE SIZE_MAX // index that stands for failure

// A level of binary operators, loosest first. An operator that is a prefix of another comes after
// it.
struct spelling {
	const char *word;
	enum operator_id op;
	unsigned level;
};

enum { LEVEL_OR, LEVEL_AND, LEVEL_COMPARE, LEVEL_SUM, LEVEL_PRODUCT, N_LEVELS };

static const struct spelling spellings[] = {
	{"or", OP_OR, LEVEL_OR},
	{"and", OP_AND, LEVEL_AND},
	{"==", OP_EQUAL, LEVEL_COMPARE},
	{"!=", OP_DIFFERENT, LEVEL_COMPARE},
	{"<=", OP_AT_MOST, LEVEL_COMPARE},
	{">=", OP_AT_LEAST, LEVEL_COMPARE},
	{"<", OP_LESS, LEVEL_COMPARE},
	{">", OP_MORE, LEVEL_COMPARE},
	{"+", OP_ADD, LEVEL_SUM},
	{"-", OP_SUBTRACT, LEVEL_SUM},
	{"*", OP_MULTIPLY, LEVEL_PRODUCT},
	{"/", OP_DIVIDE, LEVEL_PRODUCT},
	{"%", OP_REMAINDER, LEVEL_PRODUCT},
};

static bool is_word_start(char c)
{
	return isalpha((unsigned char)c) || c == '_';
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static void skip_blanks(struct parsing *p)
{
	while (isspace((unsigned char)p->text[p->at])) {
		p->at++;
	}
}

static size_t fail(struct parsing *p, size_t at, const char *expected)
{
	const char *found = p->text + at;
	int length = (int)strnlen(found, 20);
	p->wrong_at = at;
	if (*found) {
		error_set(p->e, EINVAL, "expected %s, found '%.*s'", expected, length, found);
	} else {
		error_set(p->e, EINVAL, "expected %s, found the end", expected);
	}
	return NONE;
}

static size_t add_part(struct parsing *p, struct part part)
{
	struct expression *x = p->x;
	if (x->n >= EXPRESSION_MAX_PARTS) {
		free(part.text);
		return fail(p, part.at, "a shorter expression");
	}
	if (array_reserve((void **)&x->parts, &x->capacity, x->n + 1, sizeof(*x->parts)) < 0) {
		free(part.text);
		error_errno(p->e, ENOMEM, "an expression");
		return NONE;
	}
	x->parts[x->n] = part;
	return x->n++;
}

static size_t add_word(
	struct parsing *p, enum operator_id op, size_t at, size_t from, size_t length)
{
	char *copy = strndup(p->text + from, length);
	if (!copy) {
		error_errno(p->e, ENOMEM, "an expression");
		return NONE;
	}
	return add_part(p, (struct part){.op = op, .at = at, .text = copy});
}

static size_t parse_level(struct parsing *p, unsigned level);

// Parses a number with an optional unit.
static size_t parse_number(struct parsing *p)
{
	size_t at = p->at;
	char *end;
	if (p->text[at] == '0' && (p->text[at + 1] == 'x' || p->text[at + 1] == 'X')) {
		return fail(p, at, "a decimal number");
	}
	strtod(p->text + at, &end);
	while (isalpha((unsigned char)*end)) {
		end++;
	}
	end += end[0] == '/' && end[1] == 's' && !is_word(end[2]) ? 2 : 0;
	_cleanup_free_ char *word = strndup(p->text + at, (size_t)(end - p->text) - at);
	double number;
	if (!word || !expression_number(word, &number)) {
		return fail(p, at, "a number or a size");
	}
	p->at = (size_t)(end - p->text);
	return add_part(p, (struct part){.op = OP_NUMBER, .at = at, .number = number});
}

static size_t parse_quoted(struct parsing *p)
{
	size_t at = p->at;
	const char *end = strchr(p->text + at + 1, p->text[at]);
	if (!end) {
		return fail(p, at, "a closing quote");
	}
	p->at = (size_t)(end - p->text) + 1;
	return add_word(p, OP_TEXT, at, at + 1, p->at - at - 2);
}

static bool take_word(struct parsing *p, const char *word)
{
	size_t length = strlen(word);
	bool there = strncmp(p->text + p->at, word, length) == 0 &&
	             !(is_word(word[0]) && is_word(p->text[p->at + length]));
	p->at += there ? length : 0;
	return there;
}

static size_t parse_name(struct parsing *p)
{
	static const char *const reserved[] = {"or", "and", "not"};
	size_t at = p->at;
	for (size_t i = 0; i < ARRAY_LENGTH(reserved); i++) {
		if (take_word(p, reserved[i])) {
			return fail(p, at, "a value");
		}
	}
	while (is_word(p->text[p->at])) {
		p->at++;
	}
	return add_word(p, OP_NAME, at, at, p->at - at);
}

static size_t parse_primary(struct parsing *p)
{
	skip_blanks(p);
	size_t at = p->at;
	char c = p->text[at];
	if (isdigit((unsigned char)c) || c == '.') {
		return parse_number(p);
	}
	if (c == '"' || c == '\'') {
		return parse_quoted(p);
	}
	if (is_word_start(c)) {
		return parse_name(p);
	}
	if (c != '(') {
		return fail(p, at, "a value");
	}
	p->at++;
	size_t inner = parse_level(p, LEVEL_OR);
	skip_blanks(p);
	if (inner != NONE && p->text[p->at] != ')') {
		return fail(p, p->at, "')'");
	}
	p->at += inner != NONE;
	return inner;
}

static size_t parse_prefixed(struct parsing *p, enum operator_id op, size_t at, unsigned level)
{
	size_t operand = parse_level(p, level);
	return operand == NONE ? NONE
	                       : add_part(p, (struct part){.op = op, .at = at, .left = operand});
}

static const struct spelling *take_operator(struct parsing *p, unsigned level)
{
	skip_blanks(p);
	for (size_t i = 0; i < ARRAY_LENGTH(spellings); i++) {
		if (spellings[i].level == level && take_word(p, spellings[i].word)) {
			return &spellings[i];
		}
	}
	return NULL;
}

static size_t parse_operators(struct parsing *p, unsigned level)
{
	size_t left = parse_level(p, level + 1);
	for (bool again = true; left != NONE && again;) {
		skip_blanks(p);
		size_t at = p->at;
		const struct spelling *found = take_operator(p, level);
		if (!found) {
			return left;
		}
		size_t right = parse_level(p, level + 1);
		left = right == NONE ? NONE
		                     : add_part(p, (struct part){.op = found->op,
							   .at = at,
							   .left = left,
							   .right = right});
		again = level != LEVEL_COMPARE;
	}
	return left;
}

// Parses prefixes or binary operators of this level; for N_LEVELS, an operand, which may be
// negative.
static size_t parse_level(struct parsing *p, unsigned level)
{
	skip_blanks(p);
	size_t at = p->at, part;
	if (p->depth >= EXPRESSION_MAX_DEPTH) {
		return fail(p, at, "fewer parentheses");
	}
	p->depth++;
	if (level == LEVEL_COMPARE && take_word(p, "not")) {
		part = parse_prefixed(p, OP_NOT, at, LEVEL_COMPARE);
	} else if (level == N_LEVELS && take_word(p, "-")) {
		part = parse_prefixed(p, OP_NEGATE, at, N_LEVELS);
	} else {
		part = level == N_LEVELS ? parse_primary(p) : parse_operators(p, level);
	}
	p->depth--;
	return part;
}

int expression_parse(const char *text, struct expression **ret, size_t *ret_at, struct error *e)
{
	struct error ignored = {0};
	struct parsing p = {.text = text, .e = e ? e : &ignored};
	p.x = calloc(1, sizeof(*p.x));
	if (!p.x) {
		return error_errno(p.e, ENOMEM, "an expression");
	}
	p.x->root = parse_level(&p, LEVEL_OR);
	skip_blanks(&p);
	if (p.x->root != NONE && text[p.at]) {
		p.x->root = fail(&p, p.at, "'and', 'or' or the end");
	}
	if (p.x->root == NONE) {
		*ret_at = p.wrong_at;
		expression_free(p.x);
		return -p.e->code;
	}
	*ret = p.x;
	return 0;
}

void expression_free(struct expression *x)
{
	for (size_t i = 0; x && i < x->n; i++) {
		free(x->parts[i].text);
	}
	if (x) {
		free(x->parts);
	}
	free(x);
}

size_t expression_n_names(const struct expression *x)
{
	size_t n = 0;
	for (size_t i = 0; i < x->n; i++) {
		n += x->parts[i].op == OP_NAME;
	}
	return n;
}

const char *expression_name(const struct expression *x, size_t i, size_t *ret_at)
{
	for (size_t k = 0; k < x->n; k++) {
		if (x->parts[k].op == OP_NAME && i-- == 0) {
			*ret_at = x->parts[k].at;
			return x->parts[k].text;
		}
	}
	return NULL;
}

// Values ------------------------------------------------------------------------------------------

bool expression_number(const char *text, double *ret)
{
	char *end;
	bool sign = text[0] == '-' || text[0] == '+';
	bool digit = isdigit((unsigned char)text[sign]) || text[sign] == '.';
	if (strcmp(text, "unlimited") == 0) {
		*ret = INFINITY;
		return true;
	}
	if (!digit || text[sign + 1] == 'x' || text[sign + 1] == 'X') {
		return false;
	}
	double number = strtod(text, &end);
	if (end != text && !*end) {
		*ret = number;
		return isfinite(number);
	}
	size_t length = strlen(text);
	uint64_t bytes;
	char size[32];
	length -= length > 2 && strcmp(text + length - 2, "/s") == 0 ? 2 : 0;
	if (sign || length >= sizeof(size)) {
		return false;
	}
	memcpy(size, text, length);
	size[length] = '\0';
	if (parse_size(size, &bytes, NULL) < 0) {
		return false;
	}
	*ret = (double)bytes;
	return true;
}

enum value_kind { VALUE_NUMBER, VALUE_TEXT, VALUE_TRUTH };

static const char *const kind_names[] = {"a number", "a text", "a comparison"};

struct value {
	enum value_kind kind;
	double number;
	const char *text;
	bool truth;
};

struct evaluation {
	const struct expression *x;
	const char *(*lookup)(const void *context, const char *name);
	const void *context;
	size_t wrong_at;
	struct error *e;
};

static struct value value_of_text(const char *text)
{
	struct value v = {.kind = VALUE_TEXT, .text = text};
	if (expression_number(text, &v.number)) {
		v.kind = VALUE_NUMBER;
	}
	return v;
}

static int evaluate(struct evaluation *v, size_t index, struct value *ret);

static int evaluate_as(struct evaluation *v, size_t index, enum value_kind kind, struct value *ret)
{
	int result = evaluate(v, index, ret);
	if (result == 0 && ret->kind != kind) {
		v->wrong_at = v->x->parts[index].at;
		return error_set(v->e, EINVAL, "expected %s, found %s%s%.40s%s", kind_names[kind],
			kind_names[ret->kind], ret->kind == VALUE_TEXT ? " ('" : "",
			ret->kind == VALUE_TEXT ? ret->text : "",
			ret->kind == VALUE_TEXT ? "')" : "");
	}
	return result;
}

static double calculate(enum operator_id op, double a, double b)
{
	switch (op) {
	case OP_ADD:
		return a + b;
	case OP_SUBTRACT:
		return a - b;
	case OP_MULTIPLY:
		return a * b;
	case OP_DIVIDE:
		return a / b;
	case OP_REMAINDER:
		return fmod(a, b);
	default:
		return -a;
	}
}

static bool compare(enum operator_id op, double a, double b)
{
	switch (op) {
	case OP_AT_MOST:
		return a <= b;
	case OP_AT_LEAST:
		return a >= b;
	case OP_LESS:
		return a < b;
	default:
		return a > b;
	}
}

static int evaluate_arithmetic(struct evaluation *v, const struct part *part, struct value *ret)
{
	struct value a, b = {0};
	int result = evaluate_as(v, part->left, VALUE_NUMBER, &a);
	if (result == 0 && part->op != OP_NEGATE) {
		result = evaluate_as(v, part->right, VALUE_NUMBER, &b);
	}
	if (result < 0) {
		return result;
	}
	double number = calculate(part->op, a.number, b.number);
	if (isnan(number) || (isinf(number) && !isinf(a.number) && !isinf(b.number))) {
		v->wrong_at = part->at;
		return error_set(v->e, EINVAL,
			"expected a number, found a division by zero or "
			"one too large");
	}
	*ret = (struct value){.kind = VALUE_NUMBER, .number = number};
	return 0;
}

static int evaluate_truth(struct evaluation *v, const struct part *part, struct value *ret)
{
	struct value a, b = {.kind = VALUE_TRUTH};
	int result = evaluate_as(v, part->left, VALUE_TRUTH, &a);
	if (result == 0 && part->op != OP_NOT) {
		result = evaluate_as(v, part->right, VALUE_TRUTH, &b);
	}
	if (result < 0) {
		return result;
	}
	bool truth = part->op == OP_NOT   ? !a.truth
	             : part->op == OP_AND ? a.truth && b.truth
	                                  : a.truth || b.truth;
	*ret = (struct value){.kind = VALUE_TRUTH, .truth = truth};
	return 0;
}

static int evaluate_same(struct evaluation *v, const struct part *part, struct value *ret)
{
	struct value a, b;
	int result = evaluate(v, part->left, &a);
	result = result < 0 ? result : evaluate(v, part->right, &b);
	if (result < 0) {
		return result;
	}
	bool same = a.kind == b.kind && (a.kind == VALUE_NUMBER        ? a.number == b.number
						: a.kind == VALUE_TEXT ? strcmp(a.text, b.text) == 0
								       : a.truth == b.truth);
	*ret = (struct value){.kind = VALUE_TRUTH, .truth = same == (part->op == OP_EQUAL)};
	return 0;
}

static int evaluate_comparison(struct evaluation *v, const struct part *part, struct value *ret)
{
	struct value a, b;
	int result = evaluate_as(v, part->left, VALUE_NUMBER, &a);
	result = result < 0 ? result : evaluate_as(v, part->right, VALUE_NUMBER, &b);
	if (result == 0) {
		*ret = (struct value){
			.kind = VALUE_TRUTH, .truth = compare(part->op, a.number, b.number)};
	}
	return result;
}

static int evaluate(struct evaluation *v, size_t index, struct value *ret)
{
	const struct part *part = &v->x->parts[index];
	switch (part->op) {
	case OP_NUMBER:
		*ret = (struct value){.kind = VALUE_NUMBER, .number = part->number};
		return 0;
	case OP_TEXT: // a quoted text that reads as a number is a number
		*ret = value_of_text(part->text);
		return 0;
	case OP_NAME:
		*ret = value_of_text(v->lookup(v->context, part->text));
		return 0;
	case OP_OR:
	case OP_AND:
	case OP_NOT:
		return evaluate_truth(v, part, ret);
	case OP_EQUAL:
	case OP_DIFFERENT:
		return evaluate_same(v, part, ret);
	case OP_AT_MOST:
	case OP_AT_LEAST:
	case OP_LESS:
	case OP_MORE:
		return evaluate_comparison(v, part, ret);
	default:
		return evaluate_arithmetic(v, part, ret);
	}
}

int expression_holds(const struct expression *x,
	const char *(*lookup)(const void *context, const char *name), const void *context,
	bool *ret, size_t *ret_at, struct error *e)
{
	struct error ignored = {0};
	struct evaluation v = {.x = x, .lookup = lookup, .context = context, .e = e ? e : &ignored};
	struct value value;
	int result = evaluate_as(&v, x->root, VALUE_TRUTH, &value);
	if (result < 0) {
		*ret_at = v.wrong_at;
		return result;
	}
	*ret = value.truth;
	return 0;
}
