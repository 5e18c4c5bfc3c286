// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Completions for shells: options from the tables that parse them, values from a table here, and
// names of runs, labels and metrics from existing runs.

#include "cmd/complete.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "run/entities.h"
#include "runfile/index.h"
#include "runfile/labels.h"
#include "runfile/reader.h"
#include "study/catalogue.h"
#include "study/joint.h"
#include "study/layout.h"
#include "study/run_name.h"

enum { MOST_OPENED = 64, MOST_HELP_COLUMNS = 72 };

// The state of a completion.
struct completing {
	const char *command;
	const struct argp_option *options;
	const char *kept; // part of the word before the completed part: "--where=", "a,"
	size_t n_kept;
	const char *typed; // the part to complete
	bool of_run; // advise --try: the first argument is a run
	char *const *arguments; // [n_arguments] previous words that are not options
	size_t n_arguments;
};

// Names come from files: one that would end the line or move the cursor is not offered.
static bool is_plain(const char *word)
{
	for (const char *c = word; *c; c++) {
		if (iscntrl((unsigned char)*c)) {
			return false;
		}
	}
	return *word != '\0' && *word != ':';
}

static void offer(const struct completing *c, const char *word, const char *what)
{
	if (strncmp(word, c->typed, strlen(c->typed)) == 0 && is_plain(word)) {
		printf("%.*s%s\t%s\n", (int)c->n_kept, c->kept, word, what);
	}
}

void complete_candidate(const char *typed, const char *word, const char *what)
{
	offer(&(struct completing){.kept = "", .typed = typed}, word, what);
}

// Offers each word of "a b c".
static void offer_words(const struct completing *c, const char *words)
{
	_cleanup_free_ char *copy = strdup(words);
	char *rest = copy;
	for (char *word; rest && (word = strsep(&rest, " "));) {
		offer(c, word, "");
	}
}

// --- names of runs, labels, measures, metrics

static void offer_runs(const struct completing *c, enum run_name_kind kind)
{
	char **names = strchr(c->typed, '/') ? NULL : run_name_list(c->typed, kind);
	for (size_t i = 0; names && names[i]; i++) {
		offer(c, names[i], "");
	}
	// A path, or no match: the shell completes file names.
	if (!names || !names[0]) {
		puts(kind == RUN_NAME_ANY && strcmp(c->command, "ls") == 0 ? ":directories"
									   : ":files");
	}
	run_name_list_free(names);
}

// Small set, to offer each word once.
struct offered {
	char **items;
	size_t n;
};

static void offer_once(
	const struct completing *c, struct offered *offered, const char *name, const char *value)
{
	_cleanup_text_ struct text word = {0};
	text_format(&word, "%s%s", name, value ? value : "");
	for (size_t i = 0; i < offered->n; i++) {
		if (!word.data || strcmp(offered->items[i], word.data) == 0) {
			return;
		}
	}
	char **grown = realloc(offered->items, (offered->n + 1) * sizeof(*grown));
	if (grown && word.data) {
		offered->items = grown;
		offer(c, word.data, "");
		grown[offered->n++] = text_steal(&word);
	} else {
		offered->items = grown ? grown : offered->items;
	}
}

static void offered_done(struct offered *offered)
{
	for (size_t i = 0; i < offered->n; i++) {
		free(offered->items[i]);
	}
	free(offered->items);
}

// Offers "batch_size" or "batch_size=" or, after that was typed, "batch_size=32".
static void offer_label(const struct completing *c, struct offered *offered, const char *name,
	const char *value, bool with_value)
{
	size_t length = strlen(name);
	bool named = with_value && strncmp(c->typed, name, length) == 0 && c->typed[length] == '=';
	_cleanup_text_ struct text begun = {0};
	text_format(&begun, "%s%s", name, with_value ? "=" : "");
	offer_once(c, offered, begun.data ? begun.data : name, named ? value : "");
}

typedef void offer_run_fn(
	const struct completing *c, struct offered *offered, const struct digest *run);

// Offers what `offer_run` finds in each of the most recent runs. Their number is bounded: the user
// has pressed a key, and waits.
static void offer_of_runs(const struct completing *c, offer_run_fn *offer_run)
{
	struct places places;
	struct catalogue catalogue = {0};
	struct offered offered = {0};
	const struct catalogue_options options = {.job_only = true, .most_read = MOST_OPENED};
	if (places_find(&places) < 0) {
		return;
	}
	if (catalogue_read_with(places.paths, places.n, &options, &catalogue, NULL) == 0) {
		for (size_t i = 0; i < catalogue.n; i++) {
			offer_run(c, &offered, &catalogue.runs[i]);
		}
		catalogue_done(&catalogue);
	}
	places_done(&places);
	offered_done(&offered);
}

