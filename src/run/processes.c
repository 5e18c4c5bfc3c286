// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The table of processes.

#include "run/processes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/parse.h"
#include "base/text.h"
#include "base/words.h"
#include "run/tables.h"
#include "run/names.h"

// Processes ---------------------------------------------------------------------------------------

#define MET 0.99 // as a share of the largest high-water mark: the process holds the largest

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

static void fill_memory(const struct run_tables *tables, struct process_row *row)
{
	static const struct memory_choice choices[] = {
		{NAME_PSS, "PSS"},
		{NAME_PEAK, "resident"},
		{NAME_RESIDENT, "resident"},
	};
	row->memory_peak_bytes = NAN;
	for (size_t i = 0; i < ARRAY_LENGTH(choices) && !row->memory_kind; i++) {
		double peak = tables_figure(tables, row->entity, choices[i].metric, FIGURE_MAX);
		if (isfinite(peak)) {
			row->memory_peak_bytes = peak;
			row->memory_kind = choices[i].kind;
		}
	}
}

// The high-water mark is final for a living process, which was just read, and for the process with
// the largest one, from the parent that reaped it.
static void fill_resident(const struct run_tables *tables, struct process_row *row)
{
	const struct entity *job = entity_first(&tables->entities, ENTITY_JOB);
	int64_t id = job ? job->id : 0;
	row->resident_peak_bytes = fmax(tables_figure(tables, row->entity, NAME_PEAK, FIGURE_MAX),
		tables_figure(tables, row->entity, NAME_RESIDENT, FIGURE_MAX));
	bool reaped = isfinite(tables_figure(tables, id, NAME_PEAK_BOUND, FIGURE_MAX));
	double largest = tables_figure(tables, id, NAME_PEAK, FIGURE_MAX);
	row->resident_at_least = isfinite(row->resident_peak_bytes) && row->ended &&
	                         !(reaped && row->resident_peak_bytes >= MET * largest);
	row->pss_peak_bytes = tables_figure(tables, row->entity, NAME_PSS, FIGURE_MAX);
	row->uss_peak_bytes = tables_figure(tables, row->entity, NAME_USS, FIGURE_MAX);
}

static void fill_figures(const struct run_tables *tables, struct process_row *row)
{
	row->cpu_seconds = tables_figure(tables, row->entity, NAME_CPU_TIME, FIGURE_TOTAL);
	double rate = tables_figure(tables, row->entity, NAME_CPU_TIME, FIGURE_MEAN);
	if (row->cpu_seconds == 0 && !isfinite(rate)) {
		row->cpu_seconds = NAN; // read once, when it began: it may have run since
	}
	row->stopped_s = tables_figure(tables, row->entity, NAME_PROCESS_STOPPED, FIGURE_TOTAL);
	double life_s = row->last_s - row->first_s - (row->stopped_s > 0 ? row->stopped_s : 0);
	row->cpu_share = life_s > 0 ? row->cpu_seconds / life_s : NAN;
	row->asked_bytes = tables_figure(tables, row->entity, NAME_READ_ASKED, FIGURE_TOTAL);
	row->storage_bytes = tables_figure(tables, row->entity, NAME_READ_STORAGE, FIGURE_TOTAL);
	row->written_bytes = tables_figure(tables, row->entity, NAME_WRITE_STORAGE, FIGURE_TOTAL);
	fill_memory(tables, row);
	fill_resident(tables, row);
}

static int attribute_integer(const struct entity *entity, const char *name, int otherwise)
{
	double value = entity_number(entity, name);
	return value >= 0 && value <= 255 ? (int)value : otherwise;
}

static int row_add(
	struct process_list *list, const struct run_tables *tables, const struct entity *entity)
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
	fill_figures(tables, &row);
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

// Appends "python3 train.py" for "/usr/bin/python3 -u /home/me/train.py --batch-size 64".
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
				break; // inline code is too long for a label
			}
		}
	} else {
		text_append_string(&label, row->name);
	}
	words_append_elided(t, label.data ? label.data : "", PROCESS_LABEL_COLUMNS);
	text_done(&label);
}

// Appends "strain run", both for "run ..." and for "strain run ...".
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

// Requires that the list is still sorted by entity id.
static const struct process_row *row_of(const struct process_list *list, int64_t entity)
{
	return bsearch(&entity, list->items, list->n, sizeof(*list->items), entity_compare);
}

// A process spawned by multiprocessing runs its parent's program; its own command line does not
// show it.
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

