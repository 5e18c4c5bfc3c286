// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The job's processes: role, CPU time and memory.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct run_tables;

// The role of a process, from the process tree, the command lines and its marks.
enum role {
	ROLE_MAIN, // trains: the job's root, or what its launchers started
	ROLE_RANK, // one of several that train together
	ROLE_LOADER, // prepares batches for main or ranks
	ROLE_CHILD, // another forked copy of its parent that stays
	ROLE_LAUNCHER, // shells, torchrun, mpirun: starts others and waits
	ROLE_HELPER, // anything else
	ROLE_STRAIN, // a process of strain itself: of a `strain run` in the job
	N_ROLES,
};

// "main", "rank", "loader", "child", "launcher", "helper", "strain"
const char *role_name(enum role role);

struct process_row {
	int64_t entity;
	int64_t parent; // entity of its parent; 0 for none
	int64_t pid; // -1 if its key has none
	enum role role;
	int rank; // its rank, if marks give one; -1
	bool iterates; // it marked iterations
	bool takes_none; // it marked phases, but no waits for batches
	bool prepares; // it marked batches that it prepared
	bool strain; // the recorder saw that it runs a program of strain's
	int number; // index of a rank or loader among its kind, from 0; -1 for others
	// as the kernel reports it, from the job: escape it. Lives with the analysis
	const char *name;
	char *command; // the command line; from the job: escape it
	char *label; // short, for tables: "python3 train.py", "worker 0"; printable, at most
	             // PROCESS_LABEL_COLUMNS characters
	double first_s;
	double last_s;
	bool ended; // before the run did
	int exit_status; // -1 where unknown or killed
	int exit_signal; // 0 for none
	// NAN where missing
	double cpu_seconds;
	double cpu_share; // of one CPU, over its life without stops: 1.98 is nearly two CPUs
	double stopped_s; // time for which it was stopped
	double memory_peak_bytes;
	const char *memory_kind; // kind of memory_peak_bytes: "PSS" or "resident"; NULL: missing
	double resident_peak_bytes; // its high-water mark
	bool resident_at_least; // it may have grown after the mark was read
	double pss_peak_bytes; // of rare readings, as is uss_peak_bytes
	double uss_peak_bytes;
	double asked_bytes; // read through system calls
	double storage_bytes; // part of asked_bytes that came from storage
	double written_bytes; // sent to storage
};

#define PROCESS_LABEL_COLUMNS 32

struct process_list {
	struct process_row *items; // by role, then number, then CPU time, largest first
	size_t n;
	size_t capacity;
};

int process_list_build(const struct run_tables *tables, struct process_list *ret);
// Assigns roles by the shape of the tree and by the marks of the rows, and sorts the rows by role.
// Returns 0 or -ENOMEM.
int process_list_tell_roles(struct process_list *list);
// Appends the name of a thread's process, "worker 0"; for a process that the recorder never saw,
// "process 4242" or the thread.
struct text;
void process_list_append_label(struct text *t, const struct process_list *list, int64_t entity,
	int64_t pid, int64_t thread);
// Whether its command line runs Python.
bool process_row_is_python(const struct process_row *process);
void process_list_done(struct process_list *list);

// Roles -------------------------------------------------------------------------------------------
//
// Assigns roles to the processes of a job. Only processes.c and its test need this.

// Fills role and number of every row. Rows are sorted by entity; parent, command, name, times, CPU
// time, marks and programs are set. Returns 0 or -ENOMEM.
int processes_assign_roles(struct process_row *rows, size_t n);
