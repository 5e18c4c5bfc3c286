// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The command of a plan, and what of the plan it uses.

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/suggest.h"
#include "base/text.h"
#include "experiment/plan_internal.h"
#include "experiment/template.h"

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

int plan_command(const struct plan_reading *r, const struct yaml_node *node)
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

// Use ------------------------------------------------------------------------------------------

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

int plan_check_use(const struct plan_reading *r)
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
