// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Scalars of a plan.

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/text.h"
#include "experiment/expression.h"
#include "experiment/plan_internal.h"

enum { TEXT_BYTES_MAX = 4096 }; // as a label has them

static bool is_scalar(const struct yaml_node *node)
{
	return node && node->kind == YAML_SCALAR && !yaml_is_null(node);
}

int plan_whole(const struct plan_reading *r, const struct yaml_node *node, const char *field,
	uint64_t minimum, uint64_t maximum, uint64_t *ret)
{
	int64_t value;
	if (!is_scalar(node) ||
		parse_integer(node->text, (int64_t)minimum, (int64_t)maximum, &value, NULL) < 0) {
		return yaml_wrong(&r->plan->yaml, node, r->e, field,
			"a whole number from %llu to %llu", (unsigned long long)minimum,
			(unsigned long long)maximum);
	}
	*ret = (uint64_t)value;
	return 0;
}

int plan_number(
	const struct plan_reading *r, const struct yaml_node *node, const char *field, double *ret)
{
	if (!is_scalar(node) || !expression_number(node->text, ret) || !isfinite(*ret)) {
		return yaml_wrong(&r->plan->yaml, node, r->e, field, "a number");
	}
	return 0;
}

int plan_seconds(
	const struct plan_reading *r, const struct yaml_node *node, const char *field, double *ret)
{
	double seconds = NAN;
	uint64_t ns;
	char *end;
	if (is_scalar(node) && parse_duration(node->text, &ns, NULL) == 0) {
		seconds = (double)ns / (double)NS_PER_S;
	} else if (is_scalar(node) && isdigit((unsigned char)node->text[0])) {
		seconds = strtod(node->text, &end);
		seconds = *end ? NAN : seconds;
	}
	if (!(seconds > 0) || seconds > 1e9) {
		return yaml_wrong(
			&r->plan->yaml, node, r->e, field, "seconds, or a time such as 10min");
	}
	*ret = seconds;
	return 0;
}

int plan_text(
	const struct plan_reading *r, const struct yaml_node *node, const char *field, char **ret)
{
	bool plain = is_scalar(node) || (node && node->quoted);
	if (!plain) {
		return yaml_wrong(&r->plan->yaml, node, r->e, field, "a value");
	}
	if (strlen(node->text) > TEXT_BYTES_MAX) {
		return yaml_error(&r->plan->yaml, node, r->e, field,
			"expected at most %d bytes, found %zu", TEXT_BYTES_MAX, strlen(node->text));
	}
	for (const char *c = node->text; *c; c++) {
		if ((unsigned char)*c < ' ' || *c == 0x7f) {
			return yaml_error(&r->plan->yaml, node, r->e, field,
				"expected a line of text, found the control character 0x%02x",
				(unsigned char)*c);
		}
	}
	free(*ret);
	*ret = strdup(node->text);
	return *ret ? 0 : error_errno(r->e, ENOMEM, "%s", field);
}

bool plan_is_name(const char *name)
{
	size_t length = strlen(name);
	bool plain = length > 0 && length <= 64 && (isalpha((unsigned char)*name) || *name == '_');
	for (size_t i = 0; i < length && plain; i++) {
		plain = isalnum((unsigned char)name[i]) || name[i] == '_' || name[i] == '-';
	}
	return plain;
}

static int add_pair(const struct plan_reading *r, const struct yaml_node *key,
	const struct yaml_node *value, const char *field, struct plan_pairs *ret)
{
	if (!plan_is_name(key->text)) {
		return yaml_wrong(&r->plan->yaml, key, r->e, field,
			"a name of letters, digits and _ (at most 64)");
	}
	_cleanup_text_ struct text where = {0};
	text_format(&where, "%s.%s", field, key->text);
	char *text = NULL;
	int result = plan_text(r, value, where.data ? where.data : field, &text);
	if (result < 0) {
		return result;
	}
	char *name = strdup(key->text);
	if (!name || array_reserve((void **)&ret->items, &ret->capacity, ret->n + 1,
			     sizeof(*ret->items)) < 0) {
		free(name);
		free(text);
		return error_errno(r->e, ENOMEM, "%s", field);
	}
	ret->items[ret->n++] = (struct plan_pair){name, text};
	return 0;
}

int plan_pairs(const struct plan_reading *r, const struct yaml_node *node, const char *field,
	struct plan_pairs *ret)
{
	if (!node || node->kind != YAML_MAP) {
		return yaml_wrong(&r->plan->yaml, node, r->e, field, "a map of names and values");
	}
	int result = 0;
	for (size_t i = 0; i + 1 < node->n && result == 0; i += 2) {
		result = add_pair(r, node->items[i], node->items[i + 1], field, ret);
	}
	return result;
}
