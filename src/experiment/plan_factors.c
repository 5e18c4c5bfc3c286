// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What varies in a plan: parameters and resources.

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/parse.h"
#include "base/suggest.h"
#include "base/text.h"
#include "experiment/plan_internal.h"

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

// Values ---------------------------------------------------------------------------------------

static int add_value(const struct factor_reading *f, const struct yaml_node *node)
{
	struct plan_factor *factor = f->factor;
	char *text = NULL;
	int result = plan_text(f->r, node, f->field, &text);
	for (size_t i = 0; i < factor->n_values && result == 0; i++) {
		if (strcmp(factor->values[i], text) == 0) {
			result = yaml_error(&f->r->plan->yaml, node, f->r->e, f->field,
				"expected each value once, found '%.60s' twice", text);
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

// Intervals --------------------------------------------------------------------------------------

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

// A factor ---------------------------------------------------------------------------------------

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

// Parameters -----------------------------------------------------------------------------------

static int check_name(const struct plan_reading *r, const struct yaml_node *key)
{
	static const char *const taken[] = {"args", "sweep", "trial", "repeat", "cpus", "memory",
		"gpus", "gpu_type", "disk_read", "or", "and", "not", "unlimited"};
	bool plain = plan_is_name(key->text) && !strchr(key->text, '-');
	for (size_t i = 0; i < ARRAY_LENGTH(taken); i++) {
		if (strcmp(key->text, taken[i]) == 0) {
			return yaml_wrong(&r->plan->yaml, key, r->e, "parameters",
				"a name that means nothing else");
		}
	}
	return plain ? 0
	             : yaml_wrong(&r->plan->yaml, key, r->e, "parameters",
			       "a name of letters, digits and _ (at most 64)");
}

int plan_parameters(const struct plan_reading *r, const struct yaml_node *node)
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

// Resources --------------------------------------------------------------------------------------

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
	return strcmp(value, "any") == 0;
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
	{"gpu_type", is_gpu_type, "any (the local executor has the GPUs that there are)"},
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

int plan_resources(const struct plan_reading *r, const struct yaml_node *node)
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
