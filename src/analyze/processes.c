// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The table of processes.

#include "analyze/processes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis.h"
#include "analyze/names.h"
#include "analyze/roles.h"
#include "analyze/words.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/parse.h"
#include "base/text.h"

#define MET 0.99 // of the largest mark: it is the largest

static const char *const role_names[N_ROLES] = {
	[ROLE_MAIN] = "main",
	[ROLE_RANK] = "rank",
	[ROLE_LOADER] = "loader",
	[ROLE_CHILD] = "child",
	[ROLE_LAUNCHER] = "launcher",
	[ROLE_HELPER] = "helper",
	[ROLE_STRAIN] = "strain",
};

const char *role_name(enum role role)
{
	return role_names[role];
}

static int64_t key_pid(const char *key)
{
	struct cursor c = cursor_of(key, strlen(key));
	int64_t pid;
	return cursor_i64(&c, &pid) ? pid : -1;
}

struct memory_choice {
	const char *metric;
	const char *kind;
};

static void fill_memory(const struct analysis *a, struct process_row *row)
{
	static const struct memory_choice choices[] = {
		{NAME_PSS, "PSS"},
		{NAME_PEAK, "resident"},
		{NAME_RESIDENT, "resident"},
	};
	row->memory_peak_bytes = NAN;
	for (size_t i = 0; i < ARRAY_LENGTH(choices) && !row->memory_kind; i++) {
		double peak = analysis_figure(a, row->entity, choices[i].metric, FIGURE_MAX);
		if (isfinite(peak)) {
			row->memory_peak_bytes = peak;
			row->memory_kind = choices[i].kind;
		}
	}
}

// The mark of the largest is known from whoever reaped it, that of those that live from now.
static void fill_resident(const struct analysis *a, struct process_row *row)
{
	const struct entity *job = entity_first(&a->entities, ENTITY_JOB);
	int64_t id = job ? job->id : 0;
	row->resident_peak_bytes = fmax(analysis_figure(a, row->entity, NAME_PEAK, FIGURE_MAX),
		analysis_figure(a, row->entity, NAME_RESIDENT, FIGURE_MAX));
	bool reaped = isfinite(analysis_figure(a, id, NAME_PEAK_BOUND, FIGURE_MAX));
	double largest = analysis_figure(a, id, NAME_PEAK, FIGURE_MAX);
	row->resident_at_least = isfinite(row->resident_peak_bytes) && row->ended &&
	                         !(reaped && row->resident_peak_bytes >= MET * largest);
	row->pss_peak_bytes = analysis_figure(a, row->entity, NAME_PSS, FIGURE_MAX);
	row->uss_peak_bytes = analysis_figure(a, row->entity, NAME_USS, FIGURE_MAX);
}

static void fill_figures(const struct analysis *a, struct process_row *row)
{
	row->cpu_seconds = analysis_figure(a, row->entity, NAME_CPU_TIME, FIGURE_TOTAL);
	row->stopped_s = analysis_figure(a, row->entity, NAME_PROCESS_STOPPED, FIGURE_TOTAL);
	double life_s = row->last_s - row->first_s - (row->stopped_s > 0 ? row->stopped_s : 0);
	row->cpu_share = life_s > 0 ? row->cpu_seconds / life_s : NAN;
	row->asked_bytes = analysis_figure(a, row->entity, NAME_READ_ASKED, FIGURE_TOTAL);
	row->storage_bytes = analysis_figure(a, row->entity, NAME_READ_STORAGE, FIGURE_TOTAL);
	row->written_bytes = analysis_figure(a, row->entity, NAME_WRITE_STORAGE, FIGURE_TOTAL);
	fill_memory(a, row);
	fill_resident(a, row);
}

static int attribute_integer(const struct entity *entity, const char *name, int otherwise)
{
	double value = entity_number(entity, name);
	return value >= 0 && value <= 255 ? (int)value : otherwise;
}

