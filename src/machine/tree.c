// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The process tree. /proc/loadavg has the newest pid, so that a tick without forks costs one small
// read. After forks only the pids assigned since the last look are examined. About once a second,
// while anything changes, the whole list is read, to find processes that arrived in other ways.

#include "machine/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/text.h"
#include "machine/exit_status.h"
#include "machine/file.h"
#include "machine/procfs.h"

// Pid list ----------------------------------------------------------------------------------------
//
// Lists of pids from the kernel, and a set of pids already examined.

#define PID_LIMIT ((pid_t)1 << 22) // PID_MAX_LIMIT of 64-bit kernels
#define WORD_BITS 64
#define CGROUPS_MAX 256 // below the job's cgroup
#define CGROUPS_DEPTH 8

struct pid_list {
	pid_t *pids;
	size_t n;
	size_t capacity;
};

// One bit per pid, up to the kernel's limit of 2^22.
struct pid_set {
	uint64_t *words; // NULL while empty
};

static bool list_add(struct pid_list *list, uint64_t pid)
{
	void *pids = list->pids;
	if (pid > INT32_MAX ||
		array_reserve(&pids, &list->capacity, list->n + 1, sizeof(pid_t)) < 0) {
		return false;
	}
	list->pids = pids;
	list->pids[list->n++] = (pid_t)pid;
	return true;
}

