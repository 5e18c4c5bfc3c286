// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Reads a plan: its keys, one row each.

#include "sweep/plan.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/secret.h"
#include "base/suggest.h"
#include "base/text.h"
#include "sweep/expression.h"
#include "sweep/template.h"

// Shared by the parts that read a plan.

struct plan_reading {
	struct plan *plan;
	struct error *e;
};

static int plan_number(
	const struct plan_reading *r, const struct yaml_node *node, const char *field, double *ret);
static int plan_text(
	const struct plan_reading *r, const struct yaml_node *node, const char *field, char **ret);
static bool plan_is_name(const char *name);

// Command -----------------------------------------------------------------------------------------
//
// The command of a plan, and the parameters that it uses.

enum { WORDS_MAX = 1000 };

static int read_line(const struct plan_reading *r, const struct yaml_node *node)
{
	struct error why = {0};
	if (template_split(node->text, &r->plan->command, &r->plan->n_command, &why) < 0) {
		return yaml_error(&r->plan->yaml, node, r->e, "command", "%s", why.text);
	}
	return 0;
}

static int read_words(const struct plan_reading *r, const struct yaml_node *node)
{
	struct plan *plan = r->plan;
	plan->command = calloc(node->n + 1, sizeof(char *));
	if (!plan->command) {
		return error_errno(r->e, ENOMEM, "command");
	}
	int result = 0;
	for (size_t i = 0; i < node->n && result == 0; i++) {
		result = plan_text(r, node->items[i], "command", &plan->command[i]);
		plan->n_command += result == 0;
	}
	return result;
}

static int plan_command(const struct plan_reading *r, const struct yaml_node *node)
{
	bool list = node->kind == YAML_LIST, line = node->kind == YAML_SCALAR;
	int result = list ? read_words(r, node) : line ? read_line(r, node) : -EINVAL;
	if ((result < 0 && (list || line)) ||
		(result == 0 && r->plan->n_command > 0 && r->plan->n_command <= WORDS_MAX &&
			*r->plan->command[0])) {
		return result;
	}
	return yaml_wrong(&r->plan->yaml, node, r->e, "command",
		"a program and its arguments, at most %d words", WORDS_MAX);
}

// Use ---------------------------------------------------------------------------------------------

static struct plan_factor *find(struct plan *plan, const char *name)
{
	for (size_t i = 0; i < plan->n_factors; i++) {
		if (strcmp(plan->factors[i].name, name) == 0) {
			return &plan->factors[i];
		}
	}
	return NULL;
}

static int unknown_name(const struct plan_reading *r, const struct yaml_node *place,
	const char *field, const char *name)
{
	struct suggestion_of_word nearest = SUGGEST_NONE;
	for (size_t i = 0; i < r->plan->n_factors; i++) {
		suggest_consider(&nearest, name, r->plan->factors[i].name);
	}
	return yaml_error(&r->plan->yaml, place, r->e, field,
		"expected a parameter or a resource, found '${%s}'%s%s%s", name,
		nearest.word ? "; did you mean '${" : "", nearest.word ? nearest.word : "",
		nearest.word ? "}'?" : "");
}

static int check_template(const struct plan_reading *r, const char *template,
	const struct yaml_node *place, const char *field, bool *ret_all)
{
	struct placeholder p;
	struct error why = {0};
	int found;
	for (size_t at = 0; (found = template_next(template, at, &p, &why)) > 0; at = p.to) {
		struct plan_factor *factor = find(r->plan, p.name);
		if (factor) {
			factor->used = factor->named = true;
		} else if (strcmp(p.name, "args") != 0) {
			return unknown_name(r, place, field, p.name);
		} else if (!ret_all || template[0] != '$' || template[p.to] != '\0' || p.from > 0) {
			return yaml_error(&r->plan->yaml, place, r->e, field,
				"expected ${args} as a word of its own in command, found '%.60s'",
				template);
		} else {
			*ret_all = true;
		}
	}
	return found < 0 ? yaml_error(&r->plan->yaml, place, r->e, field, "%s", why.text) : 0;
}

static int check_templates(const struct plan_reading *r, bool *ret_all)
{
	struct plan *plan = r->plan;
	const struct yaml_node *command = yaml_get(plan->yaml.root, "command"),
			       *environment = yaml_get(plan->yaml.root, "env");
	int result = 0;
	for (size_t i = 0; i < plan->n_command && result == 0; i++) {
		const struct yaml_node *place = command->kind == YAML_LIST ? command->items[i]
		                                                           : command;
		result = check_template(r, plan->command[i], place, "command", ret_all);
	}
	for (size_t i = 0; i < plan->environment.n && result == 0; i++) {
		_cleanup_text_ struct text field = {0};
		text_format(&field, "env.%s", plan->environment.items[i].name);
		result = check_template(r, plan->environment.items[i].value,
			environment->items[2 * i + 1], field.data ? field.data : "env", NULL);
	}
	return result;
}

// Called after everything is read: checks that placeholders and parameters match.
static int plan_check_use(const struct plan_reading *r)
{
	struct plan *plan = r->plan;
	bool all = false;
	int result = check_templates(r, &all);
	for (size_t i = 0; i < plan->n_factors && result == 0; i++) {
		struct plan_factor *factor = &plan->factors[i];
		factor->used = factor->used || (all && !factor->resource);
		if (!factor->used && !factor->resource) {
			_cleanup_text_ struct text field = {0};
			text_format(&field, "parameters.%s", factor->name);
			result = yaml_error(&plan->yaml, factor->place, r->e,
				field.data ? field.data : "parameters",
				"expected ${%s} (or ${args}) in command or env, found neither",
				factor->name);
		}
	}
	return result;
}

