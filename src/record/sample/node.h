// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Readings of host, disks, network and GPUs, shared by the recorders of one job on a machine. One
// of them, which holds a lock, reads and shares; the others copy its readings into their own files,
// so that each run is complete by itself. When the one that reads dies, its lock is released, and
// another takes over. A recorder whose next reading is overdue reads for itself: a stopped recorder
// or a damaged file costs no more than reading.
//
// The readings pass through a file in /dev/shm/strain-UID, which only this user can write, and so
// can the job: values are trusted like all that it can write, such as the run file. The file is
// read and written, not mapped: a mapped file that the job truncates would kill the recorder.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct node;

struct node_config {
	const char *folder; // below which the file is: "/dev/shm"
	const char *job; // the same for all recorders of the job, and for no other job of the user
	const char *run; // name of this recorder's run, for the others
	const size_t *columns; // [n_groups] metrics of each group: the same in all recorders
	size_t n_groups;
	uint64_t version; // of the recorder; others are not joined
};

// Joins, or is the first. Returns 0 or -errno with the reason, and nothing is shared then.
int node_join(const struct node_config *config, struct node **ret, struct error *e);
// Lets another recorder read. The last one to leave removes the file. Accepts NULL. No thread may
// use it any more.
void node_leave(struct node *n);

// Takes over if nobody reads. Returns true if it has just taken over. Call it about once a second.
bool node_elect(struct node *n);
// Lets another recorder take over, before this one leaves.
void node_stop_reading(struct node *n);
// Whether other recorders have joined.
bool node_has_others(const struct node *n);
// Whether this recorder reads for the others. Any thread.
bool node_reads(const struct node *n);
// The run of the recorder that reads, as far as that is known, printable; "" if not.
void node_reader(const struct node *n, char *buffer, size_t size);

// Rows of one reading. Owned; zero it at first.
struct node_rows {
	size_t n; // rows
	size_t n_columns;
	// [n][2 + n_columns]: who the row is about (hash of an entity's key), CLOCK_MONOTONIC in
	// ns (0: it was read, and there was nothing new), values
	int64_t *cells;
	size_t capacity; // in cells
	bool failed; // out of memory, or too many: it is not shared
};

void node_rows_begin(struct node_rows *rows, size_t n_columns); // forgets the rows
void node_rows_add(struct node_rows *rows, int64_t who, uint64_t t_ns, const int64_t *values);
bool node_rows_have(const struct node_rows *rows, int64_t who);
void node_rows_done(struct node_rows *rows);

// Shares a reading of a group (index into columns). Each group belongs to one thread.
void node_share(struct node *n, size_t group, uint64_t now_ns, const struct node_rows *rows);

enum node_answer {
	NODE_NEW, // *rows is a reading that this recorder has not taken yet
	NODE_KNOWN, // the last one is not overdue
	NODE_OVERDUE, // read for yourself
};

// The last reading of a group. interval_ns: between two readings. Each group belongs to one thread.
enum node_answer node_take(struct node *n, size_t group, uint64_t now_ns, uint64_t interval_ns,
	struct node_rows *rows);