// Lists every process of a machine: the names in /proc. Clears the list first. Entries are left out
// when memory is short.
static void pid_list_proc(struct pid_list *list, int proc_fd)
{
	list->n = 0;
	int fd = openat(proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	if (!directory) {
		if (fd >= 0) {
			close(fd);
		}
		return;
	}
	const struct dirent *entry;
	while ((entry = readdir(directory))) {
		struct cursor name = cursor_of(entry->d_name, strlen(entry->d_name));
		uint64_t pid;
		if (*name.at >= '1' && *name.at <= '9' && cursor_u64(&name, &pid) &&
			name.at == name.end && !list_add(list, pid)) {
			break;
		}
	}
	closedir(directory);
}

// Appends the content of a cgroup.procs file.
static void list_procs(struct pid_list *list, int root_fd, const char *path)
{
	struct host_file file = HOST_FILE_CLOSED;
	struct cursor text, line;
	uint64_t pid;
	if (host_file_open(&file, root_fd, path, NULL) == 0 && host_file_read(&file, &text) == 0) {
		while (cursor_line(&text, &line) && cursor_u64(&line, &pid) &&
			list_add(list, pid)) {
		}
	}
	host_file_close(&file);
}

// A directory of cgroupfs has two links, plus one for each directory in it.
static DIR *open_parent(int root_fd, const char *path)
{
	struct stat st;
	if (fstatat(root_fd, path, &st, 0) < 0 || st.st_nlink == 2) {
		return NULL;
	}
	int fd = openat(root_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	if (!directory && fd >= 0) {
		close(fd);
	}
	return directory;
}

static void list_below(
	struct pid_list *list, int root_fd, const char *directory, unsigned depth, unsigned *left)
{
	DIR *parent = open_parent(root_fd, directory);
	for (struct dirent *entry; parent && *left > 0 && (entry = readdir(parent));) {
		if (entry->d_type != DT_DIR || *entry->d_name == '.') {
			continue;
		}
		_cleanup_text_ struct text child = {0}, procs = {0};
		text_format(&child, "%s/%s", directory, entry->d_name);
		text_format(&procs, "%s/%s/cgroup.procs", directory, entry->d_name);
		if (!child.data || !procs.data) {
			break;
		}
		(*left)--;
		list_procs(list, root_fd, procs.data);
		if (depth > 0) {
			list_below(list, root_fd, child.data, depth - 1, left);
		}
	}
	if (parent) {
		closedir(parent);
	}
}

// Lists every process of a cgroup; path is its cgroup.procs under the root. The file is opened anew
// each time, because on cgroup v1 an open descriptor keeps showing the first list. The cgroups
// below it, which a job may create (a `strain run`, a container), are included, up to a few
// hundred.
static void pid_list_cgroup(struct pid_list *list, int root_fd, const char *path)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *directory = slash ? strndup(path, (size_t)(slash - path)) : NULL;
	unsigned left = CGROUPS_MAX;
	list->n = 0;
	list_procs(list, root_fd, path);
	if (directory) {
		list_below(list, root_fd, directory, CGROUPS_DEPTH, &left);
	}
}

static void pid_list_done(struct pid_list *list)
{
	free(list->pids);
	*list = (struct pid_list){0};
}

static void pid_set_add(struct pid_set *set, pid_t pid)
{
	if (!set->words) {
		set->words = calloc(PID_LIMIT / WORD_BITS, sizeof(*set->words));
	}
	if (set->words && pid >= 0 && pid < PID_LIMIT) {
		set->words[pid / WORD_BITS] |= UINT64_C(1) << (pid % WORD_BITS);
	}
}

static int pid_set_has(const struct pid_set *set, pid_t pid)
{
	return set->words && pid >= 0 && pid < PID_LIMIT &&
	       (set->words[pid / WORD_BITS] >> (pid % WORD_BITS) & 1);
}

static void pid_set_clear(struct pid_set *set)
{
	free(set->words);
	set->words = NULL;
}

// Pid table ---------------------------------------------------------------------------------------
//
// Processes by pid: open addressing, at most half full.

#define SLOTS_FIRST 256u

struct pid_table {
	struct process **slots; // NULL: free
	size_t n_slots; // 0, or a power of two
	size_t n;
};

static size_t next_slot(const struct pid_table *table, size_t slot)
{
	return (slot + 1) & (table->n_slots - 1);
}

static size_t first_slot(const struct pid_table *table, pid_t pid)
{
	return ((uint32_t)pid * 2654435761u) & (table->n_slots - 1);
}

// Returns NULL if there is none.
static struct process *pid_table_find(const struct pid_table *table, pid_t pid)
{
	if (table->n_slots == 0) {
		return NULL;
	}
	size_t slot = first_slot(table, pid);
	while (table->slots[slot] && table->slots[slot]->pid != pid) {
		slot = next_slot(table, slot);
	}
	return table->slots[slot];
}

static void place(struct pid_table *table, struct process *p)
{
	size_t slot = first_slot(table, p->pid);
	while (table->slots[slot]) {
		slot = next_slot(table, slot);
	}
	table->slots[slot] = p;
}

// Call after pid_table_reserve. The pid must not be in the table.
static void pid_table_insert(struct pid_table *table, struct process *p)
{
	place(table, p);
	table->n++;
}

// p must be in the table.
static void pid_table_remove(struct pid_table *table, const struct process *p)
{
	size_t slot = first_slot(table, p->pid);
	while (table->slots[slot] != p) {
		slot = next_slot(table, slot);
	}
	table->slots[slot] = NULL;
	table->n--;
	// Later entries are reinserted, so that no search stops at the hole.
	for (slot = next_slot(table, slot); table->slots[slot]; slot = next_slot(table, slot)) {
		struct process *behind = table->slots[slot];
		table->slots[slot] = NULL;
		place(table, behind);
	}
}

// Reserves a slot for one more. Returns 0 or -ENOMEM; nothing has then changed.
static int pid_table_reserve(struct pid_table *table)
{
	if ((table->n + 1) * 2 <= table->n_slots) {
		return 0;
	}
	struct pid_table grown = {.n_slots = table->n_slots ? table->n_slots * 2 : SLOTS_FIRST};
	grown.slots = calloc(grown.n_slots, sizeof(struct process *));
	if (!grown.slots) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < table->n_slots; i++) {
		if (table->slots[i]) {
			pid_table_insert(&grown, table->slots[i]);
		}
	}
	free(table->slots);
	*table = grown;
	return 0;
}