// Factors -----------------------------------------------------------------------------------------
//
// The factors of a plan: parameters and resources.

#define MEMORY_LEAST_BYTES (UINT64_C(1) << 20)

static const char *const distributions[] = {
	[DISTRIBUTION_VALUES] = "categorical",
	[DISTRIBUTION_UNIFORM] = "uniform",
	[DISTRIBUTION_INT_UNIFORM] = "int_uniform",
	[DISTRIBUTION_Q_UNIFORM] = "q_uniform",
	[DISTRIBUTION_LOG_UNIFORM] = "log_uniform_values",
};

struct factor_reading {
	const struct plan_reading *r;
	struct plan_factor *factor;
	const char *field; // "parameters.batch_size"
	const struct yaml_node *node;
};

// Values ------------------------------------------------------------------------------------------

static int add_value(const struct factor_reading *f, const struct yaml_node *node)
{
	struct plan_factor *factor = f->factor;
	char *text = NULL;
	int result = plan_text(f->r, node, f->field, &text);
	for (size_t i = 0; i < factor->n_values && result == 0; i++) {
		if (strcmp(factor->values[i], text) == 0) {
			result = yaml_error(&f->r->plan->yaml, node, f->r->e, f->field,
				"expected distinct values, found '%.60s' twice", text);
		}
	}
	if (result < 0) {
		free(text);
		return result;
	}
	factor->values[factor->n_values++] = text;
	return 0;
}

static int read_list(const struct factor_reading *f, const struct yaml_node *list)
{
	if (list->kind != YAML_LIST || list->n == 0 || list->n > PLAN_MAX_VALUES) {
		return yaml_wrong(&f->r->plan->yaml, list, f->r->e, f->field,
			"a list of 1 to %u values", PLAN_MAX_VALUES);
	}
	f->factor->values = calloc(list->n, sizeof(char *));
	if (!f->factor->values) {
		return error_errno(f->r->e, ENOMEM, "%s", f->field);
	}
	int result = 0;
	for (size_t i = 0; i < list->n && result == 0; i++) {
		result = add_value(f, list->items[i]);
	}
	return result;
}

static int read_value(const struct factor_reading *f, const struct yaml_node *value)
{
	f->factor->values = calloc(1, sizeof(char *));
	return f->factor->values ? add_value(f, value)
	                         : error_errno(f->r->e, ENOMEM, "%s", f->field);
}

// Intervals ---------------------------------------------------------------------------------------

static bool is_whole(const struct yaml_node *node)
{
	int64_t number;
	return parse_integer(node->text, INT32_MIN, INT32_MAX, &number, NULL) == 0;
}

static int read_distribution(const struct factor_reading *f, const struct yaml_node *low,
	const struct yaml_node *high, const struct yaml_node *named)
{
	bool whole = is_whole(low) && is_whole(high);
	f->factor->distribution = whole ? DISTRIBUTION_INT_UNIFORM : DISTRIBUTION_UNIFORM;
	if (!named) {
		return 0;
	}
	for (size_t i = 1; i < ARRAY_LENGTH(distributions); i++) {
		if (named->kind == YAML_SCALAR && strcmp(named->text, distributions[i]) == 0) {
			f->factor->distribution = (enum plan_distribution)i;
			return i == DISTRIBUTION_INT_UNIFORM && !whole
			               ? yaml_error(&f->r->plan->yaml, named, f->r->e, f->field,
						 "expected whole numbers as min and max of "
						 "int_uniform, found others")
			               : 0;
		}
	}
	return yaml_wrong(&f->r->plan->yaml, named, f->r->e, f->field,
		"uniform, int_uniform, q_uniform or log_uniform_values");
}

static int check_interval(
	const struct factor_reading *f, const struct yaml_node *low, const struct yaml_node *step)
{
	const struct plan_factor *factor = f->factor;
	const struct yaml *yaml = &f->r->plan->yaml;
	if (!(factor->minimum < factor->maximum)) {
		return yaml_error(yaml, low, f->r->e, f->field,
			"expected a min that is less than max, found %g and %g", factor->minimum,
			factor->maximum);
	}
	if (factor->distribution == DISTRIBUTION_LOG_UNIFORM && !(factor->minimum > 0)) {
		return yaml_error(yaml, low, f->r->e, f->field,
			"expected a min above 0 for log_uniform_values, found %g", factor->minimum);
	}
	bool steps = factor->distribution == DISTRIBUTION_Q_UNIFORM;
	if (steps && !(factor->step > 0 && factor->step <= factor->maximum - factor->minimum)) {
		return yaml_error(yaml, step ? step : low, f->r->e, f->field,
			"expected a step q above 0 and at most max - min, found %g", factor->step);
	}
	return 0;
}

static int read_interval(const struct factor_reading *f)
{
	const struct yaml_node *low = yaml_get(f->node, "min"), *high = yaml_get(f->node, "max"),
			       *step = yaml_get(f->node, "q");
	if (!f->r->plan->random) {
		return yaml_error(&f->r->plan->yaml, f->node, f->r->e, f->field,
			"expected values: [...] (min and max are for method: random), found an "
			"interval");
	}
	if (!low || !high) {
		return yaml_error(&f->r->plan->yaml, f->node, f->r->e, f->field,
			"expected min and max, found one of them");
	}
	int result = plan_number(f->r, low, f->field, &f->factor->minimum);
	result = result < 0 ? result : plan_number(f->r, high, f->field, &f->factor->maximum);
	result = result < 0 || !step ? result : plan_number(f->r, step, f->field, &f->factor->step);
	result = result < 0 ? result
	                    : read_distribution(f, low, high, yaml_get(f->node, "distribution"));
	return result < 0 ? result : check_interval(f, low, step);
}