static void offer_names_of_labels(
	const struct completing *c, struct offered *offered, const struct digest *run)
{
	for (size_t k = 0; k < run->n_labels; k++) {
		offer_label(c, offered, run->labels[k].name, run->labels[k].value, false);
	}
}

static void offer_values_of_labels(
	const struct completing *c, struct offered *offered, const struct digest *run)
{
	for (size_t k = 0; k < run->n_labels; k++) {
		offer_label(c, offered, run->labels[k].name, run->labels[k].value, true);
	}
}

// The name of a job of several runs.
static void offer_job(const struct completing *c, struct offered *offered, const struct digest *run)
{
	const char *label;
	_cleanup_free_ char *name = labels_job(run->labels, run->n_labels, &label);
	bool any = strcmp(c->command, "show") == 0 || strcmp(c->command, "report") == 0;
	if (name && (any || strcmp(label, "job") == 0)) {
		offer_once(c, offered, name, "");
	}
}

static void offer_measures(const struct completing *c)
{
	for (size_t i = 0; i < N_MEASURES; i++) {
		offer(c, measures[i].name, measures[i].help);
	}
}

static void list_labels(const struct completing *c)
{
	offer_of_runs(c, offer_names_of_labels);
}

static void list_jobs(const struct completing *c)
{
	offer_of_runs(c, offer_job);
}

static void list_label_values(const struct completing *c)
{
	offer_of_runs(c, offer_values_of_labels);
}

static void list_conditions(const struct completing *c)
{
	offer_of_runs(c, offer_values_of_labels);
	offer_measures(c);
}

static void list_sort_keys(const struct completing *c)
{
	offer_words(c, "start duration name cpu memory");
	offer_of_runs(c, offer_names_of_labels);
	offer_measures(c);
}

static void list_values(const struct completing *c)
{
	offer_measures(c);
	offer(c, "help", "list the measures");
}

static void list_layouts(const struct completing *c)
{
	offer(c, "list", "name all of them");
	for (size_t i = 0; i < n_layouts; i++) {
		offer(c, layouts[i].name, "");
	}
}

// Offers the metrics of the named run, else of the newest.
static void list_metrics(const struct completing *c)
{
	_cleanup_free_ char *path = NULL;
	struct reader *reader = NULL;
	struct metric_list metrics = {0};
	struct offered offered = {0};
	const char *name = c->n_arguments > 0 ? c->arguments[0] : "-1";
	if (run_name_find(name, RUN_NAME_FILE, &path, NULL) < 0 ||
		reader_open(path, &reader, NULL) < 0) {
		return;
	}
	if (metric_list_load(reader, &metrics, NULL) == 0) {
		for (size_t i = 0; i < metrics.n; i++) {
			offer_once(c, &offered, metrics.items[i].name, "");
		}
	}
	offered_done(&offered);
	metric_list_done(&metrics);
	reader_free(reader);
}

// --- values of options