static void pid_table_done(struct pid_table *table)
{
	free(table->slots);
	*table = (struct pid_table){0};
}

// Identity ----------------------------------------------------------------------------------------
//
// Pids in namespaces and the processes that have them.

// The start of a process is known to one kernel tick, and on another clock.
#define START_SLACK_NS (20 * NS_PER_MS)

static uint64_t namespace_of(int directory_fd, const char *path)
{
	struct stat status;
	return fstatat(directory_fd, path, &status, 0) == 0 ? status.st_ino : 0;
}

uint64_t identity_own_namespace(int root_fd)
{
	return namespace_of(root_fd, "proc/self/ns/pid");
}

// Reads inner_pid and pid_namespace of identity->pid as far as possible. Anyone may read the pid;
// the namespace is not readable if the process has more privileges than its user. own_namespace:
// that of /proc.
static void identity_read(int proc_fd, uint64_t own_namespace, struct identity *identity)
{
	char path[32];
	struct proc_status status;
	snprintf(path, sizeof(path), "%d/ns/pid", (int)identity->pid);
	identity->pid_namespace = namespace_of(proc_fd, path);
	if (identity->pid_namespace != 0 && identity->pid_namespace == own_namespace) {
		identity->inner_pid = identity->pid;
		return;
	}
	snprintf(path, sizeof(path), "%d/status", (int)identity->pid);
	if (proc_status_read(proc_fd, path, &status) == 0 && status.pid_in_namespace > 0 &&
		status.pid_in_namespace <= INT32_MAX) {
		identity->inner_pid = (pid_t)status.pid_in_namespace;
	}
	// A process with the same pid in both namespaces is in ours, even if its namespace is
	// unreadable.
	if (identity->pid_namespace == 0 && identity->inner_pid == identity->pid) {
		identity->pid_namespace = own_namespace;
	}
}

void identities_left_add(struct identities_left *left, const struct identity *identity)
{
	left->items[left->n++ % IDENTITIES_LEFT] = *identity;
}

void identity_consider(struct identity_search *search, const struct identity *identity)
{
	const struct identity_claim *claim = &search->claim;
	uint64_t theirs = identity->pid_namespace;
	bool known = claim->pid_namespace != 0 && theirs != 0;
	if (identity->inner_pid <= 0 || (uint32_t)identity->inner_pid != claim->inner_pid ||
		identity->first_ns > claim->at_ns + START_SLACK_NS ||
		(known && theirs != claim->pid_namespace)) {
		return;
	}
	// Of several processes that had the pid in turn, it is the last one before the claim.
	if (known && (!search->sure || identity->first_ns > search->best.first_ns)) {
		search->sure = true;
		search->best = *identity;
	} else if (!known && !search->sure) {
		search->best = *identity;
	}
	search->likely += !known;
}

void identity_consider_left(struct identity_search *search, const struct identities_left *left)
{
	size_t n = left->n < IDENTITIES_LEFT ? left->n : IDENTITIES_LEFT;
	for (size_t i = 0; i < n; i++) {
		identity_consider(search, &left->items[i]);
	}
}

unsigned identity_count(const struct identity_search *search)
{
	return search->sure ? 1 : search->likely;
}

// Tree --------------------------------------------------------------------------------------------

// With more new pids than this since the last look, listing all processes is cheaper.
#define WINDOW_MAX 512
// A cgroup with at most this many processes is listed at every tick with more than a few forks.
#define LIST_MAX 128
#define FEW_PIDS 4
#define RESYNC_NS NS_PER_S
// A job with this many processes so far may create short-lived ones by the million. From then on
// only processes that live for a second are followed; the others are counted in time, with their
// parents.
#define SEEN_MAX 10000u
#define LONG_LIVED_NS NS_PER_S
// Descriptors reserved for everything else in the recorder.
#define DESCRIPTORS_RESERVED 128u