// A factor ----------------------------------------------------------------------------------------

static int check_keys(const struct factor_reading *f)
{
	static const char *const keys[] = {"values", "value", "min", "max", "q", "distribution"};
	for (size_t i = 0; i + 1 < f->node->n; i += 2) {
		const char *key = f->node->items[i]->text;
		struct suggestion_of_word nearest = SUGGEST_NONE;
		for (size_t k = 0; k < ARRAY_LENGTH(keys); k++) {
			suggest_consider(&nearest, key, keys[k]);
		}
		if (!nearest.word || nearest.distance > 0) {
			return yaml_error(&f->r->plan->yaml, f->node->items[i], f->r->e, f->field,
				"expected values, value, or min and max, found '%.60s'%s%s%s", key,
				nearest.word ? "; did you mean '" : "",
				nearest.word ? nearest.word : "", nearest.word ? "'?" : "");
		}
	}
	return 0;
}

static int read_map(const struct factor_reading *f)
{
	const struct yaml_node *values = yaml_get(f->node, "values"),
			       *value = yaml_get(f->node, "value"),
			       *named = yaml_get(f->node, "distribution");
	bool interval = yaml_get(f->node, "min") || yaml_get(f->node, "max") ||
	                yaml_get(f->node, "q");
	int result = check_keys(f);
	if (result < 0) {
		return result;
	}
	if ((values != NULL) + (value != NULL) + interval != 1) {
		return yaml_error(&f->r->plan->yaml, f->node, f->r->e, f->field,
			"expected one of values, value, or min and max, found %s",
			values || value || interval ? "several" : "none");
	}
	if (!interval && named &&
		(named->kind != YAML_SCALAR || (strcmp(named->text, "categorical") != 0 &&
						       strcmp(named->text, "constant") != 0))) {
		return yaml_wrong(&f->r->plan->yaml, named, f->r->e, f->field,
			"categorical or constant with %s", values ? "values" : "value");
	}
	return interval ? read_interval(f) : values ? read_list(f, values) : read_value(f, value);
}

static int read_factor(const struct plan_reading *r, const struct yaml_node *key,
	const struct yaml_node *node, bool resource, struct plan_factor **ret)
{
	struct plan *plan = r->plan;
	_cleanup_text_ struct text field = {0};
	text_format(&field, "%s.%s", resource ? "resources" : "parameters", key->text);
	if (plan->n_factors >= PLAN_MAX_FACTORS) {
		return yaml_error(&plan->yaml, key, r->e, resource ? "resources" : "parameters",
			"expected at most %u parameters and resources", PLAN_MAX_FACTORS);
	}
	char *name = strdup(key->text);
	if (!name || !field.data ||
		array_reserve((void **)&plan->factors, &plan->factors_capacity, plan->n_factors + 1,
			sizeof(*plan->factors)) < 0) {
		free(name);
		return error_errno(r->e, ENOMEM, "%s", key->text);
	}
	struct plan_factor *factor = &plan->factors[plan->n_factors++];
	*factor = (struct plan_factor){.name = name, .resource = resource, .place = key};
	*ret = factor;
	const struct factor_reading f = {r, factor, field.data, node};
	return node->kind == YAML_MAP      ? read_map(&f)
	       : node->kind == YAML_SCALAR ? read_value(&f, node)
	                                   : yaml_wrong(&plan->yaml, node, r->e, field.data,
						     "{values: [...]}, {value: ...} or a value");
}

// Parameters --------------------------------------------------------------------------------------

static int check_name(const struct plan_reading *r, const struct yaml_node *key)
{
	static const char *const taken[] = {"args", "sweep", "trial", "repeat", "cpus", "memory",
		"gpus", "gpu_type", "disk_read", "or", "and", "not", "unlimited"};
	bool plain = plan_is_name(key->text) && !strchr(key->text, '-');
	for (size_t i = 0; i < ARRAY_LENGTH(taken); i++) {
		if (strcmp(key->text, taken[i]) == 0) {
			return yaml_wrong(&r->plan->yaml, key, r->e, "parameters",
				"a name that is not reserved");
		}
	}
	return plain ? 0
	             : yaml_wrong(&r->plan->yaml, key, r->e, "parameters",
			       "a name of letters, digits and _ (at most 64)");
}

static int plan_parameters(const struct plan_reading *r, const struct yaml_node *node)
{
	if (node->kind != YAML_MAP || node->n == 0) {
		return yaml_wrong(
			&r->plan->yaml, node, r->e, "parameters", "a map of names and values");
	}
	int result = 0;
	for (size_t i = 0; i + 1 < node->n && result == 0; i += 2) {
		struct plan_factor *factor;
		result = check_name(r, node->items[i]);
		result = result < 0 ? result
		                    : read_factor(r, node->items[i], node->items[i + 1], false,
					      &factor);
	}
	return result;
}

// Resources ---------------------------------------------------------------------------------------

struct resource {
	const char *name;
	bool (*check)(const char *value);
	const char *expected;
};

static bool is_cpus(const char *value)
{
	int64_t cpus;
	return parse_integer(value, 1, 65536, &cpus, NULL) == 0;
}

static bool is_memory(const char *value)
{
	uint64_t bytes;
	return strcmp(value, "unlimited") == 0 ||
	       (parse_size(value, &bytes, NULL) == 0 && bytes >= MEMORY_LEAST_BYTES);
}

static bool is_gpus(const char *value)
{
	int64_t gpus;
	return parse_integer(value, 0, 1024, &gpus, NULL) == 0;
}

