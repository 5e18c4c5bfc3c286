// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The words and tables of `strain sweep`.

#include "cmd/sweep_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/secret.h"
#include "base/text.h"
#include "cmd/command.h"
#include "cmd/reading.h"
#include "experiment/sweep.h"
#include "experiment/template.h"
#include "render/json.h"
#include "render/table.h"

void sweep_say(const char *text)
{
	command_note("%s", text);
}

static void append_word(void *context, const char *masked, size_t length)
{
	struct text *t = context;
	_cleanup_free_ char *word = strndup(masked, length);
	t->failed = t->failed || !word;
	text_append_string(t, t->length > 0 ? " " : "");
	text_append_word(t, word ? word : "");
}

// "sh -c 'exit 1'"
static char *command_text(const struct trials *trials, size_t configuration)
{
	struct text t = {0};
	bool failed = false;
	char **words = trials_command(trials, configuration);
	if (words) {
		secret_each_argument(words, append_word, &t, &failed);
	}
	t.failed = t.failed || failed || !words;
	template_free_words(words);
	return text_steal(&t);
}

struct column *sweep_columns(const struct plan *plan, const struct column *first,
	const struct column *more, size_t n_more)
{
	struct column *columns = calloc(1 + plan->n_factors + n_more, sizeof(*columns));
	if (!columns) {
		return NULL;
	}
	columns[0] = *first;
	for (size_t i = 0; i < plan->n_factors; i++) {
		columns[1 + i] = (struct column){
			plan->factors[i].name, plan->factors[i].name, COLUMN_LABEL, 0};
	}
	memcpy(columns + 1 + plan->n_factors, more, n_more * sizeof(*more));
	return columns;
}

static int fill_trials(const struct sweep *sweep, struct table *table)
{
	const struct plan *plan = &sweep->plan;
	for (size_t i = 0; i < sweep->trials.n; i++) {
		struct trial_place place = sweep->trials.order[i];
		_cleanup_free_ char *name = sweep_trial_name(place);
		_cleanup_free_ char *command = command_text(&sweep->trials, place.configuration);
		if (!name || !command || table_row(table) < 0) {
			return -ENOMEM;
		}
		table_text(table, 0, name);
		for (size_t f = 0; f < plan->n_factors; f++) {
			table_text(
				table, 1 + f, trials_value(&sweep->trials, place.configuration, f));
		}
		table_text(table, 1 + plan->n_factors, sweep->done[i] ? "there" : "to do");
		table_text(table, 2 + plan->n_factors, command);
	}
	return 0;
}

void sweep_append_counts(struct text *t, const struct sweep *sweep)
{
	char trials[32], configurations[32];
	text_count(trials, sizeof(trials), sweep->trials.n);
	text_count(configurations, sizeof(configurations), sweep->trials.n_configurations);
	text_format(t, "%s trial%s of %s configuration%s", trials, sweep->trials.n == 1 ? "" : "s",
		configurations, sweep->trials.n_configurations == 1 ? "" : "s");
	if (sweep->trials.excluded > 0) {
		text_format(t, " (%zu excluded by constraints)", sweep->trials.excluded);
	}
	if (sweep->n_done > 0) {
		text_format(t, ", %zu there", sweep->n_done);
	}
	text_format(t, ", into %s", sweep->directory);
}

int sweep_print_trials(const struct sweep *sweep, bool json)
{
	static const struct column first = {"trial", "TRIAL", COLUMN_LABEL, 0};
	static const struct column more[] = {
		{"state", "STATE", COLUMN_LABEL, 0},
		{"command", "COMMAND", COLUMN_TEXT, 0},
	};
	struct table *table = NULL;
	_cleanup_free_ struct column *columns = sweep_columns(
		&sweep->plan, &first, more, ARRAY_LENGTH(more));
	size_t n = 1 + sweep->plan.n_factors + ARRAY_LENGTH(more);
	if (!columns || table_new(columns, n, &table) < 0 || fill_trials(sweep, table) < 0) {
		table_free(table);
		return command_fail("out of memory");
	}
	int result = 0;
	if (json) {
		result = json_write(table_to_json(table), stdout);
	} else {
		_cleanup_text_ struct text counts = {0};
		sweep_append_counts(&counts, sweep);
		printf("%s\n\n", counts.data ? counts.data : "");
		const struct table_style style = table_style_for(stdout);
		result = table_print(table, stdout, &style);
	}
	table_free(table);
	return result < 0 ? command_fail("cannot write: %s", strerrordesc_np(-result))
	                  : reading_finish();
}
