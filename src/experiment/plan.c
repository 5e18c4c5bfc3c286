// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A plan: its keys, one row each.

#include "experiment/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/parse.h"
#include "base/secret.h"
#include "base/suggest.h"
#include "base/text.h"
#include "experiment/executor.h"
#include "experiment/expression.h"
#include "experiment/plan_internal.h"
#include "experiment/template.h"

// The small keys -------------------------------------------------------------------------------

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
	if (node->kind != YAML_SCALAR || !executor_find(node->text)) {
		return yaml_wrong(&r->plan->yaml, node, r->e, "executor", "local");
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

// Keys by their table ---------------------------------------------------------------------------

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
				"expected a known key, found '%s'%s%s%s",
				shown.data ? shown.data : "",
				nearest.word ? "; did you mean '" : "",
				nearest.word ? nearest.word : "", nearest.word ? "'?" : "");
		}
	}
	// In the table's order: what one key means may hang on another.
	int result = 0;
	for (size_t k = 0; k < n_keys && result == 0; k++) {
		const struct yaml_node *value = yaml_get(map, keys[k].name);
		result = value ? keys[k].read(r, value) : 0;
	}
	return result;
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

// Constraints ------------------------------------------------------------------------------------

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

// The whole --------------------------------------------------------------------------------------

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
	{"constraints", read_constraints},
	{"baseline", read_baseline},
};

static int check_method(const struct plan_reading *r)
{
	const struct yaml_node *trials = yaml_get(r->plan->yaml.root, "trials");
	if (r->plan->random && !trials) {
		return yaml_error(&r->plan->yaml, yaml_get(r->plan->yaml.root, "method"), r->e,
			"trials", "expected how many configurations to draw, found nothing");
	}
	if (!r->plan->random && trials) {
		return yaml_error(&r->plan->yaml, trials, r->e, "trials",
			"expected none with method grid (repeats is how often), found '%s'",
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
				"a label that no trial has by itself");
		}
	}
	return 0;
}

// Values of parameters are labels of runs: no secret among them.
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
					"expected no secrets, which would be labels of runs "
					"(set them in the environment of strain sweep)");
			}
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

// Changes ----------------------------------------------------------------------------------------

// Configurations are numbered in the order of what varies.
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