static bool is_gpu_type(const char *value)
{
	size_t length = strlen(value);
	bool plain = length > 0 && length <= 64 && isalnum((unsigned char)*value);
	for (size_t i = 0; i < length && plain; i++) {
		plain = isalnum((unsigned char)value[i]) || strchr("_.-", value[i]);
	}
	return plain;
}

static bool is_rate(const char *value)
{
	uint64_t bytes;
	size_t length = strlen(value);
	_cleanup_free_ char *size = NULL;
	if (strcmp(value, "unlimited") == 0) {
		return true;
	}
	if (length < 3 || strcmp(value + length - 2, "/s") != 0) {
		return false;
	}
	size = strndup(value, length - 2);
	return size && parse_size(size, &bytes, NULL) == 0 && bytes > 0;
}

static const struct resource resources[] = {
	{"cpus", is_cpus, "a whole number of CPUs, at least 1"},
	{"memory", is_memory, "a size of at least 1MiB such as 4GiB, or unlimited"},
	{"gpus", is_gpus, "a whole number of GPUs, 0 for none"},
	{"gpu_type", is_gpu_type, "any, or under Slurm a type of GPUs"},
	{"disk_read", is_rate, "a rate such as 100MB/s, or unlimited"},
};

static const struct resource *find_resource(const char *name, struct suggestion_of_word *nearest)
{
	for (size_t i = 0; i < ARRAY_LENGTH(resources); i++) {
		if (strcmp(resources[i].name, name) == 0) {
			return &resources[i];
		}
		suggest_consider(nearest, name, resources[i].name);
	}
	return NULL;
}

static const struct yaml_node *value_place(const struct yaml_node *node, size_t i)
{
	const struct yaml_node *values = yaml_get(node, "values"), *value = yaml_get(node, "value");
	return values ? values->items[i] : value ? value : node;
}

static int read_resource(
	const struct plan_reading *r, const struct yaml_node *key, const struct yaml_node *node)
{
	struct suggestion_of_word nearest = SUGGEST_NONE;
	struct plan_factor *factor;
	const struct resource *resource = find_resource(key->text, &nearest);
	if (!resource) {
		return yaml_error(&r->plan->yaml, key, r->e, "resources",
			"expected cpus, memory, gpus, gpu_type or disk_read, found '%.60s'%s%s%s",
			key->text, nearest.word ? "; did you mean '" : "",
			nearest.word ? nearest.word : "", nearest.word ? "'?" : "");
	}
	int result = read_factor(r, key, node, true, &factor);
	if (result == 0 && factor->distribution != DISTRIBUTION_VALUES) {
		return yaml_error(&r->plan->yaml, node, r->e, "resources",
			"expected values for %s, found an interval", key->text);
	}
	for (size_t i = 0; result == 0 && i < factor->n_values; i++) {
		if (!resource->check(factor->values[i])) {
			_cleanup_text_ struct text field = {0};
			text_format(&field, "resources.%s", key->text);
			result = yaml_wrong(&r->plan->yaml, value_place(node, i), r->e,
				field.data ? field.data : "resources", "%s", resource->expected);
		}
	}
	return result;
}

static int plan_resources(const struct plan_reading *r, const struct yaml_node *node)
{
	if (node->kind != YAML_MAP || node->n == 0) {
		return yaml_wrong(
			&r->plan->yaml, node, r->e, "resources", "a map of resources and values");
	}
	int result = 0;
	for (size_t i = 0; i + 1 < node->n && result == 0; i += 2) {
		result = read_resource(r, node->items[i], node->items[i + 1]);
	}
	return result;
}

// Values ------------------------------------------------------------------------------------------
//
// Scalars of a plan.

enum { TEXT_BYTES_MAX = 4096 }; // as for labels

static bool is_scalar(const struct yaml_node *node)
{
	return node && node->kind == YAML_SCALAR && !yaml_is_null(node);
}