struct tree {
	int root_fd; // borrowed
	int proc_fd;
	bool captured;
	struct host_file loadavg;
	char *cgroup_procs; // NULL where there is none
	struct tree_watcher watcher;
	long ticks_per_second;
	size_t descriptors;
	size_t max_descriptors;

	// Written by the tick lane under the mutex, so that other threads can read.
	pthread_mutex_t mutex;
	struct process **members; // in order of joining
	size_t n_members;
	size_t capacity;
	struct pid_table table;
	struct identities_left left;
	pid_t first; // set by tree_start, adopted by the next update
	_Atomic bool start_asked;
	char *start_procs;

	pid_t reaper;
	bool started;
	pid_t last_pid;
	bool moved; // pids were assigned since the last resync
	uint64_t resync_ns;
	_Atomic uint64_t seen;
	struct reaped reaped;
	struct pid_list list; // scratch
	struct pid_set strangers; // examined, not in the job; forgotten when pids wrap around
	uint64_t own_namespace; // of pids; 0: unknown
	_Atomic int64_t training[TREE_TRAINING_MAX]; // entities; 0: free
	struct stat program; // this program, which its helpers run too; st_ino 0: unknown
};

static size_t descriptor_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur <= DESCRIPTORS_RESERVED) {
		return 64;
	}
	return limit.rlim_cur > 1 << 20 ? 1 << 20 : (size_t)limit.rlim_cur - DESCRIPTORS_RESERVED;
}