static int row_add(struct process_list *list, const struct analysis *a, const struct entity *entity)
{
	void *items = list->items;
	int r = array_reserve(&items, &list->capacity, list->n + 1, sizeof(*list->items));
	list->items = items;
	if (r < 0) {
		return r;
	}
	struct process_row row = {
		.entity = entity->id,
		.parent = entity->parent,
		.pid = key_pid(entity->key),
		.rank = -1,
		.name = entity->name,
		.command = entity_command(entity),
		.strain = entity_flag(entity, "strain"),
		.first_s = (double)entity->first_ns / 1e9,
		.last_s = (double)entity->last_ns / 1e9,
		.ended = entity->ended,
		.exit_status = attribute_integer(entity, "exit_status", -1),
		.exit_signal = attribute_integer(entity, "exit_signal", 0),
	};
	if (!row.command) {
		return -ENOMEM;
	}
	fill_figures(a, &row);
	list->items[list->n++] = row;
	return 0;
}

static bool is_interpreter(const char *program, size_t length)
{
	static const char *const names[] = {"python", "pypy", "julia", "Rscript", "perl", "ruby",
		"node", "java", "sh", "bash", "dash"};
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		size_t n = strlen(names[i]);
		if (length >= n && memcmp(program, names[i], n) == 0 &&
			strspn(program + n, "0123456789.") >= length - n) {
			return true;
		}
	}
	return false;
}

// The part of a word after its last slash.
static struct cursor word_last(struct cursor word)
{
	for (const char *at = word.at; at < word.end; at++) {
		word.at = *at == '/' && at + 1 < word.end ? at + 1 : word.at;
	}
	return word;
}

static void append_word(struct text *t, struct cursor word)
{
	text_append(t, t->length ? " " : "", t->length ? 1 : 0);
	text_append(t, word.at, (size_t)(word.end - word.at));
}

// "python3 train.py" of "/usr/bin/python3 -u /home/me/train.py --batch-size 64"
static void append_command_label(struct text *t, const struct process_row *row)
{
	struct text label = {0};
	struct cursor rest = cursor_of(row->command, strlen(row->command)), word;
	if (cursor_word(&rest, &word)) {
		struct cursor program = word_last(word);
		append_word(&label, program);
		bool interpreter = is_interpreter(program.at, (size_t)(program.end - program.at));
		while (interpreter && cursor_word(&rest, &word)) {
			bool option = *word.at == '-';
			bool code = cursor_is(word, "-c");
			if (!option || code || cursor_is(word, "-m")) {
				append_word(&label, option ? word : word_last(word));
			}
			if (!option || code) {
				break; // code is too long for a label
			}
		}
	} else {
		text_append_string(&label, row->name);
	}
	words_append_elided(t, label.data ? label.data : "", PROCESS_LABEL_COLUMNS);
	text_done(&label);
}

// "strain run": it is started as "run ..." and as "strain run ...".
static void append_strain_label(struct text *t, const struct process_row *row)
{
	struct cursor rest = cursor_of(row->command, strlen(row->command)), word = {0}, second;
	struct text label = {0};
	bool any = cursor_word(&rest, &word);
	word = any ? word_last(word) : word;
	if (any && cursor_is(word, "strain") && cursor_word(&rest, &second)) {
		word = second;
	}
	text_append_string(&label, "strain");
	if (any && !cursor_is(word, "strain")) {
		append_word(&label, word);
	}
	words_append_elided(t, label.data ? label.data : "", PROCESS_LABEL_COLUMNS);
	text_done(&label);
}

static int entity_compare(const void *key, const void *item)
{
	int64_t id = *(const int64_t *)key;
	int64_t other = ((const struct process_row *)item)->entity;
	return (id > other) - (id < other);
}

// While the list is as the entities are: sorted by id.
static const struct process_row *row_of(const struct process_list *list, int64_t entity)
{
	return bsearch(&entity, list->items, list->n, sizeof(*list->items), entity_compare);
}

// The command line of one that multiprocessing spawned says nothing: it runs its parent's program.
static const struct process_row *program_of(
	const struct process_list *list, const struct process_row *row)
{
	const struct process_row *parent = row_of(list, row->parent);
	return parent && strstr(row->command, "multiprocessing.spawn") ? parent : row;
}