// Reads a scalar of a kind, or sets an error with what was expected.
static int plan_whole(const struct plan_reading *r, const struct yaml_node *node, const char *field,
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

static int plan_number(
	const struct plan_reading *r, const struct yaml_node *node, const char *field, double *ret)
{
	if (!is_scalar(node) || !expression_number(node->text, ret) || !isfinite(*ret)) {
		return yaml_wrong(&r->plan->yaml, node, r->e, field, "a number");
	}
	return 0;
}

// Reads a number of seconds or a duration (90, 10min), greater than 0.
static int plan_seconds(
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

static int plan_text(
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

// Whether it is a valid name of a parameter: a letter or _, then letters, digits, _ and -.
static bool plan_is_name(const char *name)
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

// Reads {NAME: value}: names of letters, digits and _, each value a scalar.
static int plan_pairs(const struct plan_reading *r, const struct yaml_node *node, const char *field,
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

// Plan --------------------------------------------------------------------------------------------

// The small keys ----------------------------------------------------------------------------------

static int read_name(const struct plan_reading *r, const struct yaml_node *node)
{
	return plan_text(r, node, "name", &r->plan->name);
}

static int read_method(const struct plan_reading *r, const struct yaml_node *node)
{
	bool scalar = node->kind == YAML_SCALAR;
	r->plan->random = scalar && strcmp(node->text, "random") == 0;
	if (scalar && (r->plan->random || strcmp(node->text, "grid") == 0)) {
		return 0;
	}
	return yaml_wrong(&r->plan->yaml, node, r->e, "method", "grid or random");
}

static int read_trials(const struct plan_reading *r, const struct yaml_node *node)
{
	return plan_whole(r, node, "trials", 1, PLAN_MAX_DRAWN, &r->plan->n_drawn);
}

static int read_repeats(const struct plan_reading *r, const struct yaml_node *node)
{
	return plan_whole(r, node, "repeats", 1, PLAN_MAX_REPEATS, &r->plan->repeats);
}

static int read_seed(const struct plan_reading *r, const struct yaml_node *node)
{
	return plan_whole(r, node, "seed", 0, INT64_MAX, &r->plan->seed);
}

static int read_order(const struct plan_reading *r, const struct yaml_node *node)
{
	bool scalar = node->kind == YAML_SCALAR;
	r->plan->in_order = scalar && strcmp(node->text, "plan") == 0;
	if (scalar && (r->plan->in_order || strcmp(node->text, "random") == 0)) {
		return 0;
	}
	return yaml_wrong(&r->plan->yaml, node, r->e, "order", "random or plan");
}

static int read_timeout(const struct plan_reading *r, const struct yaml_node *node)
{
	return plan_seconds(r, node, "timeout", &r->plan->timeout_s);
}

static int read_grace(const struct plan_reading *r, const struct yaml_node *node)
{
	return plan_seconds(r, node, "grace", &r->plan->grace_s);
}

static int read_executor(const struct plan_reading *r, const struct yaml_node *node)
{
	bool scalar = node->kind == YAML_SCALAR;
	if (!scalar || (strcmp(node->text, "local") != 0 && strcmp(node->text, PLAN_SLURM) != 0)) {
		return yaml_wrong(&r->plan->yaml, node, r->e, "executor", "local or slurm");
	}
	return plan_text(r, node, "executor", &r->plan->executor);
}

static int read_epoch_pattern(const struct plan_reading *r, const struct yaml_node *node)
{
	return plan_text(r, node, "epoch_pattern", &r->plan->epoch_pattern);
}

static int read_environment(const struct plan_reading *r, const struct yaml_node *node)
{
	return plan_pairs(r, node, "env", &r->plan->environment);
}

static int read_labels(const struct plan_reading *r, const struct yaml_node *node)
{
	return plan_pairs(r, node, "labels", &r->plan->labels);
}

static int read_baseline(const struct plan_reading *r, const struct yaml_node *node)
{
	return plan_pairs(r, node, "baseline", &r->plan->baseline);
}

// Keys by their table -----------------------------------------------------------------------------

struct plan_key {
	const char *name;
	int (*read)(const struct plan_reading *r, const struct yaml_node *node);
};

static int read_keys(const struct plan_reading *r, const struct yaml_node *map, const char *field,
	const struct plan_key *keys, size_t n_keys)
{
	for (size_t i = 0; i + 1 < map->n; i += 2) {
		const struct yaml_node *key = map->items[i];
		struct suggestion_of_word nearest = SUGGEST_NONE;
		for (size_t k = 0; k < n_keys; k++) {
			suggest_consider(&nearest, key->text, keys[k].name);
		}
		if (!nearest.word || nearest.distance > 0) {
			_cleanup_text_ struct text shown = {0};
			yaml_append(&shown, key);
			return yaml_error(&r->plan->yaml, key, r->e, field,
				"expected a valid key, found '%s'%s%s%s",
				shown.data ? shown.data : "",
				nearest.word ? "; did you mean '" : "",
				nearest.word ? nearest.word : "", nearest.word ? "'?" : "");
		}
	}
	// In the order of the table: the meaning of a key may depend on another.
	int result = 0;
	for (size_t k = 0; k < n_keys && result == 0; k++) {
		const struct yaml_node *value = yaml_get(map, keys[k].name);
		result = value ? keys[k].read(r, value) : 0;
	}
	return result;
}

static int read_slurm_partition(const struct plan_reading *r, const struct yaml_node *node)
{
	return plan_text(r, node, "slurm.partition", &r->plan->slurm.partition);
}

static int read_slurm_time(const struct plan_reading *r, const struct yaml_node *node)
{
	return plan_seconds(r, node, "slurm.time", &r->plan->slurm.time_s);
}

static int read_slurm_parallel(const struct plan_reading *r, const struct yaml_node *node)
{
	return plan_whole(r, node, "slurm.parallel", 1, PLAN_MAX_TRIALS, &r->plan->slurm.parallel);
}

static int read_slurm_requeue(const struct plan_reading *r, const struct yaml_node *node)
{
	bool scalar = node->kind == YAML_SCALAR;
	r->plan->slurm.no_requeue = scalar && strcmp(node->text, "false") == 0;
	if (scalar && (r->plan->slurm.no_requeue || strcmp(node->text, "true") == 0)) {
		return 0;
	}
	return yaml_wrong(&r->plan->yaml, node, r->e, "slurm.requeue", "true or false");
}

// Those that the sweep sets, or that would part it from its jobs. Slurm accepts a long option that
// is cut short where it is clear.
static bool is_own_option(const char *word)
{
	static const char *const own[] = {"--array", "--job-name", "--output", "--error", "--input",
		"--parsable", "--wrap", "--wait", "--requeue", "--no-requeue", "--open-mode",
		"--test-only", "--help", "--usage", "--version", "--hold", "--clusters"};
	size_t length = strcspn(word, "=");
	if (word[1] != '-') {
		return strchr("aJoeiWhVHQM", word[1]) != NULL;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(own); i++) {
		if (length > 3 && strncmp(own[i], word, length) == 0) {
			return true;
		}
	}
	return false;
}

static int read_slurm_option(const struct plan_reading *r, const struct yaml_node *node)
{
	struct plan_slurm *slurm = &r->plan->slurm;
	char **option = &slurm->options[slurm->n_options];
	int result = plan_text(r, node, "slurm.options", option);
	if (result < 0) {
		return result;
	}
	slurm->n_options++;
	if (strlen(*option) < 2 || (*option)[0] != '-' || strcmp(*option, "--") == 0 ||
		is_own_option(*option)) {
		return yaml_wrong(&r->plan->yaml, node, r->e, "slurm.options",
			"an option of sbatch with its value in one word, as in --qos=short, that "
			"the sweep does not set itself");
	}
	return 0;
}

static int read_slurm_options(const struct plan_reading *r, const struct yaml_node *node)
{
	enum { OPTIONS_MAX = 100 };
	if (node->kind != YAML_LIST || node->n == 0 || node->n > OPTIONS_MAX) {
		return yaml_wrong(&r->plan->yaml, node, r->e, "slurm.options",
			"a list of 1 to %d options of sbatch", OPTIONS_MAX);
	}
	r->plan->slurm.options = calloc(node->n + 1, sizeof(char *));
	if (!r->plan->slurm.options) {
		return error_errno(r->e, ENOMEM, "slurm.options");
	}
	int result = 0;
	for (size_t i = 0; i < node->n && result == 0; i++) {
		result = read_slurm_option(r, node->items[i]);
	}
	return result;
}

static int read_slurm(const struct plan_reading *r, const struct yaml_node *node)
{
	static const struct plan_key keys[] = {
		{"partition", read_slurm_partition},
		{"time", read_slurm_time},
		{"parallel", read_slurm_parallel},
		{"requeue", read_slurm_requeue},
		{"options", read_slurm_options},
	};
	if (node->kind != YAML_MAP || node->n == 0) {
		return yaml_wrong(&r->plan->yaml, node, r->e, "slurm",
			"a map of partition, time, parallel, requeue or options");
	}
	return read_keys(r, node, "slurm", keys, ARRAY_LENGTH(keys));
}

static int read_stop_epochs(const struct plan_reading *r, const struct yaml_node *node)
{
	return plan_whole(r, node, "stop.epochs", 1, 1000000, &r->plan->stop.epochs);
}

static int read_stop_seconds(const struct plan_reading *r, const struct yaml_node *node)
{
	return plan_seconds(r, node, "stop.seconds", &r->plan->stop.seconds);
}

static int read_stop_step_error(const struct plan_reading *r, const struct yaml_node *node)
{
	double ratio;
	if (node->kind != YAML_SCALAR || parse_percent(node->text, &ratio, NULL) < 0 ||
		ratio < 0.001) {
		return yaml_wrong(&r->plan->yaml, node, r->e, "stop.step_error", "0.1%% to 100%%");
	}
	r->plan->stop.step_error = ratio;
	return 0;
}

static int read_stop(const struct plan_reading *r, const struct yaml_node *node)
{
	static const struct plan_key keys[] = {
		{"epochs", read_stop_epochs},
		{"seconds", read_stop_seconds},
		{"step_error", read_stop_step_error},
	};
	if (node->kind != YAML_MAP || node->n == 0) {
		return yaml_wrong(&r->plan->yaml, node, r->e, "stop",
			"a map of epochs, seconds or step_error");
	}
	return read_keys(r, node, "stop", keys, ARRAY_LENGTH(keys));
}

// Constraints -------------------------------------------------------------------------------------

static int check_constraint_names(
	const struct plan_reading *r, const struct expression *x, const struct yaml_node *node)
{
	for (size_t i = 0; i < expression_n_names(x); i++) {
		size_t at;
		const char *name = expression_name(x, i, &at);
		if (plan_factor(r->plan, name)) {
			continue;
		}
		struct suggestion_of_word nearest = SUGGEST_NONE;
		for (size_t k = 0; k < r->plan->n_factors; k++) {
			suggest_consider(&nearest, name, r->plan->factors[k].name);
		}
		return yaml_error(&r->plan->yaml, node, r->e, "constraints",
			"expected a parameter, a resource or a text in quotes, found '%.60s' "
			"(character %zu)%s%s%s",
			name, at + 1, nearest.word ? "; did you mean '" : "",
			nearest.word ? nearest.word : "", nearest.word ? "'?" : "");
	}
	return 0;
}

static int read_constraint(const struct plan_reading *r, const struct yaml_node *node)
{
	struct plan *plan = r->plan;
	struct expression *x = NULL;
	struct error why = {0};
	size_t at = 0;
	if (node->kind != YAML_SCALAR || yaml_is_null(node)) {
		return yaml_wrong(&plan->yaml, node, r->e, "constraints",
			"a comparison such as \"workers <= 2 * cpus\"");
	}
	if (expression_parse(node->text, &x, &at, &why) < 0) {
		return yaml_error(&plan->yaml, node, r->e, "constraints", "character %zu: %s",
			at + 1, why.text);
	}
	if (array_reserve((void **)&plan->constraints, &plan->constraints_capacity,
		    plan->n_constraints + 1, sizeof(*plan->constraints)) < 0) {
		expression_free(x);
		return error_errno(r->e, ENOMEM, "constraints");
	}
	plan->constraints[plan->n_constraints++] = (struct plan_constraint){x, node};
	return check_constraint_names(r, x, node);
}

static int read_constraints(const struct plan_reading *r, const struct yaml_node *node)
{
	enum { CONSTRAINTS_MAX = 100 };
	if (node->kind != YAML_LIST || node->n == 0 || node->n > CONSTRAINTS_MAX) {
		return yaml_wrong(&r->plan->yaml, node, r->e, "constraints",
			"a list of 1 to %d comparisons", CONSTRAINTS_MAX);
	}
	int result = 0;
	for (size_t i = 0; i < node->n && result == 0; i++) {
		result = read_constraint(r, node->items[i]);
	}
	return result;
}

// The whole plan ----------------------------------------------------------------------------------

static const struct plan_key keys[] = {
	{"name", read_name},
	{"method", read_method},
	{"trials", read_trials},
	{"command", plan_command},
	{"parameters", plan_parameters},
	{"resources", plan_resources},
	{"env", read_environment},
	{"labels", read_labels},
	{"repeats", read_repeats},
	{"order", read_order},
	{"seed", read_seed},
	{"stop", read_stop},
	{"timeout", read_timeout},
	{"grace", read_grace},
	{"epoch_pattern", read_epoch_pattern},
	{"executor", read_executor},
	{"slurm", read_slurm},
	{"constraints", read_constraints},
	{"baseline", read_baseline},
};

static int check_method(const struct plan_reading *r)
{
	const struct yaml_node *trials = yaml_get(r->plan->yaml.root, "trials");
	if (r->plan->random && !trials) {
		return yaml_error(&r->plan->yaml, yaml_get(r->plan->yaml.root, "method"), r->e,
			"trials", "expected the number of configurations to draw, found nothing");
	}
	if (!r->plan->random && trials) {
		return yaml_error(&r->plan->yaml, trials, r->e, "trials",
			"expected trials only with method: random, not with grid (use repeats for "
			"repetitions), found '%s'",
			trials->text);
	}
	return 0;
}

static bool has_value(const struct plan_factor *factor, const char *value)
{
	bool there = factor->distribution != DISTRIBUTION_VALUES;
	for (size_t i = 0; i < factor->n_values && !there; i++) {
		there = strcmp(factor->values[i], value) == 0;
	}
	return there;
}

static int check_baseline(const struct plan_reading *r)
{
	struct plan *plan = r->plan;
	const struct yaml_node *map = yaml_get(plan->yaml.root, "baseline");
	for (size_t i = 0; i < plan->baseline.n; i++) {
		const struct plan_pair *pair = &plan->baseline.items[i];
		const struct plan_factor *factor = plan_factor(plan, pair->name);
		if (!factor) {
			return yaml_wrong(&plan->yaml, map->items[2 * i], r->e, "baseline",
				"a parameter or a resource");
		}
		if (!has_value(factor, pair->value)) {
			_cleanup_text_ struct text field = {0};
			text_format(&field, "baseline.%s", pair->name);
			return yaml_wrong(&plan->yaml, map->items[2 * i + 1], r->e,
				field.data ? field.data : "baseline", "one of its values");
		}
	}
	return 0;
}

static int check_labels(const struct plan_reading *r)
{
	static const char *const own[] = {"sweep", "trial", "repeat"};
	struct plan *plan = r->plan;
	const struct yaml_node *map = yaml_get(plan->yaml.root, "labels");
	for (size_t i = 0; i < plan->labels.n; i++) {
		const char *name = plan->labels.items[i].name;
		bool taken = plan_factor(plan, name) != NULL;
		for (size_t k = 0; k < ARRAY_LENGTH(own); k++) {
			taken = taken || strcmp(name, own[k]) == 0;
		}
		if (taken) {
			return yaml_wrong(&plan->yaml, map->items[2 * i], r->e, "labels",
				"a label other than those that every trial has");
		}
	}
	return 0;
}

// Values of parameters become labels of runs, so they must not contain secrets.
static int check_secrets(const struct plan_reading *r)
{
	for (size_t i = 0; i < r->plan->n_factors; i++) {
		const struct plan_factor *factor = &r->plan->factors[i];
		for (size_t k = 0; k < factor->n_values; k++) {
			_cleanup_text_ struct text masked = {0}, field = {0};
			secret_append_value(&masked, factor->values[k], strlen(factor->values[k]));
			text_format(&field, "parameters.%s", factor->name);
			if (masked.failed || field.failed) {
				return error_errno(r->e, ENOMEM, "%s", r->plan->yaml.name);
			}
			if (strcmp(masked.data, factor->values[k]) != 0 &&
				strcmp(factor->values[k], "***") != 0) {
				return yaml_error(&r->plan->yaml, factor->place, r->e, field.data,
					"expected no secrets, because parameters become labels of "
					"runs (set them in the environment of strain sweep)");
			}
		}
	}
	return 0;
}

// What one executor has and the other has not.
static int check_executor(const struct plan_reading *r)
{
	struct plan *plan = r->plan;
	const struct yaml_node *slurm = yaml_get(plan->yaml.root, "slurm");
	const struct plan_factor *type = plan_factor(plan, "gpu_type");
	const struct yaml_node *map = yaml_get(plan->yaml.root, "resources");
	if (plan->executor && strcmp(plan->executor, PLAN_SLURM) == 0) {
		return 0;
	}
	if (slurm) {
		return yaml_error(&plan->yaml, slurm, r->e, "slurm",
			"expected 'executor: slurm' in a plan with this key, found %s",
			plan->executor ? "'executor: local'" : "no executor");
	}
	for (size_t i = 0; type && type->resource && i < type->n_values; i++) {
		if (strcmp(type->values[i], "any") != 0) {
			return yaml_wrong(&plan->yaml, value_place(yaml_get(map, "gpu_type"), i),
				r->e, "resources.gpu_type",
				"any (the local executor uses the GPUs of this machine)");
		}
	}
	return 0;
}

static int read_plan(const struct plan_reading *r)
{
	struct plan *plan = r->plan;
	const struct yaml_node *root = plan->yaml.root;
	if (!root || root->kind != YAML_MAP) {
		return yaml_wrong(&plan->yaml, root, r->e, "", "a map with a command");
	}
	int result = read_keys(r, root, "", keys, ARRAY_LENGTH(keys));
	if (result == 0 && plan->n_command == 0) {
		result = yaml_error(&plan->yaml, root, r->e, "command",
			"expected a program and its arguments, found nothing");
	}
	result = result < 0 ? result : check_method(r);
	result = result < 0 ? result : plan_check_use(r);
	result = result < 0 ? result : check_labels(r);
	result = result < 0 ? result : check_baseline(r);
	result = result < 0 ? result : check_secrets(r);
	result = result < 0 ? result : check_executor(r);
	if (result == 0 && !plan->executor) {
		plan->executor = strdup("local");
		result = plan->executor ? 0 : error_errno(r->e, ENOMEM, "%s", plan->yaml.name);
	}
	return result;
}

int plan_read(const char *name, const char *data, size_t size, struct plan *ret, struct error *e)
{
	*ret = (struct plan){.repeats = 1, .seed = 1, .grace_s = PLAN_GRACE_S};
	struct error ignored = {0};
	const struct plan_reading r = {ret, e ? e : &ignored};
	ret->masked = size >= strlen(PLAN_MASKED) &&
	              memcmp(data, PLAN_MASKED, strlen(PLAN_MASKED)) == 0;
	int result = yaml_parse(name, data, size, &ret->yaml, r.e);
	result = result < 0 ? result : read_plan(&r);
	if (result < 0) {
		plan_done(ret);
	}
	return result;
}

static int read_file(int fd, const char *path, struct text *ret, struct error *e)
{
	struct stat status;
	if (fstat(fd, &status) < 0) {
		return error_errno(e, errno, "%s", path);
	}
	if (!S_ISREG(status.st_mode)) {
		return error_set(e, EINVAL, "%s: expected a file", path);
	}
	char buffer[4096];
	ssize_t n;
	while ((n = pread(fd, buffer, sizeof(buffer), (off_t)ret->length)) > 0 &&
		ret->length <= YAML_MAX_BYTES && !ret->failed) {
		text_append(ret, buffer, (size_t)n);
	}
	return n < 0         ? error_errno(e, errno, "%s", path)
	       : ret->failed ? error_errno(e, ENOMEM, "%s", path)
	                     : 0;
}

int plan_read_file(int fd, const char *path, struct plan *ret, struct error *e)
{
	_cleanup_text_ struct text data = {0};
	*ret = (struct plan){0};
	int result = read_file(fd, path, &data, e);
	if (result < 0) {
		return result;
	}
	static const char database[] = "SQLite format 3";
	if (data.length >= sizeof(database) && memcmp(data.data, database, sizeof(database)) == 0) {
		return error_set(e, EINVAL, "%s: expected a plan, found a run (strain show)", path);
	}
	return plan_read(path, data.data ? data.data : "", data.length, ret, e);
}

int plan_read_text(const char *path, struct text *ret, struct error *e)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? error_errno(e, errno, "%s", path) : read_file(fd, path, ret, e);
}

int plan_open(const char *path, struct plan *ret, struct error *e)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0) {
		*ret = (struct plan){0};
		return error_errno(e, errno, "%s", path);
	}
	return plan_read_file(fd, path, ret, e);
}

static void pairs_done(struct plan_pairs *pairs)
{
	for (size_t i = 0; i < pairs->n; i++) {
		free(pairs->items[i].name);
		free(pairs->items[i].value);
	}
	free(pairs->items);
}

void plan_done(struct plan *plan)
{
	template_free_words(plan->command);
	pairs_done(&plan->environment);
	pairs_done(&plan->labels);
	pairs_done(&plan->baseline);
	for (size_t i = 0; i < plan->n_factors; i++) {
		for (size_t k = 0; k < plan->factors[i].n_values; k++) {
			free(plan->factors[i].values[k]);
		}
		free(plan->factors[i].values);
		free(plan->factors[i].name);
	}
	free(plan->factors);
	for (size_t i = 0; i < plan->n_constraints; i++) {
		expression_free(plan->constraints[i].expression);
	}
	free(plan->constraints);
	free(plan->name);
	free(plan->executor);
	free(plan->slurm.partition);
	template_free_words(plan->slurm.options);
	free(plan->epoch_pattern);
	yaml_done(&plan->yaml);
	*plan = (struct plan){0};
}

const struct plan_factor *plan_factor(const struct plan *plan, const char *name)
{
	for (size_t i = 0; i < plan->n_factors; i++) {
		if (strcmp(plan->factors[i].name, name) == 0) {
			return &plan->factors[i];
		}
	}
	return NULL;
}

// Changes -----------------------------------------------------------------------------------------

// Configurations are numbered in the order of the factors.
static bool same_order(const struct plan *was, const struct plan *is)
{
	bool same = was->n_factors == is->n_factors;
	for (size_t i = 0; i < was->n_factors && same; i++) {
		same = strcmp(was->factors[i].name, is->factors[i].name) == 0;
	}
	return same;
}

static void append_shown(struct text *t, const struct yaml_node *node, bool secret)
{
	_cleanup_text_ struct text value = {0};
	yaml_append(&value, node);
	if (secret) {
		text_append_string(t, "***");
	} else {
		secret_append_text(t, value.data ? value.data : "", value.length);
	}
}

bool plan_differs(const struct plan *was, const struct plan *is, char **ret)
{
	_cleanup_text_ struct text field = {0};
	struct text what = {0};
	const struct yaml_node *old, *new;
	if (yaml_same(was->yaml.root, is->yaml.root, &field, &old, &new)) {
		if (same_order(was, is)) {
			return false;
		}
		text_append_string(&what, "parameters: the order of their names");
	} else {
		bool secret = field.data && secret_name(field.data, field.length);
		text_format(&what, "%s: was ", field.data ? field.data : "");
		append_shown(&what, old, secret);
		text_append_string(&what, ", is ");
		append_shown(&what, new, secret);
	}
	*ret = text_steal(&what);
	return true;
}
