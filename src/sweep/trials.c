// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Makes the trials: configurations, repeats, order.

#include "sweep/trials.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "sweep/expression.h"
#include "sweep/template.h"

#define DRAWS_FOR_EACH 1000 // attempts to draw a new, allowed configuration

// Random numbers: splitmix64, because libc's differ between systems ----------------------------

static uint64_t next_random(uint64_t *state)
{
	*state += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t z = *state;
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static uint64_t random_below(uint64_t *state, uint64_t n)
{
	return (uint64_t)(((unsigned __int128)next_random(state) * n) >> 64);
}

static double random_ratio(uint64_t *state)
{
	return (double)(next_random(state) >> 11) * 0x1p-53;
}

// Values ------------------------------------------------------------------------------------------

const char *trials_value(const struct trials *trials, size_t configuration, size_t factor)
{
	const struct plan_factor *f = &trials->plan->factors[factor];
	uint32_t choice = trials->choices[(configuration - 1) * trials->plan->n_factors + factor];
	return f->distribution == DISTRIBUTION_VALUES ? f->values[choice] : trials->drawn[choice];
}

const char *trials_value_of(const struct trials *trials, size_t configuration, const char *name)
{
	for (size_t i = 0; i < trials->plan->n_factors; i++) {
		if (strcmp(trials->plan->factors[i].name, name) == 0) {
			return trials_value(trials, configuration, i);
		}
	}
	return NULL;
}

struct row {
	const struct trials *trials;
	size_t configuration;
};

static const char *lookup(const void *context, const char *name)
{
	const struct row *row = context;
	return trials_value_of(row->trials, row->configuration, name);
}

// Whether the constraints allow the configuration.
static int is_allowed(const struct trials *trials, size_t configuration, bool *ret, struct error *e)
{
	const struct plan *plan = trials->plan;
	const struct row row = {trials, configuration};
	*ret = true;
	for (size_t i = 0; i < plan->n_constraints && *ret; i++) {
		struct error why = {0};
		size_t at = 0;
		int result = expression_holds(
			plan->constraints[i].expression, lookup, &row, ret, &at, &why);
		if (result < 0) {
			return yaml_error(&plan->yaml, plan->constraints[i].place, e, "constraints",
				"character %zu: %s", at + 1, why.text);
		}
	}
	return 0;
}

static int everything_excluded(const struct plan *plan, size_t n, struct error *e)
{
	return yaml_error(&plan->yaml, plan->constraints[0].place, e, "constraints",
		"expected some of %zu configurations to remain, found none", n);
}

static int reserve_rows(struct trials *trials, size_t *capacity, size_t n, struct error *e)
{
	void *items = trials->choices;
	size_t factors = trials->plan->n_factors;
	int result = array_reserve(&items, capacity, n, (factors + 1) * sizeof(uint32_t));
	trials->choices = items;
	return result < 0 ? error_errno(e, ENOMEM, "%s", trials->plan->yaml.name) : 0;
}

// Grid --------------------------------------------------------------------------------------------

static int count_grid(const struct plan *plan, size_t *ret, struct error *e)
{
	size_t n = 1;
	for (size_t i = 0; i < plan->n_factors; i++) {
		n *= plan->factors[i].n_values;
		if (n > PLAN_MAX_CONFIGURATIONS) {
			return yaml_error(&plan->yaml, plan->factors[i].place, e,
				plan->factors[i].resource ? "resources" : "parameters",
				"expected at most %u configurations, found more",
				PLAN_MAX_CONFIGURATIONS);
		}
	}
	*ret = n;
	return 0;
}

static int make_grid(struct trials *trials, struct error *e)
{
	const struct plan *plan = trials->plan;
	size_t n = 0, capacity = 0, factors = plan->n_factors;
	int result = count_grid(plan, &n, e);
	for (size_t i = 0; i < n && result == 0; i++) {
		result = reserve_rows(trials, &capacity, trials->n_configurations + 1, e);
		if (result < 0) {
			return result;
		}
		uint32_t *row = trials->choices + trials->n_configurations * factors;
		for (size_t f = factors, rest = i; f > 0; f--) {
			row[f - 1] = (uint32_t)(rest % plan->factors[f - 1].n_values);
			rest /= plan->factors[f - 1].n_values;
		}
		bool allowed;
		result = is_allowed(trials, trials->n_configurations + 1, &allowed, e);
		trials->n_configurations += result == 0 && allowed;
	}
	if (result == 0 && trials->n_configurations == 0) {
		return everything_excluded(plan, n, e);
	}
	trials->excluded = n - trials->n_configurations;
	return result;
}

// Random ------------------------------------------------------------------------------------------

static double draw_number(const struct plan_factor *f, uint64_t *state)
{
	double width = f->maximum - f->minimum;
	switch (f->distribution) {
	case DISTRIBUTION_INT_UNIFORM:
		return f->minimum + (double)random_below(state, (uint64_t)width + 1);
	case DISTRIBUTION_Q_UNIFORM:
		return f->minimum +
		       f->step * (double)random_below(
					 state, (uint64_t)fmin(floor(width / f->step), 1e15) + 1);
	case DISTRIBUTION_LOG_UNIFORM:
		return exp(log(f->minimum) +
			   random_ratio(state) * (log(f->maximum) - log(f->minimum)));
	default:
		return f->minimum + random_ratio(state) * width;
	}
}

static int draw_value(
	struct trials *trials, const struct plan_factor *f, uint64_t *state, uint32_t *ret)
{
	if (f->distribution == DISTRIBUTION_VALUES) {
		*ret = (uint32_t)random_below(state, f->n_values);
		return 0;
	}
	char value[40];
	double number = draw_number(f, state);
	bool whole = f->distribution == DISTRIBUTION_INT_UNIFORM;
	snprintf(value, sizeof(value), whole ? "%.0f" : "%.6g", number);
	char *copy = strdup(value);
	if (!copy || array_reserve((void **)&trials->drawn, &trials->drawn_capacity,
			     trials->n_drawn + 1, sizeof(char *)) < 0) {
		free(copy);
		return -ENOMEM;
	}
	*ret = (uint32_t)trials->n_drawn;
	trials->drawn[trials->n_drawn++] = copy;
	return 0;
}

static void forget_drawn(struct trials *trials, size_t n)
{
	while (trials->n_drawn > n) {
		free(trials->drawn[--trials->n_drawn]);
	}
}

static bool same_values(const struct trials *trials, size_t a, size_t b)
{
	bool same = true;
	for (size_t i = 0; i < trials->plan->n_factors && same; i++) {
		same = strcmp(trials_value(trials, a, i), trials_value(trials, b, i)) == 0;
	}
	return same;
}

// Draws configuration n + 1. *ret: it is new and allowed. A draw that is not allowed is counted in
// `excluded`.
static int draw_row(struct trials *trials, uint64_t *state, bool *ret, struct error *e)
{
	const struct plan *plan = trials->plan;
	size_t n = trials->n_configurations, drawn = trials->n_drawn;
	for (size_t f = 0; f < plan->n_factors; f++) {
		if (draw_value(trials, &plan->factors[f], state,
			    &trials->choices[n * plan->n_factors + f]) < 0) {
			return error_errno(e, ENOMEM, "%s", plan->yaml.name);
		}
	}
	int result = is_allowed(trials, n + 1, ret, e);
	trials->excluded += result == 0 && !*ret;
	for (size_t i = 1; i <= n && result == 0 && *ret; i++) {
		*ret = !same_values(trials, i, n + 1);
	}
	if (result == 0 && !*ret) {
		forget_drawn(trials, drawn);
	}
	return result;
}

static int draw(struct trials *trials, struct error *e)
{
	const struct plan *plan = trials->plan;
	uint64_t state = plan->seed;
	size_t capacity = 0;
	while (trials->n_configurations < plan->n_drawn) {
		bool found = false;
		int result = reserve_rows(trials, &capacity, trials->n_configurations + 1, e);
		for (unsigned i = 0; i < DRAWS_FOR_EACH && result == 0 && !found; i++) {
			result = draw_row(trials, &state, &found, e);
		}
		if (result < 0) {
			return result;
		}
		if (!found && trials->n_configurations == 0 && plan->n_constraints > 0) {
			return everything_excluded(plan, DRAWS_FOR_EACH, e);
		}
		if (!found) {
			return yaml_error(&plan->yaml, yaml_get(plan->yaml.root, "trials"), e,
				"trials",
				"expected at most as many as there are configurations, found "
				"%llu where %zu could be drawn",
				(unsigned long long)plan->n_drawn, trials->n_configurations);
		}
		trials->n_configurations++;
	}
	return 0;
}

// Order -------------------------------------------------------------------------------------------

static void shuffle(struct trial_place *places, size_t n, uint64_t *state)
{
	for (size_t i = n; i > 1; i--) {
		size_t k = (size_t)random_below(state, i);
		struct trial_place place = places[i - 1];
		places[i - 1] = places[k];
		places[k] = place;
	}
}

static int make_order(struct trials *trials, struct error *e)
{
	const struct plan *plan = trials->plan;
	size_t n = trials->n_configurations, repeats = (size_t)plan->repeats;
	if (n * repeats > PLAN_MAX_TRIALS) {
		const struct yaml_node *place = yaml_get(plan->yaml.root, "repeats");
		return yaml_error(&plan->yaml, place ? place : plan->yaml.root, e,
			place ? "repeats" : "parameters", "expected at most %u trials, found %zu",
			PLAN_MAX_TRIALS, n * repeats);
	}
	trials->order = calloc(n * repeats, sizeof(*trials->order));
	if (!trials->order) {
		return error_errno(e, ENOMEM, "%s", plan->yaml.name);
	}
	// A sequence different from that of the draws.
	uint64_t state = plan->seed ^ UINT64_C(0x6f72646572);
	for (size_t i = 0; i < n * repeats; i++) {
		size_t configuration = plan->in_order ? i / repeats : i % n;
		size_t repeat = plan->in_order ? i % repeats : i / n;
		trials->order[i] = (struct trial_place){
			(uint32_t)configuration + 1, (uint32_t)repeat + 1};
	}
	for (size_t repeat = 0; repeat < repeats && !plan->in_order; repeat++) {
		shuffle(trials->order + repeat * n, n, &state);
	}
	trials->n = n * repeats;
	return 0;
}

int trials_make(const struct plan *plan, struct trials *ret, struct error *e)
{
	*ret = (struct trials){.plan = plan};
	struct error ignored = {0};
	e = e ? e : &ignored;
	int result = plan->random ? draw(ret, e) : make_grid(ret, e);
	result = result < 0 ? result : make_order(ret, e);
	if (result < 0) {
		trials_done(ret);
	}
	return result;
}

void trials_done(struct trials *trials)
{
	forget_drawn(trials, 0);
	free(trials->drawn);
	free(trials->choices);
	free(trials->order);
	*trials = (struct trials){0};
}

// Command of a trial ------------------------------------------------------------------------------

static bool is_baseline_of(const struct trials *trials, size_t base, size_t configuration)
{
	const struct plan *plan = trials->plan;
	for (size_t f = 0; f < plan->n_factors; f++) {
		const char *wanted = trials_value(trials, configuration, f);
		for (size_t i = 0; i < plan->baseline.n; i++) {
			const struct plan_pair *pair = &plan->baseline.items[i];
			wanted = strcmp(pair->name, plan->factors[f].name) == 0 ? pair->value
			                                                        : wanted;
		}
		if (strcmp(trials_value(trials, base, f), wanted) != 0) {
			return false;
		}
	}
	return true;
}

size_t trials_baseline(const struct trials *trials, size_t configuration)
{
	for (size_t i = 1; i <= trials->n_configurations && trials->plan->baseline.n > 0; i++) {
		if (is_baseline_of(trials, i, configuration)) {
			return i;
		}
	}
	return 0;
}

static int add_word(char ***words, size_t *n, size_t *capacity, char *word)
{
	if (!word || array_reserve((void **)words, capacity, *n + 2, sizeof(char *)) < 0) {
		free(word);
		return -ENOMEM;
	}
	(*words)[(*n)++] = word;
	(*words)[*n] = NULL;
	return 0;
}

// --batch-size=32
static char *argument(const char *name, const char *value)
{
	struct text t = {0};
	text_format(&t, "--%s=%s", name, value);
	for (size_t i = 2; !t.failed && i < strlen(name) + 2; i++) {
		t.data[i] = t.data[i] == '_' ? '-' : t.data[i];
	}
	return text_steal(&t);
}

char **trials_command(const struct trials *trials, size_t configuration)
{
	const struct plan *plan = trials->plan;
	const struct row row = {trials, configuration};
	char **words = NULL;
	size_t n = 0, capacity = 0;
	int result = 0;
	for (size_t i = 0; i < plan->n_command && result == 0; i++) {
		if (strcmp(plan->command[i], "${args}") != 0) {
			struct text word = {0};
			template_expand(&word, plan->command[i], lookup, &row);
			result = add_word(&words, &n, &capacity, text_steal(&word));
			continue;
		}
		for (size_t f = 0; f < plan->n_factors && result == 0; f++) {
			const struct plan_factor *factor = &plan->factors[f];
			if (!factor->resource && !factor->named) {
				result = add_word(&words, &n, &capacity,
					argument(factor->name,
						trials_value(trials, configuration, f)));
			}
		}
	}
	if (result < 0) {
		template_free_words(words);
		return NULL;
	}
	return words;
}

char **trials_environment(const struct trials *trials, size_t configuration)
{
	const struct plan_pairs *pairs = &trials->plan->environment;
	const struct row row = {trials, configuration};
	char **words = calloc(pairs->n + 1, sizeof(char *));
	for (size_t i = 0; i < pairs->n && words; i++) {
		struct text word = {0};
		text_format(&word, "%s=", pairs->items[i].name);
		template_expand(&word, pairs->items[i].value, lookup, &row);
		words[i] = text_steal(&word);
		if (!words[i]) {
			template_free_words(words);
			return NULL;
		}
	}
	return words;
}