static const struct {
	const char *command;
	const char *option;
	const char *words; // alternatively
	void (*list)(const struct completing *c);
} values[] = {
	{"run", "output", ":files", NULL},
	{"run", "interval", "1ms 10ms 20ms 50ms 100ms 1s", NULL},
	{"run", "overhead", "0.5% 1% 2%", NULL},
	{"run", "label", NULL, list_label_values},
	{"run", "job", NULL, list_jobs},
	{"run", "epoch-pattern", "auto none", NULL},
	{"run", "max-size", "64MiB 256MiB 1GiB", NULL},
	{"run", "pid", "", NULL},
	{"run", "cpus", "1 2 4 8", NULL},
	{"run", "memory", "1GiB 4GiB 16GiB", NULL},
	{"run", "disk-read", "100MB/s unlimited", NULL},
	{"run", "gpus", "0 1 2 4", NULL},
	{"show", "job", NULL, list_jobs},
	{"report", "job", NULL, list_jobs},
	{"report", "output", ":files", NULL},
	{"report", "keep-script", ":directories", NULL},
	{"report", "prices", ":files", NULL},
	{"show", "prices", ":files", NULL},
	{"ls", "prices", ":files", NULL},
	{"compare", "prices", ":files", NULL},
	{"sweep", "prices", ":files", NULL},
	{"ls", "where", NULL, list_conditions},
	{"ls", "sort", NULL, list_sort_keys},
	{"compare", "rows", NULL, list_labels},
	{"compare", "columns", NULL, list_labels},
	{"compare", "value", NULL, list_values},
	{"compare", "where", NULL, list_conditions},
	{"compare", "baseline", NULL, list_label_values},
	{"compare", "layout", NULL, list_layouts},
	{"compare", "beside", "published", NULL},
	{"compare", "figure", "scaling bars heatmap timeline memory", NULL},
	{"compare", "format", "text markdown latex csv json", NULL},
	{"compare", "output", ":files", NULL},
	{"compare", "keep-script", ":directories", NULL},
	{"export", "format", "csv json jsonl", NULL},
	{"export", "metric", NULL, list_metrics},
	{"export", "entity", "host job process gpu disk network recorder", NULL},
	{"export", "every", "100ms 1s 10s 1min", NULL},
	{"sweep", "output", ":directories", NULL},
	{"advise", "error", "1% 3% 10%", NULL},
	{"advise", "limit", "30s 2min 10min", NULL},
	{"advise", "with",
		"OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive MALLOC_ARENA_MAX=1 num_workers=2 "
		"prefetch_factor=4 pin_memory=1 persistent_workers=1 flush_denormal=1 cpus=",
		NULL},
	{"advise", "repeats", "2 3 5", NULL},
	{"advise", "time", "5min 10min 30min", NULL},
	{"advise", "for", "5min 10min 30min", NULL},
	{"advise", "memory", "1GiB 4GiB 16GiB", NULL},
	{"advise", "gpu-memory", "16GiB 24GiB 40GiB 80GiB", NULL},
	{"advise", "cpus", "1 2 4 8", NULL},
	{"advise", "margin", "0% 5% 10%", NULL},
	{"advise", "label", NULL, list_label_values},
	{"advise", "prices", ":files", NULL},
	{"advise", "validate", "5min 10min 30min", NULL},
	{"advise", "epoch-pattern", "auto none", NULL},
	{"advise", "from", ":files", NULL},
	{"advise", "epochs", "1 10 100", NULL},
	{"advise", "disk-read", "100MB/s 500MB/s 2GB/s", NULL},
	{"advise", "gpu-speed", "2x 4x", NULL},
	{"advise", "cpu-speed", "1.5x 2x", NULL},
	{"advise", "scale-learning-rate", "linear sqrt none", NULL},
	{"advise", "output", ":directories", NULL},
	{"doctor", "sysroot", ":directories", NULL},
};

static void complete_value(struct completing *c, const struct argp_option *option)
{
	const char *comma = strstr(option->arg, "[,...]") ? strrchr(c->typed, ',') : NULL;
	_cleanup_text_ struct text kept = {0};
	if (comma) {
		text_format(&kept, "%.*s%.*s", (int)c->n_kept, c->kept, (int)(comma + 1 - c->typed),
			c->typed);
		c->kept = kept.data ? kept.data : "";
		c->n_kept = kept.length;
		c->typed = comma + 1;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(values); i++) {
		if (strcmp(values[i].command, c->command) != 0 ||
			strcmp(values[i].option, option->name) != 0) {
			continue;
		}
		if (values[i].list) {
			values[i].list(c);
		} else if (*values[i].words == ':') {
			puts(values[i].words);
		} else {
			offer_words(c, values[i].words);
		}
		return;
	}
	puts(":files");
}

// --- options

// Appends the first line of the help, cut to some columns where it can end.
static void append_help(struct text *t, const char *doc)
{
	size_t length = strcspn(doc, ";:(");
	if (length > MOST_HELP_COLUMNS) {
		length = MOST_HELP_COLUMNS;
		while (length > 0 && doc[length] != ' ') {
			length--;
		}
	}
	text_append(t, doc, length);
}

static void complete_option(const struct completing *c)
{
	for (const struct argp_option *o = c->options; o && o->name; o++) {
		_cleanup_text_ struct text word = {0}, what = {0};
		text_format(&word, "--%s%s", o->name, o->arg ? "=" : "");
		append_help(&what, o->doc ? o->doc : "");
		// --usage of the other commands is in no table of theirs.
		if (!(o->flags & OPTION_HIDDEN) && strcmp(o->name, "usage") != 0) {
			offer(c, word.data ? word.data : "", what.data ? what.data : "");
		}
	}
	offer(c, "--help", "print the options");
}