static int label_row(const struct process_list *list, struct process_row *row)
{
	_cleanup_text_ struct text program = {0};
	struct text label = {0};
	if (row->role == ROLE_LOADER) {
		const struct process_row *parent = row_of(list, row->parent);
		if (parent && parent->role == ROLE_RANK) {
			text_format(&label, "rank %d ", parent->number);
		}
		text_format(&label, "worker %d", row->number);
	} else if (row->role == ROLE_RANK) {
		append_command_label(&program, program_of(list, row));
		text_format(&label, "rank %d: ", row->number);
		words_append_elided(&label, program.data ? program.data : "",
			PROCESS_LABEL_COLUMNS - label.length);
	} else if (row->role == ROLE_STRAIN) {
		append_strain_label(&label, row);
	} else {
		append_command_label(&label, row);
	}
	free(row->label);
	row->label = text_steal(&label);
	return row->label ? 0 : -ENOMEM;
}

static int row_compare(const void *left, const void *right)
{
	const struct process_row *a = left, *b = right;
	if (a->role != b->role) {
		return a->role < b->role ? -1 : 1;
	}
	if (a->number != b->number) {
		return a->number < b->number ? -1 : 1;
	}
	double a_cpu = isfinite(a->cpu_seconds) ? a->cpu_seconds : -1;
	double b_cpu = isfinite(b->cpu_seconds) ? b->cpu_seconds : -1;
	if (a_cpu != b_cpu) {
		return a_cpu > b_cpu ? -1 : 1;
	}
	return (a->entity > b->entity) - (a->entity < b->entity);
}

// Of rows that are as the entities are: sorted by id.
static int tell_roles(struct process_list *list)
{
	int r = roles_assign(list->items, list->n);
	for (size_t i = 0; i < list->n && r == 0; i++) {
		r = label_row(list, &list->items[i]);
	}
	if (r == 0 && list->n > 0) {
		qsort(list->items, list->n, sizeof(*list->items), row_compare);
	}
	return r;
}

int process_list_build(const struct analysis *a, struct process_list *ret)
{
	int r = 0;
	for (size_t i = 0; i < a->entities.n && r == 0; i++) {
		if (a->entities.items[i].kind == ENTITY_PROCESS) {
			r = row_add(ret, a, &a->entities.items[i]);
		}
	}
	return r < 0 ? r : tell_roles(ret);
}

static int compare_entities(const void *left, const void *right)
{
	const struct process_row *a = left, *b = right;
	return (a->entity > b->entity) - (a->entity < b->entity);
}

static void take_marks(struct process_row *row, const struct phases *p)
{
	for (size_t i = 0; i < p->n_ranks; i++) {
		bool is_it = p->ranks[i].entity == row->entity;
		row->iterates = row->iterates || is_it;
		row->rank = is_it && row->rank < 0 ? p->ranks[i].number : row->rank;
	}
	for (size_t i = 0; i < p->n_workers; i++) {
		row->prepares = row->prepares || p->workers[i].entity == row->entity;
	}
}

int process_list_take_marks(struct process_list *list, const struct phases *p)
{
	if ((p->n_ranks == 0 && p->n_workers == 0) || list->n == 0) {
		return 0;
	}
	for (size_t i = 0; i < list->n; i++) {
		take_marks(&list->items[i], p);
	}
	qsort(list->items, list->n, sizeof(*list->items), compare_entities);
	return tell_roles(list);
}

void process_append_label(struct text *t, const struct process_list *list, int64_t entity,
	int64_t pid, int64_t thread)
{
	for (size_t i = 0; entity && i < list->n; i++) {
		if (list->items[i].entity == entity) {
			text_append_string(t, list->items[i].label);
			return;
		}
	}
	text_format(
		t, pid > 0 ? "process %lld" : "thread %lld", (long long)(pid > 0 ? pid : thread));
}

bool process_is_python(const struct process_row *process)
{
	const char *command = process->command ? process->command : "";
	size_t length = strcspn(command, " ");
	const char *slash = memrchr(command, '/', length);
	const char *program = slash ? slash + 1 : command;
	return strncmp(program, "python", 6) == 0;
}

void process_list_done(struct process_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		free(list->items[i].command);
		free(list->items[i].label);
	}
	free(list->items);
	*list = (struct process_list){0};
}
