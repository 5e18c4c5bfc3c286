// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The job's processes: who belongs to it, from first to last. The tick lane owns the tree and keeps
// it up to date; other threads use only the calls that say so.
//
// A process belongs to the job when its parent does, or when its parent is the launcher: as
// subreaper the launcher inherits whoever loses its parent, so that double forks and setsid hide
// nobody. Where the job has a cgroup of its own, everything in it belongs too.

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
// Who somebody is who gives only the number that he has in his own pid namespace, and that perhaps
// no longer lives when he is looked for.

#define IDENTITIES_LEFT 1024u

// A process of the job. The numbers of its namespace never change while it lives.
struct identity {
	pid_t pid; // in the recorder's pid namespace
	pid_t inner_pid; // in its own; 0: not known
	uint64_t pid_namespace; // the inode of its own; 0: not known
	uint64_t first_ns; // CLOCK_MONOTONIC: when it was started, not later than it was
	int64_t entity;
};

// What somebody says of himself.
struct identity_claim {
	uint64_t pid_namespace; // 0: he does not know
	uint32_t inner_pid;
	uint64_t at_ns; // CLOCK_MONOTONIC: when he said it
};

// The inode of the pid namespace that /proc is of; 0 where it cannot be read.
uint64_t identity_own_namespace(int root_fd);

// Those that left last; a new one takes the place of the oldest.
struct identities_left {
	struct identity items[IDENTITIES_LEFT];
	size_t n; // so many in all, ever
};

void identities_left_add(struct identities_left *left, const struct identity *identity);

// A search asks one after the other.
struct identity_search {
	struct identity_claim claim;
	struct identity best;
	bool sure; // best is of the namespace that is claimed
	unsigned likely; // others, of whom that is not known
};

void identity_consider(struct identity_search *search, const struct identity *identity);
void identity_consider_left(struct identity_search *search, const struct identities_left *left);
// How many it may be. Only of one it is certain who: search->best.
unsigned identity_count(const struct identity_search *search);

// Reaped ------------------------------------------------------------------------------------------
//
// The job's processes that the launcher has reaped, each with what it had reaped itself: what
// wait4(2) tells of them. One thread adds, another reads.

struct reaped {
	_Atomic uint64_t cpu_ns;
	// The most that one of them ever had resident. A fork begins with what its parent has, and
	// an exec does not forget it: no more than the launcher's own says nothing of the job.
	_Atomic uint64_t peak_bytes;
	_Atomic uint64_t faults; // of pages, of all of them
	_Atomic bool first; // the job's first process is among them, so this is all
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
	int64_t entity; // set by the watcher's `joined`
	uint64_t first_ns; // CLOCK_MONOTONIC: when it was started, from start_ticks
	clockid_t cpu_clock; // its CPU clock, readable by any user
	int stat_fd; // kept open: -1 where descriptors ran out
	int statm_fd; // likewise; tells by ESRCH that the process is gone
	unsigned n_children; // members that name it as their parent
	bool child_lost; // a child went away since its stat was last read
	bool zombie;
	int pidfd; // tells how it ended, where the kernel does; else -1
	int status; // as waitpid gives it, once it is a zombie; -1: not known
	unsigned renamed; // how often its name changed: after an exec its command line is another
	char name[64]; // comm, as it was last read
	void *readings; // the process source's own state
};

struct tree_watcher {
	void *context;
	// A process has joined: gives it its entity. 0, or -errno to leave it out.
	int (*joined)(void *context, struct process *p);
	// It is gone (or the tree is being freed).
	void (*left)(void *context, struct process *p);
};

// root_fd: the machine's root, borrowed. captured: a tree of files, with no processes that live.
int tree_new(int root_fd, bool captured, struct tree **ret, struct error *e);
void tree_free(struct tree *tree); // accepts NULL
void tree_watch(struct tree *tree, const struct tree_watcher *watcher);

// The job starts: its first process, who reaps its orphans (0: nobody does), and a cgroup's file
// that lists its processes, relative to the root (NULL for none). Until then the tree is empty. Any
// thread; takes effect with the next update.
void tree_start(struct tree *tree, pid_t first, pid_t reaper, const char *cgroup_procs);

// Looks for processes that have come since the last call. Costs one small read where there are
// none.
void tree_update(struct tree *tree, uint64_t now_ns);
// A member was found to be gone. Calls `left`; the pointer is invalid afterwards.
void tree_remove(struct tree *tree, struct process *p);

// The members in order of joining: parents before their children. Invalid after update and remove.
struct process *const *tree_members(const struct tree *tree, size_t *ret_n);
struct process *tree_find(const struct tree *tree, pid_t pid); // NULL where it is none of the job's
uint64_t tree_seen(const struct tree *tree); // members so far; from any thread
// Whether they were so many that short-lived ones are no longer followed.
bool tree_many(const struct tree *tree);

// Opens /proc/PID/NAME of a member. -errno; -EMFILE where the recorder must keep its descriptors.
int tree_open(struct tree *tree, const struct process *p, const char *name);
void tree_close(struct tree *tree, int *fd);
// The same for a single reading, which may use the reserve; the caller closes it.
int tree_open_once(struct tree *tree, const struct process *p, const char *name);

// What the launcher has reaped of the job; any thread.
struct reaped *tree_reaped(struct tree *tree);
// Sets the name of a member, for those who look from other threads.
void tree_rename(struct tree *tree, struct process *p, const char *name);

struct tree_member {
	pid_t pid;
	pid_t parent;
	uint64_t start_ticks;
	uint64_t first_ns;
	int64_t entity;
	int64_t parent_entity; // 0 where the parent is not of the job, or gone
	unsigned renamed;
	char name[64];
};
// Copies the members alive now into *items (grown with array_reserve). 0 or -ENOMEM. Any thread.
int tree_snapshot(struct tree *tree, struct tree_member **items, size_t *n, size_t *capacity);
// The entity of a live member, 0 where pid is none of the job's. Any thread.
int64_t tree_entity_of(struct tree *tree, pid_t pid);

// The processes that mark iterations, and so train: the first four that ever did. Any thread may
// ask; one thread notes.
void tree_note_training(struct tree *tree, int64_t entity);
// How many there are.
unsigned tree_training(struct tree *tree, int64_t ret[TREE_TRAINING_MAX]);
// The process that says this of itself, be it alive or one of those that left last. Returns how
// many members it may be; *ret is filled where it is one. Any thread.
unsigned tree_identify(struct tree *tree, const struct identity_claim *claim, struct identity *ret);