// The option of a word: "--format", "--format=x", "-f".
static const struct argp_option *find_option(const struct argp_option *options, const char *word)
{
	for (const struct argp_option *o = options; o && o->name; o++) {
		size_t length = strlen(o->name);
		bool is_long = strncmp(word, "--", 2) == 0 &&
		               strncmp(word + 2, o->name, length) == 0 &&
		               (!word[2 + length] || word[2 + length] == '=');
		bool is_short = word[0] == '-' && o->key < 256 && word[1] == o->key && !word[2];
		if (is_long || is_short) {
			return o;
		}
	}
	return NULL;
}

// --- arguments

static void complete_argument(const struct completing *c)
{
	static const struct {
		const char *command;
		enum { RUN, RUNS, WORDS, PROGRAM, FILES, NOTHING } kind;
		const char *words;
	} kinds[] = {
		{"show", RUN, NULL},
		{"export", RUN, NULL},
		{"sql", RUN, NULL},
		{"report", RUNS, NULL},
		{"compare", RUNS, NULL},
		{"ls", RUNS, NULL},
		{"run", PROGRAM, NULL},
		{"advise", PROGRAM, NULL},
		{"sweep", FILES, NULL},
		{"mark", WORDS, "begin end point epoch epoch-end iteration"},
		{"completion", WORDS, "bash zsh fish"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
		bool first = c->n_arguments == 0;
		if (strcmp(kinds[i].command, c->command) != 0) {
			continue;
		}
		if (kinds[i].kind == RUNS || (kinds[i].kind == RUN && first)) {
			offer_runs(c, kinds[i].kind == RUN ? RUN_NAME_FILE : RUN_NAME_ANY);
		} else if (kinds[i].kind == PROGRAM && c->of_run) {
			if (first) {
				offer_runs(c, RUN_NAME_FILE);
			}
		} else if (kinds[i].kind == PROGRAM) {
			puts(first ? ":program" : ":files");
		} else if (kinds[i].kind == FILES) {
			puts(":files");
		} else if (kinds[i].kind == WORDS && first) {
			offer_words(c, kinds[i].words);
		}
	}
}

void complete_print(
	const char *command, const struct argp_option *options, int n_words, char *const *words)
{
	struct completing c = {.command = command, .options = options, .kept = "", .typed = ""};
	const struct argp_option *open = NULL; // takes the next word
	bool others = false; // the rest belongs to another program
	bool ended = false; // after --
	_cleanup_free_ char **arguments = calloc((size_t)n_words + 1, sizeof(*arguments));
	for (int i = 0; arguments && i + 1 < n_words; i++) {
		bool is_option = !open && !ended && !others && words[i][0] == '-' && words[i][1];
		if (open) {
			open = NULL;
		} else if (is_option && strcmp(words[i], "--") == 0) {
			ended = true;
			c.n_arguments = c.of_run ? 0 : c.n_arguments; // the command begins
			c.of_run = false;
		} else if (is_option && !run_name_is_back(words[i])) {
			const struct argp_option *found = find_option(options, words[i]);
			open = found && found->arg && !strchr(words[i], '=') ? found : NULL;
			c.of_run = c.of_run || strcmp(words[i], "--try") == 0;
		} else {
			arguments[c.n_arguments++] = words[i];
			others = strcmp(command, "run") == 0 ||
			         (strcmp(command, "advise") == 0 && !c.of_run);
		}
	}
	c.arguments = arguments;
	c.typed = n_words > 0 ? words[n_words - 1] : "";
	const char *equals = strncmp(c.typed, "--", 2) == 0 ? strchr(c.typed, '=') : NULL;
	const struct argp_option *named = equals ? find_option(options, c.typed) : NULL;
	if (open) {
		complete_value(&c, open);
	} else if (named && named->arg && !others && !ended) {
		c.kept = c.typed;
		c.n_kept = (size_t)(equals + 1 - c.typed);
		c.typed = equals + 1;
		complete_value(&c, named);
	} else if (*c.typed == '-' && !others && !ended) {
		complete_option(&c);
	} else {
		complete_argument(&c);
	}
}
