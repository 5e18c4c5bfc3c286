// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The job's processes, all of them from start to end. The tick lane owns the tree and keeps it up
// to date; other threads may use only the calls marked so.
//
// A process belongs to the job if its parent does, or if its parent is the launcher: the launcher
// is the subreaper and inherits orphans, so that double forks and setsid hide no process. If the
// job has its own cgroup, every process in it belongs to the job too.

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/error.h"

// Identity ----------------------------------------------------------------------------------------
//
// Identifies a process that reports only its pid in its own pid namespace, and that may have ended
// before it is looked up.

#define IDENTITIES_LEFT 1024u

// A process of the job. Its pid in its namespace never changes while it lives.
struct identity {
	pid_t pid; // in the recorder's pid namespace
	pid_t inner_pid; // in its own; 0: not known
	uint64_t pid_namespace; // the inode of its own; 0: not known
	uint64_t first_ns; // CLOCK_MONOTONIC: start time, never later than the true one
	int64_t entity;
};

// The identity that a process claims.
struct identity_claim {
	uint64_t pid_namespace; // 0: unknown to the process
	uint32_t inner_pid;
	uint64_t at_ns; // CLOCK_MONOTONIC: time of the claim
};

// The inode of the pid namespace of /proc; 0 if it cannot be read.
uint64_t identity_own_namespace(int root_fd);

// The processes that left most recently; a new one replaces the oldest.
struct identities_left {
	struct identity items[IDENTITIES_LEFT];
	size_t n; // total number ever added
};

void identities_left_add(struct identities_left *left, const struct identity *identity);

// The state of a search that considers one process after another.
struct identity_search {
	struct identity_claim claim;
	struct identity best;
	bool sure; // `best` is in the claimed namespace
	unsigned likely; // other candidates, whose namespace is unknown
};

void identity_consider(struct identity_search *search, const struct identity *identity);
void identity_consider_left(struct identity_search *search, const struct identities_left *left);
// Number of candidates. With exactly one, search->best is certain.
unsigned identity_count(const struct identity_search *search);

// Reaped ------------------------------------------------------------------------------------------
//
// Resources of the job's processes reaped by the launcher, each including its own reaped children,
// from wait4(2). One thread adds, another reads.

struct reaped {
	_Atomic uint64_t cpu_ns;
	// The highest peak of resident memory of one process. A fork begins with its parent's peak,
	// and exec does not reset it: a value no higher than the launcher's own tells nothing about
	// the job.
	_Atomic uint64_t peak_bytes;
	_Atomic uint64_t faults; // page faults of all of them
	_Atomic bool first; // the job's first process is included, so the totals are final
};

struct usage {
	uint64_t cpu_ns;
	uint64_t peak_bytes;
	uint64_t faults;
};

static inline void reaped_add(struct reaped *r, const struct usage *usage, bool first)
{
	atomic_fetch_add(&r->cpu_ns, usage->cpu_ns);
	atomic_fetch_add(&r->faults, usage->faults);
	if (usage->peak_bytes > atomic_load(&r->peak_bytes)) {
		atomic_store(&r->peak_bytes, usage->peak_bytes);
	}
	if (first) {
		atomic_store(&r->first, true);
	}
}

// Tree --------------------------------------------------------------------------------------------

struct tree;

enum { TREE_TRAINING_MAX = 4 };

// A process of the job. Owned by the tree; valid until its `left` call returns.
struct process {
	pid_t pid; // in the recorder's pid namespace
	pid_t parent;
	pid_t inner_pid; // in its own pid namespace; 0: not known
	uint64_t pid_namespace; // 0: not known
	uint64_t start_ticks; // field 22 of stat: with pid, an identity that a reused pid does not
	                      // share
	int64_t entity; // set by the watcher's `joined` call
	uint64_t first_ns; // CLOCK_MONOTONIC: start time, from start_ticks
	clockid_t cpu_clock; // its CPU clock, readable by any user
	int stat_fd; // kept open; -1 if descriptors ran out
	int statm_fd; // likewise; a read fails with ESRCH when the process is gone
	unsigned n_children; // members that name it as their parent
	bool child_lost; // a child ended since its stat was last read
	bool zombie;
	int pidfd; // gives the exit status if the kernel supports that; else -1
	int status; // as waitpid gives it, once it is a zombie; -1: not known
	unsigned renamed; // number of name changes: after an exec the command line differs
	char name[64]; // comm, as it was last read
	void *readings; // the process source's own state
};

struct tree_watcher {
	void *context;
	// A process joined. Sets its entity. Returns 0, or -errno to leave it out.
	int (*joined)(void *context, struct process *p);
	// A process is gone, or the tree is being freed.
	void (*left)(void *context, struct process *p);
};

// root_fd: the machine's root, borrowed. captured: a captured tree of files without live processes.
int tree_new(int root_fd, bool captured, struct tree **ret, struct error *e);
void tree_free(struct tree *tree); // accepts NULL
void tree_watch(struct tree *tree, const struct tree_watcher *watcher);

// Starts the job: its first process, the pid that reaps its orphans (0: none), and the cgroup file
// that lists its processes, relative to the root (NULL: none). Until then the tree is empty. Any
// thread; takes effect with the next update.
void tree_start(struct tree *tree, pid_t first, pid_t reaper, const char *cgroup_procs);

// Finds processes started since the last call. Costs one small read if there are none.
void tree_update(struct tree *tree, uint64_t now_ns);
// Removes a member that is gone. Calls `left`; the pointer is then invalid.
void tree_remove(struct tree *tree, struct process *p);

// The members in order of joining: parents before children. Invalid after an update or removal.
struct process *const *tree_members(const struct tree *tree, size_t *ret_n);
struct process *tree_find(const struct tree *tree, pid_t pid); // NULL if it is not in the job
uint64_t tree_seen(const struct tree *tree); // members so far; from any thread
// Whether the job has too many processes to follow short-lived ones.
bool tree_many(const struct tree *tree);

// Opens /proc/PID/NAME of a member. Returns -errno; -EMFILE if the recorder must save descriptors.
int tree_open(struct tree *tree, const struct process *p, const char *name);
void tree_close(struct tree *tree, int *fd);
// The same for a single reading, which may use reserved descriptors. The caller closes it.
int tree_open_once(struct tree *tree, const struct process *p, const char *name);

// Resources of the job's processes reaped by the launcher. Any thread.
struct reaped *tree_reaped(struct tree *tree);
// Sets a member's name, which other threads may read.
void tree_rename(struct tree *tree, struct process *p, const char *name);

struct tree_member {
	pid_t pid;
	pid_t parent;
	uint64_t start_ticks;
	uint64_t first_ns;
	int64_t entity;
	int64_t parent_entity; // 0 if the parent is not in the job or is gone
	unsigned renamed;
	char name[64];
};
// Copies the living members into *items (grown with array_reserve). Returns 0 or -ENOMEM. Any
// thread.
int tree_snapshot(struct tree *tree, struct tree_member **items, size_t *n, size_t *capacity);
// The entity of a living member, 0 if pid is not in the job. Any thread.
int64_t tree_entity_of(struct tree *tree, pid_t pid);

// Training processes: the first four that marked iterations. One thread adds, any thread may read.
void tree_note_training(struct tree *tree, int64_t entity);
// Returns their number.
unsigned tree_training(struct tree *tree, int64_t ret[TREE_TRAINING_MAX]);
// Finds the process that makes this claim, among living members and those that left most recently.
// Returns the number of candidates; fills *ret if there is exactly one. Any thread.
unsigned tree_identify(struct tree *tree, const struct identity_claim *claim, struct identity *ret);