int tree_new(int root_fd, bool captured, struct tree **ret, struct error *e)
{
	struct tree *tree = calloc(1, sizeof(*tree));
	if (!tree) {
		return error_set(e, ENOMEM, "out of memory");
	}
	mutex_init_inheriting(&tree->mutex);
	tree->root_fd = root_fd;
	tree->captured = captured;
	tree->loadavg = HOST_FILE_CLOSED;
	tree->ticks_per_second = sysconf(_SC_CLK_TCK);
	tree->max_descriptors = descriptor_limit();
	tree->proc_fd = openat(root_fd, "proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = tree->proc_fd < 0 ? error_errno(e, errno, "/proc")
	                          : host_file_open(&tree->loadavg, root_fd, "proc/loadavg", e);
	if (r < 0) {
		tree_free(tree);
		return r;
	}
	if (captured || fstatat(tree->proc_fd, "self/exe", &tree->program, 0) < 0) {
		tree->program.st_ino = 0;
	}
	tree->own_namespace = captured ? 0 : identity_own_namespace(root_fd);
	*ret = tree;
	return 0;
}

void tree_watch(struct tree *tree, const struct tree_watcher *watcher)
{
	tree->watcher = *watcher;
}

void tree_close(struct tree *tree, int *fd)
{
	if (*fd >= 0) {
		close(*fd);
		*fd = -1;
		tree->descriptors--;
	}
}

static void process_free(struct tree *tree, struct process *p)
{
	tree_close(tree, &p->stat_fd);
	tree_close(tree, &p->statm_fd);
	tree_close(tree, &p->pidfd);
	free(p);
}

static void leave(struct tree *tree, struct process *p)
{
	if (tree->watcher.left) {
		tree->watcher.left(tree->watcher.context, p);
	}
	process_free(tree, p);
}

void tree_free(struct tree *tree)
{
	if (!tree) {
		return;
	}
	for (size_t i = 0; i < tree->n_members; i++) {
		leave(tree, tree->members[i]);
	}
	host_file_close(&tree->loadavg);
	if (tree->proc_fd >= 0) {
		close(tree->proc_fd);
	}
	pthread_mutex_destroy(&tree->mutex);
	free(tree->members);
	pid_table_done(&tree->table);
	pid_list_done(&tree->list);
	pid_set_clear(&tree->strangers);
	free(tree->cgroup_procs);
	free(tree->start_procs);
	free(tree);
}

void tree_start(struct tree *tree, pid_t first, pid_t reaper, const char *cgroup_procs)
{
	pthread_mutex_lock(&tree->mutex);
	tree->first = first;
	tree->reaper = reaper;
	free(tree->start_procs);
	tree->start_procs = cgroup_procs ? strdup(cgroup_procs) : NULL;
	atomic_store(&tree->start_asked, true);
	pthread_mutex_unlock(&tree->mutex);
}

struct process *tree_find(const struct tree *tree, pid_t pid)
{
	return pid_table_find(&tree->table, pid);
}

// Joining and leaving -----------------------------------------------------------------------------

int tree_open_once(struct tree *tree, const struct process *p, const char *name)
{
	char path[64];
	snprintf(path, sizeof(path), "%d/%s", (int)p->pid, name);
	int fd = openat(tree->proc_fd, path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int tree_open(struct tree *tree, const struct process *p, const char *name)
{
	int fd = tree->descriptors < tree->max_descriptors ? tree_open_once(tree, p, name)
	                                                   : -EMFILE;
	tree->descriptors += fd >= 0;
	return fd;
}

static int read_stat(struct tree *tree, const struct process *p, struct proc_stat *ret)
{
	char path[64], buffer[1024];
	struct cursor text;
	if (p->stat_fd >= 0) {
		int r = file_pread(p->stat_fd, buffer, sizeof(buffer), &text);
		return r < 0 ? r : proc_stat_parse(text, ret);
	}
	snprintf(path, sizeof(path), "%d/stat", (int)p->pid);
	return proc_stat_read(tree->proc_fd, path, ret);
}

// The start of a process on CLOCK_MONOTONIC. start_ticks counts from boot, including suspend.
static uint64_t start_of(const struct tree *tree, uint64_t start_ticks, uint64_t now_ns)
{
	uint64_t boot_ns = clock_read_ns(CLOCK_BOOTTIME);
	uint64_t started_ns = start_ticks * (NS_PER_S / (uint64_t)tree->ticks_per_second);
	uint64_t age_ns = boot_ns > started_ns ? boot_ns - started_ns : 0;
	return now_ns > age_ns ? now_ns - age_ns : 0;
}

static int members_add(struct tree *tree, struct process *p)
{
	pthread_mutex_lock(&tree->mutex);
	void *members = tree->members;
	int r = pid_table_reserve(&tree->table);
	if (r == 0) {
		r = array_reserve(
			&members, &tree->capacity, tree->n_members + 1, sizeof(struct process *));
	}
	if (r == 0) {
		tree->members = members;
		tree->members[tree->n_members++] = p;
		pid_table_insert(&tree->table, p);
	}
	pthread_mutex_unlock(&tree->mutex);
	return r;
}

static struct identity identity_of(const struct process *p)
{
	return (struct identity){.pid = p->pid,
		.inner_pid = p->inner_pid,
		.pid_namespace = p->pid_namespace,
		.first_ns = p->first_ns,
		.entity = p->entity};
}

static void learn_identity(const struct tree *tree, struct process *p)
{
	struct identity identity = identity_of(p);
	identity_read(tree->proc_fd, tree->own_namespace, &identity);
	p->inner_pid = identity.inner_pid;
	p->pid_namespace = identity.pid_namespace;
}

static int join(struct tree *tree, pid_t pid, const struct proc_stat *stat, uint64_t now_ns)
{
	struct process *p = calloc(1, sizeof(*p));
	if (!p) {
		return -ENOMEM;
	}
	*p = (struct process){.pid = pid,
		.parent = stat->parent,
		.start_ticks = stat->start_ticks,
		.first_ns = tree->captured ? now_ns : start_of(tree, stat->start_ticks, now_ns),
		.stat_fd = -1,
		.statm_fd = -1,
		.pidfd = -1,
		.status = -1};
	snprintf(p->name, sizeof(p->name), "%s", stat->name);
	if (tree->captured || clock_getcpuclockid(pid, &p->cpu_clock) != 0) {
		p->cpu_clock = CLOCK_REALTIME;
	}
	int statm = tree_open(tree, p, "statm"), fd = tree_open(tree, p, "stat");
	p->statm_fd = statm < 0 ? -1 : statm;
	p->stat_fd = fd < 0 ? -1 : fd;
	if (!tree->captured && tree->descriptors < tree->max_descriptors) {
		p->pidfd = exit_status_watch(pid);
		tree->descriptors += p->pidfd >= 0;
	}
	learn_identity(tree, p);
	// The descriptors may belong to a process that has reused the pid: read again.
	struct proc_stat again;
	int r = read_stat(tree, p, &again);
	if (r == 0 && again.start_ticks != stat->start_ticks) {
		r = -ESRCH;
	}
	if (r == 0 && tree->watcher.joined) {
		r = tree->watcher.joined(tree->watcher.context, p);
	}
	if (r < 0) {
		process_free(tree, p);
		return r;
	}
	r = members_add(tree, p);
	if (r < 0) {
		leave(tree, p);
		return r;
	}
	struct process *parent = tree_find(tree, p->parent);
	if (parent) {
		parent->n_children++;
	}
	tree->seen++;
	return 0;
}

void tree_remove(struct tree *tree, struct process *p)
{
	struct process *parent = tree_find(tree, p->parent);
	if (parent && parent != p) {
		parent->n_children -= parent->n_children > 0;
		parent->child_lost = true;
	}
	pthread_mutex_lock(&tree->mutex);
	pid_table_remove(&tree->table, p);
	struct identity identity = identity_of(p);
	identities_left_add(&tree->left, &identity);
	size_t i = 0;
	while (tree->members[i] != p) {
		i++;
	}
	memmove(tree->members + i, tree->members + i + 1,
		(tree->n_members - i - 1) * sizeof(struct process *));
	tree->n_members--;
	pthread_mutex_unlock(&tree->mutex);
	leave(tree, p);
}

// Finding -----------------------------------------------------------------------------------------

// Whether a process is a helper of ours: a child of the launcher with the same program, under a
// name that our helpers have from the start.
static bool is_helper(const struct tree *tree, pid_t pid, const struct proc_stat *stat)
{
	char path[64];
	struct stat program;
	if (tree->reaper == 0 || stat->parent != tree->reaper || tree->program.st_ino == 0 ||
		strncmp(stat->name, "strain-", strlen("strain-")) != 0) {
		return false;
	}
	snprintf(path, sizeof(path), "%d/exe", (int)pid);
	return fstatat(tree->proc_fd, path, &program, 0) == 0 &&
	       program.st_dev == tree->program.st_dev && program.st_ino == tree->program.st_ino;
}

// A process, not a thread with a number of its own: only processes have a CPU clock.
static bool is_process(const struct tree *tree, pid_t pid)
{
	clockid_t clock;
	struct timespec now;
	return tree->captured ||
	       (clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &now) == 0);
}

// Adds pid if it belongs to the job. surely: it does, regardless of its parent.
static bool consider(struct tree *tree, pid_t pid, bool surely, uint64_t now_ns)
{
	if (pid <= 0 || !is_process(tree, pid)) {
		return false;
	}
	struct proc_stat stat;
	struct process probe = {.pid = pid, .stat_fd = -1};
	if (read_stat(tree, &probe, &stat) < 0) {
		return false;
	}
	struct process *known = tree_find(tree, pid);
	if (known && known->start_ticks == stat.start_ticks) {
		return false;
	}
	if (known) {
		tree_remove(tree, known); // the pid was reused before its end was noticed
	}
	if (tree->seen >= SEEN_MAX && !tree->captured &&
		now_ns < start_of(tree, stat.start_ticks, now_ns) + LONG_LIVED_NS) {
		return false; // the next resync tries again
	}
	bool orphan = tree->reaper > 0 && stat.parent == tree->reaper;
	bool ours = surely || tree_find(tree, stat.parent) ||
	            (orphan && !is_helper(tree, pid, &stat));
	if (!ours) {
		pid_set_add(&tree->strangers, pid);
	}
	return ours && join(tree, pid, &stat, now_ns) == 0;
}

// Examines all processes that are not known yet. A child listed before its parent is first taken
// for a stranger, so the pass repeats from the beginning while any process joins.
static void resync(struct tree *tree, uint64_t now_ns)
{
	bool joined = true;
	for (int round = 0; joined && round < 8; round++) {
		pid_list_proc(&tree->list, tree->proc_fd);
		joined = false;
		for (size_t i = 0; i < tree->list.n; i++) {
			pid_t pid = tree->list.pids[i];
			if (!tree_find(tree, pid) && !pid_set_has(&tree->strangers, pid)) {
				joined |= consider(tree, pid, tree->captured, now_ns);
			}
		}
		if (joined) {
			pid_set_clear(&tree->strangers);
		}
	}
	tree->resync_ns = now_ns + RESYNC_NS;
	tree->moved = false;
}

static void resync_cgroup(struct tree *tree, uint64_t now_ns)
{
	pid_list_cgroup(&tree->list, tree->root_fd, tree->cgroup_procs);
	for (size_t i = 0; i < tree->list.n; i++) {
		if (!tree_find(tree, tree->list.pids[i])) {
			consider(tree, tree->list.pids[i], true, now_ns);
		}
	}
	tree->resync_ns = now_ns + RESYNC_NS;
	tree->moved = false;
}

// Does what tree_start requested. Returns true once the tree is alive.
static bool adopt_first(struct tree *tree, uint64_t now_ns)
{
	if (!atomic_exchange(&tree->start_asked, false)) {
		return tree->started;
	}
	pthread_mutex_lock(&tree->mutex);
	pid_t first = tree->first;
	char *procs = take_pointer(tree->start_procs);
	tree->first = 0;
	pthread_mutex_unlock(&tree->mutex);
	if (first > 0) {
		free(tree->cgroup_procs);
		tree->cgroup_procs = take_pointer(procs);
		consider(tree, first, true, now_ns);
		tree->started = true;
		tree->last_pid = first;
		tree->resync_ns = now_ns; // a job that already runs (--pid) already has children
		tree->moved = true;
	}
	free(procs);
	return tree->started;
}

// Examines the pids assigned on this machine since the last look. If the job has a cgroup and is
// small, its list is shorter than the new pids of a busy machine.
static void look_at_new(struct tree *tree, pid_t last_pid, uint64_t now_ns)
{
	pid_t from = tree->last_pid;
	tree->last_pid = last_pid;
	tree->moved = true;
	if (last_pid < from) {
		pid_set_clear(&tree->strangers); // pids wrapped around
	}
	bool few = last_pid > from && last_pid - from <= FEW_PIDS;
	if (!few && tree->cgroup_procs && tree->n_members <= LIST_MAX) {
		resync_cgroup(tree, now_ns);
	} else if (last_pid < from || last_pid - from > WINDOW_MAX) {
		tree->resync_ns = now_ns;
	} else {
		for (pid_t pid = from + 1; pid <= last_pid; pid++) {
			consider(tree, pid, false, now_ns);
		}
	}
}

void tree_update(struct tree *tree, uint64_t now_ns)
{
	struct cursor text;
	struct proc_loadavg load;
	if (!adopt_first(tree, now_ns)) {
		return;
	}
	if (host_file_read(&tree->loadavg, &text) < 0 || proc_loadavg_parse(text, &load) < 0) {
		tree->moved = true; // no other evidence: examine all processes, once a second
	} else if (load.last_pid != tree->last_pid) {
		look_at_new(tree, load.last_pid, now_ns);
	}
	if (tree->moved && now_ns >= tree->resync_ns) {
		if (tree->cgroup_procs) {
			resync_cgroup(tree, now_ns);
		} else {
			resync(tree, now_ns);
		}
	}
}

// Looking -----------------------------------------------------------------------------------------

struct process *const *tree_members(const struct tree *tree, size_t *ret_n)
{
	*ret_n = tree->n_members;
	return tree->members;
}

uint64_t tree_seen(const struct tree *tree)
{
	return tree->seen;
}

struct reaped *tree_reaped(struct tree *tree)
{
	return &tree->reaped;
}

void tree_rename(struct tree *tree, struct process *p, const char *name)
{
	pthread_mutex_lock(&tree->mutex);
	snprintf(p->name, sizeof(p->name), "%s", name);
	p->renamed++;
	pthread_mutex_unlock(&tree->mutex);
}

static void member_copy(const struct tree *tree, const struct process *p, struct tree_member *ret)
{
	const struct process *parent = tree_find(tree, p->parent);
	*ret = (struct tree_member){
		.pid = p->pid,
		.parent = p->parent,
		.start_ticks = p->start_ticks,
		.first_ns = p->first_ns,
		.entity = p->entity,
		.parent_entity = parent ? parent->entity : 0,
		.renamed = p->renamed,
	};
	memcpy(ret->name, p->name, sizeof(ret->name));
}

bool tree_many(const struct tree *tree)
{
	return tree->seen >= SEEN_MAX;
}

int tree_snapshot(struct tree *tree, struct tree_member **items, size_t *n, size_t *capacity)
{
	pthread_mutex_lock(&tree->mutex);
	void *grown = *items;
	int r = array_reserve(&grown, capacity, tree->n_members, sizeof(**items));
	if (r == 0) {
		*items = grown;
		*n = tree->n_members;
		for (size_t i = 0; i < tree->n_members; i++) {
			member_copy(tree, tree->members[i], &(*items)[i]);
		}
	}
	pthread_mutex_unlock(&tree->mutex);
	return r;
}

int64_t tree_entity_of(struct tree *tree, pid_t pid)
{
	pthread_mutex_lock(&tree->mutex);
	const struct process *p = tree_find(tree, pid);
	int64_t entity = p ? p->entity : 0;
	pthread_mutex_unlock(&tree->mutex);
	return entity;
}

void tree_note_training(struct tree *tree, int64_t entity)
{
	for (size_t i = 0; entity != 0 && i < TREE_TRAINING_MAX; i++) {
		int64_t noted = atomic_load(&tree->training[i]);
		if (noted == 0) {
			atomic_store(&tree->training[i], entity);
		}
		if (noted == 0 || noted == entity) {
			return;
		}
	}
}

unsigned tree_training(struct tree *tree, int64_t ret[TREE_TRAINING_MAX])
{
	unsigned n = 0;
	for (size_t i = 0; i < TREE_TRAINING_MAX; i++) {
		ret[i] = atomic_load(&tree->training[i]);
		n += ret[i] != 0;
	}
	return n;
}

// All members are asked only if the pid is not simply that of one member.
static void ask_members(struct tree *tree, struct identity_search *search)
{
	const struct identity_claim *claim = &search->claim;
	if (claim->pid_namespace != 0 && claim->pid_namespace == tree->own_namespace) {
		const struct process *p = tree_find(tree, (pid_t)claim->inner_pid);
		struct identity identity = p ? identity_of(p) : (struct identity){0};
		identity_consider(search, &identity);
		return;
	}
	for (size_t i = 0; i < tree->n_members; i++) {
		struct process *p = tree->members[i];
		if (p->pid_namespace == 0 && (uint32_t)p->inner_pid == claim->inner_pid) {
			learn_identity(tree, p); // an exec may have reduced privileges
		}
		struct identity identity = identity_of(p);
		identity_consider(search, &identity);
	}
}

unsigned tree_identify(struct tree *tree, const struct identity_claim *claim, struct identity *ret)
{
	struct identity_search search = {.claim = *claim};
	pthread_mutex_lock(&tree->mutex);
	ask_members(tree, &search);
	identity_consider_left(&search, &tree->left);
	pthread_mutex_unlock(&tree->mutex);
	unsigned n = identity_count(&search);
	if (n == 1) {
		*ret = search.best;
	}
	return n;
}
