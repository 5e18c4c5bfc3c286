// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Roles from the shape of the tree. Whoever starts others and leaves the CPU to them is a launcher;
// below the launchers is main, or ranks where several do the same. Who marked batches that it
// prepared is a loader worker, as the hooks' workers do. Where nobody did, forked copies of a
// process that iterates feed it; those of any other process are children, of which nothing more is
// known.

#include "analyze/roles.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

// Programs that start others. A distributed one starts several copies of one program.
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

// What a command line says about a process that Python started.
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
	struct node *parent; // NULL: nobody of the job
	double weight; // CPU time of it and everything below
	size_t n_children;
};

struct forest {
	struct node *nodes;
	size_t n;
	bool prepared; // a process beside those that iterate marked batches
};

// Strain's own are passed through like launchers, and counted for nothing.
static double weight_of(const struct process_row *row)
{
	return isfinite(row->cpu_seconds) && !row->strain ? row->cpu_seconds : 0;
}

// Whether the command's program (its first word, without folders) is this one.
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
		// A parent's entity is older than its child's; anything else would be a cycle.
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

// Children of a distributed launcher with the heaviest one's program that live about as long.
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

// A `strain run` within the job starts the rest of it.
static bool passes_on(const struct process_row *row, bool *ret_distributed)
{
	*ret_distributed = false;
	return row->strain || is_launcher(row, ret_distributed);
}

// Follows the launchers down to who trains.
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
		child->row->role = ROLE_HELPER; // one rank is main
		child->row->number = -1;
		if (child->weight < sum / 2 && !node->row->strain) {
			break; // a script of many small commands: the script is what runs
		}
		node->row->role = ROLE_LAUNCHER;
		node = child;
	}
	if (node) {
		node->row->role = ROLE_MAIN;
	}
}

// What marks say. Above ranks there is nobody who trains.
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

static bool is_above(const struct node *node, const struct node *other)
{
	while (other && other != node) {
		other = other->parent;
	}
	return other != NULL;
}

// Who marked batches feeds a training loop if it is below one, or beside one; a script that starts
// the training, or anything with a shell, only calls a step of its own that way.
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

// A fork that runs no other program has its parent's command line.
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
	// So PyTorch itself calls its workers.
	if (parent && is_trainer(parent) && strcmp(row->name, "pt_data_worker") == 0) {
		return true;
	}
	return parent && parent->iterates && !f->prepared && is_copy(node);
}

struct loaders {
	const struct process_row *rows[512];
	size_t n;
};

// The smallest number that no loader of the same parent has at that time: workers that are started
// anew for each epoch get their numbers again.
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

int roles_assign(struct process_row *rows, size_t n)
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
	marked_ranks_assign(&forest);
	others_assign(&forest);
	for (size_t i = 0; i < n; i++) {
		rows[i].role = rows[i].strain ? ROLE_STRAIN : rows[i].role;
		rows[i].number = rows[i].strain ? -1 : rows[i].number;
	}
	free(forest.nodes);
	return 0;
}