// Requires rows sorted by entity id.
int process_list_tell_roles(struct process_list *list)
{
	int r = processes_assign_roles(list->items, list->n);
	for (size_t i = 0; i < list->n && r == 0; i++) {
		r = label_row(list, &list->items[i]);
	}
	if (r == 0 && list->n > 0) {
		qsort(list->items, list->n, sizeof(*list->items), row_compare);
	}
	return r;
}

int process_list_build(const struct run_tables *tables, struct process_list *ret)
{
	int r = 0;
	for (size_t i = 0; i < tables->entities.n && r == 0; i++) {
		if (tables->entities.items[i].kind == ENTITY_PROCESS) {
			r = row_add(ret, tables, &tables->entities.items[i]);
		}
	}
	return r < 0 ? r : process_list_tell_roles(ret);
}

void process_list_append_label(struct text *t, const struct process_list *list, int64_t entity,
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

bool process_row_is_python(const struct process_row *process)
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

// Roles -------------------------------------------------------------------------------------------
//
// Roles from the shape of the tree. A process that starts others and uses little CPU itself is a
// launcher. Below the launchers is main, or ranks if several processes do the same. A process that
// marked batches is a loader worker; the hooks mark those of workers. Without such marks, forked
// copies of an iterating process are its workers; copies of any other process are children, and
// nothing more is known of them.

// Programs that start others. Distributed ones start several copies of one program.
static const struct launcher {
	const char *program;
	bool distributed;
} launchers[] = {
	{"accelerate", true},
	{"ash", false},
	{"bash", false},
	{"chrt", false},
	{"conda", false},
	{"dash", false},
	{"deepspeed", true},
	{"env", false},
	{"fish", false},
	{"horovodrun", true},
	{"ionice", false},
	{"ksh", false},
	{"make", false},
	{"mpiexec", true},
	{"mpiexec.hydra", true},
	{"mpirun", true},
	{"nice", false},
	{"nohup", false},
	{"numactl", false},
	{"orterun", true},
	{"parallel", true},
	{"poetry", false},
	{"prterun", true},
	{"setpriv", false},
	{"sh", false},
	{"srun", true},
	{"stdbuf", false},
	{"sudo", false},
	{"taskset", false},
	{"time", false},
	{"timeout", false},
	{"torchrun", true},
	{"uv", false},
	{"xargs", true},
	{"zsh", false},
};

// Words in the command line of a process started by Python that tell its role.
static const struct phrase {
	const char *text;
	enum role role;
} phrases[] = {
	{"torch.distributed.run", ROLE_LAUNCHER},
	{"torch.distributed.launch", ROLE_LAUNCHER},
	{"torchrun", ROLE_LAUNCHER},
	{"multiprocessing.resource_tracker", ROLE_HELPER},
	{"multiprocessing.semaphore_tracker", ROLE_HELPER},
	{"multiprocessing.spawn", ROLE_CHILD},
	{"--multiprocessing-fork", ROLE_CHILD},
};

struct node {
	struct process_row *row;
	struct node *parent; // NULL: not in the job
	double weight; // CPU time of the process and its descendants
	size_t n_children;
};

struct forest {
	struct node *nodes;
	size_t n;
	bool prepared; // a process that does not iterate marked batches
};

// Processes of strain are passed through like launchers, and their own CPU time does not count.
static double weight_of(const struct process_row *row)
{
	return isfinite(row->cpu_seconds) && !row->strain ? row->cpu_seconds : 0;
}

// Whether `program` is the command's first word, without folders.
static bool runs_program(const struct process_row *row, const char *program)
{
	const char *command = *row->command ? row->command : row->name;
	size_t length = strcspn(command, " ");
	const char *start = command;
	for (size_t i = 0; i < length; i++) {
		start = command[i] == '/' ? command + i + 1 : start;
	}
	length -= (size_t)(start - command);
	return strlen(program) == length && memcmp(start, program, length) == 0;
}

static const struct phrase *phrase_in(const struct process_row *row)
{
	for (size_t i = 0; i < ARRAY_LENGTH(phrases); i++) {
		if (strstr(row->command, phrases[i].text)) {
			return &phrases[i];
		}
	}
	return NULL;
}

static bool is_launcher(const struct process_row *row, bool *ret_distributed)
{
	for (size_t i = 0; i < ARRAY_LENGTH(launchers); i++) {
		if (runs_program(row, launchers[i].program)) {
			*ret_distributed = launchers[i].distributed;
			return true;
		}
	}
	const struct phrase *phrase = phrase_in(row);
	*ret_distributed = true;
	return phrase && phrase->role == ROLE_LAUNCHER;
}

static double life(const struct process_row *row)
{
	return row->last_s - row->first_s;
}

static int node_compare(const void *key, const void *item)
{
	int64_t id = *(const int64_t *)key;
	int64_t other = ((const struct node *)item)->row->entity;
	return (id > other) - (id < other);
}

static int forest_grow(struct forest *f, struct process_row *rows, size_t n)
{
	f->nodes = calloc(n + 1, sizeof(*f->nodes));
	if (!f->nodes) {
		return -ENOMEM;
	}
	f->n = n;
	for (size_t i = 0; i < n; i++) {
		f->nodes[i].row = &rows[i];
	}
	for (size_t i = 0; i < n; i++) {
		struct node *node = &f->nodes[i];
		// A parent's entity is older than its child's. Anything else could form a cycle.
		if (node->row->parent < node->row->entity) {
			node->parent = bsearch(
				&node->row->parent, f->nodes, n, sizeof(*f->nodes), node_compare);
		}
		node->weight = weight_of(node->row);
		f->prepared = f->prepared || (node->row->prepares && !node->row->iterates);
	}
	for (size_t i = n; i-- > 0;) {
		if (f->nodes[i].parent) {
			f->nodes[i].parent->weight += f->nodes[i].weight;
			f->nodes[i].parent->n_children++;
		}
	}
	return 0;
}

static struct node *heaviest_child(struct forest *f, const struct node *parent, double *ret_sum)
{
	struct node *heaviest = NULL;
	*ret_sum = 0;
	for (size_t i = 0; i < f->n; i++) {
		struct node *node = &f->nodes[i];
		if (node->parent == parent) {
			bool better = !heaviest || node->weight > heaviest->weight ||
			              (heaviest->row->strain && !node->row->strain);
			*ret_sum += node->weight;
			heaviest = better ? node : heaviest;
		}
	}
	return heaviest;
}

// Makes ranks of the children of a distributed launcher that run the same program as the heaviest
// one and live at least half as long.
static int ranks_assign(struct forest *f, const struct node *parent, const struct node *heaviest)
{
	int n = 0;
	for (size_t i = 0; i < f->n; i++) {
		struct node *node = &f->nodes[i];
		if (node->parent == parent && life(node->row) >= life(heaviest->row) / 2 &&
			strcmp(node->row->command, heaviest->row->command) == 0) {
			node->row->role = ROLE_RANK;
			node->row->number = n++;
		}
	}
	return n;
}

static bool is_above(const struct node *node, const struct node *other)
{
	while (other && other != node) {
		other = other->parent;
	}
	return other != NULL;
}

static struct node *root_of(struct forest *f)
{
	struct node *root = NULL;
	for (size_t i = 0; i < f->n; i++) {
		struct node *node = &f->nodes[i];
		if (!node->parent && (!root || node->row->first_s < root->row->first_s)) {
			root = node;
		}
	}
	return root;
}

// A `strain run` within the job starts the actual processes.
static bool passes_on(const struct process_row *row, bool *ret_distributed)
{
	*ret_distributed = false;
	return row->strain || is_launcher(row, ret_distributed);
}

// Descends through the launchers to the training process.
static void trainers_assign(struct forest *f)
{
	struct node *node = root_of(f);
	bool distributed;
	while (node && node->n_children > 0 && passes_on(node->row, &distributed)) {
		double sum;
		struct node *child = heaviest_child(f, node, &sum);
		if (distributed && ranks_assign(f, node, child) > 1) {
			node->row->role = ROLE_LAUNCHER;
			return;
		}
		child->row->role = ROLE_HELPER; // a single rank is main
		child->row->number = -1;
		if (child->weight < sum / 2 && !node->row->strain) {
			break; // a script of many small commands is itself main
		}
		node->row->role = ROLE_LAUNCHER;
		node = child;
	}
	if (node) {
		node->row->role = ROLE_MAIN;
	}
}

// The one process that marked iterations trains, also where a script starts it beside others that
// take as much time. An ancestor only marks what it starts, and a copy of main is its child.
static void marked_main_assign(struct forest *f)
{
	struct node *marked = NULL, *assigned = NULL;
	for (size_t i = 0; i < f->n; i++) {
		struct node *node = &f->nodes[i];
		if (node->row->role == ROLE_RANK || (node->row->iterates && marked)) {
			return;
		}
		marked = node->row->iterates ? node : marked;
		assigned = node->row->role == ROLE_MAIN ? node : assigned;
	}
	if (!marked || !assigned || is_above(marked, assigned) ||
		strcmp(marked->row->command, assigned->row->command) == 0) {
		return;
	}
	assigned->row->role = ROLE_HELPER;
	for (struct node *above = marked->parent; above; above = above->parent) {
		above->row->role = ROLE_LAUNCHER;
	}
	marked->row->role = ROLE_MAIN;
}

// Assigns roles from marks. Ancestors of ranks do not train.
static void marked_ranks_assign(struct forest *f)
{
	size_t n = 0;
	for (size_t i = 0; i < f->n; i++) {
		n += f->nodes[i].row->rank >= 0;
	}
	for (size_t i = 0; i < f->n && n > 1; i++) {
		struct process_row *row = f->nodes[i].row;
		bool trained = row->role == ROLE_MAIN || row->role == ROLE_RANK;
		if (row->rank >= 0) {
			row->role = ROLE_RANK;
			row->number = row->rank;
		} else if (trained) {
			row->role = f->nodes[i].n_children > 0 ? ROLE_LAUNCHER : ROLE_HELPER;
			row->number = -1;
		}
	}
}

static bool is_trainer(const struct process_row *row)
{
	return row->role == ROLE_MAIN || row->role == ROLE_RANK;
}

// A process that marked batches feeds a training loop if it is below one or beside one. An ancestor
// of a training process, or a launcher such as a shell, only marks a step of its own.
static bool feeds_training(const struct forest *f, const struct node *node)
{
	bool distributed, below = false, any = false;
	for (size_t i = 0; i < f->n; i++) {
		const struct node *other = &f->nodes[i];
		if (!is_trainer(other->row) || other == node) {
			continue;
		}
		if (is_above(node, other)) {
			return false;
		}
		below = below || is_above(other, node);
		any = any || other->row->iterates;
	}
	return (below || any) && !is_launcher(node->row, &distributed);
}

// A fork that runs no other program has the command line of its parent.
static bool is_copy(const struct node *node)
{
	const struct process_row *row = node->row;
	const struct process_row *parent = node->parent ? node->parent->row : NULL;
	const struct phrase *phrase = phrase_in(row);
	bool stays = parent && (life(row) >= 1 || life(row) >= life(parent) / 5);
	if (!stays || phrase) {
		return stays && phrase->role == ROLE_CHILD;
	}
	return *row->command && strcmp(row->command, parent->command) == 0;
}

static bool is_loader(const struct forest *f, const struct node *node)
{
	const struct process_row *row = node->row;
	const struct process_row *parent = node->parent ? node->parent->row : NULL;
	if (row->prepares) {
		return feeds_training(f, node);
	}
	// PyTorch's name for its workers.
	if (parent && is_trainer(parent) && strcmp(row->name, "pt_data_worker") == 0) {
		return true;
	}
	return parent && parent->iterates && !parent->takes_none && !f->prepared && is_copy(node);
}

struct loaders {
	const struct process_row *rows[512];
	size_t n;
};

// The smallest number that no loader of the same parent has at that time. Workers that are started
// anew for each epoch reuse numbers.
static int loader_number(const struct loaders *loaders, const struct process_row *row)
{
	for (int number = 0;; number++) {
		bool taken = false;
		for (size_t i = 0; i < loaders->n && !taken; i++) {
			const struct process_row *other = loaders->rows[i];
			taken = other->parent == row->parent && other->number == number &&
			        other->last_s > row->first_s;
		}
		if (!taken) {
			return number;
		}
	}
}

static void others_assign(struct forest *f)
{
	struct loaders loaders = {.n = 0};
	for (size_t i = 0; i < f->n; i++) {
		struct node *node = &f->nodes[i];
		struct process_row *row = node->row;
		bool distributed;
		if (row->role != ROLE_HELPER) {
			continue;
		}
		if (loaders.n < ARRAY_LENGTH(loaders.rows) && is_loader(f, node)) {
			row->number = loader_number(&loaders, row);
			row->role = ROLE_LOADER;
			loaders.rows[loaders.n++] = row;
		} else if (node->n_children > 0 && is_launcher(row, &distributed)) {
			row->role = ROLE_LAUNCHER;
		} else if (is_copy(node)) {
			row->role = ROLE_CHILD;
		}
	}
}

int processes_assign_roles(struct process_row *rows, size_t n)
{
	struct forest forest = {0};
	int r = forest_grow(&forest, rows, n);
	if (r < 0) {
		return r;
	}
	for (size_t i = 0; i < n; i++) {
		rows[i].role = ROLE_HELPER;
		rows[i].number = -1;
	}
	trainers_assign(&forest);
	marked_main_assign(&forest);
	marked_ranks_assign(&forest);
	others_assign(&forest);
	for (size_t i = 0; i < n; i++) {
		rows[i].role = rows[i].strain ? ROLE_STRAIN : rows[i].role;
		rows[i].number = rows[i].strain ? -1 : rows[i].number;
	}
	free(forest.nodes);
	return 0;
}
